//! Images of the published scenes: an object over a floor, lit by a wide sun, a coloured spot and a faint world,
//! through the Filmic camera response. `docs/rendering.md` describes the model and what each preset approximates.
//!
//! [`render`] is a pure function of its arguments and runs on one thread; callers render many views at once.

mod alone;
mod bsdf;
mod bundle;
mod bvh;
mod camera;
mod colour;
pub mod cuda;
mod floor;
mod grid;
mod image;
mod lights;
mod lit_scene;
mod maps;
mod masks;
mod mesh;
mod outline;
mod packet;
mod path;
mod points;
mod sampling;
mod scattered;
mod settings;
mod shared;
mod simplify;
mod trace;
mod view;
mod wide;

use std::fmt;
use std::str::FromStr;

use scene::Latents;

pub use mesh::PreparedMesh;

/// How much care an image gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Quality {
    /// As close to the Cycles references as they are to each other.
    Reference,
    /// Differences a person does not see.
    #[default]
    Standard,
    /// For large datasets.
    Fast,
}

impl Quality {
    /// Every preset, best first.
    pub const ALL: [Self; 3] = [Self::Reference, Self::Standard, Self::Fast];

    /// Its name in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reference => "reference",
            Self::Standard => "standard",
            Self::Fast => "fast",
        }
    }
}

impl fmt::Display for Quality {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// A name that is none of the presets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownQuality(String);

impl fmt::Display for UnknownQuality {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "unknown quality `{}` (expected reference, standard or fast)", self.0)
    }
}

impl std::error::Error for UnknownQuality {}

impl FromStr for Quality {
    type Err = UnknownQuality;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|quality| quality.name() == text)
            .ok_or_else(|| UnknownQuality(text.to_owned()))
    }
}

/// An 8-bit image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// Red, green, blue of every pixel, row 0 on top.
    pub pixels: Vec<u8>,
}

/// What making an image took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RenderStats {
    /// Rays traced against the object.
    pub rays: u64,
}

/// Renders one view, `size` x `size` pixels; `None` is the empty scene.
pub fn render(prepared: Option<&PreparedMesh>, latents: &Latents, size: u32, quality: Quality) -> Image {
    render_with_stats(prepared, latents, size, quality).0
}

/// [`render`], and what it took.
pub fn render_with_stats(
    prepared: Option<&PreparedMesh>,
    latents: &Latents,
    size: u32,
    quality: Quality,
) -> (Image, RenderStats) {
    let empty = PreparedMesh::new(&scene::Mesh::default());
    let mut view = view::View::new(prepared.unwrap_or(&empty), latents);
    view.simple = quality != Quality::Reference
        && size as f32 <= simplify::MAX_SIZE as f32 * view.camera.distance_ratio;
    let mut rays = 0;
    let scene = lit_scene::LitScene::new(&view, settings::Settings::new(quality), &mut rays);
    let linear = image::render_linear(&scene, size, &mut rays);
    (encode(&linear, size), RenderStats { rays })
}

/// Renders one view with the plain path tracer, `samples` paths a pixel: slow, noisy and free of the presets'
/// approximations, to check them against.
pub fn render_by_paths(prepared: Option<&PreparedMesh>, latents: &Latents, size: u32, samples: u32) -> Image {
    let empty = PreparedMesh::new(&scene::Mesh::default());
    let view = view::View::new(prepared.unwrap_or(&empty), latents);
    encode(&path::trace_image(&view, size, samples), size)
}

/// Image right, image up and the viewing direction of a camera, in the world; of the published one for `None`.
pub fn camera_axes(camera: Option<scene::Camera>) -> [[f64; 3]; 3] {
    let (sine, cosine) = match camera {
        None => (std::f64::consts::FRAC_1_SQRT_2, std::f64::consts::FRAC_1_SQRT_2),
        Some(camera) => camera.elevation.sin_cos(),
    };
    [[-1.0, 0.0, 0.0], [0.0, -sine, cosine], [0.0, -cosine, -sine]]
}

/// Where a point of the world is in an image of a camera, from the upper left corner, in shares of its width and height;
/// `None` at or behind the camera.
pub fn image_position(point: [f64; 3], camera: Option<scene::Camera>) -> Option<[f64; 2]> {
    let point = glam::Vec3::from(point.map(|value| value as f32));
    camera::Camera::from(camera).project(point, 1.0).map(|(x, y, _)| [f64::from(x), f64::from(y)])
}

/// The camera's response to scene-linear light.
fn encode(linear: &[glam::Vec3], size: u32) -> Image {
    let filmic = colour::Filmic::get();
    let mut pixels = vec![0; 3 * linear.len()];
    for (bytes, pixel) in pixels.chunks_exact_mut(3).zip(linear) {
        for (byte, value) in bytes.iter_mut().zip(pixel.to_array()) {
            *byte = filmic.encode(value);
        }
    }
    Image { width: size, height: size, pixels }
}

/// Peak signal-to-noise ratio in dB of two 8-bit images of the same size; infinite where they are equal, NaN where
/// their sizes differ.
pub fn psnr(a: &[u8], b: &[u8]) -> f64 {
    if a.len() != b.len() {
        return f64::NAN;
    }
    let squares: u64 = a.iter().zip(b).map(|(&a, &b)| u64::from(a.abs_diff(b)).pow(2)).sum();
    let mean = squares as f64 / a.len().max(1) as f64;
    10.0 * (255.0 * 255.0 / mean).log10()
}
