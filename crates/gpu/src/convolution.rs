//! Convolutions by cuDNN: NHWC, weights as (out, row, column, in), 32-bit accumulation.
//!
//! Only algorithms that cuDNN reports as deterministic are considered. The first time a shape is met, all of them are
//! timed on the device and the fastest is kept; the choices can be taken out and put back, so that a run that is
//! resumed computes exactly what it would have computed. Several ranks take what cuDNN thinks fastest instead: all of them
//! the same, every time, whatever else a shared device does.

mod call;
mod shape;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::cudnn::{Cudnn, Descriptors};
use crate::driver::Handle;
use crate::{Buffer, Context, Error, Result, View};
use call::Call;
pub use shape::{Choice, ConvolutionShape, Pass};

/// cuDNN on one device.
#[derive(Debug)]
pub struct Convolutions {
    cudnn: &'static Cudnn,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    handle: Handle,
    choices: BTreeMap<(ConvolutionShape, Pass), Choice>,
    /// Choices that were put in and have not been tried yet.
    imported: BTreeSet<(ConvolutionShape, Pass)>,
    /// How many of them could not be used here.
    replaced: usize,
    is_timed: bool,
    descriptors: HashMap<ConvolutionShape, Descriptors>,
}

// SAFETY: the handle is used only with the lock held.
unsafe impl Send for State {}

impl Convolutions {
    pub(crate) fn new(context: &Context) -> Result<Self> {
        let cudnn = Cudnn::get()?;
        context.bind()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: writes one handle; the stream is alive as long as the context that owns this value.
        unsafe {
            cudnn.check("cudnnCreate", (cudnn.create)(&mut handle))?;
            cudnn.check("cudnnSetStream", (cudnn.set_stream)(handle, context.stream()))?;
        }
        let state = State {
            handle,
            choices: BTreeMap::new(),
            imported: BTreeSet::new(),
            replaced: 0,
            is_timed: true,
            descriptors: HashMap::new(),
        };
        Ok(Self { cudnn, state: Mutex::new(state) })
    }

    /// The choices made so far, or put in.
    pub fn choices(&self) -> Vec<Choice> {
        self.lock().choices.values().copied().collect()
    }

    /// How many choices there are, and how many that were put in could not be used here and were made anew.
    pub fn counts(&self) -> (usize, usize) {
        let state = self.lock();
        (state.choices.len(), state.replaced)
    }

    /// Uses these choices instead of timing, where they can be used here.
    pub fn set_choices(&self, choices: impl IntoIterator<Item = Choice>) {
        let mut state = self.lock();
        for choice in choices {
            state.choices.insert((choice.shape, choice.pass), choice);
            state.imported.insert((choice.shape, choice.pass));
        }
    }

    /// Chooses without timing from now on.
    pub fn set_untimed(&self) {
        self.lock().is_timed = false;
    }

    /// `y = x * w`
    pub fn forward(
        &self,
        context: &Context,
        shape: &ConvolutionShape,
        x: View,
        w: View,
        y: View,
    ) -> Result<()> {
        self.run(context, shape, Pass::Forward, [x, w], y, false)
    }

    /// The gradient of `x`, written to or (`accumulate`) added to `dx`.
    pub fn data_gradient(
        &self,
        context: &Context,
        shape: &ConvolutionShape,
        w: View,
        dy: View,
        dx: View,
        accumulate: bool,
    ) -> Result<()> {
        self.run(context, shape, Pass::DataGradient, [w, dy], dx, accumulate)
    }

    /// The gradient of `w`.
    pub fn weight_gradient(
        &self,
        context: &Context,
        shape: &ConvolutionShape,
        x: View,
        dy: View,
        dw: View,
    ) -> Result<()> {
        self.run(context, shape, Pass::WeightGradient, [x, dy], dw, false)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(
        &self,
        context: &Context,
        shape: &ConvolutionShape,
        pass: Pass,
        inputs: [View; 2],
        output: View,
        accumulate: bool,
    ) -> Result<()> {
        context.bind()?;
        require_size(shape, pass, inputs, output)?;
        let state = &mut *self.lock();
        if !state.descriptors.contains_key(shape) {
            state.descriptors.insert(*shape, Descriptors::new(self.cudnn, shape)?);
        }
        let Some(descriptors) = state.descriptors.get(shape) else { return Ok(()) };
        let call = Call { cudnn: self.cudnn, handle: state.handle, descriptors, pass, inputs };
        if state.imported.remove(&(*shape, pass))
            && let Some(&choice) = state.choices.get(&(*shape, pass))
        {
            if call.execute(context, &choice, output, accumulate).is_ok() {
                return Ok(());
            }
            // Of another version of cuDNN or another device.
            state.choices.remove(&(*shape, pass));
            state.replaced += 1;
        }
        let choice = match state.choices.get(&(*shape, pass)) {
            Some(&choice) => choice,
            None => {
                // Timing runs the work several times, so it must not add to what is there.
                let scratch = if accumulate { Some(context.allocate(output.bytes)?) } else { None };
                let choice = call.choose(
                    context,
                    shape,
                    scratch.as_ref().map_or(output, Buffer::view),
                    state.is_timed,
                )?;
                state.choices.insert((*shape, pass), choice);
                choice
            }
        };
        call.execute(context, &choice, output, accumulate)
    }
}

impl Drop for Convolutions {
    fn drop(&mut self) {
        let handle = self.lock().handle;
        // SAFETY: the handle is ours and not used again.
        unsafe { (self.cudnn.destroy)(handle) };
    }
}

fn require_size(shape: &ConvolutionShape, pass: Pass, inputs: [View; 2], output: View) -> Result<()> {
    let [height_out, width_out] = shape.output_size();
    let x = shape.batch * shape.height * shape.width * shape.channels_in;
    let w = shape.channels_out * shape.kernel[0] * shape.kernel[1] * shape.channels_in;
    let y = shape.batch * height_out * width_out * shape.channels_out;
    if x.max(y) >= 1 << 31 {
        return Err(Error::TooLarge(shape.to_string()));
    }
    let needs = match pass {
        Pass::Forward => [x, w, y],
        Pass::DataGradient => [w, y, x],
        Pass::WeightGradient => [x, y, w],
    };
    for (buffer, count) in [inputs[0], inputs[1], output].into_iter().zip(needs) {
        let need = count * shape.precision.bytes();
        if buffer.bytes < need {
            return Err(Error::BufferTooSmall {
                what: "an operand of a convolution",
                have: buffer.bytes,
                need,
            });
        }
    }
    Ok(())
}
