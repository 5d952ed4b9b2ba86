//! This program as another process: studies and checks start it again.

use std::path::PathBuf;

use anyhow::Context;

/// Where this program is. On Linux a program that was replaced or removed since it was started, as a build does, is still
/// found: the same bytes, as long as this process lives.
pub fn program() -> anyhow::Result<PathBuf> {
    let path = std::env::current_exe().context("this program does not find itself")?;
    if cfg!(target_os = "linux") && !path.exists() {
        return Ok(PathBuf::from(format!("/proc/{}/exe", std::process::id())));
    }
    Ok(path)
}
