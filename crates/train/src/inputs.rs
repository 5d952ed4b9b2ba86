//! A batch on its way to the device: 8-bit pixels and all targets in one upload, which runs beside the step before it.

use dataset::cuda::PairImages;
use engine::ops::Images;
use engine::{DType, Device, Feed, Part, Tensor};
use methods::{PairTargets, TargetValues, Transform};

use crate::batches::PairBatch;
use crate::error::Result;
use crate::network::{MEAN, STD};
use crate::probes::{TargetTensors, Targets};

/// A batch on the device.
#[derive(Debug)]
pub struct Inputs {
    /// What the method sees.
    pub pairs: methods::PairBatch,
    /// What the probes are to find, where there are any.
    pub probes: Option<TargetTensors>,
}

impl Inputs {
    /// All tensors, in a fixed order.
    pub fn tensors(&self) -> Vec<&Tensor> {
        let PairTargets { matrices, parameters, translations, hues, labels } = &self.pairs.targets;
        let targets = [matrices, parameters, translations, hues, labels].into_iter().flatten();
        let probes =
            self.probes.iter().flat_map(|probes| [Some(&probes.rotation), probes.translation.as_ref()]);
        let views = self.pairs.views.iter().map(|images| &images.pixels);
        views.chain(targets).chain(probes.flatten()).collect()
    }

    /// A copy that stays where it is.
    pub fn copy(&self, device: &Device) -> Result<Self> {
        let copy = |tensor: &Tensor| -> Result<Tensor> {
            let mut copy = Tensor::empty(device, tensor.shape(), tensor.dtype())?;
            copy.copy_from(tensor)?;
            Ok(copy)
        };
        let maybe = |tensor: &Option<Tensor>| tensor.as_ref().map(copy).transpose();
        let [first, second] = &self.pairs.views;
        let images = |images: &Images| -> Result<Images> {
            Ok(Images { pixels: copy(&images.pixels)?, ..images.clone() })
        };
        let targets = &self.pairs.targets;
        let targets = PairTargets {
            matrices: maybe(&targets.matrices)?,
            parameters: maybe(&targets.parameters)?,
            translations: maybe(&targets.translations)?,
            hues: maybe(&targets.hues)?,
            labels: maybe(&targets.labels)?,
        };
        let probes = match (&self.probes, &targets.labels) {
            (Some(probes), Some(labels)) => Some(TargetTensors {
                labels: labels.clone(),
                rotation: copy(&probes.rotation)?,
                translation: maybe(&probes.translation)?,
            }),
            _ => None,
        };
        Ok(Self { pairs: methods::PairBatch { views: [images(first)?, images(second)?], targets }, probes })
    }
}

/// Uploads `batch` for a method that is trained on `transform`, and the targets of its probes. The pixels are uploaded,
/// too, unless there are `images` on the device.
pub fn upload(
    feed: &mut Feed,
    batch: &PairBatch<'_>,
    images: Option<PairImages>,
    transform: Transform,
    probes: Option<&Targets>,
) -> Result<Inputs> {
    let (pairs, side) = (batch.len(), batch.side);
    let hues: Vec<f32> = batch
        .hues
        .iter()
        .flat_map(|[first, second]| pose::hue_difference(*first, *second).map(|value| value as f32))
        .collect();
    let values = TargetValues::from_poses(transform, &batch.poses);
    let matrix_side = transform.matrix_side();
    let mut parts = vec![
        Part::new([pairs, matrix_side, matrix_side], &values.matrices)?,
        Part::new([pairs, transform.parameters()], &values.parameters)?,
        Part::new([pairs, 3], &values.translations)?,
        Part::new([pairs, 2], &hues)?,
        Part::new([pairs], &batch.labels)?,
    ];
    if let Some(targets) = probes {
        parts.push(Part::new([pairs, 4], &targets.rotation)?);
        if let Some(translation) = &targets.translation {
            parts.push(Part::new([pairs, 3], translation)?);
        }
    }
    if images.is_none() {
        for view in [batch.first, batch.second] {
            parts.push(Part::new([pairs, side, side, 3], view)?);
        }
    }
    let mut tensors = feed.upload(&parts)?.into_iter();
    let mut next = || tensors.next().ok_or_else(|| engine::Error::shape("upload", "a part is missing"));
    let targets = PairTargets {
        matrices: Some(next()?),
        parameters: Some(next()?),
        translations: Some(next()?),
        hues: Some(next()?),
        labels: Some(next()?),
    };
    let probes = match (probes, &targets.labels) {
        (Some(wanted), Some(labels)) => Some(TargetTensors {
            labels: labels.clone(),
            rotation: next()?,
            translation: if wanted.translation.is_some() { Some(next()?) } else { None },
        }),
        _ => None,
    };
    let pixels = match images {
        Some(images) => {
            let dims = images.dims();
            let [first, second] = images.into_buffers();
            [Tensor::from_buffer(dims, DType::U8, first)?, Tensor::from_buffer(dims, DType::U8, second)?]
        }
        None => [next()?, next()?],
    };
    let views = pixels.map(|pixels| Images::from_pixels(pixels, MEAN, STD));
    Ok(Inputs { pairs: methods::PairBatch { views, targets }, probes })
}
