//! `equicaps demo`: the newcomer's first command, a small study (`studies/demo.toml`). Views of built-in objects are rendered, a
//! baseline and EquiCaps are pre-trained on them, both and the untrained network are evaluated, and a report shows it.
//!
//! Every part resumes where it was interrupted, so the same command may be given again at any time.

use std::fmt;
use std::path::PathBuf;
use std::time::Instant;

use dataset::{Dataset, Views};
use evaluate::protocol::Task;
use methods::verdict::PoseVerdict;
use report::run_material::RunMaterial;
use report::{Cell, Entry, Table, contact_sheet, ours, run_names};
use serde::Serialize;

use crate::commands::explore;
use crate::commands::study::{self, Site, Study};
use crate::outcome::Outcome;
use crate::terminal::{Terminal, shown};

/// Arguments of `equicaps demo`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  equicaps demo
  equicaps demo --out first --seed 1
  equicaps demo --explore")]
pub struct Arguments {
    /// Folder for all outputs
    #[arg(long, value_name = "DIR", default_value = "equicaps-demo")]
    out: PathBuf,
    /// Seed of views, initial weights, order of objects and probes
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Open the explorer on the trained runs at the end
    #[arg(long)]
    explore: bool,
}

/// The study.
const STUDY: &str = include_str!("../../../../studies/demo.toml");
/// Side of the views on the contact sheet, in pixels.
const SIDE: usize = 64;

/// Runs the demo; what is there already is not made again.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<Outcome> {
    let began = Instant::now();
    let study = Study::parse("demo.toml", STUDY)?.with_seed(arguments.seed);
    // The times and numbers of the demo are those of a CPU.
    let site = Site::new("demo.toml", study, arguments.out.clone(), "cpu");
    let report = study::make_alone(&site, terminal)?;
    let views_folder = arguments.out.join("data").join("views");
    let views = Dataset::open(&views_folder)?;
    let sheet = arguments.out.join("contact-sheet.png");
    contact_sheet::of_dataset(
        &views,
        &sheet,
        contact_sheet::DatasetSheet { cell: SIDE, per_class: 8, axes: false },
    )?;
    let roots: Vec<PathBuf> = site.study.runs.iter().map(|run| site.root(run)).collect();
    let runs: Vec<RunMaterial> =
        roots.iter().map(|root| RunMaterial::read(root)).collect::<report::Result<_>>()?;
    let all = run_names::latest(&run_names::named(&runs));
    let first = views.objects().first().map(dataset::Object::id).unwrap_or_default();
    let network = |Entry { results, .. }: &Entry| {
        let value = |task| results.representations.get(&task).map(|probe| probe.value.value);
        let (name, method) = (results.subject.name.clone(), results.subject.method.clone());
        let (rotation_r2, top1) = (value(Task::Rotation), value(Task::Classification));
        Network { name, method, rotation_r2, top1, pose: results.pose_verdict() }
    };
    let rotation = all.first().and_then(|entry| entry.results.representations.get(&Task::Rotation));
    let ours = roots.last().map(|root| dataset::shell_word(root)).unwrap_or_default();
    let explored: Vec<PathBuf> = roots.iter().rev().cloned().collect();
    let made = Outcome::new(&Made {
        out: shown(&arguments.out),
        report,
        contact_sheet: shown(&sheet),
        views: shown(&views_folder),
        networks: all.iter().map(network).collect(),
        rotation_floor: rotation.map(|probe| probe.floor),
        seconds: began.elapsed().as_secs_f64(),
        table: summary(&all).to_text(),
        next: format!(
            "equicaps neighbours {ours} {} --among {} --by poses --out near.png",
            dataset::shell_word(&views_folder.join(first).join("image_0.jpg")),
            dataset::shell_word(&views_folder)
        ),
        explore: explore::command_line(&explored),
    })?;
    if !arguments.explore {
        return Ok(made);
    }
    made.print(terminal);
    explore::serve(&explore::Arguments::of_runs(explored), terminal, |url| {
        crate::terminal::say(url);
        Ok(())
    })
}

/// What the demo made.
#[derive(Serialize)]
struct Made {
    out: String,
    report: String,
    contact_sheet: String,
    views: String,
    networks: Vec<Network>,
    rotation_floor: Option<f64>,
    seconds: f64,
    #[serde(skip)]
    table: String,
    /// A command to try next.
    #[serde(skip)]
    next: String,
    /// The command that opens the explorer on both runs.
    explore: String,
}

#[derive(Serialize)]
struct Network {
    name: String,
    method: String,
    rotation_r2: Option<f64>,
    top1: Option<f64>,
    /// Whether it has learnt poses, where it was to.
    pose: Option<PoseVerdict>,
}

impl fmt::Display for Made {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { report, contact_sheet, seconds, table, next, explore, .. } = self;
        let floor = self
            .rotation_floor
            .map_or_else(String::new, |floor| format!("{floor:.2} is reached without any information, "));
        writeln!(formatter, "{table}\nRotation R\u{b2} on held-out objects: {floor}1 is perfect.")?;
        for network in &self.networks {
            if let Some(message) = network.pose.as_ref().and_then(|verdict| verdict.message.as_ref()) {
                writeln!(formatter, "{}: {message}", network.name)?;
            }
        }
        write!(
            formatter,
            "{seconds:.0} s. Look at\n  {report}  tables, curves, nearest neighbours, rotation in pose space\n  \
             {contact_sheet}  the views\nThen try\n  {next}\n  {explore}"
        )
    }
}

/// The table at the end: one row a network, and what is reached without information.
fn summary(all: &[Entry]) -> Table {
    let mut table = ours::probes("demo", "", all, false).unwrap_or_default();
    for row in &mut table.rows {
        if let Some(Cell::Text(name)) = row.first_mut()
            && name.starts_with("untrained")
        {
            *name = "untrained".to_owned();
        }
    }
    table
}
