//! Pistols and rifles, side on: muzzle towards -x, top upwards.

use super::*;

/// A trigger guard and trigger below `(x, z)`.
fn trigger(b: &mut Builder, metal: Paint, accent: Paint, x: f32, z: f32, size: f32) {
    let guard = arc(v(x, 0.0, z), v(size, 0.0, 0.0), v(0.0, 0.0, size), 180.0, 360.0, 14);
    b.add(metal, tube(&guard, size * 0.13, 8));
    let hook = curve(
        &[
            v(x + size * 0.1, 0.0, z),
            v(x - size * 0.12, 0.0, z - size * 0.35),
            v(x - size * 0.3, 0.0, z - size * 0.6),
        ],
        4,
    );
    b.add(accent, tube_tapered(&hook, |t| size * (0.16 - 0.07 * t), 8));
}

/// A pistol: automatic, revolver, flintlock, space pistol.
pub fn pistol(b: &mut Builder) {
    // Automatics and revolvers are the usual kinds.
    let kind = [0, 0, 0, 1, 1, 1, 2, 3][b.kind("kind", 8)];
    let barrel = b.vary("barrel", 0.48, 0.68);
    let h = b.vary("slide_height", 0.12, 0.17);
    let t = b.vary("thickness", 0.09, 0.13);
    let rake = b.vary("grip_angle", 8.0, 24.0);
    let grip_l = b.vary("grip_length", 0.34, 0.46);
    let finish = b.one_of(&[
        Colour::grey(0.12),
        Colour([0.2, 0.22, 0.26]),
        Colour::grey(0.68),
        Colour([0.75, 0.62, 0.3]),
    ]);
    let metal = b.paint(finish, 0.3, 0.7);
    let second = b.paint(finish.mix(Colour::grey(0.5), 0.5), 0.35, 0.6);
    let grip_paint = if b.chance("wooden_grip", 0.5) { b.wood() } else { b.plastic() };
    let (black, brass, accent) = (b.black(), b.metal(), b.accent());
    let red = b.glowing(Colour([0.9, 0.15, 0.1]));
    // The grip: a leaning rounded slab under the rear end (x from 0 to +).
    let grip = |b: &mut Builder, x: f32, z: f32, w: f32, paint: Paint| {
        let lean = |s: Solid| s.at(0.0, 0.0, -grip_l * 0.5).turn_y(-rake).at(x, 0.0, z);
        b.add(metal, lean(rounded(w, t * 0.8, grip_l, 0.03)));
        b.add(paint, lean(rounded(w * 0.85, t * 1.15, grip_l * 0.8, 0.025)));
        b.add(brass, lean(cylinder(0.018, t * 1.25, 12).turn_x(90.0).at(0.0, 0.0, -grip_l * 0.2)));
        b.add(black, lean(rounded(w * 1.02, t * 0.9, 0.04, 0.012).at(0.0, 0.0, -grip_l * 0.5)));
    };
    match kind {
        0 => {
            let l = barrel + 0.16;
            b.add(metal, rounded(l, t, h, 0.025).at(-l * 0.5 + 0.16, 0.0, h * 0.5));
            b.add(second, rounded(l * 0.92, t * 0.85, h * 0.5, 0.02).at(-l * 0.46 + 0.15, 0.0, -h * 0.2));
            let grooves = b.count("grooves", 5, 9);
            for i in 0..grooves {
                b.add(
                    black,
                    cuboid(0.01, t * 1.03, h * 0.7).turn_y(12.0).at(0.13 - 0.022 * i as f32, 0.0, h * 0.52),
                );
            }
            b.add(black, cuboid(l * 0.2, t * 0.7, h * 0.3).at(-barrel * 0.32, -t * 0.2, h * 0.85));
            b.add(brass, cylinder(h * 0.2, 0.05, 18).turn_y(90.0).at(-barrel, 0.0, h * 0.55));
            b.add(black, cylinder(h * 0.13, 0.06, 14).turn_y(90.0).at(-barrel - 0.004, 0.0, h * 0.55));
            b.add(red, block(0.03, 0.03, 0.035).at(-barrel + 0.05, 0.0, h + 0.012));
            b.add(black, block(0.05, t * 0.6, 0.035).at(0.1, 0.0, h + 0.01));
            grip(b, 0.06, -h * 0.1, 0.17, grip_paint);
            trigger(b, second, black, -0.12, -h * 0.32, 0.075);
            b.add(black, rounded(0.05, 0.03, 0.06, 0.01).turn_y(-30.0).at(0.17, 0.0, h * 0.8));
            if b.chance("silencer", 0.3) {
                b.add(black, cylinder(h * 0.34, 0.3, 22).turn_y(90.0).at(-barrel - 0.16, 0.0, h * 0.55));
            }
            b.add(accent, cuboid(l * 0.25, t * 1.02, h * 0.18).at(-barrel * 0.65, 0.0, h * 0.4));
        }
        1 => {
            // Revolver: fluted cylinder, round barrel, hammer.
            let r = h * 0.62;
            b.add(metal, cylinder(h * 0.3, barrel, 20).turn_y(90.0).at(-barrel * 0.5 - 0.1, 0.0, h * 0.55));
            b.add(metal, block(barrel, t * 0.3, h * 0.16).at(-barrel * 0.5 - 0.1, 0.0, h * 0.92));
            b.add(
                second,
                cylinder(h * 0.14, barrel * 0.7, 12).turn_y(90.0).at(-barrel * 0.4 - 0.1, 0.0, h * 0.2),
            );
            b.add(black, cylinder(h * 0.17, 0.03, 14).turn_y(90.0).at(-barrel - 0.1, 0.0, h * 0.55));
            b.add(metal, frame(0.34, t * 0.5, h * 1.75, 0.05).at(0.0, 0.0, h * 0.45));
            b.add(second, cylinder(r, 0.2, 24).turn_y(90.0).at(-0.01, 0.0, h * 0.45));
            let chambers = b.count("chambers", 5, 7);
            for k in 0..chambers {
                let a = (360.0 * k as f32 / chambers as f32).to_radians();
                b.add(
                    black,
                    cylinder(r * 0.22, 0.16, 10).turn_y(90.0).at(
                        -0.04,
                        r * 0.92 * a.cos(),
                        h * 0.45 + r * 0.92 * a.sin(),
                    ),
                );
                b.add(
                    brass,
                    cylinder(r * 0.2, 0.03, 10).turn_y(90.0).at(
                        0.1,
                        r * 0.62 * a.cos(),
                        h * 0.45 + r * 0.62 * a.sin(),
                    ),
                );
            }
            b.add(metal, rounded(0.14, t * 0.6, h * 1.2, 0.03).at(0.2, 0.0, h * 0.35));
            let hammer = curve(&[v(0.22, 0.0, h * 0.9), v(0.27, 0.0, h * 1.25), v(0.33, 0.0, h * 1.35)], 4);
            b.add(black, tube_tapered(&hammer, |t| 0.03 - 0.008 * t, 8));
            let curve_path = curve(
                &[
                    v(0.22, 0.0, 0.0),
                    v(0.3, 0.0, -grip_l * 0.4),
                    v(0.27, 0.0, -grip_l * 0.8),
                    v(0.36, 0.0, -grip_l * 1.02),
                ],
                6,
            );
            b.add(grip_paint, sweep(&rounded_rectangle(0.15, t * 0.95, 0.04, 3), &curve_path, glam::Vec3::Y));
            b.add(red, block(0.04, t * 0.2, 0.06).at(-barrel - 0.05, 0.0, h * 1.05));
            trigger(b, metal, brass, 0.02, -h * 0.42, 0.085);
        }
        2 => {
            // Flintlock: curved wooden stock, long thin barrel, cock and flint.
            let l = barrel * 1.3;
            b.add(
                metal,
                tube_tapered(&[v(0.1, 0.0, h * 0.5), v(-l, 0.0, h * 0.5)], |t| h * (0.3 - 0.08 * t), 12),
            );
            b.add(brass, ring(h * 0.25, 0.014, 18, 6).turn_y(90.0).at(-l * 0.97, 0.0, h * 0.5));
            b.add(black, cylinder(h * 0.14, 0.02, 12).turn_y(90.0).at(-l - 0.004, 0.0, h * 0.5));
            let stock = curve(
                &[
                    v(-l * 0.8, 0.0, h * 0.22),
                    v(-0.1, 0.0, h * 0.2),
                    v(0.16, 0.0, h * 0.15),
                    v(0.3, 0.0, -grip_l * 0.35),
                    v(0.33, 0.0, -grip_l * 0.8),
                ],
                6,
            );
            let wood = b.wood();
            b.add(wood, tube_tapered(&stock, |t| h * (0.26 + 0.3 * t), 12));
            b.add(brass, ellipsoid(h * 0.68, h * 0.66, h * 0.5, 18).at(0.33, 0.0, -grip_l * 0.85));
            b.add(brass, rounded(0.24, 0.02, h * 0.7, 0.008).at(0.04, t * 0.42, h * 0.3));
            let cock =
                curve(&[v(0.08, t * 0.5, h * 0.4), v(0.12, t * 0.5, h * 0.9), v(0.05, t * 0.5, h * 1.15)], 4);
            b.add(second, tube_tapered(&cock, |t| 0.032 - 0.012 * t, 8));
            b.add(accent, block(0.05, 0.04, 0.05).at(0.02, t * 0.5, h * 1.12));
            b.add(second, rounded(0.03, 0.05, 0.12, 0.01).at(-0.05, t * 0.48, h * 0.75));
            b.add(brass, rod(v(-l * 0.9, 0.0, h * 0.1), v(-0.15, 0.0, h * 0.02), 0.014, 8));
            trigger(b, brass, metal, 0.06, -h * 0.12, 0.08);
        }
        _ => {
            // Toy or space pistol: bulb, fins, rings along the barrel.
            let shell = b.accent();
            b.add(
                shell,
                lathe(
                    &curve2(
                        &[
                            (0.0, -0.22),
                            (h * 0.7, -0.15),
                            (h * 1.0, 0.0),
                            (h * 0.6, 0.16),
                            (h * 0.3, 0.24),
                            (0.0, 0.24),
                        ],
                        4,
                    ),
                    26,
                )
                .turn_y(-90.0)
                .at(-0.02, 0.0, h * 0.4),
            );
            b.add(
                second,
                tube_tapered(
                    &[v(-0.2, 0.0, h * 0.4), v(-barrel, 0.0, h * 0.4)],
                    |t| h * (0.3 - 0.14 * t),
                    16,
                ),
            );
            for i in 0..b.count("rings", 3, 6) {
                b.add(
                    accent,
                    ring(h * (0.55 - 0.05 * i as f32), 0.022, 22, 8).turn_y(90.0).at(
                        -0.28 - 0.09 * i as f32,
                        0.0,
                        h * 0.4,
                    ),
                );
            }
            b.add(red, ellipsoid(0.06, 0.06, 0.06, 14).at(-barrel, 0.0, h * 0.4));
            let fin = prism_y(&[(-0.14, 0.0), (0.16, 0.0), (0.26, h * 0.9)], 0.03, 0.008);
            b.add(second, fin.at(0.0, 0.0, h * 1.2));
            b.add(brass, rounded(0.16, t * 1.9, 0.05, 0.02).at(0.0, 0.0, h * 0.4));
            grip(b, 0.12, -h * 0.3, 0.16, grip_paint);
            trigger(b, second, red, -0.08, -h * 0.5, 0.08);
        }
    }
    // Left and right differ: a badge on the +y cheek.
    b.add(accent, cylinder(0.035, 0.02, 16).turn_x(90.0).at(0.02, t * 0.52, h * 0.45));
}

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
