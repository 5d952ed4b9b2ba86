//! Which columns of a table say what. A column that is nearly one of those known is a slip and refused; any other is
//! passed over.

use crate::error::{Error, Result};
use crate::import::rotation::{AngleUnit, Conventions, EulerOrder, PoseFrame};
use crate::import::table::Table;
use crate::latent_table::NAMES;

const QUATERNION: [&str; 4] = ["qx", "qy", "qz", "qw"];
const NAMED_ANGLES: [&str; 3] = ["rx", "ry", "rz"];
const ANGLES: [&str; 3] = ["r1", "r2", "r3"];
const MATRIX: [&str; 9] = ["r11", "r12", "r13", "r21", "r22", "r23", "r31", "r32", "r33"];
const TRANSLATION: [&str; 3] = ["tx", "ty", "tz"];
const OTHERS: [&str; 5] = ["file", "class", "object", "view", "split"];

/// How rotations are written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RotationForm {
    /// `rot_x rot_y rot_z`.
    Own,
    /// `qx qy qz qw`.
    Quaternion,
    /// `rx ry rz`: angles about x, y and z.
    NamedAngles(EulerOrder, AngleUnit),
    /// `r1 r2 r3`: the first, second and third angle.
    Angles(EulerOrder, AngleUnit),
    /// `r11` to `r33`.
    Matrix,
}

/// The numbers of the columns that are known.
#[derive(Clone, Debug, PartialEq)]
pub struct Columns {
    pub file: usize,
    pub class: Option<usize>,
    pub object: Option<usize>,
    pub view: Option<usize>,
    pub split: Option<usize>,
    pub rotation: Option<RotationForm>,
    pub rotation_columns: Vec<usize>,
    pub translation: Option<[usize; 3]>,
    pub light: Option<[usize; 4]>,
    /// What was passed over, a sentence.
    pub notes: Vec<String>,
}

impl Columns {
    /// Finds them in `table`.
    pub fn of(table: &Table, conventions: &Conventions) -> Result<Self> {
        let wrong = |message: String| Error::content(&table.path, message);
        let notes = refuse_slips(table)?;
        let file = table
            .column("file")
            .ok_or_else(|| wrong(format!("there is no column file, only {}", table.columns.join(", "))))?;
        let own: [&str; 3] = std::array::from_fn(|k| NAMES[k]);
        let own_translation: [&str; 3] = std::array::from_fn(|k| NAMES[7 + k]);
        let light: [&str; 4] = std::array::from_fn(|k| NAMES[3 + k]);
        let forms: [(&[&str], &str); 5] = [
            (&own, "own"),
            (&QUATERNION, "quaternion"),
            (&NAMED_ANGLES, "named"),
            (&ANGLES, "angles"),
            (&MATRIX, "matrix"),
        ];
        let mut found: Vec<(&[&str], &str, Vec<usize>)> = Vec::new();
        for (names, form) in forms {
            if let Some(columns) = whole(table, names)? {
                found.push((names, form, columns));
            }
        }
        if let [first, second, ..] = &found[..] {
            let names = |names: &[&str]| names.join(" ");
            return Err(wrong(format!(
                "there are two rotations, {} and {}; keep one of them",
                names(first.0),
                names(second.0)
            )));
        }
        let (rotation, rotation_columns) = match found.pop() {
            None => (None, Vec::new()),
            Some((_, form, columns)) => (Some(rotation_form(table, form, conventions)?), columns),
        };
        if rotation == Some(RotationForm::Own)
            && (conventions.frame != PoseFrame::World || conventions.inverse || conventions.order.is_some())
        {
            return Err(wrong(
                "rot_x rot_y rot_z are this program's own latents, which --frame, --inverse and --angles do not change; \
                 call the columns rx ry rz if they are something else"
                    .to_owned(),
            ));
        }
        let has_angles = matches!(rotation, Some(RotationForm::Angles(..) | RotationForm::NamedAngles(..)));
        if conventions.order.is_some() && !has_angles {
            let message = "there are no columns rx ry rz or r1 r2 r3, which --angles and --unit are for";
            return Err(wrong(message.to_owned()));
        }
        let translations = [whole(table, &TRANSLATION)?, whole(table, &own_translation)?];
        let translation = match (translations, rotation) {
            ([None, None], _) => None,
            ([Some(_), Some(_)], _) => {
                return Err(wrong(
                    "there are two translations, tx ty tz and trans_x trans_y trans_z; keep one".to_owned(),
                ));
            }
            (_, None) => {
                return Err(wrong("there is a translation, but no rotation, which it needs".to_owned()));
            }
            ([Some(_), None], Some(RotationForm::Own)) | ([None, Some(_)], Some(_))
                if !fits(table, rotation) =>
            {
                return Err(wrong(
                    "rot_x rot_y rot_z go with trans_x trans_y trans_z (this program's latents), other rotations with \
                     tx ty tz"
                        .to_owned(),
                ));
            }
            ([one, other], Some(_)) => one.or(other).map(|columns| std::array::from_fn(|k| columns[k])),
        };
        Ok(Self {
            file,
            class: table.column("class"),
            object: table.column("object"),
            view: table.column("view"),
            split: table.column("split"),
            rotation,
            rotation_columns,
            translation,
            light: whole(table, &light)?.map(|columns| std::array::from_fn(|k| columns[k])),
            notes,
        })
    }
}

/// Whether the translation of `table` is of the same kind as its rotation: both this program's own, or neither.
fn fits(table: &Table, rotation: Option<RotationForm>) -> bool {
    (rotation == Some(RotationForm::Own)) == table.column(NAMES[7]).is_some()
}

/// The columns of `names`, if they are there; some of them alone are an error.
fn whole(table: &Table, names: &[&str]) -> Result<Option<Vec<usize>>> {
    let columns: Vec<usize> = names.iter().filter_map(|name| table.column(name)).collect();
    if columns.is_empty() {
        return Ok(None);
    }
    match names.iter().find(|name| table.column(name).is_none()) {
        None => Ok(Some(columns)),
        Some(missing) => {
            let there = &table.columns[columns[0]];
            Err(Error::content(&table.path, format!("there is a column {there}, but no column {missing}")))
        }
    }
}

fn rotation_form(table: &Table, form: &str, conventions: &Conventions) -> Result<RotationForm> {
    let wrong = |message: String| Error::content(&table.path, message);
    let names = if form == "named" { "rx ry rz" } else { "r1 r2 r3" };
    match form {
        "own" => return Ok(RotationForm::Own),
        "quaternion" => return Ok(RotationForm::Quaternion),
        "matrix" => return Ok(RotationForm::Matrix),
        _ => {}
    }
    let (Some(order), Some(unit)) = (conventions.order, conventions.unit) else {
        return Err(wrong(format!(
            "the angles {names} can be read in many ways: give --angles ORDER (xyz: about axes that stand still, x first; \
             XYZ: about axes that turn with the object) and --unit degrees or --unit radians"
        )));
    };
    match form {
        "named" if order.repeats() => Err(wrong(format!(
            "the order {order} turns about one axis twice: call the columns r1 r2 r3, for the first, second and third angle"
        ))),
        "named" => Ok(RotationForm::NamedAngles(order, unit)),
        _ => Ok(RotationForm::Angles(order, unit)),
    }
}

/// Refuses columns that are nearly known ones; gives what is to be said about the others.
fn refuse_slips(table: &Table) -> Result<Vec<String>> {
    let groups: [&[&str]; 7] = [&OTHERS, &QUATERNION, &NAMED_ANGLES, &ANGLES, &MATRIX, &TRANSLATION, &NAMES];
    let known: Vec<&str> = groups.concat();
    let mut others = Vec::new();
    for column in table.columns.iter().filter(|column| !known.contains(&column.as_str())) {
        let meant = known.iter().find(|name| table.column(name).is_none() && is_near(column, name));
        if let Some(meant) = meant {
            return Err(Error::content(
                &table.path,
                format!("there is a column {column:?}: is it {meant}? Rename it, or leave it out"),
            ));
        }
        others.push(column.as_str());
    }
    Ok(match others[..] {
        [] => Vec::new(),
        _ => vec![format!("columns that are not used: {}", others.join(", "))],
    })
}

/// Whether `column` is a slip for `name`. Of short names nearly everything is one letter away, so only separators count.
fn is_near(column: &str, name: &str) -> bool {
    let plain = |text: &str| text.replace(['_', '-', ' ', '.'], "");
    plain(column) == plain(name) || (name.len() > 3 && strsim::osa_distance(column, name) == 1)
}
