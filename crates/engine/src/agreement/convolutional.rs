//! The operations of convolutional networks: convolutions, batch norms, pooling, and linear layers.

use super::Role::{Activation, Parameter, Value};
use super::{Case, Role, Unary, running};
use crate::error::Result;
use crate::ops::{self, Padding, Shortcut};
use crate::tape::{Tape, Var};

pub(super) fn cases(cases: &mut Vec<Case>) {
    convolutions(cases, Activation);
    convolutions(cases, Value);
    first_layers(cases);
    linear_layers(cases);
    norms(cases, Activation);
    norms(cases, Value);
    pools(cases, Activation);
    pools(cases, Value);
    elementwise(cases);
}

/// How a case names the type of its inputs.
fn suffix(role: Role) -> &'static str {
    if role == Value { ", as values" } else { "" }
}

fn convolutions(cases: &mut Vec<Case>, role: Role) {
    let right_bottom = Padding::before_after(0, 1);
    for (x, out, kernel, stride, padding) in [
        ([3, 9, 13, 8], 16, 3, 1, Padding::all(1)),
        ([2, 16, 16, 64], 64, 3, 1, Padding::all(1)),
        ([5, 8, 8, 32], 64, 3, 2, right_bottom),
        ([2, 7, 10, 24], 40, 3, 2, right_bottom),
        ([3, 6, 6, 64], 36, 3, 1, Padding::all(1)),
        ([2, 5, 7, 7], 5, 3, 1, Padding::all(1)),
        ([4, 8, 8, 64], 128, 1, 2, Padding::default()),
        ([3, 9, 5, 16], 24, 1, 2, Padding::default()),
        ([2, 6, 7, 8], 8, 1, 1, Padding::default()),
    ] {
        let name = format!("conv2d {kernel}x{kernel}/{stride} {x:?} -> {out}{}", suffix(role));
        let build = move |tape: &mut Tape<'_>, i: &[Var]| ops::conv2d(tape, &i[0], &i[1], stride, padding);
        let weight = [out, kernel, kernel, x[3]];
        cases.push(Case::new(name, build).input("x", &x, role).input("weight", &weight, Parameter));
    }
    // x is used twice, so that the second gradient is added to the first.
    cases.push(
        Case::new(format!("conv2d, x used three times{}", suffix(role)), |tape, i| {
            let first = ops::conv2d(tape, &i[0], &i[1], 2, Padding::before_after(0, 1))?;
            let second = ops::conv2d(tape, &i[0], &i[2], 2, Padding::default())?;
            let third = ops::conv2d(tape, &i[0], &i[1], 2, Padding::before_after(0, 1))?;
            let pair = ops::concat(tape, &[&first, &second])?;
            ops::concat(tape, &[&pair, &third])
        })
        .input("x", &[3, 8, 8, 16], role)
        .input("weight 3x3", &[32, 3, 3, 16], Parameter)
        .input("weight 1x1", &[32, 1, 1, 16], Parameter),
    );
}

fn first_layers(cases: &mut Vec<Case>) {
    for (size, out) in [([3, 33, 41], 64), ([2, 64, 64], 8), ([2, 70, 134], 64)] {
        let name = format!("image_conv 7x7/2 {size:?} -> {out}");
        let build = move |tape: &mut Tape<'_>, i: &[Var]| {
            let [batch, height, width] = size;
            let bytes: Vec<u8> = (0..batch * height * width * 3).map(|i| (i * 7919 % 251) as u8).collect();
            let (mean, std) = ([0.5, 0.4, 0.6], [0.1, 0.2, 0.3]);
            let images = ops::Images::from_bytes(&tape.device(), size, &bytes, mean, std)?;
            ops::image_conv(tape, &images, &i[0], None, 2, Padding::before_after(2, 3))
        };
        cases.push(Case::new(name, build).input("weight", &[out, 7, 7, 3], Parameter));
    }
    for (size, out) in [([3, 64, 64], 64), ([5, 36, 52], 64), ([2, 33, 141], 64), ([2, 32, 32], 8)] {
        let name = format!("stem {size:?} -> {out}");
        let build = move |tape: &mut Tape<'_>, i: &[Var]| {
            let [batch, height, width] = size;
            let bytes: Vec<u8> = (0..batch * height * width * 3).map(|i| (i * 7919 % 251) as u8).collect();
            let (mean, std) = ([0.5, 0.4, 0.6], [0.1, 0.2, 0.3]);
            let images = ops::Images::from_bytes(&tape.device(), size, &bytes, mean, std)?;
            let running = running(tape)?;
            ops::stem(tape, &images, &i[0], &i[1], &i[2], running)
        };
        let case = Case::new(name, build)
            .with_channels(out)
            .with_bf16_bound(0.08)
            .input("weight", &[out, 7, 7, 3], Parameter)
            .positive("gamma", &[out], Parameter)
            .input("beta", &[out], Parameter);
        cases.push(case);
    }
}

fn norms(cases: &mut Vec<Case>, role: Role) {
    for (shape, relu) in [([3, 5, 7, 9], false), ([2, 13, 11, 64], true), ([2, 3, 4, 288], false)] {
        let name = format!("batch_norm {shape:?}{}{}", if relu { ", relu" } else { "" }, suffix(role));
        let build = move |tape: &mut Tape<'_>, i: &[Var]| {
            let running = running(tape)?;
            ops::batch_norm(tape, &i[0], [&i[1], &i[2]], running, relu)
        };
        cases.push(normed(name, build, &shape, role));
    }
    for shape in [[9, 7, 5, 8], [4, 8, 8, 512]] {
        let build = |tape: &mut Tape<'_>, i: &[Var]| {
            let norm = ([&i[1], &i[2]], running(tape)?);
            ops::norm_add_relu(tape, &i[0], norm, Shortcut::Identity(&i[3]))
        };
        let name = format!("norm_add_relu {shape:?}{}", suffix(role));
        cases.push(normed(name, build, &shape, role).input("shortcut", &shape, role));
    }
    // With parameters of its own, as in networks, and with the same.
    for (shape, own) in [([2, 3, 1, 300], 4), ([3, 9, 5, 64], 4), ([5, 17, 19, 128], 4), ([3, 9, 5, 64], 1)] {
        let build = move |tape: &mut Tape<'_>, i: &[Var]| {
            let (norm, other) = (([&i[1], &i[2]], running(tape)?), ([&i[own], &i[own + 1]], running(tape)?));
            ops::norm_add_relu(tape, &i[0], norm, Shortcut::Normalised(&i[3], other))
        };
        let name = format!("norm_add_relu {shape:?} with norm {own}{}", suffix(role));
        let case = normed(name, build, &shape, role).input("shortcut", &shape, role);
        let (gamma, beta) = ("gamma of the shortcut", "beta of the shortcut");
        let case = case.positive(gamma, &[shape[3]], Parameter).input(beta, &[shape[3]], Parameter);
        cases.push(case);
    }
    for (shape, stride) in [([3, 6, 10, 16], 2), ([2, 7, 5, 9], 1)] {
        let build = move |tape: &mut Tape<'_>, i: &[Var]| {
            let (norm, padding) = (([&i[1], &i[2]], running(tape)?), Padding::before_after(0, 1));
            ops::norm_relu_conv(tape, &i[0], norm, &i[3], stride, padding)
        };
        let name = format!("norm_relu_conv /{stride} {shape:?}{}", suffix(role));
        cases.push(normed(name, build, &shape, role).input("weight", &[8, 3, 3, shape[3]], Parameter));
    }
}

/// A case of x, gamma and beta, with running statistics.
fn normed(
    name: String,
    build: impl Fn(&mut Tape<'_>, &[Var]) -> Result<Var> + 'static,
    shape: &[usize; 4],
    role: Role,
) -> Case {
    Case::new(name, build)
        .with_channels(shape[3])
        .input("x", shape, role)
        .positive("gamma", &[shape[3]], Parameter)
        .input("beta", &[shape[3]], Parameter)
}

fn pools(cases: &mut Vec<Case>, role: Role) {
    for shape in [[2, 12, 16, 8], [3, 7, 9, 5]] {
        let build =
            |tape: &mut Tape<'_>, i: &[Var]| ops::max_pool(tape, &i[0], 3, 2, Padding::before_after(0, 1));
        let name = format!("max_pool {shape:?}{}", suffix(role));
        cases.push(Case::new(name, build).input("x", &shape, role));
    }
    let build = |tape: &mut Tape<'_>, i: &[Var]| ops::avg_pool(tape, &i[0]);
    cases.push(Case::new(format!("avg_pool{}", suffix(role)), build).input("x", &[3, 4, 5, 24], role));
}

fn elementwise(cases: &mut Vec<Case>) {
    let unary: [(&str, Unary); 2] = [("sigmoid", ops::sigmoid), ("relu", ops::relu)];
    for (name, op) in unary {
        let build = move |tape: &mut Tape<'_>, i: &[Var]| op(tape, &i[0]);
        cases.push(Case::new(name, build).input("x", &[3, 4, 5, 24], Activation));
    }
    let build = |tape: &mut Tape<'_>, i: &[Var]| ops::columns(tape, &i[0], 3, 7);
    cases.push(Case::new("columns", build).input("x", &[5, 13], Activation));
}

fn linear_layers(cases: &mut Vec<Case>) {
    for (rows, width, out) in [(33, 40, 72), (8, 512, 2048), (5, 7, 3)] {
        let build = |tape: &mut Tape<'_>, i: &[Var]| ops::linear(tape, &i[0], &i[1], Some(&i[2]));
        let case = Case::new(format!("linear {rows}x{width} -> {out}"), build)
            .input("x", &[rows, width], Activation)
            .input("weight", &[out, width], Parameter)
            .input("bias", &[out], Parameter);
        cases.push(case);
    }
}
