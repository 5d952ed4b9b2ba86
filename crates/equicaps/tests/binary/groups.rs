//! Groups of transformations through the binary: scale and shear of objects, warps of photographs, rotations in 4x4 matrices.

use std::path::Path;
use std::process::Command;

use crate::support::{TINY, equicaps, failure, ok, ok_json, set};

const SMALL: [&str; 6] = [
    "batch=4",
    "epochs=2",
    "network.projector=[16, 16, 16]",
    "procedural.views=4",
    "logging.every_steps=1",
    "probes.held_out_every=1",
];

fn train(run: &Path, data: &str, transform: &str, method: &str) -> Command {
    let mut command = equicaps(&["train", "--preset", "demo", "--quiet", "--run"]);
    command.arg(run).args(["--data", data, "--transform", transform, "--method", method]);
    set(set(&mut command, &TINY), &SMALL);
    command
}

fn render(out: &Path, more: &[&str]) -> Command {
    let mut command =
        equicaps(&["render", "--procedural", "2x5", "--size", "32", "--quality", "fast", "--quiet"]);
    command.arg("--out").arg(out).args(more);
    command
}

#[test]
fn objects_are_scaled_and_sheared_from_the_latents_to_the_probes() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    let data = at("affine");
    let file = at("latents.toml");
    std::fs::write(&file, "scale = [[0.5, 2], [1, 1], [1, 1]]\n[distribution]\nscale = \"log-uniform\"\n")
        .unwrap();
    let latents = file.to_str().unwrap();
    let more =
        ["--preset", "3diebench-a", "--views", "4", "--latents", latents, "--range", "shear_yz=0,0.125"];
    ok(&mut render(&data, &more));
    let card = std::fs::read_to_string(data.join("README.md")).unwrap();
    assert!(card.contains("| scale_x | 0.5 to 2, log-uniform |"), "{card}");
    assert!(card.contains("| shear_yz | 0 to 0.125 |"), "{card}");
    let views = dataset::Dataset::open(&data).unwrap();
    let table = views.latent_table();
    assert_eq!(table.width(), 16);
    assert!(
        (0..table.rows()).all(|row| (0.5..=2.0).contains(&table.row(row)[10]) && table.row(row)[11] == 1.0)
    );
    ok(equicaps(&["dataset", "check"]).arg(&data));

    let data = data.to_str().unwrap();
    for (transform, method) in
        [("affine", "equicaps"), ("affine+base", "sie"), ("similarity", "simclr_augself")]
    {
        let run = at(method);
        let result = ok_json(&mut train(&run, data, transform, method));
        assert!(result["held_out"]["probe/scale_r2/representation"].is_number(), "{result}");
        assert_eq!(
            result["held_out"]["probe/shear_r2/representation"].is_number(),
            transform != "similarity"
        );
    }
    let results = ok_json(equicaps(&["evaluate", "--preset", "quick", "--quiet"]).arg(at("equicaps")));
    let found = &results["results"][0];
    assert_eq!(found["data"]["kind"], "3DIEBench-A");
    for task in ["rotation", "translation-object", "scale", "shear"] {
        assert!(found["representations"][task]["value"]["value"].is_number(), "{task}: {found}");
        assert!(found["embeddings"][task]["value"]["value"].is_number(), "{task}: {found}");
    }
    for part in ["rotation", "translation", "scale", "shear"] {
        assert!(found["retrieval"]["pre"]["val-val"][part].is_number(), "{part}: {found}");
    }
    // A supervised network learns one part of the motion, and is evaluated with its own head.
    ok(set(&mut train(&at("supervised"), data, "affine", "supervised"), &["network.task=shear"]));
    let own = ok_json(equicaps(&["evaluate", "--preset", "quick", "--quiet"]).arg(at("supervised")));
    let own = own["results"][0]["representations"].as_object().unwrap();
    assert_eq!(own.keys().collect::<Vec<_>>(), ["shear"]);
    assert!(
        own["shear"]["value"]["value"].is_number() && own["shear"]["curve"].as_array().unwrap().is_empty()
    );
    for (transform, task, expected) in [
        ("similarity", "shear", "network.task shear needs a transform that has it, not similarity: affine"),
        (
            "affine",
            "perspective",
            "network.task perspective needs a transform that has it, not affine: image-homo",
        ),
    ] {
        let task = format!("network.task={task}");
        let (status, message) =
            failure(set(&mut train(&at("wrong"), data, transform, "supervised"), &[task.as_str()]));
        assert!(status == 2 && message.contains(expected), "{message}");
    }
    let image = views.image_name(0, 0);
    let steer = |more: &[&str]| {
        let mut command = equicaps(&["steer"]);
        command.arg(at("equicaps")).arg(&image).arg("--among").arg(image.parent().unwrap()).args(more);
        command
    };
    let identity = "1,0,0,0, 0,1,0,0, 0,0,1,0, 0,0,0,1";
    let by_matrix = ok(&mut steer(&["--matrix", identity]));
    assert_eq!(by_matrix, ok(&mut steer(&[])));
    assert_ne!(by_matrix, ok(&mut steer(&["--scale", "3,0.3,1", "--shear", "1,0,0"])));
    // Objects have no perspective.
    let mut in_perspective = steer(&["--perspective", "0.1,0"]);
    let said = in_perspective.output().unwrap();
    let said = String::from_utf8_lossy(&said.stderr);
    assert!(said.contains("trained for affine only: --perspective has no effect"), "{said}");
    for (matrix, expected) in [
        ("1,0,0,0,1,0,0,0,1", "--matrix is 3x3, but this network's poses, trained for affine, are 4x4"),
        ("1,2,3", "a matrix has 9 numbers (3x3) or 16 (4x4), row by row, but there are 3"),
        ("0,0,0,0,0,0,0,0,0", "the matrix is singular"),
        ("1,0,0,0,1,0,0,0,x", "\"x\" is not a number"),
    ] {
        let (status, message) = failure(&mut steer(&["--matrix", matrix]));
        assert!(status == 2 && message.contains(expected), "{message}");
    }
    std::fs::write(&file, "scales = [1, 2]").unwrap();
    let (status, message) = failure(&mut render(&at("wrong"), &["--latents", latents]));
    assert!(status == 2 && message.contains("did you mean \"scale\"?"), "{message}");
    assert!(message.contains("latents.toml: there is no latent \"scales\""), "{message}");
}

#[test]
fn cameras_are_latents_of_views() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    let file = at("camera.toml");
    let latents = file.to_str().unwrap();
    std::fs::write(&file, "camera_distance = [2, 3]\ncamera_elevation = [0.1, \"pi/2\"]\n").unwrap();
    ok(&mut render(&at("moved"), &["--preset", "3diebench", "--views", "3", "--latents", latents]));
    let card = std::fs::read_to_string(at("moved").join("README.md")).unwrap();
    assert!(card.contains("| camera_distance | 2 to 3 |"), "{card}");
    let views = dataset::Dataset::open(&at("moved")).unwrap();
    let table = views.latent_table();
    assert_eq!(table.columns().names()[7..], ["camera_distance", "camera_elevation"]);
    assert!((0..table.rows()).all(|row| (2.0..3.0).contains(&table.row(row)[7])));
    ok(equicaps(&["dataset", "check"]).arg(at("moved")));
    let stats = ok(equicaps(&["dataset", "stats"]).arg(at("moved")).arg("--out").arg(at("stats.svg")));
    assert!(stats.contains("camera_elevation   0.100 |"), "{stats}");

    // The published camera, given as such, makes the published images; another one does not.
    let image = |name: &str, more: &[&str]| {
        ok(&mut render(&at(name), &[&["--preset", "3diebench", "--views", "1"], more].concat()));
        let views = dataset::Dataset::open(&at(name)).unwrap();
        std::fs::read(views.image_name(0, 0)).unwrap()
    };
    let published = image("published", &[]);
    assert_eq!(published, image("given", &["--range", "camera_distance=2.5,2.5"]));
    assert_ne!(published, image("other", &["--range", "camera_distance=2.4,2.4"]));
    for (range, expected) in [
        ("camera_distance=0,1", "the distance must be above 0"),
        ("camera_distance=0.3,1", "can be inside the object"),
        ("camera_elevation=0,2", "the elevation must be from -pi/2 to pi/2"),
        ("camera_elevation=-0.5,0", "is below the floor"),
    ] {
        let (status, message) = failure(&mut render(&at("wrong"), &["--range", range]));
        assert!(status == 2 && message.contains(expected), "{range}: {message}");
    }
}

#[test]
fn a_run_keeps_the_latents_of_a_file() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    let (file, run) = (at("own.toml"), at("run"));
    let text = "# Ours.\ncamera_elevation = [0.3, \"pi/2\"]\nfloor_hue = [0.5, 0.5]\n[distribution]\nrotation = \"normal\"\n";
    std::fs::write(&file, text).unwrap();
    let latents = format!("procedural.latents={}", file.display());
    ok(set(
        &mut train(&run, "procedural:2x5", "rotation", "equicaps"),
        &[&latents, "epochs=1", "probes.held_out_every=0"],
    ));
    let config = std::fs::read_to_string(run.join("config.toml")).unwrap();
    assert!(config.contains("camera_elevation = [0.3, \"pi/2\"]"), "{config}");
    // The same contents elsewhere are the same run; other contents are not.
    let resume = |more: &[&str]| {
        let mut command = equicaps(&["train", "--quiet"]);
        command.args(more).arg("--resume").arg(&run);
        command
    };
    std::fs::rename(&file, at("moved.toml")).unwrap();
    let moved = format!("procedural.latents={}", at("moved.toml").display());
    ok(&mut resume(&["--set", "epochs=2", "--set", &moved]));
    ok(&mut resume(&["--set", "epochs=3"]));
    let (status, message) = failure(&mut resume(&["--set", "procedural.latents={floor_hue=[0,0.5]}"]));
    assert!(status == 2 && message.contains("--set procedural.latents would change what"), "{message}");
    ok(equicaps(&["evaluate", "--preset", "quick", "--quiet"]).arg(&run));
    // Slips are named before anything is made.
    std::fs::write(&file, "camera_elevatoin = [0, 1]").unwrap();
    let (status, message) =
        failure(set(&mut train(&at("wrong"), "procedural:2x5", "rotation", "equicaps"), &[&latents]));
    assert!(status == 2 && message.contains("own.toml: there is no latent"), "{message}");
    assert!(message.contains("did you mean \"camera_elevation\"?") && !at("wrong").exists(), "{message}");
}

#[test]
fn rotations_fill_the_corner_of_a_4x4_matrix() {
    let root = tempfile::tempdir().unwrap();
    let run = root.path().join("run");
    let result = ok_json(&mut train(&run, "procedural:2x5", "rotation-4x4", "equicaps"));
    assert!(result["held_out"]["probe/rotation_r2/poses"].is_number(), "{result}");
    let refused = root.path().join("refused");
    let mut command = train(&refused, "procedural:2x5", "rotation", "equicaps");
    let (status, message) = failure(set(&mut command, &["network.pose=4"]));
    assert_ne!(status, 0);
    assert!(message.contains("transform rotation-4x4 puts rotations in 4x4 matrices"), "{message}");
}

/// Views of built-in objects as pictures in folders of classes, without anything else.
fn photographs(root: &Path) -> String {
    let views = root.join("views");
    let upright = ["--preset", "3diebench", "--views", "1", "--range", "rotation=0,0", "--format", "files"];
    ok(&mut render(&views, &upright));
    let dataset = dataset::Dataset::open(&views).unwrap();
    let photos = root.join("photos");
    for number in 0..10 {
        let from = dataset.image_name(number, 0);
        let class = photos.join(from.parent().unwrap().parent().unwrap().file_name().unwrap());
        std::fs::create_dir_all(&class).unwrap();
        std::fs::copy(from, class.join(format!("{number}.jpg"))).unwrap();
    }
    photos.to_str().unwrap().to_owned()
}

#[test]
fn all_methods_train_on_a_folder_of_pictures() {
    let root = tempfile::tempdir().unwrap();
    let photos = photographs(root.path());
    let transforms = ["image-affine", "image-rotation", "image-similarity", "image-homography"];
    for (index, method) in methods::MethodName::all().into_iter().enumerate() {
        let (run, transform) = (root.path().join(method.name()), transforms[index % 4]);
        let result = ok_json(&mut train(&run, &photos, transform, method.name()));
        assert!(result["held_out"]["probe/rotation_r2/representation"].is_number(), "{result}");
        assert!(result["held_out"]["probe/class_accuracy/representation"].is_number(), "{result}");
        let scale = &result["held_out"]["probe/scale_r2/representation"];
        assert_eq!(scale.is_number(), transform != "image-rotation", "{method}: {result}");
    }
    // EquiCaps is the ninth: image-affine.
    let equicaps_run = root.path().join("equicaps");
    let results = ok_json(equicaps(&["evaluate", "--preset", "quick", "--quiet"]).arg(&equicaps_run));
    let found = &results["results"][0];
    assert_eq!(found["data"]["kind"], "photographs");
    for task in ["classification", "rotation", "translation-object", "scale", "shear"] {
        assert!(found["representations"][task]["value"]["value"].is_number(), "{task}: {found}");
    }
    assert!(found["retrieval"]["val"]["mrr"].is_number(), "{found}");
    // What a network of images cannot do is refused, and all that was asked for is said.
    let steer = |more: &[&str]| {
        let classes = std::fs::read_dir(&photos).unwrap();
        let class = classes.map(|class| class.unwrap().path()).next().unwrap();
        let image = std::fs::read_dir(class).unwrap().next().unwrap().unwrap().path();
        let mut command = equicaps(&["steer"]);
        command.arg(&equicaps_run).arg(image).arg("--among").arg(&photos).args(more);
        command
    };
    let (status, message) = failure(&mut steer(&["--rotate", "90,0,0"]));
    assert!(status == 2 && message.contains("--rotate: this network was trained for images"), "{message}");
    let found = ok_json(&mut steer(&["--scale", "1.5,1,1", "--shear", "0.25,0,0"]));
    assert_eq!(
        (&found["scale"][0], &found["shear"][0], &found["perspective"][1]),
        (&1.5.into(), &0.25.into(), &0.0.into())
    );
    // A part that does not change is not probed, or an error where it is named.
    let still = root.path().join("still");
    ok(set(&mut train(&still, &photos, "image-affine", "equicaps"), &["photos.shear=[0,0]"]));
    let results = ok_json(equicaps(&["evaluate", "--preset", "quick", "--quiet"]).arg(&still));
    let found = &results["results"][0]["representations"];
    assert!(found["scale"].is_object() && found.get("shear").is_none(), "{found}");
    let mut named = equicaps(&["evaluate", "--preset", "quick", "--quiet", "--tasks", "scale,shear"]);
    let (_, message) = failure(named.arg(&still));
    assert!(
        message.contains("--tasks shear: the shear targets of what is held out are all the same"),
        "{message}"
    );
    // Ranges are kept in the run, also for evaluations; other ones are another run.
    let small = root.path().join("small");
    let ranges = ["photos.angle=[-0.25,0.25]", "photos.hue=[0,0]"];
    ok(set(&mut train(&small, &photos, "image-rotation", "equicaps"), &ranges));
    let config = std::fs::read_to_string(small.join("config.toml")).unwrap();
    assert!(config.contains("angle = [-0.25, 0.25]") && config.contains("hue = [0.0, 0.0]"), "{config}");
    ok(equicaps(&["evaluate", "--preset", "quick", "--quiet"]).arg(&small));
    let mut other = equicaps(&["train", "--quiet", "--set", "photos.angle=[-0.5,0.5]", "--resume"]);
    let (status, message) = failure(other.arg(&small));
    assert!(status == 2 && message.contains("--set photos.angle would change what"), "{message}");
    for (setting, expected) in [
        ("photos.scale=[2,1]", "photos.scale is 2 to 1: it ends before it begins"),
        ("photos.scale=2", "photos.scale takes two numbers such as [0.5, 2], not 2"),
        ("photos.perspective=[0,1]", "photos.perspective is 0 to 1, but must be within -0.4 to 0.4"),
        ("photos.scale=[0.011,1]", "at least 0.05 is needed"),
    ] {
        let run = root.path().join("wrong");
        let (_, message) = failure(set(&mut train(&run, &photos, "image-affine", "equicaps"), &[setting]));
        assert!(message.contains(expected) && !run.exists(), "{setting}: {message}");
    }
    // The same steps, interrupted or not.
    let again = root.path().join("again");
    ok(set(
        &mut train(&again, &photos, "image-affine", "equicaps"),
        &["epochs=1", "probes.held_out_every=0"],
    ));
    ok(equicaps(&["train", "--quiet", "--resume"]).arg(&again));
}

#[test]
fn data_that_do_not_go_with_a_transform_are_refused() {
    let root = tempfile::tempdir().unwrap();
    let run = root.path().join("run");
    let views = root.path().join("views");
    ok(&mut render(&views, &["--preset", "3diebench-t", "--views", "2"]));
    let views = views.to_str().unwrap();
    for (data, transform, expected) in [
        (
            "procedural:2x5",
            "image-affine",
            "transform image-affine warps photographs, but procedural:2x5 has views of objects",
        ),
        (views, "similarity", "transform similarity needs views with scales (3DIEBench-S or -A), but"),
        (views, "affine", "transform affine needs views with scales"),
        ("no/such/photos", "image-rotation", "there is no folder of photographs at no/such/photos"),
        ("procedural:2x5", "afine", "did you mean \"affine\"?"),
    ] {
        let (status, message) = failure(&mut train(&run, data, transform, "equicaps"));
        assert!(status != 0 && message.contains(expected), "{message}");
        assert!(!run.exists(), "a mistake leaves no folder");
    }
    let empty = root.path().join("empty");
    std::fs::create_dir_all(&empty).unwrap();
    let (_, message) = failure(&mut train(&run, empty.to_str().unwrap(), "image-affine", "equicaps"));
    assert!(message.contains("holds no images"), "{message}");
}
