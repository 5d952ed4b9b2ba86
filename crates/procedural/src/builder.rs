//! Where an object is put together: named random parameters, materials, parts, and the finished mesh.

use crate::colour::Colour;
use crate::solid::Solid;
use glam::Vec3;
use random::Random;
use scene::{Material, Mesh, Texture, Vertex};

/// A material of the object being built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paint(pub u32);

/// An object in the making. Draws come in program order from one counter-based sequence, so an instance is a pure
/// function of its seed, class and index.
pub struct Builder {
    /// The instance's random numbers.
    pub random: Random,
    parameters: Vec<(&'static str, f64)>,
    mesh: Mesh,
}

impl Builder {
    /// An empty object.
    pub fn new(random: Random) -> Self {
        Self { random, parameters: Vec::new(), mesh: Mesh::default() }
    }

    /// A uniform number, recorded under `name` as one of the instance's parameters.
    pub fn vary(&mut self, name: &'static str, low: f32, high: f32) -> f32 {
        let value = self.range(low, high);
        self.parameters.push((name, f64::from(value)));
        value
    }

    /// A uniform whole number from `low` to `high`, both included; recorded.
    pub fn count(&mut self, name: &'static str, low: usize, high: usize) -> usize {
        let value = low + self.random.below((high - low + 1) as u64) as usize;
        self.parameters.push((name, value as f64));
        value
    }

    /// Which of `n` kinds; recorded.
    pub fn kind(&mut self, name: &'static str, n: usize) -> usize {
        self.count(name, 0, n - 1)
    }

    /// True with probability `p`; recorded.
    pub fn chance(&mut self, name: &'static str, p: f64) -> bool {
        let value = self.random.uniform() < p;
        self.parameters.push((name, f64::from(u8::from(value))));
        value
    }

    /// A uniform number, for details that need no name.
    pub fn range(&mut self, low: f32, high: f32) -> f32 {
        self.random.range(f64::from(low), f64::from(high)) as f32
    }

    /// One of the given values.
    pub fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.random.below(values.len() as u64) as usize]
    }

    /// A plain material.
    pub fn paint(&mut self, colour: Colour, roughness: f32, specular: f32) -> Paint {
        self.register(Material { base_colour: colour.linear(), roughness, specular, ..Material::default() })
    }

    /// A textured material; its plain colour is the texture's mean, for renderers that ignore textures.
    pub fn textured(&mut self, texture: Texture, roughness: f32, specular: f32) -> Paint {
        let n = texture.pixels.len().max(1) as f32;
        let mean = texture.pixels.iter().fold([0.0_f32; 3], |mut sum, p| {
            let linear = Colour([p[0], p[1], p[2]].map(|c| f32::from(c) / 255.0)).linear();
            for k in 0..3 {
                sum[k] += linear[k] / n;
            }
            sum
        });
        self.register(Material {
            base_colour: mean,
            texture: Some(texture.into()),
            roughness,
            specular,
            ..Material::default()
        })
    }

    fn register(&mut self, mut material: Material) -> Paint {
        let index = self.mesh.materials.len();
        material.name = format!("part{index}");
        self.mesh.materials.push(material);
        Paint(index as u32)
    }

    /// Adds a part; closed pieces are turned so that they face outwards.
    pub fn add(&mut self, paint: Paint, solid: Solid) {
        let solid = solid.oriented();
        let normals = solid.corner_normals();
        // Vertices made so far of every point: corners that agree in normal and texture share one.
        let mut made: Vec<Vec<u32>> = vec![Vec::new(); solid.points.len()];
        for (face, normals) in solid.faces.iter().zip(normals) {
            let triangle = std::array::from_fn(|k| {
                let point = face.corners[k] as usize;
                let vertex = Vertex {
                    position: solid.points[point].to_array(),
                    normal: normals[k].to_array(),
                    uv: face.uv[k].to_array(),
                };
                let same = |v: &Vertex| Vec3::from(v.normal).dot(normals[k]) > 0.9999 && v.uv == vertex.uv;
                let vertices = &mut self.mesh.vertices;
                match made[point].iter().find(|&&i| same(&vertices[i as usize])) {
                    Some(&i) => i,
                    None => {
                        vertices.push(vertex);
                        let i = vertices.len() as u32 - 1;
                        made[point].push(i);
                        i
                    }
                }
            });
            self.mesh.triangles.push(triangle);
            self.mesh.triangle_materials.push(paint.0);
        }
    }

    /// The parameters in the order they were drawn.
    pub fn parameters(self) -> Vec<(&'static str, f64)> {
        self.parameters
    }

    /// The mesh, centred on its bounding box and scaled to diagonal 1, without slivers.
    pub fn finish(self) -> Mesh {
        let mut mesh = self.mesh;
        let (low, high) = mesh.vertices.iter().fold(([f64::MAX; 3], [f64::MIN; 3]), |(low, high), v| {
            let p = v.position.map(f64::from);
            (std::array::from_fn(|k| low[k].min(p[k])), std::array::from_fn(|k| high[k].max(p[k])))
        });
        let diagonal = (0..3).map(|k| (high[k] - low[k]).powi(2)).sum::<f64>().sqrt();
        for v in &mut mesh.vertices {
            v.position = std::array::from_fn(|k| {
                ((f64::from(v.position[k]) - 0.5 * (low[k] + high[k])) / diagonal) as f32
            });
        }
        let solid = |t: &[u32; 3]| {
            let [a, b, c] = t.map(|i| Vec3::from(mesh.vertices[i as usize].position));
            (b - a).cross(c - a).length() > 1e-9
        };
        let keep: Vec<bool> = mesh.triangles.iter().map(solid).collect();
        let mut flags = keep.iter();
        mesh.triangles.retain(|_| *flags.next().unwrap_or(&true));
        let mut flags = keep.iter();
        mesh.triangle_materials.retain(|_| *flags.next().unwrap_or(&true));
        mesh
    }
}
