//! `equicaps neighbours`: the images nearest to some queries by the features of a network.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use dataset::Image;
use dataset::origin::{Origin, origins};
use evaluate::Encoder;
use evaluate::nearest::{Neighbour, Similarity};
use evaluate::prediction::normalise_neighbours;
use report::nearest_images;
use serde::Serialize;

use crate::commands::network::{NetworkOptions, collect};
use crate::outcome::Outcome;
use crate::terminal::{Terminal, shown};
use crate::{UsageError, out};

/// Arguments of `equicaps neighbours`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  equicaps neighbours runs/first car.jpg --among photos
  equicaps neighbours runs/first a.jpg b.jpg --among 'views/*/*' -k 5 --by poses --out near.png

Cosine similarity of representations, or of capsule-wise normalised poses; an image is never its
own neighbour. Of views of a dataset the class and the distance of rotations (0 to 1) are shown.")]
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
    check_picture(arguments.out.as_deref())?;
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
        let transformation = transformation.filter(|_| arguments.by == By::Poses);
        normalise_neighbours(transformation, &mut values, width);
        Ok(values)
    };
    let query_rows = rows(&mut queries)?;
    let candidate_rows = rows(&mut candidates)?;
    let (query_places, candidate_places) = (places(&queries), places(&candidates));
    let same = |query: usize, candidate: usize| query_places[query] == candidate_places[candidate];
    let mut similarity = Similarity::new(&network.device)?;
    let found = similarity.nearest(&query_rows, &candidate_rows, width, arguments.k.into(), same)?;
    let origins = [origins(&queries), origins(&candidates)];
    if let Some(out) = &arguments.out {
        let title = "Nearest neighbours";
        nearest_images::draw(title, &queries, &origins[0], &candidates, &found, network.side())?
            .write(out)?;
    }
    let query = |(index, near): (usize, &Vec<Neighbour>)| Query {
        query: shown(&queries[index].path),
        class: origins[0][index].as_ref().map(|origin| origin.class.clone()),
        neighbours: list(near, &candidates, origins[0][index].as_ref(), &origins[1]),
    };
    Outcome::new(&Neighbours {
        queries: found.iter().enumerate().map(query).collect(),
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
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<String>,
    neighbours: Vec<Near>,
}

/// An image that was found.
#[derive(Serialize)]
pub struct Near {
    image: String,
    similarity: f32,
    #[serde(flatten)]
    known: Option<Known>,
    /// `1 - <q, q'>^2` to the query, where both are views of datasets.
    #[serde(skip_serializing_if = "Option::is_none")]
    rotation_distance: Option<f64>,
}

/// What a dataset knows of an image.
#[derive(Serialize)]
struct Known {
    class: String,
    object: String,
    view: usize,
    split: &'static str,
}

/// `found`, the nearest first, among `candidates` with these origins.
pub fn list(
    found: &[Neighbour],
    candidates: &[Image],
    query: Option<&Origin>,
    origins: &[Option<Origin>],
) -> Vec<Near> {
    let near = |n: &Neighbour| {
        let origin = origins[n.row].as_ref();
        let known = origin.map(|Origin { class, object, view, split, .. }| Known {
            class: class.clone(),
            object: object.clone(),
            view: *view,
            split,
        });
        Near {
            image: shown(&candidates[n.row].path),
            similarity: n.similarity,
            known,
            rotation_distance: Origin::rotation_distance(query, origin),
        }
    };
    found.iter().map(near).collect()
}

/// Where images are. One file may go by several names (./a.jpg, a.jpg).
pub fn places(images: &[Image]) -> Vec<PathBuf> {
    images.iter().map(|image| image.path.canonicalize().unwrap_or_else(|_| image.path.clone())).collect()
}

impl fmt::Display for Near {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:.4}  {}", self.similarity, self.image)?;
        if let Some(known) = &self.known {
            write!(formatter, "  {}", known.class)?;
        }
        self.rotation_distance.iter().try_for_each(|distance| write!(formatter, "  rotation {distance:.2}"))
    }
}

impl fmt::Display for Neighbours {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = Vec::new();
        for Query { query, class, neighbours } in &self.queries {
            lines.push(class.as_ref().map_or_else(|| query.clone(), |class| format!("{query}  {class}")));
            lines.extend(neighbours.iter().map(|near| format!("  {near}")));
        }
        formatter.write_str(&lines.join("\n"))
    }
}

/// Refuses drawings in other forms than PNG and SVG.
pub fn check_picture(out: Option<&Path>) -> Result<(), UsageError> {
    out.map_or(Ok(()), |out| out::check_ending(out, &["png", "svg"]))
}
