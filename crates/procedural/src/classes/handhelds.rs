//! Remote control and camera.

use super::*;
use crate::texture;

/// A remote control lying on its back with the buttons up, pointing away from the user (-y).
pub fn remote_control(b: &mut Builder) {
    let l = b.vary("length", 0.85, 1.05);
    let w = l * b.vary("width", 0.22, 0.32);
    let thick = l * b.vary("thickness", 0.08, 0.12);
    let waist = b.vary("waist", 0.7, 1.0);
    let colour = match b.kind("case", 4) {
        0 | 1 => Colour::grey(0.12),
        2 => Colour::grey(0.78),
        _ => b.vivid(),
    };
    let body = b.paint(colour, 0.45, 0.4);
    let under_colour = b.contrast(colour);
    let under = b.paint(under_colour.mix(colour, 0.3), 0.5, 0.3);
    let key_colour = b.contrast(colour);
    let key = b.paint(key_colour, 0.5, 0.4);
    let red = b.glowing(Colour([0.9, 0.1, 0.08]));
    let accents: Vec<Paint> =
        [0.0, 0.33, 0.15, 0.62].iter().map(|&h| b.paint(Colour::hsv(h, 0.85, 0.85), 0.5, 0.4)).collect();
    let (black, steel) = (b.black(), b.steel());
    // Seen from above: slightly waisted outline.
    let profile = curve2(
        &[
            (w * 0.46, l * 0.5),
            (w * 0.5, l * 0.3),
            (w * 0.5 * waist, -l * 0.05),
            (w * 0.48, -l * 0.35),
            (w * 0.44, -l * 0.5),
        ],
        4,
    );
    let mut outline: Vec<glam::Vec2> = profile.iter().map(|&(x, y)| glam::Vec2::new(x, y)).collect();
    outline.extend(profile.iter().rev().map(|&(x, y)| glam::Vec2::new(-x, y)));
    b.add(body, prism(&outline, thick, thick * 0.25));
    b.add(under, prism(&outline, thick * 0.3, 0.01).scale(0.94, 0.96, 1.0).at(0.0, 0.0, -thick * 0.42));
    let top = thick * 0.5;
    b.add(black, cuboid(w * 0.5, 0.03, thick * 0.5).at(0.0, -l * 0.49, 0.0));
    b.add(red, rounded(w * 0.2, w * 0.16, 0.04, 0.015).at(w * 0.26, -l * 0.42, top));
    b.add(steel, rounded(w * 0.2, w * 0.1, 0.03, 0.01).at(-w * 0.26, -l * 0.42, top));
    let y0 = -l * 0.32;
    let pitch = l * b.vary("pitch", 0.065, 0.08);
    let rows = b.count("rows", 3, 4);
    let round = b.chance("round_keys", 0.5);
    for j in 0..rows {
        for i in 0..3 {
            let s =
                if round { cylinder(w * 0.1, 0.035, 14) } else { rounded(w * 0.2, pitch * 0.6, 0.035, 0.01) };
            b.add(key, s.at(w * (0.28 - 0.28 * i as f32), y0 + pitch * j as f32, top));
        }
    }
    // Direction pad, volume rockers, coloured keys.
    let pad_y = y0 + pitch * (rows as f32 + 1.1);
    b.add(steel, ring(w * 0.24, w * 0.06, 26, 8).scale(1.0, 1.0, 0.5).at(0.0, pad_y, top));
    let centre = b.one_of(&accents);
    b.add(centre, cylinder(w * 0.13, 0.04, 20).at(0.0, pad_y, top));
    let rocker_y = pad_y + w * 0.62;
    b.add(key, rounded(w * 0.18, w * 0.42, 0.04, 0.02).at(w * 0.28, rocker_y, top).both_x());
    if b.chance("screen", 0.4) {
        let glow = b.glowing(Colour([0.45, 0.7, 0.5]));
        b.add(glow, cuboid(w * 0.22, w * 0.36, 0.012).at(0.0, rocker_y, top));
    }
    for (i, paint) in accents.iter().enumerate() {
        b.add(
            *paint,
            rounded(w * 0.15, w * 0.09, 0.035, 0.01).at(w * (0.3 - 0.2 * i as f32), rocker_y + w * 0.42, top),
        );
    }
    let label_y = (rocker_y + w * 0.75).min(l * 0.44);
    b.add(key, cuboid(w * 0.4, 0.02, 0.008).at(0.0, label_y, top));
    // Battery door beneath.
    b.add(black, cuboid(w * 0.7, l * 0.3, 0.012).at(0.0, l * 0.22, -thick * 0.57));
}

/// A camera: compact, reflex with a long lens, rangefinder, instant camera. Lens towards +y.
pub fn camera(b: &mut Builder) {
    let kind = b.kind("kind", 4);
    let w = b.vary("width", 0.75, 0.95);
    let h = w * b.vary("height", 0.55, 0.72);
    let d = w * b.vary("depth", 0.28, 0.4);
    let colour = match b.kind("case", 3) {
        0 => Colour::grey(0.1),
        1 => Colour::grey(0.7),
        _ => b.vivid(),
    };
    let body = b.paint(colour, 0.4, 0.4);
    let grip_paint = b.leather();
    let (black, steel, glass) = (b.black(), b.steel(), b.glass());
    let coat = b.paint(Colour::hsv(0.75, 0.7, 0.35), 0.05, 0.9);
    let lens_r = h * b.vary("lens", 0.28, 0.38);
    let lens_l =
        d * if kind == 1 { b.vary("lens_length", 1.0, 2.0) } else { b.vary("lens_length", 0.35, 0.7) };
    let (hx, hy) = (w * 0.5, d * 0.5);
    b.add(body, rounded(w, d, h, 0.04).at(0.0, 0.0, h * 0.5));
    b.add(grip_paint, block(w * 0.99, d * 1.02, h * 0.5).at(0.0, 0.0, h * 0.45));
    let x = w * b.range(-0.02, 0.08);
    let z = h * 0.46;
    let aim = |s: Solid| s.turn_x(-90.0).at(x, hy, z);
    let r = lens_r;
    b.add(steel, aim(cylinder(r * 1.12, 0.04, 30).at(0.0, 0.0, 0.015)));
    let sections = b.count("lens_sections", 2, 4);
    for i in 0..sections {
        let (l0, l1) = (lens_l * i as f32 / sections as f32, lens_l * (i + 1) as f32 / sections as f32);
        let rr = r * if kind == 1 { 0.92 + 0.1 * i as f32 / sections as f32 } else { 1.0 - 0.12 * i as f32 };
        b.add(
            if i % 2 == 0 { black } else { body },
            aim(cylinder(rr, l1 - l0, 30).at(0.0, 0.0, (l0 + l1) * 0.5)),
        );
    }
    let end = r * if kind == 1 { 0.92 } else { 1.0 - 0.12 * (sections - 1) as f32 };
    b.add(steel, aim(ring(end * 0.9, end * 0.08, 30, 6).at(0.0, 0.0, lens_l)));
    b.add(
        coat,
        aim(lathe(&[(end * 0.82, lens_l - 0.01), (end * 0.5, lens_l + 0.012), (0.0, lens_l + 0.02)], 26)),
    );
    let accent = b.accent();
    match kind {
        0 => {
            b.add(glass, cuboid(w * 0.12, 0.02, h * 0.1).at(hx * 0.72, hy, h * 0.84));
            b.add(glass, cuboid(w * 0.08, 0.02, h * 0.08).at(-hx * 0.1, hy, h * 0.86));
        }
        1 => {
            // Prism hump, grip, flash shoe.
            b.add(
                body,
                prism_y(
                    &[(-w * 0.2, 0.0), (w * 0.2, 0.0), (w * 0.11, h * 0.28), (-w * 0.11, h * 0.28)],
                    d * 0.85,
                    0.02,
                )
                .at(x, 0.0, h * 0.98),
            );
            b.add(grip_paint, rounded(w * 0.2, d * 0.6, h * 0.92, 0.05).at(-hx * 0.8, hy * 0.8, h * 0.48));
            b.add(black, rounded(w * 0.12, d * 0.4, 0.05, 0.01).at(x, -hy * 0.2, h * 1.28));
        }
        2 => {
            b.add(steel, block(w * 0.98, d * 0.98, h * 0.2).at(0.0, 0.0, h * 0.93));
            b.add(glass, cuboid(w * 0.1, 0.02, h * 0.1).at(hx * 0.75, hy, h * 0.92));
            b.add(glass, cuboid(w * 0.16, 0.02, h * 0.1).at(-hx * 0.55, hy, h * 0.92));
        }
        _ => {
            // Instant camera: sloping face, rainbow stripe, a print coming out.
            let paper = b.white();
            b.add(
                body,
                prism_x(
                    &[(hy, 0.0), (hy + d * 0.5, 0.0), (hy + d * 0.45, h * 0.14), (hy, h * 0.2)],
                    w * 0.96,
                    0.01,
                ),
            );
            let out = b.vary("print_out", 0.1, 0.3);
            b.add(paper, cuboid(w * 0.6, out, 0.012).at(0.0, hy + d * 0.5 + out * 0.45, h * 0.06));
            let sky = b.accent();
            b.add(sky, cuboid(w * 0.5, out * 0.6, 0.016).at(0.0, hy + d * 0.5 + out * 0.45, h * 0.06));
            for i in 0..5 {
                let stripe = b.paint(Colour::hsv(0.13 * i as f32, 0.85, 0.85), 0.5, 0.3);
                b.add(
                    stripe,
                    cuboid(w * 0.025, 0.012, h * 0.5).at(
                        -hx * 0.42 - w * 0.03 * i as f32,
                        hy + 0.006,
                        h * 0.6,
                    ),
                );
            }
            b.add(black, rounded(w * 0.22, 0.05, h * 0.16, 0.02).at(hx * 0.66, hy, h * 0.84));
        }
    }
    // Shutter, dials, flash, strap lugs and strap, screen behind.
    b.add(steel, cylinder(w * 0.05, 0.05, 18).at(-hx * 0.7, 0.02, h + 0.02));
    b.add(accent, cylinder(w * 0.03, 0.06, 14).at(-hx * 0.7, 0.02, h + 0.035));
    b.add(black, cylinder(w * 0.07, 0.06, 20).at(hx * 0.65, 0.0, h + 0.02));
    b.add(steel, cylinder(w * 0.05, 0.05, 18).at(-hx * 0.36, -0.02, h + 0.015));
    b.add(accent, cuboid(w * 0.12, 0.014, h * 0.07).at(hx * 0.7, hy + 0.006, h * 0.16));
    let show = b.kind("image", 3) as u64;
    let t = texture::screen(&mut b.random, show);
    let screen = b.textured(t, 0.2, 0.5);
    b.add(screen, cuboid(w * 0.52, 0.012, h * 0.55).at(x, -hy - 0.008, h * 0.48));
    b.add(black, ring(w * 0.07, 0.016, 18, 6).turn_x(90.0).at(-hx * 0.7, -hy - 0.006, h * 0.45));
    if b.chance("strap", 0.6) {
        let strap_paint = b.fabric();
        let strap = curve(
            &[
                v(hx, -hy * 0.5, h * 0.85),
                v(hx * 1.25, -hy * 1.3, h * 0.5),
                v(hx * 0.9, -hy * 2.4, 0.05),
                v(-hx * 0.4, -hy * 2.6, 0.03),
                v(-hx, -hy * 0.7, h * 0.85),
            ],
            6,
        );
        b.add(strap_paint, sweep(&rounded_rectangle(0.07, 0.016, 0.006, 2), &strap, glam::Vec3::Z));
    }
}
