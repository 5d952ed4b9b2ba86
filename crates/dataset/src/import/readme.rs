//! The card of imported images for people.

use crate::card::{Card, Format};
use crate::counted::counted;
use crate::import::Imported;
use crate::object::SplitBy;

impl Imported {
    /// The text of `README.md`, where `classes` have objects.
    pub(crate) fn readme(&self, card: &Card, classes: usize) -> String {
        let s = &card.settings;
        let mut text = format!("# Images imported from {}\n\n", self.source);
        let views = match (self.fewest_views, s.views) {
            (fewest, most) if fewest == most => format!("{} each", counted(most, "view")),
            (fewest, most) => format!("{fewest} to {most} views each"),
        };
        let skipped = card.counts.as_ref().map_or(0, |counts| counts.skipped_objects);
        let fit = match self.boxes {
            0 => self.fit.words().to_owned(),
            boxes => {
                format!("cut around the box of their object ({boxes} views), or else {}", self.fit.words())
            }
        };
        text += &format!(
            "Imported by equicaps {}: {}, {views}. Images are {fit}, at {size}x{size} pixels; their aspect is \
             kept.\n\n",
            s.version,
            counted(s.objects - skipped.min(s.objects), "object"),
            size = s.size
        );
        if let Some(counts) = &card.counts {
            let [train, val] = counts.images_of_sides.unwrap_or_default();
            text += &format!(
                "| | objects | images |\n|---|---|---|\n| train | {} | {train} |\n| val | {} | {val} |\n\n{}.\n\n",
                counts.train_objects,
                counts.val_objects,
                counted(classes, "class")
            );
            if counts.skipped_images > 0 {
                let empty = match counts.classes - classes.min(counts.classes) {
                    0 => String::new(),
                    empty => format!(", classes {empty}, which keep their labels"),
                };
                text += &format!(
                    "Left out (`skipped.json`): images {}, objects of which nothing is left {}{empty}.\n\n",
                    counts.skipped_images, counts.skipped_objects
                );
            }
        }
        text += match s.split {
            SplitBy::Objects => "Whole objects are held out.\n\n",
            SplitBy::Views => {
                "The split is by views: both sides have all objects; the last views of each are held out, as many as \
                 `view_counts_val.npy` says.\n\n"
            }
        };
        text += "## Files\n\n";
        text += match s.format {
            Format::Reference => "- the images are where they were: see `folder` in `dataset.json`\n",
            Format::Files | Format::Shards => "- `CLASS/OBJECT/image_i.jpg`: view i of an object\n",
        };
        text += "- `sources.jsonl`: for every view, in the order of the lists, its file and where it was named\n\
                 - `{train,val}_images.npy`, `{train,val}_labels.npy`: object folders `/CLASS/OBJECT/` and their class labels\n\
                 - `view_counts_{train,val}.npy`: how many views each of these objects has on this side\n\
                 - `checksums_{train,val}.npy`: CRC-32 of every image, int64, object by object\n";
        if !self.latents.is_empty() {
            text += "- `all_latents_{train,val}.npy`: latents of all views, float64, object by object; NaN where a view has no pose\n";
        }
        text += "- `classes.json`: label, folder and name of every class\n- `dataset.json`: this card for programs\n\n## Latents\n\n";
        if self.latents.is_empty() {
            return text + "None: no poses were given.\n";
        }
        text += &format!("{}.\n", self.latents.join(", "));
        if !self.convention.is_empty() {
            text += &format!("\nRotations were given as {}.\n", self.convention);
        }
        if self.without_pose > 0 {
            text += &format!("\n{} views have no pose.\n", self.without_pose);
        }
        text + "\nA stored rotation takes the object's axes to the renderer's world (angles about x, y, z in radians, in this \
                order, about axes that stand still); a translation is in the object's frame.\n"
    }
}
