//! What names and conditions say of the runs of a report.

use evaluate::Results;
use report::Entry;
use report::run_material::RunMaterial;
use report::run_names::{latest, named};
use train::Config;

use crate::results;

/// A run with `settings` at published scale, called `name`, and its only evaluation.
fn run(name: &str, results: Results, settings: &[String]) -> RunMaterial {
    let mut layers = Config::settings(&results.subject.method, "paper").unwrap();
    settings.iter().for_each(|setting| layers.set(setting).unwrap());
    RunMaterial {
        name: name.to_owned(),
        config: Some(Config::resolve(layers).unwrap()),
        evaluations: vec![("evaluation".into(), results)],
        ..RunMaterial::default()
    }
}

#[test]
fn methods_with_brackets_in_their_names_keep_them_over_seeds() {
    let names = |runs: &[&str]| -> Vec<String> {
        let run = |(seed, name): (usize, &&str)| {
            let mut results = results("Supervised (classification) @ 20", "supervised", None, 20, 0.5);
            results.subject.task = "classification".into();
            let width = if name.contains("wide") { 128 } else { 64 };
            run(name, results, &[format!("seed={seed}"), format!("network.width={width}")])
        };
        let runs: Vec<RunMaterial> = runs.iter().enumerate().map(run).collect();
        latest(&named(&runs)).into_iter().map(|entry| entry.results.subject.name).collect()
    };
    assert_eq!(names(&["T-classification-s0"]), ["Supervised (classification)"]);
    assert_eq!(names(&["T-classification-s0", "T-classification-s1"]), ["Supervised (classification)"]);
    assert_eq!(
        names(&["T-s0", "T-s1", "T-wide-s0", "T-wide-s1"]),
        ["Supervised (classification)", "Supervised (classification) (wide)"]
    );
}

#[test]
fn other_data_of_training_are_said_in_as_few_folders_as_tell_them_apart() {
    // Of runs (data of training, their number, data of evaluation).
    let said = |runs: &[(&str, &str, &str)]| -> Vec<Option<String>> {
        let run = |&(data, number, on): &(&str, &str, &str)| {
            let mut results = results("a", "equicaps", Some(32), 20, 0.3);
            results.subject.trained_on = number.into();
            results.data.path = on.into();
            run("", results, &[format!("data={data}")])
        };
        let named = named(&runs.iter().map(run).collect::<Vec<_>>());
        let words = |entry: &Entry| {
            let words = entry.words();
            let mut parts = words.split(" \u{b7} ");
            parts.find_map(|part| part.strip_prefix("trained on ").map(str::to_owned))
        };
        named.iter().flatten().map(words).collect()
    };
    let is = |data: &str| Some(data.to_owned());
    let home = ("views", "v", "views");
    assert_eq!(said(&[home, ("B", "b", "views")]), [None, is("B")]);
    // Of the same name.
    assert_eq!(said(&[home, ("x/views", "w", "views")]), [None, is("x/views")]);
    assert_eq!(said(&[home, ("a/x/views", "w", "./views")]), [None, is("x/views")]);
    let two = [home, ("/a/x/views", "w", "views"), ("/b/x/views", "u", "views")];
    assert_eq!(said(&two), [None, is("a/x/views"), is("b/x/views")]);
    // The same data in another place.
    assert_eq!(said(&[home, ("old/views", "v", "views"), ("former", "v", "./views")]), [None, None, None]);
    assert_eq!(said(&[("old/views", "v", "new/views")]), [None]);
    // Nobody stayed where it was trained, but they were not trained on the same.
    let moved = [("x/views", "v", "z/views"), ("y/views", "w", "z/views")];
    assert_eq!(said(&moved), [is("x/views"), is("y/views")]);
    // Of earlier results no numbers are known.
    assert_eq!(said(&[("x/views", "", "views"), ("B", "", "views")]), [None, is("B")]);
}
