//! What a person sees of a run while it goes on: a bar on a terminal, a line every few seconds otherwise, and a line
//! for every look at held-out objects.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use train::Event;
use train::metrics::{Kind, Record};

use crate::terminal::{Progress, Terminal};

/// Shows the events of a run.
pub struct TrainingProgress<'a> {
    terminal: &'a Terminal,
    bar: Option<Progress>,
    line: Option<Instant>,
}

/// Time between two plain lines.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

impl<'a> TrainingProgress<'a> {
    /// Nothing is shown yet.
    pub fn new(terminal: &'a Terminal) -> Self {
        Self { terminal, bar: None, line: None }
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
                self.terminal.note(format!("{} tensors from {}{anew}", taken.count, from.display()));
            }
            Event::Begin { config, device, from, steps_per_epoch } => {
                let epochs = config.epochs;
                let plan =
                    format!("{} on {device}: {epochs} epochs x {steps_per_epoch} steps", config.method.name);
                self.terminal.note(match from.step {
                    0 => plan,
                    _ => format!("{plan}; resuming from {}", from.describe()),
                });
            }
            Event::Saved(_) => {}
            Event::Record(record) if record.kind == Kind::HeldOut => self.note(&held_out(record)),
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
            // What matters most comes first: the line ends where the window does, and 80 columns hold all before the epoch.
            let bar = self.bar.get_or_insert_with(|| self.terminal.bar(total, "steps"));
            bar.message(format!("{rate:.0} images/s  {left} left  loss {loss:.4}  {epoch}  ({terms})"));
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

/// The scores people look at first; the metrics hold all of them.
fn held_out(record: &Record) -> String {
    let tasks = [
        ("class accuracy", "class_accuracy"),
        ("rotation R2", "rotation_r2"),
        ("translation R2", "translation_r2"),
    ];
    let scores: Vec<String> = tasks
        .iter()
        .filter_map(|(title, task)| {
            let score = |place: &str| record.value(&format!("probe/{task}/{place}"));
            let embedding =
                score("embedding").map_or_else(String::new, |value| format!(" (embedding {value:.3})"));
            Some(format!("{title} {:.3}{embedding}", score("representation")?))
        })
        .collect();
    format!("epoch {}, held-out objects: {}", record.epoch, scores.join(", "))
}

fn duration(left: Duration) -> String {
    let seconds = left.as_secs();
    match seconds {
        0..=99 => format!("{seconds} s"),
        100..=5999 => format!("{} min", seconds / 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}
