//! Views rendered on a GPU: objects in its form ([`DeviceObjects`]), one kind of thread that talks to its renderer,
//! images for the host ([`CudaRenderer`]) and a pool of images that stay in device memory for the training there
//! ([`RenderPool`]); and views of photographs ([`WarpPool`]).

use std::time::Duration;

use crate::error::Result;
use crate::loader::Item;

mod images;
mod objects;
mod pool;
mod prefetch;
mod shots;
mod thread;
mod to_host;
mod warps;

#[cfg(test)]
mod tests;

pub use images::PairImages;
pub use objects::{DeviceObject, DeviceObjects};
pub use pool::{PoolMemory, RenderPool, look_ahead};
pub use to_host::CudaRenderer;
pub use warps::{WarpPool, warp_on_device};

/// What makes the images of batches in device memory.
#[derive(Debug)]
pub enum DeviceImages {
    /// Renders views of objects.
    Rendered(Box<RenderPool>),
    /// Warps photographs.
    Warped(Box<WarpPool>),
}

impl DeviceImages {
    /// Says what a later batch will want.
    pub fn announce(&mut self, items: &[Item]) -> Result<()> {
        match self {
            Self::Rendered(pool) => pool.announce(items),
            Self::Warped(_) => Ok(()),
        }
    }

    /// The images of the batch that was announced first; see [`RenderPool::announced_images`].
    pub fn announced_images(&mut self, items: &[Item]) -> Result<PairImages> {
        match self {
            Self::Rendered(pool) => pool.announced_images(items),
            Self::Warped(pool) => pool.images(items),
        }
    }

    /// The images of `items`, of which nothing was announced.
    pub fn images(&mut self, items: &[Item]) -> Result<PairImages> {
        match self {
            Self::Rendered(pool) => pool.images(items),
            Self::Warped(pool) => pool.images(items),
        }
    }

    /// How long batches have waited for their images, on the host.
    pub fn waited(&self) -> Duration {
        match self {
            Self::Rendered(pool) => pool.waited(),
            Self::Warped(pool) => pool.waited(),
        }
    }

    /// What renders, where views are rendered.
    pub fn rendered(&self) -> Option<&RenderPool> {
        match self {
            Self::Rendered(pool) => Some(pool),
            Self::Warped(_) => None,
        }
    }

    /// As [`Self::rendered`], of which nothing else is left.
    pub fn into_rendered(self) -> Option<RenderPool> {
        match self {
            Self::Rendered(pool) => Some(*pool),
            Self::Warped(_) => None,
        }
    }
}
