//! Faucets: single lever, two handles, tall kitchen spout, wall-mounted tap.

use super::*;

/// A faucet; water would fall towards +y.
pub fn faucet(b: &mut Builder) {
    let kind = b.kind("kind", 4);
    let metal = b.metal();
    let grip_colour = b.vivid();
    let accent = b.paint(grip_colour, 0.35, 0.5);
    let black = b.black();
    let hot = b.glowing(Colour([0.8, 0.08, 0.06]));
    let cold = b.glowing(Colour([0.08, 0.2, 0.8]));
    let r = b.vary("pipe_radius", 0.028, 0.045);
    let height = b.vary("height", 0.3, 0.6);
    let reach = b.vary("reach", 0.3, 0.5);
    let base_r = r * b.vary("base", 1.7, 2.4);
    let drop = b.vary("drop", 0.04, 0.14);
    let sides = 16;
    // Deck plate or rose.
    let plate = if kind == 1 || b.chance("plate", 0.4) {
        let w = if kind == 1 { 0.5 } else { 0.3 };
        prism(&rounded_rectangle(w, base_r * 2.6, base_r * 1.2, 5), 0.03, 0.008).at(0.0, 0.0, 0.015)
    } else {
        lathe(&[(0.0, 0.0), (base_r * 1.3, 0.0), (base_r * 1.3, 0.015), (base_r, 0.04), (0.0, 0.04)], 24)
    };
    if kind == 3 {
        // Wall tap: a rose on the wall (facing +y), body, cross handle on top.
        b.add(accent, cylinder(base_r * 1.5, 0.04, 26).turn_x(90.0).at(0.0, -0.16, 0.0));
        b.add(metal, rod(v(0.0, -0.16, 0.0), v(0.0, 0.12, 0.0), r * 1.1, sides));
        b.add(metal, ellipsoid(r * 1.9, r * 1.9, r * 1.7, 20));
        let spout = bezier(
            [v(0.0, 0.08, 0.0), v(0.0, reach * 0.8, 0.02), v(0.0, reach, 0.0), v(0.0, reach, -drop - 0.1)],
            16,
        );
        b.add(metal, tube_tapered(&spout, |t| r * (1.1 - 0.2 * t), sides));
        b.add(metal, cylinder(r * 1.25, 0.04, sides).at(0.0, reach, -drop - 0.1));
        let stem = 0.1 + height * 0.2;
        b.add(metal, cylinder(r * 0.6, stem, 12).at(0.0, 0.0, r * 1.5 + stem * 0.5));
        let arms = b.count("handle_arms", 3, 5);
        let z = r * 1.5 + stem;
        for k in 0..arms {
            let a = 360.0 * k as f32 / arms as f32 + 15.0;
            b.add(
                accent,
                tube_tapered(&[v(0.0, 0.0, z), v(0.13, 0.0, z)], |t| 0.018 + 0.01 * t, 8).turn_z(a),
            );
            b.add(accent, ellipsoid(0.032, 0.032, 0.032, 10).at(0.14, 0.0, z).turn_z(a));
        }
        b.add(cold, cylinder(0.035, 0.03, 16).at(0.0, 0.0, z + 0.02));
        // A hose connector to one side.
        b.add(black, rod(v(0.0, 0.0, 0.0), v(-r * 3.6, 0.0, 0.0), r * 0.8, 12));
        b.add(hot, cylinder(r * 1.1, r * 1.4, 14).turn_y(90.0).at(-r * 3.4, 0.0, 0.0));
        return;
    }
    b.add(metal, plate);
    let spout = match (kind, b.kind("spout", 3)) {
        (2, _) | (_, 0) => {
            let top = height * if kind == 2 { 1.5 } else { 1.1 };
            let mut path = line(v(0.0, 0.0, 0.03), v(0.0, 0.0, top), 3);
            path.pop();
            path.extend(arc(
                v(0.0, reach * 0.5, top),
                v(0.0, -reach * 0.5, 0.0),
                v(0.0, 0.0, reach * 0.5),
                0.0,
                180.0,
                16,
            ));
            path.push(v(0.0, reach, top - drop));
            path
        }
        (_, 1) => curve(
            &[
                v(0.0, 0.0, 0.03),
                v(0.0, 0.0, height * 0.55),
                v(0.0, reach * 0.25, height * 0.85),
                v(0.0, reach * 0.85, height * 0.75),
                v(0.0, reach, height * 0.75 - drop),
            ],
            6,
        ),
        _ => curve(
            &[
                v(0.0, 0.0, 0.03),
                v(0.0, 0.0, height * 0.7),
                v(0.0, 0.05, height * 0.78),
                v(0.0, reach * 0.9, height * 0.9),
                v(0.0, reach, height * 0.9 - 0.04),
            ],
            6,
        ),
    };
    let end = spout[spout.len() - 1];
    b.add(metal, tube_tapered(&spout, |t| r * (1.15 - 0.3 * t), sides));
    b.add(black, cylinder(r * 0.95, 0.035, sides).at(end.x, end.y, end.z - 0.005));
    b.add(
        metal,
        lathe(
            &[
                (0.0, 0.0),
                (base_r, 0.0),
                (base_r * 0.95, height * 0.18),
                (r * 1.2, height * 0.26),
                (0.0, height * 0.26),
            ],
            24,
        )
        .at(0.0, 0.0, 0.03),
    );
    match kind {
        1 => {
            let spread = b.vary("spread", 0.16, 0.22);
            let cross = b.chance("cross_handles", 0.5);
            for (side, dot) in [(1.0, hot), (-1.0, cold)] {
                let x = side * spread;
                b.add(
                    metal,
                    lathe(
                        &curve2(
                            &[
                                (0.0, 0.02),
                                (base_r * 0.9, 0.03),
                                (r * 0.9, 0.08),
                                (r * 0.8, 0.13),
                                (0.0, 0.13),
                            ],
                            3,
                        ),
                        20,
                    )
                    .at(x, 0.0, 0.0),
                );
                if cross {
                    for k in 0..4 {
                        b.add(
                            accent,
                            rod(v(0.0, 0.0, 0.0), v(0.075, 0.0, 0.0), 0.016, 8)
                                .turn_z(90.0 * k as f32 + 20.0)
                                .at(x, 0.0, 0.15),
                        );
                        b.add(
                            accent,
                            ellipsoid(0.022, 0.022, 0.022, 8)
                                .at(0.08, 0.0, 0.0)
                                .turn_z(90.0 * k as f32 + 20.0)
                                .at(x, 0.0, 0.15),
                        );
                    }
                } else {
                    let lever = tube_tapered(
                        &[v(0.0, 0.0, 0.0), v(side * 0.13, 0.03, 0.03)],
                        |t| 0.022 - 0.006 * t,
                        10,
                    );
                    b.add(accent, lever.at(x, 0.0, 0.15));
                }
                b.add(dot, cylinder(0.03, 0.03, 14).at(x, 0.0, 0.16));
            }
        }
        _ => {
            // One lever on the side or on top of the body.
            let lean = b.vary("lever_angle", 10.0, 50.0);
            let length = b.vary("lever", 0.14, 0.24);
            let z = height * 0.2 + 0.03;
            if kind == 2 || b.chance("side_lever", 0.6) {
                b.add(metal, rod(v(0.0, 0.0, z), v(-base_r * 1.6, 0.0, z), r * 0.9, 14));
                b.add(black, cylinder(r * 0.95, 0.02, 14).turn_y(90.0).at(-base_r * 1.65, 0.0, z));
                let lever = tube_tapered(&[v(0.0, 0.0, 0.0), v(0.0, 0.0, length)], |t| 0.024 - 0.008 * t, 10)
                    .turn_y(-lean);
                b.add(accent, lever.at(-base_r * 1.55, 0.0, z));
            } else {
                let lever = rounded(0.05, length, 0.025, 0.01)
                    .at(0.0, length * 0.35, 0.0)
                    .turn_x(lean * 0.6)
                    .turn_z(-25.0);
                b.add(accent, lever.at(0.0, -0.02, height * 0.95));
                b.add(accent, cylinder(r * 1.35, 0.07, 18).at(0.0, 0.0, height * 0.88));
            }
            b.add(hot, cuboid(0.02, 0.012, 0.03).at(0.012, base_r, z).map(|p| p));
            b.add(cold, cuboid(0.02, 0.012, 0.03).at(-0.012, base_r, z));
            if kind == 2 && b.chance("sprayer", 0.6) {
                b.add(metal, cylinder(base_r * 0.7, 0.03, 18).at(0.2, 0.0, 0.015));
                b.add(
                    accent,
                    lathe(
                        &curve2(&[(0.0, 0.02), (0.025, 0.03), (0.03, 0.12), (0.045, 0.2), (0.0, 0.22)], 3),
                        16,
                    )
                    .at(0.2, 0.0, 0.0),
                );
            }
        }
    }
    // Threaded shanks below the deck.
    b.add(black, cylinder(r * 0.8, 0.1, 12).at(0.0, 0.0, -0.05));
}
