//! `dataset check`: is everything there, and does it say the same everywhere?

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;

use rayon::prelude::*;

use crate::arrays;
use crate::card::{Format, named_ranges};
use crate::error::{Error, Result};
use crate::lists::{image_list, label_list, latent_list};
use crate::object::{Object, Split, SplitBy};
use crate::reader::Dataset;
use crate::storage::{archive_name, file_names, sample_key};
use crate::tar;
use crate::views::Views;

/// What was looked at, and what is wrong with it.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Objects.
    pub objects: usize,
    /// Images.
    pub images: usize,
    /// Those of them whose bytes were compared with a checksum.
    pub images_with_checksum: usize,
    /// One sentence a problem.
    pub problems: Vec<String>,
}

/// Checks lists, labels, latents and every image of an open dataset; `on_object` is called after each object.
pub fn check(dataset: &Dataset, on_object: &(dyn Fn() + Sync)) -> Report {
    let mut problems = check_lists(dataset);
    problems.extend(check_sides(dataset));
    problems.extend(check_latents(dataset));
    if dataset.card().is_some_and(|card| card.settings.format == Format::Shards) {
        problems.extend(check_archives(dataset));
    }
    let single_latents =
        !dataset.is_imported() && dataset.card().is_none_or(|card| card.settings.format == Format::Files);
    let images: Vec<Vec<String>> = (0..dataset.objects().len())
        .into_par_iter()
        .map(|object| {
            let problems = check_object(dataset, object, single_latents);
            on_object();
            problems
        })
        .collect();
    problems.extend(images.into_iter().flatten());
    let objects = dataset.objects().len();
    let images = dataset.index().total();
    let images_with_checksum = dataset.images_with_checksum();
    if (1..images).contains(&images_with_checksum) {
        let without = images - images_with_checksum;
        problems
            .push(format!("{without} images have no checksum, the others do: an index is missing or old"));
    }
    Report { objects, images, images_with_checksum, problems }
}

/// Labels are ranks of synsets, no object is listed twice, counts agree with the card.
fn check_lists(dataset: &Dataset) -> Vec<String> {
    let mut problems = Vec::new();
    let classes = dataset.classes();
    let synsets: Vec<&str> = classes.iter().map(|class| class.synset.as_str()).collect();
    if !synsets.iter().filter(|synset| !synset.is_empty()).is_sorted() {
        problems.push("the labels are not in the order of the synsets".to_owned());
    }
    let mut seen: HashMap<(&str, &str), Split> = HashMap::new();
    for object in dataset.objects() {
        let id = object.id();
        if synsets.get(object.label as usize) != Some(&object.synset.as_str()) {
            let expected = synsets.iter().position(|synset| *synset == object.synset);
            let expected = expected.map_or("none".to_owned(), |label| label.to_string());
            problems.push(format!("{id} has label {}, its synset's is {expected}", object.label));
        }
        match seen.insert((&object.synset, &object.name), object.split) {
            Some(split) if split == object.split => problems.push(format!("{id} is listed twice in {split}")),
            Some(_) => problems.push(format!("{id} is on both sides of the split")),
            None => {}
        }
    }
    if let Some(counts) = dataset.card().and_then(|card| card.counts.as_ref()) {
        let sides = [(Split::Train, counts.train_objects), (Split::Val, counts.val_objects)];
        for (split, expected) in sides {
            let found = dataset.split(split).len();
            if found != expected {
                problems.push(format!("{found} objects in {split}, the card says {expected}"));
            }
        }
        let images = dataset.index().total();
        if images != counts.images {
            problems.push(format!("the lists name {images} images, the card says {}", counts.images));
        }
        if dataset.classes().len() != counts.classes {
            let found = dataset.classes().len();
            problems.push(format!("{found} classes, the card says {}", counts.classes));
        }
    }
    problems
}

/// With a split by views both sides have the same lists.
fn check_sides(dataset: &Dataset) -> Vec<String> {
    if dataset.card().is_none_or(|card| card.settings.split == SplitBy::Objects) {
        return Vec::new();
    }
    let differs = |name: fn(Split) -> String| {
        let [train, val] = Split::ALL.map(|split| dataset.root().join(name(split)));
        match (std::fs::read(&train), std::fs::read(&val)) {
            (Ok(a), Ok(b)) if a == b => None,
            (Ok(_), Err(error)) => Some(Error::read(&val)(error).to_string()),
            // Those of training were read before.
            _ => Some(format!("{}: not the same as {}", val.display(), name(Split::Train))),
        }
    };
    let has_latents = dataset.latent_table().width() > 0;
    let lists: &[fn(Split) -> String] = &[image_list, label_list, latent_list];
    lists[..if has_latents { 3 } else { 2 }].iter().copied().filter_map(differs).collect()
}

/// Latents are finite, in range, and those that seed, object and view give.
fn check_latents(dataset: &Dataset) -> Vec<String> {
    let settings = dataset.card().map(|card| &card.settings);
    // What people measured was read with the dataset; there are no ranges.
    if dataset.is_imported() {
        return Vec::new();
    }
    let ranges = settings.and_then(|settings| settings.ranges.as_ref()).map(named_ranges);
    let of_object = |(number, object): (usize, &Object)| {
        let mut problems = Vec::new();
        for view in 0..dataset.views() {
            let row = dataset.latent_table().row(dataset.row(number, view));
            if row.iter().any(|value| !value.is_finite()) {
                problems.push(format!("{}, view {view}: a latent is not a number", object.id()));
                continue;
            }
            for (value, (name, [low, high])) in row.iter().zip(ranges.iter().flatten()) {
                if value < low || value > high {
                    problems.push(format!(
                        "{}, view {view}: {name} is {value}, outside {low} to {high}",
                        object.id()
                    ));
                }
            }
            if let Some(settings) = settings
                && let Some(ranges) = settings.ranges
                && ranges.sample(settings.seed, &object.id(), view as u64).to_vec() != row
            {
                problems.push(format!("{}, view {view}: the latents are not those of the seed", object.id()));
            }
        }
        problems
    };
    dataset
        .objects()
        .par_iter()
        .enumerate()
        .map(of_object)
        .collect::<Vec<_>>()
        .into_iter()
        .flatten()
        .collect()
}

/// Every image has its checksum, where there is one, and decodes at the right size, and its latent file says what the table says.
fn check_object(dataset: &Dataset, number: usize, single_latents: bool) -> Vec<String> {
    let object = &dataset.objects()[number];
    let side = dataset.side();
    let mut problems = Vec::new();
    for view in 0..dataset.views_in(number) {
        let name = dataset.image_name(number, view);
        match dataset.decode(number, view) {
            Err(error) => problems.push(error.to_string()),
            Ok(image) if (image.width, image.height) != (side, side) => problems.push(format!(
                "{}: {}x{} pixels, expected {side}x{side}",
                name.display(),
                image.width,
                image.height
            )),
            Ok(_) => {}
        }
        if single_latents {
            let path = dataset.root().join(&object.synset).join(&object.name).join(&file_names(view)[1]);
            let row = dataset.latent_table().row(dataset.row(number, view));
            match arrays::read_floats(&path) {
                Err(error) => problems.push(error.to_string()),
                Ok((shape, values)) if shape != [row.len()] || values != row => {
                    problems.push(format!(
                        "{}: not the latents that the table has for this view",
                        path.display()
                    ));
                }
                Ok(_) => {}
            }
        }
    }
    problems
}

/// The members of the archives are those of the lists, in order, with the latents and labels of the tables.
fn check_archives(dataset: &Dataset) -> Vec<String> {
    let mut problems = Vec::new();
    for split in Split::ALL {
        let mut expected = dataset
            .split(split)
            .flat_map(|object| dataset.views_of(split, object).map(move |view| (object, view)));
        for number in 0.. {
            let path = dataset.root().join(archive_name(split, number));
            if !path.exists() {
                break;
            }
            match check_archive(dataset, &path, &mut expected) {
                Ok(found) => problems.extend(found),
                Err(error) => problems.push(error.to_string()),
            }
        }
    }
    problems
}

fn check_archive(
    dataset: &Dataset,
    path: &Path,
    expected: &mut impl Iterator<Item = (usize, usize)>,
) -> Result<Vec<String>> {
    use std::io::{Read, Seek, SeekFrom};
    let mut problems = Vec::new();
    let mut file = File::open(path).map_err(Error::read(path))?;
    for sample in tar::members(&mut file, path)?.chunks(3) {
        let Some((object, view)) = expected.next() else {
            problems.push(format!("{}: more samples than the lists name", path.display()));
            break;
        };
        let key = sample_key(&dataset.objects()[object], view);
        let names: Vec<&str> = sample.iter().map(|member| member.name.as_str()).collect();
        let wanted = ["jpg", "latent.npy", "cls"].map(|extension| format!("{key}.{extension}"));
        if names != wanted {
            problems.push(format!("{}: found {names:?} where {key} was expected", path.display()));
            continue;
        }
        let mut read = |member: &tar::Member| -> Result<Vec<u8>> {
            let mut bytes = vec![0; member.length as usize];
            file.seek(SeekFrom::Start(member.offset)).map_err(Error::read(path))?;
            file.read_exact(&mut bytes).map_err(Error::read(path))?;
            Ok(bytes)
        };
        let row = dataset.latent_table().row(dataset.row(object, view));
        if arrays::parse_floats(&read(&sample[1])?).ok() != Some((vec![row.len()], row.to_vec())) {
            problems.push(format!("{}: {} is not the table's row", path.display(), sample[1].name));
        }
        if read(&sample[2])? != dataset.objects()[object].label.to_string().as_bytes() {
            problems.push(format!("{}: {} is not the object's label", path.display(), sample[2].name));
        }
    }
    Ok(problems)
}
