//! Which samples heads see: seen through heads that only write them down.

use super::*;
use crate::protocol::Preset;
use pose::ViewPose;
use random::{Random, Stream};

const VIEWS: usize = 6;

/// Five training objects and three held-out ones.
fn truth() -> GroundTruth {
    let mut random = Random::new(3, Stream::new("probe-tests"), 0);
    let mut three = |bound: f64| [0; 3].map(|_| random.range(-bound, bound));
    let poses = (0..8 * VIEWS).map(|_| ViewPose::published_precision(three(1.5), three(0.5))).collect();
    GroundTruth {
        views: VIEWS,
        poses,
        hues: (0..8 * VIEWS).map(|row| [row as f64, 0.5 * (row * row) as f64]).collect(),
        labels: vec![0, 1, 2, 0, 1, 2, 0, 1],
        classes: 3,
        has_translation: true,
        train_objects: 5,
    }
}

/// Writes down what it is asked, and answers with the targets, or with the labels as logits.
#[derive(Default)]
struct Witness {
    asked: Vec<Samples>,
    classes: usize,
}

impl Heads for Witness {
    fn begin_epoch(&mut self) -> Result<()> {
        Ok(())
    }
    fn train(&mut self, _: &Samples, _: usize) -> Result<()> {
        Ok(())
    }
    fn losses(&mut self) -> Result<Vec<f64>> {
        Ok(Vec::new())
    }
    fn predict(&mut self, samples: &Samples, _: usize) -> Result<Vec<f32>> {
        self.asked.push(samples.clone());
        let one_hot = |&label: &i32| (0..self.classes).map(move |class| f32::from(class as i32 == label));
        let logits: Vec<f32> = samples.labels.iter().flat_map(one_hot).collect();
        Ok(if self.classes > 0 { logits } else { samples.targets.clone() })
    }
}

fn objects_of(samples: &Samples, views: usize) -> Vec<usize> {
    samples.rows.iter().step_by(views).map(|&row| row as usize / VIEWS).collect()
}

#[test]
fn a_sample_is_two_views_of_one_object_and_the_change_from_the_first_to_the_second() {
    let (truth, protocol) = (truth(), Protocol::new(Preset::Paper, 5, 5));
    let tasks = [Task::Rotation, Task::TranslationBase];
    let group = Group { tasks: &tasks, truth: &truth, protocol: &protocol };
    let samples = group.training_samples(2, 0);
    assert_eq!((samples.count, samples.rows.len(), samples.targets.len()), (5, 10, 5 * 2 * 4));
    let mut objects = objects_of(&samples, 2);
    for (rows, targets) in samples.rows.chunks(2).zip(samples.targets.chunks(2 * 4)) {
        let [first, second] = [rows[0], rows[1]].map(|row| row as usize);
        assert!(first != second && first / VIEWS == second / VIEWS, "{rows:?}");
        let wanted = |task| truth.target(task, first / VIEWS, first % VIEWS, second % VIEWS);
        assert_eq!(targets[..4], wanted(Task::Rotation));
        assert_eq!(targets[4..7], wanted(Task::TranslationBase));
        assert_eq!(targets[7], 0.0);
    }
    assert_ne!(objects, [0, 1, 2, 3, 4], "an epoch is shuffled");
    objects.sort_unstable();
    assert_eq!(objects, [0, 1, 2, 3, 4], "every training object once, no held-out one");
    assert_ne!(samples, group.training_samples(3, 0));
    assert_eq!(samples, group.training_samples(2, 0));
}

#[test]
fn passes_see_all_held_out_objects_with_views_of_their_own() {
    let (truth, protocol) = (truth(), Protocol::new(Preset::Paper, 5, 5));
    for (task, views) in [(Task::Classification, 1), (Task::Colour, 2)] {
        let group = Group { tasks: &[task], truth: &truth, protocol: &protocol };
        let classes = if task == Task::Classification { 3 } else { 0 };
        let mut witness = Witness { classes, ..Witness::default() };
        let passes = group.passes(&mut witness).unwrap();
        assert_eq!((passes.len(), witness.asked.len()), (5, 5));
        assert!(passes.iter().all(|pass| pass[0].0 == 1.0), "{task}: the right answers score 1");
        for (index, samples) in witness.asked.iter().enumerate() {
            assert_eq!(objects_of(samples, views), [5, 6, 7], "{task}");
            let labels: &[i32] = if task == Task::Classification { &[2, 0, 1] } else { &[] };
            assert_eq!(samples.labels, labels);
            assert!(witness.asked[..index].iter().all(|other| other.rows != samples.rows), "{task}");
        }
    }
}
