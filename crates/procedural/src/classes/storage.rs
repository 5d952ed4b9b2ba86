//! Storage furniture: bookshelf, cabinet, file cabinet. Fronts towards +y.

use super::*;

/// A bookshelf filled with books, boxes and vases.
pub fn bookshelf(b: &mut Builder) {
    let width = b.vary("width", 0.6, 1.1);
    let height = b.vary("height", 1.1, 1.9);
    let depth = b.vary("depth", 0.24, 0.34);
    let shelves = b.count("shelves", 3, 6);
    let bays = b.count("bays", 1, 2);
    let board = b.vary("board", 0.02, 0.035);
    let wood = if b.chance("painted", 0.35) { b.lacquer() } else { b.wood() };
    let back_colour = b.muted().times(0.7);
    let back = b.paint(back_colour, 0.8, 0.2);
    let (hx, hy) = (width * 0.5, depth * 0.5);
    let foot = b.vary("plinth", 0.03, 0.14);
    b.add(wood, block(board, depth, height).at(hx - board * 0.5, 0.0, height * 0.5).both_x().tile(0.7));
    b.add(back, cuboid(width - board, 0.012, height - foot).at(0.0, -hy + 0.008, (height + foot) * 0.5));
    for i in 0..=shelves {
        let z = foot + (height - foot - board) * i as f32 / shelves as f32 + board * 0.5;
        b.add(wood, block(width - board, depth, board).at(0.0, 0.0, z).tile(0.7));
    }
    b.add(wood, block(width, 0.02, foot).at(0.0, hy - 0.04, foot * 0.5));
    if bays == 2 {
        b.add(wood, block(board, depth * 0.98, height - foot).at(0.0, 0.0, (height + foot) * 0.5).tile(0.7));
    }
    if b.chance("cornice", 0.4) {
        b.add(wood, tapered((width, depth), (width + 0.08, depth + 0.06), 0.06).at(0.0, 0.0, height + 0.03));
    }
    let spines: Vec<Paint> = (0..7)
        .map(|i| {
            let c = if i % 3 == 2 { b.muted() } else { b.vivid() };
            b.paint(c, 0.7, 0.2)
        })
        .collect();
    let ornament = b.accent();
    let bay_w = (width - board * 2.0) / bays as f32 - if bays == 2 { board } else { 0.0 };
    let bay_h = (height - foot) / shelves as f32 - board;
    let fullness = b.vary("fullness", 0.55, 0.95);
    for shelf in 0..shelves {
        let z = foot + (height - foot - board) * shelf as f32 / shelves as f32 + board;
        for bay in 0..bays {
            let x0 = if bays == 1 {
                -bay_w * 0.5
            } else if bay == 0 {
                board * 0.5
            } else {
                -bay_w - board * 0.5
            };
            match b.random.below(6) {
                0 => {
                    // A vase and a box.
                    let r = (bay_h * 0.25).min(bay_w * 0.14);
                    b.add(
                        ornament,
                        lathe(
                            &curve2(
                                &[
                                    (0.0, 0.0),
                                    (r * 0.6, 0.0),
                                    (r, r * 1.0),
                                    (r * 0.45, r * 2.0),
                                    (r * 0.6, r * 2.6),
                                    (0.0, r * 2.5),
                                ],
                                3,
                            ),
                            14,
                        )
                        .at(x0 + bay_w * 0.72, 0.0, z),
                    );
                    b.add(
                        spines[shelf % 7],
                        block(bay_w * 0.34, depth * 0.7, bay_h * 0.5).at(
                            x0 + bay_w * 0.3,
                            0.0,
                            z + bay_h * 0.25,
                        ),
                    );
                }
                1 => {
                    // A lying stack.
                    let mut top = z;
                    for k in 0..4 {
                        let t = b.range(0.025, 0.05).min(bay_h * 0.2);
                        let turn = b.range(-6.0, 6.0);
                        b.add(
                            spines[(shelf + k) % 7],
                            block(bay_w * 0.4, depth * 0.7, t).turn_z(turn).at(
                                x0 + bay_w * 0.7,
                                0.0,
                                top + t * 0.5,
                            ),
                        );
                        top += t;
                    }
                    row(b, &spines, x0, bay_w * 0.4, depth, bay_h, z);
                }
                _ => {
                    let share = if b.range(0.0, 1.0) < fullness { 0.96 } else { b.range(0.4, 0.8) };
                    row(b, &spines, x0, bay_w * share, depth, bay_h, z);
                }
            }
        }
    }
    b.add(ornament, block(width * 0.3, depth * 0.6, 0.1).at(hx * 0.5, 0.0, height + 0.05));
}

/// A row of standing books from `x0` to the right end, the last one leaning.
fn row(b: &mut Builder, spines: &[Paint], x0: f32, length: f32, depth: f32, room: f32, z: f32) {
    let mut x = 0.0;
    let mut k = b.random.below(7) as usize;
    while x < length - 0.03 {
        let t = b.range(0.028, 0.06).min(length - x);
        let h = room * b.range(0.62, 0.94);
        let d = depth * b.range(0.6, 0.85);
        b.add(
            spines[k % spines.len()],
            cuboid(t * 0.92, d, h).at(x0 + x + t * 0.5, depth * 0.42 - d * 0.5, z + h * 0.5),
        );
        x += t;
        k += 1 + b.random.below(3) as usize;
    }
}

/// A cabinet: wardrobe, sideboard, chest of drawers, glazed cabinet.
pub fn cabinet(b: &mut Builder) {
    let kind = b.kind("kind", 4);
    let (width, height) = match kind {
        0 => (b.vary("width", 0.9, 1.4), b.vary("height", 1.5, 1.9)),
        1 => (b.vary("width", 1.3, 1.9), b.vary("height", 0.6, 0.85)),
        2 => (b.vary("width", 0.7, 1.1), b.vary("height", 0.75, 1.15)),
        _ => (b.vary("width", 0.7, 1.0), b.vary("height", 1.3, 1.7)),
    };
    let depth = b.vary("depth", 0.4, 0.58);
    let body = if b.chance("painted", 0.4) { b.lacquer() } else { b.wood() };
    let front = if b.chance("two_tone", 0.6) { b.lacquer() } else { body };
    let seam = b.paint(Colour::grey(0.12), 0.9, 0.1);
    let metal = b.metal();
    let legs_h = b.vary("legs", 0.03, 0.22);
    let (hx, hy) = (width * 0.5, depth * 0.5);
    let box_h = height - legs_h;
    b.add(body, block(width, depth, box_h).at(0.0, 0.0, legs_h + box_h * 0.5).tile(0.8));
    let top = b.vary("top_overhang", 0.0, 0.05);
    let top_paint = if b.chance("stone_top", 0.3) { b.white() } else { body };
    b.add(top_paint, block(width + top, depth + top, 0.03).at(0.0, 0.0, height + 0.01).tile(0.8));
    if legs_h > 0.1 {
        b.add(
            metal,
            leg(v(hx - 0.07, hy - 0.07, legs_h), v(hx - 0.04, hy - 0.04, 0.0), 0.028, 0.016, 12)
                .both_x()
                .both_y(),
        );
    } else {
        b.add(seam, block(width * 0.96, depth * 0.9, legs_h).at(0.0, -0.01, legs_h * 0.5));
    }
    let back = b.paint(Colour([0.5, 0.42, 0.33]), 0.9, 0.1);
    b.add(back, cuboid(width * 0.97, 0.008, box_h * 0.97).at(0.0, -hy - 0.002, legs_h + box_h * 0.5));
    let handle_kind = b.kind("handles", 3);
    let pull = |b: &mut Builder, x: f32, z: f32, upright: bool, size: f32| {
        let s = match handle_kind {
            0 => knob(0.022),
            1 => bar_handle(size, 0.018),
            _ => ring(size * 0.28, 0.008, 16, 6).turn_x(90.0).at(0.0, 0.02, -size * 0.2),
        };
        let s = if upright && handle_kind == 1 { s.turn_y(90.0) } else { s };
        b.add(metal, s.at(x, hy + 0.02, z));
    };
    let face = |b: &mut Builder, x: f32, z: f32, w: f32, h: f32, panelled: bool| {
        b.add(seam, cuboid(w, 0.004, h).at(x, hy + 0.001, z));
        b.add(front, block(w - 0.014, 0.024, h - 0.014).at(x, hy + 0.01, z).tile(0.8));
        if panelled {
            b.add(body, block(w * 0.68, 0.012, h * 0.72).at(x, hy + 0.022, z).tile(0.8));
        }
    };
    let (z0, w, h) = (legs_h + 0.02, width - 0.04, box_h - 0.05);
    let panelled = b.chance("panels", 0.5);
    match kind {
        0 => {
            let doors = b.count("doors", 2, 3);
            let drawer_h = if b.chance("base_drawers", 0.6) { h * 0.16 } else { 0.0 };
            for i in 0..doors {
                let x = ((i as f32 + 0.5) / doors as f32 - 0.5) * w;
                face(b, x, z0 + drawer_h + (h - drawer_h) * 0.5, w / doors as f32, h - drawer_h, panelled);
                let side = if i % 2 == 0 { 1.0 } else { -1.0 };
                pull(b, x + side * w / doors as f32 * 0.38, z0 + drawer_h + (h - drawer_h) * 0.48, true, 0.2);
                if drawer_h > 0.0 {
                    face(b, x, z0 + drawer_h * 0.5, w / doors as f32, drawer_h, false);
                    pull(b, x, z0 + drawer_h * 0.5, false, 0.12);
                }
            }
            let mirror = b.paint(Colour([0.72, 0.8, 0.85]), 0.05, 0.9);
            b.add(
                mirror,
                cuboid(w / doors as f32 * 0.6, 0.01, (h - drawer_h) * 0.75).at(
                    w * (0.5 - 0.5 / doors as f32),
                    hy + 0.03,
                    z0 + drawer_h + (h - drawer_h) * 0.5,
                ),
            );
        }
        1 => {
            // Sideboard: drawers on one side, doors on the other.
            let side = if b.chance("left_handed", 0.5) { 1.0 } else { -1.0 };
            let part = w * b.range(0.32, 0.42);
            let n = b.count("drawers", 2, 4);
            for i in 0..n {
                let z = z0 + h * (i as f32 + 0.5) / n as f32;
                face(b, side * (w - part) * 0.5, z, part, h / n as f32, false);
                pull(b, side * (w - part) * 0.5, z, false, part * 0.4);
            }
            for k in 0..2 {
                let dw = (w - part) * 0.5;
                let x = -side * (w * 0.5 - dw * (k as f32 + 0.5));
                face(b, x, z0 + h * 0.5, dw, h, panelled);
                pull(b, x + side * if k == 0 { dw * 0.38 } else { -dw * 0.38 }, z0 + h * 0.55, true, 0.14);
            }
            let ornament = b.accent();
            b.add(
                ornament,
                lathe(
                    &curve2(
                        &[(0.0, 0.0), (0.06, 0.0), (0.1, 0.1), (0.04, 0.22), (0.06, 0.28), (0.0, 0.27)],
                        4,
                    ),
                    20,
                )
                .at(side * w * 0.32, 0.0, height + 0.025),
            );
            b.add(ornament, block(w * 0.3, depth * 0.8, 0.012).at(-side * w * 0.25, 0.0, height + 0.03));
        }
        2 => {
            let rows = b.count("rows", 3, 5);
            for i in 0..rows {
                let z = z0 + h * (i as f32 + 0.5) / rows as f32;
                let split = i + 1 == rows && width > 0.85;
                let n = if split { 2 } else { 1 };
                for k in 0..n {
                    let x = ((k as f32 + 0.5) / n as f32 - 0.5) * w;
                    face(b, x, z, w / n as f32, h / rows as f32, panelled);
                    let grips: &[f32] = if split { &[0.0] } else { &[-0.25, 0.25] };
                    for &g in grips {
                        pull(b, x + g * w, z, false, 0.12);
                    }
                }
            }
            let runner = b.fabric();
            b.add(runner, block(width * 0.35, depth * 1.04, 0.015).at(width * 0.2, 0.0, height + 0.03));
        }
        _ => {
            // Glazed upper part with shelves and dishes, doors below.
            let low = h * 0.36;
            for k in [-0.5_f32, 0.5] {
                face(b, k * w * 0.5, z0 + low * 0.5, w * 0.5, low, panelled);
                pull(b, k * w * 0.5 - k.signum() * w * 0.18, z0 + low * 0.6, true, 0.1);
            }
            let up = h - low;
            b.add(seam, cuboid(w * 0.96, 0.012, up * 0.96).at(0.0, hy + 0.002, z0 + low + up * 0.5));
            let dishes = b.white();
            let coloured = b.accent();
            for i in 0..3 {
                let z = z0 + low + up * (0.05 + 0.31 * i as f32);
                b.add(body, block(w * 0.94, 0.04, 0.02).at(0.0, hy, z));
                for k in 0..b.range(2.0, 5.0) as usize {
                    let x = w * (-0.36 + 0.2 * k as f32);
                    b.add(
                        if (i + k) % 3 == 0 { coloured } else { dishes },
                        cone(0.045, 0.06, up * 0.16, 14).at(x, hy + 0.01, z + up * 0.09),
                    );
                }
            }
            for k in [-0.25, 0.25] {
                b.add(front, frame(w * 0.5, 0.03, up, 0.05).at(k * w, hy + 0.03, z0 + low + up * 0.5));
            }
            b.add(
                front,
                tapered((width, depth), (width + 0.1, depth + 0.08), 0.07).at(0.0, 0.0, height + 0.05),
            );
        }
    }
}

/// A file cabinet; one drawer may be open.
pub fn file_cabinet(b: &mut Builder) {
    let lateral = b.chance("lateral", 0.35);
    let width = if lateral { b.vary("width", 0.7, 0.95) } else { b.vary("width", 0.38, 0.48) };
    let depth = if lateral { b.vary("depth", 0.42, 0.5) } else { b.vary("depth", 0.52, 0.66) };
    let drawers = b.count("drawers", 2, 5);
    let drawer_h = b.vary("drawer_height", 0.25, 0.31);
    let castors = drawers <= 3 && b.chance("castors", 0.6);
    let base = if castors { 0.08 } else { 0.04 };
    let height = base + drawers as f32 * drawer_h + 0.04;
    let colour = match b.kind("finish", 3) {
        0 => Colour([0.62, 0.64, 0.6]),
        1 => b.muted(),
        _ => b.vivid(),
    };
    let body = b.paint(colour, 0.4, 0.4);
    let front_colour =
        if b.chance("two_tone", 0.5) { b.contrast(colour) } else { colour.mix(Colour::grey(0.95), 0.4) };
    let front = b.paint(front_colour, 0.4, 0.4);
    let (black, steel, paper) = (b.black(), b.steel(), b.white());
    let (hx, hy) = (width * 0.5, depth * 0.5);
    b.add(body, rounded(width, depth, height - base, 0.012).at(0.0, 0.0, (height + base) * 0.5));
    if castors {
        b.add(black, cylinder(0.04, 0.035, 14).turn_y(90.0).at(hx - 0.06, hy - 0.07, 0.04).both_x().both_y());
    } else {
        b.add(black, block(width * 0.94, depth * 0.92, base).at(0.0, 0.0, base * 0.5));
    }
    let open = b.count("open_drawer", 0, drawers);
    let pull_out = depth * b.vary("pull_out", 0.35, 0.7);
    let grip = b.kind("handles", 3);
    let folders: Vec<Paint> = (0..4).map(|_| b.accent()).collect();
    for i in 0..drawers {
        let z = base + 0.02 + drawer_h * (i as f32 + 0.5);
        let y = if i + 1 == open { hy + pull_out } else { hy };
        b.add(black, cuboid(width * 0.95, 0.006, drawer_h * 0.97).at(0.0, hy + 0.001, z));
        b.add(front, block(width * 0.92, 0.03, drawer_h * 0.9).at(0.0, y + 0.012, z));
        let face = y + 0.027;
        match grip {
            0 => b.add(steel, bar_handle(width * 0.35, 0.022).at(0.0, face, z - drawer_h * 0.08)),
            1 => b.add(
                steel,
                lathe_arc(&[(0.035, -width * 0.16), (0.035, width * 0.16)], 0.0, 180.0, 8)
                    .turn_y(90.0)
                    .turn_x(90.0)
                    .at(0.0, face, z - drawer_h * 0.05),
            ),
            _ => b.add(black, block(width * 0.4, 0.012, drawer_h * 0.14).at(0.0, face, z - drawer_h * 0.05)),
        }
        b.add(steel, frame(width * 0.26, 0.012, drawer_h * 0.2, 0.008).at(0.0, face, z + drawer_h * 0.22));
        b.add(paper, cuboid(width * 0.24, 0.006, drawer_h * 0.17).at(0.0, face, z + drawer_h * 0.22));
        if i + 1 == open {
            let side = cuboid(0.012, pull_out, drawer_h * 0.6)
                .at(width * 0.43, hy + pull_out * 0.5, z - drawer_h * 0.1)
                .both_x();
            b.add(
                steel,
                side.with(cuboid(width * 0.86, pull_out, 0.012).at(
                    0.0,
                    hy + pull_out * 0.5,
                    z - drawer_h * 0.38,
                )),
            );
            let n = 7;
            for k in 0..n {
                let fy = hy + pull_out * (0.1 + 0.8 * k as f32 / n as f32);
                b.add(
                    folders[k % 4],
                    cuboid(width * 0.8, 0.012, drawer_h * 0.62).at(0.0, fy, z - drawer_h * 0.06),
                );
                b.add(
                    paper,
                    cuboid(width * 0.18, 0.01, drawer_h * 0.1).at(
                        width * (0.25 - 0.16 * (k % 4) as f32),
                        fy,
                        z + drawer_h * 0.3,
                    ),
                );
            }
        }
    }
    b.add(steel, cylinder(0.014, 0.02, 12).turn_x(90.0).at(-hx + 0.05, hy + 0.012, height - 0.03));
    // A tray or plant on top, off the middle.
    let accent = b.accent();
    if b.chance("tray", 0.5) {
        b.add(accent, block(width * 0.6, depth * 0.5, 0.05).at(hx * 0.25, -hy * 0.2, height + 0.02));
        b.add(
            paper,
            block(width * 0.5, depth * 0.42, 0.03).turn_z(5.0).at(hx * 0.25, -hy * 0.2, height + 0.05),
        );
    } else {
        b.add(accent, cone(0.07, 0.1, 0.14, 18).at(-hx * 0.35, -hy * 0.3, height + 0.07));
        let green = b.paint(Colour::hsv(0.33, 0.7, 0.42), 0.7, 0.2);
        for k in 0..7 {
            let leaf =
                ellipsoid(0.1, 0.035, 0.012, 8).at(0.1, 0.0, 0.0).turn_y(-45.0).turn_z(51.0 * k as f32);
            b.add(green, leaf.at(-hx * 0.35, -hy * 0.3, height + 0.13));
        }
    }
}
