//! Which of the runs are this process's: those of `--shard I/N`, of its rank under mpirun or srun, of its task in an array of
//! Slurm's.

use dataset::work::Shard;
use ranks::Launch;

use crate::UsageError;

/// The share of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The runs `index`, `index + count` ... are its own.
    pub shard: Shard,
    /// Which one of several ranks on its machine it is, where it was started as one.
    pub local_rank: Option<usize>,
}

impl Share {
    /// Everything.
    pub const ALL: Self = Self { shard: Shard::WHOLE, local_rank: None };

    /// What `--shard`, the launcher and the variables say, in this order.
    pub fn of(
        asked: Option<Shard>,
        launch: &Launch,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> anyhow::Result<Self> {
        let local_rank = (launch.ranks > 1).then_some(launch.local_rank);
        if let Some(shard) = asked {
            return Ok(Self { shard, local_rank });
        }
        let array = array(variable)?.unwrap_or(Shard::WHOLE);
        let (index, count) = (array.index * launch.ranks + launch.rank, array.count * launch.ranks);
        Ok(Self { shard: Shard { index, count }, local_rank })
    }

    /// Whether the run number `index` is this process's.
    pub fn has(&self, index: usize) -> bool {
        index % self.shard.count.max(1) == self.shard.index
    }
}

/// The task of an array of Slurm's, counted from 0.
fn array(variable: &dyn Fn(&str) -> Option<String>) -> anyhow::Result<Option<Shard>> {
    let number = |name: &str| -> anyhow::Result<Option<usize>> {
        let Some(text) = variable(name).filter(|text| !text.is_empty()) else { return Ok(None) };
        let number =
            text.parse().map_err(|_| UsageError(format!("{name} is {text:?}, expected a number")))?;
        Ok(Some(number))
    };
    let (Some(id), Some(count)) = (number("SLURM_ARRAY_TASK_ID")?, number("SLURM_ARRAY_TASK_COUNT")?) else {
        return Ok(None);
    };
    let first = number("SLURM_ARRAY_TASK_MIN")?.unwrap_or(0);
    let last = number("SLURM_ARRAY_TASK_MAX")?.unwrap_or(first + count.saturating_sub(1));
    // --array=2-10:4 has tasks 2, 6 and 10.
    let step = (last.saturating_sub(first)).checked_div(count.saturating_sub(1)).unwrap_or(1).max(1);
    let index = id.saturating_sub(first) / step;
    if index < count {
        return Ok(Some(Shard { index, count }));
    }
    let text = format!("task {id} is none of {count} tasks of its Slurm array; give --shard I/N");
    Err(UsageError(text).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(asked: Option<Shard>, launch: &Launch, variables: &[(&str, &str)]) -> anyhow::Result<Share> {
        let find =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, v)| (*v).to_owned());
        Share::of(asked, launch, &find)
    }

    #[test]
    fn every_run_has_one_owner() {
        let alone = share(None, &Launch::ALONE, &[]).unwrap();
        assert_eq!((alone.shard, alone.local_rank), (Shard::WHOLE, None));
        let array = |id: &str, more: &[(&str, &str)]| {
            let own = [("SLURM_ARRAY_TASK_ID", id), ("SLURM_ARRAY_TASK_COUNT", "3")];
            share(None, &Launch::ALONE, &[&own[..], more].concat())
        };
        assert_eq!(array("2", &[]).unwrap().shard, Shard { index: 2, count: 3 });
        let stepped = [("SLURM_ARRAY_TASK_MIN", "2"), ("SLURM_ARRAY_TASK_MAX", "10")];
        let indices = ["2", "6", "10"].map(|id| array(id, &stepped).unwrap().shard.index);
        assert_eq!(indices, [0, 1, 2]);
        assert!(array("x", &[]).unwrap_err().to_string().contains("expected a number"));
        assert!(array("7", &[]).unwrap_err().to_string().contains("none of 3 tasks"));
        let rank = Launch { rank: 1, ranks: 2, local_rank: 1, local_ranks: 2, ..Launch::ALONE };
        let both = [("SLURM_ARRAY_TASK_ID", "2"), ("SLURM_ARRAY_TASK_COUNT", "3")];
        let found = share(None, &rank, &both).unwrap();
        assert_eq!((found.shard, found.local_rank), (Shard { index: 5, count: 6 }, Some(1)));
        let asked = share(Some(Shard { index: 0, count: 4 }), &rank, &both).unwrap();
        assert!(asked.has(4) && !asked.has(5));
    }
}
