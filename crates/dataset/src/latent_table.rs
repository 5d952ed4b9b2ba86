//! The latents of many views as one table, in the published order of columns.

use scene::Latents;

/// Columns of 3DIEBench: rotations, floor hue, spot theta, spot phi, spot hue.
pub const WIDTH: usize = 7;
/// Columns of 3DIEBench-T: the same and the translation.
pub(crate) const WIDTH_WITH_TRANSLATION: usize = 10;

/// Names of the columns, as the command line, cards and statistics call them.
pub const NAMES: [&str; WIDTH_WITH_TRANSLATION] = [
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
];

/// Rows of 7 or 10 numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct LatentTable {
    width: usize,
    values: Vec<f64>,
}

impl LatentTable {
    /// A table of `values.len() / width` rows; `width` must be 7 or 10.
    pub fn new(width: usize, values: Vec<f64>) -> Option<Self> {
        let fits = matches!(width, WIDTH | WIDTH_WITH_TRANSLATION) && values.len().is_multiple_of(width);
        fits.then_some(Self { width, values })
    }

    /// Number of columns: 7 or 10.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.values.len() / self.width
    }

    /// One row as it is stored.
    pub fn row(&self, row: usize) -> &[f64] {
        &self.values[row * self.width..(row + 1) * self.width]
    }

    /// One row as scene parameters.
    pub fn get(&self, row: usize) -> Latents {
        let row = self.row(row);
        Latents {
            rotation: [row[0], row[1], row[2]],
            floor_hue: row[3],
            spot_theta: row[4],
            spot_phi: row[5],
            spot_hue: row[6],
            translation: (self.width == WIDTH_WITH_TRANSLATION).then(|| [row[7], row[8], row[9]]),
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
        assert!(LatentTable::new(9, vec![0.0; 9]).is_none() && LatentTable::new(7, vec![0.0; 8]).is_none());
    }
}
