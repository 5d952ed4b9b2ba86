//! Checkpoints: one safetensors file with everything a run needs to go on. `epoch_00003.safetensors` holds the state
//! at the end of epoch 3 or, until that is reached, at a step inside it (after an interruption); the metadata say
//! which. The bytes are a function of the state alone: no time, no host, a fixed order.
//!
//! Metadata: `format`, `epoch` (complete ones), `step`, `step_in_epoch`, `seed`, `config_hash`, `config` (the settings
//! the weights depend on, as TOML), `split` (`views` where views were held out, missing for objects), and `checksum`: CRC-32 of the whole file with the checksum's own eight digits 0.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use dataset::error::FileError;
use dataset::{SplitBy, durable};
use serde_json::{Map, Value, json};

use crate::config::Config;
use crate::error::{Error, Result};

/// The ending of checkpoints.
const ENDING: &str = "safetensors";
const FORMAT: &str = "equicaps-checkpoint-1";
const NO_CHECKSUM: &str = "\"checksum\":\"00000000\"";

/// Where a run stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Position {
    /// Complete epochs.
    pub epoch: u64,
    /// Steps done in all.
    pub step: u64,
    /// Steps done in the epoch under way; 0 between epochs.
    pub step_in_epoch: u64,
}

impl Position {
    /// The number in the name of a checkpoint at this position: the epoch it belongs to.
    pub(crate) fn file_epoch(&self) -> u64 {
        if self.step_in_epoch == 0 { self.epoch } else { self.epoch + 1 }
    }

    /// `the end of epoch 3`, or `step 7 of epoch 4`.
    pub fn describe(&self) -> String {
        if self.step == 0 {
            "the beginning".to_owned()
        } else if self.step_in_epoch == 0 {
            format!("the end of epoch {}", self.epoch)
        } else {
            format!("step {} of epoch {}", self.step_in_epoch, self.epoch + 1)
        }
    }
}

/// Numbers of a tensor in a checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub enum Numbers {
    /// float32.
    F32(Vec<f32>),
    /// float16, to be written only: what is read comes as float32.
    F16(Vec<half::f16>),
    /// float64.
    F64(Vec<f64>),
    /// 64-bit integers.
    I64(Vec<i64>),
}

impl Numbers {
    fn dtype(&self) -> &'static str {
        match self {
            Self::F32(_) => "F32",
            Self::F16(_) => "F16",
            Self::F64(_) => "F64",
            Self::I64(_) => "I64",
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::F16(_) => 2,
            Self::F32(_) => 4,
            Self::F64(_) | Self::I64(_) => 8,
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::F16(values) => values.len(),
            Self::F64(values) => values.len(),
            Self::I64(values) => values.len(),
        }
    }

    fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::F32(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            Self::F16(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            Self::F64(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            Self::I64(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        }
    }

    fn from_bytes(dtype: &str, bytes: &[u8]) -> Option<Self> {
        fn words<const N: usize, T>(bytes: &[u8], word: impl Fn([u8; N]) -> T) -> Vec<T> {
            bytes.as_chunks::<N>().0.iter().map(|chunk| word(*chunk)).collect()
        }
        match dtype {
            "F32" => Some(Self::F32(words(bytes, f32::from_le_bytes))),
            "F16" => Some(Self::F32(words(bytes, |word| half::f16::from_le_bytes(word).to_f32()))),
            "F64" => Some(Self::F64(words(bytes, f64::from_le_bytes))),
            "I64" => Some(Self::I64(words(bytes, i64::from_le_bytes))),
            _ => None,
        }
    }
}

/// A tensor in a checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// The shape.
    pub shape: Vec<usize>,
    /// The numbers, row-major.
    pub numbers: Numbers,
}

/// A state of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checkpoint {
    /// Where the run stood.
    pub position: Position,
    /// Further metadata.
    pub metadata: BTreeMap<String, String>,
    /// Tensors by name.
    pub tensors: BTreeMap<String, Stored>,
}

/// The path of the checkpoint of `position` in `folder`.
pub(crate) fn path_of(folder: &Path, position: Position) -> PathBuf {
    folder.join(format!("epoch_{:05}.{ENDING}", position.file_epoch()))
}

/// The checkpoints in `folder`, oldest first, with the epochs in their names.
pub fn list(folder: &Path) -> Result<Vec<(u64, PathBuf)>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::read(folder)(error)),
    };
    let mut found: Vec<(u64, PathBuf)> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let epoch = name.strip_prefix("epoch_")?.strip_suffix(ENDING)?.strip_suffix('.')?.parse().ok()?;
            Some((epoch, entry.path()))
        })
        .collect();
    found.sort();
    Ok(found)
}

/// The metadata that say what was held out, where that is not objects.
pub(crate) const SPLIT: &str = "split";

impl Checkpoint {
    /// Weights that are no state of a run, still without tensors: what `config` they have, after `epoch` epochs.
    pub fn of_weights(config: &Config, epoch: u64) -> Result<Self> {
        let metadata = [
            ("seed", config.seed.to_string()),
            ("config_hash", config.identity()?),
            ("config", config.identity_toml()?),
        ];
        let metadata = metadata.map(|(key, value)| (key.to_owned(), value)).into();
        Ok(Self { position: Position { epoch, ..Position::default() }, metadata, tensors: BTreeMap::new() })
    }

    /// What was held out of the data that it was trained on.
    pub fn split(&self) -> SplitBy {
        match self.metadata.get(SPLIT) {
            Some(name) if name == SplitBy::Views.name() => SplitBy::Views,
            _ => SplitBy::Objects,
        }
    }

    /// The same with float32 as float16, where every number of a tensor fits: half the size, for weights that are only used.
    pub fn in_16_bits(mut self) -> Self {
        for Stored { numbers, .. } in self.tensors.values_mut() {
            let Numbers::F32(values) = numbers else { continue };
            let narrow: Vec<half::f16> = values.iter().map(|&value| half::f16::from_f32(value)).collect();
            if narrow.iter().all(|value| value.is_finite()) {
                *numbers = Numbers::F16(narrow);
            }
        }
        self
    }

    /// Writes the checkpoint to its place in `folder`, at once.
    pub fn write(&self, folder: &Path) -> Result<PathBuf> {
        let path = path_of(folder, self.position);
        self.write_to(&path)?;
        Ok(path)
    }

    /// Writes the checkpoint to `path`, at once.
    pub fn write_to(&self, path: &Path) -> Result<()> {
        let mut order: Vec<(&String, &Stored)> = self.tensors.iter().collect();
        // Wide elements first keeps everything aligned.
        order.sort_by_key(|(name, stored)| (std::cmp::Reverse(stored.numbers.size()), *name));
        let header = self.header(&order);
        let length = (header.len() as u64).to_le_bytes();
        let mut checksum = crc32fast::Hasher::new();
        checksum.update(&length);
        checksum.update(header.as_bytes());
        let data: Vec<Vec<u8>> = order.iter().map(|(_, stored)| stored.numbers.to_bytes()).collect();
        data.iter().for_each(|bytes| checksum.update(bytes));
        let header =
            header.replacen(NO_CHECKSUM, &format!("\"checksum\":\"{:08x}\"", checksum.finalize()), 1);
        Ok(durable::write_with(path, |writer| {
            writer.write_all(&length)?;
            writer.write_all(header.as_bytes())?;
            data.iter().try_for_each(|bytes| writer.write_all(bytes))
        })?)
    }

    /// The JSON header with a checksum of zeros, padded to a multiple of eight bytes.
    fn header(&self, order: &[(&String, &Stored)]) -> String {
        let mut metadata: BTreeMap<&str, String> =
            self.metadata.iter().map(|(key, value)| (key.as_str(), value.clone())).collect();
        metadata.insert("format", FORMAT.to_owned());
        metadata.insert("epoch", self.position.epoch.to_string());
        metadata.insert("step", self.position.step.to_string());
        metadata.insert("step_in_epoch", self.position.step_in_epoch.to_string());
        metadata.remove("checksum");
        // The checksum comes first, so that it is found whatever the other values say.
        let mut fields = vec![NO_CHECKSUM.to_owned()];
        fields.extend(metadata.iter().map(|(key, value)| format!("{}:{}", json!(key), json!(value))));
        let mut parts = vec![format!("\"__metadata__\":{{{}}}", fields.join(","))];
        let mut offset = 0;
        for (name, stored) in order {
            let end = offset + stored.numbers.len() * stored.numbers.size();
            let shape = stored.shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
            parts.push(format!(
                "{}:{{\"dtype\":\"{}\",\"shape\":[{shape}],\"data_offsets\":[{offset},{end}]}}",
                json!(name),
                stored.numbers.dtype()
            ));
            offset = end;
        }
        let mut header = format!("{{{}}}", parts.join(","));
        header.extend(std::iter::repeat_n(' ', header.len().next_multiple_of(8) - header.len()));
        header
    }

    /// Reads `path` and makes sure that it is whole.
    pub fn read(path: &Path) -> Result<Self> {
        Self::parse(path, &fs::read(path).map_err(Error::read(path))?)
    }

    /// The checkpoint that the bytes of `path` are; makes sure that it is whole.
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Self> {
        refuse_others(path, bytes)?;
        let damaged = |what: &str| Error::content(path, format!("the checkpoint is damaged: {what}"));
        let (header, data) = split(bytes).ok_or_else(|| damaged("it ends too early"))?;
        let (mut checkpoint, mut entries) = parse_header(path, header)?;
        let stored_sum = checkpoint.metadata.remove("checksum").unwrap_or_default();
        let text = std::str::from_utf8(header).map_err(|_| damaged("its header is not text"))?;
        let zeroed = text.replacen(&format!("\"checksum\":\"{stored_sum}\""), NO_CHECKSUM, 1);
        let mut checksum = crc32fast::Hasher::new();
        checksum.update(&bytes[..8]);
        checksum.update(zeroed.as_bytes());
        checksum.update(data);
        if format!("{:08x}", checksum.finalize()) != stored_sum {
            return Err(damaged("its checksum does not fit its contents"));
        }
        for (name, entry) in std::mem::take(&mut entries) {
            let stored =
                parse_tensor(&entry, data).ok_or_else(|| damaged(&format!("tensor {name} is malformed")))?;
            checkpoint.tensors.insert(name, stored);
        }
        Ok(checkpoint)
    }

    /// Reads only the metadata of `path`, without checking the rest.
    pub fn read_metadata(path: &Path) -> Result<Self> {
        let mut file = fs::File::open(path).map_err(Error::read(path))?;
        let mut first = Vec::new();
        (&file).take(9).read_to_end(&mut first).map_err(Error::read(path))?;
        refuse_others(path, &first)?;
        let length = first.first_chunk().map_or(u64::MAX, |length| u64::from_le_bytes(*length));
        let total = file.metadata().map_err(Error::read(path))?.len();
        if length > total {
            return Err(Error::content(path, "the checkpoint is damaged: it ends too early"));
        }
        let mut header = vec![0; length as usize];
        file.seek(SeekFrom::Start(8))
            .and_then(|_| file.read_exact(&mut header))
            .map_err(Error::read(path))?;
        parse_header(path, &header).map(|(checkpoint, _)| checkpoint)
    }

    /// The first tensor that holds something else than finite numbers, if one does. Online probes do not count: nothing
    /// depends on them.
    pub(crate) fn not_a_number(&self) -> Option<&str> {
        let is_finite = |stored: &Stored| match &stored.numbers {
            Numbers::F32(values) => values.iter().all(|value| value.is_finite()),
            Numbers::F16(values) => values.iter().all(|value| value.is_finite()),
            Numbers::F64(values) => values.iter().all(|value| value.is_finite()),
            Numbers::I64(_) => true,
        };
        let counts = |name: &str| !name.split('.').any(|part| part == "evaluator");
        let mut tensors = self.tensors.iter().filter(|(name, _)| counts(name));
        tensors.find(|(_, stored)| !is_finite(stored)).map(|(name, _)| name.as_str())
    }

    /// Adds a tensor.
    pub fn insert(&mut self, name: impl Into<String>, shape: &[usize], numbers: Numbers) {
        self.tensors.insert(name.into(), Stored { shape: shape.to_vec(), numbers });
    }
}

/// Refuses files that are something else, by their first nine bytes; says what to do with one of `torch.save`, an archive.
fn refuse_others(path: &Path, first: &[u8]) -> Result<()> {
    if first.starts_with(b"PK\x03\x04") {
        let path_text = path.display();
        let text = format!(
            "this is a file of torch.save; make a checkpoint of it with: equicaps import {path_text} --out NAME.safetensors"
        );
        return Err(Error::content(path, text));
    }
    // Behind the length of the header stands the header.
    match first.get(8) {
        None | Some(b'{') => Ok(()),
        Some(_) => {
            let text = "this is not a checkpoint; expected a run's folder or a .safetensors file";
            Err(Error::content(path, text))
        }
    }
}

fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?);
    let end = usize::try_from(length).ok()?.checked_add(8)?;
    Some((bytes.get(8..end)?, &bytes[end..]))
}

fn parse_header(path: &Path, header: &[u8]) -> Result<(Checkpoint, Map<String, Value>)> {
    let mut entries: Map<String, Value> = serde_json::from_slice(header)
        .map_err(|_| Error::content(path, "the checkpoint is damaged: its header is not JSON"))?;
    let metadata: BTreeMap<String, String> = entries
        .remove("__metadata__")
        .and_then(|value| serde_json::from_value(value).ok())
        .unwrap_or_default();
    if metadata.get("format").map(String::as_str) != Some(FORMAT) {
        return Err(Error::content(path, "this is not a checkpoint of a run (no such metadata in it)"));
    }
    let count = |key: &str| {
        metadata
            .get(key)
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| Error::content(path, format!("the checkpoint does not say its {key}")))
    };
    let position =
        Position { epoch: count("epoch")?, step: count("step")?, step_in_epoch: count("step_in_epoch")? };
    Ok((Checkpoint { position, metadata, tensors: BTreeMap::new() }, entries))
}

fn parse_tensor(entry: &Value, data: &[u8]) -> Option<Stored> {
    let offset = |index: usize| usize::try_from(entry.get("data_offsets")?.get(index)?.as_u64()?).ok();
    let bytes = data.get(offset(0)?..offset(1)?)?;
    let shape: Vec<usize> = serde_json::from_value(entry.get("shape")?.clone()).ok()?;
    let numbers = Numbers::from_bytes(entry.get("dtype")?.as_str()?, bytes)?;
    let count = shape.iter().try_fold(1_usize, |count, &side| count.checked_mul(side))?;
    (count == numbers.len()).then_some(Stored { shape, numbers })
}

/// The newest checkpoint in `folder` that is whole, if any. Damaged newer ones are set aside (their names get
/// `.damaged` added), and what was found wrong is passed to `warn`.
pub fn newest(folder: &Path, mut warn: impl FnMut(String)) -> Result<Option<(PathBuf, Checkpoint)>> {
    let all = list(folder)?;
    for (place, (_, path)) in all.iter().enumerate().rev() {
        match Checkpoint::read(path) {
            Ok(checkpoint) => return Ok(Some((path.clone(), checkpoint))),
            Err(error @ Error::File(FileError::Content { .. })) => {
                let aside = path.with_extension(format!("{ENDING}.damaged"));
                fs::rename(path, &aside).map_err(Error::write(&aside))?;
                let instead = match place {
                    0 => "there is none before it: the run begins again at its first step",
                    _ => "the one before it is used",
                };
                warn(format!("{error}; it is set aside, and {instead}"));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Removes the checkpoints that need not stay: all but the `keep` newest and the milestones. One that an interruption left
/// within an epoch serves only to go on from: it goes once there is a newer one, and takes no other's place.
pub fn rotate(folder: &Path, keep: usize, is_milestone: impl Fn(u64) -> bool) -> Result<()> {
    let mut ends = list(folder)?;
    let newest = ends.pop();
    // A file that cannot be read is complained about where it is used.
    let is_within =
        |path: &Path| Checkpoint::read_metadata(path).is_ok_and(|found| found.position.step_in_epoch > 0);
    let (left, mut old): (Vec<_>, Vec<_>) = ends.into_iter().partition(|(_, path)| is_within(path));
    old.truncate((old.len() + usize::from(newest.is_some())).saturating_sub(keep.max(1)));
    old.retain(|(epoch, _)| !is_milestone(*epoch));
    for (_, path) in left.iter().chain(&old) {
        fs::remove_file(path).map_err(Error::write(path))?;
    }
    Ok(())
}
