//! Names of classes and objects that a dataset cannot have: in the published layout a class is a folder beside the
//! dataset's own files, and the lists hold `/CLASS/OBJECT/`.

use crate::card::{CARD, Format, README};
use crate::checksums::checksum_list;
use crate::error::{Error, Result};
use crate::import::SOURCES;
use crate::lists::{
    CLASSES, folder_entry, image_list, label_list, latent_list, parse_folder_entry, view_count_list,
};
use crate::object::{Object, Split};
use crate::plan::Plan;
use crate::work::finish::{SKIPPED, WARNINGS};
use crate::work::store::WORK;

/// Refuses a plan whose dataset would overwrite its own files, or could not be read again.
pub(crate) fn check(plan: &Plan) -> Result<()> {
    let wrong = |object: &&Object| {
        parse_folder_entry(&folder_entry(object))
            .is_none_or(|(synset, name)| synset != object.synset || name != object.name)
    };
    if let Some(object) = plan.objects.iter().find(wrong) {
        return Err(Error::Request(format!(
            "{:?} cannot be the name of an object: a class and an object are names without slashes and backslashes, \
             not `.` or `..`; rename it",
            object.id()
        )));
    }
    if plan.settings.format == Format::Files
        && let Some(object) = plan.objects.iter().find(|object| is_reserved(&object.synset))
    {
        let how = if plan.settings.imported().is_some() { "" } else { ", or use --format shards" };
        return Err(Error::Request(format!(
            "a class cannot be called {:?}: the dataset has a file of this name; rename the class{how}",
            object.synset
        )));
    }
    Ok(())
}

/// Whether the dataset has something of this name itself. Some file systems do not tell upper from lower case.
fn is_reserved(name: &str) -> bool {
    let own = [CARD, README, CLASSES, SKIPPED, WARNINGS, SOURCES].map(str::to_owned);
    let lists = [image_list, label_list, latent_list, checksum_list, view_count_list];
    let of_splits = Split::ALL.into_iter().flat_map(|split| lists.map(|list| list(split)));
    name.to_lowercase().starts_with(WORK)
        || own.into_iter().chain(of_splits).any(|own| own.to_lowercase() == name.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_the_dataset_s_own_files_are_reserved() {
        for name in
            ["dataset.json", "README.md", "readme.MD", ".equicaps", ".equicaps.removed", "val_labels.npy"]
        {
            assert!(is_reserved(name), "{name}");
        }
        for name in [
            "checksums_train.npy",
            "all_latents_val.npy",
            "skipped.json",
            "warnings.json",
            "classes.json",
            "train_images.npy",
        ] {
            assert!(is_reserved(name), "{name}");
        }
        for name in ["02691156", "README", "shards", "dataset", "equicaps"] {
            assert!(!is_reserved(name), "{name}");
        }
    }
}
