//! A network of the `methods` crate as an [`Encoder`]: weights from a checkpoint (or none: the untrained network),
//! batch norm on running statistics, no gradients.

use std::path::Path;

use engine::ops::Images;
use engine::{Device, ParameterStore, StoreBuilder, Tape, Tensor, Var};
use methods::{MethodConfig, MethodName, Network, PredictorName, Transform};
use model::{Hypernetwork, HypernetworkConfig, MlpHead, MlpPredictor, MlpPredictorConfig};

use crate::encoder::{Encoded, Encoder, Widths};
use crate::error::{Error, Result};
use crate::prediction::{PoseMatrices, Transformation};
use crate::protocol::Task;

/// The predictor of a method that has one, with a store of its own.
struct Predictor {
    store: ParameterStore,
    kind: PredictorKind,
}

enum PredictorKind {
    Hypernetwork(Hypernetwork),
    Mlp(MlpPredictor),
}

/// A frozen network.
pub struct NetworkEncoder {
    network: Network,
    predictor: Option<Predictor>,
    own_head: Option<(ParameterStore, MlpHead)>,
    widths: Widths,
    device: Device,
}

impl std::fmt::Debug for NetworkEncoder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("NetworkEncoder").field("widths", &self.widths).finish_non_exhaustive()
    }
}

/// What a file of weights held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loaded {
    /// Backbone and projector (and predictor).
    Whole,
    /// The backbone alone: there are no embeddings.
    BackboneOnly,
    /// Nothing was loaded: random weights.
    Untrained,
}

impl NetworkEncoder {
    /// The network of `config` with the weights of a safetensors file, or with random ones by `seed`.
    pub fn open(
        config: &MethodConfig,
        weights: Option<&Path>,
        seed: u64,
        device: &Device,
    ) -> Result<(Self, Loaded)> {
        let mut network = Network::build(config, device, seed)?;
        let loaded = match weights {
            None => Loaded::Untrained,
            Some(path) => match model::load(&mut network.store, path) {
                Ok(_) => Loaded::Whole,
                Err(whole) => match model::load_backbone(&mut network.store, path) {
                    Ok(_) => Loaded::BackboneOnly,
                    // The first failure says more about a file that fits neither.
                    Err(_) => return Err(Error::Weights(whole)),
                },
            },
        };
        let (equivariant, invariant) = embedding_widths(config);
        let has_embeddings = loaded != Loaded::BackboneOnly;
        let widths = Widths {
            representation: config.backbone.output_width(),
            equivariant: equivariant.filter(|_| has_embeddings),
            invariant: invariant.filter(|_| has_embeddings),
        };
        let predictor = match widths.equivariant {
            Some(width) if has_embeddings => open_predictor(config, width, weights, seed, device)?,
            _ => None,
        };
        let own_head = match (config.method, weights) {
            (MethodName::Supervised, Some(path)) if loaded == Loaded::Whole => {
                let mut builder = StoreBuilder::new();
                let head = methods::supervised_head(config).init(&mut builder, "head.");
                let mut store = builder.build(device, seed)?;
                model::load(&mut store, path).map_err(Error::Weights)?;
                Some((store, head))
            }
            _ => None,
        };
        Ok((Self { network, predictor, own_head, widths, device: device.clone() }, loaded))
    }

    /// The network's configuration.
    pub fn config(&self) -> &MethodConfig {
        self.network.model.config()
    }
}

fn capsule_layout(config: &MethodConfig) -> PoseMatrices {
    let frame = config.transform.frame();
    PoseMatrices { capsules: config.capsules, size: config.pose_matrix_side(), frame }
}

/// Widths of the equivariant and the invariant embedding. Methods with a single embedding have it as the first.
fn embedding_widths(config: &MethodConfig) -> (Option<usize>, Option<usize>) {
    let last = config.projector.last().copied();
    match config.method {
        MethodName::Supervised => (None, None),
        MethodName::VicReg | MethodName::SimClr | MethodName::SimClrAugSelf | MethodName::Sen => (last, None),
        MethodName::EquiMod | MethodName::Sie => (last, last),
        MethodName::CapsIe | MethodName::EquiCaps => {
            (Some(capsule_layout(config).width()), Some(config.capsules))
        }
    }
}

fn open_predictor(
    config: &MethodConfig,
    width: usize,
    weights: Option<&Path>,
    seed: u64,
    device: &Device,
) -> Result<Option<Predictor>> {
    let predicts =
        matches!(config.method, MethodName::Sen | MethodName::EquiMod | MethodName::Sie | MethodName::CapsIe);
    if !predicts {
        return Ok(None);
    }
    let mut builder = StoreBuilder::new();
    let parameters = config.transform.parameters();
    let kind = match config.predictor {
        PredictorName::None => return Ok(None),
        PredictorName::Hypernetwork => {
            let sizes = HypernetworkConfig { parameters, width };
            PredictorKind::Hypernetwork(sizes.init(&mut builder, "predictor."))
        }
        PredictorName::Mlp => {
            let sizes = MlpPredictorConfig { parameters, width, layers: config.predictor_layers };
            PredictorKind::Mlp(sizes.init(&mut builder, "predictor."))
        }
    };
    let mut store = builder.build(device, seed)?;
    if let Some(path) = weights {
        model::load(&mut store, path).map_err(Error::Weights)?;
    }
    Ok(Some(Predictor { store, kind }))
}

impl Encoder for NetworkEncoder {
    fn side(&self) -> usize {
        self.config().image_size
    }

    fn widths(&self) -> Widths {
        self.widths
    }

    fn encode(&mut self, pixels: &[u8], count: usize) -> Result<Encoded> {
        let side = self.side();
        let bytes = side * side * 3;
        let images = |pixels: &[u8]| {
            let dims = [pixels.len() / bytes.max(1), side, side];
            Images::from_bytes(&self.device, dims, pixels, train::network::MEAN, train::network::STD)
        };
        let mut encoded = Encoded::default();
        let mut tape = Tape::inference(&mut self.network.store);
        if self.widths.equivariant.is_none() && self.widths.invariant.is_none() {
            let h = self.network.model.represent(&mut tape, &images(&pixels[..count * bytes])?)?;
            encoded.representation = h.value().to_f32()?;
            return Ok(encoded);
        }
        // The two halves of the batch pass as if they were the two views.
        let half = count.div_ceil(2).min(count.saturating_sub(1)).max(1);
        let first = images(&pixels[..half * bytes])?;
        let second = if count > 1 { images(&pixels[half * bytes..count * bytes])? } else { first.clone() };
        let outputs = self.network.model.outputs(&mut tape, [&first, &second])?;
        let rows = |views: &[Var; 2]| -> Result<Vec<f32>> {
            let mut rows = views[0].value().to_f32()?;
            if count > 1 {
                rows.extend(views[1].value().to_f32()?);
            }
            Ok(rows)
        };
        encoded.representation = rows(&outputs.representations)?;
        for embedding in &outputs.embeddings {
            match embedding.name {
                "invariant" | "activations" => encoded.invariant = rows(&embedding.views)?,
                _ => encoded.equivariant = rows(&embedding.views)?,
            }
        }
        Ok(encoded)
    }

    fn transformation(&self) -> Option<Transformation> {
        self.widths.equivariant?;
        let config = self.config();
        if config.method == MethodName::EquiCaps {
            return Some(Transformation::PoseMatrices(capsule_layout(config)));
        }
        let translation = (config.transform != Transform::Rotation).then(|| config.transform.frame());
        self.predictor.as_ref().map(|_| Transformation::Predictor { translation })
    }

    fn own_task(&self) -> Option<Task> {
        let config = self.config();
        self.own_head.as_ref()?;
        Some(match (config.task, config.transform) {
            (methods::Task::Classification, _) => Task::Classification,
            (methods::Task::Rotation, _) => Task::Rotation,
            (methods::Task::Translation, Transform::RotationBase) => Task::TranslationBase,
            (methods::Task::Translation, _) => Task::TranslationObject,
            (methods::Task::Colour, _) => Task::Colour,
        })
    }

    fn answer(&mut self, inputs: &[f32], count: usize) -> Result<Vec<f32>> {
        let Some((store, head)) = &mut self.own_head else {
            return Err(Error::Request("this network has no head".to_owned()));
        };
        let inputs = Tensor::from_slice(&self.device, [count, inputs.len() / count.max(1)], inputs)?;
        let mut tape = Tape::inference(store);
        Ok(head.forward(&mut tape, &Var::constant(inputs))?.value().to_f32()?)
    }

    fn predict(&mut self, embeddings: &[f32], parameters: &[f32], count: usize) -> Result<Vec<f32>> {
        let Some(predictor) = &mut self.predictor else {
            return Err(Error::Request("this network has no predictor".to_owned()));
        };
        let tensor =
            |values: &[f32]| Tensor::from_slice(&self.device, [count, values.len() / count.max(1)], values);
        let (embeddings, parameters) = (Var::constant(tensor(embeddings)?), tensor(parameters)?);
        let mut tape = Tape::inference(&mut predictor.store);
        let predicted = match &predictor.kind {
            PredictorKind::Hypernetwork(network) => network.forward(&mut tape, &embeddings, &parameters)?,
            PredictorKind::Mlp(network) => network.forward(&mut tape, &embeddings, &parameters)?,
        };
        Ok(predicted.value().to_f32()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{BackboneConfig, ResNet18Config};
    use pose::FrameKind;

    fn config(method: MethodName, transform: Transform) -> MethodConfig {
        MethodConfig {
            backbone: BackboneConfig::ResNet18(ResNet18Config { width: 8 }),
            transform,
            image_size: 32,
            projector: vec![16, 16, 12],
            capsules: 3,
            ..MethodConfig::published(method)
        }
    }

    fn untrained(config: &MethodConfig) -> NetworkEncoder {
        NetworkEncoder::open(config, None, 4, &Device::cpu()).unwrap().0
    }

    #[test]
    fn a_picture_is_encoded_the_same_alone_and_among_others() {
        let picture = 32 * 32 * 3;
        let mut random = random::Random::new(1, random::Stream::new("encoder-tests"), 0);
        let pixels: Vec<u8> = (0..5 * picture).map(|_| random.next_u32() as u8).collect();
        for method in [MethodName::EquiCaps, MethodName::Sie, MethodName::VicReg, MethodName::Supervised] {
            let mut encoder = untrained(&config(method, Transform::Rotation));
            let widths = encoder.widths();
            let all = encoder.encode(&pixels, 5).unwrap();
            let parts = [
                (&all.representation, widths.representation),
                (&all.equivariant, widths.equivariant.unwrap_or(0)),
                (&all.invariant, widths.invariant.unwrap_or(0)),
            ];
            assert!(parts.iter().all(|(values, width)| values.len() == 5 * width), "{method}");
            for (index, picture) in pixels.chunks_exact(picture).enumerate() {
                let one = encoder.encode(picture, 1).unwrap();
                let ones = [&one.representation, &one.equivariant, &one.invariant];
                for ((values, width), one) in parts.iter().zip(ones) {
                    assert_eq!(values[index * width..(index + 1) * width], **one, "{method} {index}");
                }
            }
            let mut network = Network::build(encoder.config(), &Device::cpu(), 4).unwrap();
            let (mean, std) = (train::network::MEAN, train::network::STD);
            let images = Images::from_bytes(&Device::cpu(), [5, 32, 32], &pixels, mean, std).unwrap();
            assert_eq!(network.features(&images).unwrap(), all.representation, "{method}");
        }
    }

    #[test]
    fn embeddings_follow_a_change_of_view_as_they_were_trained_to() {
        let transformation = |method, transform| untrained(&config(method, transform)).transformation();
        for (transform, frame) in [
            (Transform::Rotation, None),
            (Transform::RotationObject, Some(FrameKind::Object)),
            (Transform::RotationBase, Some(FrameKind::Base)),
        ] {
            let size = if frame.is_some() { 4 } else { 3 };
            let layout = PoseMatrices { capsules: 3, size, frame: frame.unwrap_or_default() };
            assert_eq!(
                transformation(MethodName::EquiCaps, transform),
                Some(Transformation::PoseMatrices(layout))
            );
            for method in [MethodName::Sie, MethodName::CapsIe, MethodName::Sen, MethodName::EquiMod] {
                let predictor = Some(Transformation::Predictor { translation: frame });
                assert_eq!(transformation(method, transform), predictor, "{method}");
            }
            assert_eq!(transformation(MethodName::VicReg, transform), None);
        }
    }
}
