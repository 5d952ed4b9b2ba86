//! What camera rays see of a transparent object: surface behind surface.

use glam::Vec3;
use simd::{Floats, WIDTH};

use super::{NONE, Sample};
use crate::scattered::Scattered;
use crate::trace::{Hit, Hits};
use crate::view::View;

/// Transparent surfaces a camera ray may cross.
pub(crate) const MAX_LAYERS: usize = 8;
/// Share of a ray that is not followed any farther.
const LEAST: f32 = 0.005;

/// A block of camera rays.
pub(super) struct Block<'a> {
    pub view: &'a View<'a>,
    /// Where they go, in the world.
    pub directions: [Vec3; WIDTH],
    /// Where each ends.
    pub limit: Floats,
    /// Positions on the grid of rays.
    pub places: [[u32; 2]; WIDTH],
    /// Between neighbouring rays, over their distance.
    pub spacing: f32,
}

impl Block<'_> {
    /// What a ray sees of the surface that it hits, `left` of it being left, and what is left behind it; nothing of a hole.
    #[inline]
    pub fn sample(&self, lane: usize, hit: &Hit, left: f32) -> (Option<Sample>, f32) {
        let view = self.view;
        let point = view.camera_point(&view.shape(), hit, self.directions[lane], self.spacing * hit.t);
        let alpha = view.alpha(&point);
        // Of what is hardly left the surface takes all: nothing bright may shine through it.
        let behind = left * (1.0 - alpha);
        let behind = if behind > LEAST { behind } else { 0.0 };
        let [x, y] = self.places[lane];
        let sample = || Sample {
            point,
            albedo: view.albedo(&point),
            x,
            y,
            weight: if behind > 0.0 { left * alpha } else { left },
            sources: [(NONE, 0.0); 4],
        };
        ((alpha > 0.0).then(sample), behind)
    }

    /// Samples of the surfaces at `hits` and of those behind them, by ray, nearest first.
    pub fn layers(&self, mut hits: Hits, samples: &mut [Vec<Sample>; WIDTH], rays: &mut u64) {
        let view = self.view;
        let mut left = [1.0; WIDTH];
        let mut start = [0.0; WIDTH];
        for layer in 1..=MAX_LAYERS {
            let mut next = Scattered::NONE;
            for lane in (0..WIDTH).filter(|&lane| hits.mask >> lane & 1 != 0) {
                let mut hit = hits.lane(lane);
                hit.t += start[lane];
                let sample;
                (sample, left[lane]) = self.sample(lane, &hit, left[lane]);
                samples[lane].extend(sample);
                if left[lane] > 0.0 && layer < MAX_LAYERS {
                    start[lane] = hit.t + 1e-4;
                    let direction = self.directions[lane];
                    let origin = view.to_object(view.camera.position + start[lane] * direction);
                    let limit = self.limit.0[lane] - start[lane];
                    next.set(lane, origin, view.object_from_world * direction, limit);
                }
            }
            if next.active == 0 {
                return;
            }
            *rays += u64::from(next.active.count_ones());
            view.mesh.geometry.nearest_of(&next, &mut hits);
        }
    }
}
