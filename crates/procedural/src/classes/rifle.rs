//! Rifles, side on: muzzle towards -x, top upwards.

use super::firearms::trigger;
use super::*;

/// A rifle: hunting rifle with scope, assault rifle, lever action, sniper, shotgun.
pub fn rifle(b: &mut Builder) {
    let kind = b.kind("kind", 4);
    let barrel = b.vary("barrel", 0.85, 1.2);
    let stock_l = b.vary("stock", 0.45, 0.62);
    let h = b.vary("receiver_height", 0.09, 0.13);
    let t = b.vary("thickness", 0.06, 0.085);
    let drop = b.vary("stock_drop", 0.04, 0.12);
    let finish = b.one_of(&[Colour::grey(0.12), Colour([0.2, 0.22, 0.25]), Colour([0.5, 0.5, 0.53])]);
    let metal = b.paint(finish, 0.3, 0.7);
    let stock_paint = match b.kind("stock_material", 4) {
        0 | 1 => b.wood(),
        2 => {
            let (a, c) = (Colour([0.35, 0.38, 0.2]), Colour([0.16, 0.2, 0.1]));
            let tex = crate::texture::blotches(&mut b.random, a, c, 26);
            b.textured(tex, 0.8, 0.2)
        }
        _ => b.paint(Colour([0.62, 0.5, 0.32]), 0.7, 0.2),
    };
    let (black, brass, accent) = (b.black(), b.metal(), b.accent());
    let glass = b.paint(Colour::hsv(0.55, 0.7, 0.5), 0.05, 0.9);
    // Barrel and muzzle.
    let r = h * b.vary("calibre", 0.17, 0.26);
    b.add(
        metal,
        tube_tapered(
            &line(v(-0.15, 0.0, h * 0.7), v(-0.15 - barrel, 0.0, h * 0.7), 4),
            |u| r * (1.2 - 0.3 * u),
            14,
        ),
    );
    b.add(metal, rounded(0.42, t, h, 0.02).at(-0.02, 0.0, h * 0.55));
    b.add(black, cuboid(0.12, t * 0.5, h * 0.25).at(-0.05, -t * 0.3, h * 0.9));
    b.add(accent, cylinder(0.025, 0.02, 12).turn_x(90.0).at(0.1, t * 0.5, h * 0.6));
    let muzzle = -0.15 - barrel;
    b.add(black, cylinder(r * 1.25, 0.1, 14).turn_y(90.0).at(muzzle, 0.0, h * 0.7));
    b.add(accent, block(0.03, 0.02, h * 0.35).at(muzzle + 0.12, 0.0, h * 0.7 + h * 0.3));
    // A coloured sighting rib on top and a side plate, so that a roll about the barrel shows.
    b.add(brass, cuboid(barrel * 0.6, r * 1.2, r * 0.9).at(-0.15 - barrel * 0.34, 0.0, h * 0.7 + r * 1.25));
    b.add(brass, rounded(0.34, 0.012, h * 0.6, 0.004).at(-0.02, t * 0.5 + 0.004, h * 0.5));
    let butt = 0.18 + stock_l;
    match kind {
        0 | 3 => {
            // Wooden stock in one piece under the barrel.
            let outline = [
                (-0.15 - barrel * 0.45, h * 0.55),
                (-0.15 - barrel * 0.45, h * 0.28),
                (-0.1, h * 0.0),
                (0.12, h * 0.05),
                (0.2, -drop * 1.0),
                (0.32, -drop * 0.9),
                (butt, -drop - h * 1.1),
                (butt + 0.015, -drop * 0.2 + h * 0.35),
                (0.4, h * 0.28),
                (0.24, h * 0.2),
                (0.16, h * 0.5),
            ];
            b.add(stock_paint, prism_y(&outline, t * 0.95, t * 0.22).project(|p| (p.x * 1.6, p.z * 3.0)));
            b.add(black, rounded(0.025, t, h * 1.45, 0.01).at(butt + 0.015, 0.0, -drop * 0.55 - h * 0.35));
            trigger(b, metal, brass, 0.07, h * 0.02, 0.055);
            let bolt = curve(
                &[v(0.12, -t * 0.4, h * 0.7), v(0.13, -t * 1.2, h * 0.6), v(0.14, -t * 1.7, h * 0.3)],
                4,
            );
            b.add(brass, tube(&bolt, 0.014, 8));
            b.add(brass, ellipsoid(0.028, 0.028, 0.028, 10).at(0.14, -t * 1.75, h * 0.28));
            if kind == 3 {
                // Sniper: bipod and a long muzzle brake.
                for side in [-1.0, 1.0] {
                    b.add(
                        black,
                        rod(
                            v(-barrel * 0.5, side * 0.02, h * 0.3),
                            v(-barrel * 0.58, side * 0.14, -0.3),
                            0.012,
                            8,
                        ),
                    );
                }
                b.add(metal, cylinder(r * 1.6, 0.14, 14).turn_y(90.0).at(muzzle - 0.05, 0.0, h * 0.7));
                b.add(black, block(0.12, t * 0.6, 0.14).at(-0.04, 0.0, -h * 0.35));
            } else {
                // A sling.
                let sling = curve(
                    &[
                        v(-barrel * 0.5, 0.0, h * 0.25),
                        v(-0.1, 0.03, -h * 1.9),
                        v(butt * 0.6, 0.02, -h * 2.4),
                        v(butt * 0.85, 0.0, -drop - h * 0.7),
                    ],
                    8,
                );
                b.add(accent, sweep(&rounded_rectangle(0.04, 0.012, 0.004, 1), &sling, glam::Vec3::Z));
            }
        }
        1 => {
            // Assault rifle: magazine, pistol grip, handguard with slots, rail, skeleton stock.
            let guard_l = barrel * 0.45;
            b.add(
                stock_paint,
                rounded(guard_l, t * 1.1, h * 0.85, 0.02).at(-0.2 - guard_l * 0.5, 0.0, h * 0.66),
            );
            for i in 0..6 {
                b.add(
                    black,
                    cuboid(guard_l * 0.1, t * 1.14, h * 0.2).at(
                        -0.24 - guard_l * 0.15 * i as f32,
                        0.0,
                        h * 0.62,
                    ),
                );
            }
            let bend = b.vary("magazine_curve", 0.0, 0.09);
            let mag = curve(
                &[
                    v(-0.1, 0.0, h * 0.2),
                    v(-0.12 - bend * 0.3, 0.0, -h * 1.0),
                    v(-0.15 - bend, 0.0, -h * 2.3),
                ],
                5,
            );
            b.add(black, sweep(&rounded_rectangle(0.1, t * 0.7, 0.012, 2), &mag, glam::Vec3::Y));
            b.add(stock_paint, rounded(0.08, t * 0.8, h * 1.7, 0.02).turn_y(-18.0).at(0.18, 0.0, -h * 0.6));
            trigger(b, metal, brass, 0.07, h * 0.06, 0.05);
            b.add(
                metal,
                rounded(stock_l * 0.7, t * 0.5, h * 0.32, 0.015).at(0.2 + stock_l * 0.35, 0.0, h * 0.65),
            );
            b.add(
                stock_paint,
                prism_y(
                    &[
                        (butt, h * 0.9),
                        (butt, -h * 0.9),
                        (butt - 0.08, -h * 0.85),
                        (butt - 0.2, h * 0.3),
                        (butt - 0.22, h * 0.9),
                    ],
                    t * 0.8,
                    0.01,
                ),
            );
            b.add(black, cuboid(0.5, t * 0.4, h * 0.16).at(-0.1, 0.0, h * 1.12));
            for i in 0..8 {
                b.add(metal, cuboid(0.025, t * 0.5, h * 0.1).at(-0.32 + 0.06 * i as f32, 0.0, h * 1.24));
            }
        }
        _ => {
            // Lever action or pump shotgun: tube below the barrel, two-piece stock.
            b.add(
                metal,
                cylinder(r * 0.9, barrel * 0.85, 14).turn_y(90.0).at(-0.15 - barrel * 0.42, 0.0, h * 0.25),
            );
            b.add(
                stock_paint,
                rounded(barrel * 0.36, t * 1.15, h * 0.75, 0.03).at(-0.2 - barrel * 0.3, 0.0, h * 0.32),
            );
            for i in 0..5 {
                b.add(
                    black,
                    cuboid(0.014, t * 1.18, h * 0.5).at(
                        -0.2 - barrel * (0.16 + 0.06 * i as f32),
                        0.0,
                        h * 0.3,
                    ),
                );
            }
            let outline = [
                (0.16, h * 0.9),
                (0.16, h * 0.05),
                (0.26, -drop),
                (butt, -drop - h * 1.2),
                (butt + 0.01, -drop * 0.1 + h * 0.3),
                (0.34, h * 0.55),
            ];
            b.add(stock_paint, prism_y(&outline, t * 0.95, t * 0.22).project(|p| (p.x * 1.6, p.z * 3.0)));
            b.add(brass, rounded(0.025, t, h * 1.45, 0.01).at(butt + 0.01, 0.0, -drop * 0.5 - h * 0.42));
            let lever = curve(
                &[
                    v(0.02, 0.0, h * 0.05),
                    v(0.0, 0.0, -h * 0.8),
                    v(0.14, 0.0, -h * 0.95),
                    v(0.24, 0.0, -h * 0.9),
                    v(0.22, 0.0, -h * 0.2),
                ],
                6,
            );
            b.add(brass, tube(&lever, 0.016, 8));
            trigger(b, metal, brass, 0.08, h * 0.02, 0.05);
            for i in 0..b.count("shells", 2, 5) {
                b.add(
                    accent,
                    cylinder(0.018, 0.07, 10).turn_y(15.0).at(0.32 + 0.05 * i as f32, t * 0.55, h * 0.2),
                );
            }
        }
    }
    if kind == 3 || b.chance("scope", 0.5) {
        let l = b.vary("scope_length", 0.3, 0.46);
        let z = h * 1.1 + 0.085;
        let s = lathe(
            &[
                (0.0, -l * 0.5),
                (0.038, -l * 0.5),
                (0.038, -l * 0.3),
                (0.024, -l * 0.22),
                (0.024, l * 0.2),
                (0.05, l * 0.34),
                (0.05, l * 0.5),
                (0.0, l * 0.5),
            ],
            20,
        )
        .turn_y(-90.0);
        b.add(black, s.at(-0.02, 0.0, z));
        b.add(
            glass,
            cylinder(0.042, 0.012, 18)
                .turn_y(90.0)
                .at(-0.02 - l * 0.5, 0.0, z)
                .with(cylinder(0.03, 0.012, 18).turn_y(90.0).at(-0.02 + l * 0.5, 0.0, z)),
        );
        b.add(
            metal,
            block(0.03, 0.03, 0.08).at(-0.1, 0.0, z - 0.05).with(block(0.03, 0.03, 0.08).at(
                0.06,
                0.0,
                z - 0.05,
            )),
        );
        b.add(accent, cylinder(0.025, 0.04, 12).at(-0.02, 0.0, z + 0.03));
    }
}
