//! Tables: dining, desk with pedestal, coffee table, round table; laid or in use, so that the sides differ.

use super::*;

/// A table.
pub fn table(b: &mut Builder) {
    let kind = b.kind("kind", 5);
    let (length, depth, height) = match kind {
        0 => (b.vary("length", 1.2, 1.8), b.vary("depth", 0.7, 0.95), b.vary("height", 0.68, 0.8)),
        1 => (b.vary("length", 1.2, 1.6), b.vary("depth", 0.6, 0.8), b.vary("height", 0.68, 0.8)),
        2 => (b.vary("length", 0.9, 1.3), b.vary("depth", 0.5, 0.75), b.vary("height", 0.35, 0.48)),
        3 => (b.vary("length", 0.8, 1.2), 0.0, b.vary("height", 0.6, 0.8)),
        _ => (b.vary("length", 0.9, 1.3), b.vary("depth", 0.35, 0.5), b.vary("height", 0.7, 0.85)),
    };
    let depth = if kind == 3 { length * b.vary("roundness", 0.8, 1.0) } else { depth };
    let thick = b.vary("thickness", 0.03, 0.06);
    let (dark, light) = b.wood_tones();
    let (top_paint, ground) = if b.chance("painted_top", 0.3) {
        let colour = if b.chance("white_top", 0.4) { Colour::grey(0.88) } else { b.vivid() };
        (b.paint(colour, 0.3, 0.5), colour)
    } else {
        let t = crate::texture::wood(&mut b.random, dark, light);
        (b.textured(t, 0.5, 0.35), dark.mix(light, 0.5))
    };
    let legs = if b.chance("metal_legs", 0.4) { b.steel() } else { b.wood() };
    let knobs = b.metal();
    let (hx, hy) = (length * 0.5, depth * 0.5);
    let round = kind == 3 || (kind == 2 && b.chance("oval", 0.3));
    let corner = b.range(0.01, 0.09);
    let outline = if round { oval(hx, hy, 40) } else { rounded_rectangle(length, depth, corner, 4) };
    b.add(top_paint, prism(&outline, thick, thick * 0.25).at(0.0, 0.0, height).tile(0.9));
    let top = height + thick * 0.5;
    let under = height - thick * 0.5;
    // Legs.
    let leg_kind = b.kind("legs", 4);
    let inset = b.range(0.05, 0.12);
    let (lx, ly) = if round { (hx * 0.62, hy * 0.62) } else { (hx - inset, hy - inset) };
    let r = b.vary("leg_radius", 0.022, 0.042);
    if round && leg_kind < 2 {
        let foot = hx.min(hy) * b.range(0.45, 0.6);
        b.add(
            legs,
            lathe(
                &[
                    (0.0, under),
                    (0.16, under),
                    (0.06, under - 0.06),
                    (0.045, under * 0.55),
                    (0.075, under * 0.4),
                    (0.05, 0.12),
                    (0.0, 0.12),
                ]
                .map(|(r, z)| (r, z)),
                24,
            )
            .flip(),
        );
        for k in 0..b.count("feet", 3, 4) {
            let path = curve(&[v(0.03, 0.0, 0.2), v(foot * 0.6, 0.0, 0.13), v(foot, 0.0, 0.02)], 5);
            b.add(legs, tube_tapered(&path, |t| 0.04 - 0.018 * t, 8).turn_z(k as f32 * 120.0 + 30.0));
        }
    } else {
        match leg_kind {
            0 => {
                let s = block(r * 2.0, r * 2.0, under).at(lx, ly, under * 0.5).both_x().both_y();
                b.add(legs, s.tile(0.6));
            }
            1 => {
                let splay = b.range(0.02, 0.1);
                b.add(
                    legs,
                    leg(v(lx, ly, under), v(lx + splay, ly + splay, 0.0), r * 1.2, r * 0.7, 14)
                        .both_x()
                        .both_y(),
                );
            }
            2 => {
                let beads = b.count("beads", 2, 4);
                b.add(legs, turned_leg(under, r * 1.4, beads).at(lx, ly, 0.0).both_x().both_y());
            }
            _ => {
                // Trestle ends with a stretcher.
                let end = block(r * 2.2, ly * 1.7, r * 2.0)
                    .at(lx, 0.0, r)
                    .with(block(r * 2.0, ly * 0.7, under).at(lx, 0.0, under * 0.5));
                b.add(
                    legs,
                    end.with(block(r * 2.2, ly * 1.7, r * 2.0).at(lx, 0.0, under - r)).both_x().tile(0.6),
                );
                b.add(legs, block(lx * 2.0, r * 1.4, r * 2.0).at(0.0, 0.0, under * 0.35).tile(0.6));
            }
        }
        if !round {
            let apron = b.range(0.06, 0.1);
            b.add(legs, block(lx * 2.0, 0.022, apron).at(0.0, ly, under - apron * 0.5).both_y().tile(0.6));
            b.add(legs, block(0.022, ly * 2.0, apron).at(lx, 0.0, under - apron * 0.5).both_x().tile(0.6));
        }
    }
    let front = b.lacquer();
    match kind {
        1 => {
            // Desk: a pedestal of drawers under one side and a screen panel at the back.
            let n = b.count("drawers", 2, 4);
            let (w, h) = (length * b.range(0.26, 0.36), under * 0.92);
            let x = hx - w * 0.5 - 0.04;
            b.add(legs, block(w, depth * 0.85, h).at(x, 0.0, under - h * 0.5).tile(0.6));
            for i in 0..n {
                let z = under - h * (i as f32 + 0.5) / n as f32;
                b.add(front, block(w * 0.92, 0.02, h / n as f32 * 0.86).at(x, depth * 0.43, z));
                b.add(knobs, bar_handle(w * 0.4, 0.014).at(x, depth * 0.44, z));
            }
            b.add(front, block(length * 0.6, 0.02, under * 0.5).at(-hx * 0.35, -ly, under * 0.72));
        }
        2 => {
            let z = height * b.range(0.25, 0.4);
            b.add(
                top_paint,
                prism(&outline, thick * 0.5, 0.004).scale(0.82, 0.82, 1.0).at(0.0, 0.0, z).tile(0.9),
            );
        }
        4 => {
            let n = b.count("drawers", 2, 3);
            for i in 0..n {
                let x = ((i as f32 + 0.5) / n as f32 - 0.5) * lx * 1.9;
                b.add(front, block(lx * 1.8 / n as f32, 0.03, 0.12).at(x, ly + 0.015, under - 0.06));
                b.add(knobs, knob(0.018).at(x, ly + 0.03, under - 0.06));
            }
            b.add(legs, block(lx * 2.0, ly * 2.0, 0.02).at(0.0, 0.0, height * 0.2).tile(0.6));
        }
        _ => {
            if !round && b.chance("front_drawer", 0.6) {
                b.add(front, block(lx * 0.9, 0.03, 0.07).at(lx * 0.3, ly + 0.015, under - 0.04));
                b.add(knobs, knob(0.018).at(lx * 0.3, ly + 0.03, under - 0.04));
            }
        }
    }
    // What lies on it: always to one side, in strong contrast with the top.
    let cloth_colour = b.contrast(ground);
    let accent_colour = b.vivid();
    let cloth = b.paint(cloth_colour, 0.9, 0.1);
    let accent = b.paint(accent_colour, 0.4, 0.5);
    let side = if b.chance("left_handed", 0.5) { 1.0 } else { -1.0 };
    let (mx, my) = (hx * if round { 0.62 } else { 0.9 }, hy * if round { 0.66 } else { 0.92 });
    match b.kind("laid", 3) {
        0 => {
            // A cloth over one end, hanging down at the front.
            let w = mx * 0.95;
            let x = side * (mx - w * 0.5);
            b.add(cloth, block(w, my + hy + 0.02, 0.012).at(x, (hy + 0.02 - my) * 0.5, top + 0.004));
            if !round {
                b.add(cloth, block(w, 0.012, height * 0.3).at(x, hy + 0.016, top - height * 0.14));
            }
            b.add(
                accent,
                lathe(&[(0.0, 0.0), (0.05, 0.0), (0.1, 0.06), (0.09, 0.06), (0.0, 0.02)], 20).at(
                    x,
                    -my * 0.3,
                    top + 0.01,
                ),
            );
        }
        1 => {
            // A desk mat with a book and a cup.
            let w = mx * 1.1;
            b.add(cloth, block(w, my * 1.5, 0.01).at(side * (mx - w * 0.5), my * 0.22, top + 0.004));
            b.add(
                accent,
                block(0.16, 0.22, 0.04).turn_z(side * 14.0).at(side * mx * 0.72, my * 0.1, top + 0.03),
            );
            b.add(cloth, cylinder(0.04, 0.1, 16).at(-side * mx * 0.6, -my * 0.5, top + 0.05));
        }
        _ => {
            // A runner along the length, off the middle, and a vase.
            b.add(cloth, block(mx * 2.0, my * 0.75, 0.01).at(0.0, my * 0.55, top + 0.004));
            let x = side * mx * 0.55;
            b.add(accent, block(mx * 0.7, my * 0.7, 0.02).at(x, -my * 0.45, top + 0.008));
            b.add(
                accent,
                lathe(
                    &curve2(
                        &[(0.0, 0.0), (0.04, 0.0), (0.07, 0.07), (0.03, 0.15), (0.045, 0.2), (0.0, 0.19)],
                        3,
                    ),
                    18,
                )
                .at(x, my * 0.4, top),
            );
        }
    }
}
