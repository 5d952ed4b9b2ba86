//! What is known about every view: its pose, its hues, its object's class. Tables in the order of the features: all views
//! of the training side, then all that are held out; on each side object by object, view by view. With a split by objects,
//! whose training objects come first, that is one such table.

use std::ops::Range;

use dataset::{Split, SplitBy, ViewIndex, Views};
use pose::{FrameKind, Part, PerPart, Space, ViewPose};
use rayon::prelude::*;

use crate::features::Table;
use crate::protocol::Task;

/// Known facts about all views of a dataset.
#[derive(Clone, Debug)]
pub struct GroundTruth {
    /// Views of every object, and which of them are held out.
    pub index: ViewIndex,
    /// Pose of every view, angles in the published precision.
    pub poses: Vec<ViewPose>,
    /// Whether all of them are known.
    pub has_poses: bool,
    /// Floor and spot hue of every view.
    pub hues: Vec<[f64; 2]>,
    /// Class of every object.
    pub labels: Vec<u32>,
    /// Whether they are known.
    pub has_hues: bool,
    /// Number of classes.
    pub classes: usize,
    /// What the views are of.
    pub space: Space,
    /// Whether views differ in each part of their poses (3DIEBench-T: rotation and translation).
    pub has: PerPart<bool>,
    /// Number of training objects; the rest are held out. All of them with a split by views.
    pub train_objects: usize,
}

impl GroundTruth {
    /// Reads all latents of `views`.
    pub fn read(views: &dyn Views) -> Self {
        let labels: Vec<u32> = views.objects().iter().map(|object| object.label).collect();
        let classes = views.classes().len().max(labels.iter().max().map_or(0, |&last| last as usize + 1));
        let empty = Self {
            index: ViewIndex::new(
                (0..views.objects().len()).map(|object| (views.views_in(object), views.held_out_in(object))),
            ),
            poses: Vec::new(),
            has_poses: views.without_pose().is_none(),
            hues: Vec::new(),
            has_hues: views.has_light(),
            labels,
            classes,
            space: views.space(),
            has: PerPart(Part::ALL.map(|part| views.has(part))),
            train_objects: views.split(Split::Train).len(),
        };
        let (poses, hues) = Split::ALL
            .into_iter()
            .flat_map(|split| empty.items_of(split))
            .map(|(object, view)| {
                let latents = views.latents(object, view);
                (views.pose(object, view), [latents.floor_hue, latents.spot_hue])
            })
            .unzip();
        Self { poses, hues, ..empty }
    }

    /// What the split holds out.
    pub fn split_by(&self) -> SplitBy {
        if self.index.most_held_out() > 0 { SplitBy::Views } else { SplitBy::Objects }
    }

    /// All views of one side, in the order of its rows.
    fn items_of(&self, split: Split) -> impl Iterator<Item = (usize, usize)> + use<> {
        let items = |object: usize| self.views_of(split, object).map(move |view| (object, view));
        self.split(split).flat_map(items).collect::<Vec<_>>().into_iter()
    }

    /// Number of objects.
    pub fn objects(&self) -> usize {
        self.labels.len()
    }

    /// The objects of one side.
    pub fn split(&self, split: Split) -> Range<usize> {
        match (self.split_by(), split) {
            (SplitBy::Views, _) => 0..self.objects(),
            (SplitBy::Objects, Split::Train) => 0..self.train_objects,
            (SplitBy::Objects, Split::Val) => self.train_objects..self.objects(),
        }
    }

    /// The views of an object on one side.
    pub fn views_of(&self, split: Split, object: usize) -> Range<usize> {
        self.index.views_of(split, object)
    }

    /// Whether an object has two different views on one side.
    pub fn has_pair(&self, split: Split, object: usize) -> bool {
        self.views_of(split, object).len() >= 2
    }

    /// The objects of one side with two different views there.
    pub fn paired(&self, split: Split) -> impl Iterator<Item = usize> {
        self.split(split).filter(move |&object| self.has_pair(split, object))
    }

    /// The largest number of views of an object on one side.
    pub fn most_views(&self, split: Split) -> usize {
        self.split(split).map(|object| self.views_of(split, object).len()).max().unwrap_or(0)
    }

    /// How many views each of `objects`, which have as many, has on one side.
    pub fn views_at_once(&self, split: Split, objects: &[usize]) -> usize {
        objects.first().map_or(0, |&object| self.views_of(split, object).len())
    }

    /// The row of one view.
    pub fn row(&self, object: usize, view: usize) -> usize {
        self.index.place(object, view)
    }

    /// The object and the view of a row.
    pub fn item(&self, row: usize) -> (usize, usize) {
        self.index.item(row)
    }

    /// All rows of one side.
    pub fn rows(&self, split: Split) -> Range<usize> {
        let train: usize =
            self.split(Split::Train).map(|object| self.views_of(Split::Train, object).len()).sum();
        match split {
            Split::Train => 0..train,
            Split::Val => train..self.index.total(),
        }
    }

    /// The rows of one object on one side.
    pub fn rows_of(&self, split: Split, object: usize) -> Range<usize> {
        let views = self.views_of(split, object);
        let first = self.row(object, views.start);
        first..first + views.len()
    }

    /// The poses of one object's views on one side.
    pub fn poses_of(&self, split: Split, object: usize) -> &[ViewPose] {
        &self.poses[self.rows_of(split, object)]
    }

    /// A table of all views, object by object, view by view, in the order of the rows here.
    pub fn arrange(&self, table: Table) -> Table {
        if self.split_by() == SplitBy::Objects {
            return table;
        }
        let width = table.width;
        let mut values = vec![0.0; table.values.len()];
        values.par_chunks_exact_mut(width.max(1)).enumerate().for_each(|(row, place)| {
            let (object, view) = self.item(row);
            place.copy_from_slice(table.row(self.index.row(object, view)));
        });
        Table { width, values }
    }

    /// Whether the targets of `task` are known.
    pub fn has_targets(&self, task: Task) -> bool {
        match task.part() {
            // The plane of an image has one frame.
            Some((_, FrameKind::Base)) if self.space == Space::Image => false,
            Some((part, _)) => self.has_poses && self.has[part],
            None => task == Task::Classification || self.has_hues,
        }
    }

    /// The probes of poses whose targets are known, translations in `frame` only.
    pub fn pose_tasks(&self, frame: FrameKind) -> Vec<Task> {
        let tasks = Part::ALL.map(|part| Task::of_part(part, frame));
        tasks.into_iter().filter(|&task| self.has_targets(task)).collect()
    }

    /// The regression target of `task` for two views of an object; nothing for classification.
    pub fn target(&self, task: Task, object: usize, first: usize, second: usize) -> Vec<f32> {
        let rows = [first, second].map(|view| self.row(object, view));
        let [a, b] = rows.map(|row| &self.poses[row]);
        let narrow = |values: &[f64]| values.iter().map(|&value| value as f32).collect();
        match task.part() {
            Some((part, frame)) => narrow(&part.target(self.space, frame, a, b)),
            None if task == Task::Colour => {
                narrow(&pose::hue_difference(self.hues[rows[0]], self.hues[rows[1]]))
            }
            None => Vec::new(),
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
            index: ViewIndex::equal(1, 2, 0),
            has_poses: true,
            has_hues: true,
            poses: vec![pose(0.0, [0.1, 0.2, 0.3]), pose(FRAC_PI_2, [0.4, -0.1, 0.2])],
            hues: vec![[0.9, 0.3], [0.2, 0.7]],
            labels: vec![0],
            classes: 1,
            space: Space::Object,
            has: PerPart([true, true, false, false, false]),
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

    #[test]
    fn rows_of_a_split_by_views_are_those_of_training_then_those_held_out() {
        let truth = GroundTruth {
            index: ViewIndex::equal(3, 5, 2),
            has_poses: true,
            has_hues: true,
            poses: Vec::new(),
            hues: Vec::new(),
            labels: vec![0; 3],
            classes: 1,
            space: Space::Object,
            has: PerPart([true, false, false, false, false]),
            train_objects: 3,
        };
        assert_eq!(Split::ALL.map(|split| truth.split(split)), [0..3, 0..3]);
        assert_eq!(Split::ALL.map(|split| truth.views_of(split, 1)), [0..3, 3..5]);
        assert_eq!(Split::ALL.map(|split| truth.rows(split)), [0..9, 9..15]);
        assert_eq!(Split::ALL.map(|split| truth.rows_of(split, 1)), [3..6, 11..13]);
        let items = Split::ALL.into_iter().flat_map(|split| truth.items_of(split));
        for (row, item) in items.enumerate() {
            assert_eq!((truth.row(item.0, item.1), truth.item(row)), (row, item));
        }
        let natural: Vec<f32> = (0..15).map(|row| (10 * (row / 5) + row % 5) as f32).collect();
        let arranged = truth.arrange(Table { width: 1, values: natural });
        let wanted = [0, 1, 2, 10, 11, 12, 20, 21, 22, 3, 4, 13, 14, 23, 24].map(|value| value as f32);
        assert_eq!(arranged.values, wanted);
    }
}
