//! Textures and normals as surfaces have them between their corners.

use std::sync::Arc;

use scene::{Material, Mesh, Texture, Vertex};

use super::*;

#[test]
fn textures_are_interpolated_along_both_axes_and_repeat() {
    // Rows from the top: 10 and 30 on the left, 50 and 110 on the right.
    let grey = |value: u8| [value, value, value, 255];
    let texture = Texture { width: 2, height: 2, pixels: vec![grey(10), grey(50), grey(30), grey(110)] };
    let corner = |x: f32, y: f32| Vertex { position: [x, y, 0.0], normal: [0.0, 0.0, 1.0], uv: [x, y] };
    let mesh = Mesh {
        vertices: vec![corner(0.0, 0.0), corner(1.0, 0.0), corner(0.0, 1.0)],
        triangles: vec![[0, 1, 2]],
        triangle_materials: vec![0],
        materials: vec![Material { texture: Some(Arc::new(texture)), ..Material::default() }],
    };
    let mesh = PreparedMesh::new(&mesh);
    for ([u, v], expected) in [
        ([0.25, 0.75], 10.0),
        ([0.75, 0.75], 50.0),
        ([0.25, 0.25], 30.0),
        ([0.75, 0.25], 110.0),
        ([0.5, 0.75], 30.0),
        ([0.25, 0.5], 20.0),
        ([0.5, 0.5], 50.0),
        ([0.75, 0.375], 95.0),
        // Beyond the border there is the other side.
        ([1.0, 0.75], 30.0),
        ([0.25, 1.0], 20.0),
        ([-0.75, 3.75], 10.0),
    ] {
        let found = mesh.albedo(0, Vec2::new(u, v));
        assert!((found - Vec3::splat(srgb_decode(expected))).abs().max_element() < 1e-5, "{u} {v}: {found}");
    }
}

#[test]
fn normals_turn_from_corner_to_corner() {
    let normals = [[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [-1.0, 0.0, 1.0]];
    let corners = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]];
    let corner = |i: usize| Vertex { position: corners[i], normal: normals[i], uv: [0.0; 2] };
    let mesh = Mesh {
        vertices: (0..3).map(corner).collect(),
        triangles: vec![[0, 1, 2]],
        triangle_materials: vec![0],
        materials: vec![Material::default()],
    };
    let mesh = PreparedMesh::new(&mesh);
    let at = |u: f32, v: f32| mesh.shape().point(&Hit { t: 1.0, u, v, triangle: 0 }).normal;
    let unit = normals.map(|normal| Vec3::from(normal).normalize());
    for (found, expected) in [
        (at(0.0, 0.0), unit[0]),
        (at(1.0, 0.0), unit[1]),
        (at(0.0, 1.0), unit[2]),
        (at(0.25, 0.5), (0.25 * unit[0] + 0.25 * unit[1] + 0.5 * unit[2]).normalize()),
    ] {
        assert!((found - expected).length() < 1e-5, "{found} {expected}");
    }
}
