//! A block of runs in a study's file: the product of its lists, each run with its name and the words of its commands.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::{Table, Value};

use super::file::Run;

/// Products with more runs are slips of the finger.
pub(super) const MOST_RUNS: usize = 10_000;

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
pub(super) struct Block {
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

impl Block {
    /// `block` with what it leaves out taken from `self`.
    pub(super) fn under(&self, block: &Self) -> Self {
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
    pub(super) fn runs(&self, line: usize, evaluate: &Table) -> Result<Vec<Run>, String> {
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
pub(super) fn words(options: &Table) -> Result<Vec<String>, String> {
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
