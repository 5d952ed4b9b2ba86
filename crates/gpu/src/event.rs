//! Points in the stream of a context, and the time between them as the device saw it.

use std::ffi::c_uint;

use crate::driver::{Handle, NOT_READY};
use crate::{Context, Result};

/// A point in a context's stream.
#[derive(Debug)]
pub struct Event {
    context: Context,
    handle: Handle,
}

// SAFETY: an event handle may be used from any thread.
unsafe impl Send for Event {}

/// CU_EVENT_DISABLE_TIMING
const UNTIMED: c_uint = 2;

impl Event {
    /// An event that has not been recorded yet.
    pub fn new(context: &Context) -> Result<Self> {
        Self::with_flags(context, 0)
    }

    /// An event that tells no time, which costs the device less.
    pub fn untimed(context: &Context) -> Result<Self> {
        Self::with_flags(context, UNTIMED)
    }

    fn with_flags(context: &Context, flags: c_uint) -> Result<Self> {
        context.bind()?;
        let driver = context.driver();
        let mut handle = std::ptr::null_mut();
        // SAFETY: writes one handle.
        driver.check("cuEventCreate", unsafe { (driver.event_create)(&mut handle, flags) })?;
        Ok(Self { context: context.clone(), handle })
    }

    /// Marks the end of the work issued so far.
    pub fn record(&self) -> Result<()> {
        self.record_on(self.context.stream())
    }

    /// Marks the end of the work issued so far on a stream of the same context.
    pub(crate) fn record_on(&self, stream: Handle) -> Result<()> {
        self.context.bind()?;
        let driver = self.context.driver();
        // SAFETY: both handles are alive.
        driver.check("cuEventRecord", unsafe { (driver.event_record)(self.handle, stream) })
    }

    /// Lets the work issued from now on to `stream` wait for this event.
    pub(crate) fn hold(&self, stream: Handle) -> Result<()> {
        self.context.bind()?;
        let driver = self.context.driver();
        // SAFETY: both handles are alive.
        driver.check("cuStreamWaitEvent", unsafe { (driver.stream_wait_event)(stream, self.handle, 0) })
    }

    /// Whether the device has reached the event.
    pub fn is_reached(&self) -> Result<bool> {
        self.context.bind()?;
        let driver = self.context.driver();
        // SAFETY: the handle is alive.
        match unsafe { (driver.event_query)(self.handle) } {
            NOT_READY => Ok(false),
            status => driver.check("cuEventQuery", status).map(|()| true),
        }
    }

    /// Waits until the device has reached the event.
    pub fn wait(&self) -> Result<()> {
        self.context.bind()?;
        let driver = self.context.driver();
        // SAFETY: the handle is alive.
        driver.check("cuEventSynchronize", unsafe { (driver.event_synchronize)(self.handle) })
    }

    /// Milliseconds on the device from `start` to this event; waits for it.
    pub fn milliseconds_since(&self, start: &Self) -> Result<f64> {
        self.wait()?;
        let driver = self.context.driver();
        let mut milliseconds = 0.0f32;
        // SAFETY: writes one number; both events are alive.
        driver.check("cuEventElapsedTime", unsafe {
            (driver.event_elapsed)(&mut milliseconds, start.handle, self.handle)
        })?;
        Ok(f64::from(milliseconds))
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and not used again.
        unsafe { (self.context.driver().event_destroy)(self.handle) };
    }
}

impl Context {
    /// Lets the work issued from now on wait for `event`, which may be of another context on the same device.
    pub fn wait_for(&self, event: &Event) -> Result<()> {
        event.hold(self.stream())
    }
}

/// Times a stretch of device work.
#[derive(Debug)]
pub struct Timer {
    start: Event,
    end: Event,
}

impl Timer {
    /// Starts timing at the work issued next.
    pub fn start(context: &Context) -> Result<Self> {
        let timer = Self { start: Event::new(context)?, end: Event::new(context)? };
        timer.start.record()?;
        Ok(timer)
    }

    /// Milliseconds that the device took for the work issued since; waits for it.
    pub fn stop(self) -> Result<f64> {
        self.end.record()?;
        self.end.milliseconds_since(&self.start)
    }
}
