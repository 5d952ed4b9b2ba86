//! Settings that are chosen from the data and the device: those that are 0 (`refresh`: below 0) where 0 makes no sense.
//! The preset `own` leaves all of them open. What is chosen is a function of the number of training objects, of the size of stored
//! views and of the kind of device alone, and is written to the run's `config.toml`.

use dataset::{Split, SplitBy, Views};
use engine::Device;

use crate::config::{Config, OptimiserName};
use crate::data::{self, Source};
use crate::error::Result;

/// What a kind of device can do in about ten minutes.
struct Scale {
    side: usize,
    width: usize,
    batch: usize,
    /// For up to [`FEW`] objects.
    steps: u64,
    /// How many times as many steps many objects get at most.
    growth: f64,
    optimiser: OptimiserName,
    /// For EquiCaps.
    learning_rate: f64,
    /// Of views that are rendered on the fly.
    refresh: f64,
    /// Views of all objects together that are kept, where they are rendered on the fly.
    pool: usize,
}

const GPU: Scale = Scale {
    side: 128,
    width: 64,
    batch: 1024,
    steps: 3000,
    growth: 2.0,
    optimiser: OptimiserName::Muon,
    learning_rate: 5e-3,
    refresh: 0.2,
    pool: 16_384,
};
const CPU: Scale = Scale {
    side: 64,
    width: 32,
    batch: 64,
    steps: 1200,
    growth: 1.0,
    optimiser: OptimiserName::Adam,
    learning_rate: 2e-3,
    refresh: 0.5,
    pool: 4096,
};

/// Beyond so many objects a run has more steps: twice as many for eight times as many objects.
const FEW: f64 = 100.0;
/// A run has about so many epochs: few objects give more pairs in each.
const EPOCHS: u64 = 100;
/// Fewest and most views of an object that are kept, where they are rendered on the fly.
const VIEWS: (usize, usize) = (50, 2000);
/// Sides of images are multiples of it.
const SIDE_STEP: usize = 32;

/// What is known of data before they are opened for training.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    /// Objects to train on.
    pub objects: usize,
    /// Side of the stored views; none where views are rendered on the fly.
    pub stored: Option<usize>,
}

impl Config {
    /// Whether a setting is still to be chosen.
    pub fn is_automatic(&self) -> bool {
        let zero =
            [self.method.batch, self.method.image_size, self.method.network.width, self.procedural.views];
        let chosen = self.optimiser == OptimiserName::Auto || self.learning_rate == 0.0;
        chosen || self.epochs == 0 || zero.contains(&0) || self.refresh < 0.0
    }

    /// The configuration with every setting chosen that was left open, for training on `device`.
    pub fn chosen(self, device: &Device) -> Result<Self> {
        if !self.is_automatic() {
            return Ok(self);
        }
        let facts = facts(&self)?;
        self.chosen_by(facts, device)
    }

    /// As [`Self::chosen`], for stored views like `views`, which need not be there yet.
    pub fn chosen_for(self, views: &dyn Views, device: &Device) -> Result<Self> {
        self.chosen_by(stored_facts(views), device)
    }

    fn chosen_by(self, facts: Facts, device: &Device) -> Result<Self> {
        let config = choose(self, facts, if matches!(device, Device::Cuda(_)) { GPU } else { CPU });
        config.check()?;
        Ok(config)
    }

    /// The configuration with every setting that was left open as the run with `made` has it.
    pub fn chosen_as(mut self, made: &Self) -> Self {
        let (method, others) = (&mut self.method, &made.method);
        if method.image_size == 0 {
            method.image_size = others.image_size;
        }
        if method.network.width == 0 {
            method.network.width = others.network.width;
        }
        if method.batch == 0 {
            method.batch = others.batch;
        }
        if self.optimiser == OptimiserName::Auto {
            self.optimiser = made.optimiser;
        }
        if self.learning_rate == 0.0 {
            self.learning_rate = made.learning_rate;
        }
        if self.refresh < 0.0 {
            self.refresh = made.refresh;
        }
        if self.procedural.views == 0 {
            self.procedural.views = made.procedural.views;
        }
        if self.epochs == 0 {
            self.epochs = made.epochs;
            if self.pairs_per_object == 0 {
                self.pairs_per_object = made.pairs_per_object;
            }
        }
        self
    }
}

fn choose(mut config: Config, Facts { objects, stored }: Facts, scale: Scale) -> Config {
    let objects = objects.max(1);
    let method = &mut config.method;
    if method.image_size == 0 {
        let stored = stored.unwrap_or(scale.side) / SIDE_STEP * SIDE_STEP;
        method.image_size = scale.side.min(stored).max(SIDE_STEP);
    }
    if method.network.width == 0 {
        method.network.width = scale.width;
    }
    if method.batch == 0 {
        method.batch = scale.batch;
    }
    if config.optimiser == OptimiserName::Auto {
        config.optimiser = scale.optimiser;
    }
    if config.learning_rate == 0.0 {
        config.learning_rate = scale.learning_rate;
    }
    if config.refresh < 0.0 {
        config.refresh = if stored.is_some() { 0.0 } else { scale.refresh };
    }
    if config.procedural.views == 0 {
        config.procedural.views = (scale.pool / objects).clamp(VIEWS.0, VIEWS.1);
    }
    let growth = (objects as f64 / FEW).cbrt().clamp(1.0, scale.growth);
    let steps = (scale.steps as f64 * growth) as u64;
    if config.epochs == 0 {
        let batch = config.method.batch;
        if config.pairs_per_object == 0 {
            // Whole batches: rounded down, an epoch has at most the steps it should have.
            let pairs = (steps / EPOCHS).max(1) as usize * batch / objects;
            config.pairs_per_object = pairs.max(1);
        }
        let pairs = objects * config.pairs_per_object;
        let per_epoch = dataset::order::batch_count(pairs, batch, config.batches.cut()).max(1) as u64;
        config.epochs = steps.div_ceil(per_epoch);
    }
    config
}

fn facts(config: &Config) -> Result<Facts> {
    match data::find(config)? {
        Source::Stored(views) => Ok(stored_facts(&*views)),
        // Their size is not known before they are decoded.
        Source::Photos(photos) => Ok(Facts { objects: photos.split(Split::Train).len(), stored: None }),
        Source::Objects(set) => {
            let objects = match config.split.or(SplitBy::Objects) {
                SplitBy::Views => set.ids().len(),
                SplitBy::Objects => {
                    let objects = dataset::split::assign(config.procedural.seed, &set.ids());
                    objects.iter().filter(|object| object.split == Split::Train).count()
                }
            };
            Ok(Facts { objects, stored: None })
        }
    }
}

fn stored_facts(views: &dyn Views) -> Facts {
    Facts { objects: views.split(Split::Train).len(), stored: Some(views.side()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batches::training_plan;
    use crate::testing::FakeViews;

    fn own(settings: &[&str]) -> Config {
        let mut layers = Config::settings("equicaps", "own").unwrap();
        settings.iter().for_each(|assignment| layers.set(assignment).unwrap());
        Config::resolve(layers).unwrap()
    }

    #[test]
    fn few_objects_fill_batches_and_a_run_has_its_steps() {
        for (objects, steps) in [(5, 3000), (37, 3000), (250, 4071), (800, 6000), (10_000, 6000)] {
            let config = choose(own(&[]), Facts { objects, stored: None }, GPU);
            assert!(!config.is_automatic());
            assert_eq!((config.optimiser, config.learning_rate), (OptimiserName::Muon, 5e-3));
            config.check().unwrap();
            let plan = training_plan(&config, &FakeViews::new(1, objects)).unwrap();
            assert_eq!(plan.objects, objects);
            assert!(
                plan.batch_sizes().iter().all(|&size| size >= 512),
                "{objects}: {:?}",
                plan.batch_sizes()
            );
            let apart = plan.steps().abs_diff(steps);
            assert!(apart < steps / 30, "{objects}: {} steps", plan.steps());
            assert!(config.epochs <= 103 || objects == 10_000, "{objects}: {} epochs", config.epochs);
        }
    }

    #[test]
    fn what_a_run_chose_is_taken_over_and_nothing_else() {
        let facts = Facts { objects: 37, stored: None };
        for settings in [&[][..], &["pairs_per_object=3"], &["epochs=7"], &["batch=64", "refresh=0"]] {
            let chosen = choose(own(settings), facts, GPU);
            assert_eq!(own(settings).chosen_as(&chosen), chosen, "{settings:?}");
        }
        let chosen = choose(own(&[]), facts, GPU);
        let other = ["image_size=96", "network.width=16", "batch=64", "optimiser=adam", "learning_rate=0.01"];
        let other = [&other[..], &["refresh=0.1", "procedural.views=60", "epochs=7"]].concat();
        assert_eq!(own(&other).chosen_as(&chosen), own(&other));
    }

    #[test]
    fn what_the_user_says_stays() {
        let config = own(&["batch=64", "epochs=7", "image_size=96", "refresh=0", "network.width=16"]);
        let chosen = choose(config, Facts { objects: 10, stored: None }, CPU);
        let Config { epochs, refresh, ref method, .. } = chosen;
        assert_eq!((method.batch, epochs, method.image_size, method.network.width), (64, 7, 96, 16));
        assert_eq!((refresh, chosen.pairs_per_object), (0.0, 0));
        assert_eq!((chosen.optimiser, chosen.learning_rate), (OptimiserName::Adam, 2e-3));
        let config = own(&["optimiser=adam", "learning_rate=0.01"]);
        let chosen = choose(config, Facts { objects: 10, stored: None }, GPU);
        assert_eq!((chosen.optimiser, chosen.learning_rate), (OptimiserName::Adam, 0.01));
    }

    #[test]
    fn stored_views_are_neither_enlarged_nor_rendered_anew() {
        let side = |stored| choose(own(&[]), Facts { objects: 10, stored: Some(stored) }, GPU);
        assert_eq!([256, 100, 64, 20].map(|stored| side(stored).method.image_size), [128, 96, 64, 32]);
        assert_eq!(side(64).refresh, 0.0);
    }
}
