//! Equivariance metrics: MRR and H@k among the views of an object, PRE among all views.
//!
//! For every object the source is view 0, the targets are all of its views, view 0 included (the identity); with a split by
//! views, on each side the first of the views that the side has, and all of these. The
//! embedding of the source is moved by the known change of view and compared with candidates by the dot product of
//! normalised rows (see [`crate::prediction`]). Nothing is excluded.
//!
//! Ties: candidates of exactly the same similarity are ordered by their row. With embeddings that do not depend on
//! the view all candidates tie, and every metric comes out at its chance level.

use std::collections::BTreeMap;
use std::ops::Range;

use dataset::{Split, SplitBy};
use engine::Device;
use pose::{Group, Part, PerPart};
use random::{Random, Stream};
use rayon::prelude::*;

use crate::cuda::has_room;
use crate::cuda::retrieval::{Blocks, DeviceSearch};
use crate::encoder::Encoder;
use crate::error::{Error, Result};
use crate::feature_table::FeatureTable;
use crate::features::Table;
use crate::ground_truth::GroundTruth;
use crate::nearest::Similarity;
use crate::prediction::{Transformation, normalise_prediction};
use crate::protocol::Protocol;
use crate::results::{Ranking, Retrieval, RetrievalError};

const QUERIES: Stream = Stream::new("retrieval-queries");
const CHANCE: Stream = Stream::new("retrieval-chance");

/// What was found for the views of some objects.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    /// Of every query: the target's rank among the views of its object.
    pub ranks: Vec<usize>,
    /// For each pool of candidates, of every query: the most similar row with its similarity, the lowest among equals.
    /// A prediction with NaN finds nothing.
    pub nearest: Vec<Vec<Option<(f32, usize)>>>,
}

/// Compares predictions with candidates, on some device.
pub trait Search {
    /// Objects of one side to be searched for at once.
    fn objects_at_once(&self, split: Split) -> usize;

    /// Predicts from the first view to every view that `objects` have on one side, all of them as many; ranks the targets,
    /// and finds the nearest rows in each of `pools`.
    fn search(
        &mut self,
        encoder: &mut dyn Encoder,
        split: Split,
        objects: &[usize],
        pools: &[Range<usize>],
    ) -> Result<Block>;
}

/// All retrieval metrics of equivariant embeddings `table` (raw, all views of all objects). `progress` gets how
/// many objects are done.
#[allow(clippy::too_many_arguments)]
pub fn evaluate(
    encoder: &mut dyn Encoder,
    transformation: Transformation,
    table: &Table,
    truth: &GroundTruth,
    protocol: &Protocol,
    device: &Device,
    progress: impl FnMut(u64),
    stop: &dyn Fn() -> bool,
) -> Result<Retrieval> {
    let blocks = Blocks::default();
    let bytes = table.values.len() * 4 + DeviceSearch::bytes(table.rows(), table.width, blocks);
    if let Device::Cuda(cuda) = device
        && has_room(device, bytes)?
        && let FeatureTable::Device(on_device) = FeatureTable::new(table, device)?
    {
        let mut search = DeviceSearch::new(cuda, &on_device, Some(table), transformation, truth, blocks)?;
        return with(&mut search, encoder, truth, protocol, progress, stop);
    }
    let mut search = HostSearch::new(table, transformation, truth, device)?;
    with(&mut search, encoder, truth, protocol, progress, stop)
}

/// All retrieval metrics by a given search.
pub fn with(
    search: &mut dyn Search,
    encoder: &mut dyn Encoder,
    truth: &GroundTruth,
    protocol: &Protocol,
    mut progress: impl FnMut(u64),
    stop: &dyn Fn() -> bool,
) -> Result<Retrieval> {
    let mut rankings = BTreeMap::new();
    let mut pre = BTreeMap::new();
    let mut pre_chance = BTreeMap::new();
    let mut by_object = Vec::new();
    let rows = |split| truth.rows(split);
    for split in Split::ALL {
        let objects = query_objects(truth, split, protocol);
        let views_of = |object: usize| truth.views_of(split, object);
        let mut tally = Tally::default();
        // All candidates are those of the training side, then those held out: no product is computed twice.
        let pools: &[Range<usize>] = match split {
            Split::Train => &[rows(Split::Train)],
            Split::Val => &[rows(Split::Train), rows(Split::Val)],
        };
        let sets: &[(&str, &[usize])] = match split {
            Split::Train => &[("train-train", &[0])],
            Split::Val => &[("val-val", &[1]), ("val-all", &[0, 1])],
        };
        let mut errors = vec![ErrorSum::default(); sets.len()];
        let at_once = search.objects_at_once(split).max(1);
        let alike = objects.chunk_by(|&a, &b| views_of(a).len() == views_of(b).len());
        for block in alike.flat_map(|objects| objects.chunks(at_once)) {
            let views = views_of(block[0]).len().max(1);
            if stop() {
                return Err(Error::Interrupted);
            }
            let found = search.search(encoder, split, block, pools)?;
            found.ranks.iter().for_each(|&rank| tally.count(rank));
            if split == Split::Val {
                by_object.extend(block.iter().zip(found.ranks.chunks_exact(views)).map(
                    |(&object, ranks)| {
                        let reciprocal = ranks.iter().map(|&rank| 1.0 / rank as f64).sum::<f64>();
                        (object, reciprocal / ranks.len().max(1) as f64)
                    },
                ));
            }
            for ((_, members), sum) in sets.iter().zip(&mut errors) {
                let distances: Vec<PerPart<f64>> = (0..block.len() * views)
                    .into_par_iter()
                    .map(|query| {
                        let object = block[query / views];
                        let target = truth.row(object, views_of(object).start + query % views);
                        let best = members
                            .iter()
                            .filter_map(|&pool| found.nearest[pool][query])
                            .reduce(|best, other| if other.0 > best.0 { other } else { best });
                        distances(truth, best.map(|(_, row)| row), target)
                    })
                    .collect();
                distances.into_iter().for_each(|distance| sum.add(distance));
            }
            progress(block.len() as u64);
        }
        rankings.insert(split, tally.finish());
        for ((name, members), sum) in sets.iter().zip(errors) {
            let candidates = members.iter().map(|&pool| pools[pool].len()).sum();
            pre.insert((*name).to_owned(), sum.finish(truth, candidates));
            let pool: Vec<Range<usize>> = members.iter().map(|&pool| pools[pool].clone()).collect();
            pre_chance.insert((*name).to_owned(), chance_error(truth, split, &pool, protocol.seed));
        }
    }
    let nothing = || Tally::default().finish();
    Ok(Retrieval {
        train: rankings.remove(&Split::Train).unwrap_or_else(nothing),
        val: rankings.remove(&Split::Val).unwrap_or_else(nothing),
        pre,
        chance: chance_of(truth, Split::Val, protocol),
        chance_train: (truth.split_by() == SplitBy::Views || !truth.index.is_equal())
            .then(|| chance_of(truth, Split::Train, protocol)),
        pre_chance,
        by_object,
    })
}

/// The search through tables in the host's memory, with products on any device.
#[derive(Debug)]
pub struct HostSearch<'a> {
    table: &'a Table,
    transformation: Transformation,
    truth: &'a GroundTruth,
    candidates: Vec<f32>,
    similarity: Similarity,
}

impl<'a> HostSearch<'a> {
    /// Normalises all rows of `table`.
    pub fn new(
        table: &'a Table,
        transformation: Transformation,
        truth: &'a GroundTruth,
        device: &Device,
    ) -> Result<Self> {
        let mut candidates = table.values.clone();
        transformation.normalise_candidates(&mut candidates, table.width);
        Ok(Self { table, transformation, truth, candidates, similarity: Similarity::new(device)? })
    }
}

impl Search for HostSearch<'_> {
    fn objects_at_once(&self, _: Split) -> usize {
        8
    }

    fn search(
        &mut self,
        encoder: &mut dyn Encoder,
        split: Split,
        objects: &[usize],
        pools: &[Range<usize>],
    ) -> Result<Block> {
        let (width, views) = (self.table.width, self.truth.views_at_once(split, objects));
        let predictions = predict(encoder, self.transformation, self.table, self.truth, split, objects)?;
        let mut block = Block::default();
        for (&object, predicted) in objects.iter().zip(predictions.chunks_exact(views * width)) {
            let rows = self.truth.rows_of(split, object);
            let own = &self.candidates[rows.start * width..rows.end * width];
            block.ranks.extend(ranks(&self.similarity.product(predicted, own, width)?, views));
        }
        for rows in pools {
            let pool = &self.candidates[rows.start * width..rows.end * width];
            let found = self.similarity.nearest(&predictions, pool, width, 1, |_, _| false)?;
            let first = |neighbours: &Vec<crate::nearest::Neighbour>| {
                neighbours.first().map(|n| (n.similarity, rows.start + n.row))
            };
            block.nearest.push(found.iter().map(first).collect());
        }
        Ok(block)
    }
}

/// The objects whose views are queries: all, or a random subset of the protocol's size, in ascending order.
pub fn query_objects(truth: &GroundTruth, split: Split, protocol: &Protocol) -> Vec<usize> {
    // One view has nothing to be told from.
    let mut objects: Vec<usize> = truth.paired(split).collect();
    if objects.is_empty() {
        objects = truth.split(split).collect();
    }
    if let Some(limit) = protocol.query_objects.filter(|&limit| limit < objects.len()) {
        Random::new(protocol.seed, QUERIES, split as u64).shuffle(&mut objects);
        objects.truncate(limit);
        objects.sort_unstable();
    }
    objects
}

/// Normalised predictions from the first view to every view of one side, for several objects: `[objects * views, width]`.
fn predict(
    encoder: &mut dyn Encoder,
    transformation: Transformation,
    table: &Table,
    truth: &GroundTruth,
    split: Split,
    objects: &[usize],
) -> Result<Vec<f32>> {
    match transformation {
        Transformation::PoseMatrices(layout) => {
            let all: Vec<Vec<f32>> = objects
                .par_iter()
                .flat_map_iter(|&object| {
                    let poses = truth.poses_of(split, object);
                    let source = table.row(truth.rows_of(split, object).start);
                    poses.iter().map(move |target| layout.predict(source, &poses[0], target))
                })
                .collect();
            Ok(all.concat())
        }
        Transformation::Predictor { group } => {
            let (sources, parameters) = predictor_inputs(table, truth, group, split, objects);
            let mut predicted = encoder.predict(
                &sources,
                &parameters,
                objects.len() * truth.views_at_once(split, objects),
            )?;
            predicted.par_chunks_exact_mut(table.width).for_each(normalise_prediction);
            Ok(predicted)
        }
    }
}

/// What a predictor takes for the change from the first view to every view of `objects` on one side: embeddings and
/// parameters.
pub(crate) fn predictor_inputs(
    table: &Table,
    truth: &GroundTruth,
    group: Group,
    split: Split,
    objects: &[usize],
) -> (Vec<f32>, Vec<f32>) {
    let sources = objects
        .iter()
        .flat_map(|&object| {
            let rows = truth.rows_of(split, object);
            std::iter::repeat_n(table.row(rows.start), rows.len())
        })
        .flatten()
        .copied()
        .collect();
    let parameters = objects
        .par_iter()
        .flat_map_iter(|&object| {
            let poses = truth.poses_of(split, object);
            poses.iter().flat_map(move |target| Transformation::parameters(group, &poses[0], target))
        })
        .collect();
    (sources, parameters)
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
    /// Counts one query.
    pub fn count(&mut self, rank: usize) {
        self.reciprocal += 1.0 / rank as f64;
        for (count, k) in self.within.iter_mut().zip(WITHIN) {
            *count += usize::from(rank <= k);
        }
        self.queries += 1;
    }

    /// The means.
    pub fn finish(self) -> Ranking {
        let n = self.queries.max(1) as f64;
        let [h1, h2, h5, h10] = self.within.map(|count| count as f64 / n);
        Ranking { mrr: self.reciprocal / n, h1, h2, h5, h10, queries: self.queries }
    }
}

/// Ranks of the targets of one object, from similarities `[views, views]` of the prediction for view `row` to candidate
/// `column`.
pub fn ranks(similarities: &[f32], views: usize) -> Vec<usize> {
    let lines = similarities.chunks_exact(views.max(1)).enumerate();
    lines
        .map(|(target, line)| {
            let own = line[target];
            let before = line.iter().enumerate().filter(|&(other, &value)| {
                value > own || (value == own && other < target) || (own.is_nan() && other != target)
            });
            1 + before.count()
        })
        .collect()
}

/// Ranks by pure chance of the queries of one side.
fn chance_of(truth: &GroundTruth, split: Split, protocol: &Protocol) -> Ranking {
    let objects = query_objects(truth, split, protocol);
    let views = |object: &usize| truth.views_of(split, *object).len();
    let most = truth.most_views(split);
    if objects.iter().all(|object| views(object) == most) {
        return chance_ranking(most);
    }
    let mut sum = Ranking { mrr: 0.0, h1: 0.0, h2: 0.0, h5: 0.0, h10: 0.0, queries: 0 };
    let queries: usize = objects.iter().map(views).sum();
    for count in objects.iter().map(views) {
        let (share, one) = (count as f64 / queries.max(1) as f64, chance_ranking(count));
        sum.mrr += share * one.mrr;
        sum.h1 += share * one.h1;
        sum.h2 += share * one.h2;
        sum.h5 += share * one.h5;
        sum.h10 += share * one.h10;
    }
    sum
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
    parts: PerPart<f64>,
    queries: usize,
}

/// Distances in every part of the pose between a row that was found and the target.
fn distances(truth: &GroundTruth, found: Option<usize>, target: usize) -> PerPart<f64> {
    let target = &truth.poses[target];
    match found.map(|row| &truth.poses[row]) {
        Some(found) => PerPart(Part::ALL.map(|part| part.distance(found, target))),
        // A prediction that is not a number counts as the worst distance.
        None => PerPart([1.0, 3.0, 3.0, 3.0, 3.0]),
    }
}

impl ErrorSum {
    fn add(&mut self, parts: PerPart<f64>) {
        self.parts.0.iter_mut().zip(parts.0).for_each(|(sum, part)| *sum += part);
        self.queries += 1;
    }

    fn finish(self, truth: &GroundTruth, candidates: usize) -> RetrievalError {
        let n = self.queries.max(1) as f64;
        let mean = |part: Part| truth.has[part].then_some(self.parts[part] / n);
        RetrievalError {
            rotation: self.parts[Part::Rotation] / n,
            translation: mean(Part::Translation),
            scale: mean(Part::Scale),
            shear: mean(Part::Shear),
            perspective: mean(Part::Perspective),
            queries: self.queries,
            candidates,
        }
    }
}

/// The error of a random candidate, over 20,000 random pairs of a target of `split` and a candidate of `pools`, whose
/// rows follow each other.
fn chance_error(truth: &GroundTruth, split: Split, pools: &[Range<usize>], seed: u64) -> RetrievalError {
    let mut random = Random::new(seed, CHANCE, split as u64);
    let mut sum = ErrorSum::default();
    let queries = truth.rows(split);
    let candidates: usize = pools.iter().map(Range::len).sum();
    let first = pools.iter().map(|pool| pool.start).min().unwrap_or(0);
    if !queries.is_empty() && candidates > 0 {
        for _ in 0..20_000 {
            let target = queries.start + random.below(queries.len() as u64) as usize;
            let candidate = first + random.below(candidates as u64) as usize;
            sum.add(distances(truth, Some(candidate), target));
        }
    }
    sum.finish(truth, candidates)
}
