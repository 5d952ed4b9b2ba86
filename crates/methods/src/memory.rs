//! How large a batch a device can hold: two small steps are measured, and what they need grows in a straight line.

use engine::ops::Images;
use engine::{AdamConfig, Device, Result};
use pose::ViewPose;

use crate::batch::{PairBatch, PairTargets};
use crate::config::MethodConfig;
use crate::step::{Step, StepOptions};

/// Pairs of the two steps that are measured.
const SMALL: [usize; 2] = [8, 16];

/// The largest number of pairs whose training step needs at most `available` bytes of `device`, in all; 0 where not
/// even the small steps fit.
pub fn largest_batch(config: &MethodConfig, device: &Device, available: usize) -> Result<usize> {
    let mut peaks = [0.0; 2];
    for (peak, pairs) in peaks.iter_mut().zip(SMALL) {
        let mut step = Step::new(config, device, 1, StepOptions::default())?;
        let batch = plain_batch(config, device, pairs)?;
        step.step(&batch, &AdamConfig::default())?;
        device.reset_peak();
        step.step(&batch, &AdamConfig::default())?;
        *peak = device.memory().peak as f64;
    }
    let per_pair = (peaks[1] - peaks[0]) / (SMALL[1] - SMALL[0]) as f64;
    let fixed = peaks[0] - per_pair * SMALL[0] as f64;
    // Memory comes in whole segments, so not all of it can be used.
    let pairs = (0.97 * available as f64 - fixed) / per_pair.max(1.0);
    Ok(if pairs.is_finite() && pairs > 0.0 { pairs as usize } else { 0 })
}

/// Grey images, no motion.
pub(crate) fn plain_batch(config: &MethodConfig, device: &Device, pairs: usize) -> Result<PairBatch> {
    let size = config.image_size;
    let bytes: Vec<u8> = (0..pairs * size * size * 3).map(|i| (i % 251) as u8).collect();
    let view = || Images::from_bytes(device, [pairs, size, size], &bytes, [0.5; 3], [0.25; 3]);
    let poses = vec![[0; 2].map(|_| ViewPose::published_precision([0.1, 0.2, 0.3], [0.0; 3])); pairs];
    let labels = vec![0; pairs];
    let targets = PairTargets::from_poses(device, config.transform, &poses)?.with_labels(device, &labels)?;
    Ok(PairBatch { views: [view()?, view()?], targets, whole: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::MethodName;

    #[test]
    fn a_batch_of_the_found_size_fits_and_twice_as_many_pairs_do_not() {
        let published = MethodConfig::published(MethodName::EQUICAPS).unwrap();
        let mut config = MethodConfig { image_size: 32, ..published };
        (config.network.width, config.network.capsules) = (8, 2);
        let device = Device::cpu();
        let available = 64 << 20;
        let largest = largest_batch(&config, &device, available).unwrap();
        let peak = |pairs: usize| {
            let device = Device::cpu();
            let mut step = Step::new(&config, &device, 1, StepOptions::default()).unwrap();
            let batch = plain_batch(&config, &device, pairs).unwrap();
            step.step(&batch, &AdamConfig::default()).unwrap();
            device.memory().peak
        };
        assert!(largest > 16, "{largest}");
        // The CPU's pool rounds sizes up by at most an eighth.
        assert!(peak(largest) <= available * 9 / 8, "{largest} pairs need {}", peak(largest));
        assert!(peak(2 * largest) > available);
        assert_eq!(largest_batch(&config, &device, 1).unwrap(), 0);
    }
}
