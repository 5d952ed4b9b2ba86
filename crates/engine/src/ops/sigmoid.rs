//! Sigmoid: y = 1 / (1 + exp(-x)), elementwise. Backward: dx = dy y (1 - y).

use super::elementwise::{self, Function};
use crate::cuda::kernels::Kernel;
use crate::error::Result;
use crate::tape::{Tape, Var};

/// The sigmoid of every element.
pub fn sigmoid(tape: &mut Tape<'_>, x: &Var) -> Result<Var> {
    elementwise::apply::<Sigmoid>(tape, x)
}

struct Sigmoid;

impl Function for Sigmoid {
    const NAME: &'static str = "sigmoid";
    const KERNELS: [Kernel; 2] = [Kernel::sigmoid, Kernel::sigmoid_backward];

    fn value(x: f32) -> f32 {
        1.0 / (1.0 + (-x).exp())
    }

    fn gradient(dy: f32, y: f32) -> f32 {
        dy * y * (1.0 - y)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Case, check};

    #[test]
    fn gradient_agrees_with_finite_differences() {
        let case = Case::new(&[&[3, 7, 5]]);
        check(
            &case,
            |tape, inputs| sigmoid(tape, &inputs[0]),
            |inputs| inputs[0].iter().map(|x| 1.0 / (1.0 + (-x).exp())).collect(),
        );
    }
}
