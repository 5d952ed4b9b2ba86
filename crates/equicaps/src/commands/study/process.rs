//! One part of a study (rendering, a run, an evaluation) as a process of its own: a GPU that fails, memory that runs out or a
//! panic ends this part and no other, and all of its memory is free afterwards.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::Value;

use crate::{interrupt, itself};

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

/// In which way parts are run.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// CPU threads of a part.
    pub threads: usize,
    /// Whether a part shows no progress.
    pub quiet: bool,
    /// Whether this process speaks for its parts, of which there are several at a time.
    pub speaks: bool,
    /// Until when, at the longest.
    pub deadline: Option<Instant>,
}

impl Manner {
    /// Whether there is no time for anything more.
    pub fn is_over(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

/// Runs `equicaps WORDS`; `hears` gets the lines that it says, where it does not say them itself. What `held` is locked for
/// stays locked as long as the part lives, also where this process is killed.
pub fn run(
    words: &[String],
    manner: &Manner,
    held: &File,
    hears: impl Fn(&str) + Sync,
) -> anyhow::Result<Ended> {
    let stop = interrupt::flag();
    interrupt::means("stopping the study; what is in hand is saved; once more to end at once");
    if stop.load(Ordering::Relaxed) || manner.is_over() {
        stop.store(true, Ordering::Relaxed);
        return Ok(Ended::Interrupted);
    }
    let mut command = Command::new(itself::program()?);
    command.args(words).args(["--json", "--threads", &manner.threads.to_string()]);
    command.args(manner.quiet.then_some("--quiet"));
    // The file is empty, so that the part reads nothing from it; but it has it, and the lock with it.
    command.stdin(held.try_clone().context("cannot pass a lock on")?).stdout(Stdio::piped());
    if manner.speaks {
        command.stderr(Stdio::piped());
    }
    // A part is trained by one process, whoever started this one.
    ranks::RANK_VARIABLES.iter().for_each(|name| _ = command.env_remove(name));
    interrupt::govern(&mut command);
    let mut child = command.spawn().context("cannot start another process")?;
    let (answer, remarks) = (child.stdout.take(), child.stderr.take());
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut text = String::new();
            // What is not text is no answer.
            answer.and_then(|mut answer| answer.read_to_string(&mut text).ok());
            text
        });
        scope.spawn(|| {
            let lines = remarks.into_iter().flat_map(|remarks| BufReader::new(remarks).split(b'\n'));
            // Why it fails is in its answer, too.
            for line in lines.map_while(Result::ok).filter(|line| !line.starts_with(b"error: ")) {
                hears(&String::from_utf8_lossy(&line));
            }
        });
        let status = wait(&mut child, manner)?;
        Ok(ended(status, &reader.join().unwrap_or_default(), stop.load(Ordering::Relaxed)))
    })
}

/// Waits for a part to end, and asks it to when there is no more time.
fn wait(child: &mut Child, manner: &Manner) -> anyhow::Result<ExitStatus> {
    let (stop, working) = (interrupt::flag(), interrupt::Working::new(child.id()));
    let mut noticed: Option<Instant> = None;
    loop {
        if let Some(status) = child.try_wait().context("lost sight of a process")? {
            return Ok(status);
        }
        if manner.is_over() {
            stop.store(true, Ordering::Relaxed);
        }
        if stop.load(Ordering::Relaxed) && noticed.get_or_insert_with(Instant::now).elapsed() > COURTESY {
            working.stop();
        }
        std::thread::sleep(LOOK);
    }
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
