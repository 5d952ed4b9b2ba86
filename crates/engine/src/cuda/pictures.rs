//! Pictures in device memory: a store of many, and batches put together from it and from others just rendered.

use std::sync::Arc;

use gpu::{Launch, View};

use super::kernels::{self, Program};
use super::{CudaDevice, view, view_mut};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::tensor::{DType, Tensor};

/// Room for a number of pictures of `side` x `side` pixels, 8-bit RGB.
#[derive(Debug)]
pub struct Pictures {
    tensor: Tensor,
    side: usize,
}

/// Where a picture lies, or is to lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(u64);

impl Pictures {
    /// Room for `count` pictures on a CUDA device.
    pub fn new(device: &Arc<CudaDevice>, count: usize, side: usize) -> Result<Self> {
        if !side.is_multiple_of(16) {
            return Err(Error::shape("pictures", format!("a side of {side} is not a multiple of 16")));
        }
        let tensor = Tensor::empty(&Device::Cuda(Arc::clone(device)), [count, side, side, 3], DType::U8)?;
        Ok(Self { tensor, side })
    }

    /// How many pictures there is room for.
    pub fn len(&self) -> usize {
        self.tensor.dims()[0]
    }

    /// Whether there is room for none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of a picture.
    pub fn picture_bytes(&self) -> usize {
        3 * self.side * self.side
    }

    /// The place of picture `index`.
    pub fn place(&self, index: usize) -> Result<Place> {
        Ok(Place(view(&self.tensor)?.part(index * self.picture_bytes(), self.picture_bytes())?.address))
    }

    /// All of it, for a renderer to write.
    pub fn view(&mut self) -> Result<View> {
        view_mut(&mut self.tensor)
    }

    /// The pictures as a tensor (count, side, side, 3).
    pub fn into_tensor(self) -> Tensor {
        self.tensor
    }

    /// Copies pictures of this size between places, all at once: no place may be both read and written.
    ///
    /// # Safety
    /// The places must be alive.
    pub unsafe fn copy(&self, device: &CudaDevice, copies: &[(Place, Place)]) -> Result<()> {
        // What a launch can have of blocks in the second direction.
        const MOST: usize = 65_535;
        let vectors = self.picture_bytes() / 16;
        for part in copies.chunks(MOST) {
            let addresses: Vec<u64> = part.iter().flat_map(|(from, to)| [from.0, to.0]).collect();
            let list = device.context().upload(bytemuck::cast_slice(&addresses))?;
            let launch = Launch::grid([vectors.div_ceil(256 * 4).max(1), part.len(), 1], 256);
            let program = Program::new(kernels::KernelFile::Pictures, DType::F32);
            device.launch(
                &program,
                kernels::Kernel::copy_pictures,
                launch,
                &[(&list).into(), vectors.into()],
            )?;
        }
        Ok(())
    }
}
