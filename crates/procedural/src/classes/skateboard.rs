//! Skateboards: popsicle, longboard, cruiser with a flat nose. Nose towards +y, wheels down.

use super::*;
use crate::texture;

/// A skateboard.
pub fn skateboard(b: &mut Builder) {
    let kind = b.kind("kind", 4);
    let l = b.vary("length", 1.0, 1.2) * if kind == 1 { 1.25 } else { 1.0 };
    let w = b.vary("width", 0.24, 0.31);
    let kick = b.vary("kick", 0.05, 0.11);
    let nose_kick = if kind == 2 { 0.0 } else { kick * b.vary("nose_kick", 0.6, 1.1) };
    let concave = b.vary("concave", 0.01, 0.03);
    let thick = 0.022;
    let base = b.vary("wheelbase", 0.26, 0.32);
    let rw = b.vary("wheel_radius", 0.045, 0.065) * if kind == 1 { 1.2 } else { 1.0 };
    let taper = b.vary("taper", 0.1, 0.5);
    let deck_z = rw * 2.0 + 0.07;
    // Half width over the length (t from tail -1 to nose 1).
    let half = move |t: f32| {
        let round = (1.0 - t.abs().powi(if kind == 2 && t < 0.0 { 14 } else { 7 })).max(0.0).sqrt().max(0.05);
        let point = if kind == 1 || kind == 3 { 1.0 - taper * (0.5 + 0.5 * t).powi(2) } else { 1.0 };
        w * 0.5 * round * point
    };
    let height = move |t: f32| {
        let bend = |s: f32, k: f32| k * ((s - 0.62).max(0.0) / 0.38).powi(2);
        deck_z + bend(t, nose_kick) + bend(-t, kick)
    };
    let wheel_colour = b.vivid();
    let wheel_paint = b.paint(wheel_colour, 0.5, 0.4);
    let (steel, wood) = (b.steel(), b.wood());
    let surface = move |offset: f32| {
        move |u: f32, t: f32| {
            let (x, s) = (1.0 - 2.0 * u, 2.0 * t - 1.0);
            v(x * half(s), s * l * 0.5, height(s) + concave * x * x * (1.0 - s * s) + offset)
        }
    };
    b.add(wood, sheet(10, 36, thick, surface(0.0)));
    // Grip tape with an asymmetric cut-out, graphic below.
    let grit = Colour::grey(0.09);
    let stripe = b.vivid();
    let stripe2 = b.contrast(grit);
    let cut = b.vary("stripe", 0.15, 0.4);
    let style = b.kind("grip", 3);
    let grip_tex = texture::paint(64, |u, t| match style {
        0 => {
            if t > 1.0 - cut {
                stripe
            } else if t > 0.94 - cut {
                stripe2
            } else {
                grit
            }
        }
        1 => {
            if (u + t * 1.5 - 1.2).abs() < cut * 0.5 {
                stripe
            } else if t > 0.8 {
                stripe2
            } else {
                grit
            }
        }
        _ => {
            if (u - 0.5).hypot((t - 0.72) * 3.0) < 0.4 {
                stripe
            } else if t < cut * 0.5 {
                stripe2
            } else {
                grit
            }
        }
    });
    let grip = b.textured(grip_tex, 0.95, 0.05);
    b.add(grip, sheet(10, 36, 0.006, surface(thick * 0.5 + 0.003)).map(|p| v(p.x * 0.985, p.y * 0.995, p.z)));
    let ground = b.vivid();
    let ink = b.contrast(ground);
    let art = texture::label(&mut b.random, ground, ink, stripe);
    let graphic = b.textured(art, 0.4, 0.4);
    b.add(
        graphic,
        sheet(10, 36, 0.006, surface(-thick * 0.5 - 0.003)).map(|p| v(p.x * 0.98, p.y * 0.99, p.z)),
    );
    // Trucks, wheels and bolts.
    for (side, y) in [(1.0, l * base), (-1.0, -l * base)] {
        let z = deck_z - thick;
        b.add(steel, block(0.09, 0.15, 0.025).at(0.0, y, z - 0.012));
        b.add(
            steel,
            prism_x(
                &[
                    (y - 0.05, z),
                    (y + 0.05, z),
                    (y + side * 0.01 + 0.02, rw + 0.005),
                    (y + side * 0.01 - 0.02, rw + 0.005),
                ],
                0.07,
                0.01,
            ),
        );
        let axle = w * 0.42;
        b.add(steel, rod(v(-axle * 1.12, y, rw), v(axle * 1.12, y, rw), 0.016, 10));
        b.add(
            steel,
            tube_tapered(
                &[v(-axle * 0.7, y, rw), v(0.0, y, rw + 0.012), v(axle * 0.7, y, rw)],
                |t| 0.024 + 0.014 * (1.0 - (2.0 * t - 1.0).abs()),
                10,
            ),
        );
        for x in [-axle, axle] {
            let profile = [
                (0.0, -0.032),
                (rw * 0.45, -0.032),
                (rw * 0.8, -0.034),
                (rw, -0.022),
                (rw, 0.022),
                (rw * 0.8, 0.034),
                (rw * 0.45, 0.032),
                (0.0, 0.032),
            ];
            b.add(wheel_paint, lathe(&profile, 24).turn_y(90.0).at(x, y, rw));
            b.add(steel, cylinder(rw * 0.38, 0.072, 16).turn_y(90.0).at(x, y, rw));
        }
        for (bx, by) in [(0.03, 0.05), (-0.03, 0.05), (0.03, -0.05), (-0.03, -0.05)] {
            b.add(steel, cylinder(0.01, 0.012, 8).at(bx, y + by, deck_z + thick * 0.5 + 0.006));
        }
    }
    // A sticker near the tail on one side, risers in colour.
    let sticker = b.accent();
    b.add(
        sticker,
        cuboid(w * 0.3, w * 0.3, 0.006).turn_z(20.0).at(w * 0.14, -l * 0.12, deck_z + thick * 0.5 + 0.012),
    );
}
