//! The axes of an object drawn onto its image, x red, y green, z blue: so people see whether rotations are read as they
//! were meant. A rendered view has them where the renderer's camera sees them, as long as half the object's diagonal;
//! of an imported image neither camera nor place are known, so they start in its middle, and only directions count.

use pose::BaseFrame;
use scene::Latents;

use crate::{Drawing, Paint};

/// What made an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The renderer, with its camera.
    Rendered,
    /// Somebody's camera.
    Imported,
}

/// An axis in an image, in shares of its width and height from the upper left corner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AxisLine {
    /// 0, 1, 2 for x, y, z.
    pub axis: usize,
    /// The object's origin.
    pub from: [f64; 2],
    /// The tip.
    pub to: [f64; 2],
}

/// Red, green, blue.
const COLOURS: [[u8; 3]; 3] = [[0xff, 0x20, 0x20], [0x10, 0xc0, 0x20], [0x30, 0x60, 0xff]];
/// Length of an axis in the world of the renderer, in which an object's diagonal is 1.
const LENGTH: f64 = 0.5;
/// Length of an axis that lies in the plane of an imported image, as a share of its width.
const SHARE: f64 = 0.35;

/// The axes of a view, those that point away from the camera first; without those that cannot be seen.
pub fn of_view(latents: &Latents, seen: Seen) -> Vec<AxisLine> {
    let [right, up, forward] = render::camera_axes(latents.camera);
    let dot = |a: [f64; 3], b: [f64; 3]| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
    let motion = latents.pose().motion::<BaseFrame>();
    let turned = |axis: usize| {
        let mut unit = [0.0; 3];
        unit[axis] = 1.0;
        motion.rotation().apply(unit)
    };
    let mut axes = [0, 1, 2];
    axes.sort_by(|&a, &b| dot(turned(b), forward).total_cmp(&dot(turned(a), forward)));
    let line = |axis: usize| {
        let direction = turned(axis);
        let (from, to) = match seen {
            Seen::Imported => {
                let to = [0.5 + SHARE * dot(direction, right), 0.5 - SHARE * dot(direction, up)];
                ([0.5; 2], to)
            }
            Seen::Rendered => {
                let origin = motion.translation();
                let tip = std::array::from_fn(|k| origin[k] + LENGTH * direction[k]);
                (
                    render::image_position(origin, latents.camera)?,
                    render::image_position(tip, latents.camera)?,
                )
            }
        };
        Some(AxisLine { axis, from, to })
    };
    axes.into_iter().filter_map(line).collect()
}

/// Draws them onto the image that fills the square of `side` at `at`, with a dark edge that shows on any background.
pub fn draw(drawing: &mut Drawing, lines: &[AxisLine], at: (f64, f64), side: f64) {
    for line in lines {
        let place = |[x, y]: [f64; 2]| (at.0 + x.clamp(0.0, 1.0) * side, at.1 + y.clamp(0.0, 1.0) * side);
        let points = vec![place(line.from), place(line.to)];
        let width = (side / 50.0).max(1.5);
        drawing.line(points.clone(), Paint::Rgb([0; 3]), width + 1.6, false);
        drawing.line(points, Paint::Rgb(COLOURS[line.axis]), width, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use render::{PreparedMesh, Quality};
    use scene::{Material, Mesh, Vertex};

    fn latents(rotation: [f64; 3], translation: [f64; 3]) -> Latents {
        Latents {
            rotation,
            floor_hue: 0.58,
            spot_theta: 0.1,
            spot_hue: 0.3,
            translation: Some(translation),
            ..Latents::default()
        }
    }

    /// A small red octahedron at the tip of an axis.
    fn mark(axis: usize) -> Mesh {
        let mut centre = [0.0_f32; 3];
        centre[axis] = LENGTH as f32;
        let directions = [[1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]];
        let vertices = directions.map(|direction| {
            let normal = direction.map(|value| value as f32);
            Vertex { position: std::array::from_fn(|k| centre[k] + 0.05 * normal[k]), normal, uv: [0.0; 2] }
        });
        let triangles: Vec<[u32; 3]> =
            (0..4).flat_map(|k| [[k, (k + 1) % 4, 4], [(k + 1) % 4, k, 5]]).collect();
        let material = Material { base_colour: [0.9, 0.0, 0.0], specular: 0.0, ..Material::default() };
        Mesh {
            vertices: vertices.to_vec(),
            triangle_materials: vec![0; triangles.len()],
            triangles,
            materials: vec![material],
        }
    }

    #[test]
    fn the_tips_are_where_the_renderer_shows_them() {
        const SIDE: u32 = 128;
        let poses = [
            ([0.0, 0.0, 0.0], [0.0; 3]),
            ([0.5, -0.4, 0.3], [0.0; 3]),
            ([-0.9, 0.7, 1.2], [0.1, -0.1, 0.05]),
            ([0.2, 1.1, -1.3], [0.0, 0.15, -0.1]),
        ];
        for (rotation, translation) in poses {
            let latents = latents(rotation, translation);
            let lines = of_view(&latents, Seen::Rendered);
            assert_eq!(lines.len(), 3);
            for line in lines {
                let mesh = PreparedMesh::new(&mark(line.axis));
                let image = render::render(Some(&mesh), &latents, SIDE, Quality::Fast).pixels;
                // Only the mark is red; its shadow and the floor are blue.
                let is_red = |pixel: &[u8]| i32::from(pixel[0]) > 30 + i32::from(pixel[1].max(pixel[2]));
                let red: Vec<usize> = image
                    .chunks_exact(3)
                    .enumerate()
                    .filter(|(_, pixel)| is_red(pixel))
                    .map(|(at, _)| at)
                    .collect();
                assert!(red.len() > 5, "axis {} is not seen at {rotation:?}", line.axis);
                let mean = |value: fn(usize) -> usize| {
                    red.iter().map(|&at| value(at) as f64 + 0.5).sum::<f64>()
                        / (red.len() as f64 * f64::from(SIDE))
                };
                let found = [mean(|at| at % SIDE as usize), mean(|at| at / SIDE as usize)];
                let apart = (found[0] - line.to[0]).hypot(found[1] - line.to[1]);
                assert!(
                    apart < 0.02,
                    "axis {} at {rotation:?}: {found:?}, expected {:?}",
                    line.axis,
                    line.to
                );
            }
        }
    }

    #[test]
    fn imported_views_show_directions_as_the_camera_has_them() {
        // Unturned, -x is to the right of the renderer's camera, which looks down from y and z.
        let lines = of_view(&latents([0.0; 3], [0.0; 3]), Seen::Imported);
        let tip = |axis: usize| lines.iter().find(|line| line.axis == axis).unwrap().to;
        let half = SHARE * 0.5_f64.sqrt();
        for (axis, expected) in [(0, [0.5 - SHARE, 0.5]), (1, [0.5, 0.5 + half]), (2, [0.5, 0.5 - half])] {
            let found = tip(axis);
            assert!(
                (found[0] - expected[0]).abs() < 1e-9 && (found[1] - expected[1]).abs() < 1e-9,
                "{axis}: {found:?}"
            );
        }
    }
}
