//! Tables of single objects and classes: the worst and the best of one evaluation, and all of them as CSV.

use std::path::Path;

use evaluate::Results;
use evaluate::object_scores::{Score, Scores};

use crate::Result;
use crate::entry::grouped;
use crate::table::{Cell, Column, Table};

/// Objects shown at either end.
const SHOWN: usize = 5;
/// Classes that are all shown; of more, the worst and the best.
const MOST_CLASSES: usize = 20;

/// Files with all objects and all classes, beside `results.json`.
const OBJECTS: &str = "objects.csv";
const CLASSES: &str = "classes.csv";

fn columns(first: &[&str], scores: &[&Score]) -> Vec<Column> {
    let has = |value: fn(&Score) -> Option<f64>| scores.iter().any(|score| value(score).is_some());
    let measured = [
        ("rotation error (degrees)", has(|score| score.rotation_error)),
        ("rotation R\u{b2}", has(|score| score.rotation_r2)),
        ("MRR", has(|score| score.mrr)),
    ];
    let measured = measured.into_iter().filter(|(_, has)| *has).map(|(heading, _)| heading);
    first.iter().copied().chain(measured).map(Column::new).collect()
}

fn numbers(score: &Score, columns: &[Column]) -> Vec<Cell> {
    let all = [(score.rotation_error, 1), (score.rotation_r2, 3), (score.mrr, 3)];
    let headings = ["rotation error (degrees)", "rotation R\u{b2}", "MRR"];
    let shown =
        headings.iter().zip(all).filter(|(heading, _)| columns.iter().any(|c| c.heading == **heading));
    shown.map(|(_, (value, decimals))| Cell::number(value, decimals)).collect()
}

/// One row each; `place` says what stands before the numbers.
fn table(scores: &[&Score], first: &[&str], place: impl Fn(&Score) -> Vec<Cell>) -> Table {
    let columns = columns(first, scores);
    let row = |score: &&Score| place(score).into_iter().chain(numbers(score, &columns)).collect();
    let rows = scores.iter().map(row).collect();
    Table { columns, rows, ..Table::default() }
}

/// Those at both ends of a list that is sorted, worst first, each with the words that say so.
fn both_ends<'a>(sorted: &[&'a Score], shown: usize) -> Vec<(&'static str, &'a Score)> {
    let worst = sorted.len().min(2 * shown).div_ceil(2);
    let best = sorted.len().min(2 * shown) - worst;
    let ends = sorted[..worst].iter().map(|score| ("worst", *score));
    ends.chain(sorted[sorted.len() - best..].iter().map(|score| ("best", *score))).collect()
}

/// The worst and the best objects of an evaluation that is called `name`, and its classes; none where nothing was measured by
/// object.
pub fn tables(results: &Results, name: &str) -> Vec<Table> {
    let Scores(objects) = &results.by_object;
    if objects.is_empty() {
        return Vec::new();
    }
    let ends = both_ends(&results.by_object.worst_first(), SHOWN);
    let scores: Vec<&Score> = ends.iter().map(|(_, score)| *score).collect();
    let mut of_objects = table(&scores, &["", "object", "class"], |score| {
        let end = ends.iter().find(|(_, other)| other.name == score.name).map_or("", |(end, _)| end);
        vec![end.into(), score.name.as_str().into(), score.class.as_str().into()]
    });
    of_objects.name = "objects-ours".to_owned();
    of_objects.caption = format!(
        "{name}: the worst and the best of {} objects, {}",
        grouped(objects.len() as u64),
        results.data.split.held_out()
    );
    of_objects.notes = vec![
        "Of each held-out object: the mean angle between the change of rotation that the probe says and the true one; R\u{b2} with \
         the residuals of its pairs against the spread of the targets of all objects; MRR of its views. The pose of an object \
         that looks the same from several sides cannot be told."
            .to_owned(),
    ];
    let sorted = results.by_class.worst_first();
    if sorted.len() <= 1 {
        return vec![of_objects];
    }
    let (classes, which) = if sorted.len() <= MOST_CLASSES {
        (sorted, "")
    } else {
        let ends = both_ends(&sorted, MOST_CLASSES / 2);
        (ends.into_iter().map(|(_, score)| score).collect(), ", the worst and the best")
    };
    let mut of_classes = table(&classes, &["class", "objects"], |score| {
        vec![score.name.as_str().into(), score.objects.to_string().into()]
    });
    of_classes.name = "classes-ours".to_owned();
    of_classes.caption = format!("{name}: classes{which}, means over their objects");
    vec![of_objects, of_classes]
}

/// Writes all objects and all classes as CSV into an evaluation's folder.
pub(crate) fn write(results: &Results, folder: &Path) -> Result<()> {
    if results.by_object.is_empty() {
        return Ok(());
    }
    let objects: Vec<&Score> = results.by_object.0.iter().collect();
    let objects = table(&objects, &["object", "class"], |score| {
        vec![score.name.as_str().into(), score.class.as_str().into()]
    });
    let classes: Vec<&Score> = results.by_class.0.iter().collect();
    let classes = table(&classes, &["class", "objects"], |score| {
        vec![score.name.as_str().into(), score.objects.to_string().into()]
    });
    for (name, table) in [(OBJECTS, objects), (CLASSES, classes)] {
        dataset::durable::write(&folder.join(name), table.to_csv().as_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_never_meet() {
        let scores: Vec<Score> = (0..7).map(|k| Score { name: k.to_string(), ..Score::default() }).collect();
        let sorted: Vec<&Score> = scores.iter().collect();
        let names = |count: usize, shown: usize| -> Vec<String> {
            let ends = both_ends(&sorted[..count], shown);
            ends.iter().map(|(end, score)| format!("{end} {}", score.name)).collect()
        };
        assert_eq!(names(7, 2), ["worst 0", "worst 1", "best 5", "best 6"]);
        assert_eq!(names(3, 2), ["worst 0", "worst 1", "best 2"]);
        assert_eq!(names(1, 2), ["worst 0"]);
        assert!(names(0, 2).is_empty());
    }
}
