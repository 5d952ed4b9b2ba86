//! Which run a checkpoint belongs to: what it says of settings and data, and the refusal of one that was made with others.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use dataset::{Split, SplitBy, Views, plan};

use crate::checkpoint::{Checkpoint, Position, SPLIT};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::learner::Learner;
use crate::means::Means;

/// A checkpoint before the first step, of a run whose weights come from elsewhere.
pub fn starting_checkpoint(config: &Config, views: &dyn Views, learner: &dyn Learner) -> Result<Checkpoint> {
    let mut checkpoint = described(Position::default(), config, views, 0)?;
    learner.save(&mut checkpoint)?;
    Means::default().save(&mut checkpoint);
    Ok(checkpoint)
}

/// A checkpoint with everything but tensors.
pub(super) fn described(
    position: Position,
    config: &Config,
    views: &dyn Views,
    strikes: u64,
) -> Result<Checkpoint> {
    let metadata = [
        ("seed", config.seed.to_string()),
        ("config_hash", config.identity()?),
        ("config", config.identity_toml()?),
        ("objects", views.split(Split::Train).len().to_string()),
        ("objects_digest", plan::digest(views.objects())),
        ("views_digest", views_digest(views)),
        ("classes", views.classes().len().to_string()),
        ("guard_strikes", strikes.to_string()),
    ];
    let split = Some(views.split_by()).filter(|split| *split == SplitBy::Views);
    let split = split.map(|split| (SPLIT.to_owned(), split.to_string()));
    let metadata = metadata.map(|(key, value)| (key.to_owned(), value)).into_iter().chain(split).collect();
    Ok(Checkpoint { position, metadata, ..Checkpoint::default() })
}

/// Refuses a checkpoint made with other settings or other data.
pub(super) fn check_belongs(
    path: &Path,
    checkpoint: &Checkpoint,
    config: &Config,
    views: &Arc<dyn Views>,
) -> Result<()> {
    let text = |key: &str| checkpoint.metadata.get(key).cloned().unwrap_or_default();
    // A setting that came later than the checkpoint counts as it is by default.
    let now = config.identity()?;
    if text("config_hash") != now && Config::of_checkpoint(path, checkpoint)?.identity()? != now {
        let changes = changed_settings(&text("config"), &config.identity_toml()?);
        return Err(Error::content(
            path,
            format!("was made with other settings than config.toml has now{changes}"),
        ));
    }
    let (then, is) = (checkpoint.split(), views.split_by());
    if then != is {
        return Err(Error::content(path, format!("was made with the split by {then}, not by {is}")));
    }
    let objects = views.split(Split::Train).len().to_string();
    if text("objects") != objects {
        return Err(Error::content(
            path,
            format!("was made with {} training objects, but the data now have {objects}", text("objects")),
        ));
    }
    if text("objects_digest") != plan::digest(views.objects()) {
        return Err(Error::content(path, "was made with other objects than the data have now"));
    }
    // Checkpoints of earlier versions say nothing of views.
    if !["", &views_digest(&**views)].contains(&text("views_digest").as_str()) {
        let message = "was made with other views of these objects than the data have now: \
                       their number, size or latents differ";
        return Err(Error::content(path, message));
    }
    Ok(())
}

/// A number for the views of a dataset: how many, how large, and what some of them show.
pub(crate) fn views_digest(views: &dyn Views) -> String {
    const OBJECTS: usize = 256;
    let (count, objects) = (views.views(), views.objects().len());
    let mut text = format!("{count} {} {}", views.side(), views.has_translation());
    for object in (0..objects).step_by(objects.div_ceil(OBJECTS).max(1)) {
        for view in [0, views.views_in(object).saturating_sub(1)] {
            let numbers = views.latents(object, view).to_vec();
            text.extend(numbers.iter().map(|number| format!(" {:016x}", number.to_bits())));
        }
    }
    text.extend(views.images_digest().map(|digest| format!(" {digest:016x}")));
    format!("{:016x}", random::fnv1a(text.as_bytes()))
}

/// The settings in which two texts of one setting a line differ: `: batch was 32 and is 16, ...`.
fn changed_settings(before: &str, now: &str) -> String {
    let lines = |text: &str| -> BTreeMap<String, String> {
        let pairs = text.lines().filter_map(|line| line.split_once(" = "));
        pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    };
    let (before, now) = (lines(before), lines(now));
    let value =
        |side: &BTreeMap<String, String>, key| side.get(key).map_or("not set", String::as_str).to_owned();
    let keys: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let changes: Vec<String> = keys
        .into_iter()
        .filter(|key| before.get(*key) != now.get(*key))
        .map(|key| format!("{key} was {} and is {}", value(&before, key), value(&now, key)))
        .collect();
    if changes.is_empty() { String::new() } else { format!(": {}", changes.join(", ")) }
}
