//! Cars: sedan, hatchback, coupé, off-roader, pickup, van. Front towards +y.

use super::*;

/// Side view of one body style, in units of length 2 and height up to 1: roof line and proportions.
struct Style {
    /// Where the windscreen meets the bonnet, the roof's front, the roof's back, where the rear window ends (y).
    glass: [f32; 4],
    /// Height of the waist line and of the roof above the ground.
    waist: f32,
    roof: f32,
    bonnet: f32,
    boot: f32,
    radius: f32,
}

/// A car.
pub fn car(b: &mut Builder) {
    let kind = b.kind("kind", 6);
    let mut s = match kind {
        0 => Style {
            glass: [0.38, 0.12, -0.42, -0.72],
            waist: 0.46,
            roof: 0.7,
            bonnet: 0.42,
            boot: 0.44,
            radius: 0.17,
        },
        1 => Style {
            glass: [0.5, 0.2, -0.68, -0.92],
            waist: 0.5,
            roof: 0.78,
            bonnet: 0.45,
            boot: 0.48,
            radius: 0.17,
        },
        2 => Style {
            glass: [0.3, 0.0, -0.32, -0.82],
            waist: 0.46,
            roof: 0.64,
            bonnet: 0.43,
            boot: 0.46,
            radius: 0.18,
        },
        3 => Style {
            glass: [0.42, 0.26, -0.82, -0.93],
            waist: 0.58,
            roof: 0.9,
            bonnet: 0.55,
            boot: 0.57,
            radius: 0.22,
        },
        4 => Style {
            glass: [0.44, 0.22, -0.14, -0.2],
            waist: 0.56,
            roof: 0.86,
            bonnet: 0.53,
            boot: 0.54,
            radius: 0.21,
        },
        _ => Style {
            glass: [0.78, 0.5, -0.95, -0.98],
            waist: 0.55,
            roof: 0.98,
            bonnet: 0.5,
            boot: 0.54,
            radius: 0.17,
        },
    };
    s.roof *= b.vary("roof", 0.94, 1.06);
    s.radius *= b.vary("wheel_radius", 0.92, 1.1);
    let width = b.vary("width", 0.78, 0.9);
    let shift = b.vary("cabin_shift", -0.05, 0.05);
    // The arch must stay below the bonnet.
    s.radius = s.radius.min((s.bonnet - 0.05) / 2.14);
    s.glass[1] += shift;
    s.glass[2] += shift;
    let half = width * 0.5;
    let wheelbase = b.vary("wheelbase", 0.56, 0.64);
    let clearance = s.radius * b.range(0.55, 0.75);
    let body_colour = match b.kind("finish", 4) {
        0 => Colour::grey(0.85),
        1 => b.muted(),
        _ => b.vivid(),
    };
    let body = b.paint(body_colour, 0.18, 0.7);
    let second = b.contrast(body_colour);
    let stripe = b.paint(second, 0.25, 0.6);
    let (glass, steel, tyre, black) = (b.glass(), b.steel(), b.rubber(), b.black());
    let lamp = b.glowing(Colour([1.0, 0.97, 0.85]));
    let red = b.glowing(Colour([0.8, 0.05, 0.04]));
    let amber = b.glowing(Colour([0.95, 0.55, 0.05]));
    // Lower body: side outline with wheel arches cut out.
    let arch = s.radius * 1.14;
    let mut outline: Vec<(f32, f32)> = vec![(-0.98, clearance)];
    for y in [-wheelbase, wheelbase] {
        for i in 0..=10 {
            let start = std::f32::consts::PI + ((s.radius - clearance) / arch).asin();
            let end = -((s.radius - clearance) / arch).asin();
            let a = start + (end - start) * i as f32 / 10.0;
            outline.push((y + arch * a.cos(), s.radius + arch * a.sin()));
        }
    }
    let nose = b.range(0.0, 0.06);
    outline.extend([
        (0.98, clearance),
        (1.0, clearance + 0.08),
        (1.0 - nose * 0.3, s.bonnet - 0.1),
        (0.95 - nose, s.bonnet - 0.02),
        (0.75, s.bonnet + 0.005),
        (s.glass[0], s.waist),
        (s.glass[3], s.waist),
        (-0.9, s.boot),
        (-0.985, s.boot - 0.05),
        (-1.0, clearance + 0.1),
    ]);
    let lean = |p: glam::Vec3| {
        // Sides lean in above the waist and towards both ends.
        let end = 1.0 - 0.1 * p.y.abs().powi(4);
        v(p.x * end, p.y, p.z)
    };
    b.add(body, prism_x(&outline, width, 0.035).map(lean));
    b.add(
        black,
        cuboid(width * 0.86, 1.9, s.waist - clearance - 0.12).at(
            0.0,
            0.0,
            (s.waist + clearance) * 0.5 - 0.02,
        ),
    );
    // Cabin: glass, then roof and pillars in the body's colour.
    let (low, high) = (s.waist - 0.02, s.roof);
    let taper = |p: glam::Vec3| v(p.x * (1.0 - 0.2 * ((p.z - low) / (high - low)).clamp(0.0, 1.0)), p.y, p.z);
    let g = s.glass;
    b.add(
        glass,
        prism_x(&[(g[0], low), (g[1], high), (g[2], high), (g[3], low)], width * 0.93, 0.01).map(taper),
    );
    let roof = |z: f32, d: f32| {
        prism_x(
            &[(g[1] + 0.02, z), (g[1] - 0.02, z + d), (g[2] + 0.02, z + d), (g[2] - 0.02, z)],
            width * 0.96,
            0.015,
        )
    };
    b.add(body, roof(high - 0.02, 0.05).map(taper));
    let bar = 0.035;
    let post = |top: f32, bottom: f32| {
        prism_x(&[(bottom + bar, low), (top + bar, high), (top - bar, high), (bottom - bar, low)], 0.05, 0.0)
            .at(width * 0.455, 0.0, 0.0)
            .both_x()
            .map(taper)
    };
    b.add(body, post(g[1] - 0.01, g[0] - 0.02));
    b.add(body, post(g[2] + 0.01, g[3] + 0.02));
    let pillars = b.count("side_windows", 1, 3);
    for i in 1..=pillars {
        let t = i as f32 / (pillars + 1) as f32;
        b.add(body, post(g[1] + (g[2] - g[1]) * t, g[1] + (g[2] - g[1]) * t));
    }
    if kind == 5 || (kind == 3 && b.range(0.0, 1.0) < 0.5) {
        // Closed cargo sides behind the front doors.
        let y = (g[1] + g[2]) * 0.5;
        let side = prism_x(&[(y, low), (y, high), (g[2], high), (g[3], low)], 0.05, 0.0);
        if kind == 5 {
            b.add(body, side.at(width * 0.45, 0.0, 0.0).both_x().map(taper));
        }
    }
    if kind == 4 {
        // Pickup: an open bed with walls.
        let (front, z) = (g[3], s.boot);
        let wall = cuboid(0.05, front + 0.98, 0.14).at(half - 0.06, (front - 0.98) * 0.5, z + 0.03).both_x();
        b.add(body, wall.with(cuboid(width * 0.9, 0.05, 0.14).at(0.0, -0.95, z + 0.03)));
        b.add(black, cuboid(width * 0.82, front + 0.9, 0.03).at(0.0, (front - 0.96) * 0.5, z));
        if b.chance("load", 0.6) {
            let crate_paint = b.wood();
            b.add(crate_paint, block(0.3, 0.3, 0.22).at(half * 0.3, (front - 0.9) * 0.5, z + 0.12));
        }
    }
    // Wheels.
    let wheel = Wheel {
        radius: s.radius,
        width: 0.16,
        rim: b.vary("rim", 0.55, 0.7),
        spokes: b.count("spokes", 4, 8),
    };
    for y in [-wheelbase, wheelbase] {
        for side in [-1.0, 1.0] {
            wheel.add(b, tyre, steel, v(side * (half - 0.07), y, s.radius), side);
        }
    }
    if kind == 3 && b.chance("spare_wheel", 0.6) {
        let spare = lathe(&wheel_profile(s.radius * 0.9, s.radius * 0.3, 0.12), 24).turn_x(90.0);
        b.add(tyre, spare.at(0.08, -1.05, s.waist - 0.05));
        b.add(stripe, cylinder(s.radius * 0.5, 0.13, 20).turn_x(90.0).at(0.08, -1.05, s.waist - 0.05));
    }
    // Face: lights, grille, bumpers, plate, mirrors.
    let light_z = s.bonnet - 0.1;
    let round = b.chance("round_lights", 0.35);
    let x = half * 0.68;
    let light = if round { ellipsoid(0.075, 0.05, 0.075, 16) } else { rounded(0.2, 0.07, 0.085, 0.03) };
    b.add(lamp, light.at(x, 0.965 - nose * 0.5, light_z).both_x());
    b.add(amber, cuboid(0.05, 0.08, 0.06).at(half * 0.88, 0.915, light_z).both_x());
    let grille_width = half * b.vary("grille", 0.5, 0.9);
    b.add(black, cuboid(grille_width, 0.04, 0.1).at(0.0, 0.985 - nose * 0.3, light_z - 0.03));
    for i in 0..4 {
        b.add(
            steel,
            cuboid(grille_width, 0.02, 0.012).at(0.0, 1.005 - nose * 0.3, light_z - 0.07 + 0.028 * i as f32),
        );
    }
    let bumper = if b.chance("chrome_bumpers", 0.4) { steel } else { black };
    b.add(bumper, rounded(width * 0.9, 0.12, 0.09, 0.04).at(0.0, 0.98, clearance + 0.05).both_y());
    b.add(lamp, cuboid(0.24, 0.02, 0.06).at(0.0, 1.045, clearance + 0.06).both_y());
    b.add(red, cuboid(0.16, 0.05, 0.1).at(half * 0.7, -0.975, s.boot - 0.12).both_x());
    b.add(body, rounded(0.09, 0.05, 0.07, 0.02).at(half + 0.03, g[0] - 0.12, s.waist + 0.05).both_x());
    // Door seams and handles.
    for y in [g[1] - 0.03, (g[1] + g[2]) * 0.5, g[2] + 0.02] {
        let seam =
            cuboid(0.012, 0.014, s.waist - clearance - 0.08).at(half - 0.001, y, (s.waist + clearance) * 0.5);
        b.add(black, seam.both_x().map(lean));
    }
    b.add(steel, cuboid(0.02, 0.09, 0.02).at(half, (g[1] + g[2]) * 0.5 + 0.1, s.waist - 0.07).both_x());
    b.add(black, cuboid(width * 0.9, 0.03, 0.015).at(0.0, g[0] + 0.02, s.waist + 0.005));
    // Something that tells left from right or breaks the plain bonnet.
    match b.kind("decoration", 4) {
        0 => {
            let strip =
                |y0: f32, y1: f32, z: f32| cuboid(0.16, y1 - y0, 0.012).at(half * 0.35, (y0 + y1) * 0.5, z);
            b.add(stripe, strip(g[2], g[1], high + 0.03));
            b.add(
                stripe,
                strip(s.glass[0] + 0.05, 0.82, s.bonnet + 0.015)
                    .map(|p| v(p.x, p.y, p.z + (0.75 - p.y) * (s.waist - s.bonnet) / (0.75 - g[0]))),
            );
        }
        1 => {
            b.add(stripe, cuboid(0.014, wheelbase * 1.2, 0.1).at(half - 0.001, 0.0, s.waist - 0.14).both_x())
        }
        2 => b.add(
            stripe,
            cuboid(width * 0.6, (g[1] - g[2]) * 0.7, 0.02).at(0.0, (g[1] + g[2]) * 0.5, high + 0.03),
        ),
        _ => {
            for y in [g[1] - 0.1, g[2] + 0.1] {
                b.add(black, rod(v(-half * 0.7, y, high + 0.07), v(half * 0.7, y, high + 0.07), 0.015, 8));
            }
            b.add(
                stripe,
                rounded(half * 0.7, (g[1] - g[2]) * 0.8, 0.09, 0.03).at(
                    half * 0.28,
                    (g[1] + g[2]) * 0.5,
                    high + 0.12,
                ),
            );
        }
    }
}
