//! What host and device share: the structs of `types.cu`, field by field.

use bytemuck::{Pod, Zeroable};

/// One view of a batch.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(super) struct ViewData {
    pub nodes: u64,
    pub triangles: u64,
    pub transparency: u64,
    pub shading: u64,
    pub materials: u64,
    pub texels: u64,
    pub cut: u64,
    pub sample_start: u64,
    pub cell_start: u64,
    pub rotation: [f32; 9],
    pub translation: [f32; 3],
    pub floor_albedo: [f32; 3],
    pub spot_position: [f32; 3],
    pub spot_axis: [f32; 3],
    pub spot_intensity: [f32; 3],
    pub centre: [f32; 3],
    pub irradiance_origin: [f32; 2],
    pub irradiance_side: f32,
    pub cut_count: i32,
    pub has_transparency: i32,
    pub is_empty: i32,
    pub x0: i32,
    pub y0: i32,
    pub width: i32,
    pub height: i32,
    pub columns: i32,
    pub rows: i32,
    pub layers: i32,
    pub picture: i32,
    pub unused: i32,
}

/// Bytes of `Derived`, which only the device reads and writes.
pub(super) const DERIVED_BYTES: usize = 32;
/// Bytes of `Both`.
pub(super) const BOTH_BYTES: usize = 32;
/// Bytes of `Sample`.
pub(super) const SAMPLE_BYTES: usize = 64;

/// The argument of every kernel: addresses of all buffers, and the settings.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(super) struct BatchData {
    pub views: u64,
    pub derived: u64,
    pub directions: u64,
    pub sphere_sets: u64,
    pub lamp_sets: u64,
    pub pool: u64,
    pub lobe: u64,
    pub sun_table: u64,
    pub cone_table: u64,
    pub srgb_table: u64,
    pub filmic_table: u64,
    pub filter: u64,
    pub touched: u64,
    pub nodes: u64,
    pub irradiance: u64,
    pub shadow: u64,
    pub open_floor: u64,
    pub coarse_floor: u64,
    pub floor_lattice: u64,
    pub own: u64,
    pub samples: u64,
    pub cell_point: u64,
    pub cell_extras: u64,
    pub point_sample: u64,
    pub shades: u64,
    pub radiance: u64,
    pub pictures: u64,
    pub rays: u64,
    pub view_count: i32,
    pub size: i32,
    pub supersampling: i32,
    pub shading_step: i32,
    pub floor_step: i32,
    pub sun_count: i32,
    pub lamp_count: i32,
    pub sphere_count: i32,
    pub lobe_count: i32,
    pub floor_sun_count: i32,
    pub hemisphere_count: i32,
    pub floor_lamp_count: i32,
    pub direction_count: i32,
    pub irradiance_cells: i32,
    pub shadow_cells: i32,
    pub node_capacity: i32,
    pub floor_nodes: i32,
    pub irradiance_tolerance: f32,
    pub shadow_tolerance: f32,
    pub floor_sun_total: f32,
}
