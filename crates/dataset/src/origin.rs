//! Where images come from: the view of a dataset that a file is, by its path, so that tables of features can be joined
//! with what the dataset knows.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pose::ViewPose;

use crate::latent_table::ALL_NAMES;
use crate::{Dataset, Image, Object, Split, SplitBy, Views};

/// What a dataset knows of an image.
#[derive(Clone, Debug, PartialEq)]
pub struct Origin {
    /// What people call the class.
    pub class: String,
    /// `CLASS FOLDER/OBJECT`.
    pub object: String,
    /// Number of the view.
    pub view: usize,
    /// Side of the split.
    pub split: &'static str,
    /// The parameters of the view that are known, in the order of [`ALL_NAMES`].
    pub latents: [Option<f64>; ALL_NAMES.len()],
    /// Its pose, where it is known.
    pub pose: Option<ViewPose>,
}

impl Origin {
    /// `1 - <q, q'>^2` of two views: 0 for the same orientation, 1 for half a turn; `None` where one is not known.
    pub fn rotation_distance(first: Option<&Self>, second: Option<&Self>) -> Option<f64> {
        let rotation = |origin: Option<&Self>| Some(origin?.pose?.quaternion());
        Some(pose::rotation_distance(rotation(first)?, rotation(second)?))
    }
}

/// An opened dataset, and the numbers of its objects by class folder and name.
struct Known {
    dataset: Arc<Dataset>,
    objects: HashMap<(String, String), usize>,
}

/// The origins of `images`; `None` for those that are no views of a dataset (`ROOT/CLASS/OBJECT/image_VIEW.jpg` with the
/// dataset's files in `ROOT`).
pub fn origins(images: &[Image]) -> Vec<Option<Origin>> {
    let mut roots: HashMap<PathBuf, Option<Known>> = HashMap::new();
    let mut of = |image: &Image| match image.packed() {
        Some((dataset, object, view)) => Some(known(dataset, object, view)),
        None => origin(&image.path, &mut roots),
    };
    images.iter().map(&mut of).collect()
}

/// What is known of a view.
fn known(dataset: &Dataset, index: usize, view: usize) -> Origin {
    let object = &dataset.objects()[index];
    let class = dataset.classes().iter().find(|class| class.label == object.label);
    let table = dataset.latent_table();
    let row = table.row(dataset.row(index, view));
    let mut latents = [None; ALL_NAMES.len()];
    for (name, &value) in table.columns().names().into_iter().zip(row) {
        if let Some(place) = ALL_NAMES.iter().position(|other| *other == name) {
            latents[place] = value.is_finite().then_some(value);
        }
    }
    let split = match dataset.split_by() {
        SplitBy::Objects => object.split,
        SplitBy::Views if dataset.views_of(Split::Val, index).contains(&view) => Split::Val,
        SplitBy::Views => Split::Train,
    };
    Origin {
        class: class.map_or_else(|| object.synset.clone(), |class| class.name.clone()),
        object: object.id(),
        view,
        split: split.name(),
        latents,
        pose: dataset.has_pose(index, view).then(|| dataset.latents(index, view).pose()),
    }
}

fn origin(path: &Path, roots: &mut HashMap<PathBuf, Option<Known>>) -> Option<Origin> {
    let view: usize = path.file_stem()?.to_str()?.strip_prefix("image_")?.parse().ok()?;
    let mut folders = path.ancestors().skip(1);
    let name = folders.next()?.file_name()?.to_str()?.to_owned();
    let synset = folders.next()?.file_name()?.to_str()?.to_owned();
    let root = folders.next()?;
    let known = roots.entry(root.to_path_buf()).or_insert_with(|| open(root)).as_ref()?;
    let dataset = &known.dataset;
    let index = *known.objects.get(&(synset, name))?;
    (view < dataset.views_in(index)).then(|| self::known(dataset, index, view))
}

fn open(root: &Path) -> Option<Known> {
    let root = if root.as_os_str().is_empty() { Path::new(".") } else { root };
    let dataset = Arc::new(Dataset::open(root).ok()?);
    let key = |object: &Object| (object.synset.clone(), object.name.clone());
    let objects = dataset.objects().iter().enumerate().map(|(index, object)| (key(object), index)).collect();
    Some(Known { dataset, objects })
}
