//! Desk electronics: display, keyboard, printer.

use super::*;
use crate::texture;

/// A display: flat monitor, television on feet, curved monitor, tube monitor. Screen towards +y.
pub fn display(b: &mut Builder) {
    let kind = b.kind("kind", 4);
    let w = if kind == 3 { b.vary("width", 0.6, 0.75) } else { b.vary("width", 0.9, 1.2) };
    let h = if kind == 3 { w * b.vary("ratio", 0.72, 0.82) } else { w * b.vary("ratio", 0.5, 0.64) };
    let bezel = b.vary("bezel", 0.015, 0.05);
    let case_colour = match b.kind("case", 3) {
        0 => Colour::grey(0.1),
        1 => Colour::grey(0.75),
        _ => Colour([0.8, 0.76, 0.68]),
    };
    let case = b.paint(case_colour, 0.4, 0.4);
    let stand_paint = if b.chance("metal_stand", 0.5) { b.steel() } else { case };
    let (black, accent) = (b.black(), b.accent());
    let show = b.kind("image", 4) as u64;
    let t = texture::screen(&mut b.random, show);
    let screen = b.textured(t, 0.15, 0.5);
    let lift = b.vary("lift", 0.12, 0.28);
    let tilt = b.vary("tilt", -4.0, 12.0);
    let (hx, hz) = (w * 0.5, h * 0.5);
    let z = lift + hz;
    let lean = |s: Solid| s.turn_x(tilt).at(0.0, 0.0, z);
    match kind {
        0 | 1 => {
            b.add(
                case,
                lean(prism_y(
                    &rounded_rectangle(w, h, 0.02, 3).iter().map(|p| (p.x, p.y)).collect::<Vec<_>>(),
                    0.035,
                    0.006,
                )),
            );
            b.add(screen, lean(cuboid(w - 2.0 * bezel, 0.006, h - 2.2 * bezel).at(0.0, 0.018, bezel * 0.3)));
            b.add(case, lean(rounded(w * 0.55, 0.07, h * 0.55, 0.02).at(0.0, -0.04, -h * 0.08)));
            for i in 0..6 {
                b.add(
                    black,
                    lean(cuboid(w * 0.3, 0.006, 0.01).at(0.0, -0.077, h * (-0.02 + 0.035 * i as f32))),
                );
            }
            b.add(accent, lean(cuboid(w * 0.16, 0.008, h * 0.12).at(w * 0.15, -0.077, -h * 0.22)));
            b.add(accent, lean(cuboid(0.02, 0.008, 0.012).at(-hx + bezel * 1.5, 0.019, -hz + bezel * 0.6)));
        }
        2 => {
            // Curved: a bent sheet with the image, a case behind.
            let bend = b.vary("curvature", 0.06, 0.14);
            let bow = move |x: f32| bend * (x / hx).powi(2);
            b.add(
                case,
                lean(sheet(20, 6, 0.035, |u, t| {
                    let x = (0.5 - u) * w;
                    v(x, bow(x) - 0.012, (t - 0.5) * h)
                })),
            );
            b.add(
                screen,
                lean(sheet(20, 6, 0.012, |u, t| {
                    let x = (0.5 - u) * (w - 2.0 * bezel);
                    v(x, bow(x) + 0.007, (t - 0.5) * (h - 2.2 * bezel))
                })),
            );
            b.add(accent, lean(ring(h * 0.16, 0.012, 28, 8).turn_x(90.0).at(0.0, -0.05, 0.0)));
            b.add(case, lean(rounded(w * 0.3, 0.07, h * 0.4, 0.02).at(0.0, -0.045, 0.0)));
        }
        _ => {
            // Tube monitor or old television: deep tapering case, dials, antenna.
            b.add(case, lean(rounded(w, 0.22, h, 0.03)));
            let back = hull(
                &[
                    [-0.1, hx * 0.95, hz * 0.95, 0.0],
                    [-0.25, hx * 0.85, hz * 0.85, 0.0],
                    [-0.45, hx * 0.5, hz * 0.55, -hz * 0.1],
                    [-0.5, hx * 0.45, hz * 0.5, -hz * 0.1],
                ],
                0.3,
                24,
            );
            b.add(case, lean(back));
            let tv = b.chance("television", 0.5);
            let (sw, sx) = if tv { (w * 0.66, w * 0.12) } else { (w * 0.84, 0.0) };
            b.add(black, lean(rounded(sw * 1.06, 0.04, h * 0.82, 0.02).at(sx, 0.1, 0.02)));
            let bulge = sheet(10, 8, 0.02, |u, t| {
                let (p, q) = (2.0 * u - 1.0, 2.0 * t - 1.0);
                v(sx - p * sw * 0.48, 0.12 + 0.035 * (1.0 - p * p) * (1.0 - q * q), 0.02 + q * h * 0.36)
            });
            b.add(screen, lean(bulge));
            if tv {
                let steel = b.steel();
                for dz in [0.25, 0.05] {
                    let s = cone(w * 0.07, w * 0.055, 0.05, 18).turn_x(-90.0).at(-w * 0.37, 0.12, h * dz);
                    b.add(accent, lean(s));
                }
                for i in 0..6 {
                    b.add(
                        black,
                        lean(cuboid(w * 0.16, 0.01, 0.012).at(
                            -w * 0.37,
                            0.111,
                            -h * (0.14 + 0.05 * i as f32),
                        )),
                    );
                }
                for s in [-1.0, 1.0] {
                    b.add(
                        steel,
                        rod(v(0.0, -0.05, z + hz), v(s * w * 0.32 + 0.05, -0.08, z + hz + h * 0.5), 0.008, 6),
                    );
                }
            } else {
                for i in 0..b.count("buttons", 3, 5) {
                    b.add(
                        accent,
                        lean(cuboid(0.04, 0.012, 0.02).at(-w * (0.1 + 0.08 * i as f32), 0.111, -h * 0.46)),
                    );
                }
            }
        }
    }
    // Stand.
    match kind {
        1 => {
            let foot = rod(v(w * 0.32, 0.0, lift + 0.05), v(w * 0.36, 0.14, 0.0), 0.016, 8).with(rod(
                v(w * 0.32, 0.0, lift + 0.05),
                v(w * 0.36, -0.14, 0.0),
                0.016,
                8,
            ));
            b.add(stand_paint, foot.both_x());
        }
        3 => b.add(stand_paint, cone(w * 0.3, w * 0.24, lift, 26).at(0.0, -0.08, lift * 0.5)),
        _ => {
            let base_w = w * b.vary("base", 0.26, 0.42);
            if b.chance("round_base", 0.5) {
                b.add(
                    stand_paint,
                    cylinder(base_w * 0.6, 0.025, 32).scale(1.0, 0.75, 1.0).at(0.0, 0.0, 0.012),
                );
            } else {
                b.add(stand_paint, rounded(base_w, base_w * 0.6, 0.025, 0.01).at(0.0, 0.0, 0.012));
            }
            let neck =
                curve(&[v(0.0, -0.05, 0.02), v(0.0, -0.09, lift * 0.7), v(0.0, -0.05, z - hz * 0.4)], 5);
            b.add(stand_paint, sweep(&rounded_rectangle(0.09, 0.03, 0.01, 2), &neck, glam::Vec3::Y));
            let cable = curve(
                &[v(w * 0.1, -0.06, z - hz * 0.5), v(w * 0.18, -0.16, lift * 0.5), v(w * 0.3, -0.2, 0.01)],
                5,
            );
            b.add(black, wire(&cable, 0.011));
        }
    }
}

/// A computer keyboard with rows of keys, some coloured, a cable or a wrist rest. The user sits at +y.
pub fn keyboard(b: &mut Builder) {
    let w = b.vary("width", 0.95, 1.15);
    let d = b.vary("depth", 0.3, 0.4);
    let thick = b.vary("thickness", 0.03, 0.05);
    let slope = b.vary("slope", 3.0, 9.0);
    let numeric = b.chance("numeric_pad", 0.6);
    let case_colour = match b.kind("case", 4) {
        0 => Colour::grey(0.12),
        1 => Colour::grey(0.85),
        2 => b.vivid(),
        _ => Colour([0.78, 0.74, 0.64]),
    };
    let case = b.paint(case_colour, 0.45, 0.4);
    let key_colour = if b.chance("contrasting_keys", 0.6) {
        b.contrast(case_colour)
    } else {
        case_colour.mix(Colour::grey(0.5), 0.4)
    };
    let key = b.paint(key_colour, 0.5, 0.4);
    let special_colour = b.vivid();
    let special = b.paint(special_colour, 0.5, 0.4);
    let dark = b.paint(key_colour.mix(case_colour, 0.5).times(0.7), 0.5, 0.4);
    let black = b.black();
    let lean = |s: Solid| s.turn_x(-slope).at(0.0, 0.0, thick);
    b.add(case, lean(prism(&rounded_rectangle(w, d, 0.025, 4), thick, 0.008)));
    b.add(black, lean(cuboid(w * 0.95, d * 0.86, 0.004).at(0.0, 0.0, thick * 0.5)));
    let rows = 6;
    let main_w = w * if numeric { 0.70 } else { 0.92 };
    let left = w * 0.46;
    let columns = b.count("columns", 13, 15);
    let pitch = (main_w / columns as f32, d * 0.84 / rows as f32);
    let top = thick * 0.5 + 0.012;
    let cap = |kw: f32, kd: f32| tapered((kw, kd), (kw * 0.8, kd * 0.78), 0.024);
    for row in 0..rows {
        let y = -d * 0.42 + pitch.1 * (row as f32 + 0.5) + if row > 0 { 0.006 } else { -0.004 };
        let mut column = 0.0;
        let total = columns as f32;
        let mut i = 0;
        while column < total - 0.1 {
            // Wide keys at the ends of the rows, the space bar in the last.
            let units: f32 = match (row, i) {
                (2, 0) => 1.5,
                (3, 0) => 1.75,
                (4, 0) => 2.25,
                (5, 3) => total - 7.0,
                (1, _) if column >= total - 2.0 => 2.0,
                (3 | 4, _) if column > total - 3.0 => total - column,
                _ => 1.0,
            };
            let units = units.min(total - column);
            let x = left - pitch.0 * (column + units * 0.5);
            let edge = i == 0 || column + units > total - 0.2;
            let paint = if (row == 0 && i == 0) || (row == 3 && column + units > total - 0.2) {
                special
            } else if row == 0 || edge || row == 5 && i != 3 {
                dark
            } else {
                key
            };
            b.add(paint, lean(cap(pitch.0 * units - pitch.0 * 0.12, pitch.1 * 0.86).at(x, y, top)));
            column += units;
            i += 1;
        }
    }
    if numeric {
        let pad = (w * 0.2 / 4.0, d * 0.84 / rows as f32);
        for row in 1..rows {
            for column in 0..4 {
                let x = -w * 0.255 - pad.0 * (column as f32 + 0.5);
                let y = -d * 0.42 + pad.1 * (row as f32 + 0.5) + 0.006;
                let paint = if column == 3 { special } else { dark };
                b.add(paint, lean(cap(pad.0 * 0.86, pad.1 * 0.86).at(x, y, top)));
            }
        }
        let led = b.glowing(Colour([0.2, 0.95, 0.3]));
        for i in 0..3 {
            b.add(
                led,
                lean(cuboid(0.014, 0.01, 0.004).at(
                    -w * (0.3 + 0.05 * i as f32),
                    -d * 0.38,
                    thick * 0.5 + 0.004,
                )),
            );
        }
    }
    b.add(case, cuboid(0.05, 0.03, thick * 1.4).at(w * 0.4, -d * 0.4, thick * 0.5).both_x());
    let under_colour = b.contrast(case_colour.mix(key_colour, 0.5));
    let under = b.paint(under_colour, 0.8, 0.2);
    b.add(under, lean(cuboid(w * 0.96, d * 0.94, 0.006).at(0.0, 0.0, -thick * 0.5)));
    if b.chance("wrist_rest", 0.4) {
        let rest = b.leather();
        b.add(rest, rounded(w * 0.98, 0.09, 0.035, 0.015).at(0.0, d * 0.5 + 0.05, 0.02));
    }
    if b.chance("cable", 0.6) {
        let cable = curve(
            &[
                v(w * 0.2, -d * 0.48, thick),
                v(w * 0.22, -d * 0.75, 0.02),
                v(w * 0.05, -d * 0.95, 0.015),
                v(w * 0.1, -d * 1.2, 0.015),
            ],
            6,
        );
        b.add(black, wire(&cable, 0.012));
    } else {
        b.add(special, lean(cuboid(w * 0.12, 0.012, 0.006).at(w * 0.4, -d * 0.47, thick * 0.5)));
    }
}

/// A printer with paper tray, output, control panel; laser, ink-jet or all-in-one with scanner lid.
pub fn printer(b: &mut Builder) {
    let kind = b.kind("kind", 3);
    let w = b.vary("width", 0.75, 0.95);
    let d = b.vary("depth", 0.55, 0.75);
    let h = b.vary("height", 0.35, 0.6) * if kind == 1 { 0.65 } else { 1.0 };
    let colour = match b.kind("case", 4) {
        0 => Colour::grey(0.88),
        1 => Colour::grey(0.2),
        2 => Colour([0.75, 0.77, 0.8]),
        _ => b.muted(),
    };
    let body = b.paint(colour, 0.45, 0.4);
    let second = b.contrast(colour);
    let trim = b.paint(second.mix(colour, 0.2), 0.45, 0.4);
    let (black, paper, accent) = (b.black(), b.white(), b.accent());
    let (hx, hy) = (w * 0.5, d * 0.5);
    let slope = b.vary("slope", 0.03, 0.12);
    let side =
        [(-hy, 0.0), (hy, 0.0), (hy, h * 0.62), (hy - slope, h * 0.95), (hy - slope - 0.04, h), (-hy, h)];
    b.add(body, prism_x(&side, w, 0.02));
    b.add(trim, block(w * 1.005, d * 0.98, h * 0.14).at(0.0, 0.0, h * 0.1));
    // Output slot with a sheet, tray below.
    b.add(black, cuboid(w * 0.66, 0.02, h * 0.22).at(w * 0.08, hy - 0.002, h * 0.42));
    let out = b.vary("paper_out", 0.12, 0.3);
    b.add(
        paper,
        sheet(4, 6, 0.008, |u, t| {
            v(w * 0.08 + (0.5 - u) * w * 0.55, hy - 0.03 + out * t, h * (0.4 - 0.1 * t * t))
        }),
    );
    b.add(trim, block(w * 0.62, out * 0.9, 0.02).at(w * 0.08, hy + out * 0.42, h * 0.28));
    b.add(body, block(w * 0.8, 0.03, h * 0.16).at(0.0, hy + 0.008, h * 0.1));
    b.add(black, cuboid(w * 0.2, 0.03, h * 0.05).at(0.0, hy + 0.014, h * 0.13));
    // Print on the sheet.
    for i in 0..4 {
        b.add(
            accent,
            cuboid(w * (0.4 - 0.06 * i as f32), 0.012, 0.004).at(
                w * 0.08,
                hy + out * (0.25 + 0.18 * i as f32),
                h * (0.4 - 0.1 * (0.35 + 0.18 * i as f32).powi(2)) + 0.012,
            ),
        );
    }
    // Control panel on the -x side of the slope.
    let lean = slope.atan2(h * 0.33).to_degrees();
    let panel = |s: Solid| s.turn_x(lean).at(-hx * 0.52, hy - slope * 0.5 + 0.004, h * 0.8);
    b.add(black, panel(block(w * 0.42, 0.02, h * 0.26)));
    let t = texture::screen(&mut b.random, 1);
    let lcd = b.textured(t, 0.2, 0.5);
    b.add(lcd, panel(cuboid(w * 0.15, 0.026, h * 0.18).at(w * 0.1, 0.0, 0.0)));
    let keys = b.count("keys", 3, 5);
    b.add(
        paper,
        panel(array(&cuboid(w * 0.03, 0.028, h * 0.05), keys, 2, w * 0.042, h * 0.09).at(
            -w * 0.09,
            0.0,
            0.0,
        )),
    );
    b.add(accent, panel(cylinder(0.02, 0.03, 12).turn_x(90.0).at(w * 0.005, 0.0, 0.0)));
    match kind {
        0 => {
            // All-in-one: scanner lid, ajar, with a sheet under it.
            let angle = b.vary("lid_angle", 0.0, 50.0);
            b.add(
                trim,
                block(w * 0.98, d * 0.88, 0.06).at(0.0, d * 0.44, 0.03).turn_x(angle).at(0.0, -hy, h),
            );
            let glass = b.glass();
            b.add(glass, cuboid(w * 0.8, d * 0.66, 0.008).at(0.0, -0.04, h + 0.002));
            b.add(paper, cuboid(w * 0.5, d * 0.5, 0.006).turn_z(4.0).at(w * 0.08, -0.04, h + 0.008));
        }
        1 => {
            // Ink-jet with paper standing in the rear feed.
            let tilt = b.vary("feed_angle", 10.0, 28.0);
            let stack = |s: Solid| s.turn_x(tilt).at(0.0, -hy + 0.08, h * 0.9);
            b.add(trim, stack(block(w * 0.62, 0.03, d * 0.6).at(0.0, -0.02, d * 0.3)));
            b.add(paper, stack(cuboid(w * 0.55, 0.02, d * 0.75).at(w * 0.02, 0.01, d * 0.38)));
            b.add(accent, stack(cuboid(0.02, 0.04, d * 0.3).at(-w * 0.27, 0.012, d * 0.2)));
        }
        _ => {
            // Laser: output well on top with printed pages.
            b.add(black, cuboid(w * 0.66, d * 0.6, 0.012).at(w * 0.05, -0.02, h + 0.001));
            b.add(
                paper,
                block(w * 0.52, d * 0.5, 0.02).turn_z(3.0).turn_x(4.0).at(w * 0.06, -0.02, h + 0.022),
            );
            b.add(
                accent,
                cuboid(w * 0.3, d * 0.12, 0.006).turn_z(3.0).turn_x(4.0).at(w * 0.1, -0.1, h + 0.035),
            );
            b.add(body, block(w * 0.7, 0.05, 0.05).at(w * 0.05, -hy + 0.06, h + 0.02));
            b.add(trim, block(w * 0.9, d * 0.95, h * 0.35).at(0.0, 0.0, -h * 0.175));
            b.add(black, cuboid(w * 0.3, 0.03, h * 0.06).at(0.0, d * 0.475, -h * 0.12));
        }
    }
    let grey = b.paint(Colour([0.4, 0.42, 0.45]), 0.8, 0.2);
    b.add(grey, block(w * 0.6, 0.02, h * 0.5).at(hx * 0.2, -hy, h * 0.5));
}
