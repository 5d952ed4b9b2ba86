//! `equicaps embed`: features of images, for people who just want to use a network.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use evaluate::Encoder;
use evaluate::feature_file::{self, Form, Kind, Rows};
use serde::Serialize;

use crate::commands::network::{NetworkOptions, collect};
use crate::out;
use crate::outcome::{Outcome, count};
use crate::terminal::{Terminal, shown};

/// Arguments of `equicaps embed`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  Features of every image below a folder:
    equicaps embed runs/first photos --out features.npy
  With the activations and poses of capsules:
    equicaps embed runs/first 'views/*.jpg' @more.txt --out features.safetensors
  With any checkpoint:
    equicaps embed epoch_00060.safetensors a.png b.png --what poses --out poses.npy

A .npy file holds one float32 array (images, width); the paths are in OUT.txt, one per line.
A .safetensors file holds all features, and the paths in its metadata.
A .parquet file has a row for each image: path, representation, activations, poses; for views
of a dataset also class, object, view, split and latents.
Images are turned upright by their EXIF data and resized to the input size, without cropping.")]
pub struct Arguments {
    #[command(flatten)]
    network: NetworkOptions,
    /// Images (jpg, png, webp): files, folders, packed datasets, patterns, or @LIST
    #[arg(value_name = "IMAGES", required = true)]
    images: Vec<OsString>,
    /// Output: a file that ends in .npy, .safetensors or .parquet
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Features in a .npy file
    #[arg(long, value_enum, default_value_t = What::Representation)]
    what: What,
    /// Input size in pixels [default: training size]
    #[arg(long, value_name = "PIXELS", value_parser = crate::commands::frame::image_size())]
    image_size: Option<usize>,
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

impl From<What> for Kind {
    fn from(what: What) -> Self {
        match what {
            What::Representation => Self::Representation,
            What::Activations => Self::Activations,
            What::Poses => Self::Poses,
        }
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<Outcome> {
    let out = &arguments.out;
    let form = Form::of(out).ok_or_else(|| out::wrong_ending(out, &["npy", "safetensors", "parquet"]))?;
    let mut images = collect(&arguments.images, terminal)?;
    let mut network = arguments.network.open(arguments.image_size, terminal)?;
    let encoded = network.encode(&mut images)?;
    let origins = if form == Form::Parquet { dataset::origin::origins(&images) } else { Vec::new() };
    let paths: Vec<PathBuf> = images.into_iter().map(|image| image.path).collect();
    let capsules = network.encoder.capsules();
    let rows = Rows { paths: &paths, origins: &origins, encoded: &encoded, capsules };
    feature_file::write(out, form, rows, arguments.what.into())?;
    let widths = network.encoder.widths();
    Outcome::new(&Embedded {
        images: paths.len(),
        representation: widths.representation,
        poses: widths.equivariant,
        activations: widths.invariant,
        out: shown(out),
    })
}

/// Features that were written.
#[derive(Serialize)]
struct Embedded {
    #[serde(rename = "pictures")]
    images: usize,
    representation: usize,
    poses: Option<usize>,
    activations: Option<usize>,
    out: String,
}

impl fmt::Display for Embedded {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let poses = self.poses.map_or_else(String::new, |poses| format!(" (embedding: {poses})"));
        let Self { images, representation, out, .. } = self;
        write!(formatter, "{}, {representation} numbers each{poses}, in {out}", count(*images, "image"))
    }
}
