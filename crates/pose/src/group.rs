//! Groups of transformations: what changes between two views of the same thing, as matrices and as parameters.
//!
//! A group is one description ([`Group`]); datasets, methods, probes and retrieval ask it and know no names. The matrix of a
//! view is `M`, relative motions are `M1^-1 M2` and are multiplied on the right: a pose that behaves as
//! `P(view) = P0 M_view` satisfies `P1 (M1^-1 M2) = P2`, whatever the group.

use serde::Serialize;

use crate::{FrameKind, Matrix, Rotation, ViewPose, rotation_distance};

/// What differences may owe to rounding, beside the size of what is subtracted: angles have the published precision, which
/// is that of 32 bits.
const ROUNDING: f64 = 2e-6;

/// What a group moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// An object in space.
    Object,
    /// The contents of an image in its plane.
    Image,
}

/// A part of what may change between two views.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Orientation: a relative quaternion; in an image, sine and cosine of the relative angle.
    Rotation,
    /// Difference of translations, in the group's frame.
    Translation,
    /// Difference of the logarithms of scales.
    Scale,
    /// Difference of shears.
    Shear,
    /// Difference of the perspective terms of an image.
    Perspective,
}

impl Part {
    /// All of them, in the order of parameters.
    pub const ALL: [Self; 5] =
        [Self::Rotation, Self::Translation, Self::Scale, Self::Shear, Self::Perspective];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rotation => "rotation",
            Self::Translation => "translation",
            Self::Scale => "scale",
            Self::Shear => "shear",
            Self::Perspective => "perspective",
        }
    }

    /// Numbers that say how two views differ in it; 0 where the space has no such part.
    pub fn width(self, space: Space) -> usize {
        match (space, self) {
            (Space::Object, Self::Rotation) => 4,
            (Space::Object, Self::Translation | Self::Scale | Self::Shear) => 3,
            (Space::Object, Self::Perspective) => 0,
            (Space::Image, Self::Shear) => 1,
            (Space::Image, _) => 2,
        }
    }

    /// Those numbers, from the first view to the second; translations in `frame`.
    pub fn difference(self, space: Space, frame: FrameKind, first: &ViewPose, second: &ViewPose) -> Vec<f64> {
        let minus = |a: &[f64], b: &[f64]| -> Vec<f64> {
            b.iter().zip(a).map(|(b, a)| b - a).take(self.width(space)).collect()
        };
        let (a, b) = (&first.deformation, &second.deformation);
        match self {
            Self::Rotation if space == Space::Object => {
                ViewPose::relative_quaternion(first, second).to_array().to_vec()
            }
            Self::Rotation => {
                let (sin, cos) = (second.rotation.z.0 - first.rotation.z.0).sin_cos();
                vec![sin, cos]
            }
            Self::Translation if space == Space::Object => {
                ViewPose::translation_difference(frame, first, second).to_vec()
            }
            Self::Translation => minus(&first.translation, &second.translation),
            Self::Scale => minus(&a.log_scale, &b.log_scale),
            Self::Shear => minus(&a.shear, &b.shear),
            Self::Perspective => minus(&a.perspective, &b.perspective),
        }
    }

    /// The same numbers for scores, with zeros where two numbers differ by no more than rounding: else what does not change
    /// would leave noise to be predicted. Rotations are not differences of numbers and stay as they are.
    pub fn target(self, space: Space, frame: FrameKind, first: &ViewPose, second: &ViewPose) -> Vec<f64> {
        let mut numbers = self.difference(space, frame, first, second);
        let norm = |pose: &ViewPose| {
            let values: &[f64] = match self {
                Self::Rotation => &[],
                Self::Translation => &pose.translation,
                Self::Scale => &pose.deformation.log_scale,
                Self::Shear => &pose.deformation.shear,
                Self::Perspective => &pose.deformation.perspective,
            };
            values.iter().map(|value| value * value).sum::<f64>().sqrt()
        };
        let rounding = ROUNDING * norm(first).max(norm(second));
        numbers.iter_mut().filter(|number| number.abs() < rounding).for_each(|number| *number = 0.0);
        numbers
    }

    /// How far two views are apart in it: `1 - <q1, q2>^2` for rotations, else a squared difference.
    pub fn distance(self, first: &ViewPose, second: &ViewPose) -> f64 {
        let squares = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum();
        let (a, b) = (&first.deformation, &second.deformation);
        match self {
            Self::Rotation => rotation_distance(first.quaternion(), second.quaternion()),
            Self::Translation => squares(&first.translation, &second.translation),
            Self::Scale => squares(&a.log_scale, &b.log_scale),
            Self::Shear => squares(&a.shear, &b.shear),
            Self::Perspective => squares(&a.perspective, &b.perspective),
        }
    }
}

/// A value for each part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerPart<T>(pub [T; Part::ALL.len()]);

impl<T> std::ops::Index<Part> for PerPart<T> {
    type Output = T;

    fn index(&self, part: Part) -> &T {
        &self.0[part as usize]
    }
}

impl<T> std::ops::IndexMut<Part> for PerPart<T> {
    fn index_mut(&mut self, part: Part) -> &mut T {
        &mut self.0[part as usize]
    }
}

/// A group of transformations.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// The name in files and on the command line.
    pub name: &'static str,
    /// What it is, in a line.
    pub summary: &'static str,
    /// What it moves.
    pub space: Space,
    /// Side of its matrices.
    pub side: usize,
    /// The frame of its translations; the object frame where it has none.
    pub frame: FrameKind,
    /// What of a view it sees, in order.
    pub parts: &'static [Part],
    /// Whether one number is the scale along all axes.
    pub uniform: bool,
}

use Part::{Perspective, Rotation as Rotate, Scale, Shear, Translation};

impl Group {
    /// SO(3).
    pub const ROTATION: Self = Self::object("rotation", "rotation", 3, FrameKind::Object, &[Rotate]);
    /// SE(3), the translation as the latents have it.
    pub const ROTATION_OBJECT: Self = Self::object(
        "rotation+object",
        "rotation and translation, object frame",
        4,
        FrameKind::Object,
        &[Rotate, Translation],
    );
    /// SE(3), as the renderer places an object.
    pub const ROTATION_BASE: Self = Self::object(
        "rotation+base",
        "rotation and translation, base frame",
        4,
        FrameKind::Base,
        &[Rotate, Translation],
    );
    /// SO(3) in 4x4 matrices.
    pub const ROTATION_4X4: Self =
        Self::object("rotation-4x4", "rotation, as a 4x4 matrix", 4, FrameKind::Object, &[Rotate]);
    /// Rotation, translation and uniform scale, object frame.
    pub const SIMILARITY: Self = Self {
        uniform: true,
        ..Self::object(
            "similarity",
            "rotation, translation and uniform scale, object frame",
            4,
            FrameKind::Object,
            &[Rotate, Translation, Scale],
        )
    };
    /// Rotation, translation and uniform scale, base frame.
    pub const SIMILARITY_BASE: Self = Self {
        name: "similarity+base",
        summary: "rotation, translation and uniform scale, base frame",
        frame: FrameKind::Base,
        ..Self::SIMILARITY
    };
    /// All affine transformations that do not mirror, object frame.
    pub const AFFINE: Self = Self::object(
        "affine",
        "rotation, translation, scale along axes and shear, object frame",
        4,
        FrameKind::Object,
        &[Rotate, Translation, Scale, Shear],
    );
    /// All affine transformations that do not mirror, base frame.
    pub const AFFINE_BASE: Self = Self {
        name: "affine+base",
        summary: "rotation, translation, scale along axes and shear, base frame",
        frame: FrameKind::Base,
        ..Self::AFFINE
    };
    /// Turned photographs.
    pub const IMAGE_ROTATION: Self = Self::image("image-rotation", "rotation of an image", &[Rotate]);
    /// Turned, moved and scaled photographs.
    pub const IMAGE_SIMILARITY: Self = Self {
        uniform: true,
        ..Self::image(
            "image-similarity",
            "rotation, translation and scale of an image",
            &[Rotate, Translation, Scale],
        )
    };
    /// Affinely warped photographs.
    pub const IMAGE_AFFINE: Self = Self::image(
        "image-affine",
        "rotation, translation, scale along axes and shear of an image",
        &[Rotate, Translation, Scale, Shear],
    );
    /// Photographs in perspective.
    pub const IMAGE_HOMOGRAPHY: Self = Self::image(
        "image-homography",
        "an affine warp of an image and perspective",
        &[Rotate, Translation, Scale, Shear, Perspective],
    );

    /// All groups, the published ones first.
    pub const ALL: [Self; 12] = [
        Self::ROTATION,
        Self::ROTATION_OBJECT,
        Self::ROTATION_BASE,
        Self::ROTATION_4X4,
        Self::SIMILARITY,
        Self::SIMILARITY_BASE,
        Self::AFFINE,
        Self::AFFINE_BASE,
        Self::IMAGE_ROTATION,
        Self::IMAGE_SIMILARITY,
        Self::IMAGE_AFFINE,
        Self::IMAGE_HOMOGRAPHY,
    ];

    /// The groups whose matrices have this side, the published ones first.
    pub fn of_side(side: usize) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |group| group.side == side)
    }

    const fn object(
        name: &'static str,
        summary: &'static str,
        side: usize,
        frame: FrameKind,
        parts: &'static [Part],
    ) -> Self {
        Self { name, summary, space: Space::Object, side, frame, parts, uniform: false }
    }

    const fn image(name: &'static str, summary: &'static str, parts: &'static [Part]) -> Self {
        let (space, frame) = (Space::Image, FrameKind::Object);
        Self { name, summary, space, side: 3, frame, parts, uniform: false }
    }

    /// Whether it sees this part of a view.
    pub fn has(&self, part: Part) -> bool {
        self.parts.contains(&part)
    }

    /// The parts that networks may be asked for when they are trained on it: its own, and those that every view of its
    /// space has.
    pub fn asked(&self) -> Vec<Part> {
        let always: &[Part] = if self.space == Space::Object { &[Rotate, Translation] } else { &[] };
        Part::ALL.into_iter().filter(|part| always.contains(part) || self.has(*part)).collect()
    }

    /// Whether its matrices have a column that rotations, scales and shears leave alone: the one of translations.
    pub fn has_column_left_alone(&self) -> bool {
        let turned = if self.space == Space::Object { 3 } else { 2 };
        self.side > turned
    }

    /// Whether its matrices are rotations and translations only.
    fn is_rigid(&self) -> bool {
        self.space == Space::Object && !self.has(Scale) && !self.has(Shear)
    }

    /// What the group sees of a view.
    pub fn seen(&self, pose: &ViewPose) -> ViewPose {
        let mut seen = *pose;
        let deformation = &mut seen.deformation;
        if !self.has(Translation) {
            seen.translation = [0.0; 3];
        }
        if !self.has(Scale) {
            deformation.log_scale = [0.0; 3];
        } else if self.uniform {
            let axes = if self.space == Space::Object { 3 } else { 2 };
            let mean = deformation.log_scale[..axes].iter().sum::<f64>() / axes as f64;
            deformation.log_scale = [mean; 3];
        }
        if !self.has(Shear) {
            deformation.shear = [0.0; 3];
        }
        if !self.has(Perspective) {
            deformation.perspective = [0.0; 2];
        }
        seen
    }

    /// The matrix of a view.
    pub fn matrix(&self, pose: &ViewPose) -> Matrix {
        let seen = self.seen(pose);
        match self.space {
            Space::Object => {
                let translation = self.frame.translation(seen.rotation, seen.translation);
                Matrix::affine(seen.linear(), translation).corner(self.side)
            }
            Space::Image => seen.warp(),
        }
    }

    /// The matrix from the first view to the second, row by row: `M1^-1 M2`.
    pub fn relative(&self, first: &ViewPose, second: &ViewPose) -> Vec<f64> {
        if self.is_rigid() {
            let [a, b] = [first, second].map(|pose| self.seen(pose));
            let rows = ViewPose::relative_matrix(self.frame, &a, &b);
            return rows[..self.side].iter().flat_map(|row| row[..self.side].to_vec()).collect();
        }
        let first = self.matrix(first);
        // Every view of a group has an inverse: scales are exponentials.
        let inverse = first.inverse().unwrap_or(Matrix::identity(self.side));
        (inverse * self.matrix(second)).to_rows()
    }

    /// Numbers of one of its parts among the parameters; 0 for a part that it does not have.
    pub fn width(&self, part: Part) -> usize {
        match part {
            _ if !self.has(part) => 0,
            Scale if self.uniform => 1,
            part => part.width(self.space),
        }
    }

    /// Numbers that describe the motion from one view to another.
    pub fn parameters(&self) -> usize {
        self.parts.iter().map(|&part| self.width(part)).sum()
    }

    /// Those numbers: differences of all parts, one after the other.
    pub fn difference(&self, first: &ViewPose, second: &ViewPose) -> Vec<f64> {
        let [a, b] = if self.is_rigid() { [*first, *second] } else { [first, second].map(|p| self.seen(p)) };
        let part = |part: Part| {
            let mut numbers = part.difference(self.space, self.frame, &a, &b);
            numbers.truncate(self.width(part));
            numbers
        };
        self.parts.iter().flat_map(|&each| part(each)).collect()
    }

    /// The names of the parameters, in their order.
    pub fn parameter_names(&self) -> Vec<String> {
        let axes = ["x", "y", "z"];
        let names = |part: Part| -> Vec<String> {
            match (part, self.space) {
                (Rotate, Space::Object) => {
                    axes.iter().chain(&["w"]).map(|axis| format!("q_{axis}")).collect()
                }
                (Rotate, Space::Image) => vec!["sin".to_owned(), "cos".to_owned()],
                (Scale, _) if self.uniform => vec!["log_scale".to_owned()],
                (Scale, _) => axes.iter().map(|axis| format!("log_scale_{axis}")).collect(),
                (Shear, _) => ["xy", "xz", "yz"].iter().map(|axes| format!("shear_{axes}")).collect(),
                (Translation, _) => axes.iter().map(|axis| format!("t_{axis}")).collect(),
                (Perspective, _) => axes.iter().map(|axis| format!("perspective_{axis}")).collect(),
            }
        };
        let cut = |part: Part| names(part).into_iter().take(self.width(part));
        self.parts.iter().flat_map(|&part| cut(part)).collect()
    }
}

impl PartialEq for Group {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Group {}

impl std::fmt::Display for Group {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.pad(self.name)
    }
}

impl ViewPose {
    /// The linear part of where the view puts an object's points: `R D`.
    pub fn linear(&self) -> [[f64; 3]; 3] {
        let (rotation, deformed) = (Rotation::from(self.rotation).to_matrix(), self.deformation.matrix());
        std::array::from_fn(|i| {
            std::array::from_fn(|j| (0..3).map(|k| rotation[i][k] * deformed[k][j]).sum())
        })
    }

    /// Where the view puts points of an image's plane: sheared and scaled, turned about z, moved, seen in perspective.
    fn warp(&self) -> Matrix {
        let linear = self.linear();
        let linear: [[f64; 2]; 2] = std::array::from_fn(|i| [linear[i][0], linear[i][1]]);
        let [x, y, _] = self.translation;
        let mut tilt = Matrix::identity(3);
        self.deformation.perspective.iter().enumerate().for_each(|(i, &value)| tilt.set_last_row(i, value));
        tilt * Matrix::affine(linear, [x, y])
    }
}
