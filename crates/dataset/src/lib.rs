//! Datasets of views: objects, views, labels and splits on disk (the published folder layout and tar shards), views
//! rendered on the fly, the deterministic order of training, the prefetching loader.
//!
//! Training and evaluation use [`Views`] and [`Loader`]; [`Dataset`] is the one on disk, [`OnTheFly`] the one that is
//! rendered, and [`cuda`] renders on a GPU.

pub mod arrays;
pub mod card;
pub mod check;
mod checksums;
mod counted;
pub mod cuda;
pub mod descriptors;
pub mod durable;
pub mod error;
mod folder_depth;
mod image_file;
pub mod image_list;
pub mod import;
pub mod jpeg;
mod jpeg_segments;
pub mod latent_table;
mod lists;
mod loader;
mod mesh_warnings;
mod object;
mod on_the_fly;
pub mod order;
pub mod origin;
mod pattern;
mod photos;
pub mod plan;
mod printable;
mod readable;
mod reader;
mod resize;
mod shell_word;
mod side_folders;
mod source;
pub mod split;
pub mod stats;
mod storage;
pub mod tar;
mod training_plan;
mod view_index;
mod views;
pub mod work;

pub use counted::counted;
pub use cuda::CudaRenderer;
pub use error::{Error, Result};
pub use folder_depth::{WrongDepth, wrong_depth};
pub use image_list::Image;
pub use loader::{Allocate, Batch, Item, Loader, LoaderOptions, Memory, Pixels};
pub use mesh_warnings::shown_warnings;
pub use object::{Class, Object, Split, SplitBy};
pub use on_the_fly::{OnTheFly, OnTheFlyOptions};
pub use photos::{Photos, PhotosOptions, Picture, Warp, WarpRanges, Warps};
pub use printable::{printable, printable_lines, printable_path};
pub use readable::readable;
pub use reader::Dataset;
pub use resize::Resize;
pub use shell_word::shell_word;
pub use source::{CpuRenderer, DataSpec, ObjectSet, ProceduralSize};
pub use split::{FEWEST_VIEWS, held_out_views};
pub use training_plan::{Curriculum, TrainingPlan};
pub use view_index::ViewIndex;
pub use views::Views;
