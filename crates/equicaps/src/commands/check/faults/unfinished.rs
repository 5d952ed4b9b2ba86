//! Work that was killed and whose files were then damaged: the same command either says so or leaves what an undisturbed
//! one does. What `dataset check` finds afterwards is said too.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

use random::{Random, Stream};

use super::damage::{damage, dataset_content};
use super::kills::{Work, is_crash, said, verdict, works};
use super::small::Small;
use super::{Row, Verdict};

/// Damages what renderings and runs leave behind when they are killed, and lets them go on.
pub fn run(small: &Small, rounds: u32, seed: u64) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for work in works(small).into_iter().filter(|work| work.name != "evaluate") {
        let name = work.name;
        let mut both = [
            Row::new(format!("{name}: killed, then a bit flipped")),
            Row::new(format!("{name}: killed, then a file cut short")),
        ];
        for round in 0..rounds {
            for (row, is_cut) in both.iter_mut().zip([false, true]) {
                let number = 2 * u64::from(round) + u64::from(is_cut);
                let mut random = Random::new(seed, Stream::new(name), 2000 + number);
                let out = small.fresh("unfinished")?;
                begin(&work, &out)?;
                let files = files_below(&out)?;
                if files.is_empty() {
                    continue;
                }
                let file = &files[random.below(files.len() as u64) as usize];
                let Some(at) = damage(file, is_cut, &mut random)? else { continue };
                let output = (work.command)(&out)?.output()?;
                let (verdict, found) = judge(&work, &out, file, &output)?;
                let place = file.strip_prefix(&out)?.display().to_string();
                row.count_with(verdict, format!("{place} at byte {at}: {found}"));
            }
        }
        rows.extend(both);
    }
    Ok(rows)
}

/// Begins the work and kills it once something of it is finished.
fn begin(work: &Work<'_>, out: &Path) -> anyhow::Result<()> {
    let mut child = (work.command)(out)?.spawn()?;
    let has_some =
        |folder: &str| fs::read_dir(out.join(folder)).is_ok_and(|mut found| found.next().is_some());
    let began = Instant::now();
    while child.try_wait()?.is_none() && began.elapsed() < Duration::from_secs(60) {
        if [".equicaps/checksums", ".equicaps/fragments", "checkpoints"].iter().any(|folder| has_some(folder))
        {
            break;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill()?;
    child.wait()?;
    Ok(())
}

/// All files, in order; those that only say which process works here are left out.
fn files_below(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            let is_lock = path.file_name().is_some_and(|name| name == "lock" || name == "run.lock");
            match path.is_dir() {
                true => folders.push(path),
                false if is_lock => {}
                false => files.push(path),
            }
        }
    }
    files.sort();
    Ok(files)
}

fn judge(work: &Work<'_>, out: &Path, file: &Path, output: &Output) -> anyhow::Result<(Verdict, String)> {
    let words = said(output);
    if is_crash(output) {
        return Ok((Verdict::Crashed, words));
    }
    if !output.status.success() {
        return Ok((Verdict::Refused, words));
    }
    let (found, other) = verdict(work, out)?;
    if found == Verdict::Same {
        return Ok((found, other));
    }
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let is_editable = ["config.toml", "metrics.jsonl", "classes.json"].contains(&name.as_str());
    let is_told = match work.name {
        "train" => words.lines().any(|line| line.contains(&name)),
        _ => dataset_content(out).is_err(),
    };
    Ok(match (is_told, is_editable) {
        (true, _) => (Verdict::Refused, words),
        (false, true) => (Verdict::Taken, words),
        (false, false) => (Verdict::Wrong, format!("{other}; said: {words:?}")),
    })
}
