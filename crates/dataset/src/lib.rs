//! Datasets of views: objects, views, labels and splits on disk (the published folder layout and tar shards), views
//! rendered on the fly, the deterministic order of training, the prefetching loader.
//!
//! Training and evaluation use [`Views`] and [`Loader`]; [`Dataset`] is the one on disk, [`OnTheFly`] the one that is
//! rendered, and [`cuda`] renders on a GPU.

pub mod arrays;
pub mod card;
pub mod check;
pub mod cuda;
pub mod durable;
pub mod error;
mod image_file;
pub mod image_list;
pub mod jpeg;
mod jpeg_segments;
pub mod latent_table;
mod lists;
mod loader;
mod object;
mod on_the_fly;
pub mod order;
pub mod origin;
pub mod plan;
mod reader;
mod resize;
mod shell_word;
mod source;
mod split;
pub mod stats;
mod storage;
pub mod tar;
mod training_plan;
mod views;
pub mod work;

pub use cuda::CudaRenderer;
pub use error::{Error, Result};
pub use image_list::Image;
pub use loader::{Allocate, Batch, Item, Loader, LoaderOptions, Memory, Pixels};
pub use object::{Class, Object, Split};
pub use on_the_fly::{OnTheFly, OnTheFlyOptions};
pub use reader::Dataset;
pub use shell_word::shell_word;
pub use source::{CpuRenderer, DataSpec, ObjectSet, ProceduralSize};
pub use training_plan::TrainingPlan;
pub use views::Views;
