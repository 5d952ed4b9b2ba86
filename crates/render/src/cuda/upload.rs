//! Objects on their way to the device: through page-locked memory, which all threads fill, so that neither the host nor the
//! device waits for a copy from ordinary memory.

use std::sync::Arc;

use gpu::{Context, CopyStream, Event, HostBuffer, Result, View};
use rayon::prelude::*;

use super::object::Object;

/// Bytes that travel together.
const STAGE: usize = 32 << 20;
/// Bytes that a thread copies at a time.
const PIECE: usize = 1 << 20;
/// Stages in turn.
const STAGES: usize = 2;

/// Page-locked memory, and the end of the copies from it.
#[derive(Debug)]
struct Stage {
    memory: HostBuffer,
    done: Option<Event>,
}

/// Copies to be issued.
#[derive(Debug, Default)]
pub(super) struct Uploads {
    waiting: Vec<(Arc<Object>, View)>,
    stages: Vec<Stage>,
    turn: usize,
}

impl Uploads {
    /// `object` is to be copied to `target`, where nothing uses the memory any more.
    pub fn add(&mut self, object: Arc<Object>, target: View) {
        self.waiting.push((object, target));
    }

    /// Issues all copies; whether there were any.
    pub fn issue(&mut self, context: &Context, stream: &CopyStream) -> Result<bool> {
        let waiting = std::mem::take(&mut self.waiting);
        let mut pieces: Vec<(&[u8], View)> = Vec::new();
        for (object, target) in &waiting {
            for (number, bytes) in object.bytes.chunks(PIECE).enumerate() {
                pieces.push((bytes, target.part(number * PIECE, bytes.len())?));
            }
        }
        let mut rest = pieces.as_slice();
        while !rest.is_empty() {
            let mut total = 0;
            let fits = |(bytes, _): &&(&[u8], View)| {
                total += bytes.len();
                total <= STAGE
            };
            let (now, later) = rest.split_at(rest.iter().take_while(fits).count());
            self.stage(now, context, stream)?;
            rest = later;
        }
        Ok(!waiting.is_empty())
    }

    /// Copies pieces that fit together.
    fn stage(&mut self, pieces: &[(&[u8], View)], context: &Context, stream: &CopyStream) -> Result<()> {
        if self.stages.len() < STAGES {
            self.stages.push(Stage { memory: context.allocate_host(STAGE)?, done: None });
        }
        self.turn = (self.turn + 1) % self.stages.len();
        let stage = &mut self.stages[self.turn];
        if let Some(done) = stage.done.take() {
            done.wait()?;
        }
        let mut room: &mut [u8] = &mut stage.memory;
        let mut parts: Vec<&mut [u8]> = Vec::with_capacity(pieces.len());
        for (bytes, _) in pieces {
            let (part, later) = std::mem::take(&mut room).split_at_mut(bytes.len());
            parts.push(part);
            room = later;
        }
        parts.par_iter_mut().zip(pieces).for_each(|(part, (bytes, _))| part.copy_from_slice(bytes));
        let issued = parts.iter().zip(pieces).try_for_each(|(part, (_, target))| {
            // SAFETY: the target is kept for this copy, and the stage until the copy is done.
            unsafe { stream.write(*target, part) }
        });
        // Whatever came of them: copies that were issued read the stage until here.
        stage.done = Some(stream.mark()?);
        issued
    }
}

impl Drop for Uploads {
    fn drop(&mut self) {
        for done in self.stages.iter().filter_map(|stage| stage.done.as_ref()) {
            // What went wrong is told by whoever uses the objects.
            let _ = done.wait();
        }
    }
}
