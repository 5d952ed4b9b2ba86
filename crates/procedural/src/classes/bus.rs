//! Buses: city bus, coach, school bus, double-decker. Front towards +y, doors on the -x side.

use super::*;

/// A bus.
pub fn bus(b: &mut Builder) {
    let kind = b.kind("kind", 4);
    let length = b.vary("length", 2.2, 3.0);
    let width = b.vary("width", 0.58, 0.68);
    let decks = if kind == 3 { 2 } else { 1 };
    let height = b.vary("height", 0.62, 0.76) * if decks == 2 { 1.45 } else { 1.0 };
    let r = b.vary("wheel_radius", 0.12, 0.15);
    let floor = r * 0.75;
    let colour = if kind == 2 { Colour([0.95, 0.66, 0.05]) } else { b.vivid() };
    let second = b.contrast(colour);
    let body = b.paint(colour, 0.25, 0.6);
    let band = b.paint(second, 0.3, 0.5);
    let roof_colour = colour.mix(Colour::grey(0.95), b.range(0.3, 0.9));
    let roof_paint = b.paint(roof_colour, 0.3, 0.5);
    let (glass, steel, black, tyre) = (b.glass(), b.steel(), b.black(), b.rubber());
    let lamp = b.glowing(Colour([1.0, 0.97, 0.85]));
    let red = b.glowing(Colour([0.8, 0.05, 0.04]));
    let sign = b.glowing(Colour([0.98, 0.75, 0.15]));
    let (h, w) = (length * 0.5, width * 0.5);
    let hood = if kind == 2 { length * 0.16 } else { 0.0 };
    let top = floor + height;
    let rake = if kind == 1 { b.range(0.05, 0.14) } else { 0.02 };
    let front = h - hood;
    // Body with wheel arches in its side outline.
    let axles =
        [h - b.vary("front_overhang", 0.3, 0.42) - hood * 0.1, -h + b.vary("rear_overhang", 0.4, 0.6)];
    let arch = r * 1.18;
    let mut outline = vec![(-h, floor)];
    for &y in axles.iter().rev() {
        if y + arch < front {
            let s = ((r - floor) / arch).asin();
            outline.extend((0..=8).map(|i| {
                let a = std::f32::consts::PI + s + (-std::f32::consts::PI - 2.0 * s) * i as f32 / 8.0;
                (y + arch * a.cos(), r + arch * a.sin())
            }));
        }
    }
    outline.extend([
        (front, floor),
        (front, floor + height * 0.45),
        (front - rake, top - 0.03),
        (front - rake - 0.04, top),
        (-h + 0.04, top),
        (-h, top - 0.04),
    ]);
    b.add(body, prism_x(&outline, width, 0.03));
    b.add(
        roof_paint,
        rounded(width * 0.94, length - hood - 0.25, 0.06, 0.03).at(0.0, -hood * 0.5, top + 0.005),
    );
    b.add(
        band,
        cuboid(width + 0.006, length - hood - 0.02, height * if decks == 2 { 0.07 } else { 0.13 }).at(
            0.0,
            -hood * 0.5,
            floor + height * if decks == 2 { 0.47 } else { 0.33 },
        ),
    );
    if hood > 0.0 {
        let bonnet = prism_x(
            &[
                (front - 0.05, floor),
                (h, floor),
                (h, floor + height * 0.36),
                (h - 0.05, floor + height * 0.44),
                (front - 0.05, floor + height * 0.5),
            ],
            width * 0.86,
            0.03,
        );
        b.add(body, bonnet);
    }
    // Windows: rows on both sides, with the doors on the -x side instead of some.
    let n = b.count("windows", 5, 8);
    let (from, to) = (-h + 0.15, front - 0.28);
    let pitch = (to - from) / n as f32;
    let doors = b.count("doors", 1, 2);
    for deck in 0..decks {
        let z = floor + height * if decks == 2 { [0.3, 0.74][deck] } else { 0.66 };
        let wh = height * if decks == 2 { 0.24 } else { 0.38 };
        for i in 0..n {
            let y = from + pitch * (i as f32 + 0.5);
            let pane = block(0.012, pitch * 0.84, wh);
            b.add(glass, pane.clone().at(w + 0.002, y, z));
            if doors == 1 || deck == 1 || i != n / 2 {
                b.add(glass, pane.at(-w - 0.002, y, z));
            }
        }
        b.add(
            glass,
            block(width * 0.86, 0.012, wh * 1.15).turn_x(rake * 60.0).at(
                0.0,
                front + 0.004 - rake * if decks == 2 { deck as f32 } else { 0.65 },
                z,
            ),
        );
        b.add(glass, block(width * 0.7, 0.012, wh).at(0.0, -h - 0.006, z));
    }
    let door_h = height * if decks == 2 { 0.4 } else { 0.8 };
    let mut door_spots = vec![front - 0.16];
    if doors == 2 {
        door_spots.push(from + pitch * (n as f32 * 0.5).floor() + pitch * 0.5);
    }
    for y in door_spots {
        b.add(band, cuboid(0.014, 0.21, door_h).at(-w - 0.002, y, floor + door_h * 0.52));
        b.add(glass, cuboid(0.014, 0.075, door_h * 0.8).at(-w - 0.006, y - 0.047, floor + door_h * 0.55));
        b.add(glass, cuboid(0.014, 0.075, door_h * 0.8).at(-w - 0.006, y + 0.047, floor + door_h * 0.55));
    }
    b.add(
        glass,
        rounded(0.012, 0.15, height * if decks == 2 { 0.24 } else { 0.4 }, 0.005).at(
            w + 0.002,
            front - 0.14,
            floor + height * if decks == 2 { 0.3 } else { 0.64 },
        ),
    );
    // Face and back.
    b.add(sign, cuboid(width * 0.6, 0.02, height * 0.09).at(0.0, front - rake + 0.008, top - height * 0.06));
    let face = h - 0.005;
    b.add(lamp, cylinder(0.04, 0.03, 16).turn_x(90.0).at(w * 0.62, face, floor + height * 0.16).both_x());
    b.add(red, cuboid(0.05, 0.02, 0.1).at(w * 0.8, -h, floor + height * 0.25).both_x());
    b.add(black, rounded(width * 1.0, 0.06, 0.07, 0.02).at(0.0, h, floor + 0.05).both_y());
    b.add(black, cuboid(width * 0.4, 0.02, height * 0.1).at(0.0, face, floor + height * 0.17));
    for side in [-1.0, 1.0] {
        b.add(
            black,
            rod(
                v(side * w, front - 0.02, top - 0.12),
                v(side * (w + 0.07), front + 0.05, top - 0.12),
                0.008,
                6,
            ),
        );
        b.add(black, rounded(0.03, 0.02, 0.1, 0.008).at(side * (w + 0.07), front + 0.05, top - 0.16));
    }
    let wheel = Wheel { radius: r, width: 0.1, rim: 0.6, spokes: b.count("spokes", 5, 8) };
    for y in axles {
        b.add(black, cuboid(width * 0.7, arch * 2.0, arch * 1.6).at(0.0, y, r + 0.02));
        for side in [-1.0, 1.0] {
            wheel.add(b, tyre, steel, v(side * (w - 0.055), y, r), side);
        }
    }
    // The engine compartment at the back, in the second colour up to the roof.
    let tail = length * b.vary("tail", 0.1, 0.2);
    b.add(
        band,
        cuboid(width + 0.008, tail, height * 0.94).at(
            0.0,
            -h + tail * 0.5 - 0.004,
            floor + height * 0.5 + 0.02,
        ),
    );
    b.add(band, cuboid(width * 0.95, tail, 0.03).at(0.0, -h + tail * 0.5 + 0.03, top + 0.025));
    for i in 0..6 {
        let slot =
            cuboid(width * 0.5, 0.012, 0.014).at(0.0, -h - 0.006, floor + height * (0.14 + 0.04 * i as f32));
        b.add(black, slot);
    }
    // Roof: hatches, air conditioning towards the back.
    let units = b.count("roof_units", 1, 3);
    for i in 0..units {
        let y = -h + 0.35 + length * 0.22 * i as f32;
        b.add(
            if i == 0 { band } else { steel },
            rounded(width * 0.55, length * 0.15, 0.07, 0.02).at(0.0, y, top + 0.04),
        );
    }
}
