//! Equivariance metrics: MRR and H@k among the views of an object, PRE among all views.
//!
//! For every object the source is view 0, the targets are all of its views, view 0 included (the identity). The
//! embedding of the source is moved by the known change of view and compared with candidates by the dot product of
//! normalised rows (see [`crate::prediction`]). Nothing is excluded.
//!
//! Ties: candidates of exactly the same similarity are ordered by their row. With embeddings that do not depend on
//! the view all candidates tie, and every metric comes out at its chance level.

use std::collections::BTreeMap;

use dataset::Split;
use engine::Device;
use random::{Random, Stream};
use rayon::prelude::*;

use crate::encoder::Encoder;
use crate::error::Result;
use crate::features::Table;
use crate::ground_truth::GroundTruth;
use crate::nearest::Similarity;
use crate::prediction::{Transformation, normalise_prediction};
use crate::protocol::Protocol;
use crate::results::{Ranking, Retrieval, RetrievalError};

const QUERIES: Stream = Stream::new("retrieval-queries");
const CHANCE: Stream = Stream::new("retrieval-chance");

/// All retrieval metrics of equivariant embeddings `table` (raw, all views of all objects).
pub fn evaluate(
    encoder: &mut dyn Encoder,
    transformation: Transformation,
    table: &Table,
    truth: &GroundTruth,
    protocol: &Protocol,
    device: &Device,
    mut progress: impl FnMut(u64),
) -> Result<Retrieval> {
    let width = table.width;
    let mut candidates = table.values.clone();
    transformation.normalise_candidates(&mut candidates, width);
    let mut similarity = Similarity::new(device)?;
    let mut rankings = BTreeMap::new();
    let mut pre = BTreeMap::new();
    let mut pre_chance = BTreeMap::new();
    for split in Split::ALL {
        let objects = query_objects(truth, split, protocol);
        let mut tally = Tally::default();
        let sets: &[(&str, std::ops::Range<usize>)] = match split {
            Split::Train => &[("train-train", truth.split(Split::Train))],
            Split::Val => &[("val-val", truth.split(Split::Val)), ("val-all", 0..truth.objects())],
        };
        let mut errors = vec![ErrorSum::default(); sets.len()];
        for block in objects.chunks(8) {
            let predictions = predict(encoder, transformation, table, truth, block)?;
            for (object, predicted) in block.iter().zip(predictions.chunks_exact(truth.views * width)) {
                let own = &candidates[object * truth.views * width..(object + 1) * truth.views * width];
                tally.add(&similarity.product(predicted, own, width)?, truth.views);
            }
            for ((_, range), sum) in sets.iter().zip(&mut errors) {
                let rows = range.start * truth.views..range.end * truth.views;
                let pool = &candidates[rows.start * width..rows.end * width];
                let found = similarity.nearest(&predictions, pool, width, 1, |_, _| false)?;
                for (query, neighbours) in found.iter().enumerate() {
                    let target = block[query / truth.views] * truth.views + query % truth.views;
                    // A prediction that is not a number finds nothing; it counts as the worst distance.
                    sum.add(truth, neighbours.first().map(|n| rows.start + n.row), target);
                }
            }
            progress(block.len() as u64);
        }
        rankings.insert(split, tally.finish());
        for ((name, range), sum) in sets.iter().zip(errors) {
            pre.insert((*name).to_owned(), sum.finish(truth, range.len() * truth.views));
            pre_chance.insert((*name).to_owned(), chance_error(truth, split, range, protocol.seed));
        }
    }
    let nothing = || Tally::default().finish();
    Ok(Retrieval {
        train: rankings.remove(&Split::Train).unwrap_or_else(nothing),
        val: rankings.remove(&Split::Val).unwrap_or_else(nothing),
        pre,
        chance: chance_ranking(truth.views),
        pre_chance,
    })
}

/// The objects whose views are queries: all, or a random subset of the protocol's size, in ascending order.
pub fn query_objects(truth: &GroundTruth, split: Split, protocol: &Protocol) -> Vec<usize> {
    let mut objects: Vec<usize> = truth.split(split).collect();
    if objects.len() > protocol.query_objects {
        Random::new(protocol.seed, QUERIES, split as u64).shuffle(&mut objects);
        objects.truncate(protocol.query_objects);
        objects.sort_unstable();
    }
    objects
}

/// Normalised predictions from view 0 to every view, for several objects: `[objects * views, width]`.
fn predict(
    encoder: &mut dyn Encoder,
    transformation: Transformation,
    table: &Table,
    truth: &GroundTruth,
    objects: &[usize],
) -> Result<Vec<f32>> {
    let views = truth.views;
    match transformation {
        Transformation::PoseMatrices(layout) => {
            let all: Vec<Vec<f32>> = objects
                .par_iter()
                .flat_map_iter(|&object| {
                    let poses = truth.poses_of(object);
                    let source = table.row(object * views);
                    poses.iter().map(move |target| layout.predict(source, &poses[0], target))
                })
                .collect();
            Ok(all.concat())
        }
        Transformation::Predictor { translation } => {
            let (mut sources, mut parameters) = (Vec::new(), Vec::new());
            for &object in objects {
                let poses = truth.poses_of(object);
                for target in poses {
                    sources.extend_from_slice(table.row(object * views));
                    parameters.extend(Transformation::parameters(translation, &poses[0], target));
                }
            }
            let mut predicted = encoder.predict(&sources, &parameters, objects.len() * views)?;
            predicted.par_chunks_exact_mut(table.width).for_each(normalise_prediction);
            Ok(predicted)
        }
    }
}

/// Counts ranks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    reciprocal: f64,
    within: [usize; 4],
    queries: usize,
}

/// The `k` of H@k.
const WITHIN: [usize; 4] = [1, 2, 5, 10];

impl Tally {
    /// Adds one object: similarities `[views, views]` of the prediction for view `row` to candidate `column`.
    pub fn add(&mut self, similarities: &[f32], views: usize) {
        for (target, row) in similarities.chunks_exact(views.max(1)).enumerate() {
            let own = row[target];
            let before = row.iter().enumerate().filter(|&(other, &value)| {
                value > own || (value == own && other < target) || (own.is_nan() && other != target)
            });
            let rank = 1 + before.count();
            self.reciprocal += 1.0 / rank as f64;
            for (count, k) in self.within.iter_mut().zip(WITHIN) {
                *count += usize::from(rank <= k);
            }
            self.queries += 1;
        }
    }

    /// The means.
    pub fn finish(self) -> Ranking {
        let n = self.queries.max(1) as f64;
        let [h1, h2, h5, h10] = self.within.map(|count| count as f64 / n);
        Ranking { mrr: self.reciprocal / n, h1, h2, h5, h10, queries: self.queries }
    }
}

/// Ranks by pure chance among `views` candidates.
pub fn chance_ranking(views: usize) -> Ranking {
    let n = views.max(1) as f64;
    let [h1, h2, h5, h10] = WITHIN.map(|k| k.min(views) as f64 / n);
    let mrr = (1..=views).map(|rank| 1.0 / rank as f64).sum::<f64>() / n;
    Ranking { mrr, h1, h2, h5, h10, queries: 0 }
}

#[derive(Clone, Copy, Debug, Default)]
struct ErrorSum {
    rotation: f64,
    translation: f64,
    queries: usize,
}

impl ErrorSum {
    fn add(&mut self, truth: &GroundTruth, neighbour: Option<usize>, target: usize) {
        let target = &truth.poses[target];
        let (rotation, translation) = match neighbour.map(|row| &truth.poses[row]) {
            Some(found) => (
                pose::rotation_distance(found.quaternion(), target.quaternion()),
                pose::translation_distance(found.translation, target.translation),
            ),
            None => (1.0, 3.0),
        };
        self.rotation += rotation;
        self.translation += translation;
        self.queries += 1;
    }

    fn finish(self, truth: &GroundTruth, candidates: usize) -> RetrievalError {
        let n = self.queries.max(1) as f64;
        RetrievalError {
            rotation: self.rotation / n,
            translation: truth.has_translation.then_some(self.translation / n),
            queries: self.queries,
            candidates,
        }
    }
}

/// The error of a random candidate, over 20,000 random pairs of a target of `split` and a candidate of `range`.
fn chance_error(
    truth: &GroundTruth,
    split: Split,
    range: &std::ops::Range<usize>,
    seed: u64,
) -> RetrievalError {
    let mut random = Random::new(seed, CHANCE, split as u64);
    let mut sum = ErrorSum::default();
    let queries = truth.split(split);
    if !queries.is_empty() && !range.is_empty() && truth.views > 0 {
        for _ in 0..20_000 {
            let mut draw = |from: &std::ops::Range<usize>| {
                from.start * truth.views + random.below((from.len() * truth.views) as u64) as usize
            };
            let (target, candidate) = (draw(&queries), draw(range));
            sum.add(truth, Some(candidate), target);
        }
    }
    sum.finish(truth, range.len() * truth.views)
}
