//! Device time per operation: named stretches of the stream, timed by events.

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::{Context, Event, Result};

/// Device time of all stretches of one name.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct ProfileEntry {
    /// The name.
    pub name: String,
    /// How often it ran.
    pub count: usize,
    /// Milliseconds in all.
    pub milliseconds: f64,
    /// Floating-point operations in all, as the caller counted them.
    pub operations: f64,
    /// Bytes of device memory read and written at least, as the caller counted them.
    pub bytes: f64,
}

#[derive(Debug)]
struct Stretch {
    name: String,
    start: Event,
    end: Event,
    operations: f64,
    bytes: f64,
}

/// The stretches recorded since profiling was switched on.
#[derive(Debug, Default)]
pub(crate) struct Profile {
    stretches: Mutex<Option<Vec<Stretch>>>,
}

/// A stretch of the stream being timed; ends when dropped.
#[derive(Debug)]
#[must_use]
pub struct Scope<'a> {
    context: &'a Context,
    stretch: Option<Stretch>,
}

impl Drop for Scope<'_> {
    fn drop(&mut self) {
        if let Some(stretch) = self.stretch.take()
            && stretch.end.record().is_ok()
            && let Ok(mut stretches) = self.context.profile().stretches.lock()
            && let Some(stretches) = stretches.as_mut()
        {
            stretches.push(stretch);
        }
    }
}

impl Context {
    /// Starts to record the time of every [`Context::scope`].
    pub fn start_profile(&self) {
        if let Ok(mut stretches) = self.profile().stretches.lock() {
            *stretches = Some(Vec::new());
        }
    }

    /// Times the work issued until the returned value is dropped, under `name`, when profiling is on. `operations` and
    /// `bytes`: the arithmetic and the memory traffic that the work needs at least.
    pub fn scope(&self, name: impl FnOnce() -> String, operations: f64, bytes: f64) -> Scope<'_> {
        let is_on = self.profile().stretches.lock().is_ok_and(|stretches| stretches.is_some());
        let begin = || -> Result<Stretch> {
            let stretch =
                Stretch { name: name(), start: Event::new(self)?, end: Event::new(self)?, operations, bytes };
            stretch.start.record()?;
            Ok(stretch)
        };
        Scope { context: self, stretch: if is_on { begin().ok() } else { None } }
    }

    /// Ends profiling and returns the time per name, the longest first.
    pub fn finish_profile(&self) -> Result<Vec<ProfileEntry>> {
        self.synchronize()?;
        let stretches = self.profile().stretches.lock().ok().and_then(|mut stretches| stretches.take());
        let mut entries: BTreeMap<String, ProfileEntry> = BTreeMap::new();
        for stretch in stretches.unwrap_or_default() {
            let milliseconds = stretch.end.milliseconds_since(&stretch.start)?;
            let entry = entries.entry(stretch.name.clone()).or_insert_with(|| ProfileEntry {
                name: stretch.name.clone(),
                count: 0,
                milliseconds: 0.0,
                operations: 0.0,
                bytes: 0.0,
            });
            entry.count += 1;
            entry.milliseconds += milliseconds;
            entry.operations += stretch.operations;
            entry.bytes += stretch.bytes;
        }
        let mut entries: Vec<ProfileEntry> = entries.into_values().collect();
        entries.sort_by(|a, b| b.milliseconds.total_cmp(&a.milliseconds));
        Ok(entries)
    }
}
