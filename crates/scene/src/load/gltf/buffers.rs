//! The binary data of a glTF file: buffers inside and outside of it, and the accessors that give it a type.

use super::super::files::Files;
use super::MAX_BYTES;
use gltf::json::Root;
use gltf::json::accessor::{Accessor, ComponentType, Type};
use gltf::json::validation::Checked;
use std::io::Read;

/// The buffers of a document, each read when it is first needed.
pub struct Buffers {
    /// The data of a binary file.
    binary: Option<Vec<u8>>,
    loaded: Vec<Option<Vec<u8>>>,
}

/// Where the elements of an accessor lie in a buffer.
struct Layout {
    buffer: usize,
    start: usize,
    stride: usize,
    count: usize,
    kind: ComponentType,
    components: usize,
    normalised: bool,
}

impl Buffers {
    pub fn new(root: &Root, binary: Option<Vec<u8>>) -> Self {
        Self { binary, loaded: vec![None; root.buffers.len()] }
    }

    /// The elements of an accessor as `N` floats each; the error is a sentence.
    pub fn read<const N: usize>(
        &mut self,
        root: &Root,
        accessor: usize,
        files: &Files,
        limit: usize,
    ) -> Result<Vec<[f32; N]>, String> {
        let definition = find(root, accessor)?;
        let mut values = self.elements(root, definition, N, files, limit)?;
        if let Some(sparse) = &definition.sparse {
            let count = usize::try_from(sparse.count.0).unwrap_or(usize::MAX);
            let Checked::Valid(kind) = sparse.indices.component_type else {
                return Err("sparse indices of an unknown type".to_owned());
            };
            let view = |view: usize, offset: u64, kind, components, normalised| {
                Layout::in_view(root, view, offset, count, kind, components, normalised)
            };
            let at =
                view(sparse.indices.buffer_view.value(), sparse.indices.byte_offset.0, kind.0, 1, false)?;
            let (kind, _) = types(definition)?;
            let normalised = definition.normalized;
            let new =
                view(sparse.values.buffer_view.value(), sparse.values.byte_offset.0, kind, N, normalised)?;
            let indices = self.decode_indices(root, &at, files)?;
            let replacements: Vec<[f32; N]> = self.decode(root, &new, files)?;
            for (index, value) in indices.into_iter().zip(replacements) {
                *values
                    .get_mut(index as usize)
                    .ok_or_else(|| format!("sparse index {index} is too large"))? = value;
            }
        }
        Ok(values)
    }

    /// Colours of three or four components; the fourth is dropped.
    pub fn read_colours(
        &mut self,
        root: &Root,
        accessor: usize,
        files: &Files,
        limit: usize,
    ) -> Result<Vec<[f32; 3]>, String> {
        let (_, components) = types(find(root, accessor)?)?;
        if components == 3 {
            return self.read::<3>(root, accessor, files, limit);
        }
        let colours = self.read::<4>(root, accessor, files, limit)?;
        Ok(colours.into_iter().map(|[r, g, b, _]| [r, g, b]).collect())
    }

    /// The entries of an accessor of indices.
    pub fn read_indices(
        &mut self,
        root: &Root,
        accessor: usize,
        files: &Files,
        limit: usize,
    ) -> Result<Vec<u32>, String> {
        let definition = find(root, accessor)?;
        let layout = Layout::of(root, definition, 1, limit)?.ok_or("indices without data")?;
        self.decode_indices(root, &layout, files)
    }

    /// The bytes of a buffer view.
    pub fn view(&mut self, root: &Root, view: usize, files: &Files) -> Result<&[u8], String> {
        let definition =
            root.buffer_views.get(view).ok_or_else(|| format!("there is no buffer view {view}"))?;
        let start = definition.byte_offset.map_or(0, |offset| offset.0);
        let end = start.checked_add(definition.byte_length.0);
        let bytes = self.buffer(root, definition.buffer.value(), files)?;
        let range = end.and_then(|end| Some(usize::try_from(start).ok()?..usize::try_from(end).ok()?));
        range
            .and_then(|range| bytes.get(range))
            .ok_or_else(|| format!("buffer view {view} exceeds its buffer"))
    }

    fn elements<const N: usize>(
        &mut self,
        root: &Root,
        definition: &Accessor,
        components: usize,
        files: &Files,
        limit: usize,
    ) -> Result<Vec<[f32; N]>, String> {
        match Layout::of(root, definition, components, limit)? {
            Some(layout) => self.decode(root, &layout, files),
            // Without data an accessor is all zeros; its size was checked against the limit.
            None => Ok(vec![[0.0; N]; usize::try_from(definition.count.0).unwrap_or_default()]),
        }
    }

    fn decode<const N: usize>(
        &mut self,
        root: &Root,
        layout: &Layout,
        files: &Files,
    ) -> Result<Vec<[f32; N]>, String> {
        let bytes = layout.bytes(self.buffer(root, layout.buffer, files)?)?;
        let size = layout.kind.size();
        let element = |start: usize| {
            std::array::from_fn(|i| float(&bytes[start + i * size..], layout.kind, layout.normalised))
        };
        Ok((0..layout.count).map(|i| element(i * layout.stride)).collect())
    }

    fn decode_indices(&mut self, root: &Root, layout: &Layout, files: &Files) -> Result<Vec<u32>, String> {
        let bytes = layout.bytes(self.buffer(root, layout.buffer, files)?)?;
        let index = |start: usize| match (&bytes[start..], layout.kind) {
            (&[a, ..], ComponentType::U8) => Ok(u32::from(a)),
            (&[a, b, ..], ComponentType::U16) => Ok(u32::from(u16::from_le_bytes([a, b]))),
            (&[a, b, c, d, ..], ComponentType::U32) => Ok(u32::from_le_bytes([a, b, c, d])),
            _ => Err("indices must be unsigned integers".to_owned()),
        };
        (0..layout.count).map(|i| index(i * layout.stride)).collect()
    }

    fn buffer(&mut self, root: &Root, index: usize, files: &Files) -> Result<&[u8], String> {
        let definition = root.buffers.get(index).ok_or_else(|| format!("there is no buffer {index}"))?;
        if definition.uri.is_none() {
            let binary = self.binary.as_deref().filter(|_| index == 0);
            return binary.ok_or_else(|| format!("buffer {index} has no data"));
        }
        if self.loaded[index].is_none() {
            let uri = definition.uri.as_deref().unwrap_or_default();
            if definition.byte_length.0 > MAX_BYTES {
                return Err(format!(
                    "buffer {index} claims {} bytes, more than {MAX_BYTES}",
                    definition.byte_length.0
                ));
            }
            let bytes = read_uri(uri, files, definition.byte_length.0)
                .map_err(|reason| format!("buffer {index}: {reason}"))?;
            self.loaded[index] = Some(bytes);
        }
        Ok(self.loaded[index].as_deref().unwrap_or_default())
    }
}

impl Layout {
    /// `None` for an accessor without a buffer view, whose count is then checked against `limit`.
    fn of(
        root: &Root,
        definition: &Accessor,
        components: usize,
        limit: usize,
    ) -> Result<Option<Self>, String> {
        let (kind, found) = types(definition)?;
        if found != components {
            return Err(format!("an accessor has {found} components, expected {components}"));
        }
        let count = usize::try_from(definition.count.0).unwrap_or(usize::MAX);
        if count > limit {
            return Err(format!("an accessor claims {count} elements, more than {limit}"));
        }
        let Some(view) = definition.buffer_view else { return Ok(None) };
        let offset = definition.byte_offset.map_or(0, |offset| offset.0);
        Self::in_view(root, view.value(), offset, count, kind, components, definition.normalized).map(Some)
    }

    fn in_view(
        root: &Root,
        view: usize,
        offset: u64,
        count: usize,
        kind: ComponentType,
        components: usize,
        normalised: bool,
    ) -> Result<Self, String> {
        let definition =
            root.buffer_views.get(view).ok_or_else(|| format!("there is no buffer view {view}"))?;
        let element = kind.size() * components;
        let stride = definition.byte_stride.map_or(element, |stride| stride.0);
        if stride < element {
            return Err(format!(
                "buffer view {view} has a stride of {stride}, but elements of {element} bytes"
            ));
        }
        let needed = (count as u64).saturating_sub(1).checked_mul(stride as u64);
        let needed = needed.and_then(|bytes| bytes.checked_add(element as u64)?.checked_add(offset));
        if count > 0 && needed.is_none_or(|needed| needed > definition.byte_length.0) {
            return Err(format!("an accessor of {count} elements exceeds buffer view {view}"));
        }
        let start = definition.byte_offset.map_or(0, |offset| offset.0).checked_add(offset);
        let start = start.and_then(|start| usize::try_from(start).ok()).ok_or("an offset is too large")?;
        Ok(Self { buffer: definition.buffer.value(), start, stride, count, kind, components, normalised })
    }

    /// The part of the buffer that holds the elements, checked to be there.
    fn bytes<'a>(&self, buffer: &'a [u8]) -> Result<&'a [u8], String> {
        if self.count == 0 {
            return Ok(&[]);
        }
        let length = (self.count - 1)
            .checked_mul(self.stride)
            .and_then(|bytes| bytes.checked_add(self.kind.size() * self.components));
        let end = length.and_then(|length| self.start.checked_add(length));
        end.and_then(|end| buffer.get(self.start..end))
            .ok_or_else(|| format!("an accessor exceeds buffer {} of {} bytes", self.buffer, buffer.len()))
    }
}

fn find(root: &Root, accessor: usize) -> Result<&Accessor, String> {
    root.accessors.get(accessor).ok_or_else(|| format!("there is no accessor {accessor}"))
}

fn types(definition: &Accessor) -> Result<(ComponentType, usize), String> {
    match (&definition.component_type, &definition.type_) {
        (Checked::Valid(kind), Checked::Valid(shape)) => {
            let components = match shape {
                Type::Scalar => 1,
                Type::Vec2 => 2,
                Type::Vec3 => 3,
                Type::Vec4 | Type::Mat2 => 4,
                Type::Mat3 => 9,
                Type::Mat4 => 16,
            };
            Ok((kind.0, components))
        }
        _ => Err("an accessor of an unknown type".to_owned()),
    }
}

/// One component as a float; integers are scaled to their range where they are normalised.
fn float(bytes: &[u8], kind: ComponentType, normalised: bool) -> f32 {
    let scale = |value: f32, largest: f32| if normalised { (value / largest).max(-1.0) } else { value };
    match (kind, bytes) {
        (ComponentType::I8, &[a, ..]) => scale(f32::from(a as i8), 127.0),
        (ComponentType::U8, &[a, ..]) => scale(f32::from(a), 255.0),
        (ComponentType::I16, &[a, b, ..]) => scale(f32::from(i16::from_le_bytes([a, b])), 32767.0),
        (ComponentType::U16, &[a, b, ..]) => scale(f32::from(u16::from_le_bytes([a, b])), 65535.0),
        (ComponentType::U32, &[a, b, c, d, ..]) => u32::from_le_bytes([a, b, c, d]) as f32,
        (ComponentType::F32, &[a, b, c, d, ..]) => f32::from_le_bytes([a, b, c, d]),
        _ => 0.0,
    }
}

/// The data behind a URI: inside it, or in a file under the root, of which no more than `length` bytes are read.
pub fn read_uri(uri: &str, files: &Files, length: u64) -> Result<Vec<u8>, String> {
    if let Some(data) = uri.strip_prefix("data:") {
        let (kind, data) = data.split_once(',').ok_or("a data URI without data")?;
        return if kind.ends_with(";base64") {
            base64(data.as_bytes()).ok_or_else(|| "a data URI that is not base64".to_owned())
        } else {
            Ok(percent_decoded(data))
        };
    }
    let path = files.resolve(files.folder(), &percent_decoded(uri))?;
    let mut bytes = Vec::new();
    std::fs::File::open(&path)
        .and_then(|file| file.take(length).read_to_end(&mut bytes))
        .map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(bytes)
}

/// A file name from a URI.
pub fn percent_decoded(uri: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(uri.len());
    let mut rest = uri.as_bytes();
    while let [first, after @ ..] = rest {
        let hex = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
        match (first, after) {
            (b'%', [high, low, after @ ..]) if hex(*high).is_some() && hex(*low).is_some() => {
                bytes.push(hex(*high).unwrap_or_default() << 4 | hex(*low).unwrap_or_default());
                rest = after;
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    bytes
}

/// Decodes base64 with or without padding.
fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let text = text
        .trim_ascii()
        .strip_suffix(b"==")
        .or(text.trim_ascii().strip_suffix(b"="))
        .unwrap_or(text.trim_ascii());
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 3);
    for group in text.chunks(4) {
        let mut bits = 0_u32;
        for &symbol in group {
            let value = match symbol {
                b'A'..=b'Z' => symbol - b'A',
                b'a'..=b'z' => symbol - b'a' + 26,
                b'0'..=b'9' => symbol - b'0' + 52,
                b'+' | b'-' => 62,
                b'/' | b'_' => 63,
                _ => return None,
            };
            bits = bits << 6 | u32::from(value);
        }
        let missing = 4 - group.len();
        if missing == 3 {
            return None;
        }
        let [_, a, b, c] = (bits << (6 * missing)).to_be_bytes();
        bytes.extend(&[a, b, c][..3 - missing]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_and_percent_signs_are_decoded() {
        for (text, expected) in [("", ""), ("TQ==", "M"), ("TWE=", "Ma"), ("TWFu", "Man"), ("TWFuTQ", "ManM")]
        {
            assert_eq!(base64(text.as_bytes()), Some(expected.as_bytes().to_vec()));
        }
        assert_eq!(base64(b"+/-_"), Some(vec![0xfb, 0xff, 0xbf]));
        assert!(base64(b"TQ=a").is_none() && base64(b"T").is_none() && base64(b"T*==").is_none());
        assert_eq!(percent_decoded("a%20b%2f%zz%"), b"a b/%zz%");
    }
}
