//! Valid inputs for every parser: files that the program wrote (`seeds/PARSER`), what its writers make here, and all
//! that found something before (`regressions/PARSER`).

#[path = "../../crates/scene/tests/cube/mod.rs"]
#[allow(dead_code)]
mod cube;

use std::path::Path;

use crate::entries;

/// The seeds of the parser `name`.
pub fn seeds(name: &str) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut seeds: Vec<Vec<u8>> = Vec::new();
    for folder in ["seeds", "regressions"] {
        let mut files: Vec<_> =
            std::fs::read_dir(root.join(folder).join(name)).into_iter().flatten().flatten().collect();
        // The order of a folder is the machine's.
        files.sort_by_key(std::fs::DirEntry::file_name);
        seeds.extend(files.iter().filter_map(|entry| std::fs::read(entry.path()).ok()));
    }
    let ending = |file: &str| file.rsplit('.').next().unwrap_or(file).to_owned();
    seeds.extend(
        cube::every_cube().into_iter().filter(|(file, _)| ending(file) == name).map(|(_, bytes)| bytes),
    );
    let pixels: Vec<u8> = (0..32 * 32 * 3).map(|i| (i % 251) as u8).collect();
    let jpeg = || dataset::jpeg::encode(&pixels, 32, dataset::jpeg::ChannelOrder::Rgb).expect("encodes");
    let arrays = || {
        vec![
            scene::npy::encode_f64(&[2, 7], &[0.5; 14]),
            scene::npy::encode_i64(&[3, 3], &[512, 5, 7, 1, 2, 3, 4, 5, 6]),
            scene::npy::encode_unicode(&[2], &["/a/b/".to_owned(), "/a/c/".to_owned()]),
        ]
    };
    match name {
        "mtl" => {
            seeds.push(b"newmtl a\nKd 0.5 0.5 0.5\nmap_Kd -s 2 2 1 x.png\nd 0.5\nillum 2\n".to_vec());
            seeds.push(b"newmtl a\nKd spectral a.rfl\nKs 1 1 1\nNs 200\nTr 0.5\nNi 1.5\nmap_d x.png\n".to_vec());
        }
        "npy" | "index" => seeds.extend(arrays()),
        "object_list" => {
            seeds.push(b"a/b\nc/d\n# e\n".to_vec());
            seeds.extend(arrays());
        }
        "tar" => {
            let mut archive = Vec::new();
            dataset::tar::append(&mut archive, "a/b/00.jpg", b"12345");
            dataset::tar::append(&mut archive, &"long/".repeat(40), b"67");
            archive.extend_from_slice(&dataset::tar::END);
            seeds.push(archive);
        }
        "jpeg" | "image" => seeds.push(jpeg()),
        "texture" => {
            let mut bytes = std::io::Cursor::new(Vec::new());
            let image = image::RgbImage::from_raw(32, 32, pixels.clone()).expect("as many pixels");
            image.write_to(&mut bytes, image::ImageFormat::Png).expect("encodes");
            seeds.push(bytes.into_inner());
            seeds.push(jpeg());
        }
        "dataset" => {
            seeds.push([b"\0", entries::CARD.as_bytes()].concat());
            for (which, array) in [(5_u8, 0), (4, 1), (3, 1), (2, 2)] {
                seeds.push([vec![which], arrays()[array].clone()].concat());
            }
        }
        "checkpoint" | "fixture" => {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("seed.safetensors");
            let mut checkpoint = train::checkpoint::Checkpoint::default();
            let numbers = |values: &[f32]| train::checkpoint::Numbers::F32(values.to_vec());
            checkpoint.insert("backbone.conv1.weight", &[2, 2], numbers(&[1.0, 2.0, 3.0, 4.0]));
            checkpoint.insert("in/x", &[3], numbers(&[1.0, -2.0, 0.5]));
            checkpoint.metadata.insert("settings".to_owned(), "{\"batch\": 2}".to_owned());
            checkpoint.write_to(&path).expect("writes");
            seeds.push(std::fs::read(&path).expect("reads"));
        }
        "torch_file" => {
            let data = root.join("../crates/train/tests/data");
            let files = ["torch_save.pth", "published.pth"];
            seeds.extend(files.iter().filter_map(|file| std::fs::read(data.join(file)).ok()));
        }
        "config" => seeds.push(methods::presets::DEFAULTS.as_bytes().to_vec()),
        "views" => seeds.push(
            br#"[{"image":"a.png","mesh":"m/a.obj","rotation_xyz":[0.1,0.2,-0.3],"floor_hue":0.5,"spot_theta":0.1,
"spot_phi":1.0,"spot_hue":0.7,"translation_xyz":[0.0,0.1,0.2],"samples":512},{"image":"b.png","mesh":null,
"rotation_xyz":[0,0,0],"floor_hue":0,"spot_theta":0,"spot_phi":0,"spot_hue":0}]"#
                .to_vec(),
        ),
        _ => {}
    }
    assert!(!seeds.is_empty(), "no seed for {name}");
    seeds
}
