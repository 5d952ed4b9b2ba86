//! Earphones.

use super::*;

/// Earphones: headphones, a headset with a boom, buds on a cable, buds in their case.
pub fn earphone(b: &mut Builder) {
    let kind = b.kind("kind", 4);
    let colour =
        if b.chance("neutral", 0.4) { b.one_of(&[Colour::grey(0.1), Colour::grey(0.9)]) } else { b.vivid() };
    let body = b.paint(colour, 0.35, 0.5);
    let second = b.contrast(colour);
    let pad = b.paint(second, 0.8, 0.2);
    let (steel, black) = (b.steel(), b.black());
    let red = b.paint(Colour([0.85, 0.1, 0.1]), 0.4, 0.4);
    let blue = b.paint(Colour([0.1, 0.25, 0.85]), 0.4, 0.4);
    let r = b.vary("radius", 0.36, 0.44);
    let cup = r * b.vary("cup", 0.42, 0.6);
    match kind {
        0 | 1 => {
            let tall = r * b.vary("band_height", 1.0, 1.25);
            let band_w = b.vary("band_width", 0.09, 0.16);
            let tilt = b.vary("cup_tilt", 4.0, 14.0);
            let band = arc(v(0.0, 0.0, 0.0), v(r, 0.0, 0.0), v(0.0, 0.0, tall), -8.0, 188.0, 28);
            b.add(body, sweep(&rounded_rectangle(0.035, band_w, 0.012, 2), &band, glam::Vec3::Y));
            let padding =
                arc(v(0.0, 0.0, 0.0), v(r - 0.035, 0.0, 0.0), v(0.0, 0.0, tall - 0.035), 45.0, 135.0, 16);
            b.add(pad, sweep(&rounded_rectangle(0.06, band_w * 1.1, 0.025, 3), &padding, glam::Vec3::Y));
            for (side, mark) in [(1.0, red), (-1.0, blue)] {
                let x = side * (r + 0.0);
                let place = |s: Solid| {
                    let s = s.turn_y(90.0).turn_y(tilt);
                    let s = if side < 0.0 { s.mirror_x() } else { s };
                    s.at(x, 0.0, -0.12)
                };
                // Shell outside, cushion inside, a coloured disc for left and right.
                b.add(
                    body,
                    place(
                        lathe(
                            &curve2(
                                &[
                                    (cup * 0.95, -0.02),
                                    (cup, 0.04),
                                    (cup * 0.75, 0.12),
                                    (cup * 0.3, 0.15),
                                    (0.0, 0.15),
                                ],
                                4,
                            ),
                            30,
                        )
                        .scale(1.15, 1.0, 1.0),
                    ),
                );
                b.add(mark, place(cylinder(cup * 0.5, 0.04, 26).at(0.0, 0.0, 0.135).scale(1.15, 1.0, 1.0)));
                b.add(steel, place(ring(cup * 0.55, 0.014, 26, 6).at(0.0, 0.0, 0.15).scale(1.15, 1.0, 1.0)));
                let ringed = ring(cup * 0.72, cup * 0.26, 30, 12).scale(1.15, 1.0, 0.8);
                b.add(pad, place(ringed.at(0.0, 0.0, -0.07)));
                b.add(black, place(cylinder(cup * 0.7, 0.04, 24).at(0.0, 0.0, -0.02)));
                b.add(steel, rod(v(x, 0.0, -0.08 + cup * 0.4), v(side * r * 0.995, 0.0, 0.1), 0.022, 8));
            }
            if kind == 1 {
                let boom = curve(
                    &[v(r + 0.08, 0.0, -0.16), v(r + 0.06, r * 0.5, -0.32), v(r * 0.5, r * 0.95, -0.42)],
                    8,
                );
                b.add(black, tube(&boom, 0.018, 8));
                b.add(pad, ellipsoid(0.07, 0.05, 0.05, 16).at(r * 0.45, r * 0.98, -0.42));
            }
            let cable = curve(
                &[
                    v(r + 0.05, 0.0, -0.12 - cup * 1.1),
                    v(r * 1.05, 0.1, -0.6),
                    v(r * 0.6, 0.25, -0.68),
                    v(r * 0.2, 0.35, -0.62),
                ],
                8,
            );
            b.add(black, tube(&cable, 0.014, 8));
            b.add(steel, cylinder(0.022, 0.1, 10).turn_y(80.0).at(r * 0.16, 0.36, -0.62));
        }
        2 => {
            // Two buds, their cables joining below at a splitter with a remote.
            let drop = b.vary("drop", 0.5, 0.75);
            for (side, mark) in [(1.0, red), (-1.0, blue)] {
                let x = side * b.range(0.16, 0.28);
                let z = 0.3 + side * 0.06;
                let place = |s: Solid| s.turn_z(if side > 0.0 { 25.0 } else { 155.0 }).at(x, 0.0, z);
                b.add(body, place(ellipsoid(0.09, 0.075, 0.08, 20)));
                b.add(
                    pad,
                    place(
                        lathe(
                            &curve2(
                                &[(0.0, 0.06), (0.05, 0.07), (0.075, 0.12), (0.05, 0.17), (0.0, 0.18)],
                                3,
                            ),
                            20,
                        )
                        .turn_y(-90.0)
                        .at(0.0, 0.0, 0.0),
                    ),
                );
                b.add(mark, place(ring(0.062, 0.016, 20, 8).turn_y(90.0).at(0.055, 0.0, 0.0)));
                b.add(mark, place(cylinder(0.05, 0.02, 18).turn_y(90.0).at(0.088, 0.0, 0.0)));
                b.add(
                    body,
                    place(tube_tapered(
                        &[v(0.02, 0.0, -0.04), v(0.05, 0.0, -0.2)],
                        |t| 0.035 - 0.015 * t,
                        12,
                    )),
                );
                let start = v(x + side * 0.04, 0.03, z - 0.2);
                let cable = curve(&[start, v(side * 0.14, 0.1, -drop * 0.3), v(0.0, 0.06, -drop * 0.75)], 8);
                b.add(body, tube(&cable, 0.012, 8));
            }
            b.add(pad, rounded(0.05, 0.04, 0.1, 0.015).at(0.0, 0.06, -drop * 0.78));
            b.add(pad, rounded(0.05, 0.035, 0.14, 0.015).at(0.15, 0.09, -drop * 0.28));
            let tail = curve(
                &[
                    v(0.0, 0.06, -drop * 0.8),
                    v(-0.12, 0.12, -drop),
                    v(-0.3, 0.02, -drop * 1.02),
                    v(-0.36, 0.1, -drop * 0.8),
                ],
                8,
            );
            b.add(body, tube(&tail, 0.013, 8));
            b.add(steel, cylinder(0.018, 0.1, 10).turn_y(15.0).at(-0.37, 0.11, -drop * 0.72));
        }
        _ => {
            // Charging case, open, one bud in place and one beside it.
            let w = b.vary("case_width", 0.45, 0.6);
            let h = w * 0.55;
            b.add(body, superellipsoid(w * 0.5, w * 0.22, h * 0.5, 0.5, 0.6, 28).at(0.0, 0.0, 0.0));
            b.add(pad, cuboid(w * 0.8, w * 0.3, 0.012).at(0.0, 0.0, h * 0.46));
            let open = b.vary("lid_angle", 70.0, 110.0);
            let lid = superellipsoid(w * 0.49, w * 0.21, h * 0.22, 0.5, 0.6, 28)
                .at(0.0, w * 0.2, h * 0.2)
                .turn_x(open)
                .at(0.0, -w * 0.2, h * 0.42);
            b.add(body, lid);
            let led = b.glowing(Colour([0.2, 0.95, 0.3]));
            b.add(led, ellipsoid(0.022, 0.01, 0.022, 10).at(0.0, w * 0.22, -h * 0.05));
            let bud = |b: &mut Builder, place: &dyn Fn(Solid) -> Solid, mark: Paint| {
                b.add(body, place(ellipsoid(0.085, 0.08, 0.08, 20)));
                b.add(
                    pad,
                    place(
                        lathe(
                            &curve2(
                                &[(0.0, 0.06), (0.045, 0.07), (0.062, 0.1), (0.04, 0.14), (0.0, 0.145)],
                                3,
                            ),
                            18,
                        )
                        .turn_y(-70.0),
                    ),
                );
                b.add(
                    body,
                    place(tube_tapered(
                        &[v(0.02, 0.0, 0.0), v(0.045, 0.0, -0.24)],
                        |t| 0.042 - 0.012 * t,
                        14,
                    )),
                );
                b.add(mark, place(cylinder(0.035, 0.02, 14).at(0.045, 0.0, -0.24)));
                b.add(mark, place(ellipsoid(0.04, 0.02, 0.04, 12).at(0.03, 0.07, 0.02)));
            };
            bud(b, &|s| s.at(w * 0.22, 0.0, h * 0.6), red);
            let lie = b.range(60.0, 100.0);
            bud(b, &|s| s.turn_x(80.0).turn_z(lie).at(-w * 0.45, w * 0.5, -h * 0.4), blue);
            b.add(steel, cylinder(0.03, w * 0.5, 12).turn_y(90.0).at(0.0, -w * 0.21, h * 0.4));
        }
    }
}
