//! `equicaps neighbours`: which pictures look alike to a network.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use evaluate::Encoder;
use evaluate::nearest::{Neighbour, Similarity};
use evaluate::prediction::{Transformation, normalise_prediction};
use report::{GridCell, Picture, PictureGrid, SvgUse};
use serde_json::json;

use crate::UsageError;
use crate::commands::images::{self, Image, OnBadSample};
use crate::commands::subject::{self, Which};
use crate::terminal::{Terminal, shown};

/// Arguments of `equicaps neighbours`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  equicaps neighbours runs/first car.jpg --among photos
  equicaps neighbours runs/first a.jpg b.jpg --among 'views/*/*' -k 5 --by poses --out near.png

Cosine similarity of representations, or of capsule-wise normalised poses; a picture is never
its own neighbour.")]
pub struct Arguments {
    /// A run's folder, or a checkpoint
    #[arg(value_name = "RUN|CHECKPOINT")]
    weights: PathBuf,
    /// Query pictures
    #[arg(value_name = "QUERIES", required = true)]
    queries: Vec<OsString>,
    /// Where to look: files, folders, packed datasets, patterns, or @LIST
    #[arg(long, value_name = "IMAGES", required = true, num_args = 1..)]
    among: Vec<OsString>,
    /// Neighbours of each query
    #[arg(short, long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    k: u16,
    /// What to compare
    #[arg(long, value_enum, default_value_t = By::Representation)]
    by: By,
    /// A picture of queries and neighbours: a file that ends in .png or .svg
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// cpu, cuda, cuda:1, ...
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: String,
    /// What to do about a picture that cannot be read: fail, or skip it
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = OnBadSample::Fail, hide_possible_values = true)]
    on_bad_sample: OnBadSample,
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum By {
    /// The backbone's pooled output.
    Representation,
    /// Poses of capsules, or the (equivariant) embedding.
    Poses,
}

/// Runs the command.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<ExitCode> {
    check_ending(arguments.out.as_ref())?;
    let mut queries = images::collect(&arguments.queries, terminal)?;
    let mut candidates = images::collect(&arguments.among, terminal)?;
    let weights = subject::find(&arguments.weights, &Which::Newest)?.remove(0);
    let device = crate::device::open(&arguments.device, "f32")?;
    let mut encoder = weights.open(&device, terminal)?;
    let side = encoder.side();
    let widths = encoder.widths();
    let width = match arguments.by {
        By::Representation => Some(widths.representation),
        By::Poses => widths.equivariant,
    };
    let Some(width) = width else {
        anyhow::bail!("{} has no embeddings; try --by representation", arguments.weights.display());
    };
    let transformation = encoder.transformation();
    let mut rows = |images: &mut Vec<Image>, on_bad| -> anyhow::Result<Vec<f32>> {
        let encoded = images::encode(&mut encoder, images, on_bad, terminal)?;
        let mut values = match arguments.by {
            By::Representation => encoded.representation,
            By::Poses => encoded.equivariant,
        };
        match (arguments.by, transformation) {
            (By::Poses, Some(transformation @ Transformation::PoseMatrices(_))) => {
                transformation.normalise_candidates(&mut values, width);
            }
            _ => values.chunks_exact_mut(width).for_each(normalise_prediction),
        }
        Ok(values)
    };
    let query_rows = rows(&mut queries, arguments.on_bad_sample)?;
    let candidate_rows = rows(&mut candidates, arguments.on_bad_sample)?;
    // One file may go by several names (./a.jpg, a.jpg).
    let places = |images: &[Image]| -> Vec<PathBuf> {
        images.iter().map(|image| image.path.canonicalize().unwrap_or_else(|_| image.path.clone())).collect()
    };
    let (query_places, candidate_places) = (places(&queries), places(&candidates));
    let same = |query: usize, candidate: usize| query_places[query] == candidate_places[candidate];
    let found =
        Similarity::new(&device)?.nearest(&query_rows, &candidate_rows, width, arguments.k.into(), same)?;
    if let Some(out) = &arguments.out {
        draw(out, "Nearest neighbours", &queries, &candidates, &found, side)?;
    }
    let mut text = String::new();
    let mut list = Vec::new();
    for (query, neighbours) in queries.iter().zip(&found) {
        text.push_str(&format!("{}\n", query.path.display()));
        for neighbour in neighbours {
            text.push_str(&format!(
                "  {:.4}  {}\n",
                neighbour.similarity,
                candidates[neighbour.row].path.display()
            ));
        }
        let near: Vec<_> = neighbours
            .iter()
            .map(|n| json!({ "image": shown(&candidates[n.row].path), "similarity": n.similarity }))
            .collect();
        list.push(json!({ "query": shown(&query.path), "neighbours": near }));
    }
    terminal.result(text.trim_end(), &json!({ "queries": list, "out": arguments.out.as_ref().map(shown) }));
    Ok(ExitCode::SUCCESS)
}

/// Refuses pictures in other forms than PNG and SVG.
pub fn check_ending(out: Option<&PathBuf>) -> anyhow::Result<()> {
    let fits = out.is_none_or(|out| out.extension().is_some_and(|e| e == "png" || e == "svg"));
    if fits {
        return Ok(());
    }
    let shown = out.map(|out| out.display().to_string()).unwrap_or_default();
    Err(UsageError(format!("--out is {shown}, but must end in .png or .svg")).into())
}

/// Draws queries with their neighbours, one row each.
pub fn draw(
    out: &Path,
    title: &str,
    queries: &[Image],
    candidates: &[Image],
    found: &[Vec<Neighbour>],
    side: usize,
) -> anyhow::Result<()> {
    let side = side.max(64);
    images::make_room(out)?;
    let cell = |image: &Image, caption: String| -> anyhow::Result<Option<GridCell>> {
        let picture = Picture::new(side as u32, side as u32, image.load(side)?)?;
        Ok(Some(GridCell::new(Arc::new(picture), caption)))
    };
    let name =
        |image: &Image| image.path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let mut rows = Vec::new();
    for (query, neighbours) in queries.iter().zip(found) {
        let mut row = vec![cell(query, name(query))?];
        for neighbour in neighbours {
            row.push(cell(&candidates[neighbour.row], format!("{:.3}", neighbour.similarity))?);
        }
        rows.push(row);
    }
    let most = found.iter().map(Vec::len).max().unwrap_or(0);
    let columns = std::iter::once("query".to_owned()).chain((1..=most).map(|k| format!("{k}-NN"))).collect();
    let grid = PictureGrid { title: title.to_owned(), columns, row_labels: Vec::new(), rows, cell_px: 96.0 };
    let drawing = grid.draw();
    let is_svg = out.extension().is_some_and(|ending| ending == "svg");
    let bytes = if is_svg { drawing.to_svg(SvgUse::File).into_bytes() } else { drawing.to_png(2.0)? };
    dataset::durable::write(out, &bytes)?;
    Ok(())
}
