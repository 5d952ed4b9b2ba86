//! The explorer: a page on the loopback address where a person sees what a run has learnt. Views are rendered live, put
//! through the network, compared with the stored ones, moved in pose space; all views are a map; runs are curves.
//!
//! [`Explorer`] holds the runs and the data; [`server`] answers requests, each of which ends in one of the small files of
//! `routes`. The page itself is plain HTML, CSS and JavaScript in `assets/`, compiled in; nothing comes from the network.

mod assets;
mod data;
mod error;
mod explorer;
mod guard;
mod map;
mod network;
mod networks;
mod principal;
mod refusal;
mod routes;
mod run;
mod scene_query;
pub mod server;
mod stage;

pub use error::{Error, Result};
pub use explorer::{Explorer, Options};
pub use server::{Address, Server};
