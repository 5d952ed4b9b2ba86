//! The first layer on the CPU. A task normalises the few image rows it needs into a zero-padded strip, in which the
//! window of one kernel row is contiguous: a sum over kernel rows of (kernel width * 3) products.

use rayon::prelude::*;

use super::Images;
use crate::cpu::kernels::{self, MAX_ROWS, Output, Run, Segment};
use crate::cpu::{SendPtr, add_assign, blocks, level, with_scratch};
use crate::error::Result;
use crate::ops::conv2d::Geometry;
use crate::tensor::DType;

/// Pixels as they are stored.
#[derive(Clone, Copy)]
enum Source<'a> {
    Bytes(&'a [u8]),
    Floats(&'a [f32]),
}

/// Where strips come from.
struct Strips<'a> {
    geometry: &'a Geometry,
    source: Source<'a>,
    scale: [f32; 3],
    shift: [f32; 3],
}

impl<'a> Strips<'a> {
    fn new(geometry: &'a Geometry, images: &'a Images) -> Result<Self> {
        let source = match images.pixels.dtype() {
            DType::U8 => Source::Bytes(images.pixels.as_slice()?),
            _ => Source::Floats(images.pixels.as_slice()?),
        };
        Ok(Self { geometry, source, scale: images.scale, shift: images.shift })
    }

    /// Floats per padded row.
    fn stride(&self) -> usize {
        let padding = self.geometry.padding;
        (self.geometry.input[1] + padding.left + padding.right) * 3
    }

    /// Padded rows that `outputs` output rows need.
    fn rows(&self, outputs: usize) -> usize {
        (outputs - 1) * self.geometry.stride + self.geometry.kernel[0]
    }

    /// Writes the padded, normalised rows under output rows `first..first + outputs` of image `n`.
    fn fill(&self, n: usize, first: usize, outputs: usize, strip: &mut [f32]) {
        let [height, width, _] = self.geometry.input;
        let padding = self.geometry.padding;
        for (index, row) in strip.chunks_exact_mut(self.stride()).take(self.rows(outputs)).enumerate() {
            let source = (first * self.geometry.stride + index).checked_sub(padding.top);
            let Some(source) = source.filter(|&source| source < height) else {
                row.fill(0.0);
                continue;
            };
            let (left, inside) = row.split_at_mut(padding.left * 3);
            let (inside, right) = inside.split_at_mut(width * 3);
            left.fill(0.0);
            right.fill(0.0);
            let range = (n * height + source) * width * 3..(n * height + source + 1) * width * 3;
            match self.source {
                Source::Bytes(bytes) => {
                    for (to, from) in inside.chunks_exact_mut(3).zip(bytes[range].chunks_exact(3)) {
                        for c in 0..3 {
                            to[c] = f32::from(from[c]) * self.scale[c] + self.shift[c];
                        }
                    }
                }
                Source::Floats(floats) => {
                    for (to, from) in inside.chunks_exact_mut(3).zip(floats[range].chunks_exact(3)) {
                        for c in 0..3 {
                            to[c] = from[c] * self.scale[c] + self.shift[c];
                        }
                    }
                }
            }
        }
    }
}

/// Output rows per task.
fn rows_per_task(geometry: &Geometry) -> usize {
    256_usize.div_ceil(geometry.output[1]).min(geometry.output[0]).max(1)
}

pub(super) fn forward(
    geometry: &Geometry,
    images: &Images,
    packed: &[f32],
    bias: Option<&[f32]>,
    y: &mut [f32],
) -> Result<()> {
    let strips = Strips::new(geometry, images)?;
    let level = level();
    let (tile_rows, tile_columns) = kernels::tile_at(level);
    let ([oh, ow, out], [kh, kw]) = (geometry.output, geometry.kernel);
    let window = kw * 3;
    let stride = strips.stride();
    let rows = rows_per_task(geometry);
    y.par_chunks_mut(oh * ow * out).enumerate().for_each(|(n, image)| {
        image.par_chunks_mut(rows * ow * out).enumerate().for_each(|(group, y)| {
            let outputs = y.len() / (ow * out);
            if let Some(bias) = bias {
                y.chunks_exact_mut(out).for_each(|pixel| pixel.copy_from_slice(bias));
            }
            with_scratch(strips.rows(outputs) * stride, |strip| {
                strips.fill(n, group * rows, outputs, strip);
                let target = SendPtr::new(y);
                let mut segments = vec![Segment { rows: [strip.as_ptr(); MAX_ROWS], offset: 0 }; kh];
                for row in 0..outputs {
                    for (start, count) in blocks(ow, tile_rows) {
                        for (ky, segment) in segments.iter_mut().enumerate() {
                            segment.offset = ky * window * tile_columns;
                            for (r, pointer) in segment.rows[..count].iter_mut().enumerate() {
                                let offset =
                                    (row * geometry.stride + ky) * stride + (start + r) * geometry.stride * 3;
                                *pointer = strip[offset..].as_ptr();
                            }
                        }
                        for first in (0..out).step_by(tile_columns) {
                            let to: [_; MAX_ROWS] =
                                std::array::from_fn(|r| target.at((row * ow + start + r) * out + first));
                            let columns = tile_columns.min(out - first);
                            let output = Output { rows: &to[..count], columns, accumulate: bias.is_some() };
                            let b = packed[first / tile_columns * kh * window * tile_columns..].as_ptr();
                            // SAFETY: windows lie within the strip, panels within `packed`, rows within `y`.
                            unsafe { kernels::gather(level, &segments, window, b, tile_columns, output) }
                        }
                    }
                }
            });
        });
    });
    Ok(())
}

/// Images per partial sum; fixed, as it is part of the result's bits.
const IMAGES: usize = 4;

pub(super) fn weight_gradient(
    geometry: &Geometry,
    images: &Images,
    dy: &[f32],
    dw: &mut [f32],
    accumulate: bool,
) -> Result<()> {
    let strips = Strips::new(geometry, images)?;
    let level = level();
    let (tile_rows, tile_columns) = kernels::tile_at(level);
    let ([oh, ow, out], [kh, kw]) = (geometry.output, geometry.kernel);
    let window = kw * 3;
    let stride = strips.stride();
    let rows = rows_per_task(geometry);
    let groups = geometry.batch.div_ceil(IMAGES);
    let mut partial = vec![0.0_f32; groups * dw.len()];
    partial.par_chunks_mut(dw.len().max(1)).enumerate().for_each(|(group, partial)| {
        let target = SendPtr::new(partial);
        let mut runs = Vec::with_capacity(rows);
        with_scratch(strips.rows(rows) * stride, |strip| {
            for n in group * IMAGES..((group + 1) * IMAGES).min(geometry.batch) {
                for first_row in (0..oh).step_by(rows) {
                    let outputs = rows.min(oh - first_row);
                    strips.fill(n, first_row, outputs, strip);
                    for ky in 0..kh {
                        runs.clear();
                        runs.extend((0..outputs).map(|row| Run {
                            a: (n * oh + first_row + row) * ow * out,
                            b: (row * geometry.stride + ky) * stride,
                            count: ow,
                        }));
                        for first in (0..window).step_by(tile_columns) {
                            let columns = tile_columns.min(window - first);
                            for (first_out, count) in blocks(out, tile_rows) {
                                let to: [_; MAX_ROWS] = std::array::from_fn(|r| {
                                    target.at(((first_out + r) * kh + ky) * window + first)
                                });
                                let output = Output { rows: &to[..count], columns, accumulate: true };
                                let a = (dy[first_out..].as_ptr(), out);
                                let b = (strip[first..].as_ptr(), geometry.stride * 3);
                                // SAFETY: runs lie within dy and the strip, rows within this task's partial sum.
                                unsafe { kernels::outer(level, &runs, a, b, output) }
                            }
                        }
                    }
                }
            }
        });
    });
    if !accumulate {
        dw.fill(0.0);
    }
    for partial in partial.chunks_exact(dw.len().max(1)) {
        add_assign(dw, partial);
    }
    Ok(())
}
