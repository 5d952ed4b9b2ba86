//! A dataset on disk: views, their latents and their labels, by row.

use std::path::PathBuf;

use ::dataset::{Dataset as Stored, Split, Views};
use numpy::ndarray::{Array2, Array3, Array4};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArray3, PyArray4};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use rayon::prelude::*;

use crate::errors::{refused, wrong};

/// Images that are decoded between two looks at signals.
const AT_ONCE: usize = 512;

/// Views of a dataset, those of all objects or of one side of the split.
#[pyclass(frozen, module = "equicaps._native")]
pub struct Dataset {
    stored: Stored,
    /// Object and view of every row.
    rows: Vec<(usize, usize)>,
    /// Side of the images in pixels.
    #[pyo3(get)]
    image_size: usize,
}

#[pymethods]
impl Dataset {
    #[new]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        lists: Option<PathBuf>,
        split: Option<&str>,
        image_size: Option<usize>,
    ) -> PyResult<Self> {
        let sides = match split {
            None => Split::ALL.to_vec(),
            Some(word) => match Split::ALL.into_iter().find(|side| side.name() == word) {
                Some(side) => vec![side],
                None => return Err(wrong(format!("split is {word:?}, expected \"train\", \"val\" or None"))),
            },
        };
        let lists = lists.unwrap_or_else(|| path.clone());
        let stored = py.detach(|| Stored::open_with_lists(&path, &lists)).map_err(refused)?;
        let mut rows: Vec<(usize, usize)> = sides
            .into_iter()
            .flat_map(|side| stored.split(side).map(move |object| (side, object)))
            .flat_map(|(side, object)| stored.views_of(side, object).map(move |view| (object, view)))
            .collect();
        rows.sort_unstable();
        let image_size = image_size.unwrap_or_else(|| stored.side());
        Ok(Self { stored, rows, image_size })
    }

    fn __len__(&self) -> usize {
        self.rows.len()
    }

    /// What it is, in one sentence.
    fn description(&self) -> String {
        self.stored.description()
    }

    /// Names of the classes, by label.
    fn classes(&self) -> Vec<String> {
        self.stored.classes().iter().map(|class| class.name.clone()).collect()
    }

    /// `CLASS/OBJECT` of every object.
    fn objects(&self) -> Vec<String> {
        self.stored.objects().iter().map(::dataset::Object::id).collect()
    }

    /// Object, view and label of every row.
    fn index<'py>(&self, py: Python<'py>) -> [Bound<'py, PyArray1<i64>>; 3] {
        let column = |value: &dyn Fn(usize, usize) -> i64| {
            PyArray1::from_iter(py, self.rows.iter().map(|&(object, view)| value(object, view)))
        };
        let label = |object: usize| i64::from(self.stored.objects()[object].label);
        [
            column(&|object, _| object as i64),
            column(&|_, view| view as i64),
            column(&|object, _| label(object)),
        ]
    }

    /// Names of the columns of the latents.
    fn latent_names(&self) -> Vec<&'static str> {
        self.stored.latent_table().columns().names()
    }

    /// Latents of every row.
    fn latents<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let table = self.stored.latent_table();
        let row = |&(object, view): &(usize, usize)| table.row(self.stored.row(object, view));
        let values: Vec<f64> = self.rows.iter().flat_map(row).copied().collect();
        let width = table.width();
        Ok(Array2::from_shape_vec((self.rows.len(), width), values).map_err(refused)?.into_pyarray(py))
    }

    /// The image of one row. Uses no other thread: it may be called in processes that were forked.
    fn image<'py>(&self, py: Python<'py>, row: usize) -> PyResult<Bound<'py, PyArray3<u8>>> {
        let side = self.image_size;
        let mut pixels = vec![0; side * side * 3];
        let (object, view) = self.row(row)?;
        py.detach(|| self.stored.image(object, view, side, &mut pixels)).map_err(refused)?;
        Ok(Array3::from_shape_vec((side, side, 3), pixels).map_err(refused)?.into_pyarray(py))
    }

    /// The images of many rows, decoded on all cores.
    fn images<'py>(&self, py: Python<'py>, rows: Vec<usize>) -> PyResult<Bound<'py, PyArray4<u8>>> {
        let side = self.image_size;
        let items = rows.iter().map(|&row| self.row(row)).collect::<PyResult<Vec<_>>>()?;
        let mut pixels = vec![0; rows.len() * side * side * 3];
        for (items, pixels) in items.chunks(AT_ONCE).zip(pixels.chunks_mut(AT_ONCE * side * side * 3)) {
            let pairs = items.par_iter().zip(pixels.par_chunks_exact_mut(side * side * 3));
            py.detach(|| {
                pairs.try_for_each(|(&(object, view), out)| self.stored.image(object, view, side, out))
            })
            .map_err(refused)?;
            py.check_signals()?;
        }
        let shape = (rows.len(), side, side, 3);
        Ok(Array4::from_shape_vec(shape, pixels).map_err(refused)?.into_pyarray(py))
    }
}

impl Dataset {
    fn row(&self, row: usize) -> PyResult<(usize, usize)> {
        let count = self.rows.len();
        let found = self.rows.get(row).copied();
        found.ok_or_else(|| PyIndexError::new_err(format!("there is no row {row}; the dataset has {count}")))
    }
}
