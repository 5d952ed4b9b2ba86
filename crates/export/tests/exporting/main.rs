//! Networks of every method and both backbones in every format. Weights are random, and so are the running statistics:
//! an untrained network would hide mistakes behind zeros and ones.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::{Path, PathBuf};
use std::process::Command;

use engine::{Device, StoreBuilder};
use evaluate::weights::{self, Opened, Weights, Which};
use export::{Format, Part, Request};
use methods::{BackboneName, MethodConfig, MethodName, Model, Network};
use random::{Random, Stream};
use train::checkpoint::{Checkpoint, Numbers, Position};
use train::{Config, weights as network_weights};

/// A small network of `method` with random numbers everywhere, as a checkpoint at `path`.
fn checkpoint(path: &Path, method: MethodName, backbone: BackboneName, with_translation: bool) {
    let mut layers = Config::settings(method.name(), "demo").unwrap();
    let transform = if with_translation { "transform=rotation+base" } else { "transform=rotation" };
    let backbone = format!("backbone={}", backbone.name());
    let sizes = ["image_size=32", "network.width=8", "network.capsules=3", "network.projector=[12, 10, 6]"];
    for assignment in sizes.into_iter().chain([transform, &backbone]) {
        layers.set(assignment).unwrap();
    }
    let config = Config::resolve(layers).unwrap();
    let mut random = Random::new(5, Stream::new("export-tests"), 0);
    let network = Network::build(&config.method, &Device::cpu(), 3).unwrap();
    let mut checkpoint = Checkpoint {
        position: Position { epoch: 2, ..Position::default() },
        metadata: [("config", config.identity_toml().unwrap())]
            .map(|(key, value)| (key.to_owned(), value))
            .into(),
        ..Checkpoint::default()
    };
    network_weights::save(&network.store, &mut checkpoint).unwrap();
    checkpoint.tensors.retain(|name, _| !name.starts_with("optimiser."));
    for (name, stored) in &mut checkpoint.tensors {
        let Numbers::F32(values) = &mut stored.numbers else { continue };
        for value in values {
            let noise = (f64::from(random.next_u32()) / f64::from(u32::MAX) - 0.5) as f32;
            *value = if name.ends_with("running_var") { 1.0 + noise } else { *value + 0.2 * noise };
        }
    }
    checkpoint.write_to(path).unwrap();
}

fn open(path: &Path) -> (Weights, Opened) {
    let weights = weights::find(path, &Which::Newest).unwrap().remove(0);
    let opened = weights.open(&Device::cpu()).unwrap();
    (weights, opened)
}

fn request(format: Format, part: Part, out: PathBuf) -> Request {
    Request { format, part, out, half: false, check: None }
}

#[test]
fn weights_in_16_bits_are_half_the_size_and_open_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("whole.safetensors");
    checkpoint(&file, MethodName::EQUICAPS, BackboneName::ResNet18, true);
    let (weights, mut opened) = open(&file);
    let mut size = |half: bool| {
        let out = folder.path().join(format!("half_{half}.safetensors"));
        let wanted = Request { half, ..request(Format::Safetensors, Part::Projector, out.clone()) };
        let report = export::export(&weights, &mut opened, &wanted).unwrap();
        assert_eq!(report.difference > 1e-5, half, "{:e}", report.difference);
        assert!(open(&out).1.note.is_none(), "the projector is there");
        std::fs::metadata(out).unwrap().len()
    };
    let (whole, half) = (size(false), size(true));
    assert!(half < whole * 6 / 10 && half > whole * 4 / 10, "{half} of {whole} bytes");
}

/// What of a network is exported here; all transformers have the same encoder.
fn parts_of(method: MethodName, backbone: BackboneName) -> &'static [Part] {
    match (method == MethodName::SUPERVISED, backbone) {
        (true, _) => &[Part::Encoder],
        (false, BackboneName::VitTiny) => &[Part::Projector],
        (false, _) => &[Part::Encoder, Part::Projector],
    }
}

/// A Python that has ONNX Runtime, if there is one; CI demands it.
fn python() -> Option<Command> {
    let mut command = Command::new("python3");
    if let Some(packages) = std::env::var_os("EQUICAPS_ONNXRUNTIME") {
        command.env("PYTHONPATH", packages);
    }
    let has = Command::new("python3")
        .envs(command.get_envs().filter_map(|(key, value)| Some((key, value?))))
        .args(["-c", "import numpy, onnxruntime"])
        .output()
        .is_ok_and(|output| output.status.success());
    if !has {
        assert!(std::env::var_os("EQUICAPS_ONNXRUNTIME").is_none(), "there is no onnxruntime");
        eprintln!("not compared with ONNX Runtime: python3 has no onnxruntime (pip install onnxruntime)");
    }
    has.then_some(command)
}

#[test]
fn onnx_files_of_all_networks_give_the_same_features() {
    let folder = tempfile::tempdir().unwrap();
    let (mut pairs, mut outputs) = (Vec::new(), Vec::new());
    for backbone in [BackboneName::ResNet18, BackboneName::VitTiny] {
        for method in MethodName::all() {
            let name = format!("{}_{}", method.name(), backbone.name());
            let file = folder.path().join(format!("{name}.safetensors"));
            checkpoint(&file, method, backbone, method == MethodName::EQUICAPS);
            let (weights, mut opened) = open(&file);
            for &part in parts_of(method, backbone) {
                let out = folder.path().join(format!("{name}_{part:?}.onnx"));
                let check = out.with_extension("check.safetensors");
                let wanted =
                    Request { check: Some(check.clone()), ..request(Format::Onnx, part, out.clone()) };
                let report = export::export(&weights, &mut opened, &wanted).unwrap();
                assert!(report.difference < 2e-5, "{name} {part:?}: {:e}", report.difference);
                outputs.push(report.outputs.len());
                pairs.extend([out, check]);
            }
        }
    }
    assert_eq!(outputs.len(), 9 + 8 + 9);
    assert_eq!(outputs.iter().max(), Some(&3));
    if let Some(mut python) = python() {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exporting/compare.py");
        let output = python.arg(script).args(&pairs).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text.lines().count(), pairs.len() / 2, "{text}");
    }
}

#[test]
fn every_format_is_written_and_opens_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let file = path("network.safetensors");
    checkpoint(&file, MethodName::CAPSIE, BackboneName::ResNet18, false);
    let (weights, mut opened) = open(&file);
    let mut export = |format, part, out: &str| {
        export::export(&weights, &mut opened, &request(format, part, path(out))).unwrap()
    };
    let names = |files: &[PathBuf]| -> Vec<String> {
        let mut names: Vec<String> = files
            .iter()
            .map(|file| file.strip_prefix(folder.path()).unwrap().display().to_string())
            .collect();
        names.sort();
        names
    };
    let torch = export(Format::Torch, Part::Projector, "my-network.pth");
    assert_eq!(names(&torch.files), ["my-network.check.safetensors", "my-network.pth", "my_network.py"]);
    let module = std::fs::read_to_string(path("my_network.py")).unwrap();
    assert!(module.contains("self.projector = Capsules(64, 3, 4, positions=1)"), "{module}");
    let hub = export(Format::HuggingFace, Part::Encoder, "hub");
    let expected = ["README.md", "check.safetensors", "config.json", "model.py", "model.safetensors"];
    assert_eq!(names(&hub.files), expected.map(|name| format!("hub/{name}")));
    let config: serde_json::Value =
        serde_json::from_slice(&std::fs::read(path("hub/config.json")).unwrap()).unwrap();
    assert_eq!((&config["method"], &config["hidden_size"]), (&"capsie".into(), &64.into()));
    let readme = std::fs::read_to_string(path("hub/README.md")).unwrap();
    assert!(readme.contains("| epochs | 2 |") && readme.starts_with("---\n"), "{readme}");
    // Weights alone are a checkpoint of the same network: without a projector, or with.
    export(Format::Safetensors, Part::Projector, "weights.safetensors");
    let (_, mut whole) = open(&path("weights.safetensors"));
    let (_, backbone) = open(&path("hub/model.safetensors"));
    assert!(backbone.note.is_some_and(|note| note.contains("there are no embeddings")));
    let again = export::export(
        &weights,
        &mut whole,
        &request(Format::Safetensors, Part::Projector, path("again.safetensors")),
    )
    .unwrap();
    assert_eq!(again.difference, torch.difference);
    assert_eq!(
        std::fs::read(path("weights.safetensors")).unwrap(),
        std::fs::read(path("again.safetensors")).unwrap()
    );
}

#[test]
fn what_cannot_be_exported_is_said_and_nothing_is_left_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let file = path("network.safetensors");
    checkpoint(&file, MethodName::SUPERVISED, BackboneName::ResNet18, false);
    let (weights, mut opened) = open(&file);
    let mut refused = |part, out: &str| {
        export::export(&weights, &mut opened, &request(Format::Torch, part, path(out)))
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        refused(Part::Projector, "new/weights.pth"),
        "Supervised networks have no projector; leave out --with projector to export the encoder"
    );
    std::fs::write(path("weights.pth"), "precious").unwrap();
    let text = refused(Part::Encoder, "weights.pth");
    assert!(text.ends_with("weights.pth exists already; choose another name"), "{text}");
    assert_eq!(std::fs::read(path("weights.pth")).unwrap(), b"precious");
    assert!(!path("weights.py").exists() && !path("new").exists());
}

#[test]
fn the_published_sizes_are_described() {
    for method in MethodName::all() {
        let config = MethodConfig { image_size: 64, ..MethodConfig::published(method).unwrap() };
        let model = Model::init(&config, &mut StoreBuilder::new()).unwrap();
        let method = model.method();
        let parts: usize = method.parts().iter().map(|part| part.width).sum();
        let described: usize = method
            .projectors()
            .iter()
            .map(|projector| match projector {
                methods::Projector::Capsules { capsules, side, .. } => capsules * (1 + side * side),
                methods::Projector::Perceptron { widths, .. } => *widths.last().unwrap(),
            })
            .sum();
        assert_eq!(described, parts);
    }
}
