//! Reading text formats line by line in bounded memory, and the numbers in them.

use std::io::{BufRead, BufReader, Read};

/// A longer line is refused: no mesh needs one, and it keeps memory bounded.
const MAX_LINE_BYTES: usize = 16 << 20;
/// What some editors write at the beginning of a text file.
pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The lines of a text file, ended by LF, CR LF or CR.
pub(super) struct Lines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    number: u64,
    after_carriage_return: bool,
}

/// Why the next line could not be read.
#[derive(Debug)]
pub(super) enum LineError {
    Io(std::io::Error),
    TooLong(u64),
}

impl<R: Read> Lines<R> {
    pub fn new(reader: R) -> Self {
        Self {
            reader: BufReader::with_capacity(1 << 18, reader),
            line: Vec::new(),
            number: 0,
            after_carriage_return: false,
        }
    }

    /// The next line without its end, and its number from 1.
    pub fn next(&mut self) -> Result<Option<(u64, &[u8])>, LineError> {
        self.line.clear();
        self.number += 1;
        let mut anything = false;
        loop {
            let mut buffer = match self.reader.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(LineError::Io(error)),
            };
            if buffer.is_empty() {
                if anything {
                    break;
                }
                return Ok(None);
            }
            if std::mem::take(&mut self.after_carriage_return) && buffer[0] == b'\n' {
                self.reader.consume(1);
                continue;
            }
            anything = true;
            let end = buffer.iter().position(|&byte| byte == b'\n' || byte == b'\r');
            if let Some(end) = end {
                self.after_carriage_return = buffer[end] == b'\r';
                buffer = &buffer[..end];
            }
            if self.line.len() + buffer.len() > MAX_LINE_BYTES {
                return Err(LineError::TooLong(self.number));
            }
            self.line.extend_from_slice(buffer);
            let consumed = buffer.len() + usize::from(end.is_some());
            self.reader.consume(consumed);
            if end.is_some() {
                break;
            }
        }
        let text = match self.number {
            1 => self.line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&self.line),
            _ => &self.line,
        };
        Ok(Some((self.number, text)))
    }
}

/// Splits off the next word; the rest keeps its leading blanks.
pub(super) fn word<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let text = rest.trim_ascii_start();
    let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
    let (word, after) = text.split_at(end);
    *rest = after;
    (!word.is_empty()).then_some(word)
}

/// A finite number; the error is a sentence.
pub(super) fn number(word: &[u8]) -> Result<f64, String> {
    let value = match simple_decimal(word) {
        Some(value) => value,
        None => std::str::from_utf8(word)
            .ok()
            .and_then(|text| text.parse::<f64>().ok())
            .ok_or_else(|| format!("{:?} is not a number", shown(word)))?,
    };
    if (value as f32).is_finite() {
        Ok(value)
    } else {
        Err(format!("{:?} is not a finite number in single precision", shown(word)))
    }
}

/// Exactly what `str::parse` gives, for up to 15 digits without an exponent: both the digits and the power of ten
/// are exact, so the one division rounds correctly.
fn simple_decimal(word: &[u8]) -> Option<f64> {
    const POWERS: [f64; 16] =
        [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];
    let (negative, digits) = match word {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    let (mut mantissa, mut count, mut point) = (0_u64, 0, None);
    for &byte in digits {
        match byte {
            b'0'..=b'9' => {
                mantissa = mantissa * 10 + u64::from(byte - b'0');
                count += 1;
            }
            b'.' if point.is_none() => point = Some(count),
            _ => return None,
        }
    }
    if count == 0 || count > 15 {
        return None;
    }
    let value = mantissa as f64 / POWERS[count - point.unwrap_or(count)];
    Some(if negative { -value } else { value })
}

/// Text for a message: lossy and short.
pub(super) fn shown(bytes: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned();
    if bytes.len() > 60 {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(text: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let mut lines = Lines::new(text);
        let mut found = Vec::new();
        while let Some((number, line)) = lines.next().expect("reads") {
            found.push((number, line.to_vec()));
        }
        found
    }

    #[test]
    fn every_line_ending_counts_once() {
        let expected: Vec<(u64, Vec<u8>)> = vec![(1, b"a".to_vec()), (2, b"".to_vec()), (3, b"b c".to_vec())];
        for text in
            [&b"a\n\nb c\n"[..], b"a\r\n\r\nb c\r\n", b"a\r\rb c\r", b"a\n\nb c", b"\xef\xbb\xbfa\n\nb c"]
        {
            assert_eq!(all(text), expected);
        }
        assert!(all(b"").is_empty());
    }

    #[test]
    fn lines_have_a_bound() {
        let long = vec![b'x'; MAX_LINE_BYTES + 1];
        assert!(matches!(Lines::new(&long[..]).next(), Err(LineError::TooLong(1))));
    }

    #[test]
    fn numbers_are_finite() {
        for bad in ["nan", "inf", "-infinity", "1e39", "1e400", "x", "", ".", "-", "1,5", "0x10"] {
            assert!(number(bad.as_bytes()).is_err(), "{bad:?} was taken");
        }
        assert_eq!(number(b"-1.50"), Ok(-1.5));
        assert_eq!(number(b"+2e-3"), Ok(0.002));
        assert_eq!(number(b"7."), Ok(7.0));
        assert_eq!(number(b".25"), Ok(0.25));
    }

    proptest! {
        #[test]
        fn numbers_agree_with_the_standard_parser(text in "-?[0-9]{1,9}(\\.[0-9]{0,9})?") {
            prop_assert_eq!(number(text.as_bytes()), Ok(text.parse::<f64>().expect("a number")));
        }
    }
}
