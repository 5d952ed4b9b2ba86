//! Writes Parquet files: strings and lists of floats, plain and uncompressed, which every reader takes.
//!
//! Lists are Parquet's three-level lists. Their common length is in the Arrow schema beside (`ARROW:schema`), so that
//! Arrow's readers give fixed-size lists.

mod arrow;
mod thrift;

use std::io::{self, Write};

use thrift::Struct;

/// One column, a value a row.
#[derive(Clone, Copy, Debug)]
pub enum Column<'a> {
    /// Text.
    Strings(&'a [String]),
    /// As many floats in every row, row after row.
    Lists(&'a [f32]),
}

/// Rows of a row group, and about how many bytes a page has.
const GROUP_ROWS: usize = 1 << 16;
const PAGE_BYTES: usize = 1 << 20;

const FLOAT: i32 = 4;
const BYTE_ARRAY: i32 = 6;
const REQUIRED: i32 = 0;
const REPEATED: i32 = 2;
const PLAIN: i32 = 0;
const RLE: i32 = 3;

/// Writes named columns of `rows` values each.
pub fn write(to: &mut impl Write, rows: usize, columns: &[(&str, Column<'_>)]) -> io::Result<()> {
    let widths: Vec<Option<usize>> = columns.iter().map(|(_, column)| width(column, rows)).collect();
    let mut out = Counted { to, written: 0 };
    out.bytes(b"PAR1")?;
    let mut groups: Vec<Vec<u8>> = Vec::new();
    for first in (0..rows).step_by(GROUP_ROWS) {
        let last = rows.min(first + GROUP_ROWS);
        let began = out.written;
        let mut chunks: Vec<Vec<u8>> = Vec::new();
        for ((name, column), width) in columns.iter().zip(&widths) {
            let start = out.written;
            for page in pages(column, *width, first..last) {
                out.bytes(&page)?;
            }
            chunks.push(chunk(name, *width, last - first, start, out.written - start));
        }
        let mut group = Struct::default();
        group.list(1, &chunks);
        group.i64(2, (out.written - began) as i64);
        group.i64(3, (last - first) as i64);
        groups.push(group.end());
    }
    let footer = footer(rows, columns, &widths, &groups);
    out.bytes(&footer)?;
    out.bytes(&(footer.len() as u32).to_le_bytes())?;
    out.bytes(b"PAR1")?;
    out.to.flush()
}

/// Floats of a row; `None` for strings.
fn width(column: &Column<'_>, rows: usize) -> Option<usize> {
    match column {
        Column::Strings(_) => None,
        Column::Lists(values) => Some(values.len() / rows.max(1)),
    }
}

struct Counted<'a, W: Write> {
    to: &'a mut W,
    written: u64,
}

impl<W: Write> Counted<'_, W> {
    fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.to.write_all(bytes)?;
        self.written += bytes.len() as u64;
        Ok(())
    }
}

/// The pages of some rows of a column, headers included.
fn pages<'a>(
    column: &'a Column<'_>,
    width: Option<usize>,
    rows: std::ops::Range<usize>,
) -> impl Iterator<Item = Vec<u8>> + 'a {
    let per_page = PAGE_BYTES / (4 * width.unwrap_or(16).max(1));
    let end = rows.end;
    rows.step_by(per_page.max(1)).map(move |first| {
        let last = end.min(first + per_page.max(1));
        let mut body = Vec::new();
        let mut count = last - first;
        match column {
            Column::Strings(values) => {
                for value in &values[first..last] {
                    body.extend((value.len() as u32).to_le_bytes());
                    body.extend(value.as_bytes());
                }
            }
            Column::Lists(values) => {
                let width = width.unwrap_or(0);
                count = (last - first) * width;
                // The first number of a row begins a list (0), the others go on (1); all are there (1).
                let mut repetition = Vec::new();
                for _ in first..last {
                    run(&mut repetition, 1, 0);
                    run(&mut repetition, width.saturating_sub(1), 1);
                }
                let mut definition = Vec::new();
                run(&mut definition, count, 1);
                for levels in [repetition, definition] {
                    body.extend((levels.len() as u32).to_le_bytes());
                    body.extend(levels);
                }
                body.extend(values[first * width..last * width].iter().flat_map(|value| value.to_le_bytes()));
            }
        }
        let mut data = Struct::default();
        data.i32(1, count as i32);
        data.i32(2, PLAIN);
        data.i32(3, RLE);
        data.i32(4, RLE);
        let mut header = Struct::default();
        header.i32(1, 0); // a data page
        header.i32(2, body.len() as i32);
        header.i32(3, body.len() as i32);
        header.part(5, data);
        let mut page = header.end();
        page.extend(body);
        page
    })
}

/// A run of `count` equal levels of one bit.
fn run(to: &mut Vec<u8>, count: usize, level: u8) {
    if count > 0 {
        thrift::variable(to, (count as u64) << 1);
        to.push(level);
    }
}

fn chunk(name: &str, width: Option<usize>, rows: usize, start: u64, bytes: u64) -> Vec<u8> {
    let path: Vec<&str> = if width.is_some() { vec![name, "list", "element"] } else { vec![name] };
    let mut data = Struct::default();
    data.i32(1, if width.is_some() { FLOAT } else { BYTE_ARRAY });
    data.numbers(2, &[PLAIN, RLE]);
    data.strings(3, &path);
    data.i32(4, 0); // not compressed
    data.i64(5, (rows * width.unwrap_or(1)) as i64);
    data.i64(6, bytes as i64);
    data.i64(7, bytes as i64);
    data.i64(9, start as i64);
    let mut chunk = Struct::default();
    chunk.i64(2, start as i64);
    chunk.part(3, data);
    chunk.end()
}

fn footer(
    rows: usize,
    columns: &[(&str, Column<'_>)],
    widths: &[Option<usize>],
    groups: &[Vec<u8>],
) -> Vec<u8> {
    let mut schema = Vec::new();
    let mut root = Struct::default();
    root.string(4, "schema");
    root.i32(5, columns.len() as i32);
    schema.push(root.end());
    for ((name, _), width) in columns.iter().zip(widths) {
        let mut field = Struct::default();
        if width.is_none() {
            field.i32(1, BYTE_ARRAY);
        }
        field.i32(3, REQUIRED);
        field.string(4, name);
        // Converted and logical type: a list or text.
        match width {
            Some(_) => {
                field.i32(5, 1);
                field.i32(6, 3);
                field.choice(10, 3);
            }
            None => {
                field.i32(6, 0);
                field.choice(10, 1);
            }
        }
        schema.push(field.end());
        if width.is_some() {
            let mut inner = Struct::default();
            inner.i32(3, REPEATED);
            inner.string(4, "list");
            inner.i32(5, 1);
            schema.push(inner.end());
            let mut element = Struct::default();
            element.i32(1, FLOAT);
            element.i32(3, REQUIRED);
            element.string(4, "element");
            schema.push(element.end());
        }
    }
    let fields: Vec<(&str, Option<usize>)> =
        columns.iter().zip(widths).map(|((name, _), width)| (*name, *width)).collect();
    let mut note = Struct::default();
    note.string(1, "ARROW:schema");
    note.string(2, &report::base64::encode(&arrow::schema(&fields)));
    let mut footer = Struct::default();
    footer.i32(1, 2);
    footer.list(2, &schema);
    footer.i64(3, rows as i64);
    footer.list(4, groups);
    footer.list(5, &[note.end()]);
    footer.string(6, concat!("equicaps version ", env!("CARGO_PKG_VERSION")));
    footer.end()
}
