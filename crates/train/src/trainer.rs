//! The loop, readable from top to bottom: load a batch, step, now and then look, write down, check, save.
//!
//! Everything that decides the weights is a function of (configuration, data, position). A checkpoint stores the
//! learner's state and the position; lines of metrics are durable before the checkpoint that is later than they are,
//! and lines later than the checkpoint are taken back when a run goes on.

mod belonging;
mod end_of_epoch;
mod start;
mod step_results;
mod together;

use std::collections::{BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dataset::cuda::{DeviceImages, look_ahead};
use dataset::{Allocate, Loader, LoaderOptions, TrainingPlan, Views, shown_warnings};
use engine::{Collective, DType, Device, Tensor};
use methods::{Ask, PairImages};
use pose::ViewPose;

use crate::bad_samples::Skipping;
use crate::batches::{Item, PairBatch, check_ranks, share_of, training_plan, view_counts};
use crate::checkpoint::{self, Position};
use crate::clock::Clock;
use crate::config::{Config, OnBadSample};
use crate::data::Data;
use crate::environment::{self, Ended};
use crate::error::{Error, Result};
use crate::event::{Event, Outcome};
use crate::guard::Guard;
use crate::journal::Journal;
use crate::learner::Learner;
use crate::means::Means;
use crate::run_folder::OwnedRun;
use crate::saver::Saver;
pub use belonging::starting_checkpoint;
pub(crate) use belonging::views_digest;
use start::Start;

/// Where a checkpoint keeps what is known of the effective rank.
const GUARD_RANK: &str = "guard_rank";

/// The loop over one run.
pub struct Trainer<'a> {
    /// What is written down of the run; only by the first of several ranks.
    books: Option<Books<'a>>,
    checkpoints: PathBuf,
    ranks: Arc<dyn Collective>,
    config: Config,
    views: Arc<Skipping>,
    device: Device,
    /// Where images are rendered on the device, what renders them.
    rendered: Option<DeviceImages>,
    learner: &'a mut dyn Learner,
    plan: TrainingPlan,
    position: Position,
    means: Means,
    guard: Guard,
    tell: &'a mut dyn FnMut(Event<'_>),
    /// Bad samples in each of the steps that are issued but whose results are not yet processed.
    pending: VecDeque<usize>,
    clock: Clock,
    /// What was told of objects that are not as they should be.
    noticed: BTreeSet<String>,
    /// The choices of the device that are written down, and those of them that were made anew, as far as this was said.
    choices: usize,
    replaced: usize,
}

/// What is written down of a run.
struct Books<'a> {
    run: &'a OwnedRun,
    journal: Journal,
    saver: Saver,
}

/// Continues `run` from its newest whole checkpoint, or begins it, and trains until the end, or until `stop` says so.
/// Of several ranks the first has the run, and the others none.
pub fn train(
    run: Option<&OwnedRun>,
    config: &Config,
    data: Data,
    learner: &mut dyn Learner,
    tell: &mut dyn FnMut(Event<'_>),
    stop: &dyn Fn() -> bool,
) -> Result<Outcome> {
    let Data { views, device, rendered, ranks } = data;
    let plan = training_plan(config, &*views)?;
    check_ranks(&plan, ranks.ranks())?;
    let begun = run.map(|run| Start::of(run, config, &plan, &views, learner, tell));
    let (Start { position, strikes, rank, choices, finished }, means) = start::shared(&*ranks, begun)?;
    if let Some(path) = finished {
        return Ok(Outcome::AlreadyFinished(path));
    }
    if let Some(choices) = choices {
        device.set_choices(&choices)?;
    }
    if ranks.is_shared() {
        device.set_untimed()?;
    }
    learner.take_from_first()?;
    let mut books = None;
    if let Some(run) = run {
        let folder = run.folder();
        let (surroundings, data) = (folder.environment_path(), views.description());
        let differences = environment::begin(&surroundings, &device, ranks.ranks(), data, position.step)?;
        differences.into_iter().for_each(|text| tell(Event::Warning(text)));
        let device = environment::in_words(&device, ranks.ranks());
        tell(Event::Begin { config, device: &device, from: position, plan: &plan });
        let (journal, damage) = Journal::open(folder, position.step)?;
        damage.into_iter().for_each(|text| tell(Event::Warning(text)));
        let saver = Saver::new(folder.checkpoints_path(), config.checkpoints.clone(), config.epochs);
        books = Some(Books { run, journal, saver });
    }
    let (chosen, replaced) = device.choice_counts();
    let trainer = Trainer {
        books,
        checkpoints: run.map(|run| run.folder().checkpoints_path()).unwrap_or_default(),
        ranks,
        views: Arc::new(Skipping::new(views, config.loader.on_bad_sample == OnBadSample::Skip)),
        device,
        rendered,
        learner,
        plan,
        position,
        means,
        guard: Guard::new(config.guards.clone(), strikes, rank),
        tell,
        pending: VecDeque::new(),
        clock: Clock::new(),
        noticed: BTreeSet::new(),
        choices: chosen + replaced,
        replaced,
        config: config.clone(),
    };
    let outcome = trainer.train(stop);
    let ended = match &outcome {
        Ok(Outcome::Interrupted(_)) => Ended::Interrupted,
        Ok(_) => Ended::Finished,
        Err(error) => Ended::Failed(error.to_string()),
    };
    if let Some(run) = run {
        // Where the disk is full even this may fail, and is of no importance.
        let _ = environment::end(&run.folder().environment_path(), ended);
    }
    outcome
}

impl Trainer<'_> {
    fn train(mut self, stop: &dyn Fn() -> bool) -> Result<Outcome> {
        let steps_per_epoch = self.plan.steps_per_epoch();
        let mut loader = self.start_loader(self.steps())?;
        // Images rendered on the device are announced ahead of their steps.
        let mut ahead = self.rendered.is_some().then(|| self.steps().fuse());
        let (mut announced, look_ahead) = (self.position.step, look_ahead(self.config.method.batch));
        while self.position.epoch < self.config.epochs {
            // Behind the last step of an epoch; a session may also begin here.
            if self.position.step_in_epoch == steps_per_epoch {
                if !self.end_epoch(stop)? {
                    return self.interrupted();
                }
                continue;
            }
            let waited = loader.waited() + self.waited();
            let Some((batch, bad)) = self.next_batch(&mut loader, stop)? else {
                return self.interrupted();
            };
            if self.position.step == 0 {
                self.show_pairs(&batch)?;
            }
            let step = self.position.step + 1;
            while announced < step + look_ahead
                && let Some(items) = ahead.as_mut().and_then(Iterator::next)
            {
                let announce = self.rendered.as_mut().map_or(Ok(()), |rendered| rendered.announce(&items));
                announce.map_err(|error| self.saved_before(&error))?;
                announced += 1;
            }
            let ask = Ask {
                probes: self.config.probes.enabled && self.is_logged(step),
                health: self.guard.looks_at(step),
            };
            let views = Arc::clone(&self.views);
            let mut pairs =
                PairBatch::new(&*views, |item| views.resolve(item), &batch, self.config.method.transform);
            let pairs_of_all = self.ranks.is_shared().then(|| self.pairs_in_step());
            pairs.whole = pairs_of_all;
            if let Some(rendered) = &mut self.rendered {
                let images = rendered.announced_images(&pairs.items);
                pairs.images = on_device(images.map_err(|error| self.saved_before(&error))?)?;
            }
            self.learner.step(pairs, ask).map_err(|error| self.stopped_by(error))?;
            let images = pairs_of_all.map_or(batch.items.len(), |pairs| 2 * pairs);
            self.clock.step(images, loader.waited() + self.waited() - waited);
            self.pending.push_back(bad);
            loader.recycle(batch);
            self.position.step = step;
            self.position.step_in_epoch += 1;
            (self.tell)(Event::Step);
            let ends_epoch = self.position.step_in_epoch == steps_per_epoch;
            if self.is_logged(step) || ask.health || ends_epoch {
                self.collect(false)?;
            }
            if !ends_epoch && self.is_time_to_save() {
                self.save()?;
            }
        }
        self.wait_for_saver()?;
        Ok(Outcome::Finished(self.checkpoint_path()))
    }

    /// Pairs of all ranks in the step that comes next.
    fn pairs_in_step(&self) -> usize {
        let sizes = self.plan.batch_sizes();
        sizes.get(self.position.step_in_epoch as usize).copied().unwrap_or(0)
    }

    /// The items of the steps that are left, of this rank.
    fn steps(&self) -> impl Iterator<Item = Vec<Item>> + Send + use<> {
        let views = Arc::clone(&self.views);
        let rotation = move |object, view| {
            let latents = views.latents(object, view);
            ViewPose::published_precision(latents.rotation, [0.0; 3]).quaternion()
        };
        let distance = move |object, first, second| {
            pose::rotation_distance(rotation(object, first), rotation(object, second))
        };
        let (ranks, counts) = (Arc::clone(&self.ranks), view_counts(&*self.views));
        let Position { epoch, step_in_epoch, .. } = self.position;
        let steps = self.plan.steps_with(epoch, step_in_epoch, Box::new(distance), counts);
        steps.map(move |items| share_of(items, &*ranks))
    }

    /// How long steps have waited for images that are rendered on the device.
    fn waited(&self) -> Duration {
        self.rendered.as_ref().map_or(Duration::ZERO, DeviceImages::waited)
    }

    /// Shows the first pairs of a batch in TensorBoard.
    fn show_pairs(&mut self, batch: &dataset::Batch) -> Result<()> {
        let Some(books) = &mut self.books else { return Ok(()) };
        let side = self.config.method.image_size;
        let (all, pairs) =
            (batch.items.len() / 2, self.config.logging.image_pairs.min(batch.items.len() / 2));
        let mut images = Vec::with_capacity(2 * pairs);
        for index in (0..pairs).chain(all..all + pairs) {
            let bytes = side * side * 3;
            let mut pixels = vec![0; bytes];
            let (object, view) = batch.items[index];
            if batch.side == side {
                pixels.copy_from_slice(&batch.pixels[index * bytes..][..bytes]);
            } else {
                self.views.image(object, view, side, &mut pixels)?;
            }
            images.push(pixels);
        }
        books.journal.show_pairs(&images, side)
    }

    fn start_loader(
        &self,
        plan: impl Iterator<Item = Vec<(usize, usize)>> + Send + 'static,
    ) -> Result<Loader> {
        let workers = match self.config.loader.workers {
            0 => rayon::current_num_threads(),
            workers => workers,
        };
        let side = self.rendered.is_none().then_some(self.config.method.image_size);
        let options = LoaderOptions { side, workers, queue: self.config.loader.queue };
        let views = Arc::clone(&self.views) as Arc<dyn Views>;
        // Memory from which batches come to the device while it works.
        let device = self.device.clone();
        let memory: Arc<Allocate> = Arc::new(move |bytes| match device.host_memory(bytes) {
            Ok(memory) => Ok(Box::new(memory)),
            Err(error) => Err(dataset::Error::Request(format!("no memory for a batch: {error}"))),
        });
        Ok(Loader::start_in(views, plan, options, memory)?)
    }

    fn is_logged(&self, step: u64) -> bool {
        step.is_multiple_of(self.config.logging.every_steps)
    }

    fn is_time_to_save(&self) -> bool {
        let minutes = self.config.checkpoints.every_minutes;
        minutes > 0.0 && self.clock.minutes_unsaved() >= minutes
    }

    /// Whether the checkpoint at the end of `epoch` always stays.
    fn is_milestone(&self, epoch: u64) -> bool {
        epoch == self.config.epochs || self.config.checkpoints.milestones.contains(&epoch)
    }

    fn checkpoint_path(&self) -> PathBuf {
        checkpoint::path_of(&self.checkpoints, self.position)
    }

    /// Copies the state and begins to write it, on the first rank.
    fn save(&mut self) -> Result<()> {
        self.collect(true)?;
        if self.books.is_none() {
            return Ok(());
        }
        let strikes = self.guard.strikes();
        let mut checkpoint = belonging::described(self.position, &self.config, &*self.views, strikes)?;
        checkpoint.metadata.insert(GUARD_RANK.to_owned(), serde_json::json!(self.guard.rank()).to_string());
        self.learner.save(&mut checkpoint)?;
        if let Some(name) = checkpoint.not_a_number() {
            let what = format!("{name} contains NaN or infinity");
            return Err(self.unhealthy(self.position.step, &what));
        }
        self.means.save(&mut checkpoint);
        if let Some(books) = &mut self.books {
            books.journal.sync()?;
            let before = books.saver.save(checkpoint)?;
            self.tell_saved(before);
        }
        self.clock.save();
        Ok(())
    }

    fn wait_for_saver(&mut self) -> Result<()> {
        let Some(books) = &mut self.books else { return Ok(()) };
        let saved = books.saver.wait()?;
        self.tell_saved(saved);
        Ok(())
    }

    /// Tells what has been noticed of objects since the last time.
    fn tell_noticed(&mut self) {
        let mut noticed = self.views.warnings();
        noticed.retain(|warning| self.noticed.insert(warning.clone()));
        shown_warnings(noticed, "").into_iter().for_each(|text| (self.tell)(Event::Warning(text)));
    }

    fn tell_saved(&mut self, path: Option<PathBuf>) {
        if let Some(path) = path {
            (self.tell)(Event::Saved(&path));
        }
    }

    /// A step failed; where that was before anything was computed, what was learned so far is saved.
    fn stopped_by(&mut self, error: Error) -> Error {
        match error {
            Error::Dataset(error) => self.saved_before(&error),
            other => other,
        }
    }

    /// Data failed: what was learned so far is saved.
    fn saved_before(&mut self, error: &dataset::Error) -> Error {
        if self.position.step == 0 {
            return Error::Request(error.to_string());
        }
        match self.save().and_then(|()| self.wait_for_saver()) {
            Ok(()) => Error::Request(format!("{error}; the run is saved at {}", self.position.describe())),
            Err(failed) => Error::Request(format!("{error}; the run could not be saved: {failed}")),
        }
    }

    fn interrupted(mut self) -> Result<Outcome> {
        self.tell_noticed();
        if self.position.step == 0 {
            return Ok(Outcome::Interrupted(None));
        }
        self.save()?;
        self.wait_for_saver()?;
        Ok(Outcome::Interrupted(Some(self.checkpoint_path())))
    }
}

/// Images that were rendered on the device, as tensors over the same memory.
fn on_device(images: dataset::cuda::PairImages) -> Result<PairImages<'static>> {
    let dims = images.dims();
    let [first, second] = images.into_buffers();
    let tensor = |buffer| Tensor::from_buffer(dims, DType::U8, buffer);
    Ok(PairImages::Device([tensor(first)?, tensor(second)?]))
}
