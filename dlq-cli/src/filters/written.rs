//! The written line of a filter: `kind:fetch status:parked,abandoned since:2h`, and back.

use std::time::SystemTime;

use retry_runtime::dead_letter::{Filter, LetterState};

use super::{MOST_VALUES, Meant, parse};
use crate::{text, times};

/// The longest written filter, in bytes.
const LONGEST: usize = 4_000;

/// Which letters, of a written line: `kind:fetch status:parked,abandoned since:2h`. Values with spaces or quotes stand in
/// double quotes (`kind:"my job"`, with `\"` and `\\` inside). A bare word is a status where it names one, else a job.
///
/// # Errors
/// What is not understood, and what is accepted.
///
/// ```
/// use std::time::SystemTime;
/// use dlq_cli::filters::{parse_written, written};
///
/// let meant = parse_written("kind:\"my job\" parked", SystemTime::now()).unwrap();
/// assert_eq!(meant.filter.kinds, ["my job"]);
/// assert_eq!(written(&meant.filter), "kind:\"my job\" status:parked");
/// ```
pub fn parse_written(line: &str, now: SystemTime) -> Result<Meant, String> {
    if line.len() > LONGEST {
        return Err(format!("the filter is {} bytes long: accepted are {LONGEST}", line.len()));
    }
    let mut pairs: Vec<(&str, String)> = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() {
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let key = rest.get(..end).and_then(|word| word.split_once(':')).map(|(key, _)| key);
        // A colon inside of quotes ends no key.
        let key = key.filter(|key| !key.contains('"'));
        let behind = key.map_or(rest, |key| rest.get(key.len() + 1..).unwrap_or_default());
        let of = || key.map_or_else(|| "a job".to_owned(), |key| format!("`{}:`", text::line(key)));
        let (value, left) = value(behind).ok_or_else(|| format!("the quotes of {} do not end", of()))?;
        if !left.is_empty() && !left.starts_with(char::is_whitespace) {
            return Err(format!("behind the quotes of {} no space follows: accepted is key:\"value\"", of()));
        }
        // Nothing would be every letter.
        if value.is_empty() {
            return Err(format!("{} is followed by nothing: accepted is key:value, for example kind:fetch", of()));
        }
        if pairs.len() >= 10 * MOST_VALUES {
            return Err(format!("more than {} filters", 10 * MOST_VALUES));
        }
        let bare = if value == "owed" || LetterState::parse(&value).is_some() { "status" } else { "job" };
        pairs.push((key.unwrap_or(bare), value));
        rest = left.trim_start();
    }
    parse(pairs, now)
}

/// A value, quoted or not, and what stands behind it.
fn value(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(char::is_whitespace).unwrap_or(text.len());
        let (value, rest) = text.split_at_checked(end)?;
        return Some((value.to_owned(), rest));
    };
    let mut value = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, quoted.get(at + 1..)?)),
            '\\' => value.push(chars.next()?.1),
            c => value.push(c),
        }
    }
    None
}

/// The written line of a filter; [`parse_written`] reads it again.
pub fn written(filter: &Filter) -> String {
    said(filter).map(|(key, value)| word(key, &value)).collect::<Vec<_>>().join(" ")
}

/// One word of a written line.
pub fn word(key: &str, value: &str) -> String {
    if value.is_empty() || value.contains(|c: char| c.is_whitespace() || c == '"' || c == '\\') {
        format!("{key}:\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
    } else {
        format!("{key}:{value}")
    }
}

/// The same as options of a command, ready for a shell.
pub fn options(filter: &Filter) -> String {
    let plain = |value: &str| {
        !value.is_empty()
            && value.chars().all(|c| {
                c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '/' | ',' | '@' | '%' | '+' | '=')
            })
    };
    let quoted = |value: &str| {
        if plain(value) { value.to_owned() } else { format!("'{}'", value.replace('\'', "'\\''")) }
    };
    said(filter).map(|(key, value)| format!("--{key} {}", quoted(&value))).collect::<Vec<_>>().join(" ")
}

/// What a filter says, in the order of the options.
fn said(filter: &Filter) -> impl Iterator<Item = (&'static str, String)> {
    let lists = [
        ("kind", &filter.kinds),
        ("class", &filter.classes),
        ("error-class", &filter.error_classes),
        ("group", &filter.fingerprints),
        ("model", &filter.models),
        ("job", &filter.job_ids),
    ];
    let mut pairs: Vec<_> =
        lists.into_iter().flat_map(|(key, values)| values.iter().map(move |value| (key, value.clone()))).collect();
    if !filter.dispositions.is_empty() {
        let verdicts: Vec<_> = filter.dispositions.iter().map(|verdict| verdict.as_str()).collect();
        pairs.push(("verdict", verdicts.join(",")));
    }
    if !filter.states.is_empty() {
        let states: Vec<_> = filter.states.iter().map(|state| state.as_str()).collect();
        pairs.push(("status", states.join(",")));
    }
    for (key, at) in [("since", filter.since), ("until", filter.until)] {
        pairs.extend(at.map(|at| (key, times::exact(at))));
    }
    pairs.extend(filter.ids.iter().map(|id| ("id", id.clone())));
    pairs.into_iter()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // tests fail by panicking
    use std::time::Duration;

    use retry_runtime::Disposition;

    use super::*;

    const NOW: SystemTime = SystemTime::UNIX_EPOCH;

    // Whatever a filter says, its written line says it exactly.
    #[test]
    fn what_is_written_is_read_again() {
        let odd = ["a \"b\\ c", "a:b", "\"", "\\", "owed", "\u{202e}x", "'"].map(str::to_owned).to_vec();
        let filter = |set: fn(&mut Filter) -> &mut Vec<String>| {
            let mut filter = Filter::all();
            set(&mut filter).clone_from(&odd);
            filter
        };
        let mut times = Filter::all();
        times.since = Some(NOW + Duration::from_millis(86_400_123));
        times.until = Some(NOW + Duration::from_secs(86_401));
        let mut verdicts = Filter::owed();
        verdicts.dispositions = Disposition::ALL.to_vec();
        for filter in [
            Filter::all(),
            filter(|filter| &mut filter.kinds),
            filter(|filter| &mut filter.classes),
            filter(|filter| &mut filter.error_classes),
            filter(|filter| &mut filter.fingerprints),
            filter(|filter| &mut filter.models),
            filter(|filter| &mut filter.job_ids),
            filter(|filter| &mut filter.ids),
            times,
            verdicts,
        ] {
            assert_eq!(parse_written(&written(&filter), NOW).unwrap().filter, filter, "{}", written(&filter));
        }
    }

    #[test]
    fn a_bare_word_is_a_status_or_a_job() {
        let read = |line: &str| parse_written(line, NOW).unwrap().filter;
        assert_eq!(read("owed"), Filter::owed());
        let filter = read("parked job-7 \"my job: 8\"");
        assert_eq!(
            (filter.states, filter.job_ids),
            (vec![LetterState::Parked], vec!["job-7".into(), "my job: 8".into()])
        );
        assert_eq!(read("error-class:exhausted:429").error_classes, ["exhausted:429"]);
    }
}
