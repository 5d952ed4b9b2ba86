//! What can go wrong on the device, each case in one sentence that says what to do about it.

use crate::libraries::Missing;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong on the device.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// A library was not found in any of the usual places.
    #[error("{0}")]
    MissingLibrary(Box<Missing>),
    /// A library was found, but is not the version we need.
    #[error("{library} has no function `{symbol}`: it is too old or not the library it seems to be")]
    MissingSymbol {
        /// Path or name of the library.
        library: String,
        /// The function that was looked for.
        symbol: String,
    },
    /// A call of the CUDA driver failed.
    #[error("the CUDA driver's {call} failed: {name} ({description})")]
    Driver {
        /// The function that failed.
        call: &'static str,
        /// The driver's name for the error.
        name: String,
        /// The driver's description of it.
        description: String,
    },
    /// There is no such device.
    #[error("there is no CUDA device {index}: {count} found")]
    NoDevice {
        /// The index asked for.
        index: usize,
        /// How many devices there are.
        count: usize,
    },
    /// The device is too old.
    #[error(
        "{name} has compute capability {major}.{minor}; 8.0 (Ampere, 2020) or later is needed for bfloat16 tensor cores"
    )]
    TooOld {
        /// The device's name.
        name: String,
        /// Its compute capability, before the point.
        major: u32,
        /// Its compute capability, after the point.
        minor: u32,
    },
    /// Device memory ran out.
    #[error(
        "out of GPU memory: {} more needed, {} of {} free, {} held by this program",
        gigabytes(*needed), gigabytes(*free), gigabytes(*total), gigabytes(*held)
    )]
    OutOfMemory {
        /// Bytes that were asked for.
        needed: usize,
        /// Bytes free on the device.
        free: usize,
        /// Bytes on the device.
        total: usize,
        /// Bytes in use by this program's buffers.
        held: usize,
    },
    /// A kernel does not compile.
    #[error("the kernel {kernel} does not compile for {architecture}:\n{log}")]
    Compile {
        /// Name of the source.
        kernel: String,
        /// What it was compiled for.
        architecture: String,
        /// The compiler's messages.
        log: String,
    },
    /// A call of NVRTC failed otherwise.
    #[error("NVRTC's {call} failed with status {status}")]
    Nvrtc {
        /// The function that failed.
        call: &'static str,
        /// Its status.
        status: i32,
    },
    /// A call of cuDNN failed.
    #[error("cuDNN's {call} failed: {message}")]
    Cudnn {
        /// The function that failed.
        call: &'static str,
        /// cuDNN's message.
        message: String,
    },
    /// cuDNN has no deterministic way to do a convolution.
    #[error("cuDNN has no deterministic engine for the {0}")]
    NoEngine(String),
    /// A tensor has more elements than cuDNN counts.
    #[error(
        "the convolution {0} has a tensor of 2^31 elements or more, which cuDNN does not take: use a smaller batch"
    )]
    TooLarge(String),
    /// A size is too large for a kernel that counts in `int`.
    #[error(
        "a kernel was to work on {0} things at once, but counts no more than 2147483647: use a smaller batch"
    )]
    BeyondInt(usize),
    /// A call of cuBLASLt failed.
    #[error("cuBLASLt's {call} failed with status {status}{detail}")]
    Blas {
        /// The function that failed.
        call: &'static str,
        /// Its status.
        status: i32,
        /// What was being computed.
        detail: String,
    },
    /// A call of NCCL failed.
    #[error("NCCL's {call} failed: {message}")]
    Nccl {
        /// The function that failed.
        call: &'static str,
        /// NCCL's message.
        message: String,
    },
    /// A buffer is smaller than what is to be read from or written to it.
    #[error("a device buffer of {have} bytes is too small for {what} of {need} bytes")]
    BufferTooSmall {
        /// What was to be done.
        what: &'static str,
        /// Bytes there are.
        have: usize,
        /// Bytes needed.
        need: usize,
    },
}

/// Bytes as gigabytes (10^9), for messages.
fn gigabytes(bytes: usize) -> String {
    format!("{:.2} GB", bytes as f64 / 1e9)
}
