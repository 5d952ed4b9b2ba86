//! Datasets of views: objects, views, labels and splits on disk (the published folder layout and tar shards), the
//! deterministic order of training, the prefetching loader.
//!
//! Training and evaluation use [`Views`] and [`Loader`]; [`Dataset`] is the one on disk.

pub mod arrays;
pub mod card;
pub mod check;
pub mod durable;
pub mod error;
pub mod jpeg;
pub mod latent_table;
pub mod lists;
pub mod loader;
pub mod object;
pub mod order;
pub mod picture;
pub mod plan;
pub mod reader;
pub mod resize;
pub mod split;
pub mod storage;
pub mod tar;
pub mod views;
pub mod work;

pub use error::{Error, Result};
pub use loader::{Batch, Loader, LoaderOptions};
pub use object::{Class, Object, Split};
pub use reader::Dataset;
pub use views::Views;
