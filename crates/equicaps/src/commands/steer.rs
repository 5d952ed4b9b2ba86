//! `equicaps steer`: move a pose embedding by a known rotation and translation, and see which pictures it lands on.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use evaluate::Encoder;
use evaluate::nearest::Similarity;
use evaluate::prediction::{Transformation, normalise_prediction};
use pose::{Degrees, TaitBryan, ViewPose};
use serde_json::json;

use crate::UsageError;
use crate::commands::images::{self, OnBadSample};
use crate::commands::neighbours;
use crate::commands::subject::{self, Which};
use crate::terminal::{Terminal, shown};

/// Arguments of `equicaps steer`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  equicaps steer runs/first car_0.jpg --rotate 0,0,45 --among car_views
  equicaps steer runs/motion car_0.jpg --translate 0.2,0,0 --among car_views --out to.png

The embedding of the picture is multiplied by the relative motion (capsule methods) or given to
the predictor with it; then the nearest embeddings are listed. Angles in degrees, about x, y, z in
this order, relative to the view.")]
pub struct Arguments {
    /// A run's folder, or a checkpoint
    #[arg(value_name = "RUN|CHECKPOINT")]
    weights: PathBuf,
    /// The picture to start from
    #[arg(value_name = "IMAGE")]
    image: OsString,
    /// Rotation about x, y, z in degrees
    #[arg(long, value_name = "X,Y,Z", value_parser = triple, default_value = "0,0,0", allow_hyphen_values = true)]
    rotate: Triple,
    /// Translation along x, y, z in scene units, for networks trained with translations
    #[arg(long, value_name = "X,Y,Z", value_parser = triple, default_value = "0,0,0", allow_hyphen_values = true)]
    translate: Triple,
    /// Where to look: files, folders, packed datasets, patterns, or @LIST
    #[arg(long, value_name = "IMAGES", required = true, num_args = 1..)]
    among: Vec<OsString>,
    /// How many pictures to list
    #[arg(short, long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    k: u16,
    /// A picture of what was found: a file that ends in .png or .svg
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// cpu, cuda, cuda:1, ...
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: String,
    /// What to do about a picture of --among that cannot be read: fail, or skip it
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = OnBadSample::Fail, hide_possible_values = true)]
    on_bad_sample: OnBadSample,
}

/// Three numbers.
#[derive(Clone, Copy, Debug)]
struct Triple([f64; 3]);

fn triple(text: &str) -> Result<Triple, String> {
    let numbers: Result<Vec<f64>, _> = text.split(',').map(|number| number.trim().parse::<f64>()).collect();
    match numbers.as_deref() {
        Ok(&[x, y, z]) if [x, y, z].iter().all(|v| v.is_finite()) => Ok(Triple([x, y, z])),
        _ => Err("expected three numbers such as 0,0,45".to_owned()),
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<ExitCode> {
    neighbours::check_ending(arguments.out.as_ref())?;
    let mut source = images::collect(std::slice::from_ref(&arguments.image), terminal)?;
    if source.len() != 1 {
        let text =
            format!("{} names {} pictures; steering starts from one", shown(&arguments.image), source.len());
        return Err(UsageError(text).into());
    }
    let mut candidates = images::collect(&arguments.among, terminal)?;
    let weights = subject::find(&arguments.weights, &Which::Newest)?.remove(0);
    let device = crate::device::open(&arguments.device, "f32")?;
    let mut encoder = weights.open(&device, terminal)?;
    let (Some(transformation), Some(width)) = (encoder.transformation(), encoder.widths().equivariant) else {
        anyhow::bail!(
            "{} was trained with {}, whose embeddings do not follow transformations; try equicaps, capsie, sie, equimod or sen",
            arguments.weights.display(),
            weights.config.method.name
        );
    };
    let [x, y, z] = arguments.rotate.0;
    let moved_by = ViewPose {
        rotation: TaitBryan::new(Degrees(x), Degrees(y), Degrees(z)),
        translation: arguments.translate.0,
    };
    if arguments.translate.0 != [0.0; 3] && weights.config.method.transform == methods::Transform::Rotation {
        terminal.warn("this network was trained for rotations only: --translate has no effect");
    }
    let embedding = images::encode(&mut encoder, &mut source, OnBadSample::Fail, terminal)?.equivariant;
    let origin = ViewPose::default();
    let prediction = match transformation {
        Transformation::PoseMatrices(layout) => layout.predict(&embedding, &origin, &moved_by),
        Transformation::Predictor { translation } => {
            let parameters = Transformation::parameters(translation, &origin, &moved_by);
            let mut predicted = encoder.predict(&embedding, &parameters, 1)?;
            normalise_prediction(&mut predicted);
            predicted
        }
    };
    let mut rows =
        images::encode(&mut encoder, &mut candidates, arguments.on_bad_sample, terminal)?.equivariant;
    transformation.normalise_candidates(&mut rows, width);
    let found =
        Similarity::new(&device)?.nearest(&prediction, &rows, width, arguments.k.into(), |_, _| false)?;
    if let Some(out) = &arguments.out {
        let title = format!("Steered by rotation ({x}, {y}, {z})");
        neighbours::draw(out, &title, &source, &candidates, &found, encoder.side())?;
    }
    let near = found.first().map(Vec::as_slice).unwrap_or_default();
    let text: Vec<String> =
        near.iter().map(|n| format!("{:.4}  {}", n.similarity, candidates[n.row].path.display())).collect();
    let list: Vec<_> = near
        .iter()
        .map(|n| json!({ "image": shown(&candidates[n.row].path), "similarity": n.similarity }))
        .collect();
    terminal.result(
        text.join("\n"),
        &json!({ "image": shown(&source[0].path), "rotate": arguments.rotate.0, "translate": arguments.translate.0, "nearest": list, "out": arguments.out.as_ref().map(shown) }),
    );
    Ok(ExitCode::SUCCESS)
}
