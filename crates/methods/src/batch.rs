//! One training batch: two views of every object and the targets for the transformation from the first to the second.

use engine::ops::Images;
use engine::{Collective, Device, Feed, Part, Result, Tensor};
use pose::{Part as PosePart, PerPart, ViewPose};
use random::{Random, Stream};

use crate::config::Transform;

/// Normalisation of pixels, scaled to 0..1 before: the published mean and standard deviation of each channel.
pub const MEAN: [f32; 3] = [0.5016, 0.5037, 0.5060];
/// See [`MEAN`].
pub const STD: [f32; 3] = [0.1030, 0.0999, 0.0969];

/// A batch of pairs, on the device.
#[derive(Clone, Debug)]
pub struct PairBatch {
    /// View 1 and view 2, (n, side, side, 3) each.
    pub views: [Images; 2],
    /// The targets of the pairs.
    pub targets: PairTargets,
    /// Pairs of all ranks, where these are the share of one; as many each, where nothing is said.
    pub whole: Option<usize>,
}

/// The targets of a batch's pairs, on the device. A method names the one it lacks.
#[derive(Clone, Debug, Default)]
pub struct PairTargets {
    /// The relative motion as a matrix of the group: (n, side, side).
    pub matrices: Option<Tensor>,
    /// The relative motion as the group's numbers: (n, 4) quaternions (x, y, z, w) for rotations.
    pub parameters: Option<Tensor>,
    /// How the views differ in a part of their poses: (n, width), quaternions for rotations.
    pub parts: PerPart<Option<Tensor>>,
    /// Differences of floor and spot hue: (n, 2).
    pub hues: Option<Tensor>,
    /// Classes of the objects: (n), int32.
    pub labels: Option<Tensor>,
    /// Which object each pair shows: (n), int32. Pairs of one object are no negatives of each other; without it, no two
    /// pairs show the same.
    pub objects: Option<Tensor>,
}

/// The numbers of the targets of pairs, on the host; see [`PairTargets`].
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct TargetValues {
    pub matrices: Vec<f32>,
    pub parameters: Vec<f32>,
    pub parts: PerPart<Vec<f32>>,
    pub hues: Vec<f32>,
    pub labels: Vec<i32>,
    pub objects: Vec<i32>,
}

impl TargetValues {
    /// The targets of pairs of views with these poses under `transform`, without hues and labels.
    pub fn from_poses(transform: Transform, pairs: &[[ViewPose; 2]]) -> Self {
        let group = transform.group();
        let narrow = |numbers: Vec<f64>| numbers.into_iter().map(|value| value as f32);
        let (mut values, asked) = (Self::default(), group.asked());
        for [first, second] in pairs {
            values.matrices.extend(narrow(group.relative(first, second)));
            values.parameters.extend(narrow(group.difference(first, second)));
            for &part in &asked {
                let numbers = part.target(group.space, group.frame, first, second);
                values.parts[part].extend(narrow(numbers));
            }
        }
        values
    }
}

impl TargetValues {
    /// What probes are scored against, of the pairs of all ranks: labels and parts of poses.
    pub(crate) fn scored_of_all(&self, ranks: &dyn Collective) -> Result<Self> {
        let mut whole = Self::default();
        for bytes in ranks.exchange(bytemuck::cast_slice(&self.labels))? {
            whole.labels.extend(bytes.as_chunks::<4>().0.iter().map(|bytes| i32::from_ne_bytes(*bytes)));
        }
        for (own, all) in self.parts.0.iter().zip(&mut whole.parts.0).filter(|(own, _)| !own.is_empty()) {
            for bytes in ranks.exchange(bytemuck::cast_slice(own))? {
                all.extend(bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_ne_bytes(*bytes)));
            }
        }
        Ok(whole)
    }
}

impl PairTargets {
    /// The targets of pairs of views with these poses under `transform`.
    pub fn from_poses(device: &Device, transform: Transform, pairs: &[[ViewPose; 2]]) -> Result<Self> {
        let (n, group) = (pairs.len(), transform.group());
        let side = group.side;
        let values = TargetValues::from_poses(transform, pairs);
        let mut parts = PerPart::default();
        for part in group.asked() {
            let shape = [n, part.width(group.space)];
            parts[part] = Some(Tensor::from_slice(device, shape, &values.parts[part])?);
        }
        Ok(Self {
            matrices: Some(Tensor::from_slice(device, [n, side, side], &values.matrices)?),
            parameters: Some(Tensor::from_slice(device, [n, group.parameters()], &values.parameters)?),
            parts,
            ..Self::default()
        })
    }

    /// Adds the classes of the objects.
    pub fn with_labels(mut self, device: &Device, labels: &[i32]) -> Result<Self> {
        self.labels = Some(Tensor::from_slice(device, [labels.len()], labels)?);
        Ok(self)
    }

    /// Adds the differences of floor and spot hue.
    pub fn with_hues(mut self, device: &Device, hues: &[[f32; 2]]) -> Result<Self> {
        self.hues = Some(Tensor::from_slice(device, [hues.len(), 2], &hues.concat())?);
        Ok(self)
    }

    /// The targets of the pairs of all ranks.
    pub(crate) fn gathered(&self, ranks: &dyn Collective, device: &Device, whole: usize) -> Result<Self> {
        let own: Vec<&Tensor> = self.all().into_iter().flatten().collect();
        let mut whole = ranks.gather(device, whole, &own)?.into_iter();
        let mut next = |own: &Option<Tensor>| own.as_ref().and_then(|_| whole.next());
        Ok(Self {
            matrices: next(&self.matrices),
            parameters: next(&self.parameters),
            parts: PerPart(self.parts.0.each_ref().map(&mut next)),
            hues: next(&self.hues),
            labels: next(&self.labels),
            objects: next(&self.objects),
        })
    }

    fn all(&self) -> Vec<&Option<Tensor>> {
        let Self { matrices, parameters, parts, hues, labels, objects } = self;
        [matrices, parameters].into_iter().chain(&parts.0).chain([hues, labels, objects]).collect()
    }
}

/// The images of a batch on their way to the device.
#[derive(Debug)]
pub enum PairImages<'a> {
    /// 8-bit RGB on the host: view 1 and view 2, (n, side, side, 3) each.
    Host {
        /// Side in pixels.
        side: usize,
        /// The bytes.
        views: [&'a [u8]; 2],
    },
    /// There already.
    Device([Tensor; 2]),
}

impl PairBatch {
    /// `pairs` pairs of random pixels and poses, to measure speed: the values do not matter, but they must not be
    /// degenerate.
    pub fn random(device: &Device, transform: Transform, pairs: usize, side: usize) -> Result<Self> {
        let view = |index| {
            let mut random = Random::new(1, Stream::new("bench-step"), index);
            let mut bytes = vec![0; pairs * side * side * 3];
            bytes.chunks_mut(4).for_each(|chunk| {
                chunk.iter_mut().zip(random.next_u32().to_le_bytes()).for_each(|(to, byte)| *to = byte);
            });
            Images::from_bytes(device, [pairs, side, side], &bytes, [0.5; 3], [0.25; 3])
        };
        let mut random = Random::new(1, Stream::new("bench-step-poses"), 0);
        let mut pose = || {
            let mut three = |bound: f64| std::array::from_fn(|_| random.range(-bound, bound));
            ViewPose::published_precision(three(1.5), three(0.5))
        };
        let poses: Vec<_> = (0..pairs).map(|_| [pose(), pose()]).collect();
        let labels: Vec<i32> = (0..pairs as i32).map(|label| label % 55).collect();
        let targets = PairTargets::from_poses(device, transform, &poses)?.with_labels(device, &labels)?;
        Ok(Self { views: [view(0)?, view(1)?], targets, whole: None })
    }

    /// Number of pairs.
    pub fn len(&self) -> usize {
        self.views[0].len()
    }

    /// Whether there are no pairs.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Brings a batch to the device in one upload, which runs beside the step before it.
    pub fn upload(
        feed: &mut Feed,
        transform: Transform,
        values: &TargetValues,
        images: PairImages<'_>,
    ) -> Result<Self> {
        let (pairs, group) = (values.labels.len(), transform.group());
        let side = group.side;
        // What the data do not know is not there.
        let (has_poses, has_hues) = (!values.matrices.is_empty(), !values.hues.is_empty());
        let mut parts = Vec::new();
        if has_poses {
            parts.extend([
                Part::new([pairs, side, side], &values.matrices)?,
                Part::new([pairs, group.parameters()], &values.parameters)?,
            ]);
            for part in group.asked() {
                parts.push(Part::new([pairs, part.width(group.space)], &values.parts[part])?);
            }
        }
        if has_hues {
            parts.push(Part::new([pairs, 2], &values.hues)?);
        }
        parts.extend([Part::new([pairs], &values.labels)?, Part::new([pairs], &values.objects)?]);
        if let PairImages::Host { side, views } = &images {
            for view in views {
                parts.push(Part::new([pairs, *side, *side, 3], view)?);
            }
        }
        let mut tensors = feed.upload(&parts)?.into_iter();
        let mut next = || tensors.next().ok_or_else(|| engine::Error::shape("upload", "a part is missing"));
        let mut known = |is_known: bool| is_known.then(&mut next).transpose();
        let (matrices, parameters) = (known(has_poses)?, known(has_poses)?);
        let mut parts: PerPart<Option<Tensor>> = PerPart::default();
        for part in group.asked() {
            parts[part] = known(has_poses)?;
        }
        let targets = PairTargets {
            matrices,
            parameters,
            parts,
            hues: known(has_hues)?,
            labels: known(true)?,
            objects: known(true)?,
        };
        let images = match images {
            PairImages::Device(images) => images,
            PairImages::Host { .. } => [next()?, next()?],
        };
        let views = images.map(|pixels| Images::from_pixels(pixels, MEAN, STD));
        Ok(Self { views, targets, whole: None })
    }

    /// All tensors, in a fixed order.
    pub(crate) fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        let views = self.views.iter().map(|images| &images.pixels);
        views.chain(self.targets.all().into_iter().flatten())
    }

    /// A copy that stays where it is.
    pub(crate) fn copy(&self, device: &Device) -> Result<Self> {
        let copy = |tensor: &Tensor| -> Result<Tensor> {
            let mut copy = Tensor::empty(device, tensor.shape(), tensor.dtype())?;
            copy.copy_from(tensor)?;
            Ok(copy)
        };
        let maybe = |tensor: &Option<Tensor>| tensor.as_ref().map(copy).transpose();
        let images = |images: &Images| -> Result<Images> {
            Ok(Images { pixels: copy(&images.pixels)?, ..images.clone() })
        };
        let [first, second] = &self.views;
        let targets = &self.targets;
        let mut parts: PerPart<Option<Tensor>> = PerPart::default();
        for part in PosePart::ALL {
            parts[part] = maybe(&targets.parts[part])?;
        }
        let targets = PairTargets {
            matrices: maybe(&targets.matrices)?,
            parameters: maybe(&targets.parameters)?,
            parts,
            hues: maybe(&targets.hues)?,
            labels: maybe(&targets.labels)?,
            objects: maybe(&targets.objects)?,
        };
        Ok(Self { views: [images(first)?, images(second)?], targets, whole: self.whole })
    }
}

/// The target `what`, or a sentence that says it is missing.
pub(crate) fn required<'a>(target: &'a Option<Tensor>, what: &'static str) -> Result<&'a Tensor> {
    target.as_ref().ok_or_else(|| engine::Error::shape("batch", format!("the batch has no {what}")))
}
