//! Writing what `torch.load` reads: an archive without compression, whose `data.pkl` is a plain dictionary of tensors by
//! name. Only names that `torch.load(weights_only=True)` allows are in it.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use dataset::durable;

use super::{TorchNumbers, TorchTensor};
use crate::error::{Error, Result};

/// Numbers begin at multiples of this, as `torch.save` has them: they can be mapped into memory.
const ALIGNMENT: usize = 64;
/// The archive's folder.
const FOLDER: &str = "weights";

/// Writes `tensors` by name to `path`, at once.
pub fn write(path: &Path, tensors: &BTreeMap<String, TorchTensor>) -> Result<()> {
    let mut archive = Archive::default();
    archive.add("data.pkl", pickled(tensors));
    archive.add("byteorder", b"little".to_vec());
    for (index, tensor) in tensors.values().enumerate() {
        archive.add(&format!("data/{index}"), bytes_of(&tensor.numbers));
    }
    archive.add("version", b"3\n".to_vec());
    let bytes = archive.finish().ok_or_else(|| {
        Error::content(
            path,
            "more than 4 GB of weights do not fit into a file of torch.save; use safetensors",
        )
    })?;
    Ok(durable::write_with(path, |writer| writer.write_all(&bytes))?)
}

fn bytes_of(numbers: &TorchNumbers) -> Vec<u8> {
    match numbers {
        TorchNumbers::F32(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        TorchNumbers::I64(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
    }
}

/// The dictionary: protocol 2, every tensor rebuilt from a storage of its own.
fn pickled(tensors: &BTreeMap<String, TorchTensor>) -> Vec<u8> {
    let mut pickle = Pickle(b"\x80\x02}(".to_vec());
    for (index, (name, tensor)) in tensors.iter().enumerate() {
        let (storage, count) = match &tensor.numbers {
            TorchNumbers::F32(values) => ("FloatStorage", values.len()),
            TorchNumbers::I64(values) => ("LongStorage", values.len()),
        };
        pickle.text(name);
        pickle.code(b"ctorch._utils\n_rebuild_tensor_v2\n((");
        pickle.text("storage");
        pickle.code(format!("ctorch\n{storage}\n").as_bytes());
        pickle.text(&index.to_string());
        pickle.text("cpu");
        pickle.number(count);
        // The tuple is a persistent identifier; the tensor begins at its first number.
        pickle.code(b"tQK\x00");
        pickle.tuple(&tensor.shape);
        pickle.tuple(&strides(&tensor.shape));
        // No gradient, no hooks.
        pickle.code(b"\x89ccollections\nOrderedDict\n)RtR");
    }
    pickle.code(b"u.");
    pickle.0
}

struct Pickle(Vec<u8>);

impl Pickle {
    fn code(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn text(&mut self, text: &str) {
        self.0.push(b'X');
        self.0.extend((text.len() as u32).to_le_bytes());
        self.0.extend(text.as_bytes());
    }

    /// A whole number, in 8 bytes.
    fn number(&mut self, number: usize) {
        self.0.extend([0x8a, 8]);
        self.0.extend((number as u64).to_le_bytes());
    }

    fn tuple(&mut self, numbers: &[usize]) {
        self.0.push(b'(');
        numbers.iter().for_each(|&number| self.number(number));
        self.0.push(b't');
    }
}

/// Row-major strides.
fn strides(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    strides
}

/// A ZIP archive without compression.
#[derive(Default)]
struct Archive {
    bytes: Vec<u8>,
    directory: Vec<u8>,
    files: u16,
}

impl Archive {
    fn add(&mut self, name: &str, data: Vec<u8>) {
        let name = format!("{FOLDER}/{name}");
        let (offset, size) = (self.bytes.len() as u32, (data.len() as u32).to_le_bytes());
        let checksum = crc32fast::hash(&data).to_le_bytes();
        // An extra field moves the data to a multiple of the alignment.
        let begin = self.bytes.len() + 30 + name.len() + 4;
        let padding = begin.next_multiple_of(ALIGNMENT) - begin;
        let field = [b"FB".as_slice(), &(padding as u16).to_le_bytes(), &vec![0; padding]].concat();
        // Version 2.0, no flags, no compression, 1 January 1980: the bytes depend on the weights alone.
        let shared = [
            &[20, 0, 0, 0, 0, 0, 0, 0, 0x21, 0][..],
            &checksum,
            &size,
            &size,
            &(name.len() as u16).to_le_bytes(),
        ]
        .concat();
        let length = (field.len() as u16).to_le_bytes();
        for part in [b"PK\x03\x04".as_slice(), &shared, &length, name.as_bytes(), &field, &data] {
            self.bytes.extend_from_slice(part);
        }
        let rest = [&[0; 12][..], &offset.to_le_bytes(), name.as_bytes()].concat();
        for part in [b"PK\x01\x02\x14\x00".as_slice(), &shared, &rest] {
            self.directory.extend_from_slice(part);
        }
        self.files += 1;
    }

    /// The whole file; `None` where it is larger than 32-bit offsets reach.
    fn finish(mut self) -> Option<Vec<u8>> {
        let offset = u32::try_from(self.bytes.len()).ok()?.to_le_bytes();
        let size = u32::try_from(self.directory.len()).ok()?.to_le_bytes();
        let files = self.files.to_le_bytes();
        for part in [&self.directory[..], b"PK\x05\x06\0\0\0\0", &files, &files, &size, &offset, &[0, 0]] {
            self.bytes.extend_from_slice(part);
        }
        Some(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weights.pth");
        let floats = TorchNumbers::F32((0..24).map(|value| value as f32 * 0.25 - 3.0).collect());
        let tensors = BTreeMap::from([
            ("a.weight".to_owned(), TorchTensor { shape: vec![2, 3, 4], numbers: floats }),
            ("count".to_owned(), TorchTensor { shape: vec![], numbers: TorchNumbers::I64(vec![70_000]) }),
        ]);
        write(&path, &tensors).unwrap();
        assert_eq!(super::super::read(&path).unwrap().tensors, tensors);
        let bytes = std::fs::read(&path).unwrap();
        let wanted = (-3.0_f32).to_le_bytes();
        let place = bytes.windows(4).position(|found| found == wanted).unwrap();
        assert_eq!(place % ALIGNMENT, 0);
    }
}
