//! Tables as LaTeX.

use super::Table;

impl Table {
    /// As a LaTeX `table` for the booktabs package.
    pub(crate) fn to_latex(&self) -> String {
        let alignment: String = (0..self.columns.len()).map(|c| if c == 0 { 'l' } else { 'r' }).collect();
        let mut text = format!("\\begin{{table}}\n\\centering\n\\caption{{{}}}\n", latex(&self.caption));
        text.push_str(&format!(
            "\\label{{tab:{}}}\n\\begin{{tabular}}{{{alignment}}}\n\\toprule\n",
            self.name
        ));
        if self.has_groups() {
            let heads: Vec<String> = self
                .groups()
                .into_iter()
                .map(|(name, count)| match (name.is_empty(), count) {
                    (_, 1) => latex(name),
                    (true, _) => "&".repeat(count - 1),
                    _ => format!("\\multicolumn{{{count}}}{{c}}{{{}}}", latex(name)),
                })
                .collect();
            text.push_str(&format!("{} \\\\\n", heads.join(" & ")));
        }
        let headings: Vec<String> = self.columns.iter().map(|column| latex(&column.heading)).collect();
        text.push_str(&format!("{} \\\\\n\\midrule\n", headings.join(" & ")));
        for row in 0..self.rows.len() {
            let cells: Vec<String> = (0..self.columns.len())
                .map(|column| {
                    let cell = latex(&self.cell(row, column).text());
                    if self.is_best(row, column) { format!("\\textbf{{{cell}}}") } else { cell }
                })
                .collect();
            text.push_str(&format!("{} \\\\\n", cells.join(" & ")));
        }
        text.push_str("\\bottomrule\n\\end{tabular}\n");
        for note in &self.notes {
            text.push_str(&format!("\\par\\footnotesize {}\n", latex(note)));
        }
        text.push_str("\\end{table}\n");
        text
    }
}

fn latex(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => escaped.extend(['\\', character]),
            '~' => escaped.push_str("\\textasciitilde{}"),
            '^' => escaped.push_str("\\textasciicircum{}"),
            '\\' => escaped.push_str("\\textbackslash{}"),
            // In text fonts of the oldest encoding these are other signs.
            '<' | '>' | '|' => escaped.extend(['$', character, '$']),
            '\u{b1}' => escaped.push_str("$\\pm$"),
            '\u{b2}' => escaped.push_str("$^2$"),
            '\u{b0}' => escaped.push_str("$^\\circ$"),
            '\u{2020}' => escaped.push_str("$^\\dagger$"),
            '\u{d7}' => escaped.push_str("$\\times$"),
            '\u{2013}' => escaped.push_str("--"),
            other => escaped.push(other),
        }
    }
    escaped
}
