//! A row of a report: what was measured, under which conditions, and over how many seeds. Rows are compared only where their
//! conditions are the same.

use std::collections::BTreeMap;
use std::path::Path;

use dataset::{SplitBy, counted};
use evaluate::Preset;
use evaluate::Results;
use evaluate::protocol::Protocol;
use evaluate::results::Retrieval;
use methods::MethodName;
use serde::{Deserialize, Serialize};
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
    /// The data of training, as the configuration names them.
    pub data: String,
    /// What tells these from the data of the evaluation, where they are others ([`crate::training_data`]).
    pub trained_elsewhere: Option<String>,
    /// The weights that training began from, where it did not begin from random ones.
    pub begun_from: Option<String>,
}

/// What rows must have in common to be compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rivals {
    /// Everything but the objective.
    pub conditions: String,
    /// The motions that poses were trained for; none for methods that know nothing of motions, which stand beside all others, as
    /// in the paper.
    pub objective: Option<String>,
}

impl Rivals {
    /// Whether a row is to be compared with one of `other`.
    pub fn include(&self, other: &Self) -> bool {
        let objectives = self.objective.as_ref().zip(other.objective.as_ref());
        self.conditions == other.conditions && objectives.is_none_or(|(own, other)| own == other)
    }
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
            data: config.data.clone(),
            trained_elsewhere: None,
            begun_from: None,
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
    /// The same on the further datasets of the results.
    pub also_spread: Vec<Option<Retrieval>>,
    /// How it came about.
    pub conditions: Conditions,
    /// Names of its runs.
    pub runs: Vec<String>,
    /// What stands in brackets behind the name of its method, and tells it from others of that name; may be empty.
    pub label: String,
}

impl Entry {
    /// Whether it is a network before training.
    pub fn is_untrained(&self) -> bool {
        is_untrained(&self.results)
    }

    /// Results of which nothing else is known.
    pub fn plain(results: &Results) -> Self {
        let results = results.clone();
        Self {
            results,
            retrieval_spread: None,
            also_spread: Vec::new(),
            conditions: Conditions::default(),
            runs: Vec::new(),
            label: String::new(),
        }
    }

    /// Calls it `title`, with what tells it from others of that name behind.
    pub(crate) fn call(&mut self, title: &str, label: &str) {
        self.results.subject.name =
            if label.is_empty() { title.to_owned() } else { format!("{title} ({label})") };
        label.clone_into(&mut self.label);
    }

    /// Its name without its label.
    pub(crate) fn title(&self) -> &str {
        let name = self.results.subject.name.as_str();
        match self.label.as_str() {
            "" => name,
            label => name.strip_suffix(&format!(" ({label})")).unwrap_or(name),
        }
    }

    /// The conditions in words; nothing where none are known.
    pub fn words(&self) -> String {
        let Conditions {
            steps, batch, width, seeds, changed, settings, trained_elsewhere, begun_from, ..
        } = &self.conditions;
        let (subject, data, protocol) = (&self.results.subject, &self.results.data, &self.results.protocol);
        if settings.is_empty() {
            return String::new();
        }
        let mut parts = Vec::new();
        if !self.is_untrained() {
            parts.extend(subject.epochs.map(|epochs| many(epochs, "epoch")));
            parts.extend(steps.map(|steps| many(steps, "step")));
            parts.extend(batch.map(|batch| format!("batch {}", grouped(batch as u64))));
            parts.extend(self.objective().map(|objective| format!("for {objective}")));
            parts.extend(begun_from.as_ref().map(|weights| format!("from weights of {weights}")));
            parts.extend(trained_elsewhere.as_ref().map(|data| format!("trained on {data}")));
        }
        parts.push(format!("{} px", data.side));
        parts.extend(width.filter(|_| subject.backbone == "resnet18").map(|width| format!("width {width}")));
        parts.push(subject.backbone.clone());
        parts.push(format!("data {}", folder_name(&data.path)));
        parts.push(match data.split {
            SplitBy::Objects => format!(
                "{} + {} objects",
                grouped(data.train_objects as u64),
                grouped(data.val_objects as u64)
            ),
            SplitBy::Views => format!("{} known objects", grouped(data.train_objects as u64)),
        });
        parts.push(many(data.views as u64, "view"));
        if data.left_out > 0 {
            parts.push(format!("{} left out", many(data.left_out as u64, "view")));
        }
        parts.extend(protocol_words(protocol));
        let list: Vec<String> = seeds.iter().map(ToString::to_string).collect();
        parts.push(match seeds.len() {
            1 => format!("seed {}", list.join(", ")),
            count => format!("{count} seeds ({})", list.join(", ")),
        });
        if protocol.frozen {
            parts.push("probes on the frozen network".to_owned());
        }
        if !self.is_untrained() {
            parts.extend(changed.iter().map(|(key, value)| format!("{key} {value}")));
        }
        parts.join(" \u{b7} ")
    }

    /// The motions that poses were trained for; none for methods that know nothing of motions.
    pub fn objective(&self) -> Option<&str> {
        let subject = &self.results.subject;
        let learns_pose = subject.method.parse().is_ok_and(MethodName::learns_pose);
        learns_pose.then_some(subject.trained_for.as_str())
    }

    /// What must be the same for two rows to be compared; none for what is no rival of others: untrained and supervised
    /// networks, and those whose conditions are not known.
    pub fn rivals(&self) -> Option<Rivals> {
        let (subject, data) = (&self.results.subject, &self.results.data);
        if self.is_untrained() || subject.method == "supervised" || self.conditions.settings.is_empty() {
            return None;
        }
        let Conditions { steps, batch, width, changed, begun_from, .. } = &self.conditions;
        let protocol = Protocol { seed: 0, ..self.results.protocol };
        let what = (&data.data_key, data.split, data.side, subject.epochs, steps, batch, width);
        let how = (&subject.backbone, changed, begun_from, &subject.trained_on);
        let objective = self.objective().map(str::to_owned);
        Some(Rivals { conditions: format!("{what:?} {how:?} {protocol:?}"), objective })
    }

    /// Whether both are supervised networks of the same seeds that differ in nothing but what they were asked.
    pub(crate) fn differs_only_in_task(&self, other: &Self) -> bool {
        let mut same = other.clone();
        same.results.subject.task.clone_from(&self.results.subject.task);
        self.conditions.seeds == other.conditions.seeds && self.differs_only_in(&same, &["network.task"])
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
        let trained = |entry: &Self| {
            let Entry { results: Results { subject, .. }, conditions, .. } = entry;
            (subject.epochs, conditions.steps, subject.trained_on.clone(), conditions.begun_from.clone())
        };
        !self.conditions.settings.is_empty()
            && without(self) == without(other)
            && trained(self) == trained(other)
            && (&a.subject.method, &a.subject.task) == (&b.subject.method, &b.subject.task)
            && (&a.data.data_key, a.data.split, a.data.side) == (&b.data.data_key, b.data.split, b.data.side)
            && protocol(a) == protocol(b)
    }
}

/// What is said of how probes are trained; nothing of the published protocol.
pub(crate) fn protocol_words(protocol: &Protocol) -> Vec<String> {
    let preset = (protocol.preset != Preset::Paper).then(|| format!("{} probes", protocol.preset));
    let seed = (protocol.seed != 0).then(|| format!("evaluation seed {}", protocol.seed));
    preset.into_iter().chain(seed).collect()
}

/// Whether these are results of a network before training.
pub(crate) fn is_untrained(results: &Results) -> bool {
    results.subject.method == "untrained"
}

/// The last part of a path, which people know data by.
pub(crate) fn folder_name(path: &str) -> String {
    let name = Path::new(path).file_name();
    name.map_or_else(|| path.to_owned(), |name| name.to_string_lossy().into_owned())
}

/// `1 step`, `4,104 steps`.
fn many(number: u64, one: &str) -> String {
    counted(grouped(number), one)
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
    let latents = |entry: &Entry| match entry.results.data.kind.as_str() {
        "" => "data".to_owned(),
        kind => format!("{kind} latents"),
    };
    // By its folder, by its whole path, by a number: the first that tells it from all others.
    let by_folder = |entry: &Entry| format!("{} ({})", folder_name(&entry.results.data.path), latents(entry));
    let by_path = |entry: &Entry| format!("{} ({})", entry.results.data.path, latents(entry));
    let names = |name: &dyn Fn(&Entry) -> String| -> Vec<String> {
        groups.iter().map(|(first, _)| name(first)).collect()
    };
    let (folders, paths) = (names(&by_folder), names(&by_path));
    let is_only = |all: &[String], at: usize| all.iter().filter(|name| **name == all[at]).count() == 1;
    let name = |at: usize| match (is_only(&folders, at), is_only(&paths, at)) {
        (true, _) => folders[at].clone(),
        (false, true) => paths[at].clone(),
        (false, false) => {
            let before = paths[..at].iter().filter(|name| **name == paths[at]).count();
            format!("{}, {}", paths[at], before + 1)
        }
    };
    let names: Vec<String> = (0..groups.len()).map(name).collect();
    names.into_iter().zip(groups).map(|(name, (_, group))| (name, group)).collect()
}
