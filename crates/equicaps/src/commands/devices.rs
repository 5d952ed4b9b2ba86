//! `equicaps devices`: what this machine can compute on, and, where a GPU cannot be used, what is missing.

use std::fmt::Write;
use std::process::ExitCode;

use gpu::libraries::{self, Wanted};
use serde_json::{Value, json};

use crate::terminal::Terminal;

/// Arguments of `equicaps devices`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  equicaps devices
  equicaps devices --json")]
pub struct Arguments {}

/// Runs `equicaps devices`.
pub fn run(_arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<ExitCode> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut text = format!("cpu     {threads} threads\n");
    let mut devices = vec![json!({ "name": "cpu", "kind": "cpu", "usable": true, "threads": threads })];
    let libraries: Vec<(Wanted, gpu::Result<&libraries::Loaded>)> =
        Wanted::ALL.into_iter().map(|wanted| (wanted, libraries::load(wanted))).collect();
    let missing = libraries.iter().filter(|(_, found)| found.is_err()).count();

    match gpu::devices() {
        Ok(found) => {
            for device in found {
                let name = format!("cuda:{}", device.index);
                let refusal = device.refusal().map(|error| error.to_string());
                let usable = refusal.is_none() && missing == 0;
                write!(
                    text,
                    "{name}  {}, {:.0} GB, compute capability {}.{}",
                    device.name,
                    device.memory_bytes as f64 / 1e9,
                    device.architecture.major,
                    device.architecture.minor
                )?;
                match &refusal {
                    Some(refusal) => writeln!(text, " (not usable: {refusal})")?,
                    None if missing > 0 => writeln!(text, " (not usable: see what is missing below)")?,
                    None => writeln!(text)?,
                }
                let mut entry = json!({ "name": name, "kind": "cuda", "usable": usable, "refusal": refusal });
                if let (Some(entry), Ok(Value::Object(properties))) =
                    (entry.as_object_mut(), serde_json::to_value(&device))
                {
                    entry.insert("properties".to_owned(), Value::Object(properties));
                }
                devices.push(entry);
            }
            if devices.len() == 1 {
                writeln!(text, "cuda    the driver reports no GPU")?;
            }
        }
        Err(error) => writeln!(text, "cuda    no GPU: {}", first_sentence(&error))?,
    }

    let mut report = Vec::new();
    writeln!(text, "\nlibraries for CUDA devices")?;
    for (wanted, found) in libraries {
        match found {
            Ok(loaded) => {
                let version = libraries::version(wanted);
                writeln!(
                    text,
                    "  found    {}{}: {}",
                    wanted.title(),
                    version_text(&version),
                    loaded.found.display()
                )?;
                report.push(json!({
                    "library": wanted.title(), "found": loaded.found.display().to_string(), "version": version
                }));
            }
            Err(error) => {
                writeln!(text, "  missing  {}", wanted.title())?;
                if let gpu::Error::MissingLibrary(missing) = &error {
                    writeln!(text, "           looked for {}", missing.file_names.join(", "))?;
                    writeln!(text, "           in {}", missing.places.join(", "))?;
                    for failure in &missing.failures {
                        writeln!(text, "           {failure}")?;
                    }
                    writeln!(text, "           {}", wanted.installation())?;
                    report.push(json!({
                        "library": wanted.title(), "found": null, "looked_for": missing.file_names,
                        "places": missing.places, "failures": missing.failures, "install": wanted.installation()
                    }));
                } else {
                    writeln!(text, "           {error}")?;
                    report.push(
                        json!({ "library": wanted.title(), "found": null, "error": error.to_string() }),
                    );
                }
            }
        }
    }
    terminal.result(text.trim_end(), &json!({ "devices": devices, "libraries": report }));
    Ok(ExitCode::SUCCESS)
}

/// The part of an error's message before its details.
fn first_sentence(error: &gpu::Error) -> String {
    match error {
        gpu::Error::MissingLibrary(missing) => format!("{} was not found", missing.wanted.title()),
        other => other.to_string(),
    }
}

fn version_text(version: &Option<String>) -> String {
    version.as_ref().map_or_else(String::new, |version| format!(" {version}"))
}
