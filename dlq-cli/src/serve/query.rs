//! The written filter: `kind:fetch error-class:exhausted:429 since:24h`, and back.

use std::time::{Duration, SystemTime};

use retry_runtime::Disposition;
use retry_runtime::counters::Day;
use retry_runtime::dead_letter::{Filter, LetterState};

use super::shown;

/// The longest filter, in bytes.
const LONGEST: usize = 4_000;

/// The words a filter is written with.
pub(super) const WORDS: &str = "status: kind: class: error-class: group: model: job: id: verdict: since: until:";

/// The filter somebody wrote. Words with the same name are one of; all that is named must hold.
///
/// # Errors
/// What is not understood, and what is accepted.
pub(super) fn parse(text: &str, now: SystemTime) -> Result<Filter, String> {
    if text.len() > LONGEST {
        return Err(format!("the filter is {} bytes long: accepted are {LONGEST}", text.len()));
    }
    let mut filter = Filter::all();
    for word in words(text)? {
        let (name, value) = match word.split_once(':') {
            Some((name, value)) if !value.is_empty() => (name, value.to_owned()),
            Some((name, _)) => return Err(format!("`{}:` is followed by nothing", shown::line(name, 100))),
            // A state names itself; anything else is most likely a job somebody looks for.
            None if LetterState::parse(&word).is_some() || word == "owed" => ("status", word.clone()),
            None => ("job", word.clone()),
        };
        match name {
            "status" | "state" if value == "owed" => filter.states.extend(Filter::owed().states),
            "status" | "state" => {
                let state = LetterState::parse(&value).ok_or_else(|| unknown(name, &value, &states()))?;
                filter.states.push(state);
            }
            "kind" => filter.kinds.push(value),
            "class" => filter.classes.push(value),
            "error-class" | "error" => filter.error_classes.push(value),
            "group" => filter.fingerprints.push(value),
            "model" => filter.models.push(value),
            "job" => filter.job_ids.push(value),
            "id" => filter.ids.push(value),
            "verdict" => {
                let all: Vec<_> = Disposition::ALL.iter().map(|of| of.as_str()).collect();
                let of = Disposition::parse(&value).ok_or_else(|| unknown(name, &value, &all.join(", ")))?;
                filter.dispositions.push(of);
            }
            "since" => filter.since = Some(time(name, &value, now)?),
            "until" => filter.until = Some(time(name, &value, now)?),
            _ => return Err(format!("`{}:` is not known: accepted are {WORDS}", shown::line(name, 100))),
        }
    }
    Ok(filter)
}

/// The words of a filter that is already one: parsing them gives the same filter again.
pub(super) fn written(filter: &Filter) -> String {
    let mut out = Vec::new();
    let mut say = |name: &str, values: &mut dyn Iterator<Item = String>| {
        out.extend(values.map(|value| format!("{name}:{}", quoted(&value))));
    };
    say("status", &mut filter.states.iter().map(ToString::to_string));
    say("kind", &mut filter.kinds.iter().cloned());
    say("class", &mut filter.classes.iter().cloned());
    say("error-class", &mut filter.error_classes.iter().cloned());
    say("group", &mut filter.fingerprints.iter().cloned());
    say("model", &mut filter.models.iter().cloned());
    say("job", &mut filter.job_ids.iter().cloned());
    say("id", &mut filter.ids.iter().cloned());
    say("verdict", &mut filter.dispositions.iter().map(|of| of.as_str().to_owned()));
    let exact = |at: &SystemTime| shown::millis(*at).to_string();
    say("since", &mut filter.since.iter().map(exact));
    say("until", &mut filter.until.iter().map(exact));
    out.join(" ")
}

/// One word of a filter, for a link.
pub(super) fn word(name: &str, value: &str) -> String {
    format!("{name}:{}", quoted(value))
}

fn quoted(value: &str) -> String {
    if value.is_empty() || value.contains(|c: char| c.is_whitespace() || matches!(c, '"' | '\\')) {
        format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
    } else {
        value.to_owned()
    }
}

fn words(text: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut begun, mut quoted) = (Vec::new(), String::new(), false, false);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' if quoted => word.extend(chars.next()),
            '"' => (quoted, begun) = (!quoted, true),
            c if c.is_whitespace() && !quoted => {
                if begun {
                    words.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            c => {
                word.push(c);
                begun = true;
            }
        }
    }
    if quoted {
        return Err("a quotation mark `\"` is never closed".to_owned());
    }
    if begun {
        words.push(word);
    }
    Ok(words)
}

fn time(name: &str, value: &str, now: SystemTime) -> Result<SystemTime, String> {
    let accepted = "30m, 24h, 7d (ago), 2026-01-31, 2026-01-31T23:59, or milliseconds since the epoch";
    let bad = || unknown(name, value, accepted);
    if let Some(at) = moment(value) {
        return Ok(at);
    }
    let (digits, unit) = value.split_at_checked(value.len().saturating_sub(1)).ok_or_else(bad)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400_u64,
        _ => {
            let millis = value.parse::<u64>().map_err(|_| bad())?;
            return SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(millis)).ok_or_else(bad);
        }
    };
    let n = digits.parse::<u64>().map_err(|_| bad())?;
    now.checked_sub(Duration::from_secs(n.saturating_mul(seconds))).ok_or_else(bad)
}

fn moment(value: &str) -> Option<SystemTime> {
    let (day, rest) = value.split_once('T').unwrap_or((value, "00:00"));
    let start = Day::parse(day)?.start();
    let mut parts = rest.trim_end_matches('Z').splitn(3, ':').map(str::parse::<u64>);
    let (hours, minutes) = (parts.next()?.ok()?, parts.next()?.ok()?);
    let seconds = parts.next().transpose().ok()?.unwrap_or(0);
    (hours < 24 && minutes < 60 && seconds < 60)
        .then(|| start + Duration::from_secs(hours * 3_600 + minutes * 60 + seconds))
}

fn states() -> String {
    let states: Vec<_> = LetterState::ALL.iter().map(|state| state.as_str()).collect();
    format!("owed, {}", states.join(", "))
}

fn unknown(name: &str, value: &str, accepted: &str) -> String {
    format!("`{name}:{}` is not understood: accepted are {accepted}", shown::line(value, 100))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> SystemTime {
        Day::parse("2026-06-15").unwrap().start()
    }

    #[test]
    fn what_is_written_is_read_again() {
        let text = r#"status:parked kind:fetch class:timeout error-class:exhausted:429 group:ab job:"a \"b\\ c" id:1 verdict:unknown since:24h"#;
        let filter = parse(text, now()).unwrap();
        assert_eq!(filter.error_classes, ["exhausted:429"]);
        assert_eq!(filter.job_ids, ["a \"b\\ c"]);
        assert_eq!(filter.since, now().checked_sub(Duration::from_secs(86_400)));
        assert_eq!(parse(&written(&filter), now()).unwrap(), filter);
        assert_eq!(parse("", now()).unwrap(), Filter::all());
        assert_eq!(parse("owed", now()).unwrap(), Filter::owed());
        assert_eq!(parse("parked job-7", now()).unwrap().job_ids, ["job-7"]);
    }

    #[test]
    fn what_is_not_understood_says_what_is() {
        for (text, says) in [
            ("kinds:x", "accepted are status: kind:"),
            ("state:lost", "accepted are owed, parked"),
            ("since:yesterday", "24h"),
            ("since:", "followed by nothing"),
            ("job:\"x", "never closed"),
            ("verdict:bad", "permanent"),
            ("until:2026-02-30", "2026-01-31"),
            ("since:99999999999999999999d", "24h"),
        ] {
            let error = parse(text, now()).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
        assert!(parse(&"x".repeat(5_000), now()).unwrap_err().contains("5000 bytes"));
    }

    #[test]
    fn times_are_ago_days_or_moments() {
        let at = |text: &str| parse(&format!("since:{text}"), now()).unwrap().since.unwrap();
        assert_eq!(at("2026-06-14"), at("1d"));
        assert_eq!(at("2026-06-14T23:30"), at("30m"));
        assert_eq!(at("2026-06-14T23:59:59Z"), at("1s"));
        assert_eq!(at("1000"), SystemTime::UNIX_EPOCH + Duration::from_secs(1));
    }
}
