//! Arrays in one piece of memory, so that they travel to the device in one copy.

use bytemuck::NoUninit;

/// Arrays one behind the other, each at a multiple of 16 bytes.
#[derive(Debug, Default)]
pub(super) struct Packed {
    /// All of them.
    pub bytes: Vec<u8>,
}

impl Packed {
    /// Appends an array; where it starts.
    pub fn add<T: NoUninit>(&mut self, part: &[T]) -> usize {
        self.bytes.resize(self.bytes.len().next_multiple_of(16), 0);
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytemuck::cast_slice(part));
        start
    }
}
