//! The Arrow schema of a file as an IPC message: a FlatBuffer that says which lists have a fixed size.
//!
//! Only what is needed of FlatBuffers: tables whose fields are numbers or references to what follows them.

/// Arrow's numbers for types.
const FLOATING_POINT: u8 = 3;
const UTF8: u8 = 5;
const FIXED_SIZE_LIST: u8 = 16;

/// A field of a table.
enum Value {
    Absent,
    U8(u8),
    I16(i16),
    I32(i32),
    Table(Vec<Value>),
    Tables(Vec<Vec<Value>>),
    Text(String),
}

impl Value {
    fn size(&self) -> usize {
        match self {
            Self::Absent => 0,
            Self::U8(_) => 1,
            Self::I16(_) => 2,
            _ => 4,
        }
    }
}

/// The schema of columns: text, or lists of so many floats.
pub fn schema(columns: &[(&str, Option<usize>)]) -> Vec<u8> {
    let field = |name: &str, kind: u8, of_kind: Vec<Value>, children: Vec<Vec<Value>>| {
        vec![
            Value::Text(name.to_owned()),
            Value::U8(0), // never missing
            Value::U8(kind),
            Value::Table(of_kind),
            Value::Absent,
            Value::Tables(children),
        ]
    };
    let fields = columns
        .iter()
        .map(|(name, width)| match width {
            None => field(name, UTF8, Vec::new(), Vec::new()),
            Some(width) => {
                let element = field("element", FLOATING_POINT, vec![Value::I16(1)], Vec::new());
                field(name, FIXED_SIZE_LIST, vec![Value::I32(*width as i32)], vec![element])
            }
        })
        .collect();
    // Message: version 5, header of the kind Schema, little-endian.
    let schema = vec![Value::I16(0), Value::Tables(fields)];
    let message = vec![Value::I16(4), Value::U8(1), Value::Table(schema)];
    let mut buffer = vec![0; 4];
    let root = table(&mut buffer, &message);
    buffer[..4].copy_from_slice(&(root as u32).to_le_bytes());
    buffer.resize(buffer.len().next_multiple_of(8), 0);
    let mut all = vec![0xff; 4];
    all.extend((buffer.len() as u32).to_le_bytes());
    all.extend(buffer);
    all
}

fn align(buffer: &mut Vec<u8>, to: usize) {
    buffer.resize(buffer.len().next_multiple_of(to), 0);
}

/// Appends a table (its vtable first) and what it refers to; the table's place.
fn table(buffer: &mut Vec<u8>, fields: &[Value]) -> usize {
    align(buffer, 4);
    // Fields follow the table's own reference to its vtable, each at a multiple of its size.
    let mut places = Vec::new();
    let mut length: usize = 4;
    for field in fields {
        let size = field.size();
        length = if size == 0 { length } else { length.next_multiple_of(size) };
        places.push(if size == 0 { 0 } else { length });
        length += size;
    }
    let vtable = buffer.len();
    let mut words = vec![(4 + 2 * fields.len()) as u16, length as u16];
    words.extend(places.iter().map(|&place| place as u16));
    buffer.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    align(buffer, 4);
    let start = buffer.len();
    buffer.extend(((start - vtable) as i32).to_le_bytes());
    buffer.resize(start + length, 0);
    for (field, place) in fields.iter().zip(places) {
        let at = start + place;
        match field {
            Value::Absent => {}
            Value::U8(value) => buffer[at] = *value,
            Value::I16(value) => buffer[at..at + 2].copy_from_slice(&value.to_le_bytes()),
            Value::I32(value) => buffer[at..at + 4].copy_from_slice(&value.to_le_bytes()),
            Value::Table(fields) => {
                let target = table(buffer, fields);
                refer(buffer, at, target);
            }
            Value::Tables(tables) => {
                align(buffer, 4);
                let target = buffer.len();
                buffer.extend((tables.len() as u32).to_le_bytes());
                buffer.resize(target + 4 + 4 * tables.len(), 0);
                refer(buffer, at, target);
                for (index, fields) in tables.iter().enumerate() {
                    let target_of_one = table(buffer, fields);
                    refer(buffer, target + 4 + 4 * index, target_of_one);
                }
            }
            Value::Text(text) => {
                align(buffer, 4);
                let target = buffer.len();
                buffer.extend((text.len() as u32).to_le_bytes());
                buffer.extend(text.as_bytes());
                buffer.push(0);
                refer(buffer, at, target);
            }
        }
    }
    start
}

/// Writes at `at` how far `target` is.
fn refer(buffer: &mut [u8], at: usize, target: usize) {
    buffer[at..at + 4].copy_from_slice(&((target - at) as u32).to_le_bytes());
}
