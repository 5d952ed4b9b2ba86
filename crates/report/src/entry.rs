//! A row of a report: what was measured, under which conditions, and over how many seeds. Rows are compared only where their
//! conditions are the same.

use std::collections::BTreeMap;

use dataset::SplitBy;
use evaluate::Results;
use evaluate::protocol::{Protocol, Task};
use evaluate::results::{Measured, ProbeResult, Ranking, Retrieval, RetrievalError};
use methods::MethodName;
use train::Config;

/// Under what a network was trained and evaluated.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conditions {
    /// Steps of training, where they are known.
    pub steps: Option<u64>,
    /// Pairs in a step.
    pub batch: Option<usize>,
    /// Channels of the first stage.
    pub width: Option<usize>,
    /// The seeds; one network each.
    pub seeds: Vec<u64>,
    /// Settings that are not the published ones of the method.
    pub changed: BTreeMap<String, String>,
    /// Every setting that weights depend on, but for the seed; nothing where there is no configuration.
    pub settings: BTreeMap<String, String>,
}

/// Settings that conditions name by themselves, or that change nothing of what is compared.
const NAMED: [&str; 11] = [
    "method",
    "seed",
    "batch",
    "image_size",
    "transform",
    "backbone",
    "network.width",
    "network.task",
    "procedural.",
    "probes.",
    "epochs",
];

impl Conditions {
    /// Those of a run with `config`, after `steps`.
    pub fn of(config: &Config, steps: Option<u64>) -> Self {
        let mut settings = flat(config);
        settings.remove("seed");
        let published = Config::settings(config.method.name.name(), "paper").and_then(Config::resolve);
        let published = published.map(|published| flat(&published)).unwrap_or_default();
        let has_capsules = [MethodName::EQUICAPS, MethodName::CAPSIE].contains(&config.method.name);
        // What a method does not have makes no difference.
        let unused: &[&str] = match config.method.name {
            name if name == MethodName::SUPERVISED => {
                &["network.capsules", "network.pose", "network.projector"]
            }
            _ if has_capsules => &["network.projector"],
            _ => &["network.capsules", "network.pose"],
        };
        let is_named = |key: &str| NAMED.iter().any(|n| key == *n || n.ends_with('.') && key.starts_with(n));
        let changed = settings.iter().filter(|(key, value)| {
            !is_named(key) && !unused.contains(&key.as_str()) && published.get(*key) != Some(value)
        });
        Self {
            steps,
            batch: Some(config.method.batch),
            width: Some(config.method.network.width),
            seeds: vec![config.seed],
            changed: changed.map(|(key, value)| (key.clone(), value.clone())).collect(),
            settings,
        }
    }
}

/// The settings that weights depend on.
fn flat(config: &Config) -> BTreeMap<String, String> {
    let text = config.identity_toml().unwrap_or_default();
    let pairs = text.lines().filter_map(|line| line.split_once(" = "));
    pairs.map(|(key, value)| (key.to_owned(), value.trim_matches('"').to_owned())).collect()
}

/// A network, or several that differ in their seeds, with what was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Of several seeds, the means; the spread of a probe is then that over seeds.
    pub results: Results,
    /// Standard deviations of retrieval over seeds, where there are several.
    pub retrieval_spread: Option<Retrieval>,
    /// How it came about.
    pub conditions: Conditions,
    /// Names of its runs.
    pub runs: Vec<String>,
}

impl Entry {
    /// Whether it is a network before training.
    pub fn is_untrained(&self) -> bool {
        is_untrained(&self.results)
    }

    /// Results of which nothing else is known.
    pub fn plain(results: &Results) -> Self {
        let results = results.clone();
        Self { results, retrieval_spread: None, conditions: Conditions::default(), runs: Vec::new() }
    }

    /// The conditions in words; nothing where none are known.
    pub fn words(&self) -> String {
        let Conditions { steps, batch, width, seeds, changed, settings } = &self.conditions;
        let (subject, data) = (&self.results.subject, &self.results.data);
        if settings.is_empty() {
            return String::new();
        }
        let mut parts = Vec::new();
        if !self.is_untrained() {
            let epochs = subject.epochs.map(|epochs| format!("{} epochs", grouped(epochs)));
            let steps = steps.map(|steps| format!("{} steps", grouped(steps)));
            parts.extend([epochs, steps].into_iter().flatten());
            parts.extend(batch.map(|batch| format!("batch {}", grouped(batch as u64))));
            if subject.task.is_empty() {
                parts.push(format!("for {}", subject.trained_for));
            }
        }
        parts.push(format!("{} px", data.side));
        parts.extend(width.filter(|_| subject.backbone == "resnet18").map(|width| format!("width {width}")));
        parts.push(subject.backbone.clone());
        let folder = std::path::Path::new(&data.path).file_name().map(|name| name.to_string_lossy());
        parts.push(format!("data {}", folder.as_deref().unwrap_or(&data.path)));
        parts.push(match data.split {
            SplitBy::Objects => format!(
                "{} + {} objects",
                grouped(data.train_objects as u64),
                grouped(data.val_objects as u64)
            ),
            SplitBy::Views => format!("{} known objects", grouped(data.train_objects as u64)),
        });
        let list: Vec<String> = seeds.iter().map(ToString::to_string).collect();
        parts.push(match seeds.len() {
            1 => format!("seed {}", list.join(", ")),
            count => format!("{count} seeds ({})", list.join(", ")),
        });
        if self.results.protocol.frozen {
            parts.push("probes on the frozen network".to_owned());
        }
        if !self.is_untrained() {
            parts.extend(changed.iter().map(|(key, value)| format!("{key} {value}")));
        }
        parts.join(" \u{b7} ")
    }

    /// What must be the same for two rows to be compared; none for what is no rival of others: untrained and supervised
    /// networks.
    pub fn rivals(&self) -> Option<String> {
        let (subject, data) = (&self.results.subject, &self.results.data);
        if self.is_untrained() || subject.method == "supervised" {
            return None;
        }
        let Conditions { steps, batch, width, changed, .. } = &self.conditions;
        let protocol = Protocol { seed: 0, ..self.results.protocol };
        let what = (&data.data_key, data.split, data.side, subject.epochs, steps, batch, width);
        Some(format!("{what:?} {} {} {changed:?} {protocol:?}", subject.trained_for, subject.backbone))
    }

    /// Whether both are the same but for the settings `keys`, and for the seed.
    pub fn differs_only_in(&self, other: &Self, keys: &[&str]) -> bool {
        let without = |entry: &Self| {
            let mut settings = entry.conditions.settings.clone();
            settings.retain(|key, _| !keys.contains(&key.as_str()));
            settings
        };
        let (a, b) = (&self.results, &other.results);
        let protocol = |results: &Results| Protocol { seed: 0, ..results.protocol };
        !self.conditions.settings.is_empty()
            && without(self) == without(other)
            && (a.subject.epochs, &a.subject.method, &a.subject.task)
                == (b.subject.epochs, &b.subject.method, &b.subject.task)
            && (&a.data.data_key, a.data.split, a.data.side) == (&b.data.data_key, b.data.split, b.data.side)
            && protocol(a) == protocol(b)
    }
}

/// Whether these are results of a network before training.
pub(crate) fn is_untrained(results: &Results) -> bool {
    results.subject.method == "untrained"
}

/// With commas between thousands.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Whether the same was measured of both: a mean over seeds is one of all of them.
fn has_same_measures(a: &Results, b: &Results) -> bool {
    a.representations.keys().eq(b.representations.keys())
        && a.embeddings.keys().eq(b.embeddings.keys())
        && a.retrieval.is_some() == b.retrieval.is_some()
}

/// One entry for each group of entries that differ in nothing but the seed, in the order of the first of each.
pub fn over_seeds(entries: &[Entry]) -> Vec<Entry> {
    let mut groups: Vec<Vec<&Entry>> = Vec::new();
    for entry in entries {
        let fits = |group: &&mut Vec<&Entry>| {
            let first = group[0];
            first.differs_only_in(entry, &[])
                && has_same_measures(&first.results, &entry.results)
                && group.iter().all(|other| other.conditions.seeds != entry.conditions.seeds)
        };
        match groups.iter_mut().find(fits) {
            Some(group) => group.push(entry),
            None => groups.push(vec![entry]),
        }
    }
    groups.iter().map(|group| mean(group)).collect()
}

/// The mean over `group`, which is not empty.
fn mean(group: &[&Entry]) -> Entry {
    let mut all = group[0].clone();
    if group.len() < 2 {
        return all;
    }
    let of = |entry: &Entry, embeddings: bool, task: &Task| {
        let table = if embeddings { &entry.results.embeddings } else { &entry.results.representations };
        table.get(task).cloned()
    };
    for embeddings in [false, true] {
        let table = if embeddings { &mut all.results.embeddings } else { &mut all.results.representations };
        for (task, probe) in table.iter_mut() {
            let found: Vec<ProbeResult> =
                group.iter().filter_map(|entry| of(entry, embeddings, task)).collect();
            let over = |value: &dyn Fn(&ProbeResult) -> Option<f64>| {
                Measured::over(&found.iter().filter_map(value).collect::<Vec<_>>())
            };
            probe.value = over(&|probe| Some(probe.value.value));
            probe.top5 = probe.top5.map(|_| over(&|probe| probe.top5.map(|top5| top5.value)));
            probe.floor = over(&|probe| Some(probe.floor)).value;
        }
    }
    let retrieval: Vec<&Retrieval> =
        group.iter().filter_map(|entry| entry.results.retrieval.as_ref()).collect();
    if !retrieval.is_empty() {
        all.results.retrieval = Some(combined(&retrieval, &|values| Measured::over(values).value));
        all.retrieval_spread = Some(combined(&retrieval, &|values| Measured::over(values).spread));
    }
    all.conditions.seeds = group.iter().flat_map(|entry| entry.conditions.seeds.clone()).collect();
    all.runs = group.iter().flat_map(|entry| entry.runs.clone()).collect();
    all
}

/// All numbers of several retrievals, combined one by one.
fn combined(all: &[&Retrieval], combine: &dyn Fn(&[f64]) -> f64) -> Retrieval {
    let ranking = |side: &dyn Fn(&Retrieval) -> Ranking| {
        let of = |value: &dyn Fn(&Ranking) -> f64| {
            combine(&all.iter().map(|retrieval| value(&side(retrieval))).collect::<Vec<_>>())
        };
        Ranking {
            mrr: of(&|r| r.mrr),
            h1: of(&|r| r.h1),
            h2: of(&|r| r.h2),
            h5: of(&|r| r.h5),
            h10: of(&|r| r.h10),
            ..side(all[0])
        }
    };
    let errors = |set: &String, first: &RetrievalError| {
        let found: Vec<&RetrievalError> = all.iter().filter_map(|retrieval| retrieval.pre.get(set)).collect();
        let translations: Vec<f64> = found.iter().filter_map(|error| error.translation).collect();
        RetrievalError {
            rotation: combine(&found.iter().map(|error| error.rotation).collect::<Vec<_>>()),
            translation: first.translation.map(|_| combine(&translations)),
            ..*first
        }
    };
    Retrieval {
        train: ranking(&|retrieval| retrieval.train),
        val: ranking(&|retrieval| retrieval.val),
        pre: all[0].pre.iter().map(|(set, first)| (set.clone(), errors(set, first))).collect(),
        ..all[0].clone()
    }
}

/// Entries by the data that they were evaluated on, with a name for each: `3DIEBench-T (T)`.
pub fn by_data(entries: &[Entry]) -> Vec<(String, Vec<Entry>)> {
    let mut groups: Vec<(&Entry, Vec<Entry>)> = Vec::new();
    for entry in entries {
        let key = |entry: &Entry| (entry.results.data.data_key.clone(), entry.results.data.kind.clone());
        match groups.iter_mut().find(|(first, _)| key(first) == key(entry)) {
            Some((_, group)) => group.push(entry.clone()),
            None => groups.push((entry, vec![entry.clone()])),
        }
    }
    let name = |entry: &Entry| {
        let data = &entry.results.data;
        let folder = std::path::Path::new(&data.path).file_name();
        let folder = folder.map_or_else(|| data.path.clone(), |name| name.to_string_lossy().into_owned());
        let latents = if data.kind.is_empty() { "data".to_owned() } else { format!("{} latents", data.kind) };
        format!("{folder} ({latents})")
    };
    groups.into_iter().map(|(first, group)| (name(first), group)).collect()
}
