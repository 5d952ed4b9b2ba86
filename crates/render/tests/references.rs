//! Images against Cycles renders, against measured values, and presets against the path tracer.

use std::path::{Path, PathBuf};

use render::{PreparedMesh, Quality, psnr, render, render_by_paths};
use scene::{LatentRanges, Latents};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn reference(name: &str) -> Vec<u8> {
    image::open(data(name)).expect("a test image").to_rgb8().into_raw()
}

fn empty(floor_hue: f64, spot_theta: f64, spot_phi: f64, spot_hue: f64) -> Latents {
    Latents { floor_hue, spot_theta, spot_phi, spot_hue, ..Latents::default() }
}

/// Mean over 5 x 5 pixels.
fn mean_at(pixels: &[u8], x: usize, y: usize, channel: usize) -> f64 {
    let window = (0..25).map(|i| f64::from(pixels[3 * ((y + i / 5 - 2) * 256 + x + i % 5 - 2) + channel]));
    window.sum::<f64>() / 25.0
}

#[test]
fn the_empty_scene_has_its_measured_values() {
    for quality in Quality::ALL {
        let image = render(None, &empty(0.0, 0.0, 0.0, 0.0), 256, quality);
        let measured =
            [(8, 8, 147.6), (128, 128, 161.4), (128, 160, 178.0), (128, 205, 178.4), (8, 248, 156.2)];
        for (x, y, expected) in measured {
            let value = mean_at(&image.pixels, x, y, 0);
            assert!((value - expected).abs() < 0.7, "{quality} ({x}, {y}): {value} against {expected}");
            let rest = mean_at(&image.pixels, x, y, 2);
            assert!((rest - 102.6).abs() < 0.7, "{quality} ({x}, {y}): {rest} against 102.6");
        }
        let image = render(None, &empty(0.33, 0.5, 1.0, 0.6), 256, quality);
        for (channel, expected) in [103.9, 147.7, 102.6].into_iter().enumerate() {
            let value = mean_at(&image.pixels, 8, 8, channel);
            assert!((value - expected).abs() < 0.7, "{quality}: {value} against {expected}");
        }
    }
}

#[test]
fn images_match_cycles() {
    let mut mesh = scene::load_mesh(&data("mug.obj"), &Default::default()).unwrap().mesh;
    scene::normalise(&mut mesh).unwrap();
    let mug = PreparedMesh::new(&mesh);
    let view = Latents {
        rotation: [0.4812945701871043, 0.47784651562429037, -0.21545533941232153],
        floor_hue: 0.6180154289988415,
        spot_theta: 0.33675415024511446,
        spot_phi: 0.851208649826403,
        spot_hue: 0.29828232595603077,
        translation: Some([0.06996491070126487, 0.09087276124817323, 0.0743252488495788]),
        ..Latents::default()
    };
    for (quality, bound) in [(Quality::Reference, 48.0), (Quality::Standard, 46.5), (Quality::Fast, 45.5)] {
        let value = psnr(&render(Some(&mug), &view, 256, quality).pixels, &reference("mug_1.png"));
        assert!(value > bound, "{quality}: {value:.2} dB");
        let floor = render(None, &empty(0.33, 0.5, 1.0, 0.6), 256, quality);
        let value = psnr(&floor.pixels, &reference("empty_b.png"));
        assert!(value > 50.0, "{quality}, empty: {value:.2} dB");
    }
}

#[test]
fn presets_agree_with_the_path_tracer_on_other_objects() {
    for (object, mesh) in procedural::benchmark_set().iter().enumerate().step_by(7) {
        let prepared = PreparedMesh::new(mesh);
        let latents = LatentRanges::BENCH_T.sample(11, "agreement", object as u64);
        let truth = render_by_paths(Some(&prepared), &latents, 64, 96);
        for (quality, bound) in [(Quality::Reference, 39.0), (Quality::Standard, 38.0), (Quality::Fast, 36.0)]
        {
            let value = psnr(&render(Some(&prepared), &latents, 64, quality).pixels, &truth.pixels);
            assert!(value > bound, "object {object}, {quality}: {value:.2} dB");
        }
    }
}

/// What is seen through holes gets light of its own, but hardly more work.
#[test]
fn perforated_objects_agree_with_the_path_tracer_and_take_few_more_rays() {
    // A fifth of the texels is open.
    let pixels =
        (0_u32..32 * 32).map(|i| [255, 255, 255, if i * i % 97 % 5 == 0 { 0 } else { 255 }]).collect();
    let holes = scene::Map::from(scene::Texture { width: 32, height: 32, pixels });
    for (object, mesh) in procedural::benchmark_set().iter().enumerate().skip(3).step_by(8) {
        let mut perforated = mesh.clone();
        for vertex in &mut perforated.vertices {
            let [x, y, z] = vertex.position;
            vertex.uv = [2.0 * x + 0.5 * z, 2.0 * y + 0.3 * z];
        }
        perforated.materials.iter_mut().for_each(|material| material.opacity = Some(holes.clone()));
        let [whole, perforated] = [mesh, &perforated].map(PreparedMesh::new);
        let latents = LatentRanges::BENCH_T.sample(11, "agreement", object as u64);
        let truth = render_by_paths(Some(&perforated), &latents, 64, 96);
        for (quality, bound) in [(Quality::Reference, 40.0), (Quality::Standard, 38.5), (Quality::Fast, 35.0)]
        {
            let value = psnr(&render(Some(&perforated), &latents, 64, quality).pixels, &truth.pixels);
            assert!(value > bound, "object {object}, {quality}: {value:.2} dB");
        }
        let [few, many] = [&whole, &perforated].map(|mesh| {
            render::render_with_stats(Some(mesh), &latents, 256, Quality::Standard).1.rays as f64
        });
        assert!(many < 1.25 * few, "object {object}: {many} rays instead of {few}");
    }
}

/// A plate above the floor, whose shadow is most of what there is to see.
#[test]
fn the_path_tracer_sees_the_same_shadows() {
    let corner =
        |x: f32, y: f32| scene::Vertex { position: [x, y, -0.7], normal: [0.0, 0.0, 1.0], uv: [0.0; 2] };
    let plate = scene::Mesh {
        vertices: vec![corner(-0.5, -0.5), corner(0.5, -0.5), corner(0.5, 0.5), corner(-0.5, 0.5)],
        triangles: vec![[0, 1, 2], [0, 2, 3]],
        triangle_materials: vec![0, 0],
        materials: vec![scene::Material { base_colour: [0.2; 3], ..Default::default() }],
    };
    let plate = PreparedMesh::new(&plate);
    // Below the plate there is no light of the spot, so what is missing is the sun's.
    let latents = empty(0.6, 0.0, 0.0, 0.6);
    let ours = render(Some(&plate), &latents, 64, Quality::Reference).pixels;
    let paths = render_by_paths(Some(&plate), &latents, 64, 64).pixels;
    let open = render(None, &latents, 64, Quality::Reference).pixels;
    let mean =
        |pixels: &[u8]| pixels.iter().map(|&value| f64::from(value)).sum::<f64>() / pixels.len() as f64;
    assert!(mean(&open) - mean(&ours) > 4.0, "{} {}", mean(&open), mean(&ours));
    assert!((mean(&ours) - mean(&paths)).abs() < 0.5, "{} {}", mean(&ours), mean(&paths));
    assert!(psnr(&ours, &paths) > 38.0, "{}", psnr(&ours, &paths));
}
