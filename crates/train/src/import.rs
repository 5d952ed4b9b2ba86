//! Weights of the published code (files of `torch.save`) as a checkpoint that every command takes. What the file does
//! not say about its network (method, sizes, transformation) follows from the names and shapes of its tensors.

use std::collections::BTreeMap;
use std::path::Path;

use engine::{Device, StoreBuilder};
use methods::{MethodConfig, MethodName, Model, Network};
use pose::Group;

use crate::checkpoint::{Checkpoint, Numbers, Stored};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::torch_file::{self, TorchNumbers, TorchTensor};
use crate::weights::{self, Taken};

/// What the caller knows better than the file.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    /// The method.
    pub method: Option<String>,
    /// The transformation it was trained for.
    pub transform: Option<String>,
    /// Side of the images in pixels.
    pub image_size: Option<usize>,
}

/// An imported network.
#[derive(Debug)]
pub struct Imported {
    /// The checkpoint: weights and running statistics, no optimiser, no probes.
    pub checkpoint: Checkpoint,
    /// The network's configuration: the method's paper preset with the sizes of the file.
    pub config: Config,
    /// What the network took of it.
    pub taken: Taken,
    /// What neither the file nor the caller said.
    pub guesses: Vec<Guess>,
}

/// What was assumed of a network because names and shapes do not tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guess {
    /// The method: there is a backbone and nothing else.
    Method,
    /// The transformation: several have poses of the same shape.
    Transform,
    /// The size of the images: only projectors of capsules depend on it.
    ImageSize,
}

type Tensors = BTreeMap<String, TorchTensor>;

/// Reads the file of `torch.save` at `path`.
pub fn import(path: &Path, wishes: &Wishes) -> Result<Imported> {
    let file = torch_file::read(path)?;
    let refuse = |text: String| Error::content(path, text);
    let mut tensors = file.tensors;
    if tensors.contains_key("conv1.weight") {
        tensors = tensors.into_iter().map(|(name, tensor)| (format!("backbone.{name}"), tensor)).collect();
    }
    tensors.retain(|name, _| !name.starts_with("evaluator."));
    let mut guesses = Vec::new();
    let method = match &wishes.method {
        Some(method) => method.clone(),
        None => match method_of(&tensors).map_err(&refuse)? {
            Some(method) => method.to_owned(),
            None => {
                guesses.push(Guess::Method);
                // The backbone alone is the same for all.
                MethodName::EQUICAPS.name().to_owned()
            }
        },
    };
    let config = configure(&method, &tensors, wishes, &mut guesses, &refuse)?;
    let mut checkpoint = Checkpoint::of_weights(&config, file.epochs.unwrap_or(0))?;
    for (name, TorchTensor { shape, numbers }) in tensors {
        let numbers = match numbers {
            TorchNumbers::F32(values) => Numbers::F32(values),
            TorchNumbers::I64(values) => Numbers::I64(values),
        };
        checkpoint.tensors.insert(name, Stored { shape, numbers });
    }
    if let Some(name) = checkpoint.not_a_number() {
        return Err(refuse(format!("tensor {name} holds a number that is not finite")));
    }
    check_size(&config.method, &checkpoint).map_err(&refuse)?;
    // The network itself is the judge of whether everything is there.
    let mut network = Network::build(&config.method, &Device::cpu(), 0)?;
    let taken =
        weights::load_fitting(&mut network.store, &checkpoint).map_err(|error| refuse(error.to_string()))?;
    Ok(Imported { checkpoint, config, taken, guesses })
}

/// Refuses sizes whose network would be far larger than the file, before it is built.
fn check_size(config: &MethodConfig, checkpoint: &Checkpoint) -> std::result::Result<(), String> {
    /// Numbers that a network may have besides those of the file: a projector that the file does not hold.
    const MOST_BESIDES: f64 = 1e8;
    let mut builder = StoreBuilder::new();
    Model::init(config, &mut builder).map_err(|error| error.to_string())?;
    let count = |dims: &[usize]| dims.iter().map(|&side| side as f64).product::<f64>();
    let needed: f64 = builder.declared().map(|(_, shape)| count(shape.dims())).sum();
    let stored: f64 = checkpoint.tensors.values().map(|tensor| count(&tensor.shape)).sum();
    if needed > stored + MOST_BESIDES {
        return Err(format!("its sizes ask for a network of {needed:.0} numbers, but it holds {stored:.0}"));
    }
    Ok(())
}

/// The method whose names these are; none where only the backbone is there.
fn method_of(tensors: &Tensors) -> std::result::Result<Option<&'static str>, String> {
    let has = |prefix: &str| tensors.keys().any(|name| name.starts_with(prefix));
    if !has("backbone.") {
        let first = tensors.keys().next().map_or("", String::as_str);
        return Err(format!("expected tensors named backbone.*, found {first}"));
    }
    let known: Vec<&str> = MethodName::all()
        .into_iter()
        .filter(|method| method.recognises(&has))
        .map(MethodName::name)
        .collect();
    match known[..] {
        [] => Ok(None),
        [method] => Ok(Some(method)),
        _ => Err(format!(
            "the networks of {} have the same names; say which with --method",
            known.join(" and ")
        )),
    }
}

/// The paper's preset of `method` with the sizes that the tensors have.
fn configure(
    method: &str,
    tensors: &Tensors,
    wishes: &Wishes,
    guesses: &mut Vec<Guess>,
    refuse: &dyn Fn(String) -> Error,
) -> Result<Config> {
    let mut settings = Config::settings(method, "paper")?;
    let shape = |name: &str| tensors.get(name).map(|tensor| tensor.shape.as_slice());
    match shape("backbone.conv1.weight") {
        Some(&[width, ..]) => settings.set(&format!("network.width={width}"))?,
        _ => return Err(refuse("it holds no ResNet-18: there is no backbone.conv1.weight".to_owned())),
    }
    let mut transform = None;
    let mut side = None;
    if let (Some(&[capsules, ..]), Some(&[lower, _, pose])) =
        (shape("projector.conv_a.weight"), shape("projector.fc.W1"))
        && capsules > 0
    {
        settings.set(&format!("network.capsules={capsules}"))?;
        // A lower capsule of every type at every place of the map, which is a 32nd of the image.
        side = Some(32 * (lower / capsules).isqrt());
        if method == "equicaps" {
            // Published files are of rotations of objects, exported ones may be of any group, image groups among them.
            let group = Group::of_side(pose.isqrt()).find(|group| group.side.pow(2) == pose);
            transform = group.map(|group| group.name);
            if transform.is_some() && wishes.transform.is_none() {
                guesses.push(Guess::Transform);
            }
        } else {
            settings.set(&format!("network.pose={}", pose.isqrt()))?;
        }
    }
    for prefix in ["projector.", "projector_equi.", "projector_inv."] {
        let widths: Vec<String> = [0, 3, 6]
            .iter()
            .filter_map(|layer| match shape(&format!("{prefix}{layer}.weight")) {
                Some(&[width, _]) => Some(width.to_string()),
                _ => None,
            })
            .collect();
        if widths.len() == 3 {
            settings.set(&format!("network.projector=[{}]", widths.join(", ")))?;
        }
    }
    if tensors.keys().any(|name| name.starts_with("predictor.hypernet.")) {
        settings.set("network.predictor=hypernetwork")?;
    } else if method != "simclr_augself" {
        let layers = tensors
            .keys()
            .filter(|name| name.starts_with("predictor.pred.") && name.ends_with(".weight"))
            .count();
        if layers > 0 {
            settings.set("network.predictor=mlp")?;
            settings.set(&format!("network.predictor_layers={layers}"))?;
        }
    }
    if let Some(transform) = wishes.transform.as_deref().or(transform) {
        settings.set_key("--transform", "transform", transform)?;
    }
    match (wishes.image_size, side) {
        (Some(size), _) => settings.set_key("--image-size", "image_size", &size.to_string())?,
        (None, Some(size)) => settings.set(&format!("image_size={size}"))?,
        (None, None) => guesses.push(Guess::ImageSize),
    }
    Config::resolve(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made with PyTorch 2.11 by `published.py` beside it: EquiCaps with the published names, 8 channels at first,
    /// 16 capsules, images of 32 pixels.
    fn file() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/published.pth"))
    }

    #[test]
    fn a_published_file_becomes_a_checkpoint_with_its_sizes() {
        let Imported { checkpoint, config, taken, guesses } = import(file(), &Wishes::default()).unwrap();
        let method = &config.method;
        assert_eq!((method.name.name(), method.transform.name()), ("equicaps", "rotation"));
        assert_eq!((method.network.width, method.network.capsules, method.image_size), (8, 16, 32));
        assert_eq!(checkpoint.position.epoch, 1999);
        assert!(taken.anew.is_empty(), "{taken:?}");
        // Poses of 3x3 may as well be those of photographs.
        assert_eq!(guesses, [Guess::Transform]);
        // Six of the first layer, 12 of each of 8 blocks, 6 of each of 4 shortcuts, 15 of the projector; no probes.
        assert_eq!(checkpoint.tensors.len(), 6 + 8 * 12 + 4 * 6 + 15);
        let Stored { shape, numbers: Numbers::F32(values) } = &checkpoint.tensors["projector.fc.W2"] else {
            panic!("weights are float32");
        };
        assert_eq!(shape, &[16, 16, 9]);
        let first = values[0];
        for (index, value) in values.iter().enumerate() {
            assert_eq!(*value, first + (index % 9) as f32 / 128.0);
        }
        assert_eq!(first, 15.0 / 128.0);

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("imported.safetensors");
        checkpoint.write_to(&path).unwrap();
        let again = Checkpoint::read(&path).unwrap();
        assert_eq!(again.tensors, checkpoint.tensors);
        assert_eq!(
            Config::of_checkpoint(&path, &again).unwrap().identity().unwrap(),
            config.identity().unwrap()
        );
    }

    #[test]
    fn sizes_beyond_the_file_are_refused_before_anything_is_built() {
        let Imported { checkpoint, config, .. } = import(file(), &Wishes::default()).unwrap();
        let with_width = |width: usize| {
            let mut config = config.method.clone();
            config.network.width = width;
            check_size(&config, &checkpoint)
        };
        assert_eq!(with_width(8), Ok(()));
        let message = with_width(4096).unwrap_err();
        assert!(message.starts_with("its sizes ask for a network of "), "{message}");
        assert!(with_width(1 << 20).unwrap_err().contains("must be at most 4096"));
    }

    #[test]
    fn what_does_not_fit_is_said() {
        let text = |wishes: Wishes| import(file(), &wishes).unwrap_err().to_string();
        let wrong = Wishes { method: Some("equicap".to_owned()), ..Wishes::default() };
        assert!(text(wrong).contains("equicaps"));
        // Poses of 3x3 cannot hold translations: the projector stays as initialised.
        let trained_for = |transform: &str| {
            let wishes = Wishes { transform: Some(transform.to_owned()), ..Wishes::default() };
            import(file(), &wishes).unwrap()
        };
        let motion = trained_for("rotation+object");
        assert_eq!(motion.taken.anew.into_iter().collect::<Vec<_>>(), ["projector"]);
        // Those of photographs can.
        let photographs = trained_for("image-affine");
        assert_eq!(photographs.config.method.transform.name(), "image-affine");
        assert!(photographs.taken.anew.is_empty() && photographs.guesses.is_empty());
        // Where a checkpoint is expected, the message says how to make one.
        for text in [Checkpoint::read(file()).unwrap_err(), Checkpoint::read_metadata(file()).unwrap_err()] {
            assert!(text.to_string().contains("equicaps import"), "{text}");
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text.pth");
        std::fs::write(&path, "text").unwrap();
        let text = import(&path, &Wishes::default()).unwrap_err().to_string();
        assert!(text.contains("text.pth") && text.contains("torch.save"), "{text}");
    }
}
