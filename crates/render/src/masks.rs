//! Opacity of triangles whose map has holes, for rays that look for light.
//!
//! They look up one copy of the map a triangle, of which only alpha is kept: the four texels around every place in one
//! word, so that a lookup is one read.

// Loops over lanes stay plain, so that they become one instruction an operation.
#![allow(clippy::needless_range_loop)]

use std::collections::HashMap;

use glam::{IVec2, Vec2};
use simd::{Floats, Mask, WIDTH};

use crate::maps::{bilinear, uv_density};
use crate::mesh::MaterialData;

/// The masks of an object.
#[derive(Clone, Debug, Default)]
pub(crate) struct Masks {
    faces: Vec<MaskFace>,
    /// Alpha of a texel, of its neighbours to the right and below, and of the one between these, the first lowest; copy
    /// after copy, by rows.
    quads: Vec<u32>,
    /// First texels of the copies that are there, and the first of their quads.
    copies: Vec<(u32, u32)>,
    /// What [`Self::add`] returned, by [`MaskFace::key`]: leaves of a tree have the same part of one map.
    known: HashMap<[u32; 8], Result<u32, f32>>,
}

/// A part of a map over a triangle, or over several that have the same.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MaskFace {
    /// Where its first corner lies on the map, from the left, and what the weights of the others add: in sides of the
    /// map, one at least.
    pub across: [f32; 3],
    /// The same from above.
    pub down: [f32; 3],
    pub alpha: f32,
    /// First quad, width and height of the copy that is looked up.
    pub copy: (u32, u32, u32),
}

/// Distance, in the object, of which light shows no detail: less than half a pixel of an image of 256. Rays to the lights end
/// where a mask is closed, so that one whose edges are wide costs more than a finer one.
const LIGHT_DETAIL: f32 = 0.004;

/// Quads that are looked at, at most, to find out whether a triangle is the same everywhere.
const MOST_QUADS: f32 = 1024.0;
/// Quads of all triangles that are looked at, at most, to find out where they are open: some milliseconds. Their size follows that of
/// the object, so that it has sixty thousand for each unit of its area.
const MOST_OPEN_QUADS: f32 = 16_777_216.0;

/// A tenth of a texel for the edges of triangles, and for rounding.
const MARGIN: f32 = 0.1;

/// Four sides, and between them.
const DIRECTIONS: [Vec2; 8] = [
    Vec2::new(1.0, 0.0),
    Vec2::new(1.0, 1.0),
    Vec2::new(0.0, 1.0),
    Vec2::new(-1.0, 1.0),
    Vec2::new(-1.0, 0.0),
    Vec2::new(-1.0, -1.0),
    Vec2::new(0.0, -1.0),
    Vec2::new(1.0, -1.0),
];

/// From here to twice as much floats are whole numbers; and what lies below by a half.
const WHOLE: f32 = 8_388_608.0;
const BELOW_WHOLE: f32 = 8_388_607.5;

/// The texel of `size` before a repeated coordinate, which is not negative, and how far the coordinate lies beyond its middle,
/// in texels. Conversions to whole numbers check their range, one number at a time; sums round to them as well.
#[inline(always)]
fn texel_before(coordinate: f32, size: u32) -> (u32, f32) {
    // Below by one where the number is whole already, which makes no difference here: the share is 1 then and not 0.
    let share = coordinate - ((coordinate + BELOW_WHOLE) - WHOLE);
    let share = if share > 0.0 { share } else { 0.0 };
    let share = if share < 1.0 { share } else { 1.0 };
    // The middle of the first texel lies at 1: what lies before is beyond the last.
    let x = share * size as f32 + 0.5;
    let low = x + BELOW_WHOLE;
    let texel = low.to_bits().wrapping_sub(WHOLE.to_bits() + 1);
    (texel.min(size - 1), x - (low - WHOLE))
}

impl MaskFace {
    fn new(uvs: &[[f32; 2]; 3], material: &MaterialData, copy: (u32, u32, u32)) -> Self {
        let (scale, offset) = (Vec2::from(material.opacity.scale), Vec2::from(material.opacity.offset));
        let [a, b, c] = uvs.map(|uv| {
            let uv = scale * Vec2::from(uv) + offset;
            // Texture coordinates start at the bottom left, rows at the top.
            Vec2::new(uv.x, 1.0 - uv.y)
        });
        let least = a.min(b).min(c).floor() - Vec2::ONE;
        let first = a - least;
        Self {
            across: [first.x, b.x - a.x, c.x - a.x],
            down: [first.y, b.y - a.y, c.y - a.y],
            alpha: material.alpha,
            copy,
        }
    }

    /// What tells it from others; a copy has one width and one height.
    fn key(&self) -> [u32; 8] {
        let ([a, b, c], [d, e, f]) = (self.across, self.down);
        let [a, b, c, d, e, f, alpha] = [a, b, c, d, e, f, self.alpha].map(f32::to_bits);
        [a, b, c, d, e, f, alpha, self.copy.0]
    }

    /// The quad at a place of the triangle, and where in it.
    #[inline(always)]
    fn place(&self, u: f32, v: f32) -> (u32, f32, f32) {
        let along = |[first, second, third]: [f32; 3]| first + u * second + v * third;
        let (start, width, height) = self.copy;
        let (x, fx) = texel_before(along(self.across), width);
        let (y, fy) = texel_before(along(self.down), height);
        (start + y * width + x, fx, fy)
    }

    /// Where its corners lie on the map, from the left and from above.
    fn places(&self) -> [Vec2; 3] {
        let first = Vec2::new(self.across[0], self.down[0]);
        [0, 1, 2].map(|corner| match corner {
            0 => first,
            _ => first + Vec2::new(self.across[corner], self.down[corner]),
        })
    }

    /// The same in quads.
    fn quad_places(&self) -> [Vec2; 3] {
        let size = Vec2::new(self.copy.1 as f32, self.copy.2 as f32);
        self.places().map(|place| place * size - Vec2::splat(0.5))
    }

    /// The quads around it, from and to, where there are at most so many, and none so far away that rounding counts.
    fn quads_around(&self, most: f32) -> Option<(IVec2, IVec2)> {
        let far = Vec2::splat(1e5);
        let [a, b, c] = self.quad_places().map(|place| place.clamp(-far, far));
        let low = (a.min(b).min(c) - Vec2::splat(MARGIN)).floor();
        let high = (a.max(b).max(c) + Vec2::splat(MARGIN)).floor();
        let count = (high - low + Vec2::ONE).element_product();
        let is_near = low.cmpgt(-far).all() && high.cmplt(far).all();
        (is_near && count <= most).then(|| (low.as_ivec2(), high.as_ivec2()))
    }

    /// Share of the light that passes at a place in a quad.
    #[inline(always)]
    fn transparency(&self, quad: u32, fx: f32, fy: f32) -> f32 {
        let alpha = |shift: u32| (quad >> shift & 255) as i32 as f32;
        1.0 - self.alpha * (bilinear([alpha(0), alpha(8), alpha(16), alpha(24)], fx, fy) * (1.0 / 255.0))
    }
}

impl Masks {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.faces.is_empty()
    }

    /// One of them by its number; 0 is none.
    pub fn face(&self, number: u32) -> Option<&MaskFace> {
        self.faces.get((number as usize).checked_sub(1)?)
    }

    /// See the field.
    pub fn quads(&self) -> &[u32] {
        &self.quads
    }

    /// Lets go of what only [`Self::add`] needs.
    pub fn finish(&mut self) {
        self.copies = Vec::new();
        self.known = HashMap::new();
    }

    /// Adds a triangle; returns the number of its mask, counted from 1, which it may share with others, or what passes it
    /// where that is the same everywhere.
    pub fn add(
        &mut self,
        uvs: &[[f32; 2]; 3],
        normal: [f32; 3],
        material: &MaterialData,
        texels: &[[u8; 4]],
    ) -> Result<u32, f32> {
        let map = &material.opacity;
        let detail = uv_density(uvs, normal) * LIGHT_DETAIL * LIGHT_DETAIL;
        let (start, width, height) = map.at_level(map.level(detail));
        let known = self.copies.iter().find(|(texel, _)| *texel == start).map(|(_, quad)| *quad);
        let first = known.unwrap_or_else(|| {
            let first = self.quads.len() as u32;
            self.copies.push((start, first));
            let texel = |x: u32, y: u32| {
                let place = start + y % height * width + x % width;
                u32::from(texels[place as usize][3])
            };
            self.quads.extend((0..width * height).map(|i| {
                let (x, y) = (i % width, i / width);
                texel(x, y) | texel(x + 1, y) << 8 | texel(x, y + 1) << 16 | texel(x + 1, y + 1) << 24
            }));
            first
        });
        let face = MaskFace::new(uvs, material, (first, width, height));
        if let Some(known) = self.known.get(&face.key()) {
            return *known;
        }
        let added = match self.only_alpha(&face) {
            Some(alpha) => Err(1.0 - material.alpha * (f32::from(alpha) * (1.0 / 255.0))),
            None => {
                self.faces.push(face);
                Ok(self.faces.len() as u32)
            }
        };
        self.known.insert(face.key(), added);
        added
    }

    /// Alpha of all texels around a triangle, where they are few and have the same.
    fn only_alpha(&self, face: &MaskFace) -> Option<u8> {
        let (low, high) = face.quads_around(MOST_QUADS)?;
        let one = self.quad(face, low);
        let is_one = |y: i32| (low.x..=high.x).all(|x| self.quad(face, IVec2::new(x, y)) == one);
        let alpha = one as u8;
        (one == u32::from(alpha) * 0x0101_0101 && (low.y..=high.y).all(is_one)).then_some(alpha)
    }

    fn quad(&self, face: &MaskFace, place: IVec2) -> u32 {
        let (start, width, height) = face.copy;
        self.quads[start as usize + wrapped(place.y, height) * width as usize + wrapped(place.x, width)]
    }

    /// Corners of a part of each outside of which it is open, as weights of its second and third corner.
    pub fn outlines(&self) -> Vec<Vec<Vec2>> {
        let mut left = MOST_OPEN_QUADS;
        self.faces.iter().map(|face| self.outline(face, &mut left)).collect()
    }

    /// Looks at no more than `left` quads.
    fn outline(&self, face: &MaskFace, left: &mut f32) -> Vec<Vec2> {
        let mut corners = vec![Vec2::ZERO, Vec2::X, Vec2::Y];
        let Some((low, high)) = face.quads_around(*left) else { return corners };
        *left -= (high - low + IVec2::ONE).as_vec2().element_product();
        // How far it reaches in eight directions.
        let mut reach = [f32::NEG_INFINITY; 8];
        let (start, width, height) = face.copy;
        let columns: Vec<usize> = (low.x..=high.x).map(|x| wrapped(x, width)).collect();
        for y in low.y..=high.y {
            let row = &self.quads[start as usize + wrapped(y, height) * width as usize..][..width as usize];
            let is_visible = |&x: &usize| row[x] != 0;
            let Some(first) = columns.iter().position(is_visible) else { continue };
            let last = columns.iter().rposition(is_visible).unwrap_or(first);
            // A quad reaches from its first texel to the next ones.
            for (x, y) in [(first, y), (first, y + 1), (last + 1, y), (last + 1, y + 1)] {
                let corner = Vec2::new((low.x + x as i32) as f32, y as f32);
                for (reach, direction) in reach.iter_mut().zip(DIRECTIONS) {
                    *reach = reach.max(direction.dot(corner));
                }
            }
        }
        let [a, b, c] = face.quad_places();
        for (reach, direction) in reach.into_iter().zip(DIRECTIONS) {
            let [a, b, c] = [a, b, c].map(|place| reach + MARGIN - direction.dot(place));
            corners = cut(&corners, |weights| a + weights.x * (b - a) + weights.y * (c - a));
        }
        corners
    }

    /// Share of the light that passes triangle `number` where the weights of its second and third corner are `u`, `v`.
    #[inline(always)]
    pub fn transparency(&self, number: u32, u: f32, v: f32) -> f32 {
        let face = &self.faces[number as usize - 1];
        let (place, fx, fy) = face.place(u, v);
        face.transparency(self.quads[place as usize], fx, fy)
    }

    /// The same at sixteen places, of which those of `mask` count; 1 at the others.
    #[inline(always)]
    pub fn transparencies(&self, number: u32, mask: Mask, u: &Floats, v: &Floats) -> Floats {
        let face = &self.faces[number as usize - 1];
        let (mut places, mut fx, mut fy) = ([0_u32; WIDTH], [0.0; WIDTH], [0.0; WIDTH]);
        for lane in 0..WIDTH {
            (places[lane], fx[lane], fy[lane]) = face.place(u.0[lane], v.0[lane]);
        }
        let mut quads = [0_u32; WIDTH];
        let mut left = mask;
        while left != 0 {
            let lane = left.trailing_zeros() as usize & (WIDTH - 1);
            left &= left - 1;
            quads[lane] = self.quads[places[lane] as usize];
        }
        let mut shares = Floats::splat(1.0);
        for lane in 0..WIDTH {
            let share = face.transparency(quads[lane], fx[lane], fy[lane]);
            shares.0[lane] = if mask >> lane & 1 != 0 { share } else { 1.0 };
        }
        shares
    }
}

/// Where a texel lies on a map that is repeated.
fn wrapped(place: i32, size: u32) -> usize {
    place.rem_euclid(size as i32) as usize
}

/// The part of a convex outline where `height`, which is linear, is not negative.
fn cut(corners: &[Vec2], height: impl Fn(Vec2) -> f32) -> Vec<Vec2> {
    let mut kept = Vec::with_capacity(corners.len() + 1);
    for (&corner, &next) in corners.iter().zip(corners.iter().cycle().skip(1)) {
        let (here, there) = (height(corner), height(next));
        if here >= 0.0 {
            kept.push(corner);
        }
        if (here < 0.0) != (there < 0.0) {
            kept.push(corner + here / (here - there) * (next - corner));
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maps;

    /// A map of 8 x 8 texels, in 0.4 of a unit of the object: opaque on the left, open on the right, noise between.
    fn material() -> (MaterialData, Vec<[u8; 4]>) {
        let alpha = |x: u32, y: u32| match x {
            0..3 => 255,
            3..5 => ((x * 89 + y * 53) % 256) as u8,
            _ => 0,
        };
        let pixels = (0..64).map(|i| [7, 8, 9, alpha(i % 8, i / 8)]).collect();
        let texture = scene::Texture { width: 8, height: 8, pixels };
        let material = scene::Material { opacity: Some(texture.into()), alpha: 0.75, ..Default::default() };
        let (materials, texels) = maps::flatten(&[material]);
        (materials[0], texels)
    }

    fn triangle(corner: [f32; 2], side: f32) -> ([[f32; 2]; 3], [f32; 3]) {
        let [x, y] = corner;
        ([[x, y], [x + side, y], [x, y + side]], [0.0, 0.0, 0.16 * side * side])
    }

    #[test]
    fn masks_have_the_alpha_of_their_map() {
        let (material, texels) = material();
        let mut masks = Masks::default();
        let (uvs, normal) = triangle([-0.3, 0.2], 2.5);
        assert_eq!(masks.add(&uvs, normal, &material, &texels), Ok(1));
        let u = Floats(std::array::from_fn(|lane| lane as f32 / 31.0));
        let v = Floats(std::array::from_fn(|lane| (lane * 7 % WIDTH) as f32 / 31.0));
        let found = masks.transparencies(1, 0xfff7, &u, &v);
        for lane in 0..WIDTH {
            let uv = Vec2::from(uvs[0]) + 2.5 * Vec2::new(u.0[lane], v.0[lane]);
            let wanted = 1.0 - 0.75 * material.opacity.alpha(&texels, uv, 0) / 255.0;
            let one = masks.transparency(1, u.0[lane], v.0[lane]);
            assert!((one - wanted).abs() < 1e-4, "{uv}: {one} {wanted}");
            assert_eq!(found.0[lane], if lane == 3 { 1.0 } else { one });
        }
    }

    #[test]
    fn triangles_without_a_hole_or_in_one_need_no_lookup() {
        let (material, texels) = material();
        let mut masks = Masks::default();
        let mut add = |corner: [f32; 2], side: f32| {
            let (uvs, normal) = triangle(corner, side);
            masks.add(&uvs, normal, &material, &texels)
        };
        // Texels have their middles at odd sixteenths.
        assert_eq!(add([1.1, 0.2], 0.15), Err(0.25));
        assert_eq!(add([-0.3, 0.2], 0.15), Err(1.0));
        // Up to the next kind of texels, and around all of them.
        assert_eq!(add([1.1, 0.2], 0.25), Ok(1));
        assert_eq!(add([1.05, 0.2], 0.15), Ok(2));
        assert_eq!(add([0.0, 0.0], 5.0), Ok(3));
        assert_eq!(add([f32::MAX, 0.0], 5.0), Ok(4));
        // The same part of the map.
        assert_eq!((add([1.1, 0.2], 0.25), add([1.1, 1.2], 0.15)), (Ok(1), Err(0.25)));
        assert_eq!(masks.faces.len(), 4);
    }

    #[test]
    fn light_passes_all_that_is_left_out_of_a_triangle() {
        let (material, texels) = material();
        let mut masks = Masks::default();
        // Corner, side, and the area that is left: quads 2.7 to 6.3, of which those from 5 on are open, from either end; and
        // more than one repetition.
        for (corner, side, left) in
            [([0.4, 0.1], 0.45, 0.444), ([0.85, 3.1], -0.45, 0.222), ([-0.3, 0.2], 2.5, 0.414)]
        {
            let (uvs, normal) = triangle(corner, side);
            let number = masks.add(&uvs, normal, &material, &texels).unwrap();
            let visible = masks.outline(&masks.faces[number as usize - 1], &mut 1e4);
            let area: f32 = (1..visible.len() - 1)
                .map(|i| 0.5 * (visible[i] - visible[0]).perp_dot(visible[i + 1] - visible[0]))
                .sum();
            assert!((area - left).abs() < 0.001, "{corner:?}: {area} {visible:?}");
            for i in 0..10_000 {
                let weights = Vec2::new((i % 100) as f32 + 0.5, (i / 100) as f32 + 0.5) / 100.0;
                let is_inside = (0..visible.len()).all(|i| {
                    let (from, to) = (visible[i], visible[(i + 1) % visible.len()]);
                    (to - from).perp_dot(weights - from) > -1e-6
                });
                let passes = masks.transparency(number, weights.x, weights.y);
                assert!(
                    is_inside || weights.element_sum() > 1.0 || passes == 1.0,
                    "{corner:?} {weights}: {passes}"
                );
            }
        }
        // All of it is open.
        let open = MaskFace { copy: (masks.quads.len() as u32, 1, 1), ..masks.faces[0] };
        masks.quads.push(0);
        let mut left = 1e4;
        assert!(masks.outline(&open, &mut left).is_empty());
        // That was looked at: of no more quads, all of a triangle is taken.
        assert!(left < 1e4);
        assert_eq!(masks.outline(&masks.faces[0], &mut 10.0).len(), 3);
    }
}
