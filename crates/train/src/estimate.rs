//! How long a run takes on the CPU, for people who start one that would take days: measured by a few steps of the same
//! network on this machine.

use std::time::Instant;

use dataset::{Split, Views};
use engine::{AdamConfig, Device};
use methods::{MethodConfig, PairBatch, Step, StepOptions};

use crate::config::Config;
use crate::error::Result;

/// Pairs in a step of the measurement: enough for all threads, few enough for seconds.
const PAIRS: usize = 2;
/// Hours of a run that nobody should start unknowingly.
const LONG_HOURS: f64 = 2.0;
/// A run is measured where it has more than so many images times pixels times channels of the first stage; others take
/// minutes. (The preset `demo` on 1,000 objects has 1.5e10; two hours on two fast cores are 3e11.)
const WORTH_MEASURING: f64 = 1e11;

/// Images that a run trains on, two a pair.
fn images(config: &Config, views: &dyn Views) -> f64 {
    2.0 * config.epochs as f64 * views.split(Split::Train).len() as f64
}

/// A sentence about a run of `config` on `views` that would take hours on the CPU. `None` for short runs, and on a GPU.
pub fn warning(config: &Config, views: &dyn Views, device: &Device) -> Option<String> {
    let images = images(config, views);
    let size = config.method.image_size as f64;
    let width = config.method.network.width as f64;
    let is_long = images * size * size * width > WORTH_MEASURING;
    let on_cpu = matches!(device, Device::Cpu(_));
    // What cannot be measured fails by itself later, with a reason.
    if !(is_long && on_cpu) {
        return None;
    }
    let rate = images_per_second(config, views, device).ok()?;
    let hours = images / rate / 3600.0;
    (hours >= LONG_HOURS).then(|| {
        let time = if hours >= 72.0 {
            format!("{:.0} days", hours / 24.0)
        } else {
            format!("{hours:.0} hours")
        };
        format!(
            "on this CPU the run takes about {time} ({images:.0} images at {rate:.1} images/s, measured by two steps of \
             {} images; rendering and decoding come on top); --preset demo is for such a machine, or use a GPU (equicaps devices \
             says what is there and what is missing)",
            2 * PAIRS
        )
    })
}

/// How fast the network of `config` trains on `device`, by the faster of two small steps.
pub fn images_per_second(config: &Config, views: &dyn Views, device: &Device) -> Result<f64> {
    let classes = views.classes().len().max(55);
    let method = MethodConfig { classes, batch: PAIRS, ..config.method.clone() };
    let mut batch = PairBatch::random(device, method.transform, PAIRS, method.image_size)?;
    batch.targets = batch.targets.with_hues(device, &[[0.1, 0.2]; PAIRS])?;
    let mut step = Step::new(&method, device, config.seed, StepOptions::default())?;
    let mut fastest = f64::INFINITY;
    for _ in 0..2 {
        let began = Instant::now();
        step.step(&batch, &AdamConfig::default())?.read()?;
        fastest = fastest.min(began.elapsed().as_secs_f64());
    }
    Ok(2.0 * PAIRS as f64 / fastest.max(1e-9))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::FakeViews;

    fn said(preset: &str, settings: &[&str]) -> Option<String> {
        let mut layers = Config::settings("equicaps", preset).unwrap();
        settings.iter().for_each(|assignment| layers.set(assignment).unwrap());
        warning(&Config::resolve(layers).unwrap(), &FakeViews::new(4, 20), &Device::cpu())
    }

    #[test]
    fn days_on_a_cpu_are_said_before_they_begin() {
        // Small images, so that the measurement is short, and very many of them.
        let text = said("paper", &["image_size=64", "epochs=99999", "network.width=32"]);
        // A machine that does these 16 million images in two hours is not known.
        let text = text.unwrap();
        assert!(
            text.starts_with("on this CPU the run takes about ") && text.contains("--preset demo"),
            "{text}"
        );
        assert_eq!(said("demo", &[]), None);
    }
}
