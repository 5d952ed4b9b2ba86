//! What the program says about a run that learns nothing: before it starts, at its end, and whenever it is looked at.

use crate::support::{TINY, equicaps, failure, ok, ok_json, render_views, set};

const SAID: &str = "no pose was learnt";

#[test]
fn a_run_that_learns_no_pose_says_so_wherever_it_is_looked_at() {
    let root = tempfile::tempdir().unwrap();
    let views = root.path().join("views");
    render_views("3x5", &views, &[]);
    let run = |method: &str| {
        let mut train = equicaps(&["train", "--quiet", "--preset", "demo", "--method", method, "--data"]);
        train.arg(&views).arg("--run").arg(root.path().join("runs").join(method));
        set(set(&mut train, &TINY), &["epochs=2", "batch=6", "guards.every_steps=1"]);
        train
    };
    let trained = ok_json(&mut run("equicaps"));
    assert_eq!(trained["pose"]["learnt"], false, "{trained}");
    assert!(trained["pose"]["message"].as_str().unwrap().starts_with(SAID), "{trained}");
    assert!(trained["held_out"]["floor/rotation_r2"].as_f64().unwrap() > 0.0, "{trained}");
    assert!(trained["warnings"][0].as_str().unwrap().starts_with("this run has 4 steps"), "{trained}");
    // What is best here is asked again on another machine.
    let config = std::fs::read_to_string(root.path().join("runs/equicaps/config.toml")).unwrap();
    assert!(config.contains("device = \"auto\""), "{config}");
    let shown = ok(equicaps(&["runs", "show"]).arg(root.path().join("runs/equicaps")));
    assert!(shown.contains("from step 0 on cpu"), "{shown}");
    // A method that is not told poses is not blamed for not knowing them.
    let other = ok(&mut run("vicreg"));
    assert!(other.contains("held-out rotation R2") && other.contains("(floor 0."), "{other}");
    assert!(!other.contains(SAID), "{other}");

    let folder = root.path().join("runs");
    let (own, other) = (folder.join("equicaps"), folder.join("vicreg"));
    let listed = ok(equicaps(&["runs", "list"]).arg(&folder));
    assert!(listed.contains("rotation R2 (floor)"), "{listed}");
    assert_eq!(listed.matches(SAID).count(), 1, "{listed}");
    let shown = ok(equicaps(&["runs", "show"]).arg(&own));
    assert!(shown.contains(SAID) && shown.contains("health/sample_entropy = "), "{shown}");
    let line = shown.lines().find(|line| line.contains("held-out     probe/rotation_r2/poses")).unwrap();
    assert!(line.contains("(floor 0."), "{line}");
    let compared = ok(equicaps(&["runs", "compare"]).arg(&own).arg(&other));
    assert!(compared.contains("held-out floor/rotation_r2"), "{compared}");
    assert!(compared.contains(&format!("\nequicaps: {SAID}")), "{compared}");

    let page = root.path().join("report.html");
    let report = || {
        ok(equicaps(&["report", "--out"]).arg(&page).arg(&own).arg(&other));
        std::fs::read_to_string(&page).unwrap()
    };
    let sentence = |page: &str| page.matches(&format!("<p class=\"warning\">EquiCaps: {SAID}")).count();
    assert!(report().contains(&format!("<p class=\"warning\">equicaps: {SAID}")));
    for run in [&own, &other] {
        let quick = ["--preset", "quick", "--tasks", "rotation", "--no-images", "--quiet", "--data"];
        let evaluated = ok(equicaps(&["evaluate"]).arg(run).args(quick).arg(&views));
        assert_eq!(evaluated.contains(&format!("EquiCaps: {SAID}")), run == &own, "{evaluated}");
        assert!(evaluated.contains("no information (floor)"), "{evaluated}");
    }
    assert_eq!(sentence(&report()), 1);
}

#[test]
fn a_mesh_folder_of_the_wrong_depth_leads_to_the_right_one() {
    let root = tempfile::tempdir().unwrap();
    for object in ["chair/a", "chair/b", "chair/c", "table/d", "table/e"] {
        let folder = root.path().join("objects").join(object);
        std::fs::create_dir_all(&folder).unwrap();
        let mesh = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 2 3\nf 1 2 4\nf 2 3 4\nf 1 3 4\n";
        std::fs::write(folder.join("model.obj"), mesh).unwrap();
    }
    let small = ["--views", "2", "--size", "16", "--quality", "fast", "--quiet"];
    let said = |meshes: &str| {
        let out = root.path().join(format!("views-{}", meshes.replace('/', "-")));
        let mut render = equicaps(&["render", "--meshes", meshes, "--out"]);
        let output = render.arg(out).args(small).current_dir(root.path()).output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(said("objects"), "");
    let warning = said("objects/chair");
    assert!(warning.contains("did you mean objects, where chair is one class of 3 objects?"), "{warning}");
    assert!(warning.contains("(equicaps render --meshes objects ...)"), "{warning}");

    let mut above = equicaps(&["train", "--preset", "own", "--data", ".", "--dry-run"]);
    let (_, error) = failure(above.current_dir(root.path()));
    assert!(error.ends_with("did you mean ./objects, where 2 classes have 5 objects?\n"), "{error}");
    let mut train =
        equicaps(&["train", "--quiet", "--preset", "demo", "--data", "objects/chair", "--run", "run"]);
    set(
        set(train.current_dir(root.path()), &TINY),
        &["epochs=1", "procedural.views=2", "pairs_per_object=1"],
    );
    let trained = ok_json(&mut train);
    let warnings: Vec<&str> =
        trained["warnings"].as_array().unwrap().iter().filter_map(|w| w.as_str()).collect();
    let said = |start: &str| warnings.iter().any(|warning| warning.starts_with(start));
    assert!(
        said("every class in objects/chair has one object (3 classes): did you mean objects,"),
        "{warnings:?}"
    );
    assert!(said("batches have 2 pairs, not 32: there are 2 training objects"), "{warnings:?}");
}
