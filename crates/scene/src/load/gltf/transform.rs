//! Transforms of glTF nodes.

use gltf::json::scene::Node;

/// An affine map: rows of a 3x4 matrix.
#[derive(Clone, Copy)]
pub struct Transform([[f64; 4]; 3]);

impl Transform {
    pub const IDENTITY: Self = Self([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]);

    /// A node's own transform: its matrix, or translation times rotation times scale.
    pub fn of(node: &Node) -> Self {
        if let Some(m) = node.matrix {
            // Stored by columns.
            return Self(std::array::from_fn(|row| {
                std::array::from_fn(|column| f64::from(m[4 * column + row]))
            }));
        }
        let translation = node.translation.unwrap_or_default();
        let scale = node.scale.unwrap_or([1.0; 3]);
        let quaternion = node.rotation.map_or([0.0, 0.0, 0.0, 1.0], |rotation| rotation.0);
        let rotation = pose::Rotation::from(pose::Quaternion::from(quaternion.map(f64::from))).to_matrix();
        Self(std::array::from_fn(|row| {
            let [a, b, c]: [f64; 3] =
                std::array::from_fn(|column| rotation[row][column] * f64::from(scale[column]));
            [a, b, c, f64::from(translation[row])]
        }))
    }

    /// `self` after `inner`: `world_from_parent.then(parent_from_node)` is `world_from_node`.
    pub fn then(&self, inner: &Self) -> Self {
        Self(std::array::from_fn(|row| {
            std::array::from_fn(|column| {
                let linear: f64 = (0..3).map(|k| self.0[row][k] * inner.0[k][column]).sum();
                if column == 3 { linear + self.0[row][3] } else { linear }
            })
        }))
    }

    pub fn is_finite(&self) -> bool {
        // Room to spare, so that products with coordinates stay finite in single precision.
        self.0.as_flattened().iter().all(|entry| entry.abs() < 1e15)
    }

    pub fn point(&self, p: [f64; 3]) -> [f64; 3] {
        self.0.map(|row| row[0] * p[0] + row[1] * p[1] + row[2] * p[2] + row[3])
    }

    /// The normal of a transformed surface, of any length: the cofactors of the linear part, turned back where it
    /// mirrors.
    pub fn normal(&self, n: [f64; 3]) -> [f64; 3] {
        let m = self.cofactors();
        let sign = if self.mirrors() { -1.0 } else { 1.0 };
        m.map(|row| sign * (row[0] * n[0] + row[1] * n[1] + row[2] * n[2]))
    }

    pub fn mirrors(&self) -> bool {
        let m = self.cofactors();
        (0..3).map(|i| self.0[0][i] * m[0][i]).sum::<f64>() < 0.0
    }

    fn cofactors(&self) -> [[f64; 3]; 3] {
        let m = &self.0;
        std::array::from_fn(|i| {
            let (r, s) = ((i + 1) % 3, (i + 2) % 3);
            std::array::from_fn(|j| {
                let (c, d) = ((j + 1) % 3, (j + 2) % 3);
                m[r][c] * m[s][d] - m[r][d] * m[s][c]
            })
        })
    }
}
