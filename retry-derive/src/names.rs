//! Nearest names, and lists of names, for messages.

/// The candidate that `word` was most likely meant to be; `None` when nothing is near.
///
/// Near is: the same but for letter case and separators, few typing errors for the length, or one name holding the other
/// as a whole word (`retries` for `max_retries`).
pub(crate) fn nearest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let typed = plain(word);
    if typed.is_empty() {
        return None;
    }
    let exact = candidates.iter().find(|candidate| plain(candidate) == typed);
    if let Some(candidate) = exact {
        return Some(candidate);
    }
    let by_typing = candidates
        .iter()
        .map(|candidate| (distance(&typed, &plain(candidate)), candidate))
        .filter(|(distance, candidate)| *distance <= typed.len().max(candidate.len()).max(3) / 3)
        .min_by_key(|(distance, _)| *distance);
    if let Some((_, candidate)) = by_typing {
        return Some(candidate);
    }
    let lower = word.to_lowercase();
    let mut holding = candidates.iter().filter(|candidate| {
        candidate.split('_').any(|part| part == lower) || lower.split(['_', '-']).any(|part| part == **candidate)
    });
    match (holding.next(), holding.next()) {
        (Some(candidate), None) => Some(candidate),
        _ => None,
    }
}

/// The names in backquotes, with commas and a last "or".
pub(crate) fn one_of<S: AsRef<str>>(names: &[S]) -> String {
    listed(names, "or")
}

/// The names in backquotes, with commas and a last "and".
pub(crate) fn all_of<S: AsRef<str>>(names: &[S]) -> String {
    listed(names, "and")
}

fn listed<S: AsRef<str>>(names: &[S], last: &str) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{}`", name.as_ref())).collect();
    match quoted.split_last() {
        None => String::new(),
        Some((only, [])) => only.clone(),
        Some((end, start)) => format!("{} {last} {end}", start.join(", ")),
    }
}

/// Without letter case and separators.
fn plain(name: &str) -> String {
    name.chars().filter(|letter| *letter != '_' && *letter != '-').flat_map(char::to_lowercase).collect()
}

/// Typing errors between two words: a letter too many, missing, wrong, or two exchanged.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    // the last three rows of the table, one entry per length of `right`'s beginning
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=right.len()).collect();
    let mut last = None;
    for (row, letter) in left.chars().enumerate() {
        let mut current = vec![row + 1];
        for (column, other) in right.iter().enumerate() {
            let at = |line: &[usize], index: usize| line.get(index).copied().unwrap_or(usize::MAX / 2);
            let wrong = at(&above, column) + usize::from(letter != *other);
            let one_off = at(&above, column + 1).min(at(&current, column)) + 1;
            let mut best = wrong.min(one_off);
            let previous = column.checked_sub(1).and_then(|index| right.get(index).map(|found| (index, *found)));
            if let (Some(last), Some((index, previous))) = (last, previous) {
                if last == *other && previous == letter {
                    best = best.min(at(&before, index) + 1);
                }
            }
            current.push(best);
        }
        last = Some(letter);
        before = std::mem::replace(&mut above, current);
    }
    above.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: &[&str] = &["retryable", "permanent", "gone", "unknown", "class", "transparent", "max_retries"];

    #[test]
    fn typing_errors_and_other_spellings_are_near() {
        assert_eq!(nearest("retriable", WORDS), Some("retryable"));
        assert_eq!(nearest("Permanent", WORDS), Some("permanent"));
        assert_eq!(nearest("permenant", WORDS), Some("permanent"));
        assert_eq!(nearest("max_retry", WORDS), Some("max_retries"));
        assert_eq!(nearest("maxRetries", WORDS), Some("max_retries"));
        assert_eq!(nearest("max-retries", WORDS), Some("max_retries"));
        assert_eq!(nearest("retries", WORDS), Some("max_retries"));
        assert_eq!(nearest("claas", WORDS), Some("class"));
        assert_eq!(nearest("goen", WORDS), Some("gone"));
    }

    #[test]
    fn far_words_have_no_neighbour() {
        assert_eq!(nearest("jitter", WORDS), None);
        assert_eq!(nearest("x", WORDS), None);
        assert_eq!(nearest("", WORDS), None);
        assert_eq!(nearest("_", WORDS), None);
    }

    #[test]
    fn exchanged_letters_are_one_error() {
        assert_eq!(distance("abcd", "abdc"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", ""), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
    }

    #[test]
    fn lists_read_as_sentences() {
        assert_eq!(one_of::<&str>(&[]), "");
        assert_eq!(one_of(&["a"]), "`a`");
        assert_eq!(one_of(&["a", "b"]), "`a` or `b`");
        assert_eq!(all_of(&["a", "b", "c"]), "`a`, `b` and `c`");
    }
}
