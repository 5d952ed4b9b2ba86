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
        let mut worker = Worker { views: Arc::clone(views), renderer, side: side as u32 };
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
        let shots = self.shots(&order);
        let mut numbers = Vec::with_capacity(shots.len());
        let mut there = Vec::with_capacity(shots.len());
        for shot in shots {
            numbers.push(shot.is_some().then_some(there.len()));
            there.extend(shot);
        }
        let done = self.render(&there, &order).map_err(engine::Error::from)?;
        Ok(Made { numbers, done })
    }

    /// What is to be rendered; nothing for objects that cannot be loaded, which is said when they are needed.
    fn shots(&self, order: &Order) -> Vec<Option<Shot>> {
        let views = &self.views;
        let shot = |object: Option<&Arc<render::cuda::Object>>, item: Item| {
            let object = Some(Arc::clone(object?));
            Some(Shot { object, latents: views.latents(item.0, item.1) })
        };
        if !order.once {
            let prepared = |&item: &Item| {
                let prepared = views.prepare(item.0).ok();
                shot(prepared.as_ref().map(|prepared| &prepared.object), item)
            };
            return order.items.par_iter().map(prepared).collect();
        }
        // The views of an object are neighbours and share it.
        let by_object: Vec<&[Item]> = order.items.chunk_by(|a, b| a.0 == b.0).collect();
        let prepared = |items: &[Item]| -> Vec<Option<Shot>> {
            let prepared = items.first().and_then(|item| views.prepare_once(item.0).ok());
            let object = prepared.as_ref().map(|prepared| &prepared.object);
            items.iter().map(|&item| shot(object, item)).collect()
        };
        by_object.into_par_iter().flat_map_iter(prepared).collect()
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
