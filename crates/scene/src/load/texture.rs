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

/// The textures of one mesh by their canonical path.
pub(super) struct TextureStore {
    budget_bytes: u64,
    loaded: HashMap<PathBuf, Result<Arc<Texture>, String>>,
}

impl TextureStore {
    pub fn new(budget_bytes: u64) -> Self {
        Self { budget_bytes, loaded: HashMap::new() }
    }

    /// The image at `path` (PNG or JPEG by content); the error is a reason.
    pub fn load(&mut self, path: &Path) -> Result<Arc<Texture>, String> {
        if let Some(known) = self.loaded.get(path) {
            return known.clone();
        }
        let texture = std::fs::File::open(path)
            .map_err(|error| error.to_string())
            .and_then(|file| self.decode(BufReader::new(file)));
        self.loaded.insert(path.to_owned(), texture.clone());
        texture
    }

    /// An image inside another file.
    pub fn decode_bytes(&mut self, bytes: &[u8]) -> Result<Arc<Texture>, String> {
        self.decode(Cursor::new(bytes))
    }

    fn decode<R: BufRead + Seek>(&mut self, mut reader: R) -> Result<Arc<Texture>, String> {
        // The size is checked before anything is allocated: a small file can claim a huge image.
        let (width, height) = open(&mut reader)?
            .into_dimensions()
            .map_err(|error| format!("not a PNG or JPEG image ({error})"))?;
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
        let image = decoder.decode().map_err(|error| error.to_string())?.into_rgba8();
        self.budget_bytes -= bytes;
        let (width, height) = image.dimensions();
        let (pixels, _) = image.as_raw().as_chunks::<4>();
        Ok(Arc::new(Texture { width, height, pixels: pixels.to_vec() }))
    }
}

fn open<R: BufRead + Seek>(reader: R) -> Result<ImageReader<R>, String> {
    ImageReader::new(reader).with_guessed_format().map_err(|error| error.to_string())
}
