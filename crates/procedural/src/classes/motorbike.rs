//! Motorbikes: naked bike, sports bike, cruiser, scooter, motocross. Front towards +y; exhaust on the +x side.

use super::*;

/// A wheel with its axle along x: tyre, rim, spokes, brake disc on the -x side.
fn wheel(b: &mut Builder, paints: (Paint, Paint, Paint), r: f32, w: f32, spokes: usize, y: f32) {
    let (tyre, rim, disc) = paints;
    let place = |s: Solid| s.turn_y(90.0).at(0.0, y, r);
    b.add(tyre, place(ring(r - w * 0.5, w * 0.5, 36, 10)));
    b.add(
        rim,
        place(lathe(
            &[
                (r - w, -w * 0.3),
                (r - w * 0.8, -w * 0.3),
                (r - w * 0.8, w * 0.3),
                (r - w, w * 0.3),
                (r - w, -w * 0.3),
            ],
            32,
        )),
    );
    b.add(rim, place(cylinder(r * 0.14, w * 1.1, 14)));
    for k in 0..spokes {
        let a = 360.0 * k as f32 / spokes as f32;
        let thick = if spokes > 9 { 0.012 } else { 0.035 };
        b.add(rim, place(cuboid(r - w * 0.9, thick, thick).at((r - w * 0.9) * 0.5, 0.0, 0.0).turn_z(a)));
    }
    b.add(disc, place(cylinder(r * 0.45, 0.015, 24).at(0.0, 0.0, -w * 0.45)));
}

/// A motorbike.
pub fn motorbike(b: &mut Builder) {
    let kind = b.kind("kind", 5);
    let r = b.vary("wheel_radius", 0.26, 0.32) * if kind == 3 { 0.7 } else { 1.0 };
    let base = b.vary("wheelbase", 1.15, 1.4) * if kind == 2 { 1.12 } else { 1.0 };
    let w = b.vary("tyre_width", 0.09, 0.14);
    let rake = b.vary("rake", 0.18, 0.3) * if kind == 2 { 1.4 } else { 1.0 };
    let colour = b.vivid();
    let body = b.paint(colour, 0.18, 0.7);
    let second_colour = b.contrast(colour);
    let second = b.paint(second_colour, 0.25, 0.6);
    let (steel, black, tyre) = (b.steel(), b.black(), b.rubber());
    let seat_paint = b.leather();
    let lamp = b.glowing(Colour([1.0, 0.97, 0.85]));
    let red = b.glowing(Colour([0.85, 0.06, 0.05]));
    let amber = b.glowing(Colour([0.95, 0.55, 0.05]));
    let engine_paint = b.paint(Colour::grey(0.35), 0.4, 0.7);
    let (fy, ry) = (base * 0.5, -base * 0.5);
    let spokes = if kind == 2 || kind == 4 { b.count("spokes", 14, 20) } else { b.count("spokes", 4, 7) };
    wheel(b, (tyre, if kind == 1 { second } else { steel }, steel), r, w, spokes, fy);
    wheel(b, (tyre, if kind == 1 { second } else { steel }, steel), r, w * 1.15, spokes, ry);
    let seat_z = r * 2.0 + b.vary("seat", 0.12, 0.24) - if kind == 2 { 0.1 } else { 0.0 };
    let bar_z = seat_z + b.vary("bars", 0.16, 0.32);
    let head = v(0.0, fy - rake, bar_z - 0.1);
    // Fork, headlamp, handlebars with grips and mirrors, front mudguard.
    b.add(steel, rod(v(0.085, fy, r), v(0.085, head.y, head.z), 0.026, 10).both_x());
    b.add(black, block(0.26, 0.07, 0.05).at(0.0, head.y, head.z));
    let half = b.vary("bar_width", 0.28, 0.4);
    let bars = curve(
        &[
            v(0.0, head.y, head.z + 0.04),
            v(half * 0.4, head.y - 0.01, bar_z + 0.02),
            v(half, head.y - 0.12, bar_z),
        ],
        6,
    );
    b.add(steel, tube(&bars, 0.016, 8).both_x());
    b.add(
        black,
        rod(v(half * 0.72, head.y - 0.07, bar_z + 0.005), v(half * 1.02, head.y - 0.125, bar_z), 0.026, 10)
            .both_x(),
    );
    if kind != 4 {
        b.add(
            steel,
            rod(v(half * 0.6, head.y - 0.05, bar_z), v(half * 0.75, head.y - 0.02, bar_z + 0.14), 0.009, 6)
                .both_x(),
        );
        b.add(black, ellipsoid(0.06, 0.02, 0.04, 14).at(half * 0.78, head.y - 0.02, bar_z + 0.16).both_x());
    }
    let guard = arc(v(0.0, fy, r), v(0.0, r * 1.06, 0.0), v(0.0, 0.0, r * 1.06), 40.0, 150.0, 12);
    b.add(body, sweep(&rounded_rectangle(0.03, w * 1.3, 0.01, 2), &guard, glam::Vec3::X));
    let rear_guard = arc(v(0.0, ry, r), v(0.0, r * 1.08, 0.0), v(0.0, 0.0, r * 1.08), 50.0, 175.0, 12);
    b.add(body, sweep(&rounded_rectangle(0.03, w * 1.4, 0.01, 2), &rear_guard, glam::Vec3::X));
    // Frame, swing arm, engine with cooling fins, exhaust.
    let pivot = v(0.0, -0.12, r * 1.05);
    b.add(steel, rod(v(0.09, ry, r), v(0.07, pivot.y, pivot.z), 0.026, 8).both_x());
    b.add(second, rod(v(0.05, head.y - 0.02, head.z - 0.04), v(0.09, pivot.y, pivot.z), 0.028, 8).both_x());
    b.add(
        second,
        rod(v(0.05, head.y - 0.02, head.z - 0.1), v(0.08, fy - rake - 0.22, r * 0.75), 0.024, 8).both_x(),
    );
    b.add(second, rod(v(0.08, fy - rake - 0.22, r * 0.75), v(0.09, pivot.y, r * 0.7), 0.024, 8).both_x());
    b.add(second, rod(v(0.07, pivot.y, pivot.z), v(0.06, ry + 0.12, seat_z - 0.04), 0.022, 8).both_x());
    b.add(steel, rod(v(0.1, ry + 0.04, r + 0.05), v(0.09, ry + 0.2, seat_z - 0.06), 0.024, 8).both_x());
    if kind != 3 {
        let ey = (fy - rake + pivot.y) * 0.5 - 0.02;
        b.add(engine_paint, rounded(0.24, 0.34, r * 0.75, 0.05).at(0.0, ey, r * 0.95));
        b.add(steel, cylinder(0.1, 0.3, 22).turn_y(90.0).at(0.0, ey - 0.07, r * 0.9));
        for (dy, tilt) in [(0.12, -20.0), (-0.02, 15.0)] {
            for i in 0..5 {
                let fin = block(0.22, 0.16, 0.016).at(0.0, 0.0, 0.035 * i as f32).turn_x(tilt).at(
                    0.0,
                    ey + dy,
                    r * 1.3,
                );
                b.add(engine_paint, fin);
            }
        }
        let pipe = curve(
            &[
                v(0.1, ey + 0.16, r * 1.3),
                v(0.16, ey + 0.24, r * 0.9),
                v(0.16, ey, r * 0.5),
                v(0.17, ry + 0.3, r * 0.55),
            ],
            6,
        );
        b.add(steel, tube(&pipe, 0.03, 10));
        let rise = b.vary("exhaust_rise", 0.0, 0.25);
        let silencer = tube_tapered(
            &[v(0.17, ry + 0.34, r * 0.55), v(0.18, ry - 0.12, r * 0.6 + rise)],
            |t| 0.045 + 0.02 * t,
            16,
        );
        b.add(steel, silencer);
        b.add(black, ellipsoid(0.05, 0.03, 0.05, 14).at(0.18, ry - 0.125, r * 0.6 + rise));
    }
    let tank = |l: f32, width: f32, tall: f32| {
        let y0 = head.y - 0.08;
        hull(
            &stations(
                &[
                    [y0, width * 0.3, tall * 0.3, seat_z + tall * 0.25],
                    [y0 - l * 0.2, width * 0.8, tall * 0.7, seat_z + tall * 0.3],
                    [y0 - l * 0.55, width, tall * 0.75, seat_z + tall * 0.15],
                    [y0 - l, width * 0.45, tall * 0.35, seat_z - tall * 0.1],
                ],
                4,
            ),
            0.85,
            22,
        )
    };
    let tank_l = b.vary("tank", 0.42, 0.56);
    let seat_l = (head.y - 0.08 - tank_l * 0.85) - (ry - 0.02);
    let seat_y = ry - 0.02 + seat_l * 0.5;
    match kind {
        3 => {
            // Scooter: leg shield, floor, bulbous tail.
            let shield = sheet(8, 10, 0.03, |u, t| {
                v(
                    (0.5 - u) * 0.5 * (1.0 - 0.3 * t),
                    head.y + 0.04 + 0.1 * (u - 0.5).powi(2) * -4.0 - 0.1 * t,
                    r * 0.7 + (bar_z - r * 0.75) * t,
                )
            });
            b.add(body, shield);
            b.add(second, block(0.34, base * 0.5, 0.05).at(0.0, 0.06, r * 0.75));
            b.add(
                body,
                hull(
                    &stations(
                        &[
                            [0.02, 0.12, 0.1, r * 1.1],
                            [-0.15, 0.2, 0.22, r * 1.4],
                            [ry, 0.22, 0.24, r * 1.55],
                            [ry - 0.22, 0.1, 0.1, r * 1.6],
                        ],
                        4,
                    ),
                    0.8,
                    24,
                ),
            );
            b.add(second, ellipsoid(0.06, 0.16, 0.1, 16).at(0.2, ry, r * 1.4));
            b.add(seat_paint, rounded(0.24, 0.55, 0.09, 0.04).at(0.0, ry + 0.14, r * 1.4 + 0.27));
            b.add(body, rounded(0.16, 0.14, 0.14, 0.05).at(0.0, head.y, bar_z + 0.01));
            b.add(lamp, ellipsoid(0.07, 0.05, 0.07, 16).at(0.0, head.y + 0.07, bar_z + 0.02));
            b.add(steel, rod(v(0.1, ry - 0.1, r * 0.7), v(0.12, ry + 0.1, r * 0.7), 0.05, 12));
            b.add(red, cuboid(0.1, 0.03, 0.06).at(0.0, ry - 0.24, r * 1.6));
        }
        1 => {
            // Sports bike: fairing, windscreen, tail cowl.
            b.add(body, tank(tank_l, 0.15, 0.17));
            let nose = hull(
                &stations(
                    &[
                        [fy + 0.06, 0.03, 0.04, bar_z - 0.16],
                        [fy - 0.06, 0.14, 0.11, bar_z - 0.13],
                        [head.y - 0.02, 0.2, 0.17, bar_z - 0.12],
                        [head.y - 0.2, 0.18, 0.1, bar_z - 0.16],
                    ],
                    4,
                ),
                0.8,
                22,
            );
            b.add(body, nose);
            let side = [
                (head.y + 0.06, bar_z - 0.15),
                (fy - rake * 0.4, r * 1.3),
                (0.12, r * 0.6),
                (-0.2, r * 0.75),
                (-0.08, seat_z - 0.08),
            ];
            b.add(second, prism_x(&side, 0.03, 0.01).at(0.15, 0.0, 0.0).both_x());
            let glass = b.glass();
            b.add(glass, ellipsoid(0.12, 0.14, 0.1, 18).at(0.0, head.y + 0.04, bar_z + 0.0));
            b.add(
                lamp,
                ellipsoid(0.07, 0.05, 0.035, 14).turn_y(18.0).at(0.08, fy - 0.01, bar_z - 0.13).both_x(),
            );
            b.add(
                seat_paint,
                rounded(0.24, seat_l * 0.55, 0.07, 0.03).at(0.0, seat_y + seat_l * 0.18, seat_z + 0.02),
            );
            let tail = hull(
                &[
                    [seat_y - seat_l * 0.1, 0.12, 0.06, seat_z],
                    [ry - 0.1, 0.1, 0.07, seat_z + 0.1],
                    [ry - 0.28, 0.04, 0.03, seat_z + 0.17],
                ],
                0.7,
                18,
            );
            b.add(body, tail);
            b.add(red, cuboid(0.08, 0.03, 0.04).at(0.0, ry - 0.28, seat_z + 0.16));
        }
        _ => {
            b.add(
                body,
                tank(tank_l, if kind == 4 { 0.11 } else { 0.15 }, if kind == 2 { 0.16 } else { 0.18 }),
            );
            b.add(steel, cylinder(0.035, 0.03, 16).at(0.0, head.y - 0.08 - tank_l * 0.4, seat_z + 0.17));
            b.add(
                second,
                ellipsoid(0.03, tank_l * 0.25, 0.05, 16).at(
                    0.145,
                    head.y - 0.08 - tank_l * 0.5,
                    seat_z + 0.04,
                ),
            );
            if kind == 4 {
                // Motocross: number plates, high mudguard, long seat.
                let number = print(b, colour);
                b.add(
                    number,
                    rounded(0.22, 0.03, 0.24, 0.01).turn_x(12.0).at(0.0, head.y + 0.09, bar_z - 0.1),
                );
                b.add(body, rounded(0.2, 0.5, 0.03, 0.012).turn_x(8.0).at(0.0, fy + 0.05, r * 2.0 + 0.1));
                b.add(
                    seat_paint,
                    rounded(0.18, seat_l * 1.05, 0.08, 0.03).at(0.0, seat_y + 0.03, seat_z + 0.03),
                );
                b.add(body, rounded(0.18, 0.34, 0.03, 0.012).turn_x(-15.0).at(0.0, ry - 0.16, seat_z + 0.05));
                b.add(second, block(0.02, 0.3, 0.2).at(0.14, ry + 0.2, seat_z - 0.1));
            } else {
                b.add(steel, ellipsoid(0.1, 0.1, 0.1, 20).at(0.0, head.y + 0.08, head.z + 0.02));
                b.add(lamp, ellipsoid(0.088, 0.05, 0.088, 20).at(0.0, head.y + 0.15, head.z + 0.02));
                b.add(amber, ellipsoid(0.03, 0.03, 0.03, 10).at(0.17, head.y + 0.06, head.z).both_x());
                let step = if kind == 2 { 0.06 } else { 0.02 };
                b.add(
                    seat_paint,
                    rounded(0.26, seat_l * 0.55, 0.1, 0.045).at(0.0, seat_y + seat_l * 0.2, seat_z - 0.01),
                );
                b.add(
                    seat_paint,
                    rounded(0.22, seat_l * 0.5, 0.09, 0.04).at(0.0, seat_y - seat_l * 0.26, seat_z + step),
                );
                b.add(red, ellipsoid(0.05, 0.03, 0.035, 12).at(0.0, ry - 0.2, seat_z - 0.04));
                if kind == 2 {
                    let bag = b.leather();
                    b.add(bag, rounded(0.1, 0.34, 0.24, 0.03).at(0.2, ry + 0.02, r * 1.75).both_x());
                    let glass = b.paint(Colour([0.6, 0.72, 0.78]), 0.08, 0.8);
                    b.add(
                        glass,
                        sheet(8, 6, 0.015, |u, t| {
                            v(
                                (0.5 - u) * 0.4,
                                head.y + 0.06 - 0.1 * t - 0.1 * (2.0 * u - 1.0).powi(2),
                                bar_z + 0.3 * t,
                            )
                        }),
                    );
                }
            }
        }
    }
    b.add(black, rod(v(-0.1, -0.05, r * 0.6), v(-0.22, -0.02, 0.0), 0.016, 8));
    b.add(black, rod(v(0.1, 0.0, r * 0.75), v(0.24, 0.0, r * 0.75), 0.018, 8).both_x());
}
