//! A trained network for other programs: ONNX, PyTorch, safetensors, a folder for the Hugging Face hub.
//!
//! An [`Exported`] is the network in words and numbers. The ONNX graph ([`graph`]) and the PyTorch module ([`python`]) are
//! made of it. Every export is checked: what was written is read again, executed by plain loops that share nothing with
//! the engine ([`run`]), and compared with what the engine gives for the same images ([`images`]).

mod card;
mod check;
mod error;
mod graph;
mod images;
mod network;
#[allow(missing_docs, reason = "the fields are those of the standard")]
mod onnx;
mod python;
mod run;
mod write;

pub use check::LARGEST_DIFFERENCE;
pub use error::{Error, Result};
pub use images::COUNT as IMAGES;
pub use network::{Exported, Output, Part};
pub use onnx::OPSET;
pub use write::{Format, Report, Request, export};
