//! `equicaps demo`: the newcomer's first command.

use std::path::PathBuf;
use std::process::ExitCode;

use dataset::card::{Format, Origin, Settings};
use dataset::jpeg::ChannelOrder;
use dataset::work::Shard;
use dataset::{CpuRenderer, Dataset, ObjectSet, ProceduralSize, Views};
use render::Quality;
use scene::LatentRanges;
use serde_json::json;

use crate::commands::dataset::preview;
use crate::commands::render::{Request, make};
use crate::terminal::Terminal;

/// Arguments of `equicaps demo`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Folder for everything the demo makes
    #[arg(long, value_name = "DIR", default_value = "equicaps-demo")]
    out: PathBuf,
}

/// Two objects of every class, four views each.
const SIZE: ProceduralSize = ProceduralSize { classes: 55, objects: 2 };
const VIEWS: usize = 4;
const SIDE: usize = 128;
/// Side of a picture on the contact sheet.
const CELL: usize = 96;
const SEED: u64 = 0;
const QUALITY: Quality = Quality::Fast;

/// Runs the demo; what is there already is not made again.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<ExitCode> {
    let views = arguments.out.join("views");
    terminal.note(format!(
        "rendering {VIEWS} views of {} objects of {} classes into {}",
        SIZE.classes * SIZE.objects,
        SIZE.classes,
        views.display()
    ));
    let request = Request {
        settings: settings(),
        renderer: CpuRenderer::new(ObjectSet::procedural(SIZE, SEED), QUALITY),
        out: views.clone(),
        shard: Shard::WHOLE,
        jobs: rayon::current_num_threads(),
    };
    let made = make(&request, terminal)?;
    if made.outcome.complete.is_none() {
        anyhow::bail!("interrupted; run the same command again to go on");
    }
    let dataset = Dataset::open(&views)?;
    let sheet = arguments.out.join("contact-sheet.png");
    preview::of_dataset(&dataset, &sheet, CELL, SIZE.objects as usize * VIEWS)?;
    let images = dataset.objects().len() * dataset.views();
    let text = format!(
        "{images} images in {:.1} s\n\n\
         Look at {}: every class under random rotation, translation, floor colour and light.\n\
         The dataset is {} (its README.md says what is in it); next, try\n\
         \x20 equicaps dataset stats {}\n\
         \x20 equicaps render --procedural 55x20 --out views",
        made.seconds,
        sheet.display(),
        views.display(),
        views.display()
    );
    terminal.result(
        text,
        &json!({
            "out": arguments.out,
            "views": views,
            "contact_sheet": sheet,
            "images": images,
            "images_rendered": made.outcome.images_rendered,
            "seconds": made.seconds,
        }),
    );
    Ok(ExitCode::SUCCESS)
}

fn settings() -> Settings {
    Settings {
        preset: "3diebench-t".to_owned(),
        origin: Origin::Procedural { classes: SIZE.classes, objects: SIZE.objects },
        limit: None,
        objects: 0,
        objects_digest: String::new(),
        views: VIEWS,
        size: SIDE,
        seed: SEED,
        quality: QUALITY.to_string(),
        device: "cpu".to_owned(),
        channel_order: ChannelOrder::Rgb,
        format: Format::Files,
        objects_per_tar: None,
        ranges: LatentRanges::BENCH_T,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}
