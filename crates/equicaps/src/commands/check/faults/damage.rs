//! One flipped bit, or a file cut short, in every kind of file that we write; then the file is read as commands do.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use dataset::{Dataset, Views};
use random::{Random, Stream};
use train::RunFolder;
use train::checkpoint::Checkpoint;

use super::small::{Small, finish, tree};
use super::{Row, Verdict};

/// What reading gave: all of it as bytes, or a refusal.
type Reading = Result<Vec<u8>, String>;

/// Tries every kind of file of the dataset, the run and the evaluation.
pub fn run(small: &Small, rounds: u32, seed: u64) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (layout, root) in [("files", &small.files), ("shards", &small.shards)] {
        for (kind, files) in kinds(root)? {
            let read = || dataset_content(root);
            let is_editable = kind == "classes.json";
            rows.extend(try_kind(&format!("{layout}: {kind}"), &files, rounds, seed, &read, is_editable)?);
        }
    }
    let checkpoints = small.run.join("checkpoints");
    let files: Vec<PathBuf> =
        train::checkpoint::list(&checkpoints)?.into_iter().map(|(_, file)| file).collect();
    for file in files.into_iter().take(1) {
        let read = || checkpoint_content(&file);
        rows.extend(try_kind("run: checkpoint", std::slice::from_ref(&file), rounds, seed, &read, false)?);
    }
    let folder = RunFolder::open(&small.run)?;
    let config = || folder.config().and_then(|config| config.to_toml()).map(String::into_bytes).map_err(text);
    rows.extend(try_kind("run: config.toml", &[folder.config_path()], rounds, seed, &config, true)?);
    let path = folder.metrics_path();
    let metrics = || train::metrics::read(&path).map_err(text).map(|r| format!("{r:?}").into_bytes());
    rows.extend(try_kind("run: metrics.jsonl", std::slice::from_ref(&path), rounds, seed, &metrics, true)?);
    let path = small.evaluation.join("results.json");
    let results = || evaluate::Results::read(&path).map_err(text).map(|r| format!("{r:?}").into_bytes());
    rows.extend(try_kind(
        "evaluation: results.json",
        std::slice::from_ref(&path),
        rounds,
        seed,
        &results,
        true,
    )?);
    let kept: Vec<PathBuf> =
        tree(&small.features)?.into_keys().map(|name| small.features.join(name)).collect();
    let again = || {
        let out = small.fresh("evaluation").map_err(text)?;
        let mut command = small.evaluate(&out, &small.features).map_err(text)?;
        finish(&mut command).map_err(text)?;
        let numbers = tree(&out).map_err(text)?.remove(Path::new("results.json"));
        numbers.ok_or_else(|| "no results".to_owned())
    };
    // A process each, which takes longer.
    rows.extend(try_kind("evaluation: kept features", &kept, rounds.div_ceil(5), seed, &again, false)?);
    Ok(rows)
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// The files of a dataset by what they are.
fn kinds(root: &Path) -> anyhow::Result<Vec<(&'static str, Vec<PathBuf>)>> {
    let is = |name: &str| -> &'static str {
        let file = name.rsplit('/').next().unwrap_or(name);
        match file {
            "dataset.json" => "dataset.json",
            "README.md" => "README.md",
            "classes.json" => "classes.json",
            "skipped.json" => "skipped.json",
            _ if file.ends_with(".jpg") => "image_i.jpg",
            _ if file.ends_with(".tar") => "archive",
            _ if file.starts_with("latent_") => "latent_i.npy",
            _ if name.starts_with("shards/") => "index of an archive",
            _ if file.starts_with("checksums_") => "checksums_*.npy",
            _ if file.starts_with("all_latents_") => "all_latents_*.npy",
            _ => "lists (*_images.npy, *_labels.npy)",
        }
    };
    let mut found: Vec<(&'static str, Vec<PathBuf>)> = Vec::new();
    for name in tree(root)?.into_keys() {
        let kind = is(&name.to_string_lossy());
        match found.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, files)) => files.push(root.join(name)),
            None => found.push((kind, vec![root.join(name)])),
        }
    }
    Ok(found)
}

/// Flips and cuts `files`, reads again each time, and puts everything back. In a file for people (`is_editable`) another
/// reading is an edit.
fn try_kind(
    name: &str,
    files: &[PathBuf],
    rounds: u32,
    seed: u64,
    read: &dyn Fn() -> Reading,
    is_editable: bool,
) -> anyhow::Result<Vec<Row>> {
    let expected = read().map_err(anyhow::Error::msg)?;
    let mut rows = [Row::new(format!("{name}: a bit flipped")), Row::new(format!("{name}: cut short"))];
    for round in 0..rounds {
        let mut random = Random::new(seed, Stream::new(name), u64::from(round));
        let file = &files[random.below(files.len() as u64) as usize];
        let good = fs::read(file)?;
        for (row, is_cut) in rows.iter_mut().zip([false, true]) {
            let Some(at) = damage(file, is_cut, &mut random)? else { continue };
            let reading = catch_unwind(AssertUnwindSafe(read));
            fs::write(file, &good)?;
            let verdict = match &reading {
                Err(_) => Verdict::Crashed,
                Ok(Err(message)) if message.contains("panicked") || message.contains("signal") => {
                    Verdict::Crashed
                }
                Ok(Err(_)) => Verdict::Refused,
                Ok(Ok(content)) if *content == expected => Verdict::Same,
                Ok(Ok(_)) if is_editable => Verdict::Taken,
                Ok(Ok(_)) => Verdict::Wrong,
            };
            row.count_with(verdict, format!("{} at byte {at}", file.display()));
        }
    }
    Ok(rows.into())
}

/// Flips a bit of a file, or cuts it short; at which byte. Nothing where it is empty.
pub fn damage(file: &Path, is_cut: bool, random: &mut Random) -> anyhow::Result<Option<usize>> {
    let mut bytes = fs::read(file)?;
    if bytes.is_empty() {
        return Ok(None);
    }
    let at = random.below(bytes.len() as u64) as usize;
    if is_cut {
        bytes.truncate(at);
    } else {
        bytes[at] ^= 1 << random.below(8);
    }
    fs::write(file, &bytes)?;
    Ok(Some(at))
}

/// All that training and evaluation see of a dataset; what `dataset check` finds is a refusal.
pub fn dataset_content(root: &Path) -> Reading {
    let dataset = Dataset::open(root).map_err(text)?;
    if let Some(problem) = dataset::check::check(&dataset, &|| {}).problems.into_iter().next() {
        return Err(problem);
    }
    let mut content = format!("{:?}{:?}", dataset.objects(), dataset.classes()).into_bytes();
    let side = dataset.side();
    let mut pixels = vec![0; side * side * 3];
    for object in 0..dataset.objects().len() {
        for view in 0..dataset.views() {
            dataset.image(object, view, side, &mut pixels).map_err(text)?;
            content.extend_from_slice(&pixels);
            content.extend(format!("{:?}", dataset.latents(object, view)).into_bytes());
        }
    }
    Ok(content)
}

fn checkpoint_content(file: &Path) -> Reading {
    let checkpoint = Checkpoint::read(file).map_err(text)?;
    Ok(format!("{checkpoint:?}").into_bytes())
}
