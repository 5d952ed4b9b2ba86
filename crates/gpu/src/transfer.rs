//! Data on their way to and from the device while it works: batches that are uploaded beside the step before them, and
//! results that are read once the device has come to them. Nobody waits for the device who need not.

use std::sync::Arc;

use crate::driver::Handle;
use crate::{Buffer, Context, Event, HostBuffer, Result, View};

/// Uploads that are under way or in use at the same time.
const SLOTS: usize = 2;
/// Parts of an upload start at multiples of this.
const ALIGNMENT: usize = 512;

/// Uploads batches on a stream of its own.
#[derive(Debug)]
pub struct Feed {
    context: Context,
    stream: Handle,
    slots: Vec<Slot>,
    uploads: usize,
}

// SAFETY: a stream handle may be used from any thread.
unsafe impl Send for Feed {}

#[derive(Debug)]
struct Slot {
    buffer: Arc<Buffer>,
    staging: HostBuffer,
    /// The upload is done.
    filled: Event,
    /// The work on the slot's former contents is done.
    used: Event,
}

/// Parts of one upload: a buffer, and where in it each part lies.
pub type Parts = (Arc<Buffer>, Vec<View>);

impl Feed {
    /// A feed with a stream of its own.
    pub fn new(context: &Context) -> Result<Self> {
        Ok(Self { context: context.clone(), stream: context.create_stream()?, slots: Vec::new(), uploads: 0 })
    }

    /// Begins to copy `parts` to the device; work issued from now on finds them there. Parts in page-locked memory must
    /// stay as they are until [`Feed::finish`]; others have been read when this returns.
    pub fn upload(&mut self, parts: &[&[u8]]) -> Result<Parts> {
        let mut offsets = Vec::with_capacity(parts.len());
        let (mut bytes, mut staged) = (0, 0);
        for part in parts {
            offsets.push(bytes);
            bytes += part.len().next_multiple_of(ALIGNMENT);
            if !self.context.is_host_memory(part) {
                staged += part.len().next_multiple_of(ALIGNMENT);
            }
        }
        let index = self.uploads % SLOTS;
        self.uploads += 1;
        self.make_room(index, bytes, staged)?;
        let copied = self.copy_parts(index, parts, &offsets);
        // Whatever came of them: copies that were issued read the staging memory until here.
        let slot = &self.slots[index];
        slot.filled.record_on(self.stream)?;
        let views = copied?;
        slot.filled.hold(self.context.stream())?;
        Ok((Arc::clone(&slot.buffer), views))
    }

    /// Issues the copies of `parts` to their places in slot `index`.
    fn copy_parts(&mut self, index: usize, parts: &[&[u8]], offsets: &[usize]) -> Result<Vec<View>> {
        let slot = &mut self.slots[index];
        slot.used.hold(self.stream)?;
        let mut views = Vec::with_capacity(parts.len());
        let mut at = 0;
        for (part, &offset) in parts.iter().zip(offsets) {
            let view = slot.buffer.view().part(offset, part.len())?;
            if self.context.is_host_memory(part) {
                // SAFETY: the slot is ours, and the caller keeps the data until they are copied.
                unsafe { self.context.write_on(self.stream, view, part)? };
            } else {
                let staged = &mut slot.staging[at..at + part.len()];
                staged.copy_from_slice(part);
                // SAFETY: as above; the staging memory is not used again before the upload is done.
                unsafe { self.context.write_on(self.stream, view, staged)? };
                at += part.len().next_multiple_of(ALIGNMENT);
            }
            views.push(view);
        }
        Ok(views)
    }

    /// Says that all work on the last upload has been issued, and waits until it has been copied.
    pub fn finish(&mut self) -> Result<()> {
        let Some(last) = self.uploads.checked_sub(1) else { return Ok(()) };
        let slot = &self.slots[last % SLOTS];
        slot.used.record()?;
        slot.filled.wait()
    }

    /// Sees to it that slot `index` exists, is free and large enough.
    fn make_room(&mut self, index: usize, bytes: usize, staged: usize) -> Result<()> {
        let fits = self.slots.get_mut(index).is_some_and(|slot| {
            slot.buffer.bytes() >= bytes
                && slot.staging.len() >= staged
                && Arc::get_mut(&mut slot.buffer).is_some()
        });
        if fits {
            // An upload that was not finished may still be reading the staging memory.
            return self.slots[index].filled.wait();
        }
        let slot = Slot {
            buffer: Arc::new(self.context.allocate(bytes)?),
            staging: self.context.allocate_host(staged)?,
            filled: Event::untimed(&self.context)?,
            used: Event::untimed(&self.context)?,
        };
        // Work that was issued before may still use the memory that we were given.
        slot.used.record()?;
        if index < self.slots.len() {
            self.slots[index].filled.wait()?;
            self.slots[index] = slot;
        } else {
            self.slots.push(slot);
        }
        Ok(())
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        for slot in &self.slots {
            let _ = slot.filled.wait();
        }
        self.context.destroy_stream(self.stream);
    }
}

/// Results on their way to the host.
#[derive(Debug)]
pub struct Readback {
    memory: HostBuffer,
    parts: Vec<(usize, usize)>,
    done: Event,
}

impl Readback {
    /// Whether the results have arrived.
    pub fn is_ready(&self) -> Result<bool> {
        self.done.is_reached()
    }

    /// Waits for the results.
    pub fn wait(&self) -> Result<()> {
        self.done.wait()
    }

    /// The bytes of part `index`; waits for them.
    pub fn bytes(&self, index: usize) -> Result<&[u8]> {
        self.wait()?;
        let (offset, length) = self.parts.get(index).copied().unwrap_or_default();
        Ok(&self.memory[offset..offset + length])
    }
}

impl Drop for Readback {
    fn drop(&mut self) {
        // The device must not write into memory that somebody else was given.
        if self.done.wait().is_ok() {
            self.memory.settle();
        }
    }
}

impl Context {
    /// Begins to copy `views` to the host, as they are after the work issued so far.
    ///
    /// # Safety
    /// The views must be memory of this device that is alive.
    pub unsafe fn begin_read(&self, views: &[View]) -> Result<Readback> {
        let mut parts = Vec::with_capacity(views.len());
        let mut bytes = 0;
        for view in views {
            parts.push((bytes, view.bytes));
            bytes += view.bytes.next_multiple_of(16);
        }
        let memory = self.allocate_host(bytes)?;
        let done = Event::untimed(self)?;
        self.bind()?;
        let driver = self.driver();
        for (view, (offset, length)) in views.iter().zip(&parts) {
            // SAFETY: the memory is page-locked and kept until the event is reached.
            driver.check("cuMemcpyDtoHAsync", unsafe {
                let target = memory.pointer().add(*offset).cast();
                (driver.copy_to_host)(target, view.address, *length, self.stream())
            })?;
        }
        done.record()?;
        Ok(Readback { memory, parts, done })
    }
}
