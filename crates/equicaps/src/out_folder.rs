//! Folders that results go into: one that holds something else is not taken, so that nothing of it is lost.

use std::path::{Path, PathBuf};

use crate::UsageError;
use crate::terminal::shown;

/// Refuses `folder` where it holds files and none that is `ours`, by which one of an earlier call is known.
pub fn refuse_others(folder: &Path, what: &str, ours: impl Fn(&Path) -> bool) -> Result<(), UsageError> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(()) };
    let held: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    if held.is_empty() || held.iter().any(|path| ours(path)) {
        return Ok(());
    }
    let folder = shown(folder);
    Err(UsageError(format!("{folder} is not empty and holds no {what}; use another --out")))
}
