//! Cellphones and telephones.

use super::*;
use crate::texture;

/// A cellphone, standing with its screen towards +y: touch phone, flip phone, key phone.
pub fn cellphone(b: &mut Builder) {
    let kind = b.kind("kind", 4);
    let w = b.vary("width", 0.42, 0.5);
    let h = w * b.vary("ratio", 1.9, 2.2);
    let thick = b.vary("thickness", 0.045, 0.08);
    let corner = w * b.vary("corner", 0.08, 0.2);
    let colour = match b.kind("case", 4) {
        0 => Colour::grey(0.1),
        1 => Colour::grey(0.8),
        _ => b.vivid(),
    };
    let case = b.paint(colour, 0.3, 0.6);
    let (black, steel) = (b.black(), b.steel());
    let back_colour = b.contrast(colour);
    let back = b.paint(back_colour, 0.35, 0.5);
    let show = b.kind("image", 2) as u64 + 1;
    let t = texture::screen(&mut b.random, show);
    let screen = b.textured(t, 0.1, 0.6);
    let glass = b.glass();
    let slab = |w: f32, h: f32, t: f32, r: f32| {
        prism_y(&rounded_rectangle(w, h, r, 6).iter().map(|p| (p.x, p.y)).collect::<Vec<_>>(), t, t * 0.3)
    };
    let face = thick * 0.5;
    let lens = |b: &mut Builder, x: f32, z: f32, y: f32, r: f32| {
        b.add(steel, cylinder(r, 0.02, 18).turn_x(90.0).at(x, -y - 0.008, z));
        b.add(glass, cylinder(r * 0.75, 0.026, 18).turn_x(90.0).at(x, -y - 0.008, z));
    };
    match kind {
        0 | 1 => {
            b.add(case, slab(w, h, thick, corner));
            b.add(black, slab(w * 0.96, h * 0.98, 0.012, corner * 0.9).at(0.0, face, 0.0));
            let margin = b.vary("margin", 0.02, 0.12);
            b.add(
                screen,
                cuboid(w * 0.9, 0.006, h * (1.0 - margin) - 0.03).at(
                    0.0,
                    face + 0.006,
                    if kind == 1 { h * 0.02 } else { 0.0 },
                ),
            );
            if kind == 1 {
                b.add(steel, ring(w * 0.06, 0.006, 18, 6).turn_x(90.0).at(0.0, face + 0.008, -h * 0.455));
            }
            b.add(back, slab(w * 0.94, h * 0.96, 0.012, corner * 0.9).at(0.0, -face, 0.0));
            let n = b.count("lenses", 1, 4);
            let bump = w * 0.34;
            b.add(
                black,
                slab(bump, bump * if n > 2 { 1.3 } else { 0.8 }, 0.03, 0.04).at(
                    -w * 0.26,
                    -face - 0.01,
                    h * 0.38,
                ),
            );
            for i in 0..n {
                let (x, z) = (
                    -w * 0.26 + bump * 0.22 * if i % 2 == 0 { 1.0 } else { -1.0 },
                    h * 0.38 - bump * 0.3 * (i / 2) as f32 * 2.0 + if n > 2 { bump * 0.3 } else { 0.0 },
                );
                lens(b, x, z, face + 0.02, w * 0.06);
            }
            b.add(steel, cuboid(0.014, thick * 0.4, h * 0.08).at(-w * 0.5 - 0.004, 0.0, h * 0.2));
            b.add(steel, cuboid(0.014, thick * 0.4, h * 0.14).at(w * 0.5 + 0.004, 0.0, h * 0.24));
            b.add(black, cuboid(w * 0.16, thick * 0.35, 0.008).at(0.0, 0.0, -h * 0.5));
        }
        2 => {
            // Key phone with an aerial.
            let thick = thick * 1.7;
            let face = thick * 0.5;
            b.add(case, slab(w, h * 0.95, thick, corner * 1.4));
            b.add(black, slab(w * 0.84, h * 0.4, 0.012, 0.03).at(0.0, face, h * 0.2));
            b.add(screen, cuboid(w * 0.74, 0.008, h * 0.33).at(0.0, face + 0.006, h * 0.2));
            let key = b.white();
            b.add(
                key,
                array(&rounded(w * 0.22, 0.03, h * 0.06, 0.01), 3, 4, w * 0.28, h * 0.085).at(
                    0.0,
                    face,
                    -h * 0.25,
                ),
            );
            b.add(steel, rounded(w * 0.26, 0.04, h * 0.05, 0.015).at(0.0, face, -h * 0.045));
            let green = b.glowing(Colour([0.1, 0.7, 0.2]));
            let red = b.glowing(Colour([0.85, 0.1, 0.1]));
            b.add(green, rounded(w * 0.16, 0.03, h * 0.04, 0.01).at(w * 0.3, face, -h * 0.05));
            b.add(red, rounded(w * 0.16, 0.03, h * 0.04, 0.01).at(-w * 0.3, face, -h * 0.05));
            b.add(
                black,
                tube_tapered(
                    &[v(-w * 0.34, 0.0, h * 0.45), v(-w * 0.34, 0.0, h * 0.62)],
                    |t| 0.035 - 0.01 * t,
                    12,
                ),
            );
            b.add(back, slab(w * 0.86, h * 0.5, 0.014, 0.04).at(0.0, -face, -h * 0.15));
            lens(b, w * 0.2, h * 0.32, face, w * 0.07);
        }
        _ => {
            // Flip phone, opened.
            let half = h * 0.52;
            let open = b.vary("opening", 10.0, 35.0);
            b.add(case, slab(w, half, thick, corner).at(0.0, 0.0, -half * 0.5));
            let key = b.white();
            b.add(black, slab(w * 0.88, half * 0.86, 0.01, 0.03).at(0.0, face, -half * 0.5));
            b.add(
                key,
                array(&rounded(w * 0.22, 0.022, half * 0.12, 0.008), 3, 4, w * 0.27, half * 0.165).at(
                    0.0,
                    face,
                    -half * 0.6,
                ),
            );
            b.add(steel, ring(w * 0.13, 0.016, 20, 6).turn_x(90.0).at(0.0, face + 0.006, -half * 0.17));
            let lid = |s: Solid| s.at(0.0, 0.0, half * 0.5).turn_x(-open).at(0.0, 0.01, 0.02);
            b.add(back, lid(slab(w, half, thick * 0.8, corner)));
            b.add(black, lid(slab(w * 0.88, half * 0.84, 0.01, 0.02).at(0.0, face * 0.8, 0.0)));
            b.add(screen, lid(cuboid(w * 0.76, 0.008, half * 0.7).at(0.0, face * 0.8 + 0.005, 0.0)));
            b.add(glass, lid(cuboid(w * 0.4, 0.01, half * 0.2).at(0.0, -face * 0.8 - 0.002, half * 0.2)));
            b.add(steel, cylinder(thick * 0.55, w * 0.8, 16).turn_y(90.0).at(0.0, 0.0, 0.01));
            b.add(case, tube_tapered(&[v(-w * 0.4, 0.0, 0.0), v(-w * 0.4, -0.03, half * 0.3)], |_| 0.03, 10));
        }
    }
}

/// A telephone: rotary or push-button desk set, cordless on its base, pay phone.
pub fn telephone(b: &mut Builder) {
    let kind = b.kind("kind", 4);
    let w = b.vary("width", 0.6, 0.75);
    let d = b.vary("depth", 0.55, 0.72);
    let h = b.vary("height", 0.2, 0.32);
    let colour = if b.chance("black", 0.25) { Colour::grey(0.1) } else { b.vivid() };
    let body = b.paint(colour, 0.3, 0.5);
    let second = b.contrast(colour);
    let key = b.paint(second, 0.4, 0.4);
    let (black, steel, accent) = (b.black(), b.steel(), b.accent());
    let handset_paint = if b.chance("two_tone", 0.4) { black } else { body };
    let arch = b.vary("handset_arch", 0.06, 0.12);
    // A handset along x: bowed grip and two cups looking down.
    let handset = |b: &mut Builder, place: &dyn Fn(Solid) -> Solid, length: f32| {
        let l = length * 0.5;
        let grip = curve(
            &[v(-l * 0.85, 0.0, 0.0), v(-l * 0.5, 0.0, arch), v(l * 0.5, 0.0, arch), v(l * 0.85, 0.0, 0.0)],
            6,
        );
        b.add(handset_paint, place(sweep(&rounded_rectangle(0.09, 0.06, 0.025, 3), &grip, glam::Vec3::Y)));
        let cup = cone(0.105, 0.085, 0.07, 22);
        b.add(handset_paint, place(cup.clone().at(l * 0.84, 0.0, -0.02).with(cup.at(-l * 0.84, 0.0, -0.02))));
        b.add(key, place(cylinder(0.07, 0.02, 16).at(l * 0.84, 0.0, -0.055)));
        b.add(steel, place(cylinder(0.07, 0.02, 16).at(-l * 0.84, 0.0, -0.055)));
    };
    let cord = |b: &mut Builder, from: glam::Vec3, to: glam::Vec3| {
        let n = 90;
        let mid = from.lerp(to, 0.5) - v(0.0, 0.0, 0.08);
        let path: Vec<_> = (0..=n)
            .map(|i| {
                let t = i as f32 / n as f32;
                let p = from * (1.0 - t) * (1.0 - t) + mid * 2.0 * t * (1.0 - t) + to * t * t;
                let a = t * std::f32::consts::TAU * 11.0;
                p + v(0.025 * a.cos(), 0.0, 0.025 * a.sin())
            })
            .collect();
        b.add(black, tube(&path, 0.009, 5));
    };
    match kind {
        0 | 1 => {
            let side =
                [(-d * 0.5, 0.0), (d * 0.5, 0.0), (d * 0.5, h * 0.3), (-d * 0.05, h * 0.95), (-d * 0.5, h)];
            b.add(body, prism_x(&side, w * 0.86, 0.03));
            let tilt = -(h * 0.65).atan2(d * 0.55).to_degrees();
            let on = |s: Solid| s.turn_x(tilt).at(0.0, d * 0.23, h * 0.63);
            if kind == 0 {
                // Rotary dial: finger wheel with holes.
                let r = w * 0.27;
                b.add(key, on(cylinder(r, 0.02, 32).at(0.0, 0.0, 0.005)));
                b.add(steel, on(ring(r * 0.97, 0.014, 32, 6).at(0.0, 0.0, 0.02)));
                b.add(steel, on(cylinder(r * 0.4, 0.035, 24).at(0.0, 0.0, 0.015)));
                b.add(accent, on(cylinder(r * 0.3, 0.04, 20).at(0.0, 0.0, 0.015)));
                for k in 0..10 {
                    let a = (k as f32 * 30.0 + 20.0).to_radians();
                    b.add(
                        black,
                        on(cylinder(r * 0.13, 0.024, 12).at(r * 0.68 * a.cos(), r * 0.68 * a.sin(), 0.006)),
                    );
                }
                b.add(steel, on(cuboid(0.02, r * 0.3, 0.02).turn_z(-30.0).at(-r * 0.75, r * 0.55, 0.035)));
            } else {
                let pad = rounded(w * 0.085, w * 0.07, 0.03, 0.01);
                for i in 0..3 {
                    for j in 0..4 {
                        b.add(
                            key,
                            on(pad.clone().at(
                                w * (0.05 - 0.12 * i as f32),
                                w * (0.17 - 0.1 * j as f32),
                                0.01,
                            )),
                        );
                    }
                }
                let t = texture::screen(&mut b.random, 3);
                let lcd = b.textured(t, 0.2, 0.5);
                b.add(lcd, on(cuboid(w * 0.2, w * 0.3, 0.012).at(w * 0.25, 0.0, 0.01)));
                b.add(accent, on(cuboid(w * 0.2, w * 0.06, 0.02).at(w * 0.25, -w * 0.2, 0.01)));
            }
            let cradle = block(0.05, 0.14, 0.09).at(w * 0.2, -d * 0.28, h + 0.03).both_x();
            b.add(body, cradle);
            let off = b.range(-0.03, 0.03);
            handset(b, &|s| s.turn_z(off * 100.0).at(0.0, -d * 0.28, h + 0.11), w * 1.1);
            cord(b, v(w * 0.5, -d * 0.26, h + 0.06), v(w * 0.42, -d * 0.05, h * 0.3));
        }
        2 => {
            // Cordless: a handset standing in a sloping base.
            b.add(body, rounded(w * 0.7, d * 0.75, 0.1, 0.035).at(0.0, 0.0, 0.05));
            b.add(body, rounded(w * 0.36, 0.14, 0.22, 0.04).at(0.0, -0.08, 0.15));
            let tilt = b.vary("tilt", 10.0, 22.0);
            let length = b.vary("handset", 0.55, 0.7);
            let on = |s: Solid| s.turn_x(tilt).at(0.0, -0.02, 0.1);
            b.add(handset_paint, on(rounded(w * 0.28, 0.1, length, 0.035).at(0.0, 0.0, length * 0.5)));
            let show = 1;
            let t = texture::screen(&mut b.random, show);
            let lcd = b.textured(t, 0.2, 0.5);
            b.add(lcd, on(cuboid(w * 0.2, 0.01, length * 0.2).at(0.0, 0.05, length * 0.72)));
            b.add(
                key,
                on(array(&rounded(w * 0.055, 0.02, length * 0.055, 0.006), 3, 4, w * 0.075, length * 0.08)
                    .at(0.0, 0.05, length * 0.36)),
            );
            b.add(black, on(rounded(w * 0.12, 0.02, 0.02, 0.006).at(0.0, 0.05, length * 0.92)));
            b.add(accent, on(cuboid(w * 0.18, 0.012, length * 0.05).at(0.0, 0.05, length * 0.56)));
            b.add(
                black,
                tube_tapered(
                    &[v(-w * 0.28, -d * 0.3, 0.08), v(-w * 0.28, -d * 0.34, 0.55)],
                    |t| 0.022 - 0.01 * t,
                    8,
                ),
            );
            b.add(
                key,
                array(&rounded(w * 0.08, 0.02, 0.03, 0.008), 2, 1, w * 0.13, 0.1).turn_x(-90.0).at(
                    -w * 0.15,
                    d * 0.24,
                    0.105,
                ),
            );
            b.add(accent, cylinder(0.03, 0.02, 14).at(w * 0.2, d * 0.24, 0.105));
        }
        _ => {
            // Pay phone: an upright box with keypad, slot and the handset hanging at the +x side.
            let tall = b.vary("box_height", 0.8, 1.05);
            let depth = d * 0.42;
            b.add(body, rounded(w * 0.8, depth, tall, 0.03).at(0.0, 0.0, tall * 0.5));
            let face = depth * 0.5;
            b.add(steel, block(w * 0.62, 0.02, tall * 0.5).at(-w * 0.05, face, tall * 0.55));
            b.add(
                key,
                array(&rounded(w * 0.1, 0.03, tall * 0.06, 0.01), 3, 4, w * 0.14, tall * 0.09).at(
                    -w * 0.12,
                    face + 0.015,
                    tall * 0.52,
                ),
            );
            b.add(black, cuboid(w * 0.03, 0.03, tall * 0.08).at(-w * 0.28, face + 0.01, tall * 0.86));
            b.add(steel, block(w * 0.25, 0.06, tall * 0.12).at(-w * 0.15, face, tall * 0.14));
            let label = print(b, colour);
            b.add(label, cuboid(w * 0.6, 0.012, tall * 0.12).at(0.0, face + 0.006, tall * 0.9));
            let x = w * 0.27;
            handset(b, &|s| s.turn_y(90.0).turn_z(90.0).at(x, face + 0.08, tall * 0.52), tall * 0.62);
            cord(b, v(x, face + 0.05, tall * 0.24), v(x * 0.8, face, tall * 0.08));
            b.add(black, block(0.14, 0.06, 0.06).at(x, face + 0.02, tall * 0.72));
        }
    }
}
