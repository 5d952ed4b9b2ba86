//! Bags: handbag, tote, backpack, paper bag, duffel, suitcase. Front towards +y.

use super::*;

/// A bag.
pub fn bag(b: &mut Builder) {
    let kind = b.kind("kind", 5);
    let w = b.vary("width", 0.5, 0.75);
    let h = b.vary("height", 0.42, 0.65);
    let d = b.vary("depth", 0.18, 0.3);
    let colour = b.vivid();
    let main = match b.kind("material", 3) {
        0 => b.leather(),
        1 => b.fabric(),
        _ => b.paint(colour, 0.7, 0.3),
    };
    let second = b.contrast(colour);
    let trim = b.paint(second, 0.6, 0.3);
    let (metal, black) = (b.metal(), b.black());
    let handle_h = b.vary("handle", 0.14, 0.3);
    let (hx, hy) = (w * 0.5, d * 0.5);
    match kind {
        0 => {
            // Handbag: tapered body with a flap, clasp and one handle.
            let taper = |p: glam::Vec3| {
                let t = (p.z / h).clamp(0.0, 1.0);
                v(p.x * (1.0 - 0.12 * t), p.y * (1.0 - 0.45 * t), p.z)
            };
            b.add(main, rounded(w, d, h, 0.07).at(0.0, 0.0, h * 0.5).map(taper).tile(0.4));
            // The flap follows the front from the top edge downwards; its lower edge is round.
            let flap = sheet(10, 10, 0.02, |u, t| {
                let side = 2.0 * u - 1.0;
                let drop = h * 0.55 * t * (1.0 - 0.4 * side * side);
                let z = h - drop;
                let slope = (1.0 - 0.45 * z / h) * hy;
                v(-side * w * 0.42, slope + 0.016, z)
            });
            b.add(trim, flap);
            b.add(trim, block(w * 0.84, d * 0.58, 0.03).at(0.0, 0.012, h + 0.004));
            b.add(metal, rounded(0.08, 0.035, 0.07, 0.012).at(0.0, hy * 0.8 + 0.03, h * 0.47));
            let path = arc(v(0.0, 0.0, h), v(w * 0.28, 0.0, 0.0), v(0.0, 0.0, handle_h), 0.0, 180.0, 18);
            b.add(main, tube(&path, 0.022, 10));
            b.add(metal, ring(0.03, 0.01, 14, 6).turn_x(90.0).at(w * 0.28, 0.0, h + 0.01).both_x());
        }
        1 => {
            // Tote with two handles, a print and open top.
            let open = |p: glam::Vec3| v(p.x * (1.0 + 0.1 * p.z / h), p.y * (0.75 + 0.3 * p.z / h), p.z);
            b.add(main, rounded(w, d, h, 0.03).at(0.0, 0.0, h * 0.5).map(open).tile(0.4));
            b.add(black, cuboid(w * 1.02, d * 0.95, 0.01).at(0.0, 0.0, h + 0.001));
            for s in [-1.0, 1.0] {
                let y = s * hy * 0.98;
                let path = arc(
                    v(0.0, y, h * 0.9),
                    v(w * 0.24, 0.0, 0.0),
                    v(0.0, s * 0.04, handle_h),
                    0.0,
                    180.0,
                    18,
                );
                b.add(trim, sweep(&rounded_rectangle(0.05, 0.016, 0.005, 2), &path, glam::Vec3::Y));
            }
            let label = print(b, colour);
            b.add(label, cuboid(w * 0.55, 0.008, h * 0.5).turn_x(-3.0).at(0.0, hy * 0.93, h * 0.48));
            b.add(trim, cuboid(w * 0.9, 0.01, h * 0.6).at(0.0, -hy * 0.97, h * 0.5));
            let scarf = b.fabric();
            b.add(scarf, ellipsoid(w * 0.22, d * 0.3, 0.1, 16).at(w * 0.2, 0.0, h + 0.01));
        }
        2 => {
            // Backpack: rounded body, front pocket, straps behind, side bottle.
            let h = h * 1.15;
            b.add(main, superellipsoid(hx * 0.85, hy * 1.1, h * 0.5, 0.45, 0.5, 28).at(0.0, 0.0, h * 0.5));
            b.add(
                trim,
                superellipsoid(hx * 0.68, hy * 0.5, h * 0.24, 0.4, 0.45, 24).at(0.0, hy * 0.95, h * 0.3),
            );
            b.add(
                metal,
                rod(v(-hx * 0.55, hy * 1.42, h * 0.42), v(hx * 0.55, hy * 1.42, h * 0.42), 0.008, 6),
            );
            b.add(black, cuboid(hx * 1.3, 0.02, 0.025).at(0.0, hy * 1.02, h * 0.68));
            let grip = arc(v(0.0, -hy * 0.5, h), v(0.08, 0.0, 0.0), v(0.0, 0.0, 0.09), 0.0, 180.0, 10);
            b.add(trim, tube(&grip, 0.016, 8));
            let strap = curve(
                &[
                    v(hx * 0.4, -hy * 0.8, h * 0.92),
                    v(hx * 0.5, -hy * 1.9, h * 0.75),
                    v(hx * 0.6, -hy * 1.7, h * 0.35),
                    v(hx * 0.6, -hy * 0.9, h * 0.1),
                ],
                6,
            );
            b.add(trim, sweep(&rounded_rectangle(0.09, 0.025, 0.01, 2), &strap, glam::Vec3::X).both_x());
            let bottle = b.accent();
            b.add(
                bottle,
                lathe(
                    &[
                        (0.0, 0.0),
                        (0.06, 0.0),
                        (0.06, h * 0.34),
                        (0.03, h * 0.42),
                        (0.03, h * 0.48),
                        (0.0, h * 0.48),
                    ],
                    18,
                )
                .at(-hx * 0.92, 0.02, h * 0.12),
            );
            b.add(trim, lathe(&[(0.07, h * 0.08), (0.075, h * 0.28)], 18).at(-hx * 0.92, 0.02, 0.0));
        }
        3 => {
            // Paper shopping bag with twisted handles and tissue.
            let h = h * 1.1;
            b.add(main, cuboid(w * 0.85, d, h).at(0.0, 0.0, h * 0.5).tile(0.5));
            b.add(trim, cuboid(w * 0.86, d * 1.01, h * 0.12).at(0.0, 0.0, h * 0.95));
            b.add(black, cuboid(w * 0.8, d * 0.94, 0.01).at(0.0, 0.0, h * 1.011));
            for s in [-1.0, 1.0] {
                let path = curve(
                    &[
                        v(-w * 0.18, s * hy, h),
                        v(-w * 0.15, s * hy * 1.1, h + handle_h),
                        v(w * 0.15, s * hy * 1.1, h + handle_h),
                        v(w * 0.18, s * hy, h),
                    ],
                    6,
                );
                b.add(trim, tube(&path, 0.012, 8));
            }
            let label = print(b, colour);
            b.add(label, cuboid(w * 0.6, 0.008, h * 0.55).at(0.0, hy + 0.003, h * 0.45));
            b.add(trim, cuboid(w * 0.83, 0.01, h * 0.86).at(0.0, -hy - 0.003, h * 0.45));
            let tissue = b.accent();
            for i in 0..b.count("tissue", 4, 6) {
                let x = w * (-0.3 + 0.13 * i as f32);
                b.add(
                    tissue,
                    cone(d * 0.28, 0.0, 0.16, 8).turn_y(-20.0 + 12.0 * i as f32).at(x, 0.0, h + 0.05).flat(),
                );
            }
        }
        _ => {
            // Duffel or suitcase with ribs, wheels and a pull handle.
            if b.chance("suitcase", 0.5) {
                let h = h * 1.2;
                b.add(main, rounded(w * 0.8, d, h, 0.06).at(0.0, 0.0, h * 0.5 + 0.05));
                for i in 0..b.count("ribs", 3, 6) {
                    let x = w * (-0.28 + 0.12 * i as f32);
                    b.add(trim, rounded(0.03, d + 0.02, h * 0.82, 0.01).at(x, 0.012, h * 0.5 + 0.05));
                }
                b.add(black, cylinder(0.04, 0.04, 14).turn_y(90.0).at(w * 0.3, -hy * 0.5, 0.03).both_x());
                b.add(
                    metal,
                    rod(v(w * 0.16, -hy * 0.7, h), v(w * 0.16, -hy * 0.7, h + 0.05 + handle_h), 0.014, 8)
                        .both_x(),
                );
                b.add(black, rounded(w * 0.42, 0.05, 0.05, 0.02).at(0.0, -hy * 0.7, h + 0.06 + handle_h));
                b.add(
                    black,
                    tube(
                        &arc(v(w * 0.4, 0.0, h * 0.55), v(0.0, 0.0, 0.1), v(0.05, 0.0, 0.0), 0.0, 180.0, 10),
                        0.014,
                        8,
                    ),
                );
                let label = print(b, colour);
                b.add(label, cuboid(w * 0.3, 0.01, h * 0.3).at(w * 0.16, hy + 0.022, h * 0.7));
            } else {
                let r = h * 0.42;
                let body = lathe(
                    &curve2(
                        &[
                            (0.0, -w * 0.62),
                            (r * 0.8, -w * 0.61),
                            (r, -w * 0.5),
                            (r * 1.04, 0.0),
                            (r, w * 0.5),
                            (r * 0.8, w * 0.61),
                            (0.0, w * 0.62),
                        ],
                        4,
                    ),
                    32,
                );
                b.add(main, body.turn_y(90.0).at(0.0, 0.0, r));
                b.add(
                    trim,
                    lathe(
                        &[
                            (r * 1.03, w * 0.28),
                            (r * 1.07, w * 0.3),
                            (r * 1.07, w * 0.36),
                            (r * 1.03, w * 0.38),
                        ],
                        32,
                    )
                    .turn_y(90.0)
                    .at(0.0, 0.0, r)
                    .both_x(),
                );
                b.add(black, cuboid(w * 0.9, 0.03, 0.02).at(0.0, 0.0, r * 2.05));
                for s in [-1.0, 1.0] {
                    let path = arc(
                        v(0.0, s * r * 0.7, r * 1.75),
                        v(w * 0.2, 0.0, 0.0),
                        v(0.0, 0.0, handle_h),
                        0.0,
                        180.0,
                        16,
                    );
                    b.add(trim, tube(&path, 0.018, 8));
                }
                let pocket = superellipsoid(w * 0.2, 0.07, r * 0.5, 0.4, 0.4, 20);
                b.add(trim, pocket.at(-w * 0.06, r * 0.98, r * 0.95));
                let tag = b.accent();
                b.add(tag, rounded(0.02, 0.1, 0.15, 0.008).at(w * 0.64, 0.03, r * 1.1));
                let strap = curve(
                    &[
                        v(w * 0.6, 0.0, r * 1.3),
                        v(w * 0.4, -r * 1.2, r * 0.8),
                        v(-w * 0.3, -r * 1.35, r * 0.3),
                        v(-w * 0.6, 0.0, r * 1.3),
                    ],
                    7,
                );
                b.add(black, tube(&strap, 0.016, 8));
            }
        }
    }
}
