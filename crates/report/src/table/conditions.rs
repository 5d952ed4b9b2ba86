//! Conditions of rows: what all of a table's rows share is said once, above it, and rows keep what is their own.

/// What stands between the parts of a row's conditions.
const BETWEEN: &str = " \u{b7} ";
/// What all rows with conditions share, and what is left of each; rows without any have none. A single row has everything
/// above it.
pub(super) fn split(rows: &[&str]) -> (String, Vec<String>) {
    let parts: Vec<Vec<&str>> = rows
        .iter()
        .map(|row| if row.is_empty() { Vec::new() } else { row.split(BETWEEN).collect() })
        .collect();
    let told: Vec<&Vec<&str>> = parts.iter().filter(|row| !row.is_empty()).collect();
    let shared: Vec<&str> = match told.as_slice() {
        [first, others @ ..] => {
            first.iter().copied().filter(|part| others.iter().all(|row| row.contains(part))).collect()
        }
        _ => Vec::new(),
    };
    let own = |row: &Vec<&str>| {
        let own: Vec<&str> = row.iter().copied().filter(|part| !shared.contains(part)).collect();
        own.join(BETWEEN)
    };
    (shared.join(BETWEEN), parts.iter().map(own).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rows_share_is_said_once() {
        let rows = ["a \u{b7} b \u{b7} seed 0", "a \u{b7} c \u{b7} seed 0", "", "a \u{b7} b \u{b7} seed 0"];
        let (shared, own) = split(&rows);
        assert_eq!(
            (shared.as_str(), own),
            ("a \u{b7} seed 0", ["b", "c", "", "b"].map(str::to_owned).to_vec())
        );
        assert_eq!(
            split(&rows[1..3]),
            (rows[1].to_owned(), vec![String::new(), String::new()]),
            "of one everything is said above"
        );
        assert_eq!(split(&[]), (String::new(), Vec::new()));
    }
}
