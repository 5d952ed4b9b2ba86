//! What a checkpoint says about the data that it was trained on, and whether an evaluation would test on them.

use dataset::{SplitBy, Views, plan};

use crate::checkpoint::Checkpoint;
use crate::trainer::views_digest;

/// The data of a run, as far as numbers tell them apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrainedOn {
    /// What was held out.
    pub split: SplitBy,
    /// A hash of the objects and the sides that they are on.
    objects: String,
    /// A hash of their views; empty in checkpoints of earlier versions.
    views: String,
}

/// Whether what is held out in an evaluation was trained on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// It was not.
    No,
    /// It was: why, and what to do, as the end of a sentence about a run.
    Yes(String),
    /// Nobody knows: why, as the end of a sentence about a run.
    Unknown(String),
}

impl TrainedOn {
    /// What `checkpoint` was trained on; nothing is known of weights that were imported.
    pub fn of_checkpoint(checkpoint: &Checkpoint) -> Option<Self> {
        let text = |key: &str| checkpoint.metadata.get(key).cloned();
        let views = text("views_digest").unwrap_or_default();
        Some(Self { split: checkpoint.split(), objects: text("objects_digest")?, views })
    }

    /// What a run on `views` would be trained on.
    pub fn of_views(views: &dyn Views) -> Self {
        Self { split: views.split_by(), objects: plan::digest(views.objects()), views: views_digest(views) }
    }

    /// A number for all of it: 16 hexadecimal digits.
    pub fn key(&self) -> String {
        let text = format!("{} {} {}", self.split, self.objects, self.views);
        format!("{:016x}", random::fnv1a(text.as_bytes()))
    }

    /// Whether a run that was trained on this has seen what `split` holds out of `data`, which are the data of an
    /// evaluation as this run would have split them, if that is possible.
    pub fn has_seen(&self, split: SplitBy, data: Option<&Self>) -> Seen {
        let has_objects = data.is_some_and(|data| data.objects == self.objects);
        let has_views = has_objects && data.is_some_and(|data| data.views == self.views);
        match (self.split, split) {
            (SplitBy::Objects, SplitBy::Objects) if has_objects => Seen::No,
            (SplitBy::Views, SplitBy::Views) if has_views => Seen::No,
            (SplitBy::Views, SplitBy::Objects) if has_objects => Seen::Yes(
                "was trained with the split by views, on all of these objects; an evaluation on objects never seen is not \
                 possible (use --split views)"
                    .to_owned(),
            ),
            (SplitBy::Objects, SplitBy::Views) if has_views => Seen::Yes(
                "was trained with the split by objects, on all views of its training objects; an evaluation on new views \
                 of them is not possible (use --split objects)"
                    .to_owned(),
            ),
            (then, now) => {
                let held_out = match now {
                    SplitBy::Objects => "objects",
                    SplitBy::Views => "views",
                };
                Seen::Unknown(format!(
                    "was trained on other data, with the split by {then}; whether it has seen the {held_out} that are held \
                     out here is not known"
                ))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_trained_on_is_told_from_what_is_not_known() {
        let data = |split, objects: &str, views: &str| TrainedOn {
            split,
            objects: objects.to_owned(),
            views: views.to_owned(),
        };
        let (by_objects, by_views) = (SplitBy::Objects, SplitBy::Views);
        for (run, split, other, expected) in [
            (by_objects, by_objects, Some(("o", "v")), "no"),
            // Other views of objects that were held out.
            (by_objects, by_objects, Some(("o", "w")), "no"),
            (by_objects, by_objects, Some(("p", "v")), "unknown"),
            (by_views, by_views, Some(("o", "v")), "no"),
            (by_views, by_views, Some(("o", "w")), "unknown"),
            (by_views, by_objects, Some(("o", "w")), "yes"),
            (by_views, by_objects, Some(("p", "v")), "unknown"),
            (by_objects, by_views, Some(("o", "v")), "yes"),
            (by_objects, by_views, Some(("o", "w")), "unknown"),
            (by_objects, by_views, None, "unknown"),
        ] {
            let other = other.map(|(objects, views)| data(run, objects, views));
            let found = match data(run, "o", "v").has_seen(split, other.as_ref()) {
                Seen::No => "no",
                Seen::Yes(_) => "yes",
                Seen::Unknown(_) => "unknown",
            };
            assert_eq!(found, expected, "{run} {split} {other:?}");
        }
    }
}
