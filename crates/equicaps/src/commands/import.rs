//! `equicaps import`: weights of the published code (`.pth`) as a checkpoint that every other command takes.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;
use train::import::Wishes;

use crate::UsageError;
use crate::terminal::{Terminal, shown};

/// Arguments of `equicaps import`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  equicaps import equicaps_3diebench.pth --out equicaps_3diebench.safetensors
  equicaps import motion.pth --transform rotation+base --out motion.safetensors
  equicaps import vicreg.pth --method vicreg --out vicreg.safetensors

Files of torch.save are read, nothing in them is executed. Method and sizes are told by names
and shapes. The checkpoint can be evaluated, embedded with, steered, and trained on
(train --init-from).")]
pub struct Arguments {
    /// A file of torch.save (.pth, .pt): a map of tensors by name, or one with such a map under "model"
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The checkpoint to write: a new file that ends in .safetensors
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// The method, where names leave it open (vicreg or simclr)
    #[arg(long, value_name = "METHOD")]
    method: Option<String>,
    /// What it was trained for: rotation, rotation+object or rotation+base [default: what the poses' shape says]
    #[arg(long, value_name = "TRANSFORM")]
    transform: Option<String>,
    /// Side of the images in pixels [default: what the projector's shape says, or 256]
    #[arg(long, value_name = "N")]
    image_size: Option<usize>,
}

/// Runs the command.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<ExitCode> {
    let out = &arguments.out;
    if out.extension().is_none_or(|ending| ending != "safetensors") {
        return Err(UsageError(format!(
            "--out {}: expected a name that ends in .safetensors",
            out.display()
        ))
        .into());
    }
    if out.exists() {
        anyhow::bail!("{} exists already; choose another name", out.display());
    }
    let wishes = Wishes {
        method: arguments.method.clone(),
        transform: arguments.transform.clone(),
        image_size: arguments.image_size,
    };
    let imported = train::import::import(&arguments.file, &wishes)?;
    let config = &imported.config.method;
    if imported.guessed_transform {
        terminal.warn(format!(
            "poses of 4x4: taken as trained for {}; give --transform rotation+base where that is meant",
            config.transform
        ));
    }
    if !imported.taken.anew.is_empty() {
        let parts: Vec<&str> = imported.taken.anew.iter().map(String::as_str).collect();
        terminal.warn(format!(
            "not in the file, or of other sizes: {}; there are no embeddings",
            parts.join(", ")
        ));
    }
    imported.checkpoint.write_to(out)?;
    let epochs = imported.checkpoint.position.epoch;
    let (image, path) = (config.image_size, out.display());
    terminal.result(
        format!(
            "{path}: {}, trained for {}, images of {image}x{image}\n{} tensors, epoch {epochs}; look at it with: \
             equicaps evaluate {} --data DATA --out DIR",
            config.name,
            config.transform,
            imported.taken.count,
            dataset::shell_word(out)
        ),
        &json!({
            "checkpoint": shown(out),
            "method": config.name,
            "transform": config.transform,
            "image_size": image,
            "capsules": config.network.capsules,
            "tensors": imported.taken.count,
            "epochs": epochs,
        }),
    );
    Ok(ExitCode::SUCCESS)
}
