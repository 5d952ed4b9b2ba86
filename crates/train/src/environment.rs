//! `environment.json`: with what a run was made. One entry a session, newest last.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::durable;
use crate::error::{Error, Result};

/// One session's surroundings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// The program's version.
    pub version: String,
    /// The commit it was built from, where known.
    pub commit: Option<String>,
    /// The command as it was given.
    pub command: Vec<String>,
    /// Operating system and processor architecture.
    pub system: String,
    /// The device, in words.
    pub device: String,
    /// Libraries and their versions, as far as they matter for the numbers.
    pub libraries: Vec<String>,
    /// Processor cores.
    pub cores: usize,
    /// What the data are, in words.
    pub data: String,
    /// The step at which the session began.
    pub from_step: u64,
    /// When the session began: seconds since 1970.
    pub started_unix_secs: u64,
}

/// Adds `environment` to the file at `path`.
pub fn append(path: &Path, environment: Environment) -> Result<()> {
    let mut sessions = read(path).unwrap_or_default();
    sessions.push(environment);
    let text = serde_json::to_string_pretty(&sessions)
        .map_err(|error| Error::content(path, format!("cannot write: {error}")))?;
    durable::publish_bytes(path, text.as_bytes())
}

/// The sessions in the file at `path`.
pub fn read(path: &Path) -> Result<Vec<Environment>> {
    let text = std::fs::read_to_string(path).map_err(Error::read(path))?;
    serde_json::from_str(&text)
        .map_err(|error| Error::content(path, format!("is not a list of sessions: {error}")))
}
