//! Folders and lists of objects.

use scene::npy;
use scene::objects::{ObjectsError, Unused, discover, locate, read_list, unused};
use scene::{BoundingBox, LoadOptions};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const TRIANGLE: &str = "v 0 0 0\nv 3 0 0\nv 0 4 0\nf 1 2 3\n";

fn tree(files: &[&str]) -> TempDir {
    let folder = TempDir::new().expect("a temporary folder");
    for file in files {
        let path = folder.path().join(file);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("creates folders");
        std::fs::write(path, TRIANGLE).expect("writes");
    }
    folder
}

fn found(root: &Path) -> Vec<(String, Result<PathBuf, String>)> {
    let objects = discover(root).expect("finds objects");
    let relative = |path: PathBuf| path.strip_prefix(root).expect("below the root").to_owned();
    objects.into_iter().map(|object| (object.id(), object.mesh.map(relative))).collect()
}

#[test]
fn every_layout_is_understood_in_a_fixed_order() {
    let folder = tree(&[
        "taxonomy.json",
        "02691156/b1/models/model_normalized.obj",
        "02691156/b1/models/another.obj",
        "02691156/b1/images/texture0.jpg",
        "02691156/a2/models/model_normalized.mtl",
        "02691156/a2/screenshots/x.png",
        "chair/armchair/part.ply",
        "chair/armchair/zzz.OBJ",
        "chair/armchair/armchair.obj",
        "mug/x.stl",
        "mug/x.obj",
        "mug/a.off",
        "mug/textures/wood.png",
        "mug/.hidden.obj",
    ]);
    let ok = |id: &str, path: &str| (id.to_owned(), Ok(PathBuf::from(path)));
    assert_eq!(
        found(folder.path()),
        [
            ("02691156/a2".to_owned(), Err("02691156/a2: holds no mesh".to_owned())),
            ok("02691156/b1", "02691156/b1/models/model_normalized.obj"),
            ok("chair/armchair", "chair/armchair/armchair.obj"),
            ok("mug/a", "mug/a.off"),
            ok("mug/x", "mug/x.obj"),
        ]
    );
}

#[test]
fn folders_without_objects_are_refused() {
    let folder = tree(&["readme.txt", "class/readme.txt"]);
    assert!(matches!(discover(folder.path()), Err(ObjectsError::Empty { has_loose: false, .. })));
    let flat = tree(&["chair.obj", "class/readme.txt"]);
    let message = discover(flat.path()).expect_err("no class has an object").to_string();
    assert!(message.contains("belong to no class"), "{message}");
    assert!(matches!(discover(&folder.path().join("none")), Err(ObjectsError::Read { .. })));
}

#[test]
fn listed_objects_keep_their_order_and_missing_ones_say_so() {
    let folder =
        tree(&["c/one/models/model_normalized.obj", "c/two.ply", "d/three/x.stl", "d/four/notes.txt"]);
    let pair = |class: &str, name: &str| (class.to_owned(), name.to_owned());
    let list = [pair("d", "three"), pair("c", "two"), pair("e", "five"), pair("d", "four"), pair("c", "one")];
    let objects = locate(folder.path(), &list);
    let ids: Vec<String> = objects.iter().map(|object| object.id()).collect();
    assert_eq!(ids, ["d/three", "c/two", "e/five", "d/four", "c/one"]);
    assert_eq!(objects[1].mesh, Ok(folder.path().join("c/two.ply")));
    assert_eq!(objects[2].mesh, Err("e/five: there is no such object".to_owned()));
    assert_eq!(objects[3].mesh, Err("d/four: holds no mesh".to_owned()));
    assert!(objects[0].mesh.is_ok() && objects[4].mesh.is_ok());
}

#[test]
fn lists_may_be_arrays_or_text() {
    let folder = TempDir::new().expect("a temporary folder");
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("writes");
        path
    };
    let expected = vec![("02691156".to_owned(), "b".to_owned()), ("02747177".to_owned(), "a".to_owned())];
    let pairs = npy::encode_unicode(&[3, 2], &["02691156", "b", "02747177", "a", "02691156", "b"]);
    assert_eq!(read_list(&write("pairs.npy", &pairs)).expect("reads"), expected);
    let folders = npy::encode_unicode(&[2], &["/02691156/b/", "/02747177/a/"]);
    assert_eq!(read_list(&write("folders.npy", &folders)).expect("reads"), expected);
    let text = b"# objects\n02691156/b\n\n 02747177 a # the second\r\n02691156,b\n";
    assert_eq!(read_list(&write("list.txt", text)).expect("reads"), expected);

    let message = |name: &str, bytes: &[u8]| read_list(&write(name, bytes)).expect_err("wrong").to_string();
    assert!(message("a.txt", b"x/y\nnonsense\n").contains("a.txt, entry 2: \"nonsense\""));
    assert!(message("b.txt", b"../etc\n").contains("\"..\" is not the name of a folder"));
    assert!(message("b2.txt", b"a/b/c\n").contains("\"b/c\" is not"));
    assert!(message("c.npy", &npy::encode_i64(&[1], &[1])).contains("expected strings"));
    assert!(message("d.npy", b"\x93NUMPY\x01\x00").contains("d.npy"));
    assert!(message("e.txt", b"\xff\xfe").contains("neither text"));
}

#[test]
fn loading_normalises_and_gives_reasons_without_the_root() {
    let folder = tree(&["c/good/x.obj", "c/bad/x.obj"]);
    std::fs::write(folder.path().join("c/bad/x.obj"), "v 0 0 nan\n").expect("writes");
    let objects = discover(folder.path()).expect("finds objects");
    let options = LoadOptions::under(folder.path());
    let reason = objects[0].load(&options).expect_err("it is bad");
    assert!(reason.starts_with("c/bad/x.obj:1: "), "{reason}");
    let mesh = objects[1].load(&options).expect("loads").mesh;
    assert!((BoundingBox::of(&mesh).expect("an extent").diagonal() - 1.0).abs() < 1e-6);
}

/// The reason for which an object is skipped becomes a file of the dataset: it must not depend on where meshes are.
#[test]
fn a_reason_is_the_same_wherever_the_meshes_are() {
    let reason = |name: &str| {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join(name).join("meshes");
        std::fs::create_dir_all(root.join("cars")).expect("makes folders");
        std::fs::write(folder.path().join(name).join("secret.bin"), [0; 64]).expect("writes");
        let gltf = r#"{"asset":{"version":"2.0"},"buffers":[{"uri":"../../secret.bin","byteLength":36}],
            "bufferViews":[{"buffer":0,"byteLength":36}],
            "accessors":[{"bufferView":0,"componentType":5126,"count":3,"type":"VEC3"}],
            "meshes":[{"primitives":[{"attributes":{"POSITION":0}}]}],
            "nodes":[{"mesh":0}],"scenes":[{"nodes":[0]}],"scene":0}"#;
        std::fs::write(root.join("cars/a.gltf"), gltf).expect("writes");
        let objects = discover(&root).expect("finds objects");
        objects[0].load(&LoadOptions::under(&root)).expect_err("leads out of the folder")
    };
    let (here, there) = (reason("here"), reason("some/where/else"));
    assert_eq!(here, there);
    assert!(here.contains("lies outside of the folder of the meshes"), "{here}");
}

#[test]
fn messages_name_files_from_the_root_whatever_the_root_is_called() {
    // Where the root's name is the end of other folders' names, too.
    let folder = tree(&["s/cars/a/x.obj", "s/cars/b/x.obj"]);
    let root = folder.path().join("s");
    std::fs::write(root.join("cars/a/x.obj"), format!("mtllib x.mtl\nusemtl red\n{TRIANGLE}"))
        .expect("writes");
    std::fs::write(root.join("cars/a/x.mtl"), "newmtl red\nmap_Kd gone.png\n").expect("writes");
    std::fs::write(root.join("cars/b/x.obj"), "v 0 0 nan\n").expect("writes");
    let objects = discover(&root).expect("finds objects");
    let options = LoadOptions::under(&root);
    let warnings = objects[0].load(&options).expect("loads").warnings;
    assert_eq!(warnings, ["cars/a/x.mtl:2: texture left out: \"gone.png\" does not exist"]);
    let reason = objects[1].load(&options).expect_err("it is bad");
    assert!(reason.starts_with("cars/b/x.obj:1: "), "{reason}");
}

#[cfg(unix)]
#[test]
fn names_that_no_list_could_hold_are_kept_with_the_reason() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tree(&["mug/a.obj", "mug/b\\c.obj"]);
    let write = |class: &[u8], file: &[u8]| {
        let class = folder.path().join(std::ffi::OsStr::from_bytes(class));
        std::fs::create_dir_all(&class).expect("creates the class");
        std::fs::write(class.join(std::ffi::OsStr::from_bytes(file)), TRIANGLE).expect("writes");
    };
    write(b"mug", b"caf\xe9.obj");
    write(b"th\xe9", b"d.obj");
    let objects = found(folder.path());
    let reasons: Vec<&str> =
        objects.iter().filter_map(|(_, mesh)| mesh.as_ref().err()).map(String::as_str).collect();
    let expected = [
        "mug/b\u{fffd}c: its name has a backslash; rename it",
        "mug/caf\u{fffd}: its name is not UTF-8; rename it",
        "th\u{fffd}/d: the name of its class is not UTF-8; rename it",
    ];
    assert_eq!((objects.len(), reasons), (4, expected.to_vec()));
    let discovered = discover(folder.path()).expect("finds objects");
    assert_eq!(unused(folder.path(), &discovered), Unused::default());
    std::fs::remove_file(folder.path().join("mug/a.obj")).expect("removes");
    let message = discover(folder.path()).expect_err("none is usable").to_string();
    assert!(message.ends_with("stl; mug/b\u{fffd}c: its name has a backslash; rename it"), "{message}");
}

#[test]
fn what_looks_like_a_mesh_and_is_not_used_is_named_by_its_kind() {
    let folder = tree(&[
        "top.obj",
        "k/a.obj",
        "k/d.obj",
        "k/d.stl",
        "k/b.FBX",
        "k/b.mtl",
        "k/b.blend1",
        "k/README.md",
        "k/textures/wood.png",
        "k/c/one.obj",
        "k/c/two.obj",
        "k/group/c/models/e.obj",
        "k/.hidden.dae",
        "k2/m.dae",
        "02691156/b1/models/model_normalized.obj",
        "02691156/b1/models/another.obj",
        "02691156/b2/models/one.obj",
        "02691156/b2/models/two.ply",
    ]);
    let objects = discover(folder.path()).expect("finds objects");
    let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
    let expected = Unused {
        unsupported: paths(&["k/b.FBX", "k2/m.dae"]),
        misplaced: paths(&["k/group/c/models/e.obj", "top.obj"]),
        doubles: paths(&["02691156/b2/models/two.ply", "k/c/two.obj", "k/d.stl"]),
    };
    assert_eq!(unused(folder.path(), &objects), expected);
}

#[cfg(unix)]
#[test]
fn links_that_lead_back_are_not_followed_for_ever() {
    let folder = tree(&["k/a.obj", "k/o/b.obj"]);
    std::os::unix::fs::symlink(folder.path(), folder.path().join("k/o/back")).expect("links");
    let objects = discover(folder.path()).expect("finds objects");
    assert_eq!(unused(folder.path(), &objects), Unused::default());
}
