//! The program's sentences as Python exceptions.

use std::fmt::Display;

use pyo3::PyErr;
use pyo3::exceptions::{PyRuntimeError, PyValueError};

pyo3::create_exception!(
    equicaps,
    Error,
    PyRuntimeError,
    "What the program refuses or fails at, in one sentence."
);

/// The exception for what the program refuses.
pub fn refused(error: impl Display) -> PyErr {
    Error::new_err(::dataset::printable(&error.to_string()).into_owned())
}

/// The exception for an argument that makes no sense.
pub fn wrong(message: impl Display) -> PyErr {
    PyValueError::new_err(message.to_string())
}
