//! Prints what is in meshes: those of a folder of objects, or single files below a root.
//!
//! `cargo run --release -p scene --example inspect -- ROOT [FILE...]`

use scene::{BoundingBox, LoadOptions, LoadedMesh, discover, load_mesh};
use std::path::Path;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let Some(root) = arguments.next() else {
        eprintln!("usage: inspect ROOT [FILE...]");
        std::process::exit(2);
    };
    let options = LoadOptions::under(&root);
    let files: Vec<String> = arguments.collect();
    for file in &files {
        show(file, load_mesh(Path::new(file), &options).map_err(|error| error.to_string()));
    }
    if files.is_empty() {
        match discover(Path::new(&root)) {
            Ok(objects) => objects.iter().for_each(|object| show(&object.id(), object.load(&options))),
            Err(error) => println!("error: {error}"),
        }
    }
}

fn show(name: &str, loaded: Result<LoadedMesh, String>) {
    match loaded {
        Ok(LoadedMesh { mesh, warnings }) => {
            let textured = mesh.materials.iter().filter(|material| material.texture.is_some()).count();
            let diagonal = BoundingBox::of(&mesh).map_or(0.0, |bounds| bounds.diagonal());
            println!(
                "{name}: {} triangles, {} vertices, {} materials, {textured} of them textured, diagonal {diagonal:.4}",
                mesh.triangles.len(),
                mesh.vertices.len(),
                mesh.materials.len(),
            );
            warnings.iter().for_each(|warning| println!("  warning: {warning}"));
        }
        Err(reason) => println!("{name}: error: {reason}"),
    }
}
