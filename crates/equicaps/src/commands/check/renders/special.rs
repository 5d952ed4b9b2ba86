//! Materials that built-in objects do not have, for the comparison of a device with the CPU: holes, metal, emission, maps of
//! everything.

use random::{Random, Stream};
use scene::{Map, Mesh, Texture};

/// Gives the materials of `mesh` some of them, by `seed` and `index`; and texture coordinates to all vertices.
pub(super) fn dress(mesh: &mut Mesh, seed: u64, index: u64) {
    let mut random = Random::new(seed, Stream::new("special-materials"), index);
    for vertex in &mut mesh.vertices {
        let [x, y, z] = vertex.position;
        vertex.uv = [2.0 * x + 0.5 * z, 2.0 * y + 0.3 * z];
    }
    for material in &mut mesh.materials {
        let mut chance = |share: f64| random.uniform() < share;
        let has =
            [chance(0.4), chance(0.4), chance(0.25), chance(0.3), chance(0.3), chance(0.2), chance(0.35)];
        let [holes, metal, clear, emission, surface, normals, mirror] = has;
        let mut share = |low: f64, high: f64| random.range(low, high) as f32;
        material.metallic = if metal { share(0.2, 1.0) } else { 0.0 };
        material.alpha = if clear { share(0.2, 0.9) } else { 1.0 };
        material.roughness = if mirror { share(0.0, 0.17) } else { share(0.1, 1.0) };
        material.emission =
            if emission { [share(0.0, 0.5), share(0.0, 0.5), share(0.0, 0.5)] } else { [0.0; 3] };
        let (scale, offset) = ([share(0.5, 3.0), share(0.5, 3.0)], [share(-1.0, 1.0), share(-1.0, 1.0)]);
        let mut map = |size: u32, ranges: [[u64; 2]; 4]| {
            let mut pixel = || ranges.map(|[low, high]| (low + random.below(high - low + 1)) as u8);
            let pixels = (0..size * size).map(|_| pixel()).collect();
            Some(Map { scale, offset, ..Texture { width: size, height: size, pixels }.into() })
        };
        material.texture = map(32, [[40, 250]; 4]);
        material.opacity = if holes { map(13, [[0, 255]; 4]) } else { None };
        material.emission_map = if emission { map(16, [[0, 255]; 4]) } else { None };
        // Specular, roughness and metallic are told apart also where the map is far away and only its mean is seen.
        let parts = [[160, 255], [40, 140], [90, 200], [255, 255]];
        material.surface_map = if surface { map(16, parts) } else { None };
        material.normal_map = if normals { map(16, [[90, 165]; 4]) } else { None };
    }
}
