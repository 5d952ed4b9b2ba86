//! Chairs: slatted, panelled, shell and upholstered backs on four legs, a star base, a sled or a pedestal.

use super::*;

/// A chair. The sitter looks towards +y.
pub fn chair(b: &mut Builder) {
    let back_kind = b.kind("back", 6);
    let leg_kind = b.kind("legs", 5);
    let width = b.vary("width", 0.42, 0.56);
    let depth = b.vary("depth", 0.40, 0.52);
    let seat_z = b.vary("seat_height", 0.40, 0.52);
    let back_h = b.vary("back_height", 0.34, 0.62);
    let lean = b.vary("lean", 0.04, 0.14);
    let thick = b.vary("seat_thickness", 0.03, 0.07);
    let main = match b.kind("material", 4) {
        0 | 1 => b.wood(),
        2 => b.lacquer(),
        _ => b.plastic(),
    };
    let legs = if b.chance("metal_legs", 0.4) || leg_kind >= 2 { b.steel() } else { main };
    let soft = if b.chance("leather", 0.4) { b.leather() } else { b.fabric() };
    let padded = back_kind == 3 || b.chance("padded_seat", 0.5);
    let (hx, hy) = (width * 0.5, depth * 0.5);
    // Seat.
    if back_kind == 4 {
        // One-piece shell: seat and back in one curved sheet.
        let profile = curve2(
            &[
                (hy, -0.025),
                (hy * 0.5, 0.0),
                (-hy * 0.35, -0.005),
                (-hy * 0.82, 0.06),
                (-hy - lean * 0.35, back_h * 0.45),
                (-hy - lean, back_h),
            ],
            6,
        );
        let last = (profile.len() - 1) as f32;
        let shell = sheet(14, 30, 0.02, |u, t| {
            let x = 2.0 * u - 1.0;
            let k = ((t * last) as usize).min(profile.len() - 2);
            let f = t * last - k as f32;
            let (y, z) = (
                profile[k].0 + (profile[k + 1].0 - profile[k].0) * f,
                profile[k].1 + (profile[k + 1].1 - profile[k].1) * f,
            );
            // The sides curl up along the seat and forwards along the back.
            let curl = 0.07 * x * x;
            let narrow = 1.0 - 0.28 * (t - 0.6).max(0.0) - 0.5 * (0.1 - t).max(0.0);
            v(-x * hx * narrow, y + curl * t, seat_z + z + curl * (1.0 - t))
        });
        b.add(main, shell);
        b.add(soft, cushion(width * 0.8, depth * 0.75, 0.06).at(0.0, hy * 0.12, seat_z + 0.045));
    } else {
        b.add(main, rounded(width, depth, thick, thick * 0.4).at(0.0, 0.0, seat_z).tile(0.5));
        if padded {
            let pad = cushion(width * 0.94, depth * 0.92, 0.09);
            b.add(soft, pad.at(0.0, hy * 0.06, seat_z + thick * 0.5 + 0.02));
        }
    }
    // Back: posts follow the lean.
    let back_y = -hy + 0.025;
    let slope = |p: glam::Vec3| v(p.x, p.y - lean * ((p.z - seat_z) / back_h).max(0.0).powf(1.3), p.z);
    let top = seat_z + back_h;
    if back_kind < 3 || back_kind == 5 {
        let r = b.range(0.016, 0.024);
        let post: Vec<_> = line(v(hx - r, back_y, seat_z - 0.02), v(hx - r * 1.4, back_y, top), 8);
        b.add(main, tube(&post, r, 10).map(slope).both_x());
        let rail_h = b.range(0.05, 0.1);
        let crown = b.range(0.0, 0.05);
        let rail = sheet(12, 3, 0.028, |u, w| {
            let x = 2.0 * u - 1.0;
            v(
                -x * hx * 1.03,
                back_y - 0.02 * (1.0 - x * x),
                top - rail_h + rail_h * w * (1.0 + crown / rail_h * (1.0 - x * x)),
            )
        });
        b.add(main, rail.map(slope).tile(0.4));
        match back_kind {
            0 => {
                let n = b.count("slats", 3, 8);
                for i in 0..n {
                    let x = (i as f32 + 0.5) / n as f32 * 2.0 - 1.0;
                    let slat = rounded(width * 0.5 / n as f32, 0.018, back_h - rail_h, 0.006).at(
                        x * (hx - 0.03),
                        back_y,
                        seat_z + (back_h - rail_h) * 0.5,
                    );
                    b.add(main, slat.map(slope));
                }
            }
            1 => {
                let n = b.count("rungs", 2, 4);
                for i in 0..n {
                    let z = seat_z + back_h * (0.22 + 0.6 * i as f32 / n as f32);
                    let rung = sheet(10, 2, 0.02, |u, w| {
                        let x = 2.0 * u - 1.0;
                        v(-x * (hx - 0.02), back_y - 0.015 * (1.0 - x * x), z + back_h * 0.3 / n as f32 * w)
                    });
                    b.add(main, rung.map(slope));
                }
            }
            2 => {
                let splat: Vec<(f32, f32)> = [(0.3, 0.0), (0.2, 0.2), (0.34, 0.45), (0.18, 0.7), (0.34, 1.0)]
                    .iter()
                    .map(|&(x, z)| (x * width * 0.9, seat_z + z * (back_h - rail_h)))
                    .collect();
                let right = curve2(&splat, 4);
                let mut outline = right.clone();
                outline.extend(right.iter().rev().map(|&(x, z)| (-x, z)));
                b.add(main, prism_y(&outline, 0.018, 0.004).at(0.0, back_y, 0.0).map(slope).tile(0.4));
            }
            _ => {
                let panel =
                    rounded(width - 0.05, 0.02, back_h * 0.6, 0.008).at(0.0, back_y, seat_z + back_h * 0.52);
                b.add(main, panel.map(slope).tile(0.4));
                let pad = cushion(width * 0.8, back_h * 0.5, 0.06).turn_x(-90.0).at(
                    0.0,
                    back_y + 0.02,
                    seat_z + back_h * 0.52,
                );
                b.add(soft, pad.map(slope));
            }
        }
    } else if back_kind == 3 {
        let pad = cushion(width, back_h, 0.13).turn_x(-90.0).at(0.0, back_y, seat_z + back_h * 0.52);
        b.add(soft, pad.map(slope));
        let board =
            rounded(width * 0.96, 0.03, back_h * 0.95, 0.01).at(0.0, back_y - 0.06, seat_z + back_h * 0.5);
        b.add(main, board.map(slope));
    }
    // Arms.
    if b.chance("arms", 0.4) {
        let h = b.range(0.17, 0.24);
        let path = curve(
            &[
                v(hx + 0.01, -hy + 0.03, seat_z + h + 0.02),
                v(hx + 0.025, 0.0, seat_z + h + 0.01),
                v(hx + 0.015, hy * 0.75, seat_z + h),
            ],
            5,
        );
        b.add(main, sweep(&rounded_rectangle(0.045, 0.024, 0.01, 2), &path, glam::Vec3::Z).both_x());
        b.add(
            legs,
            rod(v(hx + 0.005, hy * 0.6, seat_z - 0.02), v(hx + 0.015, hy * 0.66, seat_z + h), 0.014, 8)
                .both_x(),
        );
        b.add(
            legs,
            rod(v(hx - 0.01, -hy + 0.05, seat_z), v(hx + 0.01, -hy + 0.04, seat_z + h + 0.02), 0.014, 8)
                .both_x(),
        );
    }
    // Legs.
    let r = b.range(0.015, 0.026);
    let under = seat_z - thick * 0.4;
    match leg_kind {
        0 | 1 => {
            let splay = if leg_kind == 1 { b.vary("splay", 0.03, 0.1) } else { 0.0 };
            let sides = if b.chance("square_legs", 0.5) { 4 } else { 12 };
            for sy in [-1.0, 1.0] {
                let front = leg(
                    v(hx - 0.035, sy * (hy - 0.035), under),
                    v(hx - 0.03 + splay, sy * (hy - 0.03 + splay), 0.0),
                    r * 1.3,
                    r * 0.8,
                    sides,
                );
                b.add(legs, front.both_x());
            }
            if b.chance("stretchers", 0.6) {
                let z = seat_z * b.range(0.25, 0.5);
                b.add(
                    legs,
                    rod(
                        v(hx - 0.03 + splay * 0.5, -hy + 0.03, z),
                        v(hx - 0.03 + splay * 0.5, hy - 0.03, z),
                        r * 0.6,
                        8,
                    )
                    .both_x(),
                );
                b.add(legs, rod(v(-hx + 0.03, 0.0, z), v(hx - 0.03, 0.0, z), r * 0.6, 8));
            }
        }
        2 => {
            // Office star base with castors.
            let n = b.count("star_arms", 4, 6);
            let black = b.black();
            b.add(legs, cone(0.028, 0.022, under - 0.06, 16).at(0.0, 0.0, (under + 0.06) * 0.5));
            b.add(black, cylinder(0.04, (under - 0.06) * 0.45, 16).at(0.0, 0.0, 0.06 + (under - 0.06) * 0.3));
            for k in 0..n {
                let angle = 360.0 * k as f32 / n as f32 + 90.0;
                let arm =
                    tube_tapered(&[v(0.0, 0.0, 0.09), v(hx * 1.15, 0.0, 0.055)], |t| 0.028 - 0.012 * t, 8);
                b.add(legs, arm.turn_z(angle));
                b.add(black, cylinder(0.032, 0.03, 12).turn_x(90.0).at(hx * 1.15, 0.0, 0.032).turn_z(angle));
            }
        }
        3 => {
            // Sled or cantilever of bent tube.
            let front = if b.chance("cantilever", 0.5) { hy } else { -hy };
            let path = curve(
                &[
                    v(hx - 0.02, front * 0.85, under),
                    v(hx - 0.02, front, under * 0.6),
                    v(hx - 0.02, front * 0.98, 0.03),
                    v(hx - 0.02, 0.0, 0.015),
                    v(hx - 0.02, -front * 0.98, 0.015),
                ],
                6,
            );
            b.add(legs, tube(&path, r * 0.8, 10).both_x());
            b.add(
                legs,
                rod(v(-hx + 0.02, -front * 0.98, 0.015), v(hx - 0.02, -front * 0.98, 0.015), r * 0.8, 10),
            );
            b.add(
                legs,
                rod(v(-hx + 0.02, front * 0.85, under), v(hx - 0.02, front * 0.85, under), r * 0.8, 10),
            );
            if front < 0.0 {
                b.add(
                    legs,
                    rod(v(hx - 0.02, hy * 0.8, 0.015), v(hx - 0.02, hy * 0.8, under), r * 0.8, 10).both_x(),
                );
            }
        }
        _ => {
            let base = b.range(0.16, 0.22);
            b.add(
                legs,
                lathe(
                    &[
                        (0.0, 0.0),
                        (base, 0.0),
                        (base, 0.015),
                        (0.04, 0.05),
                        (0.028, 0.12),
                        (0.028, under - 0.03),
                        (0.1, under),
                        (0.0, under),
                    ],
                    24,
                ),
            );
        }
    }
}
