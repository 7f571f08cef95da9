//! A filter as text, as an operation's row has it.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::dead_letter::{Filter, LetterState, from_millis, to_millis};
use crate::error::{StoreError, StoreErrorKind};
use crate::verdict::Disposition;

impl Filter {
    /// The filter as JSON: always the same text for the same filter, with the keys in a fixed order and only those that
    /// restrict.
    ///
    /// ```
    /// use retry_runtime::dead_letter::Filter;
    ///
    /// let text = Filter::parked().to_json();
    /// assert_eq!(text, r#"{"states":["parked"]}"#);
    /// assert_eq!(Filter::from_json(&text).unwrap(), Filter::parked());
    /// ```
    pub fn to_json(&self) -> String {
        let mut map = BTreeMap::new();
        let states: Vec<_> = self.states.iter().map(|state| state.as_str().to_owned()).collect();
        let dispositions: Vec<_> = self.dispositions.iter().map(|of| of.as_str().to_owned()).collect();
        for (key, list) in [
            ("classes", &self.classes),
            ("dispositions", &dispositions),
            ("error_classes", &self.error_classes),
            ("fingerprints", &self.fingerprints),
            ("ids", &self.ids),
            ("job_ids", &self.job_ids),
            ("kinds", &self.kinds),
            ("models", &self.models),
            ("states", &states),
        ] {
            if !list.is_empty() {
                map.insert(key.to_owned(), Value::from(list.clone()));
            }
        }
        for (key, at) in [("since", self.since), ("until", self.until)] {
            if let Some(at) = at {
                // Letters have whole milliseconds: rounded up, both ends mean the same letters as before.
                let millis = to_millis(at);
                let millis = millis.saturating_add(i64::from(from_millis(millis) < at));
                map.insert(key.to_owned(), Value::from(millis));
            }
        }
        Value::Object(map.into_iter().collect()).to_string()
    }

    /// The filter of such a text.
    ///
    /// # Errors
    /// `Invalid` for any other text, and for a key this version does not know: a filter that is not understood would mean
    /// more letters than it did.
    pub fn from_json(text: &str) -> Result<Self, StoreError> {
        let value: Value = serde_json::from_str(text).map_err(|error| invalid(text, &error.to_string()))?;
        let Value::Object(map) = value else { return Err(invalid(text, "not an object")) };
        let mut filter = Self::all();
        for (key, value) in &map {
            let strings = || {
                let list = value.as_array().ok_or_else(|| invalid(text, &format!("`{key}` is no list")))?;
                let strings: Option<Vec<_>> = list.iter().map(|value| value.as_str().map(str::to_owned)).collect();
                strings.ok_or_else(|| invalid(text, &format!("`{key}` is no list of texts")))
            };
            let time = || value.as_i64().map(from_millis).ok_or_else(|| invalid(text, &format!("`{key}` is no time")));
            match key.as_str() {
                "classes" => filter.classes = strings()?,
                "error_classes" => filter.error_classes = strings()?,
                "fingerprints" => filter.fingerprints = strings()?,
                "ids" => filter.ids = strings()?,
                "job_ids" => filter.job_ids = strings()?,
                "kinds" => filter.kinds = strings()?,
                "models" => filter.models = strings()?,
                "states" => {
                    let states: Option<_> = strings()?.iter().map(|state| LetterState::parse(state)).collect();
                    filter.states = states.ok_or_else(|| invalid(text, "an unknown state"))?;
                }
                "dispositions" => {
                    let all: Option<_> = strings()?.iter().map(|of| Disposition::parse(of)).collect();
                    filter.dispositions = all.ok_or_else(|| invalid(text, "an unknown disposition"))?;
                }
                "since" => filter.since = Some(time()?),
                "until" => filter.until = Some(time()?),
                other => return Err(invalid(text, &format!("`{other}` is not known here"))),
            }
        }
        Ok(filter)
    }
}

fn invalid(text: &str, why: &str) -> StoreError {
    StoreError::new(StoreErrorKind::Invalid, format!("`{text}` is no filter: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts() -> impl Strategy<Value = Vec<String>> {
        proptest::collection::vec(".{0,6}", 0..3)
    }

    proptest! {
        // D21: what was frozen can be read again.
        #[test]
        fn every_filter_comes_back(
            lists in proptest::collection::vec(texts(), 7..8),
            states in proptest::sample::subsequence(LetterState::ALL, 0..LetterState::ALL.len()),
            dispositions in proptest::sample::subsequence(Disposition::ALL, 0..Disposition::ALL.len()),
            times in (proptest::option::of(-9_999_999..9_999_999_i64), proptest::option::of(any::<i32>())),
        ) {
            let mut lists = lists.into_iter();
            let mut next = || lists.next().unwrap_or_default();
            let filter = Filter {
                kinds: next(),
                classes: next(),
                error_classes: next(),
                fingerprints: next(),
                models: next(),
                ids: next(),
                job_ids: next(),
                states,
                dispositions,
                since: times.0.map(from_millis),
                until: times.1.map(|at| from_millis(at.into())),
            };
            let text = filter.to_json();
            let back = Filter::from_json(&text).map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert_eq!(&back, &filter);
            prop_assert_eq!(back.to_json(), text);
        }
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for text in [
            "",
            "[]",
            "{\"kind\":[\"a\"]}",
            "{\"kinds\":\"a\"}",
            "{\"kinds\":[1]}",
            "{\"states\":[\"gone\"]}",
            "{\"since\":\"x\"}",
        ] {
            assert!(Filter::from_json(text).is_err(), "{text}");
        }
    }
}
