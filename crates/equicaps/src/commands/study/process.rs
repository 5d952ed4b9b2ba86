//! One part of a study (rendering, a run, an evaluation) as a process of its own: a GPU that fails, memory that runs out or a
//! panic ends this part and no other, and all of its memory is free afterwards.

use std::io::Read;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::Value;

use crate::interrupt;
use crate::terminal::Terminal;

/// How a part ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It is done.
    Done,
    /// It was stopped, and saved what it had.
    Interrupted,
    /// It failed; a sentence says why.
    Failed(String),
}

/// A signal to all processes of a job reaches the part first, so that this process does not count as a second one.
const COURTESY: Duration = Duration::from_millis(300);
/// Between two looks at a part.
const LOOK: Duration = Duration::from_millis(50);

/// Runs `equicaps WORDS`, until `deadline` at the longest.
pub fn run(words: &[String], terminal: &Terminal, deadline: Option<Instant>) -> anyhow::Result<Ended> {
    let stop = interrupt::flag();
    interrupt::means("stopping the study; what is in hand is saved; once more to end at once");
    let is_over = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
    if stop.load(Ordering::Relaxed) || is_over() {
        stop.store(true, Ordering::Relaxed);
        return Ok(Ended::Interrupted);
    }
    let program = std::env::current_exe().context("this program does not find itself")?;
    let mut command = Command::new(program);
    command.args(words).args(["--json", "--threads", &rayon::current_num_threads().to_string()]);
    command.args(terminal.is_quiet().then_some("--quiet"));
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    // A part is trained by one process, whoever started this one.
    ranks::RANK_VARIABLES.iter().for_each(|name| _ = command.env_remove(name));
    interrupt::govern(&mut command);
    let mut child = command.spawn().context("cannot start another process")?;
    interrupt::works_in(Some(child.id()));
    let mut said = child.stdout.take();
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        // What is not text is no answer.
        said.as_mut().and_then(|said| said.read_to_string(&mut text).ok());
        text
    });
    let mut noticed: Option<Instant> = None;
    let status = loop {
        if let Some(status) = child.try_wait().context("lost sight of a process")? {
            break status;
        }
        if is_over() {
            stop.store(true, Ordering::Relaxed);
        }
        if stop.load(Ordering::Relaxed) && noticed.get_or_insert_with(Instant::now).elapsed() > COURTESY {
            interrupt::stop_child();
        }
        std::thread::sleep(LOOK);
    };
    interrupt::works_in(None);
    let text = reader.join().unwrap_or_default();
    Ok(ended(status, &text, stop.load(Ordering::Relaxed)))
}

fn ended(status: ExitStatus, text: &str, was_stopped: bool) -> Ended {
    match status.code() {
        Some(0) => Ended::Done,
        Some(code) if code == i32::from(interrupt::TRY_AGAIN) => Ended::Interrupted,
        _ if was_stopped => Ended::Interrupted,
        code => {
            let answer: Option<Value> = serde_json::from_str(text.trim()).ok();
            let sentence = answer.as_ref().and_then(|answer| answer.get("error")).and_then(Value::as_str);
            Ended::Failed(match (sentence, code) {
                (Some(sentence), _) => sentence.to_owned(),
                (None, Some(code)) => format!("ended with status {code}"),
                (None, None) => format!("was ended from outside ({status}); is there enough memory?"),
            })
        }
    }
}
