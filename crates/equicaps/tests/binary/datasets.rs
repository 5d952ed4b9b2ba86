//! Datasets through the binary: the same bytes whatever happens on the way, refusals, exit statuses, one JSON object.

mod looking;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::{self, equicaps, object};
#[cfg(unix)]
use crate::support::{Signal, signal};

fn ok(arguments: &[&str]) -> String {
    support::ok(&mut equicaps(arguments))
}

fn failure(arguments: &[&str]) -> (i32, String) {
    support::failure(&mut equicaps(arguments))
}

/// Every file below `root` with its content, the work folder included.
fn tree(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = walkdir::WalkDir::new(root).into_iter().map(Result::unwrap);
    let content = |entry: walkdir::DirEntry| {
        let name = entry.path().strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        (name, std::fs::read(entry.path()).unwrap())
    };
    entries.filter(|entry| !entry.file_type().is_dir()).map(content).collect()
}

/// How many objects lie under `root` while it is being written: folders two levels down, the work folder left out.
fn finished_objects(root: &Path) -> usize {
    let folders = |folder: &Path| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        entries.filter(|path| path.is_dir()).collect::<Vec<_>>()
    };
    let classes = folders(root).into_iter().filter(|class| !class.ends_with(".equicaps"));
    classes.map(|class| folders(&class).len()).sum()
}

fn assert_same(found: &BTreeMap<String, Vec<u8>>, expected: &BTreeMap<String, Vec<u8>>) {
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    let differing: Vec<_> = found.keys().filter(|name| found[*name] != expected[*name]).collect();
    assert!(differing.is_empty(), "differing: {differing:?}");
}

#[rustfmt::skip]
const SMALL: [&str; 13] = [
    "render", "--procedural", "6x4", "--views", "3", "--size", "16", "--quality", "fast", "--seed", "7",
    "--objects-per-tar", "5",
];

fn small<'a>(format: &'a str, out: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&SMALL[..], &["--format", format, "--out", out], more].concat()
}

#[test]
fn kills_jobs_and_shards_do_not_change_a_byte() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for format in ["files", "shards"] {
        let whole = path(&format!("{format}-whole"));
        ok(&small(format, &whole, &["--jobs", "1", "--quiet"]));
        let expected = tree(Path::new(&whole));

        let jobs = path(&format!("{format}-jobs"));
        ok(&small(format, &jobs, &["--jobs", "5", "--quiet"]));
        assert_same(&tree(Path::new(&jobs)), &expected);

        let shards = path(&format!("{format}-shards"));
        let running: Vec<_> = ["1/3", "0/3", "2/3"]
            .map(|shard| {
                let arguments = small(format, &shards, &["--shard", shard, "--quiet"]);
                equicaps(&arguments).stdout(Stdio::null()).spawn().unwrap()
            })
            .into_iter()
            .collect();
        for mut process in running {
            assert!(process.wait().unwrap().success());
        }
        assert_same(&tree(Path::new(&shards)), &expected);

        let killed = path(&format!("{format}-killed"));
        for round in 0..12_u64 {
            let mut process = equicaps(&small(format, &killed, &["--jobs", "2", "--quiet"])).spawn().unwrap();
            std::thread::sleep(Duration::from_millis(3 + round * 7 % 40));
            process.kill().unwrap();
            process.wait().unwrap();
            // Nothing half-written is ever visible: what is there is final, but for the card.
            if Path::new(&killed).exists() {
                for (name, bytes) in tree(Path::new(&killed)) {
                    if !name.starts_with(".equicaps") && name != "dataset.json" {
                        assert_eq!(Some(&bytes), expected.get(&name), "{name} after kill {round}");
                    }
                }
            }
        }
        ok(&small(format, &killed, &["--quiet"]));
        assert_same(&tree(Path::new(&killed)), &expected);
        assert!(ok(&["dataset", "check", &killed]).contains("no problems"));
    }
}

#[cfg(unix)]
#[test]
fn an_interrupt_stops_in_good_order() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("views").to_str().unwrap().to_owned();
    let arguments = [
        "render",
        "--procedural",
        "55x40",
        "--views",
        "20",
        "--size",
        "64",
        "--quality",
        "fast",
        "--out",
        &out,
    ];
    // As `nohup` starts programs: a hangup is to be ignored, and stays so.
    let process = Command::new("sh")
        .args(["-c", "trap '' HUP; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_equicaps")])
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !Path::new(&out).join("dataset.json").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(100));
    signal(process.id(), Signal::HUP);
    let done = || finished_objects(Path::new(&out));
    let before = done();
    let began = std::time::Instant::now();
    while done() == before {
        assert!(began.elapsed() < Duration::from_secs(30), "nothing is rendered after a hangup");
        std::thread::sleep(Duration::from_millis(20));
    }
    signal(process.id(), Signal::INT);
    let output = process.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(75));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("progress is saved; rerun to resume"), "{text}");
    // Its staging folder is gone; only finished objects and the plan are left.
    assert_eq!(std::fs::read_dir(Path::new(&out).join(".equicaps/staging")).unwrap().count(), 0);
    let (status, message) = failure(&["dataset", "check", &out]);
    assert_eq!(status, 1);
    assert!(!message.contains("panicked"));
}

#[test]
fn other_settings_are_refused_with_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("views").to_str().unwrap().to_owned();
    let result = object(&ok(&small("files", &out, &["--json"])));
    assert_eq!((&result["complete"], &result["images_rendered"]), (&true.into(), &72.into()));
    let again = object(&ok(&small("files", &out, &["--json"])));
    assert_eq!((&again["complete"], &again["images_rendered"]), (&true.into(), &0.into()));
    let before = tree(Path::new(&out));
    for (more, sentence) in [
        (["--views", "4"], "views is 3 there, 4 was asked for"),
        (["--range", "rot_x=0,1"], "ranges.rotation is"),
        (["--channel-order", "bgr"], "channel_order is rgb there, bgr was asked for"),
        (["--preset", "3diebench"], "preset is 3diebench-t there, 3diebench was asked for"),
    ] {
        let mut arguments: Vec<&str> = small("files", &out, &[]);
        if let Some(at) = arguments.iter().position(|argument| *argument == more[0]) {
            arguments.drain(at..at + 2);
        }
        arguments.extend(more);
        let (status, message) = failure(&arguments);
        assert_eq!(status, 1);
        assert!(message.contains(sentence) && message.lines().count() == 1, "{message}");
    }
    assert_same(&tree(Path::new(&out)), &before);
}

/// A folder of meshes: a usable tetrahedron, one without faces, one that is no mesh.
fn meshes(root: &Path) {
    let corners = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\n";
    let write = |name: &str, text: &str| {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("pyramid/good/model.obj", &format!("{corners}f 1 2 3\nf 1 2 4\nf 2 3 4\nf 1 3 4\n"));
    write("pyramid/good.2.obj", &format!("{corners}f 1 2 3\nf 1 2 4\n"));
    write("pyramid/faceless.obj", corners);
    write("wreck/broken/model.obj", "v 0 0\nf 1 2 3\n");
}

#[test]
fn unusable_objects_are_skipped_and_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    meshes(&folder.path().join("meshes"));
    let meshes = path("meshes");
    let arguments = |out: &str, more: &[&str]| -> Vec<String> {
        ["render", "--meshes", &meshes, "--views", "2", "--size", "16", "--quality", "fast", "--out", out]
            .iter()
            .chain(more)
            .map(ToString::to_string)
            .collect()
    };
    let call = |arguments: Vec<String>| {
        equicaps(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).output().unwrap()
    };

    let out = path("views");
    let output = call(arguments(&out, &["--json"]));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let result = object(std::str::from_utf8(&output.stdout).unwrap());
    assert_eq!(result["skipped"].as_array().unwrap().len(), 2);
    let skipped = std::fs::read_to_string(Path::new(&out).join("skipped.json")).unwrap();
    assert!(skipped.contains("faceless") && skipped.contains("wreck/broken/model.obj:1"), "{skipped}");
    assert!(!skipped.contains(&meshes), "the reason must not depend on where the meshes are: {skipped}");
    // The label comes from the full list, though the other class has no usable object.
    let classes = std::fs::read_to_string(Path::new(&out).join("classes.json")).unwrap();
    assert!(classes.contains("wreck") && classes.contains("pyramid"));
    assert!(ok(&["dataset", "check", &out]).contains("2 objects, 4 images, no problems"));

    let strict = call(arguments(&path("strict"), &["--strict"]));
    assert_eq!(strict.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&strict.stderr).contains("2 objects skipped"));
    assert_same(&tree(Path::new(&path("strict"))), &tree(Path::new(&out)));

    let list = path("list.txt");
    std::fs::write(&list, "wreck/broken\nnot/there\n").unwrap();
    let none = call(arguments(&path("none"), &["--objects", &list]));
    assert_eq!(none.status.code(), Some(1));
    let message = String::from_utf8_lossy(&none.stderr).into_owned();
    assert!(message.contains("none of the 2 objects can be used"), "{message}");
}

#[test]
fn wrong_usage_and_wrong_paths_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let out = path("views");
    let library = |more: &[&'static str]| -> Vec<String> {
        let start = ["render", "--procedural", "2x2", "--out", &out];
        start.iter().chain(more).map(ToString::to_string).collect()
    };
    let words =
        |text: &str| -> Vec<String> { text.replace("OUT", &out).split(' ').map(str::to_owned).collect() };
    for (arguments, part) in [
        (words("render --out OUT"), "--meshes"),
        (words("render --procedural 2x2"), "--out"),
        (words("render --procedural 2 --out OUT"), "CLASSESxOBJECTS"),
        (words("render --procedural 99x2 --out OUT"), "1 to 55 classes"),
        (library(&["--shard", "2/2"]), "I from 0 to N-1"),
        (library(&["--range", "rotx=0,1"]), "there is no latent"),
        (library(&["--quality", "best"]), "reference, standard or fast"),
        (library(&["--vews", "3"]), "--views"),
        (library(&["--meshes", "a"]), "cannot be used with"),
        (library(&["--preset", "3diebench", "--range", "trans_x=0,1"]), "3diebench-t"),
        (words("render --meshes OUT --out OUT/views"), "lies inside"),
        (words("dataset preview --out OUT"), "--procedural"),
        (words("dataset preview --procedural --out OUT"), "must end in .png"),
        (words("dataset stats OUT --out OUT"), "must end in .png or .svg"),
    ] {
        let (status, message) = failure(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(status, 2, "{arguments:?}: {message}");
        assert!(message.contains(part), "{arguments:?}: {message}");
        assert!(!Path::new(&out).exists());
    }
    std::fs::write(path("file"), "").unwrap();
    let inside = path("file/views");
    for (arguments, part) in [
        (words("render --meshes /no/such/folder --out OUT"), "/no/such/folder"),
        (words(&format!("render --procedural 2x2 --out {inside}")), "cannot"),
        (words("dataset check /no/such/folder"), ""),
        (words("dataset stats /no/such/folder"), "/no/such/folder"),
        (words("dataset preview /no/such/folder --out OUT.png"), "/no/such/folder"),
        (words("dataset finish /no/such/folder"), "/no/such/folder"),
        (words("render views --views /no/such.json --root . --out OUT"), "/no/such.json"),
        (words("bench loader /no/such/folder"), "/no/such/folder"),
    ] {
        let (status, message) = failure(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(status, 1, "{arguments:?}: {message}");
        assert!(message.contains(part) && !message.contains("panicked"), "{arguments:?}: {message}");
    }
}

/// A write that fails (here: a limit on the size of files) is an error, and nothing is damaged.
#[test]
#[cfg(unix)]
fn a_failing_disk_is_an_error_and_damages_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (whole, out) = (path("whole"), path("views"));
    ok(&small("shards", &whole, &["--quiet"]));
    // Fragments (9 kB) fit below the limit, archives do not. The shell counts blocks of 512 or 1024 bytes.
    let script =
        format!("trap '' XFSZ; ulimit -f 20; exec \"$0\" {}", small("shards", &out, &["--quiet"]).join(" "));
    let output = Command::new("sh").args(["-c", &script, env!("CARGO_BIN_EXE_equicaps")]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("cannot write") && message.lines().count() == 1, "{message}");
    assert_eq!(message.to_lowercase().matches("file too large").count(), 1, "{message}");
    assert!(!tree(Path::new(&out)).keys().any(|name| name.starts_with("shards/")));
    ok(&small("shards", &out, &["--quiet"]));
    assert_same(&tree(Path::new(&out)), &tree(Path::new(&whole)));
}
