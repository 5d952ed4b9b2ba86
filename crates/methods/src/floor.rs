//! R2 as published, and what it is without information: the floor that every R2 is read against.

/// A score counts as its floor up to this much above it. Probes on untrained networks and on noise were found up to
/// 0.02 above theirs.
pub const FLOOR_MARGIN: f64 = 0.03;

/// The published R2: `1 - sum (y - yhat)^2 / sum (y - mean)^2` with sums over all samples and all components, and one
/// single mean over all of them (not one for each component).
///
/// A constant prediction therefore scores above 0 where components have different means, see [`constant_floor`].
/// `None` for targets that are all the same, up to rounding.
pub fn r2(predictions: &[f32], targets: &[f32]) -> Option<f64> {
    debug_assert_eq!(predictions.len(), targets.len());
    let mean = targets.iter().map(|&y| f64::from(y)).sum::<f64>() / targets.len().max(1) as f64;
    let total: f64 = targets.iter().map(|&y| (f64::from(y) - mean).powi(2)).sum();
    let residual: f64 =
        predictions.iter().zip(targets).map(|(&p, &y)| (f64::from(y) - f64::from(p)).powi(2)).sum();
    let squares: f64 = targets.iter().map(|&y| f64::from(y).powi(2)).sum();
    has_spread(total, squares).then(|| 1.0 - residual / total)
}

/// Whether targets differ by more than rounding: the sum of their squared distances from their mean beside that of their
/// squares. A millionth of their size is none.
pub(crate) fn has_spread(total: f64, squares: f64) -> bool {
    total > 1e-12 * squares
}

/// The R2 of the best constant vector: what a probe reaches that learns nothing from its input. About 0.23 for
/// relative quaternions, whose real part has another mean than the rest; 0 for translations and colours.
pub fn constant_floor(targets: &[f32], width: usize) -> Option<f64> {
    let rows = targets.len() / width.max(1);
    let mut means = vec![0.0_f64; width];
    for row in targets.chunks_exact(width.max(1)) {
        for (mean, &value) in means.iter_mut().zip(row) {
            *mean += f64::from(value) / rows as f64;
        }
    }
    let constant: Vec<f32> = (0..rows).flat_map(|_| means.iter().map(|&mean| mean as f32)).collect();
    // Below 0 only by rounding.
    Some(r2(&constant, targets)?.max(0.0))
}

/// Whether `value` is no more than what is reached without information, whose score is `floor`.
pub fn is_at_floor(value: f64, floor: f64) -> bool {
    // NaN is no score.
    value.is_nan() || value <= floor + FLOOR_MARGIN
}

#[cfg(test)]
mod tests {
    use super::*;
    use random::{Random, Stream};

    #[test]
    fn r2_uses_one_mean_over_everything() {
        // By hand: targets 0 1 2 5, mean 2, total 4 + 1 + 0 + 9 = 14; residual 1 + 0 + 1 + 4 = 6.
        let value = r2(&[1.0, 1.0, 1.0, 3.0], &[0.0, 1.0, 2.0, 5.0]).unwrap();
        assert!((value - (1.0 - 6.0 / 14.0)).abs() < 1e-12);
        assert_eq!(r2(&[1.0, 2.0], &[3.0, 3.0]), None);
        assert_eq!(r2(&[0.0; 3], &[0.1; 3]), None);
        assert_eq!(r2(&[1.0, 2.0], &[0.0, 0.0]), None);
        let small = [300.0, 300.001];
        assert_eq!((r2(&small, &small), r2(&small, &[300.0, 300.000_03])), (Some(1.0), None));
        // Two components with means 0 and 10: the constant (0, 10) explains nearly all.
        let targets = [1.0, 10.0, -1.0, 10.0];
        let floor = constant_floor(&targets, 2).unwrap();
        assert!((floor - (1.0 - 2.0 / 102.0)).abs() < 1e-12, "{floor}");
    }

    #[test]
    fn relative_quaternions_have_the_published_floor() {
        let mut random = Random::new(5, Stream::new("floor"), 0);
        let half = std::f64::consts::FRAC_PI_2;
        let mut view = || {
            let angles = [0; 3].map(|_| random.range(-half, half));
            pose::ViewPose::rigid(pose::TaitBryan::published_precision(angles), [0.0; 3])
        };
        let targets: Vec<f32> = (0..50_000)
            .flat_map(|_| pose::ViewPose::relative_quaternion(&view(), &view()).to_f32())
            .collect();
        let floor = constant_floor(&targets, 4).unwrap();
        assert!((floor - 0.23).abs() < 0.01, "{floor}");
    }

    #[test]
    fn a_little_above_the_floor_is_the_floor() {
        assert!([0.1, 0.24, 0.26, f64::NAN].iter().all(|&value| is_at_floor(value, 0.24)));
        assert!(!is_at_floor(0.275, 0.24));
    }
}
