//! Where a run's views come from: a dataset on disk, or the procedural library rendered on the fly.

use std::path::Path;
use std::sync::Arc;

use dataset::{
    CpuRenderer, DataSpec, Dataset, ObjectSet, OnTheFly, OnTheFlyOptions, ProceduralSize, Split, Views,
};
use render::Quality;
use scene::LatentRanges;

use crate::config::Config;
use crate::error::{Error, Result};

/// Opens the views that `config.data` names.
pub fn open(config: &Config) -> Result<Arc<dyn Views>> {
    let spec: DataSpec = config
        .data
        .parse()
        .map_err(|problem: String| Error::Request(format!("--data {}: {problem}", config.data)))?;
    let views: Arc<dyn Views> = match spec {
        DataSpec::Folder(folder) => Arc::new(open_folder(&folder)?),
        DataSpec::Procedural(size) => Arc::new(on_the_fly(config, size)),
    };
    let needs_translation = config.transform != "rotation";
    if needs_translation && !views.has_translation() {
        return Err(Error::Request(format!(
            "transform {} needs views with translations (3DIEBench-T), but {} has none",
            config.transform, config.data
        )));
    }
    if views.split(Split::Train).is_empty() {
        return Err(Error::Request(format!("{} has no training objects", config.data)));
    }
    Ok(views)
}

fn open_folder(folder: &Path) -> Result<Dataset> {
    if !folder.exists() {
        return Err(Error::Request(format!(
            "there is no dataset at {}; make one with: equicaps render --out {}, or try --data procedural:5x4",
            folder.display(),
            folder.display()
        )));
    }
    Ok(Dataset::open(folder)?)
}

fn on_the_fly(config: &Config, size: ProceduralSize) -> OnTheFly<CpuRenderer> {
    let settings = &config.procedural;
    let with_translation = match settings.latents.as_str() {
        "3diebench-t" => true,
        "3diebench" => false,
        _ => config.transform != "rotation",
    };
    let quality = match settings.quality.as_str() {
        "reference" => Quality::Reference,
        "standard" => Quality::Standard,
        _ => Quality::Fast,
    };
    let set = ObjectSet::procedural(size, settings.seed);
    let ids = set.ids();
    let options = OnTheFlyOptions {
        views: settings.views,
        side: config.image_size,
        seed: settings.seed,
        ranges: if with_translation { LatentRanges::BENCH_T } else { LatentRanges::BENCH },
        memory: settings.memory_mib << 20,
    };
    OnTheFly::new(CpuRenderer::new(set, quality), &ids, options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(settings: &[&str]) -> String {
        let mut layers = Config::settings("equicaps", "demo").unwrap();
        settings.iter().for_each(|assignment| layers.set(assignment).unwrap());
        open(&Config::resolve(layers).unwrap()).map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn wrong_data_are_named() {
        assert!(message(&["data=no/such/folder"]).starts_with("there is no dataset at no/such/folder"));
        assert!(message(&["data=procedural:5"]).contains("expected CLASSESxOBJECTS"));
        assert!(
            message(&["data=procedural:2x5", "transform=rotation+base", "procedural.latents=3diebench"])
                .contains("needs views with translations")
        );
    }
}
