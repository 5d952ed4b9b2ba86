//! What host and device share: one definition of every struct, from which the kernels' declarations are written.

use std::sync::LazyLock;

use super::hierarchy::Node;
use super::object::{Pane, Planes, Shading};
use crate::maps::MapData;
use crate::mesh::MaterialData;
use crate::shared::{Shared, declarations, shared};

/// All structs as the kernels see them: the text before `types.cu`.
pub(super) static STRUCTS: LazyLock<String> = LazyLock::new(|| {
    declarations(&[
        Node::LAYOUT,
        Planes::LAYOUT,
        Shading::LAYOUT,
        Pane::LAYOUT,
        MapData::LAYOUT,
        MaterialData::LAYOUT,
        Both::LAYOUT,
        Sample::LAYOUT,
        ViewData::LAYOUT,
        Derived::LAYOUT,
        BatchData::LAYOUT,
    ])
});

shared! {
    /// A direction or a point; only the device reads and writes it.
    pub(super) struct Both as "Both" {
        world: [f32; 4] as "float4",
        object: [f32; 4] as "float4",
    }

    /// A hit of a camera ray; only the device reads and writes it.
    pub(super) struct Sample as "Sample" {
        /// And its share of what the ray sees.
        position: [f32; 4] as "float4",
        /// And the material (bits).
        normal: [f32; 4] as "float4",
        /// And what rays that leave it leave out (bits).
        face: [f32; 4] as "float4",
        /// And the bytes of its map of specular, roughness and metallic, where there is one (bits).
        albedo: [f32; 4] as "float4",
    }

    /// One view of a batch.
    pub(super) struct ViewData as "View" {
        pub nodes: u64 as "const Node*",
        /// The same tree, whose boxes leave out what masks leave open.
        pub lit_nodes: u64 as "const Node*",
        pub triangles: u64 as "const Triangle*",
        pub panes: u64 as "const Pane*",
        pub shading: u64 as "const Shading*",
        pub materials: u64 as "const Material*",
        pub texels: u64 as "const uchar4*",
        /// Boxes that together contain the object: lower and upper corners.
        pub cut: u64 as "const float*",
        /// Of every pair of nodes of the CPU's hierarchy: the parent, and in the lower two bits the axis that orders them.
        pub parents: u64 as "const unsigned int*",
        /// Alpha of four neighbouring texels each.
        pub quads: u64 as "const unsigned int*",
        pub sample_start: u64,
        pub cell_start: u64,
        /// By rows.
        pub object_from_world: [f32; 9],
        /// By rows: the inverse, which is the transpose for an object that keeps its shape.
        pub world_from_object: [f32; 9],
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
        pub is_rigid: i32,
        pub is_empty: i32,
        /// The region around the object: first pixel, size in camera rays.
        pub x0: i32,
        pub y0: i32,
        pub width: i32,
        pub height: i32,
        pub columns: i32,
        pub rows: i32,
        pub layers: i32,
        pub image: i32,
        pub has_emission: i32,
        /// What a unit of the world's volume is in the object.
        pub object_volume: f32,
        /// Where the camera stands: along +Y, and up.
        pub camera_ahead: f32,
        pub camera_height: f32,
        /// Of its elevation.
        pub camera_sine: f32,
        pub camera_cosine: f32,
        /// The row of the image, in pixels, above which there is no floor.
        pub horizon: f32,
    }

    /// What the device finds out about a view before it is shaded; only the device reads and writes it.
    pub(super) struct Derived as "Derived" {
        shadow_origin: [f32; 2],
        shadow_side: f32,
        has_shadow: i32,
        node_count: i32,
        point_count: i32,
        unused: [i32; 2],
    }

    /// The argument of every kernel: addresses of all buffers, and the settings.
    pub(super) struct BatchData as "Batch" {
        pub views: u64 as "const View*",
        pub derived: u64 as "Derived*",
        pub directions: u64 as "Both*",
        /// World directions: sun, gather, floor sun, hemisphere.
        pub sphere_sets: u64 as "const float4*",
        /// Offsets on the lamp: lamp, floor lamp.
        pub lamp_sets: u64 as "const float2*",
        /// Cosine and sine of 32 angles.
        pub pool: u64 as "const float2*",
        /// Radius, cosine, sine of the lobe's samples.
        pub lobe: u64 as "const float4*",
        pub sun_table: u64 as "const float*",
        pub cone_table: u64 as "const float2*",
        pub srgb_table: u64 as "const float*",
        pub filmic_table: u64 as "const float*",
        pub filter: u64 as "const float*",
        pub touched: u64 as "unsigned char*",
        pub nodes: u64 as "unsigned int*",
        pub irradiance: u64 as "float4*",
        pub shadow: u64 as "float*",
        pub open_floor: u64 as "float4*",
        pub coarse_floor: u64 as "float4*",
        pub floor_lattice: u64 as "float4*",
        pub own: u64 as "unsigned int*",
        pub samples: u64 as "Sample*",
        pub cell_point: u64 as "unsigned int*",
        pub cell_extras: u64 as "unsigned int*",
        pub point_sample: u64 as "unsigned int*",
        /// Two a point: diffuse; specular and the share of the lamp that arrives where it is mirrored.
        pub shades: u64 as "float4*",
        pub radiance: u64 as "float4*",
        pub images: u64 as "unsigned char*",
        pub rays: u64 as "unsigned long long*",
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
}
