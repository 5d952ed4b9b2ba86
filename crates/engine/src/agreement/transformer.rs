//! The cases of the vision transformer: each operation at the published sizes (few samples) and at odd ones.

use super::Role::{Activation, Parameter};
use super::{Case, Unary};
use crate::ops::{self, Padding};
use crate::tape::{Tape, Var};

pub(super) fn cases(cases: &mut Vec<Case>) {
    norms(cases);
    attention(cases);
    tokens(cases);
}

fn norms(cases: &mut Vec<Case>) {
    for (rows, width) in [(771, 192), (5, 7), (33, 40), (3, 768), (2, 129)] {
        let build = |tape: &mut Tape<'_>, i: &[Var]| ops::layer_norm(tape, &i[0], &i[1], &i[2], 1e-6);
        cases.push(
            Case::new(format!("layer_norm {rows}x{width}"), build)
                .input("x", &[rows, width], Activation)
                .positive("gamma", &[width], Parameter)
                .input("beta", &[width], Parameter),
        );
        let build = |tape: &mut Tape<'_>, i: &[Var]| {
            let both = ops::linear_add_norm(tape, &i[0], &i[1], [&i[2], &i[3]], [&i[4], &i[5]], 1e-6)?;
            ops::concat(tape, &[&both[0], &both[1]])
        };
        cases.push(
            Case::new(format!("linear_add_norm {rows}x48 -> {width}"), build)
                .input("x", &[rows, width], Activation)
                .input("z", &[rows, 48], Activation)
                .input("weight", &[width, 48], Parameter)
                .input("bias", &[width], Parameter)
                .positive("gamma", &[width], Parameter)
                .input("beta", &[width], Parameter),
        );
    }
    let build = |tape: &mut Tape<'_>, i: &[Var]| ops::add(tape, &i[0], &i[1]);
    for shape in [[6, 192], [5, 7]] {
        let case = Case::new(format!("add {shape:?}"), build);
        cases.push(case.input("a", &shape, Activation).input("b", &shape, Activation));
    }
    for shape in [[32, 768], [5, 7], [3, 20]] {
        let gelu: Unary = ops::gelu;
        let build = move |tape: &mut Tape<'_>, i: &[Var]| gelu(tape, &i[0]);
        cases.push(Case::new(format!("gelu {shape:?}"), build).input("x", &shape, Activation));
    }
    for (rows, width, out) in [(771, 192, 768), (33, 24, 40), (5, 7, 3)] {
        let build = |tape: &mut Tape<'_>, i: &[Var]| ops::linear_gelu(tape, &i[0], &i[1], &i[2]);
        cases.push(
            Case::new(format!("linear_gelu {rows}x{width} -> {out}"), build)
                .input("x", &[rows, width], Activation)
                .input("weight", &[out, width], Parameter)
                .input("bias", &[out], Parameter),
        );
    }
}

fn attention(cases: &mut Vec<Case>) {
    for (batch, tokens, heads, size) in [
        (3, 257, 3, 64),
        (2, 5, 3, 4),
        (1, 17, 1, 33),
        (2, 50, 2, 32),
        (3, 16, 2, 64),
        (1, 600, 2, 64),
        (2, 1, 1, 64),
    ] {
        let width = heads * size;
        let title = format!("{batch} x {tokens} x {heads} x {size}");
        let build = move |tape: &mut Tape<'_>, i: &[Var]| ops::attention(tape, &i[0], heads);
        cases.push(Case::new(format!("attention {title}"), build).input(
            "qkv",
            &[batch, tokens, 3 * width],
            Activation,
        ));
        let build =
            move |tape: &mut Tape<'_>, i: &[Var]| ops::linear_attention(tape, &i[0], &i[1], &i[2], heads);
        cases.push(
            Case::new(format!("linear_attention {title}"), build)
                .input("x", &[batch, tokens, 24], Activation)
                .input("weight", &[3 * width, 24], Parameter)
                .input("bias", &[3 * width], Parameter),
        );
    }
    // Scores far apart, and qkv used twice.
    let build = |tape: &mut Tape<'_>, i: &[Var]| {
        let sharp = ops::add(tape, &i[0], &i[0])?;
        let first = ops::attention(tape, &sharp, 2)?;
        let second = ops::attention(tape, &sharp, 1)?;
        ops::concat(tape, &[&first, &second])
    };
    cases.push(Case::new("attention, qkv used twice", build).input("qkv", &[2, 37, 3 * 128], Activation));
}

fn tokens(cases: &mut Vec<Case>) {
    for (size, patch, out) in [([2, 64, 64], 16, 192), ([3, 24, 40], 8, 20)] {
        let build = move |tape: &mut Tape<'_>, i: &[Var]| {
            let [batch, height, width] = size;
            let bytes: Vec<u8> = (0..batch * height * width * 3).map(|i| (i * 7919 % 251) as u8).collect();
            let (mean, std) = ([0.5, 0.4, 0.6], [0.1, 0.2, 0.3]);
            let images = ops::Images::from_bytes(&tape.device(), size, &bytes, mean, std)?;
            ops::image_conv(tape, &images, &i[0], Some(&i[1]), patch, Padding::default())
        };
        cases.push(
            Case::new(format!("image_conv {patch}x{patch}/{patch} {size:?} -> {out}"), build)
                .input("weight", &[out, patch, patch, 3], Parameter)
                .input("bias", &[out], Parameter),
        );
    }
    for (batch, side, width) in [(5, 4, 192), (3, 2, 5)] {
        let tokens = 1 + side * side;
        let build = |tape: &mut Tape<'_>, i: &[Var]| ops::embed_tokens(tape, &i[0], &i[1], &i[2]);
        cases.push(
            Case::new(format!("embed_tokens {batch} x {side} x {side} x {width}"), build)
                .input("patches", &[batch, side, side, width], Activation)
                .input("class", &[1, 1, width], Parameter)
                .input("positions", &[1, tokens, width], Parameter),
        );
        let build = |tape: &mut Tape<'_>, i: &[Var]| ops::drop_first_token(tape, &i[0]);
        cases.push(Case::new(format!("drop_first_token {batch} x {tokens} x {width}"), build).input(
            "x",
            &[batch, tokens, width],
            Activation,
        ));
    }
}
