//! The hull of a boat or ship, as a surface from stations along it.

use super::*;

/// The form of a boat's hull: raked bow at +y, transom at -y.
#[derive(Clone, Copy)]
pub(super) struct Form {
    pub length: f32,
    pub beam: f32,
    pub depth: f32,
    pub bow: f32,
    pub sheer: f32,
}

/// Stations along a hull.
const STATIONS: usize = 24;

impl Form {
    /// Half the beam at the deck, `t` from -1 (stern) to 1 (bow).
    pub fn half(self, t: f32) -> f32 {
        let k = if t > 0.0 { 1.0 - t.powf(2.2) } else { 1.0 - 0.25 * t * t };
        (self.beam * 0.5 * k).max(0.004)
    }

    /// Height of the deck's edge.
    pub fn deck(self, t: f32) -> f32 {
        self.depth + self.sheer * t.max(0.0).powi(2) + 0.35 * self.sheer * t.min(0.0).powi(2)
    }

    /// Nine points from the +x edge of the deck around the keel to the other edge; the bow's foot is pulled back.
    pub fn section(self, t: f32) -> Vec<glam::Vec3> {
        let (a, top) = (self.half(t), self.deck(t));
        let points = [(1.0, 1.0), (0.97, 0.66), (0.86, 0.34), (0.55, 0.1), (0.0, 0.0)];
        let foot = |s: f32| t * self.length * 0.5 - self.bow * (1.0 - s) * t.max(0.0).powi(3);
        let right = points.iter().map(|&(x, s)| v(a * x, foot(s), top * s));
        let left = points.iter().rev().skip(1).map(|&(x, s)| v(-a * x, foot(s), top * s));
        right.chain(left).collect()
    }

    /// The hull closed by a flat deck.
    pub fn closed(self) -> Solid {
        let rings: Vec<_> =
            (0..=STATIONS).map(|i| self.section(2.0 * i as f32 / STATIONS as f32 - 1.0)).collect();
        loft(&rings).crease(35.0)
    }

    /// The part of the hull below height `z`, a little wider than it is.
    pub fn below(self, z: f32, grow: f32) -> Solid {
        let cut = |ring: Vec<glam::Vec3>| -> Vec<glam::Vec3> {
            let crossing = |side: &[glam::Vec3]| {
                let k = side.iter().position(|p| p.z <= z).unwrap_or(side.len() - 1).max(1);
                let (p, q) = (side[k - 1], side[k]);
                p.lerp(q, ((p.z - z) / (p.z - q.z).max(1e-6)).clamp(0.0, 1.0))
            };
            let right = crossing(&ring[..5]);
            let left = crossing(&ring[4..].iter().rev().copied().collect::<Vec<_>>());
            let lower = |(i, p): (usize, glam::Vec3)| match p.z > z {
                true if i < 4 => right,
                true => left,
                false => p,
            };
            ring.into_iter().enumerate().map(lower).collect()
        };
        let rings: Vec<_> =
            (0..=STATIONS).map(|i| cut(self.section(2.0 * i as f32 / STATIONS as f32 - 1.0))).collect();
        loft(&rings).crease(35.0).map(|p| v(p.x * grow, p.y * 1.002, p.z - 0.006))
    }

    /// The hull of an open boat: planks of some thickness and a transom.
    pub fn open(self, thickness: f32) -> Solid {
        let skin = sheet(8, STATIONS, thickness, |u, s| {
            let ring = self.section(2.0 * s - 1.0);
            let k = ((u * 8.0) as usize).min(7);
            ring[k].lerp(ring[k + 1], u * 8.0 - k as f32)
        });
        let stern: Vec<(f32, f32)> = self.section(-1.0).iter().map(|p| (p.x, p.z)).collect();
        skin.with(prism_y(&stern, thickness, 0.0).at(0.0, -self.length * 0.5, 0.0))
    }

    /// Outline of the deck seen from above: up the +x side, back along the other.
    pub fn outline(self) -> Vec<glam::Vec2> {
        let at = |i: usize| 2.0 * i as f32 / STATIONS as f32 - 1.0;
        let edge = |t: f32, side: f32| glam::Vec2::new(side * self.half(t), t * self.length * 0.5);
        let up = (0..=STATIONS).map(|i| edge(at(i), 1.0));
        up.chain((0..=STATIONS).rev().map(|i| edge(at(i), -1.0))).collect()
    }
}
