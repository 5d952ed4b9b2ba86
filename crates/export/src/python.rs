//! The network as a PyTorch module: one file for exactly this network, that needs nothing but torch. The classes are in
//! `python/`; what is written here is how they are put together.

use methods::{MEAN, Projector, STD};
use model::BackboneConfig;

use crate::network::Exported;

const RESNET: &str = include_str!("../python/resnet18.py");
const VIT: &str = include_str!("../python/vit_tiny.py");
const CAPSULES: &str = include_str!("../python/capsules.py");
const PERCEPTRON: &str = include_str!("../python/perceptron.py");
const FILES: &str = include_str!("../python/files.py");

/// The module; `weights` and `check` are the names of the files beside it.
pub(crate) fn module(exported: &Exported, weights: &str, check: &str) -> String {
    let side = exported.image_size;
    let mut text = format!(
        "\"\"\"{title}: written by `equicaps export`, for PyTorch and without other dependencies.\n\n\
         Images (batch, 3, {side}, {side}), RGB, as float32 in 0 .. 1 or uint8 in 0 .. 255 -> {outputs}.\n\
         Normalisation is part of the network. Run this file to compare with what was exported.\n\"\"\"\n\n\
         import json\nimport sys\nfrom pathlib import Path\n\n\
         import torch\nfrom torch import nn\nfrom torch.nn import functional\n\n\
         IMAGE_SIZE = {side}\nWEIGHTS = {weights}\nCHECK = {check}\nMEAN = {MEAN:?}\nSTD = {STD:?}\n",
        title = exported.title(),
        outputs = words(exported),
        // Text as JSON writes it is text as Python reads it.
        weights = serde_json::Value::from(weights),
        check = serde_json::Value::from(check),
    );
    let mut add = |part: &str| {
        text.push_str("\n\n");
        text.push_str(part);
    };
    add(match exported.backbone {
        BackboneConfig::ResNet18(_) => RESNET,
        BackboneConfig::VitTiny(_) => VIT,
    });
    let is_capsules = |projector: &Projector| matches!(projector, Projector::Capsules { .. });
    if exported.projectors.iter().any(is_capsules) {
        add(CAPSULES);
    }
    if !exported.projectors.iter().all(is_capsules) {
        add(PERCEPTRON);
    }
    add(&network(exported));
    add(FILES);
    text
}

/// `representation (batch, 512), poses (batch, 32, 3, 3)`.
fn words(exported: &Exported) -> String {
    let shape = |sides: &[usize]| sides.iter().map(|side| format!(", {side}")).collect::<String>();
    let outputs = exported.outputs();
    let words: Vec<String> =
        outputs.iter().map(|output| format!("{} (batch{})", output.name, shape(&output.shape))).collect();
    words.join(", ")
}

/// The class that puts everything together.
fn network(exported: &Exported) -> String {
    let width = exported.backbone.output_width();
    let backbone = match &exported.backbone {
        BackboneConfig::ResNet18(config) => format!("ResNet18(width={})", config.width),
        BackboneConfig::VitTiny(config) => format!(
            "VisionTransformer(IMAGE_SIZE, patch={}, width={}, depth={}, heads={})",
            config.patch, config.width, config.depth, config.heads
        ),
    };
    let (mut layers, mut calls) = (String::new(), String::new());
    for projector in &exported.projectors {
        match projector {
            Projector::Capsules { prefix, capsules, side } => {
                let (name, positions) = (prefix.trim_end_matches('.'), exported.map_size().pow(2));
                layers.push_str(&format!(
                    "        self.{name} = Capsules({width}, {capsules}, {side}, positions={positions})\n"
                ));
                calls.push_str(&format!("        activations, poses = self.{name}(features)\n"));
            }
            Projector::Perceptron { part, prefix, first, input, widths } => {
                let name = prefix.trim_end_matches('.');
                layers.push_str(&format!("        self.{name} = perceptron({input}, {widths:?})\n"));
                let columns = match *input == width {
                    true => String::new(),
                    false => format!("[:, {first}:{}]", first + input),
                };
                calls.push_str(&format!("        {} = self.{name}(representation{columns})\n", part.name()));
            }
        }
    }
    let names: Vec<String> = exported.outputs().into_iter().map(|output| output.name).collect();
    let result = match names.as_slice() {
        [one] => one.clone(),
        names => {
            let entries: Vec<String> = names.iter().map(|name| format!("\"{name}\": {name}")).collect();
            format!("{{{}}}", entries.join(", "))
        }
    };
    format!(
        "class Network(nn.Module):\n    \
         \"\"\"{words}.\"\"\"\n\n    \
         def __init__(self):\n        super().__init__()\n        \
         self.register_buffer(\"mean\", torch.tensor(MEAN).view(3, 1, 1), persistent=False)\n        \
         self.register_buffer(\"std\", torch.tensor(STD).view(3, 1, 1), persistent=False)\n        \
         self.backbone = {backbone}\n{layers}\n    \
         def forward(self, images):\n        \
         if images.dtype == torch.uint8:\n            images = images.float() / 255\n        \
         features = self.backbone((images - self.mean) / self.std)\n        \
         representation = features.mean((2, 3))\n{calls}        \
         return {result}\n",
        words = words(exported),
    )
}
