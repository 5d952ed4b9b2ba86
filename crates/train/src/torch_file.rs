//! Files written by `torch.save` (`.pth`, `.pt`): the tensors of a network by name. The archive is read, nothing in it
//! is executed: of the pickled objects only plain containers, numbers, texts and tensors are understood, and what else
//! there is (optimisers, arguments) is passed over.

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::{Error, Result as RunResult};
use archive::Archive;
use pickle::{Dtype, Tensor, Value};

mod archive;
mod pickle;
mod writer;

pub use writer::write;

/// Numbers of all tensors of a file, where it has fewer bytes: views of the same numbers may be stored more than once.
const MOST_NUMBERS: usize = 1 << 20;
/// Dimensions of a tensor.
const MOST_DIMENSIONS: usize = 8;

/// Numbers of a tensor.
#[derive(Clone, Debug, PartialEq)]
pub enum TorchNumbers {
    /// Any floating-point type, as float32.
    F32(Vec<f32>),
    /// 64-bit integers.
    I64(Vec<i64>),
}

/// A tensor of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct TorchTensor {
    /// The shape.
    pub shape: Vec<usize>,
    /// The numbers, row-major.
    pub numbers: TorchNumbers,
}

/// What a file holds of a network.
#[derive(Clone, Debug, Default)]
pub struct TorchFile {
    /// Epochs of training, where the file says it.
    pub epochs: Option<u64>,
    /// Tensors by published name, without the leading `module.` of data-parallel training.
    pub tensors: BTreeMap<String, TorchTensor>,
}

/// Reads `path`: a map of tensors by name, or a map with such a map under `model` (or `state_dict`).
pub fn read(path: &Path) -> RunResult<TorchFile> {
    let bytes = std::fs::read(path).map_err(Error::read(path))?;
    of_bytes(&bytes).map_err(|detail| Error::content(path, detail))
}

fn of_bytes(bytes: &[u8]) -> Result<TorchFile, String> {
    let archive = Archive::open(bytes)?;
    let pickled = archive.file("data.pkl").ok_or("the archive holds no data.pkl")?;
    let pickled = pickle::load(pickled)?;
    let entries = pickled.entries(&pickled.root).ok_or("expected a map of tensors by name")?;
    let found = |wanted: &str| {
        let entry = entries.iter().find(|(key, _)| matches!(key, Value::Text(key) if &**key == wanted));
        entry.map(|(_, value)| value)
    };
    let epochs = match found("epoch") {
        Some(Value::Int(epoch)) => u64::try_from(*epoch).ok(),
        _ => None,
    };
    let inner = found("model").or_else(|| found("state_dict")).and_then(|value| pickled.entries(value));
    let tensors = named(inner.unwrap_or(entries), &archive)?;
    if tensors.is_empty() {
        return Err("there are no named tensors in it, nor a map of them under \"model\"".to_owned());
    }
    Ok(TorchFile { epochs, tensors })
}

fn named(entries: &[(Value, Value)], archive: &Archive<'_>) -> Result<BTreeMap<String, TorchTensor>, String> {
    let mut tensors = BTreeMap::new();
    let mut left = MOST_NUMBERS.max(archive.size());
    for (key, value) in entries {
        // A tensor without numbers says nothing, but its other dimensions could be anything.
        if let (Value::Text(name), Value::Tensor(tensor)) = (key, value)
            && !tensor.shape.contains(&0)
        {
            let plain = name.replace("_checkpoint_wrapped_module.", "");
            let plain = plain.strip_prefix("module.").unwrap_or(&plain).to_owned();
            let numbers = numbers_of(tensor, archive, &mut left)
                .map_err(|detail| format!("tensor {name}: {detail}"))?;
            tensors.insert(plain, TorchTensor { shape: tensor.shape.clone(), numbers });
        }
    }
    Ok(tensors)
}

/// The numbers of a tensor, row-major, whatever its strides; their count is subtracted from `left`.
fn numbers_of(tensor: &Tensor, archive: &Archive<'_>, left: &mut usize) -> Result<TorchNumbers, String> {
    let storage = archive
        .file(&format!("data/{}", tensor.storage.key))
        .ok_or_else(|| format!("its numbers (data/{}) are missing", tensor.storage.key))?;
    let size = tensor.storage.dtype.size();
    let places = places(tensor, storage.len() / size, *left).ok_or("it reaches beyond its stored numbers")?;
    *left -= places.len();
    let words = places.map(|place| &storage[place * size..][..size]);
    fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
        let mut array = [0; N];
        array.copy_from_slice(bytes);
        array
    }
    fn floats<'a>(words: impl Iterator<Item = &'a [u8]>, value: impl Fn(&[u8]) -> f32) -> TorchNumbers {
        TorchNumbers::F32(words.map(value).collect())
    }
    Ok(match tensor.storage.dtype {
        Dtype::F32 => floats(words, |bytes| f32::from_le_bytes(array(bytes))),
        #[expect(clippy::cast_possible_truncation, reason = "weights are float32 here")]
        Dtype::F64 => floats(words, |bytes| f64::from_le_bytes(array(bytes)) as f32),
        Dtype::F16 => floats(words, |bytes| half(u16::from_le_bytes(array(bytes)))),
        Dtype::Bf16 => {
            floats(words, |bytes| f32::from_bits(u32::from(u16::from_le_bytes(array(bytes))) << 16))
        }
        Dtype::I64 => TorchNumbers::I64(words.map(|bytes| i64::from_le_bytes(array(bytes))).collect()),
    })
}

/// Positions in the storage of a tensor's numbers in row-major order; `None` where one is outside, or there are more
/// than `most`.
fn places(tensor: &Tensor, stored: usize, most: usize) -> Option<impl ExactSizeIterator<Item = usize> + '_> {
    let count = tensor.shape.iter().try_fold(1usize, |count, &side| count.checked_mul(side))?;
    if count == 0 {
        return None;
    }
    let reach =
        tensor.shape.iter().zip(&tensor.stride).try_fold(tensor.offset, |last, (&side, &stride)| {
            last.checked_add((side - 1).checked_mul(stride)?)
        })?;
    // Strides of 0 repeat numbers: few bytes may be many numbers, but not without end.
    let rank = tensor.shape.len();
    if reach >= stored || rank != tensor.stride.len() || rank > MOST_DIMENSIONS || count > most {
        return None;
    }
    let place = move |mut index: usize| {
        let sides = tensor.shape.iter().zip(&tensor.stride).rev();
        sides.fold(tensor.offset, |place, (&side, &stride)| {
            let step = index % side * stride;
            index /= side;
            place + step
        })
    };
    Some((0..count).map(place))
}

/// An IEEE half as float32.
fn half(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let (exponent, fraction) = (u32::from(bits >> 10) & 31, u32::from(bits & 0x3ff));
    match exponent {
        // Halves below 2^-14 are multiples of 2^-24.
        0 => f32::from_bits(sign | (fraction as f32 * f32::from_bits(103 << 23)).to_bits()),
        31 => f32::from_bits(sign | 0x7f80_0000 | fraction << 13),
        _ => f32::from_bits(sign | (exponent + 112) << 23 | fraction << 13),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made with PyTorch 2.11 by `torch_save.py` beside it.
    const FILE: &[u8] = include_bytes!("../tests/data/torch_save.pth");

    #[test]
    fn a_file_of_torch_save_is_read_with_its_types_and_strides() {
        let file = of_bytes(FILE).unwrap();
        assert_eq!(file.epochs, Some(7));
        let shape = |name: &str| file.tensors[name].shape.clone();
        let values = |name: &str| match &file.tensors[name].numbers {
            TorchNumbers::F32(values) => values.clone(),
            TorchNumbers::I64(values) => values.iter().map(|&value| value as f32).collect(),
        };
        let counted: Vec<f32> = (0..6).map(|value| value as f32 / 4.0).collect();
        for name in ["plain", "double", "half", "brain", "parameter", "wrapped.inner"] {
            assert_eq!((shape(name), values(name)), (vec![2, 3], counted.clone()), "{name}");
        }
        assert_eq!(
            (shape("transposed"), values("transposed")),
            (vec![3, 2], vec![0.0, 0.75, 0.25, 1.0, 0.5, 1.25])
        );
        assert_eq!((shape("second_row"), values("second_row")), (vec![3], vec![0.75, 1.0, 1.25]));
        assert_eq!(
            file.tensors["count"],
            TorchTensor { shape: vec![], numbers: TorchNumbers::I64(vec![-5]) }
        );
        assert_eq!(values("small_halves"), [6.103_515_6e-5, 5.960_464_5e-8, -2.0, 65504.0]);
        assert_eq!(file.tensors.len(), 10);
    }

    #[test]
    fn strides_that_repeat_numbers_have_an_end() {
        let storage = pickle::Storage { dtype: Dtype::F32, key: "0".into() };
        let repeated = Tensor { storage, offset: 1, shape: vec![3, 2], stride: vec![0, 1] };
        let places = |tensor: &Tensor, stored, most| places(tensor, stored, most).map(Vec::from_iter);
        assert_eq!(places(&repeated, 3, 6), Some(vec![1, 2, 1, 2, 1, 2]));
        assert_eq!(places(&repeated, 2, 6), None);
        assert_eq!(places(&repeated, 3, 5), None);
        let huge = Tensor { shape: vec![usize::MAX, usize::MAX], ..repeated.clone() };
        assert_eq!(places(&huge, 3, usize::MAX), None);
        let deep = Tensor { shape: vec![1; 9], stride: vec![0; 9], ..repeated };
        assert_eq!(places(&deep, 3, 6), None);
    }

    #[test]
    fn nesting_without_end_is_passed_over() {
        // A million tuples, each in the next, and a million maps, each the only value of the next.
        let tuples = [b"\x80\x02)".as_slice(), &b"\x85".repeat(1 << 20), b"."].concat();
        assert!(matches!(pickle::load(&tuples).unwrap().root, Value::Tuple(_)));
        let maps = [b"\x80\x02}".as_slice(), &b"q\x00}K\x01h\x00s".repeat(1 << 20), b"."].concat();
        assert_eq!(pickle::load(&maps).unwrap().maps.len(), (1 << 20) + 1);
    }

    #[test]
    fn a_damaged_file_is_refused_and_never_panics() {
        for length in (0..FILE.len()).step_by(7) {
            assert!(of_bytes(&FILE[..length]).is_err(), "cut at {length}");
        }
        for place in 0..FILE.len() {
            let mut damaged = FILE.to_vec();
            damaged[place] ^= 0xff;
            let _ = of_bytes(&damaged);
        }
        let text = of_bytes(b"not an archive").unwrap_err();
        assert!(text.contains("torch.save"), "{text}");
    }
}
