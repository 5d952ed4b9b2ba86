//! Watercraft: sailing boat, motor yacht, cargo ship, rowing boat, warship. Bow towards +y.

use super::hull::Form;
use super::*;

/// A boat or ship.
pub fn watercraft(b: &mut Builder) {
    let kind = b.kind("kind", 5);
    let l = b.vary("length", 1.4, 1.9);
    let w = l * b.vary("beam", 0.2, 0.3) * if kind == 4 || kind == 2 { 0.75 } else { 1.0 };
    let h = w * b.vary("freeboard", 0.45, 0.65);
    let bow = b.vary("bow_rake", 0.08, 0.22);
    let sheer = h * b.vary("sheer", 0.1, 0.4);
    let colour = if kind == 4 {
        Colour([0.45, 0.5, 0.55])
    } else if b.chance("white", 0.3) {
        Colour::grey(0.92)
    } else {
        b.vivid()
    };
    let hull_paint = b.paint(colour, 0.25, 0.5);
    let under_colour =
        if colour.brightness() > 0.45 { b.vivid().times(0.5) } else { Colour([0.65, 0.12, 0.1]) };
    let under = b.paint(under_colour, 0.5, 0.3);
    let (wood, steel, black, glass, white) = (b.wood(), b.steel(), b.black(), b.glass(), b.white());
    let accent = b.accent();
    let green = b.glowing(Colour([0.1, 0.8, 0.25]));
    let red = b.glowing(Colour([0.9, 0.1, 0.1]));
    let form = Form { length: l, beam: w, depth: h, bow, sheer };
    let outline = form.outline();
    let deck = |t: f32| form.deck(t);
    let skin = if kind == 3 { form.open(0.03) } else { form.closed() };
    // Below the water line the same skin in another colour, a hair wider.
    let line_z = h * 0.42;
    let lower = form.below(line_z, if kind == 3 { 1.04 } else { 1.012 });
    b.add(hull_paint, skin);
    b.add(under, lower);
    let on_deck = |inset: f32, lift: f32, thick: f32| {
        let pts: Vec<glam::Vec2> =
            outline.iter().map(|p| glam::Vec2::new(p.x * inset, p.y * inset)).collect();
        prism(&pts, thick, 0.0).map(|p| v(p.x, p.y, p.z + deck(p.y / (l * 0.5)) + lift))
    };
    let deck_paint = if kind >= 2 && kind != 3 { b.paint(Colour([0.5, 0.3, 0.24]), 0.8, 0.2) } else { wood };
    if kind != 3 {
        b.add(deck_paint, on_deck(0.95, 0.004, 0.01).tile(0.4));
    }
    // Rail along the deck edge.
    for side in [0, 1] {
        let count = outline.len() / 2;
        let edge: Vec<glam::Vec3> = outline
            .iter()
            .skip(side * count)
            .take(count)
            .map(|p| p.extend(deck(p.y / (l * 0.5)) + 0.01))
            .collect();
        b.add(if kind == 3 { wood } else { accent }, tube(&edge, 0.014, 6));
    }
    match kind {
        0 => {
            // Sailing boat: mast, boom, main and jib, cabin, rudder, keel.
            let mast = l * b.vary("mast", 0.95, 1.3);
            let my = l * 0.08;
            b.add(steel, rod(v(0.0, my, h), v(0.0, my, h + mast), 0.018, 10));
            let boom_z = h + 0.2;
            b.add(wood, rod(v(0.0, my, boom_z), v(0.05, -l * 0.38, boom_z), 0.016, 8));
            let sail_colour =
                if b.chance("coloured_sails", 0.4) { b.vivid() } else { Colour([0.95, 0.94, 0.88]) };
            let stripe = b.contrast(sail_colour);
            let t = crate::texture::paint(64, |u, s| {
                if (0.3..0.45).contains(&s) || (u - 0.35).hypot(s - 0.68) < 0.09 {
                    stripe
                } else {
                    sail_colour
                }
            });
            let sail = b.textured(t, 0.9, 0.1);
            let belly = b.vary("belly", 0.06, 0.16);
            b.add(
                sail,
                sheet(10, 14, 0.008, |u, t| {
                    let width = (l * 0.44) * (1.0 - t);
                    v(
                        belly * (1.0 - t) * (std::f32::consts::PI * u).sin() + 0.05 * u,
                        my - 0.03 - width * u,
                        boom_z + 0.03 + (mast * 0.93 - 0.2) * t,
                    )
                }),
            );
            let jib_colour = b.vivid();
            let jib = b.paint(jib_colour, 0.9, 0.1);
            b.add(
                jib,
                sheet(8, 12, 0.008, |u, t| {
                    let start = l * 0.47 - (l * 0.39) * t;
                    let width = (l * 0.4) * (1.0 - t);
                    v(
                        belly * (1.0 - t) * (std::f32::consts::PI * u).sin(),
                        start - width * u,
                        deck(0.9) + 0.05 + mast * 0.8 * t,
                    )
                }),
            );
            b.add(steel, wire(&[v(0.0, l * 0.48, deck(0.95)), v(0.0, my, h + mast * 0.95)], 0.006));
            b.add(steel, wire(&[v(0.0, -l * 0.48, h), v(0.0, my, h + mast)], 0.006));
            b.add(white, rounded(w * 0.55, l * 0.3, h * 0.4, 0.05).at(0.0, l * 0.1, h + h * 0.18));
            b.add(glass, cuboid(w * 0.56, l * 0.2, h * 0.14).at(0.0, l * 0.1, h + h * 0.24));
            b.add(black, cuboid(w * 0.5, l * 0.22, 0.012).at(0.0, -l * 0.25, h + 0.008));
            b.add(
                under,
                prism_x(
                    &[(l * 0.12, 0.02), (-l * 0.06, 0.02), (-l * 0.04, -h * 0.7), (l * 0.06, -h * 0.7)],
                    0.03,
                    0.008,
                ),
            );
            b.add(under, cuboid(0.02, 0.1, h * 0.8).at(0.0, -l * 0.49, h * 0.2));
            b.add(
                accent,
                sheet(6, 2, 0.006, |u, t| v(0.02 * (u * 6.0).sin(), my - 0.18 * u, h + mast - 0.1 * t)),
            );
        }
        1 => {
            // Motor yacht: stepped superstructure with dark windows, flybridge, radar arch.
            let (mut z, mut len, mut y) = (h, l * 0.58, -l * 0.06);
            let decks = b.count("decks", 1, 3);
            for i in 0..decks {
                let tall = h * 0.55;
                let width = w * (0.78 - 0.12 * i as f32);
                let rake = tall * 0.8;
                let side = [
                    (y - len * 0.5, z),
                    (y + len * 0.5, z),
                    (y + len * 0.5 - rake, z + tall),
                    (y - len * 0.5, z + tall),
                ];
                b.add(white, prism_x(&side, width, 0.015));
                let window = [
                    (y - len * 0.4, z + tall * 0.4),
                    (y + len * 0.5 - rake * 0.42, z + tall * 0.4),
                    (y + len * 0.5 - rake * 0.78, z + tall * 0.78),
                    (y - len * 0.4, z + tall * 0.78),
                ];
                b.add(glass, prism_x(&window, width * 1.012, 0.0));
                b.add(
                    glass,
                    cuboid(width * 0.82, 0.012, tall * 0.5).turn_x(38.0).at(
                        0.0,
                        y + len * 0.5 - rake * 0.5,
                        z + tall * 0.55,
                    ),
                );
                b.add(white, block(width * 1.1, len * 0.9, 0.025).at(0.0, y - len * 0.05, z + tall));
                z += tall;
                len *= 0.66;
                y -= l * 0.05;
            }
            b.add(
                accent,
                tube(
                    &arc(
                        v(0.0, y - len * 0.2, z),
                        v(w * 0.3, 0.0, 0.0),
                        v(0.0, -0.05, h * 0.5),
                        0.0,
                        180.0,
                        12,
                    ),
                    0.02,
                    8,
                ),
            );
            b.add(white, ellipsoid(0.05, 0.05, 0.04, 14).at(0.0, y - len * 0.2 - 0.05, z + h * 0.55));
            b.add(
                steel,
                wire(&[v(0.06, y - len * 0.2, z + h * 0.4), v(0.1, y - len * 0.3, z + h * 1.1)], 0.006),
            );
            b.add(accent, cushion(w * 0.5, 0.16, 0.05).at(0.0, -l * 0.42, h + 0.03));
            b.add(wood, block(w * 0.8, 0.1, 0.02).at(0.0, -l * 0.53, h * 0.35));
            for i in 0..6 {
                let t = 0.5 + 0.08 * i as f32;
                b.add(
                    steel,
                    rod(
                        v(w * 0.42 * (1.0 - t.powi(3)), l * 0.5 * t, deck(t)),
                        v(w * 0.42 * (1.0 - t.powi(3)), l * 0.5 * t, deck(t) + 0.08),
                        0.006,
                        5,
                    )
                    .both_x(),
                );
            }
        }
        2 => {
            // Cargo ship: bridge aft, stacks of coloured containers, cranes, funnel.
            let by = -l * 0.36;
            let tall = h * b.vary("bridge", 1.2, 1.7);
            b.add(white, block(w * 0.82, l * 0.12, tall).at(0.0, by, h + tall * 0.5));
            for i in 0..3 {
                b.add(
                    glass,
                    cuboid(w * 0.74, l * 0.124, tall * 0.08).at(0.0, by, h + tall * (0.35 + 0.24 * i as f32)),
                );
            }
            b.add(white, block(w * 1.0, l * 0.06, 0.05).at(0.0, by + l * 0.02, h + tall * 0.84));
            b.add(accent, cylinder(w * 0.13, tall * 0.5, 18).at(0.0, by - l * 0.02, h + tall * 1.2));
            b.add(black, cylinder(w * 0.135, tall * 0.12, 18).at(0.0, by - l * 0.02, h + tall * 1.42));
            let boxes: Vec<Paint> = (0..5).map(|_| b.accent()).collect();
            let bays = b.count("bays", 4, 6);
            let (cl, cw, ch) = (l * 0.62 / bays as f32, w * 0.84 / 3.0, h * 0.34);
            for bay in 0..bays {
                let y = -l * 0.25 + cl * (bay as f32 + 0.5);
                for lane in 0..3 {
                    let stack = 1 + b.random.below(3) as usize;
                    for k in 0..stack {
                        let paint = b.one_of(&boxes);
                        let x = cw * (lane as f32 - 1.0);
                        b.add(
                            paint,
                            block(cw * 0.94, cl * 0.92, ch * 0.94).at(x, y, h + 0.02 + ch * (k as f32 + 0.5)),
                        );
                    }
                }
            }
            b.add(
                steel,
                rod(v(0.0, l * 0.42, deck(0.85)), v(0.0, l * 0.42, deck(0.85) + tall * 0.6), 0.014, 8),
            );
        }
        3 => {
            // Rowing boat: open, thwarts, oars, something in the stern.
            let floor: Vec<glam::Vec2> = outline.iter().map(|p| *p * 0.84).collect();
            b.add(wood, prism(&floor, 0.02, 0.0).at(0.0, 0.0, line_z + 0.01).tile(0.3));
            for t in [-0.5, 0.0, 0.45] {
                b.add(
                    wood,
                    block(w * 0.95 * (1.0 - 0.4_f32 * f32::max(t, 0.0)), 0.12, 0.025)
                        .at(0.0, l * 0.5 * t, h * 0.86)
                        .tile(0.4),
                );
            }
            let spread = b.vary("oars", 0.55, 0.85);
            for side in [-1.0, 1.0] {
                let pivot = v(side * w * 0.5, -l * 0.05, h + 0.06);
                let blade_end = pivot + v(side * l * 0.38, -l * 0.1 * spread, -h * 0.5);
                b.add(steel, ring(0.028, 0.009, 12, 6).at(pivot.x, pivot.y, pivot.z));
                b.add(wood, rod(pivot - (blade_end - pivot) * 0.4, blade_end, 0.014, 8));
                let dir = (blade_end - pivot).normalize();
                b.add(
                    if side > 0.0 { accent } else { under },
                    rod(blade_end, blade_end + dir * 0.22, 0.04, 8).scale(1.0, 1.0, 1.0),
                );
            }
            b.add(accent, block(w * 0.3, 0.16, 0.12).at(w * 0.1, -l * 0.38, line_z + 0.08));
            b.add(white, ring(0.09, 0.03, 22, 8).at(0.0, l * 0.28, line_z + 0.05));
            let rope = curve(
                &[v(0.0, l * 0.48, deck(0.96)), v(0.06, l * 0.54, h * 0.7), v(0.02, l * 0.56, h * 0.3)],
                5,
            );
            b.add(white, wire(&rope, 0.012));
        }
        _ => {
            // Warship: turrets, tiered bridge, mast with radar, funnel, helipad aft.
            let grey = b.paint(colour.times(0.8), 0.5, 0.4);
            let light = b.paint(colour.mix(Colour::grey(0.8), 0.4), 0.5, 0.4);
            let turrets = b.count("turrets", 1, 3);
            for i in 0..turrets {
                let y = l * (0.32 - 0.14 * i as f32);
                let z = deck(y / (l * 0.5)) + 0.07 * i as f32;
                b.add(
                    grey,
                    cylinder(w * 0.26, 0.06 + 0.07 * i as f32, 20).at(0.0, y, z - 0.035 * i as f32 + 0.02),
                );
                b.add(
                    light,
                    tapered((w * 0.46, w * 0.6), (w * 0.34, w * 0.4), w * 0.22).at(0.0, y, z + w * 0.16),
                );
                b.add(
                    black,
                    rod(
                        v(w * 0.07, y + w * 0.2, z + w * 0.17),
                        v(w * 0.07, y + w * 0.85, z + w * 0.24),
                        0.013,
                        8,
                    )
                    .both_x(),
                );
            }
            let tiers = b.count("bridge_tiers", 2, 4);
            let y0 = l * (0.2 - 0.14 * turrets as f32) + 0.1;
            for i in 0..tiers {
                let s = 1.0 - 0.18 * i as f32;
                let z = h + h * 0.4 * (i as f32 + 0.5);
                b.add(
                    if i % 2 == 0 { grey } else { light },
                    tapered((w * 0.8 * s, l * 0.22 * s), (w * 0.74 * s, l * 0.18 * s), h * 0.4).at(
                        0.0,
                        y0 - 0.03 * i as f32,
                        z,
                    ),
                );
                b.add(
                    glass,
                    cuboid(w * 0.6 * s, l * 0.213 * s, h * 0.08).at(0.0, y0 - 0.03 * i as f32, z + h * 0.06),
                );
            }
            let top = h + h * 0.4 * tiers as f32;
            b.add(steel, rod(v(0.0, y0 - 0.06, top), v(0.0, y0 - 0.1, top + h * 1.3), 0.016, 8));
            b.add(
                steel,
                rod(v(-w * 0.3, y0 - 0.08, top + h * 0.7), v(w * 0.3, y0 - 0.08, top + h * 0.7), 0.01, 6),
            );
            b.add(
                light,
                sheet(6, 4, 0.015, |u, t| {
                    v(
                        (0.5 - u) * w * 0.6,
                        y0 - 0.04 + 0.06 * (2.0 * u - 1.0).powi(2),
                        top + h * (0.9 + 0.3 * t),
                    )
                }),
            );
            b.add(
                grey,
                tapered((w * 0.5, l * 0.12), (w * 0.36, l * 0.08), h * 0.9).at(
                    0.0,
                    y0 - l * 0.24,
                    h + h * 0.45,
                ),
            );
            b.add(black, cuboid(w * 0.32, l * 0.07, h * 0.1).at(0.0, y0 - l * 0.24, h + h * 0.92));
            b.add(black, cuboid(w * 0.8, l * 0.17, 0.014).at(0.0, -l * 0.38, h + 0.03));
            b.add(white, ring(w * 0.24, 0.014, 26, 6).at(0.0, -l * 0.38, h + 0.04));
            b.add(
                white,
                cuboid(w * 0.05, w * 0.26, 0.012)
                    .at(w * 0.08, -l * 0.38, h + 0.042)
                    .both_x()
                    .with(cuboid(w * 0.18, w * 0.05, 0.012).at(0.0, -l * 0.38, h + 0.042)),
            );
            let number = print(b, colour);
            b.add(
                number,
                cuboid(0.008, l * 0.1, h * 0.4).at(w * 0.38, l * 0.28, h * 0.72).turn_z(0.0).both_x(),
            );
            b.add(accent, rounded(0.05, 0.16, 0.05, 0.02).at(w * 0.42, -l * 0.12, h + 0.08));
        }
    }
    // Side lights: red to port (+x, seen from the bow on the image's left), green to starboard.
    b.add(red, ellipsoid(0.02, 0.025, 0.02, 8).at(w * 0.3, l * 0.3, deck(0.6) + 0.03));
    b.add(green, ellipsoid(0.02, 0.025, 0.02, 8).at(-w * 0.3, l * 0.3, deck(0.6) + 0.03));
}
