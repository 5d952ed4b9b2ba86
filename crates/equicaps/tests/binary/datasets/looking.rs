//! Datasets that are there: previews, statistics, checks, published folders; and views without a dataset.

use super::*;

#[test]
fn looking_at_datasets() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let out = path("views");
    ok(&small("shards", &out, &["--quiet"]));
    let sheet = path("sheet.png");
    assert_eq!(object(&ok(&["dataset", "preview", &out, "--out", &sheet, "--json"]))["pictures"], 48);
    assert_eq!(&std::fs::read(&sheet).unwrap()[..4], b"\x89PNG");
    let stats = path("stats.png");
    let counted = object(&ok(&["dataset", "stats", &out, "--out", &stats, "--json"]));
    assert_eq!(counted["latents"].as_array().unwrap().len(), 10);
    let total: u64 =
        counted["classes"].as_array().unwrap().iter().map(|c| c["train"].as_u64().unwrap()).sum();
    assert_eq!(total, 19);
    assert_eq!(&std::fs::read(&stats).unwrap()[..4], b"\x89PNG");

    // Damage is found: one byte of an image, one label.
    let archive = Path::new(&out).join("shards/val-000000.tar");
    let mut bytes = std::fs::read(&archive).unwrap();
    bytes[512 + 2] = 0;
    std::fs::write(&archive, bytes).unwrap();
    let labels = Path::new(&out).join("train_labels.npy");
    let mut bytes = std::fs::read(&labels).unwrap();
    let last = bytes.len() - 8;
    bytes[last] ^= 1;
    std::fs::write(&labels, bytes).unwrap();
    let output = equicaps(&["dataset", "check", &out, "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let report = object(std::str::from_utf8(&output.stdout).unwrap());
    let problems: Vec<&str> =
        report["problems"].as_array().unwrap().iter().map(|p| p.as_str().unwrap()).collect();
    assert!(problems.iter().any(|problem| problem.contains("val-000000.tar")), "{problems:?}");
    assert!(problems.iter().any(|problem| problem.contains("has label")), "{problems:?}");

    // An archive that is gone is named, whoever wants its images.
    std::fs::remove_file(&archive).unwrap();
    for command in [&["dataset", "stats", &out][..], &["embed", "builtin", &out, "--out", &path("e.npy")]] {
        let (status, message) = failure(command);
        assert!(status == 1 && message.contains("val-000000.tar: is missing"), "{command:?}: {message}");
    }
    let list = path("list.txt");
    std::fs::write(&list, "# images\n\nnone.png\n").unwrap();
    let (_, message) = failure(&["embed", "builtin", &format!("@{list}"), "--out", &path("e.npy")]);
    assert!(message.contains("list.txt: line 3: there is no image none.png"), "{message}");
}

/// The published sets have no card, no classes, no tables, and their split files lie elsewhere.
#[test]
fn published_folders_are_read_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (out, lists) = (path("views"), path("lists"));
    ok(&small("files", &out, &["--quiet"]));
    std::fs::create_dir(&lists).unwrap();
    for split in ["train", "val"] {
        std::fs::remove_file(Path::new(&out).join(format!("all_latents_{split}.npy"))).unwrap();
        std::fs::remove_file(Path::new(&out).join(format!("checksums_{split}.npy"))).unwrap();
        for list in ["images", "labels"] {
            let name = format!("{split}_{list}.npy");
            std::fs::rename(Path::new(&out).join(&name), Path::new(&lists).join(&name)).unwrap();
        }
    }
    for name in ["dataset.json", "classes.json", "skipped.json", "README.md"] {
        std::fs::remove_file(Path::new(&out).join(name)).unwrap();
    }
    let (status, message) = failure(&["dataset", "stats", &out]);
    assert!(status == 1 && message.contains("holds no dataset"), "{message}");
    let checked = ok(&["dataset", "check", &out, "--lists", &lists]);
    assert!(checked.contains("24 objects, 72 images, no problems"), "{checked}");
    let stats = path("stats.png");
    let counted = object(&ok(&["dataset", "stats", &out, "--lists", &lists, "--out", &stats, "--json"]));
    assert_eq!(counted["classes"][0]["name"], "airplane");
    let sheet = path("sheet.png");
    ok(&["dataset", "preview", &out, "--lists", &lists, "--out", &sheet]);
    // Nothing else is ever written into a dataset that is only looked at.
    assert_eq!(tree(Path::new(&out)).len(), 72 * 2);
}

#[test]
fn views_for_given_latents() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    meshes(&folder.path().join("root/meshes"));
    let record = |image: &str, mesh: &str| {
        format!(
            r#"{{"image": "{image}", "mesh": {mesh}, "rotation_xyz": [0.1, 0.2, 0.3], "floor_hue": 0.4,
            "spot_theta": 0.1, "spot_phi": 1, "spot_hue": 0.6, "translation_xyz": [0, 0, 0], "samples": 100}}"#
        )
    };
    let views = path("views.json");
    let root = path("root");
    let call = |records: &[String], out: &str| {
        std::fs::write(&views, format!("[{}]", records.join(","))).unwrap();
        let arguments = ["render", "views", "--views", &views, "--root", &root, "--out", out];
        equicaps(&[&arguments[..], &["--size", "24", "--quality", "fast", "--json"]].concat())
            .output()
            .unwrap()
    };
    let good = record("png/a/good.png", r#""meshes/pyramid/good/model.obj""#);
    let out = path("out");
    let output = call(&[good.clone(), record("empty.png", "null")], &out);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(object(std::str::from_utf8(&output.stdout).unwrap())["images"], 2);
    let files = tree(Path::new(&out));
    assert_eq!(files.keys().collect::<Vec<_>>(), ["empty.png", "png/a/good.png"]);
    assert_ne!(files["empty.png"], files["png/a/good.png"]);

    let missing = call(&[good.clone(), record("b.png", r#""meshes/none.obj""#)], &path("missing"));
    assert_eq!(missing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("none.obj"));
    for wrong in [record("../x.png", "null"), record("/tmp/x.png", "null"), record("x.png", r#""../m.obj""#)]
    {
        let refused = call(&[wrong], &path("refused"));
        assert_eq!(refused.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&refused.stderr).contains(".."), "names the rule");
        assert!(!folder.path().join("refused").exists());
    }
    let twice = call(&[good.clone(), good], &path("twice"));
    assert!(String::from_utf8_lossy(&twice.stderr).contains("both name the image"));
}
