//! Fittings several classes share: wheels, handles, knobs, feet, rows of keys.

use super::*;
use glam::Vec3;

/// A road wheel with its axle along x, the face with the spokes towards +x.
pub struct Wheel {
    /// Outer radius.
    pub radius: f32,
    /// Width of the tyre.
    pub width: f32,
    /// Rim radius over outer radius.
    pub rim: f32,
    /// Number of spokes; 0 is a disc.
    pub spokes: usize,
}

impl Wheel {
    /// Adds the wheel at `p`; `outside` is +1 where the face looks towards +x, -1 towards -x.
    pub fn add(&self, b: &mut Builder, tyre: Paint, rim: Paint, p: Vec3, outside: f32) {
        let (r, w) = (self.radius, self.width);
        let inner = r * self.rim;
        let place = |s: Solid| {
            let s = s.turn_y(90.0);
            let s = if outside < 0.0 { s.mirror_x() } else { s };
            s.at(p.x, p.y, p.z)
        };
        b.add(tyre, place(lathe(&wheel_profile(r, inner, w), 28)));
        let bowl = w * 0.15;
        b.add(rim, place(lathe(&[(inner, w * 0.42), (inner * 0.9, w * 0.42), (inner * 0.85, bowl)], 24)));
        let hub = cylinder(inner * 0.28, w * 0.3, 12).at(0.0, 0.0, w * 0.3);
        b.add(rim, place(hub));
        if self.spokes == 0 {
            b.add(rim, place(cone(inner * 0.9, inner * 0.6, w * 0.12, 24).at(0.0, 0.0, w * 0.3)));
        } else {
            b.add(tyre, place(cylinder(inner * 0.88, w * 0.1, 20).at(0.0, 0.0, bowl * 0.6)));
            for k in 0..self.spokes {
                let spoke = cuboid(inner * 0.8, inner * 0.2, w * 0.14).at(inner * 0.5, 0.0, w * 0.32);
                b.add(rim, place(spoke.turn_z(360.0 * k as f32 / self.spokes as f32)));
            }
        }
        b.add(tyre, place(cylinder(inner, w * 0.5, 20).at(0.0, 0.0, -w * 0.2)));
    }
}

/// A handle on a +y face centred at the origin: a bar on two posts, `length` along x.
pub fn bar_handle(length: f32, thickness: f32) -> Solid {
    let out = thickness * 2.2;
    let bar = rod(v(-length * 0.5, out, 0.0), v(length * 0.5, out, 0.0), thickness * 0.5, 10);
    let post = cuboid(thickness, out, thickness).at(length * 0.4, out * 0.5, 0.0);
    bar.with(post.both_x())
}

/// A round knob on a +y face.
pub fn knob(r: f32) -> Solid {
    lathe(
        &[(0.0, 0.0), (r * 0.5, 0.0), (r * 0.45, r * 0.6), (r, r * 0.8), (r * 0.9, r * 1.4), (0.0, r * 1.5)],
        14,
    )
    .turn_x(-90.0)
}

/// A rotary control on a +y face: a ridged disc with a pointer; `degrees` is where it points.
pub fn dial(b: &mut Builder, body: Paint, mark: Paint, r: f32, p: Vec3, degrees: f32) {
    let turn = |s: Solid| s.turn_z(degrees).turn_x(-90.0).at(p.x, p.y, p.z);
    b.add(body, turn(cone(r, r * 0.85, r * 0.7, 18).at(0.0, 0.0, r * 0.35)));
    b.add(mark, turn(cuboid(r * 0.2, r * 0.8, r * 0.12).at(0.0, r * 0.4, r * 0.75)));
}

/// `columns` by `rows` copies of a part, spaced by `(dx, dz)` in the xz plane and centred.
pub fn array(part: &Solid, columns: usize, rows: usize, dx: f32, dz: f32) -> Solid {
    let mut all = Solid::default().crease(part.crease_degrees);
    for j in 0..rows {
        for i in 0..columns {
            let x = (i as f32 - (columns as f32 - 1.0) * 0.5) * dx;
            let z = (j as f32 - (rows as f32 - 1.0) * 0.5) * dz;
            all = all.with(part.clone().at(x, 0.0, z));
        }
    }
    all
}

/// A leg from `top` to `foot` that tapers from radius `r0` to `r1`.
pub fn leg(top: Vec3, foot: Vec3, r0: f32, r1: f32, sides: usize) -> Solid {
    let s = tube_tapered(&[top, foot], |t| r0 + (r1 - r0) * t, sides);
    if sides == 4 { s.flat() } else { s }
}

/// A turned (lathe-made) wooden leg of height `h` standing on z = 0, with `beads` thickenings.
pub fn turned_leg(h: f32, r: f32, beads: usize) -> Solid {
    let mut profile = vec![(0.0, 0.0), (r * 0.55, 0.0)];
    for i in 0..beads {
        let z = h * (0.15 + 0.6 * i as f32 / beads as f32);
        let d = h * 0.6 / beads as f32;
        profile.extend([
            (r * 0.5, z),
            (r * 0.85, z + d * 0.35),
            (r * 0.9, z + d * 0.55),
            (r * 0.5, z + d * 0.9),
        ]);
    }
    profile.extend([(r, h * 0.82), (r, h), (0.0, h)]);
    lathe(&profile, 12)
}
