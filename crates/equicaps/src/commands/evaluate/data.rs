//! The data of an evaluation: views that the weights have not seen, and without images that cannot be read where that is wanted.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use anyhow::bail;
use dataset::{Split, SplitBy, Views};
use engine::Device;
use evaluate::weights::Weights;
use pose::Space;
use train::config::OnBadSample;
use train::{Config, Seen, TrainedOn};

use crate::commands::left_out;
use crate::terminal::Terminal;
use crate::{Interrupted, interrupt};

/// Opens the data that `config` names, to be rendered on `device` where they are objects, unless `all` were trained on what
/// they hold out (`run` says whose weights these are). Warnings that were `said` before are not repeated.
pub fn open(
    run: &Path,
    config: &Config,
    all: &[Weights],
    device: &Device,
    said: &mut Vec<String>,
    terminal: &Terminal,
) -> anyhow::Result<Arc<dyn Views>> {
    let views = train::data::open_views_on(config, device, &mut |text| terminal.warn(text))?;
    let views = match config.loader.on_bad_sample {
        OnBadSample::Skip => readable(views, terminal)?,
        OnBadSample::Fail => views,
    };
    terminal.note(format!("{}; held out: {}", views.description(), views.split_by().held_out()));
    if let Some(missing) = views.without_pose() {
        terminal.note(format!("{missing}; rotation is not probed and nothing is retrieved"));
    }
    let held_out = views.split(Split::Val).map(|object| views.objects()[object].label);
    if held_out.collect::<BTreeSet<u32>>().len() == 1 {
        terminal.note("what is held out is of one class: classes are not measured");
    }
    if !views.has_light() {
        terminal.note("hues of floor and light are not known: colour is not probed");
    }
    if let Some(warning) = check_unseen(run, config, all, views.split_by())?
        && !said.contains(&warning)
    {
        terminal.warn(&warning);
        said.push(warning);
    }
    Ok(views)
}

/// `views` without images that cannot be read. Meshes that cannot be used have been left out already.
fn readable(views: Arc<dyn Views>, terminal: &Terminal) -> anyhow::Result<Arc<dyn Views>> {
    if views.has_more_views() && views.space() == Space::Object {
        return Ok(views);
    }
    let progress = terminal.progress(views.objects().len() as u64, "objects");
    progress.message("reading all images");
    let found = dataset::readable(views, interrupt::flag(), &|objects| progress.advance(objects));
    progress.finish();
    let (views, problems) = match found {
        Err(dataset::Error::Interrupted) => return Err(Interrupted.into()),
        other => other?,
    };
    left_out::warn(&problems, "", terminal);
    Ok(views)
}

/// Refuses to test on what was trained on; the warning is for where nobody can know.
fn check_unseen(
    run: &Path,
    config: &Config,
    all: &[Weights],
    split: SplitBy,
) -> anyhow::Result<Option<String>> {
    // All of them are checkpoints of one run.
    let Some(trained) = all.iter().find_map(|weights| weights.trained_on.as_ref()) else { return Ok(None) };
    // The data as that run would have them, with all objects.
    let mut as_trained = Config { split: trained.split.into(), ..config.clone() };
    as_trained.loader.on_bad_sample = OnBadSample::Fail;
    let data = train::data::open_views(&as_trained, &mut |_| ()).ok();
    let data = data.map(|views| TrainedOn::of_views(&*views));
    let run = run.display();
    match trained.has_seen(split, data.as_ref()) {
        Seen::No => Ok(None),
        Seen::Yes(why) => bail!("{run} {why}"),
        Seen::Unknown(why) => Ok(Some(format!("{run} {why}"))),
    }
}
