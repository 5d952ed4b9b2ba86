//! Meshes that are not used, or only in part: nothing of that is silent.

use std::path::Path;

use serde_json::Value;

use crate::support::{TINY, equicaps, failure, object, ok_json, set};

const MESH: &str = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 2 3\nf 1 2 4\nf 2 3 4\nf 1 3 4\n";
const SMALL: [&str; 7] = ["--views", "4", "--size", "16", "--quality", "fast", "--json"];

fn write(root: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

/// What `render` says of the folder `meshes` in `root`: its result and standard error.
fn rendered(root: &Path, out: &str) -> (Value, String) {
    let mut render = equicaps(&["render", "--meshes", "meshes", "--out", out]);
    let output = render.args(SMALL).current_dir(root).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{error}");
    (object(std::str::from_utf8(&output.stdout).unwrap()), error)
}

/// The warnings of training on the folder `meshes` in `root`.
fn trained(root: &Path, more: &[&str]) -> Vec<String> {
    let mut train = equicaps(&["train", "--quiet", "--preset", "demo", "--data", "meshes"]);
    set(train.args(more).current_dir(root), &TINY);
    let result =
        ok_json(set(&mut train, &["epochs=1", "procedural.views=2", "pairs_per_object=1", "split=views"]));
    result["warnings"].as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

#[test]
fn meshes_that_are_not_used_are_named_by_their_kind() {
    let root = tempfile::tempdir().unwrap();
    let used = [("k/a.obj", MESH), ("k/d.obj", MESH), ("k/c/one.obj", MESH)];
    let others = [
        ("k/c/two.obj", MESH),
        ("k/d.stl", MESH),
        ("k/b.fbx", "x"),
        ("k2/m.dae", "x"),
        ("k/README", "x"),
        ("top.obj", MESH),
    ];
    write(&root.path().join("meshes"), &used);
    write(&root.path().join("meshes"), &others);
    let expected = [
        "left out 2 files in formats that are not read (those that are: .obj, .glb, .gltf, .ply, .off, .stl): k/b.fbx, k2/m.dae",
        "left out 1 mesh where no objects are looked for (CLASS/OBJECT.EXT and CLASS/OBJECT/MESH are): top.obj",
        "left out 2 meshes of objects of which another mesh is taken: k/c/two.obj, k/d.stl",
    ];
    let (result, error) = rendered(root.path(), "views");
    assert_eq!(result["warnings"], serde_json::json!(expected));
    for text in expected {
        assert_eq!(error.matches(&format!("warning: {text}\n")).count(), 1, "{error}");
    }
    assert!(!root.path().join("views/warnings.json").exists());
    let (planned, trained) = (trained(root.path(), &["--dry-run"]), trained(root.path(), &["--run", "run"]));
    for said in [planned, trained] {
        let of_files: Vec<&String> = said.iter().filter(|text| text.starts_with("left out")).collect();
        assert_eq!(of_files, expected, "{said:?}");
    }
}

#[test]
fn missing_textures_are_said_once_and_kept() {
    let root = tempfile::tempdir().unwrap();
    let meshes = root.path().join("meshes");
    let textured = format!("mtllib m.mtl\nusemtl a\n{MESH}");
    let degenerate = format!("{MESH}f 1 1 2\n");
    write(
        &meshes,
        &[("k/y.obj", MESH), ("k/z.obj", &textured), ("k/m.mtl", "newmtl a\nKd 1 0 0\nmap_Kd gone.png\n")],
    );
    let missing = "k/m.mtl:3: texture left out: \"gone.png\" does not exist";
    for said in [trained(root.path(), &["--dry-run"]), trained(root.path(), &["--run", "run"])] {
        assert_eq!(said.iter().filter(|text| *text == missing).count(), 1, "{said:?}");
    }
    let evaluate = ["evaluate", "run", "--preset", "quick", "--no-images", "--quiet"];
    let evaluated = equicaps(&evaluate).current_dir(root.path()).output().unwrap();
    let said = String::from_utf8(evaluated.stderr).unwrap();
    assert!(evaluated.status.success() && said.matches(missing).count() == 1, "{said}");
    for k in 10..21 {
        write(&meshes, &[(&format!("k/{k}.obj"), &degenerate)]);
    }
    let (result, error) = rendered(root.path(), "views");
    let warnings = result["warnings"].as_array().unwrap();
    assert_eq!((warnings.len(), &warnings[0]), (12, &Value::from(missing)));
    assert!(error.contains(&format!("warning: {missing}\n")), "{error}");
    assert!(
        error.contains("warning: 2 more warnings about meshes, all of them in warnings.json\n"),
        "{error}"
    );
    let kept = std::fs::read(root.path().join("views/warnings.json")).unwrap();
    let kept: Value = serde_json::from_slice(&kept).unwrap();
    assert_eq!(kept.as_array().unwrap().len(), 12);
    assert_eq!(kept[11], serde_json::json!({"synset": "k", "name": "z", "warnings": [missing]}));
}

#[cfg(unix)]
#[test]
fn an_object_with_a_name_that_lists_cannot_hold_is_skipped() {
    let root = tempfile::tempdir().unwrap();
    write(&root.path().join("meshes"), &[("k/a.obj", MESH), ("k/b\\c.obj", MESH), ("k\\2/d.obj", MESH)]);
    let (result, _) = rendered(root.path(), "views");
    let reasons: Vec<&str> = result["skipped"]
        .as_array()
        .unwrap()
        .iter()
        .map(|skipped| skipped["reason"].as_str().unwrap())
        .collect();
    let expected = [
        "k\u{fffd}2/d: the name of its class has a backslash; rename it",
        "k/b\u{fffd}c: its name has a backslash; rename it",
    ];
    assert!(reasons.len() == 2 && expected.iter().all(|reason| reasons.contains(reason)), "{reasons:?}");
    let mut train = equicaps(&["train", "--preset", "demo", "--data", "meshes", "--run", "run"]);
    let (_, error) = failure(set(train.current_dir(root.path()), &["epochs=1", "split=views"]));
    assert!(error.contains("has a backslash; rename it (--on-bad-sample skip"), "{error}");
}
