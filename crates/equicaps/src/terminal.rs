//! What a person sees while a command runs: notes, results and progress. Progress is a bar with rate and time left
//! on a terminal, plain lines otherwise, nothing with `--quiet`; results go to standard output, or, with `--json`,
//! as one object.

use std::io::{ErrorKind, IsTerminal, Write};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressState, ProgressStyle};

/// Where a command's words go.
#[derive(Debug)]
pub struct Terminal {
    json: bool,
    quiet: bool,
}

impl Terminal {
    /// `json`: results as one object on standard output. `quiet`: no progress, no notes.
    pub fn new(json: bool, quiet: bool) -> Self {
        Self { json, quiet }
    }

    /// Whether neither progress nor notes are wanted.
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// A remark on what is being done, on standard error.
    pub fn note(&self, text: impl AsRef<str>) {
        if !self.quiet {
            say(text.as_ref());
        }
    }

    /// A warning, on standard error, `--quiet` or not.
    pub fn warn(&self, text: impl AsRef<str>) {
        say(format!("warning: {}", dataset::printable(text.as_ref())));
    }

    /// The command's result: `json` where `--json` was given, `text` otherwise. Fails where it cannot be written (a full
    /// disk behind standard output).
    pub fn result(&self, text: &str, json: &serde_json::Value) -> std::io::Result<()> {
        if is_silent() {
            return Ok(());
        }
        let mut out = std::io::stdout();
        let written = if self.json {
            writeln!(out, "{json}")
        } else if text.is_empty() {
            Ok(())
        } else {
            writeln!(out, "{}", dataset::printable_lines(text))
        };
        match written.and_then(|()| out.flush()) {
            // A reader that has seen enough (`| head`) is no reason to fail.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            written => written,
        }
    }

    /// Why the command failed, as the one object on standard output where `--json` was given; people read standard error.
    pub fn failure(&self, error: &str, status: u8) {
        if self.json {
            // That nobody reads it does not change the status.
            let _ = self.result("", &serde_json::json!({ "error": error, "status": status }));
        }
    }

    /// A bar whose message says everything but how much of `total` is done; nothing where there is no terminal.
    pub fn bar(&self, total: u64, unit: &str) -> Progress {
        if self.quiet || is_silent() || !std::io::stderr().is_terminal() {
            return Progress { kind: Kind::Silent };
        }
        Progress { kind: Kind::Bar(bar_with_message(total, unit)) }
    }

    /// Progress over `total` items called `unit` (for example `"images"`).
    pub fn progress(&self, total: u64, unit: &'static str) -> Progress {
        let now = Instant::now();
        let kind = if self.quiet || is_silent() {
            Kind::Silent
        } else if std::io::stderr().is_terminal() {
            Kind::Bar(bar_with_rate(total, unit))
        } else {
            Kind::Lines { total, unit, started: now, state: Mutex::new((0, now)) }
        };
        Progress { kind }
    }
}

/// A bar, how much is done, and a message as long as there is room.
pub fn bar_with_message(total: u64, unit: &str) -> ProgressBar {
    let bar = ProgressBar::new(total);
    let template = format!("{{bar:10}} {{pos}}/{{len}} {unit}  {{wide_msg}}");
    ProgressStyle::with_template(&template).into_iter().for_each(|style| bar.set_style(style));
    bar
}

/// A bar, how much is done, rate and time left, and a message as long as there is room.
fn bar_with_rate(total: u64, unit: &str) -> ProgressBar {
    let bar = ProgressBar::new(total);
    let template = format!("{{bar:20}} {{pos}}/{{len}} {unit}  {{rate}}  {{eta}} left  {{wide_msg}}");
    if let Ok(style) = ProgressStyle::with_template(&template) {
        let rate = |state: &ProgressState, text: &mut dyn std::fmt::Write| {
            let _ = write!(text, "{:.1}/s", state.per_sec());
        };
        bar.set_style(style.with_key("rate", rate));
    }
    bar
}

/// A path as text and JSON can hold it: what is not UTF-8 in it is replaced, control characters are escaped.
pub fn shown(path: impl AsRef<Path>) -> String {
    dataset::printable_path(path.as_ref())
}

/// Whether another process speaks for this one.
static SILENT: AtomicBool = AtomicBool::new(false);

/// From now on another process speaks for this one.
pub fn be_silent() {
    SILENT.store(true, Ordering::Relaxed);
}

/// Whether another process speaks for this one.
pub fn is_silent() -> bool {
    SILENT.load(Ordering::Relaxed)
}

/// A line on standard error. That nobody listens any more (a terminal that was closed, a pipe whose reader ended) is no
/// reason to end what goes on for hours, as `eprintln!` would.
pub fn say(text: impl AsRef<str>) {
    if !is_silent() {
        say_anyway(text);
    }
}

/// As [`say`], whoever else speaks.
pub fn say_anyway(text: impl AsRef<str>) {
    let _ = writeln!(std::io::stderr(), "{}", dataset::printable_lines(text.as_ref()));
}

/// A line on standard error in place of a progress bar that may stand there.
pub fn say_over_bar(text: &str) {
    let clear = if std::io::stderr().is_terminal() { "\r\x1b[K" } else { "" };
    say(format!("{clear}{text}"));
}

/// Progress of one long piece of work; may be advanced from many threads.
#[derive(Debug)]
pub struct Progress {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Silent,
    Bar(ProgressBar),
    Lines { total: u64, unit: &'static str, started: Instant, state: Mutex<(u64, Instant)> },
}

/// Seconds between two plain progress lines.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

impl Progress {
    /// `count` more items are done.
    pub fn advance(&self, count: u64) {
        match &self.kind {
            Kind::Silent => {}
            Kind::Bar(bar) => bar.inc(count),
            Kind::Lines { total, unit, started, state } => {
                let Ok(mut state) = state.lock() else { return };
                state.0 += count;
                if state.1.elapsed() >= LINE_INTERVAL {
                    state.1 = Instant::now();
                    let rate = state.0 as f64 / started.elapsed().as_secs_f64().max(1e-9);
                    let left = (total.saturating_sub(state.0)) as f64 / rate.max(1e-9);
                    say(format!("{}/{total} {unit}, {rate:.1} {unit}/s, {left:.0} s left", state.0));
                }
            }
        }
    }

    /// `count` items are done in all; only for bars.
    pub fn reach(&self, count: u64) {
        if let Kind::Bar(bar) = &self.kind {
            bar.set_position(count);
        }
    }

    /// A short text beside the bar, for example the current loss; nothing where there is no bar.
    pub fn message(&self, text: impl Into<String>) {
        if let Kind::Bar(bar) = &self.kind {
            bar.set_message(dataset::printable(&text.into()).into_owned());
        }
    }

    /// Does `work`, which prints, while no bar is in the way.
    pub fn suspend(&self, work: impl FnOnce()) {
        match &self.kind {
            Kind::Bar(bar) => bar.suspend(work),
            _ => work(),
        }
    }

    /// Whether nothing is shown.
    pub fn is_silent(&self) -> bool {
        matches!(self.kind, Kind::Silent)
    }

    /// The work is over: removes the bar.
    pub fn finish(&self) {
        if let Kind::Bar(bar) = &self.kind {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use indicatif::{ProgressDrawTarget, TermLike};
    use std::io::Result;
    use std::sync::Arc;

    /// A terminal of 80 columns that remembers what was written.
    #[derive(Clone, Debug, Default)]
    struct Screen(Arc<Mutex<String>>);

    impl TermLike for Screen {
        fn width(&self) -> u16 {
            80
        }
        fn move_cursor_up(&self, _: usize) -> Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> Result<()> {
            self.write_str(text)
        }
        fn write_str(&self, text: &str) -> Result<()> {
            self.0.lock().unwrap().push_str(text);
            Ok(())
        }
        fn clear_line(&self) -> Result<()> {
            self.0.lock().unwrap().clear();
            Ok(())
        }
        fn flush(&self) -> Result<()> {
            Ok(())
        }
    }

    /// What a terminal of 80 columns shows of `bar` at `position`.
    pub fn on_80_columns(bar: &ProgressBar, position: u64, message: &str) -> String {
        let screen = Screen::default();
        bar.set_draw_target(ProgressDrawTarget::term_like(Box::new(screen.clone())));
        bar.set_message(message.to_owned());
        bar.set_position(position);
        bar.tick();
        let line = screen.0.lock().unwrap().trim_end().to_owned();
        assert!(line.chars().count() <= 80, "{line}");
        line
    }

    #[test]
    fn rate_and_time_left_fit_80_columns() {
        // As many views as 3DIEBench has; after some days at the slowest.
        let bar = bar_with_rate(2_623_600, "images").with_elapsed(Duration::from_secs(400_000));
        let line =
            on_80_columns(&bar, 1_234_567, "rotation, on the representation, and what else is worth saying");
        assert!(line.contains(" 1234567/2623600 images  ") && line.contains("/s  "), "{line}");
        assert!(line.contains(" left  rotation"), "{line}");
    }
}
