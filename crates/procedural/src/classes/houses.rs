//! Small houses on posts: birdhouse and mailbox.

use super::*;

/// A birdhouse: gabled, lean-to, log or round; its hole towards +y.
pub fn birdhouse(b: &mut Builder) {
    let kind = b.kind("kind", 4);
    let w = b.vary("width", 0.36, 0.5);
    let d = b.vary("depth", 0.34, 0.48);
    let h = b.vary("height", 0.4, 0.62);
    let pitch = b.vary("pitch", 0.16, 0.36);
    let eaves = b.vary("eaves", 0.05, 0.11);
    let wall_colour = b.vivid();
    let wall = if b.chance("natural", 0.35) { b.wood() } else { b.paint(wall_colour, 0.7, 0.2) };
    let roof_colour = b.contrast(wall_colour);
    let roof = b.paint(roof_colour, 0.8, 0.2);
    let (wood, black, accent) = (b.wood(), b.black(), b.accent());
    let hole = b.vary("hole", 0.06, 0.09);
    let (hx, hy) = (w * 0.5, d * 0.5);
    let front = match kind {
        0 => {
            // Gabled house with plank roof.
            b.add(
                wall,
                prism_y(&[(-hx, 0.0), (hx, 0.0), (hx, h), (0.0, h + pitch), (-hx, h)], d, 0.008).tile(0.4),
            );
            let slope = pitch.atan2(hx).to_degrees();
            let run = hx.hypot(pitch) + eaves;
            let n = b.count("roof_boards", 3, 6);
            for i in 0..n {
                let t = run * (i as f32 + 0.5) / n as f32;
                let board = block(run / n as f32 * 1.12, d + 2.0 * eaves, 0.025)
                    .turn_y(4.0)
                    .at(t, 0.0, 0.02)
                    .turn_y(slope)
                    .at(0.0, 0.0, h + pitch);
                b.add(roof, board.both_x());
            }
            hy
        }
        1 => {
            // Lean-to.
            b.add(wall, prism_x(&[(-hy, 0.0), (hy, 0.0), (hy, h), (-hy, h + pitch)], w, 0.008).tile(0.4));
            let slope = pitch.atan2(d).to_degrees();
            b.add(
                roof,
                block(w + 2.0 * eaves, d.hypot(pitch) + 2.0 * eaves, 0.035).turn_x(-slope).at(
                    0.0,
                    0.03,
                    h + pitch * 0.5 + 0.02,
                ),
            );
            hy
        }
        2 => {
            // A hollow log with a conical cap.
            b.add(wall, lathe(&[(0.0, 0.0), (hx, 0.0), (hx * 1.03, h * 0.5), (hx, h), (0.0, h)], 26));
            b.add(roof, lathe(&[(0.0, h - 0.01), (hx + eaves, h - 0.01), (0.0, h + pitch * 1.5)], 26));
            // Moss on the weather side of the roof, a painted front below.
            let moss = b.paint(Colour::hsv(0.27, 0.65, 0.45), 0.95, 0.05);
            let side = [(hx + eaves + 0.006, h - 0.004), (0.006, h + pitch * 1.5)];
            b.add(moss, lathe_arc(&side, 190.0, 320.0, 12));
            b.add(
                accent,
                patch(&[(hx, 0.0), (hx * 1.03, h * 0.5), (hx, h)], h * 0.06, h * 0.94, 0.006, 35.0, 145.0),
            );
            hx
        }
        _ => {
            // Two storeys: a smaller house on top.
            b.add(wall, block(w, d, h * 0.7).at(0.0, 0.0, h * 0.35).tile(0.4));
            b.add(
                roof,
                tapered((w + 2.0 * eaves, d + 2.0 * eaves), (w * 0.5, d * 0.5), pitch * 0.6).at(
                    0.0,
                    0.0,
                    h * 0.7 + pitch * 0.3,
                ),
            );
            b.add(
                wall,
                block(w * 0.5, d * 0.5, h * 0.35).at(0.0, 0.0, h * 0.7 + pitch * 0.55 + h * 0.15).tile(0.4),
            );
            b.add(
                roof,
                cone(w * 0.45, 0.0, pitch, 4).turn_z(45.0).at(0.0, 0.0, h * 1.02 + pitch * 1.05).flat(),
            );
            b.add(
                black,
                cylinder(hole * 0.6, 0.02, 16).turn_x(90.0).at(
                    0.0,
                    d * 0.25,
                    h * 0.7 + pitch * 0.62 + h * 0.12,
                ),
            );
            hy
        }
    };
    let hole_z = h * if kind == 3 { 0.42 } else { 0.62 };
    b.add(accent, ring(hole * 1.15, hole * 0.22, 22, 6).turn_x(90.0).at(0.0, front, hole_z));
    b.add(black, cylinder(hole, 0.03, 22).turn_x(90.0).at(0.0, front, hole_z));
    b.add(
        wood,
        rod(v(0.0, front - 0.02, hole_z - hole * 1.9), v(0.0, front + 0.14, hole_z - hole * 1.9), 0.016, 8),
    );
    b.add(wood, block(w + 0.14, d + 0.18, 0.03).at(0.0, 0.03, -0.015).tile(0.4));
    // A bird on the perch, a chimney on one side, a post or a chain.
    let bird = b.accent();
    let beak = b.paint(Colour([0.95, 0.6, 0.1]), 0.5, 0.3);
    if b.chance("bird", 0.6) {
        let (x, y, z) = (-w * 0.42, front + 0.09, 0.05);
        b.add(bird, ellipsoid(0.07, 0.05, 0.05, 14).turn_y(20.0).at(x, y, z));
        b.add(bird, ellipsoid(0.035, 0.035, 0.035, 12).at(x - 0.06, y, z + 0.06));
        b.add(beak, cone(0.014, 0.0, 0.04, 8).turn_y(-90.0).at(x - 0.11, y, z + 0.06));
        b.add(bird, block(0.08, 0.03, 0.014).turn_y(20.0).at(x + 0.09, y, z - 0.02));
    }
    let chimney = b.paint(Colour([0.6, 0.22, 0.15]), 0.8, 0.2);
    b.add(chimney, block(0.09, 0.09, pitch + 0.14).at(hx * 0.5, -hy * 0.35, h + pitch * 0.5 + 0.02));
    for i in 0..b.count("shutters", 0, 2) {
        let s = if i == 0 { 1.0 } else { -1.0 };
        b.add(accent, block(0.012, d * 0.3, h * 0.3).at(s * (hx + 0.004), -0.02, h * 0.5));
        b.add(roof, block(0.014, d * 0.2, h * 0.2).at(s * (hx + 0.006), -0.02, h * 0.5));
    }
    if b.chance("post", 0.5) {
        let tall = b.vary("post_height", 0.3, 0.6);
        b.add(wood, cylinder(0.045, tall, 14).at(0.0, 0.0, -0.03 - tall * 0.5));
        b.add(wood, rod(v(0.0, 0.0, -0.25), v(hx * 0.8, 0.0, -0.03), 0.02, 8));
    } else {
        let top = h + pitch * if kind == 2 { 1.5 } else { 1.1 } + if kind == 3 { 0.2 } else { 0.0 };
        b.add(black, ring(0.05, 0.01, 16, 6).turn_x(90.0).at(0.0, 0.0, top + 0.05));
    }
}

/// A mailbox: rural box with flag, pillar box, wall box, house-shaped box. Its door towards +y.
pub fn mailbox(b: &mut Builder) {
    let kind = b.kind("kind", 4);
    let w = b.vary("width", 0.28, 0.38);
    let d = b.vary("depth", 0.5, 0.7);
    let h = b.vary("height", 0.2, 0.3);
    let post_h = b.vary("post", 0.5, 0.9);
    let colour = b.one_of(&[
        Colour([0.1, 0.2, 0.55]),
        Colour([0.7, 0.06, 0.06]),
        Colour([0.12, 0.35, 0.16]),
        Colour::grey(0.75),
        Colour([0.95, 0.7, 0.1]),
        Colour::grey(0.15),
    ]);
    let body = b.paint(colour, 0.35, 0.5);
    let second = b.contrast(colour);
    let trim = b.paint(second, 0.4, 0.4);
    let (black, metal, wood, white) = (b.black(), b.metal(), b.wood(), b.white());
    let red = if colour.0[0] > 0.5 {
        b.paint(Colour([0.95, 0.9, 0.2]), 0.4, 0.4)
    } else {
        b.paint(Colour([0.85, 0.06, 0.05]), 0.4, 0.4)
    };
    let (hx, hy) = (w * 0.5, d * 0.5);
    let z = post_h;
    match kind {
        0 => {
            // Tunnel-shaped box on a post, flag on the -x side, door open or shut, letters inside.
            let mut outline = vec![(-hx, 0.0), (hx, 0.0)];
            outline.extend((0..=14).map(|i| {
                let a = std::f32::consts::PI * i as f32 / 14.0;
                (hx * a.cos(), h + hx * a.sin())
            }));
            b.add(body, prism_y(&outline, d, 0.008).at(0.0, 0.0, z));
            let inner: Vec<(f32, f32)> = outline.iter().map(|&(x, q)| (x * 0.92, q * 0.94 + 0.01)).collect();
            b.add(trim, prism_y(&inner, 0.02, 0.004).at(0.0, -hy - 0.002, z));
            let open = b.vary("door_angle", 0.0, 75.0);
            b.add(black, prism_y(&inner, 0.008, 0.0).at(0.0, hy + 0.001, z));
            b.add(trim, prism_y(&inner, 0.018, 0.004).turn_x(-open).at(0.0, hy + 0.012, z + 0.01));
            b.add(metal, knob(0.02).at(0.0, 0.005, h + hx * 0.6).turn_x(-open).at(0.0, hy + 0.02, z));
            if open > 25.0 {
                b.add(white, block(w * 0.6, 0.2, 0.02).turn_y(6.0).at(0.02, hy - 0.02, z + h * 0.6));
                b.add(white, block(w * 0.55, 0.2, 0.02).turn_y(-4.0).at(-0.01, hy + 0.01, z + h * 0.35));
            }
            let up = b.chance("flag_up", 0.6);
            let flag = cuboid(0.015, 0.03, 0.26)
                .at(0.0, 0.0, 0.13)
                .with(cuboid(0.015, 0.13, 0.1).at(0.0, -0.06, 0.22));
            let flag = if up { flag } else { flag.turn_x(90.0) };
            b.add(red, flag.at(-hx - 0.012, hy * 0.35, z + h * 0.8));
            b.add(wood, block(0.1, 0.1, z).at(0.0, 0.0, z * 0.5).tile(0.4));
            b.add(wood, block(w * 0.8, d * 0.8, 0.03).at(0.0, 0.0, z - 0.01).tile(0.4));
            b.add(wood, rod(v(0.0, 0.03, z * 0.65), v(0.0, hy * 0.8, z - 0.02), 0.03, 8));
            let label = print(b, colour);
            b.add(label, cuboid(0.006, d * 0.45, h * 0.6).at(hx + 0.003, -hy * 0.2, z + h * 0.55));
        }
        1 => {
            // Pillar box: round, domed, with a slot and a plate.
            let r = b.vary("radius", 0.2, 0.26);
            let tall = b.vary("pillar", 0.9, 1.2);
            b.add(black, cylinder(r * 1.12, 0.1, 32).at(0.0, 0.0, 0.05));
            b.add(body, lathe(&[(r, 0.1), (r, tall)], 36));
            b.add(
                body,
                lathe(
                    &curve2(
                        &[
                            (r * 1.14, tall),
                            (r * 1.14, tall + 0.06),
                            (r * 0.95, tall + 0.12),
                            (r * 0.4, tall + 0.18),
                            (0.0, tall + 0.2),
                        ],
                        4,
                    ),
                    36,
                )
                .with(lathe(&[(0.0, tall), (r * 1.14, tall)], 36)),
            );
            b.add(trim, ring(r * 1.12, 0.02, 36, 6).at(0.0, 0.0, tall + 0.03));
            b.add(black, cuboid(r * 1.0, 0.06, 0.05).at(0.0, r * 0.98, tall * 0.86));
            b.add(body, block(r * 1.2, 0.08, 0.025).at(0.0, r * 1.0, tall * 0.9));
            let label = print(b, colour);
            b.add(label, patch(&[(r, 0.1), (r, tall)], tall * 0.5, tall * 0.78, 0.006, 60.0, 120.0));
            b.add(trim, patch(&[(r, 0.1), (r, tall)], tall * 0.12, tall * 0.46, 0.006, 50.0, 130.0));
            b.add(metal, knob(0.02).at(-r * 0.5, r * 0.92, tall * 0.3));
            b.add(black, patch(&[(r, 0.1), (r, tall)], tall * 0.2, tall * 0.8, 0.004, 225.0, 315.0));
        }
        2 => {
            // Street collection box with a rounded hood on four legs.
            let (bw, tall) = (w * 1.4, post_h + 0.1);
            let leg_h = 0.14;
            let mut side = vec![(-hy * 0.6, leg_h), (hy * 0.6, leg_h)];
            side.extend((0..=12).map(|i| {
                let a = std::f32::consts::PI * i as f32 / 12.0;
                (hy * 0.6 * a.cos(), tall * 0.8 + hy * 0.6 * a.sin())
            }));
            b.add(body, prism_x(&side, bw, 0.012));
            for z in [tall * 0.36, tall * 0.68] {
                b.add(trim, rounded(bw * 1.01, hy * 1.22, 0.02, 0.006).at(0.0, 0.0, z));
            }
            for i in 0..8 {
                let rivet = ellipsoid(0.012, 0.008, 0.012, 8).at(
                    bw * (i as f32 / 8.0 - 0.44),
                    hy * 0.61,
                    tall * 0.33,
                );
                b.add(metal, rivet);
            }
            b.add(black, block(0.05, 0.05, leg_h).at(bw * 0.42, hy * 0.5, leg_h * 0.5).both_x().both_y());
            b.add(trim, block(bw * 0.75, 0.03, 0.2).turn_x(-18.0).at(0.0, hy * 0.54, tall * 0.9));
            b.add(metal, bar_handle(bw * 0.45, 0.025).turn_x(10.0).at(0.0, hy * 0.58, tall * 0.92));
            let label = print(b, colour);
            b.add(label, cuboid(bw * 0.7, 0.008, tall * 0.3).at(0.0, hy * 0.603, tall * 0.52));
            b.add(trim, cuboid(bw * 0.5, 0.008, tall * 0.12).at(-bw * 0.15, hy * 0.603, tall * 0.24));
            b.add(trim, cuboid(0.008, hy * 0.7, tall * 0.4).at(bw * 0.5 + 0.002, 0.0, tall * 0.5));
            b.add(white, block(bw * 0.4, 0.1, 0.015).turn_x(-30.0).at(bw * 0.08, hy * 0.6, tall * 0.82));
        }
        _ => {
            // A little house on a post with a newspaper tube on one side.
            let roof = b.paint(second.mix(Colour([0.5, 0.2, 0.1]), 0.4), 0.7, 0.2);
            b.add(
                body,
                prism_y(
                    &[(-hx, 0.0), (hx, 0.0), (hx, h * 1.2), (0.0, h * 1.2 + hx * 0.7), (-hx, h * 1.2)],
                    d * 0.8,
                    0.008,
                )
                .at(0.0, 0.0, z),
            );
            let run = (hx * hx + (hx * 0.7).powi(2)).sqrt() + 0.06;
            b.add(
                roof,
                block(run, d * 0.95, 0.03)
                    .at(run * 0.5, 0.0, 0.02)
                    .turn_y(35.0)
                    .at(0.0, 0.0, z + h * 1.2 + hx * 0.7)
                    .both_x(),
            );
            b.add(trim, block(w * 0.7, 0.02, h * 0.8).at(0.0, d * 0.4, z + h * 0.5));
            b.add(metal, knob(0.02).at(0.0, d * 0.41, z + h * 0.75));
            b.add(black, cuboid(w * 0.5, 0.012, 0.035).at(0.0, d * 0.405, z + h * 1.12));
            b.add(
                red,
                cuboid(0.012, 0.03, 0.22).at(-hx - 0.01, 0.05, z + h).with(cuboid(0.012, 0.11, 0.09).at(
                    -hx - 0.01,
                    0.0,
                    z + h + 0.1,
                )),
            );
            let paper_tube = lathe(
                &[
                    (0.06, -d * 0.35),
                    (0.07, -d * 0.35),
                    (0.07, d * 0.35),
                    (0.06, d * 0.35),
                    (0.06, -d * 0.35),
                ],
                20,
            )
            .turn_x(-90.0);
            b.add(black, paper_tube.at(hx * 0.6, 0.0, z - 0.08));
            b.add(white, cylinder(0.045, d * 0.8, 16).turn_x(90.0).at(hx * 0.6, 0.03, z - 0.08));
            b.add(wood, block(0.1, 0.1, z).at(0.0, 0.0, z * 0.5).tile(0.4));
            b.add(wood, block(w * 1.1, d * 0.85, 0.03).at(0.0, 0.0, z - 0.005).tile(0.4));
        }
    }
    if kind == 0 || kind == 3 {
        // Grass at the foot, on one side.
        let green = b.paint(Colour::hsv(0.3, 0.75, 0.45), 0.8, 0.1);
        for i in 0..b.count("grass", 5, 9) {
            let a = -0.4 + 0.5 * i as f32;
            let p = v(0.08 + 0.09 * a.cos().abs(), 0.1 * a.sin(), 0.0);
            b.add(green, cone(0.03, 0.0, 0.16, 6).turn_y(12.0 * a.cos()).at(p.x, p.y, 0.08));
        }
    }
}
