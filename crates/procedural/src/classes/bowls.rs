//! Bowls and cans.

use super::*;
use crate::texture;

/// A bowl: rice bowl, mixing bowl with a lip, soup bowl with a spoon, porringer with a handle.
pub fn bowl(b: &mut Builder) {
    let kind = b.kind("kind", 4);
    let r = b.vary("radius", 0.42, 0.5);
    let h = r * b.vary("depth", 0.55, 0.95);
    let foot = r * b.vary("foot", 0.35, 0.55);
    let belly = b.vary("belly", 0.75, 0.95);
    let foot_h = h * 0.1;
    let outer = curve2(
        &[
            (0.0, 0.0),
            (foot, 0.0),
            (foot * 0.96, foot_h),
            (r * belly * 0.82, h * 0.38),
            (r * (0.5 + belly * 0.5), h * 0.72),
            (r, h),
        ],
        5,
    );
    let colour = if b.chance("white", 0.3) { Colour::grey(0.92) } else { b.vivid() };
    let second = b.contrast(colour);
    let third = b.vivid();
    let outside = if b.chance("dipped", 0.5) { dipped(b, colour, third) } else { b.paint(colour, 0.25, 0.5) };
    let inside = dipped(b, second, third);
    let (skin, cavity) = hollow(&outer, 0.03, 44);
    let turn = b.vary("turn", 0.0, 60.0);
    b.add(outside, skin);
    b.add(inside, cavity.turn_z(turn));
    let rim = b.paint(third, 0.3, 0.5);
    b.add(rim, ring(r - 0.015, 0.018, 44, 8).at(0.0, 0.0, h));
    match kind {
        0 => {
            // Chopsticks across the rim.
            let wood = b.wood();
            for d in [0.0, 0.09] {
                b.add(
                    wood,
                    tube_tapered(
                        &[v(-r * 1.25, 0.1 + d, h + 0.03), v(r * 0.95, 0.24 + d * 1.3, h + 0.03)],
                        |t| 0.022 - 0.01 * t,
                        8,
                    ),
                );
            }
        }
        1 => {
            // A pouring lip.
            let lip = sheet(8, 5, 0.03, |u, w| {
                let a = (u - 0.5) * 1.0;
                v(
                    (r * 0.97 + 0.16 * w * (1.0 - 4.0 * (u - 0.5).powi(2))) * -a.cos(),
                    r * a.sin(),
                    h - 0.06 * (1.0 - w) + 0.02 * w,
                )
            });
            b.add(outside, lip);
            let handle = curve(
                &[
                    v(r * 0.95, 0.0, h * 0.9),
                    v(r * 1.3, 0.0, h * 0.85),
                    v(r * 1.25, 0.0, h * 0.45),
                    v(r * 0.88, 0.0, h * 0.4),
                ],
                6,
            );
            b.add(rim, tube(&handle, 0.035, 10));
        }
        2 => {
            let steel = b.steel();
            let soup = b.paint(third.mix(Colour([0.8, 0.4, 0.1]), 0.5), 0.3, 0.5);
            b.add(soup, cylinder(r * 0.86, 0.02, 36).at(0.0, 0.0, h * 0.72));
            b.add(steel, ellipsoid(0.09, 0.06, 0.025, 14).at(-0.1, 0.1, h * 0.74));
            b.add(
                steel,
                tube_tapered(
                    &[v(-0.15, 0.12, h * 0.76), v(-r * 1.35, 0.3, h * 1.25)],
                    |t| 0.014 + 0.012 * t,
                    8,
                ),
            );
            let leaf = b.paint(Colour([0.15, 0.5, 0.12]), 0.7, 0.2);
            b.add(leaf, ellipsoid(0.1, 0.05, 0.015, 12).turn_z(30.0).at(0.18, -0.08, h * 0.74));
        }
        _ => {
            let path =
                arc(v(-r - 0.1, 0.0, h * 0.92), v(0.16, 0.0, 0.0), v(0.0, 0.16, 0.0), -150.0, 150.0, 16);
            let flat: Vec<_> = path.into_iter().map(|p| v(-2.0 * (r + 0.1) - p.x, p.y, p.z)).collect();
            b.add(rim, sweep(&oval(0.03, 0.02, 8), &flat, glam::Vec3::Z));
            let ripe = b.range(0.0, 0.12);
            let fruit = b.paint(Colour::hsv(ripe, 0.9, 0.9), 0.4, 0.4);
            let n = b.count("fruit", 2, 4);
            for i in 0..n {
                let a = i as f32 * 1.3;
                b.add(
                    fruit,
                    ellipsoid(0.13, 0.13, 0.12, 18).at(0.14 + 0.12 * a.cos(), 0.15 * a.sin(), h * 0.72),
                );
            }
        }
    }
}

/// A can: drink, food tin, spray can, opened tin.
pub fn can(b: &mut Builder) {
    let kind = b.kind("kind", 4);
    let r = b.vary("radius", 0.24, 0.32);
    let h = match kind {
        0 => b.vary("height", 0.85, 1.05),
        2 => b.vary("height", 1.0, 1.25),
        _ => b.vary("height", 0.5, 0.85),
    };
    let steel = b.steel();
    let black = b.black();
    let neck = b.vary("neck", 0.8, 0.9);
    // The printed wrap: two-coloured around, an emblem on the front.
    let (ground, share) = (b.vivid(), b.vary("print_share", 0.42, 0.54));
    let other = b.contrast(ground);
    let third = b.vivid();
    let size = b.vary("emblem", 0.13, 0.18);
    let bands = b.count("bands", 1, 4);
    let t = texture::paint(64, |u, w| {
        // +y is a quarter of the way around; the emblem sits there.
        let d = ((u - 0.25) * 2.0).hypot(w - 0.55);
        if d < size {
            third
        } else if d < size * 1.25 || (w < 0.3 && (w * 30.0 / bands as f32).fract() < 0.3) {
            other
        } else if (u - 0.25 + share * 0.5).rem_euclid(1.0) < share {
            ground
        } else {
            other.mix(ground, 0.12)
        }
    });
    let wrap = b.textured(t, 0.3, 0.6);
    let shoulder = if kind == 0 || kind == 2 { 0.06 } else { 0.015 };
    b.add(wrap, lathe(&[(r, 0.05), (r, h - shoulder - 0.03)], 40));
    let rim = if kind == 0 || kind == 2 { r * neck } else { r * 1.02 };
    b.add(steel, lathe(&[(0.0, 0.02), (r * 0.75, 0.02), (r * 0.82, 0.0), (r * 0.86, 0.0), (r, 0.05)], 40));
    b.add(
        steel,
        lathe(
            &[
                (r, h - shoulder - 0.03),
                (rim, h - 0.02),
                (rim, h),
                (rim - 0.02, h),
                (rim - 0.025, h - 0.03),
                (0.0, h - 0.03),
            ],
            40,
        ),
    );
    match kind {
        0 => {
            // Ring pull and the opening, towards +y.
            let tab = ring(0.055, 0.014, 16, 6).scale(1.0, 1.3, 1.0).at(0.0, -0.05, h - 0.005);
            b.add(steel, tab.with(cuboid(0.07, 0.06, 0.015).at(0.0, 0.03, h - 0.005)));
            b.add(black, ellipsoid(0.09, 0.07, 0.012, 16).at(0.0, rim * 0.55, h - 0.028));
        }
        1 => {
            for i in 1..4 {
                b.add(steel, ring(rim * 0.22 * i as f32, 0.008, 32, 6).at(0.0, 0.0, h - 0.028));
            }
            let tab = cuboid(0.09, 0.2, 0.02).at(0.0, rim * 0.4, h - 0.012);
            b.add(black, tab);
            b.add(steel, ring(0.06, 0.014, 16, 6).at(0.0, rim * 0.1, h - 0.01));
        }
        2 => {
            // Spray can: dome, valve and a nozzle that points to +y.
            let lid = b.paint(third, 0.35, 0.5);
            b.add(
                steel,
                lathe(
                    &curve2(&[(rim - 0.02, h - 0.02), (rim * 0.8, h + 0.05), (rim * 0.3, h + 0.08)], 4),
                    28,
                ),
            );
            b.add(lid, cylinder(rim * 0.34, 0.13, 18).at(0.0, 0.0, h + 0.12));
            b.add(black, cylinder(0.03, 0.04, 10).turn_x(90.0).at(0.0, rim * 0.34, h + 0.14));
            b.add(lid, cuboid(0.06, rim * 0.4, 0.04).at(0.0, rim * 0.15, h + 0.19));
        }
        _ => {
            // Opened tin: the lid bent up at the back, contents inside.
            let food = b.paint(third, 0.6, 0.3);
            b.add(food, cylinder(rim * 0.9, 0.02, 30).at(0.0, 0.0, h - 0.02));
            for i in 0..b.count("pieces", 4, 9) {
                let a = i as f32 * 2.4;
                let d = rim * 0.7 * b.range(0.1, 1.0);
                b.add(food, ellipsoid(0.05, 0.05, 0.04, 10).at(d * a.cos(), d * a.sin(), h));
            }
            let lid = cylinder(rim * 0.95, 0.015, 32).at(0.0, rim * 0.95, 0.0).turn_x(b.range(55.0, 80.0));
            b.add(steel, lid.at(0.0, -rim, h));
        }
    }
}
