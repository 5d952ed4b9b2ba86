//! The folder for the Hugging Face hub: `config.json` and a README with what is known about the network.

use std::path::Path;

use dataset::SplitBy;
use evaluate::Results;
use evaluate::results;
use evaluate::weights::Weights;
use methods::{MEAN, Projector, STD};
use model::BackboneConfig;
use serde_json::{Value, json};
use train::{RunFolder, environment};

use crate::network::Exported;

/// `config.json`.
pub(crate) fn config(exported: &Exported) -> Value {
    let outputs: serde_json::Map<String, Value> =
        exported.outputs().into_iter().map(|output| (output.name, json!(output.shape))).collect();
    let backbone = match &exported.backbone {
        BackboneConfig::ResNet18(config) => json!({ "width": config.width }),
        BackboneConfig::VitTiny(config) => json!({
            "patch_size": config.patch,
            "width": config.width,
            "depth": config.depth,
            "heads": config.heads,
        }),
    };
    let projectors: Vec<Value> = exported
        .projectors
        .iter()
        .map(|projector| match projector {
            Projector::Capsules { prefix, capsules, side } => {
                json!({ "prefix": prefix, "capsules": capsules, "pose_side": side })
            }
            Projector::Perceptron { part, prefix, first, input, widths } => json!({
                "prefix": prefix,
                "output": part.name(),
                "first_column": first,
                "columns": input,
                "widths": widths,
            }),
        })
        .collect();
    json!({
        "model_type": "equicaps",
        "architectures": ["Network"],
        "method": exported.method.name(),
        "backbone": exported.backbone_name.name(),
        "backbone_config": backbone,
        "projectors": projectors,
        "trained_for": exported.transform.name(),
        "epochs": exported.epochs,
        "image_size": exported.image_size,
        "num_channels": 3,
        "image_mean": MEAN.map(decimal),
        "image_std": STD.map(decimal),
        "normalisation_inside": true,
        "hidden_size": exported.backbone.output_width(),
        "outputs": outputs,
        "parameters": exported.parameters(),
        "weights_key": exported.weights_key,
        "torch_dtype": "float32",
        "equicaps_version": env!("CARGO_PKG_VERSION"),
    })
}

/// The number with the digits that it was written with.
fn decimal(value: f32) -> f64 {
    value.to_string().parse().unwrap_or(f64::from(value))
}

/// `README.md`; `difference` is what the export's own check found.
pub(crate) fn readme(exported: &Exported, weights: &Weights, difference: f64) -> String {
    let side = exported.image_size;
    let mut tags = vec!["equicaps", "self-supervised-learning", "equivariance", "pose"];
    if exported.projectors.iter().any(|projector| matches!(projector, Projector::Capsules { .. })) {
        tags.push("capsules");
    }
    let tags: String = tags.iter().map(|tag| format!("- {tag}\n")).collect();
    let facts: String =
        facts(exported, weights).iter().map(|(key, value)| format!("| {key} | {value} |\n")).collect();
    let outputs: String = exported
        .outputs()
        .iter()
        .map(|output| {
            let shape: String = output.shape.iter().map(|side| format!(", {side}")).collect();
            format!("| `{}` | (batch{shape}) | {} |\n", output.name, output.meaning)
        })
        .collect();
    let call = match exported.projectors.is_empty() {
        true => "representation = network(images)",
        false => "outputs = network(images)            # a dictionary by the names below",
    };
    let measured = measured(exported, weights).unwrap_or_default();
    format!(
        "---\nlibrary_name: pytorch\npipeline_tag: image-feature-extraction\ntags:\n{tags}---\n\n\
         # {name}\n\n{title}. {summary}.\n\n\
         | | |\n|---|---|\n{facts}\n\
         ## Use\n\n```python\nimport torch\nfrom model import load, prepare  # model.py is in this folder; torch is all it needs\n\n\
         network = load()                     # reads model.safetensors beside it\n\
         images = torch.randint(0, 256, (4, 3, 480, 640), dtype=torch.uint8)  # yours: RGB, any size\n\
         images = prepare(images)             # (4, 3, {side}, {side})\n{call}\n```\n\n\
         Images are RGB, (batch, 3, {side}, {side}), float32 in 0 .. 1 or uint8; normalisation is part of the network.\n\n\
         | output | shape | |\n|---|---|---|\n{outputs}\n\
         `python model.py` compares the outputs for the 8 images in `check.safetensors` with those of the program that \
         trained the network; the export's own check found a largest difference of {difference:.1e} of the features' norm. \
         `model.safetensors` is also a checkpoint for `equicaps embed`, `neighbours` and `train --init-from`.\n\
         {measured}",
        name = exported.name,
        title = exported.title(),
        summary = capitalised(exported.method.summary()),
    )
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn run_of(weights: &Weights) -> Option<RunFolder> {
    let folder = weights.file.as_deref()?.parent().and_then(Path::parent)?;
    RunFolder::open(folder).ok()
}

fn facts(exported: &Exported, weights: &Weights) -> Vec<(&'static str, String)> {
    let config = &weights.config;
    let mut facts = vec![
        ("method", exported.method.title().to_owned()),
        ("backbone", exported.backbone_name.name().to_owned()),
        ("parameters", exported.parameters().to_string()),
        ("image size", format!("{0} x {0}", exported.image_size)),
    ];
    if exported.method.learns_pose() {
        facts.insert(3, ("trained for", exported.transform.name().to_owned()));
    }
    facts.extend(exported.epochs.map(|epochs| ("epochs", epochs.to_string())));
    facts.push(("batch size, at most", config.method.batch.to_string()));
    facts.push(("seed", config.seed.to_string()));
    let sessions = run_of(weights).and_then(|run| environment::read(&run.environment_path()).ok());
    if let Some(last) = sessions.and_then(|sessions| sessions.into_iter().next_back()) {
        // A card is for others: folders of this machine are not.
        let (path, rest) = last.data.split_once(": ").unwrap_or(("", &last.data));
        let name = path.trim_end_matches('/').rsplit('/').next().filter(|name| !name.is_empty());
        facts.push(("data", name.map_or_else(|| rest.to_owned(), |name| format!("{name}: {rest}"))));
        facts.push(("trained on", last.device));
        let commit = last.commit.map_or_else(String::new, |commit| format!(" ({commit})"));
        facts.push(("program", format!("equicaps {}{commit}", last.version)));
    }
    facts.push(("hash of the weights", exported.weights_key.clone()));
    facts
}

/// The results of an evaluation of exactly these weights, where the run has one.
fn measured(exported: &Exported, weights: &Weights) -> Option<String> {
    let folder = run_of(weights)?.root().join("evaluation").join(weights.folder_name());
    let found = Results::read(&folder.join(results::FILE)).ok()?;
    if found.subject.weights_key != exported.weights_key {
        return None;
    }
    // A card is for others: folders of this machine are not.
    let name = found.data.path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let (train, val) = (found.data.train_objects, found.data.val_objects);
    let objects = match found.data.split {
        SplitBy::Objects => format!("{train} training and {val} held-out objects"),
        SplitBy::Views => format!("{train} objects, held out: new views of them"),
    };
    let latents = match found.data.kind.as_str() {
        "" | "imported" => String::new(),
        kind => format!(", latents of {kind}"),
    };
    let mut text = format!(
        "\n## Measured\n\nFrozen features, probes on {name} ({objects}{latents}).\n\n\
         | from | task | value | without any information |\n|---|---|---|---|\n"
    );
    for (from, probes) in [("representation", &found.representations), ("embedding", &found.embeddings)] {
        for (task, probe) in probes {
            let (name, value, floor) = (task.name(), probe.value.value, probe.floor);
            text.push_str(&format!("| {from} | {name} | {value:.4} | {floor:.4} |\n"));
        }
    }
    text.push_str("\nClassification is top-1 accuracy as a share of 1, the other tasks are R2.\n");
    if let Some(message) = found.pose_verdict().and_then(|verdict| verdict.message) {
        text.push_str(&format!("\n**{}.**\n", capitalised(&message)));
    }
    Some(text)
}
