//! Textures and normals as surfaces have them between their corners.

use scene::{Material, Mesh, Texture, Vertex};

use super::*;
use crate::colour::srgb_decode;

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
        materials: vec![Material { texture: Some(texture.into()), ..Material::default() }],
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
        let found = mesh.albedo(0, Vec2::new(u, v), 0.0);
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

#[test]
fn maps_of_normals_turn_them_in_the_frame_of_the_texture() {
    // u grows along +X, v along +Y; the map leans towards +u and -v.
    let normal_map = Texture { width: 1, height: 1, pixels: vec![[191, 64, 218, 255]] };
    let corner = |x: f32, y: f32| Vertex { position: [x, y, 0.0], normal: [0.0, 0.0, 1.0], uv: [x, y] };
    let turned = |normal_strength: f32, mirrored: bool| {
        let mut vertices = vec![corner(0.0, 0.0), corner(1.0, 0.0), corner(0.0, 1.0)];
        if mirrored {
            vertices.iter_mut().for_each(|vertex| vertex.uv[0] = -vertex.uv[0]);
        }
        let normal_map = Some(normal_map.clone().into());
        let mesh = PreparedMesh::new(&Mesh {
            vertices,
            triangles: vec![[0, 1, 2]],
            triangle_materials: vec![0],
            materials: vec![Material { normal_map, normal_strength, ..Material::default() }],
        });
        let hit = Hit { t: 1.0, u: 0.3, v: 0.3, triangle: 0 };
        let point = mesh.shape().point(&hit);
        mesh.mapped_normal(&mesh.shape(), &hit, &point, 0.0)
    };
    let expected = Vec3::new(0.5, -0.5, 0.71).normalize();
    assert!((turned(1.0, false) - expected).length() < 0.01, "{}", turned(1.0, false));
    let mirrored = Vec3::new(-expected.x, expected.y, expected.z);
    assert!((turned(1.0, true) - mirrored).length() < 0.01, "{}", turned(1.0, true));
    assert_eq!(turned(0.0, false), Vec3::Z);
    assert!(turned(0.5, false).z > expected.z);
}

#[test]
fn light_passes_the_holes_of_a_map() {
    use crate::packet::Parallel;
    use crate::trace::Traceable;
    use simd::{Floats, WIDTH};
    // Columns of opacity 0, 128 and 255; the material lets a fifth through everywhere.
    let opacity = Texture { width: 3, height: 1, pixels: [0, 128, 255].map(|a| [9, 9, 9, a]).to_vec() };
    let corner = |x: f32, y: f32| Vertex { position: [x, y, 0.0], normal: [0.0, 0.0, 1.0], uv: [x, y] };
    let mesh = PreparedMesh::new(&Mesh {
        vertices: vec![corner(0.0, 0.0), corner(1.0, 0.0), corner(1.0, 1.0), corner(0.0, 1.0)],
        triangles: vec![[0, 1, 2], [0, 2, 3]],
        triangle_materials: vec![0; 2],
        materials: vec![Material { opacity: Some(opacity.into()), alpha: 0.8, ..Material::default() }],
    });
    assert!(mesh.geometry.has_transparency);
    let xs: [f32; WIDTH] = std::array::from_fn(|lane| (lane as f32 + 0.4) / WIDTH as f32);
    let origin = [Floats(xs), Floats::splat(0.3), Floats::splat(1.0)];
    let limit = Floats::splat(f32::INFINITY);
    let packet = Parallel { origin, direction: Vec3::NEG_Z, limit, active: !1 };
    let open = packet.transmitted(&mesh.geometry);
    for (lane, x) in xs.into_iter().enumerate() {
        let alone = mesh.geometry.transmitted_one(Vec3::new(x, 0.3, 1.0), Vec3::NEG_Z, f32::INFINITY);
        let expected = 1.0 - mesh.alpha(0, Vec2::new(x, 0.3), 0.0);
        assert!((alone - expected).abs() < 1e-4, "{x}: {alone} {expected}");
        let found = open.0[lane];
        assert!(if lane == 0 { found == 0.0 } else { (found - alone).abs() < 1e-4 }, "{x}: {found} {alone}");
    }
    let at = |x: f32| 1.0 - mesh.alpha(0, Vec2::new(x, 0.5), 0.0);
    assert!((at(1.0 / 6.0) - 1.0).abs() < 1e-5 && (at(5.0 / 6.0) - 0.2).abs() < 1e-5);
}
