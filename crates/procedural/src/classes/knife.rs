//! Knives: chef's knife, cleaver, dagger, clasp knife, bread knife. Lying flat, point towards -x.

use super::*;

/// A blade in the xy plane from `x = 0` (heel) to `-length`: spine at +y, edge at -y, ground to an edge.
/// `outline(t)` gives the spine's and the edge's y at a share of the length.
fn blade(length: f32, thick: f32, n: usize, outline: impl Fn(f32) -> (f32, f32)) -> Solid {
    let rings: Vec<Vec<glam::Vec3>> = (0..=n)
        .map(|i| {
            let t = i as f32 / n as f32;
            let (spine, edge) = outline(t);
            let x = -length * t;
            let k = thick * 0.5 * (1.0 - 0.5 * t);
            let mid = edge + (spine - edge) * 0.35;
            vec![v(x, spine, k), v(x, mid, k), v(x, edge, 0.0), v(x, mid, -k), v(x, spine, -k)]
        })
        .collect();
    loft(&rings).crease(15.0)
}

/// A knife.
pub fn knife(b: &mut Builder) {
    let kind = [0, 0, 0, 1, 2, 2, 3, 4][b.kind("kind", 8)];
    let length = b.vary("blade_length", 0.55, 0.75);
    let width = b.vary("blade_width", 0.1, 0.16) * if kind == 1 { 1.9 } else { 1.0 };
    let grip_l = b.vary("grip_length", 0.34, 0.46);
    let grip_w = b.vary("grip_width", 0.085, 0.12);
    let thick = b.vary("thickness", 0.02, 0.032);
    let steel = b.steel();
    let dark_steel = b.paint(Colour([0.42, 0.44, 0.48]), 0.35, 0.8);
    let brass = b.metal();
    let colour = b.vivid();
    let handle = if b.chance("wooden", 0.5) { b.wood() } else { b.paint(colour, 0.5, 0.4) };
    let accent = b.accent();
    let bend = b.range(-0.03, 0.05);
    // Grip along +x with a slight belly and hook, plus rivets.
    let grip = |b: &mut Builder, paint: Paint, high: f32| {
        let stations_x: Vec<(f32, f32, f32)> = vec![
            (0.0, 0.78, 0.0),
            (0.15, 0.95, 0.0),
            (0.45, 1.05, bend),
            (0.75, 0.85, bend * 0.5),
            (0.93, 1.15, -0.02),
            (1.0, 0.8, -0.03),
        ];
        let rings: Vec<Vec<glam::Vec3>> = stations_x
            .iter()
            .map(|&(t, k, dy)| {
                rounded_rectangle(grip_w * k, high, high * 0.4, 3)
                    .iter()
                    .map(|p| v(grip_l * t, p.x + dy, p.y))
                    .collect()
            })
            .collect();
        b.add(paint, loft(&rings).crease(50.0).project(move |p| (p.x * 2.0, p.y * 2.0 + p.z)));
        for k in 0..3 {
            let x = grip_l * (0.2 + 0.28 * k as f32);
            b.add(brass, cylinder(0.016, high * 1.08, 14).at(x, bend * 0.6, 0.0));
        }
    };
    match kind {
        0 | 4 => {
            let belly = b.vary("belly", 1.2, 3.0);
            let shape = blade(length, thick, 26, |t| {
                (
                    grip_w * 0.42 - 0.25 * width * t * t,
                    grip_w * 0.42 - width * (1.0 - t.powf(belly)) - 0.002 - 0.25 * width * t * t,
                )
            });
            b.add(steel, shape);
            if kind == 4 {
                // Serrations along the edge.
                let n = b.count("teeth", 14, 22);
                for i in 0..n {
                    let t = (i as f32 + 0.5) / n as f32 * 0.92;
                    let y = grip_w * 0.42 - width * (1.0 - t.powf(belly)) - 0.25 * width * t * t;
                    b.add(
                        dark_steel,
                        cone(0.018, 0.0, 0.035, 6).turn_x(90.0).at(-length * t, y - 0.002, 0.0),
                    );
                }
            } else {
                b.add(
                    dark_steel,
                    block(length * 0.5, width * 0.16, thick * 1.1).at(-length * 0.28, grip_w * 0.2, 0.0),
                );
            }
            b.add(brass, rounded(0.05, grip_w * 0.95, 0.075, 0.015).at(0.0, 0.0, 0.0));
            grip(b, handle, 0.075);
        }
        1 => {
            // Cleaver: broad blade with a hole near the tip.
            let shape = blade(length * 0.85, thick * 1.2, 14, |t| {
                (grip_w * 0.5 + 0.04 * t, grip_w * 0.5 - width * (1.0 - 0.1 * (2.0 * t - 1.0).powi(2)))
            });
            b.add(steel, shape);
            b.add(dark_steel, cylinder(width * 0.12, thick * 1.5, 20).at(-length * 0.74, grip_w * 0.1, 0.0));
            b.add(
                accent,
                block(length * 0.3, width * 0.12, thick * 1.4).at(-length * 0.3, -width * 0.15, 0.0),
            );
            b.add(brass, rounded(0.06, grip_w, 0.08, 0.015));
            grip(b, handle, 0.08);
        }
        2 => {
            // Dagger: double-edged blade, guard and pommel; sheath beside it.
            let shape = blade(length, thick * 1.5, 20, |t| {
                (width * 0.42 * (1.0 - t.powi(4)) + 0.002, -width * 0.42 * (1.0 - t.powi(4)) - 0.002)
            });
            b.add(steel, shape);
            b.add(
                dark_steel,
                tube_tapered(&[v(0.0, 0.0, 0.0), v(-length * 0.7, 0.0, 0.0)], |t| 0.02 - 0.012 * t, 8),
            );
            let guard = curve(
                &[
                    v(-0.05, -width * 1.3, 0.0),
                    v(0.01, -width * 0.5, 0.0),
                    v(0.01, width * 0.5, 0.0),
                    v(0.06, width * 1.2, 0.0),
                ],
                6,
            );
            b.add(brass, tube(&guard, 0.028, 10));
            let rings = b.count("grip_rings", 5, 9);
            b.add(handle, cylinder(grip_w * 0.36, grip_l, 18).turn_y(90.0).at(grip_l * 0.5, 0.0, 0.0));
            for i in 0..rings {
                b.add(
                    brass,
                    ring(grip_w * 0.38, 0.01, 18, 6).turn_y(90.0).at(
                        grip_l * (i as f32 + 0.5) / rings as f32,
                        0.0,
                        0.0,
                    ),
                );
            }
            b.add(brass, ellipsoid(0.06, 0.07, 0.06, 16).at(grip_l + 0.03, 0.0, 0.0));
            b.add(accent, ellipsoid(0.03, 0.03, 0.03, 12).at(grip_l + 0.08, 0.0, 0.0));
            b.add(accent, ellipsoid(0.03, 0.03, 0.03, 12).at(0.015, 0.0, 0.03));
        }
        _ => {
            // Clasp knife, half or fully open, with other tools folded in.
            let angle = b.vary("opening", 0.0, 60.0);
            let l = grip_l * 1.25;
            let shape = blade(l * 0.95, thick, 18, |t| {
                (width * 0.3 * (1.0 - 0.6 * t * t), -width * 0.5 * (1.0 - t.powf(2.5)) + width * 0.1 * t)
            });
            b.add(steel, shape.turn_z(angle));
            let side = rounded_rectangle(l, grip_w * 1.15, grip_w * 0.55, 6);
            let place = |s: Solid| s.at(l * 0.5 - 0.02, 0.0, 0.0);
            b.add(handle, place(prism(&side, 0.03, 0.008)).at(0.0, 0.0, 0.03));
            b.add(accent, place(prism(&side, 0.03, 0.008)).at(0.0, 0.0, -0.03));
            b.add(dark_steel, place(cuboid(l * 0.9, grip_w * 0.7, 0.035)));
            for i in 0..b.count("tools", 1, 3) {
                let open = 95.0 + 25.0 * i as f32;
                let tool = cuboid(l * 0.35, 0.025, 0.012).at(-l * 0.17, 0.0, 0.0).turn_z(-open);
                b.add(steel, tool.at(l * (0.92 - 0.12 * i as f32), -grip_w * 0.3, 0.012 * i as f32 - 0.012));
            }
            b.add(
                brass,
                cylinder(0.022, 0.1, 16).at(0.02, 0.0, 0.0).with(cylinder(0.022, 0.1, 16).at(
                    l * 0.9,
                    0.0,
                    0.0,
                )),
            );
            b.add(brass, ring(0.03, 0.01, 14, 6).at(l + 0.03, 0.0, 0.0));
            let white = b.white();
            b.add(
                white,
                cuboid(0.07, 0.02, 0.02).at(l * 0.55, 0.0, 0.04).with(cuboid(0.02, 0.07, 0.02).at(
                    l * 0.55,
                    0.0,
                    0.04,
                )),
            );
        }
    }
    if kind != 3 {
        // The cheeks differ: a dark band on the upper face of the blade, a coloured scale under the grip.
        let y = if kind == 2 { 0.0 } else { grip_w * 0.42 - width * 0.22 };
        b.add(dark_steel, block(length * 0.62, width * 0.3, thick * 0.5).at(-length * 0.36, y, thick * 0.4));
        b.add(
            accent,
            rounded(grip_l * 0.92, grip_w * 1.12, 0.035, 0.012).at(grip_l * 0.5, bend * 0.5, -0.04),
        );
    }
}
