//! Batch norm against float64 references, and over several ranks.

use super::*;
use crate::ops::testing::{Case, check};

fn reference(inputs: &[Vec<f64>], channels: usize, residual: bool, relu: bool) -> Vec<f64> {
    let x = &inputs[0];
    let rows = x.len() / channels;
    let mut y = vec![0.0; x.len()];
    for c in 0..channels {
        let column: Vec<f64> = (0..rows).map(|r| x[r * channels + c]).collect();
        let mean = column.iter().sum::<f64>() / rows as f64;
        let variance = column.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / rows as f64;
        for r in 0..rows {
            let i = r * channels + c;
            y[i] = inputs[1][c] * (x[i] - mean) / (variance + 1e-5).sqrt() + inputs[2][c];
            y[i] += if residual { inputs[3][i] } else { 0.0 };
            y[i] = if relu { y[i].max(0.0) } else { y[i] };
        }
    }
    y
}

#[test]
fn gradients_agree_with_finite_differences() {
    for (dims, residual, relu) in [
        ([3, 5, 7, 9], false, false),
        ([2, 3, 3, 33], false, true),
        ([9, 7, 5, 8], true, true),
        ([1, 2, 1, 1], true, true),
    ] {
        let channels = dims[3];
        let case = Case::new(&[&dims, &[channels], &[channels], &dims]).with_channels(channels);
        let case = if residual { case } else { case.constant(3) };
        check(
            &case,
            |tape, inputs| {
                let norm = ([&inputs[1], &inputs[2]], crate::ops::testing::running(tape));
                match residual {
                    true => norm_add_relu(tape, &inputs[0], norm, Shortcut::Identity(&inputs[3])),
                    false => batch_norm(tape, &inputs[0], norm.0, norm.1, relu),
                }
            },
            |inputs| reference(inputs, channels, residual, relu),
        );
    }
}

/// As many ranks as it says, all with the same rows.
#[derive(Debug)]
struct Alike(usize);

impl crate::Collective for Alike {
    fn ranks(&self) -> usize {
        self.0
    }
    fn all_reduce_sum(&self, tensor: &mut Tensor) -> Result<()> {
        let ranks = self.0 as f32;
        tensor.as_mut_slice::<f32>()?.iter_mut().for_each(|value| *value *= ranks);
        Ok(())
    }
}

#[test]
fn ranks_with_the_same_rows_give_what_one_rank_gives_with_all_of_them() {
    let case = Case::new(&[&[4, 3], &[3], &[3]]);
    // The gradient of x, and the running statistics.
    let run = |copies: usize, ranks: usize| {
        let mut store = crate::ops::testing::store(3);
        let device = store.device().clone();
        let mut tape = Tape::training(&mut store).with_collective(std::sync::Arc::new(Alike(ranks)));
        let rows = case.inputs[0].repeat(copies);
        let x = tape.watch(Tensor::from_slice(&device, [4 * copies, 3], &rows).unwrap());
        let [gamma, beta] =
            [1, 2].map(|input| Var::constant(Tensor::from_slice(&device, [3], &case.inputs[input]).unwrap()));
        let running = crate::ops::testing::running(&tape);
        let y = batch_norm(&mut tape, &x, [&gamma, &beta], running, true).unwrap();
        let seed: Vec<f32> = (0..12).map(|i| (i as f32).sin()).collect::<Vec<_>>().repeat(copies);
        tape.backward_from(&y, Tensor::from_slice(&device, y.shape(), &seed).unwrap()).unwrap();
        let mut found = y.value().to_f32().unwrap()[..12].to_vec();
        found.extend(&tape.gradient(&x).unwrap().to_f32().unwrap()[..12]);
        for id in [running.mean, running.variance] {
            found.extend(tape.buffer(id).unwrap().to_f32().unwrap());
        }
        found
    };
    let (whole, ranks, alone) = (run(3, 1), run(1, 3), run(1, 1));
    let apart = |other: &[f32]| whole.iter().zip(other).map(|(a, b)| (a - b).abs()).fold(0.0_f32, f32::max);
    assert!(apart(&ranks) < 1e-6, "{whole:?} {ranks:?}");
    // The running variance is unbiased, so the number of rows shows.
    assert!(apart(&alone) > 1e-3);
}

#[test]
fn a_shortcut_is_normalised_by_its_own_norm() {
    let (dims, channels) = ([3, 2, 4, 5], 5);
    check(
        &Case::new(&[&dims, &[channels], &[channels], &dims, &[channels], &[channels]])
            .with_channels(channels),
        |tape, i| {
            let running = crate::ops::testing::running(tape);
            let shortcut = Shortcut::Normalised(&i[3], ([&i[4], &i[5]], running));
            norm_add_relu(tape, &i[0], ([&i[1], &i[2]], running), shortcut)
        },
        |i| {
            let shortcut = reference(&i[3..], channels, false, false);
            let inputs = [i[0].clone(), i[1].clone(), i[2].clone(), shortcut];
            reference(&inputs, channels, true, true)
        },
    );
}
