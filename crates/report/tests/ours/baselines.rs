//! What is reached without any information, and the columns of tables whose rows have different ones.

use std::collections::BTreeMap;

use evaluate::protocol::Task;
use evaluate::results::{Also, Data, RetrievalError};
use evaluate::{Preset, Protocol};
use report::{Cell, Entry, Row, Table, ours};

use crate::{entry, error, results, retrieved};

/// The rows of a table whose names begin with `name`.
fn called<'a>(table: &'a Table, name: &str) -> Vec<&'a Row> {
    table.rows.iter().filter(|row| row[0].text().starts_with(name)).collect()
}

#[test]
fn every_protocol_has_its_own_floor_and_chance_where_they_differ() {
    let run = |name: &str, preset: Preset, floor: f64| {
        let mut one = results(name, "equicaps", Some(32), 20, 0.3);
        one.protocol = Protocol::new(preset, 0, 100, 100);
        one.representations.get_mut(&Task::Rotation).unwrap().floor = floor;
        one.retrieval = Some(retrieved(0.7));
        one.retrieval.as_mut().unwrap().chance.mrr = floor;
        Entry::plain(&one)
    };
    let shown = |all: &[Entry]| -> [Vec<[String; 2]>; 3] {
        let [ranks, errors] = &ours::retrieval(all)[..] else { panic!("two tables") };
        let probes = ours::probes("t", "", all, false).unwrap();
        [(&probes, "no information"), (ranks, "chance"), (errors, "chance")].map(|(table, name)| {
            assert_eq!(table.about.len(), table.rows.len());
            called(table, name).iter().map(|row| [0, 1].map(|cell| row[cell].text())).collect()
        })
    };
    let row = |name: &str, value: &str| [name.to_owned(), value.to_owned()];
    let one = run("a", Preset::Quick, 0.324);
    // The same as shown: one row.
    let errors = vec![row("chance", "0.50")];
    assert_eq!(
        shown(&[one.clone(), run("b", Preset::Paper, 0.32)]),
        [vec![row("no information (floor)", "0.32")], vec![row("chance", "0.32")], errors.clone()]
    );
    let other = run("b", Preset::Paper, 0.284);
    assert_eq!(
        shown(&[one.clone(), other.clone()]),
        [
            vec![
                row("no information (floor), quick probes", "0.32"),
                row("no information (floor), paper probes", "0.28")
            ],
            vec![row("chance, quick probes", "0.32"), row("chance, paper probes", "0.28")],
            errors.clone()
        ]
    );
    // Another floor by the same protocol: by their names.
    let third = run("c", Preset::Paper, 0.32);
    assert_eq!(
        shown(&[one.clone(), other.clone(), third])[0],
        [row("no information (floor), a, c", "0.32"), row("no information (floor), b", "0.28")]
    );
    let many = ["c", "d", "e"].map(|name| run(name, Preset::Paper, 0.32));
    assert_eq!(
        shown(&[&[one, other], &many[..]].concat())[0],
        [row("no information (floor), other rows", "0.32"), row("no information (floor), b", "0.28")]
    );
}

#[test]
fn floors_and_chance_are_numbers_of_full_precision() {
    let mut one = results("a", "equicaps", Some(32), 20, 0.3);
    one.representations.get_mut(&Task::Rotation).unwrap().floor = 0.28412;
    one.retrieval = Some(retrieved(0.1));
    one.retrieval.as_mut().unwrap().chance.mrr = 0.52083;
    let all = [entry(one, &[])];
    let is_number = |cell: &Cell, number: f64| matches!(cell, Cell::Number { value, .. } if *value == number);
    let probes = ours::probes("t", "", &all, false).unwrap();
    assert!(is_number(&called(&probes, "no information (floor)")[0][1], 0.28412));
    let ranks = &ours::retrieval(&all)[0];
    assert!(is_number(&called(ranks, "chance")[0][1], 0.52083));
    // What people see is rounded, and chance is not marked although it is the highest.
    assert!(probes.to_markdown().contains("| no information (floor) | 0.28 |"), "{}", probes.to_markdown());
    assert!(ranks.to_markdown().contains("| chance | 0.52 | 0.52 |"), "{}", ranks.to_markdown());
}

#[test]
fn errors_of_retrieval_have_the_columns_of_all_rows() {
    let mut one = results("a", "equicaps", Some(32), 20, 0.3);
    let mut plain = retrieved(0.1);
    let rotation = RetrievalError { translation: None, scale: None, shear: None, ..error(0.1) };
    plain.pre = BTreeMap::from([("train-train".to_owned(), rotation)]);
    plain.pre_chance.clear();
    one.retrieval = Some(plain);
    one.also = vec![Also {
        data: Data { path: "T".into(), data_key: "t".into(), ..Data::default() },
        representations: BTreeMap::new(),
        embeddings: BTreeMap::new(),
        retrieval: Some(retrieved(0.25)),
    }];
    let [_, errors] = &ours::retrieval(&[Entry::plain(&one)])[..] else { panic!("two tables") };
    let heading = |column: &report::Column| format!("{} {}", column.group, column.heading);
    let row = |name: &str| -> BTreeMap<String, String> {
        let row = called(errors, name)[0];
        errors.columns.iter().map(heading).zip(row.iter().map(Cell::text)).collect()
    };
    assert_eq!(row("a, on T")["val-val translation"], "0.25");
    assert_eq!(row("chance, on T")["val-val translation"], "0.50");
    assert_eq!(row("a")["val-val translation"], "\u{2013}");
    assert_eq!(row("a")["train-train rotation"], "0.10");
}
