//! `equicaps import`: converts weights of the published code (`.pth`) to a checkpoint that every other command takes.

use std::fmt;
use std::path::PathBuf;

use anyhow::bail;
use pose::Group;
use serde::Serialize;
use train::import::{Guess, Wishes};

use crate::UsageError;
use crate::outcome::Outcome;
use crate::terminal::{Terminal, shown};

/// Arguments of `equicaps import`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  equicaps import equicaps_3diebench.pth --out equicaps_3diebench.safetensors
  equicaps import motion.pth --transform rotation+base --out motion.safetensors
  equicaps import photos.pth --transform image-affine --out photos.safetensors
  equicaps import vicreg.pth --method vicreg --out vicreg.safetensors

Files of torch.save are read without executing anything in them. Method and sizes follow from
the names and shapes of the tensors. Use the checkpoint with evaluate, embed, neighbours, steer,
and train --init-from.")]
pub struct Arguments {
    /// A file of torch.save (.pth, .pt): a map of tensors by name, or one with such a map under "model"
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The checkpoint to write: a new file that ends in .safetensors
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// The method, where the names of the tensors do not decide it (vicreg or simclr)
    #[arg(long, value_name = "METHOD")]
    method: Option<String>,
    /// Trained for: rotation, rotation+base, image-affine, ... as in train --transform [default: by the shape of the poses]
    #[arg(long, value_name = "TRANSFORM")]
    transform: Option<String>,
    /// Input size in pixels [default: by the shape of the projector, or 256]
    #[arg(long, value_name = "N", value_parser = crate::commands::frame::image_size())]
    image_size: Option<usize>,
}

/// Runs the command.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<Outcome> {
    let out = &arguments.out;
    if out.extension().is_none_or(|ending| ending != "safetensors") {
        bail!(UsageError(format!("--out {}: expected a name that ends in .safetensors", out.display())));
    }
    if out.exists() {
        bail!("{} exists already; choose another name", out.display());
    }
    let wishes = Wishes {
        method: arguments.method.clone(),
        transform: arguments.transform.clone(),
        image_size: arguments.image_size,
    };
    let imported = train::import::import(&arguments.file, &wishes)?;
    let config = &imported.config.method;
    for guess in &imported.guesses {
        let size = config.image_size;
        terminal.warn(match guess {
            Guess::Method => format!(
                "there is a backbone and nothing else: assuming {}; give --method otherwise",
                config.name.name()
            ),
            Guess::Transform => {
                let taken = config.transform.group();
                let others = Group::of_side(taken.side).map(|group| group.name);
                let others: Vec<&str> = others.filter(|name| *name != taken.name).collect();
                format!(
                    "the poses are {side}x{side}: assuming training for {}; otherwise give --transform with one of {}",
                    taken.name,
                    others.join(", "),
                    side = taken.side
                )
            }
            Guess::ImageSize => format!(
                "nothing tells the size of the images: assuming {size}x{size}; give --image-size otherwise"
            ),
        });
    }
    if !imported.taken.anew.is_empty() {
        let parts: Vec<&str> = imported.taken.anew.iter().map(String::as_str).collect();
        terminal.warn(format!(
            "not in the file, or of other sizes: {}; there are no embeddings",
            parts.join(", ")
        ));
    }
    imported.checkpoint.write_to(out)?;
    Outcome::new(&Imported {
        checkpoint: shown(out),
        method: config.name.name(),
        transform: config.transform.name(),
        image_size: config.image_size,
        capsules: config.network.capsules,
        tensors: imported.taken.count,
        epochs: imported.checkpoint.position.epoch,
        next: format!("equicaps evaluate {} --data DATA --out DIR", dataset::shell_word(out)),
    })
}

/// A converted checkpoint.
#[derive(Serialize)]
struct Imported {
    checkpoint: String,
    method: &'static str,
    transform: &'static str,
    image_size: usize,
    capsules: usize,
    tensors: usize,
    epochs: u64,
    #[serde(skip)]
    next: String,
}

impl fmt::Display for Imported {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { checkpoint, method, transform, image_size, tensors, epochs, next, .. } = self;
        writeln!(
            formatter,
            "{checkpoint}: {method}, trained for {transform}, images of {image_size}x{image_size}"
        )?;
        write!(formatter, "{tensors} tensors, epoch {epochs}; evaluate it with: {next}")
    }
}
