//! What a run will do, before it does it: its batches, its steps, and how long they should take.

use std::fmt;

use dataset::{TrainingPlan, Views, counted, shown_warnings};
use engine::Device;
use methods::{MethodName, Transform};
use serde::Serialize;

use crate::batches::training_plan;
use crate::config::Config;
use crate::data::Data;
use crate::error::{Error, Result};
use crate::estimate;
use crate::warnings::{harmful_rest, warnings};

/// The plan of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// The method.
    pub method: MethodName,
    /// What it is trained for.
    pub transform: Transform,
    /// Where it is trained, in words.
    pub device: String,
    /// The data, in words.
    pub data: String,
    /// Objects it is trained on.
    pub objects: usize,
    /// Views of each that are kept.
    pub views: usize,
    /// Share of the images that are rendered anew.
    pub refresh: f64,
    /// Side of the images in pixels.
    pub image_size: usize,
    /// Pairs of every object in an epoch.
    pub pairs_per_object: usize,
    /// Pairs in each step of an epoch.
    pub batch_sizes: Vec<usize>,
    /// Epochs.
    pub epochs: u64,
    /// Steps in all.
    pub steps: u64,
    /// How long training should take on this device, by a few measured steps.
    pub estimated_seconds: f64,
    /// What may go wrong.
    pub warnings: Vec<String>,
}

impl Plan {
    /// The plan of a run of `config` on `data`. Measures a few steps.
    pub fn of(config: &Config, data: &Data) -> Result<Self> {
        let seconds = estimate::seconds(config, data)?;
        let mut plan = Self::taking(config, &*data.views, &data.device, |_| seconds)?;
        // Of the objects that these steps have loaded.
        plan.warnings.extend(shown_warnings(data.views.warnings(), ""));
        Ok(plan)
    }

    /// The plan of a run of `config` on `views`, which takes as long as `seconds` says of its steps.
    pub fn taking(
        config: &Config,
        views: &dyn Views,
        device: &Device,
        seconds: impl FnOnce(&TrainingPlan) -> f64,
    ) -> Result<Self> {
        let plan = training_plan(config, views)?;
        Ok(Self {
            method: config.method.name,
            transform: config.method.transform,
            device: device.description(),
            data: views.description(),
            objects: plan.objects,
            views: plan.views,
            refresh: plan.refresh,
            image_size: config.method.image_size,
            pairs_per_object: plan.pairs,
            batch_sizes: plan.batch_sizes(),
            epochs: plan.epochs,
            steps: plan.steps(),
            estimated_seconds: seconds(&plan),
            warnings: warnings(config, views),
        })
    }
}

/// Sizes of batches in words: `8 x 1024 + 608`.
pub(crate) fn batches_in_words(sizes: &[usize]) -> String {
    let runs = sizes.chunk_by(|a, b| a == b).map(|run| match run {
        [size] => size.to_string(),
        _ => format!("{} x {}", run.len(), run[0]),
    });
    runs.collect::<Vec<_>>().join(" + ")
}

/// The batches of an epoch in words.
pub fn epoch_in_words(plan: &TrainingPlan) -> String {
    in_words(plan.pairs, &plan.batch_sizes())
}

fn in_words(pairs: usize, sizes: &[usize]) -> String {
    let pairs = match pairs {
        1 => "one pair".to_owned(),
        _ => counted(pairs, "pair"),
    };
    format!("an epoch has {pairs} of every object, in batches of {}", batches_in_words(sizes))
}

impl fmt::Display for Plan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = estimate::in_words(self.estimated_seconds);
        let Self { method, transform, device, data, objects, image_size, refresh, .. } = self;
        let told = if method.learns_pose() { format!(", trained for {transform}") } else { String::new() };
        writeln!(formatter, "{method}{told}, on {device}")?;
        let objects = counted(objects, "object");
        writeln!(formatter, "data: {data}; {objects} for training, {refresh} of the views fresh")?;
        writeln!(
            formatter,
            "{}, at {image_size}x{image_size}",
            in_words(self.pairs_per_object, &self.batch_sizes)
        )?;
        let (epochs, steps) = (counted(self.epochs, "epoch"), counted(self.steps, "step"));
        write!(formatter, "{epochs}, {steps}, about {time}")?;
        self.warnings.iter().try_for_each(|warning| write!(formatter, "\nwarning: {warning}"))
    }
}

/// Refuses a new run whose batches would undo each other.
pub(crate) fn check(config: &Config, data: &Data) -> Result<()> {
    let plan = training_plan(config, &*data.views)?;
    harmful_rest(config, &plan).map_or(Ok(()), |problem| Err(Error::Request(problem)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::FakeViews;
    use std::sync::Arc;

    fn plan(objects: usize, settings: &[&str]) -> (Config, Data) {
        let mut layers = Config::settings("equicaps", "paper").unwrap();
        for setting in ["network.width=8", "image_size=32", "network.capsules=4"].iter().chain(settings) {
            layers.set(setting).unwrap();
        }
        let views = Arc::new(FakeViews::new(1, objects));
        (Config::resolve(layers).unwrap(), Data::on_host(views, &Device::cpu()))
    }

    #[test]
    fn a_published_rest_below_a_quarter_is_refused_and_the_way_out_is_named() {
        let (config, data) = plan(36, &["batch=32"]);
        let message = check(&config, &data).unwrap_err().to_string();
        assert!(
            message.contains("would have 4 pairs")
                && message.contains("batches=whole makes batches of 2 x 18"),
            "{message}"
        );
        for settings in [&["batch=32", "batches=whole"][..], &["batch=27"]] {
            let (config, data) = plan(36, settings);
            check(&config, &data).unwrap();
        }
    }

    #[test]
    fn a_plan_says_what_will_happen() {
        let (config, data) = plan(20, &["batch=16", "batches=whole", "epochs=3"]);
        let whole = Plan::of(&config, &data).unwrap();
        assert_eq!(
            (whole.batch_sizes.as_slice(), whole.pairs_per_object, whole.steps),
            (&[10, 10][..], 1, 6)
        );
        assert!(whole.estimated_seconds > 0.0);
        assert!(whole.to_string().contains("in batches of 2 x 10, at 32x32"), "{whole}");
        let (config, data) = plan(4, &["batch=16"]);
        assert_eq!(Plan::of(&config, &data).unwrap().batch_sizes, [16]);
        let (config, data) = plan(4, &["batch=16", "pairs_per_object=1"]);
        let small = Plan::of(&config, &data).unwrap();
        let shrunk = |text: &String| text.starts_with("batches have 4 pairs, not 16");
        assert!(small.warnings.iter().any(shrunk), "{:?}", small.warnings);
    }

    #[test]
    fn sizes_in_words() {
        assert_eq!(batches_in_words(&[1024, 1024, 608]), "2 x 1024 + 608");
        assert_eq!(batches_in_words(&[37]), "37");
    }
}
