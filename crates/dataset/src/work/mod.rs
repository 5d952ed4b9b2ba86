//! Making a dataset: resumable, by any number of jobs and processes, always the same bytes.
//!
//! Everything unfinished lives in the work folder `.equicaps` inside the dataset; the last step of making a dataset
//! removes it. The unit of work is an object: its views appear at once, as a folder (`files`) or as a fragment of an
//! archive (`shards`), or, where it cannot be used, as a skip record. What is there when a process starts need not be
//! done again, whoever did it. Archives are put together from fragments as soon as all their objects are settled.

mod finish;
mod names;
mod produce;
mod store;

pub use finish::{Finished, WARNINGS, finish};
pub use produce::{Failure, Outcome, ProduceOptions, Shard, ViewSource, produce};
pub use store::{Noticed, Skipped};

pub(crate) use finish::{SKIPPED, read_skipped};
pub(crate) use names::check as check_names;
pub(crate) use store::{WORK, holds_something_else, remove_work};
