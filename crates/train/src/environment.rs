//! `environment.json`: with what a run was made. One entry a session, newest last.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use dataset::durable;
use engine::Device;
use gpu::libraries::{self, Wanted};
use serde::{Deserialize, Serialize};

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
    /// How it ended; nothing while it goes on, or where it was killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
}

/// How a session ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// All epochs are done.
    Finished,
    /// Somebody interrupted it.
    Interrupted,
    /// Something went wrong: the sentence that said so.
    Failed(String),
}

impl Environment {
    /// What differs now from this session in a way that may change the bits of a run: one sentence each.
    pub fn differences(&self, device: &str, libraries: &[String]) -> Vec<String> {
        let mut found = Vec::new();
        if self.device != device {
            let before = &self.device;
            found.push(format!(
                "this run used {before} before; on {device} it continues, but not bit for bit"
            ));
        } else if self.libraries != libraries {
            let list = |libraries: &[String]| {
                if libraries.is_empty() { "none".to_owned() } else { libraries.join(", ") }
            };
            found.push(format!(
                "this run used {} before and now uses {}; it continues, but perhaps not bit for bit",
                list(&self.libraries),
                list(libraries)
            ));
        }
        found
    }
}

/// Notes in the file at `path` that a session begins on `device` at `from_step`; says what may change the bits of the
/// run.
pub fn begin(
    path: &Path,
    device: &Device,
    ranks: usize,
    data: String,
    from_step: u64,
) -> Result<Vec<String>> {
    let environment = Environment {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: option_env!("EQUICAPS_COMMIT").map(str::to_owned),
        command: std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect(),
        system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        device: in_words(device, ranks),
        libraries: libraries_of(device),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        data,
        from_step,
        started_unix_secs: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs(),
        ended: None,
    };
    let before = read(path).unwrap_or_default().pop();
    let differences = before.map(|before| before.differences(&environment.device, &environment.libraries));
    append(path, environment)?;
    Ok(differences.unwrap_or_default())
}

/// The device of so many ranks, in words.
pub(crate) fn in_words(device: &Device, ranks: usize) -> String {
    match ranks {
        1 => device.description(),
        _ => format!("{ranks} ranks, rank 0 on {}", device.description()),
    }
}

/// The libraries behind a device, with their versions.
fn libraries_of(device: &Device) -> Vec<String> {
    if matches!(device, Device::Cpu(_)) {
        return Vec::new();
    }
    let versions =
        Wanted::ALL.into_iter().filter_map(|wanted| Some((wanted.title(), libraries::version(wanted)?)));
    versions.map(|(title, version)| format!("{title} {version}")).collect()
}

/// Adds `environment` to the file at `path`.
fn append(path: &Path, environment: Environment) -> Result<()> {
    let mut sessions = read(path).unwrap_or_default();
    sessions.push(environment);
    write(path, &sessions)
}

/// Notes in the file at `path` how the last session ended.
pub fn end(path: &Path, ended: Ended) -> Result<()> {
    let mut sessions = read(path)?;
    if let Some(last) = sessions.last_mut() {
        last.ended = Some(ended);
    }
    write(path, &sessions)
}

fn write(path: &Path, sessions: &[Environment]) -> Result<()> {
    let text = serde_json::to_string_pretty(sessions)
        .map_err(|error| Error::content(path, format!("cannot write: {error}")))?;
    Ok(durable::write(path, text.as_bytes())?)
}

/// The sessions in the file at `path`.
pub fn read(path: &Path) -> Result<Vec<Environment>> {
    let text = std::fs::read_to_string(path).map_err(Error::read(path))?;
    serde_json::from_str(&text)
        .map_err(|error| Error::content(path, format!("is not a list of sessions: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_say_how_they_ended() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("environment.json");
        assert!(end(&path, Ended::Finished).is_err());
        append(&path, Environment::default()).unwrap();
        append(&path, Environment::default()).unwrap();
        end(&path, Ended::Failed("no".to_owned())).unwrap();
        let ends: Vec<_> = read(&path).unwrap().into_iter().map(|session| session.ended).collect();
        assert_eq!(ends, [None, Some(Ended::Failed("no".to_owned()))]);
        // Files of earlier versions say nothing of it.
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.matches("ended").count(), 1);
    }

    #[test]
    fn other_devices_and_libraries_are_named() {
        let before = Environment {
            device: "cuda:0 (A)".to_owned(),
            libraries: vec!["cuDNN 9.1".to_owned()],
            ..Environment::default()
        };
        assert!(before.differences("cuda:0 (A)", &["cuDNN 9.1".to_owned()]).is_empty());
        let other = before.differences("cuda:0 (B)", &["cuDNN 9.1".to_owned()]);
        assert_eq!(
            other,
            ["this run used cuda:0 (A) before; on cuda:0 (B) it continues, but not bit for bit"]
        );
        let newer = before.differences("cuda:0 (A)", &["cuDNN 9.2".to_owned()]);
        assert!(newer[0].contains("used cuDNN 9.1 before and now uses cuDNN 9.2"), "{newer:?}");
    }
}
