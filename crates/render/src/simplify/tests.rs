//! What merging keeps, and that light does not show it.

use scene::{LatentRanges, Material, Mesh};

use super::*;
use crate::mesh::PreparedMesh;
use crate::{Quality, psnr};

/// A bumpy sphere of `12 n^2` triangles: a cube's grid blown up.
pub(crate) fn bumpy_sphere(n: usize) -> Mesh {
    let mut mesh = Mesh { materials: vec![Material::default()], ..Mesh::default() };
    for face in 0..6 {
        let first = mesh.vertices.len() as u32;
        for (i, j) in (0..=n).flat_map(|j| (0..=n).map(move |i| (i, j))) {
            let at = |k: usize| (2 * k) as f32 / n as f32 - 1.0;
            let mut direction = [0.0; 3];
            direction[face / 2] = if face % 2 == 0 { 1.0 } else { -1.0 };
            direction[(face / 2 + 1) % 3] = at(i);
            direction[(face / 2 + 2) % 3] = at(j);
            let d = Vec3::from(direction) / Vec3::from(direction).length();
            let bump = (9.0 * d.x).sin() * (8.0 * d.y + 1.0).sin() * (10.0 * d.z + 2.0).sin();
            let position = (0.27 * (1.0 + 0.1 * bump) * d).to_array();
            mesh.vertices.push(Vertex { position, normal: d.to_array(), uv: [0.0; 2] });
        }
        for (i, j) in (0..n).flat_map(|j| (0..n).map(move |i| (i, j))) {
            let a = first + (j * (n + 1) + i) as u32;
            let (b, c, d) = (a + 1, a + n as u32 + 1, a + n as u32 + 2);
            let flip = |[a, b, c]: [u32; 3]| if face % 2 == 0 { [a, b, c] } else { [a, c, b] };
            mesh.triangles.extend([flip([a, b, d]), flip([a, d, c])]);
        }
    }
    mesh.triangle_materials = vec![0; mesh.triangles.len()];
    mesh
}

/// A square of `2 n^2` triangles in the plane z = 0.
fn flat_square(n: usize) -> Mesh {
    let mut mesh = Mesh { materials: vec![Material::default()], ..Mesh::default() };
    for (i, j) in (0..=n).flat_map(|j| (0..=n).map(move |i| (i, j))) {
        let (u, v) = (i as f32 / n as f32, j as f32 / n as f32);
        let vertex =
            Vertex { position: [0.6 * u - 0.3, 0.6 * v - 0.3, 0.0], normal: [0.0, 0.0, 1.0], uv: [u, v] };
        mesh.vertices.push(vertex);
    }
    for (i, j) in (0..n).flat_map(|j| (0..n).map(move |i| (i, j))) {
        let a = (j * (n + 1) + i) as u32;
        let (b, c, d) = (a + 1, a + n as u32 + 1, a + n as u32 + 2);
        mesh.triangles.extend([[a, b, d], [a, d, c]]);
    }
    mesh.triangle_materials = vec![0; mesh.triangles.len()];
    mesh
}

fn simplified(mesh: &Mesh) -> Option<PreparedMesh> {
    let prepared = PreparedMesh::new(mesh);
    prepared.simple.is_some().then_some(prepared)
}

/// Area of all triangles.
fn area(shape: &crate::mesh::Shape<'_>) -> f32 {
    shape.geometry.triangles.iter().map(|triangle| 0.5 * Vec3::from(triangle.normal).length()).sum()
}

#[test]
fn the_merged_surface_stays_near_the_true_one() {
    let mesh = bumpy_sphere(90);
    let prepared = simplified(&mesh).unwrap();
    let (full, simple) = (prepared.shape(), prepared.simple_shape().unwrap());
    assert!(3 * simple.geometry.triangles.len() < full.geometry.triangles.len());
    // A ray down on a vertex meets the merged surface within the lift, measured across the surface.
    let (mut worst, mut above) = (0.0_f32, 0);
    for vertex in &mesh.vertices {
        let (position, out) = (Vec3::from(vertex.position), Vec3::from(vertex.normal));
        let hit = simple.geometry.nearest_one(position + 0.01 * out, -out, 0.02);
        assert!(hit.triangle != crate::trace::MISS, "{position}");
        let off = (hit.t - 0.01) * out.dot(simple.point(&hit).face_normal);
        worst = worst.max(off.abs());
        above += usize::from(off < -LIFT);
    }
    assert!(worst < 1.5 * LIFT, "{worst}");
    assert!(1000 * above < mesh.vertices.len(), "{above}");
}

#[test]
fn rims_seams_and_borders_of_materials_stay() {
    let square = flat_square(150);
    let prepared = simplified(&square).unwrap();
    let simple = prepared.simple_shape().unwrap();
    assert!(simple.geometry.triangles.len() < square.triangles.len() / 10);
    assert!((area(&simple) - 0.36).abs() < 1e-5);
    // Half of it in another material: each keeps its half.
    let mut halves = square.clone();
    halves.materials.push(Material::default());
    for (triangle, material) in halves.triangles.iter().zip(&mut halves.triangle_materials) {
        *material = u32::from(triangle.iter().all(|&vertex| vertex % 151 >= 75));
    }
    let prepared = simplified(&halves).unwrap();
    let simple = prepared.simple_shape().unwrap();
    let second: f32 = simple
        .geometry
        .triangles
        .iter()
        .zip(simple.corners)
        .filter(|(_, corners)| corners.material == 1)
        .map(|(triangle, _)| 0.5 * Vec3::from(triangle.normal).length())
        .sum();
    assert!((second - 0.18).abs() < 1e-5, "{second}");
}

#[test]
fn what_does_not_pay_or_would_show_is_left_alone() {
    assert!(simplified(&bumpy_sphere(40)).is_none(), "few triangles");
    let mut clear = flat_square(150);
    clear.materials[0].alpha = 0.5;
    assert!(simplified(&clear).is_none(), "transparent");
    let mut rough = flat_square(150);
    for (index, vertex) in rough.vertices.iter_mut().enumerate() {
        vertex.position[2] = if index % 2 == 0 { 0.0 } else { 0.004 };
    }
    assert!(simplified(&rough).is_none(), "rough");
}

#[test]
fn light_does_not_show_it() {
    let prepared = simplified(&bumpy_sphere(90)).unwrap();
    let full = PreparedMesh { simple: None, ..prepared.clone() };
    for (quality, view) in [(Quality::Fast, 0), (Quality::Fast, 1), (Quality::Standard, 2)] {
        let latents = LatentRanges::BENCH_T.sample(4, "simplify", view);
        let [a, b] = [&prepared, &full].map(|mesh| crate::render(Some(mesh), &latents, 256, quality).pixels);
        assert!(a != b && psnr(&a, &b) > 52.0, "{quality} {view} {}", psnr(&a, &b));
    }
}
