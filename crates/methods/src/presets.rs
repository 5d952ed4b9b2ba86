//! What settings begin with: every default, the published settings of each method, and scales. All numbers are in the
//! files of `presets/`.

use pose::{Group, Space};

use crate::config::Transform;
use crate::registry::MethodName;
use crate::settings::{SettingError, Settings};
use crate::suggest;

/// Every setting with its default.
pub const DEFAULTS: &str = include_str!("../presets/defaults.toml");

/// What settings that a complete `config.toml` does not name were before they existed, where that is not the default.
pub const EARLIER: &str = include_str!("../presets/earlier.toml");

/// Settings that a complete `config.toml` may still name.
pub const RETIRED: &str = include_str!("../presets/retired.toml");

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
    /// Whether its losses of EquiCaps are not weighted as published.
    has_own_weights: bool,
}

/// What is different in the losses of EquiCaps, at scales that have their own weights, where matrices have a column that
/// rotations leave alone.
fn with_column(group: &Group) -> &'static str {
    match group.space {
        Space::Object => include_str!("../presets/with_column/objects.toml"),
        Space::Image => include_str!("../presets/with_column/images.toml"),
    }
}

/// The scale presets.
pub const SCALES: [Scale; 4] = [
    Scale {
        name: "paper",
        purpose: "the published settings: 256x256, 2000 epochs, batch 1024",
        text: include_str!("../presets/paper.toml"),
        methods: &[],
        has_own_weights: false,
    },
    Scale {
        name: "own",
        purpose: "your own objects: minutes on this machine, settings chosen from the objects and the device",
        text: include_str!("../presets/own.toml"),
        methods: &[("equicaps", include_str!("../presets/own/equicaps.toml"))],
        has_own_weights: true,
    },
    Scale {
        name: "small",
        purpose: "minutes on one GPU: 128x128",
        text: include_str!("../presets/small.toml"),
        methods: &[("equicaps", include_str!("../presets/small/equicaps.toml"))],
        has_own_weights: true,
    },
    Scale {
        name: "demo",
        purpose: "minutes on two CPU cores: 32x32, a narrow network",
        text: include_str!("../presets/demo.toml"),
        methods: &[("equicaps", include_str!("../presets/demo/equicaps.toml"))],
        has_own_weights: true,
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

/// The settings of `method` at the scale called `scale` for motions of `transform`; an unknown one changes nothing.
pub fn at_scale(method: MethodName, scale: &str, transform: &str) -> Result<Settings, SettingError> {
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
    let group = transform.parse::<Transform>().ok().map(Transform::group);
    let group = group.filter(|group| group.has_column_left_alone());
    if let Some(group) = group.filter(|_| scale.has_own_weights && method == MethodName::EQUICAPS) {
        settings.overlay(&source, with_column(&group))?;
    }
    Ok(settings)
}
