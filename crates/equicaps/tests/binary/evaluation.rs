//! From views to a report through the binary, on a tiny set: render, train two epochs, evaluate, report, use.
use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::support;

fn equicaps(folder: &Path, arguments: &[&str]) -> Output {
    support::equicaps(arguments).current_dir(folder).output().unwrap()
}

fn json(folder: &Path, arguments: &[&str]) -> Value {
    support::ok_json(support::equicaps(arguments).current_dir(folder).arg("--quiet"))
}

/// Views and two runs of two epochs.
fn prepare(folder: &Path) {
    support::render_views("3x5", &folder.join("views"), &[]);
    for method in ["equicaps", "sie"] {
        let run = format!("runs/{method}");
        let mut train = support::equicaps(&["train", "--quiet", "--data", "views", "--preset", "demo"]);
        train.current_dir(folder).args(["--method", method, "--run", &run]);
        let settings = ["epochs=2", "batch=6", "checkpoints.every_epochs=1"];
        support::ok(support::set(support::set(&mut train, &support::TINY), &settings));
    }
}

fn finite(value: &Value, low: f64, high: f64) {
    let number = value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"));
    assert!((low..=high).contains(&number), "{number} is not in {low}..{high}");
}

#[test]
fn from_views_to_a_report() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    prepare(root);
    let evaluate = ["evaluate", "runs/equicaps", "--data", "views", "--preset", "quick"];
    let found = json(root, &[&evaluate[..], &["--epochs", "all"]].concat());
    let results = found["results"].as_array().unwrap();
    assert_eq!(results.len(), 2);
    let last = &results[1];
    finite(&last["representations"]["classification"]["value"]["value"], 0.0, 1.0);
    finite(&last["representations"]["rotation"]["value"]["value"], -5.0, 1.0);
    finite(&last["representations"]["translation-base"]["value"]["value"], -5.0, 1.0);
    finite(&last["representations"]["colour"]["value"]["value"], -5.0, 1.0);
    finite(&last["representations"]["rotation"]["floor"], 0.0, 0.9);
    finite(&last["embeddings"]["rotation"]["value"]["value"], -5.0, 1.0);
    finite(&last["retrieval"]["val"]["mrr"], 0.25, 1.0);
    finite(&last["retrieval"]["pre"]["val-all"]["rotation"], 0.0, 1.0);
    finite(&last["retrieval"]["chance"]["h1"], 0.25, 0.25);
    assert_eq!(last["data"]["kind"], "3DIEBench-T");
    assert_eq!(last["subject"]["epochs"], 2);
    // A card for others says what was measured, and on what.
    json(root, &["export", "runs/equicaps", "--format", "hf", "--out", "hub"]);
    let card = std::fs::read_to_string(root.join("hub/README.md")).unwrap();
    let data = &last["data"];
    let objects = format!("{} training and {} held-out objects", data["train_objects"], data["val_objects"]);
    assert!(card.contains(&format!("probes on views ({objects}, latents of 3DIEBench-T)")), "{card}");
    let evaluation = root.join("runs/equicaps/evaluation/epoch_00002");
    for file in [
        "results.json",
        "tables.md",
        "tables.tex",
        "tables.csv",
        "neighbours.json",
        "pose_sweep.json",
        "inverse_rotation.png",
        "forward_rotation.svg",
    ] {
        assert!(evaluation.join(file).is_file(), "{file} is missing");
    }
    // Rotations in pose space are of a built-in object, or of one of the data's where their meshes are named.
    let turned = || {
        let bytes = std::fs::read(evaluation.join("pose_sweep.json")).unwrap();
        let sweep: Value = serde_json::from_slice(&bytes).unwrap();
        (sweep["is_own"].as_bool().unwrap(), sweep["object"].as_str().unwrap().to_owned())
    };
    assert_eq!(turned(), (false, "airplane".to_owned()));
    let views = dataset::Dataset::open(&root.join("views")).unwrap();
    for object in dataset::Views::objects(&views) {
        let file = root.join(format!("meshes/{}.obj", object.id()));
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 2 3\nf 1 2 4\nf 2 3 4\nf 1 3 4\n")
            .unwrap();
    }
    json(root, &[&evaluate[..], &["--tasks", "colour", "--meshes", "meshes"]].concat());
    let (is_own, object) = turned();
    assert!(is_own && root.join(format!("meshes/{object}.obj")).is_file(), "{object}");
    let missing = equicaps(root, &[&evaluate[..], &["--meshes", "nowhere"]].concat());
    let said = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert!(
        missing.status.code() == Some(1) && said.contains("mesh folder nowhere does not exist"),
        "{said}"
    );
    // A part of it measured again leaves the rest as it was.
    json(root, &[&evaluate[..], &["--tasks", "colour"]].concat());
    let kept: Value =
        serde_json::from_slice(&std::fs::read(evaluation.join("results.json")).unwrap()).unwrap();
    assert_eq!(kept["representations"], last["representations"]);
    assert_eq!(kept["retrieval"], last["retrieval"]);
    // The same again: features come from the folder of kept ones, numbers are the same.
    let before = std::fs::read(evaluation.join("results.json")).unwrap();
    let again = json(root, &evaluate);
    assert_eq!(again["results"][0]["representations"], last["representations"]);
    assert_eq!(again["results"][0]["retrieval"], last["retrieval"]);
    assert!(!before.is_empty());
    // Another protocol's numbers take the place of these, which are kept beside and come back.
    json(root, &[&evaluate[..], &["--seed", "1", "--tasks", "colour", "--no-images"]].concat());
    let beside = || -> Vec<String> {
        let names = std::fs::read_dir(&evaluation).unwrap().map(|entry| entry.unwrap().file_name());
        let names = names.map(|name| name.into_string().unwrap());
        names.filter(|name| name.starts_with("results_quick_seed")).collect()
    };
    assert!(beside().len() == 1 && beside()[0].contains("seed0"), "{:?}", beside());
    let back = json(root, &[&evaluate[..], &["--tasks", "colour", "--no-pictures"]].concat());
    assert_eq!(back["results"][0]["representations"], last["representations"]);
    assert_eq!(back["results"][0]["retrieval"], last["retrieval"]);
    assert!(beside().len() == 1 && beside()[0].contains("seed1"), "{:?}", beside());

    json(
        root,
        &[
            "evaluate",
            "runs/equicaps",
            "--data",
            "views",
            "--preset",
            "quick",
            "--untrained",
            "--tasks",
            "rotation",
        ],
    );
    let sie = json(
        root,
        &["evaluate", "runs/sie", "--data", "views", "--preset", "quick", "--tasks", "rotation,retrieval"],
    );
    finite(&sie["results"][0]["retrieval"]["val"]["mrr"], 0.25, 1.0);

    // A supervised network answers by its own head, on its own task.
    let supervised = ["--method", "supervised", "--run", "runs/rotation", "--set", "network.task=rotation"];
    let sizes = ["--set", "epochs=2", "--set", "network.width=8", "--set", "batch=6"];
    json(root, &[&["train", "--data", "views", "--preset", "demo"][..], &supervised, &sizes].concat());
    let found = json(root, &["evaluate", "runs/rotation", "--data", "views", "--preset", "quick"]);
    let own = found["results"][0]["representations"].as_object().unwrap();
    assert_eq!(own.keys().collect::<Vec<_>>(), ["rotation"]);
    finite(&own["rotation"]["value"]["value"], -5.0, 1.0);
    assert!(own["rotation"]["curve"].as_array().unwrap().is_empty(), "no probe is trained");

    let report =
        json(root, &["report", "runs/equicaps", "runs/sie", "runs/rotation", "--out", "out/report.html"]);
    assert_eq!(report["evaluations"], 5);
    let html = std::fs::read_to_string(root.join("out/report.html")).unwrap();
    for wanted in [
        "<svg",
        "data:image/jpeg;base64,",
        "EquiCaps",
        "untrained",
        "Supervised (rotation)",
        "Rotation in pose space",
        "0.78",
    ] {
        assert!(html.contains(wanted), "the page lacks {wanted}");
    }
    assert!(!html.contains("src=\"http") && !html.contains(">NaN"));
    // Curves are those of the trained network, and every network has its own neighbours.
    for row in ["\"untrained (EquiCaps)\"", "\"EquiCaps|equicaps\""] {
        assert!(html.contains(&format!("data-names={row}")), "the page lacks the row {row}");
    }
    for network in ["untrained (EquiCaps)", "EquiCaps", "SIE"] {
        assert!(html.contains(&format!("1-NN of {network}: ")), "the page lacks neighbours of {network}");
    }
    for file in [
        "report.md",
        "report.tex",
        "report.csv",
        "report.files/neighbours_1.png",
        "report.files/rotation.svg",
    ] {
        assert!(root.join("out").join(file).is_file(), "{file} is missing");
    }
}

#[test]
fn a_supervised_network_is_evaluated_where_its_task_is_in_the_data() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let render = |name: &str, more: &[&str]| support::render_views("3x5", &root.join(name), more);
    render("moved", &["--preset", "3diebench-t"]);
    render("turned", &["--preset", "3diebench"]);
    render("grey", &["--preset", "3diebench", "--range", "floor_hue=0.5,0.5", "--range", "spot_hue=0.5,0.5"]);
    for (run, data, transform, task) in [
        ("t", "moved", "rotation+object", "translation"),
        ("c", "moved", "rotation", "colour"),
        ("k", "moved", "rotation", "classification"),
    ] {
        let mut train = support::equicaps(&["train", "--quiet", "--data", data, "--preset", "demo"]);
        train.current_dir(root).args(["--method", "supervised", "--transform", transform, "--run", run]);
        let task = format!("network.task={task}");
        support::ok(support::set(
            &mut train,
            &["epochs=1", "batch=6", "network.width=8", "image_size=32", &task],
        ));
    }
    let evaluate = |words: &[&str]| {
        let quick = ["--preset", "quick", "--no-images", "--json"];
        let output = equicaps(root, &[&["evaluate"][..], words, &quick].concat());
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        let found = support::object(&String::from_utf8(output.stdout).unwrap());
        let left_out: Vec<String> =
            said.lines().filter(|line| line.contains("left out")).map(str::to_owned).collect();
        (found["results"][0].clone(), left_out)
    };
    let colour = "colour, which the network was trained for, is left out: the colour targets of what is held out are all the \
                  same; --frozen probes it for other tasks";
    let translation = "translation-object, which the network was trained for, is left out: the data do not say it; --frozen \
                       probes it for other tasks";
    let (results, said) = evaluate(&["c", "--data", "grey", "--also", "turned"]);
    assert_eq!(
        (&results["representations"], said),
        (&serde_json::json!({}), vec![format!("grey: {colour}")])
    );
    finite(&results["also"][0]["representations"]["colour"]["value"]["value"], -20.0, 1.0);
    let (results, said) = evaluate(&["t", "--data", "moved", "--also", "turned"]);
    assert_eq!(said, [format!("turned: {translation}")]);
    finite(&results["representations"]["translation-object"]["value"]["value"], -20.0, 1.0);
    assert_eq!(results["also"][0]["representations"], serde_json::json!({}));
    let one = [
        "render",
        "--procedural",
        "3x5",
        "--views",
        "1",
        "--size",
        "32",
        "--quality",
        "fast",
        "--out",
        "one",
    ];
    support::ok(support::equicaps(&one).current_dir(root).arg("--quiet"));
    let (_, said) = evaluate(&["c", "--data", "moved", "--also", "one"]);
    assert!(said.len() == 1 && said[0].contains("no held-out object has two views"), "{said:?}");
    // A head knows the classes of the data by number.
    support::render_views("4x5", &root.join("four"), &["--preset", "3diebench-t"]);
    let (results, said) = evaluate(&["k", "--data", "moved", "--also", "turned", "--also", "four"]);
    let classes = "classification, which the network was trained for, is left out: its classes are not those of moved; --frozen \
                   probes it for other tasks";
    assert_eq!(said, [format!("four: {classes}")]);
    finite(&results["also"][0]["representations"]["classification"]["value"]["value"], 0.0, 1.0);
    assert_eq!(results["also"][1]["representations"], serde_json::json!({}));
    // Nothing at all can be measured: there are no empty tables, and the report says it.
    let (_, said) = evaluate(&["t", "--data", "turned"]);
    assert_eq!(said, [format!("turned: {translation}")]);
    let text = support::ok(
        support::equicaps(&["evaluate", "t", "--data", "turned", "--preset", "quick", "--quiet"])
            .current_dir(root),
    );
    assert_eq!(text, "results in t/evaluation/epoch_00001\n");
    json(root, &["report", "t", "--out", "report.html"]);
    let page = std::fs::read_to_string(root.join("report.html")).unwrap();
    assert!(page.contains("Nothing could be measured on these data: Supervised (translation)."));
    // What is named has to be there, as for probes.
    let (_, said) = support::failure(
        support::equicaps(&["evaluate", "c", "--data", "grey", "--tasks", "colour", "--quiet"])
            .current_dir(root),
    );
    assert!(
        said.contains("--tasks colour: the colour targets of what is held out are all the same"),
        "{said}"
    );
}

#[test]
fn networks_can_be_used_on_images() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    prepare(root);
    let embedded = json(root, &["embed", "runs/equicaps", "views", "--out", "all.npy"]);
    assert_eq!(embedded["pictures"], 60);
    let npy = std::fs::read(root.join("all.npy")).unwrap();
    assert!(String::from_utf8_lossy(&npy[..128]).contains("'shape': (60, 64)"));
    assert_eq!(npy.len(), 128 + 60 * 64 * 4);
    assert_eq!(std::fs::read_to_string(root.join("all.npy.txt")).unwrap().lines().count(), 60);
    // At another size there is a representation, but the projector was made for its own.
    json(root, &["embed", "runs/equicaps", "views", "--image-size", "64", "--out", "larger.npy"]);
    assert_eq!(std::fs::read(root.join("larger.npy")).unwrap().len(), npy.len());
    assert_ne!(std::fs::read(root.join("larger.npy")).unwrap()[128..], npy[128..]);
    json(root, &["embed", "runs/equicaps", "@all.npy.txt", "--out", "all.safetensors"]);
    let bytes = std::fs::read(root.join("all.safetensors")).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let shape = |name: &str| file.tensor(name).unwrap().shape().to_vec();
    assert_eq!(
        [shape("representation"), shape("activations"), shape("poses")],
        [[60, 64], [60, 4], [60, 36]]
    );
    let h: Vec<u8> = file.tensor("representation").unwrap().data().to_vec();
    assert_eq!(h, npy[128..]);

    json(root, &["embed", "runs/equicaps", "views", "--out", "all.parquet"]);
    let parquet = std::fs::read(root.join("all.parquet")).unwrap();
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    // Plain and uncompressed: the numbers of all rows of a column follow each other.
    let holds = |values: &[u8]| parquet.windows(values.len()).any(|window| window == values);
    assert!(holds(&npy[128..]) && holds(file.tensor("poses").unwrap().data()));

    let export = ["export", "runs/equicaps", "--with", "projector", "--out"];
    let exported = json(root, &[&export[..], &["network.onnx"]].concat());
    assert_eq!(exported["outputs"]["poses"], serde_json::json!([4, 3, 3]));
    finite(&exported["largest_difference"], 0.0, 1e-5);
    let again = equicaps(root, &[&export[..], &["network.onnx", "--json"]].concat());
    let failure: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(failure["error"], "network.onnx exists already; choose another name");
    assert_eq!((again.status.code(), &failure["status"]), (Some(1), &1.into()));
    // What is exported as safetensors is a checkpoint.
    json(root, &[&export[..], &["network.safetensors"]].concat());
    json(root, &["embed", "network.safetensors", "@all.npy.txt", "--out", "exported.npy"]);
    assert_eq!(std::fs::read(root.join("exported.npy")).unwrap(), npy);
    // Weights for PyTorch come back; what they do not tell is said to be assumed.
    json(root, &[&export[..], &["whole/encoder.pth"]].concat());
    json(root, &["export", "runs/equicaps", "--out", "bare/encoder.pth"]);
    json(root, &["export", "runs/equicaps", "--out", "alone.safetensors"]);
    let import = |file: &str, out: &str, more: &[&str]| {
        let import = equicaps(root, &[&["import", file, "--out", out, "--json"], more].concat());
        assert!(import.status.success());
        String::from_utf8(import.stderr).unwrap()
    };
    assert_eq!(
        import("whole/encoder.pth", "whole.safetensors", &[]),
        "warning: the poses are 3x3: assuming training for rotation; otherwise give --transform with one of \
         image-rotation, image-similarity, image-affine, image-homography\n"
    );
    assert_eq!(import("whole/encoder.pth", "photos.safetensors", &["--transform", "image-affine"]), "");
    json(root, &["embed", "whole.safetensors", "@all.npy.txt", "--out", "whole.npy"]);
    assert_eq!(std::fs::read(root.join("whole.npy")).unwrap(), npy);
    let said = import("bare/encoder.pth", "bare.safetensors", &[]);
    assert!(said.contains("assuming equicaps; give --method") && said.contains("assuming 256x256"), "{said}");

    let list = std::fs::read_to_string(root.join("all.npy.txt")).unwrap();
    let query = list.lines().next().unwrap();
    let near = json(root, &["neighbours", "runs/equicaps", query, "--among", "views", "--out", "near.png"]);
    let found = near["queries"][0]["neighbours"].as_array().unwrap();
    assert_eq!(found.len(), 3);
    assert!(found.iter().all(|neighbour| neighbour["image"] != query));
    assert!(root.join("near.png").is_file());
    finite(&found[0]["rotation_distance"], 0.0, 1.0);
    assert!(found[0]["class"].is_string() && near["queries"][0]["class"].is_string(), "{near}");

    // An image does not find itself; not moved at all, it finds its copy. SIE asks its predictor.
    std::fs::copy(root.join(query), root.join("copy.jpg")).unwrap();
    let steered = json(root, &["steer", "runs/equicaps", query, "--among", "views", "copy.jpg"]);
    assert_eq!(steered["nearest"][0]["image"], "copy.jpg");
    assert!(steered["nearest"][0].get("class").is_none(), "{steered}");
    finite(&steered["nearest"][0]["similarity"], 0.999, 1.001);
    assert!(steered["nearest"].as_array().unwrap().iter().all(|near| near["image"] != query));
    json(root, &["steer", "runs/sie", query, "--rotate", "0,0,45", "--among", "views", "--out", "s.svg"]);
    // What is found is compared with the rotation that is asked for: half a turn about z takes the distance 0 to 1.
    let distances = |angle: &str| -> Vec<f64> {
        let among = [&["steer", "runs/sie", query, "--among"][..], &["views", "-k", "60", "--rotate", angle]]
            .concat();
        let steered = json(root, &among);
        let near = steered["nearest"].as_array().unwrap().iter();
        let object = &query[..query.rfind('/').unwrap()];
        let of_object = near.filter(|near| near["image"].as_str().unwrap().starts_with(object));
        let mut all: Vec<(String, f64)> = of_object
            .map(|near| (near["image"].to_string(), near["rotation_distance"].as_f64().unwrap()))
            .collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all.into_iter().map(|(_, distance)| distance).collect()
    };
    let (still, turned, whole) = (distances("0,0,0"), distances("0,0,180"), distances("0,0,360"));
    assert!(still.len() > 2 && still.len() == turned.len());
    assert!(still.iter().zip(&whole).all(|(a, b)| (a - b).abs() < 1e-6), "{still:?} {whole:?}");
    assert!(still.iter().zip(&turned).any(|(a, b)| (a - b).abs() > 0.1), "{still:?} {turned:?}");
    // Weights without a projector have nothing to steer.
    let steered = equicaps(root, &["steer", "alone.safetensors", query, "--among", "views"]);
    let said = String::from_utf8_lossy(&steered.stderr);
    assert!(
        !steered.status.success() && said.contains("alone.safetensors has no projector for these"),
        "{said}"
    );
    // Two rotations of a half turn from each other cannot both be near.
    assert!(still.iter().zip(&turned).all(|(a, b)| a + b > 0.99), "{still:?} {turned:?}");

    // One image that cannot be read among many, and names that are not text.
    let photos = root.join("photos");
    std::fs::create_dir(&photos).unwrap();
    std::fs::copy(root.join(query), photos.join("good.jpg")).unwrap();
    std::fs::write(photos.join("bad.jpg"), b"\xff\xd8").unwrap();
    let failed = equicaps(root, &["embed", "runs/equicaps", "photos", "--out", "photos.npy"]);
    let message = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert!(failed.status.code() == Some(1) && message.contains("photos/bad.jpg"), "{message}");
    assert!(message.contains("--on-bad-sample skip") && !root.join("photos.npy").exists(), "{message}");
    let skip = ["--on-bad-sample", "skip"];
    let skipped = [&["embed", "runs/equicaps", "photos", "--out", "photos.npy"][..], &skip].concat();
    assert_eq!(json(root, &skipped)["pictures"], 1);
    assert_eq!(std::fs::read_to_string(root.join("photos.npy.txt")).unwrap(), "photos/good.jpg\n");
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        let odd = photos.join(std::ffi::OsStr::from_bytes(b"caf\xe9.jpg"));
        std::fs::rename(photos.join("good.jpg"), &odd).unwrap();
        let near = [&["neighbours", "runs/equicaps", query, "--among", "photos"][..], &skip].concat();
        assert_eq!(json(root, &near)["queries"][0]["neighbours"][0]["image"], "photos/caf\u{fffd}.jpg");
        assert_eq!(json(root, &skipped)["pictures"], 1);
        let list = std::fs::read(root.join("photos.npy.txt")).unwrap();
        assert_eq!(list, b"photos/caf\xe9.jpg\n");
        assert_eq!(
            json(root, &["embed", "runs/equicaps", "@photos.npy.txt", "--out", "o.npy"])["pictures"],
            1
        );
    }

    let wrong = equicaps(root, &["embed", "runs/equicaps", "views", "--out", "all.txt"]);
    assert_eq!(wrong.status.code(), Some(2));
    let missing = equicaps(root, &["evaluate", "runs/none", "--data", "views"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("runs/none"));
    let task = equicaps(root, &["evaluate", "runs/equicaps", "--data", "views", "--tasks", "rotations"]);
    assert_eq!(task.status.code(), Some(2));

    // Weights with one flipped bit, in numbers or in a name, are used by no command.
    let checkpoint = root.join("runs/equicaps/checkpoints/epoch_00002.safetensors");
    let good = std::fs::read(&checkpoint).unwrap();
    let name = good.windows(11).position(|window| window == b"running_var").unwrap();
    for place in [good.len() - 2000, good.len() / 2, name] {
        let mut bytes = good.clone();
        bytes[place] ^= 4;
        std::fs::write(&checkpoint, bytes).unwrap();
        for command in [
            &["embed", "runs/equicaps", "views", "--out", "damaged.npy"][..],
            &["neighbours", "runs/equicaps", query, "--among", "views"],
            &["steer", "runs/equicaps", query, "--among", "views"],
            &["evaluate", "runs/equicaps", "--data", "views", "--preset", "quick"],
        ] {
            let refused = equicaps(root, command);
            let message = String::from_utf8_lossy(&refused.stderr).into_owned();
            assert!(
                refused.status.code() == Some(1) && message.contains("damaged"),
                "{command:?}: {message}"
            );
        }
    }
}
