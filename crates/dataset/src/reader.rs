//! Reading a dataset: [`Dataset`], for the published folder layout and for shards alike.

mod hint;
mod rendered;

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use pose::Part;
use scene::Latents;

use crate::card::{Card, Format};
use crate::counted::counted;
use crate::error::{Error, Result};
use crate::image_file::decode_upright;
use crate::import::{Fit, reading, square};
use crate::jpeg::{self, Image};
use crate::latent_table::LatentTable;
use crate::lists;
use crate::object::{Class, Object, Split, SplitBy};
use crate::reader::rendered::{count_views, read_latents};
use crate::resize::Resize;
use crate::split::{FEWEST_VIEWS, all_for_training, held_out_views};
use crate::storage::Storage;
use crate::view_index::ViewIndex;
use crate::views::Views;

/// A dataset on disk.
#[derive(Debug)]
pub struct Dataset {
    root: PathBuf,
    card: Option<Card>,
    objects: Vec<Object>,
    classes: Vec<Class>,
    /// The views of each, with what is held out of them.
    index: ViewIndex,
    /// What the split holds out, as it is used; the card says how the files are laid out.
    split: SplitBy,
    side: usize,
    latents: LatentTable,
    /// What to say of views without a pose, where there are any.
    without_pose: Option<String>,
    storage: Storage,
}

impl Dataset {
    /// Opens the dataset in `root`, which holds its own lists.
    pub fn open(root: &Path) -> Result<Self> {
        Self::open_with_lists(root, root)
    }

    /// Opens the dataset in `root` with the lists in another folder: the published split files come separately from
    /// the images.
    pub fn open_with_lists(root: &Path, lists_folder: &Path) -> Result<Self> {
        if !root.is_dir() {
            return Err(Error::Request(hint::no_folder(root)));
        }
        let card = Card::read(root)?;
        if let Some(card) = card.as_ref().filter(|card| !card.is_complete()) {
            let or_finish = match card.settings.imported() {
                Some(_) => "",
                None => ", or, when all its shards are there, `equicaps dataset finish`",
            };
            return Err(Error::Request(format!(
                "the dataset in {} is not complete: run the command that makes it again to go on{or_finish}",
                root.display()
            )));
        }
        if !lists_folder.join(lists::image_list(Split::Train)).exists() {
            return Err(Error::Request(format!(
                "{} holds no dataset: neither {} nor {} is there{}",
                lists_folder.display(),
                crate::card::CARD,
                lists::image_list(Split::Train),
                hint::instead(root, lists_folder)
            )));
        }
        let split = card.as_ref().map_or(SplitBy::Objects, |card| card.settings.split);
        let objects = lists::read_objects(lists_folder, split)?;
        let classes = lists::read_classes(lists_folder, &objects)?;
        let first = objects.first().ok_or_else(|| {
            Error::content(&lists_folder.join(lists::image_list(Split::Train)), "no objects")
        })?;
        let views = match &card {
            Some(card) => card.settings.views,
            None => count_views(root, first)?,
        };
        if let Some(card) = &card
            && !(1..=1_000_000).contains(&views)
                | !(1..=jpeg::LARGEST_SIDE).contains(&card.settings.size)
                | objects.len().checked_mul(views).is_none()
        {
            return Err(Error::content(&root.join(crate::card::CARD), "views or size make no sense"));
        }
        let is_imported = card.as_ref().is_some_and(|card| card.settings.imported().is_some());
        if split == SplitBy::Views && views < FEWEST_VIEWS && !is_imported {
            let message = format!("a split by views needs {FEWEST_VIEWS} views of every object");
            return Err(Error::content(&root.join(crate::card::CARD), message));
        }
        let imported = card.as_ref().and_then(|card| card.settings.imported());
        let index = match imported {
            Some(_) => reading::read_counts(lists_folder, &objects, split)?,
            None if split == SplitBy::Views => ViewIndex::equal(objects.len(), views, held_out_views(views)),
            None => ViewIndex::equal(objects.len(), views, 0),
        };
        let latents = match imported {
            Some(imported) => reading::read_latents(lists_folder, imported, &objects, &index, split)?,
            None => read_latents(root, lists_folder, &objects, views, split)?,
        };
        let without_pose = match imported {
            Some(imported) => reading::without_pose(root, imported, &latents)?,
            None => None,
        };
        let of_side = |side: Split| {
            let is_there = |object: &usize| split == SplitBy::Views || objects[*object].split == side;
            let views = |object: usize| index.views_of(side, object).len();
            (0..objects.len()).filter(is_there).map(views).sum()
        };
        let counts = Split::ALL.map(of_side);
        let storage = match card.as_ref().map_or(Format::Files, |card| card.settings.format) {
            Format::Files => Storage::files(lists_folder, counts)?,
            Format::Shards => Storage::archives(root, counts)?,
            Format::Reference => Storage::reference(root, lists_folder, card.as_ref(), &index, counts)?,
        };
        let mut dataset = Self {
            root: root.to_path_buf(),
            card,
            objects,
            classes,
            index,
            split,
            side: 0,
            latents,
            without_pose,
            storage,
        };
        dataset.side = match &dataset.card {
            Some(card) => card.settings.size,
            None => dataset.decode(0, 0)?.width,
        };
        Ok(dataset)
    }

    /// The same views, split in another way. Any dataset with enough views can hold out the last of them; one that was
    /// rendered for that has no objects to hold out.
    pub fn with_split(mut self, split: SplitBy) -> Result<Self> {
        if split == self.split {
            return Ok(self);
        }
        let root = self.root.display();
        if split == SplitBy::Objects {
            let made = if self.is_imported() { "imported" } else { "rendered" };
            return Err(Error::Request(format!(
                "{root} was {made} with --split views: none of its objects is held out, only views of them are \
                 (the split by views)"
            )));
        }
        let fewest = (0..self.objects.len()).map(|object| self.index.views(object)).min().unwrap_or(0);
        if fewest < FEWEST_VIEWS {
            let every = if self.index.is_equal() { "every object" } else { "some objects" };
            return Err(Error::Request(format!(
                "{root} has {fewest} views of {every}, but a split by views needs {FEWEST_VIEWS}: a pair for training and a \
                 pair that is held out",
            )));
        }
        all_for_training(&mut self.objects);
        self.index = self.index.holding_out(held_out_views);
        self.split = split;
        Ok(self)
    }

    /// The folder it was opened from.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Its card; the published sets have none.
    pub fn card(&self) -> Option<&Card> {
        self.card.as_ref()
    }

    /// Whether its images are people's own, of which not everything may be known.
    pub fn is_imported(&self) -> bool {
        self.card.as_ref().is_some_and(|card| card.settings.imported().is_some())
    }

    /// Whether its images stay where they were.
    pub fn is_referring(&self) -> bool {
        self.storage.is_reference()
    }

    /// All latents, object by object, view by view.
    pub fn latent_table(&self) -> &LatentTable {
        &self.latents
    }

    /// The views of all objects.
    pub fn index(&self) -> &ViewIndex {
        &self.index
    }

    /// The row of a view in the table of latents.
    pub fn row(&self, object: usize, view: usize) -> usize {
        self.index.row(object, view)
    }

    /// Whether the pose of a view is known.
    pub fn has_pose(&self, object: usize, view: usize) -> bool {
        self.latents.has_pose(self.row(object, view))
    }

    /// The number of one image in the archives: those of training, then those held out.
    fn number(&self, object: usize, view: usize) -> usize {
        match self.card.as_ref().map(|card| card.settings.split) {
            Some(SplitBy::Views) => self.index.place(object, view),
            Some(SplitBy::Objects) | None => self.row(object, view),
        }
    }

    /// What to call one image in messages.
    pub fn image_name(&self, object: usize, view: usize) -> PathBuf {
        self.storage.name(&self.root, &self.objects[object], view, self.number(object, view))
    }

    /// The bytes of one view's image file: a JPEG, or, where images stay where they are, whatever it is.
    pub fn read_jpeg(&self, object: usize, view: usize) -> Result<Vec<u8>> {
        self.storage.read(&self.root, &self.objects[object], view, self.number(object, view))
    }

    /// How many of its images have a checksum, which reading verifies; datasets made by others have none.
    pub fn images_with_checksum(&self) -> usize {
        (0..self.latents.rows()).filter(|&row| self.storage.checksum(row).is_some()).count()
    }

    /// An image that stays where it is, as a square of `side` x `side` pixels, into `pixels`.
    fn referred(&self, object: usize, view: usize, side: usize, pixels: &mut [u8]) -> Result<()> {
        let bytes = self.read_jpeg(object, view)?;
        let fit =
            self.card.as_ref().and_then(|card| card.settings.imported()).map_or(Fit::Crop, |card| card.fit);
        let region = self.storage.region(self.number(object, view));
        decode_upright(&bytes)
            .and_then(|image| square(&image, fit, region, side, pixels))
            .map_err(|message| Error::content(&self.image_name(object, view), message))
    }

    /// One view, decoded as RGB at its stored size.
    pub fn decode(&self, object: usize, view: usize) -> Result<Image> {
        if self.storage.is_reference() {
            let mut pixels = vec![0; self.side * self.side * 3];
            self.referred(object, view, self.side, &mut pixels)?;
            return Ok(Image { width: self.side, height: self.side, pixels });
        }
        let bytes = self.read_jpeg(object, view)?;
        jpeg::decode(&bytes).map_err(|message| Error::content(&self.image_name(object, view), message))
    }
}

thread_local! {
    /// One thread's decoded image and last change of size, used again and again.
    static SCRATCH: RefCell<(Image, Option<Resize>)> = RefCell::default();
}

impl Views for Dataset {
    fn objects(&self) -> &[Object] {
        &self.objects
    }

    fn classes(&self) -> &[Class] {
        &self.classes
    }

    fn views(&self) -> usize {
        self.index.most()
    }

    fn views_in(&self, object: usize) -> usize {
        self.index.views(object)
    }

    fn held_out_views(&self) -> usize {
        self.index.most_held_out()
    }

    fn held_out_in(&self, object: usize) -> usize {
        self.index.held_out_of(object)
    }

    fn has_light(&self) -> bool {
        self.latents.columns().light
    }

    fn without_pose(&self) -> Option<String> {
        self.without_pose.clone()
    }

    fn images_digest(&self) -> Option<u64> {
        self.is_imported().then(|| {
            let mut hash = random::Fnv1a::new();
            let sums = (0..self.latents.rows()).filter_map(|number| self.storage.checksum(number));
            sums.for_each(|sum| hash.add(&sum.to_le_bytes()));
            hash.value()
        })
    }

    fn side(&self) -> usize {
        self.side
    }

    fn has_translation(&self) -> bool {
        self.latents.columns().translation
    }

    fn has(&self, part: Part) -> bool {
        let columns = self.latents.columns();
        self.without_pose().is_none()
            && match part {
                Part::Rotation => true,
                Part::Translation => columns.translation,
                Part::Scale => columns.scale,
                Part::Shear => columns.shear,
                Part::Perspective => false,
            }
    }

    fn latents(&self, object: usize, view: usize) -> Latents {
        self.latents.get(self.row(object, view))
    }

    fn image(&self, object: usize, view: usize, side: usize, pixels: &mut [u8]) -> Result<()> {
        if self.storage.is_reference() {
            return self.referred(object, view, side, pixels);
        }
        let bytes = self.read_jpeg(object, view)?;
        SCRATCH.with_borrow_mut(|(image, resize)| {
            jpeg::decode_into(&bytes, image)
                .map_err(|message| Error::content(&self.image_name(object, view), message))?;
            let (width, height) = (image.width, image.height);
            if (width, height) == (side, side) {
                pixels.copy_from_slice(&image.pixels);
            } else {
                if !resize.as_ref().is_some_and(|resize| resize.fits(width, height, side)) {
                    *resize = Some(Resize::new(width, height, side));
                }
                if let Some(resize) = resize {
                    resize.apply(&image.pixels, pixels);
                }
            }
            Ok(())
        })
    }

    fn description(&self) -> String {
        let fewest = (0..self.objects.len()).map(|object| self.index.views(object)).min().unwrap_or(0);
        let views = match self.index.most() {
            most if most == fewest => format!("{} each", counted(most, "view")),
            most => format!("{fewest} to {most} views each"),
        };
        let held_out = match self.held_out_views() {
            0 => String::new(),
            views if self.index.is_equal() => format!(", {views} of them held out,"),
            _ => ", the last of them held out,".to_owned(),
        };
        format!(
            "{}: {} of {}, {views}{held_out} at {side}x{side}",
            self.root.display(),
            counted(self.objects.len(), "object"),
            counted(self.classes.len(), "class"),
            side = self.side
        )
    }
}
