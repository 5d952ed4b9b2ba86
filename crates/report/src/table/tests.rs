//! Every form of a table, and what is marked in it.

use super::*;

fn table() -> Table {
    Table {
        name: "test".into(),
        caption: "A & B <c>".into(),
        columns: vec![
            Column::new("method"),
            Column::new("top-1").in_group("T").with_better(Better::Higher),
            Column::new("d, r").in_group("T").with_better(Better::Lower),
        ],
        rows: vec![
            vec![
                "a|b".into(),
                Cell::number(80.126, 2),
                Cell::Number { value: 0.5, decimals: 2, spread: Some(0.01) },
            ],
            vec!["c_d".into(), Cell::number(80.1301, 2), Cell::Missing],
            vec!["e".into(), Cell::number(f64::NAN, 2), Cell::number(0.25, 2)],
        ],
        notes: vec!["100 % sure".into()],
        about: Vec::new(),
    }
}

#[test]
fn markdown_marks_the_best_and_no_ties() {
    let text = table().to_markdown();
    assert!(text.contains("| a\\|b | 80.13 | 0.50 \u{b1} 0.01 |"), "{text}");
    assert!(text.contains("| c_d | 80.13 | \u{2013} |") && text.contains("| e | \u{2013} | **0.25** |"));
    assert!(text.starts_with("**A & B <c>**\n\n| method | T top-1 | T d, r |\n| :--- | ---: | ---: |\n"));
}

#[test]
fn latex_escapes_and_groups() {
    let text = table().to_latex();
    assert!(text.contains(" & \\multicolumn{2}{c}{T} \\\\"), "{text}");
    assert!(text.contains("\\caption{A \\& B $<$c$>$}") && text.contains("c\\_d & 80.13 & --"));
    assert!(text.contains("\\textbf{0.25}"));
    assert!(text.contains("0.50 $\\pm$ 0.01"));
    let columns = text.lines().filter(|line| line.ends_with("\\\\")).map(|line| line.matches('&').count());
    assert!(columns.skip(1).take(4).all(|count| count == 2));
}

#[test]
fn zero_has_no_sign() {
    assert_eq!(Cell::number(-0.004, 2).text(), "0.00");
    assert_eq!(Cell::number(-0.006, 2).text(), "-0.01");
    assert_eq!(Cell::Number { value: -0.001, decimals: 2, spread: Some(0.0) }.text(), "0.00 \u{b1} 0.00");
}

#[test]
fn csv_quotes_and_keeps_precision() {
    let text = table().to_csv();
    assert_eq!(text.lines().next().unwrap(), "method,T top-1,\"T d, r\",\"T d, r spread\"");
    assert_eq!(text.lines().nth(1).unwrap(), "a|b,80.126,0.5,0.01");
    assert_eq!(text.lines().nth(3).unwrap(), "e,,0.25,");
}

#[test]
fn html_escapes() {
    let html = table().to_html(&mut String::new());
    assert!(html.contains("<figcaption>A &amp; B &lt;c&gt;</figcaption>"));
    assert!(html.contains("<td>80.13</td><td class=\"missing\">"));
    assert!(html.contains("<td class=\"best\">0.25</td>"));
}

fn rivals_for(objective: Option<&str>) -> Rivals {
    Rivals { conditions: "the same".to_owned(), objective: objective.map(str::to_owned) }
}

#[test]
fn only_rivals_are_compared_and_only_a_lead_beyond_the_spread_is_marked() {
    let row = |name: &str, value: f64, spread: f64| {
        vec![name.into(), Cell::Number { value, decimals: 2, spread: Some(spread) }]
    };
    let about = |rivals: Option<&str>, conditions: &str| About {
        rivals: rivals.map(|objective| rivals_for(Some(objective))),
        conditions: conditions.to_owned(),
        names: vec![conditions.to_owned()],
    };
    let mut table = Table {
        columns: vec![Column::new(""), Column::new("R2").with_better(Better::Higher)],
        rows: vec![row("a", 0.7, 0.01), row("b", 0.6, 0.02), row("c", 0.9, 0.01), row("d", 0.95, 0.0)],
        about: vec![
            about(Some("x"), "short"),
            about(Some("x"), "short"),
            about(Some("y"), "long"),
            about(None, ""),
        ],
        ..Table::default()
    };
    let best = |table: &Table| (0..4).map(|row| table.is_best(row, 1)).collect::<Vec<_>>();
    // c is alone under its conditions, d is no rival of anybody.
    assert_eq!(best(&table), [true, false, false, false]);
    table.rows[1] = row("b", 0.6, 0.2);
    assert_eq!(best(&table), [false; 4], "a lead within the spread");
    // What was trained for no motion stands beside all others.
    table.rows[1] = row("b", 0.6, 0.01);
    table.about[2].rivals = Some(rivals_for(None));
    assert_eq!(best(&table), [false, false, true, false]);
    table.about[1].rivals = Some(rivals_for(Some("z")));
    assert_eq!(best(&table), [false, false, true, false], "b is a rival of c alone");
    table.about[1].rivals = Some(rivals_for(Some("x")));
    table.about[2].rivals = Some(rivals_for(Some("x")));
    assert_eq!(best(&table), [false, false, true, false]);
    let html = table.to_html(&mut String::new());
    assert!(
        html.contains("<tr data-names=\"short\"><th>a<span class=\"conditions\">short</span></th>"),
        "{html}"
    );
    let markdown = table.with_conditions().to_markdown();
    assert!(
        markdown.contains("|  | R2 | Conditions |")
            && markdown.contains("| c | **0.90 \u{b1} 0.01** | long |")
    );
}

#[test]
fn conditions_are_said_once_in_a_section() {
    let about = |conditions: &str| About { conditions: conditions.to_owned(), ..About::default() };
    let one = Table {
        columns: vec![Column::new(""), Column::new("R2")],
        rows: vec![vec!["a".into(), Cell::number(0.5, 2)], vec!["floor".into(), Cell::number(0.2, 2)]],
        about: vec![about("batch 8 \u{b7} seed 0"), About::default()],
        ..Table::default()
    };
    let mut said = String::new();
    assert!(one.to_html(&mut said).contains(">Conditions: batch 8 \u{b7} seed 0</p>"));
    assert!(one.to_html(&mut said).contains(">Conditions: as above</p>"));
    let other = Table { about: vec![about("batch 9"), About::default()], ..one.clone() };
    assert!(other.to_html(&mut said).contains(">Conditions: batch 9</p>"));
    // Other forms have no above.
    assert_eq!(one.with_conditions().to_csv().matches("batch 8").count(), 1);
}

#[test]
fn text_is_aligned() {
    let text = table().to_text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "method  T top-1       T d, r");
    assert_eq!(lines[1], "a|b       80.13  0.50 \u{b1} 0.01");
}
