//! What settings begin with: the defaults, the presets of methods and scales, and files of one's own.

use std::path::Path;

use super::Config;
use crate::error::{Error, Result};
use crate::settings::Settings;
use crate::suggest;

/// Every setting with its default.
pub(super) const DEFAULTS: &str = include_str!("../../presets/defaults.toml");

/// The scale presets: a name, what it is for, and its text. `paper` changes nothing.
const SCALES: [(&str, &str, &str); 3] = [
    ("paper", "the published settings: 256x256, 2000 epochs, batch 1024", ""),
    ("small", "minutes on one GPU: 128x128", include_str!("../../presets/small.toml")),
    ("demo", "minutes on two CPU cores: 32x32, a narrow network", include_str!("../../presets/demo.toml")),
];

/// What a scale preset changes for one method: the preset, the method, and its text.
const SCALES_OF_METHODS: [(&str, &str, &str); 1] =
    [("small", "equicaps", include_str!("../../presets/small/equicaps.toml"))];

/// How the names of preset files end.
const FILE_ENDING: &str = ".toml";

/// The methods and their presets.
const METHODS: [(&str, &str); 9] = [
    ("supervised", include_str!("../../presets/paper/supervised.toml")),
    ("vicreg", include_str!("../../presets/paper/vicreg.toml")),
    ("simclr", include_str!("../../presets/paper/simclr.toml")),
    ("simclr_augself", include_str!("../../presets/paper/simclr_augself.toml")),
    ("sen", include_str!("../../presets/paper/sen.toml")),
    ("equimod", include_str!("../../presets/paper/equimod.toml")),
    ("sie", include_str!("../../presets/paper/sie.toml")),
    ("capsie", include_str!("../../presets/paper/capsie.toml")),
    ("equicaps", include_str!("../../presets/paper/equicaps.toml")),
];

/// The names of the methods.
pub fn method_names() -> impl Iterator<Item = &'static str> {
    METHODS.iter().map(|(name, _)| *name)
}

/// The names of the scale presets and what each is for.
pub fn preset_names() -> impl Iterator<Item = (&'static str, &'static str)> {
    SCALES.iter().map(|(name, purpose, _)| (*name, *purpose))
}

impl Config {
    /// The settings of `method` at the scale of `preset` (a name, or a TOML file of one's own), to be changed
    /// further and then resolved.
    pub fn settings(method: &str, preset: &str) -> Result<Settings> {
        let Some((name, text)) = METHODS.iter().find(|(name, _)| *name == method) else {
            let hint = suggest::hint(method, method_names());
            let names = method_names().collect::<Vec<_>>().join(", ");
            return Err(Error::Setting(format!("there is no method {method:?}{hint} (methods: {names})")));
        };
        let mut settings = Settings::new(DEFAULTS)?;
        settings.overlay(&format!("preset {name}"), text)?;
        if let Some((name, _, text)) = SCALES.iter().find(|(name, _, _)| *name == preset) {
            settings.overlay(&format!("preset {name}"), text)?;
            for (_, _, text) in SCALES_OF_METHODS.iter().filter(|(s, m, _)| s == name && *m == method) {
                settings.overlay(&format!("preset {name}"), text)?;
            }
        } else if preset.ends_with(FILE_ENDING) {
            let path = Path::new(preset);
            let text = std::fs::read_to_string(path).map_err(Error::read(path))?;
            settings.overlay(preset, &text)?;
            // What the file leaves out is the method's own.
            if let Some(other) = settings.text("method").filter(|other| *other != method) {
                return Err(Error::Setting(format!(
                    "{preset} is for the method {other:?}, not for {method:?}"
                )));
            }
        } else {
            let names = SCALES.map(|(name, _, _)| name);
            let hint = suggest::hint(preset, names);
            return Err(Error::Setting(format!(
                "there is no preset {preset:?}{hint} (presets: {}, or a file that ends in .toml)",
                names.join(", ")
            )));
        }
        Ok(settings)
    }

    /// The method that `preset` is for, where it is a file that says so.
    pub fn method_of(preset: &str) -> Result<Option<String>> {
        let path = Path::new(preset);
        if !preset.ends_with(FILE_ENDING) || SCALES.iter().any(|(name, ..)| *name == preset) {
            return Ok(None);
        }
        let text = std::fs::read_to_string(path).map_err(Error::read(path))?;
        let mut settings = Settings::new(DEFAULTS)?;
        let default = settings.text("method").map(str::to_owned);
        settings.overlay(preset, &text)?;
        Ok(settings.text("method").map(str::to_owned).filter(|method| Some(method) != default.as_ref()))
    }
}
