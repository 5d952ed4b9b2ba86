//! Cameras at other distances and elevations: what is seen is where geometry says, and the published camera is the one that
//! there is without any.

use std::f64::consts::{FRAC_PI_2, FRAC_PI_4};

use render::{PreparedMesh, Quality, image_position, psnr, render, render_by_paths};
use scene::{Camera, LatentRanges, Latents, Material, Mesh, Shape, Vertex};

fn at(distance: f64, elevation: f64) -> Option<Camera> {
    Some(Camera { distance, elevation })
}

/// A box from `low` to `high`.
fn cuboid(low: [f32; 3], high: [f32; 3], material: Material) -> Mesh {
    let mut mesh = Mesh { materials: vec![material], ..Mesh::default() };
    for axis in 0..3 {
        for is_high in [false, true] {
            let (first, mut normal) = (mesh.vertices.len() as u32, [0.0; 3]);
            normal[axis] = if is_high { 1.0 } else { -1.0 };
            for (a, b) in [(false, false), (true, false), (true, true), (false, true)] {
                let mut sides = [is_high; 3];
                sides[(axis + 1) % 3] = a;
                sides[(axis + 2) % 3] = b;
                let position = std::array::from_fn(|k| if sides[k] { high[k] } else { low[k] });
                mesh.vertices.push(Vertex { position, normal, uv: [0.0; 2] });
            }
            mesh.triangles.extend([[first, first + 1, first + 2], [first, first + 2, first + 3]]);
            mesh.triangle_materials.extend([0, 0]);
        }
    }
    mesh
}

/// It shines red whatever light there is.
fn glowing() -> Material {
    Material { base_colour: [0.0; 3], specular: 0.0, emission: [4.0, 0.0, 0.0], ..Material::default() }
}

fn view() -> Latents {
    Latents { rotation: [0.0; 3], floor_hue: 0.4, ..LatentRanges::BENCH.sample(3, "camera", 0) }
}

/// How red every pixel is, from 0 to 1.
fn redness(mesh: &PreparedMesh, latents: &Latents, size: u32) -> Vec<f64> {
    let image = render(Some(mesh), latents, size, Quality::Reference);
    let red = |pixel: &[u8]| (f64::from(pixel[0]) - f64::from(pixel[1]) - 100.0).max(0.0) / 100.0;
    image.pixels.chunks(3).map(|pixel| red(pixel).min(1.0)).collect()
}

#[test]
fn the_published_camera_changes_nothing() {
    let mesh = PreparedMesh::new(&procedural::build(1, 7, 0));
    for ranges in [LatentRanges::BENCH_T, LatentRanges::BENCH_A] {
        let latents = ranges.sample(1, "chair", 2);
        let with_camera = Latents { camera: at(2.5, FRAC_PI_4), ..latents };
        for quality in Quality::ALL {
            assert!(
                render(Some(&mesh), &latents, 64, quality) == render(Some(&mesh), &with_camera, 64, quality)
            );
        }
        assert!(render(None, &latents, 64, Quality::Fast) == render(None, &with_camera, 64, Quality::Fast));
    }
}

#[test]
fn small_objects_are_seen_where_geometry_says() {
    const SIZE: u32 = 128;
    let mesh = PreparedMesh::new(&cuboid([-0.03; 3], [0.03; 3], glowing()));
    for camera in [at(2.5, FRAC_PI_4), at(1.6, 0.6), at(4.0, 0.15), at(2.0, FRAC_PI_2), at(2.5, -0.3)] {
        for translation in [[0.0, 0.0, 0.0], [0.3, 0.1, 0.2], [-0.4, -0.3, 0.3]] {
            let latents = Latents { translation: Some(translation), camera, ..view() };
            let red = redness(&mesh, &latents, SIZE);
            let total: f64 = red.iter().sum();
            let mean = |place: fn(usize) -> usize| {
                let sum: f64 = red.iter().enumerate().map(|(i, red)| red * (place(i) as f64 + 0.5)).sum();
                sum / total / f64::from(SIZE)
            };
            let found = [mean(|i| i % SIZE as usize), mean(|i| i / SIZE as usize)];
            // By hand: right is -x, and the camera looks along (0, -cosine, -sine).
            let Camera { distance, elevation } = camera.unwrap();
            let ([x, y, z], (sine, cosine)) = (translation, elevation.sin_cos());
            let depth = distance - y * cosine - z * sine;
            let focal = 0.5 / (0.691_111_f64 / 2.0).tan();
            let expected = [0.5 - focal * x / depth, 0.5 - focal * (z * cosine - y * sine) / depth];
            let told = image_position(translation, camera).unwrap();
            for axis in 0..2 {
                assert!((told[axis] - expected[axis]).abs() < 1e-5, "{told:?} {expected:?}");
                assert!(
                    (found[axis] - expected[axis]).abs() < 0.5 / f64::from(SIZE),
                    "{camera:?} {translation:?}: seen at {found:?}, expected at {expected:?}"
                );
            }
        }
    }
}

/// Largest difference of two silhouettes, as a share of their area.
fn difference(a: &[f64], b: &[f64]) -> f64 {
    let sum: f64 = a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum();
    sum / a.iter().sum::<f64>()
}

#[test]
fn cameras_that_move_are_objects_that_move_the_other_way() {
    const SIZE: u32 = 96;
    let mesh = PreparedMesh::new(&cuboid([-0.3, -0.1, -0.2], [0.1, 0.2, 0.3], glowing()));
    let still = redness(&mesh, &view(), SIZE);
    // Higher by an angle, as the object turned by it about the axis that points to the left.
    for angle in [-0.6, -0.2, 0.3, FRAC_PI_4] {
        let moved = Latents { rotation: [angle, 0.0, 0.0], camera: at(2.5, FRAC_PI_4 + angle), ..view() };
        let found = difference(&still, &redness(&mesh, &moved, SIZE));
        assert!(found < 0.02, "{angle}: {found}");
        let other = Latents { rotation: [-angle, 0.0, 0.0], ..moved };
        assert!(difference(&still, &redness(&mesh, &other, SIZE)) > 0.05);
    }
    // Farther, as an object that is larger in the same measure.
    for factor in [0.7, 1.3] {
        let shape = Some(Shape { scale: [factor; 3], shear: None });
        let moved = Latents { shape, camera: at(2.5 * factor, FRAC_PI_4), ..view() };
        let found = difference(&still, &redness(&mesh, &moved, SIZE));
        assert!(found < 0.02, "{factor}: {found}");
    }
}

#[test]
fn floor_and_horizon_are_those_of_the_path_tracer() {
    let material = Material { base_colour: [0.6, 0.5, 0.4], specular: 0.0, ..Material::default() };
    let mesh = PreparedMesh::new(&cuboid([-0.3; 3], [0.3, 0.2, 0.3], material));
    for camera in [at(2.5, 0.1), at(2.0, 1.2), at(3.5, -0.15)] {
        let latents = Latents { rotation: [0.3, 0.2, 0.5], camera, ..view() };
        let paths = render_by_paths(Some(&mesh), &latents, 48, 256);
        for (quality, least) in [(Quality::Reference, 36.0), (Quality::Standard, 36.0), (Quality::Fast, 33.0)]
        {
            let found = psnr(&render(Some(&mesh), &latents, 48, quality).pixels, &paths.pixels);
            println!("{camera:?} {quality}: {found:.1} dB");
            assert!(found > least, "{camera:?} {quality}: {found:.1} dB");
        }
    }
}
