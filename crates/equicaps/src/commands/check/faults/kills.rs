//! Processes that end in the middle, cannot write, or are two: what is left is finished by the same command, and must be
//! what an undisturbed one leaves.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use evaluate::features;
use random::{Random, Stream};

use super::small::{Small, finish, tree};
use super::{Row, Verdict};

/// Kills of one piece of work before it is left to finish.
pub const KILLS: u32 = 3;

/// Makes the command that begins work in a folder, or goes on with it.
pub type Begin<'a> = dyn Fn(&Path) -> anyhow::Result<Command> + 'a;

/// A kind of work: its name, how it is begun and gone on with, and what it must leave.
pub struct Work<'a> {
    /// Its name.
    pub name: &'static str,
    expected: &'a Path,
    /// Begins it, or goes on with it.
    pub command: Box<Begin<'a>>,
}

/// All kinds of work.
pub fn works(small: &Small) -> Vec<Work<'_>> {
    let render = |format: &'static str| move |out: &Path| small.render(format, out);
    vec![
        Work { name: "render, files", expected: &small.files, command: Box::new(render("files")) },
        Work { name: "render, shards", expected: &small.shards, command: Box::new(render("shards")) },
        Work { name: "train", expected: &small.run, command: Box::new(|out| small.train(out)) },
        Work {
            name: "evaluate",
            expected: &small.evaluation,
            command: Box::new(|out| small.evaluate(out, &out.join(features::FOLDER))),
        },
    ]
}

/// Whether `out` is what `work` leaves.
pub fn verdict(work: &Work<'_>, out: &Path) -> anyhow::Result<(Verdict, String)> {
    let without_cache = |root: &Path| -> anyhow::Result<_> {
        let mut files = tree(root)?;
        files.retain(|name, _| !name.starts_with(features::FOLDER));
        Ok(files)
    };
    let (found, expected) = (without_cache(out)?, without_cache(work.expected)?);
    let names = found.keys().chain(expected.keys());
    let other = names.into_iter().find(|name| found.get(*name) != expected.get(*name));
    Ok(match other {
        None => (Verdict::Same, String::new()),
        Some(name) => (Verdict::Wrong, format!("{} is another one", name.display())),
    })
}

/// Kills every kind of work at random moments, several times, and lets it finish.
pub fn kills(small: &Small, rounds: u32, seed: u64) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for work in works(small) {
        let began = Instant::now();
        let out = small.fresh("kills")?;
        finish(&mut (work.command)(&out)?)?;
        let whole = began.elapsed();
        let mut row = Row::new(format!("{}: killed {KILLS} times", work.name));
        for round in 0..rounds {
            let mut random = Random::new(seed, Stream::new(work.name), u64::from(round));
            let out = small.fresh("kills")?;
            for _ in 0..KILLS {
                let mut child = (work.command)(&out)?.spawn()?;
                let moment = random.below(whole.as_micros().max(1) as u64);
                std::thread::sleep(Duration::from_micros(moment));
                child.kill()?;
                child.wait()?;
            }
            let output = (work.command)(&out)?.output()?;
            let (verdict, found) = match output.status.success() {
                true => verdict(&work, &out)?,
                false if is_crash(&output) => (Verdict::Crashed, said(&output)),
                // What a kill left must not need help.
                false => (Verdict::Wrong, said(&output)),
            };
            row.count_with(verdict, found);
        }
        rows.push(row);
    }
    Ok(rows)
}

/// Whether a process ended by a panic, or by a signal of its own.
pub fn is_crash(output: &Output) -> bool {
    output.status.code().is_none_or(|code| code == 101)
        || String::from_utf8_lossy(&output.stderr).contains("panicked")
}

/// What a process said of warnings and errors.
pub fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).trim().to_owned()
}

/// Every kind of work where no file may grow beyond a few kilobytes: writing fails as on a full disk. What is there
/// afterwards is finished without the limit.
#[cfg(unix)]
pub fn full_disk(small: &Small, rounds: u32, seed: u64) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for work in works(small) {
        let mut row = Row::new(format!("{}: files cannot grow", work.name));
        for round in 0..rounds {
            let mut random = Random::new(seed, Stream::new(work.name), 1000 + u64::from(round));
            let out = small.fresh("disk")?;
            let blocks = random.below(40);
            let command = (work.command)(&out)?;
            // The signal that tells of the limit is ignored, so that writing returns an error.
            let mut limited = Command::new("sh");
            limited.args(["-c", &format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"")]);
            limited.arg(command.get_program()).args(command.get_args()).env("RUST_BACKTRACE", "0");
            let output = anyhow::Context::context(limited.output(), "cannot start sh, which sets the limit")?;
            if is_crash(&output) {
                row.count_with(Verdict::Crashed, said(&output));
                continue;
            }
            let failed = !output.status.success();
            let words = said(&output);
            let errors: Vec<&str> = words.lines().filter(|line| !line.starts_with("warning: ")).collect();
            if failed && (errors.len() != 1 || !errors[0].contains("cannot write")) {
                row.count_with(Verdict::Wrong, words);
                continue;
            }
            finish(&mut (work.command)(&out)?)?;
            let (verdict, found) = verdict(&work, &out)?;
            row.count_with(
                if verdict == Verdict::Same && failed { Verdict::Refused } else { verdict },
                found,
            );
        }
        rows.push(row);
    }
    Ok(rows)
}

#[cfg(not(unix))]
pub fn full_disk(_: &Small, _: u32, _: u64) -> anyhow::Result<Vec<Row>> {
    Ok(Vec::new())
}

/// Two processes on one folder at once: a dataset and an evaluation are made by both, a run by one of them.
pub fn two_writers(small: &Small, rounds: u32) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for work in works(small) {
        let mut row = Row::new(format!("{}: two processes at once", work.name));
        for _ in 0..rounds {
            let out: PathBuf = small.fresh("writers")?;
            let both = [(work.command)(&out)?.spawn()?, (work.command)(&out)?.spawn()?];
            let mut outputs = Vec::new();
            for child in both {
                outputs.push(child.wait_with_output()?);
            }
            let is_one = outputs.iter().any(|output| output.status.success());
            let is_told = outputs.iter().any(|output| !output.status.success());
            let words = outputs.iter().map(said).collect::<Vec<_>>().join("; ");
            if outputs.iter().any(is_crash) {
                row.count_with(Verdict::Crashed, words);
            } else if !is_one {
                row.count_with(Verdict::Wrong, words);
            } else {
                let (verdict, found) = verdict(&work, &out)?;
                row.count_with(
                    if verdict == Verdict::Same && is_told { Verdict::Refused } else { verdict },
                    found,
                );
            }
        }
        rows.push(row);
    }
    Ok(rows)
}
