//! What stops a run that went wrong: a loss that is NaN or infinite, one that explodes, a collapsed representation.
//! Thresholds are settings. A representation that shrinks without collapsing is reported, once.

use methods::Health;

use crate::config::Guards;

/// A representation has shrunk when its effective rank stays below this share of its highest in the run.
const SHRUNK: f64 = 0.25;

/// Checks losses and the representation's health, in the order of steps.
#[derive(Clone, Debug)]
pub struct Guard {
    settings: Guards,
    /// Checks in a row that found a collapse.
    strikes: u64,
    rank: RankWatch,
}

/// What is known of the effective rank; part of a checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct RankWatch {
    /// The highest so far.
    highest: f64,
    /// Checks in a row that found it shrunk.
    low: u64,
    /// Whether this was said.
    said: bool,
}

impl Guard {
    /// A guard whose last `strikes` checks found a collapse.
    pub fn new(settings: Guards, strikes: u64, rank: RankWatch) -> Self {
        Self { settings, strikes, rank }
    }

    /// What is known of the effective rank; part of a checkpoint.
    pub fn rank(&self) -> RankWatch {
        self.rank
    }

    /// A sentence, once in a run, where the effective rank of the representation stays far below what it was.
    pub fn shrunk(&mut self, step: u64, health: Option<&Health>) -> Option<String> {
        let rank = health.filter(|_| step > self.settings.collapse_after)?.effective_rank;
        let watch = &mut self.rank;
        watch.highest = watch.highest.max(rank);
        watch.low = if rank < SHRUNK * watch.highest { watch.low + 1 } else { 0 };
        if watch.said || watch.low < self.settings.collapse_patience.max(1) {
            return None;
        }
        watch.said = true;
        Some(format!(
            "the effective rank of the representation has fallen to {rank:.1} at step {step}; it was {:.1}: less and \
             less of the views can be told apart (too small batches and too high a learning rate do this)",
            watch.highest
        ))
    }

    /// Checks in a row that found a collapse; part of a checkpoint.
    pub fn strikes(&self) -> u64 {
        self.strikes
    }

    /// Whether step `step` (counted from 1) is one whose health is checked.
    pub fn looks_at(&self, step: u64) -> bool {
        self.settings.every_steps > 0 && step.is_multiple_of(self.settings.every_steps)
    }

    /// What is wrong after `step`, if anything: the beginning of a sentence.
    pub fn check(&mut self, step: u64, loss: f64, health: Option<&Health>) -> Option<String> {
        let settings = &self.settings;
        if !loss.is_finite() {
            return Some(format!("the loss became {loss}"));
        }
        if loss.abs() > settings.explosion {
            return Some(format!(
                "the loss exploded to {loss:.3e} (guards.explosion is {:e})",
                settings.explosion
            ));
        }
        let health = health.filter(|_| step > settings.collapse_after)?;
        let below = |value: f64, limit: f64| value.is_nan() || value < limit;
        let narrow = below(health.std_mean, settings.collapse_std);
        let flat = below(health.effective_rank, settings.collapse_rank);
        self.strikes = if narrow || flat { self.strikes + 1 } else { 0 };
        if self.strikes < settings.collapse_patience.max(1) {
            return None;
        }
        Some(if narrow {
            format!(
                "the representation collapsed: the mean standard deviation of its dimensions is {:.2e} (guards.collapse_std is {:e})",
                health.std_mean, settings.collapse_std
            )
        } else {
            format!(
                "the representation collapsed: its effective rank is {:.3} (guards.collapse_rank is {})",
                health.effective_rank, settings.collapse_rank
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard() -> Guard {
        let settings = Guards {
            every_steps: 5,
            explosion: 1e4,
            collapse_std: 1e-3,
            collapse_rank: 1.5,
            collapse_patience: 3,
            collapse_after: 10,
        };
        Guard::new(settings, 0, RankWatch::default())
    }

    fn health(std_mean: f64, effective_rank: f64) -> Health {
        Health { std_mean, std_min: 0.0, effective_rank, capsule_entropy: None, sample_entropy: None }
    }

    #[test]
    fn losses_are_judged_at_every_step() {
        assert_eq!(guard().check(1, 3.0, None), None);
        assert_eq!(guard().check(1, f64::NAN, None).unwrap(), "the loss became NaN");
        assert_eq!(guard().check(1, f64::INFINITY, None).unwrap(), "the loss became inf");
        assert!(guard().check(1, -2e4, None).unwrap().starts_with("the loss exploded to -2.000e4"));
    }

    #[test]
    fn a_collapse_must_last() {
        let mut guard = guard();
        let good = health(0.1, 5.0);
        let looks = [health(0.0, 0.0), health(0.1, 1.0), good, health(0.0, 5.0), health(0.1, 1.1)];
        for (look, health) in looks.iter().enumerate() {
            assert_eq!(guard.check(15 + look as u64, 1.0, Some(health)), None);
        }
        assert_eq!(guard.strikes(), 2);
        assert!(guard.check(30, 1.0, Some(&health(0.0, 5.0))).unwrap().contains("standard deviation"));
        let mut early = Guard::new(guard.settings.clone(), 2, RankWatch::default());
        assert_eq!(early.check(10, 1.0, Some(&health(0.0, 0.0))), None);
        assert!(early.check(11, 1.0, Some(&health(0.1, 1.2))).unwrap().contains("effective rank is 1.200"));
        let not_a_number = health(f64::NAN, 5.0);
        let mut other = Guard::new(guard.settings.clone(), 2, RankWatch::default());
        assert!(other.check(11, 1.0, Some(&not_a_number)).is_some());
    }

    #[test]
    fn a_representation_that_shrinks_is_reported_once() {
        let ranks = [8.0, 20.0, 6.0, 4.9, 4.8, 7.0, 4.0, 4.5, 3.0, 2.0, 20.0, 2.0, 2.0, 2.0];
        let mut guard = guard();
        let mut said = Vec::new();
        for (step, &rank) in (11..).zip(&ranks) {
            // A session that goes on from a checkpoint knows what was before.
            guard = Guard::new(guard.settings.clone(), 0, guard.rank());
            said.extend(guard.shrunk(step, Some(&health(0.1, rank))).map(|text| (step, text)));
        }
        let [(19, text)] = &said[..] else { panic!("{said:?}") };
        assert!(text.contains("has fallen to 3.0 at step 19; it was 20.0"), "{text}");
        assert_eq!(guard.shrunk(5, Some(&health(0.1, 0.0))), None);
    }

    #[test]
    fn looks_come_every_so_many_steps() {
        let steps: Vec<u64> = (1..=12).filter(|&step| guard().looks_at(step)).collect();
        assert_eq!(steps, [5, 10]);
    }
}
