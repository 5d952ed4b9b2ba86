//! Where results go (`--out`): files by what they end in, and folders, of which one that holds something else is not taken, so
//! that nothing of it is lost.

use std::path::{Path, PathBuf};

use crate::UsageError;
use crate::terminal::shown;

/// Refuses `folder` where it holds files and none that is `ours`, by which one of an earlier call is known.
pub fn refuse_others(folder: &Path, what: &str, ours: impl Fn(&Path) -> bool) -> Result<(), UsageError> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(()) };
    let held: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    if held.is_empty() || held.iter().any(|path| ours(path)) {
        return Ok(());
    }
    let folder = shown(folder);
    Err(UsageError(format!("{folder} is not empty and holds no {what}; use another --out")))
}

/// Refuses a file whose name does not end in one of `endings`.
pub fn check_ending(out: &Path, endings: &[&str]) -> Result<(), UsageError> {
    let ending = out.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    if endings.iter().any(|known| ending.eq_ignore_ascii_case(known)) {
        return Ok(());
    }
    Err(wrong_ending(out, endings))
}

/// What is said of a file whose name ends in none of `endings`.
pub fn wrong_ending(out: &Path, endings: &[&str]) -> UsageError {
    let known: Vec<String> = endings.iter().map(|ending| format!(".{ending}")).collect();
    let known = match &known[..] {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        all => all.concat(),
    };
    UsageError(format!("--out is {}, but must end in {known}", shown(out)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_end_in_what_they_are() {
        assert!(check_ending(Path::new("a/b.c.PNG"), &["png", "svg"]).is_ok());
        let refused = |name: &str, endings: &[&str]| check_ending(Path::new(name), endings).unwrap_err().0;
        assert_eq!(refused("a.jpeg", &["png"]), "--out is a.jpeg, but must end in .png");
        assert_eq!(
            refused("png", &["png", "svg", "html"]),
            "--out is png, but must end in .png, .svg or .html"
        );
    }
}
