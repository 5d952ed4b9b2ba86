//! Headwear: cap and helmet. Worn looking towards +y.

use super::*;

/// Part of an ellipsoidal shell: azimuths and elevations in degrees (azimuth 90 is +y), radii, thickness.
fn dome(
    azimuth: (f32, f32),
    elevation: (f32, f32),
    radii: (f32, f32, f32),
    thickness: f32,
    steps: (usize, usize),
) -> Solid {
    sheet(steps.0, steps.1, thickness, move |u, t| {
        let a = (azimuth.0 + (azimuth.1 - azimuth.0) * u).to_radians();
        // Stop just short of the pole, where the patch would have no width.
        let e = (elevation.0 + (elevation.1 - elevation.0) * t).min(89.0).to_radians();
        v(radii.0 * a.cos() * e.cos(), radii.1 * a.sin() * e.cos(), radii.2 * e.sin())
    })
}

/// A cap: baseball cap, flat cap, beanie, bucket hat.
pub fn cap(b: &mut Builder) {
    let kind = b.kind("kind", 4);
    let (rx, ry) = (b.vary("width", 0.36, 0.42), b.vary("length", 0.42, 0.48));
    let h = b.vary("height", 0.3, 0.4);
    let colour = b.vivid();
    let main = if b.chance("patterned", 0.25) { b.fabric() } else { b.paint(colour, 0.9, 0.1) };
    let second_colour = b.contrast(colour);
    let second = b.paint(second_colour, 0.9, 0.1);
    let accent = b.accent();
    let lining = b.paint(Colour::grey(0.25), 0.95, 0.05);
    match kind {
        0 => {
            let panels = b.count("panels", 5, 8);
            let front = b.chance("contrast_front", 0.6);
            for k in 0..panels {
                let (a0, a1) = (360.0 * k as f32 / panels as f32, 360.0 * (k + 1) as f32 / panels as f32);
                let middle = (a0 + a1) * 0.5;
                let paint = if front && (35.0..145.0).contains(&middle) { second } else { main };
                b.add(paint, dome((a0 + 0.6, a1 - 0.6), (0.0, 90.0), (rx, ry, h), 0.015, (5, 10)));
            }
            b.add(lining, dome((0.0, 360.0), (0.0, 90.0), (rx * 0.97, ry * 0.97, h * 0.97), 0.01, (24, 8)));
            b.add(accent, ellipsoid(0.035, 0.035, 0.022, 12).at(0.0, 0.0, h));
            let long = b.vary("brim", 0.22, 0.34);
            let droop = b.vary("droop", 0.03, 0.1);
            let brim = sheet(16, 8, 0.02, |u, t| {
                let a = (25.0 + 130.0 * u).to_radians();
                let reach = long * (1.0 - (2.0 * u - 1.0).powi(4)) * t;
                v(
                    rx * a.cos() * (1.0 + 0.04 * t),
                    ry * a.sin() + reach,
                    0.01 - droop * (a.cos() * 1.2).powi(2) - 0.1 * reach,
                )
            });
            let brim_paint = if b.chance("contrast_brim", 0.5) { accent } else { main };
            b.add(brim_paint, brim);
            let logo = dome((72.0, 108.0), (18.0, 52.0), (rx * 1.02, ry * 1.02, h * 1.02), 0.012, (6, 6));
            b.add(accent, logo);
            b.add(second, dome((250.0, 290.0), (0.0, 10.0), (rx * 1.02, ry * 1.02, h), 0.012, (6, 2)));
            b.add(lining, dome((255.0, 285.0), (10.0, 26.0), (rx * 1.01, ry * 1.01, h * 1.01), 0.01, (6, 4)));
        }
        1 => {
            // Flat cap: low shell pulled forward onto a short peak.
            let shell = superellipsoid(rx * 1.08, ry * 1.05, h * 0.36, 0.7, 1.0, 34)
                .map(|p| v(p.x, p.y + 0.06, p.z + 0.12 * (p.y / ry).min(0.0).abs() + h * 0.3));
            b.add(main, shell);
            let band: Vec<_> = oval(rx, ry * 0.98, 36).iter().map(|p| p.extend(0.06)).collect();
            b.add(second, sweep_closed(&rounded_rectangle(0.03, 0.12, 0.012, 2), &band, glam::Vec3::Z));
            let peak = sheet(14, 5, 0.022, |u, t| {
                let a = (35.0 + 110.0 * u).to_radians();
                v(
                    rx * a.cos(),
                    ry * a.sin() * (1.0 + 0.02 * t) + 0.16 * t * (1.0 - (2.0 * u - 1.0).powi(4)),
                    0.05 - 0.05 * t,
                )
            });
            b.add(accent, peak);
            b.add(accent, ellipsoid(0.035, 0.035, 0.02, 12).at(0.0, 0.03, h * 0.68));
            b.add(second, rounded(rx * 0.5, 0.02, 0.06, 0.008).at(rx * 0.1, -ry - 0.01, 0.06));
        }
        2 => {
            // Beanie: ribbed cuff, bobble, a patch.
            let ribs = b.count("ribs", 18, 26) as f32;
            let crown = dome((0.0, 360.0), (0.0, 90.0), (rx, ry * 0.95, h * 1.25), 0.02, (48, 10)).map(|p| {
                let k = 1.0 + 0.025 * (p.y.atan2(p.x) * ribs).cos();
                v(p.x * k, p.y * k, p.z)
            });
            b.add(main, crown);
            let cuff: Vec<_> = oval(rx * 1.05, ry, 48).iter().map(|p| p.extend(0.05)).collect();
            b.add(second, sweep_closed(&rounded_rectangle(0.06, 0.2, 0.025, 2), &cuff, glam::Vec3::Z));
            b.add(
                accent,
                ellipsoid(0.12, 0.12, 0.11, 16)
                    .map(|p| {
                        p * (1.0 + 0.12 * ((p.x * 70.0).sin() + (p.y * 70.0).sin() * (p.z * 60.0).cos()))
                    })
                    .at(0.0, 0.0, h * 1.3)
                    .flat(),
            );
            b.add(accent, rounded(0.2, 0.03, 0.13, 0.012).at(0.04, ry + 0.035, 0.05));
            let stripe = dome((10.0, 150.0), (18.0, 62.0), (rx * 1.04, ry * 0.99, h * 1.28), 0.015, (20, 4));
            b.add(second, stripe);
        }
        _ => {
            // Bucket hat, one side turned up, a ribbon with a bow.
            let outer =
                [(rx * 1.5, -0.1), (rx * 1.02, 0.06), (rx * 0.86, h * 0.95), (rx * 0.76, h), (0.0, h)];
            b.add(main, lathe(&outer, 40).scale(1.0, ry / rx, 1.0));
            b.add(
                lining,
                lathe(&[(0.0, h * 0.97), (rx * 0.84, h * 0.94), (rx * 1.0, 0.05), (rx * 1.5, -0.1)], 40)
                    .scale(1.0, ry / rx, 1.0)
                    .at(0.0, 0.0, -0.012),
            );
            b.add(
                second,
                lathe(&[(rx * 1.03, 0.06), (rx * 0.985, h * 0.34)], 40)
                    .scale(1.0, ry / rx, 1.0)
                    .at(0.0, 0.0, 0.012),
            );
            b.add(
                second,
                rounded(0.12, 0.05, 0.1, 0.02)
                    .turn_y(20.0)
                    .at(rx * 0.95 + 0.03, ry * 0.35, 0.12)
                    .with(rounded(0.12, 0.05, 0.1, 0.02).turn_y(-20.0).at(rx * 0.9, ry * 0.5, 0.1)),
            );
            // Half the brim and half the crown in the contrasting colour.
            b.add(
                second,
                lathe_arc(&[(rx * 1.47, -0.07), (rx * 1.12, 0.04)], 10.0, 170.0, 22)
                    .scale(1.0, ry / rx, 1.0)
                    .at(0.0, 0.0, 0.006),
            );
            let half: Vec<glam::Vec2> =
                oval(rx * 0.74, ry * 0.74, 32).into_iter().filter(|p| p.y > -0.001).collect();
            b.add(second, prism(&half, 0.012, 0.0).at(0.0, 0.0, h + 0.004));
            let feather = sheet(3, 8, 0.012, |u, t| {
                v(rx * 0.98 - 0.06 * t, -0.1 - 0.3 * t + (u - 0.5) * 0.07 * (1.0 - t * t), 0.12 + 0.34 * t)
            });
            b.add(accent, feather);
            b.add(lining, ring(0.02, 0.008, 10, 6).turn_y(90.0).at(-rx * 0.93, 0.05, h * 0.6));
        }
    }
}

/// A helmet: motorcycle, bicycle, hard hat, football, knight.
pub fn helmet(b: &mut Builder) {
    let kind = b.kind("kind", 5);
    let (rx, ry, rz) =
        (b.vary("width", 0.36, 0.42), b.vary("length", 0.42, 0.5), b.vary("height", 0.38, 0.46));
    let colour = if kind == 2 {
        b.one_of(&[
            Colour([0.95, 0.75, 0.08]),
            Colour([0.9, 0.4, 0.05]),
            Colour::grey(0.92),
            Colour([0.1, 0.3, 0.7]),
        ])
    } else {
        b.vivid()
    };
    let shell = if kind == 4 { b.metal() } else { b.paint(colour, 0.2, 0.6) };
    let second_colour = b.contrast(colour);
    let second = b.paint(second_colour, 0.3, 0.5);
    let (black, steel, accent) = (b.black(), b.steel(), b.accent());
    let glass = b.glass();
    let radii = (rx, ry, rz);
    let grown = |k: f32| (rx * k, ry * k, rz * k);
    match kind {
        0 => {
            // Full-face: dome, chin bar, visor.
            b.add(shell, dome((0.0, 360.0), (18.0, 90.0), radii, 0.03, (36, 10)));
            b.add(shell, dome((160.0, 380.0), (-45.0, 20.0), radii, 0.03, (26, 8)));
            let chin = sheet(20, 4, 0.05, |u, t| {
                let a = (20.0 + 140.0 * u).to_radians();
                let e = (-48.0 + 24.0 * t).to_radians();
                v(rx * a.cos() * 0.95, ry * a.sin() * 1.12 * e.cos().max(0.8), rz * e.sin() * 1.0)
            });
            b.add(second, chin);
            b.add(glass, dome((22.0, 158.0), (-20.0, 26.0), grown(1.02), 0.02, (22, 6)));
            b.add(black, dome((0.0, 360.0), (-40.0, 10.0), grown(0.9), 0.02, (30, 6)));
            b.add(steel, cylinder(0.06, 0.04, 18).turn_y(90.0).at(rx * 0.98, 0.02, 0.03).both_x());
            let stripe = b.vary("stripe", 12.0, 28.0);
            let offset = b.range(0.0, 15.0);
            b.add(
                accent,
                dome(
                    (90.0 + offset - stripe, 90.0 + offset + stripe),
                    (30.0, 88.0),
                    grown(1.05),
                    0.012,
                    (8, 8),
                ),
            );
            b.add(second, dome((200.0, 300.0), (-10.0, 50.0), grown(1.05), 0.012, (14, 8)));
            b.add(black, rounded(0.14, 0.05, 0.05, 0.015).at(0.0, ry * 1.0, -rz * 0.55));
        }
        1 => {
            // Bicycle: ribs with dark vents between, pointed back, straps.
            b.add(black, dome((0.0, 360.0), (0.0, 90.0), grown(0.93), 0.03, (30, 8)));
            let ribs = b.count("ribs", 5, 7);
            for k in 0..ribs {
                let x = 2.0 * k as f32 / (ribs - 1) as f32 - 1.0;
                let band = sheet(3, 20, 0.06, |u, t| {
                    let e = (-5.0 + 195.0 * t).to_radians();
                    let s = (x * 0.92 + (u - 0.5) * 0.2).clamp(-0.99, 0.99);
                    let flat = (1.0 - s * s).sqrt();
                    let tail = if e.cos() < 0.0 { 1.15 } else { 1.0 };
                    v(rx * s, ry * flat * e.cos() * tail, rz * flat * e.sin().max(-0.1) * 0.95 + 0.02)
                });
                b.add(if k % 2 == 0 { shell } else { second }, band);
            }
            b.add(shell, dome((0.0, 360.0), (-8.0, 12.0), grown(1.0), 0.05, (36, 3)));
            // A peak in front, a reflector behind.
            let peak = sheet(12, 4, 0.02, |u, t| {
                let a = (35.0 + 110.0 * u).to_radians();
                let reach = 0.2 * t * (1.0 - (2.0 * u - 1.0).powi(4));
                v(rx * 1.02 * a.cos(), ry * 1.02 * a.sin() + reach, 0.06 - 0.02 * t)
            });
            b.add(accent, peak);
            b.add(accent, dome((245.0, 295.0), (2.0, 55.0), (rx * 1.1, ry * 1.26, rz * 1.1), 0.03, (10, 6)));
            for side in [-1.0, 1.0] {
                let strap = curve(
                    &[
                        v(side * rx * 0.9, ry * 0.4, 0.0),
                        v(side * rx * 0.85, 0.05, -rz * 0.7),
                        v(0.0, 0.12, -rz * 1.0),
                    ],
                    6,
                );
                b.add(black, tube(&strap, 0.016, 6));
                b.add(
                    black,
                    rod(v(side * rx * 0.9, -ry * 0.4, 0.0), v(side * rx * 0.85, 0.05, -rz * 0.7), 0.014, 6),
                );
            }
            b.add(accent, rounded(0.08, 0.04, 0.05, 0.012).at(0.02, 0.12, -rz));
        }
        2 => {
            // Hard hat: ridges, brim, lamp, ear muffs.
            b.add(shell, dome((0.0, 360.0), (0.0, 90.0), radii, 0.025, (36, 10)));
            for x in [-0.09, 0.0, 0.09] {
                let ridge: Vec<_> = arc(
                    v(x, 0.0, 0.0),
                    v(0.0, ry * 1.01, 0.0),
                    v(0.0, 0.0, rz * (1.02 - x.abs() * 0.3)),
                    25.0,
                    155.0,
                    16,
                );
                b.add(shell, tube(&ridge, 0.03, 8));
            }
            let brim = sheet(36, 3, 0.025, |u, t| {
                let a = std::f32::consts::TAU * u;
                let reach = 1.0 + t * (0.08 + 0.22 * a.sin().max(0.0).powi(3));
                v(rx * a.cos() * reach, ry * a.sin() * reach, 0.01 - 0.04 * t)
            });
            b.add(shell, brim);
            let label = print(b, colour);
            b.add(label, dome((235.0, 305.0), (14.0, 48.0), grown(1.05), 0.012, (8, 6)).mirror_x());
            if b.chance("lamp", 0.6) {
                b.add(black, rounded(0.16, 0.09, 0.12, 0.03).at(0.0, ry * 0.95, rz * 0.42));
                let glow = b.glowing(Colour([1.0, 0.97, 0.8]));
                b.add(glow, cylinder(0.055, 0.03, 18).turn_x(90.0).at(0.0, ry * 0.95 + 0.05, rz * 0.42));
            } else {
                b.add(second, dome((60.0, 120.0), (15.0, 50.0), grown(1.05), 0.012, (8, 6)));
            }
            if b.chance("ear_muffs", 0.6) {
                for (side, paint) in [(1.0, accent), (-1.0, second)] {
                    b.add(paint, ellipsoid(0.09, 0.13, 0.17, 18).at(side * (rx + 0.03), 0.0, -0.2));
                    b.add(black, rod(v(side * rx, 0.0, 0.0), v(side * (rx + 0.04), 0.0, -0.15), 0.02, 8));
                }
            }
            b.add(black, dome((0.0, 360.0), (0.0, 85.0), grown(0.94), 0.01, (24, 6)));
        }
        3 => {
            // Football: shell with ear holes, cage towards the front.
            b.add(shell, dome((0.0, 360.0), (20.0, 90.0), radii, 0.03, (36, 10)));
            b.add(shell, dome((145.0, 395.0), (-50.0, 22.0), radii, 0.03, (28, 8)));
            b.add(second, dome((75.0, 105.0), (20.0, 88.0), grown(1.05), 0.012, (6, 10)));
            b.add(accent, dome((262.0, 278.0), (-30.0, 88.0), grown(1.05), 0.012, (5, 12)));
            b.add(black, cylinder(0.07, 0.03, 18).turn_y(90.0).at(rx * 0.98, -0.02, -0.1).both_x());
            b.add(black, dome((0.0, 360.0), (-45.0, 15.0), grown(0.92), 0.02, (30, 6)));
            let bars = b.count("bars", 2, 4);
            for i in 0..bars {
                let z = -rz * (0.25 + 0.6 * i as f32 / bars as f32);
                let bar = arc(
                    v(0.0, 0.1, z),
                    v(rx * 0.95, 0.0, 0.0),
                    v(0.0, ry * (1.15 - 0.05 * i as f32), 0.0),
                    5.0,
                    175.0,
                    18,
                );
                b.add(steel, tube(&bar, 0.02, 8));
            }
            for x in [-0.12, 0.12] {
                b.add(
                    steel,
                    rod(v(x, 0.1 + ry * 1.05, -rz * 0.22), v(x, 0.1 + ry * 0.95, -rz * 0.75), 0.018, 8),
                );
            }
            for side in [-1.0, 1.0] {
                b.add(
                    if side > 0.0 { second } else { accent },
                    ellipsoid(0.02, 0.12, 0.12, 16).at(side * rx * 0.9, -0.08, rz * 0.42),
                );
            }
        }
        _ => {
            // Knight's helm: skull, pointed visor with slits, plume on top.
            b.add(shell, dome((0.0, 360.0), (10.0, 90.0), (rx, ry, rz * 1.1), 0.03, (32, 10)));
            b.add(shell, dome((150.0, 390.0), (-60.0, 12.0), (rx, ry, rz * 1.1), 0.03, (24, 8)));
            let nose = b.vary("visor", 0.1, 0.28);
            let visor = sheet(18, 8, 0.03, |u, t| {
                let a = (10.0 + 160.0 * u).to_radians();
                let z = -rz * 0.75 + rz * 1.15 * t;
                let point =
                    nose * (1.0 - (2.0 * u - 1.0).abs()).powf(1.2) * (1.0 - (2.0 * t - 0.8).powi(2)).max(0.0);
                v(rx * 1.03 * a.cos(), ry * 1.03 * a.sin() + point, z)
            });
            b.add(second, visor);
            for side in [-1.0, 1.0] {
                b.add(
                    black,
                    rounded(0.16, 0.06, 0.035, 0.01).turn_z(-side * 28.0).at(
                        side * rx * 0.42,
                        ry * 0.98 + nose * 0.45,
                        rz * 0.2,
                    ),
                );
            }
            for i in 0..b.count("holes", 3, 6) {
                b.add(
                    black,
                    ellipsoid(0.02, 0.03, 0.02, 8).at(
                        -rx * 0.32,
                        ry + nose * 0.62,
                        -rz * (0.1 + 0.1 * i as f32),
                    ),
                );
            }
            b.add(steel, cylinder(0.06, 0.05, 16).turn_y(90.0).at(rx * 1.02, 0.05, 0.02).both_x());
            let plume = sheet(4, 14, 0.06, |u, t| {
                let a = (55.0 + 115.0 * t).to_radians();
                let k = 1.0 + (0.06 + 0.2 * t) * u;
                v(0.0, (ry * a.cos()) * k - 0.12 * t * u, rz * 1.12 * a.sin() * k)
            });
            b.add(accent, plume);
            b.add(
                steel,
                lathe(
                    &[
                        (rx * 0.9, -rz * 0.8),
                        (rx * 0.95, -rz * 1.0),
                        (rx * 1.1, -rz * 1.0),
                        (rx * 0.9, -rz * 0.8),
                    ],
                    30,
                )
                .scale(1.0, ry / rx, 1.0),
            );
        }
    }
}
