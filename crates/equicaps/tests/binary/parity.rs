//! `equicaps check parity` and `bench exchange` through the binary: exit codes and the JSON contract.

use std::path::Path;
use std::process::Output;

use crate::support::{equicaps, failure, ok_json};

fn parity(fixture: &Path, inputs: &Path, more: &[&str]) -> Output {
    let mut command = equicaps(&["check", "parity", "--json", "--fixture"]);
    command.arg(fixture).arg("--inputs").arg(inputs).args(more).output().unwrap()
}

fn fixture(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../methods/tests/fixtures").join(name)
}

#[test]
fn a_good_fixture_is_within_bounds_and_a_changed_one_is_not() {
    let (good, inputs) = (fixture("equicaps_4x4.safetensors"), fixture("inputs.safetensors"));
    let output = parity(&good, &inputs, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    assert_eq!(report["within"], true);
    assert_eq!(report["method"], "equicaps");
    assert!(report["comparisons"].as_array().is_some_and(|all| all.len() > 20));

    // The loss is the last number that the file compares by name: change a term.
    let folder = tempfile::tempdir().expect("a folder");
    let changed = folder.path().join("changed.safetensors");
    let mut bytes = std::fs::read(&good).expect("the fixture");
    let header = u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes")) as usize;
    let names: serde_json::Value = serde_json::from_slice(&bytes[8..8 + header]).expect("a header");
    let start = names["stat/cov_loss"]["data_offsets"][0].as_u64().expect("an offset") as usize;
    let at = 8 + header + start;
    bytes[at..at + 4].copy_from_slice(&123.0_f32.to_le_bytes());
    std::fs::write(&changed, &bytes).expect("written");
    let output = parity(&changed, &inputs, &[]);
    assert_eq!(output.status.code(), Some(1));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    assert_eq!(report["outside"], 1);
}

#[test]
fn unusable_files_end_with_status_2() {
    let (good, inputs) = (fixture("equicaps_4x4.safetensors"), fixture("inputs.safetensors"));
    let folder = tempfile::tempdir().expect("a folder");
    let broken = folder.path().join("broken.safetensors");
    let bytes = std::fs::read(&good).expect("the fixture");
    std::fs::write(&broken, &bytes[..bytes.len() / 2]).expect("written");
    for (fixture, more) in [
        (&broken, vec![]),
        (&folder.path().join("none"), vec![]),
        (&inputs, vec![]),
        (&good, vec!["--method", "sie"]),
        (&good, vec!["--method", "equicups"]),
    ] {
        let output = parity(fixture, &inputs, &more);
        assert_eq!(output.status.code(), Some(2), "{fixture:?} {more:?}");
        let failure: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
        assert!(!output.stderr.is_empty() && failure["error"].is_string() && failure["status"] == 2);
    }
}

#[test]
fn the_benchmark_of_exchanges_counts_every_gradient_once() {
    let sizes = ["--batch", "8", "--size", "32", "--steps", "1"];
    let report = ok_json(&mut equicaps(&[&["bench", "exchange", "--ranks", "1,2"], &sizes[..]].concat()));
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    let bytes = |row: &serde_json::Value| -> Vec<u64> {
        row["buckets"].as_array().unwrap().iter().map(|bucket| bucket["bytes"].as_u64().unwrap()).collect()
    };
    let step = ok_json(&mut equicaps(&[&["bench", "step"], &sizes[..]].concat()));
    // Tensors begin at round addresses, so there is a little between them.
    let (summed, needed) = (bytes(&rows[0]).iter().sum::<u64>(), 4 * step["parameters"].as_u64().unwrap());
    assert!((needed..needed + needed / 1000).contains(&summed), "{summed} of {needed}");
    assert_eq!(bytes(&rows[0]), bytes(&rows[1]));
    // 20 batch norms of two views, forward and backward.
    assert!(rows[1]["moment_calls"].as_u64().unwrap() >= 80, "{report}");
    let ms = |key: &str| rows.iter().map(|row| row[key].as_f64().unwrap()).collect::<Vec<_>>();
    assert!(ms("waited_ms")[0] == 0.0 && ms("waited_ms")[1] > 0.0, "{report}");
    assert!(ms("exposed_ms")[1] <= ms("gradients_ms")[1], "{report}");

    let (status, said) = failure(&mut equicaps(&["bench", "exchange", "--batch", "8", "--ranks", "3"]));
    assert_eq!(status, 2);
    assert!(said.contains("3 ranks cannot share a batch of 8"), "{said}");
}
