//! How large a network may be: bounds that no experiment needs to exceed, so that a slip of the finger is a sentence and
//! not an overflow, and the least memory that a step takes.

use crate::config::{BackboneName, MethodConfig};

/// Largest side of an image in pixels, as large as images are rendered and decoded.
pub const LARGEST_IMAGE: usize = 8192;
/// Most objects in a step.
pub const LARGEST_BATCH: usize = 1 << 20;
const LARGEST_WIDTH: usize = 4096;
const MOST_CAPSULES: usize = 4096;
const LARGEST_LAYER: usize = 1 << 16;
const MOST_LAYERS: usize = 64;

impl MethodConfig {
    /// What is wrong with the sizes, by the names of their settings, if anything is.
    pub fn size_problem(&self) -> Option<String> {
        let multiple = if self.backbone == BackboneName::VitTiny { 16 } else { 32 };
        let size = self.image_size;
        if !(32..=LARGEST_IMAGE).contains(&size) || !size.is_multiple_of(multiple) {
            return Some(format!(
                "image_size is {size}, but must be a multiple of {multiple} between 32 and {LARGEST_IMAGE}"
            ));
        }
        self.too_large()
    }

    /// What is larger than makes sense, if anything is.
    pub(crate) fn too_large(&self) -> Option<String> {
        let network = &self.network;
        let bounded = [
            ("image_size", self.image_size, LARGEST_IMAGE),
            ("batch", self.batch, LARGEST_BATCH),
            ("network.width", network.width, LARGEST_WIDTH),
            ("network.capsules", network.capsules, MOST_CAPSULES),
            ("network.predictor_layers", network.predictor_layers, MOST_LAYERS),
        ];
        let widths =
            network.projector.iter().map(|&width| ("a width of network.projector", width, LARGEST_LAYER));
        let too_large = bounded.into_iter().chain(widths).find(|(_, value, most)| value > most);
        too_large.map(|(name, value, most)| format!("{name} is {value}, but must be at most {most}"))
    }

    /// Bytes of activations that a training step holds at least, in all: those of the backbone's widest maps of both
    /// views, in float32.
    pub fn least_step_bytes(&self) -> u64 {
        let side = self.image_size as u64;
        let numbers = match self.backbone {
            // The first convolution's output, at half the side.
            BackboneName::ResNet18 => (side / 2).pow(2) * self.network.width as u64,
            // What each block hands to the next.
            BackboneName::VitTiny => {
                let vit = &self.network.vit;
                (side / vit.patch.max(1) as u64).pow(2) * (vit.width * vit.depth) as u64
            }
        };
        numbers.saturating_mul(4 * 2).saturating_mul(self.batch as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::MethodName;

    #[test]
    fn sizes_are_bounded_and_the_bound_is_said() {
        let config = MethodConfig::published(MethodName::EQUICAPS).unwrap();
        assert_eq!(config.size_problem(), None);
        let with = |change: &dyn Fn(&mut MethodConfig)| {
            let mut config = config.clone();
            change(&mut config);
            config.size_problem().unwrap_or_default()
        };
        assert_eq!(
            with(&|c| c.image_size = 1 << 32),
            "image_size is 4294967296, but must be a multiple of 32 between 32 and 8192"
        );
        assert_eq!(
            with(&|c| c.network.width = 8_000_000),
            "network.width is 8000000, but must be at most 4096"
        );
        assert!(with(&|c| c.network.capsules = usize::MAX).contains("network.capsules"));
        assert!(with(&|c| c.network.projector[1] = 1 << 40).contains("network.projector is 1099511627776"));
        assert!(with(&|c| c.network.predictor_layers = 1 << 40).contains("predictor_layers"));
        assert!(with(&|c| c.batch = 1 << 40).contains("batch"));
        // The largest of everything is still a number.
        let mut largest = config.clone();
        (largest.image_size, largest.batch, largest.network.width) = (8192, 1 << 20, 4096);
        assert!(largest.size_problem().is_none() && largest.least_step_bytes() < u64::MAX);
    }

    #[test]
    fn the_least_memory_is_less_than_what_a_step_takes() {
        use crate::step::{Step, StepOptions};
        use engine::{AdamConfig, Device};
        for backbone in [BackboneName::ResNet18, BackboneName::VitTiny] {
            let published = MethodConfig::published(MethodName::EQUICAPS).unwrap();
            let mut config = MethodConfig { backbone, image_size: 32, batch: 8, ..published };
            (config.network.width, config.network.capsules) = (8, 2);
            let device = Device::cpu();
            let mut step = Step::new(&config, &device, 1, StepOptions::default()).unwrap();
            let before = device.memory().in_use as u64;
            let batch = crate::memory::plain_batch(&config, &device, 8).unwrap();
            step.step(&batch, &AdamConfig::default()).unwrap();
            let taken = device.memory().peak as u64 - before;
            assert!(config.least_step_bytes() < taken, "{backbone}: {taken}");
        }
    }
}
