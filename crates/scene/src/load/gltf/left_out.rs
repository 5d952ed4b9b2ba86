//! What materials of glTF ask for and nobody makes here: named once a file, and only where it would show.

use super::super::files::Files;
use serde_json::Value;

/// Extensions of materials that are not made, what they are called, and where one shows.
const EXTENSIONS: [(&str, &str, Shows); 12] = [
    ("KHR_materials_anisotropy", "anisotropy", |it| is_set(it, "anisotropyStrength")),
    ("KHR_materials_clearcoat", "clearcoat", |it| is_set(it, "clearcoatFactor")),
    ("KHR_materials_diffuse_transmission", "diffuse transmission", |it| {
        is_set(it, "diffuseTransmissionFactor")
    }),
    ("KHR_materials_dispersion", "dispersion", |it| is_set(it, "dispersion")),
    ("KHR_materials_ior", "another index of refraction than 1.5", |it| !is_near(&it["ior"], 1.5, 1.5)),
    ("KHR_materials_iridescence", "iridescence", |it| is_set(it, "iridescenceFactor")),
    ("KHR_materials_pbrSpecularGlossiness", "another colour of the gloss than 4 % grey", |it| {
        !are_near(&it["specularFactor"], 0.04, 1.0) || !it["specularGlossinessTexture"].is_null()
    }),
    ("KHR_materials_sheen", "sheen", |it| !are_near(&it["sheenColorFactor"], 0.0, 0.0)),
    ("KHR_materials_specular", "strength and colour of the gloss", |it| {
        let has_map = !it["specularTexture"].is_null() || !it["specularColorTexture"].is_null();
        has_map
            || !is_near(&it["specularFactor"], 1.0, 1.0)
            || !are_near(&it["specularColorFactor"], 1.0, 1.0)
    }),
    ("KHR_materials_transmission", "transmission", |it| is_set(it, "transmissionFactor")),
    ("KHR_materials_unlit", "surfaces without light", |_| true),
    ("KHR_materials_volume", "volume", |it| is_set(it, "thicknessFactor")),
];
/// Extensions that are made, or change nothing of the materials that are shown.
const MADE: [&str; 2] = ["KHR_materials_emissive_strength", "KHR_materials_variants"];

type Shows = fn(&Value) -> bool;

fn is_set(extension: &Value, factor: &str) -> bool {
    !is_near(&extension[factor], 0.0, 0.0)
}

/// Whether a number is `wanted`, or is not there and `otherwise` is.
fn is_near(value: &Value, wanted: f64, otherwise: f64) -> bool {
    (value.as_f64().unwrap_or(otherwise) - wanted).abs() < 1e-3
}

/// The same for all numbers of a list.
fn are_near(values: &Value, wanted: f64, otherwise: f64) -> bool {
    match values.as_array() {
        Some(values) => values.iter().all(|value| is_near(value, wanted, otherwise)),
        None => is_near(&Value::Null, wanted, otherwise),
    }
}

/// Warns of what is left out of the materials of a document.
pub fn warn(document: &Value, files: &mut Files) {
    let path = files.path.display().to_string();
    let materials = document["materials"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (index, material) in materials.iter().enumerate() {
        let name = match material["name"].as_str() {
            Some(name) if !name.is_empty() => format!("material {name:?}"),
            _ => format!("material {index}"),
        };
        let mut warn = |what: &str| {
            files.warn_once(what, format!("{path}: {name}: {what} is not supported and left out"));
        };
        let occlusion = &material["occlusionTexture"];
        if !occlusion.is_null() && !is_near(&occlusion["strength"], 0.0, 1.0) {
            warn("the map of occlusion");
        }
        for (extension, value) in material["extensions"].as_object().into_iter().flatten() {
            match EXTENSIONS.iter().find(|(name, _, _)| name == extension) {
                Some((_, what, shows)) if shows(value) => warn(&format!("{what} ({extension})")),
                None if !MADE.contains(&extension.as_str()) => warn(extension),
                _ => {}
            }
        }
    }
}
