//! Washing appliances (dishwasher, washer), and what all appliances share. Doors towards +y.

use super::*;

/// The case of an appliance and the paints its parts share.
pub(super) struct Case {
    pub light: bool,
    pub body: Paint,
    pub panel: Paint,
    pub steel: Paint,
    pub black: Paint,
}

/// White, steel, black or coloured enamel with a contrasting control panel.
pub(super) fn case(b: &mut Builder) -> Case {
    let colour = match b.kind("finish", 5) {
        0 | 1 => Colour::grey(0.92),
        2 => Colour([0.62, 0.63, 0.65]),
        3 => Colour::grey(0.14),
        _ => b.vivid(),
    };
    let body = b.paint(colour, 0.3, 0.5);
    let panel_colour = if b.chance("dark_panel", 0.5) && colour.brightness() > 0.3 {
        Colour::grey(0.1)
    } else {
        colour.mix(Colour::grey(0.6), 0.6)
    };
    let panel = b.paint(panel_colour, 0.3, 0.5);
    Case { light: colour.brightness() > 0.4, body, panel, steel: b.steel(), black: b.black() }
}

/// A lit display and a row of buttons on a panel facing +y, from `x` leftwards in the image.
pub(super) fn controls(b: &mut Builder, x: f32, y: f32, z: f32, size: f32) {
    let hue = b.one_of(&[0.0, 0.33, 0.55, 0.1]);
    let glow = b.glowing(Colour::hsv(hue, 0.8, 0.95));
    let button = b.white();
    b.add(glow, cuboid(size * 1.6, 0.008, size * 0.7).at(x, y, z));
    for i in 0..b.count("buttons", 3, 6) {
        b.add(
            button,
            cylinder(size * 0.22, 0.014, 12).turn_x(90.0).at(x - size * (1.3 + 0.6 * i as f32), y, z),
        );
    }
}

/// Boards and pipes on the back, so that it does not look like the front.
pub(super) fn back(b: &mut Builder, w: f32, d: f32, h: f32) {
    let grey = b.paint(Colour([0.42, 0.43, 0.46]), 0.8, 0.2);
    let hose = b.black();
    b.add(grey, block(w * 0.86, 0.02, h * 0.8).at(0.0, -d * 0.5, h * 0.5));
    let pipe = curve(
        &[
            v(w * 0.25, -d * 0.5 - 0.02, h * 0.3),
            v(w * 0.3, -d * 0.5 - 0.05, h * 0.15),
            v(w * 0.1, -d * 0.5 - 0.06, h * 0.05),
            v(-w * 0.25, -d * 0.5 - 0.03, h * 0.12),
        ],
        6,
    );
    b.add(hose, tube(&pipe, 0.018, 8));
}

/// A dishwasher; the door may hang open with a rack of dishes.
pub fn dishwasher(b: &mut Builder) {
    let w = b.vary("width", 0.44, 0.62);
    let d = b.vary("depth", 0.52, 0.62);
    let h = b.vary("height", 0.78, 0.9);
    let c = case(b);
    let foot = b.vary("plinth", 0.06, 0.12);
    let panel_h = b.vary("panel", 0.09, 0.15);
    let (hx, hy) = (w * 0.5, d * 0.5);
    let open = b.chance("open", 0.5);
    let inside = b.paint(Colour([0.5, 0.53, 0.56]), 0.3, 0.7);
    let door_h = h - foot - panel_h - 0.03;
    // Carcass: sides, top, back and floor around the tub.
    b.add(c.body, block(0.03, d, h - foot).at(hx - 0.015, 0.0, (h + foot) * 0.5).both_x());
    b.add(c.body, block(w, d, 0.03).at(0.0, 0.0, h - 0.015));
    b.add(c.body, block(w, d * 0.98, 0.03).at(0.0, 0.0, foot + 0.015));
    b.add(inside, cuboid(w - 0.06, 0.02, h - foot).at(0.0, -hy + 0.03, (h + foot) * 0.5));
    let worktop = b.wood();
    if b.chance("worktop", 0.4) {
        b.add(worktop, block(w * 1.06, d * 1.06, 0.04).at(0.0, 0.0, h + 0.02).tile(0.5));
    }
    b.add(c.black, block(w * 0.94, d * 0.88, foot).at(0.0, -0.03, foot * 0.5));
    let door_z = foot + 0.015;
    let angle = if open { b.vary("door_angle", 62.0, 88.0) } else { 0.0 };
    let hang = |s: Solid| s.turn_x(-angle).at(0.0, hy, door_z);
    let full = door_h + panel_h;
    b.add(c.body, hang(block(w * 0.97, 0.04, full).at(0.0, 0.02, full * 0.5)));
    // The front board: wood, dark or coloured, unlike the sides.
    let board = match b.kind("front", 3) {
        0 => b.wood(),
        1 if c.light => b.paint(Colour([0.16, 0.17, 0.2]), 0.3, 0.6),
        _ => b.accent(),
    };
    b.add(board, hang(block(w * 0.93, 0.012, door_h * 0.94).at(0.0, 0.04, door_h * 0.5).tile(0.6)));
    b.add(c.panel, hang(block(w * 0.97, 0.012, panel_h).at(0.0, 0.042, door_h + panel_h * 0.5)));
    b.add(inside, hang(cuboid(w * 0.86, 0.012, full * 0.9).at(0.0, -0.002, full * 0.5)));
    b.add(c.steel, hang(bar_handle(w * 0.7, 0.024).at(0.0, 0.045, door_h - 0.03)));
    let badge = b.accent();
    b.add(badge, hang(cuboid(w * 0.2, 0.012, 0.03).at(hx * 0.7, 0.048, door_h * 0.12)));
    if open {
        let rack = b.paint(Colour([0.75, 0.78, 0.82]), 0.4, 0.5);
        let (china, cup) = (b.white(), b.accent());
        let y0 = hy - 0.06 + b.vary("rack_out", 0.0, 0.25);
        for (k, z) in [foot + 0.12, foot + 0.12 + door_h * 0.48].into_iter().enumerate() {
            let y = if k == 0 { y0 } else { hy - 0.1 };
            b.add(rack, frame(w * 0.84, 0.02, d * 0.8, 0.02).turn_x(90.0).at(0.0, y - d * 0.4, z + 0.05));
            for i in 0..6 {
                let x = w * 0.84 * (i as f32 / 5.0 - 0.5);
                b.add(rack, rod(v(x, y, z), v(x, y - d * 0.78, z), 0.006, 5));
            }
            for i in 0..b.range(4.0, 8.0) as usize {
                let fy = y - 0.05 - 0.065 * i as f32;
                if k == 0 {
                    b.add(china, cylinder(w * 0.2, 0.014, 22).turn_x(80.0).at(w * 0.15, fy, z + w * 0.2));
                } else {
                    b.add(
                        cup,
                        cone(0.045, 0.035, 0.08, 14).at(w * (0.3 - 0.2 * (i % 4) as f32), fy, z + 0.05),
                    );
                }
            }
        }
        controls(b, hx * 0.5, hy + 0.06, h - 0.02, 0.04);
    } else {
        b.add(c.black, cuboid(w * 0.96, 0.01, 0.012).at(0.0, hy + 0.04, door_z + door_h));
        controls(b, hx * 0.55, hy + 0.05, door_z + door_h + panel_h * 0.5, panel_h * 0.4);
        b.add(c.panel, block(w * 0.97, 0.02, 0.02).at(0.0, hy + 0.03, h - 0.012));
    }
    back(b, w, d, h);
}

/// A washing machine: front or top loader.
pub fn washer(b: &mut Builder) {
    let top_loader = b.chance("top_loader", 0.3);
    let w = b.vary("width", 0.56, 0.68);
    let d = b.vary("depth", 0.52, 0.66);
    let h = b.vary("height", 0.8, 0.95);
    let c = case(b);
    let (hx, hy) = (w * 0.5, d * 0.5);
    b.add(c.body, rounded(w, d, h - 0.03, 0.025).at(0.0, 0.0, h * 0.5 + 0.015));
    b.add(c.black, cylinder(0.035, 0.04, 12).at(hx - 0.07, hy - 0.07, 0.02).both_x().both_y());
    let drum = b.paint(Colour([0.55, 0.57, 0.6]), 0.25, 0.8);
    let glass = b.glass();
    let laundry: Vec<Paint> = (0..3).map(|_| b.accent()).collect();
    if top_loader {
        let rise = b.vary("console", 0.12, 0.2);
        let console = prism_x(&[(-hy, h), (-hy + 0.2, h), (-hy + 0.1, h + rise), (-hy, h + rise)], w, 0.012);
        b.add(c.panel, console);
        let lean = 0.1_f32.atan2(rise).to_degrees();
        let mark = b.accent();
        for i in 0..b.count("dials", 2, 3) {
            let p = v(hx * (0.6 - 0.55 * i as f32), -hy + 0.155, h + rise * 0.45);
            b.add(c.steel, cone(0.045, 0.038, 0.035, 18).turn_x(-90.0 + lean).at(p.x, p.y, p.z));
            b.add(mark, cuboid(0.012, 0.035, 0.02).turn_x(-90.0 + lean).at(p.x, p.y + 0.018, p.z + 0.015));
        }
        let hole = lathe(&[(w * 0.34, 0.0), (w * 0.31, -0.16), (0.0, -0.17)], 30);
        b.add(drum, hole.at(0.0, 0.05, h + 0.006));
        b.add(c.panel, cuboid(w * 0.86, d * 0.62, 0.01).at(0.0, 0.05, h - 0.002));
        b.add(drum, cylinder(w * 0.33, 0.012, 30).at(0.0, 0.05, h + 0.004));
        b.add(c.black, cylinder(w * 0.3, 0.012, 30).at(0.0, 0.05, h + 0.007));
        let angle = b.vary("lid_angle", 20.0, 100.0);
        b.add(
            c.body,
            block(w * 0.86, d * 0.64, 0.025).at(0.0, d * 0.32, 0.012).turn_x(angle).at(
                0.0,
                0.05 - d * 0.31,
                h + 0.012,
            ),
        );
        for (i, paint) in laundry.iter().enumerate() {
            b.add(
                *paint,
                ellipsoid(0.09, 0.08, 0.05, 14).at(
                    0.1 - 0.1 * i as f32,
                    0.05 + 0.05 * (i % 2) as f32,
                    h + 0.01,
                ),
            );
        }
        b.add(c.steel, cuboid(w * 0.2, 0.01, 0.04).at(hx * 0.5, hy + 0.001, h * 0.85));
        b.add(c.panel, block(w * 0.88, 0.012, h * 0.6).at(0.0, hy, h * 0.42));
    } else {
        let panel_h = b.vary("panel", 0.12, 0.17);
        b.add(c.panel, block(w * 0.98, 0.02, panel_h).at(0.0, hy, h - panel_h * 0.6));
        let z = h * b.vary("door_height", 0.42, 0.5);
        let r = w * b.vary("door", 0.26, 0.34);
        let ring_paint = if b.chance("chrome_ring", 0.5) { c.steel } else { c.panel };
        b.add(
            ring_paint,
            lathe(&[(r * 0.75, 0.02), (r * 1.02, 0.0), (r, 0.045), (r * 0.8, 0.06), (r * 0.72, 0.03)], 36)
                .turn_x(-90.0)
                .at(0.0, hy, z),
        );
        b.add(
            glass,
            lathe(&curve2(&[(r * 0.76, 0.035), (r * 0.6, 0.055), (r * 0.3, 0.06), (0.0, 0.055)], 3), 30)
                .turn_x(-90.0)
                .at(0.0, hy, z),
        );
        for (i, paint) in laundry.iter().enumerate() {
            let a = i as f32 * 1.9 + 3.5;
            b.add(
                *paint,
                ellipsoid(r * 0.28, 0.02, r * 0.22, 12).at(
                    r * 0.35 * a.cos(),
                    hy + 0.055,
                    z + r * 0.3 * a.sin() - r * 0.1,
                ),
            );
        }
        b.add(c.black, rounded(0.03, 0.04, r * 0.4, 0.01).at(-r * 0.9, hy + 0.06, z));
        let mark = b.accent();
        let angle = b.range(0.0, 300.0);
        dial(b, c.steel, mark, panel_h * 0.36, v(-hx * 0.05, hy + 0.01, h - panel_h * 0.6), angle);
        b.add(c.body, block(w * 0.3, 0.03, panel_h * 0.7).at(hx * 0.62, hy + 0.006, h - panel_h * 0.6));
        controls(b, -hx * 0.4, hy + 0.014, h - panel_h * 0.6, panel_h * 0.25);
        b.add(c.panel, block(w * 0.2, 0.012, 0.07).at(hx * 0.6, hy, 0.1));
        let basket = b.accent();
        if b.chance("detergent", 0.5) {
            b.add(basket, rounded(0.14, 0.1, 0.2, 0.02).at(hx * 0.55, -hy * 0.2, h + 0.1));
            b.add(c.black, cylinder(0.025, 0.05, 12).at(hx * 0.55, -hy * 0.2, h + 0.22));
        } else {
            b.add(basket, block(w * 0.4, d * 0.6, 0.05).at(hx * 0.4, 0.0, h + 0.02));
        }
    }
    back(b, w, d, h);
}
