//! Adam with classic L2 weight decay, one fused sweep over all parameters.
//!
//! ```text
//! g <- g + weight_decay p
//! m <- beta1 m + (1 - beta1) g          v <- beta2 v + (1 - beta2) g^2
//! p <- p - lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
//! ```

use std::ops::Range;

use gpu::View;
use rayon::prelude::*;

use crate::cuda::kernels::{Kernel, KernelFile, Program};
use crate::cuda::storage_view;
use crate::device::Device;
use crate::error::Result;
use crate::flat::WholeMut;
use crate::tensor::DType;

/// The settings of Adam; the defaults are those of all published pre-trainings.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdamConfig {
    /// Learning rate (1e-3).
    pub learning_rate: f64,
    /// Decay of the running mean of gradients (0.9).
    pub beta1: f64,
    /// Decay of the running mean of squared gradients (0.999).
    pub beta2: f64,
    /// Added to the root of the second moment (1e-8).
    pub epsilon: f64,
    /// L2 decay, added to the gradient before the moments (1e-6).
    pub weight_decay: f64,
}

impl Default for AdamConfig {
    fn default() -> Self {
        Self { learning_rate: 1e-3, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 1e-6 }
    }
}

/// The numbers of one update, as the inner loop needs them.
#[derive(Clone, Copy, Debug)]
pub struct AdamStep {
    /// Weight decay.
    pub weight_decay: f32,
    /// beta1 and 1 - beta1.
    pub beta1: (f32, f32),
    /// beta2 and 1 - beta2.
    pub beta2: (f32, f32),
    /// lr / (1 - beta1^t).
    pub step_size: f32,
    /// 1 / sqrt(1 - beta2^t).
    pub root_scale: f32,
    /// eps.
    pub epsilon: f32,
}

/// Elements per task.
const CHUNK: usize = 1 << 14;

impl AdamConfig {
    /// The numbers of update `step`, counted from 1.
    pub fn at(&self, step: u64) -> AdamStep {
        let t = step as f64;
        AdamStep {
            weight_decay: self.weight_decay as f32,
            beta1: (self.beta1 as f32, (1.0 - self.beta1) as f32),
            beta2: (self.beta2 as f32, (1.0 - self.beta2) as f32),
            step_size: (self.learning_rate / (1.0 - self.beta1.powf(t))) as f32,
            root_scale: (1.0 / (1.0 - self.beta2.powf(t)).sqrt()) as f32,
            epsilon: self.epsilon as f32,
        }
    }

    /// Updates these ranges of the flat buffers: values, gradients and both moments. Nothing is recorded, so this is no operation of the tape, and chooses the device itself.
    pub(crate) fn update(
        &self,
        device: &Device,
        step: u64,
        ranges: &[Range<usize>],
        [values, gradients, first, second]: [&mut WholeMut<'_>; 4],
    ) -> Result<()> {
        let numbers = self.at(step);
        match device {
            Device::Cpu(_) => {
                let (values, gradients) = (values.as_mut_slice()?, gradients.as_mut_slice()?);
                let (first, second) = (first.as_mut_slice()?, second.as_mut_slice()?);
                for range in ranges.iter().cloned() {
                    let chunks = values[range.clone()]
                        .par_chunks_mut(CHUNK)
                        .zip(gradients[range.clone()].par_chunks_mut(CHUNK))
                        .zip(first[range.clone()].par_chunks_mut(CHUNK))
                        .zip(second[range].par_chunks_mut(CHUNK));
                    chunks.for_each(|(((p, g), m), v)| crate::cpu::adam(numbers, p, g, m, v));
                }
                Ok(())
            }
            Device::Cuda(cuda) => {
                let (values, gradients) =
                    (storage_view(values.storage())?, storage_view(gradients.storage())?);
                let (first, second) = (storage_view(first.storage())?, storage_view(second.storage())?);
                let AdamStep { weight_decay, beta1, beta2, step_size, root_scale, epsilon } = numbers;
                let total: usize = ranges.iter().map(Range::len).sum();
                let _scope = cuda.context().scope(|| "adam".into(), 10.0 * total as f64, 28.0 * total as f64);
                for range in ranges {
                    let part = |view: View| {
                        view.part(range.start * DType::F32.size(), range.len() * DType::F32.size())
                    };
                    cuda.launch(
                        &Program::new(KernelFile::Elementwise, DType::F32),
                        Kernel::adam,
                        cuda.elementwise(range.len()),
                        &[
                            part(values)?.into(),
                            part(gradients)?.into(),
                            part(first)?.into(),
                            part(second)?.into(),
                            (range.len() as i64).into(),
                            weight_decay.into(),
                            beta1.0.into(),
                            beta1.1.into(),
                            beta2.0.into(),
                            beta2.1.into(),
                            step_size.into(),
                            root_scale.into(),
                            epsilon.into(),
                        ],
                    )?;
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Initialise;
    use crate::parameters::{Layout, State, StoreBuilder};

    #[test]
    fn many_updates_agree_with_the_formula_in_float64() {
        // The published numbers, written out; and others, under which every term matters.
        for (config, [lr, beta1, beta2, epsilon, decay]) in [
            (AdamConfig::default(), [1e-3, 0.9, 0.999, 1e-8, 1e-6]),
            (
                AdamConfig { learning_rate: 0.02, beta1: 0.7, beta2: 0.9, epsilon: 0.05, weight_decay: 0.3 },
                [0.02, 0.7, 0.9, 0.05, 0.3],
            ),
        ] {
            let mut builder = StoreBuilder::new();
            let start = Initialise::Uniform { bound: 1.0 };
            let id = builder.parameter("weight", [5], Layout::Published, start);
            let mut store = builder.build(&Device::cpu(), 3).unwrap();
            let before = store.export(State::Value, id).unwrap();
            let mut p: Vec<f64> = before.iter().map(|&value| f64::from(value)).collect();
            let (mut m, mut v) = (vec![0.0_f64; 5], vec![0.0_f64; 5]);
            for t in 1..=20_i32 {
                let gradient: Vec<f32> =
                    (0..5).map(|i| ((t * (i + 2)) as f32).sin() * 0.1_f32.powi(i)).collect();
                store.import(State::Gradient, id, &gradient).unwrap();
                store.update(&config).unwrap();
                for i in 0..5 {
                    let g = f64::from(gradient[i]) + decay * p[i];
                    m[i] = beta1 * m[i] + (1.0 - beta1) * g;
                    v[i] = beta2 * v[i] + (1.0 - beta2) * g * g;
                    let (mean, square) = (m[i] / (1.0 - beta1.powi(t)), v[i] / (1.0 - beta2.powi(t)));
                    p[i] -= lr * mean / (square.sqrt() + epsilon);
                }
            }
            // What decay adds to gradients of a thousandth or less is a millionth: the moments tell.
            for (state, wanted, tolerance) in
                [(State::Value, &p, 1e-6), (State::FirstMoment, &m, 1e-7), (State::SecondMoment, &v, 1e-7)]
            {
                let found = store.export(state, id).unwrap();
                for (i, (&found, wanted)) in found.iter().zip(wanted).enumerate() {
                    let error = (f64::from(found) - wanted).abs();
                    assert!(error < tolerance, "{state:?} {i}: {found} {wanted}");
                }
            }
            let moved = store.export(State::Value, id).unwrap();
            assert!(before.iter().zip(&moved).all(|(a, b)| (a - b).abs() > 1e-5), "{moved:?}");
        }
    }
}
