//! The functions of cuDNN that we call, and its descriptors as owned values.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

use crate::driver::{Handle, functions};
use crate::libraries::{self, Wanted};
use crate::{Error, Precision, Result};

/// What cuDNN says about one algorithm (`cudnnConvolution*AlgoPerf_t`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AlgorithmReport {
    pub algorithm: c_int,
    pub status: c_int,
    pub time: f32,
    pub memory: usize,
    pub determinism: c_int,
    pub math: c_int,
    pub reserved: [c_int; 3],
}

functions! {
    /// cuDNN.
    Cudnn {
        version = "cudnnGetVersion": fn() -> usize;
        error_string = "cudnnGetErrorString": fn(c_int) -> *const c_char;
        create = "cudnnCreate": fn(*mut Handle) -> c_int;
        destroy = "cudnnDestroy": fn(Handle) -> c_int;
        set_stream = "cudnnSetStream": fn(Handle, Handle) -> c_int;
        create_tensor = "cudnnCreateTensorDescriptor": fn(*mut Handle) -> c_int;
        set_tensor = "cudnnSetTensor4dDescriptor": fn(Handle, c_int, c_int, c_int, c_int, c_int, c_int) -> c_int;
        destroy_tensor = "cudnnDestroyTensorDescriptor": fn(Handle) -> c_int;
        create_filter = "cudnnCreateFilterDescriptor": fn(*mut Handle) -> c_int;
        set_filter = "cudnnSetFilter4dDescriptor": fn(Handle, c_int, c_int, c_int, c_int, c_int, c_int) -> c_int;
        destroy_filter = "cudnnDestroyFilterDescriptor": fn(Handle) -> c_int;
        create_convolution = "cudnnCreateConvolutionDescriptor": fn(*mut Handle) -> c_int;
        set_convolution = "cudnnSetConvolution2dDescriptor": fn(
            Handle, c_int, c_int, c_int, c_int, c_int, c_int, c_int, c_int
        ) -> c_int;
        set_math = "cudnnSetConvolutionMathType": fn(Handle, c_int) -> c_int;
        destroy_convolution = "cudnnDestroyConvolutionDescriptor": fn(Handle) -> c_int;
        forward_algorithms = "cudnnGetConvolutionForwardAlgorithm_v7": fn(
            Handle, Handle, Handle, Handle, Handle, c_int, *mut c_int, *mut AlgorithmReport
        ) -> c_int;
        data_algorithms = "cudnnGetConvolutionBackwardDataAlgorithm_v7": fn(
            Handle, Handle, Handle, Handle, Handle, c_int, *mut c_int, *mut AlgorithmReport
        ) -> c_int;
        weight_algorithms = "cudnnGetConvolutionBackwardFilterAlgorithm_v7": fn(
            Handle, Handle, Handle, Handle, Handle, c_int, *mut c_int, *mut AlgorithmReport
        ) -> c_int;
        forward_workspace = "cudnnGetConvolutionForwardWorkspaceSize": fn(
            Handle, Handle, Handle, Handle, Handle, c_int, *mut usize
        ) -> c_int;
        data_workspace = "cudnnGetConvolutionBackwardDataWorkspaceSize": fn(
            Handle, Handle, Handle, Handle, Handle, c_int, *mut usize
        ) -> c_int;
        weight_workspace = "cudnnGetConvolutionBackwardFilterWorkspaceSize": fn(
            Handle, Handle, Handle, Handle, Handle, c_int, *mut usize
        ) -> c_int;
        forward = "cudnnConvolutionForward": fn(
            Handle, *const c_void, Handle, u64, Handle, u64, Handle, c_int, u64, usize, *const c_void, Handle, u64
        ) -> c_int;
        data_gradient = "cudnnConvolutionBackwardData": fn(
            Handle, *const c_void, Handle, u64, Handle, u64, Handle, c_int, u64, usize, *const c_void, Handle, u64
        ) -> c_int;
        weight_gradient = "cudnnConvolutionBackwardFilter": fn(
            Handle, *const c_void, Handle, u64, Handle, u64, Handle, c_int, u64, usize, *const c_void, Handle, u64
        ) -> c_int;
    }
}

const NHWC: c_int = 1;
const FLOAT: c_int = 0;
const CROSS_CORRELATION: c_int = 1;

/// cuDNN's number for a storage type.
fn data_type(precision: Precision) -> c_int {
    match precision {
        Precision::F32 => FLOAT,
        Precision::F16 => 2,
        Precision::Bf16 => 9,
    }
}

impl Cudnn {
    /// cuDNN, loaded on the first call.
    pub(crate) fn get() -> Result<&'static Self> {
        static CUDNN: OnceLock<Result<Cudnn>> = OnceLock::new();
        CUDNN
            .get_or_init(|| Self::from_library(libraries::load(Wanted::Cudnn)?))
            .as_ref()
            .map_err(Clone::clone)
    }

    pub(crate) fn check(&self, call: &'static str, status: c_int) -> Result<()> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: cuDNN returns a constant string for any number.
        let message = unsafe { CStr::from_ptr((self.error_string)(status)) }.to_string_lossy().into_owned();
        Err(Error::Cudnn { call, message })
    }
}

/// cuDNN's version, for example 91900.
pub(crate) fn library_version() -> Option<usize> {
    let cudnn = Cudnn::get().ok()?;
    // SAFETY: takes nothing.
    Some(unsafe { (cudnn.version)() })
}

/// The descriptors of one convolution.
#[derive(Debug)]
pub(crate) struct Descriptors {
    cudnn: &'static Cudnn,
    pub x: Handle,
    pub w: Handle,
    pub y: Handle,
    pub convolution: Handle,
}

// SAFETY: descriptors are plain memory of cuDNN's; ours are read and written only with the lock held of the state that
// keeps them.
unsafe impl Send for Descriptors {}

impl Descriptors {
    pub(crate) fn new(cudnn: &'static Cudnn, shape: &crate::convolution::ConvolutionShape) -> Result<Self> {
        let null = std::ptr::null_mut();
        let mut made = Self { cudnn, x: null, w: null, y: null, convolution: null };
        let int = |value: usize| c_int::try_from(value).unwrap_or(c_int::MAX);
        let numbers = data_type(shape.precision);
        let [height_out, width_out] = shape.output_size();
        // SAFETY: each call writes one handle or sets a descriptor just made.
        unsafe {
            for (slot, height, width, channels) in [
                (&mut made.x, shape.height, shape.width, shape.channels_in),
                (&mut made.y, height_out, width_out, shape.channels_out),
            ] {
                cudnn.check("cudnnCreateTensorDescriptor", (cudnn.create_tensor)(slot))?;
                let (n, c, h, w) = (int(shape.batch), int(channels), int(height), int(width));
                cudnn.check(
                    "cudnnSetTensor4dDescriptor",
                    (cudnn.set_tensor)(*slot, NHWC, numbers, n, c, h, w),
                )?;
            }
            cudnn.check("cudnnCreateFilterDescriptor", (cudnn.create_filter)(&mut made.w))?;
            let (k, c) = (int(shape.channels_out), int(shape.channels_in));
            let [r, s] = shape.kernel.map(int);
            cudnn
                .check("cudnnSetFilter4dDescriptor", (cudnn.set_filter)(made.w, numbers, NHWC, k, c, r, s))?;
            cudnn.check(
                "cudnnCreateConvolutionDescriptor",
                (cudnn.create_convolution)(&mut made.convolution),
            )?;
            let ([ph, pw], [sh, sw]) = (shape.padding.map(int), shape.stride.map(int));
            cudnn.check(
                "cudnnSetConvolution2dDescriptor",
                (cudnn.set_convolution)(made.convolution, ph, pw, sh, sw, 1, 1, CROSS_CORRELATION, FLOAT),
            )?;
        }
        Ok(made)
    }
}

impl Drop for Descriptors {
    fn drop(&mut self) {
        // SAFETY: null, or ours and not used again.
        unsafe {
            for tensor in [self.x, self.y] {
                if !tensor.is_null() {
                    (self.cudnn.destroy_tensor)(tensor);
                }
            }
            if !self.w.is_null() {
                (self.cudnn.destroy_filter)(self.w);
            }
            if !self.convolution.is_null() {
                (self.cudnn.destroy_convolution)(self.convolution);
            }
        }
    }
}
