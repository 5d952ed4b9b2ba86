//! Attention on the CPU: a task is one head of one sample, which fits into the second-level cache.

use rayon::prelude::*;

use super::AttentionGeometry;
use crate::cpu::kernels::{self, MAX_ROWS, Output, Run, Segment};
use crate::cpu::{Level, SendPtr, blocks, exp, level, with_scratch};

/// A matrix inside a larger one: start, rows, columns, stride.
#[derive(Clone, Copy)]
struct Part {
    start: *const f32,
    rows: usize,
    columns: usize,
    stride: usize,
}

/// `c (+)= a b`, on one thread.
///
/// # Safety
/// The parts must be valid, `c` (rows of `c_stride`) disjoint from them.
unsafe fn product(level: Level, a: Part, b: Part, c: *mut f32, c_stride: usize, accumulate: bool) {
    let (tile_rows, tile_columns) = kernels::tile_at(level);
    for (start, count) in blocks(a.rows, tile_rows) {
        let mut segment = Segment { rows: [a.start; MAX_ROWS], offset: 0 };
        for (r, row) in segment.rows.iter_mut().take(count).enumerate() {
            *row = a.start.wrapping_add((start + r) * a.stride);
        }
        for column in (0..b.columns).step_by(tile_columns) {
            segment.offset = column;
            let rows: [_; MAX_ROWS] =
                std::array::from_fn(|r| c.wrapping_add((start + r) * c_stride + column));
            let columns = tile_columns.min(b.columns - column);
            let output = Output { rows: &rows[..count], columns, accumulate };
            // SAFETY: the caller's promise.
            unsafe { kernels::gather(level, &[segment], a.columns, b.start, b.stride, output) }
        }
    }
}

/// `c (+)= a^T b`, on one thread.
///
/// # Safety
/// As for [`product`].
unsafe fn product_transposed(level: Level, a: Part, b: Part, c: *mut f32, c_stride: usize, accumulate: bool) {
    let (tile_rows, tile_columns) = kernels::tile_at(level);
    for (start, count) in blocks(a.columns, tile_rows) {
        for column in (0..b.columns).step_by(tile_columns) {
            let rows: [_; MAX_ROWS] =
                std::array::from_fn(|r| c.wrapping_add((start + r) * c_stride + column));
            let columns = tile_columns.min(b.columns - column);
            let output = Output { rows: &rows[..count], columns, accumulate };
            let run = Run { a: start, b: column, count: a.rows };
            // SAFETY: the caller's promise.
            unsafe { kernels::outer(level, &[run], (a.start, a.stride), (b.start, b.stride), output) }
        }
    }
}

/// One head of one sample.
struct Head<'a> {
    geometry: &'a AttentionGeometry,
    qkv: &'a [f32],
    n: usize,
    head: usize,
}

impl Head<'_> {
    /// Queries (0), keys (1) or values (2), or the same place in a gradient of qkv.
    fn offset(&self, which: usize) -> usize {
        let AttentionGeometry { tokens, heads, size, .. } = *self.geometry;
        self.n * tokens * 3 * heads * size + which * heads * size + self.head * size
    }

    fn part(&self, which: usize) -> Part {
        let AttentionGeometry { tokens, heads, size, .. } = *self.geometry;
        Part {
            start: self.qkv[self.offset(which)..].as_ptr(),
            rows: tokens,
            columns: size,
            stride: 3 * heads * size,
        }
    }

    /// Writes queries (or values) against keys, `left right^T`, to `to` (tokens, tokens), by way of `transposed`.
    fn against(&self, level: Level, left: Part, right: Part, transposed: &mut [f32], to: &mut [f32]) {
        let (tokens, size) = (right.rows, right.columns);
        for t in 0..tokens {
            for e in 0..size {
                // SAFETY: within the part.
                transposed[e * tokens + t] = unsafe { *right.start.add(t * right.stride + e) };
            }
        }
        let right = Part { start: transposed.as_ptr(), rows: size, columns: tokens, stride: tokens };
        // SAFETY: all parts are valid; `to` is scratch of this task.
        unsafe { product(level, left, right, to.as_mut_ptr(), tokens, false) }
    }
}

pub(super) fn forward(geometry: &AttentionGeometry, qkv: &[f32], y: &mut [f32], log_sums: &mut [f32]) {
    let AttentionGeometry { batch, tokens, heads, size } = *geometry;
    let level = level();
    let target = SendPtr::new(y);
    let log_sums = SendPtr::new(log_sums);
    (0..batch * heads).into_par_iter().for_each(|task| {
        let head = Head { geometry, qkv, n: task / heads, head: task % heads };
        with_scratch(tokens * (tokens + size), |scratch| {
            let (scores, transposed) = scratch.split_at_mut(tokens * tokens);
            head.against(level, head.part(0), head.part(1), transposed, scores);
            // SAFETY: these rows belong to this task.
            let log_sums = unsafe { log_sums.slice(task * tokens, tokens) };
            let scale = 1.0 / (size as f32).sqrt();
            for (scores, log_sum) in scores.chunks_exact_mut(tokens).zip(log_sums) {
                *log_sum = softmax(scores, scale);
            }
            let scores = Part { start: scores.as_ptr(), rows: tokens, columns: tokens, stride: tokens };
            let to = target.at(head.n * tokens * heads * size + head.head * size);
            // SAFETY: a head's columns belong to this task.
            unsafe { product(level, scores, head.part(2), to, heads * size, false) }
        });
    });
}

multiversion! {
    /// Turns scores into probabilities; returns ln sum exp of the scaled scores.
    fn softmax(scores: &mut [f32], scale: f32) -> f32 {
        let mut largest = f32::NEG_INFINITY;
        for score in scores.iter_mut() {
            *score *= scale;
            largest = if *score > largest { *score } else { largest };
        }
        for score in scores.iter_mut() {
            *score = exp(*score - largest);
        }
        let sum: f64 = scores.iter().map(|&score| f64::from(score)).sum();
        let inverse = (1.0 / sum) as f32;
        for score in scores.iter_mut() {
            *score *= inverse;
        }
        largest + sum.ln() as f32
    }
}

multiversion! {
    /// Probabilities from scores, again.
    fn probabilities(scores: &mut [f32], scale: f32, log_sum: f32) {
        for score in scores.iter_mut() {
            *score = exp(*score * scale - log_sum);
        }
    }
}

pub(super) fn backward(
    geometry: &AttentionGeometry,
    qkv: &[f32],
    y: &[f32],
    log_sums: &[f32],
    dy: &[f32],
    dqkv: &mut [f32],
) {
    let AttentionGeometry { batch, tokens, heads, size } = *geometry;
    let level = level();
    let target = SendPtr::new(dqkv);
    let width = heads * size;
    (0..batch * heads).into_par_iter().for_each(|task| {
        let head = Head { geometry, qkv, n: task / heads, head: task % heads };
        with_scratch(tokens * (2 * tokens + size), |scratch| {
            let (p, rest) = scratch.split_at_mut(tokens * tokens);
            let (ds, transposed) = rest.split_at_mut(tokens * tokens);
            let scale = 1.0 / (size as f32).sqrt();
            let first = head.n * tokens * width + head.head * size;
            let dy_part = Part { start: dy[first..].as_ptr(), rows: tokens, columns: size, stride: width };
            head.against(level, head.part(0), head.part(1), transposed, p);
            head.against(level, dy_part, head.part(2), transposed, ds);
            for (t, (p, ds)) in p.chunks_exact_mut(tokens).zip(ds.chunks_exact_mut(tokens)).enumerate() {
                probabilities(p, scale, log_sums[task * tokens + t]);
                // rowsum(dP P) is dY . Y
                let row = first + t * width;
                let along: f32 = (0..size).map(|e| dy[row + e] * y[row + e]).sum();
                for (p, ds) in p.iter().zip(ds) {
                    *ds = p * (*ds - along) * scale;
                }
            }
            let square = |values: &[f32]| Part {
                start: values.as_ptr(),
                rows: tokens,
                columns: tokens,
                stride: tokens,
            };
            let to = |which: usize| target.at(head.offset(which));
            // SAFETY: a head's columns of dq, dk and dv belong to this task.
            unsafe {
                product(level, square(ds), head.part(1), to(0), 3 * width, true);
                product_transposed(level, square(ds), head.part(0), to(1), 3 * width, true);
                product_transposed(level, square(p), dy_part, to(2), 3 * width, true);
            }
        });
    });
}
