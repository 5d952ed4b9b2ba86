//! `equicaps methods`: the objectives that networks can be trained with, their presets and their layers.

use std::fmt::Write as _;
use std::process::ExitCode;

use engine::StoreBuilder;
use methods::{MethodName, Model};
use serde_json::json;
use train::Config;

use crate::UsageError;
use crate::terminal::Terminal;

/// Arguments of `equicaps methods`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  equicaps methods
  equicaps methods show sie --preset small")]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Print a method's resolved preset and its layers with shapes and parameter counts
    #[command(after_help = "Examples:
  equicaps methods show equicaps
  equicaps methods show sie --preset small")]
    Show {
        /// Method
        #[arg(value_name = "NAME")]
        name: String,
        /// Preset: paper, small, demo, or a TOML file
        #[arg(long, value_name = "PRESET", default_value = "paper")]
        preset: String,
        /// Backbone: resnet18 or vit_tiny
        #[arg(long, value_name = "NAME")]
        backbone: Option<String>,
    },
}

/// Runs `equicaps methods`.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        None => list(terminal),
        Some(Command::Show { name, preset, backbone }) => show(terminal, name, preset, backbone.as_deref())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(terminal: &Terminal) {
    let mut text = String::new();
    let mut entries = Vec::new();
    for method in MethodName::all() {
        let _ = writeln!(text, "{:15} {}", method.name(), method.summary());
        entries.push(json!({ "name": method.name(), "summary": method.summary() }));
    }
    terminal.result(text.trim_end(), &json!({ "methods": entries }));
}

fn show(terminal: &Terminal, name: &str, preset: &str, backbone: Option<&str>) -> anyhow::Result<()> {
    let usage = |error: train::Error| UsageError(error.to_string());
    let mut config = Config::resolve(Config::settings(name, preset).map_err(usage)?).map_err(usage)?;
    if let Some(backbone) = backbone {
        config.method.backbone =
            backbone.parse().map_err(|error: methods::UnknownName| UsageError(error.to_string()))?;
    }
    let mut builder = StoreBuilder::new();
    Model::init(&config.method, &mut builder)?;
    let layers: Vec<(String, Vec<usize>)> =
        builder.declared().map(|(name, shape)| (name.to_owned(), shape.dims().to_vec())).collect();
    let count = |shape: &[usize]| shape.iter().product::<usize>();
    let total: usize = layers.iter().map(|(_, shape)| count(shape)).sum();
    let resolved = toml::to_string(&config)?;
    let mut text = format!("{resolved}\n");
    for (name, shape) in &layers {
        let _ = writeln!(text, "{name:45} {:22} {:>11}", format!("{shape:?}"), count(shape));
    }
    let _ = write!(text, "{:45} {:22} {total:>11}", "all parameters", "");
    let listed: Vec<_> = layers
        .iter()
        .map(|(name, shape)| json!({ "name": name, "shape": shape, "parameters": count(shape) }))
        .collect();
    let json = json!({ "name": name, "config": config, "layers": listed, "parameters": total });
    terminal.result(text, &json);
    Ok(())
}
