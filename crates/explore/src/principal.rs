//! Principal components: the directions in which rows differ most, by orthogonal iteration on their covariance.

use evaluate::Table;
use rayon::prelude::*;

/// Rows that the covariance is computed from, at most, evenly chosen.
const MOST_ROWS: usize = 4096;
/// Iterations; a map needs no more digits.
const ITERATIONS: usize = 60;

/// Rows of `table` in the coordinates of its first `count` principal components, and the share of the variance that each of
/// them has. The sign of a component is that of its largest entry; the result depends on the rows alone.
pub fn components(table: &Table, count: usize) -> (Table, Vec<f64>) {
    let width = table.width;
    let count = count.min(width);
    let step = table.rows().div_ceil(MOST_ROWS).max(1);
    let chosen: Vec<usize> = (0..table.rows()).step_by(step).collect();
    let mut mean = vec![0.0_f64; width];
    for &row in &chosen {
        mean.iter_mut().zip(table.row(row)).for_each(|(mean, value)| *mean += f64::from(*value));
    }
    mean.iter_mut().for_each(|mean| *mean /= chosen.len().max(1) as f64);
    let covariance = covariance(table, &chosen, &mean);
    let total: f64 = (0..width).map(|i| covariance[i * width + i]).sum();
    let mut basis = start(width, count);
    for _ in 0..ITERATIONS {
        basis.par_iter_mut().for_each(|vector| *vector = product(&covariance, vector));
        orthonormalise(&mut basis);
    }
    let shares = basis.iter().map(|vector| dot(vector, &product(&covariance, vector)) / total.max(1e-300));
    let shares: Vec<f64> = shares.collect();
    for vector in &mut basis {
        let largest = vector.iter().copied().fold(0.0_f64, |a, b| if b.abs() > a.abs() { b } else { a });
        if largest < 0.0 {
            vector.iter_mut().for_each(|entry| *entry = -*entry);
        }
    }
    let mut values = vec![0.0_f32; table.rows() * count];
    values.par_chunks_exact_mut(count.max(1)).enumerate().for_each(|(row, place)| {
        let row = table.row(row);
        for (value, vector) in place.iter_mut().zip(&basis) {
            let sum: f64 = row.iter().zip(&mean).zip(vector).map(|((x, m), v)| (f64::from(*x) - m) * v).sum();
            *value = sum as f32;
        }
    });
    (Table { width: count, values }, shares)
}

fn covariance(table: &Table, chosen: &[usize], mean: &[f64]) -> Vec<f64> {
    let width = table.width;
    let centred: Vec<Vec<f64>> = (0..width)
        .into_par_iter()
        .map(|column| chosen.iter().map(|&row| f64::from(table.row(row)[column]) - mean[column]).collect())
        .collect();
    let mut covariance = vec![0.0; width * width];
    covariance.par_chunks_exact_mut(width.max(1)).enumerate().for_each(|(i, row)| {
        for (j, entry) in row.iter_mut().enumerate() {
            *entry = dot(&centred[i], &centred[j]) / chosen.len().max(1) as f64;
        }
    });
    covariance
}

/// Vectors to begin with, the same for everybody.
fn start(width: usize, count: usize) -> Vec<Vec<f64>> {
    let mut random = random::Random::new(0, random::Stream::new("principal-components"), 0);
    let mut basis: Vec<Vec<f64>> =
        (0..count).map(|_| (0..width).map(|_| random.range(-1.0, 1.0)).collect()).collect();
    orthonormalise(&mut basis);
    basis
}

fn product(matrix: &[f64], vector: &[f64]) -> Vec<f64> {
    matrix.chunks_exact(vector.len().max(1)).map(|row| dot(row, vector)).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Gram and Schmidt; a vector that is nothing but others becomes zero.
fn orthonormalise(basis: &mut [Vec<f64>]) {
    for index in 0..basis.len() {
        let (before, rest) = basis.split_at_mut(index);
        let vector = &mut rest[0];
        for other in before {
            let along = dot(vector, other);
            vector.iter_mut().zip(other).for_each(|(entry, other)| *entry -= along * *other);
        }
        let norm = dot(vector, vector).sqrt();
        let scale = if norm > 1e-12 { 1.0 / norm } else { 0.0 };
        vector.iter_mut().for_each(|entry| *entry *= scale);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_direction_comes_first() {
        // Points along (3, 4, 0) / 5, a little along z, around (7, 7, 7).
        let row = |i: usize| {
            let (a, b) = ((i as f32 * 0.7).sin(), (i as f32 * 1.3).cos() * 0.1);
            [7.0 + 0.6 * a, 7.0 + 0.8 * a, 7.0 + b]
        };
        let table = Table { width: 3, values: (0..500).flat_map(row).collect() };
        let (found, shares) = components(&table, 2);
        assert!(shares[0] > 0.97 && shares[0] + shares[1] > 0.999_999, "{shares:?}");
        for i in 0..500 {
            let wanted = (i as f32 * 0.7).sin();
            let mean: f32 = (0..500).map(|i| (i as f32 * 0.7).sin()).sum::<f32>() / 500.0;
            assert!((found.row(i)[0] - (wanted - mean)).abs() < 1e-3, "{i}");
        }
        assert_eq!(components(&table, 2).0, found);
        // Rows that are all alike, and fewer columns than asked for.
        let (flat, shares) = components(&Table { width: 1, values: vec![2.0; 9] }, 2);
        assert!(flat.width == 1 && shares[0] == 0.0 && flat.values.iter().all(|value| *value == 0.0));
    }
}
