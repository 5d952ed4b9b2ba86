//! Things turned on a wheel or a lathe: mug, bottle, bowl, can, jar, flowerpot. Round bodies get a handle, a label,
//! a painted side or a spout, so that a turn about the vertical axis shows.

use super::*;
use crate::texture;

/// Outer skin and inner skin of a vessel whose outer wall runs from the centre of the bottom to the rim.
pub fn hollow(outer: &[(f32, f32)], wall: f32, n: usize) -> (Solid, Solid) {
    let &(r, z) = outer.last().unwrap_or(&(1.0, 1.0));
    let mut inner = vec![(r, z), (r - wall, z)];
    let floor = outer[0].1 + wall * 1.5;
    for &(r, z) in outer.iter().rev().skip(1) {
        if r > wall * 1.5 && z > floor + wall {
            inner.push((r - wall, z));
        }
    }
    inner.extend([((radius_at(outer, floor) - wall).max(wall), floor), (0.0, floor)]);
    (lathe(outer, n), lathe(&inner, n))
}

/// Radius of a wall of revolution at height `z`, on its first part that rises past it.
fn radius_at(wall: &[(f32, f32)], z: f32) -> f32 {
    for w in wall.windows(2) {
        let ((r0, z0), (r1, z1)) = (w[0], w[1]);
        if z1 > z0 && z >= z0 && z <= z1 {
            return r0 + (r1 - r0) * (z - z0) / (z1 - z0);
        }
    }
    wall[wall.len() - 1].0
}

/// A patch on a wall of revolution between two heights, `grow` outside it, over `from..to` degrees.
pub fn patch(wall: &[(f32, f32)], low: f32, high: f32, grow: f32, from: f32, to: f32) -> Solid {
    let n = 10;
    let profile: Vec<(f32, f32)> = (0..=n)
        .map(|i| {
            let z = low + (high - low) * i as f32 / n as f32;
            (radius_at(wall, z) + grow, z)
        })
        .collect();
    let steps = ((to - from) / 8.0).ceil().max(2.0) as usize;
    // Seen from outside, u must run to the right: clockwise from above.
    lathe_arc(&profile, from, to, steps).project(|p| {
        let a = p.y.atan2(p.x).to_degrees().rem_euclid(360.0);
        let turn = (a - from).rem_euclid(360.0) / (to - from);
        (turn, (p.z - low) / (high - low))
    })
}

/// A glaze that covers the wall only on one side, with a wavy edge; u runs once around.
pub fn dipped(b: &mut Builder, ground: Colour, over: Colour) -> Paint {
    let (wave, share) = (1.0 + b.random.below(3) as f32, b.range(0.38, 0.52));
    let slant = b.range(0.0, 0.2);
    let t = texture::paint(64, |u, w| {
        let edge = share + slant * (w - 0.5) + 0.03 * (w * wave * 12.0).sin();
        if u > 0.02 && u < edge { over } else { ground }
    });
    b.textured(t, 0.25, 0.5)
}

/// A label in contrast to `ground`.
pub fn print(b: &mut Builder, ground: Colour) -> Paint {
    let paper = b.contrast(ground);
    let ink = b.contrast(paper);
    let accent = b.vivid();
    let t = texture::label(&mut b.random, paper, ink, accent);
    b.textured(t, 0.5, 0.4)
}

/// A mug; its handle points to the right of the image (-x).
pub fn mug(b: &mut Builder) {
    let kind = b.kind("kind", 4);
    let r = b.vary("radius", 0.36, 0.46);
    let h = b.vary("height", 0.75, 1.1) * if kind == 3 { 0.72 } else { 1.0 };
    let wall = b.vary("wall", 0.035, 0.06);
    let flare = b.vary("flare", -0.05, 0.08);
    let outer = match kind {
        0 => vec![
            (0.0, 0.0),
            (r * 0.94, 0.0),
            (r, 0.03),
            (r + flare * 0.5, h * 0.5),
            (r + flare, h - 0.02),
            (r + flare, h),
        ],
        1 => curve2(
            &[
                (0.0, 0.0),
                (r * 0.7, 0.0),
                (r * 0.92, h * 0.12),
                (r * 1.05, h * 0.4),
                (r * 0.95, h * 0.75),
                (r + flare, h),
            ],
            5,
        ),
        2 => vec![
            (0.0, 0.0),
            (r * 0.72, 0.0),
            (r * 0.75, 0.04),
            (r * 0.88, h * 0.5),
            (r * 1.02, h - 0.02),
            (r * 1.02, h),
        ],
        _ => curve2(
            &[
                (0.0, 0.0),
                (r * 0.45, 0.0),
                (r * 0.7, h * 0.15),
                (r * 0.98, h * 0.5),
                (r * 1.08, h * 0.85),
                (r * 1.15, h),
            ],
            5,
        ),
    };
    let colour = if b.chance("white", 0.3) { Colour::grey(0.9) } else { b.vivid() };
    let glaze = b.paint(colour, 0.2, 0.6);
    let inside_colour = b.contrast(colour);
    let inside = b.paint(inside_colour, 0.25, 0.6);
    let (skin, cavity) = hollow(&outer, wall, 40);
    b.add(glaze, skin);
    b.add(inside, cavity);
    if b.chance("filled", 0.6) {
        let coffee = b.paint(Colour([0.18, 0.09, 0.04]), 0.2, 0.5);
        let z = h * b.range(0.72, 0.9);
        b.add(coffee, cylinder(r * 0.86, 0.02, 32).at(0.0, 0.0, z));
    }
    let reach = b.vary("handle", 0.28, 0.42);
    let (top, low) = (h * b.range(0.78, 0.88), h * b.range(0.16, 0.28));
    let ends = r * if kind == 2 || kind == 3 { 0.84 } else { 0.95 };
    let path = match b.kind("handle_shape", 3) {
        0 => bezier(
            [
                v(-ends, 0.0, top),
                v(-ends - reach * 1.35, 0.0, top),
                v(-ends - reach * 1.35, 0.0, low),
                v(-ends, 0.0, low),
            ],
            18,
        ),
        1 => curve(
            &[
                v(-ends, 0.0, top),
                v(-ends - reach * 0.9, 0.0, top),
                v(-ends - reach, 0.0, top - 0.08),
                v(-ends - reach, 0.0, low + 0.08),
                v(-ends - reach * 0.9, 0.0, low),
                v(-ends, 0.0, low),
            ],
            5,
        ),
        _ => curve(
            &[
                v(-ends, 0.0, top - 0.05),
                v(-ends - reach * 0.7, 0.0, top + 0.03),
                v(-ends - reach, 0.0, top - 0.16),
                v(-ends - reach * 0.55, 0.0, h * 0.4),
                v(-ends, 0.0, low),
            ],
            6,
        ),
    };
    let grip = b.vary("grip", 0.045, 0.065);
    let handle_paint = if b.chance("two_tone", 0.5) { inside } else { glaze };
    b.add(handle_paint, sweep(&oval(grip * 0.75, grip * 1.25, 14), &path, glam::Vec3::Y));
    let label = print(b, colour);
    let width = b.range(55.0, 80.0);
    b.add(label, patch(&outer, h * 0.2, h * 0.82, 0.004, 80.0 - width, 80.0 + width));
}

/// A bottle: wine, beer, soft drink, water, spirit or sauce.
pub fn bottle(b: &mut Builder) {
    let kind = b.kind("kind", 5);
    let r = b.vary("radius", 0.16, 0.22);
    let h = b.vary("height", 0.95, 1.25);
    let neck = r * b.vary("neck", 0.3, 0.42);
    let shoulder = h * b.vary("shoulder", 0.52, 0.66);
    let body = match kind {
        0 => vec![
            (0.0, 0.02),
            (r * 0.8, 0.0),
            (r, 0.03),
            (r, shoulder),
            (r * 0.93, shoulder + 0.06),
            (neck * 1.3, shoulder + 0.16),
            (neck, shoulder + 0.2),
            (neck, h),
        ],
        1 => curve2(
            &[
                (0.0, 0.0),
                (r * 0.95, 0.0),
                (r, 0.05),
                (r, shoulder * 0.95),
                (r * 0.9, shoulder + 0.04),
                (neck * 1.1, h * 0.84),
                (neck, h),
            ],
            4,
        ),
        2 => curve2(
            &[
                (0.0, 0.0),
                (r * 0.8, 0.0),
                (r, 0.08),
                (r * 0.98, h * 0.3),
                (r * 0.82, h * 0.45),
                (r * 1.0, h * 0.6),
                (r * 0.85, h * 0.78),
                (neck, h * 0.92),
                (neck, h),
            ],
            4,
        ),
        3 => vec![
            (0.0, 0.0),
            (r * 1.0, 0.0),
            (r * 1.1, 0.04),
            (r * 1.1, shoulder * 0.9),
            (r * 0.9, shoulder),
            (neck * 1.1, shoulder + 0.05),
            (neck, shoulder + 0.08),
            (neck, h * 0.9),
        ],
        _ => curve2(
            &[
                (0.0, 0.0),
                (r * 1.1, 0.0),
                (r * 1.25, 0.08),
                (r * 1.2, h * 0.25),
                (r * 0.75, h * 0.45),
                (neck * 0.9, h * 0.6),
                (neck * 0.85, h * 0.9),
            ],
            4,
        ),
    };
    let top = body[body.len() - 1].1;
    let colour = match b.kind("glass", 5) {
        0 => Colour([0.05, 0.25, 0.12]),
        1 => Colour([0.30, 0.14, 0.04]),
        2 => Colour([0.55, 0.75, 0.85]),
        3 => b.vivid(),
        _ => Colour::grey(0.88),
    };
    let glass = b.paint(colour, 0.1, 0.7);
    let mut closed = body.clone();
    closed.push((0.0, top));
    b.add(glass, lathe(&closed, 36));
    let cap_colour = b.contrast(colour);
    let cap = b.paint(cap_colour, 0.35, 0.5);
    let cap_r = neck * 1.18;
    match b.kind("cap", 3) {
        0 => b.add(
            cap,
            lathe(
                &[(neck * 0.9, top - 0.02), (cap_r, top - 0.02), (cap_r, top + 0.07), (0.0, top + 0.07)],
                24,
            ),
        ),
        1 => {
            b.add(cap, lathe(&[(neck * 0.7, top - 0.01), (neck * 0.75, top + 0.06), (0.0, top + 0.06)], 20));
            let foil: Vec<(f32, f32)> =
                body.iter().rev().take_while(|p| p.1 > top - 0.2).map(|p| (p.0 * 1.06, p.1)).collect();
            let foil: Vec<_> = foil.into_iter().rev().collect();
            if foil.len() > 1 {
                b.add(cap, lathe(&foil, 24));
            } else {
                b.add(cap, cylinder(neck * 1.06, 0.2, 24).at(0.0, 0.0, top - 0.1));
            }
        }
        _ => {
            // A pump or sports spout that points to one side.
            b.add(cap, cylinder(cap_r, 0.06, 24).at(0.0, 0.0, top + 0.01));
            b.add(cap, cylinder(neck * 0.4, 0.12, 14).at(0.0, 0.0, top + 0.09));
            b.add(
                cap,
                tube_tapered(
                    &[v(0.02, 0.0, top + 0.15), v(-r * 0.9, 0.0, top + 0.13)],
                    |t| 0.03 - 0.014 * t,
                    10,
                ),
            );
        }
    }
    let label = print(b, colour);
    let (low, high) = (h * b.vary("label_low", 0.06, 0.14), (shoulder * 0.92).min(h * 0.56));
    let width = b.vary("label_width", 60.0, 95.0);
    b.add(label, patch(&body, low, high, 0.004, 90.0 - width, 90.0 + width));
    let back_colour = b.vivid();
    let back = b.paint(back_colour, 0.5, 0.3);
    b.add(back, patch(&body, low + 0.1, high - 0.02, 0.004, 235.0, 290.0));
}
