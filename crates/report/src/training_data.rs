//! On which data networks were trained, said where these are not the data of their evaluation.
//!
//! Folders are moved and their names used again, so the numbers of the data of training decide. The number that the data of an
//! evaluation have is known where some network of the report was evaluated on what it was trained on, in the same place.

use std::path::{Component, Path, PathBuf};

use crate::entry::{Entry, folder_name};

/// Says it of all entries of a report.
pub(crate) fn tell(entries: &mut [&mut Entry]) {
    let found: Vec<Option<String>> = entries.iter().map(|entry| elsewhere(entry, entries)).collect();
    for (entry, found) in entries.iter_mut().zip(found) {
        entry.conditions.trained_elsewhere = found;
    }
}

/// The data of training of `entry`, one of `all`, where they are not those of its evaluation: as few folders as tell them
/// from these, and from all other data that networks of the report were trained on.
fn elsewhere(entry: &Entry, all: &[&mut Entry]) -> Option<String> {
    let number = |entry: &Entry| entry.results.subject.trained_on.clone();
    let own = number(entry);
    let (from, on) = (entry.conditions.data.as_str(), entry.results.data.path.as_str());
    let has_other_name = folder_name(from) != folder_name(on);
    let is_other = if own.is_empty() {
        has_other_name
    } else {
        let data = |entry: &Entry| (entry.results.data.data_key.clone(), entry.results.data.split);
        let here: Vec<&Entry> = all
            .iter()
            .map(|other| &**other)
            .filter(|other| data(other) == data(entry) && !number(other).is_empty())
            .collect();
        let stayed = |other: &Entry| whole(&other.conditions.data) == whole(&other.results.data.path);
        let known: Vec<String> =
            here.iter().filter(|other| stayed(other)).map(|other| number(other)).collect();
        match known.is_empty() {
            true => has_other_name || here.iter().any(|other| number(other) != own),
            false => !known.contains(&own),
        }
    };
    is_other.then(|| {
        let others = all.iter().filter(|other| number(other) != own);
        let others: Vec<&str> = others.map(|other| other.conditions.data.as_str()).chain([on]).collect();
        let folders = Path::new(from).components().count();
        let end = (1..folders)
            .map(|count| last(from, count))
            .zip(1..)
            .find(|(end, count)| others.iter().all(|other| last(other, *count) != *end));
        end.map_or_else(|| from.to_owned(), |(end, _)| end.display().to_string())
    })
}

/// The last `count` parts of a path.
fn last(path: &str, count: usize) -> PathBuf {
    let parts: Vec<Component<'_>> =
        Path::new(path).components().filter(|part| *part != Component::CurDir).collect();
    parts[parts.len().saturating_sub(count)..].iter().collect()
}

/// A path without what makes no difference.
fn whole(path: &str) -> PathBuf {
    last(path, usize::MAX)
}
