//! Whether all ranks are still there. Each says so every second, on a thread of its own, so that one that computes for
//! long is not taken for one that is gone; who has said nothing for [`SILENCE`] is lost, and all others end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use engine::Error;

/// How often a rank says that it is there.
pub(crate) const BEAT: Duration = Duration::from_secs(1);

/// After how long without a word a rank counts as lost, unless the environment says otherwise.
const SILENCE: Duration = Duration::from_secs(30);

/// How a sentence about a rank that is gone goes on.
pub const ENDS_TOO: &str = "; this rank ends, too";

/// How long this process may take to notice by itself that a rank is lost; a GPU that waits for it never does.
const GRACE: Duration = Duration::from_secs(5);

/// What is known of all ranks.
#[derive(Debug)]
pub struct Watch {
    rank: usize,
    heard: Mutex<Vec<Instant>>,
    hosts: OnceLock<Vec<String>>,
    silence: Duration,
    lost: OnceLock<String>,
    ended: AtomicBool,
    end_process: fn(&str),
}

impl Watch {
    /// Of `ranks` ranks, as seen by `rank`.
    pub(crate) fn new(rank: usize, ranks: usize, end_process: fn(&str)) -> Arc<Self> {
        let seconds = std::env::var("EQUICAPS_RANK_SILENCE").ok().and_then(|text| text.parse().ok());
        Arc::new(Self {
            rank,
            heard: Mutex::new(vec![Instant::now(); ranks]),
            hosts: OnceLock::new(),
            silence: seconds.map_or(SILENCE, Duration::from_secs),
            lost: OnceLock::new(),
            ended: AtomicBool::new(false),
            end_process,
        })
    }

    pub(crate) fn set_hosts(&self, hosts: Vec<String>) {
        let _ = self.hosts.set(hosts);
    }

    /// Rank `rank` is there.
    pub(crate) fn hear(&self, rank: usize) {
        if let Some(heard) = self.heard.lock().unwrap_or_else(PoisonError::into_inner).get_mut(rank) {
            *heard = Instant::now();
        }
    }

    /// `rank` and where it is.
    fn name(&self, rank: usize) -> String {
        let hosts = self.hosts.get().map(Vec::as_slice).unwrap_or_default();
        let host = hosts.get(rank).map(|host| format!(" on {host}")).unwrap_or_default();
        format!("rank {rank}{host}")
    }

    /// Rank `rank` is gone: as `how` says, it ended, or does not answer.
    pub(crate) fn lose(&self, rank: usize, how: &str) {
        if !self.has_ended() {
            let _ = self.lost.set(format!("{} {how}{ENDS_TOO} ({})", self.name(rank), self.rank));
        }
    }

    /// Something went wrong between the ranks, whoever it was.
    pub(crate) fn fail(&self, sentence: &str) {
        if !self.has_ended() {
            let _ = self.lost.set(sentence.to_owned());
        }
    }

    /// The sentence about a rank that is lost, as an error.
    pub(crate) fn check(&self) -> engine::Result<()> {
        match self.lost.get() {
            Some(sentence) => Err(Error::Ranks(sentence.clone())),
            None => Ok(()),
        }
    }

    /// Whether there is a rank of this number.
    pub(crate) fn knows(&self, rank: usize) -> bool {
        rank < self.heard.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Who has been silent for too long, and how that is said.
    pub(crate) fn silent(&self) -> Option<(usize, String)> {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let silent = |&(rank, heard): &(usize, &Instant)| rank != self.rank && heard.elapsed() > self.silence;
        let (rank, heard) = heard.iter().enumerate().find(silent)?;
        Some((rank, format!("has not answered for {} s", heard.elapsed().as_secs())))
    }

    /// Looks for somebody who has been silent for too long.
    pub(crate) fn look(&self) {
        if let Some((rank, how)) = self.silent() {
            self.lose(rank, &how);
        }
    }

    /// Ranks part in order from now on.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// What a watching thread does: `beat` once a second, until all part or one is lost. Then the process has a while to
    /// end by itself.
    pub(crate) fn keep(&self, mut beat: impl FnMut()) {
        while !self.has_ended() && self.lost.get().is_none() {
            beat();
            self.look();
            let mut slept = Duration::ZERO;
            while slept < BEAT && !self.has_ended() && self.lost.get().is_none() {
                std::thread::sleep(Duration::from_millis(50));
                slept += Duration::from_millis(50);
            }
        }
        if let Some(sentence) = self.lost.get() {
            std::thread::sleep(GRACE);
            if !self.has_ended() {
                (self.end_process)(sentence);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_silent_is_named() {
        let mut watch = Watch::new(0, 3, |_| ());
        Arc::get_mut(&mut watch).unwrap().silence = Duration::from_millis(80);
        watch.set_hosts(["a", "b", "c"].map(str::to_owned).to_vec());
        watch.look();
        assert!(watch.check().is_ok());
        std::thread::sleep(Duration::from_millis(120));
        watch.hear(1);
        watch.look();
        let sentence = watch.check().unwrap_err().to_string();
        assert!(sentence.starts_with("rank 2 on c has not answered for 0 s"), "{sentence}");
    }
}
