//! "Did you mean ...?": the nearest valid name to one that was mistyped.

use strsim::osa_distance;

/// Bytes of the longest name that is compared.
const LONGEST: usize = 200;

/// The candidate nearest to `name`, unless none is near. A dotted candidate also counts by its last part, and
/// initials count (`lr` for `learning_rate`).
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Nobody mistyped this, and the work grows with its length.
    if name.len() > LONGEST {
        return None;
    }
    let limit = (name.chars().count() / 2).max(2);
    candidates
        .into_iter()
        .map(|candidate| (distance_to_candidate(name, candidate), candidate))
        .filter(|&(distance, _)| distance <= limit)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

/// `; did you mean "..."?`, or nothing.
pub fn hint<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, candidates).map_or_else(String::new, |candidate| format!("; did you mean {candidate:?}?"))
}

fn distance_to_candidate(name: &str, candidate: &str) -> usize {
    let name_last = name.rsplit('.').next().unwrap_or(name);
    let candidate_last = candidate.rsplit('.').next().unwrap_or(candidate);
    let initials: String = candidate_last.split('_').filter_map(|word| word.chars().next()).collect();
    let whole = osa_distance(name, candidate);
    if whole == 0 {
        return 0;
    }
    let mut best = whole.min(1 + osa_distance(name_last, candidate_last));
    if (initials.len() > 1 && initials == name_last) || contains_word(name_last, candidate_last) {
        best = best.min(2);
    }
    best
}

/// Whether one of the two is a word of the other: `batch` in `batch_size`.
fn contains_word(a: &str, b: &str) -> bool {
    a.split(['_', '-']).any(|word| word == b) || b.split('_').any(|word| word == a)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [&str; 6] =
        ["batch", "epochs", "learning_rate", "image_size", "loss.variance", "loss.covariance"];

    #[test]
    fn typing_mistakes_find_their_key() {
        for (typed, meant) in [
            ("epoch", "epochs"),
            ("ephocs", "epochs"),
            ("lr", "learning_rate"),
            ("batch_size", "batch"),
            ("imagesize", "image_size"),
            ("variance", "loss.variance"),
            ("loss.varaince", "loss.variance"),
            ("losses.covariance", "loss.covariance"),
        ] {
            assert_eq!(nearest(typed, KEYS), Some(meant), "{typed}");
        }
    }

    #[test]
    fn nothing_near_gives_nothing() {
        assert_eq!(nearest("qqqqqqqq", KEYS), None);
        assert_eq!(hint("zzzzzzz", KEYS), "");
    }
}
