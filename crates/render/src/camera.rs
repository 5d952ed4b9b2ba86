//! The camera: that of the published scenes, or one at another distance and elevation; and its pixel filter.

use std::sync::OnceLock;

use glam::Vec3;

/// Image right, wherever the camera stands.
pub const RIGHT: Vec3 = Vec3::new(-1.0, 0.0, 0.0);
/// Focal length over the width of the sensor: 0.5 / tan(0.691111 / 2).
pub const FOCAL: f32 = 1.388_889;
/// Support of the pixel filter in pixels: the window of a "1.5 px" filter reaches 1.5 px to either side.
pub const FILTER_WIDTH: f32 = 3.0;

/// A camera that looks at the origin, upright.
#[derive(Clone, Copy, Debug)]
pub struct Camera {
    /// `distance (0, cosine, sine)` of the elevation.
    pub position: Vec3,
    /// Image up.
    pub up: Vec3,
    /// Viewing direction.
    pub forward: Vec3,
    /// Distance over that of the published camera.
    pub distance_ratio: f32,
}

impl From<Option<scene::Camera>> for Camera {
    fn from(camera: Option<scene::Camera>) -> Self {
        let camera = camera.unwrap_or(scene::Camera::PUBLISHED);
        let distance = camera.distance as f32;
        let (sine, cosine) = (camera.elevation.sin() as f32, camera.elevation.cos() as f32);
        Self {
            position: Vec3::new(0.0, distance * cosine, distance * sine),
            up: Vec3::new(0.0, -sine, cosine),
            forward: Vec3::new(0.0, -cosine, -sine),
            distance_ratio: (camera.distance / scene::Camera::PUBLISHED.distance) as f32,
        }
    }
}

impl Camera {
    /// Direction through a point of the image plane, from its middle, in shares of its side; not normalized.
    #[inline]
    pub fn ray(&self, u: f32, v: f32) -> Vec3 {
        FOCAL * self.forward + u * RIGHT + v * self.up
    }

    /// Unit direction through the continuous pixel position `(x, y)` of a `size` x `size` image; pixel centres are at
    /// `.5`, y points down.
    #[inline]
    pub fn direction(&self, x: f32, y: f32, size: f32) -> Vec3 {
        self.ray(x / size - 0.5, 0.5 - y / size).normalize()
    }

    /// The row of an image of `size` pixels, as a continuous position, above which there is no floor. The horizon of a
    /// camera that looks down steeply is above the image, so that this is negative.
    pub fn horizon(&self, size: f32) -> f32 {
        // The slope at which a ray is level; a camera straight above the object has none.
        let slope = (-self.forward.z / self.up.z.max(1e-6)).clamp(-1e6, 1e6);
        (0.5 - FOCAL * slope) * size
    }

    /// Continuous pixel position and depth along the viewing direction of a world point; `None` at or behind the camera.
    pub fn project(&self, point: Vec3, size: f32) -> Option<(f32, f32, f32)> {
        let relative = point - self.position;
        let depth = relative.dot(self.forward);
        if depth <= 1e-3 {
            return None;
        }
        let scale = FOCAL / depth;
        Some((
            (relative.dot(RIGHT) * scale + 0.5) * size,
            (0.5 - relative.dot(self.up) * scale) * size,
            depth,
        ))
    }

    /// Pixel box `[x0, x1) x [y0, y1)` as `[x0, x1, y0, y1]` that contains the projection of a sphere, `margin` pixels
    /// wider, clipped to the image widened by `margin`.
    pub fn sphere_bounds(&self, centre: Vec3, radius: f32, margin: i32, size: u32) -> [i32; 4] {
        let relative = centre - self.position;
        let (x, y, z) = (relative.dot(RIGHT), -relative.dot(self.up), relative.dot(self.forward));
        let (low, high) = (-margin, size as i32 + margin);
        if z <= radius + 1e-3 {
            return [low, high, low, high];
        }
        // The tangents to a circle (u, z) from the origin bound each axis on its own.
        let span = |u: f32| {
            let denominator = z * z - radius * radius;
            let root = (u * u + denominator).max(0.0).sqrt() * radius;
            let pixel = |slope: f32| ((slope * FOCAL + 0.5) * size as f32).clamp(-1e6, 1e6);
            let first = pixel((u * z - root) / denominator).floor() as i32 - margin;
            let last = pixel((u * z + root) / denominator).ceil() as i32 + margin;
            [first.clamp(low, high), last.clamp(low, high)]
        };
        let ([x0, x1], [y0, y1]) = (span(x), span(y));
        [x0, x1, y0, y1]
    }
}

/// The Blackman-Harris window over `[-width / 2, width / 2]`.
fn blackman_harris(offset_px: f64) -> f64 {
    let v = std::f64::consts::TAU * (offset_px / f64::from(FILTER_WIDTH) + 0.5);
    0.35875 - 0.48829 * v.cos() + 0.14128 * (2.0 * v).cos() - 0.01168 * (3.0 * v).cos()
}

/// Weights of `3 per_pixel` equally spaced samples across the filter's support; they sum to 1.
pub fn filter_weights(per_pixel: usize) -> Vec<f32> {
    let count = 3 * per_pixel;
    let offset = |i: usize| f64::from(FILTER_WIDTH) * ((i as f64 + 0.5) / count as f64 - 0.5);
    let weights: Vec<f64> = (0..count).map(|i| blackman_harris(offset(i))).collect();
    let total: f64 = weights.iter().sum();
    weights.iter().map(|weight| (weight / total) as f32).collect()
}

/// Offset in pixels from a pixel's centre for a uniform `u`, distributed as the (separable) pixel filter.
pub fn sample_filter(u: f32) -> f32 {
    static INVERSE: OnceLock<Vec<f32>> = OnceLock::new();
    const POINTS: usize = 1024;
    let table = INVERSE.get_or_init(|| {
        const STEPS: usize = 8192;
        let half = f64::from(FILTER_WIDTH) / 2.0;
        let position = |i: usize| -half + 2.0 * half * i as f64 / STEPS as f64;
        let mut cumulative = vec![0.0; STEPS + 1];
        for i in 0..STEPS {
            cumulative[i + 1] = cumulative[i] + blackman_harris((position(i) + position(i + 1)) / 2.0);
        }
        let total = cumulative[STEPS];
        (0..=POINTS)
            .map(|i| {
                let target = total * i as f64 / POINTS as f64;
                let upper = cumulative.partition_point(|&c| c < target).clamp(1, STEPS);
                let (low, high) = (cumulative[upper - 1], cumulative[upper]);
                let fraction = if high > low { (target - low) / (high - low) } else { 0.0 };
                (position(upper - 1) + fraction * (position(upper) - position(upper - 1))) as f32
            })
            .collect()
    });
    let x = u.clamp(0.0, 0.999_999) * POINTS as f32;
    let i = x as usize;
    table[i] + (table[i + 1] - table[i]) * (x - i as f32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cameras() -> [Camera; 4] {
        let at = |distance, elevation| Camera::from(Some(scene::Camera { distance, elevation }));
        [Camera::from(None), at(1.7, -0.2), at(4.0, 0.1), at(2.0, std::f64::consts::FRAC_PI_2)]
    }

    #[test]
    fn projection_inverts_the_rays() {
        for camera in cameras() {
            for (x, y) in [(0.5, 0.5), (128.0, 128.0), (200.25, 17.75)] {
                let point = camera.position + 3.0 * camera.direction(x, y, 256.0);
                let (px, py, _) = camera.project(point, 256.0).unwrap();
                assert!((px - x).abs() < 1e-3 && (py - y).abs() < 1e-3);
            }
            assert!(camera.project(camera.position - camera.forward, 256.0).is_none());
            // It looks at the origin, upright.
            let (x, y, _) = camera.project(Vec3::ZERO, 256.0).unwrap();
            assert!((x - 128.0).abs() < 1e-3 && (y - 128.0).abs() < 1e-3, "{x} {y}");
            assert!(RIGHT.cross(camera.up).dot(camera.forward) < -0.999_999);
        }
    }

    #[test]
    fn the_published_camera_has_the_constants_of_the_published_scene() {
        let half = std::f32::consts::FRAC_1_SQRT_2;
        for camera in [None, Some(scene::Camera::PUBLISHED)].map(Camera::from) {
            assert_eq!(camera.distance_ratio, 1.0);
            let bits = |vector: Vec3| vector.to_array().map(f32::to_bits);
            assert_eq!(bits(camera.position), bits(Vec3::new(0.0, 2.5 * half, 2.5 * half)));
            assert_eq!(bits(camera.up), bits(Vec3::new(0.0, -half, half)));
            assert_eq!(bits(camera.forward), bits(Vec3::new(0.0, -half, -half)));
            assert!(camera.horizon(256.0) < -200.0);
        }
    }

    #[test]
    fn rays_are_level_at_the_horizon() {
        for camera in cameras() {
            let y = camera.horizon(256.0);
            assert!(y.is_finite());
            if y.abs() < 1e4 {
                assert!(camera.direction(40.0, y, 256.0).z.abs() < 1e-4);
                assert!(camera.direction(40.0, y - 1.0, 256.0).z > 0.0);
            } else {
                // Straight down: floor everywhere.
                assert!(y < 0.0);
            }
        }
    }

    #[test]
    fn sphere_bounds_contain_the_sphere() {
        let (centre, radius) = (Vec3::new(0.3, -0.2, 0.1), 0.4);
        let camera = Camera::from(None);
        let [x0, x1, y0, y1] = camera.sphere_bounds(centre, radius, 0, 256);
        let mut touched = [false; 4];
        for i in 0..2000 {
            let z = 1.0 - (i as f32 + 0.5) / 1000.0;
            let phi = i as f32 * 2.399_963;
            let s = (1.0 - z * z).sqrt();
            let point = centre + radius * Vec3::new(s * phi.cos(), s * phi.sin(), z);
            let (x, y, _) = camera.project(point, 256.0).unwrap();
            assert!(x >= x0 as f32 && x <= x1 as f32 && y >= y0 as f32 && y <= y1 as f32);
            touched[0] |= x < x0 as f32 + 3.0;
            touched[1] |= x > x1 as f32 - 3.0;
            touched[2] |= y < y0 as f32 + 3.0;
            touched[3] |= y > y1 as f32 - 3.0;
        }
        assert_eq!(touched, [true; 4]);
        assert_eq!(camera.sphere_bounds(camera.position, 1.0, 2, 64), [-2, 66, -2, 66]);
    }

    #[test]
    fn the_filter_has_its_width_and_spread() {
        let offsets: Vec<f32> = (0..4096).map(|i| sample_filter((i as f32 + 0.5) / 4096.0)).collect();
        assert!(offsets.iter().all(|offset| offset.abs() <= FILTER_WIDTH / 2.0));
        let mean = offsets.iter().sum::<f32>() / 4096.0;
        let variance = offsets.iter().map(|offset| offset * offset).sum::<f32>() / 4096.0;
        // Standard deviation of the window, 0.1385 of its width, by direct integration.
        assert!(
            mean.abs() < 1e-3 && (variance.sqrt() / FILTER_WIDTH - 0.1385).abs() < 2e-3,
            "{}",
            variance.sqrt()
        );
    }
}
