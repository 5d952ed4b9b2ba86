//! The cases of the losses and of what they are computed from.

use super::Role::{Constant, Parameter};
use super::{Case, Unary};
use crate::error::Result;
use crate::ops;
use crate::tape::{Tape, Var};
use crate::tensor::Tensor;

type Binary = fn(&mut Tape<'_>, &Var, &Var) -> Result<Var>;

pub(super) fn cases(cases: &mut Vec<Case>) {
    let binary: [(&str, Binary); 2] =
        [("mse", ops::mse), ("activation_cross_entropy", ops::activation_cross_entropy)];
    for (name, op) in binary {
        let build = move |tape: &mut Tape<'_>, i: &[Var]| op(tape, &i[0], &i[1]);
        let case = Case::new(name, build);
        cases.push(case.positive("u", &[37, 33], Parameter).positive("v", &[37, 33], Parameter));
    }
    let unary: [(&str, Unary); 3] = [
        ("me_max", ops::me_max),
        ("variance_hinge", ops::variance_hinge),
        ("covariance", |tape, z| ops::covariance(tape, z, 36)),
    ];
    for (name, op) in unary {
        let build = move |tape: &mut Tape<'_>, i: &[Var]| op(tape, &i[0]);
        cases.push(Case::new(name, build).positive("z", &[37, 45], Parameter));
    }
    let build = |tape: &mut Tape<'_>, i: &[Var]| ops::sharpen(tape, &i[0], 0.25);
    cases.push(Case::new("sharpen", build).positive("a", &[37, 45], Parameter));
    for (name, groups) in [("info_nce", 19), ("info_nce of groups", 5)] {
        let build = move |tape: &mut Tape<'_>, i: &[Var]| {
            let numbers: Vec<i32> = (0..19).map(|row| row * 7 % groups).collect();
            let numbers = Tensor::from_slice(&tape.device(), [19], &numbers)?;
            ops::info_nce(tape, &i[0], &i[1], (groups < 19).then_some(&numbers), 0.5)
        };
        let case = Case::new(name, build);
        cases.push(case.input("u", &[19, 33], Parameter).input("v", &[19, 33], Parameter));
    }
    let build = |tape: &mut Tape<'_>, i: &[Var]| ops::hypernetwork(tape, &i[0], i[1].value(), &i[2]);
    cases.push(
        Case::new("hypernetwork", build)
            .input("embedding", &[9, 20], Parameter)
            .input("parameters", &[9, 4], Constant)
            .input("weight", &[400, 4], Parameter),
    );
    let build = |tape: &mut Tape<'_>, i: &[Var]| {
        let labels: Vec<i32> = (0..37).map(|row| row * 5 % 55).collect();
        let labels = Tensor::from_slice(&tape.device(), [37], &labels)?;
        ops::class_cross_entropy(tape, &i[0], &labels)
    };
    cases.push(Case::new("class_cross_entropy", build).input("logits", &[37, 55], Parameter));
    let build =
        |tape: &mut Tape<'_>, i: &[Var]| ops::weighted_sum(tape, &[(&i[0], 0.1), (&i[1], 5.0), (&i[0], 2.0)]);
    cases.push(Case::new("weighted_sum", build).input("a", &[1], Parameter).input("b", &[1], Parameter));
}
