//! A study's TOML file: which runs there are, on which data, and how they are evaluated. A block of runs is a product of
//! its lists; options have the names that `render`, `train` and `evaluate` give them, and are checked by these.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use toml::{Spanned, Table, Value};

use crate::UsageError;

/// Longer files are no studies.
const MOST_BYTES: u64 = 1 << 20;
/// Products with more runs are slips of the finger.
const MOST_RUNS: usize = 10_000;

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
    all: Block,
    #[serde(default)]
    evaluate: Table,
    runs: Vec<Spanned<Block>>,
}

/// One value or several.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Several<T> {
    One(T),
    List(Vec<T>),
}

impl<T: Clone> Several<T> {
    fn all(&self) -> Vec<T> {
        match self {
            Self::One(one) => vec![one.clone()],
            Self::List(list) => list.clone(),
        }
    }
}

/// Runs that differ in what has a list.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Block {
    /// The whole name of a single run.
    run: Option<String>,
    /// Ends the names of these runs, where they would have the names of others.
    name: Option<String>,
    data: Option<Several<String>>,
    method: Option<Several<String>>,
    transform: Option<Several<String>>,
    backbone: Option<Several<String>>,
    seed: Option<Several<u64>>,
    preset: Option<String>,
    /// Settings of all of them.
    #[serde(default)]
    set: Table,
    /// Settings with a list each.
    #[serde(default)]
    vary: BTreeMap<String, Vec<Value>>,
    /// Options of their evaluation.
    #[serde(default)]
    evaluate: Table,
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
        let read = || -> std::io::Result<String> {
            if std::fs::metadata(path)?.len() > MOST_BYTES {
                return Err(std::io::Error::other("is larger than 1 MiB, which no study is"));
            }
            std::fs::read_to_string(path)
        };
        let text = read().map_err(|error| UsageError(format!("cannot read {}: {error}", path.display())))?;
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
        for block in &file.runs {
            let line = source.line(block.span().start);
            let wrong = |what: String| source.wrong(line, what);
            let runs = file.all.under(block.get_ref()).runs(line, &file.evaluate).map_err(wrong)?;
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

impl Block {
    /// `block` with what it leaves out taken from `self`.
    fn under(&self, block: &Self) -> Self {
        let (all, block) = (self.clone(), block.clone());
        Self {
            run: block.run,
            name: block.name.or(all.name),
            data: block.data.or(all.data),
            method: block.method.or(all.method),
            transform: block.transform.or(all.transform),
            backbone: block.backbone.or(all.backbone),
            seed: block.seed.or(all.seed),
            preset: block.preset.or(all.preset),
            set: over(all.set, block.set),
            vary: all.vary.into_iter().chain(block.vary).collect(),
            evaluate: over(all.evaluate, block.evaluate),
        }
    }

    /// The runs, the last list changing fastest; with the options of the evaluation of all.
    fn runs(&self, line: usize, evaluate: &Table) -> Result<Vec<Run>, String> {
        let Some(data) = &self.data else { return Err("these runs have no data".to_owned()) };
        let Some(method) = &self.method else { return Err("these runs have no method".to_owned()) };
        let several = |values: &Option<Several<String>>| -> Vec<Option<String>> {
            values.as_ref().map_or(vec![None], |values| values.all().into_iter().map(Some).collect())
        };
        let texts = |values: &Several<String>| values.all().into_iter().map(Some).collect::<Vec<_>>();
        let seeds = self.seed.as_ref().map_or(vec![0], Several::all);
        let mut axes: Vec<(&str, Vec<Option<String>>)> = vec![
            ("data", texts(data)),
            ("method", texts(method)),
            ("transform", several(&self.transform)),
            ("backbone", several(&self.backbone)),
        ];
        for (key, values) in &self.vary {
            axes.push((key, values.iter().map(|value| Some(written(value))).collect()));
        }
        axes.push(("seed", seeds.iter().map(|seed| Some(seed.to_string())).collect()));
        if let Some((name, _)) = axes.iter().find(|(_, values)| values.is_empty()) {
            return Err(format!("the list of {name} is empty"));
        }
        let count = axes.iter().try_fold(1_usize, |count, (_, values)| count.checked_mul(values.len()));
        let Some(count) = count.filter(|count| *count <= MOST_RUNS) else {
            return Err(format!("these are more than {MOST_RUNS} runs"));
        };
        if self.run.is_some() && count > 1 {
            return Err(format!(
                "`run` names one run, but these are {count}; `name` ends the names of several"
            ));
        }
        let evaluations = evaluations(over(evaluate.clone(), self.evaluate.clone()))?;
        (0..count)
            .map(|index| {
                let mut left = index;
                let mut chosen: Vec<(&str, Option<&String>)> = Vec::new();
                for (name, values) in axes.iter().rev() {
                    chosen.push((name, values[left % values.len()].as_ref()));
                    left /= values.len();
                }
                chosen.reverse();
                self.run(line, &chosen, evaluations.clone())
            })
            .collect()
    }

    fn run(
        &self,
        line: usize,
        chosen: &[(&str, Option<&String>)],
        evaluations: Vec<Vec<String>>,
    ) -> Result<Run, String> {
        let mut options = Vec::new();
        let mut set: Vec<String> = self.set.iter().flat_map(|(key, value)| assignments(key, value)).collect();
        let mut name = Vec::new();
        for &(axis, value) in chosen {
            let Some(value) = value else { continue };
            match axis {
                "data" => name.push(value.clone()),
                "method" | "transform" | "backbone" | "seed" => {
                    options.extend([format!("--{axis}"), value.clone()]);
                    match (axis, value.as_str()) {
                        ("transform", "rotation") | ("backbone", "resnet18") => {}
                        ("seed", seed) => {
                            name.extend(self.name.clone());
                            name.push(format!("s{seed}"));
                        }
                        _ => name.push(value.clone()),
                    }
                }
                key => {
                    set.push(format!("{key}={value}"));
                    let short = key.rsplit('.').next().unwrap_or(key);
                    // capsules16, but task_rotation.
                    let join = if value.starts_with(|c: char| c.is_ascii_digit()) { "" } else { "_" };
                    name.push(format!("{short}{join}{value}"));
                }
            }
        }
        if let Some(preset) = &self.preset {
            options.extend(["--preset".to_owned(), preset.clone()]);
        }
        let data = chosen.iter().find(|(axis, _)| *axis == "data").and_then(|(_, value)| value.cloned());
        let data = data.unwrap_or_default();
        let name = self.run.clone().unwrap_or_else(|| name.join("-"));
        Ok(Run { name, line, data, options, set, evaluations })
    }
}

/// The evaluations that the options ask for: one for each of a list of `epochs`, one of the untrained network.
fn evaluations(mut options: Table) -> Result<Vec<Vec<String>>, String> {
    for taken in ["data", "lists", "out", "cache", "device"] {
        if options.contains_key(taken) {
            return Err(format!("a study itself says `{taken}` when it evaluates"));
        }
    }
    let untrained = matches!(options.remove("untrained"), Some(Value::Boolean(true)));
    let epochs = match options.remove("epochs") {
        Some(Value::Array(list)) => list,
        Some(one) => vec![one],
        None => vec![Value::String("newest".to_owned())],
    };
    let common = words(&options)?;
    let with = |more: &[String]| [&common[..], more].concat();
    let mut all: Vec<Vec<String>> =
        epochs.iter().map(|epoch| with(&["--epochs".to_owned(), written(epoch)])).collect();
    if untrained {
        all.push(with(&["--untrained".to_owned()]));
    }
    Ok(all)
}

/// What `below` says, changed by `above`.
fn over(mut below: Table, above: Table) -> Table {
    below.extend(above);
    below
}

/// `KEY=VALUE` of every setting in `value`, which may be a group of settings.
fn assignments(key: &str, value: &Value) -> Vec<String> {
    match value {
        Value::Table(group) => {
            group.iter().flat_map(|(name, value)| assignments(&format!("{key}.{name}"), value)).collect()
        }
        value => vec![format!("{key}={}", written(value))],
    }
}

/// A value as a command line has it.
fn written(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Options as words of a command line: `views = 50` is `--views 50`, `strict = true` is `--strict`, lists are repeated.
fn words(options: &Table) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    for (key, value) in options {
        let option = format!("--{}", key.replace('_', "-"));
        match value {
            Value::Boolean(true) => words.push(option),
            Value::Boolean(false) => {}
            Value::Array(list) => words.extend(list.iter().flat_map(|one| [option.clone(), written(one)])),
            Value::Table(_) => return Err(format!("`{key}` is no group of options")),
            one => words.extend([option, written(one)]),
        }
    }
    Ok(words)
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
