//! The prefetching loader: decoded batches ahead of the consumer, in an order that does not depend on the number of
//! workers.
//!
//! One thread walks the plan and, for each batch, lets a private pool of workers decode its images side by side into
//! one buffer; finished batches wait in a bounded queue. The loader measures how long the consumer waited: with a
//! loader that keeps up it is next to nothing.

use std::fmt::Debug;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::views::Views;

/// One image: (object, view).
pub type Item = (usize, usize);

/// Decoded images, in the order of their items.
#[derive(Debug)]
pub struct Batch {
    /// The images' objects and views.
    pub items: Vec<Item>,
    /// Side of the images in pixels; 0 where there are none.
    pub side: usize,
    /// `[items, side, side, 3]` bytes, RGB.
    pub pixels: Pixels,
}

/// Memory for images: ordinary, or such as a device can copy from while it works.
pub trait Memory: AsRef<[u8]> + AsMut<[u8]> + Send + Debug {}

impl<T: AsRef<[u8]> + AsMut<[u8]> + Send + Debug> Memory for T {}

/// Gives memory of a number of bytes.
pub type Allocate = dyn Fn(usize) -> Result<Box<dyn Memory>> + Send + Sync;

/// The pixels of a batch; dereferences to their bytes.
#[derive(Debug)]
pub struct Pixels {
    memory: Box<dyn Memory>,
    length: usize,
}

impl Pixels {
    /// `length` bytes, in the memory of an earlier batch where it is large enough.
    fn new(length: usize, earlier: Option<Self>, allocate: &Allocate) -> Result<Self> {
        match earlier {
            Some(Self { memory, .. }) if (*memory).as_ref().len() >= length => Ok(Self { memory, length }),
            _ => Ok(Self { memory: allocate(length)?, length }),
        }
    }
}

impl Deref for Pixels {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &(*self.memory).as_ref()[..self.length]
    }
}

impl DerefMut for Pixels {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut (*self.memory).as_mut()[..self.length]
    }
}

/// How to load.
#[derive(Clone, Copy, Debug)]
pub struct LoaderOptions {
    /// Side of the images in pixels; others are resized. `None`: no images, the objects are only prepared.
    pub side: Option<usize>,
    /// Threads that decode.
    pub workers: usize,
    /// Decoded batches that may wait for the consumer.
    pub queue: usize,
}

/// An iterator over decoded batches.
pub struct Loader {
    batches: Option<Receiver<Result<Batch>>>,
    used_buffers: SyncSender<Pixels>,
    thread: Option<JoinHandle<()>>,
    waited: Duration,
    /// A batch that [`Self::wait`] found.
    ready: Option<Result<Batch>>,
    /// Nobody wants what is being loaded any more.
    closing: Arc<AtomicBool>,
}

/// How often a consumer that waits for a batch asks whether to go on.
const ASK_INTERVAL: Duration = Duration::from_millis(200);

impl Loader {
    /// Starts to load the batches of `plan`, in order.
    pub fn start<P>(views: Arc<dyn Views>, plan: P, options: LoaderOptions) -> Result<Self>
    where
        P: IntoIterator<Item = Vec<Item>>,
        P::IntoIter: Send + 'static,
    {
        Self::start_in(views, plan, options, Arc::new(|bytes| Ok(Box::new(vec![0; bytes]))))
    }

    /// As [`Self::start`], with memory from `allocate`.
    pub fn start_in<P>(
        views: Arc<dyn Views>,
        plan: P,
        options: LoaderOptions,
        allocate: Arc<Allocate>,
    ) -> Result<Self>
    where
        P: IntoIterator<Item = Vec<Item>>,
        P::IntoIter: Send + 'static,
    {
        let failed =
            |error: &dyn std::fmt::Display| Error::Request(format!("cannot start the loader: {error}"));
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(options.workers.max(1))
            .thread_name(|worker| format!("loader-{worker}"))
            .build()
            .map_err(|error| failed(&error))?;
        let (sender, batches) = sync_channel(options.queue.max(1));
        let (used_buffers, free_buffers) = sync_channel(options.queue.max(1) + 2);
        let plan = plan.into_iter();
        let closing = Arc::new(AtomicBool::new(false));
        let is_closing = Arc::clone(&closing);
        let thread = std::thread::Builder::new()
            .name("loader".to_owned())
            .spawn(move || {
                for items in plan {
                    let side = options.side.unwrap_or(0);
                    let bytes = items.len() * side * side * 3;
                    let batch =
                        Pixels::new(bytes, free_buffers.try_recv().ok(), &*allocate).and_then(|pixels| {
                            pool.install(|| load(&*views, items, options.side, pixels, &is_closing))
                        });
                    let failed = batch.is_err();
                    // The consumer is gone, or there is nothing to go on with.
                    if sender.send(batch).is_err() || failed {
                        return;
                    }
                }
            })
            .map_err(|error| failed(&error))?;
        let (waited, ready) = (Duration::ZERO, None);
        Ok(Self { batches: Some(batches), used_buffers, thread: Some(thread), waited, ready, closing })
    }

    /// Waits for the next batch, or the end; `stop` is asked while nothing comes. Says whether to go on: a batch may take
    /// long to be rendered.
    pub fn wait(&mut self, stop: &dyn Fn() -> bool) -> bool {
        let Some(batches) = self.batches.as_ref().filter(|_| self.ready.is_none()) else { return true };
        let began = Instant::now();
        let goes_on = loop {
            match batches.recv_timeout(ASK_INTERVAL) {
                Ok(batch) => {
                    self.ready = Some(batch);
                    break true;
                }
                Err(RecvTimeoutError::Timeout) if stop() => break false,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break true,
            }
        };
        self.waited += began.elapsed();
        goes_on
    }

    /// How long the consumer has waited for batches so far.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// Gives a batch's memory back for a later one; optional.
    pub fn recycle(&self, batch: Batch) {
        let _ = self.used_buffers.try_send(batch.pixels);
    }
}

/// Decodes one batch on the current pool; leaves early when `closing`.
fn load(
    views: &dyn Views,
    items: Vec<Item>,
    side: Option<usize>,
    mut pixels: Pixels,
    closing: &AtomicBool,
) -> Result<Batch> {
    let bytes = side.map_or(0, |side| side * side * 3);
    let most = views.at_once().max(1);
    let mut rest: &mut [u8] = &mut pixels;
    // Views of one object that stand side by side are asked for together.
    let mut slots: Vec<(&mut [u8], &[Item])> = Vec::with_capacity(items.len());
    for run in items.chunk_by(|a, b| a.0 == b.0).flat_map(|run| run.chunks(most)) {
        let (slot, others) = std::mem::take(&mut rest).split_at_mut(bytes * run.len());
        slots.push((slot, run));
        rest = others;
    }
    // Collected before it is looked at, so that the first failure in order is the one reported.
    let outcomes: Vec<Result<()>> = slots
        .into_par_iter()
        .with_max_len(8)
        .map(|(slot, run)| match side {
            _ if closing.load(Ordering::Relaxed) => {
                Err(Error::Request("the loader was closed before the batch was whole".to_owned()))
            }
            Some(side) => {
                let wanted: Vec<usize> = run.iter().map(|&(_, view)| view).collect();
                views.images(run[0].0, &wanted, side, slot)
            }
            None => views.prepare(run[0].0),
        })
        .collect();
    outcomes.into_iter().collect::<Result<()>>()?;
    Ok(Batch { items, side: side.unwrap_or(0), pixels })
}

impl Iterator for Loader {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(ready) = self.ready.take() {
            return Some(ready);
        }
        let began = Instant::now();
        let batch = self.batches.as_ref()?.recv().ok();
        self.waited += began.elapsed();
        if batch.is_some() {
            return batch;
        }
        // The end of the plan, or of the thread.
        self.batches = None;
        let ended = self.thread.take().map(JoinHandle::join);
        matches!(ended, Some(Err(_))).then(|| Err(Error::Request("a loader thread failed".to_owned())))
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        // The thread leaves at its next image, or, with the queue closed, at its next batch.
        self.closing.store(true, Ordering::Relaxed);
        self.batches = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{Class, Object};
    use scene::Latents;
    use std::sync::atomic::AtomicUsize;

    /// Images whose every byte tells object and view; object 99 fails, and object 98 to be prepared.
    struct Fake;

    impl Views for Fake {
        fn objects(&self) -> &[Object] {
            &[]
        }
        fn classes(&self) -> &[Class] {
            &[]
        }
        fn views(&self) -> usize {
            4
        }
        fn side(&self) -> usize {
            2
        }
        fn has_translation(&self) -> bool {
            false
        }
        fn latents(&self, _: usize, _: usize) -> Latents {
            unreachable!()
        }
        fn image(&self, object: usize, view: usize, _: usize, pixels: &mut [u8]) -> Result<()> {
            assert!(object != 77, "a panic in a worker");
            if object == 99 {
                return Err(Error::Request(format!("object 99, view {view}")));
            }
            std::thread::sleep(Duration::from_micros((object * 37 % 11 * 50) as u64));
            pixels.fill((object * 4 + view) as u8);
            Ok(())
        }
        fn at_once(&self) -> usize {
            3
        }
        fn prepare(&self, object: usize) -> Result<()> {
            if object == 98 { Err(Error::Request("object 98".to_owned())) } else { Ok(()) }
        }
        fn description(&self) -> String {
            String::new()
        }
    }

    fn plan() -> Vec<Vec<Item>> {
        (0..12).map(|batch| (0..batch % 9 + 1).map(|k| (batch + k / 4, k % 4)).collect()).collect()
    }

    #[test]
    fn order_does_not_depend_on_workers_or_queue() {
        for (workers, queue) in [(1, 1), (4, 1), (3, 8)] {
            let options = LoaderOptions { side: Some(2), workers, queue };
            let mut loader = Loader::start(Arc::new(Fake), plan(), options).unwrap();
            let mut seen = Vec::new();
            while let Some(batch) = loader.next() {
                let batch = batch.unwrap();
                for (item, pixels) in batch.items.iter().zip(batch.pixels.chunks_exact(12)) {
                    assert!(pixels.iter().all(|&p| usize::from(p) == item.0 * 4 + item.1));
                }
                seen.push(batch.items.clone());
                loader.recycle(batch);
            }
            assert_eq!(seen, plan());
            assert!(loader.waited() > Duration::ZERO);
        }
    }

    #[test]
    fn the_first_failure_ends_the_epoch() {
        let plan = vec![vec![(1, 0)], vec![(2, 0), (99, 1), (99, 2)], vec![(3, 0)]];
        let options = LoaderOptions { side: Some(2), workers: 3, queue: 4 };
        let results: Vec<_> = Loader::start(Arc::new(Fake), plan, options).unwrap().collect();
        assert_eq!(results.len(), 2);
        assert!(results[0].is_ok());
        assert_eq!(results[1].as_ref().unwrap_err().to_string(), "object 99, view 1");
    }

    #[test]
    fn without_images_objects_are_prepared() {
        let options = LoaderOptions { side: None, workers: 2, queue: 1 };
        let plan = vec![vec![(1, 0), (2, 3)], vec![(98, 0)]];
        let results: Vec<_> = Loader::start(Arc::new(Fake), plan, options).unwrap().collect();
        let first = results[0].as_ref().unwrap();
        assert_eq!((first.items.len(), first.side, first.pixels.len()), (2, 0, 0));
        assert_eq!(results[1].as_ref().unwrap_err().to_string(), "object 98");
    }

    #[test]
    fn a_panic_is_an_error_and_not_an_early_end() {
        let plan = vec![vec![(1, 0)], vec![(77, 0)], vec![(3, 0)]];
        let options = LoaderOptions { side: Some(2), workers: 2, queue: 1 };
        let mut loader = Loader::start(Arc::new(Fake), plan, options).unwrap();
        assert!(loader.next().unwrap().is_ok());
        assert!(loader.next().unwrap().is_err());
        assert!(loader.next().is_none());
    }

    #[test]
    fn a_consumer_may_stop_waiting_for_a_batch_that_takes_long() {
        /// Images of which each takes 20 ms, counted.
        struct Slow(Arc<AtomicUsize>);
        impl Views for Slow {
            fn objects(&self) -> &[Object] {
                &[]
            }
            fn classes(&self) -> &[Class] {
                &[]
            }
            fn views(&self) -> usize {
                1
            }
            fn side(&self) -> usize {
                2
            }
            fn has_translation(&self) -> bool {
                false
            }
            fn latents(&self, _: usize, _: usize) -> Latents {
                unreachable!()
            }
            fn image(&self, _: usize, _: usize, _: usize, _: &mut [u8]) -> Result<()> {
                std::thread::sleep(Duration::from_millis(20));
                self.0.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            fn description(&self) -> String {
                String::new()
            }
        }
        let plan = vec![(0..1000).map(|object| (object, 0)).collect::<Vec<_>>()];
        let options = LoaderOptions { side: Some(2), workers: 1, queue: 1 };
        let count = Arc::new(AtomicUsize::new(0));
        let mut loader = Loader::start(Arc::new(Slow(Arc::clone(&count))), plan, options).unwrap();
        assert!(!loader.wait(&|| true));
        drop(loader);
        assert!(count.load(Ordering::Relaxed) < 1000, "the batch was finished for nobody");
        let mut fast = Loader::start(Arc::new(Fake), vec![vec![(1, 0)]], options).unwrap();
        assert!(fast.wait(&|| false));
        assert!(fast.wait(&|| true), "what is there is no reason to wait");
        assert!(fast.next().unwrap().is_ok());
        assert!(fast.wait(&|| false) && fast.next().is_none());
    }

    #[test]
    fn a_consumer_may_leave_early() {
        let endless = std::iter::repeat(vec![(1, 1); 3]);
        let mut loader =
            Loader::start(Arc::new(Fake), endless, LoaderOptions { side: Some(2), workers: 2, queue: 2 })
                .unwrap();
        assert!(loader.next().unwrap().is_ok());
        drop(loader);
    }
}
