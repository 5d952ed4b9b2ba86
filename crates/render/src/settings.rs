//! What the presets spend where.

use crate::Quality;

/// The sample counts and spacings of a preset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// Camera rays a pixel, along each axis.
    pub supersampling: usize,
    /// Camera rays between two shaded points, along each axis.
    pub shading_step: usize,
    /// Cells of shaded points across which samples share one, times the share of its ray that a sample is.
    pub sharing: f32,
    /// Pixels between the points at which the floor's light is found.
    pub floor_step: usize,
    /// Shadow rays of a shaded point towards the sun.
    pub sun_directions: usize,
    /// Shadow rays of a shaded point towards the lamp.
    pub lamp_points: usize,
    /// Directions of the whole sphere in which a shaded point looks for indirect light; half of them count.
    pub gather_directions: usize,
    /// Directions in which a narrow lobe is sampled.
    pub lobe_samples: usize,
    /// Shadow rays of a floor point towards the sun.
    pub floor_sun_directions: usize,
    /// Directions in which a floor point looks for the world and the object.
    pub floor_gather_directions: usize,
    /// Shadow rays of a floor point towards the lamp.
    pub floor_lamp_points: usize,
    /// Cells along each axis of the floor's irradiance, at the finest level.
    pub irradiance_cells: usize,
    /// Relative difference across a cell of the floor's irradiance above which it is refined.
    pub irradiance_tolerance: f32,
    /// Cells along each axis of the spot's shadow on the floor, at the finest level.
    pub shadow_cells: usize,
    /// Difference across a cell of the spot's shadow above which it is refined.
    pub shadow_tolerance: f32,
}

impl Settings {
    /// Pixels between two shaded points.
    pub fn point_spacing(&self) -> f32 {
        self.shading_step as f32 / self.supersampling as f32
    }

    /// The settings of a preset.
    pub fn new(quality: Quality) -> Self {
        match quality {
            Quality::Reference => Self {
                supersampling: 4,
                shading_step: 2,
                sharing: 1.0,
                floor_step: 1,
                sun_directions: 128,
                lamp_points: 64,
                gather_directions: 256,
                lobe_samples: 32,
                floor_sun_directions: 256,
                floor_gather_directions: 256,
                floor_lamp_points: 128,
                irradiance_cells: 128,
                irradiance_tolerance: 0.005,
                shadow_cells: 256,
                shadow_tolerance: 0.01,
            },
            Quality::Standard => Self {
                supersampling: 3,
                shading_step: 3,
                sharing: 2.0,
                floor_step: 2,
                sun_directions: 24,
                lamp_points: 24,
                gather_directions: 48,
                lobe_samples: 8,
                floor_sun_directions: 64,
                floor_gather_directions: 64,
                floor_lamp_points: 48,
                irradiance_cells: 64,
                irradiance_tolerance: 0.015,
                shadow_cells: 128,
                shadow_tolerance: 0.03,
            },
            Quality::Fast => Self {
                supersampling: 2,
                shading_step: 4,
                sharing: 1.25,
                floor_step: 4,
                sun_directions: 16,
                lamp_points: 12,
                gather_directions: 24,
                lobe_samples: 4,
                floor_sun_directions: 48,
                floor_gather_directions: 32,
                floor_lamp_points: 20,
                irradiance_cells: 32,
                irradiance_tolerance: 0.03,
                shadow_cells: 64,
                shadow_tolerance: 0.06,
            },
        }
    }
}
