//! `dataset`: see the layers in docs/architecture.md.
pub mod durable;
pub mod error;
pub mod jpeg;
pub mod object;
pub mod order;
pub mod resize;
pub mod split;
pub mod tar;
