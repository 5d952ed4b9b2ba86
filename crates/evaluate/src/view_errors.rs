//! How wrong a network is about single held-out views: where its moved embeddings land, and which class their neighbours
//! have. What is symmetric shows here: views that look alike are taken for each other.
//!
//! - Rotation: the embedding of an object's first held-out view is moved to every other one, as in [`crate::retrieval`];
//!   the error is the angle between the view that is found among the object's own and the one that was asked for.
//! - Class: the one that most of the nearest training views have, by representations.

use dataset::Split;
use engine::Device;
use serde::Serialize;

use crate::encoder::Encoder;
use crate::error::Result;
use crate::features::{Features, Table};
use crate::ground_truth::GroundTruth;
use crate::nearest::Similarity;
use crate::prediction::{Transformation, normalise_neighbours};
use crate::retrieval::{HostSearch, Search};

/// Training views that are looked at for a class, at most, evenly chosen.
const MOST_CANDIDATES: usize = 8192;
/// Neighbours that vote for a class.
const VOTES: usize = 5;

/// What is wrong about one held-out view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ViewError {
    /// The view's row.
    pub row: usize,
    /// The angle between the view that was found and this one, in degrees.
    pub rotation_degrees: Option<f64>,
    /// The row of the view that was found.
    pub found: Option<usize>,
    /// The class that the network takes it for.
    pub class: Option<u32>,
}

/// The errors of all held-out views, in the order of their rows.
pub fn of_held_out(
    encoder: &mut dyn Encoder,
    features: &Features,
    truth: &GroundTruth,
    device: &Device,
) -> Result<Vec<ViewError>> {
    let rows = truth.rows(Split::Val);
    let mut errors: Vec<ViewError> =
        rows.clone().map(|row| ViewError { row, ..ViewError::default() }).collect();
    if let Some(transformation) = encoder.transformation().filter(|_| truth.has_poses) {
        rotation(encoder, transformation, &features.equivariant, truth, device, &mut errors)?;
    }
    class(&features.representation, truth, device, &mut errors)?;
    Ok(errors)
}

fn rotation(
    encoder: &mut dyn Encoder,
    transformation: Transformation,
    table: &Table,
    truth: &GroundTruth,
    device: &Device,
    errors: &mut [ViewError],
) -> Result<()> {
    let first = truth.rows(Split::Val).start;
    let mut search = HostSearch::new(table, transformation, truth, device)?;
    for object in truth.paired(Split::Val) {
        let rows = truth.rows_of(Split::Val, object);
        let block = search.search(encoder, Split::Val, &[object], std::slice::from_ref(&rows))?;
        let found = block.nearest.iter().flatten();
        // The first view is the source, and moved nowhere.
        for (row, found) in rows.clone().zip(found).skip(1) {
            let Some((_, found)) = found else { continue };
            let [asked, there] = [row, *found].map(|row| truth.poses[row].quaternion());
            let error = &mut errors[row - first];
            error.rotation_degrees = Some(pose::rotation_angle(asked, there).0);
            error.found = Some(*found);
        }
    }
    Ok(())
}

fn class(table: &Table, truth: &GroundTruth, device: &Device, errors: &mut [ViewError]) -> Result<()> {
    let (train, held_out) = (truth.rows(Split::Train), truth.rows(Split::Val));
    if train.is_empty() || held_out.is_empty() {
        return Ok(());
    }
    let step = train.len().div_ceil(MOST_CANDIDATES);
    let chosen: Vec<usize> = train.step_by(step).collect();
    let width = table.width;
    let mut candidates: Vec<f32> = chosen.iter().flat_map(|&row| table.row(row)).copied().collect();
    let mut queries = table.values[held_out.start * width..held_out.end * width].to_vec();
    normalise_neighbours(None, &mut candidates, width);
    normalise_neighbours(None, &mut queries, width);
    let found = Similarity::new(device)?.nearest(&queries, &candidates, width, VOTES, |_, _| false)?;
    for (error, neighbours) in errors.iter_mut().zip(found) {
        let labels: Vec<u32> =
            neighbours.iter().map(|near| truth.labels[truth.item(chosen[near.row]).0]).collect();
        let votes = |label: u32| labels.iter().filter(|&&other| other == label).count();
        // Of classes with as many votes, the one of the nearest.
        error.class = labels.iter().copied().rev().max_by_key(|&label| votes(label));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoder::{Encoded, Widths};
    use crate::prediction::PoseMatrices;
    use dataset::ViewIndex;
    use pose::{Group, PerPart, Space, ViewPose};

    const LAYOUT: PoseMatrices = PoseMatrices { capsules: 1, group: Group::ROTATION };

    /// Poses that follow the view, unless an object is symmetric.
    struct Poses;

    impl Encoder for Poses {
        fn side(&self) -> usize {
            32
        }
        fn widths(&self) -> Widths {
            Widths { representation: 2, equivariant: Some(9), invariant: None }
        }
        fn encode(&mut self, _: &[u8], _: usize) -> Result<Encoded> {
            Ok(Encoded::default())
        }
        fn transformation(&self) -> Option<Transformation> {
            Some(Transformation::PoseMatrices(LAYOUT))
        }
        fn predict(&mut self, _: &[f32], _: &[f32], _: usize) -> Result<Vec<f32>> {
            Ok(Vec::new())
        }
    }

    #[test]
    fn objects_that_look_the_same_from_behind_have_large_errors() {
        let degrees: [f64; 12] = [0.0, 90.0, 180.0, 45.0, 0.0, 90.0, 180.0, 45.0, 0.0, 100.0, 180.0, 40.0];
        let pose = |angle: f64| ViewPose::published_precision([0.0, 0.0, angle.to_radians()], [0.0; 3]);
        let truth = GroundTruth {
            index: ViewIndex::equal(3, 4, 0),
            has_poses: true,
            has_hues: true,
            poses: degrees.iter().map(|&angle| pose(angle)).collect(),
            hues: vec![[0.0; 2]; 12],
            labels: vec![0, 0, 1],
            classes: 2,
            space: Space::Object,
            has: PerPart([true, false, false, false, false]),
            train_objects: 1,
        };
        let origin = ViewPose::default();
        let base = [1.0, 0.2, 0.1, 0.3, 1.0, 0.4, 0.1, 0.2, 1.0];
        // The third object looks the same after half a turn.
        let embed = |(row, &angle): (usize, &f64)| {
            let seen = if row >= 8 && angle >= 180.0 { angle - 180.0 } else { angle };
            LAYOUT.transform(&base, &LAYOUT.relative(&origin, &pose(seen)))
        };
        let equivariant = Table { width: 9, values: degrees.iter().enumerate().flat_map(embed).collect() };
        // The third object, of another class, looks as those of the first.
        let representation = Table { width: 2, values: [1.0, 0.1].repeat(12) };
        let features = Features { representation, equivariant, invariant: Table::default() };
        let errors = of_held_out(&mut Poses, &features, &truth, &Device::cpu()).unwrap();
        let angle = |row: usize| errors[row - 4].rotation_degrees;
        assert_eq!((errors.len(), errors[0].row, angle(4), angle(8)), (8, 4, None, None));
        for row in [5, 6, 7] {
            assert!(angle(row).unwrap() < 1e-3, "{row}: {errors:?}");
        }
        // Asked for the view from behind, it finds another one.
        assert!(angle(10).unwrap() > 30.0, "{errors:?}");
        assert!(errors.iter().all(|error| error.class == Some(0)));
    }
}
