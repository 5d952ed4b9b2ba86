//! One network with the features of all views: what it makes of a view, which views are near, where a motion leads.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use dataset::Split;
use dataset::error::FileError;
use engine::Device;
use evaluate::features::{self, Extraction};
use evaluate::nearest::{Neighbour, Similarity};
use evaluate::prediction::{Transformation, normalise_neighbours};
use evaluate::view_errors::{self, ViewError};
use evaluate::weights::Opened;
use evaluate::{Encoded, Encoder, Features, NetworkEncoder, Table};
use pose::{Space, ViewPose};
use serde::{Deserialize, Serialize};

use crate::data::Data;
use crate::error::{Error, Result};
use crate::map::{self, Layout, Points};
use crate::run::Run;

/// Which features are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// The backbone's pooled output.
    #[default]
    Representation,
    /// Poses of capsules, or the (equivariant) embedding.
    Poses,
    /// Activations of capsules, or the invariant embedding.
    Activations,
}

/// A network in use.
pub struct Network {
    encoder: Mutex<NetworkEncoder>,
    similarity: Mutex<Similarity>,
    device: Device,
    data: Arc<Data>,
    /// Features in the order of the ground truth: poses as they are, the others normalised to be compared.
    features: Features,
    /// Poses, normalised to be compared.
    poses: Table,
    transformation: Option<Transformation>,
    /// Capsules and the side of their matrices.
    pub capsules: Option<(usize, usize)>,
    /// Why there are no embeddings, where there are none.
    pub note: Option<String>,
    errors: OnceLock<Arc<Vec<ViewError>>>,
    maps: Mutex<HashMap<(By, Layout), Arc<Points>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The features of all views; only in memory where the folder that keeps them cannot be written.
fn extract(
    encoder: &mut NetworkEncoder,
    data: &Data,
    extraction: Extraction,
    progress: &mut dyn FnMut(u64),
    stop: &dyn Fn() -> bool,
) -> evaluate::Result<Features> {
    let mut done = 0;
    let count = |views| {
        done += views;
        progress(views);
    };
    let kept = features::extract(encoder, &data.views, &extraction, count, stop);
    let Err(evaluate::Error::Dataset(dataset::Error::File(FileError::Write { .. }))) = kept else {
        return kept;
    };
    // What was counted already is not counted again.
    let count = |views: u64| {
        let again = views.min(done);
        done -= again;
        progress(views - again);
    };
    features::extract(encoder, &data.views, &Extraction { cache: None, ..extraction }, count, stop)
}

impl Network {
    /// Opens the checkpoint `epoch` of `run`, and computes the features of all views or finds them where they are kept.
    pub fn open(
        run: &Run,
        epoch: u64,
        data: &Arc<Data>,
        device: &Device,
        mut progress: impl FnMut(u64),
        stop: &dyn Fn() -> bool,
    ) -> Result<Self> {
        let weights = run.weights(epoch)?;
        let Opened { mut encoder, key, note } = weights.open(device)?;
        let extraction = Extraction {
            data_key: data.key.clone(),
            ..Extraction::new(run.cache(), &weights.subject(&key, false).weights_key, &encoder, device)
        };
        let features = extract(&mut encoder, data, extraction, &mut progress, stop)?;
        let mut features = features.map(|table| data.truth.arrange(table));
        let transformation = encoder.transformation();
        let mut poses = features.equivariant.clone();
        normalise_neighbours(transformation, &mut poses.values, poses.width);
        for table in [&mut features.representation, &mut features.invariant] {
            normalise_neighbours(None, &mut table.values, table.width);
        }
        let capsules = encoder.capsules();
        Ok(Self {
            similarity: Mutex::new(Similarity::new(device)?),
            encoder: Mutex::new(encoder),
            device: device.clone(),
            data: Arc::clone(data),
            features,
            poses,
            transformation,
            capsules,
            note,
            errors: OnceLock::new(),
            maps: Mutex::default(),
        })
    }

    /// Features to be compared.
    fn table(&self, by: By) -> &Table {
        match by {
            By::Representation => &self.features.representation,
            By::Poses => &self.poses,
            By::Activations => &self.features.invariant,
        }
    }

    /// Side of the images that it takes.
    pub fn side(&self) -> usize {
        lock(&self.encoder).side()
    }

    /// How its embeddings follow a motion, in words: `matrices`, `predictor`, or nothing.
    pub fn motion(&self) -> Option<&'static str> {
        Some(match self.transformation? {
            Transformation::PoseMatrices(_) => "matrices",
            Transformation::Predictor { .. } => "predictor",
        })
    }

    /// Features of one image of [`Self::side`] pixels.
    pub fn encode(&self, pixels: &[u8]) -> Result<Encoded> {
        Ok(lock(&self.encoder).encode(pixels, 1)?)
    }

    /// The `k` rows nearest to features, without those that `skip` names; none where the network has no such features.
    pub fn nearest(
        &self,
        by: By,
        encoded: &Encoded,
        k: usize,
        skip: impl Fn(usize) -> bool + Sync,
    ) -> Result<Vec<Neighbour>> {
        let table = self.table(by);
        let mut query = match by {
            By::Representation => encoded.representation.clone(),
            By::Poses => encoded.equivariant.clone(),
            By::Activations => encoded.invariant.clone(),
        };
        if table.width == 0 || query.len() != table.width {
            return Ok(Vec::new());
        }
        normalise_neighbours(self.transformation.filter(|_| by == By::Poses), &mut query, table.width);
        let skip = |_: usize, row: usize| skip(row);
        let found = lock(&self.similarity).nearest(&query, &table.values, table.width, k, skip)?;
        Ok(found.into_iter().next().unwrap_or_default())
    }

    /// How its embeddings follow motions of what the data show; refused where they do not.
    pub fn transformation(&self) -> Result<Transformation> {
        let Some(transformation) = self.transformation else {
            return Err(Error::Request(
                "this network's embeddings do not follow motions; equicaps, capsie, sie, equimod and sen do"
                    .to_owned(),
            ));
        };
        let (group, of_data) = (transformation.group(), self.data.truth.space);
        if group.space != of_data {
            let (one, other) = match of_data {
                Space::Object => ("photographs", "objects"),
                Space::Image => ("objects", "photographs"),
            };
            return Err(Error::Request(format!(
                "this network follows motions of {one} ({group}), but the data are {other}"
            )));
        }
        Ok(transformation)
    }

    /// The `k` rows of `object` (of all, where it is none) nearest to an embedding that is moved by `by`, without the row
    /// `except`, and the moved embedding.
    pub fn steer(
        &self,
        embedding: &[f32],
        by: &ViewPose,
        object: Option<usize>,
        k: usize,
        except: Option<usize>,
    ) -> Result<(Vec<Neighbour>, Vec<f32>)> {
        let transformation = self.transformation()?;
        let origin = ViewPose::default();
        let moved = transformation.moved(&mut *lock(&self.encoder), embedding, &origin, by)?;
        let truth = &self.data.truth;
        let width = self.poses.width;
        let mut found = Vec::new();
        let own_rows = |split| match object {
            None => Some(truth.rows(split)),
            Some(object) => truth.split(split).contains(&object).then(|| truth.rows_of(split, object)),
        };
        let mut similarity = lock(&self.similarity);
        for rows in Split::ALL.into_iter().filter_map(own_rows) {
            let pool = &self.poses.values[rows.start * width..rows.end * width];
            let skip = |_: usize, row: usize| Some(rows.start + row) == except;
            let near = similarity.nearest(&moved, pool, width, k, skip)?.into_iter().flatten();
            found.extend(near.map(|near| Neighbour { row: rows.start + near.row, ..near }));
        }
        found.sort_by(|a, b| b.similarity.total_cmp(&a.similarity).then(a.row.cmp(&b.row)));
        found.truncate(k);
        Ok((found, moved))
    }

    /// The errors of all held-out views; computed once.
    pub fn errors(&self) -> Result<Arc<Vec<ViewError>>> {
        if let Some(errors) = self.errors.get() {
            return Ok(Arc::clone(errors));
        }
        let mut encoder = lock(&self.encoder);
        let errors = view_errors::of_held_out(&mut *encoder, &self.features, &self.data.truth, &self.device)?;
        Ok(Arc::clone(self.errors.get_or_init(|| Arc::new(errors))))
    }

    /// Why no errors of rotation are known, where none are.
    pub fn no_rotation(&self) -> String {
        match self.transformation() {
            _ if !self.data.truth.has_poses => "these data have no poses".to_owned(),
            Err(error) => error.to_string(),
            Ok(_) => "no held-out object has two views".to_owned(),
        }
    }

    /// All views as points; computed once.
    pub fn map(&self, by: By, layout: Layout) -> Result<Arc<Points>> {
        if let Some(points) = lock(&self.maps).get(&(by, layout)) {
            return Ok(Arc::clone(points));
        }
        let table = self.table(by);
        if table.width == 0 {
            return Err(Error::Request(
                "this network has no such features; choose the representation".to_owned(),
            ));
        }
        let points = Arc::new(map::points(table, layout, &self.device)?);
        lock(&self.maps).insert((by, layout), Arc::clone(&points));
        Ok(points)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_that_cannot_be_kept_stay_in_memory() {
        let run = Run::open(std::path::Path::new(evaluate::builtin::NAME)).unwrap();
        let mut config = run.config().clone();
        config.data = "procedural:2x1".to_owned();
        config.procedural.views = 4;
        let data = Data::open(&config, None, None, &mut |text| panic!("{text}")).unwrap();
        let device = Device::cpu();
        let mut encoder = run.weights(run.epochs().unwrap()[0]).unwrap().open(&device).unwrap().encoder;
        let folder = tempfile::tempdir().unwrap();
        // A file is where the folder should be; root may write everything else.
        let place = folder.path().join("evaluation");
        std::fs::write(&place, "").unwrap();
        let mut features_in = |cache| {
            let extraction = Extraction::new(cache, "weights", &encoder, &device);
            let mut done = 0;
            let features = extract(&mut encoder, &data, extraction, &mut |views| done += views, &|| false);
            (features.unwrap(), done)
        };
        let total = data.truth.index.total() as u64;
        let in_memory = features_in(Some(place.join("features")));
        assert_eq!(in_memory.1, total);
        assert!(in_memory == features_in(Some(folder.path().join("features"))));
    }
}
