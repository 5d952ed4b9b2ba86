//! Rockets: launcher with boosters, cartoon rocket, missile, shuttle stack. Standing upright.

use super::*;
use crate::texture;

/// A rocket.
pub fn rocket(b: &mut Builder) {
    let kind = b.kind("kind", 4);
    let h = b.vary("height", 1.4, 1.9);
    let r = b.vary("radius", 0.11, 0.15) * if kind == 1 { 1.6 } else { 1.0 };
    let nose = b.vary("nose", 0.22, 0.42);
    let n_fins = b.count("fins", 3, 4);
    let base_colour = if b.chance("white", 0.6) { Colour::grey(0.92) } else { b.vivid() };
    let other = b.contrast(base_colour);
    let third = b.vivid();
    // A roll pattern: quarters of the hull in contrasting colour, bands elsewhere.
    let bands = b.count("bands", 2, 5) as f32;
    let t = texture::paint(64, |u, w| {
        if u < 0.5 && w > 0.12 || (w < 0.12 && (0.25..0.75).contains(&u)) {
            other
        } else if (w * bands * 2.0).fract() < 0.12 {
            third
        } else {
            base_colour
        }
    });
    let hull_paint = b.textured(t, 0.35, 0.5);
    let plain = b.paint(base_colour, 0.35, 0.5);
    let dark = b.paint(other, 0.35, 0.5);
    let accent = b.paint(third, 0.35, 0.5);
    let (steel, black, glass) = (b.steel(), b.black(), b.glass());
    let flame = b.glowing(Colour([1.0, 0.6, 0.1]));
    let nozzle = |b: &mut Builder, x: f32, y: f32, z: f32, s: f32| {
        let bell = lathe(&[(s, -s * 1.6), (s * 0.45, 0.0), (0.0, 0.0)], 20)
            .with(lathe(&[(0.0, -s * 0.3), (s * 0.4, -s * 0.3), (s * 0.92, -s * 1.6), (s, -s * 1.6)], 20));
        b.add(black, bell.at(x, y, z));
    };
    match kind {
        0 => {
            let first = h * 0.5;
            b.add(hull_paint, lathe(&[(r, 0.0), (r, first)], 32));
            let upper = r * b.vary("upper_stage", 0.7, 0.95);
            b.add(steel, lathe(&[(r, first), (upper, first + 0.08)], 32));
            b.add(hull_paint, lathe(&[(upper, first + 0.08), (upper, h - nose)], 32));
            let fairing = upper * b.vary("fairing", 1.0, 1.3);
            b.add(
                dark,
                lathe(
                    &curve2(
                        &[
                            (upper, h - nose - 0.06),
                            (fairing, h - nose),
                            (fairing * 0.95, h - nose * 0.6),
                            (fairing * 0.5, h - nose * 0.15),
                            (0.0, h),
                        ],
                        4,
                    ),
                    32,
                ),
            );
            let boosters = b.count("boosters", 2, 4);
            let (br, bh) = (r * 0.55, first * b.range(0.6, 0.95));
            for k in 0..boosters {
                let a = 360.0 * k as f32 / boosters as f32 + 20.0;
                let s = lathe(
                    &curve2(
                        &[
                            (br, 0.0),
                            (br, bh * 0.5),
                            (br, bh * 0.85),
                            (br * 0.5, bh * 0.97),
                            (0.0, bh * 1.06),
                        ],
                        3,
                    ),
                    20,
                );
                let paint = if k == 0 { accent } else { plain };
                b.add(
                    paint,
                    s.with(lathe(&[(0.0, 0.0), (br, 0.0)], 20)).at(r + br * 0.95, 0.0, 0.0).turn_z(a),
                );
                let p = a.to_radians();
                nozzle(b, (r + br * 0.95) * p.cos(), (r + br * 0.95) * p.sin(), 0.0, br * 0.7);
            }
            for k in 0..4 {
                let a = (90.0 * k as f32 + 45.0).to_radians();
                nozzle(b, r * 0.5 * a.cos(), r * 0.5 * a.sin(), 0.0, r * 0.4);
            }
            b.add(black, lathe(&[(0.0, 0.0), (r, 0.0)], 28));
            b.add(steel, rod(v(r * 0.5, 0.0, first + 0.1), v(r * 1.15, 0.0, first + 0.1), 0.012, 6));
        }
        1 => {
            // Cartoon rocket: belly, porthole towards +y, three curved fins, flame.
            let body = curve2(
                &[
                    (r * 0.5, 0.0),
                    (r * 0.9, h * 0.18),
                    (r, h * 0.38),
                    (r * 0.85, h * 0.62),
                    (r * 0.62, h * 0.74),
                ],
                5,
            );
            b.add(hull_paint, lathe(&body, 36));
            b.add(
                accent,
                lathe(
                    &curve2(
                        &[(r * 0.62, h * 0.74), (r * 0.4, h * 0.85), (r * 0.12, h * 0.95), (0.0, h * 0.99)],
                        5,
                    ),
                    36,
                ),
            );
            b.add(black, lathe(&[(0.0, 0.0), (r * 0.5, 0.0)], 30));
            let porthole = r * b.vary("porthole", 0.32, 0.45);
            b.add(steel, ring(porthole, porthole * 0.2, 26, 8).turn_x(85.0).at(0.0, r * 0.95, h * 0.5));
            b.add(glass, ellipsoid(porthole * 0.95, 0.05, porthole * 0.95, 20).at(0.0, r * 0.92, h * 0.5));
            b.add(
                steel,
                ring(porthole * 0.6, porthole * 0.14, 20, 6).turn_x(92.0).at(0.0, r * 0.97, h * 0.27),
            );
            b.add(glass, ellipsoid(porthole * 0.55, 0.04, porthole * 0.55, 16).at(0.0, r * 0.95, h * 0.27));
            for k in 0..n_fins {
                let fin = prism_y(
                    &curve2(
                        &[
                            (r * 0.75, h * 0.3),
                            (r * 1.5, h * 0.16),
                            (r * 1.75, -h * 0.1),
                            (r * 1.35, -h * 0.02),
                            (r * 0.6, h * 0.06),
                        ],
                        4,
                    ),
                    0.05,
                    0.015,
                );
                b.add(
                    if k == 0 { dark } else { accent },
                    fin.turn_z(360.0 * k as f32 / n_fins as f32 - 30.0),
                );
            }
            nozzle(b, 0.0, 0.0, 0.0, r * 0.45);
            b.add(
                flame,
                lathe(
                    &curve2(&[(0.0, -h * 0.2), (r * 0.2, -h * 0.1), (r * 0.33, -h * 0.03), (0.0, 0.0)], 3),
                    16,
                ),
            );
        }
        2 => {
            // Missile on a small launch stand.
            b.add(hull_paint, lathe(&[(0.0, 0.0), (r, 0.0), (r, h - nose)], 30));
            b.add(
                dark,
                lathe(
                    &curve2(
                        &[(r, h - nose), (r * 0.8, h - nose * 0.55), (r * 0.3, h - nose * 0.12), (0.0, h)],
                        4,
                    ),
                    30,
                ),
            );
            b.add(accent, lathe(&[(r * 1.02, h * 0.55), (r * 1.02, h * 0.6)], 30));
            for level in [0.02, 0.5] {
                let size = if level < 0.1 { 1.0 } else { 0.6 };
                for k in 0..n_fins {
                    let fin = prism_y(
                        &[
                            (r * 0.9, h * level),
                            (r * (1.0 + 1.4 * size), h * level),
                            (r * (1.0 + 1.2 * size), h * level + 0.14 * size),
                            (r * 0.9, h * level + 0.36 * size),
                        ],
                        0.025,
                        0.008,
                    );
                    b.add(
                        if k == 0 { accent } else { dark },
                        fin.turn_z(360.0 * k as f32 / n_fins as f32 + 15.0),
                    );
                }
            }
            let label = print(b, base_colour);
            b.add(label, patch(&[(r, 0.0), (r, h)], h * 0.3, h * 0.48, 0.004, 30.0, 150.0));
            b.add(steel, block(r * 3.4, r * 3.4, 0.06).at(0.0, 0.0, -r * 0.9));
            nozzle(b, 0.0, 0.0, 0.0, r * 0.5);
            b.add(steel, rod(v(-r * 1.5, -r * 1.3, -r * 0.9), v(-r * 1.2, -r * 1.2, h * 0.8), 0.025, 8));
            for i in 0..b.count("clamps", 2, 4) {
                let z = h * (0.2 + 0.18 * i as f32);
                b.add(steel, rod(v(-r * 1.25, -r * 1.2, z), v(-r * 0.4, -r * 0.7, z), 0.018, 6));
            }
        }
        _ => {
            // Shuttle stack: orbiter towards +y, orange tank, two boosters.
            let tank = b.paint(Colour([0.75, 0.36, 0.14]), 0.8, 0.2);
            let tr = r * 1.25;
            b.add(
                tank,
                lathe(
                    &curve2(
                        &[
                            (0.0, 0.05),
                            (tr * 0.8, 0.08),
                            (tr, 0.2),
                            (tr, h * 0.4),
                            (tr, h * 0.7),
                            (tr * 0.55, h * 0.88),
                            (0.0, h),
                        ],
                        4,
                    ),
                    30,
                )
                .at(0.0, -tr * 0.6, 0.0),
            );
            for side in [-1.0, 1.0] {
                let x = side * (tr + r * 0.5);
                b.add(
                    plain,
                    lathe(
                        &[
                            (0.0, 0.0),
                            (r * 0.62, -0.05),
                            (r * 0.5, 0.04),
                            (r * 0.5, h * 0.78),
                            (r * 0.2, h * 0.88),
                            (0.0, h * 0.9),
                        ],
                        20,
                    )
                    .at(x, -tr * 0.6, 0.0),
                );
                b.add(
                    if side > 0.0 { accent } else { dark },
                    lathe(&[(r * 0.52, h * 0.62), (r * 0.52, h * 0.7)], 20).at(x, -tr * 0.6, 0.0),
                );
            }
            let orbiter = stations(
                &[
                    [h * 0.68, 0.0, 0.0, 0.0],
                    [h * 0.63, r * 0.4, r * 0.35, 0.0],
                    [h * 0.52, r * 0.7, r * 0.65, 0.0],
                    [h * 0.3, r * 0.75, r * 0.72, 0.0],
                    [h * 0.06, r * 0.78, r * 0.75, 0.0],
                ],
                4,
            );
            // The hull runs along y; stand it up so that its nose points to +z and its back to +y.
            let stand = |s: Solid| s.turn_x(90.0).mirror_y().at(0.0, tr * 0.4 + r * 0.75, 0.0);
            b.add(plain, stand(hull(&orbiter, 0.85, 24)));
            let belly: Vec<[f32; 4]> = orbiter
                .iter()
                .map(|s| [s[0] * 0.995, s[1] * 1.02, s[2] * 0.45, s[3] - s[2] * 0.58])
                .collect();
            b.add(black, stand(hull(&belly, 0.7, 20)));
            let delta = prism_y(
                &[
                    (0.0, h * 0.42),
                    (r * 1.0, h * 0.26),
                    (r * 2.6, h * 0.1),
                    (r * 2.6, h * 0.03),
                    (0.0, h * 0.03),
                ],
                0.03,
                0.008,
            )
            .both_x();
            b.add(plain, delta.clone().at(0.0, tr * 0.4 + r * 0.35, 0.0));
            b.add(black, delta.scale(0.98, 1.0, 0.98).at(0.0, tr * 0.4 + r * 0.33, 0.0));
            b.add(
                plain,
                prism_x(
                    &[(0.0, h * 0.04), (r * 1.5, h * 0.02), (r * 1.55, h * 0.08), (0.0, h * 0.22)],
                    0.035,
                    0.008,
                )
                .at(0.0, tr * 0.4 + r * 1.4, 0.0),
            );
            b.add(glass, rounded(r * 0.8, 0.05, r * 0.3, 0.02).at(0.0, tr * 0.4 + r * 1.3, h * 0.585));
            b.add(accent, cuboid(r * 0.5, 0.02, r * 0.5).at(r * 1.5, tr * 0.4 + r * 0.37, h * 0.12));
            for (x, z) in [(0.0, 0.5), (0.4, 0.0), (-0.4, 0.0)] {
                nozzle(b, x * r, tr * 0.4 + r * (0.7 + z), h * 0.05, r * 0.3);
            }
        }
    }
    if kind == 0 || kind == 2 {
        b.add(glass, rounded(r * 0.5, 0.03, r * 0.5, 0.01).at(0.0, r * 0.98, h * 0.42));
        b.add(accent, rounded(r * 0.9, 0.025, r * 1.4, 0.008).at(0.0, r * 0.97, h * 0.2));
    }
}
