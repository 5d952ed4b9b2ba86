//! Folders that are sides of a split: `train/` and `val/` (or `test/`, under any of their usual names) instead of classes.

use std::collections::BTreeSet;

use crate::import::split_named;
use crate::object::Split;

/// What the folders in which images lie say of the split. Those without images do not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SideFolders {
    /// Whether all of them are sides, and both sides are there.
    pub are_sides: bool,
    /// Where both sides are there, but other folders of images as well, so that all of them are classes: one of these.
    pub beside: Option<String>,
}

impl SideFolders {
    /// Of the `names` of the folders.
    pub fn of<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let names: BTreeSet<&str> = names.collect();
        let has = |side: Split| names.iter().any(|name| split_named(name) == Some(side));
        let has_both = has(Split::Train) && has(Split::Val);
        let beside = names.iter().find(|name| split_named(name).is_none());
        Self {
            are_sides: has_both && beside.is_none(),
            beside: beside.filter(|_| has_both).map(|name| (*name).to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_and_nothing_else_are_sides() {
        let of = |names: &[&str]| SideFolders::of(names.iter().copied());
        for names in [&["train", "val"][..], &["Training", "test"], &["train", "val", "test", "val"]] {
            assert_eq!(of(names), SideFolders { are_sides: true, beside: None }, "{names:?}");
        }
        for names in [&["train"][..], &["cups", "pans"], &["train", "cups"], &[]] {
            assert_eq!(of(names), SideFolders { are_sides: false, beside: None }, "{names:?}");
        }
        let extra = SideFolders { are_sides: false, beside: Some("extra".to_owned()) };
        assert_eq!(of(&["train", "extra", "val"]), extra);
    }
}
