//! One whole evaluation of one network on one dataset: features, then every task asked for.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use dataset::{Split, Views};
use engine::Device;

use crate::encoder::Encoder;
use crate::error::{Error, Result};
use crate::feature_table::FeatureTable;
use crate::features::{self, Extraction, Features, Table};
use crate::ground_truth::GroundTruth;
use crate::protocol::{Protocol, Task};
use crate::results::{Data, FORMAT, ProbeResult, Results, Subject};
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
}

/// All probes of one table, with the table on the GPU where there is one with room for it.
#[allow(clippy::too_many_arguments)]
fn probe_all(
    tasks: &[Task],
    table: &Table,
    what: &str,
    truth: &GroundTruth,
    protocol: &Protocol,
    device: &Device,
    event: &mut impl FnMut(Event),
    stop: &dyn Fn() -> bool,
) -> Result<BTreeMap<Task, ProbeResult>> {
    let mut found = BTreeMap::new();
    if tasks.is_empty() {
        return Ok(found);
    }
    let table = FeatureTable::new(table, device)?;
    for group in probe::groups(tasks) {
        let names: Vec<&str> = group.iter().map(|task| task.name()).collect();
        let epochs = u64::from(group.first().map_or(0, |&task| protocol.epochs_of(task)));
        event(Event::Begin(format!("{} probe{what}", names.join(", ")), epochs, "epochs"));
        let progress = |n| event(Event::Advance(n));
        found.extend(probe::run_group(&group, &table, device, truth, protocol, progress, stop)?);
    }
    Ok(found)
}

/// Evaluates `encoder` on `views`.
#[allow(clippy::too_many_arguments)]
pub fn run(
    encoder: &mut dyn Encoder,
    subject: Subject,
    views: &Arc<dyn Views>,
    data_path: &str,
    wanted: &Wanted,
    protocol: &Protocol,
    extraction: &Extraction,
    device: &Device,
    mut event: impl FnMut(Event),
    stop: &dyn Fn() -> bool,
) -> Result<Outcome> {
    let mut seconds = BTreeMap::new();
    let truth = GroundTruth::read(&**views);
    let began = Instant::now();
    event(Event::Begin("features".to_owned(), (truth.objects() * truth.views) as u64, "views"));
    let features = features::extract(encoder, views, extraction, |n| event(Event::Advance(n)), stop)?;
    seconds.insert("features".to_owned(), began.elapsed().as_secs_f64());
    refuse_not_finite(&features)?;
    let began = Instant::now();
    let possible = |task: &Task| {
        truth.has_translation || !matches!(task, Task::TranslationObject | Task::TranslationBase)
    };
    let probes: Vec<Task> = wanted.probes.iter().copied().filter(possible).collect();
    let own = encoder.own_task().filter(|_| !wanted.frozen);
    let representations = match own {
        Some(task) => {
            event(Event::Begin(format!("{task}, end to end"), 1, "passes"));
            let table = &features.representation;
            [(task, probe::end_to_end(encoder, task, table, &truth, protocol)?)].into_iter().collect()
        }
        None => probe_all(&probes, &features.representation, "", &truth, protocol, device, &mut event, stop)?,
    };
    seconds.insert("probes".to_owned(), began.elapsed().as_secs_f64());
    let began = Instant::now();
    let mut embeddings = BTreeMap::new();
    if wanted.embeddings && features.equivariant.width > 0 {
        let probes: Vec<Task> =
            [Task::Rotation, Task::TranslationObject].into_iter().filter(possible).collect();
        let what = " of embeddings";
        embeddings =
            probe_all(&probes, &features.equivariant, what, &truth, protocol, device, &mut event, stop)?;
        seconds.insert("embeddings".to_owned(), began.elapsed().as_secs_f64());
    }
    let began = Instant::now();
    let retrieval = match encoder.transformation() {
        Some(transformation) if wanted.retrieval && features.equivariant.width > 0 => {
            let queries: usize =
                Split::ALL.iter().map(|&split| retrieval::query_objects(&truth, split, protocol).len()).sum();
            event(Event::Begin("retrieval".to_owned(), queries as u64, "objects"));
            let table = &features.equivariant;
            let advance = |n| event(Event::Advance(n));
            let found =
                retrieval::evaluate(encoder, transformation, table, &truth, protocol, device, advance, stop)?;
            seconds.insert("retrieval".to_owned(), began.elapsed().as_secs_f64());
            Some(found)
        }
        _ => None,
    };
    let data = Data {
        path: data_path.to_owned(),
        kind: if truth.has_translation { "3DIEBench-T" } else { "3DIEBench" }.to_owned(),
        train_objects: truth.train_objects,
        val_objects: truth.objects() - truth.train_objects,
        views: truth.views,
        classes: truth.classes,
        side: encoder.side(),
        data_key: extraction.data_key.clone(),
    };
    let results = Results {
        format: FORMAT,
        subject,
        data,
        protocol: *protocol,
        representations,
        embeddings,
        retrieval,
        device: device.name(),
        seconds,
    };
    match results.not_finite() {
        Some(what) => Err(Error::Request(format!("{what} is not a number; nothing was written"))),
        None => Ok(Outcome { results, features, truth }),
    }
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
