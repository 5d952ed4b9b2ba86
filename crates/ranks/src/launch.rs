//! Whether this process was started as one of several, and by whom: the variables of mpirun, srun and torchrun.

use crate::{Error, Result};

/// By whom processes were started, and so how they find each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// This one is alone.
    Nobody,
    /// mpirun, or srun with MPI.
    Mpi,
    /// Anybody who says where rank 0 listens: `MASTER_ADDR:MASTER_PORT`.
    Address(String),
}

/// Which of several processes this is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// From 0 on.
    pub rank: usize,
    /// How many.
    pub ranks: usize,
    /// Which one on its machine.
    pub local_rank: usize,
    /// How many on this machine.
    pub local_ranks: usize,
    /// By whom.
    pub by: Launcher,
}

/// Without these variables a process takes itself for one that is alone, whoever started its parent.
pub const RANK_VARIABLES: [&str; 4] = ["RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"];

impl Launch {
    /// A process that is alone.
    pub const ALONE: Self = Self { rank: 0, ranks: 1, local_rank: 0, local_ranks: 1, by: Launcher::Nobody };

    /// What the environment says.
    pub fn of_environment() -> Result<Self> {
        Self::read(&|name| std::env::var(name).ok().filter(|value| !value.is_empty()), cfg!(feature = "mpi"))
    }

    fn read(variable: &dyn Fn(&str) -> Option<String>, has_mpi: bool) -> Result<Self> {
        let number = |name: &str| -> Result<Option<usize>> {
            let Some(text) = variable(name) else { return Ok(None) };
            text.parse()
                .map(Some)
                .map_err(|_| Error::Here(format!("{name} is {text:?}, but must be a number")))
        };
        let address = || -> Option<String> {
            Some(format!("{}:{}", variable("MASTER_ADDR")?, variable("MASTER_PORT")?))
        };
        let checked = |launch: Self| -> Result<Self> {
            if launch.ranks <= 1 {
                return Ok(Self::ALONE);
            }
            if launch.rank >= launch.ranks {
                return Err(Error::Here(format!(
                    "this is rank {} of {}: ranks count from 0",
                    launch.rank, launch.ranks
                )));
            }
            Ok(launch)
        };
        if let (Some(rank), Some(ranks)) = (number("RANK")?, number("WORLD_SIZE")?) {
            if ranks > 1 && address().is_none() {
                let text = "RANK and WORLD_SIZE are set, but MASTER_ADDR and MASTER_PORT, where rank 0 is found, are not";
                return Err(Error::Here(text.to_owned()));
            }
            let local_rank = number("LOCAL_RANK")?.unwrap_or(0);
            let local_ranks = number("LOCAL_WORLD_SIZE")?.unwrap_or(ranks);
            let by = Launcher::Address(address().unwrap_or_default());
            return checked(Self { rank, ranks, local_rank, local_ranks, by });
        }
        let named = [
            [
                "OMPI_COMM_WORLD_RANK",
                "OMPI_COMM_WORLD_SIZE",
                "OMPI_COMM_WORLD_LOCAL_RANK",
                "OMPI_COMM_WORLD_LOCAL_SIZE",
            ],
            ["PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"],
            ["SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"],
        ];
        for [rank, ranks, local_rank, local_ranks] in named {
            let (Some(rank), Some(ranks)) = (number(rank)?, number(ranks)?) else { continue };
            // Slurm writes 4(x2) where several machines have as many.
            let local_ranks = variable(local_ranks).and_then(|text| text.split('(').next()?.parse().ok());
            let by = match address() {
                Some(address) if !has_mpi => Launcher::Address(address),
                _ => Launcher::Mpi,
            };
            return checked(Self {
                rank,
                ranks,
                local_rank: number(local_rank)?.unwrap_or(0),
                local_ranks: local_ranks.unwrap_or(ranks),
                by,
            });
        }
        Ok(Self::ALONE)
    }
}

/// The name of this machine.
pub(crate) fn host_name() -> String {
    let read = |path| std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    read("/proc/sys/kernel/hostname")
        .or_else(|| std::env::var("HOSTNAME").ok())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "localhost".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)], has_mpi: bool) -> Result<Launch> {
        let find =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, v)| (*v).to_owned());
        Launch::read(&find, has_mpi)
    }

    #[test]
    fn launchers_are_recognised_by_their_variables() {
        assert_eq!(read(&[], true).unwrap(), Launch::ALONE);
        let torchrun = [
            ("RANK", "5"),
            ("WORLD_SIZE", "8"),
            ("LOCAL_RANK", "1"),
            ("LOCAL_WORLD_SIZE", "4"),
            ("MASTER_ADDR", "node0"),
            ("MASTER_PORT", "29500"),
        ];
        let launch = read(&torchrun, true).unwrap();
        let by = Launcher::Address("node0:29500".to_owned());
        assert_eq!(launch, Launch { rank: 5, ranks: 8, local_rank: 1, local_ranks: 4, by });
        let mpirun = [("OMPI_COMM_WORLD_RANK", "1"), ("OMPI_COMM_WORLD_SIZE", "2")];
        assert_eq!(read(&mpirun, true).unwrap().by, Launcher::Mpi);
        let slurm = [
            ("SLURM_PROCID", "3"),
            ("SLURM_STEP_NUM_TASKS", "8"),
            ("SLURM_LOCALID", "3"),
            ("SLURM_STEP_TASKS_PER_NODE", "4(x2)"),
            ("MASTER_ADDR", "n"),
            ("MASTER_PORT", "1"),
        ];
        let launch = read(&slurm, false).unwrap();
        assert_eq!((launch.rank, launch.local_ranks, launch.by), (3, 4, Launcher::Address("n:1".to_owned())));
        // A script of a job is no step of it: Slurm sets SLURM_NTASKS there, too.
        assert_eq!(read(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "8")], true).unwrap(), Launch::ALONE);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let message = |variables: &[(&str, &str)]| read(variables, true).unwrap_err().to_string();
        assert!(message(&[("RANK", "0"), ("WORLD_SIZE", "2")]).contains("MASTER_ADDR"));
        assert!(message(&[("RANK", "x"), ("WORLD_SIZE", "2")]).contains("RANK is \"x\""));
        let beyond = [("RANK", "2"), ("WORLD_SIZE", "2"), ("MASTER_ADDR", "a"), ("MASTER_PORT", "1")];
        assert!(message(&beyond).contains("rank 2 of 2"));
        assert_eq!(read(&[("RANK", "0"), ("WORLD_SIZE", "1")], true).unwrap(), Launch::ALONE);
    }
}
