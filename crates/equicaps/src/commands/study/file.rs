//! A study's TOML file: which runs there are, on which data, and how they are evaluated. Options have the names that
//! `render`, `train` and `evaluate` give them, and are checked by these.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use toml::{Spanned, Table, Value};

use super::block::{Block, MOST_RUNS, words};
use crate::UsageError;

/// Longer files are no studies.
const MOST_BYTES: u64 = 1 << 20;

/// A study, with every run spelled out.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// Title of its report.
    pub title: String,
    /// What the report begins with.
    pub introduction: String,
    /// The data, by name.
    pub data: BTreeMap<String, Data>,
    /// The runs, in the order in which they are made.
    pub runs: Vec<Run>,
}

/// Views to train on.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// Made by `equicaps render` with these options.
    Rendered {
        /// The words of its command line, `--out` and `--device` left out.
        options: Vec<String>,
        /// Its line in the file.
        line: usize,
    },
    /// Made by somebody else.
    There {
        /// What `--data` gets.
        path: String,
        /// What `--lists` gets, where that is another folder.
        lists: Option<String>,
        /// Objects it has, for plans that are made before it is there.
        objects: Option<usize>,
    },
}

/// One run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Its name, and its folder's.
    pub name: String,
    /// Its line in the file.
    pub line: usize,
    /// Name of its data.
    pub data: String,
    /// What says what is trained, as words of a command line: `--method`, `--seed` ...
    pub options: Vec<String>,
    /// The settings, `KEY=VALUE`.
    pub set: Vec<String>,
    /// Each of its evaluations, as words of a command line.
    pub evaluations: Vec<Vec<String>>,
}

/// The file as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    title: String,
    #[serde(default)]
    introduction: String,
    data: BTreeMap<String, Spanned<Table>>,
    #[serde(default)]
    all: Option<Spanned<Block>>,
    #[serde(default)]
    evaluate: Table,
    runs: Vec<Spanned<Block>>,
}

/// Where something is in the file.
struct Source<'a> {
    name: String,
    text: &'a str,
}

impl Source<'_> {
    fn line(&self, at: usize) -> usize {
        1 + self.text.get(..at).map_or(0, |before| before.matches('\n').count())
    }

    fn wrong(&self, line: usize, what: impl std::fmt::Display) -> anyhow::Error {
        UsageError(format!("{}, line {line}: {what}", self.name)).into()
    }
}

impl Study {
    /// Reads a file.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let wrong =
            |what: &str| UsageError(format!("{} {what}, expected a study's TOML file", path.display()));
        if path.is_dir() {
            return Err(wrong("is a folder").into());
        }
        let read = || -> std::io::Result<Option<Vec<u8>>> {
            let is_small = std::fs::metadata(path)?.len() <= MOST_BYTES;
            is_small.then(|| std::fs::read(path)).transpose()
        };
        let bytes = read().map_err(|error| UsageError(dataset::Error::read(path)(error).to_string()))?;
        let bytes = bytes.ok_or_else(|| wrong("is larger than 1 MiB"))?;
        let text = String::from_utf8(bytes).map_err(|_| wrong("is no text"))?;
        Self::parse(&path.display().to_string(), &text)
    }

    /// The study in `text`, which is called `name`.
    pub fn parse(name: &str, text: &str) -> anyhow::Result<Self> {
        let source = Source { name: name.to_owned(), text };
        let file: File = toml::from_str(text).map_err(|error| {
            let what = error.message().lines().next().unwrap_or_default().to_owned();
            match error.span() {
                Some(span) => source.wrong(source.line(span.start), what),
                None => UsageError(format!("{name}: {what}")).into(),
            }
        })?;
        let mut study = Self {
            title: file.title,
            introduction: file.introduction,
            data: BTreeMap::new(),
            runs: Vec::new(),
        };
        for (name, table) in file.data {
            let line = source.line(table.span().start);
            check_name(&name).map_err(|what| source.wrong(line, what))?;
            let data = Data::of(table.into_inner(), line).map_err(|what| source.wrong(line, what))?;
            study.data.insert(name, data);
        }
        let all = match &file.all {
            None => Block::default(),
            Some(all) => {
                let line = source.line(all.span().start);
                all.get_ref().check_as_common().map_err(|what| source.wrong(line, what))?;
                all.get_ref().clone()
            }
        };
        for block in &file.runs {
            let line = source.line(block.span().start);
            let wrong = |what: String| source.wrong(line, what);
            let runs = all.under(block.get_ref()).runs(line, &file.evaluate).map_err(wrong)?;
            for run in runs {
                study.add(run).map_err(wrong)?;
            }
        }
        if study.runs.is_empty() {
            return Err(UsageError(format!("{name} has no runs")).into());
        }
        Ok(study)
    }

    /// Adds a run, once.
    fn add(&mut self, run: Run) -> Result<(), String> {
        check_name(&run.name)?;
        if !self.data.contains_key(&run.data) {
            let known: Vec<&str> = self.data.keys().map(String::as_str).collect();
            return Err(format!("there are no data {:?} (data: {})", run.data, known.join(", ")));
        }
        match self.runs.iter_mut().find(|other| other.name == run.name) {
            None => self.runs.push(run),
            Some(other) if other.options == run.options && other.set == run.set => {
                let more = run.evaluations.into_iter().filter(|words| !other.evaluations.contains(words));
                let more: Vec<_> = more.collect();
                other.evaluations.extend(more);
            }
            Some(other) => {
                return Err(format!(
                    "the run {} is there already, with other settings, in line {}; give these runs a name",
                    run.name, other.line
                ));
            }
        }
        if self.runs.len() > MOST_RUNS {
            return Err(format!("these are more than {MOST_RUNS} runs"));
        }
        Ok(())
    }

    /// The study with `seed` for everything: data, runs and evaluations.
    pub fn with_seed(mut self, seed: u64) -> Self {
        let put = |words: &mut Vec<String>| match words.iter().position(|word| word == "--seed") {
            Some(at) if at + 1 < words.len() => words[at + 1] = seed.to_string(),
            // 0 is what everything has without one.
            _ if seed == 0 => {}
            _ => words.extend(["--seed".to_owned(), seed.to_string()]),
        };
        for data in self.data.values_mut() {
            if let Data::Rendered { options, .. } = data {
                put(options);
            }
        }
        for run in &mut self.runs {
            put(&mut run.options);
            run.evaluations.iter_mut().for_each(put);
        }
        self
    }
}

impl Data {
    fn of(mut table: Table, line: usize) -> Result<Self, String> {
        let Some(path) = table.remove("path") else {
            for taken in ["out", "device", "shard"] {
                if table.contains_key(taken) {
                    return Err(format!("a study itself says `{taken}` when it renders"));
                }
            }
            return Ok(Self::Rendered { options: words(&table)?, line });
        };
        let text = |key: &str, value: Value| match value {
            Value::String(text) => Ok(text),
            other => Err(format!("{key} takes text in quotation marks, not {other}")),
        };
        let there = Self::There {
            path: text("path", path)?,
            lists: table.remove("lists").map(|value| text("lists", value)).transpose()?,
            objects: match table.remove("objects") {
                None => None,
                Some(Value::Integer(count)) if (1..=1 << 31).contains(&count) => Some(count as usize),
                Some(other) => return Err(format!("objects takes a number of objects, not {other}")),
            },
        };
        match table.keys().next() {
            Some(key) => Err(format!("data with a path have `lists` and `objects` besides, not `{key}`")),
            None => Ok(there),
        }
    }
}

/// Refuses names that are no names of folders.
fn check_name(name: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.+=,[]".contains(c);
    let starts = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if starts && name.len() <= 200 && name.chars().all(plain) {
        return Ok(());
    }
    Err(format!("{name:?} cannot be the name of a folder: letters, digits, - _ . + = can be in it"))
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
