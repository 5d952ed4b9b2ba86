//! How far two numbers may lie apart.

use engine::Precision;

/// One tensor compared.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Comparison {
    /// `stat`, `grad`, `buffer_after` or `param_after_adam`.
    pub group: &'static str,
    /// Published name.
    pub name: String,
    /// The error, in the group's measure.
    pub error: f64,
    /// What the error may be.
    pub bound: f64,
    /// Whether it is.
    pub within: bool,
}

/// Everything compared.
#[derive(Clone, Debug, serde::Serialize)]
pub struct ParityReport {
    /// The method.
    pub method: &'static str,
    /// Where it ran.
    pub device: String,
    /// `f32` or `bf16`.
    pub precision: &'static str,
    /// All comparisons.
    pub comparisons: Vec<Comparison>,
}

impl ParityReport {
    /// Whether every error is within its bound.
    pub fn within(&self) -> bool {
        self.comparisons.iter().all(|comparison| comparison.within)
    }

    /// The largest error of a group, relative to its bound.
    pub fn worst(&self, group: &str) -> Option<&Comparison> {
        let ratio = |comparison: &Comparison| comparison.error / comparison.bound;
        let of_group = self.comparisons.iter().filter(|comparison| comparison.group == group);
        of_group.max_by(|a, b| ratio(a).total_cmp(&ratio(b)))
    }
}

fn comparison(group: &'static str, name: &str, error: f64, bound: f64) -> Comparison {
    // A NaN is never within.
    Comparison { group, name: name.into(), error, bound, within: error <= bound }
}

/// The bounds of a precision.
pub(super) struct Bounds {
    loss: f64,
    term: f64,
    /// Relative error of each gradient; `None`: only the direction of all of them together counts.
    gradient: Option<f64>,
    cosine: f64,
    buffer: f64,
}

impl Bounds {
    pub(super) fn of(precision: Precision) -> Self {
        match precision {
            Precision::F32 => {
                Self { loss: 1e-5, term: 1e-5, gradient: Some(1e-4), cosine: 0.999_999, buffer: 1e-5 }
            }
            Precision::Mixed => Self { loss: 5e-3, term: 3e-2, gradient: None, cosine: 0.85, buffer: 3e-2 },
        }
    }

    /// A loss or a term: |difference| / max(|reference|, 0.1).
    pub(super) fn stat(&self, name: &str, found: f32, reference: f32) -> Comparison {
        let (found, reference) = (f64::from(found), f64::from(reference));
        let error = (found - reference).abs() / reference.abs().max(0.1);
        comparison("stat", name, error, if name == "loss" { self.loss } else { self.term })
    }

    /// Gradients: relative L2 error each, but a tensor whose norm is below 1e-7 of the norm of all together is
    /// compared with that norm; and 1 - cosine of all together.
    pub(super) fn gradients(&self, all: &[(&str, Vec<f32>, &Vec<f32>)]) -> Vec<Comparison> {
        let square = |values: &[f32]| values.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>();
        let total = all.iter().map(|(_, _, reference)| square(reference)).sum::<f64>().sqrt();
        let mut comparisons = Vec::new();
        let (mut product, mut found_square) = (0.0, 0.0);
        for (name, found, reference) in all {
            let difference: f64 =
                found.iter().zip(*reference).map(|(f, r)| (f64::from(*f) - f64::from(*r)).powi(2)).sum();
            let norm = square(reference).sqrt();
            product += found.iter().zip(*reference).map(|(f, r)| f64::from(*f) * f64::from(*r)).sum::<f64>();
            found_square += square(found);
            let comparison = match self.gradient {
                _ if found.len() != reference.len() => comparison("grad", name, f64::INFINITY, 0.0),
                None => comparison("grad", name, difference.sqrt() / norm.max(1e-7 * total), f64::MAX),
                Some(_) if norm < 1e-7 * total => comparison("grad", name, difference.sqrt() / total, 1e-5),
                Some(bound) => comparison("grad", name, difference.sqrt() / norm, bound),
            };
            comparisons.push(comparison);
        }
        if !all.is_empty() {
            let cosine = product / (found_square.sqrt() * total);
            comparisons.push(comparison("grad", "(1 - cosine of all)", 1.0 - cosine, 1.0 - self.cosine));
        }
        comparisons
    }

    /// Running statistics: largest |difference| / max(|reference|, 1).
    pub(super) fn buffer(&self, name: &str, found: &[f32], reference: &[f32]) -> Comparison {
        let scaled = |(f, r): (&f32, &f32)| f64::from((f - r).abs()) / f64::from(r.abs()).max(1.0);
        comparison("buffer_after", name, largest(found, reference, scaled), self.buffer)
    }

    /// Updated parameters: largest |difference| where |gradient| > 1e-6.
    pub(super) fn adam(&self, name: &str, found: &[f32], reference: &[f32], gradient: &[f32]) -> Comparison {
        let pairs = found.iter().zip(reference).zip(gradient).filter(|(_, gradient)| gradient.abs() > 1e-6);
        let error = pairs.map(|((f, r), _)| f64::from((f - r).abs())).fold(0.0, f64::max);
        comparison("param_after_adam", name, error, 1e-6)
    }
}

fn largest(found: &[f32], reference: &[f32], error: impl Fn((&f32, &f32)) -> f64) -> f64 {
    if found.len() != reference.len() {
        return f64::INFINITY;
    }
    let worse = |a: f64, b: f64| if b.is_nan() || b > a { b } else { a };
    found.iter().zip(reference).map(error).fold(0.0, worse)
}
