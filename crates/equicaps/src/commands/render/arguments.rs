//! What `equicaps render` is to render: its options, and what they mean.

use std::path::PathBuf;

use dataset::card::{Origin, Settings};
use dataset::work::Shard;
use dataset::{FEWEST_VIEWS, ObjectSet, ProceduralSize};
use render::Quality;
use scene::LatentRanges;

use super::options::{Format, Order, Preset, RangeOption, Split, Up, parse_shard};
use crate::UsageError;

/// What to render, and how.
#[derive(Debug, clap::Args)]
#[group(skip)]
#[command(group = clap::ArgGroup::new("objects_from").required(true).args(["meshes", "procedural"]))]
pub(super) struct DatasetArguments {
    /// Which published dataset to follow; 3diebench-s and -a also scale and shear objects, and 3diebench-ood has rotations
    /// out of the range of 3DIEBench
    #[arg(long, value_enum, default_value_t = Preset::BenchT)]
    pub(super) preset: Preset,
    /// Folder of meshes: ShapeNetCore v2, or CLASS/OBJECT.ext, or CLASS/OBJECT/*.ext (obj, glb, gltf, ply, off, stl)
    #[arg(long, value_name = "DIR")]
    pub(super) meshes: Option<PathBuf>,
    /// List of the objects to render: a NumPy array of (class, object), or text with CLASS/OBJECT lines
    #[arg(long, value_name = "LIST", requires = "meshes")]
    pub(super) objects: Option<PathBuf>,
    /// Objects of the built-in library: number of classes (at most 55) and of objects in each
    #[arg(long, value_name = "CLASSESxOBJECTS")]
    pub(super) procedural: Option<ProceduralSize>,
    /// Folder of the dataset, created if missing
    #[arg(long, value_name = "DIR", required = true)]
    pub(super) out: Option<PathBuf>,
    /// Views of each object
    #[arg(long, default_value_t = 50, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(super) views: u32,
    /// What is held out: objects that training never sees, or the last fifth of the views of every object
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = Split::Objects)]
    pub(super) split: Split,
    /// Width and height of a view in pixels
    #[arg(long, default_value_t = 256, value_name = "PX", value_parser = clap::value_parser!(u16).range(8..=8192))]
    pub(super) size: u16,
    /// Seed of latents, split and built-in objects
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(super) seed: u64,
    /// Rendering quality: reference, standard or fast
    #[arg(long, value_name = "Q", default_value_t = Quality::Standard)]
    pub(super) quality: Quality,
    /// Where to render: cpu, cuda or cuda:N
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    pub(super) device: String,
    /// Resume a dataset that was started on another kind of device (images differ by rounding; the card records it)
    #[arg(long)]
    pub(super) allow_mixed_devices: bool,
    /// Layout on disk: the published folders, or tar shards for WebDataset with an index
    #[arg(long, value_enum, default_value_t = Format::Files)]
    pub(super) format: Format,
    /// Objects of one tar archive
    #[arg(long, default_value_t = 256, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(super) objects_per_tar: u32,
    /// Render part I of N (I from 0); all parts may share one --out
    #[arg(long, default_value = "0/1", value_name = "I/N", value_parser = parse_shard)]
    pub(super) shard: Shard,
    /// Objects and views processed at the same time [default: --threads, twice as many with a GPU]
    #[arg(long, value_name = "J", value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) jobs: Option<u16>,
    /// Order of the colour channels in the files; the published ones are bgr (red and blue exchanged)
    #[arg(long, value_name = "ORDER", value_enum, default_value_t = Order::Rgb)]
    pub(super) channel_order: Order,
    /// Render at most N objects, spread over the classes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) limit: Option<u64>,
    /// Axis that points up in the mesh files [default: y for obj and gltf, z for stl, ply and off]
    #[arg(long, value_name = "AXIS", value_enum, requires = "meshes")]
    pub(super) up: Option<Up>,
    /// Ranges and distributions of latents, over those of the preset: a TOML file (docs/groups.md shows one)
    #[arg(long, value_name = "FILE")]
    pub(super) latents: Option<PathBuf>,
    /// Range of a latent, for example rot_x=-pi/4,pi/4 or translation=-0.2,0.2; may be repeated
    #[arg(long = "range", value_name = "NAME=LOW,HIGH", allow_hyphen_values = true)]
    pub(super) ranges: Vec<RangeOption>,
    /// Fail if any object had to be skipped
    #[arg(long)]
    pub(super) strict: bool,
}

impl DatasetArguments {
    /// The ranges of latents, where the options go together.
    pub(super) fn ranges(&self) -> anyhow::Result<LatentRanges> {
        if self.split == Split::Views && (self.views as usize) < FEWEST_VIEWS {
            let message = format!(
                "--split views needs --views {FEWEST_VIEWS} or more: a pair for training and a pair that is held out"
            );
            return Err(UsageError(message).into());
        }
        let mut ranges = self.preset.ranges();
        if let Some(file) = &self.latents {
            train::latents_file::apply(file, &mut ranges).map_err(|error| UsageError(error.to_string()))?;
        }
        for range in &self.ranges {
            range.apply(&mut ranges).map_err(UsageError)?;
        }
        ranges.validate().map_err(|error| UsageError(error.to_string()))?;
        Ok(ranges)
    }

    /// The objects, and what a card says of them.
    pub(super) fn objects(&self) -> anyhow::Result<(ObjectSet, Origin)> {
        match (&self.meshes, self.procedural) {
            (Some(root), _) => {
                let set = ObjectSet::meshes(root, self.objects.as_deref(), self.up.map(Into::into))?;
                Ok((set, Origin::Meshes { up: self.up.map(|up| up.to_string()) }))
            }
            (None, Some(size)) => {
                let origin = Origin::Procedural { classes: size.classes, objects: size.objects };
                Ok((ObjectSet::procedural(size, self.seed), origin))
            }
            (None, None) => {
                Err(UsageError("give --meshes DIR or --procedural CLASSESxOBJECTS".into()).into())
            }
        }
    }

    /// What determines the bytes of a dataset with these ranges that is rendered on `device`.
    pub(super) fn settings(&self, ranges: LatentRanges, origin: Origin, device: String) -> Settings {
        Settings {
            preset: self.preset.to_string(),
            origin,
            limit: self.limit.map(|limit| limit as usize),
            objects: 0,
            objects_digest: String::new(),
            views: self.views as usize,
            split: self.split.into(),
            size: usize::from(self.size),
            seed: self.seed,
            quality: self.quality.to_string(),
            device,
            mixed_devices: Vec::new(),
            channel_order: self.channel_order.into(),
            format: self.format.into(),
            objects_per_tar: (self.format == Format::Shards).then_some(self.objects_per_tar as usize),
            ranges: Some(ranges),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}
