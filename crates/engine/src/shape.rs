//! Shapes: up to five dimensions, copied freely.

/// The dimensions of a tensor, outermost first. Images and activations are `[batch, height, width, channels]`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    dims: [usize; Self::MAX_RANK],
    rank: usize,
}

impl Shape {
    /// The largest number of dimensions.
    pub const MAX_RANK: usize = 5;

    /// The shape with the dimensions `dims` (at most [`Self::MAX_RANK`]; more are a programming error).
    pub fn new(dims: &[usize]) -> Self {
        assert!(dims.len() <= Self::MAX_RANK, "a shape has at most {} dimensions: {dims:?}", Self::MAX_RANK);
        let mut all = [0; Self::MAX_RANK];
        all[..dims.len()].copy_from_slice(dims);
        Self { dims: all, rank: dims.len() }
    }

    /// The dimensions.
    pub fn dims(&self) -> &[usize] {
        &self.dims[..self.rank]
    }

    /// Number of elements; `usize::MAX`, for which there is no memory anywhere, where that is no number.
    pub fn len(&self) -> usize {
        self.dims().iter().fold(1, |product: usize, &size| product.saturating_mul(size))
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl From<&[usize]> for Shape {
    fn from(dims: &[usize]) -> Self {
        Self::new(dims)
    }
}

impl<const N: usize> From<[usize; N]> for Shape {
    fn from(dims: [usize; N]) -> Self {
        Self::new(&dims)
    }
}

impl<const N: usize> From<&[usize; N]> for Shape {
    fn from(dims: &[usize; N]) -> Self {
        Self::new(dims)
    }
}

impl std::ops::Deref for Shape {
    type Target = [usize];

    fn deref(&self) -> &[usize] {
        self.dims()
    }
}

impl std::fmt::Debug for Shape {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:?}", self.dims())
    }
}

impl std::fmt::Display for Shape {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:?}", self.dims())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;
    use crate::error::Error;
    use crate::tensor::{DType, Tensor};

    #[test]
    fn sizes_beyond_every_memory_are_refused_not_wrapped() {
        let huge = Shape::new(&[1 << 32, 1 << 32, 3]);
        assert_eq!((huge.len(), Shape::new(&[0, usize::MAX, 2]).len()), (usize::MAX, 0));
        for shape in [huge, Shape::new(&[usize::MAX / 2]), Shape::new(&[1 << 61])] {
            let refused = Tensor::zeros(&Device::cpu(), shape, DType::F32);
            assert!(matches!(refused, Err(Error::OutOfMemory { .. })), "{shape}");
        }
    }
}
