//! How processes that train one network find each other, and by what they meet.
//!
//! - [`Launch`]: whether this process is one of several, by the variables that mpirun, srun or torchrun set;
//! - [`World`]: this process among the others. On CPUs they meet by MPI (cargo feature `mpi`), on GPUs by NCCL, which is
//!   loaded at run time; what the host agrees on (whether to stop, what rank 0 read) goes over MPI, or, in a build
//!   without it, over the one connection by which NCCL's id is told;
//! - [`Watch`]: notices that a rank is gone.

mod launch;
#[cfg(feature = "mpi")]
mod mpi;
mod nccl;
mod star;
mod watch;

use std::sync::{Arc, Mutex, PoisonError};

use engine::{Collective, Device, SingleRank};

pub use launch::{Launch, Launcher, RANK_VARIABLES};
pub use watch::{ENDS_TOO, Watch};

/// What goes wrong between ranks, in one sentence.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// This rank says so.
    #[error("{0}")]
    Here(String),
    /// All ranks have agreed on it.
    #[error("{0}")]
    Everywhere(String),
}

impl From<engine::Error> for Error {
    fn from(error: engine::Error) -> Self {
        Self::Here(error.to_string())
    }
}

/// Results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// The MPI library that this build is linked with, if it is.
pub fn mpi_version() -> Option<String> {
    #[cfg(feature = "mpi")]
    return Some(mpi::library_version());
    #[cfg(not(feature = "mpi"))]
    None
}

/// This process among those that were started with it.
#[derive(Debug)]
pub struct World {
    launch: Launch,
    /// What the host says to the others.
    control: Arc<dyn Collective>,
    watch: Option<Arc<Watch>>,
    /// Made once for a device: graphs refer to it as long as the process lives.
    on_device: Mutex<Option<(String, Arc<dyn Collective>)>>,
    #[cfg(feature = "mpi")]
    mpi: Option<Arc<mpi::Mpi>>,
}

impl World {
    /// A process that is alone.
    pub fn alone() -> Self {
        Self {
            launch: Launch::ALONE,
            control: Arc::new(SingleRank),
            watch: None,
            on_device: Mutex::default(),
            #[cfg(feature = "mpi")]
            mpi: None,
        }
    }

    /// Meets the others, if there are any. `lost` is called, with a sentence, when one of them is gone and this process
    /// does not notice; it must end the process.
    pub fn start(launch: Launch, lost: fn(&str)) -> Result<Self> {
        match &launch.by {
            Launcher::Nobody => Ok(Self::alone()),
            Launcher::Address(address) => {
                let watch = Watch::new(launch.rank, launch.ranks, lost);
                let star = star::Star::meet(&launch, address, Arc::clone(&watch))?;
                let control: Arc<dyn Collective> = Arc::new(star);
                name_hosts(&*control, &watch)?;
                Ok(Self { launch, control, watch: Some(watch), ..Self::alone() })
            }
            Launcher::Mpi => Self::start_mpi(&launch, lost),
        }
    }

    #[cfg(feature = "mpi")]
    fn start_mpi(launch: &Launch, lost: fn(&str)) -> Result<Self> {
        let mpi = Arc::new(mpi::Mpi::start(launch, lost)?);
        let (rank, ranks) = (mpi.rank(), mpi.ranks());
        let control: Arc<dyn Collective> = Arc::clone(&mpi) as Arc<dyn Collective>;
        let names = name_hosts(&*control, mpi.watch())?;
        let here = |other: &usize| names[*other] == names[rank];
        let launch = Launch {
            rank,
            ranks,
            local_rank: (0..rank).filter(here).count(),
            local_ranks: (0..ranks).filter(here).count(),
            by: Launcher::Mpi,
        };
        let watch = Some(Arc::clone(mpi.watch()));
        Ok(Self { launch, control, watch, mpi: Some(mpi), ..Self::alone() })
    }

    #[cfg(not(feature = "mpi"))]
    fn start_mpi(launch: &Launch, _: fn(&str)) -> Result<Self> {
        Err(Error::Here(format!(
            "this is one of {} processes of mpirun or srun, but this equicaps is built without MPI: build it with \
             `cargo build --release --features mpi`, or, for GPUs, set MASTER_ADDR and MASTER_PORT",
            launch.ranks
        )))
    }

    /// Which process this is, from 0 on.
    pub fn rank(&self) -> usize {
        self.launch.rank
    }

    /// How many there are.
    pub fn ranks(&self) -> usize {
        self.launch.ranks
    }

    /// Which process on its machine this is, from 0 on: the GPU that it takes.
    pub fn local_rank(&self) -> usize {
        self.launch.local_rank
    }

    /// How many there are on this machine.
    pub fn local_ranks(&self) -> usize {
        self.launch.local_ranks
    }

    /// Whether there are others.
    pub fn is_shared(&self) -> bool {
        self.ranks() > 1
    }

    /// Whether this one writes and speaks for all.
    pub fn is_first(&self) -> bool {
        self.rank() == 0
    }

    /// How hosts of all ranks agree; not for tensors.
    pub fn control(&self) -> &Arc<dyn Collective> {
        &self.control
    }

    /// How ranks whose networks are on `device` exchange tensors. All ranks call it together.
    pub fn on(&self, device: &Device) -> Result<Arc<dyn Collective>> {
        let wants_nccl = self.is_shared() || std::env::var_os("EQUICAPS_NCCL").is_some();
        let Device::Cuda(cuda) = device else {
            if matches!(self.launch.by, Launcher::Address(_)) && self.is_shared() {
                return Err(Error::Here(
                    "ranks on CPUs meet by MPI: start them by mpirun, with an equicaps built with --features mpi"
                        .to_owned(),
                ));
            }
            return Ok(Arc::clone(&self.control));
        };
        if !wants_nccl {
            return Ok(Arc::new(SingleRank));
        }
        let mut made = self.on_device.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((name, collective)) = &*made
            && *name == device.name()
        {
            return Ok(Arc::clone(collective));
        }
        let nccl = nccl::Nccl::start(cuda.context(), &self.control, self.watch.clone())?;
        let collective: Arc<dyn Collective> = Arc::new(nccl);
        *made = Some((device.name(), Arc::clone(&collective)));
        Ok(collective)
    }

    /// What rank 0 makes, for all ranks; its error, where it makes none, is everybody's.
    pub fn from_first(&self, make: impl FnOnce() -> std::result::Result<String, String>) -> Result<String> {
        let own = if self.is_first() {
            match make() {
                Ok(text) => format!("+{text}"),
                Err(sentence) => format!("-{sentence}"),
            }
        } else {
            String::new()
        };
        let all = self.control.exchange(own.as_bytes())?;
        let text = all.first().and_then(|bytes| String::from_utf8(bytes.clone()).ok()).unwrap_or_default();
        match text.split_at_checked(1) {
            Some(("+", text)) => Ok(text.to_owned()),
            Some(("-", sentence)) => Err(Error::Everywhere(sentence.to_owned())),
            _ => Err(Error::Here("rank 0 does other work than this rank".to_owned())),
        }
    }

    /// What each rank made, where all could; else the sentence of the first that could not, with its rank.
    pub fn all<T>(&self, made: std::result::Result<T, String>) -> Result<T> {
        let own = made.as_ref().err().cloned().unwrap_or_default();
        let all = self.control.exchange(own.as_bytes())?;
        if let Some(rank) = all.iter().position(|bytes| !bytes.is_empty()) {
            let sentence = String::from_utf8_lossy(&all[rank]).into_owned();
            // What everybody says is nobody's own trouble.
            let is_common = all.iter().all(|bytes| *bytes == all[rank]);
            let sentence = if is_common { sentence } else { format!("rank {rank}: {sentence}") };
            return Err(Error::Everywhere(sentence));
        }
        made.map_err(Error::Here)
    }

    /// Ends in order: waits for the others, so that none is missed by them.
    pub fn finish(&self) -> Result<()> {
        if self.is_shared() {
            self.control.barrier()?;
            if let Some(watch) = &self.watch {
                watch.end();
            }
        }
        #[cfg(feature = "mpi")]
        if let Some(mpi) = &self.mpi {
            mpi.finish();
        }
        Ok(())
    }
}

/// Tells everybody where everybody is.
fn name_hosts(control: &dyn Collective, watch: &Watch) -> Result<Vec<String>> {
    let names = control.exchange(launch::host_name().as_bytes())?;
    let names: Vec<String> = names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    watch.set_hosts(names.clone());
    Ok(names)
}
