//! One call of cuDNN: trying its algorithms, and running the one that was chosen.

use std::ffi::{c_int, c_void};

use super::{Choice, ConvolutionShape, Pass};
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
/// Forward algorithms by Fourier's and Winograd's transforms, which lose the digits that f16 has more than bf16. (Only
/// forward passes are computed in f16.)
const TRANSFORMED: std::ops::RangeInclusive<c_int> = 4..=7;

/// One convolution about to be computed.
pub(super) struct Call<'a> {
    pub cudnn: &'static Cudnn,
    pub handle: Handle,
    pub descriptors: &'a Descriptors,
    pub pass: Pass,
    pub inputs: [View; 2],
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

    /// Times all deterministic algorithms and returns the fastest; or, where they are not to be timed, the first that
    /// works.
    pub fn choose(
        &self,
        context: &Context,
        shape: &ConvolutionShape,
        output: View,
        is_timed: bool,
    ) -> Result<Choice> {
        let none = || Error::NoEngine(format!("{} {shape}", self.pass.title()));
        let mut best: Option<Choice> = None;
        // Tensor cores first; ordinary arithmetic only where there is nothing else, as it takes seconds to try.
        let maths: &[c_int] =
            if shape.precision == Precision::F32 { &[FMA_MATH] } else { &[TENSOR_MATH, DEFAULT_MATH] };
        for &math in maths {
            for report in self.reports(math)? {
                if shape.precision == Precision::F16 && TRANSFORMED.contains(&report.algorithm) {
                    continue;
                }
                let candidate = Choice {
                    shape: *shape,
                    pass: self.pass,
                    algorithm: report.algorithm,
                    math,
                    workspace_bytes: self.workspace_bytes(report.algorithm, math)?,
                    milliseconds: f64::INFINITY,
                };
                if !is_timed {
                    if self.execute(context, &candidate, output, false).is_ok() {
                        return Ok(Choice { milliseconds: 0.0, ..candidate });
                    }
                    continue;
                }
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

    pub fn execute(&self, context: &Context, choice: &Choice, output: View, accumulate: bool) -> Result<()> {
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
