//! What a person sees of a run while it goes on: a bar on a terminal, a line every few seconds otherwise, and a line
//! for every look at what is held out.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use dataset::SplitBy;
use train::Event;
use train::metrics::{Kind, Record};
use train::verdict::floor_name;

use crate::interrupt;
use crate::outcome::count;
use crate::terminal::{Progress, Terminal};

/// Shows the events of a run.
pub struct TrainingProgress<'a> {
    terminal: &'a Terminal,
    bar: Option<Progress>,
    line: Option<Instant>,
    /// What is held out.
    split: SplitBy,
    /// When the last step ended.
    step: Option<Instant>,
}

/// Time between two plain lines.
const LINE_INTERVAL: Duration = Duration::from_secs(5);
/// Seconds of a step that are worth mentioning to somebody who waits for its end.
const LONG_STEP: u64 = 2;

impl<'a> TrainingProgress<'a> {
    /// Nothing is shown yet.
    pub fn new(terminal: &'a Terminal) -> Self {
        Self { terminal, bar: None, line: None, split: SplitBy::Objects, step: None }
    }

    /// Shows an event.
    pub fn tell(&mut self, event: &Event<'_>) {
        match event {
            Event::Warning(text) => self.terminal.warn(text),
            Event::Started { from, taken } => {
                let anew: Vec<&str> = taken.anew.iter().map(String::as_str).collect();
                let anew = if anew.is_empty() {
                    String::new()
                } else {
                    format!("; begun anew: {}", anew.join(", "))
                };
                self.terminal.note(format!("{} from {}{anew}", count(taken.count, "tensor"), from.display()));
            }
            Event::Begin { config, device, from, plan } => {
                self.split = config.split.or(SplitBy::Objects);
                let (epochs, steps) = (count(plan.epochs, "epoch"), count(plan.steps_per_epoch(), "step"));
                let epoch = train::plan::epoch_in_words(plan);
                let plan = format!("{} on {device}: {epochs} x {steps}; {epoch}", config.method.name);
                self.terminal.note(match from.step {
                    0 => plan,
                    _ => format!("{plan}; resuming from {}", from.describe()),
                });
            }
            Event::Saved(_) => {}
            Event::Step => self.step(),
            Event::Record(record) if record.kind == Kind::HeldOut => self.note(&held_out(record, self.split)),
            Event::Record(_) => {}
            Event::Progress(progress) => self.progress(progress),
        }
    }

    /// Removes the bar.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish();
        }
    }

    /// From now on there is something to save.
    fn step(&mut self) {
        let took = self.step.replace(Instant::now()).map_or(0, |last| last.elapsed().as_secs());
        let took = if took >= LONG_STEP { format!(" (the last one took {took} s)") } else { String::new() };
        interrupt::means(format!("saving after this step{took}; once more to end at once without saving"));
    }

    fn note(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| self.terminal.note(text)),
            None => self.terminal.note(text),
        }
    }

    fn progress(&mut self, progress: &train::Progress) {
        let epoch = progress.position.step.saturating_sub(1) / progress.steps_per_epoch.max(1) + 1;
        let total = progress.steps_per_epoch * progress.epochs;
        let terms: Vec<String> =
            progress.terms.iter().map(|(name, value)| format!("{name} {value:.3}")).collect();
        let (loss, rate, left) = (progress.loss, progress.images_per_second, duration(progress.left));
        let epoch = format!("epoch {epoch}/{}", progress.epochs);
        let terms = terms.join(", ");
        if std::io::stderr().is_terminal() {
            let bar = self.bar.get_or_insert_with(|| self.terminal.bar(total, "steps"));
            bar.message(beside_bar(rate, &left, loss, &epoch, &terms));
            bar.reach(progress.position.step);
        } else if self.line.is_none_or(|last| last.elapsed() >= LINE_INTERVAL) {
            self.line = Some(Instant::now());
            let waited = 100.0 * progress.waited_share;
            self.terminal.note(format!(
                "step {}/{total}  {epoch}  loss {loss:.4} ({terms})  {rate:.0} images/s, {waited:.0} % waiting for data, {left} left",
                progress.position.step
            ));
        }
    }
}

/// What stands beside the bar. What matters most comes first: the line ends where the window does, and 80 columns hold all
/// before the epoch.
fn beside_bar(rate: f64, left: &str, loss: f64, epoch: &str, terms: &str) -> String {
    format!("{rate:.0} images/s  {left} left  loss {loss:.4}  {epoch}  ({terms})")
}

/// The scores people look at first; the metrics hold all of them.
fn held_out(record: &Record, split: SplitBy) -> String {
    let tasks = [
        ("class accuracy", "class_accuracy"),
        ("kNN", "knn_accuracy"),
        ("rotation R2", "rotation_r2"),
        ("translation R2", "translation_r2"),
    ];
    let scores: Vec<String> = tasks
        .iter()
        .filter_map(|(title, task)| {
            let score = |place: &str| record.value(&format!("probe/{task}/{place}"));
            let embedding = score("embedding").map(|value| format!("embedding {value:.3}"));
            let floor = record.value(&floor_name(task)).map(|value| format!("floor {value:.3}"));
            let beside: Vec<String> = embedding.into_iter().chain(floor).collect();
            let beside = if beside.is_empty() { String::new() } else { format!(" ({})", beside.join(", ")) };
            Some(format!("{title} {:.3}{beside}", score("representation")?))
        })
        .collect();
    format!("epoch {}, held-out {split}: {}", record.epoch, scores.join(", "))
}

fn duration(left: Duration) -> String {
    let seconds = left.as_secs();
    match seconds {
        0..=99 => format!("{seconds} s"),
        100..=5999 => format!("{} min", seconds / 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::bar_with_message;
    use crate::terminal::tests::on_80_columns;

    #[test]
    fn rate_time_left_and_loss_fit_80_columns() {
        let terms =
            "invariance 1.234, equivariance 1.234, variance 1.234, covariance 1.234, mean entropy 1.234";
        let left = duration(Duration::from_secs(99 * 3600 + 3540));
        let message = beside_bar(17640.0, &left, 12.34567, "epoch 1999/2000", terms);
        let line = on_80_columns(&bar_with_message(82_000, "steps"), 81_999, &message);
        let shown = " 81999/82000 steps  17640 images/s  99 h 59 min left  loss 12.3457";
        assert!(line.contains(shown), "{line}");
    }

    #[test]
    fn a_look_names_what_people_look_at_first() {
        let values = serde_json::json!({
            "probe/class_accuracy/representation": 0.75,
            "probe/knn_accuracy/representation": 0.7,
            "probe/rotation_r2/representation": 0.5,
            "probe/rotation_r2/embedding": 0.6,
            "floor/rotation_r2": 0.25,
        });
        let serde_json::Value::Object(values) = values else { panic!("an object") };
        let record = Record { kind: Kind::HeldOut, epoch: 3, step: 9, values, timing: Default::default() };
        assert_eq!(
            held_out(&record, SplitBy::Objects),
            "epoch 3, held-out objects: class accuracy 0.750, kNN 0.700, rotation R2 0.500 (embedding 0.600, floor 0.250)"
        );
    }
}
