//! What is looked at: some runs, one set of data, their networks; and the bounds on what is computed at once.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::Device;
use evaluate::builtin;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::data::Data;
use crate::error::{Error, Result};
use crate::networks::Networks;
use crate::refusal::{Refusal, failed};
use crate::run::Run;

/// What to look at.
pub struct Options {
    /// Runs, checkpoints, or `builtin`, which is also what is shown where there are none.
    pub runs: Vec<PathBuf>,
    /// The data, where they are not those of the first run.
    pub data: Option<String>,
    /// The meshes of a dataset, for live views.
    pub meshes: Option<PathBuf>,
    /// Where networks compute.
    pub device: Device,
    /// What renders, where it is not the CPU.
    pub renderer: Option<render::cuda::Renderer>,
}

/// Everything that requests are answered from.
pub struct Explorer {
    /// The runs, as they were named.
    pub runs: Arc<Vec<Run>>,
    /// The data.
    pub data: Arc<Data>,
    /// The networks.
    pub networks: Arc<Networks>,
    device: String,
    /// Images that are made at once.
    images: Semaphore,
    /// Long computations at once.
    long: Semaphore,
    stop: Arc<AtomicBool>,
}

impl Explorer {
    /// Opens the runs and the data; networks are opened when somebody asks for them. `warn` gets what is left out.
    pub fn open(options: Options, warn: &mut dyn FnMut(String)) -> Result<Self> {
        let paths = match options.runs.is_empty() {
            true => vec![PathBuf::from(builtin::NAME)],
            false => options.runs,
        };
        let runs: Vec<Run> = paths.iter().map(|path| Run::open(path)).collect::<Result<_>>()?;
        let first = runs.first().ok_or_else(|| Error::Request("no run is named".to_owned()))?;
        let mut config = first.config().clone();
        if let Some(data) = &options.data {
            config.data.clone_from(data);
            config.lists.clear();
        } else if builtin::is_named(first.path()) {
            config.data = builtin::DATA.to_owned();
            config.split = dataset::SplitBy::Views.into();
            config.procedural.views = BUILTIN_VIEWS;
        }
        if config.data.is_empty() {
            return Err(Error::Request(format!(
                "{} does not say where its data are; give --data",
                first.path().display()
            )));
        }
        let data = Data::open(&config, options.meshes.as_deref(), options.renderer, warn)?;
        if let Some((other, own)) = options.data.is_none().then(|| other_data(&runs, &config.data)).flatten()
        {
            warn(format!(
                "{} was trained on {own}; all runs are looked at with the data of the first, {}",
                other.name, config.data
            ));
        }
        let (runs, data, stop) = (Arc::new(runs), Arc::new(data), Arc::new(AtomicBool::new(false)));
        let device = options.device.name();
        let networks = Networks::new(Arc::clone(&runs), Arc::clone(&data), options.device, Arc::clone(&stop));
        Ok(Self {
            runs,
            data,
            networks: Arc::new(networks),
            device,
            images: Semaphore::new(rayon::current_num_threads().max(2)),
            long: Semaphore::new(1),
            stop,
        })
    }

    /// What the page begins with.
    pub fn describe(&self) -> Result<Value> {
        let runs: Vec<Value> = self.runs.iter().map(Run::describe).collect::<Result<_>>()?;
        Ok(json!({
            "version": env!("CARGO_PKG_VERSION"),
            "device": self.device,
            "runs": runs,
            "data": self.data.describe(),
        }))
    }

    /// Does something that takes milliseconds, beside a bounded number of others.
    pub async fn soon<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> std::result::Result<T, Refusal> + Send + 'static,
    ) -> std::result::Result<T, Refusal> {
        let _permit = self.images.acquire().await.map_err(failed)?;
        self.run(work).await
    }

    /// Does something that may take minutes, one at a time.
    pub async fn long<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> std::result::Result<T, Refusal> + Send + 'static,
    ) -> std::result::Result<T, Refusal> {
        let _permit = self.long.acquire().await.map_err(failed)?;
        self.run(work).await
    }

    async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> std::result::Result<T, Refusal> + Send + 'static,
    ) -> std::result::Result<T, Refusal> {
        let this = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || work(&this)).await;
        done.unwrap_or_else(|_| Err(Refusal::Failed("this could not be computed".to_owned())))
    }

    /// Ends what is being computed.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Views of each object of the network inside the program: enough to look at, few enough to be there in seconds.
const BUILTIN_VIEWS: usize = 24;

/// A run that is known to have been trained on other data than `data`, and on which.
fn other_data<'a>(runs: &'a [Run], data: &str) -> Option<(&'a Run, &'a str)> {
    let own = |run: &'a Run| match builtin::is_named(run.path()) {
        true => (run, builtin::DATA),
        false => (run, run.config().data.as_str()),
    };
    let is_other = |(_, own): &(&Run, &str)| !own.is_empty() && Path::new(own) != Path::new(data);
    runs.iter().map(own).find(is_other)
}
