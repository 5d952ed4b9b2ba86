//! The objects behind the views that a configuration names, for those who render more of them: where they lie, as far as that is
//! known.

use std::path::Path;

use dataset::card::{Card, Origin};
use dataset::{DataSpec, ObjectSet, ProceduralSize};
use scene::Up;

use crate::config::Config;
use crate::error::{Error, Result};

/// The objects of the data that `config` names, where they can be had without asking; `meshes` is where a dataset's lie.
pub fn behind(config: &Config, meshes: Option<&Path>) -> Result<Option<ObjectSet>> {
    if let Some(meshes) = meshes {
        return Ok(Some(ObjectSet::meshes(meshes, None, up_of(config))?));
    }
    let folder = match config.data.parse().map_err(Error::Request)? {
        DataSpec::Procedural(size) => {
            return Ok(Some(ObjectSet::procedural(size, config.procedural.seed)));
        }
        DataSpec::Folder(folder) => folder,
    };
    if ObjectSet::is_mesh_folder(&folder) {
        return Ok(Some(ObjectSet::meshes(&folder, None, None)?));
    }
    let Some(card) = Card::read(&folder)? else { return Ok(None) };
    Ok(match card.settings.origin {
        Origin::Procedural { classes, objects } => {
            Some(ObjectSet::procedural(ProceduralSize { classes, objects }, card.settings.seed))
        }
        Origin::Meshes { .. } | Origin::Imported(_) => None,
    })
}

/// How the meshes of a dataset stand, where its card says it.
fn up_of(config: &Config) -> Option<Up> {
    let DataSpec::Folder(folder) = config.data.parse().ok()? else { return None };
    match Card::read(&folder).ok()??.settings.origin {
        Origin::Meshes { up: Some(up) } => match up.as_str() {
            "y" => Some(Up::Y),
            "z" => Some(Up::Z),
            _ => None,
        },
        _ => None,
    }
}
