//! `equicaps dataset import`: images that people have, as a dataset.

use std::fmt;
use std::path::PathBuf;
use std::sync::OnceLock;

use dataset::SplitBy;
use dataset::card::{Counts, Format};
use dataset::import::{self, AngleUnit, Conventions, EulerOrder, Fit, Options, PoseFrame};
use dataset::work::Skipped;
use serde::Serialize;
use train::config::OnBadSample;

use crate::commands::left_out;
use crate::outcome::{Outcome, count};
use crate::terminal::{Terminal, shown};
use crate::{Interrupted, UsageError, interrupt};

/// Arguments of `equicaps dataset import`.
#[derive(Debug, clap::Args)]
#[command(after_help = "SOURCE is one of
  a table (.csv, .tsv, .jsonl, .parquet) with a column file, relative to the table, and any of
    class, object, view, split (train, val or test)
    a rotation: qx qy qz qw, or r11 r12 ... r33, or angles rx ry rz with --angles and --unit
    a translation: tx ty tz, with p = R p_object + t
    this program's own latents: rot_x rot_y rot_z ..., as embed --out .parquet writes them
  a folder in BOP's format (scene_gt.json beside rgb/, or several such scenes)
  a folder of CLASS/IMAGE or CLASS/OBJECT/IMAGE, without poses; below train/ and val/ where there are such

Images are JPEG, PNG or WebP of any size. Objects may have different numbers of views, and rows may
lack a pose: methods that need none (vicreg, simclr, supervised classification) take them all.

Examples:
  equicaps dataset import photos/poses.csv --out mugs
  equicaps dataset import poses.csv --angles ZYX --unit degrees --frame opencv --out parts
  equicaps dataset import lm/test --out lm --fit pad
  equicaps dataset import flowers --reference --out flowers-dataset
  equicaps dataset import photos --on-bad-sample skip --out photos-dataset
  equicaps dataset preview mugs --axes --out axes.png

Look at the axes before you train: docs/datasets.md says what a stored rotation means.")]
pub struct Arguments {
    /// A table of files and poses, a BOP folder, or a folder of classes
    #[arg(value_name = "SOURCE")]
    source: PathBuf,
    /// Folder of the dataset, created if missing
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Leave images where they are, and name them, instead of copying them
    #[arg(long, visible_alias = "link")]
    reference: bool,
    /// How images become square: crop (the middle), or pad (with grey)
    #[arg(long, value_enum, default_value_t = FitName::Crop)]
    fit: FitName,
    /// Width and height of the images in the dataset in pixels
    #[arg(long, default_value_t = 256, value_name = "PX", value_parser = clap::value_parser!(u16).range(8..=8192))]
    size: u16,
    /// Order of the angles rx ry rz: xyz (about axes that stand still, x first), XYZ (about axes that turn along), ...
    #[arg(long, value_name = "ORDER", requires = "unit")]
    angles: Option<EulerOrder>,
    /// Unit of the angles
    #[arg(long, value_enum, requires = "angles")]
    unit: Option<UnitName>,
    /// Frame that rotations lead to: world (the renderer's), opencv (x right, y down, z forward) or opengl (x right, y up)
    #[arg(long, value_enum, default_value_t = FrameName::World)]
    frame: FrameName,
    /// Poses lead from the frame to the object, such as a camera's pose beside the object
    #[arg(long)]
    inverse: bool,
    /// Multiply translations, such as 0.001 for millimetres
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    scale: f64,
    /// What is held out: objects, views, or auto (as the column split says, else objects)
    #[arg(long, value_enum, default_value_t = SplitOption::Auto)]
    split: SplitOption,
    /// Seed of the split
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// On unreadable images: fail, naming all of them, or skip them, listed in OUT/skipped.json
    #[arg(long, value_name = "WHAT", default_value_t = OnBadSample::Fail)]
    on_bad_sample: OnBadSample,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum FitName {
    /// The largest square in the middle.
    Crop,
    /// The whole image, with grey beside it.
    Pad,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum UnitName {
    /// 360 are a turn.
    Degrees,
    /// 2 pi are a turn.
    Radians,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum FrameName {
    /// The renderer's world.
    World,
    /// A camera with x right, y down, z forward.
    Opencv,
    /// A camera with x right, y up, z backward.
    Opengl,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum SplitOption {
    /// As the table says, else objects; BOP: views.
    Auto,
    /// One object in five.
    Objects,
    /// The last fifth of the views of every object.
    Views,
}

impl Arguments {
    fn conventions(&self) -> anyhow::Result<Conventions> {
        if !(self.scale.is_finite() && self.scale > 0.0) {
            return Err(UsageError(format!("--scale is {}, expected a positive number", self.scale)).into());
        }
        Ok(Conventions {
            order: self.angles,
            unit: self.unit.map(|unit| match unit {
                UnitName::Degrees => AngleUnit::Degrees,
                UnitName::Radians => AngleUnit::Radians,
            }),
            frame: match self.frame {
                FrameName::World => PoseFrame::World,
                FrameName::Opencv => PoseFrame::Opencv,
                FrameName::Opengl => PoseFrame::Opengl,
            },
            inverse: self.inverse,
            scale: self.scale,
        })
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<Outcome> {
    let progress = OnceLock::new();
    let options = Options {
        conventions: arguments.conventions()?,
        fit: match arguments.fit {
            FitName::Crop => Fit::Crop,
            FitName::Pad => Fit::Pad,
        },
        size: usize::from(arguments.size),
        reference: arguments.reference,
        split: match arguments.split {
            SplitOption::Auto => None,
            SplitOption::Objects => Some(SplitBy::Objects),
            SplitOption::Views => Some(SplitBy::Views),
        },
        seed: arguments.seed,
        skip_bad: arguments.on_bad_sample == OnBadSample::Skip,
        stop: interrupt::flag(),
        on_begin: &|images| {
            let _ = progress.set(terminal.progress(images, "images"));
        },
        on_images: &|images| {
            if let Some(progress) = progress.get() {
                progress.advance(images);
            }
        },
    };
    interrupt::means(
        "stopping after the images in hand; run the same command again to go on; once more to end at once",
    );
    let outcome = import::import(&arguments.source, &arguments.out, &options);
    if let Some(progress) = progress.get() {
        progress.finish();
    }
    let outcome = match outcome {
        Err(dataset::Error::Interrupted) => return Err(Interrupted.into()),
        outcome => outcome?,
    };
    warn_of(&outcome.skipped, terminal);
    let settings = &outcome.card.settings;
    let Some(imported) = settings.imported() else {
        anyhow::bail!("{} holds no imported dataset", arguments.out.display());
    };
    let skipped_objects = outcome.card.counts.as_ref().map_or(0, |counts| counts.skipped_objects);
    Outcome::new(&Imported {
        out: shown(&arguments.out),
        source: shown(&arguments.source),
        was_complete: outcome.was_complete,
        objects: settings.objects - skipped_objects.min(settings.objects),
        fewest_views: imported.fewest_views,
        most_views: settings.views,
        size: settings.size,
        fit: imported.fit,
        boxes: imported.boxes,
        copied: settings.format == Format::Files,
        split: settings.split,
        latents: imported.latents.clone(),
        without_pose: imported.without_pose,
        convention: imported.convention.clone(),
        classes: outcome.classes,
        counts: outcome.card.counts.clone(),
        notes: outcome.notes,
        skipped: outcome.skipped,
        axes: format!(
            "equicaps dataset preview {} --axes --out axes.png",
            dataset::shell_word(&arguments.out)
        ),
    })
}

/// Names images that are left out.
fn warn_of(skipped: &[Skipped], terminal: &Terminal) {
    let said = skipped.iter().filter_map(|skipped| {
        let place = skipped.place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default();
        Some(format!("{place}{}: {}", skipped.file.as_ref()?, skipped.reason))
    });
    left_out::warn(&said.collect::<Vec<String>>(), ", all of them listed in skipped.json", terminal);
}

/// What was imported.
#[derive(Serialize)]
struct Imported {
    out: String,
    source: String,
    was_complete: bool,
    objects: usize,
    fewest_views: usize,
    most_views: usize,
    size: usize,
    fit: Fit,
    boxes: usize,
    copied: bool,
    split: SplitBy,
    latents: Vec<String>,
    without_pose: usize,
    convention: String,
    /// Those that have objects.
    #[serde(skip)]
    classes: usize,
    counts: Option<Counts>,
    notes: Vec<String>,
    skipped: Vec<Skipped>,
    /// The command that shows how rotations were read.
    #[serde(skip)]
    axes: String,
}

impl fmt::Display for Imported {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let images = self.counts.as_ref().map_or(0, |counts| counts.images);
        let [train, val] = self.counts.as_ref().and_then(|counts| counts.images_of_sides).unwrap_or_default();
        let views = match (self.fewest_views, self.most_views) {
            (fewest, most) if fewest == most => count(most, "view"),
            (fewest, most) => format!("{fewest} to {most} views"),
        };
        let classes = count(self.classes, "class");
        let already = if self.was_complete { " (it was there already)" } else { "" };
        writeln!(
            formatter,
            "{}: {} of {} in {classes}, {views} of each{already}",
            self.out,
            count(images, "image"),
            count(self.objects, "object")
        )?;
        let stored = if self.copied { "copied" } else { "left where they are" };
        let fit = match self.boxes {
            0 => self.fit.words().to_owned(),
            boxes if boxes == images => "cut around the box of their object".to_owned(),
            boxes => format!("cut around the box of their object ({boxes}) or {}", self.fit.words()),
        };
        writeln!(formatter, "images are {stored}, {fit}, {size}x{size} pixels", size = self.size)?;
        writeln!(formatter, "for training {}, held out {val}", count(train, "image"))?;
        if let Some(counts) = self.counts.as_ref().filter(|counts| counts.skipped_images > 0) {
            let (images, objects) = (count(counts.skipped_images, "image"), counts.skipped_objects);
            let objects = if objects > 0 {
                format!(", among them all of {}", count(objects, "object"))
            } else {
                String::new()
            };
            let mended = if self.was_complete {
                "; a complete dataset is not changed: use another --out after mending them"
            } else {
                ""
            };
            writeln!(formatter, "{images} skipped{objects}, listed in skipped.json{mended}")?;
        }
        self.notes.iter().try_for_each(|note| writeln!(formatter, "{note}"))?;
        match (self.latents.is_empty(), self.without_pose) {
            (true, _) => {
                let pairs = if self.most_views > 1 { "vicreg, simclr, supervised" } else { "supervised" };
                return write!(
                    formatter,
                    "there are no poses: methods that need none can be trained ({pairs}), or all methods on views that are made \
                     of the photographs, without an import: equicaps train --transform image-affine --data FOLDER"
                );
            }
            (false, 0) => writeln!(formatter, "latents: {}", self.latents.join(", "))?,
            (false, without) => {
                let (views, have) = (count(without, "view"), if without == 1 { "has" } else { "have" });
                writeln!(formatter, "latents: {}; {views} {have} no pose", self.latents.join(", "))?;
            }
        }
        if !self.convention.is_empty() {
            writeln!(formatter, "rotations were read as {}", self.convention)?;
        }
        write!(formatter, "see whether they are right: {}", self.axes)
    }
}
