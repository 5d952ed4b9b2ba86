//! Known objects, new views: from `render --split views` to a report, and what is refused.

use std::path::Path;

use serde_json::Value;

use crate::support::{self, TINY, failure, ok, set};

fn equicaps(folder: &Path, arguments: &[&str]) -> std::process::Command {
    let mut command = support::equicaps(arguments);
    command.current_dir(folder).arg("--quiet");
    command
}

fn json(folder: &Path, arguments: &[&str]) -> Value {
    support::ok_json(&mut equicaps(folder, arguments))
}

fn train(folder: &Path, run: &str, data: &str, more: &[&str]) {
    let mut command = equicaps(folder, &["train", "--preset", "demo", "--data", data, "--run", run]);
    let settings = ["epochs=2", "batch=6", "probes.held_out_every=1", "procedural.views=4"];
    ok(set(set(set(&mut command, &TINY), &settings), more));
}

const EVALUATE: [&str; 6] = ["evaluate", "--preset", "quick", "--no-images", "--tasks", "rotation,retrieval"];

fn evaluate(folder: &Path, more: &[&str]) -> Value {
    json(folder, &[&EVALUATE[..], more].concat())["results"][0].clone()
}

/// The one sentence of an evaluation that is refused.
fn refused(folder: &Path, more: &[&str]) -> String {
    let (code, said) = failure(&mut equicaps(folder, &[&EVALUATE[..], more].concat()));
    assert_eq!((code, said.trim_end().lines().count()), (1, 1), "{said}");
    said
}

#[test]
fn a_dataset_with_held_out_views_is_trained_and_evaluated_as_its_card_says() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    support::render_views("3x4", &root.join("views"), &["--split", "views", "--format", "shards"]);
    support::render_views("3x4", &root.join("objects"), &[]);
    json(root, &["dataset", "check", "views"]);
    train(root, "runs/views", "views", &[]);
    let config = std::fs::read_to_string(root.join("runs/views/config.toml")).unwrap();
    assert!(config.contains("split = \"views\""), "{config}");

    let found = evaluate(root, &["runs/views"]);
    assert_eq!((&found["data"]["split"], &found["data"]["path"]), (&"views".into(), &"views".into()));
    assert_eq!([&found["data"]["train_objects"], &found["data"]["val_objects"]], [12, 12]);
    // Two of four views are held out: by chance the mean of 1 and 1/2.
    assert_eq!(found["retrieval"]["chance"]["mrr"], 0.75);
    assert_eq!(found["retrieval"]["val"]["queries"], 24);

    // The same objects on another side are not new ones.
    let said = refused(root, &["runs/views", "--data", "objects", "--split", "objects"]);
    assert!(said.contains("on all of these objects") && said.contains("use --split views"), "{said}");
    train(root, "runs/objects", "objects", &[]);
    let said = refused(root, &["runs/objects", "--split", "views"]);
    assert!(said.contains("on all views of its training objects"), "{said}");
    assert_eq!(evaluate(root, &["runs/objects"])["data"]["split"], "objects");
    // A dataset made by objects can be trained by views, and its other half of views is not known to be new.
    train(root, "runs/other", "objects", &["split=views"]);
    assert_eq!(evaluate(root, &["runs/other"])["data"]["split"], "views");
    let other =
        equicaps(root, &[&EVALUATE[..], &["runs/views", "--data", "procedural:2x3"]].concat()).output();
    let said = String::from_utf8(other.unwrap().stderr).unwrap();
    assert!(said.starts_with("warning: runs/views was trained on other data"), "{said}");

    // Lists and reports say which is which.
    let listed = ok(&mut equicaps(root, &["runs", "list", "runs"]));
    assert!(
        listed.contains("held out") && listed.contains(" views ") && listed.contains(" objects "),
        "{listed}"
    );
    ok(&mut equicaps(root, &["report", "runs/views", "runs/objects", "--out", "report.html"]));
    let page = std::fs::read_to_string(root.join("report.html")).unwrap();
    for text in [
        "Probes on frozen representations, new views of known objects",
        "representations, objects never seen",
    ] {
        assert!(page.contains(text), "{text}");
    }
    let refusal = failure(&mut support::equicaps(&[
        "render",
        "--procedural",
        "2x2",
        "--views",
        "3",
        "--split",
        "views",
        "--out",
        "none",
    ]));
    assert!(refusal.0 == 2 && refusal.1.contains("--split views needs --views 4 or more"), "{}", refusal.1);
}

#[test]
fn objects_that_are_rendered_on_the_fly_are_evaluated_without_a_dataset() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for (split, objects, views) in [("objects", [8, 2], 4), ("views", [10, 10], 8)] {
        let run = format!("runs/{split}");
        train(root, &run, "procedural:2x5", &[&format!("split={split}"), "refresh=0.5"]);
        let found = evaluate(root, &[&run]);
        assert_eq!(found["data"]["split"], split);
        assert_eq!([&found["data"]["train_objects"], &found["data"]["val_objects"]], objects);
        assert_eq!(found["data"]["views"], views);
        // Kept features are found again: the same numbers.
        assert_eq!(evaluate(root, &[&run])["representations"], found["representations"]);
    }
    let checkpoint = "runs/views/checkpoints/epoch_00002.safetensors";
    assert!(refused_usage(root, checkpoint).contains("give --data"));
    assert_eq!(evaluate(root, &[checkpoint, "--data", "procedural:2x5"])["data"]["split"], "views");
}

fn refused_usage(folder: &Path, weights: &str) -> String {
    let (code, said) = failure(&mut equicaps(folder, &[&EVALUATE[..], &[weights]].concat()));
    assert_eq!(code, 2, "{said}");
    said
}
