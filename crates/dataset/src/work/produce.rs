//! Rendering the objects of a plan: a fixed number of jobs share objects and views, so that a handful of objects keeps
//! all of them busy and never more than one object a job is in memory.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use rayon::prelude::*;
use scene::Latents;

use crate::card::Card;
use crate::error::{Error, Result};
use crate::jpeg;
use crate::object::{Object, Split};
use crate::plan::Plan;
use crate::source::CpuRenderer;
use crate::work::finish::{Finished, complete, finish_store, read_skipped};
use crate::work::store::{Opened, Skipped, Status, Store};

/// What turns objects into images.
pub trait ViewSource: Sync {
    /// An object ready to be rendered.
    type Prepared: Send + Sync;

    /// Loads an object; the error is the reason for which it is skipped.
    fn prepare(&self, object: &Object) -> std::result::Result<Self::Prepared, String>;

    /// Renders views of an object, `side * side` RGB pixels each, one after the other; every image is a pure function
    /// of the object, its latents and the side.
    fn render(
        &self,
        prepared: &Self::Prepared,
        latents: &[Latents],
        side: usize,
    ) -> std::result::Result<Vec<u8>, Failure>;

    /// What loads the objects, where they are loaded.
    fn objects(&self) -> Option<&CpuRenderer> {
        None
    }

    /// The folder that reasons name files relative to, where there is one.
    fn root(&self) -> Option<&Path> {
        self.objects()?.set.root()
    }

    /// What was noticed of an object that is prepared and can be used.
    fn warnings_of(&self, object: &Object) -> Vec<String> {
        self.objects().map(|objects| objects.warnings_of(object)).unwrap_or_default()
    }

    /// How many views of an object should be rendered at once.
    fn batch(&self) -> usize {
        1
    }
}

/// Why views were not rendered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The object cannot be rendered here: it is skipped.
    Object(String),
    /// Nothing can be rendered any more: the run ends, and can be continued.
    Device(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Self::Object(reason) | Self::Device(reason)) = self;
        formatter.write_str(reason)
    }
}

/// Part `index` of `count` of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// From 0.
    pub index: usize,
    /// At least 1.
    pub count: usize,
}

impl Shard {
    /// All of the work.
    pub const WHOLE: Self = Self { index: 0, count: 1 };
}

/// How to produce.
pub struct ProduceOptions<'a> {
    /// Threads that render.
    pub jobs: usize,
    /// The part of the work to do.
    pub shard: Shard,
    /// Whether a dataset begun on another kind of device may be continued.
    pub allow_mixed_devices: bool,
    /// Set by somebody else to stop after the images in hand.
    pub stop: &'a AtomicBool,
    /// Called once with the number of objects that are there already and the number of images to render.
    pub on_begin: &'a (dyn Fn(usize, u64) + Sync),
    /// Called with the number of images settled since the last call.
    pub on_images: &'a (dyn Fn(u64) + Sync),
}

/// What producing came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The card, if the dataset is complete.
    pub complete: Option<Card>,
    /// Whether it was stopped before its part was done.
    pub interrupted: bool,
    /// Objects that were there already.
    pub objects_before: usize,
    /// Objects rendered now.
    pub objects_rendered: usize,
    /// Images rendered now.
    pub images_rendered: u64,
    /// Objects that nobody has settled yet: those of other shards, or what an interruption left.
    pub objects_missing: usize,
    /// Objects that cannot be used: all of them where the dataset is complete, else those tried now.
    pub skipped: Vec<Skipped>,
}

/// Makes this shard's part of the planned dataset in `root`, and finishes the dataset if nothing else is missing.
pub fn produce<S: ViewSource>(
    root: &Path,
    plan: Plan,
    source: &S,
    options: &ProduceOptions<'_>,
) -> Result<Outcome> {
    let total = plan.objects.len();
    let store = match Store::open(root, plan, options.allow_mixed_devices)? {
        Opened::Complete(card) => {
            return Ok(Outcome {
                complete: Some(*card),
                interrupted: false,
                objects_before: total,
                objects_rendered: 0,
                images_rendered: 0,
                objects_missing: 0,
                skipped: read_skipped(root)?,
            });
        }
        Opened::Open(store) => *store,
    };
    let own: Vec<usize> = (options.shard.index..total).step_by(options.shard.count.max(1)).collect();
    let is_pending = |&index: &usize| -> Result<Option<usize>> {
        let settled = match store.status(index, true)? {
            Status::Done => true,
            Status::Skipped(_) => store.is_sealed(index),
            Status::Missing => false,
        };
        Ok((!settled).then_some(index))
    };
    let pending: Vec<usize> =
        own.par_iter().map(is_pending).collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
    let views = store.plan().settings.views;
    (options.on_begin)(own.len() - pending.len(), (pending.len() * views) as u64);
    let run = Run::new(&store, source, options, &pending);
    std::thread::scope(|scope| {
        for _ in 0..options.jobs.clamp(1, (pending.len() * views).max(1)) {
            scope.spawn(|| run.work());
        }
    });
    let Run { state, images, rendered, .. } = run;
    let State { error, skipped, .. } = state.into_inner().unwrap_or_else(PoisonError::into_inner);
    let rendered = rendered.into_inner();
    let mut outcome = Outcome {
        complete: None,
        interrupted: rendered + skipped.len() < pending.len(),
        objects_before: own.len() - pending.len(),
        objects_rendered: rendered,
        images_rendered: images.into_inner(),
        objects_missing: 0,
        skipped,
    };
    let finished = match error {
        None => finish_store(store)?,
        // Where another process finished the dataset meanwhile, its work folder is gone and nothing is lost.
        Some(error) => match complete(root)? {
            Some(finished) => finished,
            None => return Err(error),
        },
    };
    match finished {
        Finished::Complete { card, skipped } => {
            outcome.interrupted = false;
            outcome.complete = Some(*card);
            outcome.skipped = skipped;
        }
        Finished::Missing { objects, .. } => outcome.objects_missing = objects,
    }
    outcome.skipped.sort();
    Ok(outcome)
}

/// An object in memory whose views are being rendered.
struct Active<P> {
    index: usize,
    prepared: P,
    images: Mutex<Vec<Vec<u8>>>,
    left: AtomicUsize,
    /// Why it turned out to be unusable, if it did.
    unusable: OnceLock<String>,
}

struct State<P> {
    /// Position in `pending` of the next object to open.
    next: usize,
    /// Objects being loaded.
    opening: usize,
    /// Objects with views nobody has taken, with the next such view; oldest first.
    active: Vec<(Arc<Active<P>>, usize)>,
    skipped: Vec<Skipped>,
    error: Option<Error>,
}

enum Task<P> {
    Open(usize),
    Views(Arc<Active<P>>, Range<usize>),
}

struct Run<'a, S: ViewSource> {
    store: &'a Store,
    source: &'a S,
    options: &'a ProduceOptions<'a>,
    pending: &'a [usize],
    state: Mutex<State<S::Prepared>>,
    changed: Condvar,
    /// For every archive, how many of our pending objects are not settled.
    archives: BTreeMap<(Split, usize), AtomicUsize>,
    images: AtomicU64,
    rendered: AtomicUsize,
}

impl<'a, S: ViewSource> Run<'a, S> {
    fn new(store: &'a Store, source: &'a S, options: &'a ProduceOptions<'a>, pending: &'a [usize]) -> Self {
        let mut left: BTreeMap<(Split, usize), usize> =
            store.archives().into_iter().map(|a| (a, 0)).collect();
        if !left.is_empty() {
            pending.iter().for_each(|&index| *left.entry(store.archive_of(index)).or_default() += 1);
        }
        let archives = left.into_iter().map(|(archive, left)| (archive, AtomicUsize::new(left))).collect();
        let state = State { next: 0, opening: 0, active: Vec::new(), skipped: Vec::new(), error: None };
        Self {
            store,
            source,
            options,
            pending,
            state: Mutex::new(state),
            changed: Condvar::new(),
            archives,
            images: AtomicU64::new(0),
            rendered: AtomicUsize::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<S::Prepared>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One job: takes tasks until there are none.
    fn work(&self) {
        while let Some(task) = self.next_task() {
            let outcome = match task {
                Task::Open(index) => self.open(index),
                Task::Views(active, views) => self.views(&active, views),
            };
            if let Err(error) = outcome {
                self.lock().error.get_or_insert(error);
                self.changed.notify_all();
            }
        }
    }

    fn next_task(&self) -> Option<Task<S::Prepared>> {
        let mut state = self.lock();
        loop {
            if state.error.is_some() || self.options.stop.load(Ordering::Relaxed) {
                return None;
            }
            if let Some((active, next)) = state.active.first_mut() {
                let all = self.store.plan().settings.views;
                let views = *next..(*next + self.source.batch().max(1)).min(all);
                let object = Arc::clone(active);
                *next = views.end;
                if *next == all {
                    state.active.remove(0);
                }
                return Some(Task::Views(object, views));
            }
            if let Some(&index) = self.pending.get(state.next) {
                state.next += 1;
                state.opening += 1;
                return Some(Task::Open(index));
            }
            if state.opening == 0 {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn open(&self, index: usize) -> Result<()> {
        let views = self.store.plan().settings.views;
        let prepared = self.source.prepare(&self.store.plan().objects[index]);
        let skipped = match &prepared {
            Ok(_) => None,
            Err(reason) => Some(self.store.skip(index, reason.clone())),
        };
        let mut state = self.lock();
        state.opening -= 1;
        self.changed.notify_all();
        match (prepared, skipped) {
            (Ok(prepared), _) => {
                let images = Mutex::new(vec![Vec::new(); views]);
                let left = AtomicUsize::new(views);
                let active = Active { index, prepared, images, left, unusable: OnceLock::new() };
                state.active.push((Arc::new(active), 0));
                Ok(())
            }
            (Err(_), skipped) => {
                if let Some(skipped) = skipped {
                    state.skipped.push(skipped?);
                }
                drop(state);
                (self.options.on_images)(views as u64);
                self.settled(index)
            }
        }
    }

    fn views(&self, active: &Active<S::Prepared>, views: Range<usize>) -> Result<()> {
        let plan = self.store.plan();
        let object = &plan.objects[active.index];
        let side = plan.settings.size;
        let latents: Vec<Latents> = views.clone().map(|view| plan.latents(object, view)).collect();
        let count = views.len();
        match self.source.render(&active.prepared, &latents, side) {
            Ok(pixels) => {
                for (view, pixels) in views.zip(pixels.chunks(3 * side * side)) {
                    let image = u16::try_from(side)
                        .map_err(|_| "the side is too long for a JPEG".to_owned())
                        .and_then(|side| jpeg::encode(pixels, side, plan.settings.channel_order))
                        .map_err(|message| {
                            Error::Request(format!("{}, view {view}: {message}", object.id()))
                        })?;
                    active.images.lock().unwrap_or_else(PoisonError::into_inner)[view] = image;
                    self.images.fetch_add(1, Ordering::Relaxed);
                    (self.options.on_images)(1);
                }
            }
            Err(Failure::Object(reason)) => {
                let _ = active.unusable.set(reason);
                (self.options.on_images)(count as u64);
            }
            Err(Failure::Device(reason)) => {
                return Err(Error::Request(format!("{reason}; run the same command again to go on")));
            }
        }
        if active.left.fetch_sub(count, Ordering::AcqRel) == count {
            match active.unusable.get() {
                Some(reason) => {
                    let skipped = self.store.skip(active.index, reason.clone())?;
                    self.lock().skipped.push(skipped);
                }
                None => {
                    let images =
                        std::mem::take(&mut *active.images.lock().unwrap_or_else(PoisonError::into_inner));
                    // Whoever finds the object done finds what was noticed of it.
                    self.store.note(active.index, self.source.warnings_of(object))?;
                    self.store.commit(active.index, images)?;
                    self.rendered.fetch_add(1, Ordering::Relaxed);
                }
            }
            self.settled(active.index)?;
        }
        Ok(())
    }

    /// Seals the archive of an object that was the last one of ours in it.
    fn settled(&self, index: usize) -> Result<()> {
        if self.archives.is_empty() {
            return Ok(());
        }
        let archive = self.store.archive_of(index);
        if self.archives.get(&archive).is_some_and(|left| left.fetch_sub(1, Ordering::AcqRel) == 1) {
            self.store.seal(archive)?;
        }
        Ok(())
    }
}
