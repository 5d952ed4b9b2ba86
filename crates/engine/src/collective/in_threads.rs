//! Ranks that are threads of one process: what tests compare with one rank, without MPI.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::{Collective, Memory, Source, Sum, add_in_order};
use crate::error::{Error, Result};

/// How long a rank waits for the others.
const PATIENCE: Duration = Duration::from_secs(120);

/// Where all ranks meet.
#[derive(Debug)]
struct Meeting {
    state: Mutex<State>,
    all_here: Condvar,
}

#[derive(Debug)]
struct State {
    brought: Vec<Option<Vec<u8>>>,
    /// What was brought to the last meeting that was complete, and how many there were.
    taken: (u64, Arc<Vec<Vec<u8>>>),
}

/// One of the ranks.
#[derive(Debug)]
struct Thread {
    rank: usize,
    ranks: usize,
    meeting: Arc<Meeting>,
}

/// As many ranks as asked for, each for a thread of its own.
pub fn in_threads(ranks: usize) -> Vec<Arc<dyn Collective>> {
    let state = State { brought: vec![None; ranks], taken: (0, Arc::default()) };
    let meeting = Arc::new(Meeting { state: Mutex::new(state), all_here: Condvar::new() });
    let rank =
        |rank| -> Arc<dyn Collective> { Arc::new(Thread { rank, ranks, meeting: Arc::clone(&meeting) }) };
    (0..ranks).map(rank).collect()
}

impl Thread {
    /// What every rank brought.
    fn meet(&self, own: Vec<u8>) -> Result<Arc<Vec<Vec<u8>>>> {
        let mut state = self.meeting.state.lock().unwrap_or_else(PoisonError::into_inner);
        let before = state.taken.0;
        state.brought[self.rank] = Some(own);
        if state.brought.iter().all(Option::is_some) {
            let all = state.brought.iter_mut().filter_map(Option::take).collect();
            state.taken = (before + 1, Arc::new(all));
            self.meeting.all_here.notify_all();
        }
        let (state, waited) = self
            .meeting
            .all_here
            .wait_timeout_while(state, PATIENCE, |state| state.taken.0 == before)
            .unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            let missing = state.brought.iter().position(Option::is_none).unwrap_or(0);
            return Err(Error::Ranks(format!("rank {missing} does not answer")));
        }
        Ok(Arc::clone(&state.taken.1))
    }
}

/// The bytes of host memory.
fn on_host<'a>(memory: &'a mut Memory<'_>) -> Result<&'a mut [u8]> {
    match memory {
        Memory::Host(bytes) => Ok(bytes),
        Memory::Device(_) => Err(Error::Ranks("ranks that are threads share no GPU".to_owned())),
    }
}

impl Collective for Thread {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.ranks
    }

    fn all_reduce_sum(&self, kind: Sum, mut memory: Memory<'_>) -> Result<()> {
        let bytes = on_host(&mut memory)?;
        let all = self.meet(bytes.to_vec())?;
        add_in_order(kind, all.iter().map(Vec::as_slice), bytes)
    }

    fn all_gather(&self, parts: &mut [(Source<'_>, Memory<'_>)]) -> Result<()> {
        for (own, all) in parts {
            let (Source::Host(own), all) = (own, on_host(all)?) else {
                return Err(Error::Ranks("ranks that are threads share no GPU".to_owned()));
            };
            let gathered = self.meet(own.to_vec())?.concat();
            if gathered.len() != all.len() {
                return Err(Error::Ranks("ranks gathered parts of different sizes".to_owned()));
            }
            all.copy_from_slice(&gathered);
        }
        Ok(())
    }

    fn broadcast(&self, mut memory: Memory<'_>) -> Result<()> {
        let bytes = on_host(&mut memory)?;
        let own = if self.rank == 0 { bytes.to_vec() } else { Vec::new() };
        bytes.copy_from_slice(&self.meet(own)?[0]);
        Ok(())
    }

    fn exchange(&self, own: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.meet(own.to_vec()).map(|all| all.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_gets_the_same() {
        let each = |rank: Arc<dyn Collective>| {
            let own = rank.rank() as f64;
            for round in 0..50 {
                let mut sums = [own, 1.0];
                let bytes = bytemuck::cast_slice_mut(&mut sums);
                rank.all_reduce_sum(Sum::F64, Memory::Host(bytes)).unwrap();
                assert_eq!(sums, [3.0, 3.0]);
                let sent = vec![rank.rank() as u8; rank.rank() + round];
                let all = rank.exchange(&sent).unwrap();
                assert_eq!(all, (0..3).map(|r| vec![r as u8; r + round]).collect::<Vec<_>>());
                let (mut word, mut all) = ([rank.rank() as u8 + 7], [0; 3]);
                rank.all_gather(&mut [(Source::Host(&word), Memory::Host(&mut all))]).unwrap();
                rank.broadcast(Memory::Host(&mut word)).unwrap();
                assert_eq!((word, all), ([7], [7, 8, 9]));
            }
        };
        std::thread::scope(|scope| {
            in_threads(3).into_iter().for_each(|rank| {
                scope.spawn(move || each(rank));
            });
        });
    }
}
