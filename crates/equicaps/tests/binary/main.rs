//! The program as its users call it: output, files, exit status, signals.

#![allow(clippy::unwrap_used)]

mod also;
mod by_views;
mod check_renders;
mod datasets;
mod evaluation;
mod exploring;
#[cfg(unix)]
mod faults;
mod groups;
mod importing;
#[cfg(unix)]
mod interruption;
mod meshes;
mod parity;
mod plan;
#[cfg(feature = "mpi")]
mod ranks;
mod saying;
mod storage;
mod study;
mod study_faults;
mod support;
mod training;
