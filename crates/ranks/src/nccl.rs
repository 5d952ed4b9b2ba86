//! Ranks whose tensors are on GPUs: NCCL on the stream of the GPU's context, and a second communicator on a stream of its
//! own for gradients, which travel beside the rest of the backward pass.

use std::sync::Arc;
use std::time::Duration;

use engine::{Collective, Memory, Source, Sum};
use gpu::nccl::{Communicator, Number, UniqueId};

use crate::watch::Watch;
use crate::{Error, Result};

/// How often it is asked whether something went wrong between GPUs.
const LOOK: Duration = Duration::from_millis(500);

/// A rank on a GPU.
#[derive(Debug)]
pub(crate) struct Nccl {
    /// Moments and embeddings: in the order of the context's work.
    main: Arc<Communicator>,
    /// Gradients.
    beside: Arc<Communicator>,
    /// What hosts agree on.
    control: Arc<dyn Collective>,
}

impl Nccl {
    /// Meets the other GPUs; rank 0 tells NCCL's ids by `control`.
    pub(crate) fn start(
        context: &gpu::Context,
        control: &Arc<dyn Collective>,
        watch: Option<Arc<Watch>>,
    ) -> Result<Self> {
        let wrong = |error: gpu::Error| Error::Here(format!("several GPUs need NCCL: {error}"));
        let mut communicators = Vec::new();
        for beside in [false, true] {
            // Everybody looks for the library before anybody waits for the others.
            let id = UniqueId::new().map_err(wrong);
            let own = match (&id, control.rank()) {
                (Ok(id), 0) => id.as_bytes().to_vec(),
                (Ok(_), _) => vec![1],
                (Err(_), _) => Vec::new(),
            };
            let all = control.exchange(&own)?;
            id?;
            if let Some(rank) = all.iter().position(Vec::is_empty) {
                return Err(Error::Here(format!(
                    "rank {rank} has no NCCL: equicaps devices says there what is missing"
                )));
            }
            let id = UniqueId::from_bytes(&all[0])
                .ok_or_else(|| Error::Here("rank 0 sent no id of NCCL".to_owned()))?;
            let made = Communicator::new(context, id, control.rank(), control.ranks(), beside);
            communicators.push(Arc::new(made.map_err(|error| {
                let hint = if error.to_string().contains("Duplicate GPU") {
                    ": every rank needs a GPU of its own"
                } else {
                    ""
                };
                Error::Here(format!("{error}{hint}"))
            })?));
        }
        let [main, beside]: [Arc<Communicator>; 2] =
            communicators.try_into().map_err(|_| Error::Here("a communicator is missing".to_owned()))?;
        let nccl = Self { main, beside, control: Arc::clone(control) };
        if let Some(watch) = watch {
            nccl.start_watching(watch);
        }
        Ok(nccl)
    }

    /// A thread that asks NCCL whether something went wrong. Who is lost is what the other watch says, if it knows.
    fn start_watching(&self, watch: Arc<Watch>) {
        let communicators = [Arc::clone(&self.main), Arc::clone(&self.beside)];
        std::thread::spawn(move || {
            while !watch.has_ended() && watch.check().is_ok() {
                std::thread::sleep(LOOK);
                if let Some(error) = communicators.iter().find_map(|communicator| communicator.failure()) {
                    // Whose fault it is comes over the other way, most often within a second.
                    std::thread::sleep(Duration::from_secs(3));
                    watch.fail(&format!("{error}: another rank may have ended; this rank ends, too"));
                }
            }
        });
    }
}

fn device(memory: &Memory<'_>) -> engine::Result<gpu::View> {
    match memory {
        Memory::Device(view) => Ok(*view),
        Memory::Host(_) => Err(engine::Error::Ranks("NCCL exchanges no memory of the host".to_owned())),
    }
}

impl Collective for Nccl {
    fn rank(&self) -> usize {
        self.control.rank()
    }

    fn ranks(&self) -> usize {
        self.control.ranks()
    }

    /// Also of a single rank, which has asked for it: to measure what it costs.
    fn is_shared(&self) -> bool {
        true
    }

    fn all_reduce_sum(&self, kind: Sum, memory: Memory<'_>) -> engine::Result<()> {
        let number = match kind {
            Sum::F32 => Number::F32,
            Sum::F64 => Number::F64,
        };
        // SAFETY: tensors of this context, whose pool hands memory out again in the order of its stream.
        Ok(unsafe { self.main.all_reduce(device(&memory)?, number) }?)
    }

    fn sum_beside(&self, memory: Memory<'_>) -> engine::Result<()> {
        // SAFETY: gradients, which live as long as the network and are not used before `join`.
        Ok(unsafe { self.beside.all_reduce(device(&memory)?, Number::F32) }?)
    }

    fn join(&self) -> engine::Result<()> {
        Ok(self.beside.join()?)
    }

    fn all_gather(&self, parts: &mut [(Source<'_>, Memory<'_>)]) -> engine::Result<()> {
        let mut views = Vec::with_capacity(parts.len());
        for (own, all) in parts {
            let (Source::Device(own), all) = (own, device(all)?) else {
                return Err(engine::Error::Ranks("NCCL exchanges no memory of the host".to_owned()));
            };
            if own.bytes * self.ranks() != all.bytes {
                return Err(engine::Error::Ranks("ranks gathered parts of different sizes".to_owned()));
            }
            views.push((*own, all));
        }
        // SAFETY: as above.
        Ok(unsafe { self.main.all_gather(&views) }?)
    }

    fn broadcast(&self, memory: Memory<'_>) -> engine::Result<()> {
        // SAFETY: as above.
        Ok(unsafe { self.main.broadcast(device(&memory)?) }?)
    }

    fn exchange(&self, own: &[u8]) -> engine::Result<Vec<Vec<u8>>> {
        self.control.exchange(own)
    }
}
