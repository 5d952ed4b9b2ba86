//! Column sums over rows in a fixed order: chunks of rows are summed in float32, vectorised over columns, and the
//! chunks' sums are added in order in float64.

use rayon::prelude::*;

/// Rows per chunk; fixed, as it is part of the result's bits.
const ROWS: usize = 128;

/// Sums `KINDS` quantities per column over `rows` rows. `chunk(first_row, rows, sums)` adds the rows of one chunk to
/// `sums`, which has `KINDS` slices of `columns` zeros one after the other.
pub(crate) fn column_sums(
    rows: usize,
    columns: usize,
    kinds: usize,
    chunk: impl Fn(usize, usize, &mut [f32]) + Sync,
) -> Vec<f64> {
    let width = kinds * columns;
    let chunks = rows.div_ceil(ROWS);
    let mut partial = vec![0.0_f32; chunks * width];
    partial.par_chunks_mut(width.max(1)).enumerate().for_each(|(index, sums)| {
        let first = index * ROWS;
        chunk(first, ROWS.min(rows - first), sums);
    });
    let mut total = vec![0.0_f64; width];
    for sums in partial.chunks_exact(width.max(1)) {
        for (total, sum) in total.iter_mut().zip(sums) {
            *total += f64::from(*sum);
        }
    }
    total
}
