//! Materials of glTF: base colour, metal and roughness, opacity, emission, normals, and their images.

use super::super::colours::{linear_from_srgb, srgb_from_linear};
use super::super::files::Files;
use super::buffers::{Buffers, percent_decoded, read_uri};
use crate::{Map, Material, Texture};
use gltf::json::Root;
use gltf::json::material::{AlphaMode, NormalTexture};
use gltf::json::texture::Info;
use gltf::json::validation::Checked;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A material before its images are loaded.
#[derive(Clone)]
pub struct GltfMaterial {
    name: String,
    /// Linear.
    pub base_colour: [f32; 3],
    /// The image of the base colour, if any.
    pub image: Option<usize>,
    /// Which set of texture coordinates the images use.
    pub uv_set: u32,
    /// How they are moved before (KHR_texture_transform).
    pub uv_transform: UvTransform,
    roughness: f32,
    metallic: f32,
    emission: [f32; 3],
    alpha: f32,
    /// Opacity from which on a surface is there, of materials that are either there or not.
    cutoff: Option<f32>,
    /// Whether the texture's alpha counts, too.
    is_see_through: bool,
    /// Images of metal and roughness, of emission and of normals.
    surface_image: Option<usize>,
    emission_image: Option<usize>,
    normal_image: Option<usize>,
    normal_strength: f32,
    /// Maps that use other texture coordinates than the first one, and so are left out.
    left_out: Vec<&'static str>,
}

/// An affine map of texture coordinates as glTF counts them, from the top left: rows of (u, v, 1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UvTransform([[f32; 3]; 2]);

impl UvTransform {
    pub(super) const IDENTITY: Self = Self([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]);

    fn of(info: &Info) -> Self {
        let transform = info.extensions.as_ref().and_then(|extensions| extensions.texture_transform.as_ref());
        let Some(transform) = transform else { return Self::IDENTITY };
        let ([x, y], [width, height]) = (transform.offset.0, transform.scale.0);
        let (sin, cos) = transform.rotation.0.sin_cos();
        let rows = [[cos * width, sin * height, x], [-sin * width, cos * height, y]];
        if rows.as_flattened().iter().all(|entry| entry.is_finite()) { Self(rows) } else { Self::IDENTITY }
    }

    /// Where the point lies in the image.
    pub fn apply(&self, [u, v]: [f32; 2]) -> [f32; 2] {
        self.0.map(|[a, b, c]| a * u + b * v + c)
    }
}

/// What the types of the JSON do not have of its extensions.
#[derive(Default)]
pub struct Extensions {
    /// Images in WebP of textures (EXT_texture_webp).
    webp: BTreeMap<usize, usize>,
    /// Factors of materials' emission (KHR_materials_emissive_strength).
    emissive: BTreeMap<usize, f32>,
    /// How materials' maps of normals are moved (KHR_texture_transform).
    normals: BTreeMap<usize, Coordinates>,
}

impl Extensions {
    /// Reads them from a document.
    pub fn read(document: &Value) -> Self {
        let entries = |list: &str, extension: &str, key: &str| {
            let list = document[list].as_array().map(Vec::as_slice).unwrap_or_default();
            let value = |(index, entry): (usize, &Value)| {
                entry["extensions"][extension][key].as_f64().map(|value| (index, value))
            };
            list.iter().enumerate().filter_map(value).collect::<Vec<_>>()
        };
        let webp = entries("textures", "EXT_texture_webp", "source");
        let emissive = entries("materials", "KHR_materials_emissive_strength", "emissiveStrength");
        let materials = document["materials"].as_array().map(Vec::as_slice).unwrap_or_default();
        let normals = materials.iter().enumerate().filter_map(|(index, material)| {
            let info = Info::deserialize(&material["normalTexture"]).ok()?;
            Some((index, coordinates(&info)))
        });
        Self {
            normals: normals.collect(),
            webp: webp.into_iter().map(|(texture, image)| (texture, image as usize)).collect(),
            emissive: emissive.into_iter().map(|(material, factor)| (material, factor as f32)).collect(),
        }
    }

    /// Texture coordinates of a material's map of normals.
    fn of_normals(&self, material: usize, info: &NormalTexture) -> Coordinates {
        self.normals.get(&material).copied().unwrap_or((info.tex_coord, UvTransform::IDENTITY))
    }

    /// The image of a texture.
    fn image(&self, root: &Root, texture: usize) -> Option<usize> {
        let own = root.textures.get(texture)?.source.value();
        Some(self.webp.get(&texture).copied().unwrap_or(own))
    }
}

/// Texture coordinates of a map.
type Coordinates = (u32, UvTransform);

fn coordinates(info: &Info) -> Coordinates {
    let moved = info.extensions.as_ref().and_then(|other| other.texture_transform.as_ref());
    let set = moved.and_then(|transform| transform.tex_coord).unwrap_or(info.tex_coord);
    (set, UvTransform::of(info))
}

/// All materials of a document. Where there are two descriptions, of metal and roughness and of specular and gloss
/// (KHR_materials_pbrSpecularGlossiness), the first is only for programs that do not know the second.
pub fn read(root: &Root, extensions: &Extensions) -> Vec<GltfMaterial> {
    let read = |(index, material): (usize, &gltf::json::Material)| {
        let surface = &material.pbr_metallic_roughness;
        let gloss = material.extensions.as_ref().and_then(|other| other.pbr_specular_glossiness.as_ref());
        let (factor, texture, roughness, metallic) = match gloss {
            Some(gloss) => {
                let roughness = 1.0 - gloss.glossiness_factor.0;
                (gloss.diffuse_factor.0, gloss.diffuse_texture.as_ref(), roughness, 0.0)
            }
            None => {
                let (roughness, metallic) = (surface.roughness_factor.0, surface.metallic_factor.0);
                (surface.base_color_factor.0, surface.base_color_texture.as_ref(), roughness, metallic)
            }
        };
        let surface_texture =
            if gloss.is_some() { None } else { surface.metallic_roughness_texture.as_ref() };
        let normal = material.normal_texture.as_ref();
        // All maps share the texture coordinates of the first.
        let used = [
            ("its base colour", texture.map(|info| (info.index.value(), coordinates(info)))),
            ("its metal and roughness", surface_texture.map(|info| (info.index.value(), coordinates(info)))),
            (
                "its emission",
                material.emissive_texture.as_ref().map(|info| (info.index.value(), coordinates(info))),
            ),
            ("its normals", normal.map(|info| (info.index.value(), extensions.of_normals(index, info)))),
        ];
        let first = used.iter().find_map(|(_, map)| map.map(|(_, coordinates)| coordinates));
        let (uv_set, uv_transform) = first.unwrap_or((0, UvTransform::IDENTITY));
        let mut left_out = Vec::new();
        let [image, surface_image, emission_image, normal_image] = used.map(|(what, map)| {
            let (texture, coordinates) = map?;
            if coordinates != (uv_set, uv_transform) {
                left_out.push(what);
                return None;
            }
            extensions.image(root, texture)
        });
        let [red, green, blue, alpha] = factor;
        let alpha = finite(alpha, 1.0);
        let mode = &material.alpha_mode;
        let is_see_through = matches!(mode, Checked::Valid(AlphaMode::Blend | AlphaMode::Mask));
        let is_mask = matches!(mode, Checked::Valid(AlphaMode::Mask));
        let strength = extensions.emissive.get(&index).copied().unwrap_or(1.0);
        GltfMaterial {
            name: material.name.clone().unwrap_or_default(),
            base_colour: [red, green, blue].map(|channel| finite(channel, 1.0)),
            image,
            uv_set,
            uv_transform,
            roughness: finite(roughness, 1.0),
            metallic: finite(metallic, 1.0),
            emission: material.emissive_factor.0.map(|channel| {
                let value = channel * strength;
                if value.is_finite() { value.clamp(0.0, 1e6) } else { 0.0 }
            }),
            alpha: if is_see_through { alpha } else { 1.0 },
            cutoff: is_mask.then(|| material.alpha_cutoff.as_ref().map_or(0.5, |cutoff| cutoff.0)),
            is_see_through,
            surface_image,
            emission_image,
            normal_image,
            normal_strength: normal.map_or(1.0, |normal| normal.scale),
            left_out,
        }
    };
    root.materials.iter().enumerate().map(read).collect()
}

fn finite(value: f32, otherwise: f32) -> f32 {
    if value.is_finite() { value.clamp(0.0, 1.0) } else { otherwise }
}

impl GltfMaterial {
    /// The plain grey of primitives without a material.
    pub fn grey() -> Self {
        let Material { name, base_colour, roughness, metallic, emission, alpha, .. } = Material::default();
        Self {
            name,
            base_colour,
            image: None,
            uv_set: 0,
            uv_transform: UvTransform::IDENTITY,
            roughness,
            metallic,
            emission,
            alpha,
            cutoff: None,
            is_see_through: false,
            surface_image: None,
            emission_image: None,
            normal_image: None,
            normal_strength: 1.0,
            left_out: Vec::new(),
        }
    }

    /// Loads the images; where that fails, a warning and the plain numbers.
    pub fn finish(self, root: &Root, buffers: &mut Buffers, files: &mut Files) -> Material {
        let path = files.path.display().to_string();
        for what in &self.left_out {
            files.warn(format!(
                "{path}: material {:?}: the map of {what} is left out: it uses other texture coordinates than the first map",
                self.name
            ));
        }
        let mut load = |image: Option<usize>| {
            let image = image?;
            let loaded = load_image(root, image, buffers, files);
            loaded
                .map_err(|reason| files.warn(format!("{path}: image {image}: texture left out: {reason}")))
                .ok()
        };
        let (base, surface) = (load(self.image), load(self.surface_image));
        let (emission, normals) = (load(self.emission_image), load(self.normal_image));
        let mut derive = |image: &Arc<Texture>, pixel: &dyn Fn([u8; 4]) -> [u8; 4]| {
            let derived = files.textures.derived(image, pixel);
            derived.map_err(|reason| files.warn(format!("{path}: texture left out: {reason}"))).ok()
        };
        let mut alpha = self.alpha;
        let mut opacity = None;
        let is_clear = |image: &&Arc<Texture>| image.pixels.iter().any(|pixel| pixel[3] < 255);
        match (base.as_ref().filter(is_clear).filter(|_| self.is_see_through), self.cutoff) {
            (None, Some(cutoff)) => alpha = if alpha >= cutoff { 1.0 } else { 0.0 },
            (None, None) => {}
            (Some(image), None) => opacity = Some(Arc::clone(image)),
            (Some(image), Some(cutoff)) => {
                let share = alpha / 255.0;
                let cut =
                    |[r, g, b, a]: [u8; 4]| [r, g, b, if f32::from(a) * share >= cutoff { 255 } else { 0 }];
                opacity = derive(image, &cut);
                alpha = 1.0;
            }
        }
        // Green is roughness, blue is metal; red may be something else.
        let surface = surface.and_then(|image| derive(&image, &|[_, g, b, _]| [255, g, b, 255]));
        Material {
            name: self.name,
            base_colour: self.base_colour,
            texture: base.map(|image| Map::new(tinted(image, self.base_colour))),
            roughness: self.roughness,
            metallic: self.metallic,
            alpha,
            opacity: opacity.map(Map::new),
            emission: self.emission,
            emission_map: emission.map(Map::new),
            surface_map: surface.map(Map::new),
            normal_map: normals.map(Map::new),
            normal_strength: self.normal_strength.clamp(0.0, 10.0),
            ..Material::default()
        }
    }
}

fn load_image(
    root: &Root,
    image: usize,
    buffers: &mut Buffers,
    files: &mut Files,
) -> Result<Arc<Texture>, String> {
    let definition = root.images.get(image).ok_or("there is no such image")?;
    match (&definition.uri, definition.buffer_view) {
        (Some(uri), _) if uri.starts_with("data:") => {
            let bytes = read_uri(uri, files, u64::MAX)?;
            files.textures.decode_bytes(&bytes)
        }
        (Some(uri), _) => {
            let path = files.resolve(files.folder(), &percent_decoded(uri))?;
            files.textures.load(&path).map_err(|reason| format!("{}: {reason}", path.display()))
        }
        (None, Some(view)) => {
            let bytes = buffers.view(root, view.value(), files)?;
            files.textures.decode_bytes(bytes)
        }
        (None, None) => Err("it has neither a file nor data".to_owned()),
    }
}

/// The texture times a linear colour: a material's texture replaces its colour, so the product must be in it.
fn tinted(texture: Arc<Texture>, factor: [f32; 3]) -> Arc<Texture> {
    if factor == [1.0; 3] {
        return texture;
    }
    let table: [[u8; 256]; 3] = factor
        .map(|factor| std::array::from_fn(|value| srgb_from_linear(linear_from_srgb(value as u8) * factor)));
    let tint = |[r, g, b, a]: [u8; 4]| {
        [table[0][usize::from(r)], table[1][usize::from(g)], table[2][usize::from(b)], a]
    };
    let pixels = texture.pixels.iter().map(|pixel| tint(*pixel)).collect();
    Arc::new(Texture { pixels, ..*texture })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texture_coordinates_are_scaled_turned_and_moved_in_this_order() {
        let info = |transform: &str| -> Info {
            let text = format!(r#"{{"index":0,"extensions":{{"KHR_texture_transform":{transform}}}}}"#);
            gltf::json::deserialize::from_str(&text).expect("a texture")
        };
        let moved = UvTransform::of(&info(r#"{"offset":[0.5,0.25],"scale":[4,2]}"#));
        assert_eq!(moved.apply([0.25, 0.5]), [1.5, 1.25]);
        // By the extension's text a quarter turn takes (1, 0) to (0, -1).
        let quarter = std::f32::consts::FRAC_PI_2;
        let [u, v] = UvTransform::of(&info(&format!(r#"{{"rotation":{quarter}}}"#))).apply([1.0, 0.0]);
        assert!(u.abs() < 1e-6 && (v + 1.0).abs() < 1e-6, "{u} {v}");
        let plain: Info = gltf::json::deserialize::from_str(r#"{"index":0}"#).expect("a texture");
        assert_eq!(UvTransform::of(&plain), UvTransform::IDENTITY);
    }
}
