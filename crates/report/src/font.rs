//! A stroke font for images: every character is a few lines on a small grid, so it can be drawn at any size.
//!
//! Capitals are 8 units high (y 0 at the top, 8 on the baseline), small letters begin at y 3, descenders end at 10.
//! A glyph is a list of strokes separated by blanks; a stroke is a list of points, each two base-36 digits `xy`.
//! `~` before a stroke rounds its corners, `@` rounds it and closes it. A stroke of one point is a dot.
//! Letters with marks are a letter and marks above or below it; of other scripts the font has no letters, and spells them in Latin ones.

use deunicode::deunicode_char;
use unicode_normalization::UnicodeNormalization;

/// Units of the grid in an em.
const UNITS_PER_EM: f64 = 11.0;
/// Space between characters, in units.
const SPACING: f64 = 1.8;
/// Width of a blank, in units.
const BLANK: f64 = 1.6;

/// What is drawn for a character that the font has not, and cannot spell.
const BOX: &str = "00 40 48 08 00";

/// The strokes of `character`; a box where the font has none.
fn glyph(character: char) -> &'static str {
    own_glyph(character).unwrap_or(BOX)
}

/// The strokes of `character`, where the font has it.
fn own_glyph(character: char) -> Option<&'static str> {
    Some(match character {
        ' ' => "",
        'A' => "08 30 68|15 55",
        'B' => "30 00 08 38|04 34|~30 50 54 34|~34 64 68 38",
        'C' => "~61 50 10 02 06 18 58 67",
        'D' => "20 00 08 28|~20 60 68 28",
        'E' => "50 00 08 58|04 44",
        'F' => "50 00 08|04 44",
        'G' => "~61 50 10 02 06 18 58 66|66 64 44",
        'H' => "00 08|60 68|04 64",
        'I' => "00 08",
        'J' => "40 45|~45 48 08 06",
        'K' => "00 08|50 05|23 58",
        'L' => "00 08 58",
        'M' => "08 00 36 60 68",
        'N' => "08 00 68 60",
        'O' => "@10 50 62 66 58 18 06 02",
        'P' => "30 00 08|34 04|~30 60 64 34",
        'Q' => "@10 50 62 66 58 18 06 02|45 69",
        'R' => "30 00 08|34 04|~30 60 64 34|34 68",
        'S' => "~61 50 10 02 14 54 66 58 18 07",
        'T' => "00 60|30 38",
        'U' => "00 05|~05 08 68 65|65 60",
        'V' => "00 38 60",
        'W' => "00 28 41 68 80",
        'X' => "00 68|60 08",
        'Y' => "00 34 60|34 38",
        'Z' => "00 60 08 68",
        '0' => "@10 40 52 56 48 18 06 02",
        '1' => "12 30 38",
        '2' => "~01 00 50 53 08|08 58",
        '3' => "~01 00 50 54 24|~24 54 58 08 07",
        '4' => "48 40 05 55",
        '5' => "50 00 04|~04 13 53 58 08 07",
        '6' => "~51 40 10 03 06|@13 43 55 56 48 18 06 05",
        '7' => "00 50 28",
        '8' => "@10 40 51 53 44 14 03 01|@14 44 55 57 48 18 07 05",
        '9' => "@10 40 52 53 45 15 03 02|~52 55 48 18 07",
        'a' => "@13 33 44 47 38 18 07 04|43 48",
        'b' => "00 08|@13 33 44 47 38 18 07 04",
        'c' => "~44 33 13 04 07 18 38 47",
        'd' => "40 48|@13 33 44 47 38 18 07 04",
        'e' => "05 45|~45 43 13 04 07 18 38 47",
        'f' => "~30 10 12|12 18|03 33",
        'g' => "43 48|@13 33 44 47 38 18 07 04|~48 4a 0a 09",
        'h' => "00 08|~05 03 43 45|45 48",
        'i' => "03 08|01",
        'j' => "23 28|~28 2a 0a|21",
        'k' => "00 08|43 06|25 48",
        'l' => "00 08",
        'm' => "03 08|~05 03 33 35|35 38|~35 33 63 65|65 68",
        'n' => "03 08|~05 03 43 45|45 48",
        'o' => "@13 33 44 47 38 18 07 04",
        'p' => "03 0a|@13 33 44 47 38 18 07 04",
        'q' => "43 4a|@13 33 44 47 38 18 07 04",
        'r' => "03 08|~05 03 33",
        's' => "~44 33 13 04 15 36 47 38 18 07",
        't' => "11 16|~16 18 38|03 33",
        'u' => "03 06|~06 08 48 46|43 48",
        'v' => "03 28 43",
        'w' => "03 18 34 58 63",
        'x' => "03 48|43 08",
        'y' => "03 28|43 28 1a",
        'z' => "03 43 08 48",
        '.' => "08",
        ',' => "18 0a",
        ':' => "04|08",
        ';' => "14|18 0a",
        '!' => "00 05|08",
        '?' => "~01 00 40 43 25|25 26|28",
        '-' => "05 35",
        '\u{2013}' => "05 55",
        '\u{2212}' | '\u{2014}' => "05 65",
        '+' => "05 45|23 27",
        '=' => "04 44|06 46",
        '/' => "40 09",
        '\\' => "00 49",
        '(' => "~20 01 08 29",
        ')' => "~00 21 28 09",
        '[' => "20 00 09 29",
        ']' => "00 20 29 09",
        '{' => "~30 10 13 05|~05 16 19 39",
        '}' => "~00 20 23 35|~35 26 29 09",
        '|' => "00 09",
        '_' => "09 59",
        '%' => "@00 20 22 02|60 08|@46 66 68 48",
        '*' => "21 25|03 43|12 34|32 14",
        '"' => "00 02|20 22",
        '\'' => "00 02",
        '`' => "00 11",
        '<' => "42 05 48",
        '>' => "02 45 08",
        '#' => "20 18|50 48|03 63|05 65",
        '&' => "~68 02 00 30 32 05 08 48 65",
        '@' => "@10 60 71 77 68 18 07 01|@23 43 55 46 26 14|~53 56 76",
        '$' => "~61 50 10 02 14 54 66 58 18 07|30 38",
        '^' => "02 20 42",
        '~' => "~06 03 47 44",
        '\u{b0}' => "@00 20 22 02",
        '\u{b2}' => "~01 00 20 22 04|04 24",
        '\u{b1}' => "04 44|22 26|08 48",
        '\u{d7}' => "03 47|43 07",
        '\u{b7}' => "05",
        '\u{2192}' => "05 65|43 65 47",
        '\u{2265}' => "01 43 05|08 48",
        '\u{2264}' => "41 03 45|08 48",
        '\u{2020}' => "20 28|02 42",
        '\u{2026}' => "08|38|68",
        DOTLESS => "03 08",
        _ => return None,
    })
}

/// The i that marks are put on.
const DOTLESS: char = '\u{131}';

/// The strokes of a mark on a letter, two units wide. Those above it are between 0 and 2, as on small letters.
fn mark(character: char) -> Option<&'static str> {
    Some(match character {
        '\u{300}' => "00 22",
        '\u{301}' => "02 20",
        '\u{302}' => "02 10 22",
        '\u{303}' => "~02 00 22 20",
        '\u{304}' => "01 21",
        '\u{306}' => "~00 02 22 20",
        '\u{307}' => "11",
        '\u{308}' => "01|21",
        '\u{30a}' => "@00 20 22 02",
        '\u{30b}' => "02 10|22 30",
        '\u{30c}' => "00 12 20",
        '\u{323}' => "1a",
        '\u{327}' => "~18 29 2a 0a",
        '\u{328}' => "~18 09 0a 2a",
        _ => return None,
    })
}

/// A character as it is drawn, and the marks on it.
struct Letter {
    character: char,
    marks: Vec<char>,
}

impl Letter {
    /// How far marks are moved up, in units: letters that are as high as capitals have theirs above that.
    fn lift(&self) -> f64 {
        if self.character.is_uppercase() || "bdfhklt".contains(self.character) { 3.0 } else { 0.0 }
    }
}

/// The letters that `text` is drawn with.
fn letters(text: &str) -> Vec<Letter> {
    let mut letters: Vec<Letter> = Vec::new();
    let plain = |character: char| Letter { character, marks: Vec::new() };
    for character in text.nfd() {
        if own_glyph(character).is_some() {
            letters.push(plain(character));
        } else if unicode_normalization::char::is_combining_mark(character) {
            // A mark that the font has not is left away.
            if let Some(last) = letters.last_mut().filter(|_| mark(character).is_some()) {
                last.marks.push(character);
                if last.character == 'i' && character < '\u{320}' {
                    last.character = DOTLESS;
                }
            }
        } else {
            match deunicode_char(character) {
                Some(spelled) => letters.extend(spelled.chars().map(plain)),
                None => letters.push(plain(character)),
            }
        }
    }
    letters
}

/// A character's width in units, without spacing.
fn units(character: char) -> f64 {
    if character == ' ' {
        return BLANK;
    }
    let columns = glyph(character).split([' ', '|']).filter_map(|point| {
        point.trim_start_matches(['~', '@']).chars().next().and_then(|column| column.to_digit(36))
    });
    f64::from(columns.max().unwrap_or(0))
}

/// The width of `text` at `size_px`, as this font draws it; near enough to what browsers make of it for layout.
pub fn width(text: &str, size_px: f64) -> f64 {
    let units: f64 = letters(text).iter().map(|letter| units(letter.character) + SPACING).sum();
    units * size_px / UNITS_PER_EM
}

/// The lines of `text` at `size_px`, from x = 0 rightwards, with the baseline at y = 0.
pub fn strokes(text: &str, size_px: f64) -> Vec<Vec<(f64, f64)>> {
    let unit = size_px / UNITS_PER_EM;
    let mut x = SPACING / 2.0;
    let mut lines = Vec::new();
    let mut draw = |strokes: &str, x: f64, y: f64| {
        for stroke in strokes.split('|').filter(|stroke| !stroke.is_empty()) {
            let line = shape(stroke).into_iter().map(|(px, py)| ((px + x) * unit, (py + y - 8.0) * unit));
            lines.push(line.collect());
        }
    };
    for letter in letters(text) {
        let width = units(letter.character);
        draw(glyph(letter.character), x, 0.0);
        for &character in &letter.marks {
            let is_below = character >= '\u{320}';
            let up = if is_below { 0.0 } else { letter.lift() };
            draw(mark(character).unwrap_or_default(), x + width / 2.0 - 1.0, -up);
        }
        x += width + SPACING;
    }
    lines
}

fn shape(stroke: &str) -> Vec<(f64, f64)> {
    let closed = stroke.starts_with('@');
    let rounded = closed || stroke.starts_with('~');
    let mut points: Vec<(f64, f64)> = stroke
        .trim_start_matches(['~', '@'])
        .split(' ')
        .filter_map(|point| {
            let mut digits = point.chars().filter_map(|digit| digit.to_digit(36));
            Some((f64::from(digits.next()?), f64::from(digits.next()?)))
        })
        .collect();
    if rounded {
        for _ in 0..3 {
            points = cut_corners(&points, closed);
        }
    }
    if closed && let Some(&first) = points.first() {
        points.push(first);
    }
    points
}

/// One round of Chaikin's corner cutting; the ends of an open line stay.
fn cut_corners(points: &[(f64, f64)], closed: bool) -> Vec<(f64, f64)> {
    let between = |a: (f64, f64), b: (f64, f64), t: f64| (a.0 + (b.0 - a.0) * t, a.1 + (b.1 - a.1) * t);
    let mut cut = Vec::with_capacity(2 * points.len());
    let segments = if closed { points.len() } else { points.len().saturating_sub(1) };
    for i in 0..segments {
        let (a, b) = (points[i], points[(i + 1) % points.len()]);
        cut.push(if !closed && i == 0 { a } else { between(a, b, 0.25) });
        cut.push(if !closed && i + 1 == segments { b } else { between(a, b, 0.75) });
    }
    cut
}

/// `text` and its size so that it is no wider than `room`: at most `size`, at least `least`; where that does not suffice, without
/// its middle.
pub(crate) fn fitted(text: &str, room: f64, size: f64, least: f64) -> (String, f64) {
    let own = (size * room / width(text, size).max(1.0)).clamp(least, size);
    let letters: Vec<char> = text.chars().collect();
    let mut kept = letters.len();
    let mut shown = text.to_owned();
    while width(&shown, own) > room * 1.001 && kept > 3 {
        kept -= 1;
        let (first, last) = (&letters[..kept / 2], &letters[letters.len() - kept.div_ceil(2)..]);
        shown = first.iter().chain(&['\u{2026}']).chain(last).collect();
    }
    (shown, own)
}

/// `text` in lines of at most `room`, broken at spaces where it can be.
pub(crate) fn lines(text: &str, room: f64, size: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if width(&format!("{line} {word}"), size) <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_printable_characters_have_their_own_glyph() {
        let glyphs: std::collections::HashSet<_> = (33_u8..127).map(|c| glyph(char::from(c))).collect();
        // I, l, | and the quotes may look alike.
        assert!(glyphs.len() >= 92, "{} different glyphs", glyphs.len());
        assert!(!glyphs.contains(glyph('\u{4e00}')));
    }

    /// The characters of `text` as they are drawn, and how many marks are on them.
    fn drawn(text: &str) -> (String, usize) {
        let letters = letters(text);
        (
            letters.iter().map(|letter| letter.character).collect(),
            letters.iter().map(|letter| letter.marks.len()).sum(),
        )
    }

    #[test]
    fn letters_have_their_marks_and_other_scripts_are_spelled() {
        assert_eq!(
            drawn("Stühle, naïve, Čeština, ångström"),
            ("Stuhle, na\u{131}ve, Cestina, angstrom".to_owned(), 6)
        );
        // Composed or not, it is the same picture.
        assert_eq!(strokes("\u{fc}", 20.0), strokes("u\u{308}", 20.0));
        assert_ne!(strokes("\u{fc}", 20.0), strokes("u", 20.0));
        assert_eq!(width("\u{fc}", 20.0), width("u", 20.0));
        assert_eq!(drawn("Straße Øre стул"), ("Strasse Ore stul".to_owned(), 0));
        assert!(drawn("椅子").0.starts_with("Yi"));
        // Nothing is spelled that the font has, and nothing of it is a box.
        let own = "R\u{b2} \u{b1} \u{b0} \u{d7} \u{b7} \u{2192} \u{2264} \u{2265} \u{2020} \u{2013} \u{2026} \u{2212}";
        assert_eq!(drawn(own), (own.to_owned(), 0));
        assert!(own.chars().all(|character| own_glyph(character).is_some()));
        assert_eq!(glyph(drawn("\u{e000}").0.chars().next().unwrap()), BOX);
    }

    #[test]
    fn marks_lie_above_and_below_their_letters() {
        let heights = |text: &str| {
            let points = strokes(text, 11.0).concat();
            (
                points.iter().map(|p| p.1).fold(f64::MAX, f64::min),
                points.iter().map(|p| p.1).fold(f64::MIN, f64::max),
            )
        };
        // Small letters begin 5 above the line, capitals 8.
        assert_eq!((heights("u").0, heights("U").0, heights("u").1), (-5.0, -8.0, 0.0));
        assert!(heights("ü").0 <= -6.5 && heights("Ü").0 <= -9.5 && heights("ç").1 >= 1.5);
        assert_eq!(heights("í"), (-8.0, 0.0));
    }

    #[test]
    fn what_is_too_long_loses_its_middle_and_nothing_else() {
        for text in
            ["kitchen_cupboard_upper_left_corner", "a_very_long_name_over_the_line_and_beyond", "Übergröße"]
        {
            for room in [50.0, 70.0, 90.0, 110.0] {
                let (shown, size) = fitted(text, room, 12.0, 11.0);
                assert!(width(&shown, size) <= room * 1.001, "{shown}");
                let (first, last) = shown.split_once('\u{2026}').unwrap_or((text, ""));
                assert!(text.starts_with(first) && text.ends_with(last), "{shown} of {text}");
                let [first, last] = [first, last].map(|part| part.chars().count());
                assert!(shown == text || last.abs_diff(first) <= 1, "{shown}");
            }
        }
        assert_eq!(fitted("short", 90.0, 12.0, 11.0), ("short".to_owned(), 12.0));
        assert_eq!(fitted("", 0.0, 12.0, 11.0).0, "");
    }

    #[test]
    fn strokes_stay_within_the_text() {
        let text = "Rotation R2, gjpqy (0.75)";
        let size = 22.0;
        for (x, y) in strokes(text, size).concat() {
            assert!(x >= 0.0 && x <= width(text, size) && y >= -0.75 * size && y <= 0.25 * size);
        }
        assert!(width("mm", 10.0) > width("ii", 10.0));
        assert_eq!(width("", 10.0), 0.0);
    }
}
