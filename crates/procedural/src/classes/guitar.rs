//! Guitars: acoustic and electric. Standing upright, strings towards +y.

use super::*;

/// A guitar.
pub fn guitar(b: &mut Builder) {
    let electric = b.chance("electric", 0.5);
    let body_h = b.vary("body_height", 0.48, 0.58);
    let lower = body_h * b.vary("lower_bout", 0.36, 0.44);
    let waist = lower * b.vary("waist", 0.55, 0.78);
    let upper = lower * b.vary("upper_bout", 0.68, 0.88);
    let neck_l = b.vary("neck", 0.42, 0.55);
    let depth = if electric { b.vary("depth", 0.045, 0.065) } else { b.vary("depth", 0.1, 0.15) };
    let horn = if electric { b.vary("horn", 0.06, 0.16) } else { 0.0 };
    let cutaway = electric || b.chance("cutaway", 0.4);
    // Outline of the body from the bottom counter-clockwise (x to the right half first).
    let top = body_h;
    let right = [
        (0.0, 0.0),
        (lower * 0.75, 0.02),
        (lower, body_h * 0.25),
        (waist, body_h * 0.58),
        (upper, body_h * 0.8),
    ];
    let mut points: Vec<(f32, f32)> = right.to_vec();
    if electric {
        points.extend([(upper * 0.92, top + horn), (upper * 0.55, top + horn * 0.4), (0.05, top - 0.05)]);
    } else {
        points.extend([(upper * 0.7, top - 0.015), (0.05, top)]);
    }
    let mut left: Vec<(f32, f32)> = right.iter().skip(1).map(|&(x, z)| (-x, z)).collect();
    if electric {
        left.extend([(-upper * 0.92, top + horn * 0.35), (-upper * 0.6, top - 0.01), (-0.05, top - 0.05)]);
    } else if cutaway {
        left[3] = (-upper * 0.98, body_h * 0.76);
        left.extend([(-upper * 0.9, top * 0.93), (-upper * 0.5, top * 0.84), (-0.05, top * 0.88)]);
    } else {
        left.extend([(-upper * 0.7, top - 0.015), (-0.05, top)]);
    }
    let mut outline = curve2(&points, 5);
    left.push((0.0, 0.0));
    left.rotate_right(1);
    let mut other = curve2(&left, 5);
    other.remove(0);
    outline.extend(other.into_iter().rev());
    let colour = if electric {
        b.vivid()
    } else {
        Colour::hsv(b.range(0.03, 0.1), b.range(0.45, 0.8), b.range(0.55, 0.9))
    };
    let front = if electric || b.chance("painted", 0.3) {
        b.paint(colour, 0.2, 0.6)
    } else {
        let t = crate::texture::wood(&mut b.random, colour.times(0.75), colour);
        b.textured(t, 0.3, 0.5)
    };
    let side_paint = b.paint(colour.times(0.42), 0.3, 0.5);
    let (steel, black, white) = (b.steel(), b.black(), b.white());
    let dark_wood = b.paint(Colour([0.2, 0.11, 0.07]), 0.5, 0.3);
    b.add(side_paint, prism_y(&outline, depth, depth * 0.12));
    let face = depth * 0.5;
    let inner: Vec<(f32, f32)> =
        outline.iter().map(|&(x, z)| (x * 0.96, body_h * 0.45 + (z - body_h * 0.45) * 0.97)).collect();
    b.add(front, prism_y(&inner, 0.01, 0.002).at(0.0, face, 0.0).tile(0.35));
    let guard_paint = if b.chance("white_guard", 0.5) { white } else { black };
    // Neck, fingerboard, frets, head and tuners.
    let neck_z = if electric { body_h * 0.8 } else { body_h * 0.9 };
    let head_z = neck_z + neck_l;
    let nw = 0.03;
    let neck = tube_tapered(
        &[v(0.0, face - 0.005, neck_z - 0.08), v(0.0, face - 0.005, head_z)],
        |t| nw * (1.0 - 0.2 * t),
        12,
    );
    let maple = b.paint(Colour([0.8, 0.6, 0.35]), 0.4, 0.4);
    b.add(if electric { maple } else { side_paint }, neck);
    let board_low = neck_z - body_h * 0.14;
    let board = cuboid(nw * 2.0, 0.016, head_z - board_low).at(0.0, face + 0.018, (head_z + board_low) * 0.5);
    b.add(dark_wood, board);
    let frets = b.count("frets", 10, 18);
    for i in 0..frets {
        let z = head_z
            - (head_z - board_low) * (1.0 - 0.94_f32.powi(i as i32 + 1))
                / (1.0 - 0.94_f32.powi(frets as i32 + 1));
        b.add(steel, cuboid(nw * 1.9, 0.006, 0.005).at(0.0, face + 0.028, z));
        if [2, 4, 6, 8, 11].contains(&i) {
            b.add(white, cylinder(0.008, 0.004, 8).turn_x(90.0).at(0.0, face + 0.027, z + 0.012));
        }
    }
    let one_sided = electric && b.chance("inline_tuners", 0.6);
    let head_h = b.vary("head", 0.12, 0.16);
    let head: Vec<(f32, f32)> = if one_sided {
        vec![
            (nw * 0.9, 0.0),
            (nw * 1.2, head_h * 0.2),
            (nw * 1.0, head_h),
            (-nw * 0.4, head_h * 1.05),
            (-nw * 1.7, head_h * 0.6),
            (-nw * 1.2, 0.04),
            (-nw * 0.9, 0.0),
        ]
    } else {
        vec![
            (nw * 0.9, 0.0),
            (nw * 1.4, head_h * 0.25),
            (nw * 1.3, head_h),
            (0.0, head_h * 0.94),
            (-nw * 1.3, head_h),
            (-nw * 1.4, head_h * 0.25),
            (-nw * 0.9, 0.0),
        ]
    };
    b.add(
        if electric { front } else { dark_wood },
        prism_y(&head, 0.022, 0.004).turn_x(8.0).at(0.0, face, head_z),
    );
    for i in 0..6 {
        let (side, row) =
            if one_sided { (1.0, i as f32 / 6.0) } else { ([1.0, -1.0][i % 2], (i / 2) as f32 / 3.0) };
        let z = head_z + head_h * (0.25 + 0.7 * row);
        b.add(steel, rod(v(side * nw * 0.9, face - 0.02, z), v(side * nw * 2.3, face - 0.02, z), 0.006, 6));
        b.add(white, ellipsoid(0.014, 0.008, 0.018, 8).at(side * nw * 2.4, face - 0.02, z));
        b.add(steel, cylinder(0.007, 0.03, 8).turn_x(90.0).at(side * nw * 0.6, face + 0.01, z));
    }
    // Bridge, strings, sound hole or pickups.
    let bridge_z = body_h * b.vary("bridge", 0.2, 0.3);
    b.add(
        if electric { steel } else { dark_wood },
        block(lower * 0.5, 0.03, 0.035).at(0.0, face + 0.015, bridge_z),
    );
    for i in 0..6 {
        let t = i as f32 / 5.0 - 0.5;
        b.add(
            steel,
            rod(v(t * nw * 2.0, face + 0.034, bridge_z), v(t * nw * 1.5, face + 0.03, head_z), 0.0017, 4),
        );
    }
    let hole_z = body_h * 0.62;
    if electric {
        for i in 0..b.count("pickups", 2, 3) {
            let z = bridge_z + 0.05 + (neck_z - 0.1 - bridge_z) * i as f32 / 3.0;
            b.add(black, block(nw * 2.8, 0.02, 0.035).at(0.0, face + 0.012, z));
        }
        let guard: Vec<(f32, f32)> = [
            (-0.1, 0.9),
            (-0.72, 0.8),
            (-0.6, 0.55),
            (-0.75, 0.25),
            (-0.3, 0.18),
            (0.3, 0.3),
            (0.35, 0.7),
            (0.2, 0.9),
        ]
        .map(|(x, z)| (x * waist * 1.2, z * body_h))
        .to_vec();
        b.add(guard_paint, prism_y(&guard, 0.012, 0.002).at(0.0, face + 0.003, 0.0));
        for i in 0..b.count("knobs", 2, 4) {
            b.add(
                steel,
                knob(0.016).at(
                    -lower * (0.5 + 0.1 * i as f32),
                    face + 0.005,
                    body_h * (0.32 - 0.07 * i as f32),
                ),
            );
        }
    } else {
        let hole = body_h * 0.105;
        b.add(black, cylinder(hole, 0.006, 28).turn_x(90.0).at(0.0, face + 0.005, hole_z));
        b.add(white, ring(hole * 1.15, hole * 0.08, 28, 6).turn_x(90.0).at(0.0, face + 0.005, hole_z));
        let guard: Vec<(f32, f32)> = curve2(
            &[
                (-hole, hole_z),
                (-hole * 2.0, hole_z - hole * 0.4),
                (-hole * 2.4, hole_z - hole * 1.9),
                (-hole * 1.2, hole_z - hole * 2.2),
                (-hole * 0.5, hole_z - hole * 1.0),
            ],
            4,
        );
        b.add(guard_paint, prism_y(&guard, 0.006, 0.001).at(0.0, face + 0.004, 0.0));
        // The lighter back of the box.
        let back = b.paint(colour.mix(Colour::grey(0.9), 0.3), 0.4, 0.4);
        b.add(back, prism_y(&inner, 0.01, 0.002).at(0.0, -face, 0.0));
    }
    b.add(steel, ellipsoid(0.015, 0.015, 0.02, 10).at(0.0, 0.0, -0.012));
}
