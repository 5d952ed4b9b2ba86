//! Thrift's compact protocol, as far as Parquet's headers need it.

const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// A number, seven bits a byte, lowest first.
pub fn variable(to: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

/// Signed numbers alternate: 0, -1, 1, -2, ...
fn zigzag(to: &mut Vec<u8>, value: i64) {
    variable(to, ((value << 1) ^ (value >> 63)) as u64);
}

fn list_header(to: &mut Vec<u8>, count: usize, kind: u8) {
    if count < 15 {
        to.push((count as u8) << 4 | kind);
    } else {
        to.push(0xf0 | kind);
        variable(to, count as u64);
    }
}

/// A struct under construction; fields come in ascending order.
#[derive(Debug, Default)]
pub struct Struct {
    bytes: Vec<u8>,
    last: u8,
}

impl Struct {
    fn field(&mut self, number: u8, kind: u8) {
        // Steps of up to 15 fit into the header; Parquet has no larger ones.
        self.bytes.push((number - self.last) << 4 | kind);
        self.last = number;
    }

    pub fn i32(&mut self, number: u8, value: i32) {
        self.field(number, I32);
        zigzag(&mut self.bytes, i64::from(value));
    }

    pub fn i64(&mut self, number: u8, value: i64) {
        self.field(number, I64);
        zigzag(&mut self.bytes, value);
    }

    fn text(&mut self, value: &str) {
        variable(&mut self.bytes, value.len() as u64);
        self.bytes.extend(value.as_bytes());
    }

    pub fn string(&mut self, number: u8, value: &str) {
        self.field(number, BINARY);
        self.text(value);
    }

    pub fn strings(&mut self, number: u8, values: &[&str]) {
        self.field(number, LIST);
        list_header(&mut self.bytes, values.len(), BINARY);
        values.iter().for_each(|value| self.text(value));
    }

    pub fn numbers(&mut self, number: u8, values: &[i32]) {
        self.field(number, LIST);
        list_header(&mut self.bytes, values.len(), I32);
        values.iter().for_each(|&value| zigzag(&mut self.bytes, i64::from(value)));
    }

    /// A list of finished structs.
    pub fn list(&mut self, number: u8, values: &[Vec<u8>]) {
        self.field(number, LIST);
        list_header(&mut self.bytes, values.len(), STRUCT);
        values.iter().for_each(|value| self.bytes.extend(value));
    }

    pub fn part(&mut self, number: u8, part: Self) {
        self.field(number, STRUCT);
        self.bytes.extend(part.end());
    }

    /// A union whose chosen member is an empty struct.
    pub fn choice(&mut self, number: u8, member: u8) {
        let mut union = Self::default();
        union.part(member, Self::default());
        self.part(number, union);
    }

    pub fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}
