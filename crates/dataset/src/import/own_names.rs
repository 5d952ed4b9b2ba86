//! Names of images that are objects of their own. As a rule that is the name of the file without its extension; where other
//! images would have the same name, they are told apart, so that no two become one object.

use std::collections::{HashMap, HashSet};
use std::path::{Component, Path};

use crate::import::rows::Row;

/// An image that is an object of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Own {
    /// The number of its row, whose object has the plain name.
    pub row: usize,
    /// The folder of its side of the split, where there are such.
    pub side: Option<String>,
}

/// Class and object.
type Id = (String, String);

/// Renames the objects of `own` among `rows` whose names others have as well: to `SIDE_NAME` where the others are on another
/// side of the split, else to the name with its extension, and what is the same even then is numbered. The same file has the
/// same name wherever it is named.
pub fn tell_apart(rows: &mut [Row], own: &[Own]) {
    let mut names = Names { rows, own };
    let shared = names.shared();
    let mut sides: HashMap<Id, HashSet<Option<&str>>> = HashMap::new();
    for one in own {
        sides.entry(id(&names.rows[one.row])).or_default().insert(one.side.as_deref());
    }
    names.rename(&shared, |row, side| match side {
        Some(side) if sides[&id(row)].len() > 1 => Some(format!("{side}_{}", row.object)),
        _ => None,
    });
    let shared = names.shared();
    names.rename(&shared, |row, _| {
        let extension = Path::new(&row.file).extension()?.to_str()?;
        Some(format!("{}.{extension}", row.object))
    });
    names.number();
}

fn id(row: &Row) -> Id {
    (row.class.clone(), row.object.clone())
}

/// The parts of a file's path, however it is written.
fn file(row: &Row) -> Vec<String> {
    let parts = Path::new(&row.file).components().filter(|part| *part != Component::CurDir);
    parts.map(|part| part.as_os_str().to_string_lossy().into_owned()).collect()
}

struct Names<'a> {
    rows: &'a mut [Row],
    own: &'a [Own],
}

impl Names<'_> {
    /// The names of objects that are several images.
    fn of_others(&self) -> HashSet<Id> {
        let own: HashSet<usize> = self.own.iter().map(|one| one.row).collect();
        (0..self.rows.len()).filter(|row| !own.contains(row)).map(|row| id(&self.rows[row])).collect()
    }

    /// The names that another object has, too.
    fn shared(&self) -> HashSet<Id> {
        let mut shared = self.of_others();
        let mut first: HashMap<Id, Vec<String>> = HashMap::new();
        for row in self.own.iter().map(|one| &self.rows[one.row]) {
            let file = file(row);
            if *first.entry(id(row)).or_insert_with(|| file.clone()) != file {
                shared.insert(id(row));
            }
        }
        shared
    }

    fn rename(&mut self, shared: &HashSet<Id>, name: impl Fn(&Row, Option<&str>) -> Option<String>) {
        for one in self.own {
            let row = &mut self.rows[one.row];
            if shared.contains(&id(row))
                && let Some(name) = name(row, one.side.as_deref())
            {
                row.object = name;
            }
        }
    }

    /// Numbers those that still have the name of another, but for the first of them.
    fn number(&mut self) {
        let shared = self.shared();
        let mut taken: HashSet<Id> = self.rows.iter().map(id).collect();
        let mut claimed = self.of_others();
        let mut known: HashMap<(Id, Vec<String>), String> = HashMap::new();
        for one in self.own {
            let row = &mut self.rows[one.row];
            let plain = id(row);
            if !shared.contains(&plain) {
                continue;
            }
            let key = (plain.clone(), file(row));
            if let Some(name) = known.get(&key) {
                row.object.clone_from(name);
                continue;
            }
            if !claimed.insert(plain.clone()) {
                let numbered = (2_u64..).map(|number| (plain.0.clone(), format!("{}_{number}", plain.1)));
                if let Some((class, name)) = numbered.into_iter().find(|name| !taken.contains(name)) {
                    taken.insert((class, name.clone()));
                    row.object = name;
                }
            }
            known.insert(key, row.object.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of files of one class: `SIDE|FILE|PLAIN`, without a side where that is empty; `FILE|PLAIN` is one of several
    /// images of an object.
    fn names(list: &[&str]) -> Vec<String> {
        let mut own = Vec::new();
        let mut rows = Vec::new();
        for (row, text) in list.iter().enumerate() {
            let parts: Vec<&str> = text.split('|').collect();
            if let [side, ..] = parts[..]
                && parts.len() == 3
            {
                own.push(Own { row, side: (!side.is_empty()).then(|| side.to_owned()) });
            }
            rows.push(Row {
                place: String::new(),
                file: parts[parts.len() - 2].to_owned(),
                class: "c".to_owned(),
                object: parts[parts.len() - 1].to_owned(),
                view: None,
                split: None,
                pose: None,
                light: None,
                region: None,
            });
        }
        tell_apart(&mut rows, &own);
        rows.into_iter().map(|row| row.object).collect()
    }

    #[test]
    fn plain_names_stay_and_others_are_told_apart() {
        assert_eq!(names(&["|c/a.jpg|a", "|c/b.png|b", "c/d/1.jpg|d"]), ["a", "b", "d"]);
        assert_eq!(names(&["|c/b.jpg|b", "|c/b.png|b", "|c/a.jpg|a"]), ["b.jpg", "b.png", "a"]);
        assert_eq!(names(&["|c/a.jpg|a", "c/a/1.jpg|a", "c/a/2.jpg|a"]), ["a.jpg", "a", "a"]);
        let sides =
            ["train|train/c/a.jpg|a", "val|val/c/a.jpg|a", "test|test/c/a.png|a", "val|val/c/b.jpg|b"];
        assert_eq!(names(&sides), ["train_a", "val_a", "test_a", "b"]);
        // On one side, and on the other.
        let both = ["train|train/c/a.jpg|a", "train|train/c/a.png|a", "val|val/c/a.jpg|a"];
        assert_eq!(names(&both), ["train_a.jpg", "train_a.png", "val_a"]);
    }

    #[test]
    fn what_cannot_be_told_apart_otherwise_is_numbered() {
        let list = ["|a_b.jpg|a_b", "|a/b.jpg|a_b", "|./a_b.jpg|a_b", "|a_b.jpg_2.jpg|a_b.jpg_2"];
        assert_eq!(names(&list), ["a_b.jpg", "a_b.jpg_3", "a_b.jpg", "a_b.jpg_2"]);
        assert_eq!(names(&["|a.jpg|a", "x|a", "y|a.jpg"]), ["a.jpg_2", "a", "a.jpg"]);
        // One file in two rows is one object, as it is where nothing else has its name.
        assert_eq!(names(&["|a.jpg|a", "|a.jpg|a", "|b.jpg|b"]), ["a", "a", "b"]);
        assert_eq!(names(&["|a|a", "|../a|a"]), ["a", "a_2"]);
    }
}
