//! A view with its light: the sets of directions that all points share, the light on the floor, and what a ray that
//! leaves a surface finds.

use std::f32::consts::FRAC_1_PI;

use glam::Vec3;
use simd::{Floats, Mask, WIDTH};

use crate::floor::{CoarseFloor, FloorLight};
use crate::lights::{self, LAMP_RADIUS, WORLD_RADIANCE};
use crate::packet::{Fan, Parallel};
use crate::sampling;
use crate::settings::Settings;
use crate::trace::{Hits, Traceable};
use crate::view::{SurfacePoint, View};

/// Distance between neighbouring rays of a set of directions over their length, by order of magnitude.
const RAY_SPACING: f32 = 0.25;

/// A direction or a point in the world and in the object frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Both {
    pub world: Vec3,
    pub object: Vec3,
}

/// The sets of directions of one image.
pub(crate) struct Directions {
    /// Unit directions to the sun.
    pub sun: Vec<Both>,
    /// Points of the lamp.
    pub lamp: Vec<Both>,
    /// Unit directions of the whole sphere.
    pub sphere: Vec<Both>,
}

/// Unit directions to `count` parts of the sun of equal irradiance.
pub(crate) fn sun_directions(view: &View<'_>, count: usize) -> Vec<Both> {
    (0..count)
        .map(|i| {
            let world = lights::sun_direction(sampling::disc(i, count, 0.4));
            Both { world, object: view.object_from_world * world }
        })
        .collect()
}

/// `count` points of the lamp, turned towards the origin.
pub(crate) fn lamp_points(view: &View<'_>, count: usize) -> Vec<Both> {
    let (s, t) = sampling::frame(-view.spot.axis);
    (0..count)
        .map(|i| {
            let disc = LAMP_RADIUS * sampling::disc(i, count, 0.9);
            let world = view.spot.position + disc.x * s + disc.y * t;
            Both { world, object: view.to_object(world) }
        })
        .collect()
}

/// `count` cosine-distributed directions about +Z.
pub(crate) fn hemisphere_directions(view: &View<'_>, count: usize) -> Vec<Both> {
    (0..count)
        .map(|i| {
            let disc = sampling::disc(i, count, 2.1);
            let world = disc.extend((1.0 - disc.length_squared()).max(0.0).sqrt());
            Both { world, object: view.object_from_world * world }
        })
        .collect()
}

fn sphere_directions(view: &View<'_>, count: usize) -> Vec<Both> {
    (0..count)
        .map(|i| {
            let world = sampling::sphere(i, count, 1.3);
            Both { world, object: view.object_from_world * world }
        })
        .collect()
}

/// A view, ready to be shaded.
pub(crate) struct LitScene<'a> {
    pub view: &'a View<'a>,
    pub settings: Settings,
    pub directions: Directions,
    pub floor: FloorLight,
}

impl<'a> LitScene<'a> {
    pub fn new(view: &'a View<'a>, settings: Settings, rays: &mut u64) -> Self {
        let directions = Directions {
            sun: sun_directions(view, settings.sun_directions),
            lamp: lamp_points(view, settings.lamp_points),
            sphere: sphere_directions(view, settings.gather_directions),
        };
        let floor = FloorLight::new(view, &settings, &directions, rays);
        Self { view, settings, directions, floor }
    }
}

/// Radiance of the object at the hits of a packet of rays with one direction, written to `incoming` in the lanes that
/// hit, but what it reflects of indirect light to `indirect`. Sun and spot are looked at through one shadow ray each, which differs from `turn` to `turn`; the rest of the
/// light there is estimated from the floor below and the world.
pub(crate) fn object_radiance(
    view: &View<'_>,
    (directions, floor): (&Directions, &CoarseFloor),
    hits: &Hits,
    direction: Vec3,
    turn: usize,
    (incoming, indirect): (&mut [Vec3; WIDTH], &mut [Vec3; WIDTH]),
    rays: &mut u64,
) {
    if hits.mask == 0 {
        return;
    }
    let lanes = || (0..WIDTH).filter(|&lane| hits.mask >> lane & 1 != 0);
    let shape = view.light_shape();
    let lift = view.lift();
    let mut points = [None::<SurfacePoint>; WIDTH];
    let sun = directions.sun[turn * 7 % directions.sun.len()];
    let lamp = directions.lamp[turn * 5 % directions.lamp.len()];
    let mut origins = [Floats::splat(0.0); 3];
    let (mut sunlit, mut spotlit): (Mask, Mask) = (0, 0);
    let mut spot_irradiance = [0.0; WIDTH];
    for lane in lanes() {
        let hit = hits.lane(lane);
        let mut point = view.surface_point(&shape, &hit, direction);
        if view.mesh.materials[point.material as usize].has_maps() {
            let spacing = RAY_SPACING * hit.t;
            let density = shape.uv_density(hit.triangle) * view.area_ratio(point.face_normal);
            point.footprint = density * spacing * spacing;
        }
        points[lane] = Some(point);
        let origin = view.to_object(point.lifted(lift));
        for axis in 0..3 {
            origins[axis].0[lane] = origin[axis];
        }
        sunlit |= Mask::from(point.normal.dot(sun.world) > 0.0) << lane;
        spot_irradiance[lane] = view.spot.irradiance(point.position, point.normal);
        spotlit |= Mask::from(spot_irradiance[lane] > 0.0) << lane;
    }
    let (mut sun_open, mut lamp_open) = (Floats::splat(0.0), Floats::splat(0.0));
    if sunlit != 0 {
        *rays += u64::from(sunlit.count_ones());
        let limit = Floats::splat(f32::INFINITY);
        let packet = Parallel { origin: origins, direction: sun.object, limit, active: sunlit };
        sun_open = packet.transmitted(shape.geometry);
    }
    if spotlit != 0 {
        *rays += u64::from(spotlit.count_ones());
        lamp_open = Fan::to_points(lamp.object, &origins, spotlit).transmitted(shape.geometry);
    }
    for lane in lanes() {
        let Some(point) = points[lane] else { continue };
        let up = point.normal.z;
        let floor = floor.radiance(point.position.truncate());
        let ambient = 0.5 * (1.0 + up) * Vec3::splat(WORLD_RADIANCE) + 0.5 * (1.0 - up) * floor;
        // A surface turned away from the sampled part of the sun still sees some other part of it.
        let sun_share = if sunlit >> lane & 1 != 0 { sun_open.0[lane] } else { 1.0 };
        let direct = Vec3::splat(lights::sun_irradiance(up) * sun_share)
            + view.spot.intensity * (spot_irradiance[lane] * lamp_open.0[lane]);
        let albedo = view.albedo(&point);
        let mut leaving = albedo * (FRAC_1_PI * direct);
        if view.mesh.has_emission {
            leaving += view.emission(&point);
        }
        let alpha = view.alpha(&point);
        // Behind a transparent surface there is, more often than not, the same as around it.
        let behind = if direction.z < 0.0 { floor } else { Vec3::splat(WORLD_RADIANCE) };
        incoming[lane] = alpha * leaving + (1.0 - alpha) * behind;
        indirect[lane] = alpha * (albedo * ambient);
    }
}
