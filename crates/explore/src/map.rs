//! All views as points of a plane: principal components, or t-SNE from our own neighbours, which begins at these.

use bhtsne::{Neighbor, tSNE};
use engine::Device;
use evaluate::Table;
use evaluate::nearest::Similarity;
use serde::Deserialize;

use crate::error::{Error, Result};
use crate::principal::components;

/// How points are laid out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// The first two principal components.
    #[default]
    Pca,
    /// t-distributed stochastic neighbour embedding.
    Tsne,
}

/// Points of a plane, in the order of the table's rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Points {
    /// The rows that have a point.
    pub rows: Vec<u32>,
    /// x and y of each.
    pub positions: Vec<[f32; 2]>,
    /// Share of the variance that x and y have, for principal components.
    pub shares: Vec<f64>,
}

/// Rows that t-SNE lays out, at most: the time grows with their square.
const MOST_TSNE: usize = 20_000;
/// Components that neighbours are found by.
const TSNE_WIDTH: usize = 32;
const PERPLEXITY: f32 = 30.0;
const EPOCHS: usize = 500;

/// Lays out the rows of `table`.
pub fn points(table: &Table, layout: Layout, device: &Device) -> Result<Points> {
    match layout {
        Layout::Pca => {
            let (plane, shares) = components(table, 2);
            let rows = 0..table.rows() as u32;
            Ok(Points { rows: rows.collect(), positions: plane_of(&plane), shares })
        }
        Layout::Tsne => tsne(table, device),
    }
}

/// The first two columns.
fn plane_of(table: &Table) -> Vec<[f32; 2]> {
    let rows = table.values.chunks_exact(table.width.max(1));
    rows.map(|row| [row[0], row.get(1).copied().unwrap_or(0.0)]).collect()
}

fn tsne(table: &Table, device: &Device) -> Result<Points> {
    let step = table.rows().div_ceil(MOST_TSNE).max(1);
    let rows: Vec<u32> = (0..table.rows() as u32).step_by(step).collect();
    let values = rows.iter().flat_map(|&row| table.row(row as usize)).copied().collect();
    let (reduced, _) = components(&Table { width: table.width, values }, TSNE_WIDTH);
    let perplexity = PERPLEXITY.min((rows.len() as f32 - 1.0) / 3.0 - 1.0);
    if perplexity < 2.0 || reduced.values.iter().any(|value| !value.is_finite()) {
        return Err(Error::Request("t-SNE needs at least ten views with finite features".to_owned()));
    }
    let neighbours = neighbours(&reduced, (3.0 * perplexity) as usize, device)?;
    // Small at the start, so that attraction and repulsion decide, not the components.
    let plane = plane_of(&reduced);
    let spread = (plane.iter().map(|point| point[0] * point[0]).sum::<f32>() / plane.len() as f32).sqrt();
    let scale = 1e-2 / spread.max(1e-12);
    let start: Vec<f32> = plane.iter().flatten().map(|value| value * scale).collect();
    // The library panics where it is asked for something impossible: a sentence is enough here.
    let fitted = std::panic::catch_unwind(|| {
        let mut fit: tSNE<'_, f32, u32> = tSNE::new(&rows);
        fit.perplexity(perplexity).epochs(EPOCHS).initial_embedding(start);
        if rows.len() > 8000 {
            fit.fit_sne_with_neighbors(&neighbours);
        } else {
            fit.barnes_hut_with_neighbors(0.5, &neighbours);
        }
        fit.embedding()
    });
    let fitted = fitted.map_err(|_| Error::Request("t-SNE could not lay out these views".to_owned()))?;
    let positions = fitted.as_chunks::<2>().0.to_vec();
    Ok(Points { rows, positions, shares: Vec::new() })
}

/// The `count` nearest rows of every row by Euclidean distance: of `q` and `c`, `2 q c - |c|^2` falls with it, and is the
/// product of two longer rows.
fn neighbours(table: &Table, count: usize, device: &Device) -> Result<Vec<Vec<Neighbor<f32>>>> {
    let squares = |row: &[f32]| row.iter().map(|value| value * value).sum::<f32>();
    let rows: Vec<&[f32]> = table.values.chunks_exact(table.width.max(1)).collect();
    let queries: Vec<f32> =
        rows.iter().flat_map(|row| row.iter().map(|value| 2.0 * value).chain([-1.0])).collect();
    let candidates: Vec<f32> =
        rows.iter().flat_map(|row| row.iter().copied().chain([squares(row)])).collect();
    let found = Similarity::new(device)?.nearest(
        &queries,
        &candidates,
        table.width + 1,
        count,
        |query, candidate| query == candidate,
    )?;
    let distance = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f32>().sqrt();
    let of_row = |(row, near): (usize, &Vec<evaluate::nearest::Neighbour>)| {
        let neighbour = |near: &evaluate::nearest::Neighbour| Neighbor {
            index: near.row,
            distance: distance(rows[row], rows[near.row]),
        };
        let mut near: Vec<Neighbor<f32>> = near.iter().map(neighbour).collect();
        near.sort_by(|a, b| a.distance.total_cmp(&b.distance));
        near
    };
    Ok(found.iter().enumerate().map(of_row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three clouds of 40 rows, far from each other.
    fn clouds() -> Table {
        let mut random = random::Random::new(3, random::Stream::new("map-tests"), 0);
        let row = |i: usize, random: &mut random::Random| -> Vec<f32> {
            let centre = |axis: usize| if i / 40 == axis { 8.0 } else { 0.0 };
            (0..5).map(|axis| centre(axis) + random.range(-0.5, 0.5) as f32).collect()
        };
        Table { width: 5, values: (0..120).flat_map(|i| row(i, &mut random)).collect() }
    }

    #[test]
    fn clouds_stay_apart_in_both_layouts() {
        let table = clouds();
        for layout in [Layout::Pca, Layout::Tsne] {
            let found = points(&table, layout, &Device::cpu()).unwrap();
            assert_eq!((found.rows.len(), found.positions.len()), (120, 120));
            let distance = |a: usize, b: usize| {
                let [a, b] = [found.positions[a], found.positions[b]];
                (a[0] - b[0]).hypot(a[1] - b[1])
            };
            // The nearest point of every point is of its own cloud.
            for a in 0..120 {
                let nearest =
                    (0..120).filter(|&b| b != a).min_by(|&b, &c| distance(a, b).total_cmp(&distance(a, c)));
                assert_eq!(nearest.unwrap() / 40, a / 40, "{layout:?} {a}");
            }
        }
        let few = Table { width: 5, values: vec![0.5; 20] };
        assert!(points(&few, Layout::Tsne, &Device::cpu()).is_err());
        assert_eq!(points(&few, Layout::Pca, &Device::cpu()).unwrap().positions.len(), 4);
    }
}
