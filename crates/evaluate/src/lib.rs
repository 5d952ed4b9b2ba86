//! How good a network's weights are: frozen features, probes on them, and retrieval among equivariant embeddings.
//!
//! The features of all views are computed once, with the network in evaluation mode, and kept on disk
//! ([`features`]); everything else works on these tables, on the CPU or in a GPU's memory ([`FeatureTable`]). [`probe`]
//! trains the published probes, [`retrieval`] has MRR, H@k and PRE, [`results`] is what one evaluation writes.

pub mod agreement;
pub mod builtin;
pub mod cuda;
mod encoder;
mod error;
pub mod evaluation;
pub mod feature_file;
mod feature_table;
pub mod features;
mod ground_truth;
mod head;
pub mod image_features;
mod metrics;
pub mod neighbours;
mod network;
pub mod object_scores;
pub mod pose_space;
pub mod prediction;
pub mod probe;
pub mod protocol;
pub mod results;
pub mod retrieval;
mod verdict;
pub mod view_errors;
pub mod weights;

pub use engine::nearest;

pub use encoder::{Encoded, Encoder, Widths};
pub use error::{Error, Result};
pub use feature_table::FeatureTable;
pub use features::{FeatureKind, Features, Table};
pub use ground_truth::GroundTruth;
pub use network::NetworkEncoder;
pub use protocol::{Preset, Protocol, Task};
pub use results::Results;
