//! The rows of a table as images with what is known of each: file, class, object, view, side of the split, pose, light.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::import::columns::{Columns, RotationForm};
use crate::import::fit::Region;
use crate::import::own_names::{Own, tell_apart};
use crate::import::rotation::{Conventions, Given, Pose};
use crate::import::table::{Cell, Table};
use crate::object::Split;

/// One image of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Where it is said, for messages: `line 7`.
    pub place: String,
    /// The file, relative to [`Rows::folder`].
    pub file: String,
    /// The class.
    pub class: String,
    /// The object.
    pub object: String,
    /// Number of the view among those of its object, where it is said.
    pub view: Option<u64>,
    /// Side of the split, where it is said.
    pub split: Option<Split>,
    /// The pose, where it is known.
    pub pose: Option<Pose>,
    /// Hue of the floor, polar angle, azimuth and hue of the spot, where they are known.
    pub light: Option<[f64; 4]>,
    /// The part of the image that shows the object, where it is known.
    pub region: Option<Region>,
}

impl Row {
    /// Where it is said, unless that is the file itself.
    pub fn own_place(&self) -> Option<&str> {
        Some(self.place.as_str()).filter(|place| *place != self.file)
    }
}

/// All images that something names.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    /// What names them: a table, or a folder.
    pub source: PathBuf,
    /// The folder that files are relative to.
    pub folder: PathBuf,
    /// The images, in order.
    pub rows: Vec<Row>,
    /// How rotations are written there, in words; empty where there are none.
    pub convention: String,
    /// What was assumed or left out, a sentence each.
    pub notes: Vec<String>,
    /// Whether views are to be held out rather than objects, where nothing says it.
    pub prefers_views: bool,
}

impl Rows {
    /// Something is wrong with one of the images.
    pub fn wrong(&self, row: &Row, message: impl std::fmt::Display) -> Error {
        Error::content(&self.source, format!("{}: {message}", row.place))
    }
}

/// The class of tables that name none.
const NO_CLASS: &str = "images";

/// Reads the rows of the table at `path`.
pub fn read(path: &Path, conventions: &Conventions) -> Result<Rows> {
    let table = Table::read(path)?;
    let columns = Columns::of(&table, conventions)?;
    let mut notes = columns.notes.clone();
    let mut rows = Vec::with_capacity(table.rows.len());
    for (number, (_, cells)) in table.rows.iter().enumerate() {
        let reader = RowReader { table: &table, number, cells };
        let file = match reader.text(columns.file) {
            Some(file) => file,
            None => return Err(table.wrong(number, "file is empty")),
        };
        let class = match columns.class {
            None => NO_CLASS.to_owned(),
            Some(column) => reader.text(column).ok_or_else(|| table.wrong(number, "class is empty"))?,
        };
        let object = match columns.object {
            Some(column) => reader.text(column).ok_or_else(|| table.wrong(number, "object is empty"))?,
            None if columns.rotation.is_some() => class.clone(),
            None => name_of(&file),
        };
        let pose = reader.pose(&columns, conventions)?;
        rows.push(Row {
            place: table.place(number),
            view: columns.view.map(|column| reader.view(column)).transpose()?,
            split: columns.split.map(|column| reader.split(column)).transpose()?,
            light: columns.light.map(|columns| reader.numbers(&columns)).transpose()?.flatten(),
            region: None,
            file,
            class,
            object,
            pose,
        });
    }
    if columns.object.is_none() && columns.rotation.is_none() {
        let own: Vec<Own> = (0..rows.len()).map(|row| Own { row, side: None }).collect();
        tell_apart(&mut rows, &own);
    }
    if let (Some(_), Some(row)) = (columns.light, rows.iter().position(|row| row.light.is_none())) {
        return Err(table
            .wrong(row, "floor_hue, spot_theta, spot_phi or spot_hue is empty, but other rows have them"));
    }
    if columns.object.is_none() {
        notes.push(match columns.rotation {
            Some(_) => "there is no column object: all images of a class are taken for views of one object"
                .to_owned(),
            None => "there is no column object: every image is taken for an object of its own".to_owned(),
        });
    }
    if columns.class.is_none() {
        notes.push(format!("there is no column class: all objects are of one class, {NO_CLASS:?}"));
    }
    let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
    let mut convention = columns.rotation.map_or(String::new(), |form| in_words(form, conventions));
    if columns.translation.is_some() && conventions.scale != 1.0 {
        convention += &format!("; translations times {}", conventions.scale);
    }
    Ok(Rows { source: path.to_path_buf(), folder, rows, convention, notes, prefers_views: false })
}

/// The name of an object that is one image: its path without the extension, in one word.
pub fn name_of(file: &str) -> String {
    let stem = Path::new(file).with_extension("");
    let parts: Vec<String> = stem
        .components()
        .filter_map(|part| match part {
            std::path::Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
            _ => None,
        })
        .collect();
    parts.join("_")
}

/// How rotations are read, for the card.
fn in_words(form: RotationForm, conventions: &Conventions) -> String {
    let form = match form {
        RotationForm::Own => return "rot_x rot_y rot_z: this program's own latents".to_owned(),
        RotationForm::Quaternion => "qx qy qz qw".to_owned(),
        RotationForm::Matrix => "r11 to r33".to_owned(),
        RotationForm::NamedAngles(order, unit) | RotationForm::Angles(order, unit) => {
            let axes = if order.intrinsic { "turn with the object" } else { "stand still" };
            format!("angles in {}, order {order} (axes {axes})", format!("{unit:?}").to_lowercase())
        }
    };
    let frame = conventions.frame.words();
    match conventions.inverse {
        false => format!("{form}, from the object to {frame}"),
        true => format!("{form}, from {frame} to the object"),
    }
}

struct RowReader<'a> {
    table: &'a Table,
    number: usize,
    cells: &'a [Cell],
}

impl RowReader<'_> {
    fn text(&self, column: usize) -> Option<String> {
        match &self.cells[column] {
            Cell::Missing => None,
            Cell::Text(text) => Some(text.clone()),
            Cell::Number(number) => Some(number.to_string()),
        }
    }

    fn wrong(&self, column: usize, expected: &str) -> Error {
        let found = self.text(column).map_or("empty".to_owned(), |text| format!("{text:?}"));
        self.table
            .wrong(self.number, format!("{} is {found}, expected {expected}", self.table.columns[column]))
    }

    /// A finite number; nothing where the cell is empty.
    fn number(&self, column: usize) -> Result<Option<f64>> {
        let number = match &self.cells[column] {
            Cell::Missing => return Ok(None),
            Cell::Number(number) => Some(*number),
            Cell::Text(text) => text.parse().ok(),
        };
        let number = number.filter(|number: &f64| number.is_finite());
        number.map(Some).ok_or_else(|| self.wrong(column, "a number"))
    }

    /// Several numbers, all there or none.
    fn numbers<const N: usize>(&self, columns: &[usize; N]) -> Result<Option<[f64; N]>> {
        let mut found = [0.0; N];
        let mut missing = None;
        for (value, &column) in found.iter_mut().zip(columns) {
            match self.number(column)? {
                Some(number) => *value = number,
                None => missing = Some(column),
            }
        }
        let Some(missing) = missing else { return Ok(Some(found)) };
        match columns.iter().find(|&&column| self.cells[column] != Cell::Missing) {
            None => Ok(None),
            Some(&there) => {
                let name = |column: usize| &self.table.columns[column];
                let message = format!("{} has no number, but {} has one", name(missing), name(there));
                Err(self.table.wrong(self.number, message))
            }
        }
    }

    fn view(&self, column: usize) -> Result<u64> {
        let number = match &self.cells[column] {
            Cell::Number(number) => Some(*number),
            Cell::Text(text) => text.parse().ok(),
            Cell::Missing => None,
        };
        let whole = number.filter(|number: &f64| number.fract() == 0.0 && (0.0..1e15).contains(number));
        whole.map(|number| number as u64).ok_or_else(|| self.wrong(column, "a whole number"))
    }

    fn split(&self, column: usize) -> Result<Split> {
        let text = self.text(column).unwrap_or_default();
        split_named(&text).ok_or_else(|| self.wrong(column, "train, val or test"))
    }

    fn pose(&self, columns: &Columns, conventions: &Conventions) -> Result<Option<Pose>> {
        let Some(form) = columns.rotation else { return Ok(None) };
        let at = &columns.rotation_columns;
        let three = || -> Result<Option<[f64; 3]>> { self.numbers(&[at[0], at[1], at[2]]) };
        let given = match form {
            RotationForm::Own => three()?.map(Given::Own),
            RotationForm::Angles(order, unit) => three()?.map(|angles| Given::Angles(angles, order, unit)),
            RotationForm::NamedAngles(order, unit) => {
                three()?.map(|named| Given::Angles(order.axes.map(|axis| named[axis]), order, unit))
            }
            RotationForm::Quaternion => self.numbers(&[at[0], at[1], at[2], at[3]])?.map(Given::Quaternion),
            RotationForm::Matrix => {
                let columns: [usize; 9] = std::array::from_fn(|k| at[k]);
                let rows = |m: [f64; 9]| std::array::from_fn(|i| std::array::from_fn(|j| m[3 * i + j]));
                self.numbers(&columns)?.map(|values| Given::Matrix(rows(values)))
            }
        };
        let translation = match &columns.translation {
            None => None,
            Some(columns) => match (self.numbers(columns)?, given) {
                (None, Some(_)) => {
                    return Err(self.table.wrong(self.number, "there is a rotation, but no translation"));
                }
                (Some(_), None) => {
                    return Err(self.table.wrong(self.number, "there is a translation, but no rotation"));
                }
                (translation, _) => translation,
            },
        };
        let Some(given) = given else { return Ok(None) };
        let pose = conventions.pose(given, translation);
        pose.map(Some).map_err(|message| self.table.wrong(self.number, message))
    }
}

/// A side of the split by any of its usual names.
pub fn split_named(name: &str) -> Option<Split> {
    match name.to_lowercase().as_str() {
        "train" | "training" => Some(Split::Train),
        "val" | "valid" | "validation" | "test" | "testing" | "heldout" | "held_out" | "held-out" => {
            Some(Split::Val)
        }
        _ => None,
    }
}

/// The places of some rows, for messages: `line 3, line 7 and 4 more`.
pub fn places<'a>(places: impl Iterator<Item = &'a str>) -> String {
    const SHOWN: usize = 5;
    let all: Vec<&str> = places.collect();
    let named = all[..all.len().min(SHOWN)].join(", ");
    match all.len().saturating_sub(SHOWN) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

#[cfg(test)]
mod tests;
