//! `equicaps check faults`: does everything that we fear to a small dataset, run and evaluation (kills, flipped bits,
//! cut files, both one after the other, a disk that takes no more, two processes at once) and counts what came of it.

mod damage;
mod kills;
mod small;
mod studies;
mod unfinished;

use std::fmt;

use serde::Serialize;

use crate::commands::frame::text_table;
use crate::outcome::Outcome;
use crate::terminal::Terminal;

/// Arguments of `equicaps check faults`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  equicaps check faults
  equicaps check faults --rounds 200 --parts damage

Exit status: 1 where the program ended by a panic or a signal of its own, or where a result is not
what it would have been. What is promised, and what is not: docs/reliability.md.")]
pub struct Arguments {
    /// How often every fault is tried
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rounds: u32,
    /// Seed of the places and moments of faults
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Faults to try, separated by commas: damage, kills, studies (killed), unfinished (killed, then damaged), disk, writers
    #[arg(long, value_name = "PARTS", value_delimiter = ',', default_value = "damage,kills,studies,unfinished,disk,writers", value_parser = ["damage", "kills", "studies", "unfinished", "disk", "writers"])]
    parts: Vec<String>,
}

/// What came of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// It was told, and nothing was made of it.
    Refused,
    /// The result is what it would have been.
    Same,
    /// Taken for an edit: a file without a checksum, made for people, that says something else now.
    Taken,
    /// The result is another one, and nobody said so.
    Wrong,
    /// The program ended by a panic, a signal, or not at all.
    Crashed,
}

/// One kind of fault.
#[derive(Clone, Debug, Default, Serialize)]
struct Row {
    fault: String,
    tried: u32,
    refused: u32,
    same: u32,
    taken: u32,
    wrong: u32,
    crashed: u32,
    /// What was wrong or crashed first.
    #[serde(skip_serializing_if = "Option::is_none")]
    example: Option<String>,
}

impl Row {
    fn new(fault: impl Into<String>) -> Self {
        Self { fault: fault.into(), ..Self::default() }
    }

    /// Counts a verdict that is not good, with what was found.
    fn count_with(&mut self, verdict: Verdict, found: impl Into<String>) {
        if matches!(verdict, Verdict::Wrong | Verdict::Crashed) {
            self.example.get_or_insert_with(|| found.into());
        }
        self.count(verdict);
    }

    fn count(&mut self, verdict: Verdict) {
        self.tried += 1;
        *match verdict {
            Verdict::Refused => &mut self.refused,
            Verdict::Same => &mut self.same,
            Verdict::Taken => &mut self.taken,
            Verdict::Wrong => &mut self.wrong,
            Verdict::Crashed => &mut self.crashed,
        } += 1;
    }
}

/// Runs the check.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<Outcome> {
    let temporary = tempfile::Builder::new().prefix("equicaps-check-faults-").tempdir()?;
    let small = small::Small::new(temporary.path())?;
    terminal.note("made a small dataset in both layouts, a run and an evaluation");
    let mut rows = Vec::new();
    for part in &arguments.parts {
        terminal.note(format!("trying {part}"));
        rows.extend(match part.as_str() {
            "damage" => damage::run(&small, arguments.rounds, arguments.seed)?,
            "kills" => kills::kills(&small, arguments.rounds, arguments.seed)?,
            "studies" => studies::run(&small, arguments.rounds, arguments.seed)?,
            "unfinished" => unfinished::run(&small, arguments.rounds, arguments.seed)?,
            "disk" => kills::full_disk(&small, arguments.rounds, arguments.seed)?,
            _ => kills::two_writers(&small, arguments.rounds)?,
        });
    }
    let wrong = rows.iter().any(|row| row.wrong + row.crashed > 0);
    Ok(Outcome::new(&Faults { rows })?.failed_if(wrong, "a fault did harm, or a process crashed"))
}

/// What came of all of them.
#[derive(Serialize)]
struct Faults {
    rows: Vec<Row>,
}

impl fmt::Display for Faults {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headings = ["fault", "tried", "told", "no effect", "taken for an edit", "WRONG", "CRASHED"];
        let cells = |row: &Row| {
            let counts = [row.tried, row.refused, row.same, row.taken, row.wrong, row.crashed];
            std::iter::once(row.fault.clone()).chain(counts.map(|count| count.to_string())).collect()
        };
        write!(formatter, "{}", text_table(&headings, self.rows.iter().map(cells)))?;
        for row in &self.rows {
            if let Some(example) = &row.example {
                writeln!(formatter, "{}: {example}", row.fault)?;
            }
        }
        let total = |count: fn(&Row) -> u32| self.rows.iter().map(count).sum::<u32>();
        write!(
            formatter,
            "{} faults, {} wrong results, {} crashes",
            total(|row| row.tried),
            total(|row| row.wrong),
            total(|row| row.crashed)
        )
    }
}
