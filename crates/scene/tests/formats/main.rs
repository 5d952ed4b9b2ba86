//! The same cube in every format, colours, and what the formats have of their own.

#[path = "../cube/mod.rs"]
mod cube;
mod gltf;

use cube::*;
use scene::{LoadOptions, LoadedMesh, Material, Mesh, Up, load_mesh};
use std::path::Path;
use tempfile::TempDir;

fn load_with(name: &str, bytes: &[u8], up: Option<Up>) -> Result<LoadedMesh, String> {
    let folder = TempDir::new().expect("a temporary folder");
    load_in(folder.path(), name, bytes, up)
}

fn load_in(folder: &Path, name: &str, bytes: &[u8], up: Option<Up>) -> Result<LoadedMesh, String> {
    let path = folder.join(name);
    std::fs::write(&path, bytes).expect("writes");
    load_mesh(&path, &LoadOptions { up, ..LoadOptions::default() }).map_err(|error| error.to_string())
}

fn load(name: &str, bytes: &[u8]) -> Mesh {
    load_with(name, bytes, None).expect("loads").mesh
}

fn error(name: &str, bytes: impl AsRef<[u8]>) -> String {
    load_with(name, bytes.as_ref(), None).expect_err("it is wrong")
}

/// Triangles with their normals, without the order of triangles, corners and vertices.
fn canonical(mesh: &Mesh) -> Vec<[[i32; 6]; 3]> {
    let corner = |index: &u32| {
        let vertex = mesh.vertices[*index as usize];
        let values = [vertex.position, vertex.normal];
        std::array::from_fn(|i| (values.as_flattened()[i] * 1000.0).round() as i32)
    };
    let triangle = |corners: &[u32; 3]| {
        let mut corners: [[i32; 6]; 3] = std::array::from_fn(|i| corner(&corners[i]));
        let first = (0..3).min_by_key(|&i| corners[i]).expect("three corners");
        corners.rotate_left(first);
        corners
    };
    let mut triangles: Vec<_> = mesh.triangles.iter().map(triangle).collect();
    triangles.sort_unstable();
    triangles
}

#[test]
fn a_cube_is_the_same_in_every_format() {
    let expected = load_with("cube.obj", cube_obj().as_bytes(), Some(Up::Z)).expect("loads").mesh;
    assert_eq!((expected.triangles.len(), expected.vertices.len()), (12, 24));
    let expected = canonical(&expected);
    for (name, bytes) in every_cube() {
        let loaded = load_with(name, &bytes, Some(Up::Z)).expect(name);
        assert_eq!(canonical(&loaded.mesh), expected, "{name}");
        assert!(loaded.warnings.is_empty(), "{name}: {:?}", loaded.warnings);
        assert_eq!(loaded.mesh.materials, [Material::default()], "{name}");
        // A wrong name changes nothing but the warning.
        let renamed = load_with("renamed.xyz", &bytes, Some(Up::Z)).expect(name);
        assert_eq!(renamed.mesh, loaded.mesh, "{name}");
        let misnamed = if name.ends_with("obj") { "cube.stl" } else { "cube.obj" };
        let misnamed = load_with(misnamed, &bytes, Some(Up::Z)).expect(name);
        assert_eq!(misnamed.mesh, loaded.mesh, "{name}");
        assert!(misnamed.warnings[0].contains("whatever its name says"), "{:?}", misnamed.warnings);
    }
}

#[test]
fn formats_have_their_own_up_axis() {
    for (name, bytes) in every_cube() {
        let y_up = name.ends_with("obj") || name.contains("gl");
        let default = canonical(&load(name, &bytes));
        let own = if y_up { Up::Y } else { Up::Z };
        let other = if y_up { Up::Z } else { Up::Y };
        assert_eq!(default, canonical(&load_with(name, &bytes, Some(own)).expect("loads").mesh), "{name}");
        assert_ne!(default, canonical(&load_with(name, &bytes, Some(other)).expect("loads").mesh), "{name}");
    }
}

#[test]
fn stl_counts_are_checked() {
    let mut lying = cube_stl_binary();
    lying[80] = 13;
    assert!(error("a.stl", &lying).contains("claims 13 STL facets, but has room for 12 only"));
    lying[80] = 11;
    let loaded = load_with("a.stl", &lying, None).expect("loads");
    assert_eq!(loaded.mesh.triangles.len(), 11);
    assert!(loaded.warnings[0].contains("after the last"));
    let mut nan = cube_stl_binary();
    nan[84 + 12..84 + 16].copy_from_slice(&f32::NAN.to_le_bytes());
    assert!(error("a.stl", &nan).contains("facet 0"));
    let mut solid = cube_stl_binary();
    solid[..5].copy_from_slice(b"solid");
    assert_eq!(load("a.stl", &solid).triangles.len(), 12);
    assert!(error("a.stl", "solid x\nfacet\nouter loop\nvertex 0 0 inf\n").contains("a.stl:4: "));
    assert!(
        error("a.stl", "solid x\nfacet\nvertex 0 0 0\nendfacet\n").contains("a.stl:4: a facet of 1 corners")
    );
    assert!(error("a.stl", "solid x\nfacet\nvertex 0 0 0\n").contains("ends inside a facet"));
    assert!(error("a.stl", "solid x\nnonsense\n").contains("a.stl:2: "));
    assert!(error("a.stl", "solid x\nendsolid x\n").contains("has no faces"));
}

#[test]
fn off_mistakes_are_named() {
    for (text, expected) in [
        ("OFF\n1 1 0\n0 0 nan\n", "a.off:3: \"nan\""),
        ("OFF\n3 1 0\n0 0 0\n", "ends after 1 of 3 vertices"),
        ("OFF\n4000000000 1 0\n0 0 0\n", "ends after 1 of 4000000000 vertices"),
        ("OFF\n1 2 0\n0 0 0\n3 0 0 0\n", "ends after 1 of 2 faces"),
        ("OFF\n1 1 0\n0 0 0\n3 0 0 1\n", "a.off:4: index 1, but there are only 1 vertices"),
        ("OFF\n1 1 0\n0 0 0\n3 0 0\n", "a.off:4: the line ends"),
        ("OFF\n-1 1 0\n", "a.off:2: \"-1\" is not a number of vertices"),
        ("OFF BINARY\n", "binary OFF is not supported"),
        ("OFF\n", "ends after its first line"),
        ("COFF\n1 1 0\n0 0 0 1\n", "a.off:3: expected a colour"),
    ] {
        assert!(error("a.off", text).contains(expected), "{text:?}: {}", error("a.off", text));
    }
    let modelnet = cube_off().replace("OFF\n", "OFF");
    assert_eq!(load("a.off", modelnet.as_bytes()).triangles.len(), 12);
    let bare = cube_off().replace("OFF\n", "");
    assert_eq!(load("a.off", bare.as_bytes()).triangles.len(), 12);
}

#[test]
fn ply_mistakes_are_named() {
    let ply = |text: &str| format!("ply\nformat ascii 1.0\n{text}");
    let vertex = "element vertex 1\nproperty float x\nproperty float y\nproperty float z\n";
    let face = "element face 1\nproperty list uchar int vertex_indices\nend_header\n";
    for (text, expected) in [
        ("ply\nformat utf 1.0\n".to_owned(), "a.ply:2: unknown PLY format \"utf\""),
        ("ply\nend_header\n".to_owned(), "does not say its PLY format"),
        (ply("element vertex many\n"), "a.ply:3: \"many\" is not a count"),
        (ply("property float x\n"), "a.ply:3: a property before"),
        (ply("element vertex 1\nproperty thing x\n"), "a.ply:4: \"thing x\" is not a property"),
        (ply("element vertex 1\nproperty float x\nend_header\n0\n"), "without x, y and z"),
        (ply(&format!("{vertex}{face}0 0 nan\n")), "a.ply:10: NaN is not a finite number"),
        (ply(&format!("{vertex}{face}0 0 0\n3 0 0 1\n")), "a.ply:11: index 1, but there are only 1"),
        (ply(&format!("{vertex}{face}0 0 0\n-1\n")), "a.ply:11: a list has the length -1"),
        (ply(&format!("{vertex}{face}0 0\n")), "ends in vertex 0, but its header says 1"),
        (ply(&format!("{vertex}{face}0 0 zero\n")), "a.ply:10: \"zero\" is not a number"),
        (ply(&format!("{vertex}end_header\n0 0 0\n")), "has no faces"),
        (ply(face), "has its faces before its vertices"),
        (ply(vertex), "has no end_header"),
    ] {
        assert!(error("a.ply", &text).contains(expected), "{text:?}: {}", error("a.ply", &text));
    }
    let strips = ply(
        "element vertex 4\nproperty float x\nproperty float y\nproperty double z\nelement nothing 99999999999\n\
         element tristrips 1\nproperty list int int vertex_indices\nend_header\n\
         0 0 0 1 0 0 0 1 0 1 1 0 5 0 1 2 3 -1\n",
    );
    let mesh = load("a.ply", strips.as_bytes());
    assert_eq!(mesh.triangles.len(), 2);
    assert!(mesh.vertices.iter().all(|vertex| vertex.normal == [0.0, 0.0, 1.0]));
}

/// Looks a texture up as the renderer does: bilinear, origin at the bottom left.
fn sample(material: &Material, [u, v]: [f32; 2]) -> [f32; 3] {
    let texture = material.texture.as_ref().expect("a texture");
    let x = u * texture.width as f32 - 0.5;
    let y = (1.0 - v) * texture.height as f32 - 0.5;
    let texel = |x: f32, y: f32, i: usize| {
        let (x, y) = (x.clamp(0.0, (texture.width - 1) as f32), y.clamp(0.0, (texture.height - 1) as f32));
        f32::from(texture.pixels[(y * texture.width as f32 + x) as usize][i])
    };
    let (fx, fy) = (x - x.floor(), y - y.floor());
    std::array::from_fn(|i| {
        let row = |y: f32| texel(x.floor(), y, i) * (1.0 - fx) + texel(x.floor() + 1.0, y, i) * fx;
        row(y.floor()) * (1.0 - fy) + row(y.floor() + 1.0) * fy
    })
}

#[test]
fn vertex_colours_are_interpolated() {
    let coff = "COFF\n4 2 0\n0 0 0 255 0 0 255\n1 0 0 0 255 0 255\n1 1 0 0 0 255 255\n0 1 0 10 20 30 255\n3 0 1 2\n3 0 2 3\n";
    let obj = "v 0 0 0 1 0 0\nv 1 0 0 0 1 0\nv 1 1 0 0 0 1\nv 0 1 0 0.0392 0.0784 0.1176\nf 1 2 3\nf 1 3 4\n";
    let ply = "ply\nformat ascii 1.0\nelement vertex 4\nproperty float x\nproperty float y\nproperty float z\n\
               property uchar red\nproperty uchar green\nproperty uchar blue\nelement face 2\n\
               property list uchar int vertex_index\nend_header\n\
               0 0 0 255 0 0\n1 0 0 0 255 0\n1 1 0 0 0 255\n0 1 0 10 20 30\n3 0 1 2\n3 0 2 3\n";
    for (name, text) in [("a.off", coff), ("a.ply", ply), ("a.obj", obj)] {
        let mesh = load_with(name, text.as_bytes(), Some(Up::Z)).expect(name).mesh;
        let colour_at = |position: [f32; 2]| match position {
            [0.0, 0.0] => [255.0, 0.0, 0.0],
            [1.0, 0.0] => [0.0, 255.0, 0.0],
            [1.0, 1.0] => [0.0, 0.0, 255.0],
            _ => [10.0, 20.0, 30.0],
        };
        for triangle in &mesh.triangles {
            let corners = triangle.map(|i| mesh.vertices[i as usize]);
            let expected = corners.map(|corner| colour_at([corner.position[0], corner.position[1]]));
            for (corner, expected) in corners.iter().zip(expected) {
                let found = sample(&mesh.materials[0], corner.uv);
                assert!(
                    (0..3).all(|i| (found[i] - expected[i]).abs() < 0.1),
                    "{name}: {found:?} {expected:?}"
                );
            }
            // Half-way along an edge the colours mix.
            let middle = std::array::from_fn(|i| 0.5 * (corners[0].uv[i] + corners[1].uv[i]));
            let found = sample(&mesh.materials[0], middle);
            assert!(
                (0..3).all(|i| (found[i] - 0.5 * (expected[0][i] + expected[1][i])).abs() < 0.1),
                "{name}"
            );
        }
    }
}

#[test]
fn one_colour_is_a_plain_material_and_faces_have_colours_too() {
    let uniform = "COFF\n3 1 0\n0 0 0 188 0 255\n1 0 0 188 0 255\n1 1 0 188 0 255\n3 0 1 2\n";
    let material = &load("a.off", uniform.as_bytes()).materials[0];
    assert!(material.texture.is_none());
    assert!((material.base_colour[0] - 0.5).abs() < 0.01);
    assert_eq!((material.base_colour[1], material.base_colour[2]), (0.0, 1.0));
    let faces = "OFF\n4 2 0\n0 0 0\n1 0 0\n1 1 0\n0 1 0\n3 0 1 2 255 0 0\n3 0 2 3 0.0 0.0 1.0\n";
    let mesh = load("a.off", faces.as_bytes());
    for (triangle, expected) in mesh.triangles.iter().zip([[255.0, 0.0, 0.0], [0.0, 0.0, 255.0]]) {
        let found = triangle.map(|i| sample(&mesh.materials[0], mesh.vertices[i as usize].uv));
        assert!(
            found.as_flattened().iter().zip([expected; 3].as_flattened()).all(|(a, b)| (a - b).abs() < 0.1)
        );
    }
}

#[test]
fn what_is_no_mesh_is_refused() {
    for (name, bytes) in [
        ("a.obj", &b""[..]),
        ("a.obj", b"   \n"),
        ("a.obj", b"\x7fELF\0\0\0\0"),
        ("a.stl", b"\0\0\0"),
        ("a.txt", b"hello world"),
        ("a.ply", b"hello world"),
        ("a.glb", b"hello world"),
        ("a.obj", b"\xff\xfev\0 \x000\0"),
    ] {
        let message = error(name, bytes);
        assert!(message.contains(name), "{message}");
    }
    let folder = TempDir::new().expect("a temporary folder");
    assert!(load_mesh(folder.path(), &LoadOptions::default()).is_err());
}
