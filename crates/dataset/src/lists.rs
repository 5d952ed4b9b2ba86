//! The lists of a dataset: which objects are on which side of the split, their labels, the names of the classes.

use std::collections::BTreeMap;
use std::path::Path;

use crate::arrays;
use crate::error::{Error, Result};
use crate::object::{Class, Object, Split, SplitBy};

/// File names of the lists of one side of the split.
pub fn image_list(split: Split) -> String {
    format!("{split}_images.npy")
}

/// File name of the labels of one side of the split.
pub fn label_list(split: Split) -> String {
    format!("{split}_labels.npy")
}

/// File name of the latents of one side of the split.
pub fn latent_list(split: Split) -> String {
    format!("all_latents_{split}.npy")
}

/// File name of the numbers of views of one side of the split, where they differ.
pub fn view_count_list(split: Split) -> String {
    format!("view_counts_{split}.npy")
}

/// Labels are below this.
const MOST_CLASSES: u32 = 1 << 16;

/// File name of the classes.
pub const CLASSES: &str = "classes.json";

/// The object folder as the lists write it: `/SYNSET/OBJECT/`.
pub fn folder_entry(object: &Object) -> String {
    format!("/{}/{}/", object.synset, object.name)
}

/// The lists that name every object once: those of both sides, or, where views are held out and both sides have all
/// objects, those of training.
pub fn sides(split: SplitBy) -> &'static [Split] {
    match split {
        SplitBy::Objects => &Split::ALL,
        SplitBy::Views => &[Split::Train],
    }
}

/// Reads the objects of both sides from the lists in `folder`.
pub fn read_objects(folder: &Path, split: SplitBy) -> Result<Vec<Object>> {
    let mut objects = Vec::new();
    for &split in sides(split) {
        let images_path = folder.join(image_list(split));
        let labels_path = folder.join(label_list(split));
        let images = arrays::read_strings(&images_path)?;
        let (_, labels) = arrays::read_integers(&labels_path)?;
        if images.len() != labels.len() {
            let message =
                format!("{} labels for the {} objects of {}", labels.len(), images.len(), image_list(split));
            return Err(Error::content(&labels_path, message));
        }
        for (row, (image, &label)) in images.iter().zip(&labels).enumerate() {
            let (synset, name) = parse_folder_entry(image).ok_or_else(|| {
                Error::content(&images_path, format!("row {row} is {image:?}, expected /SYNSET/OBJECT/"))
            })?;
            let label = u32::try_from(label).ok().filter(|&label| label < MOST_CLASSES).ok_or_else(|| {
                let message = format!("row {row} is {label}, expected a class of 0 to {}", MOST_CLASSES - 1);
                Error::content(&labels_path, message)
            })?;
            objects.push(Object { synset, name, label, split });
        }
    }
    Ok(objects)
}

/// `/SYNSET/OBJECT/` to its two names; `None` for anything that could lead elsewhere.
pub(crate) fn parse_folder_entry(entry: &str) -> Option<(String, String)> {
    let (synset, name) = entry.trim_matches('/').split_once('/')?;
    let plain = |part: &str| !matches!(part, "" | "." | "..") && !part.contains(['/', '\\', '\0']);
    (plain(synset) && plain(name)).then(|| (synset.to_owned(), name.to_owned()))
}

/// Reads `classes.json`, or makes the classes up from the objects where there is none.
pub fn read_classes(folder: &Path, objects: &[Object]) -> Result<Vec<Class>> {
    let path = folder.join(CLASSES);
    match std::fs::read(&path) {
        Ok(bytes) => {
            let classes: Vec<Class> = serde_json::from_slice(&bytes)
                .map_err(|error| Error::content(&path, format!("not a list of classes: {error}")))?;
            if let Some((label, class)) = (0_u32..).zip(&classes).find(|(label, class)| *label != class.label)
            {
                return Err(Error::content(&path, format!("class {} stands in place {label}", class.label)));
            }
            match objects.iter().find(|object| object.label as usize >= classes.len()) {
                Some(object) => {
                    let (label, folder, count) = (object.label, folder_entry(object), classes.len());
                    let message = format!("names {count} classes, but object {folder} has label {label}");
                    Err(Error::content(&path, message))
                }
                None => Ok(classes),
            }
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(classes_of(objects)),
        Err(error) => Err(Error::read(&path)(error)),
    }
}

/// The classes that the objects' labels imply: those of ShapeNet where they agree with it, else each named after its
/// folder.
fn classes_of(objects: &[Object]) -> Vec<Class> {
    let by_label: BTreeMap<u32, &str> = objects.iter().map(|o| (o.label, o.synset.as_str())).collect();
    let shapenet = procedural::classes();
    if by_label
        .iter()
        .all(|(&label, synset)| shapenet.get(label as usize).is_some_and(|c| c.synset == *synset))
    {
        let class = |c: &procedural::Class| Class {
            label: c.label as u32,
            synset: c.synset.to_owned(),
            name: c.name.to_owned(),
        };
        return shapenet.iter().map(class).collect();
    }
    let count = by_label.keys().next_back().map_or(0, |&last| last + 1);
    (0..count)
        .map(|label| {
            let synset = by_label.get(&label).map_or(String::new(), |&synset| synset.to_owned());
            Class { label, name: class_name(&synset), synset }
        })
        .collect()
}

/// The usual name of a ShapeNet synset; any other folder is its own name.
pub fn class_name(synset: &str) -> String {
    let known = procedural::classes().iter().find(|class| class.synset == synset);
    known.map_or(synset, |class| class.name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_classes_must_name_them_all() {
        let folder = tempfile::tempdir().unwrap();
        let object = |label| Object { synset: "mugs".into(), name: "o".into(), label, split: Split::Train };
        let path = folder.path().join(CLASSES);
        std::fs::write(&path, r#"[{"label": 0, "synset": "mugs", "name": "mug"}]"#).unwrap();
        assert_eq!(read_classes(folder.path(), &[object(0)]).unwrap().len(), 1);
        let message = read_classes(folder.path(), &[object(0), object(1)]).unwrap_err().to_string();
        assert!(message.ends_with("names 1 classes, but object /mugs/o/ has label 1"), "{message}");
    }

    #[test]
    fn classes_without_a_list_are_those_of_shapenet_or_the_folders() {
        let object = |synset: &str, label| Object {
            synset: synset.to_owned(),
            name: "o".to_owned(),
            label,
            split: Split::Train,
        };
        let chairs = classes_of(&[object("03001627", 18)]);
        assert_eq!((chairs.len(), chairs[18].name.as_str()), (55, "chair"));
        let own = classes_of(&[object("mugs", 0), object("pans", 2)]);
        assert_eq!(own.iter().map(|class| class.name.as_str()).collect::<Vec<_>>(), ["mugs", "", "pans"]);
    }

    #[test]
    fn entries_are_taken_with_their_slashes_and_never_lead_elsewhere() {
        let parse = |entry| parse_folder_entry(entry);
        assert_eq!(parse("/02691156/1015/"), Some(("02691156".to_owned(), "1015".to_owned())));
        assert_eq!(parse("02691156/1015"), Some(("02691156".to_owned(), "1015".to_owned())));
        for wrong in ["", "/", "/a/", "/a/b/c/", "/../a/", "/a/../", "/a\\b/c/"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
