//! What an operation is, and the one place that runs it: [`Tape::apply`] chooses the device, makes the outputs, records
//! the operation, and on the way back takes the gradients of its inputs from the tape and puts them there again.
//!
//! An operation is a struct with its sizes. [`Operation`] is implemented for it once for [`CpuPool`] and once for
//! [`CudaDevice`], side by side. What only one device has is implemented for that one and run by [`Tape::apply_on`].

use std::ops::Deref;
use std::sync::Arc;

use crate::cuda::CudaDevice;
use crate::device::Device;
use crate::error::Result;
use crate::pool::CpuPool;
use crate::shape::Shape;
use crate::tape::{Backward, GradientId, Tape, Target, Var};
use crate::tensor::{DType, Tensor};

/// An operation with inputs `I` and outputs `O` on the device `D`.
pub(crate) trait Operation<D, I: Inputs = One, O: Outputs = One>: 'static {
    /// What backward needs: it lives until then.
    type Saved: 'static;

    /// Writes the outputs, whose contents are unspecified. Inputs that may be missing are [`Var::absent`].
    fn forward(
        &self,
        context: &mut Context<'_, '_, D>,
        inputs: I::Of<&Var>,
        outputs: O::Of<&mut Tensor>,
    ) -> Result<Self::Saved>;

    /// Writes the gradient of every input that wants one, given those of the outputs.
    fn backward(
        &self,
        context: &mut Context<'_, '_, D>,
        saved: &Self::Saved,
        dy: O::Gradients,
        dx: I::Targets<'_>,
    ) -> Result<()>;

    /// Whether the gradient of this input is not written but passed on whole, by [`Context::pass`].
    fn passes(&self, _input: usize) -> bool {
        false
    }
}

/// Where the gradients of `N` inputs go; `None` for one that wants none.
pub(crate) type To<'a, const N: usize> = [Option<&'a mut Target>; N];

/// Shape and type of an output.
pub(crate) type Spec = (Shape, DType);

/// What an operation works with: its device, which it dereferences to, and the tape.
pub(crate) struct Context<'t, 's, D> {
    on: &'t D,
    /// The same device, for tensors of one's own.
    pub device: &'t Device,
    /// The tape: prepared forms of weights, buffers of the store, the ranks that share the batch.
    pub tape: &'t mut Tape<'s>,
    twin: Option<Tensor>,
    passed: Option<Tensor>,
}

/// The context of an operation on the CPU.
pub(crate) type Cpu<'t, 's> = Context<'t, 's, CpuPool>;
/// The context of an operation on CUDA.
pub(crate) type Cuda<'t, 's> = Context<'t, 's, CudaDevice>;

impl<D> Deref for Context<'_, '_, D> {
    type Target = D;

    fn deref(&self) -> &D {
        self.on
    }
}

impl<'t, D> Context<'t, '_, D> {
    /// The device, for as long as it is there.
    pub(crate) fn on(&self) -> &'t D {
        self.on
    }

    /// A tensor of unspecified contents.
    pub(crate) fn empty(&self, shape: impl Into<Shape>, dtype: DType) -> Result<Tensor> {
        Tensor::empty(self.device, shape, dtype)
    }

    /// In forward: the output in the type of its gradient, for [`Var::set_rounded`].
    pub(crate) fn set_twin(&mut self, twin: Option<Tensor>) {
        self.twin = twin;
    }

    /// In backward: the gradient of all inputs that [`Operation::passes`] names; nothing is copied.
    pub(crate) fn pass(&mut self, gradient: Tensor) {
        self.passed = Some(gradient);
    }
}

impl Tape<'_> {
    /// Runs `op`, called `name`, on `inputs`: its outputs, of these shapes and types, as values on the tape.
    pub(crate) fn apply<I: Inputs, O: Outputs>(
        &mut self,
        name: &'static str,
        op: impl Operation<CpuPool, I, O> + Operation<CudaDevice, I, O>,
        inputs: I::Of<&Var>,
        outputs: O::Of<Spec>,
    ) -> Result<O::Of<Var>> {
        match self.device() {
            Device::Cpu(cpu) => self.apply_on(name, cpu, op, inputs, outputs),
            Device::Cuda(cuda) => self.apply_on(name, cuda, op, inputs, outputs),
        }
    }

    /// As [`Tape::apply`], for an operation of one device, which must be the tape's.
    pub(crate) fn apply_on<D: 'static, I: Inputs, O: Outputs>(
        &mut self,
        name: &'static str,
        on: Arc<D>,
        op: impl Operation<D, I, O>,
        mut inputs: I::Of<&Var>,
        outputs: O::Of<Spec>,
    ) -> Result<O::Of<Var>> {
        let device = self.device();
        let ids: Vec<GradientId> = I::slice(&mut inputs).iter().map(|var| var.gradient()).collect();
        let mut failure = None;
        let mut written = O::map(outputs, |(shape, dtype)| {
            Tensor::empty(&device, shape, dtype).unwrap_or_else(|error| {
                failure = Some(error);
                Tensor::placeholder(shape, dtype)
            })
        });
        if let Some(error) = failure {
            return Err(error);
        }
        let mut context = Context { on: &*on, device: &device, tape: self, twin: None, passed: None };
        let saved = op.forward(&mut context, inputs, O::each_mut(&mut written))?;
        let twin = context.twin;
        let mut vars = self.record_all::<O>(name, &ids.clone(), written, move |backward, dy| {
            play(&*on, &op, &saved, backward, &ids, dy)
        });
        if let Some(first) = O::slice(&mut vars).first_mut() {
            first.set_rounded(twin);
        }
        Ok(vars)
    }
}

/// The backward pass of a recorded operation.
fn play<D, I: Inputs, O: Outputs, Op: Operation<D, I, O>>(
    on: &D,
    op: &Op,
    saved: &Op::Saved,
    backward: &mut Backward<'_, '_>,
    ids: &[GradientId],
    dy: O::Gradients,
) -> Result<()> {
    let device = backward.device();
    let mut targets: Vec<Option<Target>> = ids.iter().map(|_| None).collect();
    // An input that is given twice has one gradient: what comes of the second is added to it afterwards.
    let first = |index: usize| (0..index).find(|&before| ids[before] == ids[index] && !op.passes(before));
    for (index, &id) in ids.iter().enumerate().filter(|(index, _)| !op.passes(*index)) {
        targets[index] = match first(index).and_then(|first| targets[first].as_ref()) {
            Some(Target { tensor, .. }) => {
                Some(Target::unplaced(Tensor::empty(&device, tensor.shape(), tensor.dtype())?))
            }
            None => backward.target(id)?,
        };
    }
    let mut context = Context { on, device: &device, tape: &mut *backward.tape, twin: None, passed: None };
    if let Some(to) = I::targets(&mut targets) {
        op.backward(&mut context, saved, dy, to)?;
    }
    let passed = context.passed;
    for (index, target) in targets.into_iter().enumerate() {
        match target {
            Some(share) if first(index).is_some() => backward.add(ids[index], share.tensor)?,
            Some(target) => backward.put(target),
            None => {}
        }
    }
    let Some(gradient) = passed else { return Ok(()) };
    let mut receivers = ids.iter().enumerate().filter(|(index, _)| op.passes(*index));
    receivers.try_for_each(|(_, &id)| backward.add(id, gradient.clone()))
}

/// How many there are of something: [`One`], [`Fixed`] or [`Several`].
pub(crate) trait List: 'static {
    /// A `T` for each.
    type Of<T>;

    fn map<T, U>(all: Self::Of<T>, with: impl FnMut(T) -> U) -> Self::Of<U>;
    fn each_mut<T>(all: &mut Self::Of<T>) -> Self::Of<&mut T>;
    fn slice<T>(all: &mut Self::Of<T>) -> &mut [T];
}

/// Inputs.
pub(crate) trait Inputs: List {
    /// Where their gradients go: that of a single input, or of several, `None` for one that wants none.
    type Targets<'a>;

    /// The targets, unless none is wanted.
    fn targets(all: &mut [Option<Target>]) -> Option<Self::Targets<'_>>;
}

/// Outputs: [`One`] or [`Fixed`].
pub(crate) trait Outputs: List {
    /// Their gradients: that of a single output, or of several, `None` for one that does not matter to the loss.
    type Gradients;

    /// The gradients, unless they are of another number.
    fn gradients(all: Vec<Option<Tensor>>) -> Option<Self::Gradients>;
}

/// One.
pub(crate) enum One {}

/// A number known beforehand.
pub(crate) enum Fixed<const N: usize> {}

/// Any number.
pub(crate) enum Several {}

impl List for One {
    type Of<T> = T;

    fn map<T, U>(all: T, mut with: impl FnMut(T) -> U) -> U {
        with(all)
    }

    fn each_mut<T>(all: &mut T) -> &mut T {
        all
    }

    fn slice<T>(all: &mut T) -> &mut [T] {
        std::slice::from_mut(all)
    }
}

impl<const N: usize> List for Fixed<N> {
    type Of<T> = [T; N];

    fn map<T, U>(all: [T; N], with: impl FnMut(T) -> U) -> [U; N] {
        all.map(with)
    }

    fn each_mut<T>(all: &mut [T; N]) -> [&mut T; N] {
        all.each_mut()
    }

    fn slice<T>(all: &mut [T; N]) -> &mut [T] {
        all
    }
}

impl List for Several {
    type Of<T> = Vec<T>;

    fn map<T, U>(all: Vec<T>, with: impl FnMut(T) -> U) -> Vec<U> {
        all.into_iter().map(with).collect()
    }

    fn each_mut<T>(all: &mut Vec<T>) -> Vec<&mut T> {
        all.iter_mut().collect()
    }

    fn slice<T>(all: &mut Vec<T>) -> &mut [T] {
        all
    }
}

impl Inputs for One {
    type Targets<'a> = &'a mut Target;

    fn targets(all: &mut [Option<Target>]) -> Option<&mut Target> {
        all.first_mut()?.as_mut()
    }
}

impl<const N: usize> Inputs for Fixed<N> {
    type Targets<'a> = To<'a, N>;

    fn targets(all: &mut [Option<Target>]) -> Option<To<'_, N>> {
        let all: &mut [Option<Target>; N] = all.try_into().ok()?;
        Some(all.each_mut().map(Option::as_mut))
    }
}

impl Inputs for Several {
    type Targets<'a> = Vec<Option<&'a mut Target>>;

    fn targets(all: &mut [Option<Target>]) -> Option<Vec<Option<&mut Target>>> {
        Some(all.iter_mut().map(Option::as_mut).collect())
    }
}

impl Outputs for One {
    type Gradients = Tensor;

    fn gradients(mut all: Vec<Option<Tensor>>) -> Option<Tensor> {
        all.pop().flatten()
    }
}

impl<const N: usize> Outputs for Fixed<N> {
    type Gradients = [Option<Tensor>; N];

    fn gradients(all: Vec<Option<Tensor>>) -> Option<[Option<Tensor>; N]> {
        all.try_into().ok()
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{Case, check};
    use crate::ops::{activation_cross_entropy, add};

    #[test]
    fn an_input_that_is_given_twice_gets_both_gradients() {
        let positive = Case::with(&[&[3, 4]], |_, random| random.range(0.1, 1.0));
        check(
            &positive,
            |tape, i| activation_cross_entropy(tape, &i[0], &i[0]),
            |i| vec![-i[0].iter().map(|p| p * p.ln()).sum::<f64>() / 3.0],
        );
        check(&positive, |tape, i| add(tape, &i[0], &i[0]), |i| i[0].iter().map(|a| 2.0 * a).collect());
    }
}
