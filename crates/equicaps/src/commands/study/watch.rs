//! What a person sees of a study while it is made: a line for every part that begins. Of several runs at a time, whose own
//! progress would be a muddle, also how far each is and how long all should take: in a bar, or as a line every minute.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use train::summary::Summary;
use train::{Config, RunFolder, estimate};

use super::file::Run;
use super::process::Ended;
use super::site::Site;
use crate::terminal::{self, Progress, Terminal};

/// Between two looks at the runs in hand.
const LOOK: Duration = Duration::from_secs(2);
/// Between two lines where there is no bar.
const LINE: Duration = Duration::from_secs(60);
/// Between two looks whether all is over.
const MOMENT: Duration = Duration::from_millis(50);
/// How much of a run is its training; the rest is its evaluation.
const TRAINING: f64 = 0.9;

/// Tells how far the runs of a study are.
pub struct Watch<'a> {
    site: &'a Site,
    own: &'a [(&'a Run, &'a Config)],
    terminal: &'a Terminal,
    /// Where several runs are made at a time.
    bar: Option<Progress>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Runs that are over, however they ended.
    over: u64,
    /// The runs in hand by their number, and what is done to each.
    hands: BTreeMap<usize, (Instant, String)>,
}

impl<'a> Watch<'a> {
    /// `several`: runs are made at the same time.
    pub fn new(
        site: &'a Site,
        own: &'a [(&'a Run, &'a Config)],
        several: bool,
        terminal: &'a Terminal,
    ) -> Self {
        let bar = several.then(|| terminal.bar(own.len() as u64, "runs"));
        Self { site, own, terminal, bar, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn over_bar(&self, work: impl FnOnce()) {
        match &self.bar {
            Some(bar) => bar.suspend(work),
            None => work(),
        }
    }

    fn place(&self, number: usize) -> String {
        let name = self.own.get(number).map_or("", |(run, _)| run.name.as_str());
        format!("[{}/{}] {name}", number + 1, self.own.len())
    }

    /// The run `number` is in hand from now on, if it was not before.
    pub fn begin(&self, number: usize) {
        self.state().hands.entry(number).or_insert_with(|| (Instant::now(), String::new()));
    }

    /// Says what is done to the run `number` from now on.
    pub fn says(&self, number: usize, what: &str) {
        if let Some((_, now)) = self.state().hands.get_mut(&number) {
            what.clone_into(now);
        }
        self.over_bar(|| self.terminal.note(format!("{}: {what}", self.place(number))));
    }

    /// Passes on what a part of the run `number` remarked.
    pub fn remarks(&self, number: usize, line: &str) {
        self.over_bar(|| terminal::say(format!("{}: {line}", self.place(number))));
    }

    /// The run `number` is no longer in hand.
    pub fn end(&self, number: usize, ended: &Ended) {
        let mut state = self.state();
        let Some((began, last)) = state.hands.remove(&number) else { return };
        state.over += u64::from(*ended != Ended::Interrupted);
        drop(state);
        let place = self.place(number);
        match ended {
            // Of one at a time that is plain to see; of one that was done before nothing was said.
            Ended::Done if self.bar.is_some() && !last.is_empty() => {
                let seconds = began.elapsed().as_secs();
                self.over_bar(|| self.terminal.note(format!("{place}: done, {seconds} s")));
            }
            Ended::Failed(why) => self.over_bar(|| self.terminal.warn(format!("{place} failed: {why}"))),
            _ => {}
        }
    }

    /// Tells how far the runs are until all is over.
    pub fn follow(&self, is_over: impl Fn() -> bool) {
        let Some(bar) = &self.bar else { return };
        let (mut looked, mut said) = (Instant::now(), Instant::now());
        let mut first: Option<(Instant, f64)> = None;
        while !is_over() {
            std::thread::sleep(MOMENT);
            if looked.elapsed() < LOOK {
                continue;
            }
            looked = Instant::now();
            let (over, done, hands) = self.look();
            // What was done before this began tells nothing of its speed.
            let (began, before) = *first.get_or_insert((looked, done));
            let left = seconds_left(began.elapsed().as_secs_f64(), before, done, self.own.len() as f64);
            let left =
                left.map_or_else(String::new, |left| format!("about {} left; ", estimate::in_words(left)));
            bar.reach(over);
            bar.message(format!("{left}{hands}"));
            if bar.is_silent() && said.elapsed() >= LINE {
                said = Instant::now();
                self.terminal.note(format!("{over} of {} runs are over; {left}{hands}", self.own.len()));
            }
        }
        bar.finish();
    }

    /// How many runs are over, how much is done counted in runs, and what is in hand.
    fn look(&self) -> (u64, f64, String) {
        let (over, hands) = {
            let state = self.state();
            (
                state.over,
                state.hands.iter().map(|(number, (_, what))| (*number, what.clone())).collect::<Vec<_>>(),
            )
        };
        let mut done = over as f64;
        let mut texts = Vec::new();
        for (number, what) in hands {
            let Some((run, config)) = self.own.get(number) else { continue };
            let summary = RunFolder::open(&self.site.root(run)).and_then(|folder| Summary::of(&folder));
            // What `own` chose stands in the run's own configuration, once that is there.
            let (epoch, epochs) =
                summary.map_or((0, config.epochs), |summary| (summary.reached.epoch, summary.config.epochs));
            done += if epochs == 0 { 0.0 } else { (epoch as f64 / epochs as f64).min(1.0) * TRAINING };
            let what = match what.split(" (").next().unwrap_or_default() {
                what if what.starts_with("training") && epochs > 0 => format!("epoch {epoch} of {epochs}"),
                what => what.to_owned(),
            };
            texts.push(format!("{}: {what}", run.name));
        }
        (over, done, texts.join(", "))
    }
}

/// The time that is left where, of `all` runs, `before` were done at the beginning and `done` are after `seconds`.
fn seconds_left(seconds: f64, before: f64, done: f64, all: f64) -> Option<f64> {
    // Less than this says nothing.
    const TELLING: f64 = 0.02;
    let made = done - before;
    (made >= TELLING).then(|| seconds * (all - done).max(0.0) / made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_follows_from_what_was_made() {
        assert_eq!(seconds_left(10.0, 0.0, 0.001, 4.0), None);
        // A quarter of a run in 10 s: 3.75 runs are left.
        assert_eq!(seconds_left(10.0, 0.0, 0.25, 4.0), Some(150.0));
        // Two were done before.
        assert_eq!(seconds_left(10.0, 2.0, 2.5, 4.0), Some(30.0));
        assert_eq!(seconds_left(10.0, 0.0, 4.0, 4.0), Some(0.0));
    }
}
