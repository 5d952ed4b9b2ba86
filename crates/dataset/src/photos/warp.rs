//! The warp of a photograph that makes a view of it: where it is sampled, and how its colours change. A pure function of
//! (seed, photograph, view).

use pose::{Deformation, Group, Part, Space, ViewPose};
use random::{Random, Stream, fnv1a};
use scene::{Latents, Range, Shape};

use super::ranges::WarpRanges;

const WARPS: Stream = Stream::new("photo-warps");

/// From where the warps of a group are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Warps {
    group: Group,
    ranges: WarpRanges,
    /// Half of the side of the part of a photograph that an unwarped view shows, in halves of the photograph's side: so
    /// little that no warp reaches beyond the photograph. A border would tell where it was cut.
    reach: f64,
}

/// One view of a photograph.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Warp {
    /// What it does to the contents.
    pub pose: ViewPose,
    /// New red, green and blue from red, green, blue and 1, in shares of white.
    pub colour: [[f32; 4]; 3],
    /// From a place in the view to one in the photograph, both from -1 to 1, by rows.
    pub photo_from_view: [f32; 9],
}

impl Warps {
    /// The warps of an image group, as far as they usually go.
    pub fn of(group: Group) -> Self {
        Self::within(group, WarpRanges::default())
    }

    /// The warps of an image group within ranges that are valid.
    pub fn within(group: Group, ranges: WarpRanges) -> Self {
        debug_assert_eq!(group.space, Space::Image);
        Self { group, ranges, reach: reach(group, ranges) }
    }

    /// The group.
    pub fn group(&self) -> Group {
        self.group
    }

    /// See [`Self::reach`].
    pub fn reach(&self) -> f64 {
        self.reach
    }

    /// The warp of view `view` of the photograph named `id`.
    pub fn draw(&self, seed: u64, id: &str, view: u64) -> Warp {
        // An odd factor spreads the views of a photograph over all indices and keeps them distinct.
        let index = fnv1a(id.as_bytes()).wrapping_add(view.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut random = Random::new(seed, WARPS, index);
        let mut draw = |range: Range| random.range(range.low, range.high);
        let ranges = &self.ranges;
        let angle = draw(ranges.angle);
        let translation = [draw(ranges.translation), draw(ranges.translation)];
        let scale = [draw(logarithm(ranges.scale)), draw(logarithm(ranges.scale))];
        let (shear, perspective) = (draw(ranges.shear), [draw(ranges.perspective), draw(ranges.perspective)]);
        let colour = colours(
            draw(ranges.brightness),
            draw(ranges.contrast),
            draw(ranges.saturation),
            draw(ranges.hue),
        );
        let pose = self.pose(angle, translation, scale, shear, perspective);
        Warp { pose, colour, photo_from_view: self.photo_from_view(&pose) }
    }

    /// The pose with what the group has of these.
    fn pose(
        &self,
        angle: f64,
        [x, y]: [f64; 2],
        scale: [f64; 2],
        shear: f64,
        perspective: [f64; 2],
    ) -> ViewPose {
        let has = |part: Part| self.group.has(part);
        let scale = if self.group.uniform { [scale[0]; 2] } else { scale };
        ViewPose {
            deformation: Deformation {
                log_scale: if has(Part::Scale) { [scale[0], scale[1], 0.0] } else { [0.0; 3] },
                shear: if has(Part::Shear) { [shear, 0.0, 0.0] } else { [0.0; 3] },
                perspective: if has(Part::Perspective) { perspective } else { [0.0; 2] },
            },
            // Angles have the published precision, as those of objects.
            ..ViewPose::published_precision(
                [0.0, 0.0, angle],
                if has(Part::Translation) { [x, y, 0.0] } else { [0.0; 3] },
            )
        }
    }

    /// Where a view samples the photograph.
    pub fn photo_from_view(&self, pose: &ViewPose) -> [f32; 9] {
        let inverse = self.group.matrix(pose).inverse().unwrap_or(pose::Matrix::identity(3));
        let scaled = |i: usize, j: usize| inverse.at(i, j) * if i < 2 { self.reach } else { 1.0 };
        std::array::from_fn(|at| scaled(at / 3, at % 3) as f32)
    }
}

impl Warp {
    /// What other parts of the program keep of it.
    pub fn latents(&self) -> Latents {
        let [x, y, _] = self.pose.deformation.log_scale.map(f64::exp);
        Latents {
            rotation: self.pose.rotation.to_radians(),
            floor_hue: 0.0,
            spot_theta: 0.0,
            spot_phi: 0.0,
            spot_hue: 0.0,
            translation: Some(self.pose.translation),
            shape: Some(Shape { scale: [x, y, 1.0], shear: Some(self.pose.deformation.shear) }),
            camera: None,
        }
    }
}

fn logarithm(range: Range) -> Range {
    Range { low: range.low.ln(), high: range.high.ln() }
}

/// The largest window that stays inside for all warps of a group: where a corner of a view comes from goes up or down
/// with each of the numbers but the angle, so that the ends of their ranges tell.
fn reach(group: Group, ranges: WarpRanges) -> f64 {
    let (all, mut farthest) = (Warps { group, ranges, reach: 1.0 }, 0.0_f64);
    let ends = |range: Range| [range.low, range.high];
    let scale = logarithm(ranges.scale);
    for angle in ranges.angles() {
        for choice in 0..128_usize {
            let end = |bit: usize, range: Range| ends(range)[choice >> bit & 1];
            let pose = all.pose(
                angle,
                [end(0, ranges.translation), end(1, ranges.translation)],
                [end(2, scale), end(3, scale)],
                end(4, ranges.shear),
                [end(5, ranges.perspective), end(6, ranges.perspective)],
            );
            let Some(inverse) = group.matrix(&pose).inverse() else { continue };
            for corner in [[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]] {
                farthest = inverse.apply(corner).into_iter().fold(farthest, |most, x| most.max(x.abs()));
            }
        }
    }
    // Angles between those that were looked at.
    0.995 / farthest
}

/// Brightness, contrast about the middle, saturation, and a turn of hues (in YIQ), as one matrix.
fn colours(brightness: f64, contrast: f64, saturation: f64, hue: f64) -> [[f32; 4]; 3] {
    const TO_YIQ: [[f64; 3]; 3] = [[0.299, 0.587, 0.114], [0.596, -0.274, -0.322], [0.211, -0.523, 0.312]];
    const TO_RGB: [[f64; 3]; 3] = [[1.0, 0.956, 0.621], [1.0, -0.272, -0.647], [1.0, -1.106, 1.703]];
    let (sin, cos) = hue.sin_cos();
    let turn = [
        [1.0, 0.0, 0.0],
        [0.0, saturation * cos, -saturation * sin],
        [0.0, saturation * sin, saturation * cos],
    ];
    let product = |a: [[f64; 3]; 3], b: [[f64; 3]; 3]| -> [[f64; 3]; 3] {
        std::array::from_fn(|i| std::array::from_fn(|j| (0..3).map(|k| a[i][k] * b[k][j]).sum()))
    };
    let mixed = product(TO_RGB, product(turn, TO_YIQ));
    let (factor, offset) = (contrast * brightness, 0.5 * (1.0 - contrast));
    std::array::from_fn(|i| {
        let [r, g, b] = mixed[i].map(|value| (factor * value) as f32);
        [r, g, b, offset as f32]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups() -> impl Iterator<Item = Group> {
        Group::ALL.into_iter().filter(|group| group.space == Space::Image)
    }

    #[test]
    fn no_warp_reaches_beyond_the_photograph() {
        for group in groups() {
            let warps = Warps::of(group);
            let mut farthest = 0.0_f32;
            for view in 0..20_000 {
                let m = warps.draw(3, "a/b", view).photo_from_view;
                for [x, y] in [[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]] {
                    let row = |i: usize| m[3 * i] * x + m[3 * i + 1] * y + m[3 * i + 2];
                    farthest = farthest.max((row(0) / row(2)).abs()).max((row(1) / row(2)).abs());
                }
            }
            // And the window is not much smaller than it could be.
            assert!((0.8..=1.0).contains(&farthest), "{group}: {farthest}");
        }
        assert!((Warps::of(Group::IMAGE_ROTATION).reach() - std::f64::consts::FRAC_1_SQRT_2).abs() < 0.01);
    }

    #[test]
    fn windows_follow_the_ranges() {
        let narrow = WarpRanges {
            angle: [-0.2, 0.4].into(),
            translation: [0.0, 0.1].into(),
            scale: [0.9, 1.1].into(),
            shear: [0.0, 0.1].into(),
            perspective: [0.0, 0.02].into(),
            ..WarpRanges::default()
        };
        let far = WarpRanges {
            translation: [-0.5, 0.9].into(),
            scale: [0.3, 3.0].into(),
            shear: [-1.0, 0.5].into(),
            perspective: [-0.3, 0.3].into(),
            ..WarpRanges::default()
        };
        for group in groups() {
            for ranges in [narrow, far] {
                let warps = Warps::within(group, ranges);
                for view in 0..20_000 {
                    let warp = warps.draw(3, "a/b", view);
                    let m = warp.photo_from_view;
                    for [x, y] in [[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]] {
                        let row = |i: usize| m[3 * i] * x + m[3 * i + 1] * y + m[3 * i + 2];
                        let farthest = (row(0) / row(2)).abs().max((row(1) / row(2)).abs());
                        assert!(row(2) > 0.0 && farthest <= 1.0, "{group}: {farthest}");
                    }
                    let angle = warp.pose.rotation.to_radians()[2];
                    assert!((ranges.angle.low - 1e-6..ranges.angle.high + 1e-6).contains(&angle), "{angle}");
                }
            }
            let [usual, narrow, far] =
                [WarpRanges::default(), narrow, far].map(|ranges| Warps::within(group, ranges).reach());
            assert!(narrow > usual && usual >= far, "{group}: {narrow} {usual} {far}");
        }
    }

    #[test]
    fn warps_have_what_their_group_has_and_depend_on_seed_photograph_and_view_only() {
        for group in groups() {
            let warps = Warps::of(group);
            let [a, b] = [1, 2].map(|view| warps.draw(3, "a/b", view));
            assert_eq!(a, warps.draw(3, "a/b", 1));
            for other in [warps.draw(4, "a/b", 1), warps.draw(3, "a/c", 1), b] {
                assert!(other.pose != a.pose && other.colour != a.colour);
            }
            for part in Part::ALL {
                assert_eq!(
                    part.distance(&a.pose, &b.pose) > 0.0,
                    group.has(part),
                    "{group}: {}",
                    part.name()
                );
            }
            // A point of the photograph is seen where the matrix of the view puts it.
            let seen = group.matrix(&a.pose).apply([0.3, -0.2]);
            let m = a.photo_from_view.map(f64::from);
            let row = |i: usize| m[3 * i] * seen[0] + m[3 * i + 1] * seen[1] + m[3 * i + 2];
            let back = [row(0) / row(2), row(1) / row(2)].map(|x| x / warps.reach());
            assert!((back[0] - 0.3).abs() < 1e-5 && (back[1] + 0.2).abs() < 1e-5, "{group}: {back:?}");
        }
    }

    #[test]
    fn neutral_colours_change_nothing() {
        for (i, row) in colours(1.0, 1.0, 1.0, 0.0).into_iter().enumerate() {
            for (j, value) in row.into_iter().enumerate() {
                assert!((value - if i == j { 1.0 } else { 0.0 }).abs() < 0.01, "{i} {j}: {value}");
            }
        }
        // Grey stays grey whatever its hue.
        let grey = colours(1.2, 0.9, 1.3, 0.25).map(|[r, g, b, one]| 0.5 * (r + g + b) + one);
        assert!(grey.iter().all(|value| (value - grey[0]).abs() < 0.01), "{grey:?}");
    }
}
