//! Materials of glTF: base colour and its texture, roughness, alpha.

use super::super::colours::{linear_from_srgb, srgb_from_linear};
use super::super::files::Files;
use super::buffers::{Buffers, percent_decoded, read_uri};
use crate::{Material, Texture};
use gltf::json::Root;
use gltf::json::material::AlphaMode;
use gltf::json::texture::Info;
use gltf::json::validation::Checked;
use std::sync::Arc;

/// A material before its texture is loaded.
#[derive(Clone)]
pub struct GltfMaterial {
    name: String,
    /// Linear.
    pub base_colour: [f32; 3],
    /// The image of the base colour, if any.
    pub image: Option<usize>,
    /// Which set of texture coordinates the image uses.
    pub uv_set: u32,
    /// How they are moved before (KHR_texture_transform).
    pub uv_transform: UvTransform,
    roughness: f32,
    alpha: f32,
    /// Whether the texture's alpha would count, too.
    is_see_through: bool,
}

/// An affine map of texture coordinates as glTF counts them, from the top left: rows of (u, v, 1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UvTransform([[f32; 3]; 2]);

impl UvTransform {
    const IDENTITY: Self = Self([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]);

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

/// All materials of a document. Where there are two descriptions, of metal and roughness and of specular and gloss
/// (KHR_materials_pbrSpecularGlossiness), the first is only for programs that do not know the second.
pub fn read(root: &Root) -> Vec<GltfMaterial> {
    let read = |material: &gltf::json::Material| {
        let surface = &material.pbr_metallic_roughness;
        let gloss = material.extensions.as_ref().and_then(|other| other.pbr_specular_glossiness.as_ref());
        let (factor, texture, roughness) = match gloss {
            Some(gloss) => {
                (gloss.diffuse_factor.0, gloss.diffuse_texture.as_ref(), 1.0 - gloss.glossiness_factor.0)
            }
            None => {
                (surface.base_color_factor.0, surface.base_color_texture.as_ref(), surface.roughness_factor.0)
            }
        };
        let [red, green, blue, alpha] = factor;
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
            uv_set: texture.map_or(0, |info| {
                let moved = info.extensions.as_ref().and_then(|other| other.texture_transform.as_ref());
                moved.and_then(|transform| transform.tex_coord).unwrap_or(info.tex_coord)
            }),
            uv_transform: texture.map_or(UvTransform::IDENTITY, UvTransform::of),
            roughness: finite(roughness, 1.0),
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
        Self {
            name,
            base_colour,
            image: None,
            uv_set: 0,
            uv_transform: UvTransform::IDENTITY,
            roughness,
            alpha,
            is_see_through: false,
        }
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
