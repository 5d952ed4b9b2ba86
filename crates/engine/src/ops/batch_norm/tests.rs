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

#[test]
fn ranks_give_what_one_rank_gives_with_all_of_their_rows() {
    use crate::collective::in_threads;
    let rows: Vec<f32> = (0..36).map(|i| 1.0 + (i as f32 * 1.7).sin()).collect();
    let seeds: Vec<f32> = (0..36).map(|i| (i as f32).sin()).collect();
    // The output, the gradient of x, the running statistics, and the gradients of gamma and beta.
    let run = |ranks: std::sync::Arc<dyn Collective>| {
        let share = ranks.share(12);
        let (count, range) = (share.len(), 3 * share.start..3 * share.end);
        let mut builder = crate::StoreBuilder::new();
        let mut one = |name: &str, value| {
            builder.parameter(name, [3], crate::Layout::Published, crate::Initialise::Constant(value))
        };
        let affine = [one("gamma", 1.5), one("beta", 0.2)];
        let running = RunningStatistics {
            mean: builder.buffer("mean", [3], 0.0),
            variance: builder.buffer("variance", [3], 1.0),
            batches: builder.count("batches"),
        };
        let mut store = builder.build(&crate::Device::cpu(), 0).unwrap();
        let device = store.device().clone();
        let mut tape = Tape::training(&mut store).with_collective(&ranks, Some(12));
        let x = tape.watch(Tensor::from_slice(&device, [count, 3], &rows[range.clone()]).unwrap());
        let [gamma, beta] = affine.map(|id| tape.parameter(id));
        let y = batch_norm(&mut tape, &x, [&gamma, &beta], running, true).unwrap();
        tape.backward_from(&y, Tensor::from_slice(&device, y.shape(), &seeds[range]).unwrap()).unwrap();
        let own = [y.value().to_f32().unwrap(), tape.gradient(&x).unwrap().to_f32().unwrap()];
        drop((x, gamma, beta, y, tape));
        let mut shared = Vec::new();
        for id in [running.mean, running.variance] {
            shared.extend(store.buffer_tensor(id).unwrap().to_f32().unwrap());
        }
        for id in affine {
            shared.extend(store.export(crate::State::Gradient, id).unwrap());
        }
        (own, shared)
    };
    let ([y, dx], shared) = run(std::sync::Arc::new(crate::SingleRank));
    let apart = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0_f32, f32::max);
    for count in [2, 3, 4, 5] {
        let threads: Vec<_> = std::thread::scope(|scope| {
            let all: Vec<_> = in_threads(count).into_iter().map(|rank| scope.spawn(|| run(rank))).collect();
            all.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let joined =
            |which: usize| threads.iter().flat_map(|(own, _)| own[which].clone()).collect::<Vec<_>>();
        assert!(apart(&joined(0), &y) < 2e-6 && apart(&joined(1), &dx) < 2e-6, "{count}");
        for (_, found) in &threads {
            assert!(apart(found, &shared) < 2e-6, "{count}: {found:?} {shared:?}");
            assert_eq!(found, &threads[0].1, "every rank has the same");
        }
    }
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
