//! CapsIE against its formula in float64: it has no fixture, as its own code was not available.

use super::*;

/// Every transformation with the published settings, then every inferred setting on its own.
#[test]
fn capsie_agrees_with_its_formula_in_every_variant() {
    let variants: [fn(&mut MethodConfig); 7] = [
        |_| (),
        |config| config.transform = Transform::ROTATION_OBJECT,
        |config| config.transform = Transform::ROTATION_BASE,
        |config| config.network.pose = 3,
        |config| config.network.normalise_poses = true,
        |config| config.loss.predicted_variance = 0.0,
        |config| (config.loss.sharpen_prediction, config.loss.sharpen_target) = (0.5, 0.25),
    ];
    for change in variants {
        let (rows, capsules) = (5, 2);
        let mut config = MethodConfig { batch: rows, image_size: 0, ..small(MethodName::CAPSIE) };
        change(&mut config);
        let (transform, pose) = (config.transform, config.pose_side().pow(2));
        let (loss, normalise) = (config.loss, config.network.normalise_poses);
        let device = Device::cpu();
        let (method, mut store) = build(&config, &device, 3);
        let pairs: Vec<_> = (0..rows).map(|b| pair(1.0 + b as f64)).collect();
        let targets = PairTargets::from_poses(&device, transform, &pairs).unwrap();
        let z = targets.parameters.as_ref().unwrap().to_f32().unwrap();
        let width = capsules * pose;
        let weight = store.find("predictor.hypernet.net.0.weight").unwrap();
        let weight_index = store.parameters().position(|id| id == weight).unwrap();
        let parts = vec![
            (
                "activations",
                [random_values(rows * capsules, 1, 0.1, 0.9), random_values(rows * capsules, 2, 0.1, 0.9)],
            ),
            ("poses", [random_values(rows * width, 3, -1.0, 1.0), random_values(rows * width, 4, -1.0, 1.0)]),
        ];
        let reference = |parts: &Parts, parameters: &[Vec<f64>]| {
            let ([a_x, a_y], [e_x, e_y]) = (&parts[0].1, &parts[1].1);
            let unit = |poses: &Vec<f64>| -> Vec<f64> {
                let norm = |pose: &[f64]| pose.iter().map(|x| x * x).sum::<f64>().sqrt();
                if !normalise {
                    return poses.clone();
                }
                poses.chunks(pose).flat_map(|pose| pose.iter().map(|x| x / norm(pose))).collect()
            };
            let (e_x, e_y) = (&unit(e_x), &unit(e_y));
            let sharp = |a: &[f64], temperature: f64| -> Vec<f64> {
                let power = |a: &f64| a.powf(1.0 / temperature);
                let row = |row: &[f64]| {
                    let sum: f64 = row.iter().map(power).sum();
                    row.iter().map(|a| power(a) / sum).collect::<Vec<_>>()
                };
                // Activations here do not sum to 1, so a temperature of 1 must not normalise them either.
                if temperature == 1.0 { a.to_vec() } else { a.chunks(capsules).flat_map(row).collect() }
            };
            let (prediction, target) = (sharp(a_x, loss.sharpen_prediction), sharp(a_y, loss.sharpen_target));
            let (weight, n_z) = (&parameters[weight_index], z.len() / rows);
            let mut p = Vec::new();
            for (n, o) in (0..rows).flat_map(|n| (0..width).map(move |o| (n, o))) {
                let entry = |i: usize| -> f64 {
                    (0..n_z).map(|k| weight[(o * width + i) * n_z + k] * f64::from(z[n * n_z + k])).sum()
                };
                p.push((0..width).map(|i| entry(i) * e_x[n * width + i]).sum::<f64>());
            }
            let ce = -prediction.iter().zip(target).map(|(x, y)| y * x.ln()).sum::<f64>() / rows as f64;
            let memax = |a: &[f64]| {
                let mean = |j: usize| (0..rows).map(|n| a[n * capsules + j]).sum::<f64>() / rows as f64;
                (capsules as f64).ln() + (0..capsules).map(|j| mean(j) * mean(j).ln()).sum::<f64>()
            };
            let (z_x, z_y) = (side_by_side(a_x, e_x, rows), side_by_side(a_y, e_y, rows));
            let divisor = rows as f64 - 1.0;
            0.1 * ce
                + memax(a_x)
                + memax(a_y)
                + 5.0 * mse(&p, e_y)
                + 10.0 * (hinge(&z_x, rows) + hinge(&z_y, rows))
                + loss.predicted_variance * hinge(&p, rows)
                + off_diagonal(&z_x, rows, divisor)
                + off_diagonal(&z_y, rows, divisor)
        };
        Case { method: method.as_ref(), rows, targets, device }.check(&mut store, &parts, reference);
    }
}
