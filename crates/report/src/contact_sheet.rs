//! Contact sheets: labelled rows of images in as many columns as make a sheet that fits a screen; of a dataset, and of
//! the built-in library.

use std::path::Path;
use std::sync::Arc;

use dataset::{Dataset, Views};
use rayon::prelude::*;
use render::{PreparedMesh, Quality};
use scene::Latents;

use crate::drawing::Mark;
use crate::object_axes::{self, AxisLine, Seen};
use crate::{Anchor, Bitmap, Drawing, Paint, Result, font};

/// One labelled row.
#[derive(Clone, Debug)]
pub struct SheetRow {
    /// What stands above the images.
    pub label: String,
    /// The images.
    pub images: Vec<Arc<Bitmap>>,
    /// The axes of the objects in the images, where they are to be drawn.
    pub axes: Vec<Vec<AxisLine>>,
}

const MARGIN: f64 = 14.0;
const GAP: f64 = 2.0;
const LABEL_PX: f64 = 13.0;
const LABEL_HEIGHT: f64 = 18.0;

/// Lays the rows out, each image `cell` pixels wide and high.
pub fn draw(title: &str, cell: usize, rows: &[SheetRow]) -> Drawing {
    let cell = cell as f64;
    let longest = rows.iter().map(|row| row.images.len()).max().unwrap_or(0).max(1) as f64;
    let label = rows.iter().map(|row| font::width(&row.label, LABEL_PX)).fold(0.0, f64::max);
    let block = (longest * (cell + GAP)).max(label) + MARGIN;
    let row_height = LABEL_HEIGHT + cell + 8.0;
    let height_of = |columns: usize| rows.len().div_ceil(columns) as f64 * row_height;
    let columns = (1..=rows.len()).find(|&n| n as f64 * block >= 0.9 * height_of(n)).unwrap_or(1);
    let in_column = rows.len().div_ceil(columns).max(1);
    let columns = rows.len().div_ceil(in_column);
    let top = 2.0 * MARGIN + 18.0;
    let width = (columns as f64 * block).max(font::width(title, 18.0) * 1.1) + MARGIN;
    let mut drawing = Drawing::new(width, top + in_column as f64 * row_height + 6.0, title);
    drawing.heading((MARGIN, MARGIN + 16.0), title, 18.0, Anchor::Start);
    for (at, row) in rows.iter().enumerate() {
        let x = MARGIN + (at / in_column) as f64 * block;
        let y = top + (at % in_column) as f64 * row_height;
        drawing.text((x, y + LABEL_PX), row.label.as_str(), LABEL_PX, Anchor::Start, Paint::Ink);
        for (place, image) in row.images.iter().enumerate() {
            let area = [x + place as f64 * (cell + GAP), y + LABEL_HEIGHT, cell, cell];
            drawing.marks.push(Mark::Bitmap(area, Arc::clone(image)));
            if let Some(axes) = row.axes.get(place) {
                object_axes::draw(&mut drawing, axes, (area[0], area[1]), cell);
            }
        }
    }
    drawing
}

/// How a dataset is shown.
#[derive(Clone, Copy, Debug)]
pub struct DatasetSheet {
    /// Side of an image in pixels.
    pub cell: usize,
    /// Images of each class.
    pub per_class: usize,
    /// Whether the axes of objects are drawn.
    pub axes: bool,
}

/// Writes the contact sheet of a dataset; returns the number of images on it.
pub fn of_dataset(dataset: &Dataset, out: &Path, sheet: DatasetSheet) -> Result<usize> {
    let DatasetSheet { cell, per_class, axes } = sheet;
    let seen = if dataset.is_imported() { Seen::Imported } else { Seen::Rendered };
    let mut by_class: Vec<Vec<usize>> = vec![Vec::new(); dataset.classes().len()];
    for (number, object) in dataset.objects().iter().enumerate() {
        if let Some(class) = by_class.get_mut(object.label as usize) {
            class.push(number);
        }
    }
    let row = |(class, objects): (&dataset::Class, &Vec<usize>)| -> Result<SheetRow> {
        // The first view of every object, then the second of every object, and so on.
        let all = (0..dataset.views()).flat_map(|view| objects.iter().map(move |&object| (object, view)));
        let all = all.filter(|&(object, view)| view < dataset.views_in(object));
        let chosen: Vec<(usize, usize)> = all.take(per_class).collect();
        let image = |&(object, view): &(usize, usize)| -> Result<Arc<Bitmap>> {
            let mut pixels = vec![0; cell * cell * 3];
            dataset.image(object, view, cell, &mut pixels)?;
            Ok(Arc::new(Bitmap::new(cell as u32, cell as u32, pixels)?))
        };
        let images = chosen.par_iter().map(image).collect::<Result<_>>()?;
        // Of views without a pose there is nothing to draw.
        let lines = |&(object, view): &(usize, usize)| match dataset.has_pose(object, view) {
            true => object_axes::of_view(&dataset.latents(object, view), seen),
            false => Vec::new(),
        };
        let axes = if axes { chosen.iter().map(lines).collect() } else { Vec::new() };
        let plural = if objects.len() == 1 { "" } else { "s" };
        Ok(SheetRow { label: format!("{} ({} object{plural})", class.name, objects.len()), images, axes })
    };
    let rows: Vec<SheetRow> = dataset
        .classes()
        .iter()
        .zip(&by_class)
        .filter(|(_, objects)| !objects.is_empty())
        .map(row)
        .collect::<Result<_>>()?;
    write(&dataset.description(), out, cell, &rows)
}

/// The view in which an instance of the library is shown: upright, turned a little further from one to the next.
fn showing(instance: usize, instances: usize) -> Latents {
    let turn = if instances > 1 { instance as f64 / (instances - 1) as f64 - 0.5 } else { 0.0 };
    Latents {
        rotation: [0.0, 0.0, turn * 1.6 + 0.25],
        floor_hue: 0.58,
        spot_theta: 0.5,
        spot_phi: 1.2,
        spot_hue: 0.12,
        ..Latents::default()
    }
}

/// An upright object fills little more than half of the image: so much wider is rendered than shown.
const WIDER: (usize, usize) = (8, 5);

/// The middle `cell * cell` pixels of an image of `wide * wide`.
fn middle(pixels: &[u8], wide: usize, cell: usize) -> Vec<u8> {
    let border = (wide - cell) / 2;
    let rows = pixels.chunks_exact(wide * 3).skip(border).take(cell);
    rows.flat_map(|row| &row[border * 3..(border + cell) * 3]).copied().collect()
}

/// How the built-in library is shown.
#[derive(Clone, Copy, Debug)]
pub struct LibrarySheet {
    /// Seed of the objects.
    pub seed: u64,
    /// Quality of their images.
    pub quality: Quality,
    /// Side of an image in pixels.
    pub cell: usize,
    /// Images of each class.
    pub per_class: usize,
}

/// Writes the contact sheet of the built-in library; returns the number of images on it. `advance` is called for each.
pub fn of_library(sheet: LibrarySheet, out: &Path, advance: &(dyn Fn() + Sync)) -> Result<usize> {
    let LibrarySheet { seed, quality, cell, per_class } = sheet;
    let classes = procedural::classes();
    let rows: Vec<SheetRow> = classes
        .iter()
        .map(|class| {
            let image = |instance: usize| -> Result<Arc<Bitmap>> {
                let mesh = procedural::build(seed, class.label, instance as u64);
                let prepared = PreparedMesh::new(&mesh);
                let latents = showing(instance, per_class);
                let wide = cell * WIDER.0 / WIDER.1;
                let image = render::render(Some(&prepared), &latents, wide as u32, quality);
                advance();
                let pixels = middle(&image.pixels, wide, cell);
                Ok(Arc::new(Bitmap::new(cell as u32, cell as u32, pixels)?))
            };
            let images = (0..per_class).into_par_iter().map(image).collect::<Result<_>>()?;
            Ok(SheetRow { label: format!("{} {}", class.label, class.name), images, axes: Vec::new() })
        })
        .collect::<Result<_>>()?;
    write("The built-in library", out, cell, &rows)
}

fn write(title: &str, out: &Path, cell: usize, rows: &[SheetRow]) -> Result<usize> {
    let png = draw(title, cell, rows).to_png(1.0)?;
    dataset::durable::write(out, &png)?;
    Ok(rows.iter().map(|row| row.images.len()).sum())
}
