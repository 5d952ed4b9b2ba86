//! Text of unknown origin (names of files, classes, runs) made safe to print: control characters could drive a
//! terminal, newlines forge lines of output, marks of writing direction reorder what is read.

use std::borrow::Cow;
use std::path::Path;

/// `text` on one line: what is not to be printed as it is becomes an escape such as `\n` or `\u{1b}`.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, is_unsafe)
}

/// As [`printable`], for text of several lines: newlines and tabs stay.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |character| is_unsafe(character) && !matches!(character, '\n' | '\t'))
}

/// A path on one line; what is not UTF-8 in it is replaced.
pub fn printable_path(path: &Path) -> String {
    printable(&path.to_string_lossy()).into_owned()
}

fn escaped(text: &str, is_bad: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_bad) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_bad(character) {
            safe.extend(character.escape_default());
        } else {
            safe.push(character);
        }
    }
    Cow::Owned(safe)
}

fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            // Marks, embeddings, overrides and isolates of writing direction; separators of lines and paragraphs.
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
            | '\u{2028}' | '\u{2029}'
            // Not characters, and not allowed in XML.
            | '\u{fffe}' | '\u{ffff}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_drives_terminals_is_escaped_and_the_rest_is_not() {
        assert_eq!(printable("a\u{1b}[2Jb\n\u{7}\u{9b}\u{7f}"), "a\\u{1b}[2Jb\\n\\u{7}\\u{9b}\\u{7f}");
        assert_eq!(printable("gpj.\u{202e}exe\u{2066}"), "gpj.\\u{202e}exe\\u{2066}");
        assert_eq!(printable_lines("a\tb\nc\rd"), "a\tb\nc\\rd");
        for plain in ["", "02691156", "Stühle", "椅子", "a b'c\"d\\e", "👩‍🚀"] {
            assert!(matches!(printable(plain), Cow::Borrowed(text) if text == plain));
        }
    }
}
