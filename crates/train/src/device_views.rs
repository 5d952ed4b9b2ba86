//! Views that are rendered on the GPU that trains on them, and never leave its memory.
//!
//! The pool of views lies in device memory. A batch takes what the pool has; what it has not was rendered ahead, beside the
//! steps before it, and is put into the pool when its batch comes. Which view an image shows is decided before, by the
//! plan; so what is in the pool, and whether anything fits into it, never changes a number.

mod ahead;
mod maker;
mod objects;
mod room;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dataset::{OnTheFly, Views};
use engine::cuda::{CudaDevice, Pictures, Place};
use engine::{Device, Tensor};
use gpu::Event;
use render::cuda::Renderer;

use crate::batches::Item;
use crate::error::{Error, Result};
use ahead::Ahead;
use maker::{Made, Maker, Order};
use room::Room;

pub use objects::{DeviceObject, DeviceObjects};

#[cfg(test)]
mod tests;

/// Device memory that views may take, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// The pool's, at most.
    pub pool: usize,
    /// That of objects, at most; `None`: a third of what is free.
    pub objects: Option<usize>,
}

/// The pool and the renderer of a device.
pub struct DeviceViews {
    // Ends first, since it writes into the memory of the others.
    maker: Maker,
    views: Arc<OnTheFly<DeviceObjects>>,
    device: Arc<CudaDevice>,
    side: usize,
    pool: Pictures,
    /// The view in each place of the pool, plus one; 0: none.
    held: Vec<usize>,
    /// What the next batches will want.
    ahead: Ahead,
    /// Views in an order at most, where objects do not all fit into device memory.
    most_at_once: usize,
    /// Views that were ordered for them, in order.
    staged: VecDeque<Staged>,
    /// Copies within device memory that are still to be issued.
    copies: Vec<(Place, Place)>,
    /// The objects whose whole pool is to be rendered before the first batch.
    to_fill: Range<usize>,
    rendered: Arc<AtomicU64>,
}

/// Views of one order.
struct Staged {
    pictures: Pictures,
    /// Known once they are being rendered.
    made: Option<Made>,
    /// Items of the order, and how many of them were taken.
    count: usize,
    taken: usize,
}

impl std::fmt::Debug for DeviceViews {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "DeviceViews {{ {} places, {} rendered }}", self.held.len(), self.rendered())
    }
}

/// Batches and images that are announced before they come, at least: so many that large orders come together even if
/// few of their views are fresh.
const BATCHES_AHEAD: usize = 32;
const IMAGES_AHEAD: usize = 16 * MOST_AT_ONCE;

/// Batches of `pairs` that are announced before they come.
pub fn look_ahead(pairs: usize) -> u64 {
    BATCHES_AHEAD.max(IMAGES_AHEAD.div_ceil(2 * pairs.max(1))) as u64
}

/// Views rendered at once, and where objects do not all fit into device memory: each of them comes once an order.
const AT_ONCE: usize = 1024;
const MOST_AT_ONCE: usize = 8192;

/// Orders for later batches that may be under way.
const MOST_ORDERS: usize = 4;

/// The share of the memory that is free which the pool may take at most, and all views made ahead.
const MOST_OF_FREE: f64 = 0.4;
const MOST_AHEAD: f64 = 0.05;

impl DeviceViews {
    /// A pool for views of `side` x `side` pixels.
    pub fn new(
        views: Arc<OnTheFly<DeviceObjects>>,
        device: &Arc<CudaDevice>,
        side: usize,
        memory: Memory,
    ) -> Result<Self> {
        let context = device.context();
        let free = context.free_bytes().map_err(engine::Error::from)?;
        let share = |share: f64| (share * free as f64) as usize;
        let bytes = Renderer::picture_bytes(side as u32);
        let pool = memory.pool.min(share(MOST_OF_FREE));
        let places = (views.objects().len() * views.views()).min(pool / bytes);
        let most_at_once = (share(MOST_AHEAD) / (MOST_ORDERS * bytes)).clamp(16, MOST_AT_ONCE);
        let pool = Pictures::new(device, places, side)?;
        let maker = Maker::start(&views, context, side, memory.objects)?;
        Ok(Self {
            maker,
            ahead: Ahead::new(views.views(), places, most_at_once.min(AT_ONCE)),
            most_at_once,
            views,
            device: Arc::clone(device),
            side,
            pool,
            held: vec![0; places],
            staged: VecDeque::new(),
            copies: Vec::new(),
            to_fill: 0..0,
            rendered: Arc::default(),
        })
    }

    /// Renders all views of `objects` before the first batch, as far as they fit: for runs that will want all of them.
    pub fn fill(mut self, objects: Range<usize>) -> Self {
        self.to_fill = objects;
        self.items_to_fill().for_each(|item| self.ahead.will_hold(item));
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
        self.maker.waited()
    }

    /// Says what a later batch will want.
    pub fn announce(&mut self, items: &[Item]) -> Result<()> {
        self.ahead.announce(items);
        self.order_ahead()
    }

    /// The pictures of the batch that was announced first: its `items`, some of which may differ from those announced.
    /// First views and then second ones: (pairs, side, side, 3) each, on their way when this returns.
    pub fn announced_pictures(&mut self, items: &[Item]) -> Result<[Tensor; 2]> {
        self.fill_pool()?;
        let batch = Room::new(&self.device, self.side, items.len())?;
        let mut missing: Vec<usize> = Vec::new();
        let mut is_there = vec![false; items.len()];
        if let Some(announced) = self.ahead.next_batch() {
            for index in announced.fresh {
                let made = self.next_staged()?;
                if let (Some(from), true) = (made, announced.items.get(index) == items.get(index)) {
                    self.copies.push((from, batch.place(index)?));
                    self.keep(items[index], from)?;
                    is_there[index] = true;
                }
            }
        }
        missing.extend((0..items.len()).filter(|&index| !is_there[index]));
        self.add(items, &missing, &batch)?;
        self.order_ahead()?;
        Ok(batch.into_tensors())
    }

    /// The pictures of `items`, of which nothing was announced.
    pub fn pictures(&mut self, items: &[Item]) -> Result<[Tensor; 2]> {
        self.fill_pool()?;
        let batch = Room::new(&self.device, self.side, items.len())?;
        let all: Vec<usize> = (0..items.len()).collect();
        self.add(items, &all, &batch)?;
        Ok(batch.into_tensors())
    }

    /// Puts pictures into a batch: what the pool has, and the rest as soon as it is rendered.
    fn add(&mut self, items: &[Item], indexes: &[usize], batch: &Room) -> Result<()> {
        // What was kept before this may be read now.
        self.copy()?;
        let mut missing = Vec::new();
        for &index in indexes {
            match self.held_at(items[index]) {
                Some(place) => self.copies.push((self.pool.place(place)?, batch.place(index)?)),
                None => missing.push(index),
            }
        }
        self.copy()?;
        let wanted: Vec<Item> = missing.iter().map(|&index| items[index]).collect();
        for (indexes, wanted) in missing.chunks(AT_ONCE).zip(wanted.chunks(AT_ONCE)) {
            let (pictures, numbers) = self.make_now(wanted, false)?;
            for ((&index, &item), number) in indexes.iter().zip(wanted).zip(numbers) {
                let Some(number) = number else {
                    // Says why.
                    self.views.prepared(item.0)?;
                    return Err(Error::Request(format!("a view of object {} was not rendered", item.0)));
                };
                let from = pictures.place(number)?;
                self.copies.push((from, batch.place(index)?));
                self.keep(item, from)?;
            }
            self.copy()?;
        }
        Ok(())
    }

    /// Where the pool has `item`, if it has.
    fn held_at(&self, item: Item) -> Option<usize> {
        self.ahead.place_of(item).filter(|&place| self.held[place] == item.1 + 1)
    }

    /// Lets a rendered view take its place in the pool.
    fn keep(&mut self, item: Item, from: Place) -> Result<()> {
        if let Some(place) = self.ahead.place_of(item) {
            self.held[place] = item.1 + 1;
            self.copies.push((from, self.pool.place(place)?));
        }
        Ok(())
    }

    /// Issues the copies that are to be made.
    fn copy(&mut self) -> Result<()> {
        if !self.copies.is_empty() {
            // SAFETY: all stores are alive, and no place is both read and written before the next call.
            unsafe { self.pool.copy(&self.device, &self.copies)? };
            self.copies.clear();
        }
        Ok(())
    }

    /// Orders what later batches will miss.
    fn order_ahead(&mut self) -> Result<()> {
        while self.staged.len() < MOST_ORDERS
            && let Some(items) = self.ahead.next_order()
        {
            self.stage(items)?;
        }
        Ok(())
    }

    fn stage(&mut self, items: Vec<Item>) -> Result<()> {
        let count = items.len();
        let pictures = self.order(items, false)?;
        self.staged.push_back(Staged { pictures, made: None, count, taken: 0 });
        Ok(())
    }

    /// Begins to render views into memory of their own.
    fn order(&mut self, items: Vec<Item>, once: bool) -> Result<Pictures> {
        let mut pictures = Pictures::new(&self.device, items.len(), self.side)?;
        let target = pictures.view()?;
        // Work that was issued before may still use the memory that we were given.
        let free = Event::untimed(self.device.context()).map_err(engine::Error::from)?;
        free.record().map_err(engine::Error::from)?;
        self.rendered.fetch_add(items.len() as u64, Ordering::Relaxed);
        self.maker.order(Order { items, once, target, free })?;
        Ok(pictures)
    }

    /// Renders views for the work issued next.
    fn make_now(&mut self, items: &[Item], once: bool) -> Result<(Pictures, Vec<Option<usize>>)> {
        let pictures = self.order(items.to_vec(), once)?;
        // Those before it come first.
        for index in 0..self.staged.len() {
            if self.staged[index].made.is_none() {
                self.staged[index].made = Some(self.next_made()?);
            }
        }
        let made = self.next_made()?;
        self.device.context().wait_for(&made.done).map_err(engine::Error::from)?;
        Ok((pictures, made.numbers))
    }

    /// The next order that is being rendered.
    fn next_made(&mut self) -> Result<Made> {
        let made = self.maker.next()?;
        if made.is_tight {
            self.ahead.order_at_once(self.most_at_once);
        }
        Ok(made)
    }

    /// The next of the views that were made ahead; none where its object cannot be loaded.
    fn next_staged(&mut self) -> Result<Option<Place>> {
        if self.staged.front().is_some_and(|staged| staged.taken == staged.count) {
            // Its memory is used until the copies from it are issued.
            self.copy()?;
            self.staged.pop_front();
            self.order_ahead()?;
        }
        if self.staged.is_empty()
            && let Some(items) = self.ahead.order()
        {
            self.stage(items)?;
        }
        if self.staged.front().is_some_and(|staged| staged.made.is_none()) {
            let made = self.next_made()?;
            if let Some(staged) = self.staged.front_mut() {
                staged.made = Some(made);
            }
        }
        let Some(Staged { pictures, made: Some(made), taken, .. }) = self.staged.front_mut() else {
            return Ok(None);
        };
        if *taken == 0 {
            self.device.context().wait_for(&made.done).map_err(engine::Error::from)?;
        }
        let number = made.numbers.get(*taken).copied().flatten();
        *taken += 1;
        Ok(number.map(|number| pictures.place(number)).transpose()?)
    }

    /// Renders `items` again and again for at least `time`, as fast as this device can if nobody trains beside it: views a
    /// second.
    pub fn rendering_rate(&mut self, items: &[Item], time: Duration) -> Result<f64> {
        let context = self.device.context().clone();
        // Once for copying objects and taking memory.
        for part in items.chunks(AT_ONCE) {
            self.make_now(part, false)?;
        }
        context.synchronize().map_err(engine::Error::from)?;
        let (began, mut views, mut under_way) = (Instant::now(), 0, VecDeque::new());
        for part in items.chunks(self.ahead.at_once()).cycle() {
            if began.elapsed() >= time {
                break;
            }
            under_way.push_back(self.order(part.to_vec(), false)?);
            views += part.len();
            if under_way.len() > 2 {
                let done = self.maker.next()?.done;
                done.wait().map_err(engine::Error::from)?;
                under_way.pop_front();
            }
        }
        for _ in under_way {
            self.maker.next()?.done.wait().map_err(engine::Error::from)?;
        }
        Ok(views as f64 / began.elapsed().as_secs_f64())
    }

    fn items_to_fill(&self) -> impl Iterator<Item = Item> + use<> {
        let (views, places) = (self.views.views(), self.held.len());
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
            let (pictures, numbers) = self.make_now(part, true)?;
            for (&item, number) in part.iter().zip(numbers) {
                // What cannot be loaded is said when it is needed.
                if let Some(number) = number {
                    self.keep(item, pictures.place(number)?)?;
                }
            }
            self.copy()?;
        }
        self.maker.forget_objects()
    }
}

/// The GPU behind `device`.
pub fn cuda(device: &Device) -> Result<&Arc<CudaDevice>> {
    match device {
        Device::Cuda(cuda) => Ok(cuda),
        Device::Cpu(_) => {
            Err(Error::Request("views are rendered on a device only if it is a GPU".to_owned()))
        }
    }
}
