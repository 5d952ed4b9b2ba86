//! Pistols, and what they share with rifles; side on: muzzle towards -x, top upwards.

use super::*;

/// A trigger guard and trigger below `(x, z)`.
pub(super) fn trigger(b: &mut Builder, metal: Paint, accent: Paint, x: f32, z: f32, size: f32) {
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
