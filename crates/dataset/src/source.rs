//! Where objects come from (the built-in library or a folder of meshes) and how they become images on the CPU.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use render::{PreparedMesh, Quality};
use scene::load::is_harmless;
use scene::objects::{self, ObjectSource, ObjectsError};
use scene::{Latents, LoadOptions, Mesh, Up};

use crate::error::{Error, Result};
use crate::folder_depth::too_high;
use crate::mesh_warnings::of_unused;
use crate::object::Object;
use crate::on_the_fly::{OnTheFly, OnTheFlyOptions};
use crate::reader::Dataset;
use crate::views::Views;
use crate::work::{Failure, ViewSource};

/// `CLASSESxOBJECTS`: so many classes of the built-in library, so many objects of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProceduralSize {
    /// Classes, 1 to 55.
    pub classes: u32,
    /// Objects of each class, at least 1.
    pub objects: u32,
}

impl FromStr for ProceduralSize {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let all = procedural::classes().len() as u32;
        let expected = || format!("expected CLASSESxOBJECTS, for example {all}x20");
        let (classes, objects) = text.split_once(['x', 'X']).ok_or_else(expected)?;
        let classes: u32 = classes.parse().map_err(|_| expected())?;
        let objects: u32 = objects.parse().map_err(|_| expected())?;
        if !(1..=all).contains(&classes) {
            return Err(format!("the built-in library has 1 to {all} classes, {classes} were asked for"));
        }
        if !(1..=1_000_000).contains(&objects) {
            return Err(format!("a class has 1 to 1000000 objects, {objects} were asked for"));
        }
        Ok(Self { classes, objects })
    }
}

/// A set of objects that can be loaded one by one.
#[derive(Debug)]
pub enum ObjectSet {
    /// The built-in library.
    Procedural {
        /// How many.
        size: ProceduralSize,
        /// Seed of the instances.
        seed: u64,
    },
    /// Mesh files.
    Meshes {
        /// How to read them.
        options: LoadOptions,
        /// The files by object id.
        files: HashMap<String, ObjectSource>,
        /// Ids in the order in which they were found.
        ids: Vec<(String, String)>,
        /// What lies beside them and is not used, in sentences; nothing where a list named the objects.
        unused: Vec<String>,
    },
}

impl ObjectSet {
    /// Objects of the built-in library.
    pub fn procedural(size: ProceduralSize, seed: u64) -> Self {
        Self::Procedural { size, seed }
    }

    /// The objects below `root`, or those of them that `list` names.
    pub fn meshes(root: &Path, list: Option<&Path>, up: Option<Up>) -> Result<Self> {
        let failed = |error: ObjectsError| match &error {
            ObjectsError::Empty { wrong_name: None, .. } => {
                Error::Request(too_high(root).map_or_else(|| error.to_string(), |wrong| wrong.to_string()))
            }
            _ => Error::Request(error.to_string()),
        };
        if !root.is_dir() {
            let what = if root.exists() {
                "is a file, expected a folder of CLASS/OBJECT meshes"
            } else {
                "does not exist"
            };
            return Err(Error::Request(format!("the mesh folder {} {what}", root.display())));
        }
        let (found, unused) = match list {
            Some(list) => (objects::locate(root, &objects::read_list(list).map_err(failed)?), Vec::new()),
            None => {
                let found = objects::discover(root).map_err(failed)?;
                let unused = of_unused(&objects::unused(root, &found));
                (found, unused)
            }
        };
        let options = LoadOptions { up, ..LoadOptions::under(root) };
        let ids = found.iter().map(|object| (object.class.clone(), object.name.clone())).collect();
        let files = found.into_iter().map(|object| (object.id(), object)).collect();
        Ok(Self::Meshes { options, files, ids, unused })
    }

    /// Whether `folder` holds meshes and no dataset.
    pub fn is_mesh_folder(folder: &Path) -> bool {
        let is_dataset = || {
            let list = crate::lists::image_list(crate::object::Split::Train);
            folder.join(crate::card::CARD).exists() || folder.join(list).exists()
        };
        folder.is_dir() && !is_dataset() && objects::discover(folder).is_ok_and(|found| !found.is_empty())
    }

    /// The folder of the meshes.
    pub fn root(&self) -> Option<&Path> {
        match self {
            Self::Procedural { .. } => None,
            Self::Meshes { options, .. } => options.root.as_deref(),
        }
    }

    /// What lies among the meshes and is not used, a sentence for each kind.
    pub fn unused(&self) -> &[String] {
        match self {
            Self::Procedural { .. } => &[],
            Self::Meshes { unused, .. } => unused,
        }
    }

    /// All (synset, name).
    pub fn ids(&self) -> Vec<(String, String)> {
        match self {
            Self::Procedural { size, .. } => procedural::classes()
                .iter()
                .take(size.classes as usize)
                .flat_map(|class| (0..size.objects).map(|k| (class.synset.to_owned(), format!("{k:04}"))))
                .collect(),
            Self::Meshes { ids, .. } => ids.clone(),
        }
    }

    /// Loads an object, ready to be rendered (centred, diagonal 1); the error is the reason to skip it. Remarks on
    /// what is not as it should be go to `remark`.
    pub fn load(
        &self,
        object: &Object,
        remark: impl FnOnce(Vec<String>),
    ) -> std::result::Result<Mesh, String> {
        match self {
            Self::Procedural { seed, .. } => {
                let class = procedural::classes().iter().find(|class| class.synset == object.synset);
                let index = object.name.parse().ok();
                match class.zip(index) {
                    Some((class, index)) => Ok(procedural::build(*seed, class.label, index)),
                    None => Err("not an object of the built-in library".to_owned()),
                }
            }
            Self::Meshes { options, files, .. } => {
                let file = files.get(&object.id()).ok_or("it is not among the meshes")?;
                let loaded = file.load(options)?;
                if !loaded.warnings.is_empty() {
                    remark(loaded.warnings);
                }
                Ok(loaded.mesh)
            }
        }
    }
}

/// Renders the objects of a set on the CPU.
#[derive(Debug)]
pub struct CpuRenderer {
    /// The objects.
    pub set: ObjectSet,
    /// How well.
    pub quality: Quality,
    /// By the object's id.
    warnings: Mutex<BTreeMap<String, Vec<String>>>,
}

impl CpuRenderer {
    /// A renderer without warnings yet.
    pub fn new(set: ObjectSet, quality: Quality) -> Self {
        Self { set, quality, warnings: Mutex::default() }
    }

    /// The mesh of an object; what is noticed is kept for [`Self::warnings`].
    pub(crate) fn load(&self, object: &Object) -> std::result::Result<Mesh, String> {
        self.set.load(object, |warnings| {
            self.lock().insert(object.id(), warnings);
        })
    }

    /// What was noticed while loading objects, sorted; what does not change how they look comes last.
    pub fn warnings(&self) -> Vec<String> {
        let mut all: Vec<String> = self.lock().values().flatten().cloned().collect();
        all.sort_by(|a, b| (is_harmless(a), a).cmp(&(is_harmless(b), b)));
        all.dedup();
        all
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Vec<String>>> {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ViewSource for CpuRenderer {
    type Prepared = PreparedMesh;

    fn prepare(&self, object: &Object) -> std::result::Result<PreparedMesh, String> {
        Ok(PreparedMesh::new(&self.load(object)?))
    }

    fn render(
        &self,
        prepared: &PreparedMesh,
        latents: &[Latents],
        side: usize,
    ) -> std::result::Result<Vec<u8>, Failure> {
        let image = |latents| render::render(Some(prepared), latents, side as u32, self.quality).pixels;
        Ok(latents.iter().flat_map(image).collect())
    }

    fn objects(&self) -> Option<&CpuRenderer> {
        Some(self)
    }

    fn warnings_of(&self, object: &Object) -> Vec<String> {
        self.lock().get(&object.id()).cloned().unwrap_or_default()
    }
}

/// A dataset named on a command line: a folder, or `procedural:CLASSESxOBJECTS`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataSpec {
    /// A dataset on disk.
    Folder(PathBuf),
    /// Rendered on the fly.
    Procedural(ProceduralSize),
}

impl FromStr for DataSpec {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text.strip_prefix("procedural:") {
            Some(size) => size.parse().map(Self::Procedural),
            None => Ok(Self::Folder(PathBuf::from(text))),
        }
    }
}

impl DataSpec {
    /// Opens the dataset; `on_the_fly` and `quality` say how views are made that are not on disk.
    pub fn open(&self, on_the_fly: OnTheFlyOptions, quality: Quality) -> Result<Arc<dyn Views>> {
        match self {
            Self::Folder(folder) => Ok(Arc::new(Dataset::open(folder)?)),
            Self::Procedural(size) => {
                let set = ObjectSet::procedural(*size, on_the_fly.seed);
                let ids = set.ids();
                Ok(Arc::new(OnTheFly::new(CpuRenderer::new(set, quality), &ids, on_the_fly)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_refused_with_a_sentence() {
        assert_eq!("55x20".parse(), Ok(ProceduralSize { classes: 55, objects: 20 }));
        let refusal = |text: &str| text.parse::<ProceduralSize>().unwrap_err();
        assert_eq!(refusal("55"), "expected CLASSESxOBJECTS, for example 55x20");
        assert_eq!(refusal("0x3"), "the built-in library has 1 to 55 classes, 0 were asked for");
        assert_eq!(refusal("56x3"), "the built-in library has 1 to 55 classes, 56 were asked for");
        assert_eq!(refusal("5x0"), "a class has 1 to 1000000 objects, 0 were asked for");
        assert_eq!(
            "procedural:5x4".parse(),
            Ok(DataSpec::Procedural(ProceduralSize { classes: 5, objects: 4 }))
        );
        assert_eq!("some/folder".parse(), Ok(DataSpec::Folder("some/folder".into())));
    }
}
