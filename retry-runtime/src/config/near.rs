//! The name that was meant, for messages.

/// The candidate that differs by few typing errors, letter case and separators left out; `None` where none is near.
pub(super) fn nearest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let typed = plain(word);
    candidates
        .iter()
        .map(|candidate| (distance(&typed, &plain(candidate)), candidate))
        .filter(|(distance, candidate)| *distance <= typed.len().max(candidate.len()) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| *candidate)
}

/// ` (did you mean ..?)`, or nothing.
pub(super) fn hint(word: &str, candidates: &[&str]) -> String {
    nearest(word, candidates).map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default()
}

fn plain(name: &str) -> Vec<char> {
    name.chars().filter(|letter| *letter != '_' && *letter != '-').flat_map(char::to_lowercase).collect()
}

/// Letters too many, missing or wrong; two exchanged ones count as two.
fn distance(left: &[char], right: &[char]) -> usize {
    let mut above: Vec<usize> = (0..=right.len()).collect();
    for (row, letter) in left.iter().enumerate() {
        let mut diagonal = row;
        let mut last = row + 1;
        let mut current = vec![last];
        for (other, up) in right.iter().zip(above.iter().skip(1)) {
            last = (diagonal + usize::from(letter != other)).min(last + 1).min(up + 1);
            diagonal = *up;
            current.push(last);
        }
        above = current;
    }
    above.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_are_near_and_other_words_are_not() {
        let keys = ["max_retries", "base_delay", "max_delay", "backoff", "jitter"];
        assert_eq!(nearest("max_retrys", &keys), Some("max_retries"));
        assert_eq!(nearest("base_dealy", &keys), Some("base_delay"));
        assert_eq!(nearest("maxDelay", &keys), Some("max_delay"));
        assert_eq!(nearest("jiter", &keys), Some("jitter"));
        assert_eq!(nearest("colour", &keys), None);
        assert_eq!(nearest("", &keys), None);
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        assert_eq!(distance(&chars("kitten"), &chars("sitting")), 3);
        assert_eq!(distance(&chars(""), &chars("abc")), 3);
    }
}
