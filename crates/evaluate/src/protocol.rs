//! The protocol of an evaluation: tasks, presets, and every number that decides a result.

use methods::names;
use pose::{FrameKind, Part, Space};
use serde::{Deserialize, Serialize};

/// A probe on frozen features.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// The object's class from one view.
    Classification,
    /// `q12` from a pair of views.
    Rotation,
    /// `t2 - t1` from a pair of views.
    TranslationObject,
    /// `R2 t2 - R1 t1` from a pair of views.
    TranslationBase,
    /// Differences of floor and spot hue from a pair of views.
    Colour,
    /// Differences of the logarithms of scales from a pair of views.
    Scale,
    /// Differences of shears from a pair of views.
    Shear,
    /// Differences of perspective from a pair of warped images.
    Perspective,
}

impl Task {
    /// Those of the paper, in the order of its tables.
    pub const PUBLISHED: [Self; 5] =
        [Self::Classification, Self::Rotation, Self::TranslationObject, Self::TranslationBase, Self::Colour];

    /// All of them: in the order of the paper's tables, then those that it does not have.
    pub const ALL: [Self; 8] = [
        Self::Classification,
        Self::Rotation,
        Self::TranslationObject,
        Self::TranslationBase,
        Self::Colour,
        Self::Scale,
        Self::Shear,
        Self::Perspective,
    ];

    /// The name in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Classification => "classification",
            Self::Rotation => "rotation",
            Self::TranslationObject => "translation-object",
            Self::TranslationBase => "translation-base",
            Self::Colour => "colour",
            Self::Scale => "scale",
            Self::Shear => "shear",
            Self::Perspective => "perspective",
        }
    }

    /// Numbers to predict of views of this space; 0 for classification, which has one for each class.
    pub fn outputs(self, space: Space) -> usize {
        match self.part() {
            Some((part, _)) => part.width(space),
            None if self == Self::Colour => 2,
            None => 0,
        }
    }

    /// The part of a pose that it asks for, and in which frame.
    pub fn part(self) -> Option<(Part, FrameKind)> {
        let part = match self {
            Self::Classification | Self::Colour => return None,
            Self::Rotation => Part::Rotation,
            Self::TranslationObject | Self::TranslationBase => Part::Translation,
            Self::Scale => Part::Scale,
            Self::Shear => Part::Shear,
            Self::Perspective => Part::Perspective,
        };
        let frame = if self == Self::TranslationBase { FrameKind::Base } else { FrameKind::Object };
        Some((part, frame))
    }

    /// The task that asks for a part of a pose, where `frame` is that of translations.
    pub fn of_part(part: Part, frame: FrameKind) -> Self {
        match (part, frame) {
            (Part::Rotation, _) => Self::Rotation,
            (Part::Translation, FrameKind::Object) => Self::TranslationObject,
            (Part::Translation, FrameKind::Base) => Self::TranslationBase,
            (Part::Scale, _) => Self::Scale,
            (Part::Shear, _) => Self::Shear,
            (Part::Perspective, _) => Self::Perspective,
        }
    }

    /// Whether the head is a single linear layer (else three layers with ReLU between).
    pub(crate) fn has_linear_head(self) -> bool {
        matches!(self, Self::Classification | Self::Colour)
    }
}

impl std::fmt::Display for Task {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name())
    }
}

names! {
    /// A named protocol.
    Preset, "preset" {
        /// The published one.
        Paper = "paper",
        /// For a first look and for small sets: narrower hidden layers, smaller batches, fewer epochs of more samples, fewer
        /// queries.
        Quick = "quick",
    }
}

/// Every number that decides a result.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Protocol {
    /// Where the numbers come from.
    pub preset: Preset,
    /// Seed of heads, orders, pairs and query subsets.
    pub seed: u64,
    /// Epochs of all probes but colour.
    pub epochs: u32,
    /// Epochs of the colour probe.
    pub colour_epochs: u32,
    /// Random samples that each object contributes to an epoch.
    pub samples_per_object: u32,
    /// Random samples that each held-out object contributes to a validation pass.
    #[serde(default = "one")]
    pub held_out_samples: u32,
    /// Samples in a batch; the last partial batch is kept.
    pub batch: usize,
    /// Width of the two hidden layers of three-layer heads.
    pub hidden: usize,
    /// Adam's learning rate; betas 0.9 and 0.999, epsilon 1e-8, no decay.
    pub learning_rate: f64,
    /// Validation passes after the last epoch, each with fresh views; the result is their mean.
    pub passes: u32,
    /// Objects whose views are queries of retrieval, drawn at random where there are more; nothing: all.
    #[serde(default, deserialize_with = "where_limited")]
    pub query_objects: Option<usize>,
    /// Whether a supervised network was probed as the others are, instead of asked by its own head.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub frozen: bool,
}

/// What the published protocol has, and results from before there was another number.
fn one() -> u32 {
    1
}

/// Results from before had the largest of all numbers, which many readers of JSON cannot hold, for "all".
fn where_limited<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<usize>, D::Error> {
    Ok(Option::<u64>::deserialize(from)?.filter(|&limit| limit != u64::MAX).map(|limit| limit as usize))
}

/// An epoch of a probe, and a validation pass, have at least about so many samples: a head that saw each of forty
/// objects once an epoch would end untrained, and R2 over forty pairs is mostly noise. Published sets are larger.
const FEWEST_SAMPLES: usize = 1024;

/// Samples of each of `objects` objects.
fn samples(objects: usize) -> u32 {
    FEWEST_SAMPLES.div_ceil(objects.max(1)) as u32
}

impl Protocol {
    /// The numbers of a preset for so many training and held-out objects. Only sets of fewer than 1,024 differ.
    pub fn new(preset: Preset, seed: u64, train_objects: usize, held_out_objects: usize) -> Self {
        let paper = Self {
            preset,
            seed,
            epochs: 300,
            colour_epochs: 50,
            samples_per_object: samples(train_objects),
            held_out_samples: samples(held_out_objects),
            batch: 256,
            hidden: 1024,
            learning_rate: 1e-3,
            passes: 5,
            query_objects: None,
            frozen: false,
        };
        match preset {
            Preset::Paper => paper,
            Preset::Quick => Self {
                epochs: 40,
                colour_epochs: 40,
                samples_per_object: (2000 / train_objects.max(1)).clamp(1, 16) as u32,
                batch: 64,
                hidden: 256,
                query_objects: Some(100),
                ..paper
            },
        }
    }

    /// Epochs of a task's probe.
    pub fn epochs_of(&self, task: Task) -> u32 {
        if task == Task::Colour { self.colour_epochs } else { self.epochs }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paper_preset_is_what_the_documentation_says() {
        let documentation = include_str!("../../../docs/evaluation.md").replace('\n', " ");
        let paper = Protocol::new(Preset::Paper, 7, 41_920, 10_480);
        let Protocol { learning_rate, batch, hidden, epochs, colour_epochs, passes, .. } = paper;
        let says = |text: &str| assert!(documentation.contains(text), "docs/evaluation.md: {text}");
        says(&format!(
            "Adam at {learning_rate:e} without decay, batch {batch}, hidden layers of {hidden}, {epochs} epochs \
             (colour: {colour_epochs}); every epoch each object gives one random view"
        ));
        let quick = Protocol::new(Preset::Quick, 7, 41_920, 10_480);
        says(&format!("means over {passes} validation passes"));
        let small = Protocol::new(Preset::Quick, 7, 37, 3);
        assert_eq!((quick.passes, small.passes, small.held_out_samples), (passes, passes, 342));
        says("The full set is queried with `--preset paper`, 100 random objects of each side with `quick`.");
        assert_eq!((paper.query_objects, quick.query_objects), (None, Some(100)));
        assert_eq!((paper.samples_per_object, paper.epochs_of(Task::Colour)), (1, colour_epochs));
        says("sets of fewer than 1,024 objects");
        let few = Protocol::new(Preset::Paper, 7, 37, 600);
        assert_eq!((paper.held_out_samples, few.samples_per_object, few.held_out_samples), (1, 28, 2));
        for task in Task::ALL {
            assert_eq!(paper.epochs_of(task) == epochs, task != Task::Colour);
            let lines = include_str!("../../../docs/evaluation.md").lines();
            let row = lines.filter(|line| line.starts_with('|')).find(|line| {
                line.split('|')
                    .nth(1)
                    .is_some_and(|cell| cell.split(',').any(|name| name.trim() == task.name()))
            });
            let head = row.and_then(|row| row.split('|').nth(3)).map(str::trim);
            assert_eq!(
                head,
                Some(if task.has_linear_head() { "linear" } else { "three layers, ReLU" }),
                "{task}"
            );
        }
    }

    #[test]
    fn small_sets_give_more_samples_an_epoch_in_the_quick_preset() {
        let samples = |objects| Protocol::new(Preset::Quick, 0, objects, 1).samples_per_object;
        assert_eq!([0, 10, 200, 1999, 41_920].map(samples), [16, 16, 10, 1, 1]);
    }

    #[test]
    fn all_queries_are_written_as_nothing_and_the_largest_number_of_older_results_is_read_as_that() {
        let paper = Protocol::new(Preset::Paper, 7, 41_920, 10_480);
        let written = serde_json::to_value(paper).unwrap();
        assert_eq!(written["query_objects"], serde_json::Value::Null);
        for (value, wanted) in [(serde_json::json!(u64::MAX), None), (serde_json::json!(100), Some(100))] {
            let mut older = written.clone();
            older["query_objects"] = value;
            let read: Protocol = serde_json::from_value(older).unwrap();
            assert_eq!(read, Protocol { query_objects: wanted, ..paper });
        }
    }
}
