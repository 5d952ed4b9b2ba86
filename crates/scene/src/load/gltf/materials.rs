//! Materials of glTF: base colour and its texture, roughness, alpha.

use super::super::colours::{linear_from_srgb, srgb_from_linear};
use super::super::files::Files;
use super::buffers::{Buffers, percent_decoded, read_uri};
use crate::{Material, Texture};
use gltf::json::Root;
use gltf::json::material::AlphaMode;
use gltf::json::validation::Checked;
use std::sync::Arc;

/// A material before its texture is loaded.
#[derive(Clone)]
pub struct GltfMaterial {
    name: String,
    /// Linear.
    pub base_colour: [f32; 3],
    /// The picture of the base colour, if any.
    pub image: Option<usize>,
    /// Which set of texture coordinates the picture uses.
    pub uv_set: u32,
    roughness: f32,
    alpha: f32,
    /// Whether the texture's alpha would count, too.
    is_see_through: bool,
}

/// All materials of a document.
pub fn read(root: &Root) -> Vec<GltfMaterial> {
    let read = |material: &gltf::json::Material| {
        let surface = &material.pbr_metallic_roughness;
        let [red, green, blue, alpha] = surface.base_color_factor.0;
        let texture = surface.base_color_texture.as_ref();
        let alpha = match material.alpha_mode {
            Checked::Valid(AlphaMode::Blend) => alpha,
            Checked::Valid(AlphaMode::Mask) => {
                let cutoff = material.alpha_cutoff.as_ref().map_or(0.5, |cutoff| cutoff.0);
                if alpha >= cutoff { 1.0 } else { 0.0 }
            }
            _ => 1.0,
        };
        GltfMaterial {
            name: material.name.clone().unwrap_or_default(),
            base_colour: [red, green, blue].map(|channel| finite(channel, 1.0)),
            image: texture
                .and_then(|info| root.textures.get(info.index.value()))
                .map(|texture| texture.source.value()),
            uv_set: texture.map_or(0, |info| info.tex_coord),
            roughness: finite(surface.roughness_factor.0, 1.0),
            alpha: finite(alpha, 1.0),
            is_see_through: matches!(material.alpha_mode, Checked::Valid(AlphaMode::Blend | AlphaMode::Mask)),
        }
    };
    root.materials.iter().map(read).collect()
}

fn finite(value: f32, otherwise: f32) -> f32 {
    if value.is_finite() { value.clamp(0.0, 1.0) } else { otherwise }
}

impl GltfMaterial {
    /// The plain grey of primitives without a material.
    pub fn grey() -> Self {
        let Material { name, base_colour, roughness, alpha, .. } = Material::default();
        Self { name, base_colour, image: None, uv_set: 0, roughness, alpha, is_see_through: false }
    }

    /// Loads the texture; where that fails, a warning and the plain colour.
    pub fn finish(self, root: &Root, buffers: &mut Buffers, files: &mut Files) -> Material {
        let mut texture = None;
        if let Some(image) = self.image {
            match load_image(root, image, buffers, files) {
                Ok(loaded) => {
                    if self.is_see_through && loaded.pixels.iter().any(|pixel| pixel[3] < 255) {
                        let path = files.path.display();
                        files.warn(format!("{path}: image {image}: its transparency is left out"));
                    }
                    texture = Some(tinted(loaded, self.base_colour));
                }
                Err(reason) => {
                    let path = files.path.display();
                    files.warn(format!("{path}: image {image}: texture left out: {reason}"));
                }
            }
        }
        Material {
            name: self.name,
            base_colour: self.base_colour,
            texture,
            roughness: self.roughness,
            specular: 0.5,
            alpha: self.alpha,
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
