//! Tables of our results: studies over runs, and places in the published tables.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use evaluate::protocol::Task;
use evaluate::results::{Data, FORMAT, Measured, ProbeResult, Subject};
use evaluate::{Preset, Protocol, Results};
use report::paper::{Metric, TABLES};
use report::{Table, compare, ours};

fn results(name: &str, method: &str, capsules: Option<usize>, epochs: u64, rotation: f64) -> Results {
    let probe = ProbeResult {
        value: Measured { value: rotation, spread: 0.01 },
        top5: None,
        floor: 0.23,
        input_width: 8,
        curve: Vec::new(),
        by_object: Vec::new(),
    };
    Results {
        format: FORMAT,
        subject: Subject {
            name: name.into(),
            method: method.into(),
            backbone: "resnet18".into(),
            capsules,
            trained_for: "rotation".into(),
            epochs: Some(epochs),
            ..Subject::default()
        },
        data: Data { kind: "3DIEBench".into(), ..Data::default() },
        protocol: Protocol::new(Preset::Paper, 0, 100, 100),
        representations: BTreeMap::from([(Task::Rotation, probe)]),
        embeddings: BTreeMap::new(),
        retrieval: None,
        by_object: Default::default(),
        by_class: Default::default(),
        also: Vec::new(),
        device: "cpu".into(),
        seconds: BTreeMap::new(),
    }
}

fn cells(table: &Table, row: usize) -> Vec<String> {
    (0..table.columns.len()).map(|column| table.rows[row][column].text()).collect()
}

#[test]
fn convergence_has_a_row_for_every_run_with_several_checkpoints() {
    let all = [
        results("A", "equicaps", Some(32), 10, 0.3),
        results("A", "equicaps", Some(32), 20, 0.4),
        results("B", "vicreg", None, 20, 0.25),
    ];
    let table = ours::convergence("c", "", Metric::Rotation, &all).unwrap();
    assert_eq!(table.rows.len(), 1);
    assert_eq!(cells(&table, 0), ["A", "0.30", "0.40"]);
    assert!(ours::convergence("c", "", Metric::Rotation, &all[1..]).is_none());
}

#[test]
fn capsule_counts_and_loss_terms_are_found_among_runs() {
    let mut without = results("without", "equicaps", Some(32), 20, 0.38);
    without.subject.ablation = "no-invariance".into();
    let all = [
        results("big", "equicaps", Some(64), 20, 0.41),
        results("usual", "equicaps", Some(32), 20, 0.4),
        without,
        results("sie", "sie", None, 20, 0.3),
    ];
    let counts = ours::capsule_counts(&all).unwrap();
    let names: Vec<String> = (0..counts.rows.len()).map(|row| cells(&counts, row)[0].clone()).collect();
    assert_eq!(names, ["32 capsules", "64 capsules", "no information (floor)"]);
    let terms = ours::loss_terms(&all).unwrap();
    let names: Vec<String> = (0..terms.rows.len()).map(|row| cells(&terms, row)[0].clone()).collect();
    assert_eq!(names, ["without invariance", "full EquiCaps", "no information (floor)"]);
    assert!(ours::capsule_counts(&all[1..]).is_none() && ours::loss_terms(&all[..2]).is_none());
}

#[test]
fn the_published_row_gets_the_run_with_the_published_capsules() {
    let all = [
        results("big", "equicaps", Some(64), 2000, 0.79),
        results("usual", "equicaps", Some(32), 100, 0.75),
        results("small", "equicaps", Some(16), 2000, 0.77),
    ];
    let table = |name: &str| {
        let published = TABLES.iter().find(|table| table.name == name).unwrap();
        compare::beside(published, &all)
    };
    let main = table("rotation-only");
    let row = main.rows.iter().find(|row| row[0].text() == "EquiCaps").unwrap();
    assert!(row.iter().any(|cell| cell.text().starts_with("0.75")), "{row:?}");
    let capsules = table("capsules");
    let ours: Vec<bool> = [("16", "0.77"), ("32", "0.75"), ("64", "0.79")]
        .iter()
        .map(|(count, value)| {
            let row = capsules.rows.iter().find(|row| row[0].text().starts_with(count)).unwrap();
            row.iter().any(|cell| cell.text().starts_with(value) && cell.text().contains('\u{b1}'))
        })
        .collect();
    assert_eq!(ours, [true; 3]);
}
