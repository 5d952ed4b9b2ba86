//! What an object does to the light on the floor, seen on squares that lie flat above it.

use scene::{Latents, Material, Mesh, Vertex};

use super::*;
use crate::lit_scene::LitScene;
use crate::mesh::PreparedMesh;
use crate::settings::Settings;
use crate::{Quality, lights};

/// Squares of side 1.2, `height` above the floor, of one material.
fn squares(heights: &[f32], material: &Material) -> PreparedMesh {
    let mut mesh = Mesh { materials: vec![material.clone()], ..Mesh::default() };
    for &height in heights {
        let first = mesh.vertices.len() as u32;
        let corner = |x: f32, y: f32| Vertex {
            position: [0.6 * x, 0.6 * y, FLOOR_Z + height],
            normal: [0.0, 0.0, 1.0],
            uv: [0.0; 2],
        };
        mesh.vertices.extend([(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)].map(|(x, y)| corner(x, y)));
        mesh.triangles.extend([[first, first + 1, first + 2], [first, first + 2, first + 3]]);
        mesh.triangle_materials.extend([0, 0]);
    }
    PreparedMesh::new(&mesh)
}

/// Irradiance of the floor at `point` over that of the open floor, with a red floor and the spot far aside.
fn irradiance(mesh: &PreparedMesh, point: Vec2) -> Vec3 {
    let latents = Latents::default();
    let mut view = View::new(mesh, &latents);
    view.spot = lights::Spot { position: Vec3::new(40.0, 0.0, 4.0), axis: Vec3::X, intensity: Vec3::ONE };
    let scene = LitScene::new(&view, Settings::new(Quality::Standard), &mut 0);
    scene.floor.radiance(&view, point) * std::f32::consts::PI / view.floor_albedo / OPEN
}

#[test]
fn what_cannot_be_seen_does_not_change_the_light() {
    let clear = squares(&[0.4], &Material { alpha: 0.0, base_colour: [0.9; 3], ..Material::default() });
    for point in [Vec2::ZERO, Vec2::new(0.5, 0.3), Vec2::new(-0.8, 0.1)] {
        let found = irradiance(&clear, point);
        assert!((found - Vec3::ONE).abs().max_element() < 1e-4, "{point}: {found}");
    }
}

#[test]
fn the_underside_of_an_object_has_the_colour_of_the_floor() {
    let white = squares(&[0.4], &Material { base_colour: [0.9; 3], ..Material::default() });
    let found = irradiance(&white, Vec2::new(0.45, 0.0));
    // The floor reflects 0.6 of red light and 0.24 of blue, and the square sends it back.
    assert!(found.x < 0.9 && found.x > 1.05 * found.z, "{found}");
}

#[test]
fn the_grid_ends_in_the_light_of_the_open_floor() {
    let dark = squares(&[0.3, 0.6, 0.9], &Material { base_colour: [0.0; 3], ..Material::default() });
    let at = |x: f32| irradiance(&dark, Vec2::new(x, 0.0)).x;
    assert!(at(0.0) < 0.7, "{}", at(0.0));
    // From the shadow outwards the light rises without a step, wherever the grid ends.
    let values: Vec<f32> = (0..40).map(|i| at(1.0 + 0.1 * i as f32)).collect();
    let border = values.iter().position(|&value| value == 1.0).expect("the open floor");
    assert!(border > 5 && values[border - 5] < 0.9995, "{values:?}");
    let bend = |i: usize| (values[i + 1] - 2.0 * values[i] + values[i - 1]).abs();
    assert!((border - 3..border + 2).all(|i| bend(i) < 0.0004), "{values:?}");
}
