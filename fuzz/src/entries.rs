//! One function for every parser: bytes of unknown origin in, nothing out. Errors are what parsers are for; a panic, a
//! hang or memory out of proportion is a defect. The functions are used by the targets of cargo-fuzz, by the stable
//! driver (`drive`), and by an ordinary test that gives them all inputs that once found something.

use std::io::Cursor;
use std::path::Path;

/// A parser: its name, and the function.
pub type Entry = (&'static str, fn(&[u8]));

/// All parsers.
pub const ALL: [Entry; 23] = [
    ("obj", |bytes| mesh("obj", bytes)),
    ("mtl", mtl),
    ("off", |bytes| mesh("off", bytes)),
    ("ply", |bytes| mesh("ply", bytes)),
    ("stl", |bytes| mesh("stl", bytes)),
    ("gltf", |bytes| mesh("gltf", bytes)),
    ("glb", |bytes| mesh("glb", bytes)),
    ("texture", texture),
    ("npy", npy),
    ("object_list", object_list),
    ("views", views),
    ("tar", tar),
    ("jpeg", jpeg),
    ("image", image),
    ("dataset", dataset),
    ("index", index),
    ("checkpoint", checkpoint),
    ("fixture", fixture),
    ("torch_file", torch_file),
    ("config", config),
    ("metrics", metrics),
    ("results", results),
    ("environment", environment),
];

/// Runs `work` on a file called `name` that holds `bytes`.
fn with_file(name: &str, bytes: &[u8], work: impl FnOnce(&Path)) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).expect("writes");
    work(&path);
}

fn mesh(ending: &str, bytes: &[u8]) {
    with_file(&format!("mesh.{ending}"), bytes, |path| {
        let options = scene::LoadOptions::under(path.parent().expect("a folder"));
        if let Ok(mut loaded) = scene::load_mesh(path, &options) {
            scene::normalise(&mut loaded.mesh);
        }
    });
}

fn mtl(bytes: &[u8]) {
    with_file("mesh.mtl", bytes, |path| {
        let folder = path.parent().expect("a folder");
        let mesh = folder.join("mesh.obj");
        let text = "mtllib mesh.mtl\nv 0 0 0\nv 1 0 0\nv 0 1 0\nusemtl a\nf 1 2 3\n";
        std::fs::write(&mesh, text).expect("writes");
        let _ = scene::load_mesh(&mesh, &scene::LoadOptions::under(folder));
    });
}

/// An image that a mesh wears.
fn texture(bytes: &[u8]) {
    with_file("x.png", bytes, |path| {
        let folder = path.parent().expect("a folder");
        let mesh = folder.join("mesh.obj");
        let text = "mtllib mesh.mtl\nv 0 0 0\nv 1 0 0\nv 0 1 0\nvt 0 0\nusemtl a\nf 1/1 2/1 3/1\n";
        std::fs::write(&mesh, text).expect("writes");
        std::fs::write(folder.join("mesh.mtl"), "newmtl a\nmap_Kd x.png\n").expect("writes");
        let _ = scene::load_mesh(&mesh, &scene::LoadOptions::under(folder));
    });
}

fn npy(bytes: &[u8]) {
    let _ = scene::npy::parse(bytes);
}

fn object_list(bytes: &[u8]) {
    for name in ["list.txt", "list.npy"] {
        with_file(name, bytes, |path| {
            let _ = scene::objects::read_list(path);
        });
    }
}

fn views(bytes: &[u8]) {
    let _ = scene::views::parse_views(bytes, Path::new("views.json"));
}

fn tar(bytes: &[u8]) {
    let _ = dataset::tar::members(&mut Cursor::new(bytes), Path::new("fuzz.tar"));
}

fn jpeg(bytes: &[u8]) {
    let _ = dataset::jpeg::decode(bytes);
}

fn image(bytes: &[u8]) {
    with_file("image.jpg", bytes, |path| {
        if let Ok(list) = dataset::image_list::collect(&[path.into()]) {
            list.images.iter().for_each(|image| {
                let _ = image.load(32);
            });
        }
    });
}

/// The first byte says which file of a dataset the others are.
fn dataset(bytes: &[u8]) {
    let Some((&which, bytes)) = bytes.split_first() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    for (name, good) in small_dataset() {
        std::fs::write(folder.path().join(name), good).expect("writes");
    }
    let names =
        ["dataset.json", "classes.json", "train_images.npy", "train_labels.npy", "checksums_train.npy"];
    let names = [names.as_slice(), &["all_latents_train.npy"]].concat();
    std::fs::write(folder.path().join(names[usize::from(which) % names.len()]), bytes).expect("writes");
    if let Ok(dataset) = dataset::Dataset::open(folder.path()) {
        let _ = dataset::check::check(&dataset, &|| {});
    }
}

/// The lists of a dataset of one object with one view, whose image is missing.
fn small_dataset() -> Vec<(&'static str, Vec<u8>)> {
    let latents = scene::npy::encode_f64(&[1, 7], &[0.5; 7]);
    vec![
        ("train_images.npy", scene::npy::encode_unicode(&[1], &["/a/b/".to_owned()])),
        ("train_labels.npy", scene::npy::encode_i64(&[1], &[0])),
        ("val_images.npy", scene::npy::encode_unicode::<String>(&[0], &[])),
        ("val_labels.npy", scene::npy::encode_i64(&[0], &[])),
        ("all_latents_train.npy", latents),
        ("all_latents_val.npy", scene::npy::encode_f64(&[0, 7], &[])),
        ("checksums_train.npy", scene::npy::encode_i64(&[1], &[7])),
        ("checksums_val.npy", scene::npy::encode_i64(&[0], &[])),
        ("classes.json", br#"[{"label": 0, "synset": "a", "name": "a"}]"#.to_vec()),
    ]
}

/// An archive's index beside a small archive.
fn index(bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder");
    let shards = folder.path().join("shards");
    std::fs::create_dir(&shards).expect("makes a folder");
    for (name, good) in small_dataset() {
        if !name.starts_with("checksums") {
            std::fs::write(folder.path().join(name), good).expect("writes");
        }
    }
    std::fs::write(folder.path().join("dataset.json"), CARD).expect("writes");
    let mut archive = Vec::new();
    for ending in ["jpg", "latent.npy", "cls"] {
        dataset::tar::append(&mut archive, &format!("a/b/00.{ending}"), b"12345");
    }
    archive.extend_from_slice(&dataset::tar::END);
    std::fs::write(shards.join("train-000000.tar"), archive).expect("writes");
    std::fs::write(shards.join("train-000000.npy"), bytes).expect("writes");
    if let Ok(dataset) = dataset::Dataset::open(folder.path()) {
        let _ = dataset::check::check(&dataset, &|| {});
    }
}

/// The card of a dataset of one view in archives.
pub const CARD: &str = r#"{"card":1,"settings":{"preset":"3diebench","origin":{"kind":"procedural","classes":1,"objects":1},
"objects":1,"objects_digest":"0","views":1,"size":32,"seed":0,"quality":"fast","device":"cpu","channel_order":"rgb",
"format":"shards","objects_per_tar":1,"ranges":{"rotation":[[-1.0,1.0],[-1.0,1.0],[-1.0,1.0]],"floor_hue":[0.0,1.0],
"spot_theta":[0.0,1.0],"spot_phi":[0.0,1.0],"spot_hue":[0.0,1.0]},"version":"0"},
"counts":{"classes":1,"train_objects":1,"val_objects":0,"images":1,"skipped_objects":0}}"#;

/// As it is, and with the checksum that fits, so that what lies behind it is reached.
fn checkpoint(bytes: &[u8]) {
    let path = Path::new("fuzz.safetensors");
    let _ = train::checkpoint::Checkpoint::parse(path, bytes);
    if let Some(sealed) = sealed(bytes) {
        let _ = train::checkpoint::Checkpoint::parse(path, &sealed);
    }
}

fn sealed(bytes: &[u8]) -> Option<Vec<u8>> {
    const KEY: &[u8] = b"\"checksum\":\"";
    let at = bytes.windows(KEY.len()).position(|window| window == KEY)? + KEY.len();
    let mut sealed = bytes.to_vec();
    sealed.get_mut(at..at + 8)?.copy_from_slice(b"00000000");
    let sum = format!("{:08x}", crc32fast::hash(&sealed));
    sealed[at..at + 8].copy_from_slice(sum.as_bytes());
    Some(sealed)
}

/// What `equicaps check parity` compares with.
fn fixture(bytes: &[u8]) {
    let _ = methods::parity::Fixture::parse(bytes, bytes);
}

fn torch_file(bytes: &[u8]) {
    with_file("weights.pth", bytes, |path| {
        let _ = train::import::import(path, &train::import::Wishes::default());
    });
}

fn config(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = train::Config::settings_of("fuzz.toml", text).and_then(train::Config::resolve);
}

fn metrics(bytes: &[u8]) {
    with_file("metrics.jsonl", bytes, |path| {
        let _ = train::metrics::read(path);
        let _ = train::metrics::MetricsFile::open(path, 3);
    });
}

fn results(bytes: &[u8]) {
    with_file("results.json", bytes, |path| {
        let _ = evaluate::Results::read(path);
    });
}

fn environment(bytes: &[u8]) {
    with_file("environment.json", bytes, |path| {
        let _ = train::environment::read(path);
    });
}
