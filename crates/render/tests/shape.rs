//! Scale and shear of a view are those of the object: the same image as of a mesh whose vertices were moved beforehand.

use render::{PreparedMesh, Quality, psnr, render};
use scene::latents::Shape;
use scene::{LatentRanges, Latents, Material, Mesh, Vertex};

/// A ring with a box beside it: curved and flat surfaces, smooth and sharp edges, shadows on itself.
fn object() -> Mesh {
    let mut mesh = Mesh {
        materials: vec![
            Material { base_colour: [0.8, 0.3, 0.2], roughness: 0.4, ..Material::default() },
            Material { base_colour: [0.2, 0.5, 0.7], ..Material::default() },
        ],
        ..Mesh::default()
    };
    let (around, across) = (48, 24);
    for i in 0..around {
        for j in 0..across {
            let turn = |k: usize, n: usize| (std::f32::consts::TAU * k as f32 / n as f32).sin_cos();
            let ((s, c), (v, u)) = (turn(i, around), turn(j, across));
            mesh.vertices.push(Vertex {
                position: [(0.3 + 0.1 * u) * c, (0.3 + 0.1 * u) * s, 0.1 * v],
                normal: [u * c, u * s, v],
                uv: [0.0; 2],
            });
            let at = |i: usize, j: usize| ((i % around) * across + j % across) as u32;
            mesh.triangles.push([at(i, j), at(i + 1, j), at(i + 1, j + 1)]);
            mesh.triangles.push([at(i, j), at(i + 1, j + 1), at(i, j + 1)]);
            mesh.triangle_materials.extend([0, 0]);
        }
    }
    for axis in 0..3 {
        for side in [-1.0_f32, 1.0] {
            let first = mesh.vertices.len() as u32;
            for (a, b) in [(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)] {
                let (mut position, mut normal) = ([0.0; 3], [0.0; 3]);
                normal[axis] = side;
                position[axis] = side;
                position[(axis + 1) % 3] = a;
                position[(axis + 2) % 3] = b;
                let scaled = [0.06 * position[0], 0.1 * position[1], 0.25 * position[2]];
                mesh.vertices.push(Vertex { position: scaled, normal, uv: [0.0; 2] });
            }
            mesh.triangles.extend([[first, first + 1, first + 2], [first, first + 2, first + 3]]);
            mesh.triangle_materials.extend([1, 1]);
        }
    }
    mesh
}

/// The mesh with `D` applied to its vertices, and the inverse transpose of `D` to its normals.
fn moved(mesh: &Mesh, shape: &Shape) -> Mesh {
    let ([x, y, z], [xy, xz, yz]) = (shape.scale, shape.shear.unwrap_or_default());
    let mut moved = mesh.clone();
    for vertex in &mut moved.vertices {
        let [a, b, c] = vertex.position.map(f64::from);
        vertex.position =
            [x * (a + xy * b + xz * c), y * (b + yz * c), z * c].map(|coordinate| coordinate as f32);
        // H^-T by substitution, then 1 / S.
        let [a, b, c] = vertex.normal.map(f64::from);
        let (first, second) = (a, b - xy * a);
        let third = c - xz * first - yz * second;
        let normal = [first / x, second / y, third / z];
        let length = normal.iter().map(|n| n * n).sum::<f64>().sqrt();
        vertex.normal = normal.map(|n| (n / length) as f32);
    }
    moved
}

#[test]
fn views_of_a_shape_are_those_of_the_moved_mesh() {
    let mesh = object();
    let prepared = PreparedMesh::new(&mesh);
    for ranges in [LatentRanges::BENCH_S, LatentRanges::BENCH_A] {
        for view in 0..6 {
            let latents = ranges.sample(5, "ring", view);
            let shape = latents.shape.expect("a shape");
            let beforehand = PreparedMesh::new(&moved(&mesh, &shape));
            let plain = Latents { shape: None, ..latents };
            for quality in Quality::ALL {
                let found = render(Some(&prepared), &latents, 96, quality);
                let wanted = render(Some(&beforehand), &plain, 96, quality);
                let agreement = psnr(&found.pixels, &wanted.pixels);
                assert!(agreement > 60.0, "{quality}, view {view}: {agreement:.1} dB");
                // And it is seen at all: the object as it is looks different.
                let unmoved = render(Some(&prepared), &plain, 96, quality);
                let otherwise = psnr(&found.pixels, &unmoved.pixels);
                assert!(otherwise < agreement - 6.0, "{quality}, view {view}: {otherwise:.1} dB");
            }
        }
    }
}

#[test]
fn a_shape_that_changes_nothing_leaves_every_bit() {
    let prepared = PreparedMesh::new(&object());
    let plain = LatentRanges::BENCH_T.sample(5, "ring", 1);
    let neutral = Latents { shape: Some(Shape { scale: [1.0; 3], shear: Some([0.0; 3]) }), ..plain };
    for quality in Quality::ALL {
        let [a, b] = [plain, neutral].map(|latents| render(Some(&prepared), &latents, 64, quality));
        assert_eq!(a, b, "{quality}");
    }
}
