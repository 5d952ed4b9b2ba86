//! Writes a [`Drawing`] as SVG.

use std::fmt::Write;

use base64::prelude::{BASE64_STANDARD, Engine};

use crate::drawing::{Anchor, Drawing, Mark, Paint};

/// Where an SVG will be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SvgUse {
    /// A file of its own: white paper, fixed colours.
    File,
    /// Inside a page that defines `--ink`, `--muted`, `--grid`, `--paper`, light or dark; no background.
    Inline,
}

/// Text with the five characters of XML escaped, for SVG and HTML alike. Control characters, which XML cannot hold at
/// all, and marks of writing direction are written out.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in dataset::printable_lines(text).chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Words for a page: escaped, with `code` between backticks set as such.
pub(crate) fn prose(text: &str) -> String {
    let parts: Vec<String> = text.split('`').map(escape).collect();
    // A backtick without a partner is only left out.
    let (last, is_code) = (parts.len() - 1, |index: usize| index % 2 == 1);
    let part = |(index, part): (usize, &String)| {
        if is_code(index) && index < last { format!("<code>{part}</code>") } else { part.clone() }
    };
    parts.iter().enumerate().map(part).collect()
}

/// The paper of a file of its own.
const WHITE: &str = "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";

/// A drawing that was written as a file, for use inside a page: what [`SvgUse::Inline`] would have
/// written, but for what is said to somebody who points at it.
pub fn inline(file: &str) -> String {
    let mut svg = file.replacen(WHITE, "", 1);
    for paint in [Paint::Ink, Paint::Muted, Paint::Grid, Paint::Paper] {
        let quoted = |purpose| format!("=\"{}\"", colour(paint, purpose));
        svg = svg.replace(&quoted(SvgUse::File), &quoted(SvgUse::Inline));
    }
    svg
}

fn colour(paint: Paint, purpose: SvgUse) -> String {
    let [r, g, b] = paint.light();
    let hex = format!("#{r:02x}{g:02x}{b:02x}");
    let name = match paint {
        Paint::Ink => "--ink",
        Paint::Muted => "--muted",
        Paint::Grid => "--grid",
        Paint::Paper => "--paper",
        _ => return hex,
    };
    if purpose == SvgUse::Inline { format!("var({name},{hex})") } else { hex }
}

/// A coordinate with at most two decimals.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

fn points(list: &[(f64, f64)]) -> String {
    list.iter().map(|(x, y)| format!("{},{}", number(*x), number(*y))).collect::<Vec<_>>().join(" ")
}

pub(crate) fn write(drawing: &Drawing, purpose: SvgUse) -> String {
    let (width, height) = (number(drawing.width), number(drawing.height));
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" role=\"img\" font-family=\"system-ui, Helvetica, Arial, sans-serif\">\n\
         <title>{}</title>\n",
        escape(&drawing.description)
    );
    if purpose == SvgUse::File {
        svg.push_str(WHITE);
    }
    for mark in &drawing.marks {
        write_mark(&mut svg, mark, purpose);
        svg.push('\n');
    }
    svg.push_str("</svg>\n");
    svg
}

// Writing into a String cannot fail, so the results of `write!` are dropped.
fn write_mark(svg: &mut String, mark: &Mark, purpose: SvgUse) {
    let colour = |paint| colour(paint, purpose);
    let rectangle = |[x, y, w, h]: [f64; 4]| {
        format!(
            "x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"",
            number(x),
            number(y),
            number(w.max(0.0)),
            number(h.max(0.0))
        )
    };
    let _ = match mark {
        Mark::Rectangle(area, paint, opacity) => {
            write!(svg, "<rect {} fill=\"{}\" fill-opacity=\"{opacity}\"/>", rectangle(*area), colour(*paint))
        }
        Mark::Frame(area, paint, stroke) => write!(
            svg,
            "<rect {} fill=\"none\" stroke=\"{}\" stroke-width=\"{stroke}\"/>",
            rectangle(*area),
            colour(*paint)
        ),
        Mark::Line { points: list, paint, width_px, dashed } => write!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{width_px}\" \
             stroke-linejoin=\"round\" stroke-linecap=\"round\"{}/>",
            points(list),
            colour(*paint),
            if *dashed { " stroke-dasharray=\"5 4\"" } else { "" }
        ),
        Mark::Area(list, paint, opacity) => write!(
            svg,
            "<polygon points=\"{}\" fill=\"{}\" fill-opacity=\"{opacity}\"/>",
            points(list),
            colour(*paint)
        ),
        Mark::Disc((x, y), radius, paint) => write!(
            svg,
            "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{}\"/>",
            number(*x),
            number(*y),
            number(*radius),
            colour(*paint)
        ),
        Mark::Text(text) => {
            let anchor = match text.anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            };
            let (x, y) = (number(text.at.0), number(text.at.1));
            let turn =
                if text.upwards { format!(" transform=\"rotate(-90 {x} {y})\"") } else { String::new() };
            let weight = if text.bold { " font-weight=\"600\"" } else { "" };
            write!(
                svg,
                "<text x=\"{x}\" y=\"{y}\" font-size=\"{}\" text-anchor=\"{anchor}\" fill=\"{}\"{weight}{turn}>{}</text>",
                number(text.size_px),
                colour(text.paint),
                escape(&text.text)
            )
        }
        Mark::Bitmap(area, image) => match image.to_png() {
            Ok(png) => write!(
                svg,
                "<image {} preserveAspectRatio=\"none\" href=\"data:image/png;base64,{}\"/>",
                rectangle(*area),
                BASE64_STANDARD.encode(&png)
            ),
            Err(_) => Ok(()),
        },
        Mark::Told { mark, .. } if purpose == SvgUse::File => {
            write_mark(svg, mark, purpose);
            Ok(())
        }
        Mark::Told { mark, name, values, of } => {
            let mut inner = String::new();
            write_mark(&mut inner, mark, purpose);
            let attribute = |name: &str, value: &str| match value {
                "" => String::new(),
                value => format!(" data-{name}=\"{}\"", escape(value)),
            };
            let values = values.as_ref().map_or_else(String::new, |values| {
                let points: Vec<String> = values.points.iter().map(|point| point.join(" ")).collect();
                let [x, y] = &values.axes;
                [attribute("x", x), attribute("y", y), attribute("values", &points.join("|"))].concat()
            });
            let (of, name) = (attribute("of", of), escape(name));
            write!(svg, "<g data-name=\"{name}\"{values}{of}>{inner}<title>{name}</title></g>")
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_any_characters_are_legal_xml() {
        let name = "a<b>&\u{1b}[2J\u{0}\u{202e}\u{ffff}\r";
        assert_eq!(escape(name), "a&lt;b&gt;&amp;\\u{1b}[2J\\u{0}\\u{202e}\\u{ffff}\\r");
        assert_eq!(escape("two\nlines"), "two\nlines");
        assert_eq!(prose("run `a < b` now"), "run <code>a &lt; b</code> now");
        assert_eq!((prose("one ` alone"), prose("`x`")), ("one  alone".into(), "<code>x</code>".into()));
    }
}
