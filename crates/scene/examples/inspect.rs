//! Loads meshes and prints what is in them: `cargo run --release -p scene --example inspect -- ROOT FILE...`

use scene::{BoundingBox, LoadOptions, load_mesh};
use std::path::Path;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let Some(root) = arguments.next() else {
        eprintln!("usage: inspect ROOT FILE...");
        std::process::exit(2);
    };
    let options = LoadOptions::under(root);
    for path in arguments {
        match load_mesh(Path::new(&path), &options) {
            Ok(loaded) => {
                let mesh = &loaded.mesh;
                let textures = mesh.materials.iter().filter(|material| material.texture.is_some()).count();
                println!(
                    "{path}: {} triangles, {} vertices, {} materials, {textures} textured, {:?}",
                    mesh.triangles.len(),
                    mesh.vertices.len(),
                    mesh.materials.len(),
                    BoundingBox::of(mesh).map(|bounds| bounds.diagonal()),
                );
                loaded.warnings.iter().for_each(|warning| println!("  warning: {warning}"));
            }
            Err(error) => println!("error: {error}"),
        }
    }
}
