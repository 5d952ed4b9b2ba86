//! The plain path tracer: every term of the scene by sampling, nothing interpolated, nothing tabulated. It is what
//! the presets are checked against where no Cycles render exists.

use glam::Vec3;

use crate::bsdf::{self, Reflected};
use crate::camera;
use crate::lights::{self, FLOOR_Z, SUN_STRENGTH, WORLD_RADIANCE};
use crate::sampling::{cosine_hemisphere, hash, sobol, square_to_disc};
use crate::trace::MISS;
use crate::view::{LIFT, SurfacePoint, View, floor_distance};

/// Indirect bounces.
const MAX_BOUNCES: u32 = 3;
/// Transparent surfaces a path may cross.
const MAX_TRANSPARENT: u32 = 8;
/// Largest indirect contribution of a path.
const INDIRECT_CLAMP: f32 = 10.0;
/// Width of the lobe below which its light is sampled by reflection instead of by lamp.
const NARROW_LOBE: f32 = 0.25;

/// The random numbers of one path, as pairs.
struct Sampler {
    index: u32,
    seed: u32,
    pair: u32,
}

impl Sampler {
    fn next(&mut self) -> [f32; 2] {
        self.pair += 1;
        sobol(self.index, self.pair, self.seed)
    }
}

/// Scene-linear image of `size` x `size` pixels, row 0 on top, `samples` paths a pixel.
pub(crate) fn trace_image(view: &View<'_>, size: u32, samples: u32) -> Vec<Vec3> {
    (0..size * size)
        .map(|pixel| {
            let (x, y) = (pixel % size, pixel / size);
            let mut sum = Vec3::ZERO;
            for index in 0..samples {
                let mut sampler = Sampler { index, seed: hash(pixel), pair: 0 };
                let offset = sampler.next().map(camera::sample_filter);
                let direction = view.camera.direction(
                    x as f32 + 0.5 + offset[0],
                    y as f32 + 0.5 + offset[1],
                    size as f32,
                );
                sum += radiance(view, view.camera.position, direction, &mut sampler);
            }
            sum / samples as f32
        })
        .collect()
}

fn radiance(view: &View<'_>, origin: Vec3, direction: Vec3, sampler: &mut Sampler) -> Vec3 {
    let (mut origin, mut direction) = (origin, direction);
    let mut throughput = Vec3::ONE;
    let mut direct = Vec3::ZERO;
    let mut indirect = Vec3::ZERO;
    let (mut bounce, mut crossed) = (0, 0);
    loop {
        let to_floor = floor_distance(origin, direction);
        let hit = view.mesh.geometry.nearest_one(
            view.to_object(origin),
            view.object_from_world * direction,
            to_floor,
        );
        let light = if bounce == 0 { &mut direct } else { &mut indirect };
        let (point, is_floor) = if hit.triangle != MISS {
            (view.surface_point(&view.shape(), &hit, direction), false)
        } else if to_floor.is_finite() {
            (floor_point(origin + to_floor * direction), true)
        } else {
            *light += throughput * WORLD_RADIANCE;
            break;
        };
        if !is_floor {
            let alpha = view.alpha(&point);
            if alpha < 1.0 && sampler.next()[0] >= alpha {
                crossed += 1;
                if crossed > MAX_TRANSPARENT {
                    break;
                }
                origin = point.position - LIFT * point.face_normal;
                continue;
            }
        }
        if !is_floor {
            *light += throughput * view.emission(&point);
        }
        let towards = -direction;
        *light += throughput * direct_light(view, &point, is_floor, towards, bounce == 0, sampler);
        if bounce == MAX_BOUNCES {
            // Light that a further bounce would gather from the world alone.
            break;
        }
        let next = cosine_hemisphere(point.normal, sampler.next());
        if next.dot(point.face_normal) <= 0.0 {
            break;
        }
        throughput *= if is_floor {
            view.floor_albedo
        } else {
            let n_dot_l = point.normal.dot(next);
            let surface = view.surface(&point);
            let diffuse = surface.diffuse(n_dot_l, point.normal.dot(towards), next.dot(towards));
            let share = 1.0 - surface.metallic;
            view.albedo(&point) * (share * diffuse * std::f32::consts::PI / n_dot_l.max(1e-6))
        };
        origin = point.lifted(LIFT);
        direction = next;
        bounce += 1;
    }
    direct + indirect.min(Vec3::splat(INDIRECT_CLAMP))
}

fn floor_point(position: Vec3) -> SurfacePoint {
    SurfacePoint {
        position: Vec3::new(position.x, position.y, FLOOR_Z),
        face_normal: Vec3::Z,
        normal: Vec3::Z,
        uv: glam::Vec2::ZERO,
        footprint: 0.0,
        material: 0,
    }
}

/// Light of sun and spot reflected at `point` towards `towards`, and, seen by the camera, the world's gleam.
fn direct_light(
    view: &View<'_>,
    point: &SurfacePoint,
    is_floor: bool,
    towards: Vec3,
    seen_by_camera: bool,
    sampler: &mut Sampler,
) -> Vec3 {
    let origin = view.to_object(point.lifted(LIFT));
    let open = |direction: Vec3, limit: f32| {
        if direction.dot(point.face_normal) <= 0.0 {
            return 0.0;
        }
        view.mesh.geometry.transmitted_one(origin, view.object_from_world * direction, limit)
    };
    let surface = view.surface(point);
    let albedo = if is_floor { view.floor_albedo } else { view.albedo(point) };
    let narrow = surface.alpha() < NARROW_LOBE;
    let n = point.normal;
    let reflected = |l: Vec3, with_lobe: bool| {
        if is_floor {
            return albedo * (n.dot(l).max(0.0) * std::f32::consts::FRAC_1_PI);
        }
        let lobe =
            if with_lobe { surface.specular(n, l, towards, surface.alpha()) } else { Reflected::default() };
        let diffuse = (1.0 - surface.metallic) * surface.diffuse(n.dot(l), n.dot(towards), l.dot(towards));
        albedo * (diffuse + lobe.albedo) + Vec3::splat(lobe.white)
    };
    let mut sum = Vec3::ZERO;
    let sun = lights::sun_direction(square_to_disc(sampler.next()));
    let through_floor = |l: Vec3| l.z <= 0.0;
    let value = reflected(sun, !narrow);
    if value != Vec3::ZERO {
        sum += SUN_STRENGTH * open(sun, f32::INFINITY) * value;
    }
    let lamp = view.spot.sample(point.position, square_to_disc(sampler.next()));
    let value = reflected(lamp.direction, true) * lamp.weight;
    if value != Vec3::ZERO {
        sum += view.spot.intensity * open(lamp.direction, lamp.distance) * value;
    }
    if !is_floor && seen_by_camera && surface.has_specular() {
        let sample = bsdf::lobe_sample(sampler.next());
        let l = bsdf::sample_reflection(n, towards, surface.alpha(), sample);
        let weight = surface.reflection_weight(n, l, towards);
        let weight = albedo * weight.albedo + Vec3::splat(weight.white);
        if weight != Vec3::ZERO && !through_floor(l) {
            let sky = WORLD_RADIANCE + if narrow { lights::sun_radiance(l) } else { 0.0 };
            sum += sky * open(l, f32::INFINITY) * weight;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::PreparedMesh;
    use scene::{Latents, Material, Mesh, Vertex};

    #[test]
    fn what_a_path_finds_behind_its_first_surface_is_bounded() {
        // A lamp of a plate, seen from the floor below it, not by the camera.
        let corner = |x: f32, y: f32| Vertex { position: [x, y, 0.0], normal: [0.0, 0.0, 1.0], uv: [0.0; 2] };
        let plate = Mesh {
            vertices: vec![corner(-0.5, -0.5), corner(0.5, -0.5), corner(0.5, 0.5), corner(-0.5, 0.5)],
            triangles: vec![[0, 1, 2], [0, 2, 3]],
            triangle_materials: vec![0, 0],
            materials: vec![Material { emission: [1e5; 3], ..Material::default() }],
        };
        let plate = PreparedMesh::new(&plate);
        let view = View::new(&plate, &Latents::default());
        let origin = Vec3::new(0.3, 0.0, -0.5);
        let found: Vec<f32> = (0..64)
            .map(|index| radiance(&view, origin, -Vec3::Z, &mut Sampler { index, seed: 1, pair: 0 }).x)
            .collect();
        // Light of sun and spot comes to that.
        assert!(found.iter().all(|&light| light < INDIRECT_CLAMP + 2.0), "{found:?}");
        let reached = found.iter().filter(|&&light| light >= INDIRECT_CLAMP).count();
        assert!(reached > 10 && reached < 54, "{found:?}");
    }
}
