//! What is known about every view: its pose, its hues, its object's class. Tables in the order of the features:
//! row = views * object + view, training objects first.

use std::ops::Range;

use dataset::{Split, Views};
use pose::{FrameKind, ViewPose};

use crate::protocol::Task;

/// Known facts about all views of a dataset.
#[derive(Clone, Debug)]
pub struct GroundTruth {
    /// Views of every object.
    pub views: usize,
    /// Pose of every view, angles in the published precision.
    pub poses: Vec<ViewPose>,
    /// Floor and spot hue of every view.
    pub hues: Vec<[f64; 2]>,
    /// Class of every object.
    pub labels: Vec<u32>,
    /// Number of classes.
    pub classes: usize,
    /// Whether views differ in translation (3DIEBench-T).
    pub has_translation: bool,
    /// Number of training objects; the rest are held out.
    pub train_objects: usize,
}

impl GroundTruth {
    /// Reads all latents of `views`.
    pub fn read(views: &dyn Views) -> Self {
        let (objects, count) = (views.objects().len(), views.views());
        let all = (0..objects).flat_map(|object| (0..count).map(move |view| (object, view)));
        let (poses, hues) = all
            .map(|(object, view)| {
                let latents = views.latents(object, view);
                let translation = latents.translation.unwrap_or_default();
                let pose = ViewPose::published_precision(latents.rotation, translation);
                (pose, [latents.floor_hue, latents.spot_hue])
            })
            .unzip();
        let labels: Vec<u32> = views.objects().iter().map(|object| object.label).collect();
        let classes = views.classes().len().max(labels.iter().max().map_or(0, |&last| last as usize + 1));
        Self {
            views: count,
            poses,
            hues,
            labels,
            classes,
            has_translation: views.has_translation(),
            train_objects: views.split(Split::Train).len(),
        }
    }

    /// Number of objects.
    pub fn objects(&self) -> usize {
        self.labels.len()
    }

    /// The objects of one side.
    pub fn split(&self, split: Split) -> Range<usize> {
        match split {
            Split::Train => 0..self.train_objects,
            Split::Val => self.train_objects..self.objects(),
        }
    }

    /// The poses of one object's views.
    pub fn poses_of(&self, object: usize) -> &[ViewPose] {
        &self.poses[object * self.views..(object + 1) * self.views]
    }

    /// The regression target of `task` for two views of an object; nothing for classification.
    pub fn target(&self, task: Task, object: usize, first: usize, second: usize) -> Vec<f32> {
        let rows = [first, second].map(|view| object * self.views + view);
        let [a, b] = rows.map(|row| &self.poses[row]);
        let narrow = |values: &[f64]| values.iter().map(|&value| value as f32).collect();
        match task {
            Task::Classification => Vec::new(),
            Task::Rotation => ViewPose::relative_quaternion(a, b).to_f32().to_vec(),
            Task::TranslationObject => narrow(&ViewPose::translation_difference(FrameKind::Object, a, b)),
            Task::TranslationBase => narrow(&ViewPose::translation_difference(FrameKind::Base, a, b)),
            Task::Colour => narrow(&pose::hue_difference(self.hues[rows[0]], self.hues[rows[1]])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::FRAC_PI_2;

    #[test]
    fn targets_are_those_of_their_task_and_frame() {
        // View 0 is unturned, view 1 a quarter turn about z: R maps (x, y, z) to (-y, x, z).
        let pose = |z, translation| ViewPose::published_precision([0.0, 0.0, z], translation);
        let truth = GroundTruth {
            views: 2,
            poses: vec![pose(0.0, [0.1, 0.2, 0.3]), pose(FRAC_PI_2, [0.4, -0.1, 0.2])],
            hues: vec![[0.9, 0.3], [0.2, 0.7]],
            labels: vec![0],
            classes: 1,
            has_translation: true,
            train_objects: 1,
        };
        let half = std::f32::consts::FRAC_1_SQRT_2;
        for (task, wanted) in [
            (Task::Classification, vec![]),
            (Task::Rotation, vec![0.0, 0.0, half, half]),
            (Task::TranslationObject, vec![0.3, -0.3, -0.1]),
            (Task::TranslationBase, vec![0.1 - 0.1, 0.4 - 0.2, 0.2 - 0.3]),
            (Task::Colour, vec![0.2 - 0.9, 0.7 - 0.3]),
        ] {
            let found = truth.target(task, 0, 0, 1);
            let same = |(found, wanted): (&f32, &f32)| (found - wanted).abs() < 1e-6;
            assert!(found.len() == wanted.len() && found.iter().zip(&wanted).all(same), "{task}: {found:?}");
        }
        let back = truth.target(Task::Rotation, 0, 1, 0);
        assert!((back[2] + half).abs() < 1e-6 && (back[3] - half).abs() < 1e-6, "{back:?}");
    }
}
