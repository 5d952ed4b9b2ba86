//! What can go wrong in the engine, in sentences that name the operation and the shapes.

/// The engine's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of the engine.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An operation was given tensors whose shapes do not fit together.
    #[error("{op}: {detail}")]
    Shape {
        /// The operation.
        op: &'static str,
        /// What was given and what was expected.
        detail: String,
    },
    /// A tensor of another element type was expected.
    #[error("expected a tensor of {expected}, found {found} of shape {shape}")]
    DType {
        /// Wanted element type.
        expected: &'static str,
        /// Actual element type.
        found: &'static str,
        /// Shape of the tensor.
        shape: String,
    },
    /// Tensor memory was asked for on the wrong device.
    #[error("{what} is on {device}, not on the device that was asked for")]
    WrongDevice {
        /// Which tensor.
        what: String,
        /// Where it is.
        device: String,
    },
    /// Memory is still used elsewhere and cannot be written.
    #[error("{what} is still in use and cannot be changed (is a tape or a value of it still alive?)")]
    Shared {
        /// Which memory.
        what: String,
    },
    /// Not enough memory.
    #[error("out of memory on {device}: {needed} bytes more were needed, {in_use} bytes are in use")]
    OutOfMemory {
        /// Where.
        device: String,
        /// The request in bytes.
        needed: usize,
        /// Bytes in use by the pool.
        in_use: usize,
    },
    /// An operation that a device does not have.
    #[error("{op} is not available on {device}")]
    Unsupported {
        /// The operation.
        op: &'static str,
        /// The device.
        device: String,
    },
    /// A parameter or buffer that does not exist or does not fit.
    #[error("parameter {name}: {detail}")]
    Parameter {
        /// Published name.
        name: String,
        /// What is wrong.
        detail: String,
    },
    /// A failure of the GPU or its libraries.
    #[error(transparent)]
    Gpu(#[from] gpu::Error),
    /// Ranks that train together: one is gone, or they do not do the same.
    #[error("{0}")]
    Ranks(String),
    /// A failure reported by a device or its libraries.
    #[error("{0}")]
    Device(String),
}

impl Error {
    /// An [`Error::Shape`].
    pub fn shape(op: &'static str, detail: impl Into<String>) -> Self {
        Self::Shape { op, detail: detail.into() }
    }

    /// An [`Error::Parameter`].
    pub fn parameter(name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::Parameter { name: name.into(), detail: detail.into() }
    }
}
