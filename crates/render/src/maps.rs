//! Images over surfaces, in one array of texels: every image is followed by its smaller copies (each half the size of
//! the one before, averaged in linear light), from which surfaces that are seen small are looked up.

use std::sync::{Arc, OnceLock};

use bytemuck::Zeroable;
use glam::{Vec2, Vec3, Vec4};

use crate::colour::srgb_decode;
use crate::mesh::MaterialData;
use crate::shared::shared;

shared! {
    /// An image and where it lies on the surface; `width` 0 means that there is none.
    pub struct MapData as "Map" {
        /// First texel of the whole image; its smaller copies follow.
        pub start: u32,
        /// Width of the image, or 0.
        pub width: u32,
        /// Height of the image.
        pub height: u32,
        /// Number of copies, the image itself included.
        pub levels: u32,
        /// Texture coordinates are multiplied by this,
        pub scale: [f32; 2],
        /// and moved by this.
        pub offset: [f32; 2],
    }
}

/// Texels of an image between two rays, squared, above which a smaller copy is looked up.
const MAX_TEXELS: f32 = 2.0;

impl MapData {
    /// Whether there is an image.
    #[inline(always)]
    pub fn is_some(&self) -> bool {
        self.width != 0
    }

    /// Which copy to look up where neighbouring rays lie `footprint` apart, in squared texture coordinates.
    #[inline]
    pub fn level(&self, footprint: f32) -> u32 {
        let mut texels =
            footprint * (self.width as f32 * self.scale[0] * (self.height as f32 * self.scale[1])).abs();
        let mut level = 0;
        while texels > MAX_TEXELS && level + 1 < self.levels {
            texels *= 0.25;
            level += 1;
        }
        level
    }

    /// The same for opacity, which is looked up in the copy before. Fewer rays find a surface neither open nor closed then and
    /// go on behind it, and images are nearer to those of many more rays.
    #[inline]
    pub fn opacity_level(&self, footprint: f32) -> u32 {
        self.level(0.25 * footprint)
    }

    /// First texel, width and height of a copy.
    #[inline]
    pub fn at_level(&self, level: u32) -> (u32, u32, u32) {
        let (mut start, mut width, mut height) = (self.start, self.width, self.height);
        for _ in 0..level {
            start += width * height;
            (width, height) = (half(width), half(height));
        }
        (start, width, height)
    }

    /// The four texels around a texture coordinate, the upper ones first, and the weights of the right and of the lower
    /// ones; repeated.
    #[inline(always)]
    fn around(&self, uv: Vec2, level: u32) -> ([usize; 4], f32, f32) {
        let (start, width, height) = self.at_level(level);
        let uv = Vec2::from(self.scale) * uv + Vec2::from(self.offset);
        // Texture coordinates start at the bottom left, rows at the top.
        let (x0, x1, fx) = texel_pair(uv.x, width);
        let (y0, y1, fy) = texel_pair(1.0 - uv.y, height);
        let place = |x: u32, y: u32| (start + y * width + x) as usize;
        ([place(x0, y0), place(x1, y0), place(x0, y1), place(x1, y1)], fx, fy)
    }

    /// Bytes at a texture coordinate: bilinear.
    #[inline]
    pub fn lookup(&self, texels: &[[u8; 4]], uv: Vec2, level: u32) -> Vec4 {
        let (places, fx, fy) = self.around(uv, level);
        let [a, b, c, d] = places.map(|place| Vec4::from(texels[place].map(f32::from)));
        a.lerp(b, fx).lerp(c.lerp(d, fx), fy)
    }

    /// Alpha of [`Self::lookup`].
    #[inline]
    pub fn alpha(&self, texels: &[[u8; 4]], uv: Vec2, level: u32) -> f32 {
        let (places, fx, fy) = self.around(uv, level);
        bilinear(places.map(|place| f32::from(texels[place][3])), fx, fy)
    }

    /// Linear colour at a texture coordinate, filtered in sRGB and decoded afterwards.
    #[inline]
    pub fn colour(&self, texels: &[[u8; 4]], uv: Vec2, level: u32) -> Vec3 {
        let value = self.lookup(texels, uv, level);
        Vec3::new(srgb_decode(value.x), srgb_decode(value.y), srgb_decode(value.z))
    }
}

#[inline]
fn half(size: u32) -> u32 {
    (size / 2).max(1)
}

/// Between four values, the upper ones first, by the weights of the right and of the lower ones.
#[inline(always)]
pub(crate) fn bilinear([a, b, c, d]: [f32; 4], right: f32, lower: f32) -> f32 {
    let between = |a: f32, b: f32, share: f32| a * (1.0 - share) + b * share;
    between(between(a, b, right), between(c, d, right), lower)
}

/// Area in texture coordinates over area in the object; `normal` is the cross product of the triangle's edges.
#[inline]
pub(crate) fn uv_density(uvs: &[[f32; 2]; 3], normal: [f32; 3]) -> f32 {
    let [a, b, c] = uvs.map(Vec2::from);
    let (ab, ac) = (b - a, c - a);
    (ab.x * ac.y - ab.y * ac.x).abs() / Vec3::from(normal).length().max(1e-12)
}

/// As the method of numbers, which is a call where the processor is not known to have an instruction for it.
#[inline(always)]
fn floor(x: f32) -> f32 {
    let whole = x as i32 as f32;
    // Numbers without a fraction, and what is no number, stay.
    if x.abs() < 8_388_608.0 { whole - f32::from(u8::from(whole > x)) } else { x }
}

/// The two texels around a repeated coordinate and the weight of the second.
#[inline(always)]
fn texel_pair(coordinate: f32, size: u32) -> (u32, u32, f32) {
    let x = (coordinate - floor(coordinate)) * size as f32 - 0.5;
    let low = floor(x);
    // At most one beyond either end, so that no division is needed.
    let wrap = |i: i32| {
        (if i < 0 {
            i + size as i32
        } else if i >= size as i32 {
            i - size as i32
        } else {
            i
        }) as u32
    };
    (wrap(low as i32), wrap(low as i32 + 1), x - low)
}

/// Materials and their images in one array each, the plain grey last.
pub(crate) fn flatten(materials: &[scene::Material]) -> (Vec<MaterialData>, Vec<[u8; 4]>) {
    let mut images = Images::default();
    let grey = scene::Material::default();
    let finite = |value: f32, otherwise: f32| if value.is_finite() { value } else { otherwise };
    let share = |value: f32, otherwise: f32| finite(value, otherwise).clamp(0.0, 1.0);
    let data = materials
        .iter()
        .chain(std::iter::once(&grey))
        .map(|material| MaterialData {
            base_colour: material.base_colour.map(|channel| share(channel, 0.8)),
            roughness: share(material.roughness, 0.5),
            specular: share(material.specular, 0.5),
            metallic: share(material.metallic, 0.0),
            alpha: share(material.alpha, 1.0),
            normal_strength: finite(material.normal_strength, 1.0).clamp(0.0, 10.0),
            emission: material.emission.map(|channel| finite(channel, 0.0).clamp(0.0, 1e6)),
            texture: images.place(material.texture.as_ref(), false),
            opacity: images.place(material.opacity.as_ref(), true),
            emission_map: images.place(material.emission_map.as_ref(), false),
            surface_map: images.place(material.surface_map.as_ref(), true),
            normal_map: images.place(material.normal_map.as_ref(), true),
        })
        .collect();
    (data, images.texels)
}

#[derive(Default)]
struct Images {
    texels: Vec<[u8; 4]>,
    /// Those that are there already, as colours or as data.
    placed: Vec<(*const scene::Texture, bool, MapData)>,
}

impl Images {
    fn place(&mut self, map: Option<&scene::Map>, is_data: bool) -> MapData {
        let is_good = |map: &&scene::Map| {
            let count = u64::from(map.width) * u64::from(map.height);
            count > 0 && count == map.pixels.len() as u64 && count < 1 << 29
        };
        let Some(map) = map.filter(is_good) else { return MapData::zeroed() };
        let key = Arc::as_ptr(&map.image);
        let known = self.placed.iter().find(|(image, data, _)| *image == key && *data == is_data);
        let data = known.map(|(_, _, data)| *data).unwrap_or_else(|| {
            let data = self.add(&map.image, is_data);
            self.placed.push((key, is_data, data));
            data
        });
        let finite = |values: [f32; 2], otherwise: f32| {
            values.map(|value| if value.is_finite() { value } else { otherwise })
        };
        MapData { scale: finite(map.scale, 1.0), offset: finite(map.offset, 0.0), ..data }
    }

    fn add(&mut self, image: &scene::Texture, is_data: bool) -> MapData {
        let (start, mut width, mut height) = (self.texels.len(), image.width as usize, image.height as usize);
        self.texels.extend_from_slice(&image.pixels);
        let (mut from, mut levels) = (start, 1);
        while width.max(height) > 1 {
            let size = (half(width as u32) as usize, half(height as u32) as usize);
            let smaller = shrink(&self.texels[from..], (width, height), size, is_data);
            from = self.texels.len();
            self.texels.extend_from_slice(&smaller);
            (width, height) = size;
            levels += 1;
        }
        let start = start as u32;
        let (width, height) = (image.width, image.height);
        MapData { start, width, height, levels, scale: [1.0; 2], offset: [0.0; 2] }
    }
}

/// The parts of `from` places that each of `to` places covers: the first place, and weights that add up to 1.
fn coverage(from: usize, to: usize) -> Vec<(usize, [f32; 3])> {
    let ratio = from as f32 / to as f32;
    (0..to)
        .map(|place| {
            let (low, high) = (place as f32 * ratio, (place + 1) as f32 * ratio);
            let first = (low as usize).min(from - 1);
            let part = |i: usize| {
                let at = (first + i) as f32;
                (high.min(at + 1.0) - low.max(at)).max(0.0) / ratio
            };
            (first, [part(0), part(1), part(2)])
        })
        .collect()
}

/// A copy of half the size: means in linear light, or of the numbers where they are data.
fn shrink(
    image: &[[u8; 4]],
    (width, height): (usize, usize),
    (new_width, new_height): (usize, usize),
    is_data: bool,
) -> Vec<[u8; 4]> {
    let (decode, encode) = tables();
    let byte = |value: f32| {
        if is_data {
            (255.0 * value + 0.5) as u8
        } else {
            encode[((value * (ENCODE_STEPS - 1) as f32 + 0.5) as usize).min(ENCODE_STEPS - 1)]
        }
    };
    if width == 2 * new_width && height == 2 * new_height {
        // Almost all images: means of four.
        let linear: [f32; 256] =
            if is_data { std::array::from_fn(|i| i as f32 * (1.0 / 255.0)) } else { *decode };
        let rows = image.chunks_exact(2 * width).take(new_height);
        return rows
            .flat_map(|rows| {
                let (top, bottom) = rows.split_at(width);
                top.as_chunks::<2>().0.iter().zip(bottom.as_chunks::<2>().0)
            })
            .map(|([a, b], [c, d])| {
                let mean = |i: usize| {
                    let at = |texel: &[u8; 4]| linear[usize::from(texel[i])];
                    byte(0.25 * (at(a) + at(b) + at(c) + at(d)))
                };
                let alpha = [a, b, c, d].iter().map(|texel| u32::from(texel[3])).sum::<u32>();
                [mean(0), mean(1), mean(2), ((alpha + 2) / 4) as u8]
            })
            .collect();
    }
    let (columns, rows) = (coverage(width, new_width), coverage(height, new_height));
    let mut result = Vec::with_capacity(new_width * new_height);
    for (top, row_weights) in &rows {
        for (left, column_weights) in &columns {
            let mut sum = Vec4::ZERO;
            for (y, &row_weight) in row_weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
                for (x, &weight) in column_weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
                    let [r, g, b, a] = image[(top + y).min(height - 1) * width + (left + x).min(width - 1)];
                    let colour = if is_data {
                        Vec3::new(f32::from(r), f32::from(g), f32::from(b)) * (1.0 / 255.0)
                    } else {
                        Vec3::new(decode[usize::from(r)], decode[usize::from(g)], decode[usize::from(b)])
                    };
                    sum += row_weight * weight * colour.extend(f32::from(a));
                }
            }
            result.push([byte(sum.x), byte(sum.y), byte(sum.z), (sum.w + 0.5) as u8]);
        }
    }
    result
}

const ENCODE_STEPS: usize = 8192;

/// The sRGB transfer function of bytes, and its inverse at equally spaced places.
fn tables() -> &'static ([f32; 256], Vec<u8>) {
    static TABLES: OnceLock<([f32; 256], Vec<u8>)> = OnceLock::new();
    TABLES.get_or_init(|| {
        let decode: [f32; 256] = std::array::from_fn(|byte| srgb_decode(byte as f32));
        let nearest = |step: usize| {
            let value = step as f32 / (ENCODE_STEPS - 1) as f32;
            let above = decode.partition_point(|other| *other < value).min(255);
            let below = above.saturating_sub(1);
            if value - decode[below] < decode[above] - value { below as u8 } else { above as u8 }
        };
        (decode, (0..ENCODE_STEPS).map(nearest).collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(width: u32, height: u32, pixel: impl Fn(u32, u32) -> [u8; 4]) -> scene::Map {
        let pixels = (0..width * height).map(|i| pixel(i % width, i / width)).collect();
        scene::Texture { width, height, pixels }.into()
    }

    #[test]
    fn smaller_copies_are_means_in_linear_light() {
        let stripes = image(6, 5, |x, _| if x % 2 == 0 { [0, 0, 255, 0] } else { [255, 255, 255, 255] });
        let material =
            scene::Material { texture: Some(stripes.clone()), opacity: Some(stripes), ..Default::default() };
        let (materials, texels) = flatten(&[material]);
        let (colour, data) = (materials[0].texture, materials[0].opacity);
        assert_eq!((colour.levels, colour.at_level(1).1, colour.at_level(1).2), (3, 3, 2));
        assert_ne!(colour.start, data.start);
        for uv in [Vec2::new(0.1, 0.9), Vec2::new(0.7, 0.4)] {
            // Half of the light is 188 of 255 in sRGB.
            assert_eq!(colour.lookup(&texels, uv, 1).round(), Vec4::new(188.0, 188.0, 255.0, 128.0));
            assert_eq!(data.lookup(&texels, uv, 2).round(), Vec4::new(128.0, 128.0, 255.0, 128.0));
        }
        assert_eq!((colour.level(0.0), colour.level(4.0 / 30.0), colour.level(1e9)), (0, 1, 2));
    }

    #[test]
    fn images_are_stored_once_and_moved_by_their_maps() {
        let corners =
            image(2, 2, |x, y| [if x == 0 { 0 } else { 255 }, if y == 0 { 255 } else { 0 }, 0, 255]);
        let moved = scene::Map { scale: [0.5, 2.0], offset: [0.25, -0.5], ..corners.clone() };
        let material = |texture| scene::Material { texture: Some(texture), ..Default::default() };
        let (materials, texels) = flatten(&[material(corners), material(moved)]);
        assert_eq!((materials[0].texture.start, materials[1].texture.start, texels.len()), (0, 0, 5));
        let at = |which: usize, u: f32, v: f32| materials[which].texture.lookup(&texels, Vec2::new(u, v), 0);
        for (u, v) in [(0.1, 0.3), (0.8, 0.45)] {
            assert!((at(1, u, v) - at(0, 0.5 * u + 0.25, 2.0 * v - 0.5)).length() < 1e-3);
        }
    }

    #[test]
    fn bad_images_are_left_out() {
        let mut broken = image(2, 2, |_, _| [0; 4]);
        Arc::make_mut(&mut broken.image).pixels.pop();
        let material = scene::Material { texture: Some(broken), ..Default::default() };
        let (materials, texels) = flatten(&[material]);
        assert!(!materials[0].texture.is_some() && texels.is_empty());
    }
}
