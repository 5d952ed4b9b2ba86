//! Which evaluations of a run are done: what the study remembers, and whether the results are there.

use dataset::durable;
use evaluate::features;
use evaluate::results::{FILE, Results};
use evaluate::weights::{UNTRAINED_FOLDER, Which, epoch_folder};
use train::Config;

use super::file::Run;
use super::site::{Site, parse};
use crate::commands::{Command, evaluate as evaluating};

/// Which evaluations a run has, in the order in which they were made.
const EVALUATED: &str = "evaluation/study.json";

/// The epochs whose checkpoints are to be evaluated, where they are named.
pub(super) fn epochs(run: &Run) -> Vec<u64> {
    let named = run.evaluations.iter().filter_map(|words| match which(words) {
        Some(Which::Epochs(epochs)) => Some(epochs),
        _ => None,
    });
    named.flatten().collect()
}

/// What `evaluate RUN WORDS` is asked for.
fn arguments(words: &[String]) -> Option<Box<evaluating::Arguments>> {
    let command = ["evaluate".to_owned(), "RUN".to_owned()];
    match parse(&[&command[..], words].concat()) {
        Ok(Command::Evaluate(arguments)) => Some(arguments),
        _ => None,
    }
}

/// Which weights it takes.
fn which(words: &[String]) -> Option<Which> {
    Some(arguments(words)?.asked().ok()?.1)
}

/// An evaluation as the study remembers it.
fn name(words: &[String], config: &Config) -> String {
    format!("{} after {} epochs", words.join(" "), config.epochs)
}

/// The words of an evaluation that [`name`] has named, and the epochs of its run.
fn words_of(name: &str) -> (Vec<String>, u64) {
    let (words, after) = name.split_once(" after ").unwrap_or((name, ""));
    let epochs = after.split(' ').next().and_then(|number| number.parse().ok());
    (words.split(' ').map(str::to_owned).collect(), epochs.unwrap_or(0))
}

/// What an evaluation is known by, whatever words it was asked for with: the newest checkpoint is that of the last epoch, and
/// what is said of an epoch does not depend on how long the run went on.
fn key(words: &[String], epochs: u64) -> String {
    let all = words.join(" ");
    match which(words) {
        Some(Which::Newest) => all.replace("--epochs newest", &format!("--epochs {epochs}")),
        Some(Which::Epochs(_)) => all,
        _ => format!("{all} after {epochs} epochs"),
    }
}

/// Refuses evaluations of the same network of which one would take the other's place and leave nothing of it.
pub(super) fn check_together(run: &Run, epochs: u64) -> Result<(), String> {
    let way = |words: &Vec<String>| Some((folders(words, epochs), arguments(words)?.way()));
    let all: Vec<_> = run.evaluations.iter().filter_map(way).collect();
    for (index, (folders, way)) in all.iter().enumerate() {
        let others = all[..index].iter().filter(|(other, _)| other.iter().any(|one| folders.contains(one)));
        if others.into_iter().any(|(_, other)| other != way) {
            return Err(format!(
                "{} is evaluated twice after the same epochs, with another image_size or precision: give the second run \
                 another name, or evaluate it by hand with --out",
                run.name
            ));
        }
    }
    Ok(())
}

/// The folders that `evaluate RUN WORDS` writes, of a run with so many epochs.
fn folders(words: &[String], epochs: u64) -> Vec<String> {
    match which(words) {
        Some(Which::Untrained) => vec![UNTRAINED_FOLDER.to_owned()],
        Some(Which::Epochs(epochs)) => epochs.into_iter().map(epoch_folder).collect(),
        _ => vec![epoch_folder(epochs)],
    }
}

impl Site {
    /// The evaluations of `run` that are not done.
    pub fn missing<'a>(&self, run: &'a Run, config: &Config) -> Vec<&'a Vec<String>> {
        let epochs = self.made(run, config).epochs;
        let done: Vec<(String, Vec<String>)> = self
            .evaluated(run)
            .iter()
            .map(|name| {
                let (words, epochs) = words_of(name);
                (key(&words, epochs), folders(&words, epochs))
            })
            .collect();
        let asked: Vec<String> = run.evaluations.iter().map(|words| key(words, epochs)).collect();
        let is_done = |words: &Vec<String>| {
            let (key, own) = (key(words, epochs), folders(words, epochs));
            let Some(at) = done.iter().rposition(|(other, _)| *other == key) else { return false };
            // Results that nobody asks for any more may stand in their place.
            let covers = |(later, folders): &(String, Vec<String>)| {
                !asked.contains(later) && folders.iter().any(|folder| own.contains(folder))
            };
            !done[at + 1..].iter().any(covers) && self.has_results(run, &own)
        };
        run.evaluations.iter().filter(|words| !is_done(words)).collect()
    }

    /// Whether the results in these folders can be read.
    fn has_results(&self, run: &Run, folders: &[String]) -> bool {
        let root = self.root(run).join("evaluation");
        folders.iter().all(|folder| Results::read(&root.join(folder).join(FILE)).is_ok())
    }

    fn evaluated(&self, run: &Run) -> Vec<String> {
        let text = std::fs::read_to_string(self.root(run).join(EVALUATED)).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Writes down that an evaluation is done, and removes the features it was made of: those of all runs of a study would
    /// fill a disk.
    pub fn note_evaluated(&self, run: &Run, config: &Config, evaluation: &[String]) -> anyhow::Result<()> {
        let (mut done, name) = (self.evaluated(run), name(evaluation, &self.made(run, config)));
        done.retain(|other| *other != name);
        done.push(name);
        durable::write(&self.root(run).join(EVALUATED), serde_json::to_string(&done)?.as_bytes())?;
        let features = self.root(run).join("evaluation").join(features::FOLDER);
        match std::fs::remove_dir_all(&features) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(anyhow::anyhow!("cannot remove {}: {error}", features.display()))
            }
            _ => Ok(()),
        }
    }
}
