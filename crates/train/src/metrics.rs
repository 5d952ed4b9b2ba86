//! `metrics.jsonl`: one JSON object per line, in the order of steps. A resumed run first removes the lines that
//! are later than its checkpoint, so that the file is what an uninterrupted run would have written; only the values
//! under `timing` depend on the clock.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use dataset::durable;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// What a line describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// One training step.
    Step,
    /// The mean over an epoch.
    Epoch,
    /// An evaluation on held-out objects.
    HeldOut,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// What it describes.
    pub kind: Kind,
    /// The epoch, counted from 1.
    pub epoch: u64,
    /// Steps done.
    pub step: u64,
    /// Numbers by name: `loss`, `loss/variance`, `probe/rotation_r2/representation`, `health/effective_rank`, ...
    pub values: Map<String, Value>,
    /// Numbers that depend on the machine: `images_per_second`, `waited_share`, `seconds`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub timing: Map<String, Value>,
}

impl Record {
    /// The number called `name`.
    pub fn value(&self, name: &str) -> Option<f64> {
        self.values.get(name).and_then(Value::as_f64)
    }
}

/// A number for a record; NaN and infinities, which JSON lacks, become strings.
pub fn number(value: f64) -> Value {
    serde_json::Number::from_f64(value).map_or_else(|| Value::String(value.to_string()), Value::Number)
}

/// The open file.
#[derive(Debug)]
pub struct MetricsFile {
    file: File,
    path: PathBuf,
}

impl MetricsFile {
    /// Opens `path` to go on after `step`: what is later, or half a line, is taken back. Says what else was wrong with
    /// the file.
    pub fn open(path: &Path, step: u64) -> Result<(Self, Option<String>)> {
        let damage = rewind(path, step)?;
        let file = OpenOptions::new().create(true).append(true).open(path).map_err(Error::write(path))?;
        Ok((Self { file, path: path.to_path_buf() }, damage))
    }

    /// Adds a line.
    pub fn write(&mut self, record: &Record) -> Result<()> {
        let mut line = serde_json::to_string(record)
            .map_err(|error| Error::content(&self.path, format!("cannot write a line: {error}")))?;
        line.push('\n');
        self.file.write_all(line.as_bytes()).map_err(Error::write(&self.path))
    }

    /// Makes all lines durable; to be done before a checkpoint that is later than they are.
    pub fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(Error::write(&self.path))
    }
}

/// Takes back the lines later than `step`, and a last line that was cut off. Lines that are damaged otherwise are left
/// out; the file is then kept as it was under another name, and the sentence says so.
fn rewind(path: &Path, step: u64) -> Result<Option<String>> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::read(path)(error)),
    };
    let (mut kept, mut damaged) = (Vec::new(), 0);
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        match serde_json::from_slice::<Record>(line) {
            Ok(record) if line.ends_with(b"\n") && record.step <= step => kept.extend_from_slice(line),
            Ok(_) => {}
            Err(_) if line.ends_with(b"\n") => damaged += 1,
            Err(_) => {}
        }
    }
    let mut sentence = None;
    if damaged > 0 {
        let aside = path.with_extension("jsonl.damaged");
        durable::write(&aside, &bytes)?;
        let (path, aside) = (path.display(), aside.display());
        sentence = Some(format!(
            "damaged lines in {path}: {damaged}; they are left out, and the file is kept as {aside}"
        ));
    }
    if kept.len() != bytes.len() {
        durable::write(path, &kept)?;
    }
    Ok(sentence)
}

/// All complete lines of the file; none where there is no file.
pub fn read(path: &Path) -> Result<Vec<Record>> {
    match read_undamaged(path)? {
        (_, Some(sentence)) => Err(Error::Request(sentence)),
        (records, None) => Ok(records),
    }
}

/// The complete lines of the file that can be read, and a sentence about the others where there are any: curves with a gap are
/// better than none.
pub fn read_undamaged(path: &Path) -> Result<(Vec<Record>, Option<String>)> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok((Vec::new(), None)),
        Err(error) => return Err(Error::read(path)(error)),
    };
    let (mut records, mut damaged) = (Vec::new(), Vec::new());
    let whole = bytes.split_inclusive(|&byte| byte == b'\n').filter(|line| line.ends_with(b"\n"));
    for (index, line) in whole.enumerate() {
        match serde_json::from_slice(line) {
            Ok(record) => records.push(record),
            Err(_) => damaged.push(index + 1),
        }
    }
    let sentence = damaged.first().map(|first| {
        let (path, count) = (path.display(), damaged.len());
        format!("damaged lines in {path}: {count}, the first is line {first}; they are left out")
    });
    Ok((records, sentence))
}

/// What curves are drawn over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// Epochs, with fractions inside one.
    Epochs,
    /// Steps.
    Steps,
}

impl Over {
    /// What shows runs with these numbers of steps in an epoch fairly: steps, unless all have the same.
    pub fn fitting(steps_per_epoch: impl IntoIterator<Item = f64>) -> Self {
        let mut numbers = steps_per_epoch.into_iter().map(f64::round);
        let first = numbers.next();
        if numbers.all(|number| Some(number) == first) { Self::Epochs } else { Self::Steps }
    }

    /// What shows runs with these lines fairly; steps also where a run has not come to the end of an epoch.
    pub fn of<'a>(runs: impl IntoIterator<Item = &'a [Record]>) -> Self {
        let runs = runs.into_iter().filter(|records| !records.is_empty());
        let numbers: Option<Vec<f64>> = runs.map(steps_per_epoch).collect();
        numbers.map_or(Self::Steps, Self::fitting)
    }

    /// What one place is.
    pub fn word(self) -> &'static str {
        match self {
            Self::Epochs => "epoch",
            Self::Steps => "step",
        }
    }
}

/// Steps of an epoch, as soon as one is complete.
pub fn steps_per_epoch(records: &[Record]) -> Option<f64> {
    let complete = |record: &&Record| record.kind == Kind::Epoch && record.epoch > 0;
    records.iter().find(complete).map(|record| record.step as f64 / record.epoch as f64)
}

/// The values of `name` among the lines of `kind`, each with its place.
pub fn curve(records: &[Record], over: Over, kind: Kind, name: &str) -> Vec<(f64, f64)> {
    let steps = match over {
        Over::Steps => Some(1.0),
        Over::Epochs => steps_per_epoch(records),
    };
    let of_kind = records.iter().filter(|record| record.kind == kind);
    of_kind
        .filter_map(|record| {
            let place = steps.map_or(record.epoch as f64, |steps| record.step as f64 / steps);
            Some((place, record.value(name)?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(step: u64, loss: f64) -> Record {
        let values = Map::from_iter([("loss".to_owned(), number(loss))]);
        Record { kind: Kind::Step, epoch: 1, step, values, timing: Map::new() }
    }

    #[test]
    fn a_continued_file_equals_an_uninterrupted_one() {
        let folder = tempfile::tempdir().unwrap();
        let (whole, broken) = (folder.path().join("whole"), folder.path().join("broken"));
        let write = |path: &Path, from: u64, to: u64| {
            let (mut file, damage) = MetricsFile::open(path, from).unwrap();
            assert_eq!(damage, None);
            (from + 1..=to).for_each(|step| file.write(&record(step, step as f64 / 3.0)).unwrap());
            file.sync().unwrap();
        };
        write(&whole, 0, 10);
        write(&broken, 0, 7);
        let mut file = OpenOptions::new().append(true).open(&broken).unwrap();
        file.write_all(b"{\"kind\":\"step\",\"ep").unwrap();
        write(&broken, 4, 10);
        assert_eq!(fs::read(&whole).unwrap(), fs::read(&broken).unwrap());
        assert_eq!(read(&broken).unwrap().len(), 10);
        assert_eq!(read(&broken).unwrap()[2].value("loss"), Some(1.0));
        write(&broken, 0, 0);
        assert!(read(&broken).unwrap().is_empty());
        assert!(read(&folder.path().join("none")).unwrap().is_empty());
    }

    #[test]
    fn a_damaged_line_costs_no_other_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        let (mut file, _) = MetricsFile::open(&path, 0).unwrap();
        (1..=5).for_each(|step| file.write(&record(step, 0.5)).unwrap());
        let mut bytes = fs::read(&path).unwrap();
        let place = bytes.iter().position(|&byte| byte == b':').unwrap();
        bytes[place] ^= 1;
        fs::write(&path, &bytes).unwrap();
        let sentence =
            format!("damaged lines in {}: 1, the first is line 1; they are left out", path.display());
        let (records, said) = read_undamaged(&path).unwrap();
        assert_eq!((records.len(), said.as_deref()), (4, Some(sentence.as_str())));
        assert_eq!(read(&path).unwrap_err().to_string(), sentence);
        let (mut file, damage) = MetricsFile::open(&path, 4).unwrap();
        assert!(damage.unwrap().starts_with(&format!("damaged lines in {}: 1; ", path.display())));
        file.write(&record(5, 0.5)).unwrap();
        let steps: Vec<u64> = read(&path).unwrap().iter().map(|record| record.step).collect();
        assert_eq!(steps, [2, 3, 4, 5]);
        assert_eq!(fs::read(folder.path().join("metrics.jsonl.damaged")).unwrap(), bytes);
    }

    #[test]
    fn curves_are_over_steps_where_epochs_have_different_numbers_of_them() {
        let run = |steps: u64, epochs: u64| -> Vec<Record> {
            let line = |kind, epoch: u64, step: u64| Record { kind, epoch, ..record(step, step as f64) };
            let mut lines = vec![line(Kind::Step, 1, 1)];
            lines.extend((1..=epochs).map(|epoch| line(Kind::Epoch, epoch, epoch * steps)));
            lines
        };
        let (ten, four, begun) = (run(10, 2), run(4, 3), run(4, 0));
        let over = |runs: &[&[Record]]| Over::of(runs.iter().copied());
        assert_eq!(over(&[&ten, &ten, &[]]), Over::Epochs);
        assert_eq!(over(&[&ten, &four]), Over::Steps);
        assert_eq!(over(&[&ten, &begun]), Over::Steps);
        assert_eq!(over(&[]), Over::Epochs);
        assert_eq!(curve(&ten, Over::Epochs, Kind::Epoch, "loss"), [(1.0, 10.0), (2.0, 20.0)]);
        assert_eq!(curve(&ten, Over::Epochs, Kind::Step, "loss"), [(0.1, 1.0)]);
        assert_eq!(curve(&four, Over::Steps, Kind::Epoch, "loss"), [(4.0, 4.0), (8.0, 8.0), (12.0, 12.0)]);
        assert!(curve(&four, Over::Steps, Kind::Epoch, "other").is_empty());
    }

    #[test]
    fn what_is_not_a_number_is_a_word() {
        assert_eq!(number(f64::NAN), Value::String("NaN".to_owned()));
        assert_eq!(number(0.5), serde_json::json!(0.5));
    }
}
