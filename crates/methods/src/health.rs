//! How a representation fares: whether its dimensions still vary, how many directions it really uses, and how evenly
//! capsules are used. All of it is computed on the host, in float64, from the rows of one batch.

use crate::eigenvalues::eigenvalues;

/// The health of one batch's representation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Health {
    /// Mean over dimensions of the standard deviation over rows.
    pub std_mean: f64,
    /// The smallest of them.
    pub std_min: f64,
    /// Exponential of the entropy of the normalised singular values (Roy and Vetterli, 2007), from 1 to at most
    /// `RANK_ROWS` - 1.
    pub effective_rank: f64,
    /// Entropy of the mean activations over its largest value: 1 when all capsules are used alike, 0 when one is.
    pub capsule_entropy: Option<f64>,
    /// Mean over samples of the entropy of a sample's own activations over its largest value: 1 when they are uniform, as
    /// before training, 0 when every sample activates one capsule.
    pub sample_entropy: Option<f64>,
}

/// Rows that the effective rank is computed from; more would cost time and change little.
pub const RANK_ROWS: usize = 128;

impl Health {
    /// From `representation` (rows of `width`), and `activations` (rows of `capsules`) where there are capsules.
    pub fn of(representation: &[f32], width: usize, activations: Option<(&[f32], usize)>) -> Self {
        let (std_mean, std_min) = spread(representation, width);
        Self {
            std_mean,
            std_min,
            effective_rank: effective_rank(representation, width),
            capsule_entropy: activations.map(|(rows, capsules)| usage_entropy(rows, capsules)),
            sample_entropy: activations.map(|(rows, capsules)| sample_entropy(rows, capsules)),
        }
    }

    /// The numbers by their names in metrics.
    pub fn values(&self) -> Vec<(String, f64)> {
        let mut values = vec![
            ("health/std_mean".to_owned(), self.std_mean),
            ("health/std_min".to_owned(), self.std_min),
            ("health/effective_rank".to_owned(), self.effective_rank),
        ];
        values.extend(self.capsule_entropy.map(|entropy| ("health/capsule_entropy".to_owned(), entropy)));
        values.extend(self.sample_entropy.map(|entropy| ("health/sample_entropy".to_owned(), entropy)));
        values
    }
}

fn column_means(rows: &[f32], width: usize) -> Vec<f64> {
    let mut means = vec![0.0; width];
    for row in rows.chunks_exact(width) {
        means.iter_mut().zip(row).for_each(|(mean, &value)| *mean += f64::from(value));
    }
    let count = (rows.len() / width).max(1) as f64;
    means.iter_mut().for_each(|mean| *mean /= count);
    means
}

fn spread(rows: &[f32], width: usize) -> (f64, f64) {
    let means = column_means(rows, width);
    let mut squares = vec![0.0; width];
    for row in rows.chunks_exact(width) {
        for ((square, &value), mean) in squares.iter_mut().zip(row).zip(&means) {
            *square += (f64::from(value) - mean).powi(2);
        }
    }
    let degrees = (rows.len() / width).saturating_sub(1).max(1) as f64;
    let deviations: Vec<f64> = squares.iter().map(|square| (square / degrees).sqrt()).collect();
    let mean = deviations.iter().sum::<f64>() / width as f64;
    (mean, deviations.iter().copied().fold(f64::INFINITY, f64::min))
}

fn effective_rank(rows: &[f32], width: usize) -> f64 {
    let count = (rows.len() / width).min(RANK_ROWS);
    let rows = &rows[..count * width];
    let means = column_means(rows, width);
    let centred: Vec<f64> = rows
        .chunks_exact(width)
        .flat_map(|row| row.iter().zip(&means).map(|(&value, mean)| f64::from(value) - mean))
        .collect();
    let mut gram = vec![0.0; count * count];
    for i in 0..count {
        for j in 0..=i {
            let (a, b) = (&centred[i * width..(i + 1) * width], &centred[j * width..(j + 1) * width]);
            let product = dot(a, b);
            gram[i * count + j] = product;
            gram[j * count + i] = product;
        }
    }
    let singular: Vec<f64> =
        eigenvalues(gram, count).into_iter().map(|value| value.max(0.0).sqrt()).collect();
    let largest = singular.iter().copied().fold(0.0, f64::max);
    // Rounding leaves noise where exact arithmetic has zeros.
    let kept: Vec<f64> = singular.into_iter().filter(|&value| value > 1e-6 * largest).collect();
    let total: f64 = kept.iter().sum();
    if !total.is_finite() || total <= 0.0 {
        return 0.0;
    }
    (-kept.iter().map(|value| value / total).map(|p| p * p.ln()).sum::<f64>()).exp()
}

/// The sum of products, in eight partial sums: a processor adds several at once.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (a, a_rest) = a.as_chunks::<8>();
    let (b, b_rest) = b.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for (a, b) in a.iter().zip(b) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += a * b;
        }
    }
    sums.iter().sum::<f64>() + a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum::<f64>()
}

fn usage_entropy(activations: &[f32], capsules: usize) -> f64 {
    relative_entropy(column_means(activations, capsules).into_iter(), capsules)
}

fn sample_entropy(activations: &[f32], capsules: usize) -> f64 {
    let rows = activations.chunks_exact(capsules);
    let count = rows.len().max(1) as f64;
    rows.map(|row| relative_entropy(row.iter().map(|&value| f64::from(value)), capsules)).sum::<f64>() / count
}

/// The entropy of `weights`, which need not sum to 1, over that of `count` equal ones.
fn relative_entropy(weights: impl Iterator<Item = f64> + Clone, count: usize) -> f64 {
    let total: f64 = weights.clone().sum();
    let entropy: f64 = weights.map(|weight| weight / total).filter(|&p| p > 0.0).map(|p| -p * p.ln()).sum();
    entropy / (count as f64).ln().max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use random::{Random, Stream};

    fn normal(rows: usize, width: usize, seed: u64) -> Vec<f32> {
        let mut random = Random::new(seed, Stream::new("health"), 0);
        (0..rows * width).map(|_| random.normal() as f32).collect()
    }

    #[test]
    fn independent_dimensions_have_full_rank_and_their_spread() {
        let health = Health::of(&normal(128, 8, 1), 8, None);
        assert!((health.std_mean - 1.0).abs() < 0.1, "{health:?}");
        assert!(health.effective_rank > 7.8 && health.effective_rank <= 8.0 + 1e-9, "{health:?}");
    }

    #[test]
    fn rows_on_a_line_have_rank_one_and_equal_rows_none() {
        let line: Vec<f32> = (0..40).flat_map(|row| [1.0, -2.0, 0.5].map(|x| x * row as f32)).collect();
        let health = Health::of(&line, 3, None);
        assert!((health.effective_rank - 1.0).abs() < 1e-6, "{health:?}");
        let equal = Health::of(&[0.7; 60], 3, None);
        assert_eq!((equal.std_mean, equal.effective_rank), (0.0, 0.0));
    }

    #[test]
    fn known_singular_values_give_their_rank() {
        // Rows +-s_i e_i: singular values proportional to s = (3, 1).
        let rows = [3.0, 0.0, -3.0, 0.0, 0.0, 1.0, 0.0, -1.0];
        let (p, q) = (0.75_f64, 0.25_f64);
        let expected = (-(p * p.ln() + q * q.ln())).exp();
        assert!((Health::of(&rows, 2, None).effective_rank - expected).abs() < 1e-9);
    }

    #[test]
    fn capsule_entropy_runs_from_one_capsule_to_all() {
        let entropy = |rows: &[f32]| Health::of(&[0.0, 1.0], 1, Some((rows, 4))).capsule_entropy.unwrap();
        assert!((entropy(&[0.25; 8]) - 1.0).abs() < 1e-12);
        assert!(entropy(&[1.0, 0.0, 0.0, 0.0]).abs() < 1e-12);
        // Different rows may use different capsules.
        assert!((entropy(&[1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0]) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn the_entropy_of_samples_is_that_of_each_for_itself() {
        let entropy = |rows: &[f32]| Health::of(&[0.0, 1.0], 1, Some((rows, 4))).sample_entropy.unwrap();
        assert!((entropy(&[0.25; 8]) - 1.0).abs() < 1e-12);
        // Each sample has a capsule of its own, and both together use two.
        assert!(entropy(&[1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0]).abs() < 1e-12);
        assert!((entropy(&[0.5, 0.5, 0.0, 0.0, 0.25, 0.25, 0.25, 0.25]) - 0.75).abs() < 1e-12);
    }
}
