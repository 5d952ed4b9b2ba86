//! What is exported: a frozen network in words and numbers, independent of the format.

use std::collections::BTreeMap;

use engine::{BufferValue, State};
use evaluate::weights::{Opened, Weights};
use methods::{BackboneName, MethodName, Network, PartName, Projector, Transform};
use model::BackboneConfig;
use train::checkpoint::{Numbers, Stored};

use crate::error::{Error, Result};

/// Name of the first output.
const REPRESENTATION: &str = "representation";

/// What is written of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The backbone and its pooling: images to representations.
    Encoder,
    /// That and the projector: representations and the parts of the embedding.
    Projector,
}

/// A network to be exported.
#[derive(Clone, Debug)]
pub struct Exported {
    /// Name of the run or the file that it is from.
    pub name: String,
    /// How it was trained.
    pub method: MethodName,
    /// What it was trained for.
    pub transform: Transform,
    /// Complete epochs, where known.
    pub epochs: Option<u64>,
    /// A hash of the file that it is from.
    pub weights_key: String,
    /// Side of the images in pixels.
    pub image_size: usize,
    /// Name of the backbone.
    pub backbone_name: BackboneName,
    /// Its sizes.
    pub backbone: BackboneConfig,
    /// The layers behind it that are exported.
    pub projectors: Vec<Projector>,
    /// The weights.
    pub tensors: Tensors,
    /// Weights of the rest of the network (predictor, head), where the projector is exported: a checkpoint with one but
    /// without the other is no checkpoint of this network.
    pub others: Tensors,
}

/// One output of the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Its name.
    pub name: String,
    /// Its shape without the batch.
    pub shape: Vec<usize>,
    /// What it is.
    pub meaning: &'static str,
}

/// Weights and running statistics by their published names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tensors(pub BTreeMap<String, Stored>);

impl Tensors {
    /// Shape and numbers of a tensor of floats.
    pub(crate) fn floats(&self, name: &str) -> Result<(&[usize], &[f32])> {
        match self.0.get(name) {
            Some(Stored { shape, numbers: Numbers::F32(values) }) => Ok((shape, values)),
            Some(_) => Err(Error::Network(format!("{name} does not hold float32"))),
            None => Err(Error::Network(format!("there is no {name}"))),
        }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Bytes of all numbers.
    pub(crate) fn bytes(&self) -> usize {
        let count = |stored: &Stored| stored.shape.iter().product::<usize>() * 4;
        self.0.values().map(count).sum()
    }

    /// All tensors of a network whose names are `wanted`.
    fn of(network: &Network, wanted: impl Fn(&str) -> bool) -> Result<Self> {
        let store = &network.store;
        let mut tensors = BTreeMap::new();
        for id in store.parameters().filter(|&id| wanted(store.name(id))) {
            let stored = Stored {
                shape: store.shape(id).dims().to_vec(),
                numbers: Numbers::F32(store.export(State::Value, id)?),
            };
            tensors.insert(store.name(id).to_owned(), stored);
        }
        for id in store.buffers().filter(|&id| wanted(store.buffer_name(id))) {
            let stored = match store.buffer(id) {
                BufferValue::Tensor(tensor) => {
                    Stored { shape: tensor.dims().to_vec(), numbers: Numbers::F32(tensor.to_f32()?) }
                }
                BufferValue::Count(count) => {
                    Stored { shape: Vec::new(), numbers: Numbers::I64(vec![*count as i64]) }
                }
            };
            tensors.insert(store.buffer_name(id).to_owned(), stored);
        }
        Ok(Self(tensors))
    }
}

impl Exported {
    /// What is to be written of an opened network.
    pub fn new(weights: &Weights, opened: &mut Opened, part: Part) -> Result<Self> {
        let widths = evaluate::Encoder::widths(&opened.encoder);
        let config = opened.encoder.config().clone();
        let network = opened.encoder.network();
        let method = network.model.method();
        let projectors = match part {
            Part::Encoder => Vec::new(),
            Part::Projector => method.projectors(),
        };
        if part == Part::Projector {
            let title = config.name.title();
            if method.parts().is_empty() {
                return Err(Error::Request(format!(
                    "{title} networks have no projector; leave out --with projector to export the encoder"
                )));
            }
            if widths.equivariant.is_none() && widths.invariant.is_none() {
                return Err(Error::Request(format!(
                    "{} holds a backbone without a projector; leave out --with projector to export the encoder",
                    weights.name
                )));
            }
            if projectors.is_empty() {
                return Err(Error::Request(format!(
                    "{title} does not describe its projector; leave out --with projector to export the encoder"
                )));
            }
        }
        let prefixes = projectors.iter().map(|projector| match projector {
            Projector::Capsules { prefix, .. } | Projector::Perceptron { prefix, .. } => *prefix,
        });
        let prefixes: Vec<&str> = std::iter::once("backbone.").chain(prefixes).collect();
        let is_own = |name: &str| prefixes.iter().any(|prefix| name.starts_with(prefix));
        Ok(Self {
            name: weights.name.clone(),
            method: config.name,
            transform: config.transform,
            epochs: weights.epochs,
            weights_key: opened.key.clone(),
            image_size: config.image_size,
            backbone_name: config.backbone,
            backbone: config.backbone(),
            tensors: Tensors::of(network, is_own)?,
            others: Tensors::of(network, |name| part == Part::Projector && !is_own(name))?,
            projectors,
        })
    }

    /// Side of the backbone's map.
    pub(crate) fn map_size(&self) -> usize {
        self.backbone.map_size(self.image_size)
    }

    /// What the network gives, in order.
    pub fn outputs(&self) -> Vec<Output> {
        let output = |name: &str, shape: &[usize], meaning| Output {
            name: name.to_owned(),
            shape: shape.to_vec(),
            meaning,
        };
        let width = self.backbone.output_width();
        let mut outputs = vec![output(REPRESENTATION, &[width], "the backbone's pooled output")];
        for projector in &self.projectors {
            match projector {
                Projector::Capsules { capsules, side, .. } => {
                    let name = PartName::Activations.name();
                    outputs.push(output(name, &[*capsules], "activations of capsules, which sum to 1"));
                    let (name, shape) = (PartName::Poses.name(), [*capsules, *side, *side]);
                    outputs.push(output(name, &shape, "pose matrices of capsules"));
                }
                Projector::Perceptron { part, widths, .. } => {
                    let meaning = match part {
                        PartName::Invariant => "the invariant embedding",
                        PartName::Equivariant => "the equivariant embedding",
                        _ => "the projector's output",
                    };
                    outputs.push(output(part.name(), &[widths.last().copied().unwrap_or(0)], meaning));
                }
            }
        }
        outputs
    }

    /// Number of parameters, running statistics not counted.
    pub fn parameters(&self) -> usize {
        let counts = |name: &str| !name.contains(".running_") && !name.ends_with("num_batches_tracked");
        let own = self.tensors.0.iter().filter(|(name, _)| counts(name));
        own.map(|(_, stored)| stored.shape.iter().product::<usize>()).sum()
    }

    /// The network in a line.
    pub fn title(&self) -> String {
        let plural = if self.epochs == Some(1) { "" } else { "s" };
        let epochs = self.epochs.map_or_else(String::new, |epochs| format!(", {epochs} epoch{plural}"));
        let Self { method, backbone_name, transform, .. } = self;
        let told = if method.learns_pose() { format!(", trained for {transform}") } else { String::new() };
        format!("{} ({backbone_name}){told}{epochs}", method.title())
    }

    /// What the network is, by keys.
    pub(crate) fn facts(&self) -> Vec<(&'static str, String)> {
        let mut facts = vec![
            ("name", self.name.clone()),
            ("method", self.method.name().to_owned()),
            ("backbone", self.backbone_name.name().to_owned()),
            ("trained_for", self.transform.name().to_owned()),
            ("image_size", self.image_size.to_string()),
            ("weights", self.weights_key.clone()),
        ];
        facts.extend(self.epochs.map(|epochs| ("epochs", epochs.to_string())));
        facts
    }
}
