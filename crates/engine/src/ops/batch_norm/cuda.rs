//! Batch norm on the GPU: one pass for the statistics, one that normalises, adds the residual and applies ReLU; one
//! backward pass for the sums and one for the gradient. Sums have a fixed order for a given device.

use gpu::{Argument, Buffer, Launch, View};

use super::{EPSILON, MOMENTUM, RunningStatistics};
use crate::cuda::kernels::{self, Program, vector};
use crate::cuda::{CudaDevice, view, view_mut};
use crate::error::Result;
use crate::tape::{Tape, Target, Var};
use crate::tensor::{DType, Tensor};

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
        let program = Program::with_channels(kernels::BATCH_NORM, dtype, channels);
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

/// Computes the statistics (in training; else takes the running ones), unless they are given, and `y`.
#[expect(clippy::too_many_arguments, reason = "one call for one formula")]
pub(super) fn forward(
    tape: &mut Tape<'_>,
    cuda: &CudaDevice,
    x: &Tensor,
    [gamma, beta]: [&Tensor; 2],
    running: RunningStatistics,
    residual: Option<&Tensor>,
    (relu, border, given): (bool, bool, bool),
    statistics: &mut Tensor,
    y: &mut Tensor,
) -> Result<()> {
    let channels = gamma.len();
    let plan = Plan::new(cuda, x.dtype(), x.len() / channels.max(1), channels);
    if !given {
        statistics_of(tape, cuda, &plan, x, gamma, beta, running, statistics)?;
    }
    let [_, _, scale, shift] = rows_of(view(statistics)?, channels)?;
    let passes = if residual.is_some() { 3.0 } else { 2.0 };
    let bytes = passes * (x.len() * x.dtype().size()) as f64;
    let _scope = cuda.context().scope(|| "batch_norm normalise".into(), 4.0 * x.len() as f64, bytes);
    let nothing = Argument::Address(0);
    let (rows, [height, width]) = (y.len() / channels.max(1), map_size(x));
    let (by_height, by_width) = (divisor(height + 1), divisor(width + 1));
    let arguments = [
        view(x)?.into(),
        scale.into(),
        shift.into(),
        residual.map(view).transpose()?.into(),
        nothing,
        nothing,
        view_mut(y)?.into(),
        rows.into(),
        channels.into(),
        plan.columns.into(),
        i32::from(relu).into(),
        i32::from(border).into(),
        height.into(),
        width.into(),
        by_height[0],
        by_height[1],
        by_width[0],
        by_width[1],
    ];
    cuda.launch(&plan.program, "apply", plan.launch(plan.blocks(rows, 8)), &arguments)
}

#[expect(clippy::too_many_arguments, reason = "one call for one formula")]
fn statistics_of(
    tape: &mut Tape<'_>,
    cuda: &CudaDevice,
    plan: &Plan,
    x: &Tensor,
    gamma: &Tensor,
    beta: &Tensor,
    running: RunningStatistics,
    statistics: &mut Tensor,
) -> Result<()> {
    let channels = plan.channels;
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
            "from_running",
            Launch::linear(channels.div_ceil(256), 256),
            &arguments,
        );
    }
    if tape.collective().ranks() > 1 {
        return Err(cuda.missing("batch_norm over several ranks"));
    }
    let bytes = (x.len() * x.dtype().size()) as f64;
    let _scope = cuda.context().scope(|| "batch_norm statistics".into(), 3.0 * x.len() as f64, bytes);
    let blocks = plan.blocks(plan.rows, 4);
    let partial = cuda.context().allocate(blocks * 2 * channels * 4)?;
    let from = view(x)?;
    let arguments = [from.into(), (&partial).into(), plan.rows.into(), channels.into(), plan.columns.into()];
    cuda.launch(&plan.program, "statistics", plan.launch(blocks), &arguments)?;
    let running_mean = view_mut(tape.buffer_mut(running.mean)?)?;
    let running_variance = view_mut(tape.buffer_mut(running.variance)?)?;
    tape.increment(running.batches);
    let arguments = [
        (&partial).into(),
        blocks.into(),
        from.into(),
        plan.rows.into(),
        channels.into(),
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
    cuda.launch(&plan.program, "finish_statistics", plan.per_channel(), &arguments)
}

/// The numbers by which a kernel divides by `number` (at least 1, below 2^31): see `Divisor` in the kernels.
fn divisor(number: usize) -> [Argument; 2] {
    let number = number.clamp(1, (1 << 31) - 1) as u64;
    let shift = (number - 1).checked_ilog2().map_or(0, |log| log + 1);
    let multiplier = ((1u64 << 32) * ((1u64 << shift) - number)) / number + 1;
    [Argument::I32((multiplier as u32).cast_signed()), Argument::I32(shift.cast_signed())]
}

/// Height and width of a map (n, height, width, channels).
fn map_size(x: &Tensor) -> [usize; 2] {
    match *x.dims() {
        [_, height, width, _] => [height, width],
        _ => [1, 1],
    }
}

/// Where the ReLU lets gradients through.
pub(super) enum Mask {
    /// Everywhere: there is no ReLU.
    None,
    /// Where x scale + shift is positive.
    Input,
    /// Where this output is positive; gradients are masked in place first, as they are the residual's too.
    Output(Tensor),
}

/// Writes the gradients; `dy` becomes the gradient of the residual where the mask is [`Mask::Output`].
pub(super) fn backward(
    cuda: &CudaDevice,
    x: &Tensor,
    gamma: &Tensor,
    statistics: &Tensor,
    (mask, border): (&Mask, bool),
    dy: &mut Tensor,
    [dx, dgamma, dbeta]: [&mut Option<Target>; 3],
) -> Result<()> {
    let context = cuda.context();
    let channels = gamma.len();
    let plan = Plan::new(cuda, x.dtype(), x.len() / channels.max(1), channels);
    let [mean, _, scale, shift] = rows_of(view(statistics)?, channels)?;
    let bytes = (x.len() * x.dtype().size()) as f64;
    let blocks = plan.blocks(plan.rows, 4);
    let partial = context.allocate(blocks * 2 * channels * 4)?;
    let (code, output, masked) = match mask {
        Mask::None => (0, None, None),
        Mask::Input => (1, None, None),
        Mask::Output(y) => (2, Some(view(y)?), Some(view_mut(dy)?)),
    };
    let [height, width] = map_size(x);
    let (by_height, by_width) = (divisor(height), divisor(width));
    let layout: [Argument; 7] = [
        i32::from(border).into(),
        height.into(),
        width.into(),
        by_height[0],
        by_height[1],
        by_width[0],
        by_width[1],
    ];
    let (from, gradient) = (view(x)?, view(dy)?);
    {
        let passes = if masked.is_some() { 4.0 } else { 2.0 };
        let _scope =
            context.scope(|| "batch_norm backward sums".into(), 5.0 * x.len() as f64, passes * bytes);
        let mut arguments = vec![
            gradient.into(),
            from.into(),
            output.into(),
            mean.into(),
            scale.into(),
            shift.into(),
            masked.into(),
            (&partial).into(),
            plan.rows.into(),
            channels.into(),
            plan.columns.into(),
        ];
        arguments.extend(layout);
        let name = ["backward_sums_0", "backward_sums_1", "backward_sums_2"][code];
        cuda.launch(&plan.program, name, plan.launch(blocks), &arguments)?;
    }
    let coefficients =
        finish_backward(cuda, x.dtype(), (&partial, blocks), plan.rows, gamma, statistics, dgamma, dbeta)?;
    let [ca, cb, cc] = coefficients_of(&coefficients, channels)?;
    let Some(target) = dx else { return Ok(()) };
    let _scope = context.scope(|| "batch_norm backward apply".into(), 5.0 * x.len() as f64, 3.0 * bytes);
    let add = i32::from(target.accumulate);
    let mut arguments = vec![
        gradient.into(),
        from.into(),
        scale.into(),
        shift.into(),
        ca.into(),
        cb.into(),
        cc.into(),
        view_mut(&mut target.tensor)?.into(),
        add.into(),
        plan.rows.into(),
        channels.into(),
        plan.columns.into(),
    ];
    arguments.extend(layout);
    // What was masked in place needs no mask any more.
    let name = if code == 1 { "backward_apply_1" } else { "backward_apply_0" };
    cuda.launch(&plan.program, name, plan.launch(plan.blocks(plan.rows, 16)), &arguments)
}

/// From the sums of `blocks` blocks: the gradients of gamma and beta, and the numbers of dx = g ca + x cb + cc.
#[expect(clippy::too_many_arguments, reason = "one call for one formula")]
pub(crate) fn finish_backward(
    cuda: &CudaDevice,
    dtype: DType,
    (partial, blocks): (&Buffer, usize),
    rows: usize,
    gamma: &Tensor,
    statistics: &Tensor,
    dgamma: &mut Option<Target>,
    dbeta: &mut Option<Target>,
) -> Result<Buffer> {
    let channels = gamma.len();
    let plan = Plan::new(cuda, dtype, rows, channels);
    let [mean, inverse, ..] = rows_of(view(statistics)?, channels)?;
    let coefficients = cuda.context().allocate(3 * channels * 4)?;
    let [ca, cb, cc] = coefficients_of(&coefficients, channels)?;
    let parameter = |target: &mut Option<Target>| -> Result<(Option<View>, i32)> {
        let add = target.as_ref().is_some_and(|target| target.accumulate);
        let place = target.as_mut().map(|target| view_mut(&mut target.tensor)).transpose()?;
        Ok((place, i32::from(add)))
    };
    let ((gamma_place, add_gamma), (beta_place, add_beta)) = (parameter(dgamma)?, parameter(dbeta)?);
    let arguments = [
        partial.into(),
        blocks.into(),
        rows.into(),
        channels.into(),
        view(gamma)?.into(),
        mean.into(),
        inverse.into(),
        gamma_place.into(),
        add_gamma.into(),
        beta_place.into(),
        add_beta.into(),
        ca.into(),
        cb.into(),
        cc.into(),
    ];
    cuda.launch(&plan.program, "finish_backward", plan.per_channel(), &arguments)?;
    Ok(coefficients)
}

/// The three rows that [`finish_backward`] wrote.
pub(crate) fn coefficients_of(coefficients: &Buffer, channels: usize) -> Result<[View; 3]> {
    let row = |index: usize| coefficients.view().part(index * channels * 4, channels * 4);
    Ok([row(0)?, row(1)?, row(2)?])
}

/// Computes the statistics of `x` (in training; else takes the running ones), [`STATISTICS`] rows.
pub(crate) fn compute_statistics(
    tape: &mut Tape<'_>,
    cuda: &CudaDevice,
    x: &Tensor,
    (gamma, beta): (&Tensor, &Tensor),
    running: RunningStatistics,
    statistics: &mut Tensor,
) -> Result<()> {
    let plan = Plan::new(cuda, x.dtype(), x.len() / gamma.len().max(1), gamma.len());
    statistics_of(tape, cuda, &plan, x, gamma, beta, running, statistics)
}

/// What a recorded batch norm keeps of its output.
pub(super) fn mask_of(relu: bool, residual: Option<&Var>, y: &Tensor) -> Mask {
    match (relu, residual) {
        (false, _) => Mask::None,
        (true, None) => Mask::Input,
        (true, Some(_)) => Mask::Output(y.clone()),
    }
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
