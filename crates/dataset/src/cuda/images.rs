//! Images in device memory: room for many of one size, and copies between such places.

use gpu::{Buffer, Context, Kernel, KernelSource, Launch, View};
use render::cuda::Renderer;

use crate::error::{Error, Result};

/// Room for a number of images of one size, 8-bit RGB, one after the other.
#[derive(Debug)]
pub struct ImageBuffer {
    buffer: Buffer,
    image_bytes: usize,
}

/// Where an image lies in device memory, or is to lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address(u64);

impl Address {
    /// As kernels take it.
    pub(crate) fn number(self) -> u64 {
        self.0
    }
}

impl ImageBuffer {
    /// Room for `count` images of `side` x `side` pixels, with arbitrary contents.
    pub fn new(context: &Context, count: usize, side: usize) -> Result<Self> {
        let image_bytes = Renderer::image_bytes(side as u32);
        Ok(Self { buffer: context.allocate(count * image_bytes)?, image_bytes })
    }

    /// The address of image `index`.
    pub fn address(&self, index: usize) -> Result<Address> {
        Ok(Address(self.view().part(index * self.image_bytes, self.image_bytes)?.address))
    }

    /// All of it.
    pub fn view(&self) -> View {
        self.buffer.view()
    }

    /// The memory alone.
    pub fn into_buffer(self) -> Buffer {
        self.buffer
    }
}

/// Images of a batch of pairs: first views and second ones lie apart.
#[derive(Debug)]
pub struct PairImages {
    halves: [ImageBuffer; 2],
    pairs: usize,
    side: usize,
}

impl PairImages {
    /// Room for `items` images of `side` x `side` pixels, first views before second ones.
    pub fn new(context: &Context, items: usize, side: usize) -> Result<Self> {
        let pairs = items / 2;
        let half = || ImageBuffer::new(context, pairs, side);
        Ok(Self { halves: [half()?, half()?], pairs, side })
    }

    /// The address of the item at `index`.
    pub fn address(&self, index: usize) -> Result<Address> {
        self.halves[index / self.pairs].address(index % self.pairs)
    }

    /// What the bytes of each half are: pairs, rows, columns, RGB.
    pub fn dims(&self) -> [usize; 4] {
        [self.pairs, self.side, self.side, 3]
    }

    /// The memory of the first views and of the second ones.
    pub fn into_buffers(self) -> [Buffer; 2] {
        self.halves.map(ImageBuffer::into_buffer)
    }
}

/// Copies within device memory that are still to be issued.
#[derive(Debug)]
pub struct Copies {
    context: Context,
    kernel: Kernel,
    /// 16 bytes each, in an image.
    vectors: usize,
    waiting: Vec<(Address, Address)>,
}

/// The kernel that copies.
fn kernel_source() -> KernelSource {
    KernelSource {
        name: "copy_images.cu",
        prelude: "",
        text: include_str!("copy_images.cu"),
        defines: Vec::new(),
    }
}

impl Copies {
    /// Copies of images of `side` x `side` pixels, in the order of the work of `context`.
    pub fn new(context: &Context, side: usize) -> Result<Self> {
        if !side.is_multiple_of(16) {
            let what = "images that stay on the GPU have a side that is a multiple of 16 pixels";
            return Err(Error::Request(format!("{what}, but {side} was asked for")));
        }
        let kernel = context.kernel(&kernel_source(), "copy_images")?;
        let vectors = Renderer::image_bytes(side as u32) / 16;
        Ok(Self { context: context.clone(), kernel, vectors, waiting: Vec::new() })
    }

    /// One more, issued later.
    pub fn add(&mut self, from: Address, to: Address) {
        self.waiting.push((from, to));
    }

    /// Issues all copies that are waiting, at once.
    ///
    /// # Safety
    /// All addresses must be those of images that are alive, and none may be both read and written.
    pub unsafe fn issue(&mut self) -> Result<()> {
        // What a launch can have of blocks in the second direction.
        const MOST: usize = 65_535;
        for part in self.waiting.chunks(MOST) {
            let addresses: Vec<u64> = part.iter().flat_map(|(from, to)| [from.0, to.0]).collect();
            let list = self.context.upload(bytemuck::cast_slice(&addresses))?;
            let launch = Launch::grid([self.vectors.div_ceil(256 * 4).max(1), part.len(), 1], 256);
            // SAFETY: the kernel takes a list and a number; the list returns to the pool of the stream on which it is
            // read, and the caller answers for the addresses.
            unsafe { self.kernel.launch(launch, &[(&list).into(), self.vectors.into()])? };
        }
        self.waiting.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_compiles_for_every_supported_architecture() {
        gpu::Compiler::check_for_tests(&kernel_source());
    }
}
