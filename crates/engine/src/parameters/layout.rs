//! How parameters lie in memory.

use crate::shape::Shape;

/// How a parameter lies in memory, compared with its published shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// As published, row-major.
    Published,
    /// A convolution: published as (out, in, height, width), kept as (out, height, width, in).
    Convolution,
}

impl Layout {
    /// The shape inside, for a published shape.
    pub(super) fn inner_shape(self, published: Shape) -> Shape {
        match (self, published.dims()) {
            (Self::Convolution, &[out, input, height, width]) => Shape::new(&[out, height, width, input]),
            _ => published,
        }
    }

    /// Calls `pair(published index, inner index)` for every element.
    pub(super) fn for_each(self, published: Shape, mut pair: impl FnMut(usize, usize)) {
        match (self, published.dims()) {
            (Self::Convolution, &[out, input, height, width]) => {
                let pixels = height * width;
                for o in 0..out {
                    for i in 0..input {
                        for p in 0..pixels {
                            pair((o * input + i) * pixels + p, (o * pixels + p) * input + i);
                        }
                    }
                }
            }
            _ => (0..published.len()).for_each(|index| pair(index, index)),
        }
    }
}
