//! `train --dry-run`: what a run would do, and what the preset for own objects chooses.

use serde_json::{Value, json};

use crate::support::{self, TINY, failure, ok, set};

fn plan(preset: &str, data: &str, settings: &[&str]) -> Value {
    let mut command = support::equicaps(&["train", "--preset", preset, "--data", data, "--dry-run"]);
    support::ok_json(set(set(&mut command, &TINY), settings))
}

#[test]
fn batches_are_whole_and_few_objects_fill_them() {
    // 32 training objects.
    let found = plan("demo", "procedural:4x10", &["batch=24", "epochs=3"]);
    assert_eq!((&found["batch_sizes"], &found["pairs_per_object"]), (&json!([16, 16]), &json!(1)));
    assert_eq!(found["steps"], 6);
    assert!(found["estimated_seconds"].as_f64().unwrap() > 0.0, "{found}");
    assert!(found["warnings"][0].as_str().unwrap().starts_with("this run has 6 steps"), "{found}");
    // 4 training objects fill a batch of 512.
    let found = plan("demo", "procedural:1x5", &["batch=512", "epochs=3"]);
    assert_eq!((&found["batch_sizes"], &found["pairs_per_object"]), (&json!([512]), &json!(128)));
}

#[test]
fn the_published_rest_is_kept_where_it_does_no_harm_and_refused_where_it_does() {
    let found = plan("paper", "procedural:4x10", &["batch=20", "epochs=3"]);
    assert_eq!(found["batch_sizes"], json!([20, 12]));
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let mut command =
        support::equicaps(&["train", "--preset", "paper", "--data", "procedural:4x10", "--quiet"]);
    command.arg("--run").arg(&run);
    let (code, said) = failure(set(set(&mut command, &TINY), &["batch=30", "epochs=3"]));
    assert_eq!(code, 1);
    assert!(said.contains("would have 2 pairs") && said.contains("--set batches=whole"), "{said}");
    assert!(!run.exists(), "nothing is left of a run that was refused");
}

#[test]
fn time_is_measured_without_broken_meshes_where_they_are_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let class = folder.path().join("meshes/class");
    std::fs::create_dir_all(&class).unwrap();
    std::fs::write(class.join("a_broken.obj"), "v 0 0 0\nv 0 0 0\nv 0 0 0\nf 1 2 3\n").unwrap();
    for name in ["b.obj", "c.obj", "d.obj"] {
        std::fs::write(class.join(name), "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 2 3\nf 1 2 4\nf 1 3 4\n")
            .unwrap();
    }
    let plan = |word: &str| {
        let words = ["train", "--preset", "own", "--data", "meshes", "--dry-run", "--on-bad-sample", word];
        let mut command = support::equicaps(&words);
        command.current_dir(folder.path());
        set(set(&mut command, &TINY), &["batch=8", "epochs=2"]);
        command
    };
    let found = support::ok_json(&mut plan("skip"));
    assert!(found["estimated_seconds"].as_f64().unwrap() > 0.0, "{found}");
    assert!(found["warnings"].to_string().contains("all objects are of one class"), "{found}");
    let (_, said) = failure(&mut plan("fail"));
    assert!(said.contains("meshes/class/a_broken"), "{said}");
    assert!(said.ends_with("(--on-bad-sample skip leaves out what cannot be used)\n"), "{said}");
}

#[test]
fn own_objects_are_trained_as_planned_and_evaluated_on_new_views() {
    let folder = tempfile::tempdir().unwrap();
    let settings = ["batch=8", "epochs=2", "procedural.views=6", "probes.held_out_passes=1"];
    let found = plan("own", "procedural:2x2", &settings);
    assert_eq!((&found["objects"], &found["batch_sizes"]), (&json!(4), &json!([8])));
    let mut command =
        support::equicaps(&["train", "--preset", "own", "--data", "procedural:2x2", "--run", "run"]);
    ok(set(set(command.current_dir(folder.path()), &TINY), &settings));
    let config = std::fs::read_to_string(folder.path().join("run/config.toml")).unwrap();
    assert!(config.starts_with("# an epoch has 2 pairs of every object, in batches of 8\n"), "{config}");
    assert!(config.contains("split = \"views\"") && config.contains("refresh = 0.5"), "{config}");
    let mut command = support::equicaps(&["evaluate", "run", "--preset", "quick", "--tasks", "rotation"]);
    let found = support::ok_json(command.args(["--no-images", "--quiet"]).current_dir(folder.path()));
    assert_eq!(found["results"][0]["data"]["split"], "views");
}
