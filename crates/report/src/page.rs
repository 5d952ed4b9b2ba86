//! One self-contained HTML page: style, drawings and images inside; light and dark by the reader's setting; usable
//! on a phone.

use crate::drawing::Drawing;
use crate::pictures::Pictures;
use crate::svg::{self, SvgUse, escape, prose};
use crate::table::Table;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Wide drawings are not shrunk below this many pixels; they scroll.
const LEAST_WIDTH: f64 = 620.0;

/// A page under construction: sections of text, tables, drawings and images.
#[derive(Clone, Debug)]
pub struct Page {
    title: String,
    sections: Vec<(String, String)>,
    pictures: Pictures,
    /// The conditions of the table before, in this section.
    conditions: String,
}

impl Page {
    /// An empty page.
    pub fn new(title: impl Into<String>) -> Self {
        let sections = vec![(String::new(), String::new())];
        Self { title: title.into(), sections, pictures: Pictures::default(), conditions: String::new() }
    }

    /// Begins a section.
    pub fn section(&mut self, heading: impl Into<String>) {
        self.sections.push((heading.into(), String::new()));
        self.conditions.clear();
    }

    fn add(&mut self, html: &str) {
        if let Some((_, body)) = self.sections.last_mut() {
            body.push_str(html);
        }
    }

    /// A paragraph of plain words.
    pub fn paragraph(&mut self, text: &str) {
        self.add(&format!("<p>{}</p>\n", prose(text)));
    }

    /// A paragraph that is not to be overlooked.
    pub fn warning(&mut self, text: &str) {
        self.add(&format!("<p class=\"warning\">{}</p>\n", prose(text)));
    }

    /// A table.
    pub fn table(&mut self, table: &Table) {
        let html = table.to_html(&mut self.conditions);
        self.add(&html);
    }

    /// Tables that are folded away until asked for, behind one heading.
    pub fn folded_tables(&mut self, heading: &str, tables: &[Table]) {
        self.fold(heading, |page| tables.iter().for_each(|table| page.table(table)));
    }

    /// What `fill` adds to this section is folded away until asked for.
    pub fn fold<T>(&mut self, heading: &str, fill: impl FnOnce(&mut Self) -> T) -> T {
        self.add(&format!("<details><summary>{}</summary>\n", prose(heading)));
        // What is folded away cannot be pointed at from below.
        let before = std::mem::take(&mut self.conditions);
        let filled = fill(self);
        self.conditions = before;
        self.add("</details>\n");
        filled
    }

    /// Words in fixed pitch that are folded away until asked for.
    pub fn folded_text(&mut self, heading: &str, text: &str) {
        let html = format!(
            "<details><summary>{}</summary>\n<pre>{}</pre></details>\n",
            escape(heading),
            escape(text)
        );
        self.add(&html);
    }

    /// A drawing in the page's colours.
    pub fn drawing(&mut self, drawing: &Drawing, caption: &str) {
        self.figure(&drawing.to_svg(SvgUse::Inline), drawing.width, caption);
    }

    /// A drawing that was written as an SVG file, in the page's colours.
    pub fn svg_file(&mut self, file: &str, caption: &str) {
        let width = file.split("viewBox=\"0 0 ").nth(1).and_then(|rest| rest.split(' ').next());
        let width = width.and_then(|width| width.parse().ok()).unwrap_or(LEAST_WIDTH);
        self.figure(&svg::inline(file), width, caption);
    }

    fn figure(&mut self, svg: &str, width: f64, caption: &str) {
        let svg = self.pictures.share(svg);
        let html = format!(
            "<figure class=\"drawing\"><div class=\"scroll\" tabindex=\"0\" style=\"--least: {:.0}px\">{svg}</div>{}</figure>\n",
            width.min(LEAST_WIDTH),
            caption_of(caption)
        );
        self.add(&html);
    }

    /// Several drawings, side by side where there is room.
    pub fn drawings(&mut self, drawings: &[Drawing]) {
        let mut figure = |drawing: &Drawing| {
            let svg = self.pictures.share(&drawing.to_svg(SvgUse::Inline));
            format!("<figure class=\"drawing\">{svg}</figure>\n")
        };
        let all: String = drawings.iter().map(&mut figure).collect();
        self.add(&format!("<div class=\"row\">\n{all}</div>\n"));
    }

    /// The page as HTML.
    pub fn to_html(&self) -> String {
        let mut html = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n\
             </head>\n<body>\n<main>\n<h1>{title}</h1>\n",
            title = escape(&self.title)
        );
        let headings: Vec<(usize, &str)> = self
            .sections
            .iter()
            .enumerate()
            .filter(|(_, (heading, body))| !heading.is_empty() && !body.is_empty())
            .map(|(index, (heading, _))| (index, heading.as_str()))
            .collect();
        let mut contents = String::new();
        if headings.len() > 1 {
            for (index, heading) in &headings {
                contents.push_str(&format!("<a href=\"#section-{index}\">{}</a>\n", escape(heading)));
            }
            contents = format!("<nav>\n{contents}</nav>\n");
        }
        for (index, (heading, body)) in self.sections.iter().enumerate() {
            if heading.is_empty() {
                html.push_str(body);
                html.push_str(&contents);
            } else if !body.is_empty() {
                html.push_str(&format!(
                    "<section id=\"section-{index}\">\n<h2>{}</h2>\n{body}</section>\n",
                    escape(heading)
                ));
            }
        }
        html.push_str("</main>\n");
        html.push_str(&self.pictures.definitions());
        html.push_str(&format!("<script>\n{SCRIPT}</script>\n</body>\n</html>\n"));
        html
    }
}

fn caption_of(caption: &str) -> String {
    if caption.is_empty() { String::new() } else { format!("<figcaption>{}</figcaption>", prose(caption)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LineChart;

    #[test]
    fn a_page_is_self_contained_and_balanced() {
        let mut page = Page::new("A <title>");
        page.paragraph("x < y & z");
        page.section("One");
        page.drawing(&LineChart::default().draw(300.0, 200.0), "a chart");
        page.svg_file(&LineChart::default().draw(300.0, 200.0).to_svg(SvgUse::File), "");
        page.section("Two");
        page.table(&Table { caption: "t".into(), ..Table::default() });
        page.folded_text("configuration", "a = \"b\"");
        page.section("Empty");
        let html = page.to_html();
        assert!(
            !html.contains("http://")
                || html.matches("http").count() == html.matches("http://www.w3.org/2000/svg").count()
        );
        for tag in ["section", "figure", "details", "main", "svg", "nav", "pre", "script"] {
            let opened = html.matches(&format!("<{tag}")).count();
            assert_eq!(opened, html.matches(&format!("</{tag}>")).count(), "{tag}");
        }
        assert!(html.contains("x &lt; y &amp; z") && !html.contains("Empty"));
    }
}
