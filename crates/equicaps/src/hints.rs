//! What to call instead, for words that other tools use (`--epochs 10`, `--gpu`): the whole command, corrected, and tried
//! before it is shown.

use std::ffi::{OsStr, OsString};

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::Arguments;

/// Options of other tools, and what they are here. `None`: no value follows.
const OPTIONS: [(&[&str], &str); 7] = [
    (&["output", "output-dir", "out-dir", "output-file", "save-to", "dest"], "--out"),
    (&["data-dir", "data-path", "data-root", "dataset", "dataset-dir", "root"], "--data"),
    (&["run-dir", "log-dir", "logdir", "save-dir", "exp-dir", "work-dir", "experiment", "exp-name"], "--run"),
    (&["arch", "architecture", "encoder"], "--backbone"),
    (&["weights", "pretrained", "init", "finetune"], "--init-from"),
    (&["jobs", "num-threads", "cpus", "n-jobs"], "--threads"),
    (&["random-seed", "manual-seed"], "--seed"),
];

/// Words that stand alone, and what they are here.
const FLAGS: [(&[&str], &[&str]); 3] = [
    (&["gpu", "cuda", "use-gpu"], &["--device", "cuda:0"]),
    (&["cpu", "no-cuda"], &["--device", "cpu"]),
    (&["silent", "no-progress"], &["--quiet"]),
];

/// So many words of a command are corrected.
const MOST: usize = 8;

/// Adds to `error`, which the command line `words` gave, what to call instead, where that is known.
pub fn add(error: &mut clap::Error, words: &[OsString]) {
    if let Some(tip) = instead(error, words) {
        // What clap found by likeness of letters is worse.
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
        error.remove(ContextKind::SuggestedArg);
    }
}

fn instead(error: &clap::Error, words: &[OsString]) -> Option<String> {
    let (mut corrected, first) = correct(error, words)?;
    for _ in 1..MOST {
        match Arguments::try_parse_from(&corrected) {
            Ok(_) => return Some(shown(&corrected)),
            Err(next) => match correct(&next, &corrected) {
                Some((better, _)) => corrected = better,
                None => break,
            },
        }
    }
    Some(format!("use {}", shown(&first)))
}

fn shown(words: &[OsString]) -> String {
    let mut shown: Vec<String> = words.iter().map(|word| dataset::shell_word(word.as_ref())).collect();
    // However the program was found, it is called by its name.
    if let Some(program) = shown.first_mut().filter(|word| !word.starts_with('-')) {
        *program = "equicaps".to_owned();
    }
    shown.join(" ")
}

/// The command line with the word that `error` names replaced, and what it was replaced by.
fn correct(error: &clap::Error, words: &[OsString]) -> Option<(Vec<OsString>, Vec<OsString>)> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(wrong)) = error.get(ContextKind::InvalidArg) else { return None };
    let name = wrong.strip_prefix("--")?.split('=').next()?;
    let (place, inside) = words.iter().enumerate().find_map(|(place, word)| {
        let word = word.to_str()?.strip_prefix("--")?;
        let (found, value) = word.split_once('=').map_or((word, None), |(found, value)| (found, Some(value)));
        (found == name).then_some((place, value))
    })?;
    let command = words.iter().skip(1).find(|word| !word.to_string_lossy().starts_with('-'))?;
    let following = words.get(place + 1).filter(|word| !word.to_string_lossy().starts_with('-'));
    let value = inside.map(OsStr::new).or(following.map(OsString::as_os_str));
    let plain = name.to_lowercase().replace('_', "-");
    let flag = FLAGS.iter().find(|(names, _)| names.contains(&plain.as_str()));
    let option = OPTIONS.iter().find(|(names, _)| names.contains(&plain.as_str()));
    let (instead, used): (Vec<OsString>, _) = if let Some((_, flag)) = flag {
        // A number of a GPU may follow.
        let number = value.and_then(OsStr::to_str).filter(|value| value.parse::<u8>().is_ok());
        let device = number.filter(|_| flag.contains(&"cuda:0")).map(|number| format!("cuda:{number}"));
        let word =
            |&word: &&str| device.clone().filter(|_| word == "cuda:0").unwrap_or(word.to_owned()).into();
        (flag.iter().map(word).collect(), device.is_some())
    } else if let Some((_, option)) = option {
        (vec![(*option).into(), value?.to_owned()], true)
    } else if command == "train" {
        let mut assignment = OsString::from(setting(&plain)?);
        assignment.push("=");
        assignment.push(value?);
        (vec!["--set".into(), assignment], true)
    } else {
        return None;
    };
    let last = place + if used && inside.is_none() { 2 } else { 1 };
    let corrected = [&words[..place], &instead, &words[last.min(words.len())..]].concat();
    Some((corrected, instead))
}

/// The setting that is meant by an option's name.
fn setting(plain: &str) -> Option<String> {
    let settings = train::Config::settings("equicaps", "paper").ok()?;
    let name = plain.replace('-', "_");
    let keys: Vec<&str> = settings.keys().collect();
    let known = match name.as_str() {
        "bs" | "batch_size" | "per_device_train_batch_size" => Some("batch"),
        "num_epochs" | "max_epochs" | "n_epochs" | "num_train_epochs" => Some("epochs"),
        "wd" => Some("weight_decay"),
        "img_size" | "imgsz" | "size" | "resolution" | "input_size" => Some("image_size"),
        "num_workers" => Some("loader.workers"),
        "lr_scheduler" | "scheduler" => Some("schedule"),
        _ => methods::nearest(&name, keys.iter().copied()),
    };
    known.map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tip(line: &str) -> Option<String> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let error = Arguments::try_parse_from(&words).err().unwrap();
        instead(&error, &words)
    }

    #[test]
    fn words_of_other_tools_are_answered_by_commands_that_work() {
        for (line, expected) in [
            ("equicaps train --data v --epochs 10", "equicaps train --data v --set epochs=10"),
            ("./equicaps train --epochs=10 --run r", "equicaps train --set epochs=10 --run r"),
            (
                "equicaps train --batch-size 64 --lr 0.1 --num_workers 2 --gpu --data-dir v",
                "equicaps train --set batch=64 --set learning_rate=0.1 --set loader.workers=2 --device cuda:0 --data v",
            ),
            ("equicaps train --gpu 1 --log-dir r", "equicaps train --device cuda:1 --run r"),
            ("equicaps embed r photos --output f.npy", "equicaps embed r photos --out f.npy"),
            (
                "equicaps train --img-size 64 --wd 0",
                "equicaps train --set image_size=64 --set weight_decay=0",
            ),
        ] {
            let found = tip(line).unwrap();
            assert_eq!(found, expected);
            assert!(Arguments::try_parse_from(found.split(' ')).is_ok(), "{found}");
        }
        // Something else is wrong as well: what to use is said, a command that fails is not.
        assert_eq!(tip("equicaps train --epochs 10 --data").as_deref(), Some("use --set epochs=10"));
        assert_eq!(tip("equicaps train --qqqqqq 10"), None);
        assert_eq!(tip("equicaps devices --epochs 10"), None);
    }

    #[test]
    fn every_answer_exists() {
        let settings = train::Config::settings("equicaps", "paper").unwrap();
        for name in ["bs", "max-epochs", "wd", "imgsz", "num-workers", "scheduler", "epochs", "temperature"] {
            let key = setting(name).unwrap();
            assert!(settings.keys().any(|known| known == key), "{key}");
        }
    }
}
