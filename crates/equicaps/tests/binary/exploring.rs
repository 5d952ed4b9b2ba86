//! The explorer's page in a real browser, where there is one.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::{equicaps, failure, ok_json};

/// A browser that can be driven, if there is one.
fn chromium() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH")?).collect();
    names
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .find(|path| path.is_file())
}

#[test]
fn every_view_of_the_page_works_in_a_browser() {
    let has_python = Command::new("python3").arg("--version").stdout(Stdio::null()).status().is_ok();
    let Some(chromium) = chromium().filter(|_| has_python) else {
        assert!(
            std::env::var_os("EQUICAPS_REQUIRE_CHROMIUM").is_none(),
            "Chromium or Python is missing, but EQUICAPS_REQUIRE_CHROMIUM asks for them"
        );
        eprintln!("skipped: there is no Chromium or no Python here");
        return;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/explorer.py");
    let output = Command::new("python3")
        .arg(script)
        .arg(env!("CARGO_BIN_EXE_equicaps"))
        .arg(chromium)
        .env("CUDA_VISIBLE_DEVICES", "")
        .output()
        .unwrap();
    let [said, complained] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(output.status.success(), "{said}{complained}");
}

#[test]
fn what_cannot_be_explored_is_said_before_there_is_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let (status, text) = failure(&mut equicaps(&["explore", path, "--no-open"]));
    assert!(status == 1 && text.contains("holds no run"), "{text}");
    let (status, text) = failure(&mut equicaps(&["explore", "--no-open", "--data", "procedural:99x1"]));
    assert!(status == 1 && text.contains("1 to 55 classes"), "{text}");
    let (status, text) = failure(&mut equicaps(&["explore", "--no-open", "--meshes", path]));
    assert!(status == 1 && !text.contains("http://"), "{text}");
}

#[test]
fn the_pace_of_the_page_is_measured_with_one_client_and_with_several() {
    let words = "bench explore --device cpu --size 32 --seconds 0.3 --clients 1,3";
    let found = ok_json(&mut equicaps(&words.split(' ').collect::<Vec<_>>()));
    for (clients, rate) in [1, 3].into_iter().zip(found["rates"].as_array().unwrap()) {
        let number = |key: &str| rate[key].as_f64().unwrap();
        assert_eq!(rate["clients"], clients);
        assert!(number("pictures") >= f64::from(clients) && number("pictures_per_s") > 0.0, "{rate}");
        assert!(0.0 < number("median_ms") && number("median_ms") <= number("p95_ms"), "{rate}");
        let shares = ["rendering", "encoding", "waiting", "other"].map(|of| number(&format!("share_{of}")));
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-6 && shares[0] > 0.0, "{rate}");
    }
    let (status, said) = failure(&mut equicaps(&["bench", "explore", "--quality", "reference"]));
    assert!(status == 2 && said.contains("the explorer renders fast or standard pictures"), "{said}");
}
