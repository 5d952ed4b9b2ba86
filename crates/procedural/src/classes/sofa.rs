//! Sofas: two and three seats, corner sofas with a chaise, chesterfields, settees on legs.

use super::*;

/// A sofa facing +y.
pub fn sofa(b: &mut Builder) {
    let seats = b.count("seats", 2, 4);
    let seat_w = b.vary("seat_width", 0.5, 0.66);
    let depth = b.vary("depth", 0.78, 0.95);
    let seat_h = b.vary("seat_height", 0.36, 0.46);
    let back_h = b.vary("back_height", 0.32, 0.5);
    let arm_w = b.vary("arm_width", 0.1, 0.24);
    let arm_h = b.vary("arm_height", 0.14, 0.28);
    let body = if b.chance("leather", 0.4) { b.leather() } else { b.fabric() };
    let seat_paint = if b.chance("two_tone", 0.35) { b.fabric() } else { body };
    let feet = if b.chance("metal_feet", 0.4) { b.steel() } else { b.wood() };
    let inner = seats as f32 * seat_w;
    let width = inner + 2.0 * arm_w;
    let feet_h = b.vary("feet", 0.04, 0.16);
    let back_t = b.range(0.14, 0.22);
    let base_h = (seat_h - feet_h) * 0.55;
    b.add(body, rounded(width, depth, base_h, 0.03).at(0.0, 0.0, feet_h + base_h * 0.5).tile(0.4));
    let back = rounded(width, back_t, seat_h + back_h - feet_h, 0.06);
    b.add(body, back.at(0.0, -depth * 0.5 + back_t * 0.5, (seat_h + back_h + feet_h) * 0.5).tile(0.4));
    let arm_z = seat_h + arm_h;
    match b.kind("arms", 3) {
        0 => {
            let arm = rounded(arm_w, depth, arm_z - feet_h, 0.05).at(
                width * 0.5 - arm_w * 0.5,
                0.0,
                (arm_z + feet_h) * 0.5,
            );
            b.add(body, arm.both_x().tile(0.4));
        }
        1 => {
            // Rolled arms.
            let arm = rounded(arm_w * 0.7, depth, arm_z - feet_h - 0.04, 0.03).at(
                width * 0.5 - arm_w * 0.5,
                0.0,
                (arm_z + feet_h) * 0.5 - 0.02,
            );
            b.add(body, arm.both_x().tile(0.4));
            let roll = cylinder(arm_w * 0.62, depth * 1.01, 24).turn_x(90.0).at(
                width * 0.5 - arm_w * 0.45,
                0.0,
                arm_z - arm_w * 0.3,
            );
            b.add(body, roll.both_x());
            let button = b.accent();
            b.add(
                button,
                cylinder(arm_w * 0.2, 0.02, 14)
                    .turn_x(90.0)
                    .at(width * 0.5 - arm_w * 0.45, depth * 0.51, arm_z - arm_w * 0.3)
                    .both_x(),
            );
        }
        _ => {
            // Sloping slim arms.
            let side = [(-0.5, 0.0), (0.5, 0.0), (0.5, 0.75), (-0.5, 1.15)]
                .map(|(y, z)| (y * depth, feet_h + z * (arm_z - feet_h)));
            b.add(
                body,
                prism_x(&side, arm_w * 0.8, 0.03).at(width * 0.5 - arm_w * 0.4, 0.0, 0.0).both_x().tile(0.4),
            );
        }
    }
    // Cushions.
    let seat_d = depth - back_t;
    let cushion_h = seat_h - feet_h - base_h + 0.05;
    for i in 0..seats {
        let x = (i as f32 - (seats as f32 - 1.0) * 0.5) * seat_w;
        let pad = cushion(seat_w * 0.99, seat_d * 1.02, cushion_h * 1.15).at(
            x,
            back_t * 0.5 + 0.01,
            seat_h - cushion_h * 0.5,
        );
        b.add(seat_paint, pad);
        let lean = b.range(8.0, 18.0);
        let pad = cushion(seat_w * 0.97, back_h * 1.05, 0.2).turn_x(-90.0 + lean);
        b.add(seat_paint, pad.at(x, -depth * 0.5 + back_t + 0.07, seat_h + back_h * 0.48));
    }
    // A chaise at one end makes a corner sofa.
    let side = if b.chance("left_handed", 0.5) { 1.0 } else { -1.0 };
    let chaise = b.chance("chaise", 0.3);
    if chaise {
        let long = depth * b.range(0.6, 0.85);
        let x = side * (inner * 0.5 - seat_w * 0.5);
        b.add(
            body,
            rounded(seat_w, long, base_h, 0.03)
                .at(x, depth * 0.5 + long * 0.5 - 0.03, feet_h + base_h * 0.5)
                .tile(0.4),
        );
        b.add(
            seat_paint,
            cushion(seat_w * 0.98, long, cushion_h * 1.15).at(
                x,
                depth * 0.5 + long * 0.5 - 0.03,
                seat_h - cushion_h * 0.5,
            ),
        );
        let foot = cylinder(0.03, feet_h, 10).at(x, depth * 0.5 + long - 0.1, feet_h * 0.5);
        b.add(feet, foot);
    }
    let foot = cone(0.022, 0.035, feet_h, 12).at(width * 0.5 - 0.08, depth * 0.5 - 0.08, feet_h * 0.5);
    b.add(feet, foot.both_x().both_y());
    // Throw pillows and a blanket at one end.
    for i in 0..b.count("pillows", 1, 3) {
        let paint = b.fabric();
        let size = b.range(0.3, 0.4);
        let x = -side * (inner * 0.5 - 0.22 - 0.26 * i as f32);
        let tilt = b.range(-14.0, 14.0);
        let pad = cushion(size, size, 0.16).turn_z(tilt).turn_x(-68.0);
        b.add(paint, pad.at(x, -depth * 0.5 + back_t + 0.26, seat_h + size * 0.42));
    }
    if b.chance("blanket", 0.5) {
        let paint = b.fabric();
        let w = seat_w * 0.55;
        let z = seat_h + back_h;
        let x = side * (inner * 0.5 - seat_w * 0.4);
        let drape = sheet(2, 14, 0.02, |u, t| {
            let s = t * 1.1;
            let (y, z) = if s < 0.45 {
                (-depth * 0.5 - 0.02, z - 0.45 + s)
            } else if s < 0.68 {
                (-depth * 0.5 + s - 0.45, z + 0.02)
            } else {
                (-depth * 0.5 + 0.25 + (s - 0.68) * 0.35, z - (s - 0.68))
            };
            v(x - (u - 0.5) * w, y, z)
        });
        b.add(paint, drape);
    }
}
