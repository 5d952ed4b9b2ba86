//! Views rendered on a GPU: objects in its form ([`DeviceObjects`]), one kind of thread that talks to its renderer,
//! images for the host ([`CudaRenderer`]) and a pool of images that stay in device memory for the training there
//! ([`RenderPool`]).

mod images;
mod objects;
mod pool;
mod prefetch;
mod shots;
mod thread;
mod to_host;

#[cfg(test)]
mod tests;

pub use images::PairImages;
pub use objects::{DeviceObject, DeviceObjects};
pub use pool::{PoolMemory, RenderPool, look_ahead};
pub use to_host::CudaRenderer;
