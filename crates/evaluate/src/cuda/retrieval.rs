//! Retrieval by full brute force on the device: blocks of products, ranks counted and nearest rows found where the
//! similarities are; they never leave the device.
//!
//! Products run on tensor cores without losing float32's accuracy: a normalised number `x` is stored as two halves,
//! `x = high + low` to 22 bits, and one product of rows of three times the length sums up
//! `high high + high low + low high` in float32. Numbers are scaled by a power of two first, so that the low parts are
//! far from a half's smallest numbers.

use std::ops::Range;
use std::sync::Arc;

use dataset::Split;
use engine::Tensor;
use engine::cuda::CudaDevice;
use gpu::matmul::MatmulShape;
use gpu::{Argument, Buffer, Launch, Precision, View};
use rayon::prelude::*;

use super::{download, launch, upload, view};
use crate::encoder::Encoder;
use crate::error::{Error, Result};
use crate::features::Table;
use crate::ground_truth::GroundTruth;
use crate::prediction::Transformation;
use crate::retrieval::{Block, Search, predictor_inputs};

/// What every number is multiplied by before it is split; a power of two.
const SCALE: f32 = 64.0;

/// Rows of one product: queries (whole objects, about as many) and candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// Queries.
    pub queries: usize,
    /// Candidates.
    pub candidates: usize,
}

impl Default for Blocks {
    fn default() -> Self {
        Self { queries: 4096, candidates: 16384 }
    }
}

/// A search on the device.
#[derive(Debug)]
pub struct DeviceSearch<'a> {
    cuda: Arc<CudaDevice>,
    /// (rows, width)
    table: &'a Tensor,
    /// The same table on the host, which predictors start from.
    host: Option<&'a Table>,
    transformation: Transformation,
    truth: &'a GroundTruth,
    padded: usize,
    blocks: Blocks,
    /// All rows, as candidates.
    candidates: Buffer,
    queries: Buffer,
    own: Buffer,
    similarities: Buffer,
    ranks: Buffer,
    best: Buffer,
    best_row: Buffer,
}

impl<'a> DeviceSearch<'a> {
    /// Bytes of device memory it needs beside the table.
    pub fn bytes(rows: usize, width: usize, blocks: Blocks) -> usize {
        let row = split_bytes(width);
        rows * row + 2 * blocks.queries * row + blocks.queries * blocks.candidates * 4
    }

    /// Normalises and splits all rows of `table`, which lies on `cuda`.
    pub fn new(
        cuda: &Arc<CudaDevice>,
        table: &'a Tensor,
        host: Option<&'a Table>,
        transformation: Transformation,
        truth: &'a GroundTruth,
        blocks: Blocks,
    ) -> Result<Self> {
        let &[rows, width] = table.dims() else {
            return Err(Error::Request(format!("embeddings of shape {} are not a table", table.shape())));
        };
        if rows != truth.poses.len() || truth.index.most() == 0 {
            return Err(Error::Request(format!("{rows} embeddings for {} views", truth.poses.len())));
        }
        let context = cuda.context();
        let sides = Split::ALL.map(|split| truth.most_views(split).max(1));
        let queries = sides.map(|views| (blocks.queries / views).max(1) * views);
        let (queries, views) = (queries[0].max(queries[1]), sides[0].max(sides[1]));
        let row = split_bytes(width);
        let similarities = queries * blocks.candidates.max(views) * 4;
        let search = Self {
            cuda: Arc::clone(cuda),
            table,
            host,
            transformation,
            truth,
            padded: width.next_multiple_of(8),
            blocks: Blocks { queries, ..blocks },
            candidates: context.allocate(rows * row)?,
            queries: context.allocate(queries * row)?,
            own: context.allocate(queries * row)?,
            similarities: context.allocate(similarities)?,
            ranks: context.allocate(queries * 4)?,
            best: context.allocate(queries * 4)?,
            best_row: context.allocate(queries * 4)?,
        };
        search.prepare(view(table.storage())?, None, None, &search.candidates, rows, false)?;
        Ok(search)
    }

    /// Rows `sources` (all in order where `None`) of `from`, moved by `matrices`, normalised and split, to `to`.
    fn prepare(
        &self,
        from: View,
        sources: Option<&Buffer>,
        matrices: Option<&Buffer>,
        to: &Buffer,
        rows: usize,
        is_query: bool,
    ) -> Result<()> {
        if rows == 0 {
            return Ok(());
        }
        let width = self.table.dims()[1];
        let side = match self.transformation {
            Transformation::PoseMatrices(layout) => layout.size(),
            Transformation::Predictor { .. } => 0,
        };
        let arguments = [
            from.into(),
            sources.into(),
            matrices.into(),
            to.into(),
            width.into(),
            self.padded.into(),
            side.into(),
            Argument::F64(if is_query { 0.0 } else { 1e-8 }),
            SCALE.into(),
            i32::from(is_query).into(),
        ];
        let blocks = Launch::linear(rows, 128).with_shared(width * 4);
        launch(&self.cuda, "prepare", blocks, &arguments)
    }

    /// Predictions from the first view to every view of `objects` on one side, as queries.
    fn predict(&self, encoder: &mut dyn Encoder, split: Split, objects: &[usize]) -> Result<()> {
        let (truth, views) = (self.truth, self.truth.views_at_once(split, objects));
        let count = objects.len() * views;
        match self.transformation {
            Transformation::PoseMatrices(layout) => {
                let matrices: Vec<f32> = objects
                    .par_iter()
                    .flat_map_iter(|&object| {
                        let poses = truth.poses_of(split, object);
                        poses.iter().flat_map(move |target| layout.relative(&poses[0], target))
                    })
                    .map(|entry| entry as f32)
                    .collect();
                let sources: Vec<i32> = objects
                    .iter()
                    .flat_map(|&object| std::iter::repeat_n(truth.rows_of(split, object).start as i32, views))
                    .collect();
                let (sources, matrices) = (upload(&self.cuda, &sources)?, upload(&self.cuda, &matrices)?);
                let from = view(self.table.storage())?;
                self.prepare(from, Some(&sources), Some(&matrices), &self.queries, count, true)
            }
            Transformation::Predictor { group } => {
                let host = self.host.ok_or_else(|| {
                    Error::Request("a predictor needs the embeddings in the host's memory".to_owned())
                })?;
                let (sources, parameters) = predictor_inputs(host, truth, group, split, objects);
                let predicted = upload(&self.cuda, &encoder.predict(&sources, &parameters, count)?)?;
                self.prepare(predicted.view(), None, None, &self.queries, count, true)
            }
        }
    }

    fn multiply(&self, shape: &MatmulShape, a: u64, b: u64) -> Result<()> {
        let context = self.cuda.context();
        let alpha = 1.0 / (SCALE * SCALE);
        // SAFETY: the buffers were made for these sizes.
        unsafe {
            context.matmuls()?.multiply(context, shape, (alpha, 0.0), a, b, self.similarities.address())?;
        }
        Ok(())
    }

    /// Ranks of the targets among the views of their objects.
    fn ranks(&self, split: Split, objects: &[usize]) -> Result<Vec<i32>> {
        let views = self.truth.views_at_once(split, objects);
        let count = objects.len() * views;
        let rows: Vec<i32> = objects
            .iter()
            .flat_map(|&object| self.truth.rows_of(split, object).map(|row| row as i32))
            .collect();
        let rows = upload(&self.cuda, &rows)?;
        self.prepare(view(self.table.storage())?, Some(&rows), None, &self.own, count, false)?;
        let inner = 3 * self.padded;
        let shape = MatmulShape {
            batch: objects.len(),
            batch_strides: [views * inner, views * inner, views * views],
            ..MatmulShape::new(views, views, inner, Precision::F16, Precision::F32).transposed(false, true)
        };
        self.multiply(&shape, self.queries.address(), self.own.address())?;
        let arguments = [(&self.similarities).into(), (&self.ranks).into(), count.into(), views.into()];
        launch(&self.cuda, "rank_targets", self.cuda.elementwise(count), &arguments)?;
        download(&self.cuda, &self.ranks, count)
    }

    /// The nearest of the rows `pool` for each of `count` queries.
    fn nearest(&self, count: usize, pool: &Range<usize>) -> Result<Vec<Option<(f32, usize)>>> {
        let arguments = [(&self.best).into(), (&self.best_row).into(), count.into()];
        launch(&self.cuda, "forget_best", self.cuda.elementwise(count), &arguments)?;
        let inner = 3 * self.padded;
        let mut first = pool.start;
        while first < pool.end {
            let columns = self.blocks.candidates.min(pool.end - first);
            let shape = MatmulShape::new(count, columns, inner, Precision::F16, Precision::F32)
                .transposed(false, true);
            let block = self.candidates.address() + (first * inner * 2) as u64;
            self.multiply(&shape, self.queries.address(), block)?;
            let arguments = [
                (&self.similarities).into(),
                (&self.best).into(),
                (&self.best_row).into(),
                (columns as i64).into(),
                first.into(),
            ];
            launch(&self.cuda, "take_best", Launch::linear(count, 256), &arguments)?;
            first += columns;
        }
        let best: Vec<f32> = download(&self.cuda, &self.best, count)?;
        let rows: Vec<i32> = download(&self.cuda, &self.best_row, count)?;
        let found = best.into_iter().zip(rows);
        Ok(found.map(|(value, row)| usize::try_from(row).ok().map(|row| (value, row))).collect())
    }
}

impl Search for DeviceSearch<'_> {
    fn objects_at_once(&self, split: Split) -> usize {
        self.blocks.queries / self.truth.most_views(split).max(1)
    }

    fn search(
        &mut self,
        encoder: &mut dyn Encoder,
        split: Split,
        objects: &[usize],
        pools: &[Range<usize>],
    ) -> Result<Block> {
        self.predict(encoder, split, objects)?;
        let ranks = self.ranks(split, objects)?;
        let ranks = ranks.into_iter().map(|rank| rank.unsigned_abs() as usize).collect();
        let count = objects.len() * self.truth.views_at_once(split, objects);
        let nearest = pools.iter().map(|pool| self.nearest(count, pool)).collect::<Result<_>>()?;
        Ok(Block { ranks, nearest })
    }
}

/// Bytes of a row of three parts of halves.
fn split_bytes(width: usize) -> usize {
    3 * width.next_multiple_of(8) * 2
}
