//! The probes' metrics, and what can be had without any information.

pub use methods::floor::{constant_floor, r2};

/// The share of rows whose label is among the `k` highest of `classes` logits. Among equal logits the lower class
/// comes first.
pub fn top_k(logits: &[f32], classes: usize, labels: &[u32], k: usize) -> f64 {
    let hits = logits
        .chunks_exact(classes.max(1))
        .zip(labels)
        .filter(|(row, label)| {
            let label = **label as usize;
            let Some(&own) = row.get(label) else { return false };
            let before = row
                .iter()
                .enumerate()
                .filter(|&(class, &other)| other > own || (other == own && class < label) || own.is_nan());
            before.count() < k
        })
        .count();
    hits as f64 / labels.len().max(1) as f64
}

/// The share of the most frequent label: top-1 of always saying the same.
pub fn majority(labels: impl Iterator<Item = u32>) -> f64 {
    let mut counts = std::collections::HashMap::new();
    let mut total = 0_u64;
    for label in labels {
        *counts.entry(label).or_insert(0_u64) += 1;
        total += 1;
    }
    counts.values().copied().max().unwrap_or(0) as f64 / total.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn top_k_counts_ranks_and_breaks_ties_by_class() {
        let logits = [0.1, 0.9, 0.5, /**/ 1.0, 1.0, 0.0, /**/ 3.0, 2.0, 1.0];
        assert_eq!(top_k(&logits, 3, &[1, 1, 2], 1), 1.0 / 3.0);
        assert_eq!(top_k(&logits, 3, &[1, 1, 2], 2), 2.0 / 3.0);
        assert_eq!(top_k(&logits, 3, &[1, 1, 2], 3), 1.0);
        assert_eq!(top_k(&[f32::NAN; 3], 3, &[0], 3), 0.0);
        assert_eq!(majority([1, 2, 2, 2].into_iter()), 0.75);
    }
}
