//! Small generated textures: wood, stripes, checks, dots, labels, screens. At most 64 by 64 pixels.

use crate::colour::Colour;
use random::Random;
use scene::Texture;

/// A texture of `n` by `n` pixels from a function of the pixel's `(u, v)`, v upwards.
pub fn paint(n: u32, mut f: impl FnMut(f32, f32) -> Colour) -> Texture {
    let pixels = (0..n * n)
        .map(|i| f(((i % n) as f32 + 0.5) / n as f32, 1.0 - ((i / n) as f32 + 0.5) / n as f32).bytes())
        .collect();
    Texture { width: n, height: n, pixels }
}

/// Grain along u, between two colours.
pub fn wood(random: &mut Random, dark: Colour, light: Colour) -> Texture {
    let phase = random.range(0.0, 9.0) as f32;
    let waves = 2.0 + random.below(4) as f32;
    paint(64, |u, v| {
        let bend = 0.14 * (std::f32::consts::TAU * u + phase).sin();
        let ring = (std::f32::consts::TAU * (v * waves + bend)).sin() * 0.5 + 0.5;
        let fibre = ((u * 13.0 + phase).sin() * 7.0 + v * 190.0).sin() * 0.12;
        dark.mix(light, (ring.powf(1.6) + fibre).clamp(0.0, 1.0))
    })
}

/// `n` pairs of stripes along v (vertical) or u.
pub fn stripes(a: Colour, b: Colour, n: u32, vertical: bool) -> Texture {
    paint(64, |u, v| {
        let t = if vertical { u } else { v } * n as f32;
        if t.fract() < 0.5 { a } else { b }
    })
}

/// A chessboard of `2n` by `2n` fields.
pub fn checks(a: Colour, b: Colour, n: u32) -> Texture {
    paint(64, |u, v| {
        let even = ((u * 2.0 * n as f32) as u32 + (v * 2.0 * n as f32) as u32).is_multiple_of(2);
        if even { a } else { b }
    })
}

/// Tartan: crossing translucent bands.
pub fn plaid(a: Colour, b: Colour, n: u32) -> Texture {
    paint(64, |u, v| {
        let band = |t: f32| if (t * n as f32).fract() < 0.4 { 0.45 } else { 0.0 };
        a.mix(b, band(u) + band(v))
    })
}

/// `n` by `n` dots.
pub fn dots(ground: Colour, dot: Colour, n: u32) -> Texture {
    paint(64, |u, v| {
        let c = |t: f32| (t * n as f32).fract() - 0.5;
        if c(u).hypot(c(v)) < 0.3 { dot } else { ground }
    })
}

/// Random blotches between two colours (stone, camouflage).
pub fn blotches(random: &mut Random, a: Colour, b: Colour, n: usize) -> Texture {
    let spots: Vec<[f32; 3]> = (0..n)
        .map(|_| std::array::from_fn(|i| random.range([0.0, 0.0, 0.04][i], [1.0, 1.0, 0.14][i]) as f32))
        .collect();
    paint(64, |u, v| {
        let wrap = |d: f32| (d - d.round()).abs();
        if spots.iter().any(|s| wrap(u - s[0]).hypot(wrap(v - s[1])) < s[2]) { b } else { a }
    })
}

/// A printed label: ground, an emblem off the middle, and lines of text.
pub fn label(random: &mut Random, ground: Colour, ink: Colour, accent: Colour) -> Texture {
    let kind = random.below(4);
    let (cx, cy) = (random.range(0.35, 0.65) as f32, random.range(0.55, 0.7) as f32);
    let size = random.range(0.18, 0.28) as f32;
    let lines = 2 + random.below(3);
    let ends: Vec<f32> = (0..lines).map(|_| random.range(0.5, 0.92) as f32).collect();
    paint(64, |u, v| {
        let (x, y) = (u - cx, v - cy);
        let emblem = match kind {
            0 => x.hypot(y) < size,
            1 => x.abs() + y.abs() < size * 1.2,
            2 => x.abs() < size && y.abs() < size * 0.6,
            _ => y > -size * 0.8 && y < size && x.abs() < (size - y) * 0.7,
        };
        let row = (0.34 - v) / 0.3 * lines as f32;
        let text = row >= 0.0
            && (row as usize) < ends.len()
            && row.fract() < 0.55
            && u > 0.1
            && u < ends[row as usize]
            && (u * 17.0).fract() < 0.75;
        if emblem {
            accent
        } else if text || !(0.04..0.96).contains(&v) {
            ink
        } else {
            ground
        }
    })
}

/// What a switched-on screen shows: 0 windows, 1 icons, 2 a landscape, 3 text on a dark ground.
pub fn screen(random: &mut Random, kind: u64) -> Texture {
    let hue = random.uniform() as f32;
    let tone = |dh: f32, s: f32, v: f32| Colour::hsv(hue + dh, s, v);
    let cells: Vec<f32> = (0..64).map(|_| random.uniform() as f32).collect();
    let (wx, wy) = (random.range(0.1, 0.35) as f32, random.range(0.15, 0.4) as f32);
    let hill = random.range(1.0, 2.5) as f32;
    paint(64, |u, v| match kind {
        0 => {
            let inside = |x: f32, y: f32, w: f32, h: f32| u > x && u < x + w && v > y && v < y + h;
            if inside(wx, wy, 0.45, 0.4) {
                if v > wy + 0.34 { tone(0.5, 0.6, 0.8) } else { Colour::grey(0.92) }
            } else if inside(wx + 0.3, wy + 0.2, 0.3, 0.35) {
                if v > wy + 0.48 { tone(0.3, 0.7, 0.6) } else { tone(0.3, 0.1, 0.95) }
            } else if v < 0.08 {
                Colour::grey(0.15)
            } else {
                tone(0.0, 0.6, 0.35 + 0.35 * v)
            }
        }
        1 => {
            let (cu, cv) = (u * 4.0, v * 6.0);
            let cell = cells[(cv as usize * 4 + cu as usize).min(63)];
            let edge = |t: f32| (t.fract() - 0.5).abs() < 0.32;
            if v > 0.93 {
                Colour::grey(0.1)
            } else if edge(cu) && edge(cv) && (cell > 0.2 && v < 0.8 || v < 0.17) {
                Colour::hsv(cell * 3.0, 0.75, 0.9)
            } else {
                tone(0.1 * v, 0.5, 0.3 + 0.3 * v)
            }
        }
        2 => {
            let ridge = 0.35 + 0.15 * (u * 6.0 * hill + wx * 9.0).sin() + 0.07 * (u * 17.0).sin();
            let sun = (u - wx * 2.0).hypot(v - 0.78) < 0.1;
            if v < ridge * 0.6 {
                Colour::hsv(0.3, 0.6, 0.35)
            } else if v < ridge {
                Colour::hsv(0.33, 0.45, 0.55)
            } else if sun {
                Colour::hsv(0.13, 0.4, 1.0)
            } else {
                Colour::hsv(0.57, 0.65 - 0.4 * v, 0.9)
            }
        }
        _ => {
            let row = ((1.0 - v) * 14.0) as usize;
            let start = 0.05 + 0.08 * (cells[row.min(63)] * 4.0).floor();
            let end = start + 0.15 + 0.5 * cells[(row + 20).min(63)];
            let ink = ((1.0 - v) * 14.0).fract() > 0.4 && u > start && u < end;
            if ink { tone(cells[(row + 40).min(63)] * 0.6, 0.6, 0.9) } else { Colour::grey(0.08) }
        }
    })
}
