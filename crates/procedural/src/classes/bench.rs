//! Benches: park bench, backless bench, stone bench, storage bench.

use super::*;

/// A bench facing +y.
pub fn bench(b: &mut Builder) {
    let kind = b.kind("kind", 4);
    let length = b.vary("length", 1.2, 1.9);
    let depth = b.vary("depth", 0.38, 0.5);
    let seat = b.vary("seat_height", 0.38, 0.48);
    let back = b.vary("back_height", 0.32, 0.48);
    let slats = b.count("slats", 3, 6);
    let wood = if b.chance("painted", 0.35) { b.lacquer() } else { b.wood() };
    let dark = if b.chance("iron", 0.5) { b.black() } else { b.steel() };
    let (hx, hy) = (length * 0.5, depth * 0.5);
    let accent = b.fabric();
    let side = if b.chance("left_handed", 0.5) { 1.0 } else { -1.0 };
    let plank = depth / slats as f32;
    let rows = |b: &mut Builder, paint: Paint| {
        for i in 0..slats {
            let y = -hy + plank * (i as f32 + 0.5);
            b.add(paint, rounded(length, plank * 0.82, 0.035, 0.01).at(0.0, y, seat).tile(0.5));
        }
    };
    match kind {
        0 => {
            // Park bench: curved cast sides with arms, slatted seat and back.
            rows(b, wood);
            let lean = b.vary("lean", 0.08, 0.2);
            let n = b.count("back_slats", 2, 4);
            for i in 0..n {
                let t = (i as f32 + 0.8) / n as f32;
                let slat = rounded(length, 0.03, back / n as f32 * 0.72, 0.01).turn_x(lean * 80.0);
                b.add(wood, slat.at(0.0, -hy - 0.02 - lean * t, seat + back * t).tile(0.5));
            }
            let x = hx - b.range(0.08, 0.2);
            let back_leg = curve(
                &[
                    v(x, -hy - 0.1, 0.0),
                    v(x, -hy * 0.75, seat * 0.6),
                    v(x, -hy - 0.02, seat),
                    v(x, -hy - 0.04 - lean, seat + back),
                ],
                5,
            );
            b.add(dark, sweep(&rounded_rectangle(0.05, 0.05, 0.01, 2), &back_leg, glam::Vec3::X).both_x());
            let front_leg =
                curve(&[v(x, hy + 0.03, 0.0), v(x, hy * 0.85, seat * 0.5), v(x, hy * 0.95, seat)], 5);
            b.add(dark, sweep(&rounded_rectangle(0.05, 0.05, 0.01, 2), &front_leg, glam::Vec3::X).both_x());
            b.add(dark, rod(v(x, -hy, seat - 0.03), v(x, hy, seat - 0.03), 0.02, 8).both_x());
            let arm = curve(
                &[
                    v(x, -hy - 0.06, seat + 0.24),
                    v(x, 0.0, seat + 0.26),
                    v(x, hy * 0.9, seat + 0.22),
                    v(x, hy * 1.0, seat + 0.12),
                    v(x, hy * 0.85, seat),
                ],
                5,
            );
            b.add(dark, tube(&arm, 0.022, 8).both_x());
        }
        1 => {
            // Backless, with trestle legs and a cushion on one half.
            rows(b, wood);
            let x = hx * b.range(0.6, 0.85);
            if b.chance("crossed_legs", 0.5) {
                for s in [-1.0, 1.0] {
                    b.add(dark, rod(v(x, -s * hy, 0.0), v(x, s * hy * 0.8, seat - 0.02), 0.028, 8).both_x());
                }
            } else {
                b.add(dark, block(0.06, depth * 0.8, seat - 0.02).at(x, 0.0, (seat - 0.02) * 0.5).both_x());
            }
            b.add(dark, rod(v(-x, 0.0, seat * 0.4), v(x, 0.0, seat * 0.4), 0.02, 8));
            b.add(
                accent,
                cushion(length * 0.46, depth * 1.02, 0.09).at(side * length * 0.24, 0.0, seat + 0.055),
            );
            b.add(
                accent,
                rounded(length * 0.3, 0.02, 0.16, 0.008).at(side * length * 0.24, hy + 0.015, seat - 0.05),
            );
        }
        2 => {
            // Stone ends and slab, a planter at one end.
            let t = crate::texture::blotches(&mut b.random, Colour::grey(0.62), Colour::grey(0.5), 30);
            let stone = b.textured(t, 0.9, 0.2);
            b.add(stone, rounded(length, depth, 0.1, 0.025).at(0.0, 0.0, seat).tile(0.4));
            b.add(
                stone,
                tapered((0.16, depth * 0.8), (0.24, depth * 0.9), seat - 0.05)
                    .at(hx * 0.7, 0.0, (seat - 0.05) * 0.5)
                    .both_x()
                    .tile(0.4),
            );
            let box_paint = b.lacquer();
            let x = side * (hx + 0.16);
            b.add(
                box_paint,
                tapered((0.26, depth * 0.9), (0.32, depth), seat + 0.12).at(x, 0.0, (seat + 0.12) * 0.5),
            );
            let green = b.paint(Colour::hsv(0.32, 0.7, 0.4), 0.8, 0.1);
            for i in 0..b.count("bushes", 3, 5) {
                let y = (i as f32 / 4.0 - 0.5) * depth * 0.8;
                b.add(
                    green,
                    ellipsoid(0.14, 0.12, 0.14, 12)
                        .map(|p| p * (1.0 + 0.1 * (p.x * 50.0).sin() * (p.z * 47.0).cos()))
                        .at(x, y, seat + 0.2),
                );
            }
            b.add(
                wood,
                rounded(length * 0.9, 0.05, back * 0.4, 0.015).at(0.0, -hy, seat + back * 0.75).tile(0.5),
            );
            b.add(wood, block(0.06, 0.05, back * 0.9).at(hx * 0.6, -hy - 0.02, seat + back * 0.45).both_x());
        }
        _ => {
            // Hall bench: a chest with drawers, back panel, pillow.
            b.add(wood, block(length, depth, seat * 0.72).at(0.0, 0.0, seat * 0.55).tile(0.6));
            b.add(
                wood,
                leg(v(hx - 0.06, hy - 0.06, seat * 0.2), v(hx - 0.05, hy - 0.05, 0.0), 0.035, 0.025, 8)
                    .both_x()
                    .both_y(),
            );
            let (front, knobs) = (b.lacquer(), b.metal());
            let n = b.count("drawers", 2, 3);
            for i in 0..n {
                let x = ((i as f32 + 0.5) / n as f32 - 0.5) * length * 0.96;
                b.add(front, block(length * 0.9 / n as f32, 0.02, seat * 0.5).at(x, hy, seat * 0.56));
                b.add(knobs, knob(0.025).at(x, hy + 0.01, seat * 0.6));
            }
            b.add(accent, cushion(length * 0.98, depth * 0.98, 0.1).at(0.0, 0.0, seat * 0.91 + 0.05));
            b.add(wood, frame(length, 0.04, back, 0.06).at(0.0, -hy, seat * 0.9 + back * 0.5));
            for i in 1..slats + 3 {
                let x = ((i as f32) / (slats + 3) as f32 - 0.5) * length;
                b.add(wood, rod(v(x, -hy, seat * 0.9), v(x, -hy, seat * 0.9 + back), 0.014, 8));
            }
            b.add(
                wood,
                block(0.05, depth, 0.05)
                    .at(hx, 0.0, seat + back * 0.45)
                    .both_x()
                    .with(block(0.05, 0.05, back * 0.6).at(hx, hy - 0.03, seat + back * 0.15).both_x()),
            );
        }
    }
    if kind != 1 {
        let pillow = b.accent();
        let size = b.range(0.26, 0.34);
        b.add(
            pillow,
            cushion(size, size, 0.13).turn_x(-62.0).at(-side * hx * 0.62, -hy * 0.35, seat + size * 0.5),
        );
        let bag = b.leather();
        b.add(bag, rounded(0.24, 0.13, 0.2, 0.04).at(side * hx * 0.45, 0.02, seat + 0.13));
        let strap =
            arc(v(side * hx * 0.45, 0.02, seat + 0.2), v(0.09, 0.0, 0.0), v(0.0, 0.0, 0.13), 0.0, 180.0, 10);
        b.add(bag, tube(&strap, 0.012, 6));
    }
}
