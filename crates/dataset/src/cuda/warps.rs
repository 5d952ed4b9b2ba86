//! Views of photographs made on a GPU: a batch is one launch. The photographs that come first stay in its memory as far as
//! they fit; every epoch wants all of them in another order, so that letting some go for others would gain nothing.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytemuck::{Pod, Zeroable};
use gpu::{Buffer, Context, Kernel, KernelSource, Launch};

use super::images::PairImages;
use crate::error::Result;
use crate::loader::Item;
use crate::photos::{Photos, Picture, Warp};

/// What a launch can have of blocks in the second direction.
const MOST_VIEWS: usize = 65_535;
/// Threads of a block.
const THREADS: usize = 256;

/// A view as the kernel takes it.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct ViewData {
    picture: u64,
    pixels: u64,
    levels: i32,
    side: i32,
    photo_from_view: [f32; 9],
    colour: [f32; 12],
    unused: f32,
}

/// A photograph in device memory.
#[derive(Clone, Debug)]
struct DevicePicture {
    buffer: Arc<Buffer>,
    levels: usize,
    side: usize,
}

/// Makes views of photographs in the order of the work of a context.
pub struct WarpPool {
    photos: Arc<Photos>,
    context: Context,
    kernel: Kernel,
    side: usize,
    memory: usize,
    bytes: usize,
    kept: HashMap<usize, DevicePicture>,
    waited: Duration,
}

impl std::fmt::Debug for WarpPool {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "WarpPool {{ {} photographs, {} bytes }}", self.kept.len(), self.bytes)
    }
}

fn kernel_source() -> KernelSource {
    KernelSource {
        name: "warp_photos.cu",
        prelude: "",
        text: include_str!("warp_photos.cu"),
        defines: Vec::new(),
    }
}

impl WarpPool {
    /// Views of `side` x `side` pixels; photographs take at most `memory` bytes, or a third of what is free; a third is left
    /// to others.
    pub fn new(photos: Arc<Photos>, context: &Context, side: usize, memory: Option<usize>) -> Result<Self> {
        let third = context.free_bytes()? / 3;
        Ok(Self {
            kernel: context.kernel(&kernel_source(), "warp_photos")?,
            context: context.clone(),
            photos,
            side,
            memory: memory.unwrap_or(third).min(2 * third),
            bytes: 0,
            kept: HashMap::new(),
            waited: Duration::ZERO,
        })
    }

    /// How long batches waited for photographs to be decoded and copied, on the host.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// The images of `items`, first views before second ones. They are on their way when this returns.
    pub fn images(&mut self, items: &[Item]) -> Result<PairImages> {
        let batch = PairImages::new(&self.context, items.len(), self.side)?;
        let mut views = Vec::with_capacity(items.len());
        // What is read by the launch lives until it is issued; both views of a pair want the same photograph.
        let mut wanted: HashMap<usize, DevicePicture> = HashMap::with_capacity(items.len() / 2);
        for (index, &(object, view)) in items.iter().enumerate() {
            let picture = match wanted.entry(object) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => entry.insert(self.picture(object)?),
            };
            let warp = self.photos.warp(object, view);
            let (from, to) = (picture.buffer.address(), batch.address(index)?.number());
            views.push(data(&warp, from, to, picture.levels, picture.side));
        }
        self.launch(&views)?;
        Ok(batch)
    }

    fn launch(&self, views: &[ViewData]) -> Result<()> {
        for part in views.chunks(MOST_VIEWS) {
            let list = self.context.upload(bytemuck::cast_slice(part))?;
            let blocks = (self.side * self.side).div_ceil(THREADS).max(1);
            let launch = Launch::grid([blocks, part.len(), 1], THREADS);
            // SAFETY: the kernel reads the list and the pictures that it names, and writes images of `side` x `side`
            // pixels; all of them are alive, and their memory returns to the pool of the stream on which it is used.
            unsafe { self.kernel.launch(launch, &[(&list).into(), self.side.into()])? };
        }
        Ok(())
    }

    /// A photograph in device memory.
    fn picture(&mut self, object: usize) -> Result<DevicePicture> {
        if let Some(kept) = self.kept.get(&object) {
            return Ok(kept.clone());
        }
        let began = Instant::now();
        let has_room = self.bytes < self.memory;
        let picture = if has_room { self.photos.hand_over(object)? } else { self.photos.picture(object)? };
        let buffer = Arc::new(self.context.upload(&picture.pixels)?);
        self.waited += began.elapsed();
        let (levels, side) = (picture.sides.len(), picture.sides[0]);
        let found = DevicePicture { buffer, levels, side };
        if has_room {
            self.bytes += picture.bytes();
            self.kept.insert(object, found.clone());
        }
        Ok(found)
    }
}

fn data(warp: &Warp, picture: u64, pixels: u64, levels: usize, side: usize) -> ViewData {
    let mut colour = [0.0; 12];
    colour.copy_from_slice(warp.colour.as_flattened());
    ViewData {
        picture,
        pixels,
        levels: levels as i32,
        side: side as i32,
        photo_from_view: warp.photo_from_view,
        colour,
        unused: 0.0,
    }
}

/// Warps `picture` on the device of `context`, one view of `side` x `side` pixels for each of `warps`: to be compared with
/// [`Picture::view`].
pub fn warp_on_device(context: &Context, picture: &Picture, warps: &[Warp], side: usize) -> Result<Vec<u8>> {
    let kernel = context.kernel(&kernel_source(), "warp_photos")?;
    let bytes = 3 * side * side;
    let (texels, output) = (context.upload(&picture.pixels)?, context.allocate(warps.len() * bytes)?);
    let views: Vec<ViewData> = warps
        .iter()
        .enumerate()
        .map(|(index, warp)| {
            let pixels = output.address() + (index * bytes) as u64;
            data(warp, texels.address(), pixels, picture.sides.len(), picture.sides[0])
        })
        .collect();
    for part in views.chunks(MOST_VIEWS) {
        let list = context.upload(bytemuck::cast_slice(part))?;
        let launch = Launch::grid([(side * side).div_ceil(THREADS).max(1), part.len(), 1], THREADS);
        // SAFETY: list, picture and images are alive until the work is done, which the download waits for.
        unsafe { kernel.launch(launch, &[(&list).into(), side.into()])? };
    }
    let mut pixels = vec![0; warps.len() * bytes];
    // SAFETY: the memory is alive.
    unsafe { context.read(output.view(), &mut pixels)? };
    Ok(pixels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_compiles_for_every_supported_architecture() {
        gpu::Compiler::check_for_tests(&kernel_source());
    }

    #[test]
    fn views_have_the_layout_of_the_kernel() {
        assert_eq!(size_of::<ViewData>(), 112);
    }
}
