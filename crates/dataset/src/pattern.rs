//! File name patterns: `*` for any characters of a name, `?` for one, `**` for any folders in between. A name is matched
//! in time proportional to its length times that of the pattern, and every real folder is entered once.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

/// Whether `text` has a wildcard.
pub fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?'])
}

/// Everything that `pattern` matches, in no particular order. Folders that cannot be read match nothing.
pub fn matching(pattern: &str) -> Vec<PathBuf> {
    let components: Vec<Component<'_>> = Path::new(pattern).components().collect();
    let mut found = vec![PathBuf::new()];
    for (at, component) in components.iter().enumerate() {
        let is_last = at + 1 == components.len();
        let part = component.as_os_str();
        found = match part.to_str() {
            Some("**") => {
                let mut seen = HashSet::new();
                found.into_iter().flat_map(|folder| folders_below(folder, &mut seen)).collect()
            }
            Some(text) if is_pattern(text) => {
                let wanted: Vec<char> = text.chars().collect();
                found.into_iter().flat_map(|folder| names_in(&folder, &wanted)).collect()
            }
            _ => found.into_iter().map(|path| path.join(part)).collect(),
        };
        if !is_last {
            found.retain(|path| path.as_os_str().is_empty() || path.is_dir());
        }
    }
    found.retain(|path| path.exists());
    found
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let read = std::fs::read_dir(if folder.as_os_str().is_empty() { Path::new(".") } else { folder });
    let Ok(read) = read else { return Vec::new() };
    read.flatten().map(|entry| folder.join(entry.file_name())).collect()
}

fn names_in(folder: &Path, wanted: &[char]) -> Vec<PathBuf> {
    let mut all = entries(folder);
    all.retain(|path| path.file_name().is_some_and(|name| is_match(wanted, name)));
    all
}

/// `folder` and all folders below it, those that were `seen` left out.
fn folders_below(folder: PathBuf, seen: &mut HashSet<PathBuf>) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![folder];
    while let Some(folder) = waiting.pop() {
        let shown = if folder.as_os_str().is_empty() { Path::new(".") } else { &folder };
        if !shown.canonicalize().is_ok_and(|real| seen.insert(real)) {
            continue;
        }
        let mut inside = entries(&folder);
        inside.retain(|path| path.is_dir());
        inside.sort_by(|a, b| b.cmp(a));
        waiting.append(&mut inside);
        found.push(folder);
    }
    found
}

/// Whether a name is what `pattern` says. After a mismatch only the last `*` takes one more character: the earlier ones
/// cannot help.
fn is_match(pattern: &[char], name: &OsStr) -> bool {
    let name: Vec<char> = name.to_string_lossy().chars().collect();
    let (mut at, mut place) = (0, 0);
    let mut last_star = None;
    while at < name.len() {
        match pattern.get(place) {
            Some('*') => {
                last_star = Some((place, at));
                place += 1;
            }
            Some(&wanted) if wanted == '?' || wanted == name[at] => {
                place += 1;
                at += 1;
            }
            _ => {
                let Some((star, taken)) = last_star else { return false };
                last_star = Some((star, taken + 1));
                place = star + 1;
                at = taken + 1;
            }
        }
    }
    pattern[place..].iter().all(|&wanted| wanted == '*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matches(pattern: &str, name: &str) -> bool {
        is_match(&pattern.chars().collect::<Vec<_>>(), OsStr::new(name))
    }

    /// By the definition, which takes exponential time.
    fn by_definition(pattern: &[char], name: &[char]) -> bool {
        match pattern.split_first() {
            None => name.is_empty(),
            Some(('*', rest)) => (0..=name.len()).any(|taken| by_definition(rest, &name[taken..])),
            Some((&wanted, rest)) => name.split_first().is_some_and(|(&first, name)| {
                (wanted == '?' || wanted == first) && by_definition(rest, name)
            }),
        }
    }

    proptest! {
        #[test]
        fn the_definition_is_met(pattern in "[ab*?]{0,8}", name in "[ab]{0,8}") {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            prop_assert_eq!(matches(&pattern, &name), by_definition(&chars(&pattern), &chars(&name)));
        }
    }

    #[test]
    fn many_stars_do_not_take_for_ever() {
        let name = "a".repeat(200);
        assert!(!matches(&format!("{}b", "*a".repeat(60)), &name));
        assert!(matches(&format!("{}*", "*a".repeat(60)), &name));
    }

    #[test]
    fn every_real_folder_is_entered_once() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        std::fs::create_dir_all(at("a/b")).unwrap();
        std::fs::write(at("a/b/x.jpg"), b"x").unwrap();
        std::fs::write(at("y.jpg"), b"y").unwrap();
        #[cfg(unix)]
        for number in 0..3 {
            std::os::unix::fs::symlink(root.path(), at(&format!("a/round{number}"))).unwrap();
        }
        let mut found = matching(&format!("{}/**/*.jpg", root.path().display()));
        found.sort();
        assert_eq!(found, [at("a/b/x.jpg"), at("y.jpg")]);
        assert_eq!(matching(&format!("{}/?/*/x.jpg", root.path().display())), [at("a/b/x.jpg")]);
    }
}
