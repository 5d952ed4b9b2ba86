//! A square grid over a part of the floor, filled only as finely as its values vary.

use std::ops::{Add, Mul};

use glam::{Vec2, Vec3};

/// What a grid can hold: something that can be interpolated and compared.
pub(crate) trait Field: Copy + Default + Add<Output = Self> + Mul<f32, Output = Self> {
    /// A measure of how different two values look.
    fn difference(self, other: Self) -> f32;
}

impl Field for f32 {
    fn difference(self, other: Self) -> f32 {
        (self - other).abs()
    }
}

impl Field for Vec3 {
    /// Relative difference of the sums of the channels.
    fn difference(self, other: Self) -> f32 {
        let (a, b) = (self.element_sum(), other.element_sum());
        (a - b).abs() / a.max(b).max(1e-6)
    }
}

/// Where a grid lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// Lowest corner.
    pub origin: Vec2,
    /// Length of its sides.
    pub side: f32,
    /// Cells along each axis, at the finest level.
    pub cells: usize,
    /// Cells between the nodes of the coarsest level: a power of two that divides `cells`.
    pub coarse: usize,
}

/// Values at `(cells + 1)^2` nodes of a square.
#[derive(Clone, Debug)]
pub(crate) struct Grid<T> {
    origin: Vec2,
    step: f32,
    inverse_step: f32,
    cells: usize,
    values: Vec<T>,
}

/// How a node got its value.
#[derive(Clone, Copy, PartialEq)]
enum Source {
    Unknown,
    Computed,
    Interpolated,
}

impl<T: Field> Grid<T> {
    /// A grid filled by `compute` where it is needed: first at the coarse nodes, then, level by level, in cells that
    /// differ by more than `tolerance` at their corners or that `wanted` asks for, given the cell's lowest node and
    /// its size. `compute` gets the positions of nodes, neighbours together, and appends their values.
    pub fn fill(
        layout: Layout,
        tolerance: f32,
        wanted: impl Fn(usize, usize, usize) -> bool,
        mut compute: impl FnMut(&[Vec2], &mut Vec<T>),
    ) -> Self {
        let Layout { origin, side, cells, coarse } = layout;
        let step = side / cells as f32;
        let width = cells + 1;
        let mut values = vec![T::default(); width * width];
        let mut sources = vec![Source::Unknown; width * width];
        let mut nodes: Vec<(u32, u32)> = Vec::new();
        let mut positions: Vec<Vec2> = Vec::new();
        let mut results: Vec<T> = Vec::new();
        for y in (0..=cells).step_by(coarse) {
            nodes.extend((0..=cells).step_by(coarse).map(|x| (x as u32, y as u32)));
        }
        let mut size = coarse;
        loop {
            // Blocks of 4 x 4 nodes of this level become packets of rays.
            let block = 4 * size as u32;
            nodes.sort_unstable_by_key(|&(x, y)| (y / block, x / block, y, x));
            nodes.dedup();
            positions.clear();
            positions.extend(nodes.iter().map(|&(x, y)| origin + step * Vec2::new(x as f32, y as f32)));
            results.clear();
            compute(&positions, &mut results);
            for (&(x, y), &value) in nodes.iter().zip(&results) {
                let node = y as usize * width + x as usize;
                values[node] = value;
                sources[node] = Source::Computed;
            }
            if size == 1 {
                break;
            }
            let half = size / 2;
            nodes.clear();
            for y in (0..cells).step_by(size) {
                for x in (0..cells).step_by(size) {
                    let corner = |dx: usize, dy: usize| values[(y + dy) * width + x + dx];
                    let corners = [corner(0, 0), corner(size, 0), corner(0, size), corner(size, size)];
                    let differs = corners[1..].iter().any(|&other| corners[0].difference(other) > tolerance)
                        || corners[1].difference(corners[2]) > tolerance;
                    if differs || wanted(x, y, size) {
                        for (dx, dy) in [(half, 0), (0, half), (half, half), (size, half), (half, size)] {
                            if sources[(y + dy) * width + x + dx] != Source::Computed {
                                nodes.push(((x + dx) as u32, (y + dy) as u32));
                            }
                        }
                    }
                    let mean = |a: T, b: T| (a + b) * 0.5;
                    let guesses = [
                        (half, 0, mean(corners[0], corners[1])),
                        (0, half, mean(corners[0], corners[2])),
                        (size, half, mean(corners[1], corners[3])),
                        (half, size, mean(corners[2], corners[3])),
                        (half, half, mean(mean(corners[0], corners[1]), mean(corners[2], corners[3]))),
                    ];
                    for (dx, dy, guess) in guesses {
                        let node = (y + dy) * width + x + dx;
                        if sources[node] == Source::Unknown {
                            values[node] = guess;
                            sources[node] = Source::Interpolated;
                        }
                    }
                }
            }
            size = half;
        }
        Self { origin, step, inverse_step: 1.0 / step, cells, values }
    }

    /// The interpolated value at `point`, `None` outside.
    #[inline]
    pub fn lookup(&self, point: Vec2) -> Option<T> {
        let position = (point - self.origin) * self.inverse_step;
        let limit = self.cells as f32;
        if !(position.x >= 0.0 && position.y >= 0.0 && position.x < limit && position.y < limit) {
            return None;
        }
        let (x, y) = (position.x as usize, position.y as usize);
        let (fx, fy) = (position.x - x as f32, position.y - y as f32);
        let node = y * (self.cells + 1) + x;
        let [a, b] = [self.values[node], self.values[node + 1]];
        let [c, d] = [self.values[node + self.cells + 1], self.values[node + self.cells + 2]];
        let (gx, gy) = (1.0 - fx, 1.0 - fy);
        Some((a * gx + b * fx) * gy + (c * gx + d * fx) * fy)
    }

    /// Position between the border (0) and the middle (1), for fading out at the border.
    #[inline]
    pub fn depth(&self, point: Vec2) -> f32 {
        let half = 0.5 * self.step * self.cells as f32;
        let offset = (point - self.origin - Vec2::splat(half)).abs();
        1.0 - offset.max_element() / half
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steep_places_are_refined_and_flat_ones_are_not() {
        let step_at = |p: Vec2| if p.x + 0.3 * p.y > 0.1 { 1.0 } else { 0.0 };
        let mut computed = 0;
        let grid = Grid::fill(
            Layout { origin: Vec2::splat(-1.0), side: 2.0, cells: 64, coarse: 8 },
            0.1,
            |_, _, _| false,
            |points, values: &mut Vec<f32>| {
                computed += points.len();
                values.extend(points.iter().map(|&p| step_at(p)));
            },
        );
        for i in 0..1000 {
            let p = Vec2::new((i % 40) as f32 / 20.5 - 0.97, (i / 40) as f32 / 13.0 - 0.97);
            if (p.x + 0.3 * p.y - 0.1).abs() > 0.06 {
                assert_eq!(grid.lookup(p), Some(step_at(p)), "{p}");
            }
        }
        assert!(computed < 1100, "{computed}");
        assert_eq!(grid.lookup(Vec2::splat(1.5)), None);
    }

    #[test]
    fn linear_functions_are_exact() {
        let plane = |p: Vec2| 2.0 * p.x - p.y;
        let grid = Grid::fill(
            Layout { origin: Vec2::ZERO, side: 1.0, cells: 16, coarse: 16 },
            10.0,
            |_, _, _| false,
            |points, values: &mut Vec<f32>| {
                values.extend(points.iter().map(|&p| plane(p)));
            },
        );
        let p = Vec2::new(0.37, 0.81);
        assert!((grid.lookup(p).unwrap() - plane(p)).abs() < 1e-5);
        assert!(
            (grid.depth(Vec2::splat(0.5)) - 1.0).abs() < 1e-6 && grid.depth(Vec2::new(1.0, 0.2)).abs() < 1e-6
        );
    }
}
