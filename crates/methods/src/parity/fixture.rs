//! Reading a fixture: tensors by name, the method's configuration from metadata and shapes, the batch.

use std::collections::BTreeMap;

use engine::ops::Images;
use engine::{BufferValue, Device, ParameterStore, State, Tensor};
use safetensors::{Dtype, SafeTensors};

use crate::batch::{PairBatch, PairTargets};
use crate::config::{BackboneName, LossConfig, MethodConfig, PredictorName, Transform};
use crate::registry::MethodName;

/// Why a fixture cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FixtureError {
    /// The file as a whole.
    #[error("{0}")]
    Unusable(String),
    /// One tensor.
    #[error("tensor {0}: {1}")]
    Tensor(String, String),
    /// The engine refused.
    #[error(transparent)]
    Engine(#[from] engine::Error),
}

/// A tensor of a fixture, as float32.
#[derive(Clone, Debug)]
pub struct Reference {
    /// Shape.
    pub shape: Vec<usize>,
    /// Elements, row-major.
    pub values: Vec<f32>,
}

/// A fixture and its inputs.
#[derive(Clone, Debug)]
pub struct Fixture {
    tensors: BTreeMap<String, Reference>,
    settings: serde_json::Value,
}

impl Fixture {
    /// Parses the bytes of a fixture and of a file with its inputs (`in/...`); the fixture's own win.
    pub fn parse(fixture: &[u8], inputs: &[u8]) -> Result<Self, FixtureError> {
        let mut tensors = read("inputs", inputs)?;
        tensors.retain(|name, _| name.starts_with("in/"));
        tensors.extend(read("fixture", fixture)?);
        let unusable = |error: safetensors::SafeTensorError| FixtureError::Unusable(error.to_string());
        let (_, metadata) = SafeTensors::read_metadata(fixture).map_err(unusable)?;
        let settings = metadata.metadata().as_ref().and_then(|metadata| metadata.get("settings"));
        let settings = match settings {
            None => serde_json::Value::Null,
            Some(text) => serde_json::from_str(text)
                .map_err(|error| FixtureError::Unusable(format!("metadata settings: {error}")))?,
        };
        Ok(Self { tensors, settings })
    }

    /// The tensor called `name`.
    pub fn get(&self, name: &str) -> Option<&Reference> {
        self.tensors.get(name)
    }

    /// All tensors whose name starts with `prefix`, by the rest of it.
    pub fn group<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a Reference)> {
        self.tensors.iter().filter_map(move |(name, tensor)| Some((name.strip_prefix(prefix)?, tensor)))
    }

    fn require(&self, name: &str) -> Result<&Reference, FixtureError> {
        self.get(name).ok_or_else(|| FixtureError::Tensor(name.into(), "is missing".into()))
    }

    /// Dimension `axis` of the parameter `name`, if it is there.
    fn size(&self, name: &str, axis: usize) -> Option<usize> {
        self.get(&format!("param/{name}"))?.shape.get(axis).copied()
    }

    /// The configuration of the network; `method` overrides the metadata.
    pub fn config(&self, method: Option<MethodName>) -> Result<MethodConfig, FixtureError> {
        let named = self.settings.get("method").and_then(serde_json::Value::as_str);
        let method = match (method, named) {
            (Some(method), _) => method,
            // "equicaps_3x3" and "equicaps_4x4" are the same method.
            (None, Some(name)) => name
                .trim_end_matches("_3x3")
                .trim_end_matches("_4x4")
                .parse()
                .map_err(|error: crate::UnknownName| FixtureError::Unusable(error.to_string()))?,
            (None, None) => {
                let detail = "the file's metadata names no method; name one with --method";
                return Err(FixtureError::Unusable(detail.into()));
            }
        };
        let view = self.require("in/view1")?;
        let &[batch, 3, height, width] = view.shape.as_slice() else {
            return Err(FixtureError::Tensor(
                "in/view1".into(),
                format!("is {:?}, not (n, 3, s, s)", view.shape),
            ));
        };
        if height != width {
            return Err(FixtureError::Tensor("in/view1".into(), format!("{height}x{width} is not square")));
        }
        let published = MethodConfig::published(method).map_err(engine::Error::from)?;
        let mut config = MethodConfig { image_size: height, batch, ..published };
        let stem = self.size("backbone.conv1.weight", 0);
        let missing = || FixtureError::Tensor("param/backbone.conv1.weight".into(), "is missing".into());
        config.backbone = BackboneName::ResNet18;
        let network = &mut config.network;
        network.width = stem.ok_or_else(missing)?;
        for prefix in ["projector", "projector_inv", "projector_equi"] {
            let widths: Vec<usize> =
                (0..).map_while(|layer| self.size(&format!("{prefix}.{}.weight", 3 * layer), 0)).collect();
            if !widths.is_empty() {
                network.projector = widths;
            }
        }
        if let (Some(capsules), Some(poses)) =
            (self.size("projector.conv_a.weight", 0), self.size("projector.conv_pose.weight", 0))
        {
            network.capsules = capsules;
            network.pose = (poses / capsules.max(1)).isqrt();
        }
        let embedding = network.projector.last().copied().unwrap_or(0);
        let parameters = if let Some(parameters) = self.size("predictor.hypernet.net.0.weight", 1) {
            network.predictor = PredictorName::Hypernetwork;
            parameters
        } else if let Some(input) = self.size("predictor.pred.0.weight", 1) {
            network.predictor = PredictorName::Mlp;
            let layers = (0..)
                .take_while(|layer| self.size(&format!("predictor.pred.{}.weight", 2 * layer), 0).is_some());
            network.predictor_layers = layers.count();
            input.saturating_sub(embedding)
        } else {
            self.size("predictor.4.weight", 0).unwrap_or(4)
        };
        let matrix = self.get("in/transform").and_then(|matrices| matrices.shape.last().copied());
        let with_translation = parameters == 7 || matrix == Some(4);
        config.transform = if with_translation { Transform::ROTATION_OBJECT } else { Transform::ROTATION };
        self.weights(&mut config.loss);
        Ok(config)
    }

    /// Weights and temperature from the metadata.
    fn weights(&self, loss: &mut LossConfig) {
        let number = |value: Option<&serde_json::Value>, to: &mut f64| {
            if let Some(number) = value.and_then(serde_json::Value::as_f64) {
                *to = number;
            }
        };
        number(self.settings.get("temperature"), &mut loss.temperature);
        let weights = self.settings.get("weights");
        let weight = |name: &str| weights.and_then(|weights| weights.get(name));
        number(weight("inv"), &mut loss.invariance);
        number(weight("equi").or(weight("pred")), &mut loss.equivariance);
        number(weight("std"), &mut loss.variance);
        number(weight("pred_std"), &mut loss.predicted_variance);
        number(weight("cov"), &mut loss.covariance);
        number(weight("memax"), &mut loss.mean_entropy);
    }

    /// Loads `param/` and `buffer_before/` into `store`. Every parameter must be there, with its shape.
    pub fn load(&self, store: &mut ParameterStore) -> Result<(), FixtureError> {
        let ids: Vec<_> = store.parameters().collect();
        for id in ids {
            let name = format!("param/{}", store.name(id));
            let reference = self.require(&name)?;
            if reference.shape != store.shape(id).dims() {
                let detail = format!("is {:?}, expected {}", reference.shape, store.shape(id));
                return Err(FixtureError::Tensor(name, detail));
            }
            store.import(State::Value, id, &reference.values)?;
        }
        for (name, reference) in self.group("buffer_before/") {
            let refuse = || FixtureError::Tensor(format!("buffer_before/{name}"), "no such buffer".into());
            let id = store.find_buffer(name).ok_or_else(refuse)?;
            match store.buffer_mut(id) {
                BufferValue::Tensor(tensor) => tensor.write(&reference.values)?,
                BufferValue::Count(count) => *count = reference.values.first().map_or(0, |&v| v as u64),
            }
        }
        Ok(())
    }

    /// The batch of the fixture.
    pub fn batch(&self, device: &Device, config: &MethodConfig) -> Result<PairBatch, FixtureError> {
        let view = |name: &str| -> Result<Images, FixtureError> {
            let planes = self.require(name)?;
            let (n, size) = (planes.shape[0], config.image_size);
            if planes.shape != [n, 3, size, size] {
                return Err(FixtureError::Tensor(name.into(), format!("is {:?}", planes.shape)));
            }
            Ok(Images::from_planes(device, [n, size, size], &planes.values)?)
        };
        let tensor = |name: &str| -> Result<Option<Tensor>, FixtureError> {
            let Some(reference) = self.get(name) else { return Ok(None) };
            Ok(Some(Tensor::from_slice(device, reference.shape.as_slice(), &reference.values)?))
        };
        let quaternions = self.get("in/quaternion_xyzw");
        let translations = self.get("in/translation");
        let parameters = match (quaternions, translations, config.transform.group().parameters()) {
            (Some(q), Some(t), 7) => {
                let rows = q.values.chunks_exact(4).zip(t.values.chunks_exact(3));
                let numbers: Vec<f32> = rows.flat_map(|(q, t)| [q, t].concat()).collect();
                Some(Tensor::from_slice(device, [numbers.len() / 7, 7], &numbers)?)
            }
            _ => tensor("in/quaternion_xyzw")?,
        };
        let labels = match self.get("in/label") {
            None => None,
            Some(labels) => {
                let labels: Vec<i32> = labels.values.iter().map(|&label| label as i32).collect();
                Some(Tensor::from_slice(device, [labels.len()], &labels)?)
            }
        };
        let mut targets =
            PairTargets { matrices: tensor("in/transform")?, parameters, labels, ..PairTargets::default() };
        targets.parts[pose::Part::Rotation] = tensor("in/quaternion_xyzw")?;
        targets.parts[pose::Part::Translation] = tensor("in/translation")?;
        Ok(PairBatch { views: [view("in/view1")?, view("in/view2")?], targets, whole: None })
    }
}

fn read(what: &str, bytes: &[u8]) -> Result<BTreeMap<String, Reference>, FixtureError> {
    let unusable =
        |error| FixtureError::Unusable(format!("{what}: not a complete safetensors file ({error})"));
    let file = SafeTensors::deserialize(bytes).map_err(unusable)?;
    let mut tensors = BTreeMap::new();
    for (name, view) in file.tensors() {
        let data = view.data();
        let values: Vec<f32> = match view.dtype() {
            Dtype::F32 => {
                data.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
            }
            // The upper half of an F32.
            Dtype::BF16 => data
                .as_chunks::<2>()
                .0
                .iter()
                .map(|b| f32::from_bits(u32::from(u16::from_le_bytes(*b)) << 16))
                .collect(),
            Dtype::F64 => data.as_chunks::<8>().0.iter().map(|b| f64::from_le_bytes(*b) as f32).collect(),
            Dtype::I64 => data.as_chunks::<8>().0.iter().map(|b| i64::from_le_bytes(*b) as f32).collect(),
            other => return Err(FixtureError::Tensor(name, format!("is {other:?}, expected F32"))),
        };
        if let Some(at) = values.iter().position(|value| !value.is_finite()) {
            let detail = format!("element {at} is {}, not a finite number", values[at]);
            return Err(FixtureError::Tensor(name, detail));
        }
        if values.is_empty() {
            return Err(FixtureError::Tensor(name, "is empty".into()));
        }
        tensors.insert(name, Reference { shape: view.shape().to_vec(), values });
    }
    Ok(tensors)
}
