//! A trained network: images to features, and poses that are moved.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ::dataset::{Image, Resize, image_list};
use engine::{DeviceName, Precision};
use evaluate::prediction::Transformation;
use evaluate::weights::{self, Which};
use evaluate::{Encoded, Encoder as _, NetworkEncoder, Widths, image_features};
use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyArray2, PyReadonlyArray2, PyReadonlyArray4, PyUntypedArrayMethods};
use pose::ViewPose;
use pyo3::prelude::*;
use rayon::prelude::*;
use train::config::OnBadSample;

use crate::errors::{refused, wrong};
use crate::warn::warn;

/// Images between two looks at signals: pixels, and files, which are decoded while the network works.
const PIXELS_AT_ONCE: usize = 128;
const FILES_AT_ONCE: usize = 512;

/// Representation, activations and poses, a row for each image; the last two where the network has them.
type Features<'py> =
    (Bound<'py, PyArray2<f32>>, Option<Bound<'py, PyArray2<f32>>>, Option<Bound<'py, PyArray2<f32>>>);

/// A network on a device.
#[pyclass(frozen, module = "equicaps._native")]
pub struct Encoder {
    network: Mutex<NetworkEncoder>,
    widths: Widths,
    transformation: Option<Transformation>,
    /// Side of the images it takes.
    #[pyo3(get)]
    image_size: usize,
    /// Where it computes: `cpu`, `cuda:0`.
    #[pyo3(get)]
    device: String,
    /// The method it was trained with.
    #[pyo3(get)]
    method: String,
    /// Its backbone.
    #[pyo3(get)]
    backbone: String,
    /// The file of its weights.
    #[pyo3(get)]
    weights: Option<PathBuf>,
    /// Capsules and the side of a pose matrix.
    #[pyo3(get)]
    capsules: Option<(usize, usize)>,
}

#[pymethods]
impl Encoder {
    #[new]
    fn new(py: Python<'_>, path: PathBuf, device: &str, image_size: Option<usize>) -> PyResult<Self> {
        let name: DeviceName = device.parse().map_err(wrong)?;
        let (encoder, notes) = py.detach(|| open(path, name, image_size)).map_err(refused)?;
        notes.iter().try_for_each(|note| warn(py, note))?;
        Ok(encoder)
    }

    /// Widths of representation, activations and poses.
    #[getter]
    fn widths(&self) -> (usize, Option<usize>, Option<usize>) {
        (self.widths.representation, self.widths.invariant, self.widths.equivariant)
    }

    /// Features of pixels, `(N, height, width, 3)`, contiguous.
    fn of_pixels<'py>(&self, py: Python<'py>, images: PyReadonlyArray4<'py, u8>) -> PyResult<Features<'py>> {
        let (shape, pixels) = (images.shape(), images.as_slice().map_err(wrong)?);
        let (count, height, width, side) = (shape[0], shape[1], shape[2], self.image_size);
        if height * width * shape[3] == 0 && count > 0 {
            return Err(wrong("the images have no pixels"));
        }
        let mut all = self.empty(count);
        for chunk in pixels.chunks((PIXELS_AT_ONCE * height * width * 3).max(1)) {
            let encode = || {
                let resized = (height, width) != (side, side);
                let buffer = if resized { resize(chunk, width, height, side) } else { Vec::new() };
                let chunk_count = chunk.len() / (height * width * 3);
                self.lock().encode(if resized { &buffer } else { chunk }, chunk_count)
            };
            extend(&mut all, py.detach(encode).map_err(refused)?);
            py.check_signals()?;
        }
        self.arrays(py, all, count)
    }

    /// Features of the images that `names` name.
    fn of_files<'py>(&self, py: Python<'py>, names: Vec<OsString>) -> PyResult<Features<'py>> {
        let images = collect(py, &names)?;
        let mut all = self.empty(images.len());
        for chunk in images.chunks(FILES_AT_ONCE) {
            let encode = || {
                let mut chunk = chunk.to_vec();
                image_features::encode(&mut *self.lock(), &mut chunk, OnBadSample::Fail, &|_| ())
            };
            extend(&mut all, py.detach(encode).map_err(refused)?.0);
            py.check_signals()?;
        }
        self.arrays(py, all, images.len())
    }

    /// The matrix that poses are multiplied by from the first view to the second; none for predictors and for methods whose
    /// embeddings follow nothing. A view is three angles in radians and a translation.
    fn motion<'py>(
        &self,
        py: Python<'py>,
        first: [f64; 6],
        second: [f64; 6],
    ) -> PyResult<Option<Bound<'py, PyArray2<f64>>>> {
        let Some(Transformation::PoseMatrices(layout)) = self.transformation else { return Ok(None) };
        let matrix = layout.relative(&view(&first), &view(&second));
        let matrix = Array2::from_shape_vec((layout.size(), layout.size()), matrix).map_err(refused)?;
        Ok(Some(matrix.into_pyarray(py)))
    }

    /// Poses (flat, a row for each) from the first views to the second; one view stands for all rows.
    fn steer<'py>(
        &self,
        py: Python<'py>,
        poses: PyReadonlyArray2<'py, f32>,
        first: PyReadonlyArray2<'py, f64>,
        second: PyReadonlyArray2<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let Some(transformation) = self.transformation else {
            return Err(refused(format!(
                "the embeddings of {} do not follow transformations; equicaps, capsie, sie, equimod and sen have some that do",
                self.method
            )));
        };
        let [count, width] = [poses.shape()[0], poses.shape()[1]];
        let rows = poses.as_slice().map_err(wrong)?;
        let [first, second] = [views(&first)?, views(&second)?];
        if count == 0 {
            return Ok(Array2::zeros((0, width)).into_pyarray(py));
        }
        let pair = |row: usize| (&first[row % first.len()], &second[row % second.len()]);
        let moved = py.detach(|| match transformation {
            Transformation::PoseMatrices(layout) => {
                let one = |(row, poses)| {
                    let (first, second) = pair(row);
                    layout.transform(poses, &layout.relative(first, second))
                };
                Ok(rows.par_chunks_exact(width).enumerate().flat_map_iter(one).collect())
            }
            Transformation::Predictor { group } => {
                let parameters: Vec<f32> = (0..count)
                    .flat_map(|row| {
                        let (first, second) = pair(row);
                        Transformation::parameters(group, first, second)
                    })
                    .collect();
                self.lock().predict(rows, &parameters, count)
            }
        });
        let moved: Vec<f32> = moved.map_err(|error: evaluate::Error| refused(error))?;
        py.check_signals()?;
        table(py, moved, count, width)
    }
}

impl Encoder {
    /// The network; whoever holds it must not wait for the interpreter.
    fn lock(&self) -> MutexGuard<'_, NetworkEncoder> {
        self.network.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Room for the features of `count` images.
    fn empty(&self, count: usize) -> Encoded {
        let room = |width: usize| Vec::with_capacity(count * width);
        Encoded {
            representation: room(self.widths.representation),
            equivariant: room(self.widths.equivariant.unwrap_or(0)),
            invariant: room(self.widths.invariant.unwrap_or(0)),
        }
    }

    fn arrays<'py>(&self, py: Python<'py>, encoded: Encoded, count: usize) -> PyResult<Features<'py>> {
        let Widths { representation, equivariant, invariant } = self.widths;
        let optional =
            |values, width: Option<usize>| width.map(|width| table(py, values, count, width)).transpose();
        Ok((
            table(py, encoded.representation, count, representation)?,
            optional(encoded.invariant, invariant)?,
            optional(encoded.equivariant, equivariant)?,
        ))
    }
}

/// Opens a network, with what should be said about it.
fn open(
    path: PathBuf,
    name: DeviceName,
    image_size: Option<usize>,
) -> Result<(Encoder, Vec<String>), evaluate::Error> {
    let weights = weights::find(&path, &Which::Newest)?.remove(0).at_size(image_size);
    let (device, why_not) = name.open(Some(Precision::F32))?;
    let mut notes: Vec<String> = why_not.iter().map(|why| format!("the GPU is not used: {why}")).collect();
    let opened = weights.open(&device)?;
    notes.extend(opened.note);
    let encoder = opened.encoder;
    let method = &weights.config.method;
    let encoder = Encoder {
        widths: encoder.widths(),
        transformation: encoder.transformation(),
        image_size: encoder.side(),
        device: device.name(),
        method: method.name.to_string(),
        backbone: method.backbone.to_string(),
        weights: weights.file.clone(),
        capsules: encoder.capsules(),
        network: Mutex::new(encoder),
    };
    Ok((encoder, notes))
}

/// Pixels of any size at `side * side`.
fn resize(pixels: &[u8], width: usize, height: usize, side: usize) -> Vec<u8> {
    let resize = Resize::new(width, height, side);
    let (from, to) = (width * height * 3, side * side * 3);
    let mut resized = vec![0; pixels.len() / from * to];
    let pairs = resized.par_chunks_exact_mut(to).zip(pixels.par_chunks_exact(from));
    pairs.for_each(|(output, input)| resize.apply(input, output));
    resized
}

fn extend(all: &mut Encoded, more: Encoded) {
    all.representation.extend(more.representation);
    all.equivariant.extend(more.equivariant);
    all.invariant.extend(more.invariant);
}

fn table<T: numpy::Element>(
    py: Python<'_>,
    values: Vec<T>,
    rows: usize,
    columns: usize,
) -> PyResult<Bound<'_, PyArray2<T>>> {
    Ok(Array2::from_shape_vec((rows, columns), values).map_err(refused)?.into_pyarray(py))
}

fn view(numbers: &[f64; 6]) -> ViewPose {
    let &[x, y, z, a, b, c] = numbers;
    ViewPose::rigid([x, y, z], [a, b, c])
}

/// A view of each row: angles in radians, translation.
fn views(rows: &PyReadonlyArray2<'_, f64>) -> PyResult<Vec<ViewPose>> {
    let (views, rest) = rows.as_slice().map_err(wrong)?.as_chunks::<6>();
    if views.is_empty() || !rest.is_empty() || rows.shape()[1] != 6 {
        return Err(wrong("a view is three angles and a translation"));
    }
    Ok(views.iter().map(view).collect())
}

/// The images that `names` name; what is left out is a warning.
fn collect(py: Python<'_>, names: &[OsString]) -> PyResult<Vec<Image>> {
    let list = py.detach(|| image_list::collect(names)).map_err(refused)?;
    list.warnings.iter().try_for_each(|text| warn(py, text))?;
    Ok(list.images)
}

/// The paths of the images that `names` name.
#[pyfunction]
pub fn find_images(py: Python<'_>, names: Vec<OsString>) -> PyResult<Vec<OsString>> {
    Ok(collect(py, &names)?.into_iter().map(|image| image.path.into_os_string()).collect())
}
