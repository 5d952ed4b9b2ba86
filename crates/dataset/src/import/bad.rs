//! Images that cannot be used: what is said of all of them together, and how they are recorded where they are left out.

use crate::error::Error;
use crate::import::arrange::Arranged;
use crate::import::rows::Rows;
use crate::work::Skipped;

/// Images that are named in a message; others are only counted.
const NAMED: usize = 10;

/// An image that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bad {
    /// The number of its row.
    pub row: usize,
    /// What is wrong with it.
    pub reason: String,
}

impl Bad {
    /// What `error` says of the image in `row`, but for where its file is kept.
    pub fn of(row: usize, error: Error) -> Self {
        let reason = match error {
            Error::File(error) => error.without_path(),
            other => other.to_string(),
        };
        Self { row, reason }
    }

    fn said(&self, rows: &Rows) -> String {
        let row = &rows.rows[self.row];
        match row.own_place() {
            Some(place) => format!("{place}: {}: {}", row.file, self.reason),
            None => format!("{}: {}", row.file, self.reason),
        }
    }
}

/// Why an import ends that is not to leave out images: all that are `bad`.
pub fn refusal(rows: &Rows, bad: &[Bad]) -> Error {
    let all = rows.rows.len();
    let mut named: Vec<String> = bad.iter().take(NAMED).map(|bad| bad.said(rows)).collect();
    if bad.len() > NAMED {
        named.push(format!("and {} more", bad.len() - NAMED));
    }
    let (count, they, them) = match bad.len() {
        1 => (String::new(), "it is", "it"),
        several => (format!("{several} of {all} images cannot be used: "), "they are", "them"),
    };
    let message = format!(
        "{count}{} (the same command goes on when {they} mended or removed; --on-bad-sample skip leaves {them} out)",
        named.join("; ")
    );
    Error::content(&rows.source, message)
}

/// Why there is nothing to import.
pub fn none_is_usable(rows: &Rows, bad: &[Bad]) -> Error {
    let first = bad.first().map(|bad| format!(": {}", bad.said(rows))).unwrap_or_default();
    let which = if rows.rows.len() == 1 { "the only image cannot" } else { "none of the images can" };
    Error::content(&rows.source, format!("{which} be used{first}"))
}

/// The records of all that is left out: the objects in `gone`, by their numbers in `all` with the reasons, and the images that
/// are `bad`. Sorted by object, the object itself first.
pub fn records(rows: &Rows, all: &Arranged, gone: &[(usize, String)], bad: &[Bad]) -> Vec<Skipped> {
    let objects = gone.iter().map(|(object, reason)| {
        let object = &all.objects[*object];
        let (synset, name, reason) = (object.synset.clone(), object.name.clone(), reason.clone());
        Skipped { synset, name, file: None, place: None, reason }
    });
    let images = bad.iter().map(|bad| {
        let row = &rows.rows[bad.row];
        Skipped {
            synset: row.class.clone(),
            name: row.object.clone(),
            file: Some(row.file.clone()),
            place: row.own_place().map(str::to_owned),
            reason: bad.reason.clone(),
        }
    });
    let mut records: Vec<Skipped> = objects.chain(images).collect();
    // Images of an object stay in the order of their rows.
    let key = |record: &Skipped| (record.synset.clone(), record.name.clone(), record.file.is_some());
    records.sort_by_cached_key(key);
    records
}
