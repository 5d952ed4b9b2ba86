//! The configuration of a run: one complete structure, parsed once. Every default is spelled out once, in
//! `presets/defaults.toml` of `methods`; above the defaults come the method's preset (`presets/paper/METHOD.toml`), the
//! scale's (`small`, `demo`), a file or single settings of the user.

mod rules;
mod words;

use std::path::Path;

use dataset::{Curriculum, WarpRanges};
use engine::{AdamConfig, MuonConfig};
use methods::presets::{self, DEFAULTS, EARLIER, RETIRED, SCALES};
use methods::{MethodConfig, MethodName, Settings, Transform};
use render::Quality;
use serde::{Deserialize, Serialize};

use crate::checkpoint::Checkpoint;
use crate::error::{Error, Result};

pub use words::{
    BatchesName, LatentsName, LatentsSetting, OnBadSample, OptimiserName, PrecisionName, ScheduleName,
    SplitName,
};
use words::{curriculum, quality};

/// How the names of preset files end.
const FILE_ENDING: &str = ".toml";

/// All settings of a run. `presets/defaults.toml` explains each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Config {
    /// What makes the network and its loss.
    #[serde(flatten)]
    pub method: MethodConfig,
    pub data: String,
    pub lists: String,
    pub split: SplitName,
    pub refresh: f64,
    pub pairs_per_object: usize,
    pub batches: BatchesName,
    #[serde(with = "curriculum")]
    pub curriculum: Curriculum,
    pub seed: u64,
    pub device: String,
    pub precision: PrecisionName,
    pub epochs: u64,
    pub optimiser: OptimiserName,
    pub learning_rate: f64,
    pub schedule: ScheduleName,
    pub warmup_epochs: u64,
    pub weight_decay: f64,
    pub recompute: bool,
    pub graphs: bool,
    pub adam: Adam,
    pub muon: MuonConfig,
    pub loader: Loader,
    pub procedural: Procedural,
    pub photos: WarpRanges,
    pub probes: Probes,
    pub checkpoints: Checkpoints,
    pub guards: Guards,
    pub logging: Logging,
}

/// Adam's other numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Adam {
    pub beta1: f64,
    pub beta2: f64,
    pub epsilon: f64,
}

/// How views are loaded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Loader {
    pub workers: usize,
    pub queue: usize,
    pub on_bad_sample: OnBadSample,
}

/// How procedural data are made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Procedural {
    pub latents: LatentsSetting,
    pub views: usize,
    #[serde(with = "quality")]
    pub quality: Quality,
    pub seed: u64,
    pub memory_mib: usize,
    pub objects_mib: usize,
    pub prepared_objects: usize,
}

/// Online probes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Probes {
    pub enabled: bool,
    pub held_out_every: u64,
    pub held_out_objects: usize,
    pub held_out_passes: u64,
    pub knn: bool,
}

/// When checkpoints are written and how long they stay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Checkpoints {
    pub every_epochs: u64,
    pub every_minutes: f64,
    pub keep: usize,
    pub milestones: Vec<u64>,
}

/// When a run is stopped because it went wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Guards {
    pub every_steps: u64,
    pub explosion: f64,
    pub collapse_std: f64,
    pub collapse_rank: f64,
    pub collapse_patience: u64,
    pub collapse_after: u64,
}

/// How much is written down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Logging {
    pub every_steps: u64,
    pub image_pairs: usize,
}

/// Settings that may differ between a run and its continuation, because no weight depends on them; a key that ends
/// in a dot stands for its group.
const FREE_KEYS: [&str; 16] = [
    "data",
    "lists",
    // A checkpoint says itself what was held out.
    "split",
    "device",
    "epochs",
    "graphs",
    "loader.workers",
    "loader.queue",
    // Only an image that cannot be read makes a difference, and without "skip" it would have ended the run.
    "loader.on_bad_sample",
    "procedural.memory_mib",
    "procedural.objects_mib",
    "procedural.prepared_objects",
    "probes.knn",
    "checkpoints.",
    "guards.",
    "logging.",
];

impl Config {
    /// The configuration that `settings` describe, checked.
    pub fn resolve(settings: Settings) -> Result<Self> {
        let mut config: Self = settings.parse()?;
        config.procedural.latents = config.procedural.latents.read()?;
        config.check()?;
        Ok(config)
    }

    /// The settings of the method called `method` at the scale of `preset` (a name, or a TOML file of one's own), to be
    /// changed further and then resolved.
    pub fn settings(method: &str, preset: &str) -> Result<Settings> {
        Self::settings_for(method, preset, Transform::ROTATION.group().name)
    }

    /// The same for motions of `transform`, on which weights of losses may depend.
    pub fn settings_for(method: &str, preset: &str, transform: &str) -> Result<Settings> {
        let name: MethodName =
            method.parse().map_err(|error: methods::UnknownName| Error::setting(&error))?;
        if !preset.ends_with(FILE_ENDING) {
            return Ok(presets::at_scale(name, preset, transform)?);
        }
        let mut settings = presets::published(name)?;
        let path = Path::new(preset);
        let text = std::fs::read_to_string(path).map_err(Error::read(path))?;
        settings.overlay(preset, &text)?;
        // What the file leaves out is the method's own.
        match settings.text("method").filter(|other| *other != method) {
            Some(other) => {
                Err(Error::Setting(format!("{preset} is for the method {other:?}, not for {method:?}")))
            }
            None => Ok(settings),
        }
    }

    /// The method that `preset` is for, where it is a file that says so.
    pub fn method_of(preset: &str) -> Result<Option<String>> {
        if !preset.ends_with(FILE_ENDING) || SCALES.iter().any(|scale| scale.name == preset) {
            return Ok(None);
        }
        let path = Path::new(preset);
        let text = std::fs::read_to_string(path).map_err(Error::read(path))?;
        let mut settings = Settings::new(DEFAULTS)?;
        let default = settings.text("method").map(str::to_owned);
        settings.overlay(preset, &text)?;
        Ok(settings.text("method").map(str::to_owned).filter(|method| Some(method) != default.as_ref()))
    }

    /// The optimiser before any schedule.
    pub fn adam(&self) -> AdamConfig {
        AdamConfig {
            learning_rate: self.learning_rate,
            beta1: self.adam.beta1,
            beta2: self.adam.beta2,
            epsilon: self.adam.epsilon,
            weight_decay: self.weight_decay,
        }
    }

    /// Reads a run's `config.toml`.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(Error::read(path))?;
        Self::resolve(Self::settings_of(&path.display().to_string(), &text)?).map_err(|error| match error {
            Error::Setting(text) => Error::Setting(format!("{}: {text}", path.display())),
            other => other,
        })
    }

    /// The settings in the text of a `config.toml`, to be changed and resolved again.
    pub fn settings_of(source: &str, text: &str) -> Result<Settings> {
        let mut settings = Settings::new(DEFAULTS)?;
        settings.overlay("earlier versions", EARLIER)?;
        settings.overlay_run(source, text, RETIRED)?;
        Ok(settings)
    }

    /// The text of `config.toml`.
    pub fn to_toml(&self) -> Result<String> {
        toml::to_string(self)
            .map_err(|error| Error::Setting(format!("cannot write the configuration: {error}")))
    }

    /// Whether `key` may be changed when a run is continued: no weight depends on it.
    pub fn is_free(&self, key: &str) -> bool {
        // A learning rate that falls until the end of the run makes its length matter.
        let matters = key == "epochs" && self.schedule != ScheduleName::Constant;
        !matters
            && FREE_KEYS.iter().any(|free| key == *free || (free.ends_with('.') && key.starts_with(free)))
    }

    /// The settings that the weights depend on, as TOML, one dotted key a line.
    pub fn identity_toml(&self) -> Result<String> {
        let settings = Self::settings_of("configuration", &self.to_toml()?)?;
        let keys: Vec<String> = settings.keys().filter(|key| !self.is_free(key)).map(str::to_owned).collect();
        let table = toml::Value::Table(settings.into_table());
        let mut text = String::new();
        for key in keys {
            let value = key.split('.').try_fold(&table, |value, part| value.get(part));
            text.push_str(&format!("{key} = {}\n", value.map_or_else(String::new, ToString::to_string)));
        }
        Ok(text)
    }

    /// A hash of all settings that the weights depend on: 16 hexadecimal digits.
    pub fn identity(&self) -> Result<String> {
        Ok(format!("{:016x}", random::fnv1a(self.identity_toml()?.as_bytes())))
    }

    /// The configuration that a checkpoint's metadata hold; what the weights do not depend on is at its default.
    pub fn of_checkpoint(path: &Path, checkpoint: &Checkpoint) -> Result<Self> {
        let text = checkpoint
            .metadata
            .get("config")
            .ok_or_else(|| Error::content(path, "the checkpoint holds no configuration"))?;
        let config = Self::resolve(Self::settings_of(&path.display().to_string(), text)?)?;
        Ok(Self { split: checkpoint.split().into(), ..config })
    }
}

#[cfg(test)]
mod tests {
    use methods::PoseNorm;

    use super::*;

    #[test]
    fn every_method_resolves_at_every_scale_and_reads_back() {
        for method in MethodName::all() {
            for preset in SCALES.map(|scale| scale.name) {
                let config = Config::resolve(Config::settings(method.name(), preset).unwrap()).unwrap();
                assert_eq!(config.method.name, method);
                let text = config.to_toml().unwrap();
                let again = Config::resolve(Config::settings_of("config.toml", &text).unwrap()).unwrap();
                assert_eq!(again, config);
            }
        }
    }

    #[test]
    fn a_run_may_name_settings_that_are_gone_where_they_changed_nothing() {
        let config = Config::resolve(Config::settings("equicaps", "demo").unwrap()).unwrap();
        let with =
            |value: u64| format!("curriculum.motion_epochs = {value}\n{}", config.identity_toml().unwrap());
        let again = Config::resolve(Config::settings_of("config.toml", &with(0)).unwrap()).unwrap();
        assert_eq!(again.identity().unwrap(), config.identity().unwrap());
        let refused = Config::settings_of("config.toml", &with(40)).unwrap_err().to_string();
        assert!(refused.contains("there is no setting \"curriculum.motion_epochs\""), "{refused}");
    }

    #[test]
    fn losses_depend_on_whether_rotations_leave_a_column_alone() {
        let loss = |method: &str, preset: &str, transform: &str| {
            let settings = Config::settings_for(method, preset, transform).unwrap();
            let loss = Config::resolve(settings).unwrap().method.loss;
            (loss.equivariance, loss.variance, loss.pose_norm)
        };
        for preset in ["own", "small", "demo"] {
            let (equivariance, variance, norm) = loss("equicaps", preset, "rotation");
            assert_eq!((equivariance, norm), (20.0, PoseNorm::Whole), "{preset}");
            for transform in ["rotation+object", "rotation-4x4", "affine"] {
                let expected = (equivariance, variance, PoseNorm::Linear);
                assert_eq!(loss("equicaps", preset, transform), expected, "{preset}, {transform}");
            }
            assert_eq!(loss("equicaps", preset, "image-rotation"), (10.0, 10.0, PoseNorm::Whole), "{preset}");
            assert_eq!(loss("sie", preset, "affine"), loss("sie", preset, "rotation"));
        }
        assert_eq!(loss("equicaps", "paper", "affine"), loss("equicaps", "paper", "rotation"));
    }

    #[test]
    fn every_setting_is_in_the_configuration_and_none_besides() {
        let config = Config::resolve(Config::settings("equicaps", "paper").unwrap()).unwrap();
        let keys =
            |text: &str| -> Vec<String> { Settings::new(text).unwrap().keys().map(str::to_owned).collect() };
        assert_eq!(keys(&config.to_toml().unwrap()), keys(DEFAULTS));
        assert_eq!((config.adam(), config.schedule), (AdamConfig::default(), ScheduleName::Constant));
    }

    #[test]
    fn the_old_name_of_a_precision_is_read() {
        for (name, precision) in [("bf16", PrecisionName::Mixed), ("mixed", PrecisionName::Mixed)] {
            let mut settings = Config::settings("equicaps", "demo").unwrap();
            settings.set(&format!("precision={name}")).unwrap();
            let config = Config::resolve(settings).unwrap();
            assert_eq!(config.precision, precision);
            assert!(config.to_toml().unwrap().contains("precision = \"mixed\""));
        }
    }

    #[test]
    fn names_are_suggested() {
        let message = |method, preset| Config::settings(method, preset).unwrap_err().to_string();
        assert!(message("equicap", "demo").contains("did you mean \"equicaps\"?"));
        assert!(message("equicaps", "dmo").contains("did you mean \"demo\"?"));
        let mut settings = Config::settings("equicaps", "demo").unwrap();
        settings.set("transform=rotation+objects").unwrap();
        let message = Config::resolve(settings).unwrap_err().to_string();
        assert!(message.contains("did you mean \"rotation+object\"?"), "{message}");
        let mut settings = Config::settings("equicaps", "demo").unwrap();
        settings.set("batch=1").unwrap();
        assert!(Config::resolve(settings).unwrap_err().to_string().starts_with("batch must be at least 2"));
    }

    #[test]
    fn slips_of_the_finger_are_refused_before_anything_begins() {
        for (assignment, start) in [
            ("procedural.latents=3diebench_t", "procedural.latents is \"3diebench_t\""),
            ("photos.scale=[1.6, 0.8]", "photos.scale is 1.6 to 0.8: it ends before it begins"),
            ("procedural.latents=no/such.toml", "cannot read no/such.toml"),
            ("procedural.latents={scale=[0,1]}", "procedural.latents: the range of scale is 0 to 1"),
            ("procedural.latents={scale=[0,1}", "procedural.latents: "),
            ("photos.scale=[0, 1]", "photos.scale is 0 to 1, but must be within"),
            ("procedural.quality=best", "procedural.quality is \"best\""),
            ("procedural.memory_mib=17592186044416", "procedural.memory_mib must be at most"),
            ("loader.workers=1000000", "loader.workers must be at most"),
            ("loader.queue=1000000000", "loader.queue must be between"),
            ("probes.held_out_passes=0", "probes.held_out_objects and probes.held_out_passes"),
            ("probes.held_out_objects=0", "probes.held_out_objects and probes.held_out_passes"),
        ] {
            let mut settings = Config::settings("equicaps", "demo").unwrap();
            settings.set(assignment).unwrap();
            let message = Config::resolve(settings).map(|_| assignment).unwrap_err().to_string();
            assert!(message.starts_with(start), "{message}");
        }
    }

    #[test]
    fn a_file_with_a_setting_that_makes_no_sense_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        for wrong in ["batch = 1", "btch = 2"] {
            std::fs::write(&path, wrong).unwrap();
            let message = Config::read(&path).unwrap_err().to_string();
            let start = format!("{}: ", path.display());
            assert_eq!(message.matches(&start).count(), 1, "{message}");
        }
    }

    #[test]
    fn identity_leaves_out_what_weights_do_not_depend_on() {
        let identity = |assignment: &str| {
            let mut settings = Config::settings("equicaps", "demo").unwrap();
            settings.set(assignment).unwrap();
            Config::resolve(settings).unwrap().identity().unwrap()
        };
        let base = identity("seed=0");
        for same in [
            "epochs=9",
            "device=cuda:1",
            "checkpoints.keep=7",
            "loader.workers=3",
            "data=elsewhere",
            "lists=elsewhere",
            "loader.on_bad_sample=skip",
        ] {
            assert_eq!(identity(same), base, "{same}");
        }
        let cosine = identity("schedule=cosine");
        assert_ne!(cosine, base);
        let mut longer = Config::settings("equicaps", "demo").unwrap();
        ["schedule=cosine", "epochs=9"].iter().for_each(|text| longer.set(text).unwrap());
        assert_ne!(Config::resolve(longer).unwrap().identity().unwrap(), cosine);
        for different in ["seed=1", "batch=31", "loss.variance=9"] {
            assert_ne!(identity(different), base, "{different}");
        }
    }
}
