//! Nearest neighbours of whole images: which other views look alike to a network. Cosine similarity of
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
    /// `1 - <q, q'>^2` to the query, where rotations are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotation_distance: Option<f64>,
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
    let mut view = |object: usize| {
        let views = truth.views_of(Split::Val, object);
        views.start + random.below(views.len().max(1) as u64) as usize
    };
    objects.into_iter().map(|object| (object, view(object))).collect()
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
    let first = truth.rows(Split::Val).start;
    let mut pool = table.values[first * width..].to_vec();
    pool.par_chunks_exact_mut(width.max(1)).for_each(crate::prediction::normalise_prediction);
    let rows: Vec<usize> = queries.iter().map(|&(object, view)| truth.row(object, view)).collect();
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
                    let (other_object, other_view) = truth.item(other);
                    let quaternions = [row, other].map(|row| truth.poses[row].quaternion());
                    FoundView {
                        object: other_object,
                        view: other_view,
                        similarity: neighbour.similarity,
                        rotation_distance: truth
                            .has_poses
                            .then(|| pose::rotation_distance(quaternions[0], quaternions[1])),
                        same_class: truth.labels[other_object] == truth.labels[object],
                    }
                })
                .collect();
            NeighbourQuery { object, view, found }
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use dataset::ViewIndex;
    use pose::ViewPose;

    /// Four objects of two views, the first one for training; angles about z, two numbers a view on the unit circle.
    fn circle() -> (Table, GroundTruth) {
        let degrees: [f64; 8] = [40.0, 41.0, 0.0, 10.0, 42.0, 90.0, 45.0, 180.0];
        let turned = |angle: &f64| ViewPose::published_precision([0.0, 0.0, angle.to_radians()], [0.0; 3]);
        let truth = GroundTruth {
            index: ViewIndex::equal(4, 2, 0),
            has_poses: true,
            has_hues: true,
            poses: degrees.iter().map(turned).collect(),
            hues: vec![[0.0; 2]; 8],
            labels: vec![0, 1, 0, 1],
            classes: 2,
            space: pose::Space::Object,
            has: pose::PerPart([true, false, false, false, false]),
            train_objects: 1,
        };
        // Lengths differ: only directions count.
        let row = |(index, angle): (usize, &f64)| {
            let (sin, cos) = angle.to_radians().sin_cos();
            [cos, sin].map(|value| ((1 + index) as f64 * value) as f32)
        };
        (Table { width: 2, values: degrees.iter().enumerate().flat_map(row).collect() }, truth)
    }

    #[test]
    fn the_nearest_held_out_views_are_found_without_the_query_itself() {
        let (table, truth) = circle();
        // Object 2, view 0: at 42 degrees.
        let found = find(&table, &truth, &[(2, 0)], 3, &Device::cpu()).unwrap().remove(0);
        let places: Vec<_> = found.found.iter().map(|view| (view.object, view.view)).collect();
        assert_eq!(((found.object, found.view), places), ((2, 0), vec![(3, 0), (1, 1), (1, 0)]));
        assert_eq!(found.found.iter().map(|view| view.same_class).collect::<Vec<_>>(), [false; 3]);
        for (view, degrees) in found.found.iter().zip([3.0_f64, 32.0, 42.0]) {
            let apart = degrees.to_radians();
            assert!((f64::from(view.similarity) - apart.cos()).abs() < 1e-6, "{view:?}");
            assert!((view.rotation_distance.unwrap() - (0.5 * apart).sin().powi(2)).abs() < 1e-6, "{view:?}");
        }
    }

    #[test]
    fn queries_are_held_out_views_of_different_objects() {
        let (_, truth) = circle();
        let queries = choose_queries(&truth, 10, 4);
        let mut objects: Vec<usize> = queries.iter().map(|query| query.0).collect();
        objects.sort_unstable();
        assert_eq!(objects, [1, 2, 3]);
        assert!(queries.iter().all(|query| query.1 < 2));
        assert_eq!(queries, choose_queries(&truth, 10, 4));
        assert!((0..20).any(|seed| choose_queries(&truth, 2, seed) != choose_queries(&truth, 2, 4)));
    }
}
