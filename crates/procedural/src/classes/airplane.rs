//! Airplanes: airliners, propeller planes, fighters. Nose towards +y.

use super::*;

/// One wing to the +x side, root at the origin: loft of two airfoil sections.
pub fn wing(span: f32, root: f32, tip: f32, sweep: f32, rise: f32, thick: f32) -> Solid {
    let section = |chord: f32, x: f32, y: f32, z: f32| -> Vec<glam::Vec3> {
        let t = chord * thick;
        [
            (0.5, 0.0),
            (0.42, 0.45),
            (0.25, 0.75),
            (0.0, 0.8),
            (-0.3, 0.4),
            (-0.5, 0.0),
            (-0.3, -0.25),
            (0.0, -0.4),
            (0.3, -0.4),
            (0.45, -0.25),
        ]
        .map(|(a, h)| v(x, y + a * chord, z + h * t))
        .to_vec()
    };
    let rings: Vec<_> = (0..=4)
        .map(|i| {
            let t = i as f32 / 4.0;
            section(root + (tip - root) * t, span * t, -sweep * t, rise * t)
        })
        .collect();
    loft(&rings)
}

/// An airplane.
pub fn airplane(b: &mut Builder) {
    let kind = b.kind("kind", 3);
    let length = b.vary("length", 1.7, 2.3);
    let radius = length * b.vary("slenderness", 0.05, 0.075) * if kind == 1 { 1.15 } else { 1.0 };
    let span = length * if kind == 2 { b.vary("span", 0.28, 0.36) } else { b.vary("span", 0.45, 0.58) };
    let sweep = span * if kind == 1 { b.vary("sweep", 0.0, 0.12) } else { b.vary("sweep", 0.35, 0.75) };
    let chord = length * if kind == 2 { 0.3 } else { b.vary("chord", 0.15, 0.2) };
    let body_colour = if kind == 0 { Colour::grey(0.92) } else { b.vivid().mix(Colour::grey(0.75), 0.25) };
    let livery_colour = b.vivid();
    let body = b.paint(body_colour, 0.3, 0.5);
    let livery = b.paint(livery_colour, 0.3, 0.5);
    let wing_paint = b.paint(body_colour.mix(Colour::grey(0.6), 0.6), 0.35, 0.6);
    let (glass, steel, black) = (b.glass(), b.steel(), b.black());
    let h = length * 0.5;
    let r = radius;
    let shape = stations(
        &[
            [h, 0.0, 0.0, -r * 0.25],
            [h - r * 0.5, r * 0.5, r * 0.45, -r * 0.2],
            [h - r * 1.6, r * 0.88, r * 0.9, -r * 0.05],
            [h - r * 3.0, r, r, 0.0],
            [0.0, r, r, 0.0],
            [-h * 0.4, r, r, 0.0],
            [-h * 0.8, r * 0.55, r * 0.6, r * 0.3],
            [-h, r * 0.12, r * 0.15, r * 0.55],
        ],
        4,
    );
    b.add(body, hull(&shape, 1.0, 28));
    // The painted belly: the lower half, a hair wider.
    let belly: Vec<[f32; 4]> =
        shape.iter().map(|s| [s[0] * 0.995, s[1] * 0.97, s[2] * 0.62, s[3] - s[2] * 0.42]).collect();
    b.add(livery, hull(&belly, 1.0, 24));
    let low = kind != 1 || b.chance("low_wing", 0.5);
    let wing_z = if low { -r * 0.45 } else { r * 0.95 };
    let rise = span * b.range(0.02, 0.12) * if kind == 1 { 0.5 } else { 1.0 };
    let taper = b.vary("taper", 0.25, 0.6) * if kind == 1 { 1.5 } else { 0.8 };
    let one = wing(span, chord, chord * taper, sweep, rise, 0.12).at(0.0, length * 0.04, wing_z);
    b.add(wing_paint, one.both_x());
    // Flaps and the rear of the fuselage wear the livery, so that front and back differ.
    let flap = wing(span * 0.8, chord * 0.34, chord * 0.3 * taper, sweep * 0.8, rise * 0.8, 0.34);
    b.add(livery, flap.at(0.0, length * 0.04 - chord * 0.34, wing_z).both_x());
    let rear: Vec<[f32; 4]> =
        shape.iter().filter(|s| s[0] < -h * 0.3).map(|s| [s[0], s[1] * 1.02, s[2] * 1.02, s[3]]).collect();
    b.add(livery, hull(&rear, 1.0, 28));
    // Wing tips (red to port, green to starboard) and tail.
    for (side, hue) in [(1.0, 0.36), (-1.0, 0.0)] {
        let tip = b.paint(Colour::hsv(hue, 0.9, 0.7), 0.3, 0.5);
        let length_tip = chord * taper;
        let part = wing(span * 0.12, length_tip * 1.08, length_tip * 0.7, sweep * 0.1, span * 0.05, 0.16);
        let part = part.at(span * 0.96, length * 0.04 - sweep * 0.97, wing_z + rise * 0.97);
        b.add(tip, if side > 0.0 { part } else { part.mirror_x() });
    }
    let tail = length * b.vary("tail", 0.14, 0.2);
    let fin = wing(tail, tail * 0.95, tail * 0.45, tail * 0.6, 0.0, 0.1).turn_y(-90.0);
    b.add(livery, fin.at(0.0, -h + tail * 0.6, r * 0.6));
    let t_tail = kind == 0 && b.chance("t_tail", 0.3);
    let (tz, ty) =
        if t_tail { (r * 0.6 + tail * 0.95, -h + tail * 0.05) } else { (r * 0.45, -h + tail * 0.45) };
    let stabiliser = wing(span * 0.36, tail * 0.7, tail * 0.35, tail * 0.35, tail * 0.05, 0.1);
    b.add(wing_paint, stabiliser.at(0.0, ty, tz).both_x());
    match kind {
        0 => {
            let engines = b.count("engine_pairs", 1, 2);
            let size = r * b.range(0.38, 0.5);
            for e in 0..engines {
                let t = if engines == 1 { 0.33 } else { 0.28 + 0.3 * e as f32 };
                let p = (span * t, length * 0.04 - sweep * t + chord * 0.45, wing_z + rise * t - size * 1.05);
                let nacelle = lathe(
                    &[
                        (0.0, -size * 1.9),
                        (size * 0.45, -size * 1.9),
                        (size * 0.9, -size * 0.6),
                        (size, size * 0.4),
                        (size * 0.9, size),
                        (size * 0.78, size),
                        (size * 0.7, size * 0.5),
                        (0.0, size * 0.5),
                    ],
                    20,
                )
                .turn_x(-90.0);
                b.add(livery, nacelle.at(p.0, p.1, p.2).both_x());
                b.add(
                    black,
                    cone(size * 0.72, size * 0.1, size * 0.3, 16)
                        .turn_x(-90.0)
                        .at(p.0, p.1 + size * 0.55, p.2)
                        .both_x(),
                );
                b.add(
                    wing_paint,
                    cuboid(size * 0.2, size * 1.8, size * 0.9)
                        .at(p.0, p.1 - size * 0.7, p.2 + size * 0.8)
                        .both_x(),
                );
            }
            let n = 18;
            let pane = ellipsoid(r * 0.06, r * 0.085, r * 0.12, 8);
            for i in 0..n {
                let y = h - r * 3.2 - (length * 0.62) * i as f32 / n as f32;
                b.add(glass, pane.clone().at(r * 0.965, y, r * 0.22).both_x());
            }
            b.add(
                glass,
                ellipsoid(r * 0.62, r * 0.55, r * 0.28, 16).turn_x(-25.0).at(0.0, h - r * 1.35, r * 0.52),
            );
            let stripe: Vec<[f32; 4]> =
                shape.iter().map(|s| [s[0] * 0.99, s[1] * 1.012, s[2] * 0.07, s[3] - s[2] * 0.1]).collect();
            b.add(livery, hull(&stripe, 0.4, 16));
        }
        1 => {
            let blades = b.count("blades", 2, 4);
            let twin = b.chance("twin_engines", 0.4);
            let spots: Vec<(f32, f32, f32)> = if twin {
                let p = (span * 0.32, length * 0.04 + chord * 0.75, wing_z + rise * 0.3);
                let pod = hull(
                    &[
                        [chord * 0.0, r * 0.45, r * 0.45, 0.0],
                        [-chord * 0.3, r * 0.55, r * 0.55, 0.0],
                        [-chord * 1.2, r * 0.2, r * 0.25, 0.0],
                    ],
                    0.8,
                    16,
                );
                b.add(livery, pod.at(p.0, p.1, p.2).both_x());
                vec![p, (-p.0, p.1, p.2)]
            } else {
                vec![(0.0, h + r * 0.05, -r * 0.25)]
            };
            for p in spots {
                let spinner =
                    lathe(&[(0.0, -r * 0.2), (r * 0.3, -r * 0.2), (r * 0.22, r * 0.2), (0.0, r * 0.45)], 16);
                b.add(steel, spinner.turn_x(-90.0).at(p.0, p.1, p.2));
                for k in 0..blades {
                    let blade = sheet(6, 1, r * 0.06, |u, w| {
                        v(r * 2.2 * u, 0.0, (w - 0.5) * r * 0.42 * (1.0 - 0.6 * u))
                            + v(0.0, (w - 0.5) * r * 0.2, 0.0)
                    });
                    let angle = 360.0 * k as f32 / blades as f32 + 20.0;
                    b.add(black, blade.turn_y(angle).at(p.0, p.1, p.2));
                }
            }
            b.add(
                glass,
                superellipsoid(r * 0.8, r * 1.5, r * 0.62, 0.7, 0.8, 20).at(0.0, h * 0.38, r * 0.78),
            );
            b.add(body, block(r * 1.2, r * 1.5, r * 0.16).at(0.0, h * 0.3, r * 1.32));
            let gear_z = -r * 1.7;
            let tyre = Wheel { radius: r * 0.42, width: r * 0.25, rim: 0.5, spokes: 0 };
            for side in [1.0, -1.0] {
                b.add(
                    steel,
                    rod(
                        v(side * r * 0.5, h * 0.25, -r * 0.6),
                        v(side * r * 1.3, h * 0.25, gear_z),
                        r * 0.09,
                        8,
                    ),
                );
                tyre.add(b, black, steel, v(side * r * 1.4, h * 0.25, gear_z), side);
            }
        }
        _ => {
            let canopy = hull(
                &stations(
                    &[
                        [h * 0.62, 0.0, 0.0, r * 0.75],
                        [h * 0.5, r * 0.45, r * 0.35, r * 0.8],
                        [h * 0.3, r * 0.55, r * 0.5, r * 0.85],
                        [h * 0.05, r * 0.25, r * 0.2, r * 0.9],
                        [-h * 0.05, 0.0, 0.0, r * 0.9],
                    ],
                    4,
                ),
                1.0,
                16,
            );
            b.add(glass, canopy);
            b.add(
                wing_paint,
                block(r * 0.6, length * 0.28, r * 1.1).at(r * 1.15, h * 0.12, -r * 0.1).both_x(),
            );
            b.add(
                black,
                cuboid(r * 0.5, r * 0.1, r * 0.9).at(r * 1.15, h * 0.12 + length * 0.141, -r * 0.1).both_x(),
            );
            let nozzle = lathe(
                &[(0.0, 0.0), (r * 0.35, 0.0), (r * 0.55, -r * 0.9), (r * 0.45, -r * 0.9), (0.0, -r * 0.3)],
                18,
            )
            .flip();
            b.add(black, nozzle.turn_x(-90.0).at(r * 0.45, -h * 0.96, r * 0.1).both_x());
            let fin = wing(tail * 1.1, tail * 0.9, tail * 0.4, tail * 0.6, 0.0, 0.08).turn_y(-75.0);
            b.add(livery, fin.at(r * 0.9, -h * 0.72, r * 0.3).both_x());
            for i in 0..b.count("missiles", 1, 3) {
                let x = span * (0.35 + 0.2 * i as f32);
                let missile = lathe(
                    &[
                        (0.0, -chord * 0.35),
                        (r * 0.16, -chord * 0.35),
                        (r * 0.16, chord * 0.25),
                        (0.0, chord * 0.4),
                    ],
                    10,
                );
                b.add(steel, missile.turn_x(-90.0).at(x, -sweep * x / span, wing_z - r * 0.4).both_x());
            }
        }
    }
}
