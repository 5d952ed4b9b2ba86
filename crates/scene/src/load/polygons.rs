//! From what the formats store (shared positions, polygons with separate indices) to the mesh that is rendered.
//!
//! Polygons are cut into triangles, triangles without an area are dropped, missing normals are computed (flat, or, of
//! smooth faces, the mean over all faces of the object at the vertex, weighted by the corners' angles), and corners that
//! agree in everything become one vertex.

use super::colours::{Colours, bake};
use super::files::Files;
use super::triangulate::Triangulator;
use super::{MeshError, Up};
use crate::{Material, Mesh, Vertex};

/// The end of the warning about faces that nobody would see.
pub(super) const WITHOUT_AREA: &str = "without an area";
/// "No index".
pub(super) const NONE: u32 = u32::MAX;
/// Corners that share a position are searched this far for an equal one; a pole with more of them stays correct and
/// merely gets duplicate vertices.
const MAX_CHAIN: usize = 64;
/// Normal identifiers from here on are smooth ones.
const SMOOTH: u32 = 1 << 31;

/// One corner of a polygon: indices into the lists of [`Polygons`], [`NONE`] where there is no such attribute.
#[derive(Clone, Copy)]
pub(super) struct Corner {
    pub position: u32,
    pub uv: u32,
    pub normal: u32,
}

#[derive(Clone, Copy)]
struct Face {
    /// One past its last corner.
    end: u32,
    material: u32,
    is_smooth: bool,
    /// Faces of different objects share no normals.
    object: u32,
}

/// The mesh as a file describes it. Indices must be valid when [`Polygons::finish`] is called.
pub(super) struct Polygons {
    pub positions: Vec<[f64; 3]>,
    pub normals: Vec<[f32; 3]>,
    pub uvs: Vec<[f32; 2]>,
    /// 8-bit sRGB for every position, where some material asks for them; white where there are too few.
    pub colours: Vec<[u8; 3]>,
    /// 8-bit sRGB for every face, likewise.
    pub face_colours: Vec<[u8; 3]>,
    /// For every material where its faces' colours come from.
    pub colouring: Vec<Colours>,
    /// The object that faces are pushed for, counted by the loader.
    pub object: u32,
    corners: Vec<Corner>,
    faces: Vec<Face>,
    /// No list may grow beyond this.
    limit: usize,
}

/// A triangle as three corner indices, and the face it is a part of.
struct Part {
    corners: [u32; 3],
    face: u32,
    /// Unit normal of its plane.
    normal: [f64; 3],
}

impl Polygons {
    pub fn new(max_triangles: usize) -> Self {
        Self {
            positions: Vec::new(),
            normals: Vec::new(),
            uvs: Vec::new(),
            colours: Vec::new(),
            face_colours: Vec::new(),
            colouring: Vec::new(),
            object: 0,
            corners: Vec::new(),
            faces: Vec::new(),
            limit: max_triangles.saturating_mul(3).min(SMOOTH as usize - 1),
        }
    }

    /// True when some list has outgrown the limit.
    pub fn too_large(&self) -> bool {
        let longest = self.positions.len().max(self.normals.len()).max(self.uvs.len());
        longest.max(self.corners.len()).max(self.faces.len()) > self.limit
    }

    pub fn push_corner(&mut self, corner: Corner) {
        self.corners.push(corner);
    }

    /// One triangle whose corners have the same index in every list that has one.
    pub fn push_triangle(&mut self, corners: [Corner; 3], material: u32) {
        self.corners.extend(corners);
        self.end_face(material, false);
    }

    /// The number of corners of the polygon that is being pushed.
    pub fn open_corners(&self) -> usize {
        self.corners.len() - self.faces.last().map_or(0, |face| face.end as usize)
    }

    /// Ends the polygon of the corners pushed since the last one.
    pub fn end_face(&mut self, material: u32, is_smooth: bool) {
        let (end, object) = (self.corners.len() as u32, self.object);
        self.faces.push(Face { end, material, is_smooth, object });
    }

    /// Builds the mesh, in world axes.
    pub fn finish(mut self, files: &mut Files, up: Up, materials: Vec<Material>) -> Result<Mesh, MeshError> {
        if self.faces.is_empty() {
            return Err(files.content("has no faces"));
        }
        let positions = self.rounded_positions(up);
        for normal in &mut self.normals {
            *normal = up.to_world(*normal);
        }
        let (parts, degenerate) = self.cut(&positions);
        if degenerate > 0 {
            let faces = if degenerate == 1 { "face" } else { "faces" };
            files.warn(format!("{}: dropped {degenerate} {faces} {WITHOUT_AREA}", files.path.display()));
        }
        if parts.is_empty() {
            return Err(files.content("has no face with an area"));
        }
        if parts.len() > files.options.max_triangles {
            return Err(files.content(format!("has more than {} triangles", files.options.max_triangles)));
        }
        let smooth = SmoothNormals::new(&self, &positions, &parts);
        let mut mesh = self.emit(&positions, &parts, &smooth);
        mesh.materials = if materials.is_empty() { vec![Material::default()] } else { materials };
        if self.colouring.iter().any(|source| *source != Colours::Material) {
            let colours: Vec<_> = parts.iter().map(|part| self.part_colours(part)).collect();
            bake(&mut mesh, &colours);
        }
        Ok(mesh)
    }

    fn part_colours(&self, part: &Part) -> Option<[[u8; 3]; 3]> {
        let face = part.face as usize;
        match self.colouring.get(self.faces[face].material as usize)? {
            Colours::Material => None,
            Colours::Faces => Some([self.face_colours.get(face).copied().unwrap_or([255; 3]); 3]),
            Colours::Vertices => Some(part.corners.map(|corner| {
                let position = self.corners[corner as usize].position as usize;
                self.colours.get(position).copied().unwrap_or([255; 3])
            })),
        }
    }

    /// Positions in single precision; a mesh far from the origin is moved there first, so that it keeps its detail.
    fn rounded_positions(&mut self, up: Up) -> Vec<[f32; 3]> {
        let (mut low, mut high) = ([f64::MAX; 3], [f64::MIN; 3]);
        for corner in &self.corners {
            for (axis, &coordinate) in self.positions[corner.position as usize].iter().enumerate() {
                low[axis] = low[axis].min(coordinate);
                high[axis] = high[axis].max(coordinate);
            }
        }
        let centre: [f64; 3] = std::array::from_fn(|axis| 0.5 * (low[axis] + high[axis]));
        let far = (0..3)
            .any(|axis| centre[axis].abs() > 8.0 * (0..3).map(|i| high[i] - low[i]).fold(0.0, f64::max));
        let origin = if far { centre } else { [0.0; 3] };
        std::mem::take(&mut self.positions)
            .into_iter()
            .map(|p| up.to_world(std::array::from_fn(|axis| (p[axis] - origin[axis]) as f32)))
            .collect()
    }

    /// All triangles with an area, and the number of faces that have none.
    fn cut(&self, positions: &[[f32; 3]]) -> (Vec<Part>, usize) {
        let mut parts = Vec::with_capacity(self.faces.len());
        let (mut triangulator, mut points) = (Triangulator::default(), Vec::new());
        let (mut start, mut degenerate) = (0, 0);
        for (face, &Face { end, .. }) in self.faces.iter().enumerate() {
            let corners = &self.corners[start as usize..end as usize];
            points.clear();
            points.extend(corners.iter().map(|corner| positions[corner.position as usize].map(f64::from)));
            let before = parts.len();
            triangulator.triangulate(&points, |triangle| {
                if let Some(normal) = unit_normal(triangle.map(|i| points[i as usize])) {
                    parts.push(Part { corners: triangle.map(|i| start + i), face: face as u32, normal });
                }
            });
            degenerate += usize::from(parts.len() == before);
            start = end;
        }
        (parts, degenerate)
    }

    fn emit(&self, positions: &[[f32; 3]], parts: &[Part], smooth: &SmoothNormals) -> Mesh {
        let mut mesh = Mesh {
            triangles: Vec::with_capacity(parts.len()),
            triangle_materials: Vec::with_capacity(parts.len()),
            ..Mesh::default()
        };
        let mut chains = Chains::new(positions.len());
        // Flat vertices are shared within one polygon only: the corner that made each, by corner of the polygon.
        let mut flat: Vec<u32> = Vec::new();
        let (mut flat_face, mut flat_start, mut flat_normal) = (NONE, 0, [0.0; 3]);
        for part in parts {
            if part.face != flat_face {
                flat_face = part.face;
                flat_normal = part.normal;
                flat_start = self.face_start(part.face);
                flat.clear();
                flat.resize((self.faces[part.face as usize].end - flat_start) as usize, NONE);
            }
            let coplanar = dot(flat_normal, part.normal) > 1.0 - 1e-9;
            let triangle = part.corners.map(|index| {
                let corner = self.corners[index as usize];
                let (identifier, normal) = match self.normal(corner) {
                    Some(normal) => (corner.normal, normal),
                    None => match smooth.at(index) {
                        Some((slot, normal)) => (SMOOTH | slot, normal),
                        None => (NONE, if coplanar { flat_normal } else { part.normal }),
                    },
                };
                let vertex = Vertex {
                    position: positions[corner.position as usize],
                    normal: normal.map(|n| n as f32),
                    uv: self.uvs.get(corner.uv as usize).copied().unwrap_or_default(),
                };
                let mut push = || {
                    mesh.vertices.push(vertex);
                    mesh.vertices.len() as u32 - 1
                };
                if identifier != NONE {
                    chains.find_or(corner.position, (corner.uv, identifier), push)
                } else if coplanar {
                    let slot = &mut flat[(index - flat_start) as usize];
                    if *slot == NONE {
                        *slot = push();
                    }
                    *slot
                } else {
                    push()
                }
            });
            mesh.triangles.push(triangle);
            mesh.triangle_materials.push(self.faces[part.face as usize].material);
        }
        mesh
    }

    fn face_start(&self, face: u32) -> u32 {
        face.checked_sub(1).map_or(0, |previous| self.faces[previous as usize].end)
    }

    /// The normal the file gives for a corner, of length 1.
    fn normal(&self, corner: Corner) -> Option<[f64; 3]> {
        let normal = self.normals.get(corner.normal as usize)?.map(f64::from);
        let length = dot(normal, normal).sqrt();
        (length > 1e-20).then(|| normal.map(|n| n / length))
    }
}

/// Vertex normals of smooth faces: Blender's importer keeps no smoothing groups apart, and flat faces count in the mean.
struct SmoothNormals {
    /// For every corner its slot or [`NONE`]; empty where nothing is smooth.
    slots: Vec<u32>,
    normals: Vec<[f64; 3]>,
}

impl SmoothNormals {
    fn new(polygons: &Polygons, positions: &[[f32; 3]], parts: &[Part]) -> Self {
        let mut smooth = Self { slots: Vec::new(), normals: Vec::new() };
        let face = |part: &Part| polygons.faces[part.face as usize];
        if !parts.iter().any(|part| face(part).is_smooth) {
            return smooth;
        }
        smooth.slots.resize(polygons.corners.len(), NONE);
        let mut chains = Chains::new(positions.len());
        for part in parts {
            let points = part
                .corners
                .map(|i| positions[polygons.corners[i as usize].position as usize].map(f64::from));
            let Face { is_smooth, object, .. } = face(part);
            for i in 0..3 {
                let corner = part.corners[i];
                let position = polygons.corners[corner as usize].position;
                let slot = chains.find_or(position, (object, 0), || {
                    smooth.normals.push([0.0; 3]);
                    smooth.normals.len() as u32 - 1
                });
                if is_smooth {
                    smooth.slots[corner as usize] = slot;
                }
                let angle = angle_at(points[i], points[(i + 1) % 3], points[(i + 2) % 3]);
                let sum = &mut smooth.normals[slot as usize];
                *sum = std::array::from_fn(|axis| sum[axis] + angle * part.normal[axis]);
            }
        }
        smooth
    }

    /// Slot and unit normal of a corner; `None` where it is flat or its faces cancel out.
    fn at(&self, corner: u32) -> Option<(u32, [f64; 3])> {
        let &slot = self.slots.get(corner as usize)?;
        let sum = *self.normals.get(slot as usize)?;
        let length = dot(sum, sum).sqrt();
        (length > 1e-6).then(|| (slot, sum.map(|n| n / length)))
    }
}

/// For every position the chain of items made there, each with its key.
struct Chains {
    heads: Vec<u32>,
    items: Vec<(u32, (u32, u32), u32)>,
}

impl Chains {
    fn new(positions: usize) -> Self {
        Self { heads: vec![NONE; positions], items: Vec::new() }
    }

    fn find_or(&mut self, position: u32, key: (u32, u32), make: impl FnOnce() -> u32) -> u32 {
        let head = &mut self.heads[position as usize];
        let mut at = *head;
        for _ in 0..MAX_CHAIN {
            let Some(&(next, other, item)) = self.items.get(at as usize) else { break };
            if other == key {
                return item;
            }
            at = next;
        }
        let item = make();
        self.items.push((*head, key, item));
        *head = self.items.len() as u32 - 1;
        item
    }
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn minus(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

/// The normal of a triangle; `None` where its corners lie on a line, to rounding.
fn unit_normal([a, b, c]: [[f64; 3]; 3]) -> Option<[f64; 3]> {
    let (ab, ac, bc) = (minus(b, a), minus(c, a), minus(c, b));
    let normal = cross(ab, ac);
    let (length, longest) = (dot(normal, normal).sqrt(), dot(ab, ab).max(dot(ac, ac)).max(dot(bc, bc)));
    (length > 1e-12 * longest && length > 0.0).then(|| normal.map(|n| n / length))
}

fn angle_at(corner: [f64; 3], a: [f64; 3], b: [f64; 3]) -> f64 {
    let (a, b) = (minus(a, corner), minus(b, corner));
    let sine = cross(a, b);
    dot(sine, sine).sqrt().atan2(dot(a, b))
}
