//! The tables and point sets of a preset, computed by the same code as on the CPU and copied to the device once.

use gpu::{Buffer, Context, Result};

use super::layout::BatchData;
use super::packed::Packed;
use crate::settings::Settings;
use crate::{bsdf, camera, colour, lights, sampling};

/// A preset's tables on a device.
#[derive(Debug)]
pub(super) struct Tables {
    buffer: Buffer,
    starts: [usize; 9],
    floor_sun_total: f32,
}

fn sun_set(count: usize) -> impl Iterator<Item = [f32; 4]> {
    (0..count).map(move |i| lights::sun_direction(sampling::disc(i, count, 0.4)).extend(0.0).to_array())
}

fn lamp_set(count: usize) -> impl Iterator<Item = [f32; 2]> {
    (0..count).map(move |i| (lights::LAMP_RADIUS * sampling::disc(i, count, 0.9)).to_array())
}

/// Position of a point of the lamp on a curve through all of them that visits neighbours together (Morton's).
fn place_on_curve(point: [f32; 2]) -> u32 {
    let [x, y] = point.map(|x| ((x / lights::LAMP_RADIUS + 1.0) * 127.5) as u32);
    (0..8).map(|bit| (x >> bit & 1) << (2 * bit) | (y >> bit & 1) << (2 * bit + 1)).sum()
}

impl Tables {
    /// Computes and copies them.
    pub fn new(context: &Context, settings: &Settings) -> Result<Self> {
        let sphere = (0..settings.gather_directions)
            .map(|i| sampling::sphere(i, settings.gather_directions, 1.3).extend(0.0).to_array());
        let hemisphere = (0..settings.floor_gather_directions).map(|i| {
            let disc = sampling::disc(i, settings.floor_gather_directions, 2.1);
            [disc.x, disc.y, (1.0 - disc.length_squared()).max(0.0).sqrt(), 0.0]
        });
        let floor_sun: Vec<[f32; 4]> = sun_set(settings.floor_sun_directions).collect();
        let floor_sun_total = floor_sun.iter().map(|direction| direction[2]).sum();
        let sets: Vec<[f32; 4]> =
            sun_set(settings.sun_directions).chain(sphere).chain(floor_sun).chain(hemisphere).collect();
        // Neighbouring lanes look at neighbouring points of the lamp.
        let mut floor_lamp: Vec<[f32; 2]> = lamp_set(settings.floor_lamp_points).collect();
        floor_lamp.sort_by_key(|&point| place_on_curve(point));
        let lamps: Vec<[f32; 2]> = lamp_set(settings.lamp_points).chain(floor_lamp).collect();
        let pool: Vec<[f32; 2]> = (0..32)
            .map(|i| {
                let (sin, cos) = (i as f32 / 32.0 * std::f32::consts::TAU).sin_cos();
                [cos, sin]
            })
            .collect();
        let count = settings.lobe_samples;
        let lobe: Vec<[f32; 4]> = (0..count)
            .map(|i| {
                let [radius, cos, sin] = bsdf::even_lobe_sample(i, count);
                [radius, cos, sin, 0.0]
            })
            .collect();
        let filter = camera::filter_weights(settings.supersampling);
        let mut packed = Packed::default();
        let starts = [
            packed.add(&sets),
            packed.add(&lamps),
            packed.add(&pool),
            packed.add(&lobe),
            packed.add(lights::sun_table()),
            packed.add(lights::cone_table()),
            packed.add(colour::srgb_table()),
            packed.add(colour::Filmic::get().table()),
            packed.add(&filter),
        ];
        Ok(Self { buffer: context.upload(&packed.bytes)?, starts, floor_sun_total })
    }

    /// Fills in where they are.
    pub fn place(&self, batch: &mut BatchData) {
        let [sphere_sets, lamp_sets, pool, lobe, sun_table, cone_table, srgb_table, filmic_table, filter] =
            self.starts.map(|start| self.buffer.address() + start as u64);
        *batch = BatchData {
            sphere_sets,
            lamp_sets,
            pool,
            lobe,
            sun_table,
            cone_table,
            srgb_table,
            filmic_table,
            filter,
            floor_sun_total: self.floor_sun_total,
            ..*batch
        };
    }
}
