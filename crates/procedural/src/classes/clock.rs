//! Clocks: wall clock, alarm clock, longcase clock, mantel clock, digital clock. Faces towards +y.

use super::*;

/// Dial, hour marks and hands of radius `r` at a point, facing +y; the time is drawn at random.
fn face(b: &mut Builder, ground: Colour, r: f32, x: f32, y: f32, z: f32) {
    let dial_paint = b.paint(ground, 0.5, 0.3);
    let ink_colour = b.contrast(ground);
    let ink = b.paint(ink_colour, 0.5, 0.3);
    let red = b.accent();
    let on = |s: Solid| s.turn_x(-90.0).at(x, y, z);
    b.add(dial_paint, on(cylinder(r, 0.02, 40)));
    // Day and night: one part of the dial in another colour, so that the face has an up and a down.
    let night_colour =
        if ground.brightness() > 0.5 { b.vivid().times(0.75) } else { b.vivid().mix(Colour::grey(1.0), 0.3) };
    let night = b.paint(night_colour, 0.5, 0.3);
    let (from, to) = (b.range(-25.0, 5.0), b.range(165.0, 200.0));
    let segment: Vec<glam::Vec2> = (0..=24)
        .map(|i| (from + (to - from) * i as f32 / 24.0).to_radians())
        .map(|a| glam::Vec2::new(r * 0.97 * a.cos(), r * 0.97 * a.sin()))
        .collect();
    b.add(night, on(prism(&segment, 0.024, 0.0)));
    let bold = b.chance("bold_marks", 0.5);
    for k in 0..12 {
        let big = k % 3 == 0;
        let (l, w) = (r * if big { 0.2 } else { 0.12 }, r * if big || bold { 0.07 } else { 0.035 });
        b.add(
            ink,
            on(cuboid(w, l, 0.012).at(0.0, r * 0.82 - l * 0.5 + 0.02, 0.014).turn_z(-30.0 * k as f32)),
        );
    }
    // Seen from +y, clockwise is a positive turn about z before the face is stood up.
    let hour = b.vary("hour", 0.0, 12.0);
    let minute = hour.fract() * 360.0;
    let hand = |l: f32, w: f32, lift: f32| {
        prism(
            &polygon(&[(-w, -l * 0.15), (w, -l * 0.15), (w * 0.6, l * 0.9), (0.0, l), (-w * 0.6, l * 0.9)]),
            0.012,
            0.002,
        )
        .at(0.0, 0.0, lift)
    };
    b.add(ink, on(hand(r * 0.5, r * 0.055, 0.025).turn_z(hour * 30.0)));
    b.add(ink, on(hand(r * 0.78, r * 0.04, 0.04).turn_z(minute)));
    let seconds = b.range(0.0, 360.0);
    b.add(red, on(hand(r * 0.8, r * 0.014, 0.052).turn_z(seconds)));
    b.add(red, on(cylinder(r * 0.06, 0.05, 14).at(0.0, 0.0, 0.03)));
}

/// A clock.
pub fn clock(b: &mut Builder) {
    let kind = b.kind("kind", 5);
    let r = b.vary("radius", 0.34, 0.46);
    let depth = b.vary("depth", 0.07, 0.16);
    let rim_colour = b.vivid();
    let rim = if b.chance("metal_rim", 0.35) { b.metal() } else { b.paint(rim_colour, 0.35, 0.5) };
    let ground =
        if b.chance("light_face", 0.7) { Colour([0.94, 0.93, 0.88]) } else { Colour([0.1, 0.12, 0.16]) };
    let (wood, metal, black) = (b.wood(), b.metal(), b.black());
    let bezel = b.vary("bezel", 0.04, 0.09);
    match kind {
        0 => {
            // Wall clock: round or many-sided, perhaps with a pendulum box or sun rays.
            let n = b.one_of(&[40, 40, 8, 6]);
            let style = b.kind("surround", 3);
            let body = lathe(
                &[
                    (0.0, 0.0),
                    (r * 1.06, 0.0),
                    (r + bezel, depth * 0.4),
                    (r + bezel, depth * 0.8),
                    (r + bezel * 0.4, depth),
                    (r, depth * 0.8),
                    (0.0, depth * 0.8),
                ],
                n,
            )
            .turn_z(180.0 / n as f32)
            .turn_x(-90.0);
            b.add(rim, if n < 40 { body.flat() } else { body });
            face(b, ground, r * 0.97, 0.0, depth * 0.85, 0.0);
            if style == 1 {
                let rays = b.count("rays", 12, 20);
                for k in 0..rays {
                    let l = r * if k % 2 == 0 { 0.5 } else { 0.32 };
                    let ray =
                        tube_tapered(&[v(0.0, 0.0, r), v(0.0, 0.0, r + bezel + l)], |t| 0.035 - 0.03 * t, 6)
                            .turn_y(360.0 * k as f32 / rays as f32);
                    b.add(metal, ray.at(0.0, depth * 0.3, 0.0));
                }
            } else if style == 2 {
                let drop = b.vary("pendulum_box", 0.5, 0.9);
                b.add(
                    wood,
                    block(r * 1.1, depth * 0.9, drop).at(0.0, depth * 0.45, -r - drop * 0.4).tile(0.5),
                );
                b.add(black, cuboid(r * 0.8, 0.01, drop * 0.7).at(0.0, depth * 0.905, -r - drop * 0.42));
                let swing = b.range(-0.12, 0.12);
                b.add(
                    metal,
                    rod(v(0.0, depth * 0.93, -r), v(swing, depth * 0.93, -r - drop * 0.5), 0.012, 8),
                );
                b.add(
                    metal,
                    cylinder(r * 0.2, 0.03, 24).turn_x(90.0).at(swing, depth * 0.95, -r - drop * 0.55),
                );
            }
            b.add(wood, cylinder(r * 0.9, 0.02, 30).turn_x(90.0).at(0.0, -0.005, 0.0));
            b.add(black, rounded(r * 0.5, 0.03, r * 0.3, 0.01).at(r * 0.3, -0.02, -r * 0.1));
        }
        1 => {
            // Alarm clock with bells and feet.
            let drum = lathe(
                &[
                    (0.0, 0.0),
                    (r * 0.95, 0.0),
                    (r + bezel, 0.04),
                    (r + bezel, depth * 2.4),
                    (r, depth * 2.6),
                    (0.0, depth * 2.55),
                ],
                36,
            )
            .turn_x(-90.0);
            b.add(rim, drum);
            face(b, ground, r * 0.93, 0.0, depth * 2.6, 0.0);
            for side in [-1.0, 1.0] {
                let angle = side * 35.0;
                let bell = lathe(
                    &curve2(
                        &[
                            (0.0, 0.03),
                            (r * 0.36, 0.0),
                            (r * 0.33, r * 0.12),
                            (r * 0.18, r * 0.24),
                            (0.0, r * 0.27),
                        ],
                        4,
                    ),
                    22,
                );
                b.add(metal, bell.at(0.0, 0.0, r + bezel + 0.06).turn_y(angle).at(0.0, depth * 1.3, 0.0));
                b.add(
                    black,
                    cylinder(0.02, 0.1, 8).at(0.0, 0.0, r + bezel + 0.02).turn_y(angle).at(
                        0.0,
                        depth * 1.3,
                        0.0,
                    ),
                );
                let foot = tube_tapered(
                    &[v(side * r * 0.5, depth * 1.3, -r * 0.8), v(side * r * 0.8, depth * 1.5, -r * 1.3)],
                    |t| 0.045 - 0.015 * t,
                    10,
                );
                b.add(black, foot);
            }
            b.add(
                metal,
                tube(
                    &arc(
                        v(0.0, depth * 1.3, r + bezel + 0.1),
                        v(r * 0.3, 0.0, 0.0),
                        v(0.0, 0.0, r * 0.4),
                        0.0,
                        180.0,
                        14,
                    ),
                    0.02,
                    8,
                ),
            );
            b.add(metal, rod(v(0.0, depth * 1.3, r), v(0.03, depth * 1.3, r * 1.35), 0.014, 6));
            b.add(black, cylinder(r * 0.75, 0.02, 28).turn_x(90.0).at(0.0, -0.005, 0.0));
            b.add(metal, ring(0.07, 0.014, 14, 6).turn_x(90.0).at(r * 0.4, -0.02, 0.0));
        }
        2 => {
            // Longcase clock: plinth, trunk with a window and pendulum, hood with the dial.
            let h = b.vary("case_height", 1.7, 2.1);
            let w = r * 1.35;
            let d = w * 0.6;
            b.add(wood, block(w * 1.25, d * 1.15, h * 0.2).at(0.0, 0.0, h * 0.1).tile(0.6));
            b.add(wood, block(w, d, h * 0.48).at(0.0, 0.0, h * 0.44).tile(0.6));
            b.add(wood, block(w * 1.3, d * 1.2, h * 0.28).at(0.0, 0.0, h * 0.8).tile(0.6));
            let bow: Vec<(f32, f32)> = (0..=12)
                .map(|i| std::f32::consts::PI * i as f32 / 12.0)
                .map(|a| (w * 0.68 * a.cos(), h * 0.07 * a.sin()))
                .collect();
            b.add(wood, prism_y(&bow, d * 1.25, 0.01).at(0.0, 0.0, h * 0.94).tile(0.6));
            b.add(black, cuboid(w * 0.66, 0.012, h * 0.38).at(0.0, d * 0.5, h * 0.44));
            let swing = b.range(-0.07, 0.07);
            b.add(metal, rod(v(0.0, d * 0.53, h * 0.62), v(swing, d * 0.53, h * 0.34), 0.012, 8));
            b.add(metal, cylinder(w * 0.17, 0.03, 22).turn_x(90.0).at(swing, d * 0.53, h * 0.32));
            for (i, x) in [-0.18, 0.0, 0.18].into_iter().enumerate() {
                b.add(
                    metal,
                    cylinder(w * 0.06, h * 0.1, 12).at(x * w, d * 0.51, h * (0.4 + 0.05 * i as f32)),
                );
            }
            b.add(metal, ring(w * 0.5, 0.025, 32, 8).turn_x(90.0).at(0.0, d * 0.6, h * 0.8));
            face(b, ground, w * 0.5, 0.0, d * 0.6, h * 0.8);
            b.add(rim, cuboid(w * 0.8, 0.015, h * 0.12).at(0.0, d * 0.58, h * 0.1));
            b.add(
                metal,
                lathe(&curve2(&[(0.0, 0.0), (0.06, 0.02), (0.03, 0.1), (0.0, 0.16)], 3), 12).at(
                    0.0,
                    0.0,
                    h * 1.0,
                ),
            );
        }
        3 => {
            // Mantel clock: arched or stepped case.
            let w = r * b.vary("breadth", 2.4, 3.4);
            let d = depth * 2.2;
            let top = r * 1.3;
            let outline: Vec<(f32, f32)> = if b.chance("napoleon", 0.5) {
                curve2(
                    &[
                        (w * 0.5, -r),
                        (w * 0.45, -r * 0.6),
                        (r * 1.25, -r * 0.2),
                        (r * 0.95, r * 0.7),
                        (0.0, top),
                        (-r * 0.95, r * 0.7),
                        (-r * 1.25, -r * 0.2),
                        (-w * 0.45, -r * 0.6),
                        (-w * 0.5, -r),
                    ],
                    5,
                )
            } else {
                vec![
                    (w * 0.45, -r),
                    (w * 0.45, r * 0.4),
                    (r * 0.9, r * 0.7),
                    (0.0, top),
                    (-r * 0.9, r * 0.7),
                    (-w * 0.45, r * 0.4),
                    (-w * 0.45, -r),
                ]
            };
            b.add(wood, prism_y(&outline, d, 0.02).tile(0.5));
            b.add(wood, block(w * 1.1, d * 1.25, r * 0.2).at(0.0, 0.0, -r * 1.05).tile(0.5));
            b.add(metal, ring(r * 0.82, 0.035, 34, 8).turn_x(90.0).at(0.0, d * 0.5, 0.05));
            face(b, ground, r * 0.8, 0.0, d * 0.5, 0.05);
            b.add(rim, cuboid(w * 0.8, d * 1.27, r * 0.08).at(0.0, 0.0, -r * 1.05));
            b.add(black, block(r * 1.1, 0.02, r * 1.1).at(0.0, -d * 0.5, 0.0));
            b.add(metal, knob(0.04).at(w * 0.3, d * 0.5, -r * 0.7));
        }
        _ => {
            // Digital clock with seven-segment figures.
            let (w, h) = (r * 3.0, r * b.vary("box_height", 1.0, 1.5));
            let d = r * 1.1;
            b.add(rim, prism_x(&[(-d * 0.5, 0.0), (d * 0.5, 0.0), (d * 0.42, h), (-d * 0.5, h)], w, 0.03));
            let tilt = (d * 0.08).atan2(h).to_degrees();
            let on = |s: Solid| s.turn_x(tilt).at(0.0, d * 0.465, h * 0.5);
            b.add(black, on(block(w * 0.9, 0.02, h * 0.72)));
            let hue = b.one_of(&[0.0, 0.33, 0.55, 0.1]);
            let glow = b.glowing(Colour::hsv(hue, 0.85, 1.0));
            const SEGMENTS: [u8; 10] = [0x7e, 0x30, 0x6d, 0x79, 0x33, 0x5b, 0x5f, 0x70, 0x7f, 0x7b];
            let (hour, minute) = (b.count("hour", 0, 23), b.count("minute", 0, 59));
            let (u, t) = (w * 0.065, h * 0.24);
            for (i, digit) in [hour / 10, hour % 10, minute / 10, minute % 10].into_iter().enumerate() {
                let x = w * [0.31, 0.13, -0.13, -0.31][i];
                let bits = SEGMENTS[digit];
                let flat = cuboid(u * 1.6, 0.012, u * 0.42);
                let tall = cuboid(u * 0.42, 0.012, t * 0.85);
                // Segments a to g; +x is to the left in the image.
                let places = [
                    (0.0, t),
                    (-u, t * 0.5),
                    (-u, -t * 0.5),
                    (0.0, -t),
                    (u, -t * 0.5),
                    (u, t * 0.5),
                    (0.0, 0.0),
                ];
                for (k, (dx, dz)) in places.into_iter().enumerate() {
                    if bits >> (6 - k) & 1 == 1 {
                        let s = if k % 3 == 0 { flat.clone() } else { tall.clone() };
                        b.add(glow, on(s.at(x + dx, 0.012, dz)));
                    }
                }
            }
            b.add(
                glow,
                on(cuboid(u * 0.4, 0.012, u * 0.4)
                    .at(0.0, 0.012, t * 0.4)
                    .with(cuboid(u * 0.4, 0.012, u * 0.4).at(0.0, 0.012, -t * 0.4))),
            );
            for i in 0..b.count("buttons", 3, 5) {
                b.add(
                    metal,
                    rounded(w * 0.1, d * 0.2, 0.05, 0.015).at(w * (0.36 - 0.15 * i as f32), 0.0, h + 0.01),
                );
            }
            b.add(black, rounded(w * 0.5, d * 0.1, h * 0.4, 0.02).at(0.0, -d * 0.5, h * 0.5));
            b.add(black, cylinder(0.05, 0.04, 12).at(w * 0.4, d * 0.3, -0.01).both_x());
        }
    }
}
