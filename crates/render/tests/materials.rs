//! Materials one at a time against Cycles renders of the smallest scenes that show them: a plate or a ball, made here as
//! the loader makes them of the MTL statements that stand beside each. The references are parts of 256 x 256 renders,
//! averaged over 2 x 2 pixels.

use std::f32::consts::{PI, TAU};
use std::path::{Path, PathBuf};

use render::{PreparedMesh, Quality, psnr, render};
use scene::{Latents, Map, Material, Mesh, Texture, Vertex};

/// First column and row of the part that is kept, and its side.
const PART: [usize; 3] = [40, 80, 160];

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn texture(name: &str, pixel: impl Fn([u8; 4]) -> [u8; 4]) -> Texture {
    let image = image::open(data(name)).expect("a test image").to_rgba8();
    let (width, height) = image.dimensions();
    Texture { width, height, pixels: image.pixels().map(|value| pixel(value.0)).collect() }
}

fn plate(material: Material) -> Mesh {
    let side = 0.353_553_4;
    let corner = |x: f32, y: f32| Vertex {
        position: [x * side, y * side, 0.0],
        normal: [0.0, 0.0, 1.0],
        uv: [0.5 + 0.5 * x, 0.5 + 0.5 * y],
    };
    Mesh {
        vertices: vec![corner(-1.0, -1.0), corner(1.0, -1.0), corner(1.0, 1.0), corner(-1.0, 1.0)],
        triangles: vec![[0, 1, 2], [0, 2, 3]],
        triangle_materials: vec![0; 2],
        materials: vec![material],
    }
}

fn ball(material: Material) -> Mesh {
    let (columns, rows) = (48_u32, 24_u32);
    let mut mesh = Mesh { materials: vec![material], ..Mesh::default() };
    for row in 0..=rows {
        for column in 0..=columns {
            let (theta, phi) = (PI * row as f32 / rows as f32, TAU * column as f32 / columns as f32);
            let normal = [theta.sin() * phi.cos(), theta.sin() * phi.sin(), theta.cos()];
            let uv = [column as f32 / columns as f32, 1.0 - row as f32 / rows as f32];
            mesh.vertices.push(Vertex { position: normal.map(|n| 0.288_675_1 * n), normal, uv });
        }
    }
    for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
        let a = row * (columns + 1) + column;
        let (b, c, d) = (a + 1, a + columns + 2, a + columns + 1);
        if row > 0 {
            mesh.triangles.push([a, c, b]);
        }
        if row + 1 < rows {
            mesh.triangles.push([a, d, c]);
        }
    }
    mesh.triangle_materials = vec![0; mesh.triangles.len()];
    mesh
}

/// Means over 2 x 2 pixels of the part that is kept.
fn part(pixels: &[u8]) -> Vec<u8> {
    let [x0, y0, side] = PART;
    let at = |x: usize, y: usize, channel: usize| u32::from(pixels[3 * ((y0 + y) * 256 + x0 + x) + channel]);
    let half = side / 2;
    (0..half * half * 3)
        .map(|i| {
            let (x, y, channel) = (2 * (i / 3 % half), 2 * (i / 3 / half), i % 3);
            let sum = at(x, y, channel) + at(x + 1, y, channel) + at(x, y + 1, channel);
            ((sum + at(x + 1, y + 1, channel) + 2) / 4) as u8
        })
        .collect()
}

#[test]
fn materials_look_as_in_cycles() {
    let plain =
        || Material { base_colour: [0.6, 0.5, 0.3], roughness: 0.9, specular: 0.4, ..Material::default() };
    let glossy = |base_colour, roughness, specular| Material { base_colour, roughness, specular, ..plain() };
    let product = |a: u8, b: u8| (u16::from(a) * u16::from(b) / 255) as u8;
    let roughness = |exponent: f32| 1.0 - (exponent / 1000.0).sqrt();
    let colour = || Some(Map::from(texture("colour.png", |pixel| pixel)));
    let cases = [
        // map_Kd colour.png, map_d rgba.png: light passes the holes.
        (
            "p_d_rgba.png",
            plate(Material {
                texture: colour(),
                opacity: Some(texture("rgba.png", |pixel| pixel).into()),
                ..plain()
            }),
        ),
        // map_Kd rgba_ramp.png: a colour times its own alpha.
        (
            "p_kd_alpha.png",
            plate(Material {
                texture: Some(
                    texture("rgba_ramp.png", |[r, g, b, a]| {
                        [product(r, a), product(g, a), product(b, a), 255]
                    })
                    .into(),
                ),
                ..plain()
            }),
        ),
        // map_Kd -s 2 3 1 -o 0.25 0.1 0 colour.png
        (
            "p_so.png",
            plate(Material {
                texture: colour().map(|map| Map {
                    scale: [0.5, 1.0 / 3.0],
                    offset: [-0.125, -0.1 / 3.0],
                    ..map
                }),
                ..plain()
            }),
        ),
        // map_bump -bm 0.5 normal.png
        (
            "p_bump.png",
            plate(Material {
                normal_map: Some(texture("normal.png", |pixel| pixel).into()),
                normal_strength: 0.5,
                ..plain()
            }),
        ),
        // illum 3, Ns 200
        ("s_metal.png", ball(Material { metallic: 1.0, ..glossy([0.8, 0.5, 0.2], roughness(200.0), 0.5) })),
        // Ke 0.5 0.3 0.1: lights the floor, too.
        ("s_ke.png", ball(Material { emission: [0.5, 0.3, 0.1], ..glossy([0.3; 3], roughness(20.0), 0.1) })),
        // Ns 1000: a mirror of the lamp.
        ("s_mirror.png", ball(glossy([0.02, 0.05, 0.02], 0.0, 1.0))),
        // Paths that go on along the lobe end at the next surface.
        ("s_gloss2.png", ball(glossy([0.6, 0.5, 0.4], roughness(96.0), 0.5))),
    ];
    let on_plates = [0.5, 0.2, 0.3];
    for (name, mesh) in cases {
        let latents = Latents {
            rotation: if name.starts_with('p') { on_plates } else { [0.0; 3] },
            floor_hue: 0.1,
            spot_theta: 0.4,
            spot_phi: 2.2,
            spot_hue: 0.55,
            translation: Some([0.0; 3]),
            ..Latents::default()
        };
        let reference = image::open(data(name)).expect("a reference").to_rgb8().into_raw();
        let prepared = PreparedMesh::new(&mesh);
        for (quality, bound) in [(Quality::Reference, 48.0), (Quality::Standard, 46.0), (Quality::Fast, 41.0)]
        {
            let image = render(Some(&prepared), &latents, 256, quality);
            let value = psnr(&part(&image.pixels), &reference);
            println!("{name} {quality}: {value:.1} dB");
            assert!(value > bound, "{name}, {quality}: {value:.2} dB");
        }
    }
}
