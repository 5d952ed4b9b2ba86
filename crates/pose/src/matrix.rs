//! Small square matrices: the form in which a group multiplies poses.

use std::fmt;

/// The largest side that any group has.
const LARGEST: usize = 4;

/// Below this share of the largest possible value a determinant counts as zero.
const SINGULAR: f64 = 1e-9;

/// An invertible matrix of side 3 or 4, row-major.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Matrix {
    side: usize,
    entries: [[f64; LARGEST]; LARGEST],
}

/// Numbers that are no invertible matrix.
#[derive(Clone, Debug, PartialEq)]
pub enum NotAMatrix {
    /// Neither 9 nor 16 numbers.
    Count(usize),
    /// NaN or infinity at a row and a column, counted from 1.
    NotFinite(usize, usize),
    /// A matrix that maps a direction to zero.
    Singular,
}

impl fmt::Display for NotAMatrix {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => {
                write!(
                    formatter,
                    "a matrix has 9 numbers (3x3) or 16 (4x4), row by row, but there are {count}"
                )
            }
            Self::NotFinite(row, column) => {
                write!(formatter, "row {row}, column {column} of the matrix is not a finite number")
            }
            Self::Singular => formatter.write_str("the matrix is singular: it has no inverse"),
        }
    }
}

impl std::error::Error for NotAMatrix {}

impl Matrix {
    /// The matrix that changes nothing.
    pub fn identity(side: usize) -> Self {
        let mut entries = [[0.0; LARGEST]; LARGEST];
        (0..side.min(LARGEST)).for_each(|i| entries[i][i] = 1.0);
        Self { side: side.min(LARGEST), entries }
    }

    /// The block `linear` (of side 2 or 3), the column `translation` beside it, and the last row `(0, .., 0, 1)`.
    pub fn affine<const N: usize>(linear: [[f64; N]; N], translation: [f64; N]) -> Self {
        let mut matrix = Self::identity(N + 1);
        for (i, (row, column)) in linear.iter().zip(translation).enumerate() {
            matrix.entries[i][..N].copy_from_slice(row);
            matrix.entries[i][N] = column;
        }
        matrix
    }

    /// The matrix with these entries, row by row; refused where it is not square, not finite or not invertible.
    pub fn from_rows(entries: &[f64]) -> Result<Self, NotAMatrix> {
        let side = match entries.len() {
            9 => 3,
            16 => 4,
            count => return Err(NotAMatrix::Count(count)),
        };
        if let Some(at) = entries.iter().position(|entry| !entry.is_finite()) {
            return Err(NotAMatrix::NotFinite(at / side + 1, at % side + 1));
        }
        let mut matrix = Self::identity(side);
        for (row, values) in matrix.entries.iter_mut().zip(entries.chunks_exact(side)) {
            row[..side].copy_from_slice(values);
        }
        matrix.inverse().map(|_| matrix).ok_or(NotAMatrix::Singular)
    }

    /// Number of rows.
    pub fn side(&self) -> usize {
        self.side
    }

    /// One entry.
    pub fn at(&self, row: usize, column: usize) -> f64 {
        self.entries[row][column]
    }

    /// Its first rows and columns, as a matrix of their own.
    pub(crate) fn corner(mut self, side: usize) -> Self {
        self.side = self.side.min(side);
        self
    }

    /// Puts a number in the last row.
    pub(crate) fn set_last_row(&mut self, column: usize, value: f64) {
        self.entries[self.side - 1][column] = value;
    }

    /// The entries, row by row.
    pub fn to_rows(&self) -> Vec<f64> {
        self.entries[..self.side].iter().flat_map(|row| row[..self.side].to_vec()).collect()
    }

    /// Where a point goes: the coordinates are divided by the last one, which is 1 but for perspective.
    pub fn apply<const N: usize>(&self, point: [f64; N]) -> [f64; N] {
        let row = |i: usize| -> f64 {
            (0..N).map(|j| self.entries[i][j] * point[j]).sum::<f64>() + self.entries[i][N]
        };
        let last = row(N);
        std::array::from_fn(|i| row(i) / last)
    }

    /// The inverse, by elimination with the largest pivot of each column; `None` for a singular matrix.
    pub fn inverse(&self) -> Option<Self> {
        let n = self.side;
        let (mut left, mut right) = (self.entries, Self::identity(n).entries);
        // Rows of very different length are as invertible as equal ones.
        let lengths: f64 = (0..n).map(|i| row_length(&self.entries[i][..n])).product();
        let mut determinant = 1.0;
        for column in 0..n {
            let pivot = (column..n).fold(column, |best, row| {
                if left[row][column].abs() > left[best][column].abs() { row } else { best }
            });
            left.swap(column, pivot);
            right.swap(column, pivot);
            let divisor = left[column][column];
            determinant *= divisor;
            if divisor == 0.0 || divisor.is_nan() {
                return None;
            }
            for j in 0..n {
                left[column][j] /= divisor;
                right[column][j] /= divisor;
            }
            for row in (0..n).filter(|&row| row != column) {
                let factor = left[row][column];
                for j in 0..n {
                    left[row][j] -= factor * left[column][j];
                    right[row][j] -= factor * right[column][j];
                }
            }
        }
        let is_regular = determinant.abs() > SINGULAR * lengths
            && right.iter().all(|row| row.iter().all(|entry| entry.is_finite()));
        is_regular.then_some(Self { side: n, entries: right })
    }
}

fn row_length(row: &[f64]) -> f64 {
    row.iter().map(|entry| entry * entry).sum::<f64>().sqrt()
}

impl std::ops::Mul for Matrix {
    type Output = Self;

    /// The product of matrices of the same side.
    fn mul(self, other: Self) -> Self {
        let n = self.side.min(other.side);
        let mut product = Self::identity(n);
        for i in 0..n {
            for j in 0..n {
                product.entries[i][j] = (0..n).map(|k| self.entries[i][k] * other.entries[k][j]).sum();
            }
        }
        product
    }
}
