//! From an opened network to files: writes, reads again, compares.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use dataset::durable;
use evaluate::weights::{Opened, Weights};
use prost::Message;
use train::checkpoint::{Checkpoint, Numbers, Stored};
use train::torch_file::{self, TorchNumbers, TorchTensor};

use crate::card;
use crate::check::{Expected, LARGEST_DIFFERENCE, LARGEST_DIFFERENCE_OF_HALF};
use crate::error::{Error, Result};
use crate::graph;
use crate::network::{Exported, Output, Part, Tensors};
use crate::onnx::ModelProto;
use crate::python;

/// Protocol buffers end here.
const MOST_BYTES: usize = (1 << 31) - (1 << 20);

/// Formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One `.onnx` file.
    Onnx,
    /// A `.pth` file of weights, and a module that loads it.
    Torch,
    /// One `.safetensors` file of weights.
    Safetensors,
    /// A folder for the Hugging Face hub.
    HuggingFace,
}

/// What to write, and where.
#[derive(Clone, Debug)]
pub struct Request {
    /// The format.
    pub format: Format,
    /// How much of the network.
    pub part: Part,
    /// The file, or the folder.
    pub out: PathBuf,
    /// Weights in 16 bits, in checkpoints: half the size, features that differ a little.
    pub half: bool,
    /// Where to write the images of the check and their features, where that is wanted.
    pub check: Option<PathBuf>,
}

/// What was written.
#[derive(Clone, Debug)]
pub struct Report {
    /// The files.
    pub files: Vec<PathBuf>,
    /// The network in a line.
    pub title: String,
    /// Side of its images.
    pub image_size: usize,
    /// Parameters.
    pub parameters: usize,
    /// Its outputs.
    pub outputs: Vec<Output>,
    /// The largest difference of what was written, as a share of the features' norm.
    pub difference: f64,
}

/// Files that are removed again if the export does not come to its end.
struct Written(Vec<PathBuf>);

impl Drop for Written {
    fn drop(&mut self) {
        for path in &self.0 {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Written {
    /// Notes that `path` is about to be written; what is there already is not touched.
    fn claim(&mut self, path: &Path) -> Result<()> {
        if path.exists() {
            return Err(Error::Request(format!("{} exists already; choose another name", path.display())));
        }
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            durable::create_folder(parent)?;
        }
        self.0.push(path.to_path_buf());
        Ok(())
    }

    fn write(&mut self, path: &Path, bytes: &[u8]) -> Result<()> {
        self.claim(path)?;
        Ok(durable::write(path, bytes).map_err(dataset::Error::from)?)
    }
}

/// Writes `opened`, which `weights` named; fails, and leaves nothing behind, where what was written gives other features.
pub fn export(weights: &Weights, opened: &mut Opened, request: &Request) -> Result<Report> {
    let exported = Exported::new(weights, opened, request.part)?;
    let expected = Expected::compute(&exported, opened)?;
    let mut written = Written(Vec::new());
    let out = &request.out;
    let mut check = request.check.clone();
    let (model, main) = match request.format {
        Format::Onnx => {
            if exported.tensors.bytes() > MOST_BYTES {
                let text = "the weights are larger than the 2 GB of an ONNX file; use --format safetensors";
                return Err(Error::Request(text.to_owned()));
            }
            written.write(out, &graph::model(&exported, &exported.tensors)?.encode_to_vec())?;
            let bytes = std::fs::read(out).map_err(dataset::Error::read(out))?;
            let model = ModelProto::decode(bytes.as_slice())
                .map_err(|error| Error::File { path: out.clone(), message: error.to_string() })?;
            (model, out.clone())
        }
        Format::Safetensors => {
            written.claim(out)?;
            (write_checkpoint(&exported, weights, out, request.half)?, out.clone())
        }
        Format::Torch => {
            let module = module_path(out);
            let beside = check.get_or_insert_with(|| out.with_extension("check.safetensors"));
            let text = python::module(&exported, &file_name(out), &file_name(beside));
            written.write(&module, text.as_bytes())?;
            written.claim(out)?;
            (write_torch(&exported, out)?, out.clone())
        }
        Format::HuggingFace => {
            let main = out.join("model.safetensors");
            written.claim(&main)?;
            let model = write_checkpoint(&exported, weights, &main, false)?;
            check.get_or_insert_with(|| out.join("check.safetensors"));
            (model, main)
        }
    };
    let difference = expected.difference(&model, &main)?;
    let most = if request.half { LARGEST_DIFFERENCE_OF_HALF } else { LARGEST_DIFFERENCE };
    if difference.is_nan() || difference > most {
        return Err(Error::File {
            path: main,
            message: format!(
                "gives other features: the largest difference is {difference:.1e} of their norm; it is removed"
            ),
        });
    }
    if request.format == Format::HuggingFace {
        let text = python::module(&exported, "model.safetensors", "check.safetensors");
        written.write(&out.join("model.py"), text.as_bytes())?;
        written.write(&out.join("config.json"), &dataset::card::json(&card::config(&exported)))?;
        written.write(&out.join("README.md"), card::readme(&exported, weights, difference).as_bytes())?;
    }
    if let Some(check) = &check {
        written.claim(check)?;
        expected.write(check)?;
    }
    Ok(Report {
        files: std::mem::take(&mut written.0),
        title: exported.title(),
        image_size: exported.image_size,
        parameters: exported.parameters(),
        outputs: exported.outputs(),
        difference,
    })
}

fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// The module beside a `.pth` file; Python must be able to import it.
fn module_path(out: &Path) -> PathBuf {
    let stem = out.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let letter = |letter: char| if letter.is_alphanumeric() { letter } else { '_' };
    let mut name: String = stem.chars().map(letter).collect();
    if name.starts_with(|first: char| first.is_ascii_digit())
        || ["torch", "json", "sys"].contains(&name.as_str())
    {
        name.insert(0, '_');
    }
    out.with_file_name(format!("{name}.py"))
}

/// Writes the weights as a checkpoint without optimiser, and makes a graph of what is read again.
fn write_checkpoint(exported: &Exported, weights: &Weights, path: &Path, half: bool) -> Result<ModelProto> {
    let checkpoint = Checkpoint {
        tensors: exported.tensors.0.clone().into_iter().chain(exported.others.0.clone()).collect(),
        ..Checkpoint::of_weights(&weights.config, exported.epochs.unwrap_or(0))?
    };
    let checkpoint = if half { checkpoint.in_16_bits() } else { checkpoint };
    checkpoint.write_to(path)?;
    graph::model(exported, &Tensors(Checkpoint::read(path)?.tensors))
}

/// Writes the weights as `torch.save` does, and makes a graph of what is read again.
fn write_torch(exported: &Exported, path: &Path) -> Result<ModelProto> {
    let mut tensors = BTreeMap::new();
    for (name, Stored { shape, numbers }) in &exported.tensors.0 {
        let numbers = match numbers {
            Numbers::F32(values) => TorchNumbers::F32(values.clone()),
            Numbers::I64(values) => TorchNumbers::I64(values.clone()),
            Numbers::F64(_) | Numbers::F16(_) => {
                return Err(Error::Network(format!("{name} holds neither float32 nor integers")));
            }
        };
        tensors.insert(name.clone(), TorchTensor { shape: shape.clone(), numbers });
    }
    torch_file::write(path, &tensors)?;
    let read = torch_file::read(path)?.tensors.into_iter().map(|(name, TorchTensor { shape, numbers })| {
        let numbers = match numbers {
            TorchNumbers::F32(values) => Numbers::F32(values),
            TorchNumbers::I64(values) => Numbers::I64(values),
        };
        (name, Stored { shape, numbers })
    });
    graph::model(exported, &Tensors(read.collect()))
}
