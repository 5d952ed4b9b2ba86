//! Views that are rendered on the GPU that trains on them, and never leave its memory.
//!
//! The pool of images lies in device memory. A batch takes what the pool has; what it has not was rendered ahead, beside
//! the steps before it, and is put into the pool when its batch comes. Which view an image shows is decided before, by the
//! plan; so what is in the pool, and whether anything fits into it, never changes a number.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use gpu::{Context, Event};
use render::Quality;
use render::cuda::Renderer;

use super::images::{Address, Copies, ImageBuffer, PairImages};
use super::objects::DeviceObjects;
use super::prefetch::Prefetch;
use super::shots::Shots;
use super::thread::{DeviceRequest, Pending, RenderThread, Rendered};
use crate::error::{Error, Result};
use crate::loader::Item;
use crate::object::Split;
use crate::on_the_fly::OnTheFly;
use crate::views::Views;

/// Device memory that views may take, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct PoolMemory {
    /// The pool's, at most.
    pub pool: usize,
    /// That of objects, at most; `None`: a third of what is free.
    pub objects: Option<usize>,
}

/// The images of a device, and the thread that renders them there.
pub struct RenderPool {
    // Ends first, since it writes into the memory of the others.
    thread: RenderThread,
    views: Arc<OnTheFly<DeviceObjects>>,
    context: Context,
    side: usize,
    images: ImageBuffer,
    /// The view in each place of the pool, plus one; 0: none.
    held: Vec<usize>,
    /// What the next batches will want.
    prefetch: Prefetch,
    /// Views in a request at most, where objects do not all fit into device memory.
    most_at_once: usize,
    /// Whether the next request's objects come in descending order.
    is_backward: bool,
    /// Views that were requested for the next batches, in order.
    staged: VecDeque<Staged>,
    copies: Copies,
    /// The objects whose whole pool is to be rendered before the first batch.
    to_fill: Range<usize>,
    rendered: Arc<AtomicU64>,
    waited: Duration,
}

/// Views of one request.
struct Staged {
    images: ImageBuffer,
    pending: Pending,
    /// Known once they are being rendered.
    rendered: Option<Rendered>,
    /// Items of the request, and how many of them were taken.
    count: usize,
    taken: usize,
}

impl std::fmt::Debug for RenderPool {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "RenderPool {{ {} places, {} rendered }}", self.held.len(), self.rendered())
    }
}

/// Batches and images that are announced before they come, at least: so many that large requests come together even if
/// few of their views are fresh.
const BATCHES_AHEAD: usize = 32;
const IMAGES_AHEAD: usize = 16 * MOST_AT_ONCE;

/// Batches of `pairs` that are announced before they come.
pub fn look_ahead(pairs: usize) -> u64 {
    BATCHES_AHEAD.max(IMAGES_AHEAD.div_ceil(2 * pairs.max(1))) as u64
}

/// Views rendered at once, and where objects do not all fit into device memory: each of them comes once a request.
const AT_ONCE: usize = 1024;
const MOST_AT_ONCE: usize = 8192;

/// Requests for later batches that may be under way.
const MOST_REQUESTS: usize = 4;

/// The share of the memory that is free which the pool may take at most, and all views rendered ahead.
const MOST_OF_FREE: f64 = 0.4;
const MOST_AHEAD: f64 = 0.05;

/// Scratch memory of the renderer in bytes, at most; the rest is for the network.
const MOST_SCRATCH: usize = 8 << 30;

/// A renderer beside the work of `context`, with `objects` bytes of objects at most, or a third of what is free.
pub fn renderer_beside(context: &Context, quality: Quality, objects: Option<usize>) -> Result<Renderer> {
    let beside = context.beside()?;
    let free = beside.free_bytes()?;
    let scratch = (free / 6).min(MOST_SCRATCH);
    Ok(Renderer::with_memory(&beside, quality, objects.unwrap_or(free / 3), scratch)?)
}

impl RenderPool {
    /// A pool for images of `side` x `side` pixels on the device of `context`, rendered beside its work.
    pub fn new(
        views: Arc<OnTheFly<DeviceObjects>>,
        context: &Context,
        side: usize,
        memory: PoolMemory,
    ) -> Result<Self> {
        let copies = Copies::new(context, side)?;
        let free = context.free_bytes()?;
        let share = |share: f64| (share * free as f64) as usize;
        let bytes = Renderer::image_bytes(side as u32);
        let pool = memory.pool.min(share(MOST_OF_FREE));
        let kept = views.views_of(Split::Train, 0).len();
        let places = (views.objects().len() * kept).min(pool / bytes);
        let most_at_once = (share(MOST_AHEAD) / (MOST_REQUESTS * bytes)).clamp(16, MOST_AT_ONCE);
        let images = ImageBuffer::new(context, places, side)?;
        let renderer = renderer_beside(context, views.source().loader.quality, memory.objects)?;
        Ok(Self {
            thread: RenderThread::start(renderer)?,
            prefetch: Prefetch::new(views.views(), places, most_at_once.min(AT_ONCE)).keeping(kept),
            most_at_once,
            is_backward: false,
            views,
            context: context.clone(),
            side,
            images,
            held: vec![0; places],
            staged: VecDeque::new(),
            copies,
            to_fill: 0..0,
            rendered: Arc::default(),
            waited: Duration::ZERO,
        })
    }

    /// Renders all views of `objects` before the first batch, as far as they fit: for runs that will want all of them.
    pub fn fill(mut self, objects: Range<usize>) -> Self {
        self.to_fill = objects;
        self.items_to_fill().for_each(|item| self.prefetch.will_hold(item));
        self
    }

    /// Views rendered so far.
    pub fn rendered(&self) -> u64 {
        self.rendered.load(Ordering::Relaxed)
    }

    /// [`Self::rendered`], for somebody who watches from elsewhere.
    pub fn rendered_counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.rendered)
    }

    /// How long batches waited for views to be rendered, on the host.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// Says what a later batch will want.
    pub fn announce(&mut self, items: &[Item]) -> Result<()> {
        self.prefetch.announce(items);
        self.request_ahead()
    }

    /// The images of the batch that was announced first: its `items`, some of which may differ from those announced.
    /// They are on their way when this returns.
    pub fn announced_images(&mut self, items: &[Item]) -> Result<PairImages> {
        self.fill_pool()?;
        let batch = PairImages::new(&self.context, items.len(), self.side)?;
        let mut is_there = vec![false; items.len()];
        if let Some(announced) = self.prefetch.next_batch() {
            for index in announced.fresh {
                let rendered = self.next_staged()?;
                if let (Some(from), true) = (rendered, announced.items.get(index) == items.get(index)) {
                    self.copies.add(from, batch.address(index)?);
                    self.keep(items[index], from)?;
                    is_there[index] = true;
                }
            }
        }
        let missing: Vec<usize> = (0..items.len()).filter(|&index| !is_there[index]).collect();
        self.add(items, &missing, &batch, true)?;
        self.request_ahead()?;
        Ok(batch)
    }

    /// The images of `items`, of which nothing was announced. They take empty places of the pool, but none of an image that
    /// announced batches may want.
    pub fn images(&mut self, items: &[Item]) -> Result<PairImages> {
        self.fill_pool()?;
        let batch = PairImages::new(&self.context, items.len(), self.side)?;
        let all: Vec<usize> = (0..items.len()).collect();
        self.add(items, &all, &batch, false)?;
        Ok(batch)
    }

    /// Puts images into a batch: what the pool has, and the rest as soon as it is rendered, which is then kept, with
    /// `replace` in place of others.
    fn add(&mut self, items: &[Item], indexes: &[usize], batch: &PairImages, replace: bool) -> Result<()> {
        // What was kept before this may be read now.
        self.copy()?;
        let mut missing = Vec::new();
        for &index in indexes {
            match self.held_at(items[index]) {
                Some(place) => self.copies.add(self.images.address(place)?, batch.address(index)?),
                None => missing.push(index),
            }
        }
        self.copy()?;
        let wanted: Vec<Item> = missing.iter().map(|&index| items[index]).collect();
        for (indexes, wanted) in missing.chunks(AT_ONCE).zip(wanted.chunks(AT_ONCE)) {
            let (images, numbers) = self.render_now(wanted, false)?;
            for ((&index, &item), number) in indexes.iter().zip(wanted).zip(numbers) {
                let Some(number) = number else {
                    // Says why.
                    self.views.prepared(item.0)?;
                    return Err(Error::Request(format!("a view of object {} was not rendered", item.0)));
                };
                let from = images.address(number)?;
                self.copies.add(from, batch.address(index)?);
                let is_empty = |place: usize| self.held[place] == 0;
                if replace || self.prefetch.place_of(item).is_some_and(is_empty) {
                    self.keep(item, from)?;
                }
            }
            self.copy()?;
        }
        Ok(())
    }

    /// Where the pool has `item`, if it has.
    fn held_at(&self, item: Item) -> Option<usize> {
        self.prefetch.place_of(item).filter(|&place| self.held[place] == item.1 + 1)
    }

    /// Lets a rendered view take its place in the pool.
    fn keep(&mut self, item: Item, from: Address) -> Result<()> {
        if let Some(place) = self.prefetch.place_of(item) {
            self.held[place] = item.1 + 1;
            self.copies.add(from, self.images.address(place)?);
        }
        Ok(())
    }

    /// Issues the copies that are to be made.
    fn copy(&mut self) -> Result<()> {
        // SAFETY: all images are alive, and no place is both read and written before the next call.
        unsafe { self.copies.issue() }
    }

    /// Requests what later batches will miss.
    fn request_ahead(&mut self) -> Result<()> {
        while self.staged.len() < MOST_REQUESTS
            && let Some(items) = self.prefetch.due_request()
        {
            self.stage(items)?;
        }
        Ok(())
    }

    fn stage(&mut self, items: Vec<Item>) -> Result<()> {
        let count = items.len();
        let (images, pending) = self.request(items, false)?;
        self.staged.push_back(Staged { images, pending, rendered: None, count, taken: 0 });
        Ok(())
    }

    /// Begins to render views into memory of their own; with `once` their objects are not needed again.
    fn request(&mut self, items: Vec<Item>, once: bool) -> Result<(ImageBuffer, Pending)> {
        let images = ImageBuffer::new(&self.context, items.len(), self.side)?;
        // Work that was issued before may still use the memory that we were given.
        let free = Event::untimed(&self.context)?;
        free.record()?;
        self.rendered.fetch_add(items.len() as u64, Ordering::Relaxed);
        let (views, is_backward) = (Arc::clone(&self.views), self.is_backward);
        self.is_backward = !is_backward;
        let shots = Box::new(move || Shots::of(&views, &items, once, is_backward));
        let request = DeviceRequest { shots, side: self.side, target: images.view(), free };
        Ok((images, self.thread.to_device(request)?))
    }

    /// Renders views for the work issued next.
    fn render_now(&mut self, items: &[Item], once: bool) -> Result<(ImageBuffer, Vec<Option<usize>>)> {
        let (images, pending) = self.request(items.to_vec(), once)?;
        let rendered = self.wait(&pending)?;
        self.context.wait_for(&rendered.done)?;
        Ok((images, rendered.numbers))
    }

    /// Waits until a request is being rendered.
    fn wait(&mut self, pending: &Pending) -> Result<Rendered> {
        let began = Instant::now();
        let rendered = pending.wait();
        self.waited += began.elapsed();
        if rendered.as_ref().is_ok_and(|rendered| rendered.has_evicted) {
            self.prefetch.set_at_once(self.most_at_once);
        }
        rendered
    }

    /// The next of the views that were rendered ahead; none where its object cannot be loaded.
    fn next_staged(&mut self) -> Result<Option<Address>> {
        if self.staged.front().is_some_and(|staged| staged.taken == staged.count) {
            // Its memory is used until the copies from it are issued.
            self.copy()?;
            self.staged.pop_front();
            self.request_ahead()?;
        }
        if self.staged.is_empty()
            && let Some(items) = self.prefetch.next_request()
        {
            self.stage(items)?;
        }
        let Some(mut staged) = self.staged.pop_front() else { return Ok(None) };
        let address = self.take(&mut staged);
        self.staged.push_front(staged);
        address
    }

    /// The next image of a request.
    fn take(&mut self, staged: &mut Staged) -> Result<Option<Address>> {
        let rendered = match staged.rendered.take() {
            Some(rendered) => rendered,
            None => {
                let rendered = self.wait(&staged.pending)?;
                self.context.wait_for(&rendered.done)?;
                rendered
            }
        };
        let number = staged.rendered.insert(rendered).numbers.get(staged.taken).copied().flatten();
        staged.taken += 1;
        number.map(|number| staged.images.address(number)).transpose()
    }

    /// Renders `items` again and again for at least `time`, as fast as this device can if nobody trains beside it: views a
    /// second.
    pub fn rendering_rate(&mut self, items: &[Item], time: Duration) -> Result<f64> {
        // Once for copying objects and taking memory.
        for part in items.chunks(AT_ONCE) {
            self.render_now(part, false)?;
        }
        self.context.synchronize()?;
        let (began, mut views, mut under_way) = (Instant::now(), 0, VecDeque::new());
        for part in items.chunks(self.prefetch.at_once()).cycle() {
            if began.elapsed() >= time {
                break;
            }
            under_way.push_back(self.request(part.to_vec(), false)?);
            views += part.len();
            if under_way.len() > 2
                && let Some((_images, pending)) = under_way.pop_front()
            {
                pending.wait()?.done.wait()?;
            }
        }
        for (_images, pending) in under_way {
            pending.wait()?.done.wait()?;
        }
        Ok(views as f64 / began.elapsed().as_secs_f64())
    }

    fn items_to_fill(&self) -> impl Iterator<Item = Item> + use<> {
        let (views, places) = (self.views.views_of(Split::Train, 0).len(), self.held.len());
        self.to_fill
            .clone()
            .flat_map(move |object| (0..views).map(move |view| (object, view)))
            .take_while(move |(object, view)| object * views + view < places)
    }

    /// Renders the pool, some objects after the other; none of them is needed after that.
    fn fill_pool(&mut self) -> Result<()> {
        if self.to_fill.is_empty() {
            return Ok(());
        }
        let items: Vec<Item> = self.items_to_fill().collect();
        self.to_fill = 0..0;
        for part in items.chunks(AT_ONCE) {
            let (images, numbers) = self.render_now(part, true)?;
            for (&item, number) in part.iter().zip(numbers) {
                // What cannot be loaded is said when it is needed.
                if let Some(number) = number {
                    self.keep(item, images.address(number)?)?;
                }
            }
            self.copy()?;
        }
        self.thread.forget_objects()
    }
}
