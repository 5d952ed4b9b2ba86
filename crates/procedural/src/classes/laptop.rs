//! Laptops, opened at different angles, with keyboard, touch pad and a lit screen.

use super::*;
use crate::texture;

/// A laptop; the user sits at +y.
pub fn laptop(b: &mut Builder) {
    let width = b.vary("width", 0.9, 1.1);
    let depth = b.vary("depth", 0.6, 0.74);
    let thick = b.vary("thickness", 0.025, 0.06);
    let open = b.vary("opening", 95.0, 132.0);
    let bezel = b.vary("bezel", 0.02, 0.06);
    let case_colour = match b.kind("case", 4) {
        0 => Colour::grey(0.78),
        1 => Colour::grey(0.16),
        2 => b.vivid(),
        _ => Colour::grey(0.93),
    };
    let case = b.paint(case_colour, 0.35, 0.6);
    let lid_colour = if b.chance("coloured_lid", 0.4) { b.vivid() } else { case_colour.times(0.8) };
    let lid_paint = b.paint(lid_colour, 0.35, 0.5);
    let key_colour = if case_colour.brightness() > 0.4 { Colour::grey(0.1) } else { Colour::grey(0.75) };
    let keys = b.paint(key_colour, 0.6, 0.3);
    let (black, steel) = (b.black(), b.steel());
    let kind = b.kind("screen", 4) as u64;
    let t = texture::screen(&mut b.random, kind);
    let screen = b.textured(t, 0.2, 0.5);
    let (hx, hy) = (width * 0.5, depth * 0.5);
    let base = prism(&rounded_rectangle(width, depth, 0.03, 3), thick, thick * 0.2);
    b.add(case, base.at(0.0, 0.0, thick * 0.5));
    // Keyboard well and keys.
    let (rows, columns) = (5, b.count("columns", 11, 15));
    let numeric = b.chance("numeric_pad", 0.3);
    let (well_w, well_d) = (width * 0.88, depth * 0.46);
    let well_y = -hy + 0.06 + well_d * 0.5;
    b.add(black, cuboid(well_w, well_d, 0.004).at(0.0, well_y, thick + 0.001));
    let pitch = (well_w / columns as f32, well_d / (rows + 1) as f32);
    for row in 0..=rows {
        for column in 0..columns {
            let y = well_y - well_d * 0.5 + pitch.1 * (row as f32 + 0.5);
            let mut w = pitch.0 * 0.84;
            let mut x = well_w * 0.5 - pitch.0 * (column as f32 + 0.5);
            if row == rows {
                if column > 3 && column < columns - 4 {
                    continue;
                }
                if column == 3 {
                    w = pitch.0 * (columns as f32 - 7.0 + 0.84) * 0.97;
                    x = 0.0;
                }
            }
            if numeric && column == columns - 4 {
                continue;
            }
            let d = pitch.1 * if row == 0 { 0.6 } else { 0.84 };
            b.add(keys, tapered((w, d), (w * 0.88, d * 0.85), 0.012).at(x, y, thick + 0.008));
        }
    }
    let pad_w = width * b.vary("touch_pad", 0.24, 0.4);
    let pad_x = if numeric { width * 0.08 } else { 0.0 };
    let pad_paint = b.paint(case_colour.times(0.72), 0.3, 0.5);
    b.add(pad_paint, block(pad_w, depth * 0.26, 0.006).at(pad_x, hy - depth * 0.17, thick + 0.001));
    // Lid: built standing on the hinge, then tilted back.
    let lid_h = depth * 0.97;
    let tilt = open - 90.0;
    let lid_t = thick * 0.5;
    let place = |s: Solid| s.turn_x(tilt).at(0.0, -hy + lid_t * 0.5, thick + 0.01);
    let lid = prism_y(
        &rounded_rectangle(width, lid_h, 0.03, 3)
            .iter()
            .map(|p| (p.x, p.y + lid_h * 0.5))
            .collect::<Vec<_>>(),
        lid_t,
        lid_t * 0.2,
    );
    b.add(lid_paint, place(lid));
    b.add(black, place(cuboid(width * 0.98, 0.004, lid_h * 0.96).at(0.0, lid_t * 0.5 + 0.001, lid_h * 0.51)));
    let (sw, sh) = (width - 2.0 * bezel, lid_h - bezel * 2.4);
    b.add(screen, place(cuboid(sw, 0.004, sh).at(0.0, lid_t * 0.5 + 0.003, lid_h * 0.5 + bezel * 0.3)));
    b.add(
        steel,
        place(cylinder(0.008, 0.006, 10).turn_x(90.0).at(0.0, lid_t * 0.5 + 0.004, lid_h - bezel * 0.5)),
    );
    let badge = b.contrast(lid_colour);
    let badge = b.paint(badge, 0.3, 0.6);
    let emblem = b.vary("emblem", 0.06, 0.13);
    b.add(badge, place(cylinder(emblem, 0.006, 24).turn_x(90.0).at(0.0, -lid_t * 0.5 - 0.002, lid_h * 0.55)));
    let hinge = cylinder(thick * 0.32, width * 0.18, 14).turn_y(90.0).at(hx * 0.6, -hy + lid_t * 0.4, thick);
    b.add(steel, hinge.both_x());
    // Ports on one side, stickers on the other palm rest, feet below.
    for i in 0..b.count("ports", 2, 4) {
        b.add(black, cuboid(0.006, 0.06, thick * 0.4).at(hx, -hy * 0.6 + 0.1 * i as f32, thick * 0.5));
    }
    let sticker = b.accent();
    b.add(sticker, cuboid(width * 0.12, depth * 0.1, 0.004).at(-hx * 0.75, hy - depth * 0.12, thick + 0.001));
    let bottom = b.paint(case_colour.mix(Colour::grey(0.3), 0.8), 0.6, 0.2);
    b.add(bottom, cuboid(width * 0.94, depth * 0.92, 0.006).at(0.0, 0.0, -0.001));
    b.add(black, cylinder(0.025, 0.012, 12).at(hx * 0.85, hy * 0.82, -0.006).both_x().both_y());
}
