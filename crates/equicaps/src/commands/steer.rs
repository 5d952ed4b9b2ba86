//! `equicaps steer`: transforms a pose embedding by a known motion, or by any matrix, and lists the nearest images.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use dataset::origin::origins;
use evaluate::Encoder;
use evaluate::nearest::Similarity;
use evaluate::prediction::Transformation;
use methods::Motion;
use pose::{Deformation, Degrees, Group, Matrix, Part, Space, TaitBryan, ViewPose};
use report::nearest_images;
use serde::Serialize;

use crate::UsageError;
use crate::commands::neighbours::{self, Near};
use crate::commands::network::{NetworkOptions, collect};
use crate::outcome::Outcome;
use crate::terminal::{Terminal, shown};

/// Arguments of `equicaps steer`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  equicaps steer runs/first car_0.jpg --rotate 0,0,45 --among car_views
  equicaps steer runs/motion car_0.jpg --translate 0.2,0,0 --among car_views --out to.png
  equicaps steer runs/affine car_0.jpg --scale 1.3,1,1 --among car_views
  equicaps steer runs/first car_0.jpg --matrix 0,-1,0,1,0,0,0,0,1 --among car_views

The embedding of the image is multiplied by the relative motion (capsule methods) or transformed
by the predictor; then the nearest embeddings are listed, without the image itself. Angles in degrees, about x, y, z in
this order, relative to the view. Of views of a dataset the distance of their rotation to the one that is asked for
is said, 1 - <q, q'>^2: 0 there, 1 half a turn away.")]
pub struct Arguments {
    #[command(flatten)]
    network: NetworkOptions,
    /// The image to start from
    #[arg(value_name = "IMAGE")]
    image: OsString,
    /// Rotation about x, y, z in degrees
    #[arg(long, value_name = "X,Y,Z", value_parser = triple, default_value = "0,0,0", allow_hyphen_values = true)]
    rotate: Triple,
    /// Translation along x, y, z in scene units, for networks trained with translations
    #[arg(long, value_name = "X,Y,Z", value_parser = triple, default_value = "0,0,0", allow_hyphen_values = true)]
    translate: Triple,
    /// Scale along x, y, z, for networks trained with scales
    #[arg(long, value_name = "X,Y,Z", value_parser = triple, default_value = "1,1,1", allow_hyphen_values = true)]
    scale: Triple,
    /// Shear xy, xz, yz, for networks trained with shears
    #[arg(long, value_name = "XY,XZ,YZ", value_parser = triple, default_value = "0,0,0", allow_hyphen_values = true)]
    shear: Triple,
    /// Perspective along x and y, for networks trained with perspective of photographs
    #[arg(long, value_name = "X,Y", value_parser = pair, default_value = "0,0", allow_hyphen_values = true)]
    perspective: Pair,
    /// Any invertible matrix in place of all these, row by row: 9 numbers (3x3) or 16 (4x4), for equicaps
    #[arg(long, value_name = "NUMBERS", value_parser = matrix, allow_hyphen_values = true,
          conflicts_with_all = ["rotate", "translate", "scale", "shear", "perspective"])]
    matrix: Option<Box<Matrix>>,
    /// Images to search: files, folders, packed datasets, patterns, or @LIST
    #[arg(long, value_name = "IMAGES", required = true, num_args = 1..)]
    among: Vec<OsString>,
    /// Number of images to list
    #[arg(short, long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    k: u16,
    /// Draw what was found: a file that ends in .png or .svg
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
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

/// Two numbers.
#[derive(Clone, Copy, Debug)]
struct Pair([f64; 2]);

fn pair(text: &str) -> Result<Pair, String> {
    let numbers: Result<Vec<f64>, _> = text.split(',').map(|number| number.trim().parse::<f64>()).collect();
    match numbers.as_deref() {
        Ok(&[x, y]) if x.is_finite() && y.is_finite() => Ok(Pair([x, y])),
        _ => Err("expected two numbers such as 0.1,0".to_owned()),
    }
}

fn matrix(text: &str) -> Result<Box<Matrix>, String> {
    let separators = [',', ';', ' '];
    let words = text.split(separators).map(str::trim).filter(|word| !word.is_empty());
    let numbers: Result<Vec<f64>, String> = words
        .map(|word| {
            word.parse().map_err(|_| format!("{word:?} is not a number; a matrix is 9 or 16 of them"))
        })
        .collect();
    Matrix::from_rows(&numbers?).map(Box::new).map_err(|error| error.to_string())
}

impl Arguments {
    /// The view that is asked for, relative to the one that is shown.
    fn view(&self) -> Result<ViewPose, UsageError> {
        let ([x, y, z], scale) = (self.rotate.0, self.scale.0);
        if scale.iter().any(|factor| *factor <= 0.0) {
            return Err(UsageError("--scale must be three numbers above 0".to_owned()));
        }
        Ok(ViewPose {
            rotation: TaitBryan::new(Degrees(x), Degrees(y), Degrees(z)),
            translation: self.translate.0,
            deformation: Deformation {
                log_scale: scale.map(f64::ln),
                shear: self.shear.0,
                perspective: self.perspective.0,
            },
        })
    }

    /// The options that a network trained on `group` cannot follow.
    fn without_effect(&self, group: Group) -> Vec<&'static str> {
        let asked = [
            (Part::Translation, "--translate", self.translate.0 != [0.0; 3]),
            (Part::Scale, "--scale", self.scale.0 != [1.0; 3]),
            (Part::Shear, "--shear", self.shear.0 != [0.0; 3]),
            (Part::Perspective, "--perspective", self.perspective.0 != [0.0; 2]),
        ];
        let lost = asked.into_iter().filter(|&(part, _, is_asked)| is_asked && !group.has(part));
        lost.map(|(_, option, _)| option).collect()
    }

    /// Refuses motions that do not exist in the plane of an image.
    fn refuse_out_of_plane(&self) -> Result<(), UsageError> {
        let ([turn_x, turn_y, _], [_, xz, yz]) = (self.rotate.0, self.shear.0);
        let asked = [
            ("--rotate", "turn about z only", [turn_x, turn_y] != [0.0; 2]),
            ("--translate", "move along x and y only", self.translate.0[2] != 0.0),
            ("--scale", "scale along x and y only", self.scale.0[2] != 1.0),
            ("--shear", "have the shear xy only", [xz, yz] != [0.0; 2]),
        ];
        match asked.into_iter().find(|(.., is_asked)| *is_asked) {
            Some((option, can, _)) => {
                Err(UsageError(format!("{option}: this network was trained for images, which {can}")))
            }
            None => Ok(()),
        }
    }

    /// What the image is steered by, in words: the options that are not as they are by default.
    fn motion(&self) -> String {
        let listed = |numbers: &[f64]| numbers.iter().map(f64::to_string).collect::<Vec<_>>().join(", ");
        let parts: [(&str, &[f64], &[f64]); 5] = [
            ("rotation", &self.rotate.0, &[0.0; 3]),
            ("translation", &self.translate.0, &[0.0; 3]),
            ("scale", &self.scale.0, &[1.0; 3]),
            ("shear", &self.shear.0, &[0.0; 3]),
            ("perspective", &self.perspective.0, &[0.0; 2]),
        ];
        let given = parts.into_iter().filter(|(_, numbers, none)| numbers != none);
        let said: Vec<String> =
            given.map(|(name, numbers, _)| format!("{name} ({})", listed(numbers))).collect();
        match (&self.matrix, said.is_empty()) {
            (Some(_), _) => "a matrix".to_owned(),
            (None, true) => "nothing".to_owned(),
            (None, false) => said.join(", "),
        }
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<Outcome> {
    neighbours::check_picture(arguments.out.as_deref())?;
    let moved_by = arguments.view()?;
    let mut source = collect(std::slice::from_ref(&arguments.image), terminal)?;
    if source.len() != 1 {
        let text =
            format!("{} names {} images; steering starts from one", shown(&arguments.image), source.len());
        return Err(UsageError(text).into());
    }
    let mut candidates = collect(&arguments.among, terminal)?;
    let mut network = arguments.network.open(None, terminal)?;
    let (Some(transformation), Some(width)) =
        (network.encoder.transformation(), network.encoder.widths().equivariant)
    else {
        let (weights, method) = (arguments.network.weights.display(), network.weights.config.method.name);
        if network.encoder.network().model.method().motion() != Motion::Unknown {
            anyhow::bail!(
                "{weights} has no projector for these images, whose embeddings are steered: export it with --with projector, \
                 and leave out --image-size"
            );
        }
        anyhow::bail!(
            "{weights} was trained with {method}, whose embeddings do not follow transformations; try equicaps, capsie, sie, \
             equimod or sen"
        );
    };
    let group = network.weights.config.method.transform.group();
    if group.space == Space::Image {
        arguments.refuse_out_of_plane()?;
    }
    for option in arguments.without_effect(group) {
        let only = if group == Group::ROTATION { "rotations".to_owned() } else { group.to_string() };
        terminal.warn(format!("this network was trained for {only} only: {option} has no effect"));
    }
    if let Some(matrix) = &arguments.matrix {
        refuse_matrix(matrix, transformation, network.weights.config.method.name)?;
    }
    let embedding = network.encode(&mut source)?.equivariant;
    let origin = ViewPose::default();
    let prediction = match (transformation, &arguments.matrix) {
        (Transformation::PoseMatrices(layout), Some(matrix)) => layout.moved(&embedding, &matrix.to_rows()),
        _ => transformation.moved(&mut network.encoder, &embedding, &origin, &moved_by)?,
    };
    let mut rows = network.encode(&mut candidates)?.equivariant;
    transformation.normalise_candidates(&mut rows, width);
    let mut similarity = Similarity::new(&network.device)?;
    // Where the embedding comes from is no answer to where it goes.
    let (from, places) = (neighbours::places(&source), neighbours::places(&candidates));
    let is_source = |query: usize, candidate: usize| from[query] == places[candidate];
    let found = similarity.nearest(&prediction, &rows, width, arguments.k.into(), is_source)?;
    // What was found is compared with where the motion leads.
    let mut asked = origins(&source);
    for origin in asked.iter_mut().flatten() {
        origin.pose = origin.pose.and_then(|pose| match &arguments.matrix {
            Some(matrix) => group.multiplied(&pose, matrix),
            None => Some(transformation.leads_to(&pose, &moved_by)),
        });
    }
    if let Some(out) = &arguments.out {
        let title = format!("Steered by {}", arguments.motion());
        nearest_images::draw(&title, &source, &asked, &candidates, &found, network.side())?.write(out)?;
    }
    let origins = origins(&candidates);
    let found = found.first().map(Vec::as_slice).unwrap_or_default();
    Outcome::new(&Steered {
        image: shown(&source[0].path),
        rotate: arguments.rotate.0,
        translate: arguments.translate.0,
        scale: arguments.scale.0,
        shear: arguments.shear.0,
        perspective: arguments.perspective.0,
        matrix: arguments.matrix.as_ref().map(|matrix| matrix.to_rows()),
        nearest: neighbours::list(found, &candidates, asked[0].as_ref(), &origins),
        out: arguments.out.as_ref().map(shown),
    })
}

/// Refuses a matrix that embeddings cannot be multiplied by.
fn refuse_matrix(
    matrix: &Matrix,
    transformation: Transformation,
    method: methods::MethodName,
) -> Result<(), UsageError> {
    let Transformation::PoseMatrices(layout) = transformation else {
        return Err(UsageError(format!(
            "--matrix multiplies pose matrices, but embeddings of {method} follow a predictor; use --rotate and the like"
        )));
    };
    if matrix.side() != layout.size() {
        return Err(UsageError(format!(
            "--matrix is {found}x{found}, but this network's poses, trained for {group}, are {side}x{side}",
            found = matrix.side(),
            group = layout.group,
            side = layout.size()
        )));
    }
    Ok(())
}

/// Where an embedding was moved to.
#[derive(Serialize)]
struct Steered {
    image: String,
    rotate: [f64; 3],
    translate: [f64; 3],
    scale: [f64; 3],
    shear: [f64; 3],
    perspective: [f64; 2],
    #[serde(skip_serializing_if = "Option::is_none")]
    matrix: Option<Vec<f64>>,
    nearest: Vec<Near>,
    out: Option<String>,
}

impl fmt::Display for Steered {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.nearest.iter().map(ToString::to_string).collect();
        formatter.write_str(&lines.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn parsed(options: &[&str]) -> Arguments {
        let words = ["steer", "run", "a.jpg", "--among", "b.jpg"];
        Command::try_parse_from(words.iter().chain(options)).unwrap().arguments
    }

    #[test]
    fn images_follow_motions_of_their_plane_only() {
        for (option, numbers) in [
            ("--rotate", "90,0,0"),
            ("--rotate", "0,1,0"),
            ("--translate", "0,0,5"),
            ("--scale", "1,1,7"),
            ("--shear", "0,3,0"),
            ("--shear", "0,0,3"),
        ] {
            let message = parsed(&[option, numbers]).refuse_out_of_plane().unwrap_err().0;
            assert!(
                message.starts_with(&format!("{option}: this network was trained for images")),
                "{message}"
            );
        }
        let plane = ["--rotate", "0,0,9", "--translate", "1,2,0", "--scale", "2,3,1", "--shear", "1,0,0"];
        assert!(parsed(&plane).refuse_out_of_plane().is_ok());
    }

    #[test]
    fn titles_say_what_is_asked_for() {
        let motion = |options: &[&str]| parsed(options).motion();
        assert_eq!(
            motion(&["--scale", "1.3,1,1", "--perspective", "0.1,0"]),
            "scale (1.3, 1, 1), perspective (0.1, 0)"
        );
        assert_eq!(motion(&["--rotate", "0,0,45"]), "rotation (0, 0, 45)");
        assert_eq!(
            (motion(&[]), motion(&["--matrix", "1,0,0,0,1,0,0,0,1"])),
            ("nothing".into(), "a matrix".into())
        );
    }
}
