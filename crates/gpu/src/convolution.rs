//! Convolutions by cuDNN: NHWC, weights as (out, row, column, in), 32-bit accumulation.
//!
//! Only algorithms that cuDNN reports as deterministic are considered. The first time a shape is met, all of them are
//! timed on the device and the fastest is kept; the choices can be taken out and put back, so that a run that is
//! resumed computes exactly what it would have computed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::{c_int, c_void};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::cudnn::{AlgorithmReport, Cudnn, Descriptors};
use crate::driver::Handle;
use crate::{Buffer, Context, Error, Precision, Result, Timer, View};

/// Largest scratch memory that an algorithm may ask for.
const WORKSPACE_LIMIT: usize = 1 << 30;
const DETERMINISTIC: c_int = 1;
/// Kinds of arithmetic: FMA is f32 without TF32.
const DEFAULT_MATH: c_int = 0;
const TENSOR_MATH: c_int = 1;
const FMA_MATH: c_int = 3;

/// A convolution: `x` is (batch, height, width, channels_in), `w` (channels_out, kernel, kernel, channels_in).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct ConvolutionShape {
    /// Images.
    pub batch: usize,
    /// Rows of the input.
    pub height: usize,
    /// Columns of the input.
    pub width: usize,
    /// Channels of the input.
    pub channels_in: usize,
    /// Channels of the output.
    pub channels_out: usize,
    /// Rows and columns of the kernel.
    pub kernel: [usize; 2],
    /// Zero rows above and below, zero columns left and right.
    pub padding: [usize; 2],
    /// Steps in rows and columns.
    pub stride: [usize; 2],
    /// Storage of all three operands.
    pub precision: Precision,
}

impl ConvolutionShape {
    /// Rows and columns of the output.
    pub fn output_size(&self) -> [usize; 2] {
        let size = |length: usize, axis: usize| {
            (length + 2 * self.padding[axis]).saturating_sub(self.kernel[axis]) / self.stride[axis].max(1) + 1
        };
        [size(self.height, 0), size(self.width, 1)]
    }

    /// Multiplications and additions of one pass.
    pub fn operations(&self) -> f64 {
        let [height, width] = self.output_size();
        let taps = self.kernel[0] * self.kernel[1] * self.channels_in;
        2.0 * (self.batch * height * width * self.channels_out) as f64 * taps as f64
    }
}

impl fmt::Display for ConvolutionShape {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{}x{} {}->{} /{} at {}x{}, batch {}",
            self.kernel[0],
            self.kernel[1],
            self.channels_in,
            self.channels_out,
            self.stride[0],
            self.height,
            self.width,
            self.batch
        )
    }
}

/// The three computations of a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pass {
    /// `y` from `x` and `w`.
    Forward,
    /// The gradient of `x` from that of `y`, and `w`.
    DataGradient,
    /// The gradient of `w` from that of `y`, and `x`.
    WeightGradient,
}

impl Pass {
    fn title(self) -> &'static str {
        match self {
            Self::Forward => "convolution",
            Self::DataGradient => "data gradient of the convolution",
            Self::WeightGradient => "weight gradient of the convolution",
        }
    }
}

/// How one pass of one shape is computed.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Choice {
    /// The convolution.
    pub shape: ConvolutionShape,
    /// Which of its computations.
    pub pass: Pass,
    /// cuDNN's number of the algorithm.
    pub algorithm: i32,
    /// cuDNN's number of the kind of arithmetic.
    pub math: i32,
    /// Scratch memory it needs.
    pub workspace_bytes: usize,
    /// Milliseconds it took when it was chosen.
    pub milliseconds: f64,
}

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
                let choice = call.choose(context, shape, scratch.as_ref().map_or(output, Buffer::view))?;
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

/// One convolution about to be computed.
struct Call<'a> {
    cudnn: &'static Cudnn,
    handle: Handle,
    descriptors: &'a Descriptors,
    pass: Pass,
    inputs: [View; 2],
}

impl Call<'_> {
    /// Descriptors in the order of cuDNN's arguments: the two inputs and the output.
    fn operands(&self) -> [Handle; 3] {
        let Descriptors { x, w, y, .. } = *self.descriptors;
        match self.pass {
            Pass::Forward => [x, w, y],
            Pass::DataGradient => [w, y, x],
            Pass::WeightGradient => [x, y, w],
        }
    }

    /// Times all deterministic algorithms and returns the fastest.
    fn choose(&self, context: &Context, shape: &ConvolutionShape, output: View) -> Result<Choice> {
        let none = || Error::NoEngine(format!("{} {shape}", self.pass.title()));
        let mut best: Option<Choice> = None;
        // Tensor cores first; ordinary arithmetic only where there is nothing else, as it takes seconds to try.
        let maths: &[c_int] =
            if shape.precision == Precision::F32 { &[FMA_MATH] } else { &[TENSOR_MATH, DEFAULT_MATH] };
        for &math in maths {
            for report in self.reports(math)? {
                let candidate = Choice {
                    shape: *shape,
                    pass: self.pass,
                    algorithm: report.algorithm,
                    math,
                    workspace_bytes: self.workspace_bytes(report.algorithm, math)?,
                    milliseconds: f64::INFINITY,
                };
                let limit = best.map_or(f64::INFINITY, |best| 2.0 * best.milliseconds);
                let Ok(milliseconds) = self.time(context, &candidate, output, limit) else { continue };
                if best.is_none_or(|best| milliseconds < best.milliseconds) {
                    best = Some(Choice { milliseconds, ..candidate });
                }
            }
            if best.is_some() {
                break;
            }
        }
        best.ok_or_else(none)
    }

    /// Deterministic algorithms that cuDNN offers, those it thinks fast first.
    fn reports(&self, math: c_int) -> Result<Vec<AlgorithmReport>> {
        let [first, second, third] = self.operands();
        let convolution = self.descriptors.convolution;
        let (call, function) = match self.pass {
            Pass::Forward => ("cudnnGetConvolutionForwardAlgorithm_v7", self.cudnn.forward_algorithms),
            Pass::DataGradient => ("cudnnGetConvolutionBackwardDataAlgorithm_v7", self.cudnn.data_algorithms),
            Pass::WeightGradient => {
                ("cudnnGetConvolutionBackwardFilterAlgorithm_v7", self.cudnn.weight_algorithms)
            }
        };
        let mut reports = [AlgorithmReport::default(); 16];
        let mut count = 0;
        // SAFETY: cuDNN writes at most as many reports as we ask for.
        unsafe {
            self.cudnn.check("cudnnSetConvolutionMathType", (self.cudnn.set_math)(convolution, math))?;
            self.cudnn.check(
                call,
                function(
                    self.handle,
                    first,
                    second,
                    convolution,
                    third,
                    16,
                    &mut count,
                    reports.as_mut_ptr(),
                ),
            )?;
        }
        let mut kept: Vec<AlgorithmReport> = Vec::new();
        for report in reports.into_iter().take(usize::try_from(count).unwrap_or(0)) {
            let is_new = !kept.iter().any(|known| known.algorithm == report.algorithm);
            // A report may be about other arithmetic than was asked for; the algorithm is then not tried with ours.
            let is_ours = math != TENSOR_MATH || report.math == TENSOR_MATH;
            let is_usable =
                report.status == 0 && report.determinism == DETERMINISTIC && report.memory <= WORKSPACE_LIMIT;
            if is_usable && is_new && is_ours {
                kept.push(report);
            }
        }
        Ok(kept)
    }

    /// Best of four runs, in milliseconds; of fewer where they take longer than `limit`.
    fn time(&self, context: &Context, candidate: &Choice, output: View, limit: f64) -> Result<f64> {
        let mut best = f64::INFINITY;
        for run in 0..4 {
            let timer = Timer::start(context)?;
            self.execute(context, candidate, output, false)?;
            best = best.min(timer.stop()?);
            // The first run may load code, so it is no measure of the fast ones.
            if (run == 0 && best > limit.max(20.0)) || (run == 1 && best > limit) {
                break;
            }
        }
        Ok(best)
    }

    fn workspace_bytes(&self, algorithm: c_int, math: c_int) -> Result<usize> {
        let [first, second, third] = self.operands();
        let (cudnn, convolution) = (self.cudnn, self.descriptors.convolution);
        let function = match self.pass {
            Pass::Forward => cudnn.forward_workspace,
            Pass::DataGradient => cudnn.data_workspace,
            Pass::WeightGradient => cudnn.weight_workspace,
        };
        let mut bytes = 0;
        // SAFETY: descriptors are alive; writes one number.
        unsafe {
            cudnn.check("cudnnSetConvolutionMathType", (cudnn.set_math)(convolution, math))?;
            let status = function(self.handle, first, second, convolution, third, algorithm, &mut bytes);
            cudnn.check("cudnnGetConvolutionWorkspaceSize", status)?;
        }
        Ok(bytes)
    }

    fn execute(&self, context: &Context, choice: &Choice, output: View, accumulate: bool) -> Result<()> {
        let [first, second, third] = self.operands();
        let (cudnn, convolution) = (self.cudnn, self.descriptors.convolution);
        let (call, function) = match self.pass {
            Pass::Forward => ("cudnnConvolutionForward", cudnn.forward),
            Pass::DataGradient => ("cudnnConvolutionBackwardData", cudnn.data_gradient),
            Pass::WeightGradient => ("cudnnConvolutionBackwardFilter", cudnn.weight_gradient),
        };
        let bytes = choice.workspace_bytes;
        let workspace = if bytes > 0 { Some(context.allocate(bytes)?) } else { None };
        let one = 1.0f32;
        let beta = if accumulate { 1.0f32 } else { 0.0f32 };
        // SAFETY: descriptors and buffers are alive, and `require_size` compared their sizes.
        unsafe {
            cudnn.check("cudnnSetConvolutionMathType", (cudnn.set_math)(convolution, choice.math))?;
            cudnn.check(
                call,
                function(
                    self.handle,
                    std::ptr::from_ref(&one).cast::<c_void>(),
                    first,
                    self.inputs[0].address,
                    second,
                    self.inputs[1].address,
                    convolution,
                    choice.algorithm,
                    workspace.as_ref().map_or(0, Buffer::address),
                    bytes,
                    std::ptr::from_ref(&beta).cast::<c_void>(),
                    third,
                    output.address,
                ),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape() -> ConvolutionShape {
        ConvolutionShape {
            batch: 2,
            height: 65,
            width: 65,
            channels_in: 128,
            channels_out: 128,
            kernel: [3, 3],
            padding: [0, 0],
            stride: [2, 2],
            precision: Precision::Bf16,
        }
    }

    #[test]
    fn output_size_is_that_of_an_unpadded_strided_convolution() {
        assert_eq!(shape().output_size(), [32, 32]);
        assert_eq!(ConvolutionShape { padding: [1, 1], stride: [1, 1], ..shape() }.output_size(), [65, 65]);
    }

    #[test]
    fn choices_survive_a_round_trip_through_json() {
        let choice = Choice {
            shape: shape(),
            pass: Pass::WeightGradient,
            algorithm: 1,
            math: 1,
            workspace_bytes: 1 << 20,
            milliseconds: 0.46,
        };
        let text = serde_json::to_string(&choice).unwrap();
        assert_eq!(serde_json::from_str::<Choice>(&text).unwrap(), choice);
    }
}
