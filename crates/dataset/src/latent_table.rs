//! The latents of many views as one table, in the published order of columns, of which imported data may lack some.

use scene::{Camera, Latents, Shape};

/// Columns of 3DIEBench: rotations, floor hue, spot theta, spot phi, spot hue.
pub const WIDTH: usize = 7;
/// Columns of 3DIEBench-T: the same and the translation.
pub(crate) const WIDTH_WITH_TRANSLATION: usize = 10;
/// Columns of all latents: the same, scale, shear and camera.
const WIDTH_OF_ALL: usize = 18;

/// Names of all columns that a rendered dataset may have, in order: the published ones, scale, shear and camera.
pub const ALL_NAMES: [&str; WIDTH_OF_ALL] = [
    "rot_x",
    "rot_y",
    "rot_z",
    "floor_hue",
    "spot_theta",
    "spot_phi",
    "spot_hue",
    "trans_x",
    "trans_y",
    "trans_z",
    "scale_x",
    "scale_y",
    "scale_z",
    "shear_xy",
    "shear_xz",
    "shear_yz",
    "camera_distance",
    "camera_elevation",
];

/// Names of the published columns, as the command line, cards and statistics call them.
pub const NAMES: [&str; WIDTH_WITH_TRANSLATION] = match ALL_NAMES.first_chunk() {
    Some(published) => *published,
    None => panic!("there are more columns than published ones"),
};

/// Which latents there are. Rendered data have all, but for the translation; imported ones what their table has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LatentColumns {
    /// The rotation of the object.
    pub rotation: bool,
    /// Hue of the floor; direction and hue of the spot.
    pub light: bool,
    /// The translation of the object.
    pub translation: bool,
    /// Its scale.
    pub scale: bool,
    /// Its shear.
    pub shear: bool,
    /// Distance and elevation of the camera.
    pub camera: bool,
}

impl LatentColumns {
    /// The columns of a rendered dataset with so many of them.
    pub fn rendered(width: usize) -> Option<Self> {
        // All but the camera come in threes, after the first.
        let camera = width.is_multiple_of(3);
        let object = if camera { width.checked_sub(2)? } else { width };
        let columns = Self {
            rotation: true,
            light: true,
            translation: object >= WIDTH_WITH_TRANSLATION,
            scale: object >= 13,
            shear: object >= 16,
            camera,
        };
        (columns.width() == width).then_some(columns)
    }

    /// The parts of a row of [`ALL_NAMES`] that are there.
    fn parts(self) -> [(bool, std::ops::Range<usize>); 6] {
        [
            (self.rotation, 0..3),
            (self.light, 3..WIDTH),
            (self.translation, WIDTH..WIDTH_WITH_TRANSLATION),
            (self.scale, WIDTH_WITH_TRANSLATION..13),
            (self.shear, 13..16),
            (self.camera, 16..WIDTH_OF_ALL),
        ]
    }

    /// The names of the columns, in order.
    pub fn names(self) -> Vec<&'static str> {
        let there = self.parts().into_iter().filter(|(is_there, _)| *is_there);
        there.flat_map(|(_, part)| ALL_NAMES[part].to_vec()).collect()
    }

    /// What is there of a row of all latents that imported data may have.
    pub fn of<T: Copy>(self, all: &[T; WIDTH_WITH_TRANSLATION]) -> Vec<T> {
        self.parts()
            .into_iter()
            .filter(|(is_there, part)| *is_there && part.end <= all.len())
            .flat_map(|(_, part)| all[part].to_vec())
            .collect()
    }

    /// The columns with these names, if they are those of whole parts, in order.
    pub fn with_names(names: &[String]) -> Option<Self> {
        let has = |name: &str| names.iter().any(|other| other == name);
        let columns = Self {
            rotation: has(NAMES[0]),
            light: has(NAMES[3]),
            translation: has(NAMES[WIDTH]),
            ..Self::default()
        };
        (columns.names() == names).then_some(columns)
    }

    /// Number of columns.
    pub fn width(self) -> usize {
        self.parts().into_iter().filter(|(is_there, _)| *is_there).map(|(_, part)| part.len()).sum()
    }
}

/// Rows of latents. A row of imported data without a pose has NaN in its place.
#[derive(Clone, Debug, PartialEq)]
pub struct LatentTable {
    columns: LatentColumns,
    rows: usize,
    values: Vec<f64>,
}

impl LatentTable {
    /// A table of a rendered dataset, of `values.len() / width` rows; `width` must be 7, 10, 13 or 16,
    /// or two more with the camera.
    pub fn new(width: usize, values: Vec<f64>) -> Option<Self> {
        let columns = LatentColumns::rendered(width)?;
        let fits = values.len().is_multiple_of(width);
        fits.then_some(Self { columns, rows: values.len() / width, values })
    }

    /// A table of `rows` rows of `columns`.
    pub fn with_columns(columns: LatentColumns, rows: usize, values: Vec<f64>) -> Option<Self> {
        (values.len() == rows * columns.width()).then_some(Self { columns, rows, values })
    }

    /// Which latents there are.
    pub fn columns(&self) -> LatentColumns {
        self.columns
    }

    /// Number of columns.
    pub fn width(&self) -> usize {
        self.columns.width()
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// One row as it is stored.
    pub fn row(&self, row: usize) -> &[f64] {
        &self.values[row * self.width()..(row + 1) * self.width()]
    }

    /// Whether the pose of a row is known.
    pub fn has_pose(&self, row: usize) -> bool {
        self.columns.rotation && self.row(row)[0].is_finite()
    }

    /// One row as scene parameters; what is not known is zero.
    pub fn get(&self, row: usize) -> Latents {
        let (mut all, has_pose) = ([0.0; WIDTH_OF_ALL], self.has_pose(row));
        let mut values = self.row(row).iter();
        for (index, (is_there, part)) in self.columns.parts().into_iter().enumerate() {
            if is_there {
                let is_known = has_pose || index == 1;
                let known = |value: &f64| if is_known { *value } else { 0.0 };
                all[part].iter_mut().zip(values.by_ref()).for_each(|(to, value)| *to = known(value));
            }
        }
        let [x, y, z, floor_hue, spot_theta, spot_phi, spot_hue, rest @ ..] = all;
        let [tx, ty, tz, sx, sy, sz, xy, xz, yz, distance, elevation] = rest;
        let shape = Shape { scale: [sx, sy, sz], shear: self.columns.shear.then_some([xy, xz, yz]) };
        Latents {
            rotation: [x, y, z],
            floor_hue,
            spot_theta,
            spot_phi,
            spot_hue,
            translation: self.columns.translation.then_some([tx, ty, tz]),
            shape: self.columns.scale.then_some(shape),
            camera: self.columns.camera.then_some(Camera { distance, elevation }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back() {
        let values: Vec<f64> = (0..20).map(f64::from).collect();
        let table = LatentTable::new(10, values.clone()).unwrap();
        assert_eq!(table.get(1).to_vec(), &values[10..]);
        let table = LatentTable::new(7, values[..14].to_vec()).unwrap();
        assert_eq!((table.rows(), table.get(1).to_vec()), (2, values[7..14].to_vec()));
        assert!(table.get(0).translation.is_none());
        let values: Vec<f64> = (1..33).map(f64::from).collect();
        let table = LatentTable::new(16, values.clone()).unwrap();
        assert_eq!((table.rows(), table.get(1).to_vec()), (2, values[16..].to_vec()));
        let table = LatentTable::new(13, values[..13].to_vec()).unwrap();
        assert_eq!(table.get(0).to_vec(), &values[..13]);
        assert_eq!(table.columns().names(), &ALL_NAMES[..13]);
        for width in [9, 12, 15, 18] {
            let table = LatentTable::new(width, values[..width].to_vec()).unwrap();
            assert_eq!(table.get(0).to_vec(), &values[..width]);
            let camera = Camera { distance: values[width - 2], elevation: values[width - 1] };
            assert_eq!(table.get(0).camera, Some(camera));
            assert_eq!(table.columns().names()[width - 2..], ["camera_distance", "camera_elevation"]);
            assert_eq!(table.columns().names()[..width - 2], ALL_NAMES[..width - 2]);
        }
        assert!(
            [0, 2, 3, 6, 8, 11, 19, 21].into_iter().all(|width| LatentColumns::rendered(width).is_none())
        );
        assert!(LatentTable::new(8, vec![0.0; 8]).is_none() && LatentTable::new(7, vec![0.0; 8]).is_none());
    }

    #[test]
    fn columns_that_are_missing_are_told_from_those_that_are_there() {
        let columns = LatentColumns { rotation: true, translation: true, ..LatentColumns::default() };
        assert_eq!(columns.names(), ["rot_x", "rot_y", "rot_z", "trans_x", "trans_y", "trans_z"]);
        let names: Vec<String> = columns.names().into_iter().map(str::to_owned).collect();
        assert_eq!(LatentColumns::with_names(&names), Some(columns));
        assert_eq!(LatentColumns::with_names(&names[1..]), None);
        let values = [[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [f64::NAN; 6]].concat();
        let table = LatentTable::with_columns(columns, 2, values).unwrap();
        assert_eq!(
            (table.get(0).rotation, table.get(0).translation),
            ([1.0, 2.0, 3.0], Some([4.0, 5.0, 6.0]))
        );
        assert!(table.has_pose(0) && !table.has_pose(1));
        assert_eq!((table.get(1).rotation, table.get(1).translation), ([0.0; 3], Some([0.0; 3])));
        let nothing = LatentTable::with_columns(LatentColumns::default(), 3, Vec::new()).unwrap();
        assert_eq!((nothing.rows(), nothing.width(), nothing.has_pose(2)), (3, 0, false));
        assert_eq!(nothing.get(1).to_vec(), [0.0; 7]);
    }
}
