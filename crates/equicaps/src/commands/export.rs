//! `equicaps export`: a trained network for other programs.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::bail;
use engine::Device;
use evaluate::weights::{self, Which};
use export::{Format, Output, Part, Report, Request};
use serde::Serialize;

use crate::UsageError;
use crate::outcome::{Outcome, count};
use crate::terminal::{Terminal, shown};

/// Arguments of `equicaps export`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  For ONNX Runtime and other programs that read ONNX:
    equicaps export runs/first --format onnx --out encoder.onnx
  For PyTorch: weights and a module that loads them, without other dependencies:
    equicaps export runs/first --format torch --out encoder.pth
  With activations and poses of capsules (or the embeddings of other methods):
    equicaps export runs/first --with projector --format onnx --out capsules.onnx
  A folder to upload to the Hugging Face hub:
    equicaps export runs/first --with projector --format hf --out equicaps-first

Images go in as float32 RGB (batch, 3, side, side) from 0 to 1; normalisation is part of the
network, the batch size is free. The result is read again and run on 8 images: the largest
difference from this program's features is printed, and more than 1e-4 of their norm (1e-2 with
--half) is a failure.")]
pub struct Arguments {
    /// A run's folder (its newest checkpoint), or a checkpoint
    #[arg(value_name = "RUN|CHECKPOINT")]
    weights: PathBuf,
    /// Format [default: by the ending of --out: .onnx, .pth or .safetensors]
    #[arg(long, value_enum)]
    format: Option<FormatName>,
    /// Output: a new file, or for hf a folder
    #[arg(long, value_name = "PATH")]
    out: PathBuf,
    /// What to add to the encoder
    #[arg(long, value_enum, value_name = "PART")]
    with: Option<With>,
    /// Weights in 16 bits: half the size, for a checkpoint (.safetensors)
    #[arg(long)]
    half: bool,
    /// Also write the 8 images and their features, to compare elsewhere [default: for torch and hf]
    #[arg(long, value_name = "FILE.safetensors")]
    check: Option<PathBuf>,
}

/// Names of formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum FormatName {
    /// Weights (.pth) and a Python module for PyTorch.
    Torch,
    /// One file for ONNX Runtime and others (opset 17).
    Onnx,
    /// Weights only, by their published names; also a checkpoint for this program.
    Safetensors,
    /// A folder for the Hugging Face hub: config.json, README, weights, module.
    Hf,
}

/// What can be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum With {
    /// The projector: activations and poses of capsules, or the parts of the embedding.
    Projector,
}

impl FormatName {
    /// The format, by name or by the ending of `out`.
    fn of(named: Option<Self>, out: &Path) -> anyhow::Result<Self> {
        let ending =
            out.extension().map(|ending| ending.to_string_lossy().to_lowercase()).unwrap_or_default();
        let by_ending = match ending.as_str() {
            "onnx" => Some(Self::Onnx),
            "pth" | "pt" => Some(Self::Torch),
            "safetensors" => Some(Self::Safetensors),
            _ => None,
        };
        let Some(named) = named else {
            let text = "give --format torch, onnx, safetensors or hf, or a file that ends in .pth, .onnx or .safetensors";
            return by_ending.ok_or_else(|| UsageError(format!("--out {}: {text}", out.display())).into());
        };
        let expected = match named {
            Self::Torch => ".pth",
            Self::Onnx => ".onnx",
            Self::Safetensors => ".safetensors",
            Self::Hf => return Ok(named),
        };
        if by_ending != Some(named) {
            bail!(UsageError(format!("--out {}: expected a name that ends in {expected}", out.display())));
        }
        Ok(named)
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<Outcome> {
    let out = &arguments.out;
    let named = FormatName::of(arguments.format, out)?;
    let format = match named {
        FormatName::Torch => Format::Torch,
        FormatName::Onnx => Format::Onnx,
        FormatName::Safetensors => Format::Safetensors,
        FormatName::Hf => Format::HuggingFace,
    };
    if named == FormatName::Hf && out.is_file() {
        bail!(UsageError(format!("--out {} is a file; --format hf writes a folder", out.display())));
    }
    if arguments.half && named != FormatName::Safetensors {
        bail!(UsageError("--half is for checkpoints: give --format safetensors".to_owned()));
    }
    let part = if arguments.with.is_some() { Part::Projector } else { Part::Encoder };
    let weights = weights::find(&arguments.weights, &Which::Newest)?.remove(0);
    let mut opened = weights.open(&Device::cpu())?;
    terminal.note(format!("writing {}, then running it on {} images", out.display(), export::IMAGES));
    let request =
        Request { format, part, out: out.clone(), half: arguments.half, check: arguments.check.clone() };
    let report = export::export(&weights, &mut opened, &request)?;
    Outcome::new(&Exported::new(report, named, weights.file.as_deref()))
}

/// A network that was written.
#[derive(Serialize)]
struct Exported {
    files: Vec<String>,
    checkpoint: String,
    #[serde(skip)]
    title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    opset: Option<i64>,
    image_size: usize,
    parameters: usize,
    outputs: serde_json::Map<String, serde_json::Value>,
    images: usize,
    largest_difference: f64,
    #[serde(skip)]
    shapes: Vec<Output>,
    #[serde(skip)]
    next: Option<String>,
}

impl Exported {
    fn new(report: Report, format: FormatName, checkpoint: Option<&Path>) -> Self {
        let python = report.files.iter().find(|file| file.extension().is_some_and(|ending| ending == "py"));
        let outputs = report.outputs.iter();
        Self {
            checkpoint: checkpoint.map(shown).unwrap_or_default(),
            title: report.title,
            opset: (format == FormatName::Onnx).then_some(export::OPSET),
            image_size: report.image_size,
            parameters: report.parameters,
            outputs: outputs.map(|output| (output.name.clone(), output.shape.clone().into())).collect(),
            images: export::IMAGES,
            largest_difference: report.difference,
            shapes: report.outputs,
            next: python.map(|file| format!("python {}", dataset::shell_word(file))),
            files: report.files.iter().map(shown).collect(),
        }
    }
}

impl fmt::Display for Exported {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = self.image_size;
        writeln!(formatter, "{}, {} parameters", self.title, self.parameters)?;
        writeln!(formatter, "written: {}", self.files.join(", "))?;
        let opset = self.opset.map_or_else(String::new, |opset| format!(" (opset {opset})"));
        writeln!(formatter, "input{opset}: images (batch, 3, {side}, {side}), RGB, float32 from 0 to 1")?;
        for output in &self.shapes {
            let shape: String = output.shape.iter().map(|side| format!(", {side}")).collect();
            writeln!(formatter, "output: {} (batch{shape}): {}", output.name, output.meaning)?;
        }
        write!(
            formatter,
            "read again and run on {}: largest difference {:.1e} of the features' norm",
            count(self.images, "image"),
            self.largest_difference
        )?;
        self.next.iter().try_for_each(|next| write!(formatter, "\ncheck it in PyTorch: {next}"))
    }
}
