//! Everything worth knowing of a GPU in one run: operations against the CPU, parity with fixtures, repeatability, the
//! direction of bf16 gradients, and the profile of a training step.
//! `cargo run --release -p methods --example cuda -- WHAT...` with WHAT among `ops`, `parity=FOLDER`, `repeat`, `cosine`,
//! `step=BATCHxSIZE`, `profile=BATCHxSIZE`, `f32` (for what follows; bf16 otherwise).

use std::time::Instant;

use engine::ops::Images;
use engine::{AdamConfig, Device, Precision, Result, State};
use methods::{MethodConfig, MethodName, Network, PairBatch, PairTargets, parity};
use random::{Random, Stream};

fn batch(device: &Device, config: &MethodConfig, pairs: usize) -> Result<PairBatch> {
    let size = config.image_size;
    let images = |view: u64| {
        let mut random = Random::new(3, Stream::new("bench"), view);
        let mut bytes = vec![0u8; pairs * size * size * 3];
        bytes.chunks_mut(4).for_each(|chunk| {
            let word = random.next_u32().to_le_bytes();
            let count = chunk.len();
            chunk.copy_from_slice(&word[..count]);
        });
        Images::from_bytes(
            device,
            [pairs, size, size],
            &bytes,
            [0.5016, 0.5037, 0.5060],
            [0.1030, 0.0999, 0.0969],
        )
    };
    let poses: Vec<[pose::ViewPose; 2]> = (0..pairs)
        .map(|pair| {
            let mut random = Random::new(4, Stream::new("bench"), pair as u64);
            let mut draw =
                || pose::ViewPose::published_precision([0; 3].map(|_| random.range(-1.5, 1.5)), [0.0; 3]);
            [draw(), draw()]
        })
        .collect();
    Ok(PairBatch {
        views: [images(1)?, images(2)?],
        targets: PairTargets::from_poses(device, config.transform, &poses)?,
    })
}

fn ops(device: &Device) {
    let agreements = engine::agreement::compare(device);
    let mut worst: f64 = 0.0;
    for agreement in &agreements {
        if !agreement.is_right() {
            println!(
                "WRONG {} | {} | error {:.2e} bound {:.0e} repeats {} {}",
                agreement.operation,
                agreement.tensor,
                agreement.error,
                agreement.bound,
                agreement.repeats,
                agreement.failure.as_deref().unwrap_or("")
            );
        }
        if agreement.error.is_finite() {
            worst = worst.max(agreement.error);
        }
    }
    let wrong = agreements.iter().filter(|agreement| !agreement.is_right()).count();
    println!("ops {:?}: {} compared, {wrong} wrong, worst {worst:.2e}", device.precision(), agreements.len());
}

fn check_parity(device: &Device, folder: &str) {
    for name in
        ["equicaps_3x3", "equicaps_4x4", "vicreg", "simclr", "sie", "sen", "equimod", "simclr_augself"]
    {
        let read = |name: &str| std::fs::read(format!("{folder}/{name}.safetensors"));
        let (Ok(fixture), Ok(inputs)) = (read(name), read("inputs")) else { continue };
        let report = parity::Fixture::parse(&fixture, &inputs)
            .and_then(|fixture| parity::check(&fixture, None, device));
        match report {
            Err(error) => println!("parity {name} {:?}: FAILED {error}", device.precision()),
            Ok(report) => {
                println!("parity {name} {}: within bounds: {}", report.precision, report.within());
                for group in ["stat", "grad", "buffer_after", "param_after_adam"] {
                    if let Some(worst) = report.worst(group) {
                        println!(
                            "   {group}: worst {} {:.2e} (bound {:.0e})",
                            worst.name, worst.error, worst.bound
                        );
                    }
                }
            }
        }
    }
}

fn gradients(network: &Network) -> Result<Vec<f32>> {
    let mut all = Vec::new();
    for id in network.store.parameters() {
        all.extend(network.store.export(State::Gradient, id)?);
    }
    Ok(all)
}

fn config(size: usize, batch: usize) -> MethodConfig {
    MethodConfig { image_size: size, batch, ..MethodConfig::published(MethodName::EquiCaps) }
}

fn repeat(device: &Device) -> Result<()> {
    let config = config(128, 32);
    let data = batch(device, &config, 32)?;
    let run = |recompute: bool| -> Result<(Vec<f32>, f32)> {
        let mut network = Network::build(&config, device, 1)?;
        network.model.set_recompute(recompute);
        network.step(&data, &AdamConfig::default())?;
        let report = network.gradients(&data)?;
        Ok((gradients(&network)?, report.loss))
    };
    let (first, second) = (run(false)?, run(false)?);
    let third = run(true)?;
    let recomputed = first.0.iter().zip(&third.0).all(|(a, b)| a.to_bits() == b.to_bits());
    println!("recompute {:?}: bitwise the same: {}", device.precision(), recomputed && first.1 == third.1);
    let same = first.0.iter().zip(&second.0).all(|(a, b)| a.to_bits() == b.to_bits());
    println!("repeat {:?}: bitwise the same: {}", device.precision(), same && first.1 == second.1);
    Ok(())
}

fn cosine() -> Result<()> {
    let config = config(128, 64);
    let mut all = Vec::new();
    for precision in [Precision::F32, Precision::Bf16] {
        let device = Device::cuda(0, precision)?;
        let data = batch(&device, &config, 64)?;
        let mut network = Network::build(&config, &device, 1)?;
        let report = network.gradients(&data)?;
        println!("cosine {precision:?}: {report:?}");
        all.push(gradients(&network)?);
    }
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    let (f, b) = (&all[0], &all[1]);
    println!("cosine of bf16 and f32 gradients: {:.6}", dot(f, b) / (dot(f, f) * dot(b, b)).sqrt());
    Ok(())
}

fn step(device: &Device, pairs: usize, size: usize, profile: bool, recompute: bool) -> Result<()> {
    let config = config(size, pairs);
    let data = batch(device, &config, pairs)?;
    let mut network = Network::build(&config, device, 1)?;
    network.model.set_recompute(recompute);
    let adam = AdamConfig::default();
    let mut times = Vec::new();
    for index in 0..8 {
        let start = Instant::now();
        let report = network.step(&data, &adam)?;
        device.synchronise()?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
        if index == 0 {
            println!("step {pairs}x{size}: first {:.0} ms, {report:?}", times[0]);
        }
        if index == 1 {
            device.reset_peak();
        }
    }
    let mut sorted = times[2..].to_vec();
    sorted.sort_by(f64::total_cmp);
    let median = sorted[sorted.len() / 2];
    println!(
        "step {pairs}x{size} {:?}: {median:.1} ms, {:.0} images/s; {:?}; all {times:.1?}",
        device.precision(),
        2e3 * pairs as f64 / median,
        device.memory()
    );
    if let (true, Device::Cuda(cuda)) = (profile, device) {
        cuda.context().start_profile();
        network.step(&data, &adam)?;
        let entries = cuda.context().finish_profile()?;
        let total: f64 = entries.iter().map(|entry| entry.milliseconds).sum();
        println!("profile: {total:.1} ms in named operations");
        for entry in entries.iter().filter(|entry| entry.milliseconds > 0.05) {
            println!(
                "{:<50} x{:<3} {:>8.3} ms  {:>6.0} TFLOP/s {:>5.2} TB/s",
                entry.name,
                entry.count,
                entry.milliseconds,
                entry.operations / entry.milliseconds / 1e9,
                entry.bytes / entry.milliseconds / 1e9
            );
        }
    }
    Ok(())
}

fn main() {
    let mut precision = Precision::Bf16;
    for what in std::env::args().skip(1) {
        let outcome = Device::cuda(0, precision).and_then(|device| {
            let sizes = |text: &str| -> (usize, usize) {
                let mut parts = text.split('x').map(|part| part.parse().unwrap_or(64));
                (parts.next().unwrap_or(64), parts.next().unwrap_or(64))
            };
            match what.split_once('=').unwrap_or((&what, "")) {
                ("f32", _) => precision = Precision::F32,
                ("bf16", _) => precision = Precision::Bf16,
                ("ops", _) => ops(&device),
                ("parity", folder) => check_parity(&device, folder),
                ("repeat", _) => repeat(&device)?,
                ("cosine", _) => cosine()?,
                ("step", text) => step(&device, sizes(text).0, sizes(text).1, false, false)?,
                ("recompute", text) => step(&device, sizes(text).0, sizes(text).1, false, true)?,
                ("profile", text) => step(&device, sizes(text).0, sizes(text).1, true, false)?,
                _ => println!("{what}: unknown"),
            }
            Ok(())
        });
        if let Err(error) = outcome {
            println!("{what}: FAILED {error}");
        }
    }
}
