//! A thread's own working memory, grown once and kept.

use std::cell::Cell;

thread_local! {
    static SCRATCH: Cell<Vec<f32>> = const { Cell::new(Vec::new()) };
}

/// Calls `work` with `len` floats of unspecified contents. Must not be nested within the same thread's `work` for
/// speed (an inner call allocates); it is correct nevertheless.
pub(crate) fn with_scratch<R>(len: usize, work: impl FnOnce(&mut [f32]) -> R) -> R {
    let mut memory = SCRATCH.take();
    if memory.len() < len {
        memory.resize(len, 0.0);
    }
    let result = work(&mut memory[..len]);
    SCRATCH.set(memory);
    result
}
