//! Tables, written as Markdown, LaTeX, CSV, HTML or plain text.

mod conditions;
mod csv;
mod latex;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::entry::Rivals;
use crate::svg::{escape, prose};

/// Writes `tables` as Markdown, LaTeX and CSV to the files that `path` names for each ending; returns them. Where a CSV file
/// holds several, each begins with a line of one cell, its caption.
pub fn write_forms(tables: &[Table], path: impl Fn(&str) -> PathBuf) -> Result<Vec<PathBuf>> {
    let tables: Vec<_> = tables.iter().map(Table::with_conditions).collect();
    let join =
        |form: fn(&Table) -> String| tables.iter().map(|table| form(table)).collect::<Vec<_>>().join("\n");
    let as_csv = |table: &Table| match tables.len() {
        1 => table.to_csv(),
        _ => format!("{}\r\n{}", csv::csv(&table.caption), table.to_csv()),
    };
    let all_csv = tables.iter().map(|table| as_csv(table)).collect::<Vec<_>>().join("\r\n");
    let forms = [("md", join(Table::to_markdown)), ("tex", join(Table::to_latex)), ("csv", all_csv)];
    let mut files = Vec::new();
    for (ending, text) in forms {
        let path = path(ending);
        dataset::durable::write(&path, text.as_bytes())?;
        files.push(path);
    }
    Ok(files)
}

/// One cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Cell {
    /// Nothing was measured.
    #[default]
    Missing,
    /// Words.
    Text(String),
    /// A number to so many decimals, with the spread of repetitions where known.
    Number {
        /// The value.
        value: f64,
        /// How many decimals are shown.
        decimals: usize,
        /// Standard deviation over repetitions.
        spread: Option<f64>,
    },
}

impl Cell {
    /// A number without a spread, or [`Cell::Missing`].
    pub fn number(value: impl Into<Option<f64>>, decimals: usize) -> Self {
        match value.into() {
            Some(value) if value.is_finite() => Self::Number { value, decimals, spread: None },
            _ => Self::Missing,
        }
    }

    /// What a reader sees.
    pub fn text(&self) -> String {
        match self {
            Self::Missing => "\u{2013}".to_owned(),
            Self::Text(text) => dataset::printable(text).into_owned(),
            Self::Number { value, decimals, spread: None } => rounded(*value, *decimals),
            Self::Number { value, decimals, spread: Some(spread) } => {
                format!("{} \u{b1} {spread:.decimals$}", rounded(*value, *decimals))
            }
        }
    }

    fn value(&self) -> Option<f64> {
        match self {
            Self::Number { value, .. } => Some(*value),
            _ => None,
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// Which numbers of a column are good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Better {
    /// None is marked.
    #[default]
    Neither,
    /// The highest is marked.
    Higher,
    /// The lowest is marked.
    Lower,
}

/// One column.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// Its heading.
    pub heading: String,
    /// A heading over this and the neighbours of the same group; empty for none.
    pub group: String,
    /// Which of its numbers are good.
    pub better: Better,
}

impl Column {
    /// A column in which nothing is marked.
    pub fn new(heading: impl Into<String>) -> Self {
        Self { heading: heading.into(), ..Self::default() }
    }

    /// The same under a group heading.
    pub(crate) fn in_group(self, group: impl Into<String>) -> Self {
        Self { group: group.into(), ..self }
    }

    /// The same with the best number marked.
    pub(crate) fn with_better(self, better: Better) -> Self {
        Self { better, ..self }
    }
}

/// One row: its cells, the first being its name.
pub type Row = Vec<Cell>;

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// A short name for files and labels, for example `rotation-only`.
    pub name: String,
    /// The caption.
    pub caption: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows, as long as the columns.
    pub rows: Vec<Row>,
    /// Remarks below it.
    pub notes: Vec<String>,
    /// About each row: whether it may be compared with others, and what is said of it; empty where all may.
    #[serde(default)]
    pub about: Vec<About>,
}

/// What is known about a row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// The rows that it is compared with; a row without it is never marked.
    pub rivals: Option<Rivals>,
    /// Under which conditions its numbers were measured.
    pub conditions: String,
    /// What pictures call it.
    pub names: Vec<String>,
}

impl Table {
    fn cell(&self, row: usize, column: usize) -> &Cell {
        self.rows.get(row).and_then(|row| row.get(column)).unwrap_or(&Cell::Missing)
    }

    /// Whether a cell holds the best number of its column among rows of the same conditions, by more than the spread of
    /// repetitions, and by more than what is shown.
    pub(crate) fn is_best(&self, row: usize, column: usize) -> bool {
        let Some(Column { better, .. }) = self.columns.get(column) else { return false };
        let sign = match better {
            Better::Neither => return false,
            Better::Higher => 1.0,
            Better::Lower => -1.0,
        };
        // Tables that know nothing of their rows compare all of them.
        let rivals = |row: usize| self.about.get(row).map(|about| about.rivals.as_ref());
        let are_rivals = |other: usize| match (rivals(row), rivals(other)) {
            (Some(Some(own)), Some(Some(other))) => own.include(other),
            (None, None) => true,
            _ => false,
        };
        let found = |row: usize| match self.cell(row, column) {
            Cell::Number { value, decimals, spread } => {
                let power = 10_f64.powi(*decimals as i32);
                Some((sign * value, sign * (value * power).round() / power, spread.unwrap_or(0.0)))
            }
            _ => None,
        };
        let Some((mine, shown, spread)) = found(row) else { return false };
        let mut others = (0..self.rows.len())
            .filter(|&other| other != row && are_rivals(other))
            .filter_map(found)
            .peekable();
        others.peek().is_some()
            && others
                .all(|(value, other, other_spread)| shown > other && mine - value > spread.max(other_spread))
    }

    /// What is said of each row, where anything is.
    fn conditions(&self) -> Option<Vec<&str>> {
        let all =
            (0..self.rows.len()).map(|row| self.about.get(row).map_or("", |about| about.conditions.as_str()));
        let all: Vec<&str> = all.collect();
        all.iter().any(|text| !text.is_empty()).then_some(all)
    }

    /// The same with a last column of conditions, where there are any: for forms that have no other place for them.
    fn with_conditions(&self) -> std::borrow::Cow<'_, Self> {
        let Some(conditions) = self.conditions() else { return std::borrow::Cow::Borrowed(self) };
        let mut table = self.clone();
        table.columns.push(Column::new("Conditions"));
        for (row, text) in table.rows.iter_mut().zip(conditions) {
            row.push(if text.is_empty() { Cell::Text(String::new()) } else { text.into() });
        }
        std::borrow::Cow::Owned(table)
    }

    /// Neighbouring columns of one group: (group heading, number of columns).
    fn groups(&self) -> Vec<(&str, usize)> {
        let mut groups: Vec<(&str, usize)> = Vec::new();
        for column in &self.columns {
            match groups.last_mut() {
                Some((name, count)) if *name == column.group => *count += 1,
                _ => groups.push((&column.group, 1)),
            }
        }
        groups
    }

    fn has_groups(&self) -> bool {
        self.columns.iter().any(|column| !column.group.is_empty())
    }

    /// A column's heading with its group.
    fn full_heading(column: &Column) -> String {
        if column.group.is_empty() {
            column.heading.clone()
        } else {
            format!("{} {}", column.group, column.heading).trim().to_owned()
        }
    }

    /// As GitHub Markdown, with caption and notes.
    pub fn to_markdown(&self) -> String {
        let plain = |text: &str| text.replace('|', "\\|").replace('\n', " ");
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let mut text = String::new();
        if !self.caption.is_empty() {
            text.push_str(&format!("**{}**\n\n", plain(&self.caption)));
        }
        text.push_str(&line(self.columns.iter().map(|c| plain(&Self::full_heading(c))).collect()));
        let rules = (0..self.columns.len()).map(|c| if c == 0 { ":---" } else { "---:" }.to_owned());
        text.push_str(&line(rules.collect()));
        for row in 0..self.rows.len() {
            let cells = (0..self.columns.len()).map(|column| {
                let cell = plain(&self.cell(row, column).text());
                if self.is_best(row, column) { format!("**{cell}**") } else { cell }
            });
            text.push_str(&line(cells.collect()));
        }
        for note in &self.notes {
            text.push_str(&format!("\n{}\n", plain(note)));
        }
        text
    }

    /// As an HTML `figure` with a scrollable table. What all rows share is said above it, and not again where the table
    /// before it, which `said` it, has the same.
    pub(crate) fn to_html(&self, said: &mut String) -> String {
        let mut html = format!("<figure class=\"table\" id=\"table-{}\">\n", escape(&self.name));
        html.push_str(&format!("<figcaption>{}</figcaption>\n", prose(&self.caption)));
        let all = self.conditions().unwrap_or_default();
        let (shared, own) = conditions::split(&all);
        if !shared.is_empty() {
            let told = all.iter().filter(|conditions| !conditions.is_empty()).count();
            let whose = if told > 1 { "All rows" } else { "Conditions" };
            let what = if *said == shared { "as above" } else { &shared };
            html.push_str(&format!("<p class=\"note shared\">{whose}: {}</p>\n", escape(what)));
            *said = shared;
        }
        html.push_str("<div class=\"scroll\" tabindex=\"0\"><table>\n<thead>\n");
        if self.has_groups() {
            html.push_str("<tr>");
            for (name, count) in self.groups() {
                html.push_str(&format!("<th colspan=\"{count}\" class=\"group\">{}</th>", escape(name)));
            }
            html.push_str("</tr>\n");
        }
        html.push_str("<tr>");
        for column in &self.columns {
            html.push_str(&format!("<th>{}</th>", escape(&column.heading)));
        }
        html.push_str("</tr>\n</thead>\n<tbody>\n");
        for row in 0..self.rows.len() {
            let about = self.about.get(row);
            let names = about.map(|about| about.names.join("|")).unwrap_or_default();
            let names =
                if names.is_empty() { String::new() } else { format!(" data-names=\"{}\"", escape(&names)) };
            html.push_str(&format!("<tr{names}>"));
            for column in 0..self.columns.len() {
                let cell = self.cell(row, column);
                let mut text = escape(&cell.text());
                if let Some(own) = own.get(row).filter(|own| column == 0 && !own.is_empty()) {
                    text = format!("{text}<span class=\"conditions\">{}</span>", escape(own));
                }
                let tag = if column == 0 { "th" } else { "td" };
                let class = match cell {
                    Cell::Missing => " class=\"missing\"",
                    _ if self.is_best(row, column) => " class=\"best\"",
                    _ => "",
                };
                html.push_str(&format!("<{tag}{class}>{text}</{tag}>"));
            }
            html.push_str("</tr>\n");
        }
        html.push_str("</tbody>\n</table></div>\n");
        for note in &self.notes {
            html.push_str(&format!("<p class=\"note\">{}</p>\n", prose(note)));
        }
        html.push_str("</figure>\n");
        html
    }

    /// As aligned columns for a terminal.
    pub fn to_text(&self) -> String {
        let mut lines: Vec<Vec<String>> = vec![self.columns.iter().map(Self::full_heading).collect()];
        lines.extend((0..self.rows.len()).map(|row| {
            (0..self.columns.len()).map(|column| self.cell(row, column).text()).collect::<Vec<_>>()
        }));
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|c| lines.iter().map(|line| line[c].chars().count()).max().unwrap_or(0))
            .collect();
        let mut text = String::new();
        for line in lines {
            let cells: Vec<String> = line
                .iter()
                .zip(&widths)
                .enumerate()
                .map(
                    |(column, (cell, &width))| {
                        if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
                    },
                )
                .collect();
            text.push_str(cells.join("  ").trim_end());
            text.push('\n');
        }
        text
    }
}

/// With so many decimals; what rounds to zero has no sign.
fn rounded(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    match text.strip_prefix('-') {
        Some(rest) if rest.chars().all(|c| c == '0' || c == '.') => rest.to_owned(),
        _ => text,
    }
}

#[cfg(test)]
mod tests;
