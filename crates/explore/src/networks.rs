//! The networks of all runs and checkpoints: opened when somebody asks for one, one after the other on a thread of their own,
//! and kept while they are among the last few.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::Device;

use crate::data::Data;
use crate::network::Network;
use crate::refusal::{Refusal, failed};
use crate::run::Run;

/// Networks with their features that are kept in memory.
const KEPT: usize = 4;
/// Networks that may wait to be opened: a slider moves fast.
const WAITING: usize = 4;

/// A run's number and a checkpoint's epoch.
type Key = (usize, u64);

/// See the module.
pub struct Networks {
    runs: Arc<Vec<Run>>,
    data: Arc<Data>,
    device: Device,
    slots: Mutex<Slots>,
    /// Held by whoever opens a network.
    turn: Mutex<()>,
    stop: Arc<AtomicBool>,
}

#[derive(Default)]
struct Slots {
    by_key: HashMap<Key, (Slot, u64)>,
    uses: u64,
}

enum Slot {
    /// So many views are done.
    Loading(Arc<AtomicU64>),
    Ready(Arc<Network>),
    Failed(String),
}

impl Networks {
    /// No network yet; `stop` ends what is being computed.
    pub fn new(runs: Arc<Vec<Run>>, data: Arc<Data>, device: Device, stop: Arc<AtomicBool>) -> Self {
        Self { runs, data, device, slots: Mutex::default(), turn: Mutex::default(), stop }
    }

    /// The network of a run's checkpoint (the newest, where none is named), or how far it is.
    pub fn get(self: &Arc<Self>, run: usize, epoch: Option<u64>) -> Result<Arc<Network>, Refusal> {
        let Some(found) = self.runs.get(run) else {
            return Err(Refusal::Wrong(format!("there is no run {run} (there are {})", self.runs.len())));
        };
        let epochs = found.epochs().map_err(failed)?;
        let epoch = match (epoch, epochs.last()) {
            (Some(epoch), _) if epochs.contains(&epoch) => epoch,
            (Some(epoch), _) => {
                return Err(Refusal::Missing(format!("{} keeps no checkpoint of epoch {epoch}", found.name)));
            }
            (None, Some(newest)) => *newest,
            (None, None) => {
                return Err(Refusal::Missing(format!(
                    "{} has no checkpoint yet; views through its network come with the first one",
                    found.name
                )));
            }
        };
        let key = (run, epoch);
        let total = self.data.truth.index.total() as u64;
        let mut slots = self.lock();
        slots.uses += 1;
        let uses = slots.uses;
        if let Some((slot, used)) = slots.by_key.get_mut(&key) {
            *used = uses;
            return match slot {
                Slot::Ready(network) => Ok(Arc::clone(network)),
                Slot::Loading(done) => {
                    let done = done.load(Ordering::Relaxed);
                    Err(Refusal::Later("features of all views".to_owned(), done, total))
                }
                Slot::Failed(sentence) => {
                    let refusal = failed(&*sentence);
                    // Whoever asks again may have mended it.
                    slots.by_key.remove(&key);
                    Err(refusal)
                }
            };
        }
        let waiting = slots.by_key.values().filter(|(slot, _)| matches!(slot, Slot::Loading(_))).count();
        if waiting < WAITING {
            let done = Arc::new(AtomicU64::new(0));
            slots.by_key.insert(key, (Slot::Loading(Arc::clone(&done)), uses));
            let this = Arc::clone(self);
            let begun =
                std::thread::Builder::new().name("network".to_owned()).spawn(move || this.open(key, &done));
            if let Err(error) = begun {
                slots.by_key.remove(&key);
                return Err(failed(error));
            }
        }
        Err(Refusal::Later("features of all views".to_owned(), 0, total))
    }

    /// Opens a network, when its turn comes.
    fn open(&self, (run, epoch): Key, done: &AtomicU64) {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let stop = || self.stop.load(Ordering::Relaxed);
        let advance = |count| _ = done.fetch_add(count, Ordering::Relaxed);
        let open = || Network::open(&self.runs[run], epoch, &self.data, &self.device, advance, &stop);
        let opened = std::panic::catch_unwind(std::panic::AssertUnwindSafe(open));
        let slot = match opened {
            Ok(Ok(network)) => Slot::Ready(Arc::new(network)),
            Ok(Err(error)) => Slot::Failed(error.to_string()),
            Err(_) => Slot::Failed("the network could not be opened; standard error has more".to_owned()),
        };
        let mut slots = self.lock();
        let uses = slots.uses;
        slots.by_key.insert((run, epoch), (slot, uses));
        while slots.by_key.values().filter(|(slot, _)| matches!(slot, Slot::Ready(_))).count() > KEPT {
            let ready = slots.by_key.iter().filter(|(_, (slot, _))| matches!(slot, Slot::Ready(_)));
            let Some(oldest) = ready.min_by_key(|(_, (_, used))| *used).map(|(key, _)| *key) else { break };
            slots.by_key.remove(&oldest);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
