//! How an object is put into the scene: its bounding box centred on the origin and of diagonal 1.

use crate::Mesh;

/// The scale is left alone while the diagonal is this close to 1.
const DIAGONAL_TOLERANCE: f64 = 0.01;

/// The smallest axis-parallel box around the vertices of a mesh.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BoundingBox {
    /// Smallest coordinates.
    pub low: [f32; 3],
    /// Largest coordinates.
    pub high: [f32; 3],
}

impl BoundingBox {
    /// The box of the vertices that triangles use; `None` where there are no triangles.
    pub fn of(mesh: &Mesh) -> Option<Self> {
        let mut bounds: Option<Self> = None;
        for &corner in mesh.triangles.as_flattened() {
            let position = mesh.vertices.get(corner as usize)?.position;
            let b = bounds.get_or_insert(Self { low: position, high: position });
            for (axis, &coordinate) in position.iter().enumerate() {
                b.low[axis] = b.low[axis].min(coordinate);
                b.high[axis] = b.high[axis].max(coordinate);
            }
        }
        bounds
    }

    /// Middle of the box.
    pub fn centre(&self) -> [f64; 3] {
        std::array::from_fn(|axis| 0.5 * (f64::from(self.low[axis]) + f64::from(self.high[axis])))
    }

    /// Length of the space diagonal.
    pub fn diagonal(&self) -> f64 {
        (0..3)
            .map(|axis| (f64::from(self.high[axis]) - f64::from(self.low[axis])).powi(2))
            .sum::<f64>()
            .sqrt()
    }
}

/// What [`normalise`] did: `p -> (p - centre) * scale`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Normalisation {
    /// Centre of the bounding box before.
    pub centre: [f64; 3],
    /// Factor that made the diagonal 1; exactly 1 where it was already, to 1 %.
    pub scale: f64,
}

/// Moves the centre of the bounding box to the origin and, where the diagonal differs from 1 by more than 1 %,
/// scales the mesh to diagonal 1. `None`, and the mesh unchanged, where it has no triangles or no extent.
pub fn normalise(mesh: &mut Mesh) -> Option<Normalisation> {
    let bounds = BoundingBox::of(mesh)?;
    let (centre, diagonal) = (bounds.centre(), bounds.diagonal());
    if !diagonal.is_finite() || diagonal <= 0.0 {
        return None;
    }
    let scale = if (diagonal - 1.0).abs() > DIAGONAL_TOLERANCE { 1.0 / diagonal } else { 1.0 };
    for vertex in &mut mesh.vertices {
        vertex.position =
            std::array::from_fn(|axis| ((f64::from(vertex.position[axis]) - centre[axis]) * scale) as f32);
    }
    Some(Normalisation { centre, scale })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Material, Vertex};

    fn triangle(positions: [[f32; 3]; 3]) -> Mesh {
        let vertex = |position| Vertex { position, normal: [0.0, 0.0, 1.0], uv: [0.0; 2] };
        Mesh {
            vertices: positions.map(vertex).to_vec(),
            triangles: vec![[0, 1, 2]],
            triangle_materials: vec![0],
            materials: vec![Material::default()],
        }
    }

    #[test]
    fn objects_are_centred_and_scaled_to_diagonal_one() {
        let mut mesh = triangle([[10.0, 0.0, 0.0], [13.0, 4.0, 0.0], [10.0, 4.0, 12.0]]);
        let done = normalise(&mut mesh).expect("it has an extent");
        assert_eq!(done, Normalisation { centre: [11.5, 2.0, 6.0], scale: 1.0 / 13.0 });
        let bounds = BoundingBox::of(&mesh).expect("it has an extent");
        assert!((bounds.diagonal() - 1.0).abs() < 1e-6);
        assert!(bounds.centre().iter().all(|c| c.abs() < 1e-7));
    }

    #[test]
    fn a_diagonal_within_a_percent_is_kept() {
        let mut mesh = triangle([[0.0, 0.0, 0.0], [0.0, 0.6048, 0.0], [0.8064, 0.0, 0.0]]);
        assert_eq!(normalise(&mut mesh).expect("it has an extent").scale, 1.0);
        let mut mesh = triangle([[0.0, 0.0, 0.0], [0.0, 0.612, 0.0], [0.816, 0.0, 0.0]]);
        assert!((normalise(&mut mesh).expect("it has an extent").scale - 1.0 / 1.02).abs() < 1e-6);
    }

    #[test]
    fn vertices_that_no_triangle_uses_do_not_count() {
        let mut mesh = triangle([[0.0, 0.0, 0.0], [0.6, 0.0, 0.0], [0.0, 0.8, 0.0]]);
        mesh.vertices.push(Vertex { position: [100.0; 3], normal: [0.0, 0.0, 1.0], uv: [0.0; 2] });
        assert!((BoundingBox::of(&mesh).expect("it has an extent").diagonal() - 1.0).abs() < 1e-6);
        assert!(normalise(&mut Mesh::default()).is_none());
        assert!(normalise(&mut triangle([[1.0; 3]; 3])).is_none());
    }
}
