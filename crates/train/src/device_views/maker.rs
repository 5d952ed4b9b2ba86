//! A thread that renders views beside the training on the same GPU, on a stream of its own: neither the step's host nor its
//! stream waits for anything but views that are not there yet.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dataset::{OnTheFly, Views};
use gpu::{Context, Event, View};
use rayon::prelude::*;
use render::cuda::{Renderer, Shot};

use super::objects::DeviceObjects;
use crate::batches::Item;
use crate::error::{Error, Result};

/// Views to be made.
#[derive(Debug)]
pub struct Order {
    /// Which.
    pub items: Vec<Item>,
    /// Their objects are not needed again.
    pub once: bool,
    /// Where they go, one after the other.
    pub target: View,
    /// From here on the target is free.
    pub free: Event,
}

/// Views that were ordered and are being made.
#[derive(Debug)]
pub struct Made {
    /// For each item, its number among the pictures of the target; none where its object cannot be loaded.
    pub numbers: Vec<Option<usize>>,
    /// From here on the pictures are there.
    pub done: Event,
    /// Whether objects had to leave device memory for others.
    pub is_tight: bool,
}

enum Task {
    Make(Order),
    Forget,
}

/// Scratch memory of the renderer in bytes, at most; the rest is for the network.
const MOST_SCRATCH: usize = 8 << 30;

/// The thread, seen from outside.
pub struct Maker {
    tasks: Option<Sender<Task>>,
    made: Receiver<Result<Made>>,
    thread: Option<JoinHandle<()>>,
    waited: Duration,
}

/// The thread, seen from inside.
struct Worker {
    views: Arc<OnTheFly<DeviceObjects>>,
    renderer: Renderer,
    side: u32,
    /// Whether the next order's objects come in descending order.
    is_backward: bool,
}

impl Maker {
    /// Starts a thread that renders views of `side` x `side` pixels on the device of `context`, beside its work. It keeps
    /// at most `objects_memory` bytes of objects there; `None`: a third of what is free.
    pub fn start(
        views: &Arc<OnTheFly<DeviceObjects>>,
        context: &Context,
        side: usize,
        objects_memory: Option<usize>,
    ) -> Result<Self> {
        let beside = context.beside().map_err(engine::Error::from)?;
        let free = beside.free_bytes().map_err(engine::Error::from)?;
        let scratch = (free / 6).min(MOST_SCRATCH);
        let objects = objects_memory.unwrap_or(free / 3);
        let renderer = Renderer::with_memory(&beside, views.source().quality, objects, scratch);
        let renderer = renderer.map_err(engine::Error::from)?;
        let mut worker = Worker { views: Arc::clone(views), renderer, side: side as u32, is_backward: false };
        let (tasks, to_do) = channel();
        let (done, made) = channel();
        let work = move || {
            for task in to_do {
                let made = match task {
                    Task::Make(order) => worker.make(order),
                    Task::Forget => match worker.renderer.clear_cache() {
                        Ok(()) => continue,
                        Err(error) => Err(engine::Error::from(error).into()),
                    },
                };
                if done.send(made).is_err() {
                    break;
                }
            }
            // The targets belong to others.
            let _ = worker.renderer.context().synchronize();
        };
        let thread = std::thread::Builder::new().name("views".to_owned()).spawn(work).map_err(|error| {
            Error::Request(format!("cannot start the thread that renders views: {error}"))
        })?;
        Ok(Self { tasks: Some(tasks), made, thread: Some(thread), waited: Duration::ZERO })
    }

    /// Begins to make views.
    pub fn order(&self, order: Order) -> Result<()> {
        self.send(Task::Make(order))
    }

    /// Lets go of all objects on the device.
    pub fn forget_objects(&self) -> Result<()> {
        self.send(Task::Forget)
    }

    fn send(&self, task: Task) -> Result<()> {
        self.tasks.as_ref().and_then(|tasks| tasks.send(task).ok()).ok_or_else(stopped)
    }

    /// The views of the next order, in order; waits until they are being rendered.
    pub fn next(&mut self) -> Result<Made> {
        let began = Instant::now();
        let made = self.made.recv().map_err(|_| stopped())?;
        self.waited += began.elapsed();
        made
    }

    /// How long [`Self::next`] waited so far.
    pub fn waited(&self) -> Duration {
        self.waited
    }
}

fn stopped() -> Error {
    Error::Request("the thread that renders views has stopped".to_owned())
}

impl Worker {
    fn make(&mut self, order: Order) -> Result<Made> {
        let by_object = self.by_object(&order.items);
        let shots = self.shots(&order, &by_object);
        let mut numbers = vec![None; order.items.len()];
        let mut there = Vec::with_capacity(shots.len());
        for (index, shot) in by_object.into_iter().flatten().zip(shots) {
            numbers[index] = shot.is_some().then_some(there.len());
            there.extend(shot);
        }
        let done = self.render(&there, &order).map_err(engine::Error::from)?;
        Ok(Made { numbers, done, is_tight: self.renderer.has_evicted() })
    }

    /// The indexes of each object's items, so that every object is needed once, in one turn forwards and in the next
    /// backwards: where not all objects fit into device memory, the ones used last are still there.
    fn by_object(&mut self, items: &[Item]) -> Vec<Vec<usize>> {
        let mut indexes: Vec<usize> = (0..items.len()).collect();
        indexes.sort_by_key(|&index| items[index].0);
        let mut groups: Vec<Vec<usize>> =
            indexes.chunk_by(|&a, &b| items[a].0 == items[b].0).map(<[usize]>::to_vec).collect();
        if self.is_backward {
            groups.reverse();
        }
        self.is_backward = !self.is_backward;
        groups
    }

    /// What is to be rendered; nothing for objects that cannot be loaded, which is said when they are needed.
    fn shots(&self, order: &Order, by_object: &[Vec<usize>]) -> Vec<Option<Shot>> {
        let (views, items, once) = (&self.views, &order.items, order.once);
        let prepared = |indexes: &Vec<usize>| -> Vec<Option<Shot>> {
            let object = indexes.first().map(|&index| items[index].0);
            let object = object.and_then(|object| match once {
                true => views.prepared_once(object).ok().map(|prepared| prepared.object),
                false => views.prepared(object).ok().map(|prepared| Arc::clone(&prepared.object)),
            });
            let shot = |&index: &usize| {
                let (number, view) = items[index];
                Some(Shot { object: Some(object.clone()?), latents: views.latents(number, view) })
            };
            indexes.iter().map(shot).collect()
        };
        by_object.par_iter().flat_map_iter(prepared).collect()
    }

    fn render(&mut self, shots: &[Shot], order: &Order) -> gpu::Result<Event> {
        let context = self.renderer.context().clone();
        context.wait_for(&order.free)?;
        self.renderer.render(shots, self.side, order.target)?;
        let done = Event::untimed(&context)?;
        done.record()?;
        Ok(done)
    }
}

impl Drop for Maker {
    fn drop(&mut self) {
        self.tasks = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
