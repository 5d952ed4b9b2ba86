//! What the views of a batch need, and how many of them fit together.

use std::collections::HashSet;
use std::sync::Arc;

use rayon::prelude::*;

use super::super::layout::{Both, ViewData};
use super::super::object::Object;
use super::{COARSE_NODES, MOST_VIEWS, Renderer, SLOT_BYTES, Shot};
use crate::PreparedMesh;
use crate::image::{MARGIN, MAX_LAYERS};
use crate::settings::Settings;
use crate::view::View;

/// A view of a batch, and the memory it takes.
#[derive(Debug)]
pub(super) struct Planned {
    pub data: ViewData,
    pub object: Arc<Object>,
    pub slots: usize,
    pub cells: usize,
}

impl Planned {
    /// Plans all of `shots`; `empty` is what those without an object show.
    pub fn all(shots: &[Shot], empty: &Arc<Object>, settings: &Settings, size: u32) -> Vec<Self> {
        let plan = |(image, shot)| Self::new(shot, image, (empty, settings), size);
        // The spheres of deformed objects take some time.
        if shots.iter().any(|shot| shot.latents.shape.is_some()) {
            shots.par_iter().enumerate().map(plan).collect()
        } else {
            shots.iter().enumerate().map(plan).collect()
        }
    }

    fn new(shot: &Shot, image: usize, (empty, settings): (&Arc<Object>, &Settings), size: u32) -> Self {
        let object = shot.object.as_ref().unwrap_or(empty);
        let nothing =
            PreparedMesh { centre: object.centre, radius: object.radius, ..PreparedMesh::default() };
        let view = View::within(&nothing, &shot.latents, |shape, stretch| {
            (!object.is_empty()).then(|| object.sphere(shape, stretch))
        });
        let centre = view.centre();
        let reach = view.irradiance_reach();
        let [x0, x1, y0, y1] = view.camera.sphere_bounds(centre, view.radius, MARGIN, size);
        let width = (x1 - x0).max(0) as usize * settings.supersampling;
        let height = (y1 - y0).max(0) as usize * settings.supersampling;
        let (columns, rows) = (width.div_ceil(settings.shading_step), height.div_ceil(settings.shading_step));
        let mut data = ViewData {
            object_from_world: view.object_from_world.transpose().to_cols_array(),
            world_from_object: view.world_from_object.transpose().to_cols_array(),
            is_rigid: i32::from(view.is_rigid),
            translation: view.translation.to_array(),
            floor_albedo: view.floor_albedo.to_array(),
            spot_position: view.spot.position.to_array(),
            spot_axis: view.spot.axis.to_array(),
            spot_intensity: view.spot.intensity.to_array(),
            centre: centre.to_array(),
            irradiance_origin: [centre.x - reach, centre.y - reach],
            irradiance_side: 2.0 * reach,
            x0,
            y0,
            width: width as i32,
            height: height as i32,
            columns: columns as i32,
            rows: rows as i32,
            image: image as i32,
            object_volume: view.object_volume,
            camera_ahead: view.camera.position.y,
            camera_height: view.camera.position.z,
            camera_sine: -view.camera.forward.z,
            camera_cosine: view.camera.up.z,
            horizon: view.camera.horizon(size as f32),
            ..bytemuck::Zeroable::zeroed()
        };
        object.place(0, &mut data);
        data.is_empty |= i32::from(width * height == 0);
        data.layers = if data.has_transparency != 0 { MAX_LAYERS as i32 } else { 1 };
        let (slots, cells) =
            if data.is_empty != 0 { (0, 0) } else { (width * height * data.layers as usize, columns * rows) };
        Self { data, object: object.clone(), slots, cells }
    }
}

impl Renderer {
    /// Scratch bytes of a view besides those of its camera rays.
    pub(super) fn fixed_bytes(&self, size: u32) -> usize {
        let square = |n: usize| (n + 1) * (n + 1);
        let settings = &self.settings;
        self.direction_count() * size_of::<Both>()
            + square(settings.shadow_cells) * (1 + 4)
            + square(settings.irradiance_cells) * 16
            + self.node_capacity() * 4
            + 2 * COARSE_NODES * 16
            + self.floor_nodes(size).pow(2) * 16
    }

    /// How many of the next views fit into scratch memory and half of the cache together, so that the objects of the next
    /// part can be copied into the other half meanwhile; at least one.
    pub(super) fn part(&self, views: &[Planned], size: u32) -> usize {
        let (mut scratch, mut objects) = (0, 0);
        let mut seen = HashSet::new();
        for (count, view) in views.iter().enumerate().take(MOST_VIEWS) {
            scratch += self.fixed_bytes(size) + view.slots * SLOT_BYTES + view.cells * 8;
            if seen.insert(view.object.id) {
                objects += view.object.device_bytes();
            }
            if count > 0 && (scratch > self.scratch_bytes || objects > self.cache.capacity() / 2) {
                return count;
            }
        }
        views.len().min(MOST_VIEWS)
    }

    pub(super) fn direction_count(&self) -> usize {
        let s = &self.settings;
        s.sun_directions
            + s.lamp_points
            + s.gather_directions
            + s.floor_sun_directions
            + s.floor_gather_directions
            + s.floor_lamp_points
    }

    pub(super) fn node_capacity(&self) -> usize {
        (self.settings.shadow_cells.max(self.settings.irradiance_cells) + 1).pow(2)
    }

    pub(super) fn floor_nodes(&self, size: u32) -> usize {
        match self.settings.floor_step {
            1 => size as usize,
            step => size as usize / step + 2,
        }
    }
}
