//! One whole evaluation of one network on one dataset, and on others with the probes of the first: features, then every
//! task asked for.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use dataset::{Split, Views};
use engine::Device;
use pose::{FrameKind, Part, Space};

use crate::encoder::Encoder;
use crate::error::{Error, Result};
use crate::feature_table::FeatureTable;
use crate::features::{self, Extraction, Features, Table};
use crate::ground_truth::GroundTruth;
use crate::object_scores::{Score, Scores};
use crate::probe::Tested;
use crate::protocol::{Protocol, Task};
use crate::results::{Also, Data, FORMAT, ProbeResult, Results, Retrieval, Subject};
use crate::{probe, retrieval};

/// What is to be measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Probes on representations.
    pub probes: Vec<Task>,
    /// Rotation and translation probes on embeddings.
    pub embeddings: bool,
    /// MRR, H@k, PRE.
    pub retrieval: bool,
    /// Probe supervised networks like all others, instead of asking their own heads.
    pub frozen: bool,
}

impl Wanted {
    /// Everything that the dataset and the network allow.
    pub fn everything() -> Self {
        Self { probes: Task::ALL.to_vec(), embeddings: true, retrieval: true, frozen: false }
    }

    /// From names as on the command line: `classification`, ..., `embeddings`, `retrieval`.
    pub fn parse(names: &[String]) -> Result<Self> {
        let mut wanted = Self { probes: Vec::new(), embeddings: false, retrieval: false, frozen: false };
        for name in names {
            match name.as_str() {
                "embeddings" => wanted.embeddings = true,
                "retrieval" => wanted.retrieval = true,
                "all" => wanted = Self::everything(),
                name => match Task::ALL.into_iter().find(|task| task.name() == name) {
                    Some(task) => wanted.probes.push(task),
                    None => {
                        let all = Task::ALL.map(Task::name).join(", ");
                        let message =
                            format!("there is no task {name:?} (tasks: {all}, embeddings, retrieval, all)");
                        return Err(Error::Request(message));
                    }
                },
            }
        }
        Ok(wanted)
    }
}

/// What happens during an evaluation, for a progress bar.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A part of the work begins: its name, and how many units of what.
    Begin(String, u64, &'static str),
    /// So many units are done.
    Advance(u64),
}

/// What an evaluation leaves.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The numbers.
    pub results: Results,
    /// The features, for images.
    pub features: Features,
    /// What is known about the views.
    pub truth: GroundTruth,
    /// What was to be measured and is left out, and why: one sentence each.
    pub left_out: Vec<String>,
}

/// A dataset to evaluate on.
#[derive(Clone, Copy)]
pub struct DataSource<'a> {
    /// Its views.
    pub views: &'a Arc<dyn Views>,
    /// Where they come from.
    pub path: &'a str,
    /// A hash of them.
    pub key: &'a str,
}

/// A dataset with its features.
struct Encoded<'a> {
    source: DataSource<'a>,
    truth: GroundTruth,
    features: Features,
}

impl<'a> Encoded<'a> {
    fn new(
        encoder: &mut dyn Encoder,
        source: DataSource<'a>,
        extraction: &Extraction,
        event: &mut impl FnMut(Event),
        stop: &dyn Fn() -> bool,
    ) -> Result<Self> {
        let truth = GroundTruth::read(&**source.views);
        event(Event::Begin("features".to_owned(), truth.index.total() as u64, "views"));
        let extraction = Extraction { data_key: source.key.to_owned(), ..extraction.clone() };
        let advance = |n| event(Event::Advance(n));
        let features = features::extract(encoder, source.views, &extraction, advance, stop)?;
        let features = features.map(|table| truth.arrange(table));
        Ok(Self { source, truth, features })
    }

    /// Whether a class has the same number in both.
    fn has_classes_of(&self, other: &Self) -> bool {
        self.source.views.classes() == other.source.views.classes()
    }

    /// Whether a head that knows the classes of `first` can be asked about these data.
    fn can_be_answered(&self, task: Task, first: &Self) -> bool {
        self.truth.has_targets(task) && (task != Task::Classification || self.has_classes_of(first))
    }

    /// What results say about it.
    fn data(&self, side: usize) -> Data {
        let truth = &self.truth;
        Data {
            path: self.source.path.to_owned(),
            kind: match (truth.space, truth.has_poses && truth.has_hues) {
                (Space::Image, _) => "photographs",
                (Space::Object, false) => "imported",
                (Space::Object, true) if truth.has[Part::Shear] => "3DIEBench-A",
                (Space::Object, true) if truth.has[Part::Scale] => "3DIEBench-S",
                (Space::Object, true) if truth.has[Part::Translation] => "3DIEBench-T",
                (Space::Object, true) => "3DIEBench",
            }
            .to_owned(),
            split: truth.split_by(),
            train_objects: truth.train_objects,
            val_objects: truth.split(Split::Val).len(),
            views: truth.index.most(),
            held_out_views: truth.index.most_held_out(),
            left_out: self.source.views.left_out(),
            classes: truth.classes,
            side,
            data_key: self.source.key.to_owned(),
        }
    }

    /// Every held-out object by itself.
    fn scores(&self, rotation: Option<&ProbeResult>, retrieval: Option<&Retrieval>) -> Scores {
        let rotation = rotation.map(|probe| probe.by_object.as_slice()).unwrap_or_default();
        let ranks: BTreeMap<usize, f64> =
            retrieval.map(|found| found.by_object.iter().copied().collect()).unwrap_or_default();
        if rotation.is_empty() && ranks.is_empty() {
            return Scores::default();
        }
        let (objects, classes) = (self.source.views.objects(), self.source.views.classes());
        let rotation: BTreeMap<usize, _> = self.truth.paired(Split::Val).zip(rotation).collect();
        let score = |object: usize| {
            let rotation = rotation.get(&object);
            let class = classes.get(objects[object].label as usize);
            Score {
                name: objects[object].id(),
                class: class.map_or_else(|| objects[object].synset.clone(), |class| class.name.clone()),
                objects: 1,
                rotation_error: rotation.map(|score| score.error),
                rotation_r2: rotation.map(|score| score.r2),
                mrr: ranks.get(&object).copied(),
            }
        };
        Scores(self.truth.split(Split::Val).map(score).collect())
    }
}

/// All probes of one kind of features, trained on the first of the datasets and tested on each.
#[allow(clippy::too_many_arguments)]
fn probe_all(
    tasks: &[Task],
    all: &[Encoded<'_>],
    table: fn(&Features) -> &Table,
    what: &str,
    protocol: &Protocol,
    device: &Device,
    event: &mut impl FnMut(Event),
    stop: &dyn Fn() -> bool,
) -> Result<Vec<BTreeMap<Task, ProbeResult>>> {
    let mut found = vec![BTreeMap::new(); all.len()];
    if tasks.is_empty() {
        return Ok(found);
    }
    // On the GPU, where there is one with room for them.
    let tables: Vec<FeatureTable<'_>> =
        all.iter().map(|data| FeatureTable::new(table(&data.features), device)).collect::<Result<_>>()?;
    let [(first, table), others @ ..] = &all.iter().zip(&tables).collect::<Vec<_>>()[..] else {
        return Ok(found);
    };
    let also: Vec<Tested<'_>> = others
        .iter()
        .map(|(data, table)| Tested {
            table,
            truth: &data.truth,
            has_same_classes: data.has_classes_of(first),
        })
        .collect();
    for group in probe::groups(tasks) {
        let names: Vec<&str> = group.iter().map(|task| task.name()).collect();
        let epochs = u64::from(group.first().map_or(0, |&task| protocol.epochs_of(task)));
        event(Event::Begin(format!("{} probe{what}", names.join(", ")), epochs, "epochs"));
        let progress = |n| event(Event::Advance(n));
        let results =
            probe::train_and_test(&group, table, device, &first.truth, protocol, &also, progress, stop)?;
        found.iter_mut().zip(results).for_each(|(found, results)| found.extend(results));
    }
    Ok(found)
}

/// Evaluates `encoder` on the first of `data`, and with the same probes on the held-out side of the others.
#[allow(clippy::too_many_arguments)]
pub fn run(
    encoder: &mut dyn Encoder,
    subject: Subject,
    data: &[DataSource<'_>],
    wanted: &Wanted,
    protocol: &Protocol,
    extraction: &Extraction,
    device: &Device,
    mut event: impl FnMut(Event),
    stop: &dyn Fn() -> bool,
) -> Result<Outcome> {
    let mut seconds = BTreeMap::new();
    let began = Instant::now();
    let mut all = Vec::new();
    for &source in data {
        all.push(Encoded::new(encoder, source, extraction, &mut event, stop)?);
    }
    let Some(first) = all.first() else {
        return Err(Error::Request("there are no data to evaluate on".to_owned()));
    };
    seconds.insert("features".to_owned(), began.elapsed().as_secs_f64());
    all.iter().try_for_each(|encoded| refuse_not_finite(&encoded.features))?;
    let began = Instant::now();
    let possible = |task: &Task| first.truth.has_targets(*task);
    let probes: Vec<Task> = wanted.probes.iter().copied().filter(possible).collect();
    if probes.is_empty() && !wanted.probes.is_empty() && !wanted.embeddings && !wanted.retrieval {
        let names: Vec<&str> = wanted.probes.iter().map(|task| task.name()).collect();
        return Err(Error::Request(format!("the data do not say what is probed by {}", names.join(", "))));
    }
    let protocol = &Protocol { frozen: wanted.frozen && encoder.own_task().is_some(), ..*protocol };
    let own = encoder.own_task().filter(|_| !protocol.frozen);
    let mut representations = match own {
        Some(task) => {
            event(Event::Begin(format!("{task}, end to end"), 1, "passes"));
            let mut found = Vec::new();
            for data in &all {
                let table = &data.features.representation;
                let result = match data.can_be_answered(task, first) {
                    true => probe::end_to_end(encoder, task, table, &data.truth, protocol)?,
                    false => None,
                };
                found.push(result.into_iter().map(|result| (task, result)).collect());
            }
            found
        }
        None => probe_all(&probes, &all, |f| &f.representation, "", protocol, device, &mut event, stop)?,
    };
    let left_out = match own {
        Some(task) => not_answered(task, &all, &representations),
        None => not_probed(&probes, &representations[0]),
    };
    seconds.insert("probes".to_owned(), began.elapsed().as_secs_f64());
    let began = Instant::now();
    let has_embeddings = first.features.equivariant.width > 0;
    let mut embeddings = vec![BTreeMap::new(); all.len()];
    if wanted.embeddings && has_embeddings {
        let probes = first.truth.pose_tasks(FrameKind::Object);
        let what = " of embeddings";
        embeddings = probe_all(&probes, &all, |f| &f.equivariant, what, protocol, device, &mut event, stop)?;
        seconds.insert("embeddings".to_owned(), began.elapsed().as_secs_f64());
    }
    let began = Instant::now();
    let mut retrievals = vec![None; all.len()];
    let retrieves = wanted.retrieval && has_embeddings && all.iter().all(|data| data.truth.has_poses);
    if let Some(transformation) = encoder.transformation().filter(|_| retrieves) {
        for (Encoded { truth, features, .. }, found) in all.iter().zip(&mut retrievals) {
            let queries: usize =
                Split::ALL.iter().map(|&split| retrieval::query_objects(truth, split, protocol).len()).sum();
            event(Event::Begin("retrieval".to_owned(), queries as u64, "objects"));
            let table = &features.equivariant;
            let advance = |n| event(Event::Advance(n));
            *found = Some(retrieval::evaluate(
                encoder,
                transformation,
                table,
                truth,
                protocol,
                device,
                advance,
                stop,
            )?);
        }
        seconds.insert("retrieval".to_owned(), began.elapsed().as_secs_f64());
    }
    let by_object = first.scores(representations[0].get(&Task::Rotation), retrievals[0].as_ref());
    let mut parts = all
        .iter()
        .zip(representations.drain(..).zip(embeddings).zip(retrievals))
        .map(|(data, ((representations, embeddings), retrieval))| Also {
            data: data.data(encoder.side()),
            representations,
            embeddings,
            retrieval,
        })
        .collect::<Vec<_>>();
    let Also { data, representations, embeddings, retrieval } = parts.remove(0);
    let results = Results {
        format: FORMAT,
        subject,
        data,
        protocol: *protocol,
        representations,
        embeddings,
        retrieval,
        by_class: by_object.by_class(),
        by_object,
        also: parts,
        device: device.name(),
        seconds,
    };
    match results.not_finite() {
        Some(what) => Err(Error::Request(format!("{what} is not a number; nothing was written"))),
        None => {
            let Encoded { truth, features, .. } = all.swap_remove(0);
            Ok(Outcome { results, features, truth, left_out })
        }
    }
}

/// Why some of the tasks that the first of the datasets allows are not among what was `found` on it.
fn not_probed(tasks: &[Task], found: &BTreeMap<Task, ProbeResult>) -> Vec<String> {
    let missing = tasks.iter().filter(|task| !found.contains_key(task));
    missing.map(|&task| format!("{task} is left out: {}", probe::nothing_to_probe(task))).collect()
}

/// Why a network's own head for `task` was not asked about some of the datasets.
fn not_answered(task: Task, all: &[Encoded<'_>], found: &[BTreeMap<Task, ProbeResult>]) -> Vec<String> {
    let missing = all.iter().zip(found).filter(|(_, found)| !found.contains_key(&task));
    let sentence = |(data, _): (&Encoded<'_>, _)| {
        let (path, truth) = (data.source.path, &data.truth);
        let has_pairs = task == Task::Classification || truth.paired(Split::Val).next().is_some();
        let why = match (truth.has_targets(task), data.can_be_answered(task, &all[0]), has_pairs) {
            (false, ..) => "the data do not say it".to_owned(),
            (_, false, _) => format!("its classes are not those of {}", all[0].source.path),
            (.., false) => "no held-out object has two views".to_owned(),
            (.., true) => probe::all_the_same(task),
        };
        format!(
            "{path}: {task}, which the network was trained for, is left out: {why}; --frozen probes it for other tasks"
        )
    };
    missing.map(sentence).collect()
}

/// Refuses features with a NaN or an infinity, which every metric would hide or spread.
fn refuse_not_finite(features: &Features) -> Result<()> {
    let tables = [
        ("representation", &features.representation),
        ("embedding", &features.equivariant),
        ("activations", &features.invariant),
    ];
    for (name, table) in tables {
        if let Some(at) = table.values.iter().position(|value| !value.is_finite()) {
            let view = at / table.width.max(1);
            return Err(Error::Request(format!(
                "the {name} of view {view} of the dataset has a number that is not finite: the weights are not usable \
                 (has the training diverged?)"
            )));
        }
    }
    Ok(())
}
