//! Light on the floor: analytic where the object has no influence, and on two grids where it has. The irradiance of
//! sun, world and object varies slowly and is sampled coarsely; the spot's shadow is sampled finely, but only where
//! the object's bounds say that it can fall.

// Loops over lanes stay plain, as elsewhere.
#![allow(clippy::needless_range_loop)]

use std::f32::consts::{FRAC_1_PI, PI};

use glam::{Vec2, Vec3};
use simd::{Floats, Mask, WIDTH};

use crate::grid::{Grid, Layout};
use crate::lights::{FLOOR_Z, LAMP_RADIUS, SUN_FLOOR_IRRADIANCE, WORLD_RADIANCE};
use crate::lit_scene::{Directions, hemisphere_directions, lamp_points, object_radiance, sun_directions};
use crate::packet::{Fan, Parallel};
use crate::sampling;
use crate::settings::Settings;
use crate::trace::{Hits, Traceable};
use crate::view::{LIFT, View};

/// Irradiance of the open floor without the spot.
const OPEN: f32 = SUN_FLOOR_IRRADIANCE + PI * WORLD_RADIANCE;
/// Share of a grid's half side over which it fades into the open floor.
const FADE: f32 = 0.2;
/// Nodes of the hierarchy whose shadows bound the object's.
const SHADOW_BOXES: usize = 128;

/// The light that falls on the floor of one view.
pub(crate) struct FloorLight {
    /// Irradiance of everything but the spot.
    irradiance: Option<Grid<Vec3>>,
    /// Share of the spot that arrives.
    shadow: Option<Grid<f32>>,
    /// What the floor sends up, for rays that gather indirect light.
    pub coarse: Option<CoarseFloor>,
    albedo: Vec3,
}

/// Radiance of the floor on a coarse grid around the object.
pub(crate) struct CoarseFloor {
    grid: Grid<Vec3>,
    beyond: Vec3,
}

impl CoarseFloor {
    fn new(view: &View<'_>, radiance: impl Fn(Vec2) -> Vec3) -> Self {
        const HALF: f32 = 4.0;
        let origin = view.centre().truncate() - Vec2::splat(HALF);
        let layout = Layout { origin, side: 2.0 * HALF, cells: 48, coarse: 1 };
        let grid = Grid::fill(
            layout,
            1.0,
            |_, _, _| false,
            |points, values| {
                values.extend(points.iter().map(|&point| radiance(point)));
            },
        );
        Self { grid, beyond: view.floor_albedo * (OPEN * FRAC_1_PI) }
    }

    /// Radiance at `point`; that of the open floor far away.
    #[inline]
    pub fn radiance(&self, point: Vec2) -> Vec3 {
        self.grid.lookup(point).unwrap_or(self.beyond)
    }
}

impl FloorLight {
    pub fn new(view: &View<'_>, settings: &Settings, directions: &Directions, rays: &mut u64) -> Self {
        let mut light = Self { irradiance: None, shadow: None, coarse: None, albedo: view.floor_albedo };
        if view.mesh.is_empty() {
            return light;
        }
        let open = CoarseFloor::new(view, |point| light.radiance(view, point));
        light.irradiance = Some(irradiance_grid(view, settings, (directions, &open), rays));
        light.shadow = shadow_grid(view, settings, rays);
        light.coarse = Some(CoarseFloor::new(view, |point| light.radiance(view, point)));
        light
    }

    /// Radiance of the floor at `point`.
    #[inline]
    pub fn radiance(&self, view: &View<'_>, point: Vec2) -> Vec3 {
        let mut irradiance = Vec3::splat(OPEN);
        if let Some(grid) = &self.irradiance
            && let Some(value) = grid.lookup(point)
        {
            let weight = (grid.depth(point) * (1.0 / FADE)).min(1.0);
            irradiance += (value - irradiance) * weight;
        }
        let spot = view.spot.irradiance(point.extend(FLOOR_Z), Vec3::Z);
        if spot > 0.0 {
            let open = self.shadow.as_ref().and_then(|grid| grid.lookup(point)).unwrap_or(1.0);
            irradiance += view.spot.intensity * (spot * open);
        }
        self.albedo * irradiance * FRAC_1_PI
    }
}

/// Sixteen floor points at a time as the ends of rays, in the object frame.
fn for_packets(view: &View<'_>, points: &[Vec2], mut work: impl FnMut(&[Vec2], &[Floats; 3])) {
    for chunk in points.chunks(WIDTH) {
        let mut ends = [Floats::splat(0.0); 3];
        for lane in 0..WIDTH {
            let point = chunk[lane.min(chunk.len() - 1)];
            let end = view.to_object(point.extend(FLOOR_Z + LIFT));
            for axis in 0..3 {
                ends[axis].0[lane] = end[axis];
            }
        }
        work(chunk, &ends);
    }
}

fn irradiance_grid(
    view: &View<'_>,
    settings: &Settings,
    surroundings: (&Directions, &CoarseFloor),
    rays: &mut u64,
) -> Grid<Vec3> {
    let (centre, reach) = (view.centre(), view.irradiance_reach());
    let sun = sun_directions(view, settings.floor_sun_directions);
    let sun_total: f32 = sun.iter().map(|direction| direction.world.z).sum();
    let hemisphere = hemisphere_directions(view, settings.floor_gather_directions);
    let geometry = view.light_shape().geometry;
    let mut hits = Hits::NONE;
    let mut compute = |chunk: &[Vec2], origin: &[Floats; 3], values: &mut Vec<Vec3>| {
        let limit = Floats::splat(f32::INFINITY);
        let active = ((1_u32 << chunk.len()) - 1) as Mask;
        let mut packet = Parallel { origin: *origin, direction: Vec3::Z, limit, active };
        let mut arriving = [0.0; WIDTH];
        for direction in &sun {
            packet.direction = direction.object;
            let open = packet.transmitted(geometry);
            for lane in 0..WIDTH {
                arriving[lane] += open.0[lane] * direction.world.z;
            }
        }
        let mut light = [Vec3::ZERO; WIDTH];
        for (turn, direction) in hemisphere.iter().enumerate() {
            packet.direction = direction.object;
            packet.nearest(geometry, &mut hits);
            let mut incoming = [Vec3::splat(WORLD_RADIANCE); WIDTH];
            let mut indirect = [Vec3::ZERO; WIDTH];
            let found = (&mut incoming, &mut indirect);
            object_radiance(view, surroundings, &hits, direction.world, turn, found, rays);
            for lane in 0..WIDTH {
                light[lane] += incoming[lane] + indirect[lane];
            }
        }
        *rays += (chunk.len() * (sun.len() + hemisphere.len())) as u64;
        values.extend((0..chunk.len()).map(|lane| {
            Vec3::splat(SUN_FLOOR_IRRADIANCE * arriving[lane] / sun_total)
                + light[lane] * (PI / hemisphere.len() as f32)
        }));
    };
    let cells = settings.irradiance_cells;
    let origin = centre.truncate() - Vec2::splat(reach);
    let layout = Layout { origin, side: 2.0 * reach, cells, coarse: cells / 16 };
    Grid::fill(
        layout,
        settings.irradiance_tolerance,
        |_, _, _| false,
        |points, values| {
            for_packets(view, points, |chunk, ends| compute(chunk, ends, values));
        },
    )
}

fn shadow_grid(view: &View<'_>, settings: &Settings, rays: &mut u64) -> Option<Grid<f32>> {
    let boxes = shadow_boxes(view);
    let (pool_min, pool_max) = pool_bounds(view);
    let (mut min, mut max) = (Vec2::splat(f32::INFINITY), Vec2::splat(f32::NEG_INFINITY));
    for (low, high) in &boxes {
        min = min.min(*low);
        max = max.max(*high);
    }
    min = min.max(pool_min);
    max = max.min(pool_max);
    let side = (max - min).max_element();
    if !(max.cmpgt(min).all() && side.is_finite()) {
        return None;
    }
    let cells = settings.shadow_cells;
    let coarse = cells / 16;
    // A margin of one coarse cell, so that the border is in full light.
    let margin = side / 14.0;
    let (origin, side) = (min - Vec2::splat(margin), side + 2.0 * margin);
    let step = side / cells as f32;
    // Which finest cells a box of the shadow touches.
    let mut touched = vec![false; cells * cells];
    for (low, high) in &boxes {
        let cell = |p: Vec2| ((p - origin) / step).clamp(Vec2::ZERO, Vec2::splat(cells as f32 - 1.0));
        let (low, high) = (cell(*low), cell(*high));
        for y in low.y as usize..=high.y as usize {
            touched[y * cells + low.x as usize..=y * cells + high.x as usize].fill(true);
        }
    }
    let near = |x: usize, y: usize, size: usize| {
        (y..(y + size).min(cells))
            .any(|y| touched[y * cells + x..y * cells + (x + size).min(cells)].contains(&true))
    };
    let lamp = lamp_points(view, settings.floor_lamp_points);
    let mut compute = |chunk: &[Vec2], ends: &[Floats; 3], values: &mut Vec<f32>| {
        // Points that no box's shadow comes near are open.
        let mut active: Mask = 0;
        for (lane, point) in chunk.iter().enumerate() {
            let node = ((*point - origin) / step).clamp(Vec2::ONE, Vec2::splat(cells as f32 - 1.0));
            active |= Mask::from(near(node.x as usize - 1, node.y as usize - 1, 2)) << lane;
        }
        let mut arriving = [0.0; WIDTH];
        let mut total = [lamp.len() as f32; WIDTH];
        if active != 0 {
            *rays += u64::from(active.count_ones()) * lamp.len() as u64;
            // Where the beam ends, only a part of the lamp shines.
            let mut edge: Mask = 0;
            for (lane, point) in chunk.iter().enumerate() {
                if active >> lane & 1 != 0 && !view.spot.is_inside(point.extend(FLOOR_Z)) {
                    edge |= 1 << lane;
                    total[lane] = 0.0;
                }
            }
            for point in &lamp {
                let mut open =
                    Fan::to_points(point.object, ends, active).transmitted(view.light_shape().geometry);
                for lane in (0..WIDTH).filter(|lane| edge >> lane & 1 != 0) {
                    let weight = view.spot.edge(chunk[lane].extend(FLOOR_Z), point.world);
                    open.0[lane] *= weight;
                    total[lane] += weight;
                }
                for lane in 0..WIDTH {
                    arriving[lane] += open.0[lane];
                }
            }
        }
        let share = |lane: usize| {
            if active >> lane & 1 != 0 && total[lane] > 0.0 { arriving[lane] / total[lane] } else { 1.0 }
        };
        values.extend((0..chunk.len()).map(share));
    };
    let wanted = |x: usize, y: usize, size: usize| size > coarse / 2 && near(x, y, size);
    let layout = Layout { origin, side, cells, coarse };
    Some(Grid::fill(layout, settings.shadow_tolerance, wanted, |points, values| {
        for_packets(view, points, |chunk, ends| compute(chunk, ends, values));
    }))
}

/// Boxes on the floor that contain the spot's shadow, penumbra included: those of the hierarchy's upper nodes.
fn shadow_boxes(view: &View<'_>) -> Vec<(Vec2, Vec2)> {
    let nodes = &view.mesh.geometry.nodes;
    let lamp = view.spot.position;
    let cut = view.mesh.geometry.cut(SHADOW_BOXES);
    cut.iter()
        .map(|&node| {
            let node = &nodes[node as usize];
            let (mut min, mut max) = (Vec2::splat(f32::INFINITY), Vec2::splat(f32::NEG_INFINITY));
            for corner in node.corners() {
                let mut point = view.to_world(corner);
                point.z = point.z.clamp(FLOOR_Z, lamp.z - 0.5);
                let scale = (lamp.z - FLOOR_Z) / (lamp.z - point.z);
                let shadow = (lamp + (point - lamp) * scale).truncate();
                let slant = (point - lamp).length() / (lamp.z - point.z);
                let penumbra = 1.1 * LAMP_RADIUS * (scale - 1.0) * slant;
                min = min.min(shadow - Vec2::splat(penumbra));
                max = max.max(shadow + Vec2::splat(penumbra));
            }
            (min, max)
        })
        .collect()
}

/// Box on the floor that contains everything the spot lights.
fn pool_bounds(view: &View<'_>) -> (Vec2, Vec2) {
    /// tan of the widest angle from the axis at which light of the lamp's rim reaches the floor.
    const WIDEST: f32 = 0.275;
    let (s, t) = sampling::frame(view.spot.axis);
    let (mut min, mut max) = (Vec2::splat(f32::INFINITY), Vec2::splat(f32::NEG_INFINITY));
    for i in 0..32 {
        let (sin, cos) = (i as f32 / 32.0 * std::f32::consts::TAU).sin_cos();
        let direction = view.spot.axis + WIDEST * (cos * s + sin * t);
        let down = direction.z.min(-1e-3);
        let point = (view.spot.position + direction * ((FLOOR_Z - view.spot.position.z) / down)).truncate();
        min = min.min(point);
        max = max.max(point);
    }
    (min, max)
}

#[cfg(test)]
mod tests;
