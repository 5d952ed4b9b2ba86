//! What images do whatever they show: transparency, textures, winding, odd meshes and sizes, threads.

use rayon::prelude::*;
use render::{Image, PreparedMesh, Quality, psnr, render, render_with_stats};
use scene::{LatentRanges, Latents, Material, Mesh, Texture, Vertex};

const SIZE: u32 = 96;

fn latents() -> Latents {
    Latents {
        floor_hue: 0.6,
        spot_theta: 0.3,
        spot_phi: 2.0,
        spot_hue: 0.1,
        translation: Some([0.0; 3]),
        ..Latents::default()
    }
}

/// A square that faces the camera, its texture upright, with the given material.
fn square(material: Material) -> Mesh {
    let up = [0.0, -std::f32::consts::FRAC_1_SQRT_2, std::f32::consts::FRAC_1_SQRT_2];
    let normal = [0.0, -up[1], up[2]];
    let corner = |u: f32, v: f32| Vertex {
        // Image right is world -x.
        position: [0.6 * (0.5 - u), 0.6 * (v - 0.5) * up[1], 0.6 * (v - 0.5) * up[2]],
        normal,
        uv: [u, v],
    };
    Mesh {
        vertices: vec![corner(0.0, 0.0), corner(1.0, 0.0), corner(1.0, 1.0), corner(0.0, 1.0)],
        triangles: vec![[0, 1, 2], [0, 2, 3]],
        triangle_materials: vec![0, 0],
        materials: vec![material],
    }
}

fn image(mesh: &Mesh, quality: Quality) -> Image {
    render(Some(&PreparedMesh::new(mesh)), &latents(), SIZE, quality)
}

fn pixel(image: &Image, x: u32, y: u32) -> [u8; 3] {
    let start = 3 * (y * image.width + x) as usize;
    [image.pixels[start], image.pixels[start + 1], image.pixels[start + 2]]
}

#[test]
fn opacity_mixes_with_what_lies_behind() {
    let with_alpha = |alpha| square(Material { alpha, base_colour: [0.9, 0.1, 0.1], ..Material::default() });
    let nothing = render(None, &latents(), SIZE, Quality::Fast);
    let clear = image(&with_alpha(0.0), Quality::Fast);
    assert!(psnr(&clear.pixels, &nothing.pixels) > 50.0);
    let (half, solid) = (image(&with_alpha(0.5), Quality::Fast), image(&with_alpha(1.0), Quality::Fast));
    let middle = |image: &Image| pixel(image, SIZE / 2, SIZE / 2).map(f64::from);
    let [clear, half, solid] = [middle(&clear), middle(&half), middle(&solid)];
    for channel in [0, 2] {
        let (low, high) = (clear[channel].min(solid[channel]), clear[channel].max(solid[channel]));
        assert!(high - low > 20.0, "{clear:?} {solid:?}");
        assert!(half[channel] > low + 5.0 && half[channel] < high - 5.0, "{half:?} not between");
    }
    // Half the light passes, so the shadow is lighter; the square's shadow lies below the middle.
    let shadow =
        |alpha| image(&with_alpha(alpha), Quality::Fast).pixels.iter().map(|&v| u64::from(v)).sum::<u64>();
    assert!(shadow(0.5) > shadow(1.0));
}

#[test]
fn textures_are_upright_and_replace_the_base_colour() {
    let (red, green) = ([230, 20, 20, 255], [20, 230, 20, 255]);
    let (blue, white) = ([20, 20, 230, 255], [230, 230, 230, 255]);
    let texture = Texture { width: 2, height: 2, pixels: vec![red, green, blue, white] };
    let material = Material { texture: Some(texture.into()), base_colour: [0.0; 3], ..Material::default() };
    for quality in Quality::ALL {
        let image = image(&square(material.clone()), quality);
        let at = |dx: i32, dy: i32| {
            pixel(&image, (SIZE as i32 / 2 + dx) as u32, (SIZE as i32 / 2 + dy) as u32).map(i32::from)
        };
        let (top_left, top_right, bottom_left, bottom_right) = (at(-8, -8), at(8, -8), at(-8, 8), at(8, 8));
        assert!(top_left[0] > top_left[1] + 40 && top_left[0] > top_left[2] + 40, "{quality} {top_left:?}");
        assert!(top_right[1] > top_right[0] + 40, "{quality} {top_right:?}");
        assert!(bottom_left[2] > bottom_left[0] + 40, "{quality} {bottom_left:?}");
        let spread = bottom_right.iter().max().unwrap() - bottom_right.iter().min().unwrap();
        assert!(spread < 40, "{quality} {bottom_right:?}");
    }
}

#[test]
fn winding_and_side_do_not_matter() {
    let mesh = square(Material::default());
    let mut reversed = mesh.clone();
    for triangle in &mut reversed.triangles {
        triangle.swap(1, 2);
    }
    let mut turned = mesh.clone();
    for vertex in &mut turned.vertices {
        vertex.normal = vertex.normal.map(|x| -x);
    }
    let expected = image(&mesh, Quality::Fast);
    assert!(psnr(&expected.pixels, &image(&reversed, Quality::Fast).pixels) > 50.0);
    assert!(psnr(&expected.pixels, &image(&turned, Quality::Fast).pixels) > 50.0);
}

#[test]
fn odd_meshes_give_images() {
    let good = square(Material::default());
    let mut not_finite = good.clone();
    not_finite.vertices[0].position[1] = f32::NAN;
    not_finite.vertices[2].normal = [f32::NAN; 3];
    not_finite.vertices[3].uv = [f32::INFINITY; 2];
    let mut flat = good.clone();
    flat.vertices.iter_mut().for_each(|vertex| vertex.position = [0.1, 0.2, 0.3]);
    let mut lost = good.clone();
    lost.triangles.push([0, 1, 99]);
    lost.triangle_materials = vec![7];
    let mut no_materials = good.clone();
    no_materials.materials.clear();
    let mut huge = good.clone();
    huge.vertices.iter_mut().for_each(|vertex| vertex.position = vertex.position.map(|x| 50.0 * x));
    let mut sunken = good.clone();
    sunken.vertices.iter_mut().for_each(|vertex| vertex.position[2] -= 1.0);
    let one = Mesh { triangles: vec![[0, 1, 2]], ..good.clone() };
    let bad_texture = Texture { width: 4, height: 4, pixels: vec![[0; 4]; 3] };
    let textured = square(Material { texture: Some(bad_texture.into()), ..Material::default() });
    let strange = square(Material {
        base_colour: [f32::NAN, -1.0, 9.0],
        roughness: f32::NAN,
        specular: 5.0,
        alpha: -3.0,
        ..Material::default()
    });
    let mirror = square(Material { roughness: 0.0, specular: 1.0, ..Material::default() });
    let all =
        [Mesh::default(), not_finite, flat, lost, no_materials, huge, sunken, one, textured, strange, mirror];
    let floor = render(None, &latents(), 32, Quality::Fast);
    for (index, mesh) in all.iter().enumerate() {
        let prepared = PreparedMesh::new(mesh);
        for quality in Quality::ALL {
            let image = render(Some(&prepared), &latents(), 32, quality);
            assert_eq!(image.pixels.len(), 3 * 32 * 32);
            // NaN would come out black; nothing in this scene is.
            assert!(image.pixels.chunks(3).all(|pixel| pixel.iter().any(|&value| value > 8)), "mesh {index}");
        }
        if prepared.is_empty() {
            assert_eq!(render(Some(&prepared), &latents(), 32, Quality::Fast), floor, "mesh {index}");
        }
    }
}

#[test]
fn any_size_shows_the_same_scene() {
    let mesh = PreparedMesh::new(&square(Material::default()));
    for size in [1, 2, 3, 7, 33] {
        assert_eq!(
            render(Some(&mesh), &latents(), size, Quality::Fast).pixels.len(),
            (3 * size * size) as usize
        );
    }
    let [small, large] = [128, 256].map(|size| render(Some(&mesh), &latents(), size, Quality::Standard));
    let halved: Vec<u8> = (0..3 * 128 * 128)
        .map(|i| {
            let (x, y, channel) = (i / 3 % 128, i / 384, i % 3);
            let at = |dx: usize, dy: usize| {
                u32::from(large.pixels[3 * ((2 * y + dy) * 256 + 2 * x + dx) + channel])
            };
            ((at(0, 0) + at(1, 0) + at(0, 1) + at(1, 1) + 2) / 4) as u8
        })
        .collect();
    assert!(psnr(&small.pixels, &halved) > 34.0, "{}", psnr(&small.pixels, &halved));
}

#[test]
fn images_are_the_same_on_any_number_of_threads() {
    let meshes: Vec<PreparedMesh> =
        procedural::benchmark_set().iter().take(3).map(PreparedMesh::new).collect();
    let views: Vec<(usize, Latents)> =
        (0..12).map(|i| (i % 3, LatentRanges::BENCH_T.sample(3, "threads", i as u64))).collect();
    let draw = |(object, latents): &(usize, Latents)| {
        render_with_stats(Some(&meshes[*object]), latents, 64, Quality::Fast)
    };
    let one: Vec<_> = views.iter().map(draw).collect();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(5).build().unwrap();
    let many: Vec<_> = pool.install(|| views.par_iter().map(draw).collect());
    assert!(one == many);
}
