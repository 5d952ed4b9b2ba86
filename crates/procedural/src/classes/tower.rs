//! Towers: lattice mast, clock tower, lighthouse, castle keep, skyscraper, water tower.

use super::*;
use crate::texture;

/// A tower with its entrance towards +y.
pub fn tower(b: &mut Builder) {
    let kind = b.kind("kind", 6);
    let h = b.vary("height", 1.5, 2.1);
    let w = b.vary("width", 0.36, 0.5);
    let taper = b.vary("taper", 0.55, 0.85);
    let storeys = b.count("storeys", 4, 8);
    let annex_side = if b.chance("annex_left", 0.5) { 1.0 } else { -1.0 };
    let (steel, black, glass) = (b.steel(), b.black(), b.glass());
    let stone_colour = b.one_of(&[
        Colour([0.62, 0.58, 0.5]),
        Colour([0.5, 0.5, 0.52]),
        Colour([0.58, 0.3, 0.22]),
        Colour([0.78, 0.7, 0.55]),
    ]);
    let stone_tex = texture::paint(64, |u, t| {
        let row = (t * 8.0) as u32;
        let x = u * 5.0 + 0.5 * (row % 2) as f32;
        if x.fract() < 0.08 || (t * 8.0).fract() < 0.1 { stone_colour.times(0.65) } else { stone_colour }
    });
    let stone = b.textured(stone_tex, 0.9, 0.1);
    let roof_colour = b.vivid().times(0.7);
    let roof = b.paint(roof_colour, 0.7, 0.2);
    let accent = b.accent();
    let door = b.wood();
    let light = b.paint(Colour([0.95, 0.85, 0.55]), 0.4, 0.4);
    match kind {
        0 => {
            // Lattice: four curved legs, cross braces, platforms, antenna; one leg's base houses the lift.
            let paint = if b.chance("painted", 0.6) { b.lacquer() } else { steel };
            let spread = w * 0.9;
            let at = |t: f32| spread * ((1.0 - t).powf(1.8) * 0.92 + 0.08);
            let n = storeys * 2;
            for i in 0..n {
                let (t0, t1) = (i as f32 / n as f32, (i + 1) as f32 / n as f32);
                let (a, c) = (at(t0), at(t1));
                let (z0, z1) = (h * 0.85 * t0, h * 0.85 * t1);
                let thick = 0.035 * (1.0 - 0.6 * t0);
                b.add(paint, rod(v(a, a, z0), v(c, c, z1), thick, 6).both_x().both_y());
                let brace = rod(v(a, a, z0), v(-c, c, z1), thick * 0.5, 4)
                    .with(rod(v(-a, a, z0), v(c, c, z1), thick * 0.5, 4))
                    .with(rod(v(-c, c, z1), v(c, c, z1), thick * 0.5, 4));
                let turned = brace.clone().turn_z(90.0);
                let all = brace.both_y().with(turned.both_x());
                b.add(if i % 4 == 3 { accent } else { paint }, all);
            }
            for t in [0.22, 0.5] {
                let s = at(t) * 2.3;
                b.add(paint, block(s, s, 0.05).at(0.0, 0.0, h * 0.85 * t));
                b.add(glass, block(s * 0.9, s * 0.9, 0.05).at(0.0, 0.0, h * 0.85 * t + 0.05));
            }
            b.add(steel, cylinder(0.05, 0.08, 14).at(0.0, 0.0, h * 0.87));
            b.add(accent, tube_tapered(&[v(0.0, 0.0, h * 0.88), v(0.0, 0.0, h)], |t| 0.016 - 0.01 * t, 8));
            b.add(stone, block(0.2, 0.2, 0.1).at(spread, spread, 0.03).both_x().both_y());
            // Visitors' hall, the lift shaft along one corner, and a great sign on the front.
            let hall = b.lacquer();
            let x = annex_side * spread * 0.55;
            b.add(hall, block(w * 1.3, w * 0.9, w * 0.55).at(x, spread, w * 0.27));
            b.add(
                roof,
                prism_x(&[(-w * 0.5, 0.0), (w * 0.5, 0.0), (0.0, w * 0.25)], w * 1.36, 0.0).at(
                    x,
                    spread,
                    w * 0.54,
                ),
            );
            b.add(glass, cuboid(w * 1.1, 0.01, w * 0.25).at(x, spread + w * 0.455, w * 0.26));
            let foot = v(annex_side * spread * 0.95, spread * 0.95, 0.0);
            let shaft = line(foot, v(annex_side * at(0.5), at(0.5), h * 0.425), 3);
            b.add(roof, sweep(&rounded_rectangle(w * 0.3, w * 0.3, 0.02, 2), &shaft, glam::Vec3::Y));
            let sign = print(b, Colour::grey(0.1));
            b.add(sign, block(at(0.25) * 2.0, 0.03, h * 0.16).at(0.0, at(0.28) + 0.03, h * 0.3));
        }
        1 => {
            // Clock tower: square shaft, clock faces, belfry, spire.
            let s = w * 0.8;
            b.add(stone, block(s * 1.15, s * 1.15, h * 0.08).at(0.0, 0.0, h * 0.04).tile(0.3));
            b.add(stone, block(s, s, h * 0.62).at(0.0, 0.0, h * 0.36).tile(0.3));
            b.add(stone, block(s * 1.12, s * 1.12, h * 0.05).at(0.0, 0.0, h * 0.68).tile(0.3));
            b.add(roof, cone(s * 0.85, 0.0, h * 0.3, 4).turn_z(45.0).at(0.0, 0.0, h * 0.85).flat());
            b.add(
                accent,
                tube_tapered(&[v(0.0, 0.0, h * 0.97), v(0.0, 0.0, h * 1.06)], |t| 0.02 - 0.014 * t, 8),
            );
            let face_paint = b.white();
            let gold = b.paint(Colour([0.85, 0.68, 0.25]), 0.3, 0.7);
            let hour = b.vary("hour", 0.0, 12.0);
            for turn in [0.0, 90.0, 180.0, 270.0] {
                let on = |q: Solid| q.at(0.0, s * 0.5, h * 0.58).turn_z(turn);
                b.add(gold, on(ring(s * 0.34, 0.02, 28, 6).turn_x(90.0)));
                b.add(
                    if turn == 180.0 { black } else { face_paint },
                    on(cylinder(s * 0.33, 0.02, 28).turn_x(90.0)),
                );
                b.add(
                    if turn == 180.0 { gold } else { black },
                    on(cuboid(0.022, 0.02, s * 0.2).at(0.0, 0.012, s * 0.1).turn_y(-hour * 30.0)),
                );
                b.add(
                    if turn == 180.0 { gold } else { black },
                    on(cuboid(0.016, 0.02, s * 0.28).at(0.0, 0.016, s * 0.14).turn_y(-hour.fract() * 360.0)),
                );
                for i in 0..3 {
                    b.add(
                        glass,
                        on(rounded(s * 0.14, 0.02, h * 0.07, 0.006).at(
                            0.0,
                            0.0,
                            -h * (0.16 + 0.12 * i as f32),
                        )),
                    );
                }
            }
            b.add(door, cuboid(s * 0.32, 0.03, h * 0.1).at(0.0, s * 0.59, h * 0.06));
            b.add(stone, block(s * 1.3, s * 0.8, h * 0.22).at(annex_side * s * 0.9, 0.0, h * 0.11).tile(0.3));
            b.add(
                roof,
                prism_x(&[(-s * 0.48, 0.0), (s * 0.48, 0.0), (0.0, h * 0.12)], s * 1.36, 0.0).at(
                    annex_side * s * 0.9,
                    0.0,
                    h * 0.22,
                ),
            );
        }
        2 => {
            // Lighthouse: banded round shaft, gallery, lamp room, keeper's house.
            let (r0, r1) = (w * 0.5, w * 0.5 * taper * 0.8);
            let band = b.vivid();
            let pale = Colour::grey(0.92);
            let spiral = b.chance("spiral_bands", 0.4);
            let t = texture::paint(64, |u, s| {
                let x = s * storeys as f32 * 0.5 + if spiral { u } else { 0.0 };
                if x.fract() < 0.5 { band } else { pale }
            });
            let shaft = b.textured(t, 0.6, 0.3);
            b.add(shaft, lathe(&[(0.0, 0.05), (r0, 0.05), (r1, h * 0.74)], 32));
            b.add(stone, cylinder(r0 * 1.25, 0.07, 28).at(0.0, 0.0, 0.035).tile(0.3));
            b.add(black, cylinder(r1 * 1.45, 0.04, 28).at(0.0, 0.0, h * 0.75));
            b.add(steel, ring(r1 * 1.42, 0.012, 28, 6).at(0.0, 0.0, h * 0.81));
            for k in 0..14 {
                b.add(
                    steel,
                    rod(v(r1 * 1.42, 0.0, h * 0.76), v(r1 * 1.42, 0.0, h * 0.81), 0.008, 4)
                        .turn_z(360.0 * k as f32 / 14.0),
                );
            }
            b.add(light, cylinder(r1 * 0.8, h * 0.12, 22).at(0.0, 0.0, h * 0.82));
            for k in 0..8 {
                b.add(
                    black,
                    cuboid(0.015, 0.03, h * 0.12).at(r1 * 0.81, 0.0, h * 0.82).turn_z(45.0 * k as f32),
                );
            }
            b.add(
                roof,
                lathe(
                    &curve2(
                        &[(r1 * 0.98, h * 0.88), (r1 * 0.8, h * 0.92), (r1 * 0.3, h * 0.96), (0.0, h * 0.98)],
                        3,
                    ),
                    24,
                ),
            );
            b.add(accent, ellipsoid(0.03, 0.03, 0.03, 10).at(0.0, 0.0, h));
            b.add(door, cuboid(r0 * 0.5, 0.06, h * 0.12).at(0.0, r0 * 0.95, h * 0.1));
            for i in 0..3 {
                b.add(
                    black,
                    rounded(r0 * 0.22, 0.06, h * 0.05, 0.01).at(
                        0.0,
                        r0 * (0.93 - 0.09 * i as f32),
                        h * (0.28 + 0.16 * i as f32),
                    ),
                );
            }
            let house = b.white();
            b.add(house, block(r0 * 1.6, r0 * 1.2, h * 0.14).at(annex_side * r0 * 1.7, 0.0, h * 0.07));
            b.add(
                roof,
                prism_x(&[(-r0 * 0.75, 0.0), (r0 * 0.75, 0.0), (0.0, h * 0.1)], r0 * 1.7, 0.0).at(
                    annex_side * r0 * 1.7,
                    0.0,
                    h * 0.14,
                ),
            );
            b.add(glass, cuboid(r0 * 0.3, 0.02, h * 0.05).at(annex_side * r0 * 1.7, r0 * 0.6, h * 0.08));
        }
        3 => {
            // Castle tower: battlements, arrow slits, gate, flag, a stretch of wall.
            let r = w * 0.5;
            b.add(
                stone,
                lathe(&[(0.0, 0.0), (r * 1.15, 0.0), (r, 0.12), (r * 0.96, h * 0.62)], 30)
                    .project(|p| (p.y.atan2(p.x), p.z * 3.0)),
            );
            b.add(
                stone,
                lathe(
                    &[(r * 0.96, h * 0.6), (r * 1.14, h * 0.66), (r * 1.14, h * 0.72), (0.0, h * 0.72)],
                    30,
                )
                .project(|p| (p.y.atan2(p.x), p.z * 3.0)),
            );
            let n = b.count("merlons", 8, 12);
            for k in 0..n {
                let m = block(0.09, std::f32::consts::TAU * r * 1.1 / n as f32 * 0.55, h * 0.06)
                    .at(r * 1.1, 0.0, h * 0.745)
                    .turn_z(360.0 * k as f32 / n as f32);
                b.add(stone, m.tile(0.3));
            }
            b.add(
                stone,
                lathe(&[(r * 0.72, h * 0.72), (r * 0.72, h * 0.84)], 24)
                    .project(|p| (p.y.atan2(p.x), p.z * 3.0)),
            );
            b.add(roof, lathe(&[(0.0, h * 0.84), (r * 0.95, h * 0.84), (0.0, h * 1.06)], 26));
            b.add(steel, rod(v(0.0, 0.0, h * 1.05), v(0.0, 0.0, h * 1.22), 0.012, 6));
            b.add(
                accent,
                sheet(8, 3, 0.012, |u, t| {
                    v(-0.02 - 0.26 * u, 0.03 * (u * 7.0).sin(), h * 1.2 - 0.12 * t * (1.0 - 0.5 * u))
                }),
            );
            b.add(
                door,
                prism_y(
                    &[
                        (-r * 0.4, 0.0),
                        (r * 0.4, 0.0),
                        (r * 0.4, h * 0.14),
                        (r * 0.2, h * 0.2),
                        (-r * 0.2, h * 0.2),
                        (-r * 0.4, h * 0.14),
                    ],
                    0.1,
                    0.01,
                )
                .at(0.0, r * 1.05, 0.0),
            );
            for (i, a) in [90.0_f32, 30.0, 150.0, 90.0].into_iter().enumerate() {
                let p = a.to_radians();
                b.add(
                    black,
                    cuboid(0.05, 0.05, h * 0.09).turn_z(a).at(
                        r * 0.97 * p.cos(),
                        r * 0.97 * p.sin(),
                        h * (0.32 + 0.08 * i as f32),
                    ),
                );
            }
            let wall_l = w * b.vary("wall", 0.9, 1.5);
            let x = annex_side * (r + wall_l * 0.45);
            b.add(stone, block(wall_l, w * 0.24, h * 0.36).at(x, 0.0, h * 0.18).tile(0.3));
            for k in 0..4 {
                b.add(
                    stone,
                    block(wall_l * 0.13, w * 0.26, 0.07)
                        .at(x + wall_l * (k as f32 / 4.0 - 0.36), 0.0, h * 0.39)
                        .tile(0.3),
                );
            }
        }
        4 => {
            // Skyscraper: stepped glass blocks with window grids, spire, a lower wing.
            let wall_colour = b.muted();
            let pane = Colour::hsv(0.57, 0.5, b.range(0.25, 0.5));
            let lit: Vec<bool> = (0..64).map(|_| b.random.below(5) == 0).collect();
            let t = texture::paint(64, |u, s| {
                let (i, j) = ((u * 8.0) as usize, (s * 8.0) as usize);
                let inside = |f: f32| (f.fract() - 0.5).abs() < 0.34;
                if inside(u * 8.0) && inside(s * 8.0) {
                    if lit[(i + j * 8) % 64] { Colour([0.98, 0.88, 0.5]) } else { pane }
                } else {
                    wall_colour
                }
            });
            let facade = b.textured(t, 0.3, 0.5);
            let back_wall = b.paint(wall_colour.times(0.6), 0.7, 0.2);
            let steps = b.count("setbacks", 2, 4);
            let mut z = 0.0;
            for i in 0..steps {
                let share = 1.0 - (1.0 - taper * 0.7) * i as f32 / (steps - 1).max(1) as f32;
                let tall = h * 0.86 / steps as f32;
                let s = w * 1.05 * share;
                b.add(facade, block(s, s * 0.85, tall).at(0.0, 0.0, z + tall * 0.5).tile(0.42));
                b.add(back_wall, cuboid(s * 0.9, 0.012, tall * 0.94).at(0.0, -s * 0.428, z + tall * 0.5));
                b.add(steel, block(s * 0.94, s * 0.8, 0.02).at(0.0, 0.0, z + tall + 0.008));
                for k in 0..6 {
                    b.add(
                        steel,
                        cuboid(0.014, 0.02, tall).at(s * (k as f32 / 5.0 - 0.5), s * 0.43, z + tall * 0.5),
                    );
                }
                z += tall;
            }
            b.add(accent, block(w * 0.3, w * 0.25, h * 0.04).at(w * 0.06, 0.0, z + h * 0.02));
            b.add(steel, tube_tapered(&[v(0.0, 0.0, z), v(0.0, 0.0, h * 1.05)], |t| 0.02 - 0.014 * t, 8));
            b.add(
                facade,
                block(w * 0.8, w * 0.7, h * 0.18).at(annex_side * w * 0.8, w * 0.1, h * 0.09).tile(0.42),
            );
            b.add(accent, block(w * 0.4, 0.14, 0.03).at(0.0, w * 0.5, h * 0.06));
            b.add(glass, cuboid(w * 0.34, 0.02, h * 0.05).at(0.0, w * 0.45, h * 0.03));
            for k in 0..10 {
                b.add(
                    steel,
                    cylinder(0.012, 0.04, 12).at(
                        annex_side * w * (0.5 + 0.065 * k as f32),
                        w * 0.3,
                        h * 0.19,
                    ),
                );
            }
        }
        _ => {
            // Water tower: tank on legs with a conical roof, ladder on one side, lettering towards +y.
            let r = w * b.vary("tank", 0.55, 0.7);
            let tank_h = h * 0.32;
            let z = h * 0.55;
            let colour = b.vivid();
            let t = texture::stripes(colour, colour.times(0.8), 12, true);
            let tank = b.textured(t, 0.5, 0.4);
            let body = [(r * 0.9, z), (r, z + 0.04), (r, z + tank_h)];
            b.add(tank, lathe(&body, 36).with(lathe(&[(0.0, z - tank_h * 0.25), (r * 0.9, z)], 36)));
            b.add(
                roof,
                lathe(
                    &[(0.0, z + tank_h - 0.01), (r * 1.08, z + tank_h - 0.01), (0.0, z + tank_h * 1.5)],
                    36,
                ),
            );
            let label = print(b, colour);
            b.add(label, patch(&body, z + tank_h * 0.2, z + tank_h * 0.85, 0.006, 45.0, 135.0));
            let n = 4;
            for k in 0..n {
                let a = (360.0 * (k as f32 + 0.5) / n as f32).to_radians();
                let next = (360.0 * (k as f32 + 1.5) / n as f32).to_radians();
                let foot = |a: f32, t: f32| {
                    v((r * 1.15 - r * 0.4 * t) * a.cos(), (r * 1.15 - r * 0.4 * t) * a.sin(), z * t)
                };
                b.add(steel, rod(foot(a, 0.0), foot(a, 1.0), 0.03, 8));
                for i in 0..3 {
                    let (t0, t1) = (i as f32 / 3.0, (i + 1) as f32 / 3.0);
                    b.add(
                        steel,
                        rod(foot(a, t0), foot(next, t1), 0.012, 5)
                            .with(rod(foot(next, t0), foot(a, t1), 0.012, 5))
                            .with(rod(foot(a, t1), foot(next, t1), 0.014, 5)),
                    );
                }
            }
            b.add(steel, cylinder(0.05, z, 14).at(0.0, 0.0, z * 0.45));
            for s in [-0.05, 0.05] {
                b.add(
                    accent,
                    rod(
                        v(annex_side * (r * 1.12), s, 0.0),
                        v(annex_side * (r * 1.06), s, z + tank_h),
                        0.012,
                        6,
                    ),
                );
            }
            for i in 0..18 {
                let z = (z + tank_h) * (i as f32 + 0.5) / 18.0;
                b.add(
                    accent,
                    rod(v(annex_side * r * 1.1, -0.05, z), v(annex_side * r * 1.1, 0.05, z), 0.009, 5),
                );
            }
            b.add(
                stone,
                block(r * 0.9, r * 0.7, h * 0.14).at(-annex_side * r * 0.5, r * 0.9, h * 0.07).tile(0.3),
            );
            b.add(door, cuboid(r * 0.25, 0.02, h * 0.09).at(-annex_side * r * 0.5, r * 1.26, h * 0.05));
        }
    }
}
