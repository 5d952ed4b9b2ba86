//! The two register-tile kernels under every matrix product and convolution. A tile is up to [`MAX_ROWS`] rows by
//! two vectors of columns, held in registers over the whole sum.
//!
//! - [`gather`]: rows are read through pointers, so that a convolution needs no im2col: for each tap, each row
//!   points at its pixel's channels.
//! - [`outer`]: sums outer products over a list of runs of pixels: a weight gradient straight from the images.

use simd::{Level, Vector};

/// The most rows of a tile at any level.
pub(crate) const MAX_ROWS: usize = 14;

/// Rows and columns of a full tile.
pub(crate) fn tile_at(level: Level) -> (usize, usize) {
    match level {
        Level::Portable => (4, 8),
        Level::Avx2 => (6, 16),
        Level::Avx512 => (14, 32),
    }
}

/// One piece of a [`gather`] sum: `rows[r][k]` times `b[offset + k * ldb + column]`.
#[derive(Clone, Copy)]
pub(crate) struct Segment {
    /// Where each row's `len` values are.
    pub rows: [*const f32; MAX_ROWS],
    /// Offset of the first of `len` rows of the right-hand matrix.
    pub offset: usize,
}

/// The tile that a kernel writes.
#[derive(Clone, Copy)]
pub(crate) struct Output<'a> {
    /// Start of each row; its length is the number of rows.
    pub rows: &'a [*mut f32],
    /// Valid columns, at most the tile's width.
    pub columns: usize,
    /// Add to what is there.
    pub accumulate: bool,
}

/// Calls `$kernel::<V, ROWS>` with the number of rows as a constant.
macro_rules! with_rows {
    ($count:expr, $kernel:ident::<$v:ty>($($arg:expr),*)) => {
        match $count {
            1 => $kernel::<$v, 1>($($arg),*),
            2 => $kernel::<$v, 2>($($arg),*),
            3 => $kernel::<$v, 3>($($arg),*),
            4 => $kernel::<$v, 4>($($arg),*),
            5 => $kernel::<$v, 5>($($arg),*),
            6 => $kernel::<$v, 6>($($arg),*),
            7 => $kernel::<$v, 7>($($arg),*),
            8 => $kernel::<$v, 8>($($arg),*),
            9 => $kernel::<$v, 9>($($arg),*),
            10 => $kernel::<$v, 10>($($arg),*),
            11 => $kernel::<$v, 11>($($arg),*),
            12 => $kernel::<$v, 12>($($arg),*),
            13 => $kernel::<$v, 13>($($arg),*),
            14 => $kernel::<$v, 14>($($arg),*),
            _ => debug_assert!(false, "a tile has 1 to {MAX_ROWS} rows"),
        }
    };
}

multiversion! {
    /// `output[r] (+)= sum over segments, k < len of segment.rows[r][k] * b[segment.offset + k * ldb ..]`.
    ///
    /// # Safety
    /// The level must be the processor's, all addresses must be valid for the lengths named, the output rows disjoint
    /// from everything else in use.
    pub(crate) unsafe fn gather<S>(
        level: Level;
        segments: &[Segment],
        len: usize,
        b: *const f32,
        ldb: usize,
        output: Output<'_>,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            with_rows!(output.rows.len(), gather_tile::<S::Register>(segments, len, b, ldb, output))
        }
    }
}

#[inline(always)]
unsafe fn gather_tile<V: Vector, const ROWS: usize>(
    segments: &[Segment],
    len: usize,
    b: *const f32,
    ldb: usize,
    output: Output<'_>,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut sums = [[V::splat(0.0); 2]; ROWS];
        if output.columns == 2 * V::LANES {
            for segment in segments {
                let rows: [*const f32; ROWS] = std::array::from_fn(|r| segment.rows[r]);
                let mut b = b.add(segment.offset);
                for k in 0..len {
                    let right = [V::load_at(b), V::load_at(b.add(V::LANES))];
                    for r in 0..ROWS {
                        let left = V::splat(*rows[r].add(k));
                        sums[r][0] = sums[r][0].add_product(left, right[0]);
                        sums[r][1] = sums[r][1].add_product(left, right[1]);
                    }
                    b = b.wrapping_add(ldb);
                }
            }
        } else {
            let first = output.columns.min(V::LANES);
            let second = output.columns - first;
            for segment in segments {
                let mut b = b.add(segment.offset);
                for k in 0..len {
                    let right = [V::load_first(b, first), V::load_first(b.wrapping_add(V::LANES), second)];
                    for (r, sum) in sums.iter_mut().enumerate() {
                        let left = V::splat(*segment.rows[r].add(k));
                        sum[0] = sum[0].add_product(left, right[0]);
                        sum[1] = sum[1].add_product(left, right[1]);
                    }
                    b = b.wrapping_add(ldb);
                }
            }
        }
        write(sums, output);
    }
}

#[inline(always)]
unsafe fn write<V: Vector, const ROWS: usize>(sums: [[V; 2]; ROWS], output: Output<'_>) {
    // SAFETY: the caller's promise.
    unsafe {
        for (r, mut sum) in sums.into_iter().enumerate() {
            let to = output.rows[r];
            if output.columns == 2 * V::LANES {
                if output.accumulate {
                    sum = [sum[0].add(V::load_at(to)), sum[1].add(V::load_at(to.add(V::LANES)))];
                }
                sum[0].store_at(to);
                sum[1].store_at(to.add(V::LANES));
            } else {
                let first = output.columns.min(V::LANES);
                let second = output.columns - first;
                if output.accumulate {
                    sum[0] = sum[0].add(V::load_first(to, first));
                    sum[1] = sum[1].add(V::load_first(to.wrapping_add(V::LANES), second));
                }
                sum[0].store_first(to, first);
                sum[1].store_first(to.wrapping_add(V::LANES), second);
            }
        }
    }
}

/// One piece of an [`outer`] sum: `count` pairs of a left and a right vector.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    /// Offset of the first left vector, as long as the tile has rows.
    pub a: usize,
    /// Offset of the first right vector, as long as the tile has columns.
    pub b: usize,
    /// Number of pairs.
    pub count: usize,
}

multiversion! {
    /// `output[r] (+)= sum over runs, k < count of a[run.a + k * lda + r] * b[run.b + k * ldb ..]`.
    /// `a` and `b` are given as start and stride (`lda`, `ldb`).
    ///
    /// # Safety
    /// As for [`gather`].
    pub(crate) unsafe fn outer<S>(
        level: Level;
        runs: &[Run],
        a: (*const f32, usize),
        b: (*const f32, usize),
        output: Output<'_>,
    ) {
        // SAFETY: the caller's promise.
        unsafe { with_rows!(output.rows.len(), outer_tile::<S::Register>(runs, a, b, output)) }
    }
}

#[inline(always)]
unsafe fn outer_tile<V: Vector, const ROWS: usize>(
    runs: &[Run],
    a: (*const f32, usize),
    b: (*const f32, usize),
    output: Output<'_>,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut sums = [[V::splat(0.0); 2]; ROWS];
        let full = output.columns == 2 * V::LANES;
        let first = output.columns.min(V::LANES);
        let second = output.columns - first;
        for run in runs {
            let (mut left, mut right) = (a.0.add(run.a), b.0.add(run.b));
            for _ in 0..run.count {
                let columns = if full {
                    [V::load_at(right), V::load_at(right.add(V::LANES))]
                } else {
                    [V::load_first(right, first), V::load_first(right.wrapping_add(V::LANES), second)]
                };
                for (r, sum) in sums.iter_mut().enumerate() {
                    let row = V::splat(*left.add(r));
                    sum[0] = sum[0].add_product(row, columns[0]);
                    sum[1] = sum[1].add_product(row, columns[1]);
                }
                left = left.wrapping_add(a.1);
                right = right.wrapping_add(b.1);
            }
        }
        write(sums, output);
    }
}
