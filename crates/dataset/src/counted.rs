//! Numbers of things in sentences.

use std::fmt::Display;

/// `1 object`, `2 objects`, `1 class`, `2 classes`, `2 meshes`.
pub fn counted(number: impl Display, one: &str) -> String {
    let number = number.to_string();
    let ending = match (number.as_str(), one.ends_with('s') || one.ends_with("sh")) {
        ("1", _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{number} {one}{ending}")
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn one_is_one() {
        let said = [(0, "view"), (1, "view"), (2, "view"), (1, "class"), (3, "class"), (2, "mesh")]
            .map(|(n, one)| counted(n, one));
        assert_eq!(said, ["0 views", "1 view", "2 views", "1 class", "3 classes", "2 meshes"]);
    }
}
