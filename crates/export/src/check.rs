//! Whether what was written gives the same features as the network that it is from.

use std::collections::BTreeMap;
use std::path::Path;

use dataset::durable;
use engine::ops::Images;
use evaluate::weights::Opened;
use methods::{MEAN, STD};
use safetensors::tensor::{Dtype, TensorView};

use crate::error::{Error, Result};
use crate::graph::INPUT;
use crate::images::{self, COUNT};
use crate::network::Exported;
use crate::onnx::ModelProto;
use crate::run::{self, Array};

/// A larger difference, as a share of the features' norm, is a failure.
pub const LARGEST_DIFFERENCE: f64 = 1e-4;
/// The same of weights in 16 bits.
pub const LARGEST_DIFFERENCE_OF_HALF: f64 = 1e-2;

/// Images, and what the engine gives for them by the names of outputs.
pub(crate) struct Expected {
    pixels: Vec<u8>,
    side: usize,
    outputs: BTreeMap<String, Array>,
}

impl Expected {
    /// Computed by the engine.
    pub(crate) fn compute(exported: &Exported, opened: &mut Opened) -> Result<Self> {
        let side = exported.image_size;
        let pixels = images::rendered(side)?;
        let network = opened.encoder.network();
        let batch =
            Images::from_bytes(&network.store.device().clone(), [COUNT, side, side], &pixels, MEAN, STD)?;
        let mut computed = BTreeMap::new();
        if exported.projectors.is_empty() {
            computed.insert("representation", network.features(&batch)?);
        } else {
            let embedding = network.embed(&batch)?;
            computed.insert("representation", embedding.representation.value().to_f32()?);
            for (name, value) in &embedding.parts {
                computed.insert(name.name(), value.value().to_f32()?);
            }
        }
        let mut outputs = BTreeMap::new();
        for output in exported.outputs() {
            let values = computed.remove(output.name.as_str()).unwrap_or_default();
            let shape = [&[COUNT], output.shape.as_slice()].concat();
            let array = Array::new(shape, values)
                .ok_or_else(|| Error::Network(format!("{} has another shape", output.name)))?;
            outputs.insert(output.name, array);
        }
        Ok(Self { pixels: images::planes(&pixels, side), side, outputs })
    }

    /// The largest difference of what `model` gives, as a share of the features' norm; `path` is the file it is from.
    pub(crate) fn difference(&self, model: &ModelProto, path: &Path) -> Result<f64> {
        let failed = |message: String| Error::File { path: path.to_path_buf(), message };
        let graph = model.graph.as_ref().ok_or_else(|| failed("holds no graph".to_owned()))?;
        let values = self.pixels.iter().map(|&level| f32::from(level) / 255.0).collect();
        let input = Array { shape: vec![COUNT, 3, self.side, self.side], values };
        let found = run::run(graph, INPUT, input).map_err(failed)?;
        let mut largest = 0.0_f64;
        for (name, expected) in &self.outputs {
            let found = found.get(name).filter(|found| found.shape == expected.shape);
            let found = found.ok_or_else(|| failed(format!("its output {name} has another shape")))?;
            largest = largest.max(relative(&found.values, &expected.values));
        }
        Ok(largest)
    }

    /// Writes images and outputs as safetensors: `images` (8, 3, side, side) uint8, and every output by its name.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let failed = |error: safetensors::SafeTensorError| Error::File {
            path: path.to_path_buf(),
            message: error.to_string(),
        };
        let shape = vec![COUNT, 3, self.side, self.side];
        let mut views =
            vec![(INPUT.to_owned(), TensorView::new(Dtype::U8, shape, &self.pixels).map_err(failed)?)];
        let bytes: Vec<Vec<u8>> = self
            .outputs
            .values()
            .map(|array| array.values.iter().flat_map(|value| value.to_le_bytes()).collect())
            .collect();
        for ((name, array), data) in self.outputs.iter().zip(&bytes) {
            let view = TensorView::new(Dtype::F32, array.shape.clone(), data).map_err(failed)?;
            views.push((name.clone(), view));
        }
        let bytes = safetensors::serialize(views, None).map_err(failed)?;
        Ok(durable::write(path, &bytes).map_err(dataset::Error::from)?)
    }
}

/// The largest length of a row's difference, as a share of the row's length.
fn relative(found: &[f32], expected: &[f32]) -> f64 {
    let width = (expected.len() / COUNT).max(1);
    let norm = |row: &mut dyn Iterator<Item = f64>| row.map(|value| value * value).sum::<f64>().sqrt();
    let rows = found.chunks_exact(width).zip(expected.chunks_exact(width));
    let shares = rows.map(|(found, expected)| {
        let mut differences = found.iter().zip(expected).map(|(a, b)| f64::from(*a) - f64::from(*b));
        let length = norm(&mut expected.iter().map(|value| f64::from(*value)));
        norm(&mut differences) / length.max(1e-12)
    });
    // A number that is none counts as the largest.
    shares.fold(0.0, |largest, share| if share > largest || share.is_nan() { share } else { largest })
}
