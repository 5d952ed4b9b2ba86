//! glTF 2.0, as text (`.gltf`) or binary (`.glb`): the meshes of the default scene under their nodes' transforms.
//!
//! The `gltf` crate supplies the types of the JSON; buffers are read here, under the root rule and with every claim
//! checked. Materials are metal and roughness with their maps, specular 0.5; skins and morph targets are left out, and so
//! are colours at vertices where there is a texture: warnings say so.

use super::colours::{Colours, srgb_from_linear};
use super::files::Files;
use super::polygons::{Corner, NONE, Polygons};
use super::{MeshError, Up};
use crate::{Material, Mesh};
use gltf::json::mesh::{Mode, Primitive, Semantic};
use gltf::json::validation::Checked;
use gltf::json::{Root, deserialize};
use std::io::Read;

mod buffers;
mod left_out;
mod materials;
mod transform;

use buffers::Buffers;
use materials::{Extensions, GltfMaterial};
use transform::Transform;

/// Extensions that may be required, besides those of materials, which change no more than looks: those that are read here,
/// and lights.
const HARMLESS_EXTENSIONS: [&str; 4] =
    ["EXT_texture_webp", "KHR_mesh_quantization", "KHR_texture_transform", "KHR_lights_punctual"];
/// Larger documents and buffers are refused: they are held in memory, and no mesh within the limits needs them.
const MAX_BYTES: u64 = 2 << 30;
/// Deeper trees of nodes are refused.
const MAX_DEPTH: usize = 1000;

struct Loader<'a> {
    files: &'a mut Files,
    root: &'a Root,
    buffers: Buffers,
    polygons: Polygons,
    materials: Vec<GltfMaterial>,
    /// Materials that are used with vertex colours, as (material or none, index in `materials`).
    coloured: Vec<(Option<usize>, u32)>,
    grey: Option<u32>,
}

pub(super) fn load(files: &mut Files) -> Result<Mesh, MeshError> {
    if files.size > MAX_BYTES {
        return Err(files.content(format!("has {} bytes, more than {MAX_BYTES} of glTF", files.size)));
    }
    let mut bytes = Vec::new();
    files.open_mesh()?.read_to_end(&mut bytes).map_err(|source| files.read_error(source))?;
    let (json, binary) = split(&bytes).map_err(|message| files.content(message))?;
    let root: Root = deserialize::from_slice(json)
        .map_err(|error| files.content(format!("is not a glTF 2.0 document: {error}")))?;
    let document = serde_json::from_slice(json).unwrap_or_default();
    let extensions = Extensions::read(&document);
    let binary = binary.map(<[u8]>::to_vec);
    drop(bytes);
    let unknown =
        |name: &&String| !HARMLESS_EXTENSIONS.contains(&name.as_str()) && !name.starts_with("KHR_materials_");
    if let Some(extension) = root.extensions_required.iter().find(unknown) {
        return Err(files.content(format!("needs the glTF extension {extension}, which is not supported")));
    }
    left_out::warn(&document, files);
    drop(document);
    let polygons = Polygons::new(files.options.max_triangles);
    let buffers = Buffers::new(&root, binary);
    let materials = materials::read(&root, &extensions);
    let mut loader =
        Loader { files, root: &root, buffers, polygons, materials, coloured: Vec::new(), grey: None };
    loader.nodes()?;
    loader.finish()
}

/// The JSON and, of a binary file, its data.
fn split(bytes: &[u8]) -> Result<(&[u8], Option<&[u8]>), String> {
    if !bytes.starts_with(b"glTF") {
        return Ok((bytes, None));
    }
    let word = |at: usize| {
        let bytes = bytes.get(at..at + 4).ok_or("ends inside its glTF header")?;
        Ok::<_, String>(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    };
    let version = word(4)?;
    if version != 2 {
        return Err(format!("is binary glTF of version {version}, expected 2"));
    }
    let length = word(8)? as usize;
    if length > bytes.len() {
        return Err(format!("claims {length} bytes, but has {}", bytes.len()));
    }
    let (mut json, mut binary, mut at) = (None, None, 12);
    while at + 8 <= bytes.len() {
        let (size, kind) = (word(at)? as usize, word(at + 4)?.to_le_bytes());
        let chunk = (at + 8).checked_add(size).and_then(|end| bytes.get(at + 8..end));
        let Some(chunk) = chunk else {
            return Err(format!("claims a chunk of {size} bytes at {at}, but ends before"));
        };
        match &kind {
            b"JSON" if json.is_none() => json = Some(chunk),
            b"BIN\0" if binary.is_none() => binary = Some(chunk),
            _ => {}
        }
        at += 8 + size;
    }
    Ok((json.ok_or("has no JSON chunk")?, binary))
}

impl Loader<'_> {
    /// Visits the nodes of the default scene; without scenes, all that are nobody's child.
    fn nodes(&mut self) -> Result<(), MeshError> {
        let root = self.root;
        let scene = root.scene.map_or(0, |scene| scene.value());
        let mut visited = vec![false; root.nodes.len()];
        let mut pending: Vec<(usize, Transform, usize)> = match root.scenes.get(scene) {
            Some(scene) => scene.nodes.iter().map(|node| (node.value(), Transform::IDENTITY, 0)).collect(),
            None => {
                let children = root.nodes.iter().flat_map(|node| node.children.iter().flatten());
                let children: std::collections::HashSet<usize> =
                    children.map(|child| child.value()).collect();
                let tops = (0..root.nodes.len()).filter(|node| !children.contains(node));
                tops.map(|node| (node, Transform::IDENTITY, 0)).collect()
            }
        };
        pending.reverse();
        while let Some((index, parent, depth)) = pending.pop() {
            let Some(node) = root.nodes.get(index) else {
                return Err(self.files.content(format!("names node {index}, but has {}", root.nodes.len())));
            };
            if std::mem::replace(&mut visited[index], true) || depth > MAX_DEPTH {
                return Err(self.files.content(format!("node {index}: the nodes are not a tree")));
            }
            let world = parent.then(&Transform::of(node));
            if !world.is_finite() {
                return Err(self.files.content(format!("node {index}: the transform is not finite")));
            }
            if let Some(mesh) = node.mesh {
                if node.skin.is_some() {
                    let path = self.files.path.display();
                    self.files.warn(format!(
                        "{path}: node {index}: the skin is left out, the mesh is in its rest pose"
                    ));
                }
                let Some(mesh) = root.meshes.get(mesh.value()) else {
                    return Err(self
                        .files
                        .content(format!("node {index}: there is no mesh {}", mesh.value())));
                };
                let weights = node.weights.as_ref().or(mesh.weights.as_ref());
                if weights.is_some_and(|weights| weights.iter().any(|weight| *weight != 0.0)) {
                    let path = self.files.path.display();
                    self.files.warn(format!("{path}: node {index}: morph targets are left out"));
                }
                for (number, primitive) in mesh.primitives.iter().enumerate() {
                    self.primitive(primitive, &world).map_err(|message| {
                        self.files.content(format!("node {index}, primitive {number}: {message}"))
                    })?;
                }
            }
            let children = node.children.iter().flatten().rev();
            pending.extend(children.map(|child| (child.value(), world, depth + 1)));
        }
        Ok(())
    }

    fn primitive(&mut self, primitive: &Primitive, world: &Transform) -> Result<(), String> {
        let Checked::Valid(mode) = primitive.mode else { return Err("unknown primitive mode".to_owned()) };
        if !matches!(mode, Mode::Triangles | Mode::TriangleStrip | Mode::TriangleFan) {
            return Ok(());
        }
        let attribute = |semantic: Semantic| {
            primitive.attributes.get(&Checked::Valid(semantic)).map(|accessor| accessor.value())
        };
        let Some(positions) = attribute(Semantic::Positions) else {
            return Err("has no positions".to_owned());
        };
        let limit = self.files.options.max_triangles.saturating_mul(3);
        let first = self.polygons.positions.len() as u32;
        let positions = self.read::<3>(positions, limit)?;
        let count = positions.len() as u32;
        self.polygons.positions.extend(positions.iter().map(|p| world.point(p.map(f64::from))));
        let coordinates = self.polygons.positions[first as usize..].as_flattened();
        if coordinates.iter().any(|coordinate| !(*coordinate as f32).is_finite()) {
            return Err("a coordinate is not a finite number".to_owned());
        }

        let normals =
            attribute(Semantic::Normals).map(|accessor| self.read::<3>(accessor, limit)).transpose()?;
        let first_normal = self.polygons.normals.len() as u32;
        // What is not a number becomes zero, which counts as missing.
        self.polygons.normals.extend(normals.iter().flatten().map(|normal| {
            let normal = world.normal(normal.map(f64::from)).map(|n| n as f32);
            if normal.iter().all(|n| n.is_finite()) { normal } else { [0.0; 3] }
        }));
        let normal_count = self.polygons.normals.len() as u32 - first_normal;

        let material = primitive.material.map(|material| material.value());
        if let Some(material) = material.filter(|material| *material >= self.root.materials.len()) {
            return Err(format!("there is no material {material}"));
        }
        let set = material.map_or(0, |material| self.materials[material].uv_set);
        let transform = material.map(|material| self.materials[material].uv_transform);
        let uvs = attribute(Semantic::TexCoords(set))
            .map(|accessor| self.read::<2>(accessor, limit))
            .transpose()?;
        let first_uv = self.polygons.uvs.len() as u32;
        self.polygons.uvs.extend(uvs.iter().flatten().map(|&uv| {
            let [u, v] = transform.map_or(uv, |transform| transform.apply(uv));
            // Texture coordinates of glTF begin at the top left.
            if u.is_finite() && v.is_finite() { [u, 1.0 - v] } else { [0.0; 2] }
        }));
        let uv_count = self.polygons.uvs.len() as u32 - first_uv;

        let colours = attribute(Semantic::Colors(0));
        if let (Some(colours), Some(textured)) = (colours, material)
            && self.materials[textured].image.is_some()
        {
            self.warn_of_colours(colours, limit);
        }
        let material = match colours {
            Some(colours) if material.is_none_or(|material| self.materials[material].image.is_none()) => {
                self.vertex_colours(colours, material, first, limit)?
            }
            _ => match material {
                Some(material) => material as u32,
                None => self.grey_material(),
            },
        };

        let indices = match primitive.indices {
            Some(accessor) => self.buffers.read_indices(self.root, accessor.value(), self.files, limit)?,
            None => (0..count).collect(),
        };
        if let Some(index) = indices.iter().find(|index| **index >= count) {
            return Err(format!("index {index}, but there are only {count} positions, counted from 0"));
        }
        let corner = |index: u32| Corner {
            position: first + index,
            uv: if index < uv_count { first_uv + index } else { NONE },
            normal: if index < normal_count { first_normal + index } else { NONE },
        };
        let polygons = &mut self.polygons;
        let mut push = |[a, b, c]: [u32; 3]| {
            // A mirror turns triangles inside out.
            let triangle = if world.mirrors() { [a, c, b] } else { [a, b, c] };
            polygons.push_triangle(triangle.map(corner), material);
        };
        match mode {
            Mode::Triangles => indices.as_chunks::<3>().0.iter().for_each(|triangle| push(*triangle)),
            Mode::TriangleStrip => indices.windows(3).enumerate().for_each(|(i, w)| {
                push(if i % 2 == 0 { [w[0], w[1], w[2]] } else { [w[1], w[0], w[2]] });
            }),
            _ => (2..indices.len()).for_each(|i| push([indices[0], indices[i - 1], indices[i]])),
        }
        if self.polygons.too_large() {
            return Err(format!("the mesh has more than {} triangles", self.files.options.max_triangles));
        }
        Ok(())
    }

    fn read<const N: usize>(&mut self, accessor: usize, limit: usize) -> Result<Vec<[f32; N]>, String> {
        self.buffers.read(self.root, accessor, self.files, limit)
    }

    /// Stores the colours (linear, times the material's) of the positions from `first` on, and gives the index of a
    /// copy of the material that takes them.
    fn vertex_colours(
        &mut self,
        accessor: usize,
        material: Option<usize>,
        first: u32,
        limit: usize,
    ) -> Result<u32, String> {
        let factor = material.map_or([1.0; 3], |material| self.materials[material].base_colour);
        let colours = self.buffers.read_colours(self.root, accessor, self.files, limit)?;
        self.polygons.colours.resize(first as usize, [255; 3]);
        self.polygons.colours.extend(colours.iter().map(|colour| {
            [0, 1, 2]
                .map(|i| srgb_from_linear(if colour[i].is_finite() { colour[i] * factor[i] } else { 0.0 }))
        }));
        if let Some((_, known)) = self.coloured.iter().find(|(of, _)| *of == material) {
            return Ok(*known);
        }
        let copy = match material {
            Some(material) => self.materials[material].clone(),
            None => GltfMaterial::grey(),
        };
        self.materials.push(copy);
        let index = self.materials.len() as u32 - 1;
        self.coloured.push((material, index));
        Ok(index)
    }

    /// Warns of colours that are left out, unless they are white.
    fn warn_of_colours(&mut self, accessor: usize, limit: usize) {
        let colours = self.buffers.read_colours(self.root, accessor, self.files, limit);
        if colours.is_ok_and(|colours| colours.iter().any(|colour| *colour != [1.0; 3])) {
            let path = self.files.path.display();
            let message = format!("{path}: colours at vertices are left out where there is a texture");
            self.files.warn_once("colours at vertices", message);
        }
    }

    /// The material of primitives without one.
    fn grey_material(&mut self) -> u32 {
        *self.grey.get_or_insert_with(|| {
            self.materials.push(GltfMaterial::grey());
            self.materials.len() as u32 - 1
        })
    }

    fn finish(mut self) -> Result<Mesh, MeshError> {
        self.polygons.colouring = vec![Colours::Material; self.materials.len()];
        for (_, index) in &self.coloured {
            self.polygons.colouring[*index as usize] = Colours::Vertices;
        }
        let up = self.files.up(Up::Y);
        let materials: Vec<Material> = std::mem::take(&mut self.materials)
            .into_iter()
            .map(|material| material.finish(self.root, &mut self.buffers, self.files))
            .collect();
        self.polygons.finish(self.files, up, materials)
    }
}
