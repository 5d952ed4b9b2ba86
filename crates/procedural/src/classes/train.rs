//! Trains: steam locomotive with tender, diesel locomotive, bullet train, tram. Front towards +y.

use super::locomotives::{diesel, steam};
use super::*;

/// A row of wheels at the given positions, on both sides.
pub(super) fn wheels(b: &mut Builder, paints: (Paint, Paint), at: &[f32], r: f32, gauge: f32, spokes: usize) {
    for &y in at {
        for side in [-1.0, 1.0] {
            let place = |s: Solid| s.turn_y(90.0).at(side * gauge, y, r);
            b.add(
                paints.0,
                place(lathe(
                    &[(r * 0.8, -0.03), (r, -0.03), (r, 0.03), (r * 0.8, 0.03), (r * 0.8, -0.03)],
                    24,
                )),
            );
            b.add(paints.1, place(cylinder(r * 0.22, 0.09, 12)));
            if spokes == 0 {
                b.add(paints.1, place(cylinder(r * 0.8, 0.03, 20)));
            }
            for k in 0..spokes {
                b.add(
                    paints.1,
                    place(
                        cuboid(r * 0.8, r * 0.09, 0.03)
                            .at(r * 0.4, 0.0, 0.0)
                            .turn_z(360.0 * k as f32 / spokes as f32),
                    ),
                );
            }
        }
    }
}

/// Measures and paints that all kinds share.
#[derive(Clone, Copy)]
pub(super) struct Livery {
    pub w: f32,
    pub hx: f32,
    pub body: Paint,
    pub second: Paint,
    pub accent: Paint,
    pub steel: Paint,
    pub black: Paint,
    pub glass: Paint,
    pub dark: Paint,
    pub lamp: Paint,
    pub red: Paint,
}

/// A train.
pub fn train(b: &mut Builder) {
    let kind = b.kind("kind", 4);
    let w = b.vary("width", 0.3, 0.36);
    let colour = b.vivid();
    let body = b.paint(colour, 0.25, 0.6);
    let second_colour = b.contrast(colour);
    let second = b.paint(second_colour, 0.3, 0.5);
    let accent = b.accent();
    let (steel, black, glass) = (b.steel(), b.black(), b.glass());
    let dark = b.paint(Colour::grey(0.16), 0.6, 0.3);
    let lamp = b.glowing(Colour([1.0, 0.97, 0.85]));
    let red = b.glowing(Colour([0.8, 0.05, 0.05]));
    let hx = w * 0.5;
    let livery = Livery { w, hx, body, second, accent, steel, black, glass, dark, lamp, red };
    match kind {
        0 => steam(b, livery),
        1 => diesel(b, livery),
        2 => bullet(b, livery),
        _ => tram(b, livery),
    }
}

/// Bullet train: long nose, ribbon windows, pantograph, a second car.
fn bullet(b: &mut Builder, livery: Livery) {
    let Livery { w, hx, body, second, steel, glass, dark, lamp, red, .. } = livery;
    let l = b.vary("length", 1.5, 1.9);
    let h = b.vary("height", 0.32, 0.38);
    let nose = b.vary("nose", 0.35, 0.6);
    let floor = 0.08;
    let white = b.paint(Colour::grey(0.92), 0.2, 0.6);
    let zc = floor + h * 0.5;
    let front = l * 0.5;
    let car = stations(
        &[
            [front, 0.02, 0.02, floor + h * 0.2],
            [front - nose * 0.2, hx * 0.5, h * 0.2, floor + h * 0.24],
            [front - nose * 0.6, hx * 0.88, h * 0.36, floor + h * 0.38],
            [front - nose, hx, h * 0.5, zc],
            [0.0, hx, h * 0.5, zc],
            [-l * 0.2, hx, h * 0.5, zc],
        ],
        4,
    );
    b.add(white, hull(&car, 0.55, 28));
    let skirt: Vec<[f32; 4]> =
        car.iter().map(|s| [s[0] * 0.998, s[1] * 1.015, s[2] * 0.45, s[3] - s[2] * 0.5]).collect();
    b.add(body, hull(&skirt, 0.45, 24));
    b.add(
        glass,
        ellipsoid(hx * 0.62, nose * 0.2, h * 0.16, 18).turn_x(-28.0).at(
            0.0,
            front - nose * 0.66,
            floor + h * 0.7,
        ),
    );
    let cars = [(-l * 0.2, front - nose), (-l * 0.85, -l * 0.24)];
    let panes = b.count("windows", 6, 10);
    for (k, (y0, y1)) in cars.into_iter().enumerate() {
        if k == 1 {
            b.add(
                body,
                hull(
                    &[[y1, hx, h * 0.5, zc], [(y0 + y1) * 0.5, hx, h * 0.5, zc], [y0, hx, h * 0.5, zc]],
                    0.55,
                    28,
                ),
            );
            b.add(
                second,
                hull(
                    &[
                        [y1 - 0.002, hx * 1.015, h * 0.22, zc - h * 0.25],
                        [y0 + 0.002, hx * 1.015, h * 0.22, zc - h * 0.25],
                    ],
                    0.45,
                    24,
                ),
            );
            b.add(dark, block(w * 0.8, 0.06, h * 0.8).at(0.0, (y1 + cars[0].0) * 0.5, zc));
            b.add(second, block(w * 0.5, (y1 - y0) * 0.6, 0.04).at(0.0, (y0 + y1) * 0.5, floor + h));
        }
        for i in 0..panes {
            let y = y0 + (y1 - y0) * (i as f32 + 0.5) / panes as f32;
            b.add(
                glass,
                rounded(w * 1.012, (y1 - y0) / panes as f32 * 0.7, h * 0.2, 0.01).at(
                    0.0,
                    y,
                    floor + h * 0.62,
                ),
            );
        }
        b.add(
            second,
            cuboid(w * 1.008, (y1 - y0) * 0.98, h * 0.06).at(0.0, (y0 + y1) * 0.5, floor + h * 0.42),
        );
    }
    b.add(
        lamp,
        ellipsoid(0.045, 0.06, 0.025, 12)
            .turn_z(20.0)
            .at(hx * 0.5, front - nose * 0.28, floor + h * 0.36)
            .both_x(),
    );
    b.add(
        steel,
        rod(v(0.0, -l * 0.5, floor + h), v(0.0, -l * 0.42, floor + h + 0.14), 0.01, 6).with(rod(
            v(0.0, -l * 0.42, floor + h + 0.14),
            v(0.0, -l * 0.52, floor + h + 0.24),
            0.01,
            6,
        )),
    );
    b.add(
        steel,
        rod(v(-hx * 0.6, -l * 0.52, floor + h + 0.24), v(hx * 0.6, -l * 0.52, floor + h + 0.24), 0.012, 6),
    );
    wheels(b, (dark, steel), &[front - nose, -l * 0.1, -l * 0.32, -l * 0.75], 0.07, hx * 0.8, 0);
    b.add(red, cuboid(w * 0.5, 0.02, h * 0.1).at(0.0, -l * 0.851, floor + h * 0.3));
}

/// Tram or metro car: boxy, big windows, doors on the -x side, pole on the roof.
fn tram(b: &mut Builder, livery: Livery) {
    let Livery { w, hx, body, second, accent, steel, black, glass, dark, lamp, red, .. } = livery;
    let l = b.vary("length", 1.3, 1.7);
    let h = b.vary("height", 0.4, 0.48);
    let floor = 0.12;
    let round = b.vary("rounding", 0.03, 0.1);
    b.add(body, rounded(w, l, h, round).at(0.0, 0.0, floor + h * 0.5));
    b.add(second, cuboid(w * 1.008, l * 0.96, h * 0.36).at(0.0, 0.0, floor + h * 0.68));
    let roof = b.paint(Colour::grey(0.55), 0.6, 0.3);
    b.add(roof, rounded(w * 0.86, l * 0.94, 0.06, 0.03).at(0.0, 0.0, floor + h + 0.015));
    let n = b.count("windows", 5, 8);
    for i in 0..n {
        let y = l * 0.46 - l * 0.92 * (i as f32 + 0.5) / n as f32;
        b.add(
            glass,
            rounded(0.012, l * 0.92 / n as f32 * 0.78, h * 0.28, 0.005).at(hx + 0.002, y, floor + h * 0.68),
        );
        if i % 3 == 1 {
            b.add(
                accent,
                cuboid(0.014, l * 0.92 / n as f32 * 0.86, h * 0.82).at(-hx - 0.002, y, floor + h * 0.45),
            );
            b.add(
                glass,
                cuboid(0.014, l * 0.92 / n as f32 * 0.3, h * 0.55)
                    .at(-hx - 0.006, y + l * 0.18 / n as f32, floor + h * 0.5)
                    .with(cuboid(0.014, l * 0.92 / n as f32 * 0.3, h * 0.55).at(
                        -hx - 0.006,
                        y - l * 0.18 / n as f32,
                        floor + h * 0.5,
                    )),
            );
        } else {
            b.add(
                glass,
                rounded(0.012, l * 0.92 / n as f32 * 0.78, h * 0.28, 0.005).at(
                    -hx - 0.002,
                    y,
                    floor + h * 0.68,
                ),
            );
        }
    }
    b.add(glass, rounded(w * 0.78, 0.014, h * 0.36, 0.005).at(0.0, l * 0.5, floor + h * 0.66));
    b.add(glass, rounded(w * 0.5, 0.014, h * 0.26, 0.005).at(0.0, -l * 0.5, floor + h * 0.7));
    let sign = b.glowing(Colour([0.98, 0.75, 0.15]));
    b.add(sign, cuboid(w * 0.5, 0.02, h * 0.1).at(0.0, l * 0.497, floor + h * 0.92));
    b.add(lamp, cylinder(0.035, 0.03, 16).turn_x(90.0).at(hx * 0.55, l * 0.5, floor + h * 0.25).both_x());
    b.add(red, cuboid(0.06, 0.02, 0.05).at(hx * 0.55, -l * 0.5, floor + h * 0.25).both_x());
    b.add(black, rounded(w * 0.9, 0.08, 0.06, 0.02).at(0.0, l * 0.51, floor + 0.05).both_y());
    // The rear end in the second livery, roof included.
    let tail = l * b.vary("tail", 0.22, 0.34);
    b.add(
        accent,
        rounded(w * 1.012, tail, h * 1.004, round).at(0.0, -l * 0.5 + tail * 0.5 - 0.003, floor + h * 0.5),
    );
    b.add(
        accent,
        rounded(w * 0.88, tail, 0.07, 0.03).at(0.0, -l * 0.5 + tail * 0.5 + l * 0.025, floor + h + 0.016),
    );
    let pole = v(0.0, -l * 0.25, floor + h + 0.04);
    b.add(
        steel,
        rod(pole, pole + v(0.0, 0.16, 0.14), 0.011, 6).with(rod(
            pole + v(0.0, 0.16, 0.14),
            pole + v(0.0, -0.06, 0.28),
            0.011,
            6,
        )),
    );
    b.add(steel, rod(pole + v(-hx * 0.7, -0.06, 0.28), pole + v(hx * 0.7, -0.06, 0.28), 0.012, 6));
    b.add(second, block(w * 0.5, l * 0.2, 0.06).at(0.0, l * 0.2, floor + h + 0.06));
    for c in [l * 0.28, -l * 0.28] {
        b.add(dark, block(w * 0.85, l * 0.24, 0.06).at(0.0, c, 0.1));
        wheels(b, (steel, dark), &[c - 0.1, c + 0.1], 0.08, hx * 0.8, 0);
    }
}
