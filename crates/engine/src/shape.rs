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

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.dims().iter().product()
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
