//! `equicaps neighbours`: the images nearest to some queries by the features of a network.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use dataset::Image;
use evaluate::Encoder;
use evaluate::nearest::{Neighbour, Similarity};
use evaluate::prediction::{Transformation, normalise_prediction};
use report::nearest_images;
use serde::Serialize;

use crate::UsageError;
use crate::commands::network::{NetworkOptions, collect};
use crate::outcome::Outcome;
use crate::terminal::{Terminal, shown};

/// Arguments of `equicaps neighbours`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  equicaps neighbours runs/first car.jpg --among photos
  equicaps neighbours runs/first a.jpg b.jpg --among 'views/*/*' -k 5 --by poses --out near.png

Cosine similarity of representations, or of capsule-wise normalised poses; an image is never its
own neighbour.")]
pub struct Arguments {
    #[command(flatten)]
    network: NetworkOptions,
    /// Query images
    #[arg(value_name = "QUERIES", required = true)]
    queries: Vec<OsString>,
    /// Images to search: files, folders, packed datasets, patterns, or @LIST
    #[arg(long, value_name = "IMAGES", required = true, num_args = 1..)]
    among: Vec<OsString>,
    /// Neighbours of each query
    #[arg(short, long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    k: u16,
    /// Features to compare
    #[arg(long, value_enum, default_value_t = By::Representation)]
    by: By,
    /// Draw queries and neighbours: a file that ends in .png or .svg
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
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
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<Outcome> {
    check_ending(arguments.out.as_ref())?;
    let mut queries = collect(&arguments.queries, terminal)?;
    let mut candidates = collect(&arguments.among, terminal)?;
    let mut network = arguments.network.open(None, terminal)?;
    let widths = network.encoder.widths();
    let width = match arguments.by {
        By::Representation => Some(widths.representation),
        By::Poses => widths.equivariant,
    };
    let Some(width) = width else {
        let weights = arguments.network.weights.display();
        anyhow::bail!("{weights} has no embeddings; try --by representation");
    };
    let transformation = network.encoder.transformation();
    let mut rows = |images: &mut Vec<Image>| -> anyhow::Result<Vec<f32>> {
        let encoded = network.encode(images)?;
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
    let query_rows = rows(&mut queries)?;
    let candidate_rows = rows(&mut candidates)?;
    // One file may go by several names (./a.jpg, a.jpg).
    let places = |images: &[Image]| -> Vec<PathBuf> {
        images.iter().map(|image| image.path.canonicalize().unwrap_or_else(|_| image.path.clone())).collect()
    };
    let (query_places, candidate_places) = (places(&queries), places(&candidates));
    let same = |query: usize, candidate: usize| query_places[query] == candidate_places[candidate];
    let mut similarity = Similarity::new(&network.device)?;
    let found = similarity.nearest(&query_rows, &candidate_rows, width, arguments.k.into(), same)?;
    if let Some(out) = &arguments.out {
        let title = "Nearest neighbours";
        nearest_images::draw(title, &queries, &candidates, &found, network.side())?.write(out)?;
    }
    let query = |(query, near): (&Image, &Vec<Neighbour>)| Query {
        query: shown(&query.path),
        neighbours: list(near, &candidates),
    };
    Outcome::new(&Neighbours {
        queries: queries.iter().zip(&found).map(query).collect(),
        out: arguments.out.as_ref().map(shown),
    })
}

/// The neighbours of all queries.
#[derive(Serialize)]
struct Neighbours {
    queries: Vec<Query>,
    out: Option<String>,
}

#[derive(Serialize)]
struct Query {
    query: String,
    neighbours: Vec<Near>,
}

/// An image that was found.
#[derive(Serialize)]
pub struct Near {
    image: String,
    similarity: f32,
}

/// `found`, the nearest first.
pub fn list(found: &[Neighbour], candidates: &[Image]) -> Vec<Near> {
    let near = |n: &Neighbour| Near { image: shown(&candidates[n.row].path), similarity: n.similarity };
    found.iter().map(near).collect()
}

impl fmt::Display for Near {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:.4}  {}", self.similarity, self.image)
    }
}

impl fmt::Display for Neighbours {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = Vec::new();
        for Query { query, neighbours } in &self.queries {
            lines.push(query.clone());
            lines.extend(neighbours.iter().map(|near| format!("  {near}")));
        }
        formatter.write_str(&lines.join("\n"))
    }
}

/// Refuses drawings in other forms than PNG and SVG.
pub fn check_ending(out: Option<&PathBuf>) -> anyhow::Result<()> {
    match out.filter(|out| out.extension().is_none_or(|e| e != "png" && e != "svg")) {
        Some(out) => {
            Err(UsageError(format!("--out is {}, but must end in .png or .svg", out.display())).into())
        }
        None => Ok(()),
    }
}
