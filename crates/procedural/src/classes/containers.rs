//! Containers: trash bin, basket, bathtub.

use super::*;

/// A trash bin: pedal bin, wheelie bin, open office bin, street bin.
pub fn trash_bin(b: &mut Builder) {
    let kind = b.kind("kind", 4);
    let h = b.vary("height", 0.7, 1.0);
    let r = b.vary("radius", 0.26, 0.36);
    let taper = b.vary("taper", 0.72, 0.95);
    let colour = if b.chance("steel", 0.25) { Colour::grey(0.65) } else { b.vivid() };
    let second = b.contrast(colour);
    let body = b.paint(colour, 0.4, 0.5);
    let lid = b.paint(second, 0.4, 0.5);
    let (black, steel) = (b.black(), b.steel());
    let wall = vec![(0.0, 0.0), (r * taper, 0.0), (r, h)];
    let label = print(b, colour);
    match kind {
        0 => {
            // Pedal bin: domed lid ajar on a hinge at the back, pedal at the front.
            let open = b.vary("lid_angle", 0.0, 50.0);
            b.add(body, lathe(&wall, 36));
            b.add(
                black,
                lathe(&[(r, h), (r * 0.94, h), (r * (0.94 * taper + 0.06), h * 0.4), (0.0, h * 0.4)], 36),
            );
            let dome =
                lathe(&curve2(&[(r * 1.03, 0.0), (r * 1.0, 0.05), (r * 0.7, 0.13), (0.0, 0.17)], 4), 36)
                    .with(lathe(&[(0.0, 0.0), (r * 1.03, 0.0)], 36));
            b.add(lid, dome.at(0.0, r, 0.0).turn_x(open).at(0.0, -r, h));
            b.add(steel, cuboid(0.16, 0.1, 0.09).at(0.0, -r - 0.02, h));
            b.add(black, cuboid(0.16, 0.16, 0.025).at(0.0, r * taper + 0.06, 0.03));
            b.add(black, lathe(&[(r * taper * 1.03, 0.0), (r * taper * 1.03, 0.06)], 36));
            b.add(label, patch(&wall, h * 0.4, h * 0.75, 0.005, 55.0, 125.0));
        }
        1 => {
            // Wheelie bin.
            let (w, d) = (r * 1.7, r * 1.9);
            b.add(body, tapered((w * taper * 0.95, d * taper * 0.9), (w, d), h).at(0.0, 0.0, h * 0.5 + 0.06));
            b.add(body, block(w * 1.08, d * 1.06, 0.06).at(0.0, 0.0, h + 0.04));
            let open = b.vary("lid_angle", 0.0, 25.0);
            let top = prism_x(
                &[(0.0, 0.0), (d * 1.12, 0.0), (d * 1.1, 0.05), (d * 0.5, 0.1), (0.0, 0.07)],
                w * 1.1,
                0.015,
            );
            b.add(lid, top.turn_x(open).at(0.0, -d * 0.53, h + 0.075));
            b.add(black, rod(v(-w * 0.45, -d * 0.62, h + 0.06), v(w * 0.45, -d * 0.62, h + 0.06), 0.022, 10));
            b.add(black, block(0.05, d * 0.14, 0.05).at(w * 0.42, -d * 0.56, h + 0.05).both_x());
            let wheel = Wheel { radius: 0.11, width: 0.07, rim: 0.6, spokes: 5 };
            for side in [-1.0, 1.0] {
                wheel.add(b, black, steel, v(side * w * 0.5, -d * 0.42, 0.11), side);
            }
            b.add(
                label,
                cuboid(w * 0.5, 0.01, h * 0.3)
                    .turn_x(-(d * (1.0 - taper * 0.9) * 0.5 / h).atan().to_degrees())
                    .at(0.0, d * 0.47, h * 0.62),
            );
            for i in 0..b.count("ribs", 2, 4) {
                b.add(
                    body,
                    block(w * 0.9, 0.02, 0.03).at(
                        0.0,
                        d * taper * 0.47 + 0.012,
                        h * (0.15 + 0.08 * i as f32),
                    ),
                );
            }
        }
        2 => {
            // Open office bin of bars, with paper balls.
            let bars = b.count("bars", 24, 34);
            for i in 0..bars {
                let a = 360.0 * i as f32 / bars as f32;
                let bar = cuboid(0.016, r * 0.16, h / 0.97)
                    .turn_y((r * (1.0 - taper) / h).atan().to_degrees())
                    .at(r * (1.0 + taper) * 0.5, 0.0, h * 0.5)
                    .turn_z(a);
                b.add(if (50.0..170.0).contains(&a) { lid } else { body }, bar);
            }
            b.add(body, ring(r, 0.024, 36, 8).at(0.0, 0.0, h));
            b.add(body, ring(r * (1.0 + taper) * 0.5 + 0.01, 0.014, 36, 6).at(0.0, 0.0, h * 0.5));
            b.add(lid, cylinder(r * taper, 0.03, 32).at(0.0, 0.0, 0.02));
            let paper = b.white();
            for i in 0..b.count("paper", 3, 7) {
                let a = i as f32 * 2.4 - 0.6;
                let d = r * 0.45 * (i as f32 / 7.0).sqrt();
                let size = b.range(0.09, 0.13);
                let ball = ellipsoid(size, size, size, 12)
                    .map(|p| p * (1.0 + 0.16 * ((p.x * 60.0).sin() + (p.y * 53.0).sin())))
                    .flat();
                b.add(paper, ball.at(d * a.cos() + 0.06, d * a.sin(), h * 0.82 + 0.05 * i as f32 / 3.0));
            }
        }
        _ => {
            // Street bin: slatted cylinder with a hood open towards +y.
            let slats = b.count("slats", 14, 22);
            b.add(black, cylinder(r * 0.9, h * 0.86, 30).at(0.0, 0.0, h * 0.45));
            for i in 0..slats {
                let a = 360.0 * (i as f32 + 0.5) / slats as f32;
                let slat = block(0.03, std::f32::consts::TAU * r / slats as f32 * 0.72, h * 0.84)
                    .at(r * 0.96, 0.0, h * 0.45)
                    .turn_z(a);
                b.add(if (60.0..120.0).contains(&a) { lid } else { body }, slat);
            }
            b.add(
                steel,
                ring(r * 0.98, 0.022, 32, 8)
                    .at(0.0, 0.0, h * 0.87)
                    .with(ring(r * 0.98, 0.022, 32, 8).at(0.0, 0.0, 0.04)),
            );
            b.add(lid, rod(v(r * 0.8, -r * 0.3, h * 0.85), v(r * 0.8, -r * 0.3, h * 1.2), 0.03, 8).both_x());
            let hood = lathe(&curve2(&[(r * 1.05, 0.0), (r * 0.9, 0.1), (r * 0.4, 0.18), (0.0, 0.2)], 4), 32)
                .with(lathe(&[(0.0, 0.0), (r * 1.05, 0.0)], 32));
            b.add(lid, hood.at(0.0, 0.0, h * 1.2));
            b.add(
                body,
                lathe_arc(
                    &[(r * 0.93, h * 1.2), (r * 0.93, h * 0.86), (r * 0.97, h * 0.86), (r * 0.97, h * 1.2)],
                    170.0,
                    370.0,
                    20,
                ),
            );
            b.add(label, cuboid(r * 0.9, 0.02, h * 0.2).at(0.0, r * 1.0, h * 0.55));
        }
    }
}

/// A basket: woven, with a bow handle, two grips, or as a laundry basket; something in it at one side.
pub fn basket(b: &mut Builder) {
    let r = b.vary("radius", 0.38, 0.5);
    let h = b.vary("height", 0.28, 0.55);
    let flare = b.vary("flare", 0.68, 0.92);
    let long = b.vary("elongation", 0.65, 1.0);
    let rows = b.count("rows", 6, 10);
    let stakes = b.count("stakes", 16, 24);
    let straw = Colour::hsv(b.range(0.07, 0.13), b.range(0.35, 0.65), b.range(0.6, 0.9));
    let wicker = b.paint(straw, 0.8, 0.2);
    let dark = b.paint(straw.times(0.55), 0.85, 0.15);
    let band_colour = b.vivid();
    let band = b.paint(band_colour, 0.7, 0.3);
    let inside = b.paint(straw.times(0.4), 0.9, 0.1);
    // Rows of wicker that wave in and out between the stakes.
    let coloured = b.count("coloured_row", 2, rows - 2);
    let radius = |z: f32| r * (flare + (1.0 - flare) * (z / h));
    let n = stakes * 2;
    for row in 0..rows {
        let z = h * (row as f32 + 0.5) / rows as f32;
        let phase = if row % 2 == 0 { 0.0 } else { std::f32::consts::PI };
        let path: Vec<_> = (0..n)
            .map(|i| {
                let a = std::f32::consts::TAU * i as f32 / n as f32;
                let d = radius(z) + 0.016 * (a * stakes as f32 + phase).cos();
                v(d * a.cos(), d * long * a.sin(), z)
            })
            .collect();
        let half = h * 0.55 / rows as f32;
        let strand = sweep_closed(&oval(0.014, half, 6), &path, glam::Vec3::Z);
        b.add(if row == coloured || row == coloured + 1 { band } else { wicker }, strand);
    }
    for i in 0..stakes {
        let a = std::f32::consts::TAU * (i as f32 + 0.5) / stakes as f32;
        let p = |z: f32, d: f32| v((radius(z) + d) * a.cos(), (radius(z) + d) * long * a.sin(), z);
        b.add(dark, rod(p(0.0, 0.012), p(h, 0.012), 0.013, 5));
    }
    b.add(
        inside,
        lathe(&[(r * 0.96, h * 0.97), (r * flare * 0.96, 0.03), (0.0, 0.03)], 32).scale(1.0, long, 1.0),
    );
    b.add(wicker, lathe(&[(0.0, 0.0), (r * flare, 0.0)], 32).scale(1.0, long, 1.0));
    let rim: Vec<_> = oval(r, r * long, 40).iter().map(|p| p.extend(h)).collect();
    b.add(dark, sweep_closed(&oval(0.028, 0.022, 8), &rim, glam::Vec3::Z));
    match b.kind("handle", 3) {
        0 => {
            let tall = h * b.vary("bow", 0.9, 1.5);
            let bow = arc(v(0.0, 0.0, h), v(r, 0.0, 0.0), v(0.0, 0.0, tall), 0.0, 180.0, 24);
            b.add(dark, sweep(&rounded_rectangle(0.07, 0.028, 0.01, 2), &bow, glam::Vec3::X));
            b.add(band, sweep(&rounded_rectangle(0.08, 0.036, 0.01, 2), &bow[5..10], glam::Vec3::X));
        }
        1 => {
            let grip = arc(v(r, 0.0, h), v(0.02, 0.14, 0.0), v(0.05, 0.0, 0.13), 0.0, 180.0, 12);
            let shifted: Vec<_> = grip.iter().map(|p| v(p.x, p.y, p.z)).collect();
            b.add(dark, tube(&shifted, 0.024, 8).both_x());
        }
        _ => {
            // A lid leaning open at the back.
            let lid = prism(&oval(r * 1.02, r * long * 1.02, 36), 0.03, 0.008).at(0.0, r * long, 0.0);
            let open = b.range(60.0, 85.0);
            b.add(band, lid.turn_x(open).at(0.0, -r * long, h + 0.02));
        }
    }
    // Contents: cloth over one side, fruit, bread or wool in the rest.
    let cloth = b.fabric();
    let drape = sheet(8, 12, 0.012, |u, w| {
        let x = (u - 0.5) * r * 1.1;
        let edge = (1.0 - (x / r).powi(2)).max(0.1).sqrt() * r * long;
        let s = w * 1.0;
        if s < 0.55 {
            v(-x, edge * (s / 0.55) * 1.04, h * (0.82 + 0.25 * (s / 0.55)))
        } else {
            v(-x, edge * 1.04 + 0.045, h * (1.07 - (s - 0.55) * 1.1 + 0.03 * (u * 25.0).sin()))
        }
    });
    b.add(cloth, drape);
    let goods = Colour::hsv(b.one_of(&[0.0, 0.08, 0.16, 0.3, 0.85]), 0.85, 0.9);
    let goods = b.paint(goods, 0.5, 0.4);
    let size = b.range(0.1, 0.15);
    for i in 0..b.count("goods", 3, 7) {
        let a = i as f32 * 1.1 - 3.6;
        let d = r * flare * 0.55;
        b.add(
            goods,
            ellipsoid(size, size, size * 0.92, 14).at(d * a.cos(), d * long * a.sin() - 0.04, h * 0.85),
        );
    }
}

/// A bathtub: built-in, clawfoot, free-standing oval, corner tub; tap and a mat tell its ends apart.
pub fn bathtub(b: &mut Builder) {
    let kind = b.kind("kind", 3);
    let length = b.vary("length", 1.5, 1.8);
    let width = b.vary("width", 0.7, 0.85);
    let h = b.vary("height", 0.5, 0.62);
    let slope = b.vary("slope", 0.08, 0.22);
    let shell_colour = if kind == 0 {
        Colour::grey(0.93)
    } else {
        b.one_of(&[
            Colour::grey(0.93),
            Colour([0.1, 0.1, 0.12]),
            Colour([0.5, 0.08, 0.1]),
            Colour([0.1, 0.3, 0.35]),
        ])
    };
    let enamel = b.paint(Colour::grey(0.94), 0.15, 0.6);
    let shell = b.paint(shell_colour, 0.25, 0.5);
    let metal = b.metal();
    let tint = b.range(0.48, 0.58);
    let water = b.paint(Colour::hsv(tint, 0.5, 0.75), 0.08, 0.7);
    let (hx, hy) = (length * 0.5, width * 0.5);
    let z0 = if kind == 1 { 0.14 } else { 0.0 };
    let square = if kind == 0 { 0.35 } else { 0.75 };
    // Rings of superellipses: outside up, over the rim, inside down. One end slopes for the back.
    let ringed = |scale: f32, z: f32, inward: f32, lean: f32| -> Vec<glam::Vec3> {
        let power = |c: f32| c.signum() * c.abs().powf(square);
        (0..48)
            .map(|i| {
                let t = std::f32::consts::TAU * (i as f32 + 0.5) / 48.0;
                let x = (hx * scale - inward) * power(t.cos());
                let y = (hy * scale - inward) * power(t.sin());
                let x = if x > 0.0 { x - lean * x / hx } else { x };
                v(x, y, z)
            })
            .collect()
    };
    let top = z0 + h;
    if kind == 0 {
        b.add(shell, block(length, 0.02, h - 0.02).at(0.0, hy - 0.01, (h - 0.02) * 0.5).both_y());
        b.add(shell, block(0.02, width, h - 0.02).at(hx - 0.01, 0.0, (h - 0.02) * 0.5).both_x());
        b.add(shell, cuboid(length, width, 0.02).at(0.0, 0.0, 0.01));
        let panel = b.fabric();
        b.add(panel, block(length * 0.92, 0.02, h * 0.7).at(0.0, hy, h * 0.45).tile(0.25));
        let tray = frame(length, 0.04, width, 0.06).turn_x(90.0).at(0.0, 0.0, h - 0.02);
        b.add(enamel, tray);
    } else {
        let outer = strip(&[
            ringed(0.55, z0 + 0.01, 0.0, slope),
            ringed(0.72, z0 + 0.03, 0.0, slope),
            ringed(0.88, z0 + h * 0.35, 0.0, slope * 0.6),
            ringed(0.95, z0 + h * 0.7, 0.0, slope * 0.2),
            ringed(1.0, top, 0.0, 0.0),
        ]);
        b.add(shell, outer);
        let rim = ringed(1.0, top, 0.02, 0.0);
        b.add(enamel, sweep_closed(&oval(0.04, 0.028, 8), &rim, glam::Vec3::Z));
    }
    let rows = [
        ringed(1.0, top + 0.004, 0.05, 0.0),
        ringed(1.0, top - 0.03, 0.075, 0.0),
        ringed(0.97, top - h * 0.35, 0.1, slope * 0.4),
        ringed(0.9, top - h * 0.7, 0.12, slope),
        ringed(0.8, top - h * 0.85, 0.14, slope),
    ];
    // Rings listed downwards: the skin faces the water.
    b.add(enamel, strip(&rows).crease(60.0));
    let bottom: Vec<glam::Vec2> = rows[rows.len() - 1].iter().map(|p| p.truncate()).collect();
    b.add(enamel, prism(&bottom, 0.01, 0.0).at(0.0, 0.0, top - h * 0.85));
    let level = b.vary("water", 0.3, 0.75);
    let fill: Vec<glam::Vec2> = ringed(0.95, 0.0, 0.1, slope * 0.5).iter().map(|p| p.truncate()).collect();
    b.add(water, prism(&fill, 0.01, 0.0).at(0.0, 0.0, top - h * (0.8 - 0.5 * level)));
    if kind == 1 {
        for (sx, sy) in [(1.0, 1.0), (-1.0, 1.0), (1.0, -1.0), (-1.0, -1.0)] {
            let foot = curve(
                &[
                    v(sx * hx * 0.55, sy * hy * 0.5, z0 + 0.1),
                    v(sx * hx * 0.66, sy * hy * 0.72, z0 - 0.02),
                    v(sx * hx * 0.7, sy * hy * 0.78, 0.03),
                ],
                4,
            );
            b.add(metal, tube_tapered(&foot, |t| 0.05 - 0.02 * t, 10));
            b.add(metal, ellipsoid(0.05, 0.05, 0.03, 12).at(sx * hx * 0.7, sy * hy * 0.78, 0.03));
        }
    }
    // Tap and handles at the -x end, overflow, towel over the rim at the other.
    let x = -hx + 0.06;
    let spout = curve(
        &[v(x, 0.0, top), v(x, 0.0, top + 0.16), v(x + 0.08, 0.0, top + 0.22), v(x + 0.2, 0.0, top + 0.17)],
        5,
    );
    b.add(metal, tube(&spout, 0.026, 10));
    for dy in [-0.14, 0.14] {
        b.add(metal, cylinder(0.022, 0.1, 10).at(x, dy, top + 0.05));
        b.add(
            metal,
            rod(v(x - 0.05, dy, top + 0.1), v(x + 0.05, dy, top + 0.1), 0.014, 8).with(rod(
                v(x, dy - 0.05, top + 0.1),
                v(x, dy + 0.05, top + 0.1),
                0.014,
                8,
            )),
        );
    }
    let towel = b.fabric();
    let w = b.vary("towel", 0.28, 0.42);
    let tx = hx * b.range(0.35, 0.55);
    let side = |t: f32| {
        if t < 0.5 {
            v(0.0, hy + 0.03 - 0.04 * (0.5 - t), top + 0.03 - (0.5 - t) * h * 1.3)
        } else {
            v(0.0, hy + 0.03 - (t - 0.5) * 0.5, top + 0.04 - (t - 0.5).powi(2) * 0.6)
        }
    };
    let cloth = sheet(3, 12, 0.025, |u, t| v(tx - (u - 0.5) * w, 0.0, 0.0) + side(1.0 - t));
    b.add(towel, cloth);
    let toy = b.paint(Colour([0.98, 0.8, 0.1]), 0.4, 0.4);
    let wz = top - h * (0.8 - 0.5 * level);
    b.add(
        toy,
        ellipsoid(0.09, 0.07, 0.06, 14)
            .at(hx * 0.1, -hy * 0.2, wz + 0.03)
            .with(ellipsoid(0.05, 0.05, 0.05, 12).at(hx * 0.1 - 0.06, -hy * 0.2, wz + 0.1)),
    );
}
