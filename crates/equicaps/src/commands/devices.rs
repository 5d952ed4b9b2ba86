//! `equicaps devices`: what this machine can compute on, and, where a GPU cannot be used, what is missing.

use std::fmt;

use gpu::DeviceProperties;
use gpu::libraries::{self, Wanted};
use serde::Serialize;

use crate::outcome::{Outcome, count};

/// Arguments of `equicaps devices`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  equicaps devices
  equicaps devices --json")]
pub struct Arguments {}

/// What there is to compute on.
#[derive(Serialize)]
struct DeviceList {
    devices: Vec<FoundDevice>,
    libraries: Vec<Library>,
    /// What several processes need to train together.
    ranks: Ranks,
    /// Why there is no GPU.
    #[serde(skip)]
    no_gpu: Option<String>,
}

#[derive(Serialize)]
struct Ranks {
    nccl: Library,
    /// The MPI library that this program is linked with.
    mpi: Option<String>,
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum FoundDevice {
    Cpu { name: &'static str, usable: bool, threads: usize },
    Cuda { name: String, usable: bool, refusal: Option<String>, properties: DeviceProperties },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Library {
    Found {
        library: &'static str,
        found: String,
        version: Option<String>,
    },
    Missing {
        library: &'static str,
        found: (),
        looked_for: Vec<String>,
        places: Vec<String>,
        failures: Vec<String>,
        install: String,
    },
    Unusable {
        library: &'static str,
        found: (),
        error: String,
    },
}

/// Runs `equicaps devices`.
pub fn run() -> anyhow::Result<Outcome> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut devices = vec![FoundDevice::Cpu { name: "cpu", usable: true, threads }];
    let libraries: Vec<Library> = Wanted::ALL.into_iter().map(look_for).collect();
    let is_complete = libraries.iter().all(|library| matches!(library, Library::Found { .. }));
    let mut no_gpu = None;
    match gpu::devices() {
        Ok(found) if found.is_empty() => no_gpu = Some("the driver reports no GPU".to_owned()),
        Ok(found) => devices.extend(found.into_iter().map(|properties| {
            let refusal = properties.refusal().map(|error| error.to_string());
            let usable = refusal.is_none() && is_complete;
            FoundDevice::Cuda { name: format!("cuda:{}", properties.index), usable, refusal, properties }
        })),
        Err(gpu::Error::MissingLibrary(missing)) => {
            no_gpu = Some(format!("no GPU: {} was not found", missing.wanted.title()));
        }
        Err(error) => no_gpu = Some(format!("no GPU: {error}")),
    }
    let ranks = Ranks { nccl: look_for(Wanted::Nccl), mpi: ranks::mpi_version() };
    Outcome::new(&DeviceList { devices, libraries, ranks, no_gpu })
}

fn look_for(wanted: Wanted) -> Library {
    let library = wanted.title();
    match libraries::load(wanted) {
        Ok(loaded) => {
            let found = loaded.found.display().to_string();
            Library::Found { library, found, version: libraries::version(wanted) }
        }
        Err(gpu::Error::MissingLibrary(missing)) => Library::Missing {
            library,
            found: (),
            looked_for: missing.file_names.iter().map(ToString::to_string).collect(),
            places: missing.places.iter().map(ToString::to_string).collect(),
            failures: missing.failures.iter().map(ToString::to_string).collect(),
            install: wanted.installation().to_string(),
        },
        Err(error) => Library::Unusable { library, found: (), error: error.to_string() },
    }
}

impl fmt::Display for DeviceList {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for device in &self.devices {
            match device {
                FoundDevice::Cpu { threads, .. } => {
                    writeln!(formatter, "cpu     {}", count(threads, "thread"))?;
                }
                FoundDevice::Cuda { name, usable, refusal, properties } => {
                    let gigabytes = properties.memory_bytes as f64 / 1e9;
                    let (major, minor) = (properties.architecture.major, properties.architecture.minor);
                    let model = &properties.name;
                    write!(
                        formatter,
                        "{name}  {model}, {gigabytes:.0} GB, compute capability {major}.{minor}"
                    )?;
                    match refusal {
                        Some(refusal) => writeln!(formatter, " (not usable: {refusal})")?,
                        None if !usable => {
                            writeln!(formatter, " (not usable: libraries are missing, see below)")?
                        }
                        None => writeln!(formatter)?,
                    }
                }
            }
        }
        if let Some(reason) = &self.no_gpu {
            writeln!(formatter, "cuda    {reason}")?;
        }
        write!(formatter, "\nlibraries for CUDA devices")?;
        self.libraries.iter().try_for_each(|library| write!(formatter, "{library}"))?;
        write!(formatter, "\n\nfor several ranks (docs/distributed.md){}", self.ranks.nccl)?;
        match &self.ranks.mpi {
            Some(version) => write!(formatter, "\n  found    MPI: {version}"),
            None => write!(
                formatter,
                "\n  missing  MPI: built without it (cargo build --release --features mpi); ranks on CPUs need it"
            ),
        }
    }
}

impl fmt::Display for Library {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Found { library, found, version } => {
                let version = version.as_ref().map_or_else(String::new, |version| format!(" {version}"));
                write!(formatter, "\n  found    {library}{version}: {found}")
            }
            Self::Missing { library, looked_for, places, failures, install, .. } => {
                write!(formatter, "\n  missing  {library}")?;
                write!(formatter, "\n           looked for {}", looked_for.join(", "))?;
                write!(formatter, "\n           in {}", places.join(", "))?;
                let lines = failures.iter().chain([install]);
                lines.into_iter().try_for_each(|line| write!(formatter, "\n           {line}"))
            }
            Self::Unusable { library, error, .. } => {
                write!(formatter, "\n  missing  {library}\n           {error}")
            }
        }
    }
}
