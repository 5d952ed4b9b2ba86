//! How long a run takes: measured by a few steps of the same network on the same device, before it starts.

use std::time::{Duration, Instant};

use dataset::{Split, TrainingPlan, Views};
use engine::Device;
use methods::PairBatch;

use crate::bad_samples::with_a_way_on;
use crate::batches::training_plan;
use crate::config::{Config, OnBadSample};
use crate::data::Data;
use crate::error::Result;
use crate::network::new_step;

/// On the CPU, pairs in a step of the measurement at least: enough for all threads, few enough for seconds.
const PAIRS: usize = 4;
/// Pixels of the first views of such a step, where they are small: a few small images are slower than many.
const PIXELS: usize = 1 << 18;
/// Objects whose views are rendered for the measurement.
const OBJECTS: usize = 8;
/// Hours of a run that nobody should start unknowingly.
const LONG_HOURS: f64 = 2.0;
/// A run is measured where it has more than so many images times pixels times channels of the first stage; others take
/// minutes. (The preset `demo` on 1,000 objects has 1.5e10; two hours on two fast cores are 3e11.)
const WORTH_MEASURING: f64 = 1e11;

/// Images that a run trains on, two a pair.
fn images(plan: &TrainingPlan) -> f64 {
    2.0 * (plan.objects * plan.pairs) as f64 * plan.epochs as f64
}

/// How long a run of `config` on `data` should take.
pub fn seconds(config: &Config, data: &Data) -> Result<f64> {
    let plan = training_plan(config, &*data.views)?;
    let pair = pair_seconds(config, &*data.views, &data.device)?;
    let rendering = rendering_time(config, data, &plan)?;
    Ok(training_seconds(&plan, pair) + rendering.as_secs_f64())
}

/// How long the steps of `plan` should take, where a pair takes `pair_seconds`.
pub fn training_seconds(plan: &TrainingPlan, pair_seconds: f64) -> f64 {
    images(plan) / 2.0 * pair_seconds
}

/// How long a pair of views takes in a step of `config`, measured on `device`; of `views` only their kind matters.
pub fn pair_seconds(config: &Config, views: &dyn Views, device: &Device) -> Result<f64> {
    Ok(step_time(config, views, device)?.as_secs_f64() / config.method.batch as f64)
}

/// A time in words: `12 minutes`, `30 hours`, `88 days`.
pub fn in_words(seconds: f64) -> String {
    let minutes = (seconds / 60.0).ceil();
    match minutes as u64 {
        0..=1 => "1 minute".to_owned(),
        2..=120 => format!("{minutes} minutes"),
        121..=4320 => format!("{:.0} hours", minutes / 60.0),
        _ => format!("{:.0} days", minutes / 1440.0),
    }
}

/// A sentence about a run of `config` on `data` that would take hours on the CPU. `None` for short runs, and on a GPU.
pub fn warning(config: &Config, data: &Data) -> Option<String> {
    let plan = training_plan(config, &*data.views).ok()?;
    let (size, width) = (config.method.image_size as f64, config.method.network.width as f64);
    let is_long = images(&plan) * size * size * width > WORTH_MEASURING;
    if !is_long || matches!(data.device, Device::Cuda(_)) {
        return None;
    }
    // What cannot be measured fails by itself later, with a reason.
    let seconds = seconds(config, data).ok()?;
    (seconds >= LONG_HOURS * 3600.0).then(|| {
        format!(
            "on this CPU the run takes about {} ({:.0} images, by a measured step of {}); --preset own and --preset demo \
             are for such a machine, or use a GPU (equicaps devices says what is there and what is missing)",
            in_words(seconds),
            images(&plan),
            2 * measured_pairs(config)
        )
    })
}

/// Pairs in a step of the measurement on the CPU.
fn measured_pairs(config: &Config) -> usize {
    PAIRS.max(PIXELS / config.method.image_size.pow(2).max(1)).min(config.method.batch)
}

/// The time of a step: on the CPU that of a few pairs, scaled.
fn step_time(config: &Config, views: &dyn Views, device: &Device) -> Result<Duration> {
    let batch = config.method.batch;
    let (pairs, warm, measured) =
        if matches!(device, Device::Cuda(_)) { (batch, 3, 5) } else { (measured_pairs(config), 1, 1) };
    let method = &config.method;
    // Random batches have labels of 55 classes.
    let mut step = new_step(config, views, views.classes().len().max(55), device)?;
    let mut inputs = PairBatch::random(device, method.transform, pairs, method.image_size)?;
    inputs.targets = inputs.targets.with_hues(device, &vec![[0.1, 0.2]; pairs])?;
    let mut one = || step.step(&inputs, &config.adam())?.read().map(|_| ());
    (0..warm).try_for_each(|_| one())?;
    let start = Instant::now();
    (0..measured).try_for_each(|_| one())?;
    Ok(start.elapsed().mul_f64(batch as f64 / (pairs * measured) as f64))
}

/// The time that rendering adds: on the CPU, where it takes the cores of the training.
fn rendering_time(config: &Config, data: &Data, plan: &TrainingPlan) -> Result<Duration> {
    let views = &*data.views;
    if matches!(data.device, Device::Cuda(_)) || !views.has_more_views() {
        return Ok(Duration::ZERO);
    }
    let images = images(plan);
    let kept = ((plan.objects * plan.views) as f64).min(images);
    let rendered = images * plan.refresh + kept * (1.0 - plan.refresh);
    let side = config.method.image_size;
    let mut pixels = vec![0; 3 * side * side];
    let mut objects = Vec::new();
    // Objects are loaded first.
    for object in views.split(Split::Train) {
        match views.image(object, 0, side, &mut pixels) {
            Ok(()) => objects.push(object),
            Err(_) if config.loader.on_bad_sample == OnBadSample::Skip => {}
            Err(error) => return Err(with_a_way_on(error, "leaves out what cannot be used").into()),
        }
        if objects.len() == OBJECTS {
            break;
        }
    }
    if objects.is_empty() {
        return Ok(Duration::ZERO);
    }
    let start = Instant::now();
    objects.iter().try_for_each(|&object| views.image(object, 1, side, &mut pixels))?;
    let workers = match config.loader.workers {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        workers => workers,
    };
    Ok(start.elapsed().mul_f64(rendered / (objects.len() * workers) as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::FakeViews;

    fn said(preset: &str, settings: &[&str]) -> Option<String> {
        let mut layers = Config::settings("equicaps", preset).unwrap();
        settings.iter().for_each(|assignment| layers.set(assignment).unwrap());
        let data = Data::on_host(std::sync::Arc::new(FakeViews::new(4, 20)), &Device::cpu());
        warning(&Config::resolve(layers).unwrap(), &data)
    }

    #[test]
    fn days_on_a_cpu_are_said_before_they_begin() {
        // Small images, so that the measurement is short, and very many of them.
        let text = said("paper", &["image_size=64", "epochs=99999", "network.width=32"]);
        // A machine that does these 200 million images in two hours is not known.
        let text = text.unwrap();
        assert!(
            text.starts_with("on this CPU the run takes about ") && text.contains("--preset own"),
            "{text}"
        );
        assert_eq!(said("demo", &["epochs=10"]), None);
    }

    #[test]
    fn times_in_words() {
        assert_eq!([3.0, 90.0, 9000.0, 1e6].map(in_words), ["1 minute", "2 minutes", "2 hours", "12 days"]);
    }
}
