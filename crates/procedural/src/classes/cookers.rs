//! Cooking appliances: stove, microwave. Doors towards +y.

use super::appliances::{back, case};
use super::*;

/// A stove: hob with burners or plates, oven door with window, dials, pots on top.
pub fn stove(b: &mut Builder) {
    let w = b.vary("width", 0.56, 0.86);
    let d = b.vary("depth", 0.54, 0.64);
    let h = b.vary("height", 0.8, 0.92);
    let c = case(b);
    let (hx, hy) = (w * 0.5, d * 0.5);
    b.add(c.body, block(w, d, h - 0.06).at(0.0, 0.0, h * 0.5 + 0.03));
    b.add(c.black, block(w * 0.95, d * 0.9, 0.06).at(0.0, 0.0, 0.03));
    let gas = b.chance("gas", 0.5);
    let top = if gas { c.steel } else { c.black };
    b.add(top, block(w * 1.01, d * 1.01, 0.025).at(0.0, 0.0, h + 0.01));
    let columns = if w > 0.75 { 3 } else { 2 };
    let hot = b.paint(Colour([0.85, 0.25, 0.08]), 0.4, 0.3);
    for i in 0..columns {
        for (j, y) in [-0.24, 0.22].into_iter().enumerate() {
            let x = ((i as f32 + 0.5) / columns as f32 - 0.5) * w * 0.94;
            let r = w / columns as f32 * if (i + j) % 2 == 0 { 0.36 } else { 0.28 };
            let z = h + 0.025;
            if gas {
                b.add(c.black, cylinder(r * 0.35, 0.02, 16).at(x, y * d, z + 0.01));
                for k in 0..4 {
                    b.add(
                        c.black,
                        cuboid(r * 0.8, 0.012, 0.018)
                            .at(r * 0.55, 0.0, 0.03)
                            .turn_z(90.0 * k as f32 + 45.0)
                            .at(x, y * d, z),
                    );
                }
            } else {
                for k in 1..4 {
                    let paint = if i == 0 && j == 0 { hot } else { c.steel };
                    b.add(paint, ring(r * k as f32 / 3.3, 0.006, 24, 6).at(x, y * d, z));
                }
            }
        }
    }
    // Dials along the front, oven door with window and handle, drawer below.
    let n = columns * 2 + 1;
    let band = h * 0.11;
    b.add(c.panel, block(w * 0.99, 0.02, band).at(0.0, hy, h - band * 0.6));
    let mark = b.accent();
    for i in 0..n {
        let angle = b.range(-60.0, 60.0);
        let x = ((i as f32 + 0.5) / n as f32 - 0.5) * w * 0.92;
        dial(b, c.steel, mark, band * 0.27, v(x, hy + 0.01, h - band * 0.6), angle);
    }
    let drawer = h * b.vary("drawer", 0.14, 0.22);
    let door_h = h - band * 1.2 - drawer - 0.1;
    let door_z = 0.07 + drawer + door_h * 0.5;
    let open = b.chance("open", 0.25);
    let angle = if open { 70.0 } else { 0.0 };
    let hang = |s: Solid| s.turn_x(-angle).at(0.0, hy, door_z - door_h * 0.5);
    b.add(c.black, cuboid(w * 0.92, 0.01, door_h).at(0.0, hy + 0.001, door_z));
    b.add(c.body, hang(block(w * 0.95, 0.035, door_h * 0.98).at(0.0, 0.018, door_h * 0.5)));
    let glass = b.glass();
    b.add(glass, hang(rounded(w * 0.62, 0.012, door_h * 0.5, 0.005).at(0.0, 0.037, door_h * 0.45)));
    b.add(c.steel, hang(bar_handle(w * 0.78, 0.026).at(0.0, 0.036, door_h * 0.86)));
    b.add(c.body, block(w * 0.95, 0.03, drawer * 0.9).at(0.0, hy + 0.008, 0.07 + drawer * 0.45));
    b.add(c.steel, bar_handle(w * 0.3, 0.018).at(0.0, hy + 0.022, 0.07 + drawer * 0.55));
    if b.chance("splashback", 0.6) {
        let rise = b.vary("splash_height", 0.1, 0.22);
        b.add(c.body, block(w, 0.05, rise).at(0.0, -hy + 0.025, h + rise * 0.5));
        b.add(c.black, block(w * 0.3, 0.02, rise * 0.45).at(hx * 0.3, -hy + 0.05, h + rise * 0.6));
    }
    // A pot or a pan on one of the burners.
    let pot = b.accent();
    let x = (0.5 - 0.5 / columns as f32) * w * 0.94;
    let r = w * 0.15;
    if b.chance("pan", 0.4) {
        b.add(
            c.black,
            lathe(
                &[
                    (0.0, 0.0),
                    (r * 1.0, 0.0),
                    (r * 1.2, 0.06),
                    (r * 1.15, 0.06),
                    (r * 0.95, 0.012),
                    (0.0, 0.012),
                ],
                26,
            )
            .at(x, 0.22 * d, h + 0.05),
        );
        b.add(
            pot,
            tube_tapered(
                &[v(x - r, 0.22 * d, h + 0.1), v(x - r * 2.6, 0.34 * d, h + 0.14)],
                |t| 0.016 + 0.008 * t,
                8,
            ),
        );
    } else {
        b.add(
            pot,
            lathe(
                &[
                    (0.0, 0.0),
                    (r, 0.0),
                    (r, 0.15),
                    (r * 1.04, 0.16),
                    (r * 0.9, 0.18),
                    (0.03, 0.2),
                    (0.0, 0.2),
                ],
                26,
            )
            .at(x, -0.24 * d, h + 0.05),
        );
        b.add(c.black, ellipsoid(0.03, 0.03, 0.025, 10).at(x, -0.24 * d, h + 0.27));
        b.add(
            c.black,
            rounded(0.06, 0.04, 0.02, 0.008)
                .at(x + r + 0.02, -0.24 * d, h + 0.17)
                .with(rounded(0.06, 0.04, 0.02, 0.008).at(x - r - 0.02, -0.24 * d, h + 0.17)),
        );
    }
    back(b, w, d, h);
}

/// A microwave oven; window and door on one side, keypad or dials on the other.
pub fn microwave(b: &mut Builder) {
    let w = b.vary("width", 0.85, 1.05);
    let d = b.vary("depth", 0.55, 0.72);
    let h = b.vary("height", 0.45, 0.58);
    let c = case(b);
    let share = b.vary("panel_share", 0.2, 0.3);
    let (hx, hy) = (w * 0.5, d * 0.5);
    b.add(c.body, rounded(w, d, h, 0.02).at(0.0, 0.0, h * 0.5 + 0.03));
    b.add(c.black, cylinder(0.03, 0.03, 12).at(hx - 0.08, hy - 0.08, 0.015).both_x().both_y());
    // Seen from the front the door is on the left (+x), the panel on the right.
    let door_w = w * (1.0 - share) - 0.03;
    let door_x = hx - door_w * 0.5 - 0.01;
    let z = h * 0.5 + 0.03;
    let glass = b.glass();
    let lit = b.paint(Colour([0.95, 0.75, 0.35]), 0.5, 0.3);
    let open = b.chance("open", 0.3);
    let angle = if open { b.vary("door_angle", 40.0, 95.0) } else { 0.0 };
    let hinge = |s: Solid| s.at(-hx, 0.0, 0.0).turn_z(angle).at(hx, hy, 0.0);
    let style = b.chance("black_door", 0.6);
    let door_paint = if style { c.black } else { c.body };
    b.add(door_paint, hinge(block(door_w, 0.04, h * 0.92).at(door_x, 0.02, z)));
    b.add(glass, hinge(rounded(door_w * 0.74, 0.012, h * 0.62, 0.005).at(door_x, 0.042, z)));
    for i in 0..9 {
        b.add(
            c.steel,
            hinge(cuboid(door_w * 0.66, 0.004, 0.006).at(door_x, 0.05, z + h * 0.5 * (i as f32 / 8.0 - 0.5))),
        );
    }
    if b.chance("handle", 0.7) {
        b.add(c.steel, hinge(bar_handle(h * 0.7, 0.022).turn_y(90.0).at(door_x - door_w * 0.44, 0.042, z)));
    }
    if open {
        b.add(lit, cuboid(door_w * 0.86, 0.012, h * 0.75).at(door_x, hy + 0.001, z));
        b.add(c.steel, cylinder(door_w * 0.3, 0.015, 26).at(door_x, hy - 0.08, z - h * 0.3));
        let cup = b.accent();
        b.add(cup, cone(0.07, 0.09, 0.14, 18).at(door_x, hy - 0.02, z - h * 0.2));
    }
    let panel_x = -hx + w * share * 0.5;
    b.add(c.panel, block(w * share * 0.94, 0.03, h * 0.92).at(panel_x, hy + 0.005, z));
    let glow = b.glowing(Colour([0.2, 0.95, 0.5]));
    b.add(glow, cuboid(w * share * 0.7, 0.01, h * 0.12).at(panel_x, hy + 0.022, z + h * 0.33));
    let key = b.white();
    let mark = b.accent();
    if b.chance("dials", 0.4) {
        for (i, dz) in [0.1, -0.22].into_iter().enumerate() {
            let angle = b.range(0.0, 180.0);
            dial(
                b,
                c.steel,
                mark,
                w * share * 0.28,
                v(panel_x, hy + 0.02, z + h * dz),
                angle + 40.0 * i as f32,
            );
        }
    } else {
        let rows = b.count("key_rows", 3, 5);
        let button = block(w * share * 0.2, 0.014, h * 0.07);
        b.add(key, array(&button, 3, rows, w * share * 0.26, h * 0.1).at(panel_x, hy + 0.025, z - h * 0.02));
        b.add(mark, block(w * share * 0.7, 0.016, h * 0.1).at(panel_x, hy + 0.024, z - h * 0.36));
    }
    // Vents on the -x side, label behind, something on top.
    for i in 0..7 {
        b.add(c.black, cuboid(0.006, d * 0.3, 0.012).at(-hx, -d * 0.1, z - 0.09 + 0.03 * i as f32));
    }
    let grey = b.paint(Colour([0.42, 0.43, 0.46]), 0.8, 0.2);
    b.add(grey, block(w * 0.9, 0.02, h * 0.8).at(0.0, -hy, z));
    let cloth = b.fabric();
    b.add(cloth, block(w * 0.4, d * 0.7, 0.012).at(hx * 0.45, 0.0, h + 0.034));
}
