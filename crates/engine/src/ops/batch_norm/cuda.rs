//! Batch norm on the GPU: one pass for the statistics, one that normalises, adds the residual and applies ReLU; one
//! backward pass for the sums and one for the gradient. Sums have a fixed order for a given device.

mod backward;

use gpu::{Argument, Launch, View};

use super::{BatchNorm, EPSILON, Form, Layer, MOMENTUM, RunningStatistics};
use crate::collective::{Memory, Sum};
use crate::cuda::kernels::{Kernel, KernelFile, Program, vector};
use crate::cuda::{CudaDevice, view, view_mut};
use crate::error::Result;
use crate::ops::operation::{Cuda, Fixed, Operation, To};
use crate::tape::{Tape, Var};
use crate::tensor::{DType, Tensor};

use backward::{Mask, backward, backward_both};
pub(crate) use backward::{On, coefficients_of, finish_backward};

/// What backward needs.
pub(super) struct Saved {
    layer: Layer,
    /// The residual's own batch norm.
    shortcut: Option<Layer>,
    mask: Mask,
}

impl Operation<CudaDevice, Fixed<6>> for BatchNorm {
    type Saved = Saved;

    fn forward(
        &self,
        cuda: &mut Cuda,
        [x, gamma, beta, residual, gamma_s, beta_s]: [&Var; 6],
        y: &mut Tensor,
    ) -> Result<Saved> {
        let mut layer = |x: &Tensor, affine: [&Var; 2], running: RunningStatistics| {
            let affine = affine.map(Var::value);
            Layer::new(cuda, x, affine, running, STATISTICS, |cuda, statistics| {
                let on = cuda.on();
                compute_statistics(cuda.tape, on, x, affine, running, statistics)
            })
        };
        let residual = residual.present();
        let shortcut = match (residual, self.shortcut) {
            (Some(residual), Some(running)) => Some(layer(residual, [gamma_s, beta_s], running)?),
            _ => None,
        };
        let x = x.value();
        let layer = layer(x, [gamma, beta], self.running)?;
        let both = matches!(self.form, Form::Both | Form::Bordered) && cuda.tape.is_training();
        let rounded = x.dtype().of_gradient();
        let mut twin =
            (both && x.dtype() == DType::F16).then(|| cuda.empty(y.shape(), rounded)).transpose()?;
        let outputs =
            if y.dtype() == x.dtype() { [Some(&mut *y), twin.as_mut()] } else { [None, Some(&mut *y)] };
        let added = residual.map(|residual| (residual, shortcut.as_ref().map(|own| &own.statistics)));
        forward(cuda, &layer, added, self.relu, self.form == Form::Bordered, outputs)?;
        // The ReLU's mask is the same in both types; f16 is for the next operation only.
        let mask = match (self.relu, residual) {
            (false, _) => Mask::None,
            (true, None) => Mask::Input,
            (true, Some(_)) => Mask::Output(twin.as_ref().unwrap_or(y).clone()),
        };
        cuda.set_twin(twin);
        Ok(Saved { layer, shortcut, mask })
    }

    fn backward(
        &self,
        cuda: &mut Cuda,
        Saved { layer, shortcut, mask }: &Saved,
        mut dy: Tensor,
        [dx, dgamma, dbeta, ds, dgamma_s, dbeta_s]: To<6>,
    ) -> Result<()> {
        if matches!(mask, Mask::Output(_)) {
            dy.make_unique(cuda.device)?;
        }
        let (targets, targets_s) = ([dx, dgamma, dbeta], [ds, dgamma_s, dbeta_s]);
        match (shortcut, mask) {
            (Some(shortcut), Mask::Output(y)) if targets[0].is_some() && targets_s[0].is_some() => {
                backward_both(self.on(cuda), [layer, shortcut], y, &mut dy, [targets, targets_s])?;
            }
            _ => {
                let on = self.on(cuda);
                backward(on, layer, (mask, self.form == Form::Bordered), &mut dy, targets)?;
                if let Some(shortcut) = shortcut {
                    backward(on, shortcut, (&Mask::None, false), &mut dy, targets_s)?;
                }
            }
        }
        cuda.pass(dy);
        Ok(())
    }

    /// The gradient of a residual without batch norm is g.
    fn passes(&self, input: usize) -> bool {
        input == 3 && self.shortcut.is_none()
    }
}

impl BatchNorm {
    /// Where backward is computed, with whom, and rows of the whole batch for one of this rank's.
    fn on<'a>(&'a self, cuda: &Cuda<'a, '_>) -> On<'a> {
        On { cuda: cuda.on(), ranks: &*self.ranks, rows: cuda.tape.rows_of_all() }
    }
}

/// How the threads of a kernel share rows and channels.
struct Plan {
    program: Program,
    rows: usize,
    channels: usize,
    /// Groups of channels side by side in a block.
    columns: usize,
    multiprocessors: usize,
}

const THREADS: usize = 256;

impl Plan {
    fn new(cuda: &CudaDevice, dtype: DType, rows: usize, channels: usize) -> Self {
        let columns = (channels / vector(channels)).min(THREADS);
        let program = Program::with_channels(KernelFile::BatchNorm, dtype, channels);
        Self { program, rows, channels, columns, multiprocessors: cuda.multiprocessors() }
    }

    /// Blocks over `rows`, at most `per_multiprocessor` for each.
    fn blocks(&self, rows: usize, per_multiprocessor: usize) -> usize {
        rows.div_ceil(THREADS / self.columns).min(self.multiprocessors * per_multiprocessor).max(1)
    }

    fn launch(&self, blocks: usize) -> Launch {
        let groups = self.channels / vector(self.channels);
        Launch::grid([blocks, groups.div_ceil(self.columns), 1], THREADS)
    }

    fn per_channel(&self) -> Launch {
        Launch::linear(self.channels.div_ceil(32), 1024)
    }
}

/// Rows of `statistics`: mean, 1 / sqrt(var + eps), and y = x scale + shift.
pub(crate) const STATISTICS: usize = 4;

pub(crate) fn rows_of(statistics: View, channels: usize) -> Result<[View; STATISTICS]> {
    let row = |index: usize| statistics.part(index * channels * 4, channels * 4);
    Ok([row(0)?, row(1)?, row(2)?, row(3)?])
}

/// Writes the output from `x` and its statistics: as values, in the type of gradients, or both. A residual may have
/// statistics of its own.
fn forward(
    cuda: &CudaDevice,
    Layer { x, statistics, .. }: &Layer,
    residual: Option<(&Tensor, Option<&Tensor>)>,
    relu: bool,
    border: bool,
    [value, rounded]: [Option<&mut Tensor>; 2],
) -> Result<()> {
    let channels = statistics.dims()[1];
    let plan = Plan::new(cuda, x.dtype(), x.len() / channels.max(1), channels);
    let [_, _, scale, shift] = rows_of(view(statistics)?, channels)?;
    let (mut residual_scale, mut residual_shift) = (None, None);
    if let Some((_, Some(own))) = residual {
        let [_, _, scale, shift] = rows_of(view(own)?, channels)?;
        (residual_scale, residual_shift) = (Some(scale), Some(shift));
    }
    let written = usize::from(value.is_some()) + usize::from(rounded.is_some());
    let passes = (1 + usize::from(residual.is_some()) + written) as f64;
    let bytes = passes * (x.len() * x.dtype().size()) as f64;
    let _scope = cuda.context().scope(|| "batch_norm normalise".into(), 4.0 * x.len() as f64, bytes);
    let rows = value.as_deref().or(rounded.as_deref()).map_or(0, Tensor::len) / channels.max(1);
    let mut arguments = vec![
        view(x)?.into(),
        scale.into(),
        shift.into(),
        residual.map(|(residual, _)| view(residual)).transpose()?.into(),
        residual_scale.into(),
        residual_shift.into(),
        value.map(view_mut).transpose()?.into(),
        rounded.map(view_mut).transpose()?.into(),
        rows.into(),
        channels.into(),
        plan.columns.into(),
        i32::from(relu).into(),
    ];
    arguments.extend(layout(x, border, 1));
    cuda.launch(&plan.program, Kernel::apply, plan.launch(plan.blocks(rows, 8)), &arguments)
}

/// Computes the statistics of `x` (in training; else takes the running ones), [`STATISTICS`] rows.
pub(crate) fn compute_statistics(
    tape: &mut Tape<'_>,
    cuda: &CudaDevice,
    x: &Tensor,
    [gamma, beta]: [&Tensor; 2],
    running: RunningStatistics,
    statistics: &mut Tensor,
) -> Result<()> {
    let channels = gamma.len();
    let plan = Plan::new(cuda, x.dtype(), x.len() / channels.max(1), channels);
    let [mean, inverse, scale, shift] = rows_of(view_mut(statistics)?, channels)?;
    let (gamma, beta) = (view(gamma)?, view(beta)?);
    if !tape.is_training() {
        let arguments = [
            view(tape.buffer(running.mean)?)?.into(),
            view(tape.buffer(running.variance)?)?.into(),
            gamma.into(),
            beta.into(),
            EPSILON.into(),
            channels.into(),
            scale.into(),
            shift.into(),
        ];
        return cuda.launch(
            &plan.program,
            Kernel::from_running,
            Launch::linear(channels.div_ceil(256), 256),
            &arguments,
        );
    }
    let bytes = (x.len() * x.dtype().size()) as f64;
    let _scope = cuda.context().scope(|| "batch_norm statistics".into(), 3.0 * x.len() as f64, bytes);
    let blocks = plan.blocks(plan.rows, 4);
    let partial = cuda.context().allocate(blocks * 2 * channels * 4)?;
    let from = view(x)?;
    let arguments = [from.into(), (&partial).into(), plan.rows.into(), channels.into(), plan.columns.into()];
    cuda.launch(&plan.program, Kernel::statistics, plan.launch(blocks), &arguments)?;
    let running_mean = view_mut(tape.buffer_mut(running.mean)?)?;
    let running_variance = view_mut(tape.buffer_mut(running.variance)?)?;
    tape.increment(running.batches);
    // What both ways to the statistics end with.
    let results: [Argument; 10] = [
        EPSILON.into(),
        MOMENTUM.into(),
        gamma.into(),
        beta.into(),
        running_mean.into(),
        running_variance.into(),
        mean.into(),
        inverse.into(),
        scale.into(),
        shift.into(),
    ];
    let ranks = tape.collective();
    if ranks.is_shared() {
        let sums = cuda.context().allocate(2 * channels * 8)?;
        let arguments = [
            (&partial).into(),
            blocks.into(),
            from.into(),
            plan.rows.into(),
            channels.into(),
            running_mean.into(),
            (&sums).into(),
        ];
        cuda.launch(&plan.program, Kernel::rank_moments, plan.per_channel(), &arguments)?;
        ranks.all_reduce_sum(Sum::F64, Memory::Device(sums.view().part(0, 2 * channels * 8)?))?;
        let first = [(&sums).into(), tape.whole_rows(plan.rows).into(), channels.into()];
        let launch = Launch::linear(channels.div_ceil(256), 256);
        return cuda.launch(&plan.program, Kernel::finish_ranks, launch, &[&first[..], &results].concat());
    }
    let first = [(&partial).into(), blocks.into(), from.into(), plan.rows.into(), channels.into()];
    let arguments = [&first[..], &results].concat();
    cuda.launch(&plan.program, Kernel::finish_statistics, plan.per_channel(), &arguments)
}

/// The numbers by which a kernel divides by `number` (at least 1, below 2^31): see `Divisor` in the kernels.
fn divisor(number: usize) -> [Argument; 2] {
    let number = number.clamp(1, (1 << 31) - 1) as u64;
    let shift = (number - 1).checked_ilog2().map_or(0, |log| log + 1);
    let multiplier = ((1u64 << 32) * ((1u64 << shift) - number)) / number + 1;
    [Argument::I32((multiplier as u32).cast_signed()), Argument::I32(shift.cast_signed())]
}

/// How a kernel finds the rows of a map (n, height, width, channels) in one with a border: whether there is one, height
/// and width, and how to divide by them, each larger by `more`.
fn layout(x: &Tensor, border: bool, more: usize) -> [Argument; 7] {
    let (height, width) = match *x.dims() {
        [_, height, width, _] => (height, width),
        _ => (1, 1),
    };
    let ([a, b], [c, d]) = (divisor(height + more), divisor(width + more));
    [i32::from(border).into(), height.into(), width.into(), a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn division_by_multiplication_is_exact() {
        for number in (1..300).chain([1000, 4096, 65_537, (1 << 31) - 1]) {
            let [Argument::I32(multiplier), Argument::I32(shift)] = divisor(number) else { panic!() };
            let mut n = 0u64;
            while n < 1 << 31 {
                let high = (n * u64::from(multiplier.cast_unsigned())) >> 32;
                assert_eq!((high + n) >> shift, n / number as u64, "{n} / {number}");
                n += 1 + n / 97;
            }
        }
    }
}
