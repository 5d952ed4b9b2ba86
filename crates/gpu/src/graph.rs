//! Work that is issued once and then repeated as a whole: a CUDA graph. Issuing a thousand small kernels keeps a host
//! busy for longer than a GPU needs for them; issuing a graph of them takes microseconds.
//!
//! A graph repeats the same kernels on the same addresses. Memory that it uses must therefore not be handed to anybody
//! who keeps it: what is allocated inside [`Context::scratch`] comes from a pool of its own, and what that pool gives to
//! one piece of work it may give to the next, as long as all of it is issued in order.

use std::cell::Cell;

use crate::driver::Handle;
use crate::{Context, Error, Result};

/// Work that can be repeated.
#[derive(Debug)]
pub struct Graph {
    context: Context,
    instance: Handle,
}

// SAFETY: a graph's handle may be used from any thread, one at a time.
unsafe impl Send for Graph {}

/// CU_STREAM_CAPTURE_MODE_RELAXED: nothing is forbidden to other threads meanwhile.
const RELAXED: i32 = 2;

impl Graph {
    /// Issues the work once more.
    pub fn launch(&self) -> Result<()> {
        self.context.bind()?;
        let driver = self.context.driver();
        // SAFETY: both handles are alive.
        driver.check("cuGraphLaunch", unsafe { (driver.graph_launch)(self.instance, self.context.stream()) })
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // It may still be running.
        let _ = self.context.synchronize();
        // SAFETY: the handle is ours and not used again.
        unsafe { (self.context.driver().graph_instance_destroy)(self.instance) };
    }
}

thread_local! {
    /// Whether memory comes from the scratch pool. Of the thread, not of the context: another thread's buffers must
    /// last, whatever this one does meanwhile.
    static USES_SCRATCH: Cell<bool> = const { Cell::new(false) };
}

/// Whether what this thread allocates now is scratch.
pub(crate) fn uses_scratch() -> bool {
    USES_SCRATCH.get()
}

/// Restores where memory comes from.
struct Restore(bool);

impl Drop for Restore {
    fn drop(&mut self) {
        USES_SCRATCH.set(self.0);
    }
}

impl Context {
    /// Does `work` with memory from the scratch pool, of which nothing may be used after the work that is issued next.
    pub fn scratch<T>(&self, work: impl FnOnce() -> T) -> T {
        let _restore = Restore(USES_SCRATCH.replace(true));
        work()
    }

    /// Notes down what `work` issues instead of doing it. Nothing in it may wait for the device or copy from the host,
    /// and the memory it uses must stay what it is: parameters and inputs that stay in place, and scratch.
    pub fn capture<T, E: From<Error>>(
        &self,
        work: impl FnOnce() -> std::result::Result<T, E>,
    ) -> std::result::Result<(T, Graph), E> {
        self.bind()?;
        let driver = self.driver();
        // SAFETY: the stream is alive.
        driver.check("cuStreamBeginCapture", unsafe { (driver.capture_begin)(self.stream(), RELAXED) })?;
        let done = self.scratch(work);
        let mut graph = std::ptr::null_mut();
        // SAFETY: writes one handle, or null where the capture failed.
        let status = unsafe { (driver.capture_end)(self.stream(), &mut graph) };
        let mut instance = std::ptr::null_mut();
        let made = done.and_then(|value| {
            driver.check("cuStreamEndCapture", status)?;
            // SAFETY: writes one handle.
            driver.check("cuGraphInstantiate", unsafe {
                (driver.graph_instantiate)(&mut instance, graph, 0)
            })?;
            Ok((value, Graph { context: self.clone(), instance }))
        });
        if !graph.is_null() {
            // SAFETY: the graph is ours; its instance does not need it.
            unsafe { (driver.graph_destroy)(graph) };
        }
        made
    }
}
