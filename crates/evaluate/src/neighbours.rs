//! Nearest neighbours of whole pictures: which other views look alike to a network. Cosine similarity of
//! representations; the query itself is excluded.

use dataset::Split;
use engine::Device;
use random::{Random, Stream};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::features::Table;
use crate::ground_truth::GroundTruth;
use crate::nearest::Similarity;

const QUERIES: Stream = Stream::new("neighbour-queries");

/// One neighbour of a query.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FoundView {
    /// The object's number in the dataset.
    pub object: usize,
    /// The view's number.
    pub view: usize,
    /// Cosine similarity.
    pub similarity: f32,
    /// `1 - <q, q'>^2` to the query.
    pub rotation_distance: f64,
    /// Whether it shows an object of the query's class.
    pub same_class: bool,
}

/// A query and what was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NeighbourQuery {
    /// The object's number in the dataset.
    pub object: usize,
    /// The view's number.
    pub view: usize,
    /// Best first.
    pub found: Vec<FoundView>,
}

/// `count` held-out views of different objects, the same for every network: by `seed` and the data alone.
pub fn choose_queries(truth: &GroundTruth, count: usize, seed: u64) -> Vec<(usize, usize)> {
    let mut objects: Vec<usize> = truth.split(Split::Val).collect();
    let mut random = Random::new(seed, QUERIES, 0);
    random.shuffle(&mut objects);
    objects.truncate(count);
    objects.into_iter().map(|object| (object, random.below(truth.views.max(1) as u64) as usize)).collect()
}

/// The `k` nearest held-out views of every query.
pub fn find(
    table: &Table,
    truth: &GroundTruth,
    queries: &[(usize, usize)],
    k: usize,
    device: &Device,
) -> Result<Vec<NeighbourQuery>> {
    let width = table.width;
    let first = truth.train_objects * truth.views;
    let mut pool = table.values[first * width..].to_vec();
    pool.par_chunks_exact_mut(width.max(1)).for_each(crate::prediction::normalise_prediction);
    let rows: Vec<usize> = queries.iter().map(|(object, view)| object * truth.views + view).collect();
    let wanted: Vec<f32> = rows
        .iter()
        .flat_map(|row| &pool[(row - first) * width..(row - first + 1) * width])
        .copied()
        .collect();
    let found = Similarity::new(device)?
        .nearest(&wanted, &pool, width, k, |query, candidate| rows[query] == first + candidate)?;
    Ok(queries
        .iter()
        .zip(&rows)
        .zip(found)
        .map(|((&(object, view), &row), found)| {
            let found = found
                .into_iter()
                .map(|neighbour| {
                    let other = first + neighbour.row;
                    let quaternions = [row, other].map(|row| truth.poses[row].quaternion());
                    FoundView {
                        object: other / truth.views,
                        view: other % truth.views,
                        similarity: neighbour.similarity,
                        rotation_distance: pose::rotation_distance(quaternions[0], quaternions[1]),
                        same_class: truth.labels[other / truth.views] == truth.labels[object],
                    }
                })
                .collect();
            NeighbourQuery { object, view, found }
        })
        .collect())
}
