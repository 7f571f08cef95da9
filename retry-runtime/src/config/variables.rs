//! What environment variables set.

use std::collections::BTreeMap;

use super::error::{Mistake, Place};
use super::keys::{Key, Section};
use super::near::nearest;
use super::values::Written;

/// How the variables of policies begin.
pub(super) const PREFIX: &str = "RETRY_POLICY_";

/// Sets what the variables say, over what is there. Only those that begin with [`PREFIX`] are given here.
pub(super) fn read(
    variables: &BTreeMap<String, String>,
    sections: &mut BTreeMap<String, Section>,
    mistakes: &mut Vec<Mistake>,
) {
    for (variable, value) in variables {
        let place = Place { name: variable.clone(), line: None };
        let set = named(variable).and_then(|(policy, key)| {
            let section = sections.entry(policy).or_default();
            section.name(place.clone());
            section.set(key, Written::Bare(value), place.clone())
        });
        if let Err(message) = set {
            let shown = if value.is_empty() { "\"\"" } else { value };
            mistakes.push(place.mistake(variable, shown, message));
        }
    }
}

/// The policy and the key that a variable names. No key ends with `_` and another key, so there is one way to cut it.
fn named(variable: &str) -> Result<(String, Key), String> {
    let rest = variable.strip_prefix(PREFIX).unwrap_or_default();
    let form = || format!("a variable is {PREFIX}<NAME>_<KEY> with the keys {}", upper_names().join(", "));
    if let Some(odd) = rest.chars().find(|c| !c.is_ascii_uppercase() && !c.is_ascii_digit() && *c != '_') {
        return Err(format!("`{odd}` is no upper-case letter, digit or `_`; {}", form()));
    }
    let cut = Key::ALL.into_iter().find_map(|key| {
        let before = rest.strip_suffix(&key.name().to_ascii_uppercase())?;
        Some((before.strip_suffix('_').unwrap_or(before), key))
    });
    match cut {
        None => {
            let upper = upper_names();
            let upper: Vec<&str> = upper.iter().map(String::as_str).collect();
            // the key may have one `_` or two
            let mut ends = rest.match_indices('_').filter_map(|(at, _)| rest.get(at + 1..));
            let near = ends.find_map(|end| nearest(end, &upper));
            let near = near.map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default();
            Err(format!("it ends with no key{near}; {}", form()))
        }
        Some((name, _)) if !name.starts_with(|c: char| c.is_ascii_uppercase()) => {
            Err(format!("it names no policy; {}", form()))
        }
        Some((name, key)) => Ok((name.to_ascii_lowercase(), key)),
    }
}

fn upper_names() -> [String; 6] {
    Key::ALL.map(|key| key.name().to_ascii_uppercase())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // tests fail by panicking
mod tests {
    use super::*;

    #[test]
    fn a_variable_names_a_policy_and_a_key() {
        let found = |variable: &str| named(variable).unwrap();
        assert_eq!(found("RETRY_POLICY_GEMINI_MAX_RETRIES"), ("gemini".to_owned(), Key::MaxRetries));
        assert_eq!(found("RETRY_POLICY_GEMINI_PRO_2_MAX_RETRY_AFTER"), ("gemini_pro_2".to_owned(), Key::MaxRetryAfter));
        assert_eq!(found("RETRY_POLICY_MAX_DELAY_MAX_DELAY"), ("max_delay".to_owned(), Key::MaxDelay));
        assert_eq!(found("RETRY_POLICY_JITTER_JITTER"), ("jitter".to_owned(), Key::Jitter));
        // one key in two names would make a variable mean two things
        for (one, other) in Key::ALL.iter().flat_map(|one| Key::ALL.iter().map(move |other| (one, other))) {
            assert!(one == other || !one.name().ends_with(&format!("_{}", other.name())));
        }
    }

    #[test]
    fn what_names_none_says_so() {
        for (variable, why) in [
            ("RETRY_POLICY_GEMINI_RETRIES", "it ends with no key"),
            ("RETRY_POLICY_GEMINI_MAX_RETRYS", "did you mean `MAX_RETRIES`?"),
            ("RETRY_POLICY_GEMINI", "it ends with no key"),
            ("RETRY_POLICY_", "it ends with no key"),
            ("RETRY_POLICY_MAX_RETRIES", "it names no policy"),
            ("RETRY_POLICY__MAX_RETRIES", "it names no policy"),
            ("RETRY_POLICY_3_MAX_RETRIES", "it names no policy"),
            ("RETRY_POLICY_gemini_MAX_RETRIES", "`g` is no upper-case letter"),
            ("RETRY_POLICY_GEMINI-PRO_MAX_RETRIES", "`-` is no upper-case letter"),
        ] {
            let said = named(variable).unwrap_err();
            assert!(said.contains(why) && said.contains("BASE_DELAY"), "{variable}: {said}");
        }
    }
}
