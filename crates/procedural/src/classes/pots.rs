//! Jars and flowerpots.

use super::*;

/// A jar: jam, cookie jar, storage jar with a clip, urn with handles.
pub fn jar(b: &mut Builder) {
    let kind = b.kind("kind", 4);
    let r = b.vary("radius", 0.3, 0.4);
    let h = b.vary("height", 0.6, 0.95);
    let neck = r * b.vary("neck", 0.62, 0.82);
    let belly = b.vary("belly", 0.35, 0.65);
    let body = match kind {
        0 => vec![
            (0.0, 0.0),
            (r * 0.92, 0.0),
            (r, 0.04),
            (r, h * 0.74),
            (r * 0.96, h * 0.8),
            (neck * 1.1, h * 0.88),
            (neck, h * 0.9),
            (neck, h),
        ],
        1 | 2 => curve2(
            &[
                (0.0, 0.0),
                (r * 0.7, 0.0),
                (r * 0.9, h * 0.15),
                (r * 1.03, h * belly),
                (r * 0.9, h * 0.82),
                (neck, h * 0.95),
                (neck, h),
            ],
            4,
        ),
        _ => curve2(
            &[
                (0.0, 0.0),
                (r * 0.45, 0.0),
                (r * 0.42, h * 0.06),
                (r * 0.8, h * 0.3),
                (r * 1.05, h * (0.4 + 0.3 * belly)),
                (r * 0.7, h * 0.86),
                (neck * 0.75, h * 0.93),
                (neck * 0.9, h),
            ],
            4,
        ),
    };
    let colour = b.vivid();
    let second = b.contrast(colour);
    let glaze = if kind == 0 {
        b.paint(colour.mix(Colour::grey(0.8), 0.3), 0.1, 0.7)
    } else {
        dipped(b, colour, second)
    };
    let mut closed = body.clone();
    closed.push((0.0, h * 0.99));
    b.add(glaze, lathe(&closed, 40));
    let lid_colour = b.contrast(colour);
    let lid = b.paint(lid_colour, 0.35, 0.5);
    let trim = b.metal();
    match kind {
        0 => {
            // Jam: screw lid, or a cloth tied over it.
            if b.chance("cloth", 0.5) {
                let cloth = b.fabric();
                let n = 40;
                let skirt = sheet(n, 4, 0.012, |u, w| {
                    let a = u * std::f32::consts::TAU;
                    let flare = 1.0 + 0.25 * w * (1.0 + 0.3 * (a * 9.0).sin());
                    v(neck * 1.1 * flare * a.cos(), neck * 1.1 * flare * a.sin(), h * 1.03 - 0.14 * w)
                });
                b.add(cloth, skirt);
                b.add(cloth, cylinder(neck * 1.12, 0.03, 30).at(0.0, 0.0, h * 1.03));
                b.add(trim, ring(neck * 1.14, 0.014, 30, 6).at(0.0, 0.0, h * 0.98));
            } else {
                b.add(lid, cylinder(neck * 1.12, 0.11, 36).at(0.0, 0.0, h * 1.02));
            }
            // A seal over one half of the lid, its strip running down the front.
            let seal = b.accent();
            let top = h * 1.02 + if h * 0.01 > 0.04 { 0.03 } else { 0.058 };
            let half: Vec<glam::Vec2> = oval(neck, neck, 24).into_iter().filter(|p| p.y > -0.001).collect();
            b.add(seal, prism(&half, 0.014, 0.0).at(0.0, 0.0, top));
            b.add(seal, cuboid(neck * 0.4, 0.02, h * 0.3).at(0.0, neck * 1.15, top - h * 0.13));
        }
        1 => {
            b.add(
                lid,
                lathe(
                    &curve2(
                        &[
                            (neck * 1.12, h),
                            (neck * 1.1, h + 0.03),
                            (neck * 0.7, h + 0.11),
                            (0.06, h + 0.15),
                            (0.0, h + 0.15),
                        ],
                        4,
                    ),
                    32,
                ),
            );
            b.add(lid, ellipsoid(0.075, 0.075, 0.07, 16).at(0.0, 0.0, h + 0.19));
        }
        2 => {
            // Clip jar: glass lid, wire bail at the front.
            b.add(lid, cylinder(neck * 1.08, 0.06, 32).at(0.0, 0.0, h + 0.03));
            b.add(trim, ring(neck * 1.06, 0.018, 32, 6).at(0.0, 0.0, h - 0.03));
            let bail = curve(
                &[
                    v(-neck * 0.5, neck * 0.95, h - 0.02),
                    v(-neck * 0.45, neck * 1.3, h - 0.16),
                    v(neck * 0.45, neck * 1.3, h - 0.16),
                    v(neck * 0.5, neck * 0.95, h - 0.02),
                ],
                6,
            );
            b.add(trim, tube(&bail, 0.016, 8));
            b.add(trim, cuboid(0.06, 0.05, 0.12).at(0.0, -neck * 1.1, h));
        }
        _ => {
            let reach = b.vary("handles", 0.15, 0.28);
            let one = b.chance("one_handle", 0.6);
            let handle = curve(
                &[
                    v(neck * 0.7, 0.0, h * 0.95),
                    v(r + reach, 0.0, h * 0.92),
                    v(r + reach * 0.9, 0.0, h * 0.7),
                    v(r * 0.95, 0.0, h * 0.58),
                ],
                6,
            );
            let handle = tube(&handle, 0.035, 10);
            b.add(lid, if one { handle } else { handle.both_x() });
            b.add(lid, ring(neck * 0.88, 0.03, 32, 8).at(0.0, 0.0, h));
        }
    }
    let label = print(b, colour);
    let width = b.range(60.0, 85.0);
    b.add(label, patch(&body, h * 0.2, h * 0.66, 0.005, 90.0 - width, 90.0 + width));
    let side = b.accent();
    b.add(side, patch(&body, h * 0.12, h * 0.7, 0.005, 190.0, 285.0));
}

/// A flowerpot with a plant: leaves, blooms, a cactus or a small tree.
pub fn flowerpot(b: &mut Builder) {
    let r = b.vary("radius", 0.24, 0.34);
    let h = b.vary("height", 0.36, 0.56);
    let taper = b.vary("taper", 0.6, 0.9);
    let square = b.chance("square", 0.25);
    let clay = match b.kind("glaze", 3) {
        0 => Colour([0.72, 0.36, 0.22]),
        1 => b.vivid(),
        _ => Colour::grey(0.88),
    };
    let second = b.contrast(clay);
    let pot = dipped(b, clay, second);
    let rim_paint = b.paint(clay.times(0.85), 0.6, 0.3);
    let soil = b.paint(Colour([0.2, 0.13, 0.08]), 0.95, 0.1);
    if square {
        b.add(pot, tapered((r * 1.5 * taper, r * 1.5 * taper), (r * 1.6, r * 1.6), h).at(0.0, 0.0, h * 0.5));
        b.add(rim_paint, frame(r * 1.74, h * 0.14, r * 1.74, 0.07).turn_x(90.0).at(0.0, 0.0, h));
        b.add(soil, cuboid(r * 1.55, r * 1.55, 0.02).at(0.0, 0.0, h));
    } else {
        let outer = vec![(0.0, 0.0), (r * taper, 0.0), (r * 0.96, h * 0.8)];
        b.add(pot, lathe(&outer, 36));
        b.add(
            rim_paint,
            lathe(
                &[
                    (r * 0.95, h * 0.78),
                    (r * 1.07, h * 0.8),
                    (r * 1.09, h),
                    (r * 0.97, h),
                    (r * 0.95, h * 0.85),
                ],
                36,
            ),
        );
        b.add(soil, cylinder(r * 0.97, 0.02, 30).at(0.0, 0.0, h * 0.9));
    }
    // Pebbles over one half of the soil.
    let pebble = b.white();
    for i in 0..9 {
        let a = 0.3 + 0.33 * i as f32;
        let d = r * if i % 2 == 0 { 0.72 } else { 0.45 };
        b.add(
            pebble,
            ellipsoid(0.06, 0.05, 0.035, 8).at(
                d * a.cos() * 0.9,
                d * a.sin() * 0.9,
                h * if square { 1.02 } else { 0.93 },
            ),
        );
    }
    let saucer = b.chance("saucer", 0.4);
    if saucer {
        b.add(
            rim_paint,
            lathe(
                &[
                    (0.0, -0.03),
                    (r * 1.0, -0.03),
                    (r * 1.15, 0.03),
                    (r * 1.08, 0.03),
                    (r * 0.9, 0.0),
                    (0.0, 0.0),
                ],
                32,
            ),
        );
    }
    let green = Colour::hsv(b.range(0.24, 0.4), b.range(0.5, 0.85), b.range(0.3, 0.6));
    let leaf_paint = b.paint(green, 0.6, 0.3);
    let light_leaf = b.paint(green.mix(Colour([0.95, 0.95, 0.45]), 0.75), 0.6, 0.3);
    let petal_colour = Colour::hsv(b.one_of(&[0.0, 0.92, 0.13, 0.78, 0.06]), b.range(0.6, 0.9), 0.95);
    let petals = b.paint(petal_colour, 0.7, 0.2);
    let yellow = b.paint(Colour([0.95, 0.75, 0.1]), 0.8, 0.1);
    let z = h * 0.9;
    match b.kind("plant", 4) {
        0 => {
            // Long arching leaves.
            let n = b.count("leaves", 9, 16);
            for i in 0..n {
                let long = b.range(0.5, 0.9);
                let (up, out) = (long * b.range(0.5, 0.95), long * b.range(0.3, 0.6));
                let w = b.range(0.035, 0.065);
                let leaf = sheet(8, 2, 0.008, |t, s| {
                    let x = out * t;
                    let z = up * (1.6 * t - 0.75 * t * t);
                    v(x, (s - 0.5) * 2.0 * w * (1.0 - (2.0 * t - 0.8).abs().powi(3)).max(0.06), z)
                });
                // Thicker growth towards one side, where the leaves are variegated.
                let a = (i as f32 / n as f32).powf(1.3) * 360.0 + b.range(-12.0, 12.0);
                b.add(if i * 2 < n { light_leaf } else { leaf_paint }, leaf.turn_z(a).at(0.0, 0.0, z));
            }
            // A flower spike beside them.
            let spike = v(r * 0.3, r * 0.35, z + b.range(0.5, 0.75));
            b.add(leaf_paint, wire(&[v(0.08, 0.08, z), spike], 0.014));
            for k in 0..7 {
                let a = k as f32 * 2.0;
                let p = spike + v(0.04 * a.cos(), 0.04 * a.sin(), -0.035 * k as f32);
                b.add(petals, ellipsoid(0.045, 0.045, 0.04, 10).at(p.x, p.y, p.z));
            }
        }
        1 => {
            // Blooms on stems with leaves; the tall ones lean to one side.
            for i in 0..b.count("blooms", 3, 6) {
                let a = i as f32 * 2.1 + 0.4;
                let (lean, tall) = (r * b.range(0.3, 0.9), b.range(0.35, 0.7));
                let top = v(lean * a.cos() + 0.12, lean * a.sin(), z + tall);
                let base = v(top.x * 0.3, top.y * 0.3, z);
                b.add(
                    leaf_paint,
                    wire(&curve(&[base, base.lerp(top, 0.5) + v(0.0, 0.0, 0.06), top], 4), 0.014),
                );
                let n = 6;
                for k in 0..n {
                    let petal = ellipsoid(0.07, 0.042, 0.014, 10)
                        .at(0.075, 0.0, 0.0)
                        .turn_y(-20.0)
                        .turn_z(360.0 * k as f32 / n as f32);
                    b.add(petals, petal.turn_x(-18.0).at(top.x, top.y, top.z));
                }
                b.add(yellow, ellipsoid(0.04, 0.04, 0.03, 10).at(top.x, top.y, top.z + 0.01));
                let leaf = ellipsoid(0.11, 0.04, 0.012, 10)
                    .at(0.11, 0.0, 0.0)
                    .turn_y(-30.0)
                    .turn_z(a.to_degrees() + 70.0);
                b.add(light_leaf, leaf.at(base.x, base.y, z + tall * 0.3));
            }
        }
        2 => {
            // Cactus with an arm.
            let tall = b.vary("cactus", 0.45, 0.75);
            let ribbed = |radius: f32, tall: f32| {
                let profile: Vec<(f32, f32)> = curve2(
                    &[
                        (radius * 0.7, 0.0),
                        (radius, tall * 0.3),
                        (radius, tall * 0.75),
                        (radius * 0.6, tall * 0.95),
                        (0.0, tall),
                    ],
                    3,
                );
                lathe(&profile, 32).map(|p| {
                    let k = 1.0 + 0.1 * (p.y.atan2(p.x) * 8.0).cos();
                    v(p.x * k, p.y * k, p.z)
                })
            };
            b.add(leaf_paint, ribbed(r * 0.5, tall).at(0.0, 0.0, z));
            let arm = curve(
                &[
                    v(0.0, 0.0, z + tall * 0.35),
                    v(-r * 0.9, 0.0, z + tall * 0.38),
                    v(-r * 0.95, 0.0, z + tall * 0.75),
                ],
                6,
            );
            b.add(light_leaf, tube(&arm, r * 0.2, 12));
            b.add(light_leaf, ellipsoid(r * 0.2, r * 0.2, r * 0.2, 12).at(-r * 0.95, 0.0, z + tall * 0.75));
            b.add(petals, ellipsoid(r * 0.22, r * 0.22, r * 0.14, 12).at(0.06, 0.06, z + tall));
        }
        _ => {
            // A small clipped tree, blossoming on one side.
            let wood = b.wood();
            let tall = b.vary("stem", 0.3, 0.5);
            let crown = b.vary("crown", 0.2, 0.3);
            b.add(
                wood,
                tube_tapered(
                    &curve(&[v(0.0, 0.0, z), v(0.03, 0.02, z + tall * 0.5), v(0.0, 0.0, z + tall)], 4),
                    |t| 0.035 - 0.01 * t,
                    10,
                ),
            );
            b.add(
                leaf_paint,
                ellipsoid(crown, crown, crown * 0.95, 22)
                    .map(|p| {
                        let k = 1.0 + 0.05 * ((p.x * 31.0).sin() + (p.y * 37.0).sin() + (p.z * 29.0).sin());
                        p * k
                    })
                    .at(0.0, 0.0, z + tall + crown * 0.7),
            );
            for i in 0..b.count("blossoms", 5, 10) {
                let a = 0.5 + 0.33 * i as f32;
                let e = b.range(-0.5, 1.2);
                let p = v(a.cos() * e.cos(), a.sin() * e.cos(), e.sin()) * crown;
                b.add(petals, ellipsoid(0.045, 0.045, 0.045, 10).at(p.x, p.y, p.z + z + tall + crown * 0.7));
            }
        }
    }
}
