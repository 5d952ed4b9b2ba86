//! The methods that learn a transformation, in all its variants (4 and 7 numbers, both frames) and with every
//! predictor: loss and all gradients against float64 references.

use super::*;
use crate::config::PredictorName;

const ROWS: usize = 5;
const WIDTH: usize = 6;
const TRANSFORMS: [Transform; 3] =
    [Transform::ROTATION, Transform::ROTATION_OBJECT, Transform::ROTATION_BASE];

/// NCE(u, v; tau) over 2n rows.
fn nce(u: &[f64], v: &[f64], tau: f64) -> f64 {
    let d = u.len() / ROWS;
    let rows: Vec<Vec<f64>> = u
        .chunks(d)
        .chain(v.chunks(d))
        .map(|row| {
            let norm = row.iter().map(|x| x * x).sum::<f64>().sqrt();
            row.iter().map(|x| x / norm).collect()
        })
        .collect();
    let s = |a: usize, b: usize| rows[a].iter().zip(&rows[b]).map(|(x, y)| x * y).sum::<f64>() / tau;
    let row = |a: usize| {
        let others: f64 = (0..2 * ROWS).filter(|&b| b != a).map(|b| s(a, b).exp()).sum();
        others.ln() - s(a, (a + ROWS) % (2 * ROWS))
    };
    (0..2 * ROWS).map(row).sum::<f64>() / (2 * ROWS) as f64
}

/// Linear layers (weight, bias) with ReLU between them.
fn layers(x: &[f64], parameters: &[&Vec<f64>]) -> Vec<f64> {
    let mut x = x.to_vec();
    for (layer, pair) in parameters.chunks(2).enumerate() {
        if layer > 0 {
            x.iter_mut().for_each(|x| *x = x.max(0.0));
        }
        let dot = |o: usize| x.iter().zip(&pair[0][o * x.len()..]).map(|(x, w)| x * w).sum::<f64>();
        x = pair[1].iter().enumerate().map(|(o, bias)| dot(o) + bias).collect();
    }
    x
}

/// The predictor of a store: its parameters' places, and the transformations.
struct Predict {
    kind: PredictorName,
    places: Vec<usize>,
    z: Vec<f64>,
}

impl Predict {
    fn of(store: &ParameterStore, kind: PredictorName, targets: &PairTargets) -> Self {
        let names: Vec<_> = store.parameters().map(|id| store.name(id).to_owned()).collect();
        let places = (0..names.len()).filter(|&place| names[place].starts_with("predictor.")).collect();
        let z = targets.parameters.as_ref().unwrap().to_f32().unwrap();
        Self { kind, places, z: z.into_iter().map(f64::from).collect() }
    }

    /// The prediction for embeddings (ROWS, d).
    fn apply(&self, e: &[f64], parameters: &[Vec<f64>]) -> Vec<f64> {
        let (d, n_z) = (e.len() / ROWS, self.z.len() / ROWS);
        let own: Vec<&Vec<f64>> = self.places.iter().map(|&place| &parameters[place]).collect();
        let mut predicted = Vec::new();
        for (e, z) in e.chunks(d).zip(self.z.chunks(n_z)) {
            match self.kind {
                PredictorName::Mlp => predicted.extend(layers(&[z, e].concat(), &own)),
                _ => predicted.extend((0..d).map(|o| {
                    let entry =
                        |i: usize| -> f64 { (0..n_z).map(|k| own[0][(o * d + i) * n_z + k] * z[k]).sum() };
                    (0..d).map(|i| entry(i) * e[i]).sum::<f64>()
                })),
            }
        }
        predicted
    }
}

fn views(index: u64, width: usize) -> [Vec<f64>; 2] {
    [0, 1].map(|view| random_values(ROWS * width, index + view, -1.0, 1.0))
}

fn targets(device: &Device, transform: Transform) -> PairTargets {
    let pairs: Vec<_> = (0..ROWS)
        .map(|b| {
            let scale = 0.4 + 0.2 * b as f64;
            let first = ViewPose::published_precision([scale, -0.3, 0.2 * scale], [0.3, -0.1 * scale, 0.2]);
            [first, ViewPose::published_precision([-0.2, scale, 0.7], [-0.4 * scale, 0.25, 0.05])]
        })
        .collect();
    PairTargets::from_poses(device, transform, &pairs).unwrap()
}

/// The method of `config` (with a tiny backbone and projector), its store, and targets.
fn build(
    method: MethodName,
    change: impl FnOnce(&mut MethodConfig),
) -> (MethodConfig, Box<dyn Method>, ParameterStore, PairTargets, Device) {
    let mut config = MethodConfig { batch: ROWS, ..small(method) };
    (config.network.width, config.network.projector) = (8, vec![WIDTH]);
    change(&mut config);
    let device = Device::cpu();
    let (built, store) = super::build(&config, &device, 11);
    let targets = targets(&device, config.transform);
    (config, built, store, targets, device)
}

#[test]
fn a_seven_number_transformation_ends_with_the_translation_of_its_frame() {
    let device = Device::cpu();
    let numbers = |transform| targets(&device, transform).parameters.unwrap();
    let [plain, object, base] = TRANSFORMS.map(numbers);
    assert_eq!((plain.dims(), object.dims(), base.dims()), (&[ROWS, 4][..], &[ROWS, 7][..], &[ROWS, 7][..]));
    let [plain, object, base] = [plain, object, base].map(|tensor| tensor.to_f32().unwrap());
    for row in 0..ROWS {
        assert_eq!(plain[row * 4..row * 4 + 4], object[row * 7..row * 7 + 4]);
        assert_eq!(plain[row * 4..row * 4 + 4], base[row * 7..row * 7 + 4]);
    }
    // t2 - t1 of the first pair.
    for (found, wanted) in object[4..7].iter().zip([-0.16 - 0.3, 0.25 + 0.04, 0.05 - 0.2]) {
        assert!((found - wanted).abs() < 1e-6, "{found} {wanted}");
    }
    assert_ne!(object[4..7], base[4..7]);
}

#[test]
fn sen_agrees_with_its_formula() {
    for transform in TRANSFORMS {
        for (predictor, layers) in
            [(PredictorName::Mlp, 1), (PredictorName::Mlp, 2), (PredictorName::Hypernetwork, 1)]
        {
            let (config, method, mut store, targets, device) = build(MethodName::SEN, |config| {
                config.transform = transform;
                (config.network.predictor, config.network.predictor_layers) = (predictor, layers);
            });
            let predict = Predict::of(&store, predictor, &targets);
            let tau = config.loss.temperature;
            let parts = vec![("equivariant", views(20, WIDTH))];
            let case = Case { method: method.as_ref(), rows: ROWS, targets, device };
            case.check(&mut store, &parts, |parts, parameters| {
                nce(&predict.apply(&parts[0].1[0], parameters), &parts[0].1[1], tau)
            });
        }
    }
}

#[test]
fn equimod_agrees_with_its_formula() {
    for transform in TRANSFORMS {
        for predictor in [PredictorName::Mlp, PredictorName::Hypernetwork] {
            let (_, method, mut store, targets, device) = build(MethodName::EQUIMOD, |config| {
                (config.transform, config.network.predictor) = (transform, predictor);
            });
            let predict = Predict::of(&store, predictor, &targets);
            let parts = vec![("invariant", views(30, WIDTH)), ("equivariant", views(32, WIDTH))];
            let case = Case { method: method.as_ref(), rows: ROWS, targets, device };
            case.check(&mut store, &parts, |parts, parameters| {
                let ([inv_x, inv_y], [eq_x, eq_y]) = (&parts[0].1, &parts[1].1);
                nce(inv_x, inv_y, 0.1) + nce(&predict.apply(eq_x, parameters), eq_y, 0.1)
            });
        }
    }
}

#[test]
fn augself_agrees_with_its_formula() {
    for transform in TRANSFORMS {
        let (config, method, mut store, targets, device) =
            build(MethodName::SIMCLR_AUGSELF, |config| config.transform = transform);
        let h = config.backbone().output_width();
        let predict = Predict::of(&store, PredictorName::Mlp, &targets);
        let parts = vec![("embedding", views(40, WIDTH)), ("representation", views(42, h))];
        let case = Case { method: method.as_ref(), rows: ROWS, targets, device };
        case.check(&mut store, &parts, |parts, parameters| {
            let ([e_x, e_y], [h_x, h_y]) = (&parts[0].1, &parts[1].1);
            let own: Vec<&Vec<f64>> = predict.places.iter().map(|&place| &parameters[place]).collect();
            let rows = side_by_side(h_x, h_y, ROWS);
            let predicted: Vec<f64> = rows.chunks(2 * h).flat_map(|pair| layers(pair, &own)).collect();
            nce(e_x, e_y, 1.0) + mse(&predicted, &predict.z)
        });
    }
}

#[test]
fn sie_agrees_with_its_formula() {
    for transform in TRANSFORMS {
        for extra in [10.0, 0.0] {
            let (_, method, mut store, targets, device) = build(MethodName::SIE, |config| {
                (config.transform, config.loss.predicted_variance) = (transform, extra);
            });
            let predict = Predict::of(&store, PredictorName::Hypernetwork, &targets);
            let parts = vec![("invariant", views(50, WIDTH)), ("equivariant", views(52, WIDTH))];
            let case = Case { method: method.as_ref(), rows: ROWS, targets, device };
            case.check(&mut store, &parts, |parts, parameters| {
                let ([inv_x, inv_y], [eq_x, eq_y]) = (&parts[0].1, &parts[1].1);
                let p = predict.apply(eq_x, parameters);
                let (z_x, z_y) = (side_by_side(inv_x, eq_x, ROWS), side_by_side(inv_y, eq_y, ROWS));
                let divisor = ROWS as f64 - 1.0;
                10.0 * mse(inv_x, inv_y)
                    + 4.5 * mse(&p, eq_y)
                    + 10.0 * (hinge(&z_x, ROWS) + hinge(&z_y, ROWS))
                    + extra * hinge(&p, ROWS)
                    + off_diagonal(&z_x, ROWS, divisor)
                    + off_diagonal(&z_y, ROWS, divisor)
            });
        }
    }
}
