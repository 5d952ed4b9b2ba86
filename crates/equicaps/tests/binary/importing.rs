//! Images that people have, through the binary: imported from tables, folders and BOP scenes, looked at, trained on,
//! evaluated, embedded; and what wrong tables are told.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use dataset::latent_table::NAMES;
use dataset::{Dataset, Split, Views};
use image::{ImageFormat, RgbImage};

use crate::support::{self, TINY, failure, ok, ok_json, set};

fn equicaps(root: &Path, arguments: &[&str]) -> Command {
    let mut command = support::equicaps(arguments);
    command.current_dir(root);
    command
}

/// 9 training objects in steps of at most 6 pairs: two steps an epoch.
fn train(root: &Path, data: &str, method: &str, run: &str, more: &[&str]) -> Command {
    let mut command =
        equicaps(root, &["train", "--quiet", "--data", data, "--preset", "demo", "--method", method]);
    set(set(command.args(["--run", run]), &TINY), &["epochs=1", "batch=6", "network.projector=[16, 16, 16]"]);
    command.args(more);
    command
}

/// A table of the views of a rendered dataset but for the last of its first object, with this program's own latents or with
/// quaternions, of which `left_out` are empty.
fn table(views: &Dataset, path: &Path, own: bool, left_out: &[usize]) -> usize {
    let folder = path.parent().unwrap();
    let names = if own { NAMES[..7].join(",") } else { "qx,qy,qz,qw".to_owned() };
    let mut text = format!("file,class,object,view,{names}\n");
    let mut rows = 0;
    for object in 0..views.objects().len() {
        for view in (0..views.views()).filter(|&view| (object, view) != (0, 3)) {
            let file = views.image_name(object, view);
            let file = file.strip_prefix(folder).unwrap().display().to_string();
            let dataset::Object { synset, name, .. } = &views.objects()[object];
            let latents = views.latents(object, view);
            let numbers: Vec<String> = match own {
                true => latents.to_vec()[..7].iter().map(f64::to_string).collect(),
                false => latents.pose().quaternion().to_array().iter().map(f64::to_string).collect(),
            };
            let numbers = if left_out.contains(&rows) { vec![String::new(); numbers.len()] } else { numbers };
            writeln!(text, "{file},{synset},{name},{view},{}", numbers.join(",")).unwrap();
            rows += 1;
        }
    }
    std::fs::write(path, text).unwrap();
    rows
}

/// Four small views of each of 10 objects, rendered in `root/views`.
fn rendered(root: &Path) -> Dataset {
    support::render_views("2x5", &root.join("views"), &["--preset", "3diebench"]);
    Dataset::open(&root.join("views")).unwrap()
}

#[test]
fn a_table_of_views_is_trained_on_evaluated_and_embedded() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let views = rendered(root);
    let rows = table(&views, &root.join("poses.csv"), true, &[]);
    let import = ["dataset", "import", "poses.csv", "--out", "own", "--size", "32", "--quiet"];
    let said = ok_json(&mut equicaps(root, &import));
    assert_eq!(said["counts"]["images"], rows);
    assert_eq!(
        (&said["fewest_views"], &said["most_views"], &said["without_pose"]),
        (&3.into(), &4.into(), &0.into())
    );

    // The same latents come back, and the files are the same bytes.
    let own = Dataset::open(&root.join("own")).unwrap();
    assert_eq!(own.objects(), views.objects(), "the split is that of a rendered dataset");
    for object in 0..views.objects().len() {
        assert_eq!(own.views_in(object), if object == 0 { 3 } else { 4 });
        for view in 0..own.views_in(object) {
            assert_eq!(own.latents(object, view), views.latents(object, view));
            assert_eq!(own.read_jpeg(object, view).unwrap(), views.read_jpeg(object, view).unwrap());
        }
    }
    assert_eq!(ok_json(&mut equicaps(root, &import))["was_complete"], true);

    // It is a dataset like any other.
    let checked = ok_json(&mut equicaps(root, &["dataset", "check", "own", "--quiet"]));
    assert_eq!((&checked["images"], &checked["images_with_checksum"]), (&rows.into(), &rows.into()));
    let stats = ok_json(&mut equicaps(root, &["dataset", "stats", "own", "--quiet"]));
    assert_eq!(stats["latents"].as_array().unwrap().len(), 7);
    ok(&mut equicaps(root, &["dataset", "preview", "own", "--axes", "--out", "axes.png"]));
    assert!(root.join("axes.png").is_file() && root.join("own/README.md").is_file());

    for method in ["equicaps", "vicreg"] {
        let run = format!("runs/{method}");
        ok(&mut train(root, "own", method, &run, &[]));
        let evaluate = ["evaluate", &run, "--data", "own", "--preset", "quick", "--quiet", "--no-images"];
        let found = ok_json(&mut equicaps(root, &evaluate));
        let probes = &found["results"][0]["representations"];
        let r2 = probes["rotation"]["value"]["value"].as_f64().unwrap();
        assert!(r2.is_finite() && r2 < 1.0 && probes["classification"].is_object(), "{method}: {probes}");
        assert!(probes["colour"].is_object(), "hues were in the table");
    }
    ok(&mut equicaps(root, &["embed", "runs/vicreg", "own", "--out", "all.parquet", "--quiet"]));
    // Features with their latents are a table of poses again.
    let embedded = std::fs::read(root.join("all.parquet")).unwrap();
    assert!(embedded.windows(5).any(|name| name == b"rot_x"));
    ok(&mut equicaps(root, &["neighbours", "runs/vicreg", "own", "--among", "own", "--quiet"]));
}

#[test]
fn what_the_data_do_not_have_is_not_measured() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let views = rendered(root);
    let rows = table(&views, &root.join("poses.csv"), false, &[]);
    let import = |out: &str, table: &str, more: &[&str]| {
        let mut command =
            equicaps(root, &["dataset", "import", table, "--out", out, "--size", "32", "--quiet"]);
        command.args(more);
        command
    };
    let said = ok_json(&mut import("quaternions", "poses.csv", &["--split", "objects"]));
    assert_eq!(said["latents"], serde_json::json!(["rot_x", "rot_y", "rot_z"]));
    let own = Dataset::open(&root.join("quaternions")).unwrap();
    for view in 0..3 {
        let [found, wanted] = [&own, &views].map(|data| data.latents(0, view).rotation);
        assert!(found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?} {wanted:?}");
    }
    ok(&mut train(root, "quaternions", "equicaps", "runs/equicaps", &[]));
    let evaluate = ["evaluate", "runs/equicaps", "--data", "quaternions", "--preset", "quick", "--quiet"];
    let found = ok_json(&mut equicaps(root, &evaluate));
    let result = &found["results"][0];
    assert_eq!(result["data"]["kind"], "imported");
    assert!(result["representations"]["rotation"].is_object() && result["retrieval"].is_object());
    assert!(result["representations"]["colour"].is_null(), "there are no hues");
    ok(&mut equicaps(root, &["embed", "runs/equicaps", "quaternions", "--out", "all.parquet", "--quiet"]));
    let embedded = std::fs::read(root.join("all.parquet")).unwrap();
    let holds = |name: &[u8]| embedded.windows(name.len()).any(|found| found == name);
    assert!(holds(b"rot_x") && !holds(b"floor_hue") && !holds(b"trans_x"));

    // Some rows without a pose: a method that needs it says which, others do without.
    table(&views, &root.join("some.csv"), false, &[4, 17]);
    ok(&mut import("some", "some.csv", &["--reference"]));
    let (status, said) = failure(&mut train(root, "some", "equicaps", "runs/none", &[]));
    let expected = format!(
        "method equicaps needs the pose of every view, but 2 of the {rows} views imported from some.csv"
    );
    assert!(status == 1 && said.contains(&expected), "{said}");
    assert!(said.contains("line 6, line 19") || said.contains("line 19, line 6"), "{said}");
    ok(&mut train(root, "some", "vicreg", "runs/vicreg", &[]));
    let evaluate = ["evaluate", "runs/vicreg", "--data", "some", "--preset", "quick", "--quiet"];
    let found = ok_json(&mut equicaps(root, &evaluate));
    let probes = found["results"][0]["representations"].as_object().unwrap();
    assert_eq!(probes.keys().collect::<Vec<_>>(), ["classification"]);
    let neighbours = std::fs::read_to_string(
        PathBuf::from(root).join("runs/vicreg/evaluation").join("epoch_00001/neighbours.json"),
    );
    assert!(!neighbours.unwrap().contains("rotation_distance"));
    let metrics = std::fs::read_to_string(root.join("runs/vicreg/metrics.jsonl")).unwrap();
    assert!(metrics.contains("class_accuracy") && !metrics.contains("rotation_r2"), "{metrics}");
    // Images that are left where they are, are checked and embedded, too, under their own names.
    ok(&mut equicaps(root, &["dataset", "check", "some", "--quiet"]));
    ok(&mut equicaps(root, &["embed", "runs/vicreg", "some", "--out", "some.npy", "--quiet"]));
    let names = std::fs::read_to_string(root.join("some.npy.txt")).unwrap();
    assert!(
        names.lines().count() == rows && names.contains("views/") && names.contains("image_0.jpg"),
        "{names}"
    );
}

/// Colourful images of several types and sizes.
fn photograph(path: &Path, width: u32, height: u32) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    // By the names of the class and the file, not of a temporary folder.
    let names = path.iter().rev().take(2).flat_map(|name| name.to_string_lossy().into_owned().into_bytes());
    let seed = names.fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    let image = RgbImage::from_fn(width, height, |x, y| {
        image::Rgb([(x * 5 + seed) as u8, (y * 7 + (seed >> 8)) as u8, (seed >> 16) as u8])
    });
    image.save_with_format(path, ImageFormat::from_path(path).unwrap()).unwrap();
}

#[test]
fn folders_of_classes_need_no_table_and_no_poses() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for class in ["cups", "pans"] {
        for k in 0..6 {
            let extension = ["jpg", "png", "webp"][k % 3];
            photograph(&root.join(format!("photos/{class}/{k}.{extension}")), 30, 60 + 7 * k as u32);
        }
    }
    for (out, fit) in [("cropped", "crop"), ("padded", "pad")] {
        let import = ["dataset", "import", "photos", "--out", out, "--size", "32", "--fit", fit, "--quiet"];
        let said = ok_json(&mut equicaps(root, &import));
        assert_eq!(
            (&said["objects"], &said["most_views"], &said["fit"]),
            (&12.into(), &1.into(), &fit.into())
        );
        assert_eq!(said["latents"], serde_json::json!([]));
        ok(&mut equicaps(root, &["dataset", "check", out, "--quiet"]));
        ok(&mut equicaps(root, &["dataset", "stats", out, "--quiet"]));
        assert!(std::fs::read_to_string(root.join(out).join("README.md")).unwrap().contains(fit));
    }
    let grey = |data: &Dataset| {
        let image = data.decode(0, 0).unwrap();
        image.pixels[..9].iter().all(|&value| value.abs_diff(128) < 10)
    };
    assert!(
        grey(&Dataset::open(&root.join("padded")).unwrap())
            && !grey(&Dataset::open(&root.join("cropped")).unwrap())
    );
    ok(&mut train(root, "padded", "supervised", "runs/classes", &["--set", "network.task=classification"]));
    let evaluate = ["evaluate", "runs/classes", "--data", "padded", "--preset", "quick", "--quiet"];
    let found = ok_json(&mut equicaps(root, &evaluate));
    assert!(found["results"][0]["representations"]["classification"].is_object());
    let (_, said) = failure(&mut train(root, "padded", "vicreg", "runs/no", &[]));
    assert!(said.contains("has one view of every object, but a pair needs two different ones"), "{said}");
    let (_, said) =
        failure(&mut equicaps(root, &["dataset", "preview", "padded", "--axes", "--out", "x.png"]));
    assert!(said.contains("has no rotations"), "{said}");
}

#[test]
fn a_bop_folder_is_cut_around_its_objects_and_held_out_by_views() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for scene in ["000001", "000002"] {
        let base = root.join("lm").join(scene);
        let (mut truth, mut info) = (Vec::new(), Vec::new());
        for image in 0..5 {
            photograph(&base.join(format!("rgb/{image:06}.png")), 64, 48);
            let (sin, cos) = (0.3 * f64::from(image)).sin_cos();
            let pose = |id: u32| {
                format!(
                    "{{\"cam_R_m2c\": [{cos}, {}, 0, {sin}, {cos}, 0, 0, 0, 1], \"cam_t_m2c\": [1, 2, 600], \"obj_id\": {id}}}",
                    -sin
                )
            };
            truth.push(format!("\"{image}\": [{}, {}]", pose(1), pose(9)));
            let boxed = "{\"bbox_obj\": [10, 8, 20, 16], \"visib_fract\": 0.9}";
            info.push(format!("\"{image}\": [{boxed}, {boxed}]"));
        }
        std::fs::write(base.join("scene_gt.json"), format!("{{{}}}", truth.join(", "))).unwrap();
        std::fs::write(base.join("scene_gt_info.json"), format!("{{{}}}", info.join(", "))).unwrap();
    }
    let said = ok_json(&mut equicaps(
        root,
        &["dataset", "import", "lm", "--out", "parts", "--size", "32", "--quiet"],
    ));
    assert_eq!((&said["boxes"], &said["split"], &said["objects"]), (&20.into(), &"views".into(), &2.into()));
    assert_eq!(said["latents"].as_array().unwrap().len(), 6);
    let parts = Dataset::open(&root.join("parts")).unwrap();
    assert_eq!([Split::Train, Split::Val].map(|split| parts.views_of(split, 0).len()), [8, 2]);
    let depth = parts.latents(1, 0).translation.unwrap();
    assert!((depth[2] - 0.6).abs() < 1e-12, "{depth:?}");
    ok(&mut equicaps(root, &["dataset", "check", "parts", "--quiet"]));
    ok(&mut train(root, "parts", "equicaps", "runs/parts", &["--transform", "rotation+object"]));
}

#[test]
fn wrong_tables_leave_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    photograph(&root.join("a.png"), 20, 10);
    std::fs::write(root.join("broken.png"), b"\x89PNG\r\n\x1a\nnothing").unwrap();
    let refusal = |text: &str, more: &[&str]| {
        std::fs::write(root.join("t.csv"), text).unwrap();
        let mut command = equicaps(root, &["dataset", "import", "t.csv", "--out", "out", "--quiet"]);
        let (status, said) = failure(command.args(more));
        assert!(!said.contains("panicked") && said.trim_end().lines().count() == 1, "{said}");
        (status, said)
    };
    for (text, expected) in [
        ("file\n", "t.csv: the table has no rows"),
        ("file,class\na.png,cup\nb.png,cup\n", "t.csv: line 3: there is no file b.png"),
        ("file,clas\na.png,cup\n", "is it class?"),
        ("file,qx,qy,qz,qw\na.png,0,0,0,one\n", "t.csv: line 2: qw is \"one\", expected a number"),
        (
            "file,object,view\na.png,x,1\n./a.png,x,1\n",
            "t.csv: line 3: images/x has view 1 already, in line 2",
        ),
        ("file,class\na.png,../x\n", "t.csv: line 2: \"../x/a\" cannot be the name of an object"),
    ] {
        let (status, said) = refusal(text, &[]);
        assert!(status == 1 && said.contains(expected), "{expected}: {said}");
        assert!(!root.join("out").exists(), "{expected}");
    }
    // A broken image is found while others are written; when it is mended, the import goes on.
    let text = "file,class\na.png,cup\nbroken.png,cup\n";
    let (_, said) = refusal(text, &[]);
    assert!(said.contains("t.csv: line 3: broken.png: not a readable PNG"), "{said}");
    let (_, said) = failure(&mut equicaps(root, &["dataset", "check", "out", "--quiet"]));
    assert!(said.contains("error: out has a problem: "), "{said}");
    photograph(&root.join("broken.png"), 20, 10);
    let import = ["dataset", "import", "t.csv", "--out", "out", "--quiet"];
    assert_eq!(ok_json(&mut equicaps(root, &import))["counts"]["images"], 2);
    ok(&mut equicaps(root, &["dataset", "check", "out", "--quiet"]));
    assert!(!root.join("out/.equicaps").exists());
    let (_, said) = failure(&mut equicaps(root, &[&import[..], &["--fit", "pad"]].concat()));
    assert!(
        said.contains("was begun with other settings: origin.fit is crop there, pad was asked for"),
        "{said}"
    );
    let (status, _) = failure(&mut equicaps(root, &["dataset", "import", "none.csv", "--out", "x"]));
    assert_eq!(status, 1);
}

#[test]
fn images_that_cannot_be_used_are_named_together_or_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for class in ["cups", "pans"] {
        for k in 0..6 {
            photograph(&root.join(format!("photos/{class}/{k}.png")), 30, 40 + k);
        }
    }
    std::fs::write(root.join("photos/cups/1.png"), b"nothing").unwrap();
    std::fs::write(root.join("photos/pans/4.png"), b"").unwrap();
    let import = ["dataset", "import", "photos", "--out", "own", "--size", "32", "--quiet"];
    let (status, said) = failure(&mut equicaps(root, &import));
    assert!(status == 1 && said.trim_end().lines().count() == 1, "{said}");
    for part in ["2 of 12 images cannot be used", "cups/1.png: ", "pans/4.png: ", "--on-bad-sample skip"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // One of them is taken away: the same command goes on, and names the other.
    std::fs::remove_file(root.join("photos/cups/1.png")).unwrap();
    let (_, said) = failure(&mut equicaps(root, &import));
    assert!(!said.contains("cups/1.png") && said.contains("pans/4.png"), "{said}");
    let said = ok_json(equicaps(root, &import).args(["--on-bad-sample", "skip"]));
    let counts = &said["counts"];
    assert_eq!(
        (&counts["images"], &counts["skipped_images"], &said["objects"]),
        (&10.into(), &1.into(), &10.into())
    );
    let listed: serde_json::Value =
        serde_json::from_slice(&std::fs::read(root.join("own/skipped.json")).unwrap()).unwrap();
    assert_eq!(listed, said["skipped"]);
    assert!(listed.as_array().unwrap().iter().any(|one| one["file"] == "pans/4.png"), "{listed}");
    ok(&mut equicaps(root, &["dataset", "check", "own", "--quiet"]));
    ok(&mut equicaps(root, &["dataset", "stats", "own", "--quiet"]));
    ok(&mut train(root, "own", "supervised", "runs/own", &["--set", "network.task=classification"]));

    // A row of a table whose file is not there.
    std::fs::write(
        root.join("t.csv"),
        "file,class\nphotos/cups/0.png,cup\nphotos/cups/2.png,cup\ngone.png,cup\n",
    )
    .unwrap();
    let import = ["dataset", "import", "t.csv", "--out", "table", "--size", "32", "--quiet"];
    let (_, said) = failure(&mut equicaps(root, &import));
    assert!(
        said.contains("line 4: there is no file gone.png (--on-bad-sample skip leaves such rows out)"),
        "{said}"
    );
    let said = ok_json(equicaps(root, &import).args(["--on-bad-sample", "skip"]));
    assert_eq!((&said["counts"]["images"], &said["skipped"][1]["place"]), (&2.into(), &"line 4".into()));
}

#[test]
fn folders_with_sides_keep_every_image_and_say_what_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for (number, name) in
        ["train/cups/a.png", "train/cups/b.png", "train/cups/b.jpg", "val/cups/a.png", "train/pans/a.png"]
            .iter()
            .enumerate()
    {
        photograph(&root.join("photos").join(name), 30, 40 + number as u32);
    }
    std::fs::create_dir(root.join("photos/notes")).unwrap();
    // Inside the folder it would be found by the next import.
    for out in ["photos", "photos/out", "./photos/new/out", "photos/../photos/train/out"] {
        let (_, said) = failure(&mut equicaps(root, &["dataset", "import", "photos", "--out", out]));
        assert!(said.contains("lies inside photos, which is imported; use another --out"), "{out}: {said}");
    }
    // The only image of a class, and a link to nothing.
    std::fs::write(root.join("photos/train/pans/a.png"), b"nothing").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("nothing", root.join("photos/train/cups/gone.png")).unwrap();
    let import = ["dataset", "import", "photos", "--out", "own", "--size", "32", "--quiet"];
    failure(&mut equicaps(root, &import));
    // One of them is a file that is not there, which is found before anything is written.
    let _ = std::fs::remove_file(root.join("photos/train/cups/gone.png"));
    failure(&mut equicaps(root, &import));
    let (_, said) = failure(&mut equicaps(root, &["dataset", "finish", "own"]));
    assert!(said.contains("run the command that imports it again"), "{said}");
    let said = ok(equicaps(root, &import).args(["--on-bad-sample", "skip"]));
    for part in ["own: 4 images of 4 objects in 1 class, 1 view of each", "for training 3 images, held out 1"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    let readme = std::fs::read_to_string(root.join("own/README.md")).unwrap();
    for part in ["\n1 class.\n", "objects of which nothing is left 1, classes 1, which keep their labels."] {
        assert!(readme.contains(part), "{part}: {readme}");
    }
    let dataset = Dataset::open(&root.join("own")).unwrap();
    let held_out: Vec<&str> =
        dataset.split(Split::Val).map(|object| dataset.objects()[object].name.as_str()).collect();
    assert_eq!(held_out, ["val_a"]);
    ok(&mut equicaps(root, &["dataset", "check", "own", "--quiet"]));
    let said = ok(&mut equicaps(root, &["dataset", "stats", "own", "--quiet"]));
    assert!(!said.contains("\n\n\n"), "{said}");
}
