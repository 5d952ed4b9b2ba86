//! Matrix products of row-major matrices. Each output tile is one task's and summed in a fixed order.
//!
//! | function | product | shapes |
//! |---|---|---|
//! | [`nn`] | C = A B | A (m, k), B (k, n) |
//! | [`nt`] | C = A B^T | A (m, k), B (n, k) |
//! | [`tn`] | C = A^T B | A (k, m), B (k, n) |

use rayon::prelude::*;
use simd::level;

use super::kernels::{self, MAX_ROWS, Output, Run, Segment};
use super::parallel::{SendPtr, blocks};
use crate::device::Device;
use crate::error::Result;
use crate::tensor::{DType, Tensor};

/// A row-major matrix with `stride` between rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matrix<'a> {
    pub values: &'a [f32],
    pub rows: usize,
    pub columns: usize,
    pub stride: usize,
}

impl<'a> Matrix<'a> {
    /// A contiguous matrix.
    pub(crate) fn new(values: &'a [f32], rows: usize, columns: usize) -> Self {
        Self::strided(values, rows, columns, columns)
    }

    /// A matrix with `stride` between the starts of rows.
    pub(crate) fn strided(values: &'a [f32], rows: usize, columns: usize, stride: usize) -> Self {
        assert!(stride >= columns && (rows == 0 || values.len() >= (rows - 1) * stride + columns));
        Self { values, rows, columns, stride }
    }

    fn row(&self, row: usize) -> *const f32 {
        self.values[row * self.stride..].as_ptr()
    }
}

/// `c (+)= a b`. `c` is contiguous, (a.rows, b.columns).
pub(crate) fn nn(a: Matrix<'_>, b: Matrix<'_>, c: &mut [f32], accumulate: bool) {
    assert!(a.columns == b.rows && c.len() == a.rows * b.columns, "a matrix product of other sizes");
    let level = level();
    let (tile_rows, tile_columns) = kernels::tile_at(level);
    let n = b.columns;
    let target = SendPtr::new(c);
    // A task is a panel of columns and a group of rows.
    let tasks: Vec<_> = blocks(a.rows, tile_rows * 8)
        .flat_map(|rows| (0..n).step_by(tile_columns).map(move |column| (rows, column)))
        .collect();
    tasks.into_par_iter().for_each(|((first_row, row_count), column)| {
        let columns = tile_columns.min(n - column);
        for (start, count) in blocks(row_count, tile_rows) {
            let start = first_row + start;
            let mut segment = Segment { rows: [std::ptr::null(); MAX_ROWS], offset: column };
            let mut to = [std::ptr::null_mut(); MAX_ROWS];
            for (r, (from, to)) in segment.rows.iter_mut().zip(&mut to).take(count).enumerate() {
                *from = a.row(start + r);
                *to = target.at((start + r) * n + column);
            }
            let output = Output { rows: &to[..count], columns, accumulate };
            // SAFETY: rows and columns lie within a, b and c; tiles of different tasks are disjoint.
            unsafe { kernels::gather(level, &[segment], a.columns, b.values.as_ptr(), b.stride, output) }
        }
    });
}

/// `c (+)= a b^T`. `c` is contiguous, (a.rows, b.rows). The transpose of `b` goes through a pooled buffer.
pub(crate) fn nt(
    device: &Device,
    a: Matrix<'_>,
    b: Matrix<'_>,
    c: &mut [f32],
    accumulate: bool,
) -> Result<()> {
    let (k, n) = (b.columns, b.rows);
    let mut transposed = Tensor::empty(device, [k, n], DType::F32)?;
    transpose(b, transposed.as_mut_slice()?);
    nn(a, Matrix::new(transposed.as_slice()?, k, n), c, accumulate);
    Ok(())
}

/// `c (+)= a^T b`. `c` is contiguous, (a.columns, b.columns).
pub(crate) fn tn(a: Matrix<'_>, b: Matrix<'_>, c: &mut [f32], accumulate: bool) {
    assert!(a.rows == b.rows && c.len() == a.columns * b.columns, "a matrix product of other sizes");
    let level = level();
    let (tile_rows, tile_columns) = kernels::tile_at(level);
    let (m, n) = (a.columns, b.columns);
    let target = SendPtr::new(c);
    let tasks: Vec<_> = blocks(m, tile_rows)
        .flat_map(|rows| blocks(n, tile_columns * 8).map(move |columns| (rows, columns)))
        .collect();
    tasks.into_par_iter().for_each(|((start, count), (first_column, column_count))| {
        for column in (first_column..first_column + column_count).step_by(tile_columns) {
            let columns = tile_columns.min(first_column + column_count - column);
            let to: [_; MAX_ROWS] = std::array::from_fn(|r| target.at((start + r) * n + column));
            let run = Run { a: start, b: column, count: a.rows };
            let output = Output { rows: &to[..count], columns, accumulate };
            // SAFETY: as in `nn`.
            unsafe {
                kernels::outer(
                    level,
                    &[run],
                    (a.values.as_ptr(), a.stride),
                    (b.values.as_ptr(), b.stride),
                    output,
                )
            }
        }
    });
}

/// `target = source^T`, contiguous (source.columns, source.rows).
pub(crate) fn transpose(source: Matrix<'_>, target: &mut [f32]) {
    // Rows that a power of two separates compete for the same lines of a cache, so both sides go through a small tile:
    // read in runs of `COLUMNS`, written in runs of `ROWS`, which is one line.
    const ROWS: usize = 16;
    const COLUMNS: usize = 64;
    let rows = source.rows;
    debug_assert_eq!(target.len(), rows * source.columns);
    target.par_chunks_mut(rows.max(1) * COLUMNS).enumerate().for_each(|(block, target)| {
        let (first_column, width) = (block * COLUMNS, target.len() / rows);
        let mut tile = [[0.0; COLUMNS]; ROWS];
        for first_row in (0..rows).step_by(ROWS) {
            let height = ROWS.min(rows - first_row);
            for (row, tile) in tile.iter_mut().take(height).enumerate() {
                let start = (first_row + row) * source.stride + first_column;
                tile[..width].copy_from_slice(&source.values[start..start + width]);
            }
            for (column, target) in target.chunks_exact_mut(rows).enumerate() {
                let to = &mut target[first_row..first_row + height];
                to.iter_mut().zip(&tile).for_each(|(to, tile)| *to = tile[column]);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use random::{Random, Stream};
    use simd::available;

    fn values(len: usize, index: u64) -> Vec<f32> {
        let mut random = Random::new(1, Stream::new("matmul"), index);
        (0..len).map(|_| random.range(-1.0, 1.0) as f32).collect()
    }

    fn reference(
        m: usize,
        n: usize,
        k: usize,
        a: impl Fn(usize, usize) -> f32,
        b: impl Fn(usize, usize) -> f32,
    ) -> Vec<f64> {
        let mut c = vec![0.0; m * n];
        for i in 0..m {
            for j in 0..n {
                c[i * n + j] = (0..k).map(|p| f64::from(a(i, p)) * f64::from(b(p, j))).sum();
            }
        }
        c
    }

    fn close(found: &[f32], wanted: &[f64]) {
        for (f, w) in found.iter().zip(wanted) {
            assert!((f64::from(*f) - w).abs() < 1e-4, "{f} {w}");
        }
    }

    #[test]
    fn transposes_are_exact_on_odd_shapes() {
        for (rows, columns, stride) in [
            (0, 3, 3),
            (3, 0, 3),
            (1, 1, 1),
            (1, 40, 41),
            (17, 15, 15),
            (16, 32, 32),
            (33, 47, 50),
            (50, 16, 20),
        ] {
            let source = values(rows * stride, 3);
            let mut target = vec![f32::NAN; rows * columns];
            transpose(Matrix::strided(&source, rows, columns, stride), &mut target);
            let wanted: Vec<f32> = (0..columns)
                .flat_map(|c| (0..rows).map(move |r| (r, c)))
                .map(|(r, c)| source[r * stride + c])
                .collect();
            assert_eq!(target, wanted, "{rows} {columns} {stride}");
        }
    }

    #[test]
    fn products_agree_with_float64_on_odd_shapes() {
        let device = Device::cpu();
        for (case, (m, n, k)) in
            [(1, 1, 1), (3, 5, 7), (14, 32, 16), (15, 33, 9), (61, 70, 40), (130, 17, 300)]
                .into_iter()
                .enumerate()
        {
            let (a, b) = (values(m * k, case as u64), values(k * n, 100 + case as u64));
            let wanted = reference(m, n, k, |i, p| a[i * k + p], |p, j| b[p * n + j]);
            let mut c = vec![0.0; m * n];
            nn(Matrix::new(&a, m, k), Matrix::new(&b, k, n), &mut c, false);
            close(&c, &wanted);
            let mut at = vec![0.0; m * k];
            transpose(Matrix::new(&a, m, k), &mut at);
            c.fill(f32::NAN);
            tn(Matrix::new(&at, k, m), Matrix::new(&b, k, n), &mut c, false);
            close(&c, &wanted);
            let mut bt = vec![0.0; n * k];
            transpose(Matrix::new(&b, k, n), &mut bt);
            nt(&device, Matrix::new(&a, m, k), Matrix::new(&bt, n, k), &mut c, true).unwrap();
            let twice: Vec<f64> = wanted.iter().map(|w| 2.0 * w).collect();
            close(&c, &twice);
        }
    }

    #[test]
    fn every_level_agrees() {
        let (k, ldb) = (37, 50);
        let (a, b) = (values(MAX_ROWS * k, 7), values(k * ldb, 8));
        for level in available() {
            let (rows, columns) = kernels::tile_at(level);
            for (rows, columns) in [(rows, columns), (1, columns - 1), (rows - 1, 3), (rows, columns / 2 + 1)]
            {
                let wanted = reference(rows, columns, k, |i, p| a[i * k + p], |p, j| b[p * ldb + j]);
                let mut c = vec![f32::NAN; rows * columns];
                let mut segment = Segment { rows: [std::ptr::null(); MAX_ROWS], offset: 0 };
                for (r, row) in segment.rows.iter_mut().take(rows).enumerate() {
                    *row = a[r * k..].as_ptr();
                }
                // Addresses are valid until `c` is looked at.
                let rows_of = |c: &mut [f32]| -> Vec<*mut f32> {
                    let target = SendPtr::new(c);
                    (0..rows).map(|r| target.at(r * columns)).collect()
                };
                let to = rows_of(&mut c);
                let output = Output { rows: &to, columns, accumulate: false };
                // SAFETY: all within the vectors above.
                unsafe { kernels::gather(level, &[segment], k, b.as_ptr(), ldb, output) }
                close(&c, &wanted);
                let mut at = vec![0.0; k * rows];
                transpose(Matrix::strided(&a, rows, k, k), &mut at);
                let run = Run { a: 0, b: 0, count: k };
                let to = rows_of(&mut c);
                let output = Output { rows: &to, columns, accumulate: true };
                // SAFETY: as above.
                unsafe { kernels::outer(level, &[run], (at.as_ptr(), rows), (b.as_ptr(), ldb), output) }
                let twice: Vec<f64> = wanted.iter().map(|w| 2.0 * w).collect();
                close(&c, &twice);
            }
        }
    }
}
