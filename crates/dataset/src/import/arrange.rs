//! Rows become objects with views: grouped, put in order, and divided into what is trained on and what is held out.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::error::{Error, Result};
use crate::import::rows::{Row, Rows};
use crate::lists::parse_folder_entry;
use crate::object::{Object, Split, SplitBy};
use crate::split::{FEWEST_VIEWS, as_given as given_sides, assign_by, held_out_views};
use crate::view_index::ViewIndex;

/// The objects of a dataset, and the rows that are their views.
#[derive(Clone, Debug, PartialEq)]
pub struct Arranged {
    /// All objects, training first, in the order of the lists.
    pub objects: Vec<Object>,
    /// For every object the numbers of its rows, view by view; where views are held out, those are the last ones.
    pub rows: Vec<Vec<usize>>,
    /// How many views objects have, and how many of them are held out.
    pub index: ViewIndex,
    /// What is held out.
    pub split: SplitBy,
    /// Why: what said so.
    pub reason: &'static str,
}

impl Arranged {
    /// Why `object` cannot be used where only `good` of its views can, if it cannot.
    pub fn why_unusable(&self, object: usize, good: &[usize]) -> Option<String> {
        let side = |split: Split, what: &str| {
            let views = self.index.views_of(split, object);
            let lost = !views.is_empty() && !good.iter().any(|view| views.contains(view));
            lost.then(|| match views.len() {
                1 => format!("its only {what}image cannot be used"),
                all => format!("none of its {all} {what}images can be used"),
            })
        };
        match self.split {
            SplitBy::Objects => side(Split::Train, ""),
            SplitBy::Views if good.is_empty() => {
                Some(format!("none of its {} images can be used", self.rows[object].len()))
            }
            SplitBy::Views => side(Split::Train, "training ").or_else(|| side(Split::Val, "held-out ")),
        }
    }

    /// What is left where only `good` of the views of every object can be used. The others keep their sides and their order.
    /// Also the objects that are gone, with the reasons.
    pub fn with_only(&self, good: &[Vec<usize>]) -> (Self, Vec<(usize, String)>) {
        let why = |object: usize| self.why_unusable(object, &good[object]).map(|reason| (object, reason));
        let gone: Vec<(usize, String)> = (0..self.objects.len()).filter_map(why).collect();
        let is_left = |object: &usize| gone.binary_search_by_key(object, |(gone, _)| *gone).is_err();
        let left: Vec<usize> = (0..self.objects.len()).filter(is_left).collect();
        let held_out = |object: usize| {
            let views = self.index.views(object) - self.index.held_out_of(object)..self.index.views(object);
            good[object].iter().filter(|view| views.contains(view)).count()
        };
        let rows = |&object: &usize| good[object].iter().map(|&view| self.rows[object][view]).collect();
        let kept = Self {
            objects: left.iter().map(|&object| self.objects[object].clone()).collect(),
            rows: left.iter().map(rows).collect(),
            index: ViewIndex::new(left.iter().map(|&object| (good[object].len(), held_out(object)))),
            ..*self
        };
        (kept, gone)
    }
}

/// Groups `rows` by object. `asked` is the split that is wanted, where it is not the table that says it.
pub fn arrange(rows: &Rows, asked: Option<SplitBy>, seed: u64) -> Result<Arranged> {
    let is_plain = |row: &Row| {
        let named = parse_folder_entry(&format!("/{}/{}/", row.class, row.object));
        named.is_some_and(|(class, object)| class == row.class && object == row.object)
    };
    if let Some(row) = rows.rows.iter().find(|row| !is_plain(row)) {
        return Err(rows.wrong(
            row,
            format!(
                "\"{}/{}\" cannot be the name of an object: a class and an object are names without slashes and \
                 backslashes, not `.` or `..`",
                row.class, row.object
            ),
        ));
    }
    let mut groups: BTreeMap<(String, String), Vec<usize>> = BTreeMap::new();
    for (number, row) in rows.rows.iter().enumerate() {
        groups.entry((row.class.clone(), row.object.clone())).or_default().push(number);
    }
    for members in groups.values_mut() {
        refuse_duplicates(rows, members)?;
        members.sort_by_key(|&number| (rows.rows[number].view, number));
    }
    let ids: Vec<(String, String)> = groups.keys().cloned().collect();
    let given = rows.rows.iter().filter(|row| row.split.is_some()).count();
    if given == rows.rows.len() && asked.is_none() {
        return as_given(rows, groups, seed);
    }
    let (split, reason) = match asked {
        Some(split) => (split, "as asked for"),
        None if rows.prefers_views && groups.values().all(|members| members.len() >= FEWEST_VIEWS) => {
            (SplitBy::Views, "each model has a frame of its own")
        }
        None => (SplitBy::Objects, "by default"),
    };
    if split == SplitBy::Views {
        let few: Vec<_> = groups.iter().filter(|(_, members)| members.len() < FEWEST_VIEWS).collect();
        if let Some(((class, object), members)) = few.first() {
            return Err(Error::content(
                &rows.source,
                format!(
                    "a split by views needs {FEWEST_VIEWS} views of every object, but {} of {} have fewer \
                     ({class}/{object} has {}); use --split objects",
                    few.len(),
                    groups.len(),
                    members.len()
                ),
            ));
        }
    }
    let objects = assign_by(split, seed, &ids);
    let members = objects.iter().map(|object| groups[&key(object)].clone()).collect::<Vec<_>>();
    let held_out = |views: usize| if split == SplitBy::Views { held_out_views(views) } else { 0 };
    let index = ViewIndex::new(members.iter().map(|views| (views.len(), held_out(views.len()))));
    Ok(Arranged { objects, rows: members, index, split, reason })
}

fn key(object: &Object) -> (String, String) {
    (object.synset.clone(), object.name.clone())
}

/// The split that the rows say: of objects where each is on one side, else of views.
fn as_given(rows: &Rows, groups: BTreeMap<(String, String), Vec<usize>>, seed: u64) -> Result<Arranged> {
    let side = |number: usize| rows.rows[number].split.unwrap_or(Split::Train);
    let on =
        |members: &[usize], split: Split| members.iter().filter(|&&number| side(number) == split).count();
    let is_divided = |members: &Vec<usize>| Split::ALL.iter().all(|&split| on(members, split) > 0);
    let by_views = groups.values().any(is_divided);
    if by_views && let Some((id, members)) = groups.iter().find(|(_, members)| !is_divided(members)) {
        let divided = groups.iter().find(|(_, members)| is_divided(members)).map(|(id, _)| id.clone());
        let (class, object) = divided.unwrap_or_default();
        return Err(rows.wrong(
            &rows.rows[members[0]],
            format!(
                "split divides the views of {class}/{object}, but all of {}/{} are {}: give every object views on both \
                 sides, or every object one side, or give --split",
                id.0,
                id.1,
                side(members[0])
            ),
        ));
    }
    let side_of = |members: &[usize]| if by_views { Split::Train } else { side(members[0]) };
    let objects = given_sides(seed, groups.iter().map(|(id, members)| (id.clone(), side_of(members))));
    let mut ordered = Vec::with_capacity(objects.len());
    for object in &objects {
        let mut members = groups[&key(object)].clone();
        if by_views {
            members.sort_by_key(|&number| side(number));
        }
        ordered.push(members);
    }
    let held_out = |members: &Vec<usize>| if by_views { on(members, Split::Val) } else { 0 };
    let index = ViewIndex::new(ordered.iter().map(|members| (members.len(), held_out(members))));
    let split = if by_views { SplitBy::Views } else { SplitBy::Objects };
    Ok(Arranged { objects, rows: ordered, index, split, reason: "as split says" })
}

/// An object has every view once.
fn refuse_duplicates(rows: &Rows, members: &[usize]) -> Result<()> {
    let mut views: HashMap<u64, usize> = HashMap::new();
    let mut files: HashSet<(&str, Option<[u64; 4]>)> = HashSet::new();
    for &number in members {
        let row: &Row = &rows.rows[number];
        if let Some(first) = row.view.and_then(|view| views.insert(view, number)) {
            let (view, place) = (row.view.unwrap_or_default(), &rows.rows[first].place);
            let message = format!("{}/{} has view {view} already, in {place}", row.class, row.object);
            return Err(rows.wrong(row, message));
        }
        let region = row.region.map(|region| region.0.map(f64::to_bits));
        if row.view.is_none() && !files.insert((&row.file, region)) {
            return Err(rows.wrong(row, format!("{}/{} has {} already", row.class, row.object, row.file)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(list: &[(&str, Option<u64>, Option<Split>)]) -> Rows {
        let row = |(number, (object, view, split)): (usize, &(&str, Option<u64>, Option<Split>))| Row {
            place: format!("line {}", number + 2),
            file: format!("{number}.jpg"),
            class: "cup".to_owned(),
            object: (*object).to_owned(),
            view: *view,
            split: *split,
            pose: None,
            light: None,
            region: None,
        };
        Rows {
            source: "t.csv".into(),
            folder: "".into(),
            rows: list.iter().enumerate().map(row).collect(),
            convention: String::new(),
            notes: Vec::new(),
            prefers_views: false,
        }
    }

    #[test]
    fn views_are_in_the_order_of_their_numbers_or_of_the_table() {
        let numbered = rows(&[("a", Some(7), None), ("b", Some(0), None), ("a", Some(3), None)]);
        let found = arrange(&numbered, Some(SplitBy::Objects), 0).unwrap();
        let of = |name: &str| found.objects.iter().position(|object| object.name == name).unwrap();
        assert_eq!((found.rows[of("a")].as_slice(), found.rows[of("b")].as_slice()), (&[2, 0][..], &[1][..]));
        assert_eq!((found.index.views(of("a")), found.index.views(of("b"))), (2, 1));
        let plain = rows(&[("a", None, None), ("b", None, None), ("a", None, None)]);
        let found = arrange(&plain, None, 0).unwrap();
        assert_eq!(found.rows[of("a")], [0, 2]);
    }

    #[test]
    fn a_column_splits_objects_or_views() {
        let (train, val) = (Some(Split::Train), Some(Split::Val));
        let by_objects = rows(&[("a", None, val), ("b", None, train), ("a", None, val), ("c", None, train)]);
        let found = arrange(&by_objects, None, 0).unwrap();
        assert_eq!(found.split, SplitBy::Objects);
        assert_eq!(found.objects[2].name, "a");
        assert_eq!(
            found.objects.iter().map(|o| o.split).collect::<Vec<_>>(),
            [Split::Train, Split::Train, Split::Val]
        );
        let by_views = rows(&[
            ("a", None, val),
            ("a", None, train),
            ("b", None, train),
            ("b", None, val),
            ("b", None, train),
        ]);
        let found = arrange(&by_views, None, 0).unwrap();
        assert_eq!(found.split, SplitBy::Views);
        let a = found.objects.iter().position(|object| object.name == "a").unwrap();
        assert_eq!((found.rows[a].as_slice(), found.rows[1 - a].as_slice()), (&[1, 0][..], &[2, 4, 3][..]));
        assert_eq!(
            (found.index.views_of(Split::Val, a), found.index.views_of(Split::Val, 1 - a)),
            (1..2, 2..3)
        );
        let uneven = rows(&[("a", None, val), ("a", None, train), ("b", None, train)]);
        let message = arrange(&uneven, None, 0).unwrap_err().to_string();
        assert!(
            message
                .starts_with("t.csv: line 4: split divides the views of cup/a, but all of cup/b are train"),
            "{message}"
        );
        assert!(arrange(&uneven, Some(SplitBy::Objects), 0).is_ok());
    }

    #[test]
    fn what_cannot_be_used_is_taken_out_and_the_rest_stays_in_its_place() {
        let names = ["a", "b", "c", "d", "e"];
        let list: Vec<_> = names.iter().flat_map(|name| [(*name, None, None); 5]).collect();
        let all = |split| arrange(&rows(&list), Some(split), 0).unwrap();
        let good = vec![vec![0, 1, 2, 3, 4], vec![1, 4], Vec::new(), vec![0, 1, 2], vec![3, 4]];
        let by_objects = all(SplitBy::Objects);
        let (kept, gone) = by_objects.with_only(&good);
        assert_eq!(gone, [(2, "none of its 5 images can be used".to_owned())]);
        let expected: Vec<_> = [0, 1, 3, 4].map(|object| by_objects.objects[object].clone()).into();
        assert_eq!(
            (kept.objects, &kept.rows[1]),
            (expected, &vec![by_objects.rows[1][1], by_objects.rows[1][4]])
        );
        assert_eq!([0, 1, 2, 3].map(|object| kept.index.views(object)), [5, 2, 3, 2]);
        let by_views = all(SplitBy::Views);
        let (kept, gone) = by_views.with_only(&good);
        let reasons: Vec<&str> = gone.iter().map(|(_, reason)| reason.as_str()).collect();
        assert_eq!(
            reasons,
            [
                "none of its 5 images can be used",
                "none of its 2 held-out images can be used",
                "none of its 3 training images can be used"
            ]
        );
        let sides = Split::ALL.map(|side| [0, 1].map(|object| kept.index.views_of(side, object)));
        assert_eq!(sides, [[0..3, 0..1], [3..5, 1..2]]);
        let whole = by_views.with_only(&vec![vec![0, 1, 2, 3, 4]; 5]);
        assert_eq!(whole, (by_views, Vec::new()));
    }

    #[test]
    fn duplicates_and_too_few_views_are_refused() {
        let twice = rows(&[("a", Some(1), None), ("b", Some(1), None), ("a", Some(1), None)]);
        let message = arrange(&twice, None, 0).unwrap_err().to_string();
        assert_eq!(message, "t.csv: line 4: cup/a has view 1 already, in line 2");
        let mut same = rows(&[("a", None, None), ("a", None, None)]);
        same.rows[1].file = "0.jpg".to_owned();
        let message = arrange(&same, None, 0).unwrap_err().to_string();
        assert_eq!(message, "t.csv: line 3: cup/a has 0.jpg already");
        let few = rows(&[("a", None, None), ("a", None, None), ("a", None, None)]);
        let message = arrange(&few, Some(SplitBy::Views), 0).unwrap_err().to_string();
        assert!(message.contains("1 of 1 have fewer (cup/a has 3)"), "{message}");
    }
}
