//! How a parameter starts: the published initialisers, drawn by (seed, parameter name), so that a parameter's start
//! does not depend on which others exist.

use random::{Random, Stream, fnv1a};
use rayon::prelude::*;

/// An initial distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Initialise {
    /// All the same.
    Constant(f32),
    /// Normal around 0.
    Normal {
        /// Standard deviation.
        std: f64,
    },
    /// Uniform in `[-bound, bound)`.
    Uniform {
        /// Half width.
        bound: f64,
    },
    /// Normal around 0, redrawn until it lies within `[-cut, cut]`.
    TruncatedNormal {
        /// Standard deviation.
        std: f64,
        /// Largest absolute value.
        cut: f64,
    },
}

const STREAM: Stream = Stream::new("parameters");

/// Elements per independent sequence; fixed, as it is part of what a seed means.
const CHUNK: usize = 4096;

impl Initialise {
    /// The default of linear layers and convolutions: uniform in +-1/sqrt(fan_in).
    pub fn default_for(fan_in: usize) -> Self {
        Self::Uniform { bound: 1.0 / (fan_in as f64).sqrt() }
    }

    /// Kaiming-normal for ReLU: standard deviation sqrt(2 / fan).
    pub fn kaiming_normal(fan: usize) -> Self {
        Self::Normal { std: (2.0 / fan as f64).sqrt() }
    }

    /// `len` values for the parameter `name`, in the published (row-major) order.
    pub fn values(self, seed: u64, name: &str, len: usize) -> Vec<f32> {
        let mut values = vec![0.0; len];
        let key = fnv1a(name.as_bytes());
        values.par_chunks_mut(CHUNK).enumerate().for_each(|(chunk, values)| {
            let mut random = Random::new(seed, STREAM, key.wrapping_add(chunk as u64));
            for value in values {
                *value = match self {
                    Self::Constant(constant) => constant,
                    Self::Normal { std } => (random.normal() * std) as f32,
                    Self::Uniform { bound } => random.range(-bound, bound) as f32,
                    Self::TruncatedNormal { std, cut } => loop {
                        let draw = random.normal() * std;
                        if draw.abs() <= cut {
                            break draw as f32;
                        }
                    },
                };
            }
        });
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_have_their_spread() {
        let spread = |initialise: Initialise| {
            let values = initialise.values(5, "layer.weight", 40_000);
            let square: f64 = values.iter().map(|&v| f64::from(v) * f64::from(v)).sum();
            (square / values.len() as f64).sqrt()
        };
        assert!((spread(Initialise::kaiming_normal(200)) - 0.1).abs() < 2e-3);
        assert!((spread(Initialise::default_for(100)) - 0.1 / 3.0_f64.sqrt()).abs() < 1e-3);
        assert_eq!(spread(Initialise::Constant(0.0)), 0.0);
        let cut = Initialise::TruncatedNormal { std: 1.0, cut: 0.5 }.values(1, "x", 1000);
        assert!(cut.iter().all(|v| v.abs() <= 0.5));
    }

    #[test]
    fn values_depend_on_seed_and_name_only() {
        let normal = Initialise::Normal { std: 1.0 };
        assert_eq!(normal.values(1, "a", 5000), normal.values(1, "a", 5000));
        assert_eq!(normal.values(1, "a", 5000)[..100], normal.values(1, "a", 100)[..]);
        assert_ne!(normal.values(1, "a", 10), normal.values(2, "a", 10));
        assert_ne!(normal.values(1, "a", 10), normal.values(1, "b", 10));
    }
}
