//! Images of an object for given latents, and latents to make images of.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::render::cuda::{Object, Renderer, Shot};
use ::render::{PreparedMesh, Quality};
use engine::DeviceName;
use numpy::ndarray::{Array2, Array4};
use numpy::{IntoPyArray, PyArray2, PyArray4, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use rayon::prelude::*;
use scene::{LatentRanges, Latents, LoadOptions, Mesh};

use crate::errors::{refused, wrong};
use crate::warn::warn;

/// The largest image, as on the command line.
const LARGEST_SIDE: usize = 8192;
/// Images that a GPU renders between two looks at signals.
const AT_ONCE_ON_DEVICE: usize = 256;

/// `(N, size, size, 3)` images of a mesh (a file, or `procedural:CLASS/INDEX`; none is the empty scene) for rows of latents.
#[pyfunction]
pub fn render<'py>(
    py: Python<'py>,
    mesh: Option<PathBuf>,
    latents: PyReadonlyArray2<'py, f64>,
    size: usize,
    quality: &str,
    device: &str,
) -> PyResult<Bound<'py, PyArray4<u8>>> {
    let quality: Quality = quality.parse().map_err(wrong)?;
    let device = match device.parse().map_err(wrong)? {
        DeviceName::Cpu => None,
        DeviceName::Cuda(ordinal) => Some(ordinal),
        DeviceName::Auto => return Err(wrong("images are rendered on \"cpu\" or \"cuda:N\"")),
    };
    if !(1..=LARGEST_SIDE).contains(&size) {
        return Err(wrong(format!("size is {size}, expected 1 to {LARGEST_SIDE}")));
    }
    let (count, width) = (latents.shape()[0], latents.shape()[1]);
    let views = latents.as_slice().map_err(wrong)?.chunks_exact(width.max(1)).enumerate();
    let views = views.map(|(row, values)| {
        Latents::try_from(values).map_err(|error| wrong(format!("row {row} of the latents: {error}")))
    });
    let views = views.collect::<PyResult<Vec<_>>>()?;
    let mesh = match &mesh {
        Some(path) => {
            let (mesh, warnings) = py.detach(|| load(path)).map_err(refused)?;
            warnings.iter().try_for_each(|text| warn(py, text))?;
            Some(py.detach(|| PreparedMesh::new(&mesh)))
        }
        None => None,
    };
    let mut pixels = vec![0; count * size * size * 3];
    match device {
        None => on_cpu(py, mesh.as_ref(), &views, (size, quality), &mut pixels)?,
        Some(ordinal) => on_device(py, ordinal, mesh.as_ref(), &views, (size, quality), &mut pixels)?,
    }
    Ok(Array4::from_shape_vec((count, size, size, 3), pixels).map_err(refused)?.into_pyarray(py))
}

fn on_cpu(
    py: Python<'_>,
    mesh: Option<&PreparedMesh>,
    views: &[Latents],
    (size, quality): (usize, Quality),
    pixels: &mut [u8],
) -> PyResult<()> {
    let (bytes, at_once) = (size * size * 3, 4 * rayon::current_num_threads());
    for (views, pixels) in views.chunks(at_once).zip(pixels.chunks_mut(at_once * bytes)) {
        let pairs = views.par_iter().zip(pixels.par_chunks_exact_mut(bytes));
        let draw = |(view, pixels): (&Latents, &mut [u8])| {
            pixels.copy_from_slice(&::render::render(mesh, view, size as u32, quality).pixels);
        };
        py.detach(|| pairs.for_each(draw));
        py.check_signals()?;
    }
    Ok(())
}

fn on_device(
    py: Python<'_>,
    ordinal: usize,
    mesh: Option<&PreparedMesh>,
    views: &[Latents],
    (size, quality): (usize, Quality),
    pixels: &mut [u8],
) -> PyResult<()> {
    let open = || Renderer::new(&gpu::Context::new(ordinal)?, quality);
    let mut renderer = py.detach(open).map_err(|error: gpu::Error| refused(error))?;
    let object = mesh.map(|mesh| Arc::new(Object::new(mesh)));
    let bytes = size * size * 3;
    for (views, pixels) in views.chunks(AT_ONCE_ON_DEVICE).zip(pixels.chunks_mut(AT_ONCE_ON_DEVICE * bytes)) {
        let shots: Vec<Shot> =
            views.iter().map(|latents| Shot { object: object.clone(), latents: *latents }).collect();
        pixels.copy_from_slice(&py.detach(|| renderer.render_to_host(&shots, size as u32)).map_err(refused)?);
        py.check_signals()?;
    }
    Ok(())
}

/// A mesh, centred and of diagonal 1, with what was noticed while it was read.
fn load(path: &Path) -> Result<(Mesh, Vec<String>), String> {
    if let Some(object) = path.to_str().and_then(|text| text.strip_prefix("procedural:")) {
        return built_in(object).map(|mesh| (mesh, Vec::new()));
    }
    let mut loaded = scene::load_mesh(path, &LoadOptions::default()).map_err(|error| error.to_string())?;
    scene::normalise(&mut loaded.mesh)
        .ok_or_else(|| format!("{}: the mesh has no extent", path.display()))?;
    Ok((loaded.mesh, loaded.warnings))
}

/// An object of the built-in library, `CLASS/INDEX`; the class by its name or its synset.
fn built_in(object: &str) -> Result<Mesh, String> {
    let expected =
        || format!("procedural:{object}: expected procedural:CLASS/INDEX, such as procedural:airplane/0");
    let (class, index) = object.split_once('/').ok_or_else(expected)?;
    let index: u64 = index.parse().map_err(|_| expected())?;
    let known = procedural::classes();
    let found = known.iter().find(|known| known.name == class || known.synset == class);
    let found = found.ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|known| known.name).collect();
        format!("procedural:{object}: there is no class {class:?}; there are {}", names.join(", "))
    })?;
    Ok(procedural::build(0, found.label, index))
}

/// Latents of the first `count` views of an object, as a dataset that is rendered with `seed` has them.
#[pyfunction]
pub fn sample_latents<'py>(
    py: Python<'py>,
    count: usize,
    preset: &str,
    seed: u64,
    object: &str,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let (ranges, width) = match preset {
        "3diebench" => (LatentRanges::BENCH, 7),
        "3diebench-t" => (LatentRanges::BENCH_T, 10),
        "3diebench-ood" => (LatentRanges::BENCH_OOD, 7),
        _ => {
            return Err(wrong(format!(
                "preset is {preset:?}, expected 3diebench, 3diebench-t or 3diebench-ood"
            )));
        }
    };
    let values = (0..count as u64).flat_map(|view| ranges.sample(seed, object, view).to_vec()).collect();
    Ok(Array2::from_shape_vec((count, width), values).map_err(refused)?.into_pyarray(py))
}

/// Names of the columns of latents.
#[pyfunction]
pub fn latent_names() -> Vec<&'static str> {
    ::dataset::latent_table::NAMES.to_vec()
}
