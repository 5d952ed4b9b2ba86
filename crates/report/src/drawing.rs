//! A drawing: shapes in pixel coordinates, origin at the top left, y downwards. Charts and grids produce one; the
//! SVG writer and the painter of pixels both read it.

use std::path::Path;
use std::sync::Arc;

use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::{ExtendedColorType, ImageEncoder};

use crate::{Error, Result};

/// A colour by its role, so that one drawing serves light and dark pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    /// Text and axes.
    Ink,
    /// Secondary text.
    Muted,
    /// Grid lines.
    Grid,
    /// The background.
    Paper,
    /// The n-th series; colours repeat after [`SERIES`]`.len()`.
    Series(usize),
    /// This very colour.
    Rgb([u8; 3]),
}

/// The colours of series, chosen to stay apart for colour-blind readers and on light and dark paper.
pub const SERIES: [[u8; 3]; 9] = [
    [0x2b, 0x6c, 0xb0],
    [0xd9, 0x6b, 0x06],
    [0x2f, 0x8f, 0x5b],
    [0xb8, 0x3a, 0x8c],
    [0x6b, 0x5b, 0xc9],
    [0x8a, 0x6d, 0x3b],
    [0x17, 0x8f, 0xa3],
    [0xc5, 0x30, 0x30],
    [0x71, 0x80, 0x96],
];

impl Paint {
    /// The colour on light paper.
    pub fn light(self) -> [u8; 3] {
        match self {
            Self::Ink => [0x1a, 0x20, 0x2c],
            Self::Muted => [0x5a, 0x67, 0x78],
            Self::Grid => [0xe2, 0xe6, 0xec],
            Self::Paper => [0xff, 0xff, 0xff],
            Self::Series(n) => SERIES[n % SERIES.len()],
            Self::Rgb(colour) => colour,
        }
    }
}

/// Which point of a text its position names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// The beginning.
    Start,
    /// The middle.
    Middle,
    /// The end.
    End,
}

/// An RGB image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bitmap {
    width: u32,
    height: u32,
    pixels: Vec<u8>,
}

impl Bitmap {
    /// An image of `[height, width, 3]` bytes, row 0 on top.
    pub fn new(width: u32, height: u32, pixels: Vec<u8>) -> Result<Self> {
        let expected = width as usize * height as usize * 3;
        if pixels.len() == expected {
            Ok(Self { width, height, pixels })
        } else {
            Err(Error::ImageSize { width, height, expected, found: pixels.len() })
        }
    }

    /// Width in pixels.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Height in pixels.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// `[height, width, 3]` bytes.
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    /// The image as a PNG file.
    pub fn to_png(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        // Charts are mostly flat, images smooth: the best compression pays, in file size, for its fraction of a second.
        PngEncoder::new_with_quality(&mut bytes, CompressionType::Best, FilterType::Adaptive)
            .write_image(&self.pixels, self.width, self.height, ExtendedColorType::Rgb8)
            .map_err(|error| Error::Png {
                width: self.width,
                height: self.height,
                message: error.to_string(),
            })?;
        Ok(bytes)
    }
}

/// A stretch of text in a drawing.
#[derive(Clone, Debug, PartialEq)]
pub struct Text {
    /// Where: x of the anchor, y of the baseline.
    pub at: (f64, f64),
    /// The text itself.
    pub text: String,
    /// Size of the em square in pixels.
    pub size_px: f64,
    /// What `at` names.
    pub anchor: Anchor,
    /// Its colour.
    pub paint: Paint,
    /// Whether it is heavy.
    pub bold: bool,
    /// Whether it runs upwards.
    pub upwards: bool,
}

/// What the points of a line are: numbers with the names of their axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Values {
    /// Names of both axes.
    pub axes: [String; 2],
    /// The numbers of each point, as they are said.
    pub points: Vec<[String; 2]>,
}

/// One shape.
#[derive(Clone, Debug, PartialEq)]
pub enum Mark {
    /// A filled rectangle: x, y, width, height.
    Rectangle([f64; 4], Paint, f64),
    /// The outline of a rectangle: x, y, width, height, with a stroke of so many pixels.
    Frame([f64; 4], Paint, f64),
    /// Connected segments.
    Line {
        /// The corners.
        points: Vec<(f64, f64)>,
        /// Their colour.
        paint: Paint,
        /// Stroke width in pixels.
        width_px: f64,
        /// Whether the line is broken into dashes.
        dashed: bool,
    },
    /// A filled polygon with an opacity.
    Area(Vec<(f64, f64)>, Paint, f64),
    /// A filled disc: centre and radius.
    Disc((f64, f64), f64, Paint),
    /// Text.
    Text(Text),
    /// An image scaled into a rectangle: x, y, width, height.
    Bitmap([f64; 4], Arc<Bitmap>),
    /// A shape that says what it is when somebody points at it.
    Told {
        /// The shape.
        mark: Box<Mark>,
        /// What it is.
        name: String,
        /// Of a line, what its points are.
        values: Option<Values>,
        /// The row of a table that it belongs to; may be empty.
        of: String,
    },
}

impl Mark {
    /// The same, further right and down.
    fn moved(self, by: (f64, f64)) -> Self {
        let at = |(x, y): (f64, f64)| (x + by.0, y + by.1);
        let area = |[x, y, width, height]: [f64; 4]| [x + by.0, y + by.1, width, height];
        match self {
            Self::Rectangle(place, paint, opacity) => Self::Rectangle(area(place), paint, opacity),
            Self::Frame(place, paint, stroke) => Self::Frame(area(place), paint, stroke),
            Self::Line { points, paint, width_px, dashed } => {
                Self::Line { points: points.into_iter().map(at).collect(), paint, width_px, dashed }
            }
            Self::Area(points, paint, opacity) => {
                Self::Area(points.into_iter().map(at).collect(), paint, opacity)
            }
            Self::Disc(centre, radius, paint) => Self::Disc(at(centre), radius, paint),
            Self::Text(text) => Self::Text(Text { at: at(text.at), ..text }),
            Self::Bitmap(place, image) => Self::Bitmap(area(place), image),
            Self::Told { mark, name, values, of } => {
                Self::Told { mark: Box::new(mark.moved(by)), name, values, of }
            }
        }
    }

    /// The same, saying `name` when somebody points at it; it belongs to the row `of`.
    pub fn told(self, name: impl Into<String>, of: impl Into<String>) -> Self {
        Self::Told { mark: Box::new(self), name: name.into(), values: None, of: of.into() }
    }
}

/// Shapes on a sheet of paper, drawn in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawing {
    /// Width in pixels.
    pub width: f64,
    /// Height in pixels.
    pub height: f64,
    /// What it shows, in a sentence, for those who cannot see it.
    pub description: String,
    /// The shapes.
    pub marks: Vec<Mark>,
}

impl Drawing {
    /// Empty paper.
    pub fn new(width: f64, height: f64, description: impl Into<String>) -> Self {
        Self { width, height, description: description.into(), marks: Vec::new() }
    }

    /// Several drawings on one sheet, `columns` beside each other.
    pub fn together(drawings: Vec<Self>, columns: usize, description: &str) -> Self {
        let mut sheet = Self::new(0.0, 0.0, description);
        let mut drawings = drawings.into_iter().peekable();
        while drawings.peek().is_some() {
            let (mut x, y) = (0.0, sheet.height);
            for drawing in drawings.by_ref().take(columns.max(1)) {
                sheet.marks.extend(drawing.marks.into_iter().map(|mark| mark.moved((x, y))));
                x += drawing.width;
                sheet.height = f64::max(sheet.height, y + drawing.height);
            }
            sheet.width = f64::max(sheet.width, x);
        }
        sheet
    }

    /// Adds plain text.
    pub fn text(
        &mut self,
        at: (f64, f64),
        text: impl Into<String>,
        size_px: f64,
        anchor: Anchor,
        paint: Paint,
    ) {
        let text = text.into();
        self.marks.push(Mark::Text(Text { at, text, size_px, anchor, paint, bold: false, upwards: false }));
    }

    /// Adds heavy text.
    pub fn heading(&mut self, at: (f64, f64), text: impl Into<String>, size_px: f64, anchor: Anchor) {
        let text = text.into();
        let paint = Paint::Ink;
        self.marks.push(Mark::Text(Text { at, text, size_px, anchor, paint, bold: true, upwards: false }));
    }

    /// Adds a line.
    pub fn line(&mut self, points: Vec<(f64, f64)>, paint: Paint, width_px: f64, dashed: bool) {
        self.marks.push(Mark::Line { points, paint, width_px, dashed });
    }

    /// The drawing as an SVG document or element.
    pub fn to_svg(&self, purpose: crate::SvgUse) -> String {
        crate::svg::write(self, purpose)
    }

    /// The drawing painted on white, `scale` device pixels to a pixel.
    pub fn to_image(&self, scale: f64) -> Result<Bitmap> {
        crate::raster::paint(self, scale)
    }

    /// The drawing as a PNG file, `scale` device pixels to a pixel.
    pub fn to_png(&self, scale: f64) -> Result<Vec<u8>> {
        self.to_image(scale)?.to_png()
    }

    /// Writes the drawing as SVG where the name of the file ends in `.svg`, as PNG otherwise; makes its folder.
    pub fn write(&self, path: &Path) -> Result<()> {
        let is_svg = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("svg"));
        let bytes = if is_svg { self.to_svg(crate::SvgUse::File).into_bytes() } else { self.to_png(2.0)? };
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            dataset::durable::create_folder(parent)?;
        }
        Ok(dataset::durable::write(path, &bytes)?)
    }
}
