//! `equicaps embed`: features of pictures, for people who just want to use a network.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use evaluate::Encoder;
use safetensors::tensor::{Dtype, TensorView};
use serde_json::json;

use crate::UsageError;
use crate::commands::images::{self, OnBadSample};
use crate::commands::subject::{self, Which};
use crate::parquet::{self, Column};
use crate::terminal::{Terminal, shown};

/// Arguments of `equicaps embed`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  Features of every picture below a folder:
    equicaps embed runs/first photos --out features.npy
  With capsules' activations and poses:
    equicaps embed runs/first 'views/*.jpg' @more.txt --out features.safetensors
  With any checkpoint:
    equicaps embed epoch_00060.safetensors a.png b.png --what poses --out poses.npy

A .npy file holds one float32 array (pictures, width); the paths are in OUT.txt, one a line.
A .safetensors file holds all features, and the paths in its metadata.
A .parquet file has a row a picture: path, representation, activations, poses.
Pictures are turned as their EXIF data say and brought to the network's size, without cropping.")]
pub struct Arguments {
    /// A run's folder, or a checkpoint
    #[arg(value_name = "RUN|CHECKPOINT")]
    weights: PathBuf,
    /// Pictures (jpg, png): files, folders, packed datasets, patterns, or @LIST
    #[arg(value_name = "IMAGES", required = true)]
    images: Vec<OsString>,
    /// Where to: a file that ends in .npy, .safetensors or .parquet
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// What a .npy file holds
    #[arg(long, value_enum, default_value_t = What::Representation)]
    what: What,
    /// cpu, cuda, cuda:1, ...
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: String,
    /// Side that pictures are brought to, in pixels, where it is to be another than in training
    #[arg(long, value_name = "PIXELS")]
    image_size: Option<usize>,
    /// What to do about a picture that cannot be read: fail, or skip it
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = OnBadSample::Fail, hide_possible_values = true)]
    on_bad_sample: OnBadSample,
}

/// Kinds of features.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum What {
    /// The backbone's pooled output.
    Representation,
    /// Activations of capsules, or the invariant embedding.
    Activations,
    /// Raw poses of capsules, or the (equivariant) embedding.
    Poses,
}

/// Runs the command.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<ExitCode> {
    let ending = arguments.out.extension().map(|e| e.to_string_lossy().into_owned()).unwrap_or_default();
    if !matches!(ending.as_str(), "npy" | "safetensors" | "parquet") {
        let text =
            format!("--out is {}, but must end in .npy, .safetensors or .parquet", arguments.out.display());
        return Err(UsageError(text).into());
    }
    let mut pictures = images::collect(&arguments.images, terminal)?;
    let weights = subject::find(&arguments.weights, &Which::Newest)?.remove(0).at_size(arguments.image_size);
    let device = crate::device::open(&arguments.device, "f32")?;
    let mut encoder = weights.open(&device, terminal)?;
    let encoded = images::encode(&mut encoder, &mut pictures, arguments.on_bad_sample, terminal)?;
    images::make_room(&arguments.out)?;
    let names: Vec<String> = pictures.iter().map(|image| shown(&image.path)).collect();
    let tables = [
        ("representation", &encoded.representation, What::Representation),
        ("activations", &encoded.invariant, What::Activations),
        ("poses", &encoded.equivariant, What::Poses),
    ];
    if ending == "npy" {
        let values = tables.iter().find(|(_, _, what)| *what == arguments.what).map(|(_, values, _)| *values);
        let values = values.filter(|values| !values.is_empty());
        let Some(values) = values else {
            anyhow::bail!("{} has no such features; try --what representation", arguments.weights.display());
        };
        let width = values.len() / pictures.len().max(1);
        dataset::durable::write(&arguments.out, &npy(pictures.len(), width, values))?;
        let mut list = arguments.out.clone().into_os_string();
        list.push(".txt");
        let lines: Vec<&[u8]> =
            pictures.iter().flat_map(|image| [image.path.as_os_str().as_encoded_bytes(), b"\n"]).collect();
        dataset::durable::write(Path::new(&list), &lines.concat())?;
    } else if ending == "parquet" {
        let features = tables.iter().filter(|(_, values, _)| !values.is_empty());
        let columns: Vec<(&str, Column<'_>)> = std::iter::once(("path", Column::Strings(&names)))
            .chain(features.map(|(name, values, _)| (*name, Column::Lists(values))))
            .collect();
        let mut bytes = Vec::new();
        parquet::write(&mut bytes, names.len(), &columns)?;
        dataset::durable::write(&arguments.out, &bytes)?;
    } else {
        write_safetensors(
            &arguments.out,
            &names,
            &tables.map(|(name, values, _)| (name, values.as_slice())),
        )?;
    }
    let widths = encoder.widths();
    let text = format!(
        "{} picture{}, {} numbers each{}, in {}",
        pictures.len(),
        if pictures.len() == 1 { "" } else { "s" },
        widths.representation,
        widths.equivariant.map_or_else(String::new, |poses| format!(" (embedding: {poses})")),
        arguments.out.display()
    );
    terminal.result(
        text,
        &json!({
            "pictures": pictures.len(),
            "representation": widths.representation,
            "poses": widths.equivariant,
            "activations": widths.invariant,
            "out": shown(&arguments.out),
        }),
    );
    Ok(ExitCode::SUCCESS)
}

/// A float32 array as NumPy writes it.
fn npy(rows: usize, width: usize, values: &[f32]) -> Vec<u8> {
    let mut bytes = scene::npy::header("<f4", &[rows, width]);
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    bytes
}

fn write_safetensors(path: &Path, names: &[String], tables: &[(&str, &[f32])]) -> anyhow::Result<()> {
    let bytes: Vec<(String, usize, Vec<u8>)> = tables
        .iter()
        .filter(|(_, values)| !values.is_empty())
        .map(|(name, values)| {
            let width = values.len() / names.len().max(1);
            ((*name).to_owned(), width, values.iter().flat_map(|value| value.to_le_bytes()).collect())
        })
        .collect();
    let views = bytes
        .iter()
        .map(|(name, width, data)| {
            Ok((name.as_str(), TensorView::new(Dtype::F32, vec![names.len(), *width], data)?))
        })
        .collect::<anyhow::Result<Vec<_>>>()?;
    let metadata = [("images".to_owned(), serde_json::to_string(names)?)].into_iter().collect();
    dataset::durable::write(path, &safetensors::serialize(views, Some(metadata))?)?;
    Ok(())
}
