//! ReLU: y = max(x, 0), elementwise. Backward: dx = dy where y > 0. (Behind a batch norm it is part of that.)

use super::elementwise::{self, Function};
use crate::cuda::kernels::Kernel;
use crate::error::Result;
use crate::tape::{Tape, Var};

/// The positive part of every element.
pub fn relu(tape: &mut Tape<'_>, x: &Var) -> Result<Var> {
    elementwise::apply::<Relu>(tape, x)
}

struct Relu;

impl Function for Relu {
    const NAME: &'static str = "relu";
    const KERNELS: [Kernel; 2] = [Kernel::relu, Kernel::relu_backward];

    fn value(x: f32) -> f32 {
        if x > 0.0 { x } else { 0.0 }
    }

    fn gradient(dy: f32, y: f32) -> f32 {
        if y > 0.0 { dy } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Case, check};

    #[test]
    fn gradient_agrees_with_finite_differences() {
        check(
            &Case::new(&[&[5, 11]]),
            |tape, inputs| relu(tape, &inputs[0]),
            |inputs| inputs[0].iter().map(|x| x.max(0.0)).collect(),
        );
    }
}
