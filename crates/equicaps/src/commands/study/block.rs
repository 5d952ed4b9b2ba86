//! A block of runs in a study's file: the product of its lists, each run with its name and the words of its commands.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::{Table, Value};

use super::file::Run;

/// Products with more runs are slips of the finger.
pub(super) const MOST_RUNS: usize = 10_000;

/// Runs that differ in what has a list.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Block {
    /// The whole name of a single run.
    run: Option<String>,
    /// Ends the names of these runs, where they would have the names of others.
    name: Option<String>,
    // One value or a list.
    data: Option<Value>,
    method: Option<Value>,
    transform: Option<Value>,
    backbone: Option<Value>,
    seed: Option<Value>,
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

impl Block {
    /// `block` with what it leaves out taken from `self`.
    pub(super) fn under(&self, block: &Self) -> Self {
        let (mut all, block) = (self.clone(), block.clone());
        let (set, vary) = (flat(block.set), block.vary);
        // What a block says of a setting, it says instead of what is said of all.
        let mut of_all = flat(all.set);
        of_all.retain(|key, _| !vary.contains_key(key));
        all.vary.retain(|key, _| !set.contains_key(key));
        Self {
            run: block.run,
            name: block.name.or(all.name),
            data: block.data.or(all.data),
            method: block.method.or(all.method),
            transform: block.transform.or(all.transform),
            backbone: block.backbone.or(all.backbone),
            seed: block.seed.or(all.seed),
            preset: block.preset.or(all.preset),
            // A setting may be written by its whole name, or in a group.
            set: over(of_all, set),
            vary: all.vary.into_iter().chain(vary).collect(),
            evaluate: over(all.evaluate, block.evaluate),
        }
    }

    /// Refuses what only a single block can say.
    pub(super) fn check_as_common(&self) -> Result<(), String> {
        match self.run {
            Some(_) => Err("`run` names one run, so it cannot be said of all".to_owned()),
            None => Ok(()),
        }
    }

    /// The runs, the last list changing fastest; with the options of the evaluation of all.
    pub(super) fn runs(&self, line: usize, evaluate: &Table) -> Result<Vec<Run>, String> {
        for key in ["data", "method", "transform", "backbone", "seed", "device"] {
            if self.set.contains_key(key) || self.vary.contains_key(key) {
                return Err(match key {
                    "device" => {
                        "the device is that of the study (`--device`), not a setting of its runs".to_owned()
                    }
                    key => format!("`{key}` is a word of its own beside `set`, for one value or a list"),
                });
            }
        }
        if let Some(key) = self.vary.keys().find(|key| self.set.contains_key(*key)) {
            return Err(format!("{key} is in `set` and in `vary`"));
        }
        let several =
            |key: &str, values: &Option<Value>, kind: Kind| -> Result<Vec<Option<String>>, String> {
                let Some(values) = values else { return Ok(vec![None]) };
                Ok(kind.all(key, values)?.into_iter().map(Some).collect())
            };
        let mut axes: Vec<(&str, Vec<Option<String>>)> = Vec::new();
        for (key, values) in [
            ("data", &self.data),
            ("method", &self.method),
            ("transform", &self.transform),
            ("backbone", &self.backbone),
        ] {
            if values.is_none() && ["data", "method"].contains(&key) {
                return Err(format!("these runs have no {key}"));
            }
            axes.push((key, several(key, values, Kind::Text)?));
        }
        for (key, values) in &self.vary {
            axes.push((key, values.iter().map(|value| Some(assigned(value))).collect()));
        }
        let seeds = self.seed.clone().unwrap_or(Value::Integer(0));
        axes.push(("seed", several("seed", &Some(seeds), Kind::Number)?));
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
        let mut set: Vec<String> =
            self.set.iter().map(|(key, value)| format!("{key}={}", assigned(value))).collect();
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
                    // capsules16, but task_rotation; lists are written without spaces.
                    let join = if value.starts_with(|c: char| c.is_ascii_digit()) { "" } else { "_" };
                    name.push(format!("{short}{join}{}", value.replace([' ', '"'], "")));
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
    let untrained = match options.remove("untrained") {
        None => false,
        Some(Value::Boolean(is_wanted)) => is_wanted,
        Some(other) => return Err(format!("untrained takes true or false, not {other}")),
    };
    let epochs = match options.remove("epochs") {
        Some(Value::Array(list)) if list.is_empty() => return Err("the list of epochs is empty".to_owned()),
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

/// Settings by their whole names: `loss.variance` of a group `loss` with `variance` in it.
fn flat(settings: Table) -> Table {
    let mut all = Table::new();
    for (key, value) in settings {
        match value {
            Value::Table(group) => {
                all.extend(flat(group).into_iter().map(|(name, value)| (format!("{key}.{name}"), value)));
            }
            value => _ = all.insert(key, value),
        }
    }
    all
}

/// What a value, or each of a list, is to be.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Number,
}

impl Kind {
    /// The value of `key`, or all of its list, as words of a command line.
    fn all(self, key: &str, value: &Value) -> Result<Vec<String>, String> {
        let one = |value: &Value| match (self, value) {
            (Self::Text, Value::String(text)) => Ok(text.clone()),
            (Self::Number, Value::Integer(number)) if *number >= 0 => Ok(number.to_string()),
            (Self::Text, other) => {
                Err(format!("{key} takes text in quotation marks, or a list of such texts, not {other}"))
            }
            (Self::Number, other) => {
                Err(format!("{key} takes a whole number from 0 on, or a list of them, not {other}"))
            }
        };
        match value {
            Value::Array(list) => list.iter().map(one).collect(),
            value => Ok(vec![one(value)?]),
        }
    }
}

/// A value as a command line has it.
fn written(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A value as `--set` has it: as on a command line, but text that would be read as something else stays in quotation marks.
fn assigned(value: &Value) -> String {
    let text = written(value);
    let read = format!("value = {text}").parse::<Table>().ok().and_then(|mut table| table.remove("value"));
    match read {
        Some(other) if value.is_str() && !other.is_str() => value.to_string(),
        _ => text,
    }
}

/// Options as words of a command line: `views = 50` is `--views 50`, `strict = true` is `--strict`, lists are repeated.
pub(super) fn words(options: &Table) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    for (key, value) in options {
        let option = format!("--{}", key.replace('_', "-"));
        match value {
            Value::Boolean(true) => words.push(option),
            Value::Boolean(false) => {}
            Value::Array(list) if list.is_empty() => return Err(format!("the list of {key} is empty")),
            Value::Array(list) => words.extend(list.iter().flat_map(|one| [option.clone(), written(one)])),
            Value::Table(_) => return Err(format!("`{key}` is no group of options")),
            one => words.extend([option, written(one)]),
        }
    }
    Ok(words)
}
