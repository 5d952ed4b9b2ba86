//! Cutting polygons into triangles: ear clipping in the polygon's plane, whatever its shape.

/// Point-in-triangle tests spent on one polygon before the rest is cut as a fan; reached only by polygons of
/// thousands of corners made to be slow.
const MAX_TESTS: usize = 20_000_000;
/// Other steps of one polygon, after which it is cut anyhow too: beyond what 20,000 corners need at worst.
const MOST_WORK: usize = 1 << 28;

/// Scratch space that is reused from polygon to polygon.
#[derive(Default)]
pub(super) struct Triangulator {
    points: Vec<[f64; 2]>,
    ring: Vec<u32>,
    previous: Vec<u32>,
    next: Vec<u32>,
    reflex: Vec<u32>,
}

impl Triangulator {
    /// Hands out `corners.len() - 2` triangles (fewer where corners coincide) of indices into `corners`, wound like
    /// the polygon. Self-intersecting and degenerate polygons give some triangulation without a guarantee.
    pub fn triangulate(&mut self, corners: &[[f64; 3]], mut triangle: impl FnMut([u32; 3])) {
        // Corners that coincide with their predecessor would block ears.
        self.ring.clear();
        for (i, corner) in corners.iter().enumerate() {
            if self.ring.last().is_none_or(|&last| corners[last as usize] != *corner) {
                self.ring.push(i as u32);
            }
        }
        while self.ring.len() > 1
            && corners[self.ring[0] as usize] == corners[self.ring[self.ring.len() - 1] as usize]
        {
            self.ring.pop();
        }
        match self.ring[..] {
            [] | [_] | [_, _] => return,
            [a, b, c] => return triangle([a, b, c]),
            _ => {}
        }
        let normal = newell(corners, &self.ring);
        let [x, y] = projection_axes(normal);
        self.points.clear();
        self.points.extend(corners.iter().map(|corner| [corner[x], corner[y]]));
        if let [a, b, c, d] = self.ring[..] {
            // Either diagonal of a convex quadrangle will do; in a concave one only that from the reflex corner.
            let area = |p: u32, q: u32, r: u32| self.cross(p, q, r);
            if area(a, b, c) >= 0.0 && area(a, c, d) >= 0.0 || !(area(a, b, d) >= 0.0 && area(b, c, d) >= 0.0)
            {
                triangle([a, b, c]);
                triangle([a, c, d]);
            } else {
                triangle([a, b, d]);
                triangle([b, c, d]);
            }
            return;
        }
        self.clip_ears(triangle);
    }

    /// Twice the signed area of a triangle; positive where it turns like the polygon.
    fn cross(&self, a: u32, b: u32, c: u32) -> f64 {
        let [a, b, c] = [a, b, c].map(|i| self.points[i as usize]);
        (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
    }

    fn clip_ears(&mut self, mut triangle: impl FnMut([u32; 3])) {
        let count = self.points.len();
        self.previous.clear();
        self.previous.resize(count, 0);
        self.next.clear();
        self.next.resize(count, 0);
        for (i, &corner) in self.ring.iter().enumerate() {
            let after = self.ring[(i + 1) % self.ring.len()];
            self.next[corner as usize] = after;
            self.previous[after as usize] = corner;
        }
        self.reflex.clear();
        for &corner in &self.ring {
            let (before, after) = (self.previous[corner as usize], self.next[corner as usize]);
            if self.cross(before, corner, after) <= 0.0 {
                self.reflex.push(corner);
            }
        }
        let mut remaining = self.ring.len();
        let mut corner = self.ring[0];
        let (mut without_ear, mut tests, mut work) = (0, 0, 0);
        while remaining > 3 {
            let (before, after) = (self.previous[corner as usize], self.next[corner as usize]);
            // After a whole round without an ear the polygon is not simple: cut anyway, so that this ends.
            let is_exhausted = tests > MAX_TESTS || work > MOST_WORK;
            let forced = without_ear >= remaining || is_exhausted;
            if forced || self.is_ear(before, corner, after, &mut tests) {
                triangle([before, corner, after]);
                self.next[before as usize] = after;
                self.previous[after as usize] = before;
                remaining -= 1;
                without_ear = 0;
                // Once nothing is tested any more, nobody asks for reflex corners.
                if !is_exhausted {
                    work += self.reflex.len();
                    self.update_reflex(corner, before, after);
                }
                // Going on from the corner after the next makes fewer slivers than staying at one corner.
                corner = self.next[after as usize];
            } else {
                without_ear += 1;
                work += 1;
                corner = after;
            }
        }
        triangle([self.previous[corner as usize], corner, self.next[corner as usize]]);
    }

    fn is_ear(&self, before: u32, corner: u32, after: u32, tests: &mut usize) -> bool {
        if self.cross(before, corner, after) <= 0.0 {
            return false;
        }
        *tests += self.reflex.len();
        let [a, b, c] = [before, corner, after].map(|i| self.points[i as usize]);
        !self.reflex.iter().any(|&other| {
            let p = self.points[other as usize];
            other != before
                && other != after
                && p != a
                && p != b
                && p != c
                && self.cross(before, corner, other) >= 0.0
                && self.cross(corner, after, other) >= 0.0
                && self.cross(after, before, other) >= 0.0
        })
    }

    /// Clipping `gone` can only make its neighbours convex.
    fn update_reflex(&mut self, gone: u32, before: u32, after: u32) {
        let mut i = 0;
        while i < self.reflex.len() {
            let corner = self.reflex[i];
            let convex = (corner == before || corner == after)
                && self.cross(self.previous[corner as usize], corner, self.next[corner as usize]) > 0.0;
            if corner == gone || convex {
                self.reflex.swap_remove(i);
            } else {
                i += 1;
            }
        }
    }
}

/// Newell's normal: exact for planar polygons, an average for others; its length is twice the area.
fn newell(corners: &[[f64; 3]], ring: &[u32]) -> [f64; 3] {
    let origin = corners[ring[0] as usize];
    let mut normal = [0.0; 3];
    for (i, &corner) in ring.iter().enumerate() {
        let [a, b] = [corner, ring[(i + 1) % ring.len()]].map(|corner| {
            let p = corners[corner as usize];
            [p[0] - origin[0], p[1] - origin[1], p[2] - origin[2]]
        });
        normal[0] += a[1] * b[2] - a[2] * b[1];
        normal[1] += a[2] * b[0] - a[0] * b[2];
        normal[2] += a[0] * b[1] - a[1] * b[0];
    }
    normal
}

/// The two axes to keep so that the projected polygon is largest and turns counter-clockwise.
fn projection_axes([x, y, z]: [f64; 3]) -> [usize; 2] {
    let axes = if x.abs() > y.abs() && x.abs() > z.abs() {
        (x, [1, 2])
    } else if y.abs() > z.abs() {
        (y, [2, 0])
    } else {
        (z, [0, 1])
    };
    match axes {
        (component, [u, v]) if component < 0.0 => [v, u],
        (_, axes) => axes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cut(corners: &[[f64; 3]]) -> Vec<[u32; 3]> {
        let mut triangles = Vec::new();
        Triangulator::default().triangulate(corners, |triangle| triangles.push(triangle));
        triangles
    }

    /// Signed areas against the polygon's own normal.
    fn areas(corners: &[[f64; 3]]) -> (f64, Vec<f64>) {
        let ring: Vec<u32> = (0..corners.len() as u32).collect();
        let normal = newell(corners, &ring);
        let length = normal.iter().map(|n| n * n).sum::<f64>().sqrt();
        let signed = |triangle: &[u32; 3]| {
            let n = newell(corners, triangle);
            0.5 * (0..3).map(|i| n[i] * normal[i]).sum::<f64>() / length
        };
        (0.5 * length, cut(corners).iter().map(signed).collect())
    }

    /// A star-shaped polygon in a tilted plane.
    fn star(radii: &[f64], tilt: f64) -> Vec<[f64; 3]> {
        let point = |(i, radius): (usize, &f64)| {
            let (sin, cos) = (i as f64 / radii.len() as f64 * std::f64::consts::TAU).sin_cos();
            [radius * cos, radius * sin * tilt.cos(), radius * sin * tilt.sin()]
        };
        radii.iter().enumerate().map(point).collect()
    }

    proptest! {
        #[test]
        fn triangles_tile_concave_polygons(
            radii in prop::collection::vec(0.2..1.0, 4..60), tilt in 0.0..std::f64::consts::TAU
        ) {
            let polygon = star(&radii, tilt);
            let (whole, parts) = areas(&polygon);
            prop_assert_eq!(parts.len(), polygon.len() - 2);
            prop_assert!(parts.iter().all(|&part| part > -1e-12), "{:?}", parts);
            prop_assert!((parts.iter().sum::<f64>() - whole).abs() < 1e-9);
        }

        #[test]
        fn any_points_end(points in prop::collection::vec([-1_i8..2, -1_i8..2, -1_i8..2], 0..40)) {
            let polygon: Vec<[f64; 3]> = points.iter().map(|p| p.map(f64::from)).collect();
            let triangles = cut(&polygon);
            prop_assert!(triangles.len() <= polygon.len().saturating_sub(2));
            prop_assert!(triangles.iter().flatten().all(|&i| (i as usize) < polygon.len()));
        }
    }

    #[test]
    fn an_arrow_is_cut_at_its_notch() {
        for turn in 0..4 {
            let mut arrow = vec![[0.0, 0.0, 0.0], [2.0, 1.0, 0.0], [0.0, 2.0, 0.0], [1.0, 1.0, 0.0]];
            arrow.rotate_left(turn);
            let (whole, parts) = areas(&arrow);
            assert!((whole - 1.0).abs() < 1e-12);
            assert!(parts.iter().all(|&part| part > 0.0) && (parts.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn repeated_and_collinear_corners_are_harmless() {
        let square = [[0.0, 0.0], [0.5, 0.0], [1.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [0.0, 0.0]];
        let polygon: Vec<[f64; 3]> = square.iter().map(|p| [p[0], p[1], 3.0]).collect();
        let (_, parts) = areas(&polygon);
        assert!((parts.iter().sum::<f64>() - 1.0).abs() < 1e-12 && parts.iter().all(|&part| part >= 0.0));
        assert!(cut(&[[1.0; 3]; 9]).is_empty());
    }

    #[test]
    fn a_polygon_of_many_corners_takes_bounded_time() {
        let comb: Vec<[f64; 3]> = (0..50_000)
            .map(|i| [f64::from(i), if i % 2 == 0 { 0.0 } else { 1.0 }, 0.0])
            .chain([[50_000.0, 5.0, 0.0], [0.0, 5.0, 0.0]])
            .collect();
        assert_eq!(cut(&comb).len(), comb.len() - 2);
    }

    /// Work grows with the square of the corners up to a bound only: these took minutes and hours.
    #[test]
    fn polygons_of_very_many_corners_end() {
        let corners = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
        let crumpled: Vec<[f64; 3]> = corners.iter().copied().cycle().take(300_000).collect();
        // A line there and back has no ear at all.
        let line: Vec<[f64; 3]> =
            (0..300_000).map(|i| [f64::from(150_000 - i32::abs(150_000 - i)), 0.0, 0.0]).collect();
        for polygon in [crumpled, line] {
            assert_eq!(cut(&polygon).len(), polygon.len() - 2);
        }
    }
}
