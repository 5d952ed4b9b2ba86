//! `equicaps dataset stats`: histograms of latents and classes.

use std::fmt;
use std::path::PathBuf;

use dataset::Views;
use dataset::stats::{Histogram, class_counts, latent_histograms};
use report::dataset_stats;
use serde::Serialize;

use super::DatasetFolder;
use crate::out;
use crate::outcome::Outcome;
use crate::terminal::shown;

/// Arguments of `equicaps dataset stats`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  equicaps dataset stats views
  equicaps dataset stats views --out views.png")]
pub struct Arguments {
    #[command(flatten)]
    dataset: DatasetFolder,
    /// Also draw them, into this PNG file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    arguments.out.as_ref().map_or(Ok(()), |out| out::check_ending(out, &["png", "svg"]))?;
    let dataset = arguments.dataset.open()?;
    let latents = latent_histograms(&dataset);
    let classes = class_counts(&dataset);
    if let Some(out) = &arguments.out {
        let chart = dataset_stats::draw(&dataset, &latents, &classes)?;
        chart.write(out)?;
    }
    Outcome::new(&Stats {
        folder: shown(&arguments.dataset.folder),
        out: arguments.out.as_ref().map(shown),
        objects: dataset.objects().len(),
        views: dataset.views(),
        latents,
        classes: classes.into_iter().map(|(name, [train, val])| Class { name, train, val }).collect(),
        description: dataset.description(),
    })
}

/// How a dataset is distributed.
#[derive(Serialize)]
struct Stats {
    folder: String,
    out: Option<String>,
    objects: usize,
    views: usize,
    latents: Vec<Histogram>,
    classes: Vec<Class>,
    #[serde(skip)]
    description: String,
}

/// Objects of a class.
#[derive(Serialize)]
struct Class {
    name: String,
    train: u64,
    val: u64,
}

impl fmt::Display for Stats {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{}", self.description)?;
        if !self.latents.is_empty() {
            writeln!(formatter)?;
        }
        let width = self.latents.iter().map(|latent| latent.name.len()).max().unwrap_or(0).max(10);
        for latent in &self.latents {
            writeln!(formatter, "{}", latent.to_line(width))?;
        }
        let width = self.classes.iter().map(|class| class.name.chars().count()).max().unwrap_or(0).max(5);
        let most = self.classes.iter().map(|class| class.train + class.val).max().unwrap_or(0).max(1);
        writeln!(formatter, "\n{:<width$} {:>6} {:>6}", "class", "train", "val")?;
        for Class { name, train, val } in &self.classes {
            let bar = "#".repeat(((train + val) * 40).div_ceil(most) as usize);
            writeln!(formatter, "{name:<width$} {train:>6} {val:>6} {bar}")?;
        }
        match &self.out {
            Some(out) => write!(formatter, "\nchart: {out}"),
            None => Ok(()),
        }
    }
}
