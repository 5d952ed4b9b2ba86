//! The objectives on given embeddings: against the numbers of the published loss code (float64), and, where there
//! are none, against float64 references written here, with gradients by finite differences.

mod capsie_tests;
mod variants;

use engine::ops::{self, Images};
use engine::{Device, ParameterStore, State, StoreBuilder, Tape, Tensor, Var};
use pose::ViewPose;
use random::{Random, Stream};

use crate::batch::{PairBatch, PairTargets};
use crate::config::{MethodConfig, PoseNorm, Regularise, Task, Transform};
use crate::method::{Embedding, Method, PartName};
use crate::registry::MethodName;

/// Embeddings by name, view 1 and view 2, row-major.
type Parts = Vec<(&'static str, [Vec<f64>; 2])>;

struct Case<'a> {
    method: &'a dyn Method,
    rows: usize,
    targets: PairTargets,
    device: Device,
}

struct Outcome {
    loss: f64,
    terms: Vec<(&'static str, f64)>,
    gradients: Vec<[Vec<f32>; 2]>,
}

impl Outcome {
    fn term(&self, name: &str) -> f64 {
        self.terms.iter().find(|(term, _)| *term == name).unwrap().1
    }
}

impl Case<'_> {
    /// Runs the loss on `parts`; the part called `representation` goes to the views.
    fn run(&self, store: &mut ParameterStore, parts: &Parts) -> Outcome {
        store.clear_gradients();
        let mut tape = Tape::training(store);
        let vars: Vec<(&'static str, [Var; 2])> = parts
            .iter()
            .map(|(name, views)| {
                let mut watch = |values: &Vec<f64>| {
                    let values: Vec<f32> = values.iter().map(|&v| v as f32).collect();
                    let shape = [self.rows, values.len() / self.rows];
                    tape.watch(Tensor::from_slice(&self.device, shape, &values).unwrap())
                };
                (*name, [watch(&views[0]), watch(&views[1])])
            })
            .collect();
        let nothing = Var::constant(Tensor::from_slice(&self.device, [1], &[0.0_f32]).unwrap());
        let all = [PartName::Embedding, PartName::Invariant, PartName::Equivariant];
        let all = all.into_iter().chain([PartName::Activations, PartName::Poses]);
        let views = [0, 1].map(|view| {
            let find = |wanted: &str| {
                vars.iter().find(|(name, _)| *name == wanted).map(|(_, views)| views[view].clone())
            };
            Embedding {
                representation: find("representation").unwrap_or_else(|| nothing.clone()),
                parts: all.clone().filter_map(|name| Some((name, find(name.name())?))).collect(),
            }
        });
        let images = Images::from_planes(&self.device, [0, 1, 1], &[]).unwrap();
        let batch = PairBatch { views: [images.clone(), images], targets: self.targets.clone(), whole: None };
        let terms = self.method.terms(&mut tape, &views, &batch).unwrap();
        let weighted: Vec<_> = terms.iter().map(|term| (&term.value, term.weight)).collect();
        let total = ops::weighted_sum(&mut tape, &weighted).unwrap();
        tape.backward(&total).unwrap();
        let scalar = |var: &Var| f64::from(var.value().scalar().unwrap());
        let gradient = |var: &Var| tape.gradient(var).map_or(Vec::new(), |g| g.to_f32().unwrap());
        Outcome {
            loss: scalar(&total),
            terms: terms.iter().map(|term| (term.name, scalar(&term.value))).collect(),
            gradients: vars.iter().map(|(_, [x, y])| [gradient(x), gradient(y)]).collect(),
        }
    }

    /// Compares loss and gradients (embeddings and all parameters) with `reference(parts, parameters)`.
    fn check(
        &self,
        store: &mut ParameterStore,
        parts: &Parts,
        reference: impl Fn(&Parts, &[Vec<f64>]) -> f64,
    ) {
        let outcome = self.run(store, parts);
        // What the engine sees: float32.
        let rounded = |values: &[f64]| values.iter().map(|&v| f64::from(v as f32)).collect::<Vec<f64>>();
        let parts: Parts = parts.iter().map(|(name, [x, y])| (*name, [rounded(x), rounded(y)])).collect();
        let ids: Vec<_> = store.parameters().collect();
        let parameters: Vec<Vec<f64>> = ids
            .iter()
            .map(|&id| store.export(State::Value, id).unwrap().into_iter().map(f64::from).collect())
            .collect();
        let wanted = reference(&parts, &parameters);
        assert!((outcome.loss - wanted).abs() < 1e-5 * wanted.abs().max(0.1), "{} {wanted}", outcome.loss);
        let step = 1e-5;
        let compare = |what: &str, found: &[f32], objective: &dyn Fn(usize, f64) -> f64| {
            let stride = (found.len() / if found.len() > 10_000 { 5 } else { 40 }).max(1);
            let elements: Vec<usize> = (0..found.len()).step_by(stride).collect();
            let differences: Vec<f64> =
                elements.iter().map(|&e| (objective(e, step) - objective(e, -step)) / (2.0 * step)).collect();
            let scale = differences.iter().fold(1e-3_f64, |scale, d| scale.max(d.abs()));
            for (e, difference) in elements.iter().zip(differences) {
                let error = (f64::from(found[*e]) - difference).abs() / scale;
                assert!(error < 5e-5, "{what} {e}: {} {difference} ({error:.1e})", found[*e]);
            }
        };
        for (index, gradients) in outcome.gradients.iter().enumerate() {
            for (view, gradient) in gradients.iter().enumerate() {
                compare(parts[index].0, gradient, &|element, step| {
                    let mut moved = parts.clone();
                    moved[index].1[view][element] += step;
                    reference(&moved, &parameters)
                });
            }
        }
        for (index, &id) in ids.iter().enumerate() {
            let gradient = store.export(State::Gradient, id).unwrap();
            compare(store.name(id), &gradient, &|element, step| {
                let mut moved = parameters.clone();
                moved[index][element] += step;
                reference(&parts, &moved)
            });
        }
    }
}

/// The published settings of `method` for three pairs, with two capsules or four numbers in an embedding.
fn small(method: MethodName) -> MethodConfig {
    let mut config = MethodConfig { batch: 3, ..MethodConfig::published(method).unwrap() };
    (config.network.projector, config.network.capsules) = (vec![4], 2);
    config
}

/// The method of `config` without its backbone, and its parameters.
fn build(config: &MethodConfig, device: &Device, seed: u64) -> (Box<dyn Method>, ParameterStore) {
    let mut builder = StoreBuilder::new();
    let method = config.name.init(config, &mut builder).unwrap();
    (method, builder.build(device, seed).unwrap())
}

fn sequence(len: usize, value: impl Fn(f64) -> f64) -> Vec<f64> {
    (0..len).map(|i| value(i as f64)).collect()
}

fn random_values(len: usize, index: u64, low: f64, high: f64) -> Vec<f64> {
    let mut random = Random::new(4, Stream::new("loss-tests"), index);
    (0..len).map(|_| random.range(low, high)).collect()
}

/// A pair whose relative rotation has the extrinsic angles `scale` * (0.1, -0.2, 0.3).
fn pair(scale: f64) -> [ViewPose; 2] {
    let angles = [0.1 * scale, -0.2 * scale, 0.3 * scale];
    [
        ViewPose::published_precision([0.0; 3], [0.0; 3]),
        ViewPose::published_precision(angles, [0.1 * scale; 3]),
    ]
}

fn close(found: f64, wanted: f64) {
    assert!((found - wanted).abs() < 2e-6 * wanted.abs().max(1.0), "{found} {wanted}");
}

#[test]
fn equicaps_gives_the_published_losses() {
    for (transform, side, [ce, eq, reg_v, memax, reg_c, total]) in [
        (Transform::ROTATION, 3, [0.617_249, 0.275_595, 0.806_731, 0.007_232, 0.076_072, 9.590_315]),
        (Transform::ROTATION_OBJECT, 4, [0.617_249, 0.180_275, 0.844_932, 0.007_232, 0.042_949, 9.462_598]),
    ] {
        let config = MethodConfig { transform, ..small(MethodName::EQUICAPS) };
        let device = Device::cpu();
        let (method, mut store) = build(&config, &device, 0);
        let mut matrices = Vec::new();
        for b in 1..=3 {
            let scale = f64::from(b);
            let [first, second] = pair(scale);
            let rotation = ViewPose::relative_rotation(&first, &second).to_matrix();
            let column = [0.1 * scale, -0.05 * scale, 0.2 * scale];
            let motion: Vec<Vec<f64>> = rotation
                .iter()
                .zip(column)
                .map(|(row, last)| row.iter().copied().chain([last]).collect())
                .chain([vec![0.0, 0.0, 0.0, 1.0]])
                .collect();
            matrices.extend(motion[..side].iter().flat_map(|row| row[..side].iter().map(|&v| v as f32)));
        }
        let matrices = Tensor::from_slice(&device, [3, side, side], &matrices).unwrap();
        let targets = PairTargets { matrices: Some(matrices), ..PairTargets::default() };
        let poses = 3 * 2 * side * side;
        let parts = vec![
            ("activations", [vec![0.6, 0.4, 0.3, 0.7, 0.5, 0.5], vec![0.7, 0.3, 0.2, 0.8, 0.45, 0.55]]),
            ("poses", [sequence(poses, |i| (1.0 + i).sin()), sequence(poses, |i| (2.0 + i).cos())]),
        ];
        let outcome = Case { method: method.as_ref(), rows: 3, targets, device }.run(&mut store, &parts);
        close(outcome.term("repr_loss_inv"), ce);
        close(outcome.term("repr_loss_equi"), eq);
        close(outcome.term("std_loss"), reg_v);
        close(outcome.term("MEMAX_loss"), memax);
        close(outcome.term("cov_loss"), reg_c);
        close(outcome.loss, total);
    }
}

#[test]
fn vicreg_and_simclr_give_the_published_losses() {
    let parts = vec![("embedding", [sequence(12, |i| (1.0 + i).sin()), sequence(12, |i| (2.0 + i).cos())])];
    let run = |name: MethodName, temperature: f64| {
        let mut config = small(name);
        config.loss.temperature = temperature;
        let device = Device::cpu();
        let (method, mut store) = build(&config, &device, 0);
        Case { method: method.as_ref(), rows: 3, targets: PairTargets::default(), device }
            .run(&mut store, &parts)
    };
    let vicreg = run(MethodName::VICREG, 1.0);
    close(vicreg.term("repr_loss_inv"), 1.938_405);
    close(vicreg.term("std_loss"), 0.123_125);
    close(vicreg.term("cov_loss"), 1.580_877);
    close(vicreg.loss, 22.196_176);
    close(run(MethodName::SIMCLR, 1.0).loss, 2.496_967);
    close(run(MethodName::SIMCLR, 0.1).loss, 16.773_912);
}

#[test]
fn sie_gives_the_published_losses() {
    let device = Device::cpu();
    let (method, mut store) = build(&small(MethodName::SIE), &device, 0);
    let weight: Vec<f32> = (0..64).map(|i| (0.5 * f64::from(i).sin()) as f32).collect();
    let id = store.find("predictor.hypernet.net.0.weight").unwrap();
    store.import(State::Value, id, &weight).unwrap();
    let pairs: Vec<_> = (1..=3).map(|b| pair(f64::from(b))).collect();
    let targets = PairTargets::from_poses(&device, Transform::ROTATION, &pairs).unwrap();
    let parts = vec![
        ("invariant", [sequence(12, |i| (1.0 + i).sin()), sequence(12, |i| (2.0 + i).cos())]),
        ("equivariant", [sequence(12, |i| (3.0 + 0.5 * i).sin()), sequence(12, |i| (0.7 * i).cos())]),
    ];
    let outcome = Case { method: method.as_ref(), rows: 3, targets, device }.run(&mut store, &parts);
    close(outcome.term("repr_loss_equi"), 0.497_001);
    close(outcome.term("std_loss"), 0.154_636);
    close(outcome.term("pred_std_loss"), 0.455_930);
    close(outcome.term("cov_loss"), 4.151_863);
    close(outcome.loss, 31.878_073);
}

// --- float64 pieces, written from the formulas -------------------------------------------------------------------

fn mse(u: &[f64], v: &[f64]) -> f64 {
    u.iter().zip(v).map(|(u, v)| (u - v).powi(2)).sum::<f64>() / u.len() as f64
}

fn centred(z: &[f64], rows: usize) -> Vec<f64> {
    let d = z.len() / rows;
    let mean = |j: usize| (0..rows).map(|n| z[n * d + j]).sum::<f64>() / rows as f64;
    let means: Vec<f64> = (0..d).map(mean).collect();
    z.iter().enumerate().map(|(i, z)| z - means[i % d]).collect()
}

fn hinge(z: &[f64], rows: usize) -> f64 {
    let (d, z) = (z.len() / rows, centred(z, rows));
    let column = |j: usize| (0..rows).map(|n| z[n * d + j].powi(2)).sum::<f64>() / (rows as f64 - 1.0);
    0.5 * (0..d).map(|j| (1.0 - (column(j) + 1e-4).sqrt()).max(0.0)).sum::<f64>() / d as f64
}

fn off_diagonal(z: &[f64], rows: usize, divisor: f64) -> f64 {
    let (d, z) = (z.len() / rows, centred(z, rows));
    let mut sum = 0.0;
    for (a, b) in (0..d).flat_map(|a| (0..d).map(move |b| (a, b))).filter(|(a, b)| a != b) {
        sum += ((0..rows).map(|n| z[n * d + a] * z[n * d + b]).sum::<f64>() / divisor).powi(2);
    }
    sum / d as f64
}

fn side_by_side(left: &[f64], right: &[f64], rows: usize) -> Vec<f64> {
    let (a, b) = (left.len() / rows, right.len() / rows);
    (0..rows).flat_map(|n| [&left[n * a..n * a + a], &right[n * b..n * b + b]].concat()).collect()
}

#[test]
fn equicaps_can_regularise_its_normalised_poses_alone() {
    let mut config = small(MethodName::EQUICAPS);
    config.loss.regularise = Regularise::Poses;
    let device = Device::cpu();
    let (method, mut store) = build(&config, &device, 0);
    let unmoved = [1.0_f32, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0].repeat(3);
    let matrices = Tensor::from_slice(&device, [3, 3, 3], &unmoved).unwrap();
    let targets = PairTargets { matrices: Some(matrices), ..PairTargets::default() };
    let poses = [sequence(54, |i| 3.0 * (1.0 + i).sin()), sequence(54, |i| 0.2 * (2.0 + i).cos())];
    let activations = [random_values(6, 1, 0.1, 1.0), random_values(6, 2, 0.1, 1.0)];
    let parts = vec![("activations", activations), ("poses", poses.clone())];
    let outcome = Case { method: method.as_ref(), rows: 3, targets, device }.run(&mut store, &parts);
    let [x, y] = poses.map(|poses| -> Vec<f64> {
        let norm = |pose: &[f64]| pose.iter().map(|v| v * v).sum::<f64>().sqrt();
        poses.chunks(9).flat_map(|pose| pose.iter().map(move |v| v / norm(pose))).collect()
    });
    close(outcome.term("std_loss"), hinge(&x, 3) + hinge(&y, 3));
    close(outcome.term("cov_loss"), off_diagonal(&x, 3, 2.0) + off_diagonal(&y, 3, 2.0));
}

#[test]
fn equicaps_can_divide_poses_by_the_norm_of_their_linear_part() {
    for (norm, columns) in [(PoseNorm::Whole, 4), (PoseNorm::Linear, 3)] {
        let mut config = small(MethodName::EQUICAPS);
        config.transform = pose::Group::AFFINE.into();
        config.loss.pose_norm = norm;
        let device = Device::cpu();
        let (method, mut store) = build(&config, &device, 0);
        // Twice as wide along y, and moved along z: the second column doubles, the last gets a third of the third.
        let moved =
            [1.0_f32, 0.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0 / 3.0, 0.0, 0.0, 0.0, 1.0];
        let matrices = Tensor::from_slice(&device, [3, 4, 4], &moved.repeat(3)).unwrap();
        let targets = PairTargets { matrices: Some(matrices), ..PairTargets::default() };
        let poses = [sequence(96, |i| 3.0 * (1.0 + i).sin()), sequence(96, |i| 0.2 * (2.0 + i).cos())];
        let activations = [random_values(6, 1, 0.1, 1.0), random_values(6, 2, 0.1, 1.0)];
        let parts = vec![("activations", activations), ("poses", poses.clone())];
        let outcome = Case { method: method.as_ref(), rows: 3, targets, device }.run(&mut store, &parts);
        let [mut x, y] = poses;
        for row in x.chunks_mut(4) {
            row[3] += row[2] / 3.0;
            row[1] *= 2.0;
        }
        let [x, y] = [x, y].map(|poses| -> Vec<f64> {
            let norm = |pose: &[f64]| {
                pose.chunks(4).flat_map(|row| &row[..columns]).map(|v| v * v).sum::<f64>().sqrt()
            };
            poses.chunks(16).flat_map(|pose| pose.iter().map(move |v| v / norm(pose))).collect()
        });
        let squares: f64 = x.iter().zip(&y).map(|(x, y)| (x - y).powi(2)).sum();
        close(outcome.term("repr_loss_equi"), squares / 96.0);
    }
}

#[test]
fn supervised_agrees_with_its_formula_for_every_task() {
    let (rows, width) = (3, 64);
    for (task, transform) in [
        (Task::Classification, Transform::ROTATION),
        (Task::Rotation, Transform::ROTATION_OBJECT),
        (Task::Translation, Transform::ROTATION_OBJECT),
        (Task::Translation, Transform::ROTATION_BASE),
        (Task::Shear, pose::Group::AFFINE.into()),
        (Task::Colour, Transform::ROTATION),
    ] {
        let mut config = MethodConfig { transform, classes: 5, ..small(MethodName::SUPERVISED) };
        (config.network.width, config.network.task) = (8, task);
        let device = Device::cpu();
        let (method, mut store) = build(&config, &device, 3);
        let pairs: Vec<_> = (0..rows).map(|b| pair(1.0 + b as f64)).collect();
        let labels = [4, 0, 2];
        let hues = [[0.1, -0.5], [0.3, 0.9], [-0.7, 0.0]];
        let targets = PairTargets::from_poses(&device, transform, &pairs).unwrap();
        let targets = targets.with_labels(&device, &labels).unwrap().with_hues(&device, &hues).unwrap();
        let wanted: Vec<f64> = match task {
            Task::Classification => Vec::new(),
            Task::Colour => hues.concat().iter().map(|&h| f64::from(h)).collect(),
            _ => {
                let numbers = targets.parameters.as_ref().unwrap().to_f32().unwrap();
                let range = match task {
                    Task::Rotation => 0..4,
                    Task::Shear => 10..13,
                    _ => 4..7,
                };
                let width = transform.group().parameters();
                numbers.chunks(width).flat_map(|n| n[range.clone()].iter().map(|&v| f64::from(v))).collect()
            }
        };
        let parts = vec![(
            "representation",
            [random_values(rows * width, 5, 0.0, 1.0), random_values(rows * width, 6, 0.0, 1.0)],
        )];
        let reference = |parts: &Parts, parameters: &[Vec<f64>]| {
            let [h_x, h_y] = &parts[0].1;
            let head = |x: &[f64]| {
                let mut x = x.to_vec();
                for (layer, pair) in parameters.chunks(2).enumerate() {
                    if layer > 0 {
                        x.iter_mut().for_each(|x| *x = x.max(0.0));
                    }
                    let input = x.len();
                    let dot = |o: usize| x.iter().zip(&pair[0][o * input..]).map(|(x, w)| x * w).sum::<f64>();
                    x = (0..pair[1].len()).map(|o| dot(o) + pair[1][o]).collect();
                }
                x
            };
            if task == Task::Classification {
                let entropy = |h: &[f64], label: usize| {
                    let logits = head(h);
                    logits.iter().map(|l| l.exp()).sum::<f64>().ln() - logits[label]
                };
                let rows_of = [h_x, h_y].into_iter().flat_map(|h| h.chunks(width).zip(labels));
                return rows_of.map(|(h, label)| entropy(h, label as usize)).sum::<f64>() / (2 * rows) as f64;
            }
            let predicted: Vec<f64> = side_by_side(h_x, h_y, rows).chunks(2 * width).flat_map(head).collect();
            mse(&predicted, &wanted)
        };
        Case { method: method.as_ref(), rows, targets, device }.check(&mut store, &parts, reference);
    }
}
