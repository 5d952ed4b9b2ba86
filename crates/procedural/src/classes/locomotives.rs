//! Locomotives: steam with tender, diesel. Front towards +y.

use super::train::{Livery, wheels};
use super::*;

/// Steam: boiler, chimney, domes, cab, cow catcher, rods, tender with coal.
pub(super) fn steam(b: &mut Builder, livery: Livery) {
    let Livery { w, hx, body, second, accent, steel, black, glass, dark, lamp, .. } = livery;
    let l = b.vary("boiler", 0.75, 1.0);
    let r = b.vary("boiler_radius", 0.15, 0.19);
    let wheel_r = b.vary("driver_radius", 0.14, 0.18);
    let z = wheel_r * 1.6 + r;
    let brass = b.paint(Colour([0.85, 0.65, 0.25]), 0.25, 0.8);
    b.add(body, cylinder(r, l, 30).turn_x(90.0).at(0.0, l * 0.2, z));
    b.add(black, cylinder(r * 1.03, l * 0.22, 30).turn_x(90.0).at(0.0, l * 0.62, z));
    b.add(dark, ellipsoid(r * 0.85, 0.06, r * 0.85, 22).at(0.0, l * 0.73, z));
    for i in 0..b.count("bands", 2, 4) {
        b.add(
            brass,
            lathe(&[(r * 1.01, -0.012), (r * 1.02, 0.012)], 30).turn_x(-90.0).at(
                0.0,
                l * (0.42 - 0.2 * i as f32),
                z,
            ),
        );
    }
    let chimney = b.vary("chimney", 0.16, 0.28);
    b.add(
        black,
        lathe(
            &[
                (0.0, 0.0),
                (r * 0.4, 0.0),
                (r * 0.33, chimney * 0.6),
                (r * 0.5, chimney),
                (r * 0.4, chimney),
                (0.0, chimney * 0.7),
            ],
            20,
        )
        .at(0.0, l * 0.6, z + r * 0.9),
    );
    b.add(
        brass,
        lathe(&curve2(&[(r * 0.42, 0.0), (r * 0.4, r * 0.5), (0.0, r * 0.75)], 4), 18).at(
            0.0,
            l * 0.25,
            z + r * 0.85,
        ),
    );
    b.add(
        body,
        lathe(&curve2(&[(r * 0.35, 0.0), (r * 0.32, r * 0.4), (0.0, r * 0.6)], 4), 18).at(
            0.0,
            l * 0.0,
            z + r * 0.85,
        ),
    );
    b.add(lamp, cylinder(0.05, 0.06, 16).turn_x(90.0).at(0.0, l * 0.76, z + r * 0.95));
    // Frame, cab, running boards, pilot.
    b.add(second, block(w * 1.02, l * 1.45, 0.05).at(0.0, l * 0.02, wheel_r * 1.55));
    let cab_y = -l * 0.5;
    let cab_h = r * 2.0 + 0.22;
    b.add(body, block(w, l * 0.32, cab_h).at(0.0, cab_y, wheel_r * 1.6 + cab_h * 0.5));
    b.add(glass, cuboid(w * 1.02, l * 0.16, cab_h * 0.28).at(0.0, cab_y, wheel_r * 1.6 + cab_h * 0.72));
    b.add(
        glass,
        cuboid(w * 0.26, 0.02, cab_h * 0.2)
            .at(w * 0.3, cab_y + l * 0.16, wheel_r * 1.6 + cab_h * 0.82)
            .both_x(),
    );
    b.add(second, rounded(w * 1.15, l * 0.42, 0.05, 0.02).at(0.0, cab_y, wheel_r * 1.6 + cab_h + 0.02));
    b.add(accent, prism_x(&[(l * 0.72, wheel_r * 1.5), (l * 0.95, 0.05), (l * 0.72, 0.05)], w * 0.9, 0.01));
    b.add(steel, cylinder(0.06, 0.2, 16).turn_x(90.0).at(hx * 0.9, l * 0.55, wheel_r * 1.05).both_x());
    let drivers = b.count("drivers", 2, 4);
    let spots: Vec<f32> = (0..drivers).map(|i| l * 0.3 - i as f32 * wheel_r * 2.15).collect();
    wheels(b, (black, second), &spots, wheel_r, hx, 10);
    wheels(b, (black, second), &[l * 0.62], wheel_r * 0.55, hx * 0.9, 6);
    b.add(
        steel,
        cuboid(0.025, spots[0] - spots[drivers - 1] + 0.06, 0.03)
            .at(hx + 0.06, (spots[0] + spots[drivers - 1]) * 0.5, wheel_r * 0.75)
            .both_x(),
    );
    // Tender.
    let ty = cab_y - l * 0.52;
    b.add(body, block(w, l * 0.52, r * 1.3).at(0.0, ty, wheel_r * 1.6 + r * 0.65));
    b.add(second, block(w * 1.01, l * 0.4, r * 0.3).at(0.0, ty, wheel_r * 1.6 + r * 0.7));
    for i in 0..14 {
        let (a, s) = (i as f32 * 1.7, b.range(0.04, 0.07));
        b.add(
            black,
            ellipsoid(s, s, s, 8).flat().at(
                hx * 0.7 * a.cos(),
                ty + l * 0.2 * (a * 0.7).sin(),
                wheel_r * 1.6 + r * 1.32,
            ),
        );
    }
    wheels(b, (black, second), &[ty + l * 0.15, ty - l * 0.15], wheel_r * 0.7, hx * 0.9, 6);
}

/// Diesel: long hood, cab towards the front, grilles, bogies.
pub(super) fn diesel(b: &mut Builder, livery: Livery) {
    let Livery { w, hx, body, second, accent, steel, black, glass, dark, lamp, red, .. } = livery;
    let l = b.vary("length", 1.6, 2.0);
    let floor = 0.2;
    let hood_h = b.vary("hood", 0.3, 0.38);
    let cab_y = l * b.vary("cab", 0.18, 0.32);
    b.add(dark, block(w, l, 0.07).at(0.0, 0.0, floor));
    b.add(body, block(w * 0.72, l * 0.92, hood_h).at(0.0, -0.01, floor + 0.03 + hood_h * 0.5));
    let cab_h = hood_h * 1.35;
    b.add(second, rounded(w * 1.0, l * 0.16, cab_h, 0.03).at(0.0, cab_y, floor + 0.03 + cab_h * 0.5));
    b.add(glass, cuboid(w * 1.01, l * 0.1, cab_h * 0.25).at(0.0, cab_y, floor + cab_h * 0.8));
    b.add(
        glass,
        cuboid(w * 0.36, l * 0.165, cab_h * 0.22).at(w * 0.25, cab_y, floor + cab_h * 0.83).both_x(),
    );
    let n = b.count("grilles", 5, 9);
    for i in 0..n {
        let y = cab_y - l * 0.14 - (cab_y + l * 0.3) * i as f32 / n as f32;
        b.add(black, cuboid(w * 0.735, l * 0.035, hood_h * 0.5).at(0.0, y, floor + 0.06 + hood_h * 0.5));
    }
    b.add(second, cuboid(w * 0.74, l * 0.93, hood_h * 0.12).at(0.0, -0.01, floor + 0.06 + hood_h * 0.12));
    for i in 0..b.count("fans", 2, 3) {
        b.add(
            steel,
            cylinder(w * 0.22, 0.04, 20).at(0.0, -l * (0.1 + 0.14 * i as f32), floor + hood_h + 0.05),
        );
        b.add(
            black,
            cylinder(w * 0.16, 0.05, 16).at(0.0, -l * (0.1 + 0.14 * i as f32), floor + hood_h + 0.052),
        );
    }
    for side in [-1.0, 1.0] {
        b.add(
            accent,
            rod(
                v(side * hx * 0.95, l * 0.48, floor + 0.16),
                v(side * hx * 0.95, -l * 0.48, floor + 0.16),
                0.009,
                6,
            ),
        );
        for k in 0..7 {
            let y = l * (0.48 - 0.16 * k as f32);
            b.add(accent, rod(v(side * hx * 0.95, y, floor), v(side * hx * 0.95, y, floor + 0.16), 0.008, 5));
        }
    }
    // Hazard stripes on the nose.
    let tex = crate::texture::paint(32, |u, t| {
        if ((u + t) * 4.0).fract() < 0.5 { Colour([0.95, 0.75, 0.08]) } else { Colour::grey(0.08) }
    });
    let hazard = b.textured(tex, 0.5, 0.3);
    b.add(hazard, cuboid(w * 0.96, 0.03, 0.12).at(0.0, l * 0.5, floor - 0.02));
    b.add(hazard, cuboid(w * 0.66, 0.02, hood_h * 0.4).at(0.0, l * 0.452, floor + hood_h * 0.4));
    b.add(lamp, ellipsoid(0.035, 0.02, 0.035, 12).at(0.05, l * 0.455, floor + hood_h * 0.88).both_x());
    b.add(red, cuboid(0.05, 0.02, 0.04).at(hx * 0.5, -l * 0.472, floor + hood_h * 0.5).both_x());
    let wr = 0.1;
    for c in [l * 0.32, -l * 0.32] {
        b.add(dark, block(w * 0.9, l * 0.26, 0.07).at(0.0, c, wr * 1.2));
        wheels(b, (steel, dark), &[c - l * 0.09, c, c + l * 0.09], wr, hx * 0.85, 0);
    }
    b.add(dark, rounded(w * 0.8, l * 0.22, 0.12, 0.04).at(0.0, 0.0, 0.12));
}
