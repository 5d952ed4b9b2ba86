//! Losses: each takes matrices of one row per sample and gives a single float32 number, summed in float64 on the
//! CPU. Formulas as in the published methods; weights come in by [`weighted_sum`].

mod class_cross_entropy;
mod covariance;
mod cross_entropy;
mod cuda;
mod grouped_mse;
mod info_nce;
mod me_max;
mod mse;
mod variance_hinge;
mod weighted_sum;

pub use class_cross_entropy::class_cross_entropy;
pub use covariance::covariance;
pub use cross_entropy::activation_cross_entropy;
pub use grouped_mse::grouped_mse;
pub use info_nce::info_nce;
pub use me_max::me_max;
pub use mse::mse;
pub use variance_hinge::variance_hinge;
pub use weighted_sum::weighted_sum;

use crate::error::{Error, Result};
use crate::ops::operation::Spec;
use crate::shape::Shape;
use crate::tensor::DType;

/// Rows and columns of a matrix that is not empty.
fn matrix(op: &'static str, shape: Shape) -> Result<(usize, usize)> {
    match shape.dims() {
        &[rows, columns] if rows > 0 && columns > 0 => Ok((rows, columns)),
        _ => Err(Error::shape(op, format!("{shape} must be a matrix of at least one row and column"))),
    }
}

/// What a loss is: one number.
fn number() -> Spec {
    ([1].into(), DType::F32)
}
