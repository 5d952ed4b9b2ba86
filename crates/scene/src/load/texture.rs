//! Decoding the images that materials name, within a budget of memory, each of them once.

use crate::Texture;
use image::ImageReader;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Cursor, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Below this size nobody asks how well an image is compressed.
const SMALL_BYTES: u64 = 16 << 20;
/// No real image shrinks more: DEFLATE reaches 1032 to 1 on an empty one.
const MAX_RATIO: u64 = 5000;

/// What an image is taken for; its bytes are prepared accordingly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Role {
    /// As it is.
    Plain,
    /// A colour that is multiplied by its own alpha, in bytes, as Cycles reads the colour of a material alone.
    Colour,
    /// Opacity in the alpha channel: the image's own alpha, or its brightness where it has none.
    Opacity,
    /// Principled `specular` in the red channel: the image's brightness.
    Specular,
}

/// An image as it was decoded.
#[derive(Clone)]
struct Decoded {
    image: Arc<Texture>,
    has_alpha: bool,
}

/// The textures of one mesh by their canonical path.
pub(super) struct TextureStore {
    budget_bytes: u64,
    decoded: HashMap<PathBuf, Result<Decoded, String>>,
    prepared: HashMap<(PathBuf, Role), Arc<Texture>>,
}

impl TextureStore {
    pub fn new(budget_bytes: u64) -> Self {
        Self { budget_bytes, decoded: HashMap::new(), prepared: HashMap::new() }
    }

    /// The image at `path` (PNG, JPEG or WebP by content) as it is; the error is a reason.
    pub fn load(&mut self, path: &Path) -> Result<Arc<Texture>, String> {
        self.load_as(path, Role::Plain)
    }

    /// The image at `path`, prepared for what it is taken for.
    pub fn load_as(&mut self, path: &Path, role: Role) -> Result<Arc<Texture>, String> {
        let decoded = match self.decoded.get(path) {
            Some(known) => known.clone(),
            None => {
                let decoded = std::fs::File::open(path)
                    .map_err(|error| error.to_string())
                    .and_then(|file| self.decode(BufReader::new(file)));
                self.decoded.insert(path.to_owned(), decoded.clone());
                decoded
            }
        }?;
        let key = (path.to_owned(), role);
        if let Some(known) = self.prepared.get(&key) {
            return Ok(Arc::clone(known));
        }
        let prepared = self.prepare(&decoded, role)?;
        self.prepared.insert(key, Arc::clone(&prepared));
        Ok(prepared)
    }

    /// An image inside another file.
    pub fn decode_bytes(&mut self, bytes: &[u8]) -> Result<Arc<Texture>, String> {
        self.decode(Cursor::new(bytes)).map(|decoded| decoded.image)
    }

    fn prepare(&mut self, decoded: &Decoded, role: Role) -> Result<Arc<Texture>, String> {
        let Decoded { image, has_alpha } = decoded;
        let product = |channel: u8, alpha: u8| (u16::from(channel) * u16::from(alpha) / 255) as u8;
        let has_alpha = *has_alpha;
        match role {
            Role::Plain => Ok(Arc::clone(image)),
            Role::Colour if image.pixels.iter().all(|pixel| pixel[3] == 255) => Ok(Arc::clone(image)),
            Role::Colour => {
                self.derived(image, |[r, g, b, a]| [product(r, a), product(g, a), product(b, a), 255])
            }
            Role::Opacity => self.derived(image, move |pixel| {
                [255, 255, 255, if has_alpha { pixel[3] } else { brightness(pixel) }]
            }),
            Role::Specular => self.derived(image, |pixel| [brightness(pixel), 255, 255, 255]),
        }
    }

    /// Another image of the same size, within the same budget.
    pub fn derived(
        &mut self,
        image: &Texture,
        pixel: impl Fn([u8; 4]) -> [u8; 4],
    ) -> Result<Arc<Texture>, String> {
        self.charge(image.width, image.height)?;
        let pixels = image.pixels.iter().map(|value| pixel(*value)).collect();
        Ok(Arc::new(Texture { pixels, ..*image }))
    }

    fn charge(&mut self, width: u32, height: u32) -> Result<(), String> {
        let bytes = u64::from(width) * u64::from(height) * 4;
        if bytes > self.budget_bytes {
            return Err(format!("{width} x {height} pixels exceed the memory for textures"));
        }
        self.budget_bytes -= bytes;
        Ok(())
    }

    fn decode<R: BufRead + Seek>(&mut self, mut reader: R) -> Result<Decoded, String> {
        // The size is checked before anything is allocated: a small file can claim a huge image.
        let (width, height) = open(&mut reader)?
            .into_dimensions()
            .map_err(|error| format!("not a PNG, JPEG or WebP image ({error})"))?;
        let bytes = u64::from(width) * u64::from(height) * 4;
        if width == 0 || height == 0 {
            return Err("an empty image".to_owned());
        }
        let stored = reader.seek(std::io::SeekFrom::End(0)).map_err(|error| error.to_string())?;
        if bytes > SMALL_BYTES && bytes / MAX_RATIO > stored {
            return Err(format!("claims {width} x {height} pixels in {stored} bytes"));
        }
        if bytes > self.budget_bytes {
            return Err(format!("{width} x {height} pixels exceed the memory for textures"));
        }
        reader.rewind().map_err(|error| error.to_string())?;
        let mut decoder = open(&mut reader)?;
        let mut limits = image::Limits::default();
        // 16-bit images take twice the room while they are converted.
        limits.max_alloc = Some(bytes.saturating_mul(4).saturating_add(64 << 20));
        decoder.limits(limits);
        let image = decoder.decode().map_err(|error| error.to_string())?;
        let has_alpha = image.color().has_alpha();
        let image = image.into_rgba8();
        self.charge(width, height)?;
        let (width, height) = image.dimensions();
        let (pixels, _) = image.as_raw().as_chunks::<4>();
        let image = Arc::new(Texture { width, height, pixels: pixels.to_vec() });
        Ok(Decoded { image, has_alpha })
    }
}

/// Luminance of the bytes as they are: how Cycles makes one number of an image that is data.
fn brightness([r, g, b, _]: [u8; 4]) -> u8 {
    (0.212_673 * f32::from(r) + 0.715_152 * f32::from(g) + 0.072_175 * f32::from(b)).round() as u8
}

fn open<R: BufRead + Seek>(reader: R) -> Result<ImageReader<R>, String> {
    ImageReader::new(reader).with_guessed_format().map_err(|error| error.to_string())
}
