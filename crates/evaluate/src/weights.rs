//! The weights to evaluate: checkpoints of a run, or a single file, with the name that tables give them.

use std::path::{Path, PathBuf};

use engine::Device;
use methods::{MethodConfig, MethodName, Regularise, Task};
use train::checkpoint::{self, Checkpoint};
use train::config::SplitName;
use train::weights::Loaded;
use train::{Config, RunFolder, TrainedOn};

use crate::builtin;
use crate::error::{Error, Result};
use crate::features::weights_key;
use crate::network::NetworkEncoder;
use crate::results::Subject;

/// A file of weights and how to read it.
#[derive(Clone, Debug)]
pub struct Weights {
    /// The configuration of the network.
    pub config: Config,
    /// The file; `None` for the untrained network.
    pub file: Option<PathBuf>,
    /// Complete epochs of training.
    pub epochs: Option<u64>,
    /// Steps of training, where they are known.
    pub steps: Option<u64>,
    /// Whether training stopped within an epoch.
    pub is_within_epoch: bool,
    /// What they were trained on, where that is known.
    pub trained_on: Option<TrainedOn>,
    /// Name of the run or the file.
    pub name: String,
    /// Side of the images in pixels, where it is not the one that the network was trained at.
    pub other_size: Option<usize>,
}

/// Which checkpoints of a run are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// The newest.
    Newest,
    /// All that were kept.
    All,
    /// Those at the end of these epochs.
    Epochs(Vec<u64>),
    /// The one of this epoch, be it at its end or within it.
    Within(u64),
    /// None: the network before training.
    Untrained,
}

/// Where a run's evaluations keep the results of the network before training.
pub const UNTRAINED_FOLDER: &str = "untrained";

/// Where they keep those of the network after so many epochs.
pub fn epoch_folder(epochs: u64) -> String {
    format!("epoch_{epochs:05}")
}

/// The weights that `path` (a run's folder or a checkpoint) and `which` name.
pub fn find(path: &Path, which: &Which) -> Result<Vec<Weights>> {
    if path.is_file() || builtin::is_named(path) {
        return Ok(vec![of_file(path)?]);
    }
    let run = RunFolder::open(path)?;
    let config = run.config()?;
    let weights = |file: Option<PathBuf>, epochs| Weights {
        config: config.clone(),
        file,
        epochs,
        steps: None,
        is_within_epoch: false,
        trained_on: None,
        name: run.name(),
        other_size: None,
    };
    if *which == Which::Untrained {
        return Ok(vec![weights(None, Some(0))]);
    }
    let all = checkpoint::list(&run.checkpoints_path())?;
    let chosen: Vec<(u64, PathBuf)> = match which {
        Which::Newest => all.last().cloned().into_iter().collect(),
        Which::Epochs(epochs) => of_epochs(epochs, false, all, path)?,
        Which::Within(epoch) => of_epochs(&[*epoch], true, all, path)?,
        _ => all,
    };
    if chosen.is_empty() {
        return Err(Error::Request(format!(
            "{} has no checkpoint yet; continue it with: equicaps train --resume {}",
            path.display(),
            dataset::shell_word(path)
        )));
    }
    chosen
        .into_iter()
        .map(|(_, file)| {
            let checkpoint = Checkpoint::read_metadata(&file)?;
            let mut weights = weights(Some(file), Some(checkpoint.position.epoch));
            weights.config.split = checkpoint.split().into();
            Ok(weights.trained_as(&checkpoint))
        })
        .collect()
}

/// Those of `all` checkpoints of the run at `path` that belong to `epochs`: written at their ends or, if `within`, wherever. What
/// was written within an epoch, by an interruption, has the name that the end of the epoch would have.
fn of_epochs(
    epochs: &[u64],
    within: bool,
    all: Vec<(u64, PathBuf)>,
    path: &Path,
) -> Result<Vec<(u64, PathBuf)>> {
    let position = |file: &Path| Checkpoint::read_metadata(file).map(|checkpoint| checkpoint.position);
    // A file that cannot be read is complained about where it is asked for.
    let is_begun = |file: &Path| position(file).is_ok_and(|at| at.step_in_epoch > 0);
    let newest = all.last().map(|(_, file)| file.clone());
    let (begun, kept): (Vec<_>, Vec<_>) = all.into_iter().partition(|(_, file)| !within && is_begun(file));
    let Some(missing) = epochs.iter().find(|epoch| !kept.iter().any(|(kept, _)| kept == *epoch)) else {
        return Ok(kept.into_iter().filter(|(epoch, _)| epochs.contains(epoch)).collect());
    };
    let path = path.display();
    let kept = match &kept[..] {
        [] => "none".to_owned(),
        kept => kept.iter().map(|(epoch, _)| epoch.to_string()).collect::<Vec<_>>().join(", "),
    };
    Err(Error::Request(match begun.into_iter().find(|(epoch, _)| epoch == missing) {
        Some((_, file)) => {
            let taken = match newest.as_ref() == Some(&file) {
                true => "--epochs newest takes".to_owned(),
                false => format!("is evaluated by its own name, {}", dataset::shell_word(&file)),
            };
            let at = position(&file)?.describe();
            format!(
                "{path} keeps no checkpoint of the end of epoch {missing} (kept: {kept}), only one of {at}, which {taken}"
            )
        }
        None => format!("{path} keeps no checkpoint of epoch {missing} (kept: {kept})"),
    }))
}

/// A checkpoint knows its own configuration.
fn of_file(path: &Path) -> Result<Weights> {
    let read = |path: &Path| match builtin::is_named(path) {
        true => Checkpoint::parse(path, builtin::BYTES),
        false => Checkpoint::read_metadata(path),
    };
    let checkpoint = read(path).map_err(|error| {
        let ending = path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default();
        let (shown, word) = (path.display(), dataset::shell_word(path));
        match ending.as_str() {
            "safetensors" => error.into(),
            "pth" | "pt" => Error::Request(format!(
                "{shown} is a PyTorch file; convert it with: equicaps import {word} --out weights.safetensors"
            )),
            _ => Error::Request(format!(
                "{shown} is not a checkpoint; expected a run's folder or a .safetensors file"
            )),
        }
    })?;
    let mut config = Config::of_checkpoint(path, &checkpoint)?;
    if TrainedOn::of_checkpoint(&checkpoint).is_none() {
        config.split = SplitName::Auto;
    }
    let weights = Weights {
        config,
        file: Some(path.to_path_buf()),
        epochs: Some(checkpoint.position.epoch),
        steps: None,
        is_within_epoch: false,
        trained_on: None,
        name: path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned()),
        other_size: None,
    };
    Ok(weights.trained_as(&checkpoint))
}

/// A network that is ready to be used.
#[derive(Debug)]
pub struct Opened {
    /// The network.
    pub encoder: NetworkEncoder,
    /// A hash of its weights.
    pub key: String,
    /// Why there are no embeddings, where there are none.
    pub note: Option<String>,
}

impl Weights {
    /// The same with what `checkpoint` says of how long and on what it was trained.
    fn trained_as(self, checkpoint: &Checkpoint) -> Self {
        let position = checkpoint.position;
        // Imported weights know their epochs, but no steps.
        let steps = Some(position.step).filter(|step| *step > 0 || position.epoch == 0);
        let is_within_epoch = position.step_in_epoch > 0;
        Self { steps, is_within_epoch, trained_on: TrainedOn::of_checkpoint(checkpoint), ..self }
    }

    /// The same for images of another side: positions of a transformer are interpolated.
    pub fn at_size(mut self, size: Option<usize>) -> Self {
        let trained = &mut self.config.method.image_size;
        self.other_size = size.filter(|size| size != trained);
        *trained = size.unwrap_or(*trained);
        self
    }

    /// Opens the network on `device`; reads and verifies its file once.
    pub fn open(&self, device: &Device) -> Result<Opened> {
        let bytes = self.bytes()?;
        let checkpoint = match (&self.file, &bytes) {
            (Some(file), Some(bytes)) => Some(Checkpoint::parse(file, bytes)?),
            _ => None,
        };
        let key = self.key_of(bytes)?;
        let mut config = self.config.method.clone();
        // The number of classes matters to supervised networks only, whose head says it.
        let head = checkpoint.as_ref().and_then(|checkpoint| checkpoint.tensors.get("head.0.bias"));
        if let (Some(head), Task::Classification) = (head, config.network.task) {
            config.classes = head.shape.first().copied().unwrap_or(config.classes);
        }
        let opened = NetworkEncoder::open(&config, checkpoint.as_ref(), self.config.seed, device);
        let (encoder, loaded) = opened.map_err(|error| match (&self.file, error) {
            (Some(file), Error::Train(error)) => Error::Request(format!("{}: {error}", file.display())),
            (_, error) => error,
        })?;
        let note = (loaded == Some(Loaded::BackboneOnly)).then(|| {
            let why = match self.other_size {
                Some(size) => format!("the projector does not take images of {size} pixels"),
                None => "a backbone without a projector".to_owned(),
            };
            format!("{}: {why}; there are no embeddings", self.name)
        });
        Ok(Opened { encoder, key, note })
    }

    /// A hash of the weights.
    pub fn key(&self) -> Result<String> {
        self.key_of(self.bytes()?)
    }

    fn bytes(&self) -> Result<Option<Vec<u8>>> {
        let read = |file: &PathBuf| match builtin::is_named(file) {
            true => Ok(builtin::BYTES.to_vec()),
            false => std::fs::read(file).map_err(dataset::Error::read(file)),
        };
        Ok(self.file.as_ref().map(read).transpose()?)
    }

    fn key_of(&self, bytes: Option<Vec<u8>>) -> Result<String> {
        let Some(mut bytes) = bytes else {
            return Ok(weights_key(format!("untrained {}", self.config.identity()?).as_bytes()));
        };
        // Features of another image size are other features.
        bytes.extend(self.other_size.iter().flat_map(|size| size.to_le_bytes()));
        Ok(weights_key(&bytes))
    }

    /// What results say about it, whose hash is `key`; `several` checkpoints of one run are told apart by their epoch, or step.
    pub fn subject(&self, key: &str, several: bool) -> Subject {
        let MethodConfig { name: method, backbone, transform, network, .. } = &self.config.method;
        let (shown, untrained) = (method.title(), self.file.is_none());
        let is_supervised = *method == MethodName::SUPERVISED && !untrained;
        let task = if is_supervised { network.task.name().to_owned() } else { String::new() };
        let mut name = if untrained { format!("untrained ({shown})") } else { shown.to_owned() };
        if !task.is_empty() {
            name = format!("{name} ({task})");
        }
        if several && !untrained {
            name = match self.steps.filter(|_| self.is_within_epoch) {
                Some(steps) => format!("{name} @ step {steps}"),
                None => format!("{name} @ {}", self.epochs.unwrap_or_default()),
            };
        }
        let has_capsules = [MethodName::EQUICAPS, MethodName::CAPSIE].contains(method);
        Subject {
            name,
            method: if untrained { "untrained" } else { method.name() }.to_owned(),
            backbone: backbone.name().to_owned(),
            capsules: has_capsules.then_some(network.capsules),
            trained_for: transform.name().to_owned(),
            epochs: self.epochs,
            steps: self.steps,
            trained_on: self.trained_on.as_ref().map(TrainedOn::key).unwrap_or_default(),
            checkpoint: self.file.as_ref().map_or_else(String::new, |file| file.display().to_string()),
            weights_key: key.to_owned(),
            task,
            ablation: self.ablation(),
        }
    }

    /// The published loss-term ablation that the configuration is; empty for the full loss.
    fn ablation(&self) -> String {
        let loss = &self.config.method.loss;
        if self.config.method.name != MethodName::EQUICAPS {
            return String::new();
        }
        let poses = loss.regularise == Regularise::Poses;
        let name = match (loss.invariance != 0.0, loss.mean_entropy != 0.0, poses) {
            (false, false, true) => "only-equivariance",
            (false, false, false) => "no-mean-entropy-no-invariance",
            (false, true, true) => "only-equivariance-with-mean-entropy",
            (false, true, false) => "no-invariance",
            (true, true, false) => "",
            (true, false, false) => "no-mean-entropy",
            (true, false, true) => "no-mean-entropy-regularised-poses",
            (true, true, true) => "regularised-poses",
        };
        name.to_owned()
    }

    /// A short name for a folder: `epoch_00060`, `step_00000277` within an epoch, `untrained`.
    pub fn folder_name(&self) -> String {
        match (&self.file, self.epochs) {
            (None, _) => UNTRAINED_FOLDER.to_owned(),
            (Some(_), Some(_)) if self.is_within_epoch => {
                format!("step_{:08}", self.steps.unwrap_or_default())
            }
            (Some(_), Some(epochs)) => epoch_folder(epochs),
            (Some(file), None) => file
                .file_stem()
                .map_or_else(|| "weights".to_owned(), |stem| stem.to_string_lossy().into_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_within_an_epoch_have_folders_and_names_of_their_own() {
        let config = Config::resolve(Config::settings("equicaps", "demo").unwrap()).unwrap();
        let at = |epoch: u64, step: u64, step_in_epoch: u64| {
            let mut checkpoint = Checkpoint::of_weights(&config, epoch).unwrap();
            (checkpoint.position.step, checkpoint.position.step_in_epoch) = (step, step_in_epoch);
            let weights = Weights {
                config: config.clone(),
                file: Some(PathBuf::from("w.safetensors")),
                epochs: Some(epoch),
                steps: None,
                is_within_epoch: false,
                trained_on: None,
                name: "w".to_owned(),
                other_size: None,
            };
            let weights = weights.trained_as(&checkpoint);
            let subject = weights.subject("key", true);
            (weights.folder_name(), subject.name, subject.steps)
        };
        let named =
            |folder: &str, name: &str, steps| (folder.to_owned(), format!("EquiCaps @ {name}"), steps);
        assert_eq!(at(1, 150, 0), named("epoch_00001", "1", Some(150)));
        assert_eq!(at(1, 277, 127), named("step_00000277", "step 277", Some(277)));
        assert_eq!(at(0, 136, 136), named("step_00000136", "step 136", Some(136)));
        // Imported weights.
        assert_eq!(at(100, 0, 0), named("epoch_00100", "100", None));
    }

    #[test]
    fn an_epoch_is_its_end_and_what_was_left_within_it_is_told_of() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("run");
        let config = Config::resolve(Config::settings("equicaps", "demo").unwrap()).unwrap();
        drop(train::OwnedRun::create(&path, &config).unwrap());
        let folder = RunFolder::open(&path).unwrap().checkpoints_path();
        let save = |epoch: u64, step: u64, step_in_epoch: u64| {
            let mut checkpoint = Checkpoint::of_weights(&config, epoch).unwrap();
            (checkpoint.position.step, checkpoint.position.step_in_epoch) = (step, step_in_epoch);
            checkpoint.write(&folder).unwrap()
        };
        let steps = |which: &Which| -> Vec<Option<u64>> {
            find(&path, which).unwrap().iter().map(|weights| weights.steps).collect()
        };
        let refused = |epochs: &[u64]| find(&path, &Which::Epochs(epochs.to_vec())).unwrap_err().to_string();
        let run = path.display();
        // Interrupted within the first epoch.
        save(0, 3, 3);
        assert_eq!(
            refused(&[1]),
            format!(
                "{run} keeps no checkpoint of the end of epoch 1 (kept: none), only one of step 3 of epoch 1, which \
                 --epochs newest takes"
            )
        );
        // Gone on with, and interrupted within the second.
        save(1, 5, 0);
        let within = save(1, 7, 2);
        assert_eq!(steps(&Which::Epochs(vec![1])), [Some(5)]);
        assert_eq!([Which::Newest, Which::Within(2)].map(|which| steps(&which)), [[Some(7)], [Some(7)]]);
        assert_eq!(steps(&Which::All), [Some(5), Some(7)]);
        let message = refused(&[1, 2]);
        assert!(
            message.contains("epoch 2 (kept: 1), only one of step 2 of epoch 2, which --epochs newest"),
            "{message}"
        );
        assert_eq!(refused(&[9]), format!("{run} keeps no checkpoint of epoch 9 (kept: 1)"));
        // What an interruption left stays where no checkpoint was due at the end of its epoch.
        save(3, 15, 0);
        let message = refused(&[2]);
        let named = format!(
            "(kept: 1, 3), only one of step 2 of epoch 2, which is evaluated by its own name, {}",
            within.display()
        );
        assert!(message.ends_with(&named), "{message}");
        // Someone keeps the end of it under a name of their own.
        let mut ended = Checkpoint::of_weights(&config, 2).unwrap();
        ended.position.step = 10;
        ended.write_to(&folder.join("epoch_2.safetensors")).unwrap();
        assert_eq!(steps(&Which::Epochs(vec![2])), [Some(10)]);
    }
}
