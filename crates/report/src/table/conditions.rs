//! Conditions of rows: what all of a table's rows share is said once, above it, and rows keep what is their own.

/// What stands between the parts of a row's conditions.
const BETWEEN: &str = " \u{b7} ";
/// Of fewer rows, each says everything.
const FEW: usize = 3;

/// What all rows with conditions share, and what is left of each; rows without any have none.
pub(super) fn split(rows: &[&str]) -> (String, Vec<String>) {
    let parts: Vec<Vec<&str>> = rows
        .iter()
        .map(|row| if row.is_empty() { Vec::new() } else { row.split(BETWEEN).collect() })
        .collect();
    let mut told = parts.iter().filter(|row| !row.is_empty());
    let shared: Vec<&str> = match told.next() {
        Some(first) if told.clone().count() + 1 >= FEW => {
            first.iter().copied().filter(|part| told.clone().all(|row| row.contains(part))).collect()
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
        assert_eq!(split(&rows[..2]).0, "", "two rows say everything themselves");
        assert_eq!(split(&[]), (String::new(), Vec::new()));
    }
}
