//! Convolution on the CPU without im2col: the kernel of [`gather`](kernels::gather) reads each row of a tile through
//! a pointer to its pixel's channels, tap by tap, so the image is read where it lies.
//!
//! Forward and data gradient are one routine: both write pixels as sums over taps of a source pixel's channels times
//! a weight matrix, and differ only in which source pixel a tap means ([`Lookup`]). Taps that fall outside for all
//! rows of a tile are skipped, which on small maps (2x2: 5 of 9 taps) is most of the work.

use rayon::prelude::*;

use super::Geometry;
use crate::cpu::kernels::{self, MAX_ROWS, Output, Run, Segment};
use crate::cpu::{SendPtr, blocks, level, with_scratch};
use crate::device::Device;
use crate::error::Result;
use crate::tensor::{DType, Tensor};

/// For each target coordinate and tap, the source coordinate.
struct Lookup {
    /// (target coordinate, tap) -> source coordinate, or `OUTSIDE`.
    sources: Vec<usize>,
    taps: usize,
}

const OUTSIDE: usize = usize::MAX;

impl Lookup {
    fn new(targets: usize, taps: usize, source: impl Fn(usize, usize) -> Option<usize>) -> Self {
        let all = (0..targets).flat_map(|target| (0..taps).map(move |tap| (target, tap)));
        Self { sources: all.map(|(target, tap)| source(target, tap).unwrap_or(OUTSIDE)).collect(), taps }
    }

    fn get(&self, target: usize, tap: usize) -> usize {
        self.sources[target * self.taps + tap]
    }

    /// Forward: input coordinate = output coordinate * stride + tap - padding.
    fn forward(outputs: usize, inputs: usize, taps: usize, stride: usize, padding: usize) -> Self {
        Self::new(outputs, taps, |output, tap| {
            (output * stride + tap).checked_sub(padding).filter(|&input| input < inputs)
        })
    }

    /// Backward: the output whose tap reads this input, if there is one.
    fn backward(outputs: usize, inputs: usize, taps: usize, stride: usize, padding: usize) -> Self {
        Self::new(inputs, taps, |input, tap| {
            let scaled = (input + padding).checked_sub(tap)?;
            (scaled % stride == 0 && scaled / stride < outputs).then_some(scaled / stride)
        })
    }
}

/// Weights (out, taps, in) as panels of output channels: (panel, tap, in, tile width), zeros behind the last channel.
pub(crate) fn pack_forward(device: &Device, weight: &Tensor) -> Result<Tensor> {
    let (out, depth) = (weight.dims()[0], weight.len() / weight.dims()[0]);
    let (_, width) = kernels::tile_at(level());
    let mut packed = Tensor::empty(device, [out.div_ceil(width), depth, width], DType::F32)?;
    let weight = weight.as_slice::<f32>()?;
    packed.as_mut_slice::<f32>()?.par_chunks_mut(depth * width).enumerate().for_each(|(panel, packed)| {
        let first = panel * width;
        let count = width.min(out - first);
        if count < width {
            packed.fill(0.0);
        }
        // Blocks of 16 values of k, so that both sides stay in the first-level cache.
        for (k, packed) in packed.chunks_mut(16 * width).enumerate() {
            let depth_here = packed.len() / width;
            for column in 0..count {
                let from = &weight[(first + column) * depth + k * 16..][..depth_here];
                for (k, value) in from.iter().enumerate() {
                    packed[k * width + column] = *value;
                }
            }
        }
    });
    Ok(packed)
}

/// Weights (out, taps, in) as panels of input channels: (panel, tap, out, tile width), zeros behind the last channel.
pub(crate) fn pack_backward(device: &Device, weight: &Tensor) -> Result<Tensor> {
    let &[out, kh, kw, channels] = weight.dims() else { return Ok(weight.clone()) };
    let taps = kh * kw;
    let (_, width) = kernels::tile_at(level());
    let panels = channels.div_ceil(width);
    let mut packed = Tensor::empty(device, [panels, taps, out, width], DType::F32)?;
    let weight = weight.as_slice::<f32>()?;
    packed.as_mut_slice::<f32>()?.par_chunks_mut(out * width).enumerate().for_each(|(index, packed)| {
        let (panel, tap) = (index / taps, index % taps);
        let first = panel * width;
        let count = width.min(channels - first);
        for (o, row) in packed.chunks_exact_mut(width).enumerate() {
            row[..count].copy_from_slice(&weight[(o * taps + tap) * channels + first..][..count]);
            row[count..].fill(0.0);
        }
    });
    Ok(packed)
}

/// `y = x * W`, with `packed` from [`pack_forward`].
pub(crate) fn forward(geometry: &Geometry, x: &[f32], packed: &[f32], y: &mut [f32]) {
    let ([height, width, _], [oh, ow, _], [kh, kw]) = (geometry.input, geometry.output, geometry.kernel);
    let pixels = Pixels {
        batch: geometry.batch,
        source: geometry.input,
        target: geometry.output,
        rows: Lookup::forward(oh, height, kh, geometry.stride, geometry.padding.top),
        columns: Lookup::forward(ow, width, kw, geometry.stride, geometry.padding.left),
        step: 1,
    };
    pixels.run(x, packed, y, false);
}

/// `dx (+)= dy * W^T`, with `packed` from [`pack_backward`].
pub(crate) fn data_gradient(
    geometry: &Geometry,
    dy: &[f32],
    packed: &[f32],
    dx: &mut [f32],
    accumulate: bool,
) {
    let ([height, width, _], [oh, ow, _], [kh, kw]) = (geometry.input, geometry.output, geometry.kernel);
    let pixels = Pixels {
        batch: geometry.batch,
        source: geometry.output,
        target: geometry.input,
        rows: Lookup::backward(oh, height, kh, geometry.stride, geometry.padding.top),
        columns: Lookup::backward(ow, width, kw, geometry.stride, geometry.padding.left),
        step: geometry.stride,
    };
    pixels.run(dy, packed, dx, accumulate);
}

/// A pass that writes target pixels from source pixels.
struct Pixels {
    batch: usize,
    /// Height, width and channels.
    source: [usize; 3],
    target: [usize; 3],
    rows: Lookup,
    columns: Lookup,
    /// Target columns this far apart share their taps.
    step: usize,
}

/// The target pixels of one tile: (image, row, column).
type Block = ([(usize, usize, usize); MAX_ROWS], usize);

impl Pixels {
    /// Cuts the target into tiles whose pixels share as many taps as possible. Returns them in groups that one task
    /// works through, and whether the source rows of a tile must be copied together (see [`Self::run`]).
    fn groups(&self, tile_rows: usize) -> (Vec<Vec<Block>>, bool) {
        let [height, width, _] = self.target;
        let mut groups = Vec::new();
        let block = |pixels: &[(usize, usize, usize)]| {
            let mut all = [(0, 0, 0); MAX_ROWS];
            all[..pixels.len()].copy_from_slice(pixels);
            (all, pixels.len())
        };
        if width / self.step >= 6 {
            // Along image rows: pixels of a tile share their row's taps and, but for the edges, their column's.
            let rows_per_group = 128_usize.div_ceil(width);
            for n in 0..self.batch {
                for first in (0..height).step_by(rows_per_group) {
                    let mut group = Vec::new();
                    for y in first..(first + rows_per_group).min(height) {
                        for phase in 0..self.step.min(width) {
                            let columns: Vec<_> = (phase..width).step_by(self.step).collect();
                            for (start, len) in blocks(columns.len(), tile_rows) {
                                let pixels: Vec<_> =
                                    columns[start..start + len].iter().map(|&x| (n, y, x)).collect();
                                group.push(block(&pixels));
                            }
                        }
                    }
                    groups.push(group);
                }
            }
            (groups, false)
        } else if self.batch >= 6 {
            // The same pixel of several images: all rows of a tile share all taps.
            for (y, x) in (0..height).flat_map(|y| (0..width).map(move |x| (y, x))) {
                for (start, len) in blocks(self.batch, tile_rows) {
                    let pixels: Vec<_> = (start..start + len).map(|n| (n, y, x)).collect();
                    groups.push(vec![block(&pixels)]);
                }
            }
            (groups, true)
        } else {
            let pixels: Vec<_> = (0..self.batch)
                .flat_map(|n| (0..height).flat_map(move |y| (0..width).map(move |x| (n, y, x))))
                .collect();
            groups.extend(blocks(pixels.len(), tile_rows).map(|(s, len)| vec![block(&pixels[s..s + len])]));
            (groups, false)
        }
    }

    fn run(&self, source: &[f32], packed: &[f32], target: &mut [f32], accumulate: bool) {
        let level = level();
        let (tile_rows, tile_columns) = kernels::tile_at(level);
        let [_, _, depth] = self.source;
        let [height, width, channels] = self.target;
        let taps = self.rows.taps * self.columns.taps;
        let panel_size = taps * depth * tile_columns;
        let zeros = vec![0.0_f32; depth];
        let target = SendPtr::new(target);
        let (groups, copy) = self.groups(tile_rows);
        let panels: Vec<_> = blocks(channels.div_ceil(tile_columns), 4).collect();
        let tasks = groups.len() * panels.len();
        (0..tasks).into_par_iter().for_each(|task| {
            let (group, (first_panel, panel_count)) =
                (&groups[task / panels.len()], panels[task % panels.len()]);
            // Rows of pixels from different images lie a power of two apart and would fight for the same cache
            // lines: they are copied together first, with a stride that spreads them.
            let stride = taps * depth + 16;
            with_scratch(if copy { stride * tile_rows } else { 0 }, |copies| {
                let tiles: Vec<_> = group
                    .iter()
                    .map(|block| {
                        let mut segments = self.segments(block, source, &zeros, tile_columns);
                        if copy {
                            gather_copies(&mut segments, block.1, depth, stride, copies);
                        }
                        segments
                    })
                    .collect();
                for panel in first_panel..first_panel + panel_count {
                    let first = panel * tile_columns;
                    let columns = tile_columns.min(channels - first);
                    let b = packed[panel * panel_size..].as_ptr();
                    for (segments, (pixels, count)) in tiles.iter().zip(group) {
                        let mut rows = [std::ptr::null_mut(); MAX_ROWS];
                        for (row, (n, y, x)) in rows.iter_mut().zip(&pixels[..*count]) {
                            *row = target.at(((n * height + y) * width + x) * channels + first);
                        }
                        let output = Output { rows: &rows[..*count], columns, accumulate };
                        // SAFETY: segments point into `source`, `zeros` or `copies`, all `depth` long; the panel
                        // is complete; every target pixel and panel belongs to exactly one task.
                        unsafe { kernels::gather(level, segments, depth, b, tile_columns, output) }
                    }
                }
            });
        });
    }

    /// The taps of a tile that touch the source for at least one of its pixels.
    fn segments(
        &self,
        (pixels, count): &Block,
        source: &[f32],
        zeros: &[f32],
        tile_columns: usize,
    ) -> Vec<Segment> {
        let [height, width, depth] = self.source;
        let mut segments = Vec::with_capacity(self.rows.taps * self.columns.taps);
        for (ky, kx) in (0..self.rows.taps).flat_map(|ky| (0..self.columns.taps).map(move |kx| (ky, kx))) {
            let mut rows = [zeros.as_ptr(); MAX_ROWS];
            let mut inside = false;
            for (row, &(n, y, x)) in rows.iter_mut().zip(&pixels[..*count]) {
                let (sy, sx) = (self.rows.get(y, ky), self.columns.get(x, kx));
                if sy != OUTSIDE && sx != OUTSIDE {
                    *row = source[((n * height + sy) * width + sx) * depth..].as_ptr();
                    inside = true;
                }
            }
            if inside {
                let offset = (ky * self.columns.taps + kx) * depth * tile_columns;
                segments.push(Segment { rows, offset });
            }
        }
        segments
    }
}

/// Copies what the segments of one tile point at into `copies` and points them there.
fn gather_copies(segments: &mut [Segment], count: usize, depth: usize, stride: usize, copies: &mut [f32]) {
    assert!(count * stride <= copies.len() && segments.len() * depth <= stride, "room for all copies");
    // One address for all: another reference to `copies` would end the life of those made before.
    let copies = SendPtr::new(copies);
    for (index, segment) in segments.iter_mut().enumerate() {
        for (r, row) in segment.rows[..count].iter_mut().enumerate() {
            let to = copies.at(r * stride + index * depth);
            // SAFETY: a segment's row is `depth` floats long, and so is its place among the copies, by the check above.
            unsafe { std::ptr::copy_nonoverlapping(*row, to, depth) };
            *row = to;
        }
    }
}

/// `dw (+)= sum over pixels of dy (outer) x`, (out, taps, in).
pub(crate) fn weight_gradient(geometry: &Geometry, x: &[f32], dy: &[f32], dw: &mut [f32], accumulate: bool) {
    let level = level();
    let (tile_rows, tile_columns) = kernels::tile_at(level);
    let ([height, width, channels], [oh, ow, out]) = (geometry.input, geometry.output);
    let [kh, kw] = geometry.kernel;
    let (stride, padding) = (geometry.stride, geometry.padding);
    let target = SendPtr::new(dw);
    // Image rows per chunk: small enough that a chunk of x and dy stays in the second-level cache.
    let chunk_rows = 512_usize.div_ceil(ow);
    let all_rows = geometry.batch * oh;
    // A task is a block of output channels and a kernel row: its taps share the chunks of x.
    let tasks: Vec<_> = blocks(out, tile_rows).flat_map(|b| (0..kh).map(move |ky| (b, ky))).collect();
    tasks.into_par_iter().for_each(|((first_out, out_count), ky)| {
        let mut runs = Vec::with_capacity(chunk_rows);
        for first_row in (0..all_rows).step_by(chunk_rows) {
            for kx in 0..kw {
                // Output columns whose input column lies inside.
                let first_column = padding.left.saturating_sub(kx).div_ceil(stride);
                let end_column = (width + padding.left).saturating_sub(kx).div_ceil(stride).min(ow);
                runs.clear();
                for row in first_row..(first_row + chunk_rows).min(all_rows) {
                    let (n, y) = (row / oh, row % oh);
                    let source = (y * stride + ky).checked_sub(padding.top).filter(|&source| source < height);
                    if let (Some(source), true) = (source, first_column < end_column) {
                        let column = first_column * stride + kx - padding.left;
                        runs.push(Run {
                            a: (row * ow + first_column) * out + first_out,
                            b: ((n * height + source) * width + column) * channels,
                            count: end_column - first_column,
                        });
                    }
                }
                let accumulate = accumulate || first_row > 0;
                for first in (0..channels).step_by(tile_columns) {
                    let columns = tile_columns.min(channels - first);
                    let row = |r: usize| ((first_out + r) * kh * kw + ky * kw + kx) * channels + first;
                    let rows: [_; MAX_ROWS] = std::array::from_fn(|r| target.at(row(r)));
                    let output = Output { rows: &rows[..out_count], columns, accumulate };
                    let (a, b) = ((dy.as_ptr(), out), (x[first..].as_ptr(), stride * channels));
                    // SAFETY: runs stay within x and dy; each (out block, kernel row) belongs to one task.
                    unsafe { kernels::outer(level, &runs, a, b, output) }
                }
            }
        }
    });
}
