//! A piece of surface before it becomes part of a mesh: points, triangles and texture coordinates.
//!
//! Points are shared between neighbouring triangles, so that normals can be smoothed across edges flatter than
//! the crease angle; texture coordinates belong to triangle corners, so that seams cost no points.

use glam::{Mat3, Vec2, Vec3};
use std::collections::HashMap;

/// One triangle: three points, counter-clockwise seen from outside, and their texture coordinates.
#[derive(Clone, Copy, Debug)]
pub struct Face {
    /// Indices into [`Solid::points`].
    pub corners: [u32; 3],
    /// Texture coordinates of the corners.
    pub uv: [Vec2; 3],
}

/// A part of an object: shared points, triangles, and the angle up to which edges are shaded smoothly.
#[derive(Clone, Debug)]
pub struct Solid {
    /// Positions.
    pub points: Vec<Vec3>,
    /// Triangles.
    pub faces: Vec<Face>,
    /// Edges whose faces differ by less than this many degrees are smooth.
    pub crease_degrees: f32,
}

impl Default for Solid {
    fn default() -> Self {
        Self { points: Vec::new(), faces: Vec::new(), crease_degrees: 40.0 }
    }
}

impl Solid {
    /// Adds a point and gives its index.
    pub fn point(&mut self, p: Vec3) -> u32 {
        self.points.push(p);
        self.points.len() as u32 - 1
    }

    /// Adds a triangle unless two of its corners coincide.
    pub fn triangle(&mut self, corners: [u32; 3], uv: [Vec2; 3]) {
        let [a, b, c] = corners.map(|i| self.points[i as usize]);
        if (b - a).cross(c - a).length_squared() > 1e-16 {
            self.faces.push(Face { corners, uv });
        }
    }

    /// Adds a quadrilateral as two triangles, split along its shorter diagonal.
    pub fn quad(&mut self, q: [u32; 4], uv: [Vec2; 4]) {
        let p = q.map(|i| self.points[i as usize]);
        let pairs = if p[0].distance_squared(p[2]) <= p[1].distance_squared(p[3]) * 1.0001 {
            [[0, 1, 2], [0, 2, 3]]
        } else {
            [[0, 1, 3], [1, 2, 3]]
        };
        for t in pairs {
            self.triangle(t.map(|i: usize| q[i]), t.map(|i: usize| uv[i]));
        }
    }

    /// Moves by `(x, y, z)`.
    pub fn at(self, x: f32, y: f32, z: f32) -> Self {
        let t = Vec3::new(x, y, z);
        self.map(|p| p + t)
    }

    /// Rotates about x by `degrees`.
    pub fn turn_x(self, degrees: f32) -> Self {
        let m = Mat3::from_rotation_x(degrees.to_radians());
        self.map(|p| m * p)
    }

    /// Rotates about y by `degrees`.
    pub fn turn_y(self, degrees: f32) -> Self {
        let m = Mat3::from_rotation_y(degrees.to_radians());
        self.map(|p| m * p)
    }

    /// Rotates about z by `degrees`.
    pub fn turn_z(self, degrees: f32) -> Self {
        let m = Mat3::from_rotation_z(degrees.to_radians());
        self.map(|p| m * p)
    }

    /// Scales by positive factors.
    pub fn scale(self, x: f32, y: f32, z: f32) -> Self {
        let s = Vec3::new(x, y, z);
        self.map(|p| p * s)
    }

    /// Moves every point by a map that keeps the orientation (bending, tapering).
    pub fn map(mut self, f: impl Fn(Vec3) -> Vec3) -> Self {
        for p in &mut self.points {
            *p = f(*p);
        }
        self
    }

    /// The mirror image in the plane x = 0.
    pub fn mirror_x(self) -> Self {
        self.map(|p| Vec3::new(-p.x, p.y, p.z)).flip()
    }

    /// The mirror image in the plane y = 0.
    pub fn mirror_y(self) -> Self {
        self.map(|p| Vec3::new(p.x, -p.y, p.z)).flip()
    }

    /// Itself and its mirror image in x = 0.
    pub fn both_x(self) -> Self {
        let other = self.clone().mirror_x();
        self.with(other)
    }

    /// Itself and its mirror image in y = 0.
    pub fn both_y(self) -> Self {
        let other = self.clone().mirror_y();
        self.with(other)
    }

    /// Union (without any cutting) with `other`; keeps this solid's crease angle.
    pub fn with(mut self, other: Solid) -> Self {
        let first = self.points.len() as u32;
        self.points.extend(other.points);
        self.faces
            .extend(other.faces.iter().map(|f| Face { corners: f.corners.map(|i| i + first), uv: f.uv }));
        self
    }

    /// Turns every triangle inside out.
    pub fn flip(mut self) -> Self {
        for f in &mut self.faces {
            f.corners.swap(1, 2);
            f.uv.swap(1, 2);
        }
        self
    }

    /// Orients a closed surface so that its triangles face outwards.
    pub fn outwards(self) -> Self {
        if self.volume() < 0.0 { self.flip() } else { self }
    }

    /// Orients every closed piece so that its triangles face outwards; open pieces stay as they are.
    pub fn oriented(mut self) -> Self {
        // Pieces: points connected by triangles (union-find).
        let mut parent: Vec<u32> = (0..self.points.len() as u32).collect();
        fn root(parent: &mut [u32], mut i: u32) -> u32 {
            while parent[i as usize] != i {
                parent[i as usize] = parent[parent[i as usize] as usize];
                i = parent[i as usize];
            }
            i
        }
        for f in &self.faces {
            let a = root(&mut parent, f.corners[0]);
            for k in 1..3 {
                let other = root(&mut parent, f.corners[k]);
                parent[other as usize] = a;
            }
        }
        // A piece is closed when every directed edge has its opposite.
        let mut edges: HashMap<(u32, u32), i32> = HashMap::with_capacity(self.faces.len() * 2);
        for f in &self.faces {
            for k in 0..3 {
                let (a, b) = (f.corners[k], f.corners[(k + 1) % 3]);
                *edges.entry((a.min(b), a.max(b))).or_insert(0) += if a < b { 1 } else { -1 };
            }
        }
        let mut volume = vec![0.0_f64; self.points.len()];
        let mut open = vec![false; self.points.len()];
        for (&(a, _), &balance) in &edges {
            if balance != 0 {
                open[root(&mut parent, a) as usize] = true;
            }
        }
        for f in &self.faces {
            let [a, b, c] = f.corners.map(|i| self.points[i as usize].as_dvec3());
            volume[root(&mut parent, f.corners[0]) as usize] += a.dot(b.cross(c));
        }
        for f in &mut self.faces {
            let piece = root(&mut parent, f.corners[0]) as usize;
            if !open[piece] && volume[piece] < 0.0 {
                f.corners.swap(1, 2);
                f.uv.swap(1, 2);
            }
        }
        self
    }

    /// Signed volume of a closed surface.
    pub fn volume(&self) -> f32 {
        let six: f32 = self
            .faces
            .iter()
            .map(|f| {
                let [a, b, c] = f.corners.map(|i| self.points[i as usize]);
                a.dot(b.cross(c))
            })
            .sum();
        six / 6.0
    }

    /// Shades every triangle flat.
    pub fn flat(mut self) -> Self {
        self.crease_degrees = 1.0;
        self
    }

    /// Smooths edges up to `degrees`.
    pub fn crease(mut self, degrees: f32) -> Self {
        self.crease_degrees = degrees;
        self
    }

    /// Projects texture coordinates along the dominant axis of each triangle, `size` units to a repeat.
    pub fn tile(mut self, size: f32) -> Self {
        for f in &mut self.faces {
            let p = f.corners.map(|i| self.points[i as usize]);
            let n = (p[1] - p[0]).cross(p[2] - p[0]).abs();
            f.uv = p.map(|p| {
                let uv = if n.z >= n.x && n.z >= n.y {
                    Vec2::new(-p.x, p.y)
                } else if n.y >= n.x {
                    Vec2::new(-p.x, p.z)
                } else {
                    Vec2::new(p.y, p.z)
                };
                uv / size
            });
        }
        self
    }

    /// Replaces the texture coordinates by a function of the corner's position.
    pub fn project(mut self, f: impl Fn(Vec3) -> (f32, f32)) -> Self {
        for face in &mut self.faces {
            face.uv = face.corners.map(|i| f(self.points[i as usize]).into());
        }
        self
    }

    /// For every triangle the normals of its three corners: angle-weighted over the neighbours that are within the
    /// crease angle.
    pub fn corner_normals(&self) -> Vec<[Vec3; 3]> {
        let limit = self.crease_degrees.to_radians().cos();
        let normal = |f: &Face| {
            let [a, b, c] = f.corners.map(|i| self.points[i as usize]);
            (b - a).cross(c - a).normalize_or(Vec3::Z)
        };
        let normals: Vec<Vec3> = self.faces.iter().map(normal).collect();
        let mut around: Vec<Vec<(u32, f32)>> = vec![Vec::new(); self.points.len()];
        for (i, f) in self.faces.iter().enumerate() {
            let p = f.corners.map(|i| self.points[i as usize]);
            for k in 0..3 {
                let (u, v) = (p[(k + 1) % 3] - p[k], p[(k + 2) % 3] - p[k]);
                around[f.corners[k] as usize].push((i as u32, u.angle_between(v)));
            }
        }
        let corner = |i: usize, point: u32| {
            let sum: Vec3 = around[point as usize]
                .iter()
                .filter(|(other, _)| normals[*other as usize].dot(normals[i]) >= limit)
                .map(|&(other, angle)| normals[other as usize] * angle)
                .sum();
            sum.normalize_or(normals[i])
        };
        self.faces.iter().enumerate().map(|(i, f)| f.corners.map(|p| corner(i, p))).collect()
    }
}
