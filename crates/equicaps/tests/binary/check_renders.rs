//! `equicaps check renders` and the benchmarks of rendering as a user calls them: output and exit status.

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::support::{equicaps, failure, ok_json};

/// A folder with one empty view and the image that belongs to it.
fn folder(image: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let reference = Path::new(env!("CARGO_MANIFEST_DIR")).join("../render/tests/data/empty_b.png");
    std::fs::copy(reference, folder.path().join("b.png")).expect("a copy");
    let views = format!(
        r#"[{{"image": "{image}", "mesh": null, "rotation_xyz": [0, 0, 0], "floor_hue": 0.33, "spot_theta": 0.5,
            "spot_phi": 1.0, "spot_hue": 0.6, "translation_xyz": [0, 0, 0], "samples": 100}}]"#
    );
    std::fs::write(folder.path().join("views.json"), views).expect("a list");
    folder
}

fn check(folder: &Path, quality: &str) -> Output {
    let views = folder.join("views.json");
    let (views, root) = (views.to_str().unwrap_or_default(), folder.to_str().unwrap_or_default());
    equicaps(&["check", "renders", "--views", views, "--root", root, "--quality", quality, "--json"])
        .output()
        .unwrap()
}

/// What the README says of a preset against Cycles: mean and worst of the objects, worst empty scene, in dB.
fn published(quality: &str) -> [f64; 3] {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = std::fs::read_to_string(readme).expect("the README");
    let start = format!("| `{quality}` |");
    let row = readme.lines().find_map(|line| line.strip_prefix(&start)).expect("a row of the preset");
    let mut figures = row.split('|').map(|cell| cell.trim().parse().expect("a figure in dB"));
    std::array::from_fn(|_| figures.next().expect("three figures"))
}

#[test]
fn images_within_the_bounds_succeed_and_the_bounds_are_one_decibel_below_the_published_figures() {
    let folder = folder("b.png");
    for quality in ["reference", "standard", "fast"] {
        let output = check(folder.path(), quality);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(0), "{report}");
        assert_eq!(report["within_bounds"], Value::Bool(true));
        let (objects, empty) = (&report["objects"], &report["empty"]);
        let bounds = [&objects["bound_mean_db"], &objects["bound_worst_db"], &empty["bound_worst_db"]];
        for (bound, figure) in bounds.into_iter().zip(published(quality)) {
            let bound = bound.as_f64().unwrap();
            assert!((figure - bound - 1.0).abs() < 1e-9, "{quality}: {bound} dB, {figure} dB published");
        }
        assert!(empty["worst_db"].as_f64().unwrap() > 50.6);
    }
}

#[test]
fn objects_are_listed_worst_first_and_the_worst_views_are_drawn() {
    let folder = folder("b.png");
    let list = folder.path().join("views.json");
    let record = std::fs::read_to_string(&list).unwrap();
    let record = record.trim_start_matches('[').trim_end_matches(']');
    image::RgbImage::new(256, 256).save(folder.path().join("dark.png")).unwrap();
    let worse =
        record.replace("b.png", "dark.png").replace("\"samples\"", "\"group\": \"dark\", \"samples\"");
    std::fs::write(&list, format!("[{record}, {worse}]")).unwrap();
    let sheets = folder.path().join("sheets");
    let arguments = ["check", "renders", "--quality", "fast", "--sheet-count", "1", "--views"];
    let run = |more: &[&str]| {
        let mut command = equicaps(&arguments);
        command.arg(&list).arg("--root").arg(folder.path()).arg("--sheets").arg(&sheets).args(more);
        command.output().unwrap()
    };
    let report: Value = serde_json::from_slice(&run(&["--json"]).stdout).unwrap();
    assert_eq!(report["by_object"][0]["worst_image"], "dark.png");
    assert_eq!(
        (&report["by_object"][0]["views"], &report["by_group"][0]["name"]),
        (&2.into(), &"dark".into())
    );
    let drawn: Vec<_> = std::fs::read_dir(&sheets).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(drawn, ["dark.png"]);
    assert_eq!(image::open(sheets.join("dark.png")).unwrap().width(), 3 * 256);
    let text = String::from_utf8(run(&[]).stdout).unwrap();
    assert!(text.starts_with("object") && text.contains("\ngroup") && text.contains("OUTSIDE"), "{text}");
}

#[test]
fn wrong_images_fail_and_unusable_lists_are_usage_errors() {
    let wrong = folder("b.png");
    image::RgbImage::new(256, 256).save(wrong.path().join("b.png")).unwrap();
    assert_eq!(check(wrong.path(), "fast").status.code(), Some(1));
    for image in ["missing.png", "../b.png"] {
        let unusable = folder(image);
        let output = check(unusable.path(), "fast");
        assert_eq!(output.status.code(), Some(2), "{image}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(image), "{image}");
    }
}

#[test]
fn the_benchmark_reports_a_rate() {
    let report =
        ok_json(&mut equicaps(&["bench", "render", "--quality", "fast", "--size", "32", "--seconds", "0.5"]));
    for key in ["images_per_s", "rays_per_s", "triangles_mean"] {
        assert!(report[key].as_f64().unwrap() > 0.0, "{key}: {report}");
    }
    let shares = ["share_bvh", "share_tracing", "share_encoding"].map(|key| report[key].as_f64().unwrap());
    assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-6);
}

#[test]
fn fresh_views_are_measured_on_a_gpu_only_and_with_shares_that_make_sense() {
    for (arguments, says) in [
        (["--device", "cpu"], "needs a CUDA device"),
        (["--seconds", "0"], "expected a positive number of seconds"),
        (["--refresh", "0.1,1.5"], "refresh must be between 0 and 1"),
        (["--set", "refrsh=1"], "refrsh"),
    ] {
        let (status, said) = failure(&mut equicaps(&[&["bench", "fresh"], &arguments[..]].concat()));
        assert_eq!((status, said.contains(says)), (2, true), "{said}");
    }
}
