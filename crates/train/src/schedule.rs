//! The learning rate over a run, as a factor that depends on the step alone.

use std::f64::consts::PI;

use crate::config::{Config, ScheduleName};

/// How the learning rate goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Schedule {
    /// It stays, as published.
    Constant,
    /// It rises over `warmup` steps and falls by half a cosine until `steps` are done.
    Cosine {
        /// Steps of the rise.
        warmup: u64,
        /// Steps of the run.
        steps: u64,
    },
}

impl Schedule {
    /// The schedule of a run with so many steps in an epoch.
    pub fn of(config: &Config, per_epoch: u64) -> Self {
        match config.schedule {
            ScheduleName::Cosine => {
                let steps = config.epochs * per_epoch;
                // A short run rises for a tenth of it.
                Self::Cosine { warmup: (config.warmup_epochs * per_epoch).min(steps / 10), steps }
            }
            ScheduleName::Constant => Self::Constant,
        }
    }

    /// The factor of the step after `done` others.
    pub fn factor(&self, done: u64) -> f64 {
        match *self {
            Self::Constant => 1.0,
            Self::Cosine { warmup, .. } if done < warmup => (done + 1) as f64 / warmup as f64,
            Self::Cosine { warmup, steps } => {
                let share = (done - warmup) as f64 / steps.saturating_sub(warmup).max(1) as f64;
                0.5 * (1.0 + (PI * share.min(1.0)).cos())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_rises_and_falls() {
        let cosine = Schedule::Cosine { warmup: 4, steps: 104 };
        assert_eq!(cosine.factor(0), 0.25);
        assert_eq!(cosine.factor(3), 1.0);
        assert_eq!(cosine.factor(4), 1.0);
        assert!((cosine.factor(54) - 0.5).abs() < 1e-12);
        assert!(cosine.factor(103) < 1e-3 && cosine.factor(103) > 0.0);
        assert_eq!(cosine.factor(500), 0.0);
        assert_eq!(Schedule::Constant.factor(7), 1.0);
    }

    #[test]
    fn its_length_is_that_of_the_run_and_a_short_run_rises_for_a_tenth() {
        let schedule = |settings: &[&str]| {
            let mut layers = Config::settings("equicaps", "demo").unwrap();
            settings.iter().for_each(|assignment| layers.set(assignment).unwrap());
            Schedule::of(&Config::resolve(layers).unwrap(), 5)
        };
        let cosine = ["batch=4", "schedule=cosine", "warmup_epochs=2"];
        let long = schedule(&[&cosine[..], &["epochs=30"]].concat());
        assert_eq!(long, Schedule::Cosine { warmup: 10, steps: 150 });
        let short = schedule(&[&cosine[..], &["epochs=6"]].concat());
        assert_eq!(short, Schedule::Cosine { warmup: 3, steps: 30 });
        assert_eq!(schedule(&["batch=4"]), Schedule::Constant);
    }
}
