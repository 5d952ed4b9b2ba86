//! `equicaps._native`: what the Python package asks of the program's crates. Arguments are checked and documented by the
//! Python side (`equicaps/*.py`); here arrays are taken and given without copies, the interpreter is let go while something
//! is computed, and signals are looked at between batches.
#![cfg(feature = "extension")]

mod dataset;
mod encoder;
mod errors;
mod rendering;
mod run;
mod warn;

use pyo3::prelude::*;

/// The extension module.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::dataset::Dataset;
    #[pymodule_export]
    use crate::encoder::{Encoder, find_images};
    #[pymodule_export]
    use crate::errors::Error;
    #[pymodule_export]
    use crate::rendering::{latent_names, render, sample_latents};
    #[pymodule_export]
    use crate::run::Run;
}
