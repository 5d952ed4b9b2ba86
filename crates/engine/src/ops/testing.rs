//! Gradient checks. An operation is run on random inputs; its output is compared with a float64 reference written
//! independently in the test, and its gradients with central differences of that reference. Then the same is done
//! with thread pools of 1, 2 and 3 threads, which must give the same bits.

use random::{Random, Stream};

use crate::device::Device;
use crate::error::Result;
use crate::ops::RunningStatistics;
use crate::parameters::{ParameterStore, StoreBuilder};
use crate::tape::{Tape, Var};
use crate::tensor::Tensor;

/// Random inputs of an operation.
pub(crate) struct Case {
    pub shapes: Vec<Vec<usize>>,
    pub inputs: Vec<Vec<f32>>,
    /// Which inputs are constants without gradients.
    pub constant: Vec<bool>,
    /// Largest error of values and gradients, relative to the largest magnitude of the tensor compared.
    pub tolerance: f64,
    /// Channels of the running statistics that [`running`] finds.
    pub channels: usize,
}

impl Case {
    /// Inputs of these shapes, uniform in -1..1.
    pub(crate) fn new(shapes: &[&[usize]]) -> Self {
        Self::with(shapes, |_, random| random.range(-1.0, 1.0))
    }

    /// Inputs of these shapes, drawn by `draw(input, random)`.
    pub(crate) fn with(shapes: &[&[usize]], draw: impl Fn(usize, &mut Random) -> f64) -> Self {
        let inputs = shapes
            .iter()
            .enumerate()
            .map(|(index, shape)| {
                let mut random = Random::new(11, Stream::new("gradient-check"), index as u64);
                (0..shape.iter().product()).map(|_| draw(index, &mut random) as f32).collect()
            })
            .collect();
        let shapes: Vec<Vec<usize>> = shapes.iter().map(|shape| shape.to_vec()).collect();
        Self { constant: vec![false; shapes.len()], shapes, inputs, tolerance: 2e-5, channels: 0 }
    }

    /// Adds running statistics for this many channels.
    pub(crate) fn with_channels(mut self, channels: usize) -> Self {
        self.channels = channels;
        self
    }

    /// Makes an input a constant.
    pub(crate) fn constant(mut self, input: usize) -> Self {
        self.constant[input] = true;
        self
    }

    /// Runs an operation and gives its output.
    pub(crate) fn run(&self, op: impl Fn(&mut Tape<'_>, &[Var]) -> Result<Var>) -> Result<Vec<f32>> {
        self.gradients(op).map(|(output, _)| output)
    }

    /// The output, and the gradients of `sum of weights * output` with fixed pseudo-random weights.
    pub(crate) fn gradients(
        &self,
        op: impl Fn(&mut Tape<'_>, &[Var]) -> Result<Var>,
    ) -> Result<(Vec<f32>, Vec<Vec<f32>>)> {
        let mut store = store(self.channels);
        let device = store.device().clone();
        let mut tape = Tape::training(&mut store);
        let mut vars = Vec::new();
        for ((shape, values), constant) in self.shapes.iter().zip(&self.inputs).zip(&self.constant) {
            let value = Tensor::from_slice(&device, shape.as_slice(), values)?;
            vars.push(if *constant { Var::constant(value) } else { tape.watch(value) });
        }
        let output = op(&mut tape, &vars)?;
        let seed: Vec<f32> = weights(output.value().len()).iter().map(|&w| w as f32).collect();
        let seed = Tensor::from_slice(&device, output.shape(), &seed)?;
        tape.backward_from(&output, seed)?;
        let gradients = vars
            .iter()
            .map(|var| tape.gradient(var).map_or(Ok(Vec::new()), Tensor::to_f32))
            .collect::<Result<_>>()?;
        Ok((output.value().to_f32()?, gradients))
    }
}

/// A store without parameters, with running statistics, on a CPU of its own.
pub(crate) fn store(channels: usize) -> ParameterStore {
    let mut builder = StoreBuilder::new();
    builder.buffer("mean", [channels], 0.0);
    builder.buffer("variance", [channels], 1.0);
    builder.count("batches");
    builder.build(&Device::cpu(), 0).unwrap()
}

/// The running statistics of a [`Case::with_channels`].
pub(crate) fn running(tape: &Tape<'_>) -> RunningStatistics {
    let find = |name| tape.store().find_buffer(name).unwrap();
    RunningStatistics { mean: find("mean"), variance: find("variance"), batches: find("batches") }
}

fn weights(len: usize) -> Vec<f64> {
    let mut random = Random::new(12, Stream::new("gradient-check-weights"), 0);
    (0..len).map(|_| f64::from(random.range(-1.0, 1.0) as f32)).collect()
}

/// The whole check; see the module's first lines.
pub(crate) fn check(
    case: &Case,
    op: impl Fn(&mut Tape<'_>, &[Var]) -> Result<Var> + Sync,
    reference: impl Fn(&[Vec<f64>]) -> Vec<f64>,
) {
    let (output, gradients) = case.gradients(&op).unwrap();
    let inputs: Vec<Vec<f64>> =
        case.inputs.iter().map(|i| i.iter().map(|&v| f64::from(v)).collect()).collect();
    let wanted = reference(&inputs);
    compare("output", &output, &wanted, case.tolerance);
    let weights = weights(wanted.len());
    let objective = |inputs: &[Vec<f64>]| -> f64 {
        reference(inputs).iter().zip(&weights).map(|(value, weight)| value * weight).sum()
    };
    for (index, gradient) in gradients.iter().enumerate().filter(|(index, _)| !case.constant[*index]) {
        let mut inputs = inputs.clone();
        // At most about 60 elements of every input, spread over it.
        let stride = (gradient.len() / 60).max(1);
        let (mut found, mut differences) = (Vec::new(), Vec::new());
        for element in (0..gradient.len()).step_by(stride) {
            let step = 1e-5;
            let start = inputs[index][element];
            inputs[index][element] = start + step;
            let above = objective(&inputs);
            inputs[index][element] = start - step;
            let below = objective(&inputs);
            inputs[index][element] = start;
            found.push(gradient[element]);
            differences.push((above - below) / (2.0 * step));
        }
        assert_eq!(gradient.len(), inputs[index].len(), "input {index} got no gradient");
        compare(&format!("gradient of input {index}"), &found, &differences, case.tolerance);
    }
    for threads in [1, 2, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let (again, gradients_again) = pool.install(|| case.gradients(&op).unwrap());
        let bits = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&output), bits(&again), "output with {threads} threads");
        for (first, second) in gradients.iter().zip(&gradients_again) {
            assert_eq!(bits(first), bits(second), "gradient with {threads} threads");
        }
    }
}

fn compare(what: &str, found: &[f32], wanted: &[f64], tolerance: f64) {
    assert_eq!(found.len(), wanted.len(), "{what}: length");
    let scale = wanted.iter().fold(1e-3_f64, |scale, w| scale.max(w.abs()));
    for (index, (f, w)) in found.iter().zip(wanted).enumerate() {
        let error = (f64::from(*f) - w).abs() / scale;
        assert!(error < tolerance, "{what}: element {index} is {f}, expected {w} (error {error:.1e})");
    }
}
