//! Do two devices compute the same? Every operation, forward and backward, on random inputs of odd shapes: the CPU,
//! whose gradients are checked by finite differences, is the measure.

mod convolutional;
mod heads;
mod losses;
mod optimisers;
mod transformer;

use random::{Random, Stream};

use crate::device::{Device, Precision};
use crate::error::{Error, Result};
use crate::ops::{self, RunningStatistics};
use crate::parameters::{ParameterStore, StoreBuilder};
use crate::tape::{Tape, Var};
use crate::tensor::{DType, Tensor};

/// How far one tensor of one operation is off.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Agreement {
    /// The operation and its sizes.
    pub operation: String,
    /// `output`, or `gradient of` an input.
    pub tensor: String,
    /// |a - b| / |b|, Euclidean.
    pub error: f64,
    /// What is still right.
    pub bound: f64,
    /// Whether doing it twice gave the same bits.
    pub repeats: bool,
    /// What went wrong, where nothing could be compared.
    pub failure: Option<String>,
}

impl Agreement {
    /// Whether the devices agree.
    pub fn is_right(&self) -> bool {
        self.failure.is_none() && self.repeats && self.error <= self.bound
    }
}

/// What an input is.
#[derive(Clone, Copy, PartialEq)]
enum Role {
    /// In the type of activations.
    Activation,
    /// In the type of values within a convolutional network: f16 where activations are bf16.
    Value,
    /// float32, with gradient.
    Parameter,
    /// float32, without gradient.
    Constant,
}

/// Name, shape, role and range of an input.
type Input = (&'static str, Vec<usize>, Role, (f64, f64));
type Unary = fn(&mut Tape<'_>, &Var) -> Result<Var>;
type Build = Box<dyn Fn(&mut Tape<'_>, &[Var]) -> Result<Var>>;

struct Case {
    name: String,
    inputs: Vec<Input>,
    /// Channels of running statistics.
    channels: usize,
    /// What is still right in bf16.
    bf16_bound: f64,
    build: Build,
}

impl Case {
    fn new(name: impl Into<String>, build: impl Fn(&mut Tape<'_>, &[Var]) -> Result<Var> + 'static) -> Self {
        Self { name: name.into(), inputs: Vec::new(), channels: 0, bf16_bound: 2e-2, build: Box::new(build) }
    }

    fn input(mut self, name: &'static str, shape: &[usize], role: Role) -> Self {
        self.inputs.push((name, shape.to_vec(), role, (-1.0, 1.0)));
        self
    }

    fn positive(mut self, name: &'static str, shape: &[usize], role: Role) -> Self {
        self.inputs.push((name, shape.to_vec(), role, (0.05, 1.0)));
        self
    }

    /// For operations with discrete choices, some of which fall otherwise when values are rounded.
    fn with_bf16_bound(mut self, bound: f64) -> Self {
        self.bf16_bound = bound;
        self
    }

    fn with_channels(mut self, channels: usize) -> Self {
        self.channels = channels;
        self
    }
}

/// Running statistics in a store.
const RUNNING: [&str; 3] = ["mean", "variance", "batches"];

fn running(tape: &Tape<'_>) -> Result<RunningStatistics> {
    let find = |name: &str| {
        tape.store().find_buffer(name).ok_or_else(|| Error::parameter(name, "is not in the store"))
    };
    Ok(RunningStatistics { mean: find(RUNNING[0])?, variance: find(RUNNING[1])?, batches: find(RUNNING[2])? })
}

/// Compares every operation on `device` with the CPU.
pub fn compare(device: &Device) -> Vec<Agreement> {
    let cpu = Device::cpu();
    let mut agreements: Vec<Agreement> =
        cases().iter().flat_map(|case| compare_case(case, device, &cpu)).collect();
    agreements.extend(optimisers::compare(device, &cpu));
    agreements
}

/// Tensors by name.
type Outcome = Vec<(String, Vec<f32>)>;

fn compare_case(case: &Case, device: &Device, cpu: &Device) -> Vec<Agreement> {
    let bf16 = device.precision() == Precision::Mixed;
    let bound = if bf16 { case.bf16_bound } else { 1e-4 };
    agree(&case.name, bound, [cpu, device, device], |device| run(case, device, bf16))
}

/// What `run` computes on the first device is the measure of the second, and the third must repeat the second's bits.
fn agree(
    name: &str,
    bound: f64,
    [measure, device, again]: [&Device; 3],
    run: impl Fn(&Device) -> Result<Outcome>,
) -> Vec<Agreement> {
    let both = run(measure).and_then(|expected| Ok((expected, run(device)?, run(again)?)));
    match both {
        Err(error) => vec![Agreement {
            operation: name.to_owned(),
            tensor: "output".into(),
            error: f64::INFINITY,
            bound,
            repeats: false,
            failure: Some(error.to_string()),
        }],
        Ok((expected, first, second)) => {
            let pairs = expected.into_iter().zip(first).zip(second);
            pairs
                .map(|(((tensor, expected), (_, found)), (_, again))| Agreement {
                    operation: name.to_owned(),
                    tensor,
                    error: relative_error(&found, &expected),
                    bound,
                    repeats: found.iter().zip(&again).all(|(a, b)| a.to_bits() == b.to_bits()),
                    failure: None,
                })
                .collect()
        }
    }
}

/// |a - b| / |b|; infinite where anything is not a number.
pub fn relative_error(a: &[f32], b: &[f32]) -> f64 {
    let square = |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>().sqrt();
    let difference = square(&mut a.iter().zip(b).map(|(a, b)| f64::from(*a) - f64::from(*b)));
    let norm = square(&mut b.iter().map(|&b| f64::from(b)));
    let error = if norm > 0.0 { difference / norm } else { difference };
    if error.is_nan() || a.len() != b.len() { f64::INFINITY } else { error }
}

fn store(device: &Device, channels: usize) -> Result<ParameterStore> {
    let mut builder = StoreBuilder::new();
    builder.buffer(RUNNING[0], [channels.max(1)], 0.0);
    builder.buffer(RUNNING[1], [channels.max(1)], 1.0);
    builder.count(RUNNING[2]);
    builder.build(device, 1)
}

/// The output, the gradients of all inputs and the running statistics; inputs are rounded to bf16 where `bf16`.
fn run(case: &Case, device: &Device, bf16: bool) -> Result<Outcome> {
    let mut store = store(device, case.channels)?;
    let mut outcome = Vec::new();
    {
        let mut tape = Tape::training(&mut store);
        let mut vars = Vec::new();
        for (index, (_, shape, role, (low, high))) in case.inputs.iter().enumerate() {
            let mut random = Random::new(5, Stream::new("agreement"), index as u64);
            let count = shape.iter().product();
            let mut values: Vec<f32> = (0..count).map(|_| random.range(*low, *high) as f32).collect();
            if bf16 {
                values.iter_mut().for_each(|value| *value = half::bf16::from_f32(*value).to_f32());
            }
            let value = tensor(device, shape, &values, *role)?;
            vars.push(if *role == Role::Constant { Var::constant(value) } else { tape.watch(value) });
        }
        let output = (case.build)(&mut tape, &vars)?;
        outcome.push(("output".to_owned(), output.value().to_f32()?));
        let mut random = Random::new(5, Stream::new("agreement-gradient"), 0);
        let seed: Vec<f32> = (0..output.value().len())
            .map(|_| half::bf16::from_f32(random.range(-1.0, 1.0) as f32).to_f32())
            .collect();
        let role = if output.value().dtype() == DType::F32 { Role::Parameter } else { Role::Activation };
        let seed = tensor(device, output.shape().dims(), &seed, role)?;
        tape.backward_from(&output, seed)?;
        for (var, (name, ..)) in vars.iter().zip(&case.inputs) {
            if let Some(gradient) = tape.gradient(var) {
                outcome.push((format!("gradient of {name}"), gradient.to_f32()?));
            }
        }
    }
    if case.channels > 0 {
        for name in &RUNNING[..2] {
            if let Some(id) = store.find_buffer(name) {
                outcome.push((format!("running {name}"), store.buffer_tensor(id)?.to_f32()?));
            }
        }
    }
    Ok(outcome)
}

fn tensor(device: &Device, shape: &[usize], values: &[f32], role: Role) -> Result<Tensor> {
    match (device.activation_dtype(), role) {
        (DType::Bf16, Role::Activation) => {
            let values: Vec<_> = values.iter().map(|&value| half::bf16::from_f32(value)).collect();
            Tensor::from_slice(device, shape, &values)
        }
        (DType::Bf16, Role::Value) => {
            let values: Vec<_> = values.iter().map(|&value| half::f16::from_f32(value)).collect();
            Tensor::from_slice(device, shape, &values)
        }
        _ => Tensor::from_slice(device, shape, values),
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    convolutional::cases(&mut cases);
    capsules(&mut cases);
    losses::cases(&mut cases);
    heads::cases(&mut cases);
    transformer::cases(&mut cases);
    cases
}

fn capsules(cases: &mut Vec<Case>) {
    use Role::{Activation, Constant, Parameter};
    for (batch, lower, upper, pose) in [
        (5, 7, 4, 9),
        (8, 128, 32, 9),
        (3, 64, 5, 16),
        (6, 33, 40, 9),
        (37, 70, 32, 16),
        (2, 3, 1, 4),
        (37, 72, 32, 16),
        (150, 16, 16, 9),
        (2, 300, 16, 16),
    ] {
        let build = |tape: &mut Tape<'_>, i: &[Var]| {
            let (a, u) = ops::self_routing(tape, &i[0], &i[1], &i[2], &i[3], &i[4])?;
            ops::concat(tape, &[&a, &u])
        };
        let case = Case::new(format!("self_routing {batch} x {lower} -> {upper}, pose {pose}"), build)
            .positive("a", &[batch, lower], Activation)
            .input("u", &[batch, lower * pose], Activation)
            .input("W1", &[lower, upper * pose, pose], Parameter)
            .input("W2", &[lower, upper, pose], Parameter)
            .input("b2", &[1, 1, lower, upper], Parameter);
        cases.push(case);
    }
    let build = |tape: &mut Tape<'_>, i: &[Var]| ops::routing_activations(tape, &i[0], &i[1], &i[2], &i[3]);
    cases.push(
        Case::new("routing_activations 9 x 32 -> 55, pose 9", build)
            .positive("a", &[9, 32], Activation)
            .input("u", &[9, 32 * 9], Activation)
            .input("W2", &[32, 55, 9], Parameter)
            .input("b2", &[1, 1, 32, 55], Parameter),
    );
    for (batch, capsules, side, columns, transformed) in [
        (7, 5, 3, 3, true),
        (3, 32, 4, 4, true),
        (4, 3, 3, 3, false),
        (5, 32, 4, 3, true),
        (3, 7, 4, 3, false),
    ] {
        let build = move |tape: &mut Tape<'_>, i: &[Var]| {
            ops::pose_transform(tape, &i[0], side * side, columns, transformed.then(|| i[1].value()))
        };
        let name =
            format!("pose_transform {side}x{side}, norm of {columns} columns, with transform: {transformed}");
        let case = Case::new(name, build).input("poses", &[batch, capsules * side * side], Parameter).input(
            "transform",
            &[batch, side, side],
            Constant,
        );
        cases.push(case);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_agrees_with_itself_bit_for_bit() {
        for agreement in compare(&Device::cpu()) {
            assert!(agreement.is_right() && agreement.error == 0.0, "{agreement:?}");
        }
    }
}
