//! Further datasets with the probes of the first, out of range among them, and objects one by one.

use serde_json::Value;

use crate::support::{self, TINY, failure, ok, ok_json, set};

#[test]
fn the_probes_of_one_dataset_are_tested_on_another_out_of_its_range() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    support::render_views("3x5", &root.join("views"), &[]);
    support::render_views("3x5", &root.join("ood"), &["--preset", "3diebench-ood"]);
    let equicaps = |arguments: &[&str]| {
        let mut command = support::equicaps(arguments);
        command.current_dir(root).arg("--quiet");
        command
    };
    ok(&mut equicaps(&["dataset", "check", "ood"]));
    let card: Value = serde_json::from_slice(&std::fs::read(root.join("ood/dataset.json")).unwrap()).unwrap();
    assert_eq!(card["settings"]["preset"], "3diebench-ood");
    assert!(card["settings"]["ranges"]["rotation_gap"].is_array(), "{card}");
    let mut train = equicaps(&["train", "--data", "views", "--preset", "demo", "--run", "run"]);
    ok(set(set(&mut train, &TINY), &["epochs=2", "batch=6"]));
    let evaluate = ["evaluate", "run", "--preset", "quick", "--no-images"];
    let found = ok_json(&mut equicaps(&[&evaluate[..], &["--also", "ood"]].concat()));
    let results = &found["results"][0];
    let also = &results["also"][0];
    assert_eq!((&also["data"]["path"], &also["data"]["kind"]), (&"ood".into(), &"3DIEBench".into()));
    assert!(also["representations"]["rotation"]["value"]["value"].is_number(), "{also}");
    // It has no translations, and nothing is said about them.
    assert!(results["representations"]["translation-object"].is_object());
    assert!(also["representations"].get("translation-object").is_none());
    assert!(also["retrieval"]["val"]["mrr"].is_number());
    // Later, without it: what was measured stays.
    let again = ok_json(&mut equicaps(&[&evaluate[..], &["--tasks", "rotation"]].concat()));
    assert_eq!(again["results"][0]["also"][0]["representations"], also["representations"]);
    assert_eq!(again["results"][0]["by_object"], results["by_object"]);

    // Three held-out objects one by one, in the file and in a table.
    let folder = root.join("run/evaluation/epoch_00002");
    let csv = std::fs::read_to_string(folder.join("objects.csv")).unwrap();
    assert!(csv.starts_with("object,class,rotation error (degrees),rotation R\u{b2},MRR\r\n"), "{csv}");
    assert_eq!(csv.lines().count(), 4);
    let classes = std::fs::read_to_string(folder.join("classes.csv")).unwrap();
    assert!(classes.starts_with("class,objects,rotation error"), "{classes}");
    assert_eq!(results["by_object"]["name"].as_array().unwrap().len(), 3);
    ok(&mut equicaps(&["report", "run", "--out", "report.html"]));
    let page = std::fs::read_to_string(root.join("report.html")).unwrap();
    for text in ["the worst and the best of 3 objects", "no information (floor), on ood", "EquiCaps, on ood"]
    {
        assert!(page.contains(text), "{text}");
    }
    let (code, said) = failure(&mut equicaps(&[&evaluate[..], &["--also", "nowhere"]].concat()));
    assert!(code == 1 && said.contains("there is no dataset at nowhere"), "{said}");
}
