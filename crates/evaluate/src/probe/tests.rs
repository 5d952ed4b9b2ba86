//! Which samples heads see, and what heads there are.

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
        index: dataset::ViewIndex::equal(8, VIEWS, 0),
        has_poses: true,
        has_hues: true,
        poses,
        hues: (0..8 * VIEWS).map(|row| [row as f64, 0.5 * (row * row) as f64]).collect(),
        labels: vec![0, 1, 2, 0, 1, 2, 0, 1],
        classes: 3,
        space: pose::Space::Object,
        has: pose::PerPart([true, true, false, false, false]),
        train_objects: 5,
    }
}

fn objects_of(samples: &Samples, views: usize) -> Vec<usize> {
    samples.rows.iter().step_by(views).map(|&row| row as usize / VIEWS).collect()
}

#[test]
fn a_sample_is_two_views_of_one_object_and_the_change_from_the_first_to_the_second() {
    let (truth, protocol) = (truth(), Protocol::new(Preset::Paper, 5, 5000, 5000));
    let tasks = [Task::Rotation, Task::TranslationBase];
    let group = Group { tasks: &tasks, truth: &truth, protocol: &protocol };
    let samples = group.training_samples(2);
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
    assert_ne!(samples, group.training_samples(3));
    assert_eq!(samples, group.training_samples(2));
}

#[test]
fn passes_see_all_held_out_objects_with_views_of_their_own() {
    let (truth, protocol) = (truth(), Protocol::new(Preset::Paper, 5, 5000, 5000));
    for (task, views) in [(Task::Classification, 1), (Task::Colour, 2)] {
        let group = Group { tasks: &[task], truth: &truth, protocol: &protocol };
        // Writes down what it is asked, and answers with the targets, or with the labels as logits.
        let mut asked = Vec::new();
        let mut witness = |samples: &Samples| {
            asked.push(samples.clone());
            let one_hot = |&label: &i32| (0..3).map(move |class| f32::from(class == label));
            let logits = samples.labels.iter().flat_map(one_hot).collect();
            Ok(if task == Task::Classification { logits } else { samples.targets.clone() })
        };
        let passes = group.passes(&mut witness).unwrap();
        assert_eq!((passes.len(), asked.len()), (5, 5));
        assert!(
            passes.iter().all(|pass| pass.values[0].unwrap().0 == 1.0),
            "{task}: the right answers score 1"
        );
        for (index, samples) in asked.iter().enumerate() {
            assert_eq!(objects_of(samples, views), [5, 6, 7], "{task}");
            let labels: &[i32] = if task == Task::Classification { &[2, 0, 1] } else { &[] };
            assert_eq!(samples.labels, labels);
            assert!(asked[..index].iter().all(|other| other.rows != samples.rows), "{task}");
        }
    }
}

#[test]
fn heads_have_an_output_for_every_number_of_their_targets() {
    let (truth, protocol) = (truth(), Protocol::new(Preset::Paper, 5, 5000, 5000));
    assert_eq!(
        groups(&Task::PUBLISHED),
        [
            vec![Task::Classification],
            vec![Task::Rotation, Task::TranslationObject, Task::TranslationBase],
            vec![Task::Colour]
        ]
    );
    for tasks in groups(&Task::PUBLISHED) {
        let heads = Group { tasks: &tasks, truth: &truth, protocol: &protocol }.heads();
        if tasks == [Task::Classification] {
            assert_eq!((heads.outputs, heads.is_classification), (vec![3], true));
            continue;
        }
        let wanted: Vec<usize> = tasks.iter().map(|&task| truth.target(task, 0, 0, 1).len()).collect();
        assert_eq!((heads.outputs, heads.is_classification), (wanted, false));
    }
}

#[test]
fn what_does_not_change_but_for_rounding_has_no_spread() {
    let protocol = Protocol::new(Preset::Paper, 5, 5000, 5000);
    let mut truth = truth();
    let spread = |truth: &GroundTruth, task| has_spread(task, truth, &protocol);
    for task in
        [Task::Classification, Task::Rotation, Task::TranslationObject, Task::TranslationBase, Task::Colour]
    {
        assert!(spread(&truth, task), "{task}");
    }
    // The object stands at one place before the camera, however it is turned: known in its own frame, with rounding.
    for pose in &mut truth.poses {
        let rotation = pose::Rotation::from(pose.rotation);
        let exact = rotation.transpose().apply([0.0, 0.0, 0.7]);
        pose.translation = exact.map(|value| f64::from(value as f32));
    }
    truth.hues.fill([0.25, 0.75]);
    assert!(spread(&truth, Task::TranslationObject));
    assert!(!spread(&truth, Task::TranslationBase) && !spread(&truth, Task::Colour));
    let values = |task| truth.target(task, 6, 0, 1);
    assert_eq!(values(Task::TranslationBase), [0.0; 3]);
}
