//! Views rendered on a GPU: objects in its form ([`DeviceObjects`]), one thread that talks to its renderer
//! ([`RenderThread`]), images for the host ([`CudaRenderer`]) and a pool of images that stay in device memory for the
//! training there ([`RenderPool`]).

mod images;
mod objects;
mod pool;
mod prefetch;
mod shots;
mod thread;
mod to_host;

#[cfg(test)]
mod tests;

pub use images::{Address, Copies, ImageBuffer, PairImages};
pub use objects::{DeviceObject, DeviceObjects};
pub use pool::{PoolMemory, RenderPool, look_ahead};
pub use prefetch::{Announced, Prefetch};
pub use shots::Shots;
pub use thread::{DeviceRequest, Pending, RenderThread, Rendered};
pub use to_host::CudaRenderer;
