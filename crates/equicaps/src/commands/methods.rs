//! `equicaps methods`: the objectives that networks can be trained with, their presets and their layers, and the groups
//! of transformations.

use std::fmt;

use engine::StoreBuilder;
use methods::{MethodName, Model};
use pose::Group;
use serde::Serialize;
use train::Config;

use crate::UsageError;
use crate::outcome::Outcome;

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
pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    match &arguments.command {
        None => Outcome::new(&list()),
        Some(Command::Show { name, preset, backbone }) => {
            Outcome::new(&show(name, preset, backbone.as_deref())?)
        }
    }
}

/// All methods.
#[derive(Serialize)]
struct MethodList {
    methods: Vec<Method>,
    transforms: Vec<Transform>,
}

/// A group of transformations that they can be trained on.
#[derive(Serialize)]
struct Transform {
    name: &'static str,
    summary: &'static str,
    matrix: String,
    parameters: Vec<String>,
}

#[derive(Serialize)]
struct Method {
    name: &'static str,
    summary: &'static str,
}

impl fmt::Display for MethodList {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.methods.iter().map(|method| format!("{:15} {}", method.name, method.summary));
        writeln!(formatter, "{}", lines.collect::<Vec<_>>().join("\n"))?;
        writeln!(formatter, "\nTransformations between two views (--transform), with their matrices:")?;
        let lines = self.transforms.iter().map(|transform| {
            let Transform { name, matrix, summary, .. } = transform;
            format!("{name:17} {matrix} {summary}")
        });
        formatter.write_str(&lines.collect::<Vec<_>>().join("\n"))
    }
}

fn list() -> MethodList {
    let method = |method: MethodName| Method { name: method.name(), summary: method.summary() };
    let transform = |group: Group| Transform {
        name: group.name,
        summary: group.summary,
        matrix: format!("{side}x{side}", side = group.side),
        parameters: group.parameter_names(),
    };
    MethodList {
        methods: MethodName::all().into_iter().map(method).collect(),
        transforms: Group::ALL.into_iter().map(transform).collect(),
    }
}

/// One method: its settings and layers.
#[derive(Serialize)]
struct MethodDetails {
    name: String,
    config: Config,
    layers: Vec<Layer>,
    parameters: usize,
    #[serde(skip)]
    resolved: String,
}

#[derive(Serialize)]
struct Layer {
    name: String,
    shape: Vec<usize>,
    parameters: usize,
}

impl fmt::Display for MethodDetails {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{}", self.resolved)?;
        for Layer { name, shape, parameters } in &self.layers {
            writeln!(formatter, "{name:45} {:22} {parameters:>11}", format!("{shape:?}"))?;
        }
        write!(formatter, "{:45} {:22} {:>11}", "all parameters", "", self.parameters)
    }
}

fn show(name: &str, preset: &str, backbone: Option<&str>) -> anyhow::Result<MethodDetails> {
    let usage = |error: train::Error| UsageError(error.to_string());
    let mut config = Config::resolve(Config::settings(name, preset).map_err(usage)?).map_err(usage)?;
    if let Some(backbone) = backbone {
        config.method.backbone =
            backbone.parse().map_err(|error: methods::UnknownName| UsageError(error.to_string()))?;
    }
    let mut builder = StoreBuilder::new();
    Model::init(&config.method, &mut builder)?;
    let layers: Vec<Layer> = builder
        .declared()
        .map(|(name, shape)| {
            let shape = shape.dims().to_vec();
            Layer { name: name.to_owned(), parameters: shape.iter().product(), shape }
        })
        .collect();
    let parameters = layers.iter().map(|layer| layer.parameters).sum();
    let resolved = toml::to_string(&config)?;
    Ok(MethodDetails { name: name.to_owned(), config, layers, parameters, resolved })
}
