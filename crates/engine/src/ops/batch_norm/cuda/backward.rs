//! The gradients of batch norms on the GPU: one pass for the sums and one for the gradient of the input.

use gpu::{Argument, Buffer, Launch, View};

use super::{Layer, Plan, layout, rows_of};
use crate::collective::{Collective, Memory, Sum};
use crate::cuda::kernels::Kernel;
use crate::cuda::{CudaDevice, view, view_mut};
use crate::error::{Error, Result};
use crate::tape::Target;
use crate::tensor::Tensor;

/// Where the ReLU lets gradients through.
pub(super) enum Mask {
    /// Everywhere: there is no ReLU.
    None,
    /// Where x scale + shift is positive.
    Input,
    /// Where this output is positive; gradients are masked in place first, as they are the residual's too.
    Output(Tensor),
}

/// Where it is computed, and who shares the batch.
#[derive(Clone, Copy)]
pub(crate) struct On<'a> {
    pub cuda: &'a CudaDevice,
    pub ranks: &'a dyn Collective,
    /// Of so many rows of this rank there are so many of all.
    pub rows: (usize, usize),
}

/// Where the gradients of x, gamma and beta go.
pub(super) type Targets<'a> = [Option<&'a mut Target>; 3];

/// Writes the gradients; `dy` becomes the gradient of the residual where the mask is [`Mask::Output`].
pub(super) fn backward(
    on @ On { cuda, .. }: On<'_>,
    layer: &Layer,
    (mask, border): (&Mask, bool),
    dy: &mut Tensor,
    [dx, dgamma, dbeta]: Targets<'_>,
) -> Result<()> {
    let context = cuda.context();
    let (x, channels) = (&layer.x, layer.gamma.len());
    let plan = Plan::new(cuda, x.dtype(), x.len() / channels.max(1), channels);
    let [mean, _, scale, shift] = rows_of(view(&layer.statistics)?, channels)?;
    let bytes = (x.len() * x.dtype().size()) as f64;
    let blocks = plan.blocks(plan.rows, 4);
    let partial = context.allocate(blocks * 2 * channels * 4)?;
    let (code, output, masked) = match mask {
        Mask::None => (0, None, None),
        Mask::Input => (1, None, None),
        Mask::Output(y) => (2, Some(view(y)?), Some(view_mut(dy)?)),
    };
    let layout = layout(x, border, 0);
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
        let kernel = [Kernel::backward_sums_0, Kernel::backward_sums_1, Kernel::backward_sums_2][code];
        cuda.launch(&plan.program, kernel, plan.launch(blocks), &arguments)?;
    }
    let coefficients = finish_backward(on, (&partial, blocks), plan.rows, layer, dgamma, dbeta)?;
    let [ca, cb, cc] = coefficients_of(&coefficients, channels)?;
    let Some(target) = dx else { return Ok(()) };
    let _scope = context.scope(|| "batch_norm backward apply".into(), 5.0 * x.len() as f64, 3.0 * bytes);
    let [to, add] = target.arguments()?;
    let mut arguments = vec![
        gradient.into(),
        from.into(),
        scale.into(),
        shift.into(),
        ca.into(),
        cb.into(),
        cc.into(),
        to,
        add,
        plan.rows.into(),
        channels.into(),
        plan.columns.into(),
    ];
    arguments.extend(layout);
    // What was masked in place needs no mask any more.
    let kernel = if code == 1 { Kernel::backward_apply_1 } else { Kernel::backward_apply_0 };
    cuda.launch(&plan.program, kernel, plan.launch(plan.blocks(plan.rows, 16)), &arguments)
}

/// The gradients of two batch norms whose sum went through a ReLU with output `y`: of x and of the shortcut, both of which
/// are wanted.
pub(super) fn backward_both(
    on @ On { cuda, .. }: On<'_>,
    [layer, shortcut]: [&Layer; 2],
    y: &Tensor,
    dy: &mut Tensor,
    [[dx, dgamma, dbeta], [ds, dgamma_s, dbeta_s]]: [Targets<'_>; 2],
) -> Result<()> {
    let context = cuda.context();
    let (x, channels) = (&layer.x, layer.gamma.len());
    let plan = Plan::new(cuda, x.dtype(), x.len() / channels.max(1), channels);
    let bytes = (x.len() * x.dtype().size()) as f64;
    let sizes: [Argument; 3] = [plan.rows.into(), channels.into(), plan.columns.into()];
    let blocks = plan.blocks(plan.rows, 3);
    let partial = context.allocate(blocks * 2 * channels * 4)?;
    let partial_s = context.allocate(blocks * 2 * channels * 4)?;
    {
        let _scope = context.scope(|| "batch_norm backward sums".into(), 8.0 * x.len() as f64, 5.0 * bytes);
        let mut arguments = vec![
            view(dy)?.into(),
            view(y)?.into(),
            view(x)?.into(),
            rows_of(view(&layer.statistics)?, channels)?[0].into(),
            view(&shortcut.x)?.into(),
            rows_of(view(&shortcut.statistics)?, channels)?[0].into(),
            view_mut(dy)?.into(),
            (&partial).into(),
            (&partial_s).into(),
        ];
        arguments.extend(sizes);
        cuda.launch(&plan.program, Kernel::backward_sums_both, plan.launch(blocks), &arguments)?;
    }
    let coefficients = finish_backward(on, (&partial, blocks), plan.rows, layer, dgamma, dbeta)?;
    let coefficients_s = finish_backward(on, (&partial_s, blocks), plan.rows, shortcut, dgamma_s, dbeta_s)?;
    let _scope = context.scope(|| "batch_norm backward apply".into(), 8.0 * x.len() as f64, 5.0 * bytes);
    let mut arguments = vec![view(dy)?.into()];
    for (x, coefficients, target) in [(x, &coefficients, dx), (&shortcut.x, &coefficients_s, ds)] {
        let Some(target) = target else {
            return Err(Error::shape("batch_norm", "a gradient of a block's end is missing"));
        };
        arguments.push(view(x)?.into());
        arguments.extend(coefficients_of(coefficients, channels)?.map(Argument::from));
        arguments.extend(target.arguments()?);
    }
    arguments.extend(sizes);
    let launch = plan.launch(plan.blocks(plan.rows, 16));
    cuda.launch(&plan.program, Kernel::backward_apply_both, launch, &arguments)
}

/// From the sums of `blocks` blocks: the gradients of gamma and beta (of this rank), and the numbers of dx = g ca + x cb + cc.
pub(crate) fn finish_backward(
    On { cuda, ranks, rows: (own, whole) }: On<'_>,
    (partial, blocks): (&Buffer, usize),
    rows: usize,
    layer: &Layer,
    dgamma: Option<&mut Target>,
    dbeta: Option<&mut Target>,
) -> Result<Buffer> {
    let channels = layer.gamma.len();
    let plan = Plan::new(cuda, layer.x.dtype(), rows, channels);
    let [mean, inverse, ..] = rows_of(view(&layer.statistics)?, channels)?;
    let coefficients = cuda.context().allocate(3 * channels * 4)?;
    let [ca, cb, cc] = coefficients_of(&coefficients, channels)?;
    let ([dgamma, add_gamma], [dbeta, add_beta]) =
        (Target::arguments_of(dgamma)?, Target::arguments_of(dbeta)?);
    if ranks.is_shared() {
        let sums = cuda.context().allocate(2 * channels * 8)?;
        let arguments = [
            partial.into(),
            blocks.into(),
            channels.into(),
            inverse.into(),
            dgamma,
            add_gamma,
            dbeta,
            add_beta,
            (&sums).into(),
        ];
        cuda.launch(&plan.program, Kernel::rank_sums, plan.per_channel(), &arguments)?;
        ranks.all_reduce_sum(Sum::F64, Memory::Device(sums.view().part(0, 2 * channels * 8)?))?;
        let arguments = [
            (&sums).into(),
            (rows / own.max(1) * whole).into(),
            channels.into(),
            view(&layer.gamma)?.into(),
            mean.into(),
            inverse.into(),
            ca.into(),
            cb.into(),
            cc.into(),
        ];
        let launch = Launch::linear(channels.div_ceil(256), 256);
        cuda.launch(&plan.program, Kernel::finish_rank_sums, launch, &arguments)?;
        return Ok(coefficients);
    }
    let arguments = [
        partial.into(),
        blocks.into(),
        rows.into(),
        channels.into(),
        view(&layer.gamma)?.into(),
        mean.into(),
        inverse.into(),
        dgamma,
        add_gamma,
        dbeta,
        add_beta,
        ca.into(),
        cb.into(),
        cc.into(),
    ];
    cuda.launch(&plan.program, Kernel::finish_backward, plan.per_channel(), &arguments)?;
    Ok(coefficients)
}

/// The three rows that [`finish_backward`] wrote.
pub(crate) fn coefficients_of(coefficients: &Buffer, channels: usize) -> Result<[View; 3]> {
    let row = |index: usize| coefficients.view().part(index * channels * 4, channels * 4);
    Ok([row(0)?, row(1)?, row(2)?])
}
