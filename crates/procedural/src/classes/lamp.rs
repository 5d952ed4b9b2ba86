//! Lamps: table lamp, floor lamp, arc lamp, desk lamp with joints, lantern.

use super::*;
use crate::texture;

/// A shade of revolution, open below, standing on z = 0 with a two-coloured cloth.
fn shade(b: &mut Builder, r0: f32, r1: f32, h: f32, x: f32, z: f32) {
    let light = Colour::hsv(b.range(0.05, 0.16), b.range(0.05, 0.5), b.range(0.85, 1.0));
    let dark = b.vivid().times(0.6);
    let split = b.range(0.25, 0.45);
    let t = match b.kind("shade_pattern", 3) {
        0 => texture::paint(64, |u, _| if u < split { dark } else { light }),
        1 => texture::paint(64, |u, w| if u < split && (w * 6.0).fract() < 0.75 { dark } else { light }),
        _ => texture::paint(64, |u, w| if u < 0.5 && w < 0.3 + u { dark } else { light }),
    };
    let cloth = b.textured(t, 0.9, 0.1);
    let inside = b.glowing(Colour([1.0, 0.93, 0.7]));
    let bulb = b.glowing(Colour([1.0, 1.0, 0.9]));
    b.add(cloth, lathe(&[(r0, 0.0), (r1, h)], 36).at(x, 0.0, z));
    b.add(inside, lathe(&[(r1, h), (r1 * 0.97, h), (r0 * 0.97, 0.0), (r0, 0.0)], 36).at(x, 0.0, z));
    b.add(bulb, ellipsoid(r0 * 0.25, r0 * 0.25, r0 * 0.35, 14).at(x, 0.0, z + h * 0.3));
}

/// A lamp.
pub fn lamp(b: &mut Builder) {
    let kind = b.kind("kind", 4);
    let metal = b.metal();
    let base_paint = match b.kind("base_material", 3) {
        0 => b.wood(),
        1 => b.metal(),
        _ => b.lacquer(),
    };
    let accent = b.accent();
    let black = b.black();
    let base_r = b.vary("base_radius", 0.14, 0.22);
    let height = b.vary("height", 0.9, 1.3);
    let shade_r = b.vary("shade_radius", 0.2, 0.32);
    let shade_h = b.vary("shade_height", 0.2, 0.32);
    let conical = b.vary("shade_taper", 0.5, 1.0);
    match kind {
        0 => {
            // Table lamp: a turned body, a wide shade, a pull chain and a cord.
            let h = height * 0.6;
            let fat = b.vary("belly", 0.08, 0.17);
            let body = match b.kind("body", 3) {
                0 => curve2(
                    &[
                        (base_r * 0.8, 0.05),
                        (fat, h * 0.25),
                        (fat * 1.1, h * 0.5),
                        (fat * 0.4, h * 0.75),
                        (0.025, h),
                    ],
                    5,
                ),
                1 => curve2(
                    &[
                        (base_r * 0.6, 0.05),
                        (0.04, h * 0.15),
                        (fat, h * 0.35),
                        (0.04, h * 0.55),
                        (fat * 0.7, h * 0.7),
                        (0.025, h),
                    ],
                    5,
                ),
                _ => vec![(base_r * 0.5, 0.05), (base_r * 0.5, h * 0.9), (0.025, h)],
            };
            b.add(base_paint, lathe(&body, 30));
            b.add(metal, cylinder(base_r, 0.05, 30).at(0.0, 0.0, 0.025));
            b.add(metal, cylinder(0.015, shade_h * 0.8, 10).at(0.0, 0.0, h + shade_h * 0.3));
            shade(b, shade_r, shade_r * conical, shade_h, 0.0, h);
            b.add(accent, patch(&body, h * 0.15, h * 0.7, 0.006, 40.0, 140.0));
            b.add(metal, rod(v(-shade_r * 0.6, 0.05, h + 0.05), v(-shade_r * 0.6, 0.05, h - 0.15), 0.005, 6));
            b.add(accent, ellipsoid(0.022, 0.022, 0.03, 10).at(-shade_r * 0.6, 0.05, h - 0.17));
            let cord = curve(
                &[
                    v(base_r * 0.9, 0.0, 0.02),
                    v(base_r * 1.5, -0.08, 0.01),
                    v(base_r * 1.9, 0.06, 0.01),
                    v(base_r * 2.4, 0.02, 0.01),
                ],
                6,
            );
            b.add(black, wire(&cord, 0.011));
            b.add(black, block(0.06, 0.04, 0.03).at(base_r * 2.5, 0.02, 0.015));
        }
        1 => {
            // Floor lamp with a tray or a reading arm.
            b.add(
                base_paint,
                lathe(&[(0.0, 0.0), (base_r, 0.0), (base_r, 0.02), (base_r * 0.3, 0.06), (0.0, 0.06)], 30),
            );
            b.add(metal, cylinder(0.018, height * 1.2, 12).at(0.0, 0.0, height * 0.6));
            shade(b, shade_r, shade_r * conical, shade_h, 0.0, height * 1.15);
            let z = height * b.range(0.45, 0.65);
            if b.chance("tray", 0.5) {
                b.add(base_paint, cylinder(base_r * 0.95, 0.02, 28).at(base_r * 0.55, 0.0, z));
                b.add(accent, block(0.12, 0.16, 0.05).turn_z(20.0).at(base_r * 0.6, 0.02, z + 0.035));
            } else {
                let arm = curve(&[v(0.0, 0.0, z), v(-0.15, 0.0, z + 0.12), v(-0.28, 0.03, z + 0.1)], 5);
                b.add(metal, tube(&arm, 0.012, 8));
                b.add(accent, cone(0.1, 0.04, 0.14, 18).turn_y(30.0).at(-0.3, 0.03, z + 0.05));
            }
            b.add(metal, ellipsoid(0.03, 0.03, 0.03, 12).at(0.0, 0.0, height * 1.22 + shade_h));
        }
        2 => {
            // Arc lamp: heavy foot, a long bow and a hanging dome.
            let reach = b.vary("reach", 0.5, 0.8);
            b.add(base_paint, rounded(base_r * 1.6, base_r * 2.0, 0.08, 0.02).at(0.0, 0.0, 0.04).tile(0.4));
            let bow = bezier(
                [
                    v(0.0, 0.0, 0.06),
                    v(0.02, 0.0, height * 1.25),
                    v(-reach * 0.4, 0.0, height * 1.3),
                    v(-reach, 0.0, height * 0.95),
                ],
                24,
            );
            b.add(metal, tube(&bow, 0.018, 10));
            let (dome_r, z) = (shade_r * 0.75, height * 0.95);
            let dome: Vec<(f32, f32)> = (0..=8)
                .map(|i| (i as f32 / 8.0 * 90.0_f32).to_radians())
                .map(|a| (dome_r * a.cos(), dome_r * 0.8 * a.sin()))
                .collect();
            b.add(accent, lathe(&dome, 28).at(-reach, 0.0, z - dome_r * 0.75));
            let glow = b.glowing(Colour([1.0, 0.95, 0.75]));
            let inner: Vec<(f32, f32)> = dome.iter().rev().map(|p| (p.0 * 0.95, p.1 * 0.95)).collect();
            b.add(glow, lathe(&inner, 28).at(-reach, 0.0, z - dome_r * 0.75));
            b.add(
                glow,
                ellipsoid(dome_r * 0.35, dome_r * 0.35, dome_r * 0.35, 14).at(-reach, 0.0, z - dome_r * 0.6),
            );
        }
        _ => {
            // Desk lamp: two arms with joints and a conical head, leaning to one side.
            let (a0, a1) = (b.vary("lower_angle", 8.0, 30.0), b.vary("upper_angle", 45.0, 75.0));
            let l = height * 0.42;
            b.add(base_paint, cylinder(base_r, 0.06, 30).at(0.0, 0.0, 0.03));
            b.add(accent, cuboid(0.05, 0.05, 0.02).at(0.0, base_r * 0.7, 0.065));
            let elbow = v(l * a0.to_radians().sin(), 0.0, 0.06 + l * a0.to_radians().cos());
            let head = elbow + v(-l * a1.to_radians().sin(), 0.0, l * a1.to_radians().cos());
            for dy in [-0.025, 0.025] {
                b.add(metal, rod(v(0.0, dy, 0.05), elbow + v(0.0, dy, 0.0), 0.014, 8));
                b.add(metal, rod(elbow + v(0.0, dy, 0.0), head + v(0.0, dy, 0.0), 0.014, 8));
            }
            for p in [v(0.0, 0.0, 0.08), elbow, head] {
                b.add(accent, cylinder(0.035, 0.09, 14).turn_x(90.0).at(p.x, p.y, p.z));
            }
            let r = shade_r * 0.6;
            let cone_shape =
                lathe(&[(r, -r * 1.3), (r * 0.45, 0.0), (r * 0.4, r * 0.3), (0.0, r * 0.35)], 26)
                    .with(lathe(&[(r * 0.4, 0.0), (r * 0.96, -r * 1.3), (r, -r * 1.3)], 26));
            let tilt = b.range(15.0, 35.0);
            b.add(accent, cone_shape.turn_y(tilt).at(head.x - 0.06, 0.0, head.z - 0.02));
            let glow = b.glowing(Colour([1.0, 0.95, 0.75]));
            b.add(
                glow,
                ellipsoid(r * 0.45, r * 0.45, r * 0.5, 14).at(0.0, 0.0, -r * 0.9).turn_y(tilt).at(
                    head.x - 0.06,
                    0.0,
                    head.z - 0.02,
                ),
            );
            let cord = curve(
                &[v(0.0, -base_r * 0.9, 0.03), v(0.1, -base_r * 1.5, 0.02), v(-0.05, -base_r * 2.0, 0.02)],
                6,
            );
            b.add(black, wire(&cord, 0.011));
        }
    }
}
