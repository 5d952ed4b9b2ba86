//! Paths in commands that people are told to copy.

use std::path::Path;

/// `path` as one word of a shell's command line: in quotes where it holds anything but plain characters.
pub fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+:,@%=".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_odd_names_are_quoted() {
        for (path, word) in [
            ("runs/first-1", "runs/first-1"),
            ("runs/größer", "runs/größer"),
            ("my runs/a", "'my runs/a'"),
            ("it's", r"'it'\''s'"),
            ("$HOME", "'$HOME'"),
            ("", "''"),
        ] {
            assert_eq!(shell_word(Path::new(path)), word);
        }
    }
}
