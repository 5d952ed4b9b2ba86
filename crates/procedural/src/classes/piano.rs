//! Pianos: upright and grand. Keys towards +y.

use super::*;

/// White and black keys of a keyboard of width `w` whose front edge is at `(y, z)`.
fn keys(b: &mut Builder, w: f32, y: f32, z: f32, depth: f32, whites: usize) {
    let (white, black) = (b.white(), b.black());
    let pitch = w / whites as f32;
    for i in 0..whites {
        let x = w * 0.5 - pitch * (i as f32 + 0.5);
        b.add(white, cuboid(pitch * 0.92, depth, 0.03).at(x, y - depth * 0.5, z));
        if [0, 1, 3, 4, 5].contains(&(i % 7)) && i + 1 < whites {
            b.add(
                black,
                cuboid(pitch * 0.55, depth * 0.62, 0.04).at(x - pitch * 0.5, y - depth * 0.69, z + 0.022),
            );
        }
    }
}

/// A stool in front of the piano.
fn stool(b: &mut Builder, wood: Paint, y: f32, x: f32) {
    let soft = b.leather();
    let w = b.vary("stool", 0.4, 0.62);
    b.add(soft, cushion(w, 0.32, 0.1).at(x, y, 0.5));
    b.add(wood, block(w * 0.96, 0.3, 0.05).at(x, y, 0.44));
    let l = leg(v(w * 0.42, 0.12, 0.43), v(w * 0.44, 0.13, 0.0), 0.026, 0.018, 8).both_x().both_y();
    b.add(wood, l.at(x, y, 0.0));
}

/// A piano.
pub fn piano(b: &mut Builder) {
    let grand = b.chance("grand", 0.5);
    let w = b.vary("width", 1.3, 1.5);
    let whites = b.count("white_keys", 28, 42);
    let finish = b.kind("finish", 4);
    let case = match finish {
        0 => b.paint(Colour::grey(0.07), 0.12, 0.7),
        1 => b.paint(Colour::grey(0.92), 0.2, 0.6),
        _ => b.wood(),
    };
    let (brass, felt) = (b.metal(), b.paint(Colour([0.5, 0.06, 0.08]), 0.9, 0.1));
    let gold = b.paint(Colour([0.83, 0.65, 0.3]), 0.35, 0.7);
    let paper = b.white();
    let accent = b.accent();
    let hx = w * 0.5;
    let key_z = b.vary("key_height", 0.66, 0.74);
    if grand {
        let long = b.vary("length", 1.3, 1.9);
        let front = 0.0;
        // Seen from above: straight bass side at +x, curved treble side at -x.
        let side: Vec<(f32, f32)> = curve2(
            &[
                (-hx, front - 0.3),
                (-hx * 0.98, -long * 0.4),
                (-hx * 0.45, -long * 0.66),
                (-hx * 0.05, -long * 0.92),
                (hx * 0.5, -long),
                (hx * 0.92, -long * 0.9),
            ],
            6,
        );
        let mut outline: Vec<(f32, f32)> = vec![(hx, front), (-hx, front)];
        outline.extend(side);
        outline.push((hx, -long * 0.75));
        let points = polygon(&outline);
        let depth = 0.28;
        let mid = key_z + 0.02;
        // Body, sound board and strings under the lid.
        b.add(case, prism(&points, depth, 0.015).at(0.0, 0.0, mid));
        let inner: Vec<glam::Vec2> = points
            .iter()
            .map(|p| glam::Vec2::new(p.x * 0.93, -long * 0.5 + (p.y + long * 0.5) * 0.92))
            .collect();
        b.add(gold, prism(&inner, 0.02, 0.0).at(0.0, -0.12, mid + depth * 0.5 - 0.002));
        for i in 0..16 {
            let x = hx * 0.8 - w * 0.8 * i as f32 / 15.0;
            let reach = long * (0.85 - 0.4 * (i as f32 / 15.0).powf(0.8));
            b.add(
                brass,
                rod(
                    v(x, -0.42, mid + depth * 0.5 + 0.02),
                    v(x + 0.08, -reach, mid + depth * 0.5 + 0.02),
                    0.005,
                    4,
                ),
            );
        }
        // Keyboard recess: fall board, key slip, cheeks.
        let kw = w * 0.88;
        b.add(felt, cuboid(kw, 0.3, 0.02).at(0.0, 0.06, key_z - 0.02));
        b.add(case, block(w, 0.26, 0.12).at(0.0, 0.1, key_z - 0.09));
        b.add(case, block(w * 0.06, 0.24, 0.14).at(hx * 0.94, 0.11, key_z + 0.03).both_x());
        keys(b, kw, 0.21, key_z + 0.0, 0.2, whites);
        b.add(case, block(kw, 0.03, 0.14).at(0.0, 0.015, key_z + 0.08));
        // Lid hinged on the bass side, propped open.
        let angle = b.vary("lid_angle", 20.0, 42.0);
        let lid: Vec<glam::Vec2> =
            points.iter().map(|p| glam::Vec2::new(p.x - hx, (p.y).min(-0.36))).collect();
        b.add(case, prism(&lid, 0.03, 0.008).turn_y(angle).at(hx, 0.0, mid + depth * 0.5 + 0.02));
        let reach = w * 0.86;
        let a = angle.to_radians();
        b.add(
            brass,
            rod(
                v(hx - reach, -0.5, mid + depth * 0.5),
                v(hx - reach * a.cos(), -0.5, mid + depth * 0.5 + reach * a.sin()),
                0.014,
                8,
            ),
        );
        let front_lid = block(w, 0.34, 0.03).at(0.0, -0.2, mid + depth * 0.5 + 0.03);
        b.add(case, front_lid);
        // Music desk with a sheet.
        b.add(case, block(w * 0.5, 0.02, 0.22).turn_x(18.0).at(0.0, -0.12, mid + depth * 0.5 + 0.15));
        b.add(paper, cuboid(0.34, 0.012, 0.24).turn_x(18.0).at(0.06, -0.1, mid + depth * 0.5 + 0.17));
        // Legs and pedals.
        let leg_h = mid - depth * 0.5;
        let beads = b.count("leg_beads", 1, 3);
        for (x, y) in [(hx * 0.86, 0.0), (-hx * 0.86, -0.1), (hx * 0.45, -long * 0.85)] {
            b.add(case, turned_leg(leg_h, 0.07, beads).at(x, y, 0.0));
            b.add(brass, cylinder(0.035, 0.03, 12).turn_y(90.0).at(x, y, 0.03));
        }
        b.add(case, block(0.2, 0.05, leg_h * 0.8).at(0.0, -0.2, leg_h * 0.5));
        for x in [-0.07, 0.0, 0.07] {
            b.add(brass, rounded(0.035, 0.16, 0.02, 0.008).at(x, -0.1, 0.07));
        }
        let place = b.range(-0.15, 0.15);
        stool(b, case, 0.55, place);
    } else {
        let h = b.vary("height", 1.05, 1.3);
        let d = b.vary("depth", 0.36, 0.46);
        let back_d = d * 0.85;
        b.add(case, block(w, back_d, h).at(0.0, -back_d * 0.5, h * 0.5).tile(0.7));
        b.add(case, block(w * 1.03, back_d * 1.1, 0.035).at(0.0, -back_d * 0.48, h + 0.01).tile(0.7));
        let shelf = 0.3;
        b.add(case, block(w, shelf, 0.1).at(0.0, shelf * 0.5, key_z - 0.07).tile(0.7));
        b.add(case, block(0.06, shelf, 0.16).at(hx - 0.03, shelf * 0.5, key_z + 0.03).both_x());
        let kw = w * 0.9;
        b.add(felt, cuboid(kw, 0.28, 0.015).at(0.0, 0.14, key_z - 0.012));
        keys(b, kw, 0.27, key_z + 0.01, 0.2, whites);
        let lid = b.vary("fall_angle", 70.0, 105.0);
        b.add(
            case,
            block(kw, 0.24, 0.02).at(0.0, 0.12, 0.0).turn_x(lid).at(0.0, 0.03, key_z + 0.05).tile(0.7),
        );
        // Panels, music desk, candle holders, pedals, legs.
        let panel = b.lacquer();
        let upper = h - key_z - 0.2;
        b.add(
            if finish == 3 { panel } else { felt },
            block(w * 0.82, 0.014, upper * 0.5).at(0.0, 0.004, h - upper * 0.32),
        );
        b.add(
            case,
            block(w * 0.44, 0.02, upper * 0.6)
                .turn_x(14.0)
                .at(0.0, 0.05, key_z + 0.2 + upper * 0.35)
                .tile(0.7),
        );
        b.add(
            paper,
            cuboid(0.2, 0.012, upper * 0.7).turn_x(14.0).at(0.12, 0.066, key_z + 0.22 + upper * 0.38).with(
                cuboid(0.2, 0.012, upper * 0.7).turn_x(14.0).at(-0.1, 0.066, key_z + 0.22 + upper * 0.38),
            ),
        );
        b.add(case, block(w * 0.9, 0.02, key_z * 0.66).at(0.0, 0.006, key_z * 0.46).tile(0.7));
        b.add(
            if finish == 3 { panel } else { case },
            block(w * 0.7, 0.014, key_z * 0.42).at(0.0, 0.02, key_z * 0.48),
        );
        let beads = b.count("leg_beads", 2, 4);
        b.add(case, turned_leg(key_z - 0.12, 0.045, beads).at(hx - 0.07, shelf - 0.06, 0.0).both_x());
        b.add(case, block(0.08, shelf, 0.06).at(hx - 0.07, shelf * 0.5, 0.03).both_x());
        for x in [-0.08, 0.0, 0.08] {
            b.add(brass, rounded(0.04, 0.18, 0.02, 0.008).at(x, 0.08, 0.07));
        }
        let raw = b.paint(Colour([0.62, 0.48, 0.3]), 0.9, 0.1);
        b.add(raw, cuboid(w * 0.96, 0.01, h * 0.92).at(0.0, -back_d - 0.002, h * 0.5));
        for i in 0..5 {
            let x = w * (i as f32 / 4.0 - 0.5) * 0.85;
            b.add(case, block(0.06, 0.04, h * 0.92).at(x, -back_d - 0.015, h * 0.5));
        }
        // On top: a metronome, a vase or a stack of scores, to one side.
        if b.chance("metronome", 0.5) {
            b.add(accent, tapered((0.13, 0.13), (0.05, 0.05), 0.26).at(hx * 0.6, -back_d * 0.5, h + 0.16));
            b.add(
                brass,
                rod(
                    v(hx * 0.6, -back_d * 0.5 + 0.06, h + 0.05),
                    v(hx * 0.6 - 0.06, -back_d * 0.5 + 0.05, h + 0.3),
                    0.008,
                    6,
                ),
            );
        } else {
            b.add(accent, block(0.3, 0.24, 0.1).turn_z(8.0).at(hx * 0.55, -back_d * 0.5, h + 0.08));
        }
        let place = b.range(-0.15, 0.15);
        stool(b, case, 0.62, place);
    }
}
