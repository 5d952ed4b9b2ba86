//! A second stream: copies to the device beside the context's work.
//!
//! The pool hands memory out again while the context's stream may still use it, so only memory that nothing else uses may
//! be written here: the caller keeps it apart, and says with events when it is free.

use crate::driver::Handle;
use crate::{Context, Event, Result, View};

/// A stream for copies.
#[derive(Debug)]
pub struct CopyStream {
    context: Context,
    handle: Handle,
}

// SAFETY: stream handles may be used from any thread once the context is current there, which every call sees to.
unsafe impl Send for CopyStream {}
// SAFETY: as above.
unsafe impl Sync for CopyStream {}

impl CopyStream {
    /// A new stream.
    pub fn new(context: &Context) -> Result<Self> {
        Ok(Self { context: context.clone(), handle: context.create_stream()? })
    }

    /// Copies issued from now on wait for `event`.
    pub fn wait_for(&self, event: &Event) -> Result<()> {
        event.hold(self.handle)
    }

    /// Copies `data` to the start of `target`. Data that is not page-locked has been read when this returns.
    ///
    /// # Safety
    /// `target` must be memory of this device that is alive and that no other work uses before [`Self::release`]d.
    /// Page-locked data must be kept, unchanged, until an event of [`Self::mark`] is reached: dropping them waits for
    /// the context's own stream only.
    pub unsafe fn write(&self, target: View, data: &[u8]) -> Result<()> {
        // SAFETY: the caller vouches for the target.
        unsafe { self.context.write_on(self.handle, target, data) }
    }

    /// The end of the copies issued so far.
    pub fn mark(&self) -> Result<Event> {
        let event = Event::untimed(&self.context)?;
        event.record_on(self.handle)?;
        Ok(event)
    }

    /// Work issued on the context's stream from now on waits for the copies issued so far.
    pub fn release(&self) -> Result<()> {
        self.mark()?.hold(self.context.stream())
    }
}

impl Drop for CopyStream {
    fn drop(&mut self) {
        self.context.destroy_stream(self.handle);
    }
}
