//! Tables of our results: studies over runs, and places in the published tables.
#![allow(clippy::unwrap_used)]

mod baselines;
mod runs;

use std::collections::BTreeMap;

use evaluate::protocol::Task;
use evaluate::results::{
    Also, Data, FORMAT, Measured, ProbeResult, Ranking, Retrieval, RetrievalError, Subject,
};
use evaluate::{Preset, Protocol, Results};
use report::convergence::Convergence;
use report::entry::{Conditions, by_data};
use report::over_seeds::over_seeds;
use report::paper::{Metric, TABLES};
use report::{Entry, Table, compare, ours};
use train::Config;

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

/// Results of a run with `settings` at published scale, after as many steps as epochs.
fn entry(results: Results, settings: &[&str]) -> Entry {
    let mut layers = Config::settings(&results.subject.method, "paper").unwrap();
    settings.iter().for_each(|setting| layers.set(setting).unwrap());
    let config = Config::resolve(layers).unwrap();
    let conditions = Conditions::of(&config, results.subject.epochs);
    Entry { conditions, runs: vec![results.subject.name.clone()], ..Entry::plain(&results) }
}

fn cells(table: &Table, row: usize) -> Vec<String> {
    (0..table.columns.len()).map(|column| table.rows[row][column].text()).collect()
}

fn error(value: f64) -> RetrievalError {
    RetrievalError {
        rotation: value,
        translation: Some(value),
        scale: Some(value),
        shear: Some(2.0 * value),
        perspective: None,
        queries: 1,
        candidates: 1,
    }
}

fn retrieved(value: f64) -> Retrieval {
    let ranking = |mrr: f64| Ranking { mrr, h1: 0.0, h2: 0.0, h5: 0.0, h10: 0.0, queries: 1 };
    Retrieval {
        train: ranking(value),
        val: ranking(value),
        pre: BTreeMap::from([("val-val".to_owned(), error(value))]),
        chance: ranking(0.5),
        chance_train: None,
        pre_chance: BTreeMap::from([("val-val".to_owned(), error(0.5))]),
        by_object: Vec::new(),
    }
}

#[test]
fn convergence_has_a_row_for_every_run_with_several_checkpoints() {
    let all = [
        results("A", "equicaps", Some(32), 10, 0.3),
        results("A", "equicaps", Some(32), 20, 0.4),
        results("B", "vicreg", None, 20, 0.25),
    ]
    .map(|results| Entry::plain(&results));
    let table = Convergence::of(Metric::Rotation, &all).unwrap().table("c", "");
    assert_eq!(table.rows.len(), 1);
    assert_eq!(cells(&table, 0), ["A", "0.30", "0.40"]);
    assert!(Convergence::of(Metric::Rotation, &all[1..]).is_none());
}

#[test]
fn convergence_of_runs_with_other_epochs_is_over_steps() {
    let at = |name: &str, epochs: u64, steps: u64, value: f64| {
        let mut entry = Entry::plain(&results(name, "equicaps", Some(32), epochs, value));
        entry.conditions.steps = Some(steps);
        entry
    };
    let a = [at("A", 20, 200, 0.4), at("A", 10, 100, 0.3)];
    let titles = |all: &[Entry]| -> Vec<(String, String)> {
        let table = Convergence::of(Metric::Rotation, all).unwrap().table("c", "");
        table.columns[1..].iter().map(|column| (column.group.clone(), column.heading.clone())).collect()
    };
    let pair = |group: &str, title: &str| (group.to_owned(), title.to_owned());
    assert_eq!(titles(&a), [pair("epochs", "10 (100 steps)"), pair("epochs", "20 (200 steps)")]);
    let [first, second] = a;
    let all = [first, second, at("B", 10, 200, 0.5), at("B", 60, 1200, 0.6)];
    assert_eq!(titles(&all), [pair("steps", "100"), pair("steps", "200"), pair("steps", "1,200")]);
    let table = Convergence::of(Metric::Rotation, &all).unwrap().table("c", "");
    assert_eq!(cells(&table, 0), ["A", "0.30", "0.40", "\u{2013}"]);
    assert_eq!(cells(&table, 1), ["B", "\u{2013}", "0.50", "0.60"]);
}

#[test]
fn capsule_counts_and_loss_terms_are_of_runs_that_differ_in_nothing_else() {
    let mut without = results("without", "equicaps", Some(32), 20, 0.38);
    without.subject.ablation = "no-invariance".into();
    let all = [
        entry(results("big", "equicaps", Some(64), 20, 0.41), &["network.capsules=64"]),
        entry(results("usual", "equicaps", Some(32), 20, 0.4), &[]),
        entry(without, &["loss.invariance=0"]),
        entry(results("sie", "sie", None, 20, 0.3), &[]),
    ];
    let names = |tables: &[Table]| -> Vec<String> {
        let [table] = tables else { panic!("{tables:?}") };
        (0..table.rows.len()).map(|row| cells(table, row)[0].clone()).collect()
    };
    let counts = ours::capsule_counts(&all);
    assert_eq!(names(&counts), ["32 capsules", "64 capsules", "no information (floor)"]);
    let terms = ours::loss_terms(&all);
    assert_eq!(names(&terms), ["without invariance", "full EquiCaps", "no information (floor)"]);
    assert!(ours::capsule_counts(&all[1..]).is_empty() && ours::loss_terms(&all[..2]).is_empty());
    let mut wide = results("wide", "equicaps", Some(32), 20, 0.39);
    wide.subject.trained_for = "rotation-4x4".into();
    let sizes = ours::pose_sizes(&[entry(wide, &["transform=rotation-4x4"]), all[1].clone(), all[0].clone()]);
    assert_eq!(names(&sizes), ["3x3 poses", "4x4 poses", "no information (floor)"]);
    assert!(ours::pose_sizes(&all).is_empty());
    // Other batches, epochs or data are another study.
    let other = |batch: &str, epochs: u64| {
        let other =
            entry(results("other", "equicaps", Some(64), epochs, 0.5), &["network.capsules=64", batch]);
        ours::capsule_counts(&[other, all[1].clone()])
    };
    assert_eq!(
        (other("batch=1024", 20).len(), other("batch=512", 20).len(), other("batch=1024", 30).len()),
        (1, 0, 0)
    );
}

#[test]
fn of_one_class_no_accuracy_is_told() {
    let with_floor = |floor: f64| {
        let mut one = entry(results("a", "equicaps", Some(32), 20, 0.5), &[]);
        let value = Measured { value: 1.0, spread: 0.0 };
        let accuracy = ProbeResult { value, floor, ..one.results.representations[&Task::Rotation].clone() };
        one.results.representations.insert(Task::Classification, accuracy);
        let headings: Vec<String> = ours::probes("t", "", &[one.clone()], false)
            .unwrap()
            .columns
            .into_iter()
            .map(|c| c.heading)
            .collect();
        (headings, compare::measured(&one.results, Metric::Top1).is_some())
    };
    let (rotation, top1) = ("Rotation R\u{b2}", "Top-1 (%)");
    assert_eq!(with_floor(0.5), (vec!["".to_owned(), top1.to_owned(), rotation.to_owned()], true));
    assert_eq!(with_floor(1.0), (vec!["".to_owned(), rotation.to_owned()], false));
}

#[test]
fn seeds_are_one_row_with_their_spread() {
    let run = |name: &str, seed: u64, rotation: f64| {
        entry(results(name, "equicaps", Some(32), 20, rotation), &[&format!("seed={seed}")])
    };
    let all = [
        run("a", 0, 0.4),
        run("b", 1, 0.6),
        run("c", 2, 0.5),
        entry(results("sie", "sie", None, 20, 0.3), &[]),
    ];
    let rows = over_seeds(&all);
    assert_eq!(rows.len(), 2);
    let value = rows[0].results.representations[&Task::Rotation].value;
    assert!((value.value - 0.5).abs() < 1e-12 && (value.spread - 0.1).abs() < 1e-12, "{value:?}");
    assert_eq!((rows[0].conditions.seeds.as_slice(), rows[0].runs.len()), (&[0, 1, 2][..], 3));
    let words = rows[0].words();
    assert!(
        words.contains("20 epochs \u{b7} 20 steps \u{b7} batch 1,024") && words.contains("3 seeds (0, 1, 2)"),
        "{words}"
    );
    // The same conditions: the lead of 0.2 exceeds the spread of 0.1.
    let table = ours::probes("t", "", &rows, false).unwrap();
    assert!(table.to_markdown().contains("**0.50 \u{b1} 0.10**"), "{}", table.to_markdown());
    // Another batch: not compared.
    let other =
        [rows[0].clone(), entry(results("sie", "sie", None, 20, 0.3), &["batch=512", "loss.variance=3"])];
    let table = ours::probes("t", "", &other, false).unwrap();
    assert!(!table.to_markdown().contains("**0."), "{}", table.to_markdown());
    assert!(
        other[1].words().contains("batch 512") && other[1].words().ends_with("loss.variance 3.0"),
        "{}",
        other[1].words()
    );
    assert_eq!(by_data(&other).len(), 1);
}

#[test]
fn a_mean_over_seeds_is_one_of_all_its_numbers() {
    let run = |name: &str, seed: u64, rotation: f64| {
        entry(results(name, "equicaps", Some(32), 20, rotation), &[&format!("seed={seed}")])
    };
    let mut more = run("a", 0, 0.4);
    let probe = more.results.representations[&Task::Rotation].clone();
    more.results.representations.insert(Task::Colour, probe);
    let rows = over_seeds(&[more, run("b", 1, 0.5), run("c", 2, 0.7)]);
    let seeds: Vec<&[u64]> = rows.iter().map(|row| row.conditions.seeds.as_slice()).collect();
    assert_eq!(seeds, [&[0][..], &[1, 2]]);
    assert!((rows[1].results.representations[&Task::Rotation].value.value - 0.6).abs() < 1e-12);
    // Probes on a supervised network are no numbers of its own head.
    let own = entry(results("own", "supervised", None, 20, 0.5), &[]);
    let mut frozen = own.clone();
    frozen.results.protocol.frozen = true;
    assert!(frozen.words().contains("probes on the frozen network") && !own.words().contains("frozen"));
    assert_eq!(over_seeds(&[own, frozen]).len(), 2);
}

#[test]
fn the_published_row_gets_the_run_with_the_published_capsules() {
    let run = |name: &str, capsules: usize, epochs: u64, rotation: f64| {
        let setting = format!("network.capsules={capsules}");
        entry(results(name, "equicaps", Some(capsules), epochs, rotation), &[&setting])
    };
    let all = [
        run("big", 64, 4100, 0.79),
        run("usual", 32, 4100, 0.75),
        run("small", 16, 4100, 0.77),
        // A longer run is no row of the others.
        run("long", 32, 20_500, 0.99),
    ];
    let table = |name: &str| {
        let published = TABLES.iter().find(|table| table.name == name).unwrap();
        compare::beside(published, &all)
    };
    let main = table("rotation-only");
    let row = main.rows.iter().find(|row| row[0].text() == "EquiCaps").unwrap();
    assert!(row.iter().any(|cell| cell.text().starts_with("0.75 \u{b1}")), "{row:?}");
    assert!(!row.iter().any(|cell| cell.text().starts_with("0.99 \u{b1}")), "{row:?}");
    let capsules = table("capsules");
    let ours: Vec<bool> = [("16", "0.77"), ("32", "0.75"), ("64", "0.79")]
        .iter()
        .map(|(count, value)| {
            let row = capsules.rows.iter().find(|row| row[0].text().starts_with(count)).unwrap();
            row.iter().any(|cell| cell.text().starts_with(value) && cell.text().contains('\u{b1}'))
        })
        .collect();
    assert_eq!(ours, [true; 3]);
    // 4,100 steps are the paper's first 100 epochs, 20,500 its first 500.
    let over_epochs = table("convergence-rotation");
    let row = over_epochs.rows.iter().find(|row| row[0].text() == "EquiCaps").unwrap();
    let texts: Vec<String> = row.iter().map(report::Cell::text).collect();
    assert_eq!(&texts[1..5], ["0.75", "0.75 \u{b1} 0.01", "0.78", "0.99 \u{b1} 0.01"]);
}

#[test]
fn what_networks_were_trained_on_and_from_tells_them_apart() {
    let run = |seed: u64, data: &str, trained_on: &str, from: Option<&str>| {
        let mut results = results("a", "equicaps", Some(32), 20, 0.1 * seed as f64);
        results.subject.trained_on = trained_on.into();
        results.data.path = "data/T".into();
        let mut entry = entry(results, &[&format!("seed={seed}"), &format!("data={data}")]);
        entry.conditions.begun_from = from.map(str::to_owned);
        entry
    };
    let all = [run(1, "x/T", "t", None), run(2, "data/B", "b", None), run(3, "data/T", "t", Some("other"))];
    assert_eq!(over_seeds(&all).len(), 3);
    let words = all[2].words();
    assert!(words.contains("from weights of other"), "{words}");
    let table = ours::probes("t", "", &all, false).unwrap().to_markdown();
    assert!(!table.contains("**0."), "{table}");
    // The same twice is two seeds of one row.
    assert_eq!(over_seeds(&[all[0].clone(), run(5, "T", "t", None)]).len(), 1);
}

#[test]
fn there_is_no_table_of_probes_that_nobody_asked_for() {
    let mut one = results("EquiCaps", "equicaps", None, 20, 0.3);
    let mut table = |with_h: bool, with_embeddings: bool| {
        let probe = one.representations.values().chain(one.embeddings.values()).next().cloned().unwrap();
        let probes = |is_there: bool| is_there.then(|| (Task::Rotation, probe.clone())).into_iter().collect();
        (one.representations, one.embeddings) = (probes(with_h), probes(with_embeddings));
        let all = [Entry::plain(&one)];
        one.representations = probes(true);
        [false, true]
            .map(|of_embeddings| ours::probes("t", "", &all, of_embeddings).map(|table| table.notes.len()))
    };
    // How they were measured is said once.
    assert_eq!(table(true, true), [Some(1), Some(0)]);
    assert_eq!(table(true, false), [Some(1), None]);
    assert_eq!(table(false, true), [None, Some(1)]);
    assert_eq!(table(false, false), [None, None]);
}

#[test]
fn steps_and_protocols_are_conditions() {
    let run = |seed: u64, steps: u64| {
        let mut entry = entry(results("a", "equicaps", Some(32), 1, 0.3), &[&format!("seed={seed}")]);
        entry.conditions.steps = Some(steps);
        entry
    };
    assert_eq!(over_seeds(&[run(0, 248), run(1, 163)]).len(), 2);
    assert!(run(0, 248).words().starts_with("1 epoch \u{b7} 248 steps"), "{}", run(0, 248).words());
    let mut quick = run(0, 248);
    quick.results.protocol = Protocol { passes: 20, ..Protocol::new(Preset::Quick, 3, 100, 100) };
    assert!(quick.words().contains("quick probes \u{b7} evaluation seed 3"), "{}", quick.words());
    let note = ours::probes("t", "", &[run(0, 248), quick], false).unwrap().notes.remove(0);
    assert!(note.contains("over 5 or 20 validation passes"), "{note}");
    // Nothing is known of results without a configuration, so they are compared with nothing.
    assert!(Entry::plain(&results("a", "equicaps", Some(32), 1, 0.3)).rivals().is_none());
    let vicreg = entry(results("v", "vicreg", None, 20, 0.3), &[]);
    assert!(vicreg.objective().is_none() && !vicreg.words().contains("for rotation"), "{}", vicreg.words());
}

#[test]
fn means_over_seeds_are_of_every_part_and_of_further_data() {
    let run = |seed: u64, value: f64| {
        let mut one = results("a", "equicaps", Some(32), 20, value);
        let retrieval = retrieved(value);
        one.also = vec![Also {
            data: Data { path: "B".into(), data_key: "b".into(), ..Data::default() },
            representations: one.representations.clone(),
            embeddings: BTreeMap::new(),
            retrieval: Some(retrieval.clone()),
        }];
        one.retrieval = Some(retrieval);
        entry(one, &[&format!("seed={seed}")])
    };
    let all = [run(0, 0.1), run(1, 0.3)];
    let rows = over_seeds(&all);
    let [row] = &rows[..] else { panic!("{} rows", rows.len()) };
    let near =
        |found: Option<f64>, expected: f64| assert!((found.unwrap() - expected).abs() < 1e-9, "{found:?}");
    let spread = 0.02_f64.sqrt();
    for (retrieval, over) in [
        (&row.results.retrieval, &row.retrieval_spread),
        (&row.results.also[0].retrieval, &row.also_spread[0]),
    ] {
        let [mean, over] = [retrieval, over].map(|one| one.as_ref().unwrap());
        near(mean.pre["val-val"].scale, 0.2);
        near(mean.pre["val-val"].shear, 0.4);
        near(over.pre["val-val"].scale, spread);
        near(over.pre["val-val"].shear, 2.0 * spread);
        assert!(mean.pre["val-val"].perspective.is_none());
        near(Some(over.val.mrr), spread);
    }
    let also = &row.results.also[0].representations[&Task::Rotation].value;
    near(Some(also.value), 0.2);
    near(Some(also.spread), spread);
    // Only one of them was tested on the other data.
    let mut alone = all[1].clone();
    alone.results.also.clear();
    assert_eq!(over_seeds(&[all[0].clone(), alone]).len(), 2);
}

#[test]
fn data_of_the_same_name_are_told_apart() {
    let on = |path: &str, key: &str| {
        let mut results = results("a", "equicaps", Some(32), 20, 0.3);
        (results.data.path, results.data.data_key) = (path.into(), key.into());
        entry(results, &[])
    };
    let names = |all: &[Entry]| -> Vec<String> { by_data(all).into_iter().map(|(name, _)| name).collect() };
    let latents = "(3DIEBench latents)";
    assert_eq!(names(&[on("x/A", "1"), on("x/B", "2")]), [format!("A {latents}"), format!("B {latents}")]);
    assert_eq!(
        names(&[on("x/A", "1"), on("y/A", "2")]),
        [format!("x/A {latents}"), format!("y/A {latents}")]
    );
    let twice = [on("procedural:2x5", "1"), on("procedural:2x5", "2")];
    assert_eq!(names(&twice), ["1", "2"].map(|number| format!("procedural:2x5 {latents}, {number}")));
}

#[test]
fn a_term_with_another_weight_is_not_the_full_loss() {
    let full = |value: f64, settings: &[&str]| entry(results("a", "equicaps", Some(32), 20, value), settings);
    let mut without = results("without", "equicaps", Some(32), 20, 0.38);
    without.subject.ablation = "no-invariance".into();
    let all = [full(0.4, &[]), full(0.5, &["loss.invariance=0.5"]), entry(without, &["loss.invariance=0"])];
    let tables = ours::loss_terms(&all);
    let names: Vec<String> = (0..3).map(|row| cells(&tables[0], row)[0].clone()).collect();
    assert_eq!(names, ["without invariance", "full EquiCaps", "full EquiCaps (loss.invariance 0.5)"]);
}
