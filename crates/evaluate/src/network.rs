//! A network of the `methods` crate as an [`Encoder`]: weights from a checkpoint (or none: the untrained network),
//! batch norm on running statistics, no gradients.

use engine::ops::Images;
use engine::{Device, Tensor};
use methods::{MEAN, MethodConfig, Motion, Network, PartName, Projector, STD};
use train::checkpoint::Checkpoint;
use train::weights::{self, Loaded};

use crate::encoder::{Encoded, Encoder, Widths};
use crate::error::{Error, Result};
use crate::prediction::{PoseMatrices, Transformation};
use crate::protocol::Task;

/// A frozen network.
#[derive(Debug)]
pub struct NetworkEncoder {
    network: Network,
    widths: Widths,
    is_trained: bool,
    device: Device,
}

impl NetworkEncoder {
    /// The network of `config` with the weights of a checkpoint, or with random ones by `seed`. Says what the
    /// checkpoint held.
    pub fn open(
        config: &MethodConfig,
        checkpoint: Option<&Checkpoint>,
        seed: u64,
        device: &Device,
    ) -> Result<(Self, Option<Loaded>)> {
        let mut network = Network::build(config, device, seed)?;
        let loaded =
            checkpoint.map(|checkpoint| weights::load_frozen(&mut network.store, checkpoint)).transpose()?;
        let representation = config.backbone().output_width();
        let mut widths = Widths { representation, equivariant: None, invariant: None };
        if loaded != Some(Loaded::BackboneOnly) {
            for part in network.model.method().parts() {
                *place(&mut widths.invariant, &mut widths.equivariant, part.name) = Some(part.width);
            }
        }
        let is_trained = loaded == Some(Loaded::Whole);
        Ok((Self { network, widths, is_trained, device: device.clone() }, loaded))
    }

    /// The network's configuration.
    pub fn config(&self) -> &MethodConfig {
        self.network.model.config()
    }

    /// Capsules and the side of a pose matrix, where the embedding is made of such.
    pub fn capsules(&self) -> Option<(usize, usize)> {
        self.widths.equivariant?;
        self.network.model.method().projectors().into_iter().find_map(|projector| match projector {
            Projector::Capsules { capsules, side, .. } => Some((capsules, side)),
            Projector::Perceptron { .. } => None,
        })
    }

    /// The network itself.
    pub fn network(&mut self) -> &mut Network {
        &mut self.network
    }

    fn tensor(&self, values: &[f32], count: usize) -> Result<Tensor> {
        Ok(Tensor::from_slice(&self.device, [count, values.len() / count.max(1)], values)?)
    }
}

/// Where a part of the embedding belongs. Methods with a single embedding have it as the equivariant one.
fn place<'a, T>(invariant: &'a mut T, equivariant: &'a mut T, part: PartName) -> &'a mut T {
    if part.is_invariant() { invariant } else { equivariant }
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
        let pixels = &pixels[..count * side * side * 3];
        let images = Images::from_bytes(&self.device, [count, side, side], pixels, MEAN, STD)?;
        let mut encoded = Encoded::default();
        if self.widths.equivariant.is_none() && self.widths.invariant.is_none() {
            encoded.representation = self.network.features(&images)?;
            return Ok(encoded);
        }
        let embedding = self.network.embed(&images)?;
        encoded.representation = embedding.representation.value().to_f32()?;
        for (name, value) in &embedding.parts {
            *place(&mut encoded.invariant, &mut encoded.equivariant, *name) = value.value().to_f32()?;
        }
        Ok(encoded)
    }

    fn transformation(&self) -> Option<Transformation> {
        self.widths.equivariant?;
        let group = self.config().transform.group();
        match self.network.model.method().motion() {
            Motion::Unknown => None,
            Motion::PoseMatrices { capsules, side } => {
                debug_assert_eq!(side, group.side);
                Some(Transformation::PoseMatrices(PoseMatrices { capsules, group }))
            }
            Motion::Predictor => Some(Transformation::Predictor { group }),
        }
    }

    fn own_task(&self) -> Option<Task> {
        let (_, task) = self.network.model.method().head().filter(|_| self.is_trained)?;
        let frame = self.config().transform.group().frame;
        Some(match task.part() {
            Some(part) => Task::of_part(part, frame),
            None if task == methods::Task::Colour => Task::Colour,
            None => Task::Classification,
        })
    }

    fn answer(&mut self, inputs: &[f32], count: usize) -> Result<Vec<f32>> {
        let inputs = self.tensor(inputs, count)?;
        match self.network.answer(inputs)? {
            Some(answers) => Ok(answers.to_f32()?),
            None => Err(Error::Request("this network has no head".to_owned())),
        }
    }

    fn predict(&mut self, embeddings: &[f32], parameters: &[f32], count: usize) -> Result<Vec<f32>> {
        let (embeddings, parameters) = (self.tensor(embeddings, count)?, self.tensor(parameters, count)?);
        Ok(self.network.predict(embeddings, &parameters)?.to_f32()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use methods::{MethodName, Transform};
    use pose::Group;

    fn config(method: MethodName, transform: Transform) -> MethodConfig {
        let published = MethodConfig::published(method).unwrap();
        let mut config = MethodConfig { transform, image_size: 32, ..published };
        let network = &mut config.network;
        (network.width, network.projector, network.capsules) = (8, vec![16, 16, 12], 3);
        config
    }

    fn untrained(config: &MethodConfig) -> NetworkEncoder {
        NetworkEncoder::open(config, None, 4, &Device::cpu()).unwrap().0
    }

    #[test]
    fn a_image_is_encoded_the_same_alone_and_among_others() {
        let image = 32 * 32 * 3;
        let mut random = random::Random::new(1, random::Stream::new("encoder-tests"), 0);
        let pixels: Vec<u8> = (0..5 * image).map(|_| random.next_u32() as u8).collect();
        for method in [MethodName::EQUICAPS, MethodName::SIE, MethodName::VICREG, MethodName::SUPERVISED] {
            let mut encoder = untrained(&config(method, Transform::ROTATION));
            let widths = encoder.widths();
            let all = encoder.encode(&pixels, 5).unwrap();
            let parts = [
                (&all.representation, widths.representation),
                (&all.equivariant, widths.equivariant.unwrap_or(0)),
                (&all.invariant, widths.invariant.unwrap_or(0)),
            ];
            assert!(parts.iter().all(|(values, width)| values.len() == 5 * width), "{method}");
            for (index, image) in pixels.chunks_exact(image).enumerate() {
                let one = encoder.encode(image, 1).unwrap();
                let ones = [&one.representation, &one.equivariant, &one.invariant];
                for ((values, width), one) in parts.iter().zip(ones) {
                    assert_eq!(values[index * width..(index + 1) * width], **one, "{method} {index}");
                }
            }
            let mut network = Network::build(encoder.config(), &Device::cpu(), 4).unwrap();
            let images = Images::from_bytes(&Device::cpu(), [5, 32, 32], &pixels, MEAN, STD).unwrap();
            assert_eq!(network.features(&images).unwrap(), all.representation, "{method}");
        }
    }

    #[test]
    fn embeddings_follow_a_change_of_view_as_they_were_trained_to() {
        let transformation = |method, transform| untrained(&config(method, transform)).transformation();
        for group in Group::ALL {
            let (transform, layout) = (Transform::from(group), PoseMatrices { capsules: 3, group });
            assert_eq!(
                transformation(MethodName::EQUICAPS, transform),
                Some(Transformation::PoseMatrices(layout))
            );
            for method in [MethodName::SIE, MethodName::CAPSIE, MethodName::SEN, MethodName::EQUIMOD] {
                let predictor = Some(Transformation::Predictor { group });
                assert_eq!(transformation(method, transform), predictor, "{method}");
            }
            assert_eq!(transformation(MethodName::VICREG, transform), None);
        }
    }
}
