//! Views and a learner of a few lines, for tests of everything around them.

use std::cell::Cell;
use std::f64::consts::FRAC_PI_2;
use std::rc::Rc;

use dataset::{Class, Object, Split, Views};
use methods::{Ask, Health, Measurement, PairImages, Representations, Tallies, Tally};
use random::{Random, Stream};
use scene::Latents;

use crate::batches::{Item, PairBatch};
use crate::checkpoint::{Checkpoint, Numbers};
use crate::error::{Error, Result};
use crate::learner::{Learner, Look};

/// Small images whose colours tell class and rotation.
pub(crate) struct FakeViews {
    objects: Vec<Object>,
    classes: Vec<Class>,
    bad: Box<dyn Fn(Item) -> bool + Send + Sync>,
    stream: &'static str,
    translates: bool,
    held_out_views: usize,
}

impl FakeViews {
    /// `classes` classes of `each` training objects and one held-out object each.
    pub(crate) fn new(classes: u32, each: usize) -> Self {
        let of = |split, count: usize| {
            (0..classes).flat_map(move |label| {
                (0..count).map(move |k| Object {
                    synset: format!("{label:08}"),
                    name: format!("{split}{k}"),
                    label,
                    split,
                })
            })
        };
        let class = |label| Class { label, synset: format!("{label:08}"), name: format!("class {label}") };
        Self {
            objects: of(Split::Train, each).chain(of(Split::Val, 1)).collect(),
            classes: (0..classes).map(class).collect(),
            bad: Box::new(|_| false),
            stream: "fake",
            translates: false,
            held_out_views: 0,
        }
    }

    /// The same, with images that cannot be read.
    pub(crate) fn with_bad(mut self, bad: impl Fn(Item) -> bool + Send + Sync + 'static) -> Self {
        self.bad = Box::new(bad);
        self
    }

    /// The same objects, seen from elsewhere.
    pub(crate) fn with_stream(self, stream: &'static str) -> Self {
        Self { stream, ..self }
    }

    /// The same training objects, and no others.
    pub(crate) fn without_held_out(mut self) -> Self {
        self.objects.retain(|object| object.split == Split::Train);
        self
    }

    /// The same, split by views: all objects are trained on, so many of their six views are not.
    pub(crate) fn with_held_out_views(self, held_out_views: usize) -> Self {
        Self { held_out_views, ..self }
    }

    /// The same, translated as well.
    pub(crate) fn with_translation(self) -> Self {
        Self { translates: true, ..self }
    }
}

impl Views for FakeViews {
    fn objects(&self) -> &[Object] {
        &self.objects
    }
    fn classes(&self) -> &[Class] {
        &self.classes
    }
    fn views(&self) -> usize {
        6
    }
    fn held_out_views(&self) -> usize {
        self.held_out_views
    }
    fn side(&self) -> usize {
        32
    }
    fn has_translation(&self) -> bool {
        self.translates
    }
    fn latents(&self, object: usize, view: usize) -> Latents {
        let mut random = Random::new(1, Stream::new(self.stream), (object * 64 + view) as u64);
        Latents {
            rotation: std::array::from_fn(|_| random.range(-FRAC_PI_2, FRAC_PI_2)),
            floor_hue: random.uniform(),
            spot_hue: random.uniform(),
            translation: self.translates.then(|| std::array::from_fn(|_| random.range(-0.5, 0.5))),
            ..Latents::default()
        }
    }
    fn image(&self, object: usize, view: usize, _side: usize, pixels: &mut [u8]) -> dataset::Result<()> {
        if (self.bad)((object, view)) {
            return Err(dataset::Error::Request(format!("object {object}, view {view} is unreadable")));
        }
        let angle = self.latents(object, view).rotation[0];
        for (at, byte) in pixels.iter_mut().enumerate() {
            *byte = ((at % 97) as f64 * (angle + 2.0) + f64::from(self.objects[object].label) * 60.0) as u8;
        }
        Ok(())
    }
    fn prepare(&self, object: usize) -> dataset::Result<()> {
        match (0..self.views()).all(|view| (self.bad)((object, view))) {
            true => Err(dataset::Error::Request(format!("object {object} is unreadable"))),
            false => Ok(()),
        }
    }
    fn description(&self) -> String {
        "fake views".to_owned()
    }
}

/// A few weights that every batch moves a little, in a way that depends on all of its bytes and on their order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FakeLearner {
    pub(crate) weights: Vec<f32>,
    pending: Vec<Loss>,
    steps: u64,
    /// From this step on the loss is this.
    pub(crate) loss_from: Option<(u64, f64)>,
    /// From this step on the representation is constant.
    pub(crate) collapse_from: u64,
    /// The update of this step spoils the weights.
    pub(crate) spoiled_by: u64,
    /// The views of this step cannot be made.
    pub(crate) unseen: u64,
    /// What is to be said of the steps.
    pub(crate) remark: Option<String>,
    /// What was trained on.
    pub(crate) trained: Vec<Item>,
    /// What the probes were asked about.
    pub(crate) probed: Vec<Vec<Item>>,
    /// Batches of steps and of probes so far, for somebody who watches.
    pub(crate) done: Rc<Cell<u64>>,
}

#[derive(Clone, Debug, PartialEq)]
struct Loss(f64, Ask, Option<Health>);

impl FakeLearner {
    pub(crate) fn new() -> Self {
        Self {
            weights: vec![0.0; 4],
            pending: Vec::new(),
            steps: 0,
            loss_from: None,
            collapse_from: u64::MAX,
            spoiled_by: u64::MAX,
            unseen: u64::MAX,
            remark: None,
            trained: Vec::new(),
            probed: Vec::new(),
            done: Rc::default(),
        }
    }
}

impl Learner for FakeLearner {
    fn step(&mut self, batch: PairBatch<'_>, ask: Ask) -> Result<()> {
        if self.steps + 1 == self.unseen {
            return Err(dataset::Error::Request("out of memory".to_owned()).into());
        }
        self.steps += 1;
        self.trained.extend(&batch.items);
        self.done.set(self.done.get() + 1);
        let PairImages::Host { views, .. } = batch.images else { panic!("images of the host") };
        for (k, bytes) in views.into_iter().enumerate() {
            let hash = random::fnv1a(bytes) as f32 / u64::MAX as f32;
            self.weights[k] = 0.99 * self.weights[k] + 0.01 * hash;
            self.weights[2 + k] = (self.weights[k] + batch.targets.labels[0] as f32).sin();
        }
        if self.steps == self.spoiled_by {
            self.weights[3] = f32::NAN;
        }
        let loss = self.loss_from.filter(|(step, _)| self.steps >= *step).map(|(_, loss)| loss);
        let rows: Vec<f32> = (0..60_u64)
            .map(|i| if self.steps >= self.collapse_from { 1.0 } else { (i * i % 17) as f32 })
            .collect();
        let health = ask.health.then(|| Health::of(&rows, 3, None));
        self.pending.push(Loss(loss.unwrap_or_else(|| f64::from(self.weights[0])), ask, health));
        Ok(())
    }

    fn collect(&mut self, wait: bool) -> Result<Vec<Measurement>> {
        // As a device would: the last steps are not done yet.
        let done = if wait { self.pending.len() } else { self.pending.len().saturating_sub(2) };
        let measure = |Loss(loss, ask, health): Loss| {
            let mut probes = Tallies::default();
            if ask.probes {
                probes.add("class_accuracy/representation", Tally::Accuracy { right: loss, count: 1.0 });
            }
            let terms = vec![("variance", loss * 0.5)];
            Measurement { loss, terms, probes, health, ..Measurement::default() }
        };
        Ok(self.pending.drain(..done).map(measure).collect())
    }

    fn take_remark(&mut self) -> Option<String> {
        self.remark.take()
    }

    fn look(&mut self, batch: PairBatch<'_>, representations: bool) -> Result<Look> {
        self.probed.push(batch.items);
        self.done.set(self.done.get() + 1);
        let (mut tallies, labels) = (Tallies::default(), batch.targets.labels);
        let logits: Vec<f32> = labels.iter().flat_map(|&label| [-label as f32, label as f32]).collect();
        tallies.add("class_accuracy/representation", Tally::accuracy(&logits, &labels));
        let mut seen = Look { tallies, ..Look::default() };
        if representations {
            // Objects of odd classes are taken for those of the class before.
            let labels = labels.repeat(2);
            let values = labels.iter().flat_map(|&label| [(label / 2) as f32 + 1.0, 1.0]).collect();
            seen.representations = Representations { width: 2, values, labels };
        }
        Ok(seen)
    }

    fn save(&self, checkpoint: &mut Checkpoint) -> Result<()> {
        assert!(self.pending.is_empty(), "a checkpoint is later than all measurements before it");
        checkpoint.insert("backbone.weights", &[4], Numbers::F32(self.weights.clone()));
        checkpoint.insert("optimiser.steps", &[], Numbers::I64(vec![self.steps as i64]));
        Ok(())
    }

    fn load(&mut self, checkpoint: &Checkpoint) -> Result<()> {
        let Some(Numbers::F32(weights)) =
            checkpoint.tensors.get("backbone.weights").map(|stored| &stored.numbers)
        else {
            return Err(Error::Request("no weights".to_owned()));
        };
        self.weights.clone_from(weights);
        self.steps = checkpoint.position.step;
        Ok(())
    }
}
