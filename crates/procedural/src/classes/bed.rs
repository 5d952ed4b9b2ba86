//! Beds and pillows.

use super::*;
use crate::texture;

/// A bed with its foot towards +y: panel bed, box bed, iron bed, bunk bed, four-poster.
pub fn bed(b: &mut Builder) {
    let kind = b.kind("kind", 5);
    let double = b.chance("double", 0.5) && kind != 3;
    let width = if double { b.vary("width", 1.35, 1.75) } else { b.vary("width", 0.85, 1.05) };
    let length = b.vary("length", 1.9, 2.15);
    let deck = b.vary("deck_height", 0.22, 0.42);
    let mattress_h = b.vary("mattress", 0.16, 0.28);
    let head_h = b.vary("headboard", 0.75, 1.15);
    let wood = b.wood();
    let frame_paint = if kind == 2 {
        b.steel()
    } else if b.chance("painted", 0.3) {
        b.lacquer()
    } else {
        wood
    };
    let sheet_colour = Colour::grey(b.range(0.82, 0.95));
    let linen = b.paint(sheet_colour, 0.95, 0.1);
    let cover_colour = b.vivid().mix(Colour::grey(0.4), 0.2);
    let cover = if b.chance("patterned", 0.5) {
        let other = b.contrast(cover_colour);
        let n = 3 + b.random.below(4) as u32;
        let t = match b.random.below(3) {
            0 => texture::stripes(cover_colour, other.mix(cover_colour, 0.3), n, true),
            1 => texture::plaid(cover_colour, other, n),
            _ => texture::dots(cover_colour, other, n + 2),
        };
        b.textured(t, 0.95, 0.1)
    } else {
        b.paint(cover_colour, 0.95, 0.1)
    };
    let (hx, hy) = (width * 0.5, length * 0.5);
    let levels: &[f32] = if kind == 3 { &[0.0, 1.0] } else { &[0.0] };
    let gap = 0.95;
    for (k, &level) in levels.iter().enumerate() {
        let z = deck + level * gap;
        b.add(frame_paint, block(0.05, length, 0.16).at(hx, 0.0, z - 0.05).both_x().tile(0.6));
        b.add(frame_paint, block(width, 0.05, 0.16).at(0.0, hy, z - 0.05).both_y().tile(0.6));
        b.add(
            linen,
            cushion(width * 0.97, length * 0.97, mattress_h * 1.15).at(0.0, 0.0, z + mattress_h * 0.5),
        );
        // Blanket: a cushion-shaped cover over the lower part, folded back at the top.
        let cover_l = length * b.range(0.58, 0.72);
        let y = hy - cover_l * 0.5;
        b.add(cover, cushion(width * 1.03, cover_l, mattress_h * 1.2).at(0.0, y, z + mattress_h * 0.58));
        b.add(
            linen,
            rounded(width * 1.0, 0.16, 0.05, 0.02).at(0.0, hy - cover_l - 0.02, z + mattress_h * 1.08),
        );
        let pillows = if double { 2 } else { 1 };
        for i in 0..pillows {
            let x = if pillows == 2 { (i as f32 - 0.5) * width * 0.48 } else { 0.0 };
            let paint = if b.range(0.0, 1.0) < 0.5 { linen } else { b.fabric() };
            let turn = b.range(-6.0, 6.0);
            b.add(
                paint,
                cushion(width / pillows as f32 * 0.82, 0.38, 0.2).turn_x(14.0).turn_z(turn).at(
                    x,
                    -hy + 0.27,
                    z + mattress_h + 0.07,
                ),
            );
        }
        if k == 0 && kind != 3 && b.chance("throw", 0.6) {
            let throw = b.fabric();
            b.add(
                throw,
                rounded(width * 1.06, length * 0.16, mattress_h * 1.25, 0.05).at(
                    0.0,
                    hy - length * 0.18,
                    z + mattress_h * 0.58,
                ),
            );
        }
    }
    let accent = b.fabric();
    b.add(
        accent,
        cushion(0.34, 0.34, 0.16).turn_x(50.0).turn_z(12.0).at(
            hx * 0.35,
            -hy + 0.52,
            deck + levels[levels.len() - 1] * gap + mattress_h + 0.14,
        ),
    );
    match kind {
        0 => {
            let crown = b.range(0.0, 0.18);
            let outline: Vec<(f32, f32)> = (0..=16)
                .map(|i| {
                    (hx * (1.0 - i as f32 / 8.0), head_h + crown * (1.0 - (1.0 - i as f32 / 8.0).powi(2)))
                })
                .chain([(-hx, 0.0), (hx, 0.0)])
                .collect();
            b.add(frame_paint, prism_y(&outline, 0.06, 0.012).at(0.0, -hy - 0.03, 0.0).tile(0.7));
            let panel = b.lacquer();
            for i in 0..b.count("panels", 2, 4) {
                let n = 3.0;
                b.add(
                    panel,
                    block(width * 0.24, 0.02, head_h * 0.3).at(
                        (i as f32 - (n - 1.0) * 0.5) * width * 0.28,
                        -hy + 0.005,
                        head_h * 0.72,
                    ),
                );
            }
            let foot_h = deck + b.range(0.02, 0.3);
            b.add(frame_paint, block(width, 0.05, foot_h).at(0.0, hy + 0.02, foot_h * 0.5).tile(0.7));
        }
        1 => {
            // Upholstered box bed with drawers on one side.
            let soft = b.fabric();
            b.add(
                soft,
                cushion(width * 1.05, head_h * 0.8, 0.16).turn_x(-90.0).at(0.0, -hy - 0.05, head_h * 0.6),
            );
            b.add(frame_paint, block(width * 0.98, length * 0.98, deck).at(0.0, 0.0, deck * 0.5).tile(0.7));
            let (front, knobs) = (b.lacquer(), b.metal());
            for i in 0..b.count("drawers", 2, 3) {
                let y = hy * (0.55 - 0.6 * i as f32);
                b.add(front, block(0.03, length * 0.26, deck * 0.7).at(-hx, y, deck * 0.45));
                b.add(knobs, bar_handle(0.18, 0.02).turn_z(90.0).at(-hx - 0.015, y, deck * 0.5));
            }
        }
        2 => {
            // Iron bed with bars.
            for (y, h) in [(-hy, head_h), (hy, head_h * 0.65)] {
                b.add(frame_paint, rod(v(hx, y, 0.0), v(hx, y, h), 0.028, 10).both_x());
                let bow = curve(
                    &[
                        v(-hx, y, h - 0.05),
                        v(-hx * 0.5, y, h + 0.08),
                        v(hx * 0.5, y, h + 0.08),
                        v(hx, y, h - 0.05),
                    ],
                    6,
                );
                b.add(frame_paint, tube(&bow, 0.022, 10));
                b.add(frame_paint, rod(v(-hx, y, deck), v(hx, y, deck), 0.018, 8));
                let n = 7;
                for i in 1..n {
                    let x = hx * (2.0 * i as f32 / n as f32 - 1.0);
                    b.add(frame_paint, rod(v(x, y, deck), v(x, y, h + 0.02), 0.012, 8));
                }
                b.add(wood, ellipsoid(0.045, 0.045, 0.045, 12).at(hx, y, h).both_x());
            }
        }
        3 => {
            let top = deck + gap + 0.5;
            for y in [-hy, hy] {
                b.add(frame_paint, block(0.07, 0.07, top).at(hx, y, top * 0.5).both_x());
            }
            for z in [deck + gap + 0.3, deck + gap + 0.42] {
                b.add(frame_paint, block(0.03, length, 0.05).at(hx, 0.0, z).tile(0.6));
                b.add(frame_paint, block(0.03, length * 0.6, 0.05).at(-hx, -hy * 0.4, z).tile(0.6));
                b.add(frame_paint, block(width, 0.03, 0.05).at(0.0, hy, z).both_y());
            }
            // Ladder at the -x side near the foot.
            let ladder = b.accent();
            for y in [hy * 0.55, hy * 0.9] {
                b.add(ladder, rod(v(-hx - 0.14, y, 0.0), v(-hx - 0.03, y, top), 0.022, 8));
            }
            for i in 0..6 {
                let t = (i as f32 + 0.7) / 6.5;
                b.add(
                    ladder,
                    rod(
                        v(-hx - 0.14 + 0.11 * t, hy * 0.55, top * t),
                        v(-hx - 0.14 + 0.11 * t, hy * 0.9, top * t),
                        0.018,
                        8,
                    ),
                );
            }
        }
        _ => {
            let post = b.vary("posts", 1.3, 1.7);
            let beads = b.count("beads", 3, 6);
            b.add(frame_paint, turned_leg(post, 0.055, beads).at(hx, hy, 0.0).both_x().both_y());
            b.add(
                frame_paint,
                block(width, 0.05, 0.05)
                    .at(0.0, hy, post)
                    .both_y()
                    .with(block(0.05, length, 0.05).at(hx, 0.0, post).both_x()),
            );
            b.add(
                frame_paint,
                block(width, 0.05, head_h - deck).at(0.0, -hy, (head_h + deck) * 0.5).tile(0.7),
            );
            let veil = b.fabric();
            let curtain = sheet(14, 4, 0.015, |u, w| {
                v(hx - u * 0.34, -hy + 0.06 + 0.03 * (u * 30.0).sin(), deck + (post - deck) * w)
            });
            b.add(veil, curtain.both_x());
        }
    }
    if kind == 1 || kind == 0 {
        b.add(
            wood,
            leg(v(hx - 0.06, hy - 0.06, deck), v(hx - 0.05, hy - 0.05, 0.0), 0.035, 0.028, 10)
                .both_x()
                .both_y(),
        );
    } else if kind == 4 {
        b.add(wood, block(width * 0.9, 0.04, 0.1).at(0.0, hy, deck - 0.12));
    }
}

/// A pillow lying with its printed side up: square, oblong, round, bolster.
pub fn pillow(b: &mut Builder) {
    let kind = b.kind("kind", 4);
    let w = b.vary("width", 0.75, 0.9);
    let d = w * b.vary("depth", 0.62, 1.0) * if kind == 1 { 0.75 } else { 1.0 };
    let h = b.vary("plumpness", 0.22, 0.36);
    let a = b.vivid();
    let other = b.contrast(a);
    let third = b.vivid();
    let back_colour = a.mix(other, 0.25).times(0.7);
    let back = b.paint(back_colour, 0.95, 0.1);
    // A bolster wears one colour around and the contrasting one as a band along its back.
    let band = b.paint(other, 0.95, 0.1);
    let other = if kind == 3 { a.mix(third, 0.6) } else { other };
    let n = b.count("pattern_repeat", 2, 5) as f32;
    let split = b.vary("split", 0.3, 0.5);
    let design = b.kind("design", 5);
    // Asymmetric prints: a corner block, a diagonal field, an off-centre emblem, stripes at one end, a patchwork.
    let patches: Vec<Colour> = (0..9)
        .map(|i| match i / 3 {
            0 => other.mix(third, 0.25 * (i % 3) as f32),
            1 => a.mix(third, 0.3 * (i % 3) as f32),
            _ => third.times(1.0 - 0.3 * (i % 3) as f32),
        })
        .collect();
    let t = texture::paint(64, |u, w| match design {
        0 => {
            if u < split && w < 0.55 {
                other
            } else if (w * n).fract() < 0.2 {
                third
            } else {
                a
            }
        }
        1 => {
            if u + w * 0.8 < 0.8 {
                other
            } else if (u - w).abs() < 0.06 {
                third
            } else {
                a
            }
        }
        2 => {
            let d = (u - 0.32).hypot(w - 0.62);
            if d < 0.24 {
                other
            } else if d < 0.3 {
                third
            } else if w < 0.2 {
                other
            } else {
                a
            }
        }
        3 => {
            if u < split {
                if (u * n * 3.0).fract() < 0.5 { other } else { third }
            } else {
                a
            }
        }
        _ => patches[((u * 3.0) as usize).min(2) * 3 + ((w * 3.0) as usize).min(2)],
    });
    let front = b.textured(t, 0.95, 0.1);
    let trim_colour = b.contrast(back_colour);
    let trim = b.paint(trim_colour, 0.9, 0.1);
    // Two cushions: the printed upper shell and the plain lower one, a hair lower and smaller.
    let wrinkle = |p: glam::Vec3| v(p.x, p.y, p.z * (1.0 + 0.05 * ((p.x * 19.0).sin() * (p.y * 17.0).cos())));
    match kind {
        0 | 1 => {
            let upper = cushion(w, d, h).map(wrinkle);
            let lower = cushion(w * 0.995, d * 0.995, h).map(wrinkle).at(0.0, 0.0, -0.035);
            b.add(front, upper.project(|p| (0.5 - p.x / w, 0.5 - p.y / d)));
            b.add(back, lower);
            let seam: Vec<_> =
                rounded_rectangle(w * 0.99, d * 0.99, 0.03, 3).iter().map(|p| p.extend(-0.01)).collect();
            b.add(trim, sweep_closed(&oval(0.013, 0.013, 6), &seam, glam::Vec3::Z));
            if b.chance("tassels", 0.5) {
                let (hx, hy) = (w * 0.5, d * 0.5);
                for i in 0..9 {
                    let y = -hy + d * i as f32 / 8.0;
                    b.add(
                        trim,
                        tube_tapered(
                            &[v(hx * 0.98, y * 0.97, 0.0), v(hx + 0.09, y, -0.02)],
                            |t| 0.01 + 0.014 * t,
                            6,
                        ),
                    );
                }
            }
        }
        2 => {
            // Round, tufted in the middle.
            let r = w * 0.5;
            let profile: Vec<(f32, f32)> =
                curve2(&[(0.0, -h * 0.35), (r * 0.5, -h * 0.48), (r * 0.9, -h * 0.3), (r, 0.0)], 5);
            b.add(back, lathe(&profile, 44));
            let upper: Vec<(f32, f32)> =
                curve2(&[(r, 0.0), (r * 0.9, h * 0.3), (r * 0.5, h * 0.48), (0.0, h * 0.33)], 5);
            let folds = lathe(&upper, 44).map(|p| {
                let a = p.y.atan2(p.x) * 11.0;
                v(p.x, p.y, p.z + 0.012 * a.sin() * (p.truncate().length() / r))
            });
            b.add(front, folds.project(|p| (0.5 - p.x / w, 0.5 - p.y / w)));
            b.add(trim, ellipsoid(0.06, 0.06, 0.025, 14).at(0.0, 0.0, h * 0.36));
            b.add(trim, ring(r, 0.015, 44, 6));
        }
        _ => {
            // Bolster: a roll along x, one end gathered with a button, the other tied.
            let r = h * 0.75;
            let profile = curve2(
                &[
                    (0.0, -w * 0.5),
                    (r * 0.7, -w * 0.5),
                    (r, -w * 0.42),
                    (r * 1.02, 0.0),
                    (r, w * 0.42),
                    (r * 0.7, w * 0.5),
                    (0.0, w * 0.5),
                ],
                4,
            );
            let roll = lathe(&profile, 36).turn_y(90.0);
            b.add(front, roll.project(|p| (0.5 - p.x / w, p.z.atan2(p.y) / std::f32::consts::TAU + 0.5)));
            b.add(trim, ellipsoid(0.03, r * 0.3, r * 0.3, 14).at(-w * 0.5, 0.0, 0.0));
            b.add(
                back,
                tube_tapered(
                    &[v(w * 0.48, 0.0, 0.0), v(w * 0.56, 0.0, 0.0), v(w * 0.66, 0.0, -0.03)],
                    |t| r * (0.35 - 0.25 * (1.0 - (2.0 * t - 1.0).abs()) + 0.2 * t),
                    12,
                ),
            );
            b.add(
                band,
                lathe_arc(&[(r * 1.02, -w * 0.42), (r * 1.045, 0.0), (r * 1.02, w * 0.42)], 170.0, 320.0, 24)
                    .turn_y(90.0),
            );
        }
    }
}
