//! `equicaps dataset preview`: a contact sheet of a dataset, or of the built-in library.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use dataset::{Dataset, Views};
use rayon::prelude::*;
use render::{PreparedMesh, Quality};
use report::Picture;
use scene::Latents;
use serde_json::json;

use crate::contact_sheet::{self, SheetRow};
use crate::terminal::{Terminal, shown};

/// Arguments of `equicaps dataset preview`.
#[derive(Debug, clap::Args)]
#[command(
    group = clap::ArgGroup::new("what").required(true).args(["folder", "procedural"]),
    after_help = "Examples:
  equicaps dataset preview views --out sheet.png
  equicaps dataset preview --procedural --out classes.png"
)]
pub struct Arguments {
    /// The dataset's folder
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Folder of the split files, where they are not beside the pictures
    #[arg(long, value_name = "DIR", requires = "folder")]
    lists: Option<PathBuf>,
    /// Show instances of every class of the built-in library instead
    #[arg(long)]
    procedural: bool,
    /// The PNG file to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Pictures of each class
    #[arg(long, default_value_t = 8, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=200))]
    per_class: u32,
    /// Width and height of a picture on the sheet in pixels
    #[arg(long, default_value_t = 112, value_name = "PX", value_parser = clap::value_parser!(u16).range(16..=1024))]
    cell: u16,
    /// Seed of the built-in objects
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// Quality of the pictures of built-in objects: reference, standard or fast
    #[arg(long, value_name = "Q", default_value_t = Quality::Standard)]
    quality: Quality,
}

/// Runs the command.
pub fn run(arguments: &Arguments, terminal: &Terminal) -> anyhow::Result<ExitCode> {
    let (cell, per_class) = (usize::from(arguments.cell), arguments.per_class as usize);
    let (pictures, what) = match &arguments.folder {
        Some(folder) => {
            let dataset = Dataset::open_with_lists(folder, arguments.lists.as_deref().unwrap_or(folder))?;
            (of_dataset(&dataset, &arguments.out, cell, per_class)?, folder.display().to_string())
        }
        None => (of_library(arguments, cell, per_class, terminal)?, "the built-in library".to_owned()),
    };
    terminal.result(
        format!("{}: {pictures} pictures of {what}", arguments.out.display()),
        &json!({ "out": shown(&arguments.out), "pictures": pictures }),
    );
    Ok(ExitCode::SUCCESS)
}

/// Writes the contact sheet of a dataset; returns the number of pictures on it.
pub fn of_dataset(dataset: &Dataset, out: &Path, cell: usize, per_class: usize) -> anyhow::Result<usize> {
    let mut by_class: Vec<Vec<usize>> = vec![Vec::new(); dataset.classes().len()];
    for (number, object) in dataset.objects().iter().enumerate() {
        if let Some(class) = by_class.get_mut(object.label as usize) {
            class.push(number);
        }
    }
    let row = |(class, objects): (&dataset::Class, &Vec<usize>)| -> anyhow::Result<SheetRow> {
        // The first view of every object, then the second of every object, and so on.
        let all = (0..dataset.views()).flat_map(|view| objects.iter().map(move |&object| (object, view)));
        let chosen: Vec<(usize, usize)> = all.take(per_class).collect();
        let picture = |&(object, view): &(usize, usize)| -> anyhow::Result<Arc<Picture>> {
            let mut pixels = vec![0; cell * cell * 3];
            dataset.image(object, view, cell, &mut pixels)?;
            Ok(Arc::new(Picture::new(cell as u32, cell as u32, pixels)?))
        };
        let pictures = chosen.par_iter().map(picture).collect::<anyhow::Result<_>>()?;
        let plural = if objects.len() == 1 { "" } else { "s" };
        Ok(SheetRow { label: format!("{} ({} object{plural})", class.name, objects.len()), pictures })
    };
    let rows: Vec<SheetRow> = dataset
        .classes()
        .iter()
        .zip(&by_class)
        .filter(|(_, objects)| !objects.is_empty())
        .map(row)
        .collect::<anyhow::Result<_>>()?;
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
        translation: None,
    }
}

/// An upright object fills little more than half of the picture: so much wider is rendered than shown.
const WIDER: (usize, usize) = (8, 5);

/// The middle `cell * cell` pixels of a picture of `wide * wide`.
fn middle(pixels: &[u8], wide: usize, cell: usize) -> Vec<u8> {
    let border = (wide - cell) / 2;
    let rows = pixels.chunks_exact(wide * 3).skip(border).take(cell);
    rows.flat_map(|row| &row[border * 3..(border + cell) * 3]).copied().collect()
}

fn of_library(
    arguments: &Arguments,
    cell: usize,
    per_class: usize,
    terminal: &Terminal,
) -> anyhow::Result<usize> {
    let classes = procedural::classes();
    let progress = terminal.progress((classes.len() * per_class) as u64, "images");
    let rows: Vec<SheetRow> = classes
        .iter()
        .map(|class| {
            let picture = |instance: usize| -> anyhow::Result<Arc<Picture>> {
                let mesh = procedural::build(arguments.seed, class.label, instance as u64);
                let prepared = PreparedMesh::new(&mesh);
                let latents = showing(instance, per_class);
                let wide = cell * WIDER.0 / WIDER.1;
                let image = render::render(Some(&prepared), &latents, wide as u32, arguments.quality);
                progress.advance(1);
                let pixels = middle(&image.pixels, wide, cell);
                Ok(Arc::new(Picture::new(cell as u32, cell as u32, pixels)?))
            };
            let pictures = (0..per_class).into_par_iter().map(picture).collect::<anyhow::Result<_>>()?;
            Ok(SheetRow { label: format!("{} {}", class.label, class.name), pictures })
        })
        .collect::<anyhow::Result<_>>()?;
    progress.finish();
    write("The built-in library", &arguments.out, cell, &rows)
}

fn write(title: &str, out: &Path, cell: usize, rows: &[SheetRow]) -> anyhow::Result<usize> {
    let png = contact_sheet::draw(title, cell, rows).to_png(1.0)?;
    dataset::durable::write(out, &png)?;
    Ok(rows.iter().map(|row| row.pictures.len()).sum())
}
