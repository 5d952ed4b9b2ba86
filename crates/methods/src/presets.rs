//! What settings begin with: every default, the published settings of each method, and scales. All numbers are in the
//! files of `presets/`.

use crate::registry::MethodName;
use crate::settings::{SettingError, Settings};
use crate::suggest;

/// Every setting with its default.
pub const DEFAULTS: &str = include_str!("../presets/defaults.toml");

/// What settings that a complete `config.toml` does not name were before they existed, where that is not the default.
pub const EARLIER: &str = include_str!("../presets/earlier.toml");

/// A scale preset.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Its name.
    pub name: &'static str,
    /// What it is for.
    pub purpose: &'static str,
    text: &'static str,
    /// What it changes for single methods.
    methods: &'static [(&'static str, &'static str)],
}

/// The scale presets.
pub const SCALES: [Scale; 4] = [
    Scale {
        name: "paper",
        purpose: "the published settings: 256x256, 2000 epochs, batch 1024",
        text: include_str!("../presets/paper.toml"),
        methods: &[],
    },
    Scale {
        name: "own",
        purpose: "your own objects: minutes on this machine, settings chosen from the objects and the device",
        text: include_str!("../presets/own.toml"),
        methods: &[("equicaps", include_str!("../presets/own/equicaps.toml"))],
    },
    Scale {
        name: "small",
        purpose: "minutes on one GPU: 128x128",
        text: include_str!("../presets/small.toml"),
        methods: &[("equicaps", include_str!("../presets/small/equicaps.toml"))],
    },
    Scale {
        name: "demo",
        purpose: "minutes on two CPU cores: 32x32, a narrow network",
        text: include_str!("../presets/demo.toml"),
        methods: &[("equicaps", include_str!("../presets/demo/equicaps.toml"))],
    },
];

/// The published settings of `method`.
pub fn published(method: MethodName) -> Result<Settings, SettingError> {
    let mut settings = Settings::new(DEFAULTS)?;
    settings.overlay(&format!("preset {method}"), method.preset())?;
    // A method's preset need not repeat its name.
    settings.set_key("preset", "method", method.name())?;
    Ok(settings)
}

/// The settings of `method` at the scale called `scale`.
pub fn at_scale(method: MethodName, scale: &str) -> Result<Settings, SettingError> {
    let Some(scale) = SCALES.iter().find(|known| known.name == scale) else {
        let names = SCALES.map(|scale| scale.name);
        let hint = suggest::hint(scale, names);
        return Err(SettingError(format!(
            "there is no preset {scale:?}{hint} (presets: {}, or a file that ends in .toml)",
            names.join(", ")
        )));
    };
    let mut settings = published(method)?;
    let source = format!("preset {}", scale.name);
    settings.overlay(&source, scale.text)?;
    for (_, text) in scale.methods.iter().filter(|(name, _)| *name == method.name()) {
        settings.overlay(&source, text)?;
    }
    Ok(settings)
}
