//! The renderer on CUDA devices: the algorithm of the CPU, kernel by kernel, over a batch of views.
//!
//! ```ignore
//! let context = gpu::Context::new(0)?;
//! let mut renderer = cuda::Renderer::new(&context, Quality::Fast)?;
//! let object = Arc::new(cuda::Object::of(&mesh));   // once an object, on any thread
//! let shots = [Shot { object: Some(object.clone()), latents }, ...];      // any number, of any objects
//! let images = context.allocate(shots.len() * Renderer::image_bytes(256))?;
//! renderer.render(&shots, 256, images.view())?;                         // returns before the device is done
//! ```
//!
//! [`Renderer::render`] leaves 8-bit RGB images, one after the other, rows from the top, in device memory; later work
//! on the context's stream sees them. [`Renderer::render_to_host`] copies them back. An image is a pure function of
//! (object, latents, size, quality) on one kind of device: it does not depend on what else is in the batch.
//!
//! Objects are copied to the device when they are first needed and stay there until the cache is full; the least
//! recently used go first, so more objects than fit can be rendered in turn. Scratch memory is bounded: large batches
//! are rendered in parts.

mod behind;
mod cache;
mod hierarchy;
mod layout;
mod object;
mod packed;
mod renderer;
mod tables;
mod upload;

pub use object::Object;
pub use renderer::{Renderer, Shot};

use gpu::KernelSource;

use crate::image;
use crate::settings::Settings;

/// Lanes that share `count` rays: the largest power of two up to `most` that leaves none of them idle.
fn group(count: usize, most: usize) -> usize {
    (1 << count.trailing_zeros()).min(most)
}

/// Lanes that share a point where the spot's light is found.
fn spot_group(settings: &Settings) -> usize {
    group(settings.lamp_points, 8)
}

/// All kernels for a preset, as one source.
fn kernel_source(settings: &Settings) -> KernelSource {
    KernelSource {
        name: "render.cu",
        prelude: &layout::STRUCTS,
        text: concat!(
            include_str!("types.cu"),
            include_str!("maps.cu"),
            include_str!("trace.cu"),
            include_str!("light.cu"),
            include_str!("floor.cu"),
            include_str!("camera.cu"),
            include_str!("shade.cu"),
            include_str!("resolve.cu"),
        ),
        defines: vec![
            format!("BLOCK={}", renderer::THREADS),
            format!("WIDTH={}", hierarchy::WIDTH),
            format!("ROOM={}", hierarchy::ROOM),
            format!("LEAVES={}", hierarchy::LEAVES),
            format!("SHADOW_GROUP={}", group(settings.floor_lamp_points, 16)),
            format!("SPOT_GROUP={}", spot_group(settings)),
            format!("STEP={}", settings.shading_step),
            format!("GROUP={}", image::GROUP),
            format!("SHARING={:?}f", settings.sharing),
            format!("MOST_EXTRAS={}", image::MOST_EXTRAS),
        ],
    }
}

#[cfg(test)]
mod tests;
