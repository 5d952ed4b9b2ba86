//! Nearest neighbours by brute force: blocked matrix products of normalised rows on the chosen device.

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::{Device, ParameterStore, StoreBuilder, Tape, Tensor, Var, ops};

/// Queries and candidates of one product.
const QUERY_BLOCK: usize = 256;
const CANDIDATE_BLOCK: usize = 4096;

/// One neighbour: the candidate's row and its similarity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Neighbour {
    /// Row of the candidate table.
    pub row: usize,
    /// Dot product.
    pub similarity: f32,
}

/// Computes similarities on a device.
#[derive(Debug)]
pub struct Similarity {
    device: Device,
    /// Empty: products need a tape, and a tape a store.
    store: ParameterStore,
}

impl Similarity {
    /// On `device`.
    pub fn new(device: &Device) -> Result<Self> {
        Ok(Self { device: device.clone(), store: StoreBuilder::new().build(device, 0)? })
    }

    /// `queries candidates^T`, `[queries, candidates]`; rows of `width`.
    pub fn product(&mut self, queries: &[f32], candidates: &[f32], width: usize) -> Result<Vec<f32>> {
        let rows = |values: &[f32]| values.len() / width.max(1);
        let tensor = |values: &[f32]| -> Result<Var> {
            Ok(Var::constant(Tensor::from_slice(&self.device, [rows(values), width], values)?))
        };
        let (queries, candidates) = (tensor(queries)?, tensor(candidates)?);
        let mut tape = Tape::inference(&mut self.store);
        ops::linear(&mut tape, &queries, &candidates, None)?.value().to_f32()
    }

    /// The `k` most similar candidates of every query, best first. Of equally similar candidates the one with the
    /// lower row comes first. `exclude(query, row)` says which candidates do not count.
    pub fn nearest(
        &mut self,
        queries: &[f32],
        candidates: &[f32],
        width: usize,
        k: usize,
        exclude: impl Fn(usize, usize) -> bool + Sync,
    ) -> Result<Vec<Vec<Neighbour>>> {
        if width == 0 || !queries.len().is_multiple_of(width) || !candidates.len().is_multiple_of(width) {
            return Err(Error::shape("nearest", format!("embeddings are not rows of {width} numbers")));
        }
        let mut found: Vec<Vec<Neighbour>> = vec![Vec::new(); queries.len() / width];
        for (query_block, queries) in queries.chunks(QUERY_BLOCK * width).enumerate() {
            let first_query = query_block * QUERY_BLOCK;
            for (candidate_block, candidates) in candidates.chunks(CANDIDATE_BLOCK * width).enumerate() {
                let first_row = candidate_block * CANDIDATE_BLOCK;
                let columns = candidates.len() / width;
                let product = self.product(queries, candidates, width)?;
                let lists = &mut found[first_query..first_query + queries.len() / width];
                lists.par_iter_mut().zip(product.par_chunks_exact(columns)).enumerate().for_each(
                    |(query, (list, similarities))| {
                        for (column, &similarity) in similarities.iter().enumerate() {
                            let row = first_row + column;
                            let full = list.len() == k;
                            if full && list.last().is_some_and(|worst| similarity <= worst.similarity) {
                                continue;
                            }
                            if similarity.is_nan() || exclude(first_query + query, row) {
                                continue;
                            }
                            let at = list.partition_point(|better| better.similarity >= similarity);
                            list.insert(at, Neighbour { row, similarity });
                            list.truncate(k);
                        }
                    },
                );
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use random::{Random, Stream};

    #[test]
    fn agrees_with_a_float64_brute_force_across_blocks() {
        let width = 7;
        let mut random = Random::new(1, Stream::new("nearest"), 0);
        let mut table = |rows: usize| (0..rows * width).map(|_| random.normal() as f32).collect::<Vec<f32>>();
        let (queries, candidates) = (table(300), table(CANDIDATE_BLOCK + 100));
        let exclude = |query: usize, row: usize| row == query;
        let found = Similarity::new(&Device::cpu())
            .unwrap()
            .nearest(&queries, &candidates, width, 3, exclude)
            .unwrap();
        for query in [0, 1, 255, 256, 299] {
            let mut all: Vec<(f64, usize)> = candidates
                .chunks_exact(width)
                .enumerate()
                .filter(|(row, _)| *row != query)
                .map(|(row, c)| {
                    let q = &queries[query * width..(query + 1) * width];
                    (q.iter().zip(c).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum(), row)
                })
                .collect();
            all.sort_by(|a, b| b.0.total_cmp(&a.0));
            let rows: Vec<usize> = found[query].iter().map(|n| n.row).collect();
            assert_eq!(rows, all[..3].iter().map(|(_, row)| *row).collect::<Vec<_>>());
        }
    }

    #[test]
    fn ties_go_to_the_lower_row() {
        let mut similarity = Similarity::new(&Device::cpu()).unwrap();
        let found =
            similarity.nearest(&[1.0, 0.0], &[0.5, 1.0, 0.5, 0.0, 0.5, 2.0], 2, 2, |_, _| false).unwrap();
        assert_eq!(found[0].iter().map(|n| n.row).collect::<Vec<_>>(), [0, 1]);
        assert!(similarity.nearest(&[1.0], &[1.0, 2.0], 2, 1, |_, _| false).is_err());
    }
}
