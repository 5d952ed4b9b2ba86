//! Loudspeaker and microphone.

use super::*;

/// A loudspeaker: bookshelf box, floor-standing column, stage monitor, portable cylinder. Cones towards +y.
pub fn loudspeaker(b: &mut Builder) {
    let kind = b.kind("kind", 4);
    let w = b.vary("width", 0.38, 0.52);
    let h = match kind {
        1 => w * b.vary("ratio", 2.2, 2.9),
        _ => w * b.vary("ratio", 1.4, 1.8),
    };
    let d = w * b.vary("depth", 0.75, 1.0);
    let box_paint = match b.kind("finish", 3) {
        0 | 1 => b.wood(),
        _ => b.lacquer(),
    };
    let baffle_colour = if b.chance("light_baffle", 0.3) { Colour::grey(0.8) } else { Colour::grey(0.12) };
    let baffle = b.paint(baffle_colour, 0.6, 0.2);
    let cone_colour = b.vivid();
    let cone_paint = if b.chance("coloured_cones", 0.6) { b.paint(cone_colour, 0.6, 0.3) } else { b.black() };
    let (rubber, steel, accent) = (b.rubber(), b.steel(), b.accent());
    let hy = d * 0.5;
    // A driver: chassis ring, surround, cone and dust cap.
    let driver = |b: &mut Builder, r: f32, x: f32, y: f32, z: f32| {
        let on = |s: Solid| s.turn_x(-90.0).at(x, y, z);
        b.add(steel, on(lathe(&[(0.0, -0.05), (r * 1.02, -0.05), (r * 1.02, 0.02), (r * 0.88, 0.022)], 32)));
        b.add(rubber, on(ring(r * 0.84, r * 0.07, 32, 8).at(0.0, 0.0, 0.012)));
        b.add(cone_paint, on(lathe(&[(r * 0.8, 0.016), (r * 0.3, 0.006)], 32)));
        b.add(steel, on(lathe(&curve2(&[(r * 0.32, 0.006), (r * 0.24, 0.03), (0.0, 0.045)], 3), 20)));
    };
    match kind {
        0 | 1 => {
            b.add(box_paint, block(w, d, h).at(0.0, 0.0, h * 0.5).tile(0.6));
            b.add(baffle, block(w * 0.94, 0.02, h * 0.97).at(0.0, hy, h * 0.5));
            let y = hy + 0.013;
            // The upper part of the baffle and the lid differ from the rest, so that up shows.
            let plate_colour = b.contrast(baffle_colour);
            let plate = b.paint(plate_colour, 0.5, 0.3);
            let plate_h = h * b.vary("plate", 0.2, 0.36);
            b.add(plate, block(w * 0.93, 0.02, plate_h).at(0.0, hy + 0.004, h * 0.98 - plate_h * 0.5));
            b.add(plate, block(w * 0.9, d * 0.86, 0.03).at(0.0, 0.0, h + 0.006));
            let tweeter = w * b.vary("tweeter", 0.12, 0.17);
            driver(b, tweeter, 0.0, y, h - tweeter * 1.5 - 0.03);
            let n = if kind == 1 { b.count("woofers", 2, 3) } else { 1 };
            let r = w * b.vary("woofer", 0.34, 0.43);
            for i in 0..n {
                driver(b, r, 0.0, y, h - tweeter * 3.0 - 0.06 - r * (1.0 + 2.1 * i as f32));
            }
            let port = w * 0.12;
            let z = h * 0.09;
            b.add(rubber, cylinder(port * 0.8, 0.012, 20).turn_x(90.0).at(w * 0.2, y + 0.001, z));
            b.add(accent, ring(port * 0.85, 0.014, 22, 6).turn_x(90.0).at(w * 0.2, y + 0.002, z));
            b.add(accent, cuboid(w * 0.2, 0.008, 0.03).at(-w * 0.25, y + 0.002, h * 0.05));
            if kind == 1 {
                b.add(rubber, block(w * 1.2, d * 1.1, 0.05).at(0.0, 0.0, -0.02));
            }
            b.add(steel, block(w * 0.4, 0.02, h * 0.15).at(0.0, -hy, h * 0.3));
        }
        2 => {
            // Stage box: tapered, grille behind bars, handles, on its castors.
            b.add(baffle, tapered((w * 1.1, d), (w * 0.95, d * 0.85), h).at(0.0, 0.0, h * 0.5));
            let y = hy * 0.93;
            let r = w * 0.42;
            driver(b, r, 0.0, y + 0.015, h * 0.36);
            // A horn above: flaring rectangle.
            b.add(rubber, cuboid(w * 0.72, 0.02, h * 0.2).at(0.0, y, h * 0.8));
            b.add(steel, frame(w * 0.78, 0.05, h * 0.25, 0.03).at(0.0, y, h * 0.8));
            b.add(
                accent,
                prism_y(&[(-w * 0.1, 0.0), (w * 0.1, 0.0), (0.0, h * 0.08)], 0.03, 0.004).at(
                    0.0,
                    y + 0.01,
                    h * 0.76,
                ),
            );
            b.add(steel, frame(w * 1.06, 0.03, h * 0.98, 0.035).at(0.0, y, h * 0.5));
            b.add(rubber, bar_handle(d * 0.4, 0.03).turn_z(-90.0).at(w * 0.51, 0.0, h * 0.7).both_x());
            b.add(accent, block(w * 0.5, d * 0.5, 0.05).at(w * 0.1, 0.0, h + 0.02));
            b.add(rubber, block(0.08, 0.08, 0.05).at(w * 0.4, d * 0.35, -0.02).both_x().both_y());
            b.add(box_paint, block(w * 0.7, 0.02, h * 0.5).at(0.0, -hy * 0.95, h * 0.5));
        }
        _ => {
            // Portable cylinder lying along x, with end caps and a control strip; or a smart speaker upright.
            let long = w * b.vary("length", 1.8, 2.4);
            let r = w * 0.36;
            let cloth = b.fabric();
            let body = lathe(
                &[(r * 0.96, -long * 0.5), (r, -long * 0.45), (r, long * 0.45), (r * 0.96, long * 0.5)],
                32,
            )
            .turn_y(90.0);
            b.add(cloth, body);
            for (side, paint) in [(1.0, accent), (-1.0, rubber)] {
                let cap = lathe(
                    &curve2(
                        &[(r * 1.04, 0.0), (r * 1.06, 0.05), (r * 0.85, 0.1), (r * 0.6, 0.08), (0.0, 0.06)],
                        3,
                    ),
                    32,
                )
                .turn_y(90.0)
                .at(long * 0.48, 0.0, 0.0);
                b.add(paint, if side > 0.0 { cap } else { cap.mirror_x() });
            }
            b.add(rubber, rounded(long * 0.5, r * 0.4, 0.05, 0.02).at(0.0, 0.0, r));
            for i in 0..b.count("keys", 3, 5) {
                b.add(accent, cylinder(r * 0.1, 0.04, 12).at(long * (0.18 - 0.1 * i as f32), 0.0, r + 0.02));
            }
            let strap =
                arc(v(-long * 0.5, 0.0, r * 0.5), v(-0.14, 0.0, 0.0), v(0.0, 0.0, 0.16), -90.0, 90.0, 12);
            b.add(rubber, tube(&strap, 0.018, 8));
            driver(b, r * 0.62, long * 0.2, r * 0.94, 0.0);
            driver(b, r * 0.62, -long * 0.2, r * 0.94, 0.0);
            b.add(rubber, block(long * 0.7, r * 0.8, 0.05).at(0.0, 0.0, -r * 0.95));
        }
    }
}

/// A microphone: hand-held, studio on a boom, vintage on a stand, gooseneck.
pub fn microphone(b: &mut Builder) {
    let kind = b.kind("kind", 4);
    let steel = b.steel();
    let black = b.black();
    let metal = b.metal();
    let colour = b.vivid();
    let accent = b.paint(colour, 0.4, 0.4);
    let mesh_a = Colour::grey(b.range(0.6, 0.8));
    let t = crate::texture::checks(mesh_a, mesh_a.times(0.45), 8);
    let mesh = b.textured(t, 0.4, 0.7);
    let r = b.vary("head", 0.1, 0.15);
    let length = b.vary("length", 0.6, 0.85);
    let foot = b.vary("foot", 0.2, 0.3);
    // A hand-held microphone along z with its head up.
    let handheld = |b: &mut Builder, place: &dyn Fn(Solid) -> Solid, r: f32, length: f32| {
        b.add(mesh, place(ellipsoid(r, r, r * 1.1, 26).at(0.0, 0.0, length)));
        b.add(steel, place(ring(r * 0.98, r * 0.13, 26, 8).at(0.0, 0.0, length - r * 0.15)));
        b.add(
            black,
            place(lathe(
                &[
                    (0.0, 0.0),
                    (r * 0.42, 0.0),
                    (r * 0.48, length * 0.5),
                    (r * 0.8, length - r * 0.6),
                    (r * 0.9, length - r * 0.2),
                ],
                24,
            )),
        );
        b.add(
            accent,
            place(lathe(
                &[
                    (r * 0.46, length * 0.05),
                    (r * 0.5, length * 0.06),
                    (r * 0.52, length * 0.22),
                    (r * 0.47, length * 0.24),
                ],
                24,
            )),
        );
        b.add(steel, place(rounded(r * 0.35, r * 0.2, r * 0.9, 0.015).at(0.0, r * 0.5, length * 0.55)));
        b.add(accent, place(rounded(r * 0.22, r * 0.2, r * 0.35, 0.01).at(0.0, r * 0.6, length * 0.58)));
    };
    match kind {
        0 => {
            // Lying on a small tripod clip, cable behind.
            let tilt = b.vary("tilt", 30.0, 65.0);
            handheld(b, &|s| s.turn_y(-tilt).at(0.0, 0.0, 0.4), r, length);
            b.add(
                black,
                cylinder(r * 0.7, 0.14, 18).turn_y(-tilt).at(
                    -0.18 * tilt.to_radians().sin(),
                    0.0,
                    0.4 + 0.18 * tilt.to_radians().cos(),
                ),
            );
            b.add(steel, cylinder(0.025, 0.36, 12).at(-0.12, 0.0, 0.28));
            for k in 0..3 {
                b.add(
                    black,
                    tube_tapered(&[v(0.0, 0.0, 0.16), v(foot, 0.0, 0.0)], |t| 0.024 - 0.008 * t, 8)
                        .turn_z(120.0 * k as f32 + 30.0)
                        .at(-0.12, 0.0, 0.0),
                );
            }
            let cable = curve(
                &[v(0.02, 0.0, 0.38), v(0.25, 0.05, 0.25), v(0.35, 0.12, 0.02), v(0.55, 0.05, 0.02)],
                8,
            );
            b.add(accent, tube(&cable, 0.016, 8));
        }
        1 => {
            // Studio condenser in a shock mount on a desk arm.
            let h = b.vary("stand", 0.5, 0.75);
            b.add(black, cylinder(foot, 0.05, 30).at(0.15, 0.0, 0.025));
            b.add(steel, cylinder(0.024, h, 12).at(0.15, 0.0, h * 0.5));
            b.add(black, rod(v(0.25, 0.0, h - 0.05), v(-0.25, 0.0, h + 0.2), 0.022, 10));
            let (x, z) = (-0.28, h + 0.1);
            let body = r * 0.85;
            b.add(
                metal,
                lathe(&[(0.0, -0.2), (body * 0.9, -0.2), (body, -0.18), (body, 0.02), (0.0, 0.02)], 26)
                    .at(x, 0.0, z),
            );
            b.add(
                mesh,
                lathe(&curve2(&[(body, 0.02), (body * 1.02, 0.15), (body * 0.8, 0.25), (0.0, 0.28)], 4), 26)
                    .at(x, 0.0, z),
            );
            b.add(steel, ring(body * 1.02, 0.014, 26, 6).at(x, 0.0, z + 0.02));
            b.add(
                black,
                ring(r * 1.5, 0.016, 28, 6).at(x, 0.0, z + 0.0).with(ring(r * 1.5, 0.016, 28, 6).at(
                    x,
                    0.0,
                    z - 0.15,
                )),
            );
            for k in 0..8 {
                let a = (45.0 * k as f32).to_radians();
                b.add(
                    accent,
                    rod(
                        v(x + body * a.cos(), body * a.sin(), z - 0.14),
                        v(x + r * 1.5 * a.cos(), r * 1.5 * a.sin(), z),
                        0.008,
                        5,
                    ),
                );
            }
            b.add(accent, cylinder(body * 0.4, 0.02, 16).turn_x(90.0).at(x, body, z - 0.09));
            // Pop filter in front.
            b.add(black, ring(r * 1.2, 0.014, 28, 6).turn_x(80.0).at(x, r * 2.6, z + 0.12));
            b.add(black, cylinder(r * 1.18, 0.008, 28).turn_x(80.0).at(x, r * 2.6, z + 0.12));
            b.add(
                steel,
                wire(&curve(&[v(x, r * 2.5, z), v(0.0, r * 2.0, z - 0.1), v(0.15, 0.0, h * 0.7)], 6), 0.011),
            );
        }
        2 => {
            // Vintage: ribbed capsule on a column.
            let h = b.vary("stand", 0.3, 0.5);
            b.add(
                black,
                lathe(&[(0.0, 0.0), (foot, 0.0), (foot, 0.03), (foot * 0.3, 0.08), (0.0, 0.08)], 30),
            );
            b.add(steel, cylinder(0.028, h, 14).at(0.0, 0.0, h * 0.5));
            let (a, tall) = (r * 1.15, r * 3.2);
            let tilt = b.vary("tilt", 5.0, 25.0);
            let on = |s: Solid| s.turn_x(tilt).at(0.0, 0.0, h + tall * 0.45);
            b.add(metal, on(superellipsoid(a, a * 0.75, tall * 0.5, 0.6, 0.7, 28)));
            let ribs = b.count("ribs", 5, 9);
            for i in 0..ribs {
                let z = tall * (i as f32 / (ribs - 1) as f32 - 0.5) * 0.72;
                let k = (1.0 - (z / (tall * 0.5)).powi(4)).max(0.1).sqrt();
                b.add(black, on(cuboid(a * 1.5 * k, 0.03, tall * 0.04).at(0.0, a * 0.72 * k, z)));
            }
            b.add(accent, on(cuboid(a * 0.3, a * 1.6, tall * 0.85)));
            b.add(steel, on(superellipsoid(a * 1.06, a * 0.8, tall * 0.06, 0.6, 0.7, 28)));
            let cable = curve(
                &[v(0.0, -foot * 0.8, 0.03), v(0.15, -foot * 1.4, 0.02), v(0.35, -foot * 1.3, 0.02)],
                6,
            );
            b.add(black, tube(&cable, 0.016, 8));
            b.add(accent, cylinder(0.03, 0.03, 14).at(0.0, foot * 0.65, 0.06));
        }
        _ => {
            // Gooseneck on a conference base with a button.
            b.add(
                black,
                prism_x(&[(-foot, 0.0), (foot, 0.0), (foot, 0.05), (-foot, 0.14)], foot * 1.5, 0.02),
            );
            b.add(
                accent,
                rounded(foot * 0.5, foot * 0.4, 0.05, 0.015).turn_x(-12.0).at(0.0, foot * 0.45, 0.1),
            );
            let reach = b.vary("reach", 0.2, 0.5);
            let path = bezier(
                [
                    v(0.06, -foot * 0.5, 0.1),
                    v(0.06, -foot * 0.6, length),
                    v(0.0, 0.0, length * 1.15),
                    v(-reach * 0.6, reach, length * 0.95),
                ],
                26,
            );
            b.add(steel, tube(&path, 0.018, 10));
            let end = path[path.len() - 1];
            let ball = ellipsoid(r * 0.6, r * 0.6, r * 0.95, 22).turn_x(-70.0).turn_z(25.0);
            b.add(mesh, ball.at(end.x, end.y, end.z));
            let glow = b.glowing(Colour([0.9, 0.15, 0.1]));
            let k = path[path.len() - 3];
            b.add(glow, ellipsoid(r * 0.4, r * 0.4, r * 0.3, 18).at(k.x, k.y, k.z));
            b.add(metal, rounded(foot * 0.9, 0.03, 0.04, 0.01).at(0.0, foot + 0.005, 0.03));
        }
    }
}
