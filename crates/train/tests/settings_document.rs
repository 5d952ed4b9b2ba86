//! docs/settings.md lists every setting with its value in `presets/defaults.toml`, and `train --print-config` prints no others.
#![allow(clippy::unwrap_used)]

use methods::presets::DEFAULTS;
use train::Config;

#[test]
fn the_document_lists_every_setting_with_its_default() {
    let document = include_str!("../../../docs/settings.md");
    let mut rows = Vec::new();
    let mut group = String::new();
    for line in DEFAULTS.lines() {
        if let Some(name) = line.strip_prefix('[') {
            group = format!("{}.", name.trim_end_matches(']'));
        }
        let Some((key, rest)) = line.split_once(" = ").filter(|_| !line.starts_with('#')) else { continue };
        let (value, meaning) = rest.split_once("# ").unwrap_or_else(|| panic!("{key} is not explained"));
        rows.push(format!("| `{group}{key}` | `{}` | {} |", value.trim(), meaning.trim()));
    }
    let listed: Vec<&str> = document.lines().filter(|line| line.starts_with("| `")).collect();
    assert_eq!(listed, rows);
    let settings = Config::settings("equicaps", "paper").unwrap();
    let mut printed: Vec<&str> = settings.keys().collect();
    let mut documented: Vec<&str> = rows.iter().filter_map(|row| row.split('`').nth(1)).collect();
    printed.sort_unstable();
    documented.sort_unstable();
    assert_eq!(documented, printed);
}
