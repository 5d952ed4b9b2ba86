//! Colours stored at vertices or faces, turned into a texture: the renderer knows no other colours.
//!
//! A single colour becomes the material's base colour. Otherwise every triangle gets a block of 2x2 texels, its
//! corners at three of the texels' centres and the fourth continuing the plane through them, so that bilinear lookup
//! interpolates the corners' colours over the triangle.

use crate::{Map, Mesh, Texture, Vertex};

/// Where the colours of the faces of a material come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Colours {
    /// From the material.
    #[default]
    Material,
    /// From their corners' positions.
    Vertices,
    /// From the faces themselves.
    Faces,
}

/// Gives every triangle for which there are colours (8-bit sRGB, one for each corner) these instead of those of its
/// material. `colours` has an entry for every triangle.
pub(super) fn bake(mesh: &mut Mesh, colours: &[Option<[[u8; 3]; 3]>]) {
    let mut coloured = vec![false; mesh.materials.len()];
    let (mut single, mut several, mut count) = (None, false, 0_usize);
    for (corners, &material) in colours.iter().zip(&mesh.triangle_materials) {
        let Some(corners) = corners else { continue };
        count += 1;
        coloured[material as usize] = true;
        for corner in corners {
            several |= *single.get_or_insert(*corner) != *corner;
        }
    }
    let Some(single) = single else { return };
    let coloured = || coloured.iter().enumerate().filter(|(_, coloured)| **coloured).map(|(i, _)| i);
    if !several {
        for material in coloured() {
            mesh.materials[material].base_colour = single.map(linear_from_srgb);
            mesh.materials[material].texture = None;
        }
        return;
    }
    let blocks = (count as f64).sqrt().ceil() as usize;
    let size = 2 * blocks;
    let mut pixels = vec![[0, 0, 0, 255]; size * size];
    let mut block = 0;
    // A vertex gets the texture coordinate of the first triangle that needs one; the others get copies of it.
    let mut taken = vec![false; mesh.vertices.len()];
    for (triangle, _) in mesh.triangles.iter().zip(colours).filter(|(_, corners)| corners.is_none()) {
        triangle.iter().for_each(|corner| taken[*corner as usize] = true);
    }
    for (triangle, corners) in mesh.triangles.iter_mut().zip(colours) {
        let Some([a, b, c]) = *corners else { continue };
        let (column, row) = (2 * (block % blocks), 2 * (block / blocks));
        block += 1;
        let opposite = std::array::from_fn(|i| {
            (i16::from(b[i]) + i16::from(c[i]) - i16::from(a[i])).clamp(0, 255) as u8
        });
        for (colour, x, y) in [(a, 0, 0), (b, 1, 0), (c, 0, 1), (opposite, 1, 1)] {
            pixels[(row + y) * size + column + x] = [colour[0], colour[1], colour[2], 255];
        }
        // Row 0 of an image is its top, texture coordinates begin at the bottom.
        for (corner, (x, y)) in triangle.iter_mut().zip([(0, 0), (1, 0), (0, 1)]) {
            let uv =
                [((column + x) as f64 + 0.5) / size as f64, 1.0 - ((row + y) as f64 + 0.5) / size as f64];
            let vertex = Vertex { uv: uv.map(|u| u as f32), ..mesh.vertices[*corner as usize] };
            if std::mem::replace(&mut taken[*corner as usize], true) {
                *corner = mesh.vertices.len() as u32;
                mesh.vertices.push(vertex);
            } else {
                mesh.vertices[*corner as usize] = vertex;
            }
        }
    }
    let texture = Map::from(Texture { width: size as u32, height: size as u32, pixels });
    for material in coloured() {
        mesh.materials[material].texture = Some(texture.clone());
    }
}

/// The sRGB transfer function, decoding.
pub(super) fn linear_from_srgb(value: u8) -> f32 {
    let value = f32::from(value) / 255.0;
    if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
}

/// The sRGB transfer function, encoding and rounding.
pub(super) fn srgb_from_linear(value: f32) -> u8 {
    let value = value.clamp(0.0, 1.0);
    let encoded = if value <= 0.003_130_8 { value * 12.92 } else { 1.055 * value.powf(1.0 / 2.4) - 0.055 };
    (encoded * 255.0).round() as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn srgb_round_trips() {
        assert!((0..=255).all(|value| srgb_from_linear(linear_from_srgb(value)) == value));
        assert!((linear_from_srgb(188) - 0.5).abs() < 0.005);
    }
}
