//! The cases of heads that train side by side.

use super::Case;
use super::Role::{Constant, Parameter};
use crate::ops;
use crate::tape::{Tape, Var};
use crate::tensor::Tensor;

pub(super) fn cases(cases: &mut Vec<Case>) {
    for (rows, heads, width, out, shared) in
        [(37, 3, 33, 20, true), (37, 3, 33, 20, false), (64, 2, 128, 4, false), (5, 1, 7, 55, true)]
    {
        for relu in [false, true] {
            let build = move |tape: &mut Tape<'_>, i: &[Var]| match relu {
                true => ops::batched_linear_relu(tape, &i[0], &i[1], &i[2]),
                false => ops::batched_linear(tape, &i[0], &i[1], &i[2]),
            };
            let x: &[usize] = if shared { &[rows, width] } else { &[rows, heads, width] };
            let name = format!("batched_linear {heads} x {width}->{out}, shared: {shared}, ReLU: {relu}");
            let case = Case::new(name, build).input("x", x, Parameter);
            let case = case.input("weight", &[heads, out, width], Parameter);
            cases.push(case.input("bias", &[heads, out], Parameter));
        }
    }
    let build = |tape: &mut Tape<'_>, i: &[Var]| {
        let sizes = Tensor::from_slice(&tape.device(), [3], &[4_i32, 1, 3])?;
        ops::grouped_mse(tape, &i[0], i[1].value(), &sizes)
    };
    let case = Case::new("grouped_mse", build).input("y", &[37, 3, 4], Parameter);
    cases.push(case.input("targets", &[37, 3, 4], Constant));
    for width in [20, 7] {
        let build = |tape: &mut Tape<'_>, i: &[Var]| {
            let rows: Vec<i32> = (0..50).map(|row| row * 5 % 37).collect();
            let device = tape.device();
            let all = Tensor::from_slice(&device, [50], &rows)?;
            let mut rows = Tensor::from_slice(&device, [19], &[0_i32; 19])?;
            ops::copy_rows(&device, &all, 30, &mut rows)?;
            let mut gathered = ops::gather_rows(&device, i[0].value(), &rows)?;
            let other = ops::gather_rows(&device, i[1].value(), &rows)?;
            ops::add_scaled(&device, &other, 0.5, &mut gathered)?;
            Ok(Var::constant(gathered))
        };
        let case = Case::new(format!("gather_rows of {width}"), build).input("table", &[37, width], Constant);
        cases.push(case.input("other", &[37, width], Constant));
    }
}
