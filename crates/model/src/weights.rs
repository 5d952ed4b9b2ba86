//! Weights on disk: safetensors with the published names and shapes, so that PyTorch users can load them. Nothing is
//! loaded by halves: a file is checked completely (names, shapes, finite numbers) before the first parameter changes.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use engine::{BufferId, BufferValue, ParameterId, ParameterStore, State};
use safetensors::{Dtype, SafeTensors, View};

use crate::vit::fit_positions;

/// Why weights could not be saved or loaded.
#[derive(Debug, thiserror::Error)]
pub enum WeightsError {
    /// The file cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not a complete safetensors file.
    #[error("{path}: not a complete safetensors file ({detail})")]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        detail: String,
    },
    /// A tensor is missing, has another shape or type, or holds a number that is not finite.
    #[error("{path}: tensor {name}: {detail}")]
    Tensor {
        /// The file.
        path: PathBuf,
        /// Published name.
        name: String,
        /// What is wrong.
        detail: String,
    },
    /// The file is not one of `torch.save` that can be read.
    #[error("{path}: {detail}")]
    Torch {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        detail: String,
    },
    /// The engine refused.
    #[error(transparent)]
    Engine(#[from] engine::Error),
}

/// What loading did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Tensors loaded.
    pub loaded: usize,
    /// Names in the file that the network does not have.
    pub ignored: Vec<String>,
}

struct HostTensor {
    shape: Vec<usize>,
    dtype: Dtype,
    bytes: Vec<u8>,
}

impl View for &HostTensor {
    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self.bytes)
    }

    fn data_len(&self) -> usize {
        self.bytes.len()
    }
}

fn floats(shape: &[usize], values: &[f32]) -> HostTensor {
    let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    HostTensor { shape: shape.to_vec(), dtype: Dtype::F32, bytes }
}

/// Writes all parameters and buffers of `store` to `path`, beside it first and then renamed, so that a broken write
/// never leaves half a file.
pub fn save(store: &ParameterStore, path: &Path) -> Result<(), WeightsError> {
    save_selected(store, path, "")
}

/// As [`save`], only what starts with `backbone.`, under the names behind that.
pub fn save_backbone(store: &ParameterStore, path: &Path) -> Result<(), WeightsError> {
    save_selected(store, path, "backbone.")
}

fn save_selected(store: &ParameterStore, path: &Path, prefix: &str) -> Result<(), WeightsError> {
    let mut tensors = Vec::new();
    for id in store.parameters() {
        if let Some(name) = store.name(id).strip_prefix(prefix) {
            let values = store.export(State::Value, id)?;
            tensors.push((name.to_owned(), floats(store.shape(id).dims(), &values)));
        }
    }
    for id in store.buffers() {
        if let Some(name) = store.buffer_name(id).strip_prefix(prefix) {
            let tensor = match store.buffer(id) {
                BufferValue::Tensor(tensor) => floats(tensor.dims(), &tensor.to_f32()?),
                BufferValue::Count(count) => HostTensor {
                    shape: Vec::new(),
                    dtype: Dtype::I64,
                    bytes: i64::try_from(*count).unwrap_or(i64::MAX).to_le_bytes().to_vec(),
                },
            };
            tensors.push((name.to_owned(), tensor));
        }
    }
    let bytes = safetensors::serialize(tensors.iter().map(|(name, tensor)| (name, tensor)), None)
        .map_err(|error| WeightsError::Format { path: path.into(), detail: error.to_string() })?;
    let file = |source| WeightsError::File { path: path.into(), source };
    let beside = path.with_extension("partial");
    std::fs::write(&beside, bytes).map_err(file)?;
    std::fs::File::open(&beside).and_then(|written| written.sync_all()).map_err(file)?;
    std::fs::rename(&beside, path).map_err(file)
}

/// Loads all parameters and buffers of `store` from `path`. A leading `module.` in names is ignored; names that the
/// network does not have are reported, missing ones refused (missing buffers are left as they are). A position table
/// that was made for another image size is interpolated.
pub fn load(store: &mut ParameterStore, path: &Path) -> Result<Report, WeightsError> {
    load_selected(store, path, false)
}

/// As [`load`], only the backbone, from a file with or without the leading `backbone.` of names.
pub fn load_backbone(store: &mut ParameterStore, path: &Path) -> Result<Report, WeightsError> {
    load_selected(store, path, true)
}

fn load_selected(store: &mut ParameterStore, path: &Path, backbone: bool) -> Result<Report, WeightsError> {
    let bytes = std::fs::read(path).map_err(|source| WeightsError::File { path: path.into(), source })?;
    let file = SafeTensors::deserialize(&bytes)
        .map_err(|error| WeightsError::Format { path: path.into(), detail: error.to_string() })?;
    let refuse =
        |name: &str, detail: String| WeightsError::Tensor { path: path.into(), name: name.into(), detail };
    let mut present = HashMap::new();
    for name in file.names() {
        let plain = name.replace("module.", "").replace("_checkpoint_wrapped_", "");
        let plain =
            if backbone && !plain.starts_with("backbone.") { format!("backbone.{plain}") } else { plain };
        present.insert(plain, name.to_owned());
    }
    let tensor = |name: &str| -> Result<Option<HostTensor>, WeightsError> {
        let Some(stored) = present.get(name) else { return Ok(None) };
        let view = file.tensor(stored).map_err(|error| refuse(name, error.to_string()))?;
        Ok(Some(HostTensor {
            shape: view.shape().to_vec(),
            dtype: view.dtype(),
            bytes: view.data().to_vec(),
        }))
    };
    let numbers = |name: &str, wanted: &[usize]| -> Result<Option<Vec<f32>>, WeightsError> {
        let Some(HostTensor { shape, dtype, bytes }) = tensor(name)? else { return Ok(None) };
        let misfit = || refuse(name, format!("is {dtype:?} {shape:?}, expected F32 {wanted:?}"));
        if dtype != Dtype::F32 {
            return Err(misfit());
        }
        let values: Vec<f32> =
            bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        match values.iter().position(|value| !value.is_finite()) {
            Some(at) => Err(refuse(name, format!("element {at} is {}, not a finite number", values[at]))),
            None if shape == wanted => Ok(Some(values)),
            None => fit_positions(name, &shape, &values, wanted).map(Some).ok_or_else(misfit),
        }
    };
    let selected = |name: &str| !backbone || name.starts_with("backbone.");
    let mut parameters: Vec<(ParameterId, Vec<f32>)> = Vec::new();
    let mut buffers: Vec<(BufferId, Option<Vec<f32>>, u64)> = Vec::new();
    for id in store.parameters().filter(|&id| selected(store.name(id))) {
        let shape = store.shape(id);
        match numbers(store.name(id), shape.dims())? {
            Some(values) => parameters.push((id, values)),
            None => return Err(refuse(store.name(id), format!("is missing (expected F32 {shape})"))),
        }
    }
    for id in store.buffers().filter(|&id| selected(store.buffer_name(id))) {
        let name = store.buffer_name(id);
        match store.buffer(id) {
            BufferValue::Tensor(current) => {
                if let Some(values) = numbers(name, current.dims())? {
                    buffers.push((id, Some(values), 0));
                }
            }
            BufferValue::Count(_) => {
                if let Some(HostTensor { dtype: Dtype::I64, bytes, .. }) = tensor(name)? {
                    let count = bytes.try_into().map(i64::from_le_bytes).unwrap_or(0);
                    buffers.push((id, None, u64::try_from(count).unwrap_or(0)));
                }
            }
        }
    }
    let mut report = Report { loaded: parameters.len() + buffers.len(), ignored: Vec::new() };
    let known = |name: &String| store.find(name).is_some() || store.find_buffer(name).is_some();
    report.ignored = present.keys().filter(|name| !known(name) || !selected(name)).cloned().collect();
    report.ignored.sort();
    for (id, values) in parameters {
        store.import(State::Value, id, &values)?;
    }
    for (id, values, count) in buffers {
        match (values, store.buffer_mut(id)) {
            (Some(values), BufferValue::Tensor(tensor)) => tensor.write(&values)?,
            (None, BufferValue::Count(current)) => *current = count,
            _ => {}
        }
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CapsuleProjectorConfig, ResNet18Config};
    use engine::{Device, StoreBuilder};

    fn network(seed: u64) -> ParameterStore {
        let mut builder = StoreBuilder::new();
        ResNet18Config { width: 8 }.init(&mut builder, "backbone.");
        CapsuleProjectorConfig { input: 64, map_size: 2, capsules: 4, pose: 9 }
            .init(&mut builder, "projector.");
        builder.build(&Device::cpu(), seed).unwrap()
    }

    #[test]
    fn a_vit_of_another_image_size_gets_interpolated_positions() {
        let vit = |size: usize| {
            let mut builder = StoreBuilder::new();
            crate::VitConfig { width: 32, depth: 1, heads: 1, patch: 16 }.init(
                &mut builder,
                "backbone.",
                size,
            );
            builder.build(&Device::cpu(), size as u64).unwrap()
        };
        let (small, mut large) = (vit(64), vit(96));
        let file =
            std::env::temp_dir().join(format!("equicaps-positions-{}.safetensors", std::process::id()));
        save(&small, &file).unwrap();
        let report = load(&mut large, &file);
        std::fs::remove_file(&file).unwrap();
        assert_eq!(report.unwrap().loaded, small.parameters().count());
        let table = |store: &ParameterStore| {
            store.export(State::Value, store.find("backbone.pos_embed").unwrap()).unwrap()
        };
        assert_eq!(table(&large), crate::interpolate_positions(&table(&small), 32, 6).unwrap());
    }

    fn everything(store: &ParameterStore) -> Vec<Vec<f32>> {
        store.parameters().map(|id| store.export(State::Value, id).unwrap()).collect()
    }

    #[test]
    fn what_is_saved_is_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weights.safetensors");
        let (mut first, mut second) = (network(1), network(2));
        let count = first.find_buffer("backbone.bn1.num_batches_tracked").unwrap();
        *first.buffer_mut(count) = BufferValue::Count(7);
        save(&first, &path).unwrap();
        assert_ne!(everything(&first), everything(&second));
        let report = load(&mut second, &path).unwrap();
        assert!(report.ignored.is_empty());
        assert_eq!(everything(&first), everything(&second));
        assert!(matches!(second.buffer(count), BufferValue::Count(7)));
    }

    #[test]
    fn a_backbone_is_loaded_with_and_without_its_prefix() {
        let folder = tempfile::tempdir().unwrap();
        let (whole, part) = (folder.path().join("whole.safetensors"), folder.path().join("part.safetensors"));
        let first = network(1);
        save(&first, &whole).unwrap();
        save_backbone(&first, &part).unwrap();
        for path in [&whole, &part] {
            let mut second = network(2);
            load_backbone(&mut second, path).unwrap();
            let value = |store: &ParameterStore, name: &str| {
                store.export(State::Value, store.find(name).unwrap()).unwrap()
            };
            assert_eq!(value(&first, "backbone.conv1.weight"), value(&second, "backbone.conv1.weight"));
            assert_ne!(value(&first, "projector.fc.W1"), value(&second, "projector.fc.W1"));
        }
    }

    #[test]
    fn bad_files_are_refused_and_change_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weights.safetensors");
        let mut store = network(1);
        let before = everything(&store);
        save(&network(2), &path).unwrap();
        let good = std::fs::read(&path).unwrap();

        std::fs::write(&path, &good[..good.len() / 2]).unwrap();
        assert!(load(&mut store, &path).unwrap_err().to_string().contains("not a complete safetensors file"));

        let mut corrupt = good.clone();
        let end = corrupt.len();
        corrupt[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
        std::fs::write(&path, &corrupt).unwrap();
        assert!(load(&mut store, &path).unwrap_err().to_string().contains("not a finite number"));

        let mut builder = StoreBuilder::new();
        ResNet18Config { width: 16 }.init(&mut builder, "backbone.");
        save(&builder.build(&Device::cpu(), 0).unwrap(), &path).unwrap();
        let message = load(&mut store, &path).unwrap_err().to_string();
        assert!(
            message.contains("tensor backbone.conv1.weight: is F32 [16, 3, 7, 7], expected F32 [8, 3, 7, 7]"),
            "{message}"
        );

        assert!(load(&mut store, &folder.path().join("none")).is_err());
        assert_eq!(before, everything(&store));
    }
}
