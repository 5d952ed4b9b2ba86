//! Views of photographs made on a GPU: a batch is one launch. The photographs that come first stay in its memory as far as
//! they fit; every epoch wants all of them in another order, so that letting some go for others would gain nothing. The others
//! of a batch travel together, beside the work on the batch before.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytemuck::{Pod, Zeroable};
use gpu::{Buffer, Context, Feed, HostBuffer, Kernel, KernelSource, Launch};
use rayon::prelude::*;

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
#[derive(Clone, Copy, Debug)]
struct DevicePicture {
    address: u64,
    levels: usize,
    side: usize,
}

impl DevicePicture {
    fn new(picture: &Picture, address: u64) -> Self {
        Self { address, levels: picture.sides.len(), side: picture.sides[0] }
    }
}

/// Photographs of a batch that do not stay in device memory.
struct Travellers {
    feed: Feed,
    /// Page-locked memory; grows with the batches.
    staging: HostBuffer,
}

impl Travellers {
    fn new(context: &Context) -> Result<Self> {
        Ok(Self { feed: Feed::new(context)?, staging: context.allocate_host(0)? })
    }

    /// Sends `pictures`; returns their memory, and where each of them lies in it.
    fn send(&mut self, context: &Context, pictures: &[Arc<Picture>]) -> Result<(Arc<Buffer>, Vec<u64>)> {
        let total: usize = pictures.iter().map(|picture| picture.pixels.len()).sum();
        if self.staging.len() < total {
            self.staging = context.allocate_host(total)?;
        }
        let mut room: &mut [u8] = &mut self.staging;
        let mut parts: Vec<&mut [u8]> = Vec::with_capacity(pictures.len());
        for picture in pictures {
            let (part, later) = std::mem::take(&mut room).split_at_mut(picture.pixels.len());
            parts.push(part);
            room = later;
        }
        parts.par_iter_mut().zip(pictures).for_each(|(part, picture)| part.copy_from_slice(&picture.pixels));
        let (buffer, _) = self.feed.upload(&[&self.staging[..total]])?;
        let mut next = buffer.address();
        let addresses = pictures.iter().map(|picture| {
            let address = next;
            next += picture.pixels.len() as u64;
            address
        });
        let addresses = addresses.collect();
        Ok((buffer, addresses))
    }
}

/// Makes views of photographs in the order of the work of a context.
pub struct WarpPool {
    photos: Arc<Photos>,
    context: Context,
    kernel: Kernel,
    side: usize,
    memory: usize,
    bytes: usize,
    kept: HashMap<usize, (Buffer, DevicePicture)>,
    travellers: Travellers,
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
            travellers: Travellers::new(context)?,
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
        // Both views of a pair want the same photograph.
        let mut wanted: HashMap<usize, DevicePicture> = HashMap::with_capacity(items.len() / 2);
        let (mut missing, mut pictures) = (Vec::new(), Vec::new());
        let began = Instant::now();
        for &(object, _) in items {
            if let Entry::Vacant(entry) = wanted.entry(object) {
                if let Some((_, kept)) = self.kept.get(&object) {
                    entry.insert(*kept);
                } else if self.bytes < self.memory {
                    entry.insert(self.keep(object)?);
                } else {
                    let picture = self.photos.picture(object)?;
                    // Until it is known where it lies.
                    entry.insert(DevicePicture::new(&picture, 0));
                    missing.push(object);
                    pictures.push(picture);
                }
            }
        }
        let mut sent = None;
        if !pictures.is_empty() {
            let (buffer, addresses) = self.travellers.send(&self.context, &pictures)?;
            for ((object, picture), address) in missing.into_iter().zip(&pictures).zip(addresses) {
                wanted.insert(object, DevicePicture::new(picture, address));
            }
            sent = Some(buffer);
        }
        self.waited += began.elapsed();
        let mut views = Vec::with_capacity(items.len());
        for (index, &(object, view)) in items.iter().enumerate() {
            let warp = self.photos.warp(object, view);
            views.push(data(&warp, &wanted[&object], batch.address(index)?.number()));
        }
        self.launch(&views)?;
        if sent.take().is_some() {
            // They are not written over before the launch has read them.
            self.travellers.feed.finish()?;
        }
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

    /// Takes a photograph into device memory, where it stays.
    fn keep(&mut self, object: usize) -> Result<DevicePicture> {
        let picture = self.photos.hand_over(object)?;
        let buffer = self.context.upload(&picture.pixels)?;
        self.bytes += picture.bytes();
        let found = DevicePicture::new(&picture, buffer.address());
        self.kept.insert(object, (buffer, found));
        Ok(found)
    }
}

fn data(warp: &Warp, picture: &DevicePicture, pixels: u64) -> ViewData {
    let mut colour = [0.0; 12];
    colour.copy_from_slice(warp.colour.as_flattened());
    ViewData {
        picture: picture.address,
        pixels,
        levels: picture.levels as i32,
        side: picture.side as i32,
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
            data(warp, &DevicePicture::new(picture, texels.address()), pixels)
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
    use crate::photos::{PhotosOptions, WarpRanges};
    use pose::Group;

    #[test]
    fn the_kernel_compiles_for_every_supported_architecture() {
        gpu::Compiler::check_for_tests(&kernel_source());
    }

    #[test]
    fn a_batch_shows_the_same_whichever_photographs_stay_in_memory() {
        let Some(context) = Context::new(0).map_err(|error| eprintln!("skipped: {error}")).ok() else {
            return;
        };
        let root = tempfile::tempdir().unwrap();
        for number in 0..30_u32 {
            let pixel = |x: u32, y: u32| {
                image::Rgb([(x * (number + 3)) as u8, (y * 7 + number * 40) as u8, (x * y * 5) as u8])
            };
            // Sizes in turn, so that they do not lie at regular distances.
            let side = 40 + number % 3 * 17;
            image::RgbImage::from_fn(side, side, pixel)
                .save(root.path().join(format!("{number}.png")))
                .unwrap();
        }
        let options = PhotosOptions {
            group: Group::IMAGE_AFFINE,
            ranges: WarpRanges::default(),
            views: 6,
            held_out_views: 0,
            side: 32,
            seed: 4,
            memory: 1 << 20,
        };
        let photos = Arc::new(Photos::open(root.path(), options).unwrap());
        let mut pools = [None, Some(0), Some(40_000)]
            .map(|memory| WarpPool::new(Arc::clone(&photos), &context, 32, memory).unwrap());
        for batch in 0..12 {
            // Larger ones and smaller ones.
            let count = [8, 20, 4][batch % 3];
            let items: Vec<Item> =
                (0..count).map(|item| ((item % 10 * 7 + batch * 11) % 30, item + batch)).collect();
            let shown = pools.each_mut().map(|pool| {
                let halves = pool.images(&items).unwrap().into_buffers();
                halves.map(|half| {
                    let mut bytes = vec![0; half.bytes()];
                    // SAFETY: the buffer is alive.
                    unsafe { context.read(half.view(), &mut bytes) }.unwrap();
                    bytes
                })
            });
            assert!(shown[1] == shown[0] && shown[2] == shown[0], "batch {batch}");
            assert!(shown[0][0].iter().any(|&byte| byte != shown[0][0][0]));
        }
        assert_eq!((pools[0].kept.len(), pools[1].kept.len()), (30, 0));
        assert!(!pools[2].kept.is_empty() && pools[2].kept.len() < 30);
    }

    #[test]
    fn views_have_the_layout_of_the_kernel() {
        assert_eq!(size_of::<ViewData>(), 112);
    }
}
