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
