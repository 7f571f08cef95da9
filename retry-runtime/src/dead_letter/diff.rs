//! What differs between two payloads, for people to read.

use std::fmt;

use serde_json::Value;

use crate::attempt::cut_middle;

/// The longest value that [`PayloadDiff`] prints, in bytes of JSON. Longer ones are cut in the middle and marked.
const SHOWN: usize = 200;

/// The structural difference between two JSON texts: what was added, removed and changed, each by its JSON pointer
/// (RFC 6901). Members of objects are compared by name, elements of arrays by position.
///
/// ```
/// use retry_runtime::dead_letter::PayloadDiff;
///
/// let diff = PayloadDiff::between(r#"{"url":"http://a","n":1}"#, r#"{"url":"https://a","tags":[]}"#);
/// assert_eq!(diff.to_string(), "- /n: 1\n+ /tags: []\n~ /url: \"http://a\" -> \"https://a\"");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct PayloadDiff {
    /// Every difference: objects' members by name, arrays' elements by position.
    pub changes: Vec<Change>,
}

/// One difference.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Change {
    /// Only the new payload has it.
    Added {
        /// Where.
        pointer: String,
        /// What.
        new: Value,
    },
    /// Only the old payload has it.
    Removed {
        /// Where.
        pointer: String,
        /// What.
        old: Value,
    },
    /// Both have it, and it is not the same.
    Changed {
        /// Where.
        pointer: String,
        /// What it was.
        old: Value,
        /// What it is.
        new: Value,
    },
}

impl PayloadDiff {
    /// What changed from `old` to `new`. A text that is not JSON is compared as one string. Empty when both mean the same,
    /// however they are written.
    pub fn between(old: &str, new: &str) -> Self {
        let value = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()));
        let mut diff = Self::default();
        diff.compare(&mut String::new(), value(old), value(new));
        diff
    }

    /// Whether both mean the same.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    // As deep as the texts are nested, which the JSON reader bounds.
    fn compare(&mut self, pointer: &mut String, old: Value, new: Value) {
        match (old, new) {
            (Value::Object(mut old), Value::Object(mut new)) => {
                let mut names: Vec<String> = old.keys().chain(new.keys()).cloned().collect();
                names.sort_unstable();
                names.dedup();
                for name in names {
                    let (old, new) = (old.remove(&name), new.remove(&name));
                    self.at(pointer, &name.replace('~', "~0").replace('/', "~1"), old, new);
                }
            }
            (Value::Array(old), Value::Array(new)) => {
                let (mut old, mut new) = (old.into_iter(), new.into_iter());
                for index in 0..old.len().max(new.len()) {
                    self.at(pointer, &index.to_string(), old.next(), new.next());
                }
            }
            (old, new) if old == new => {}
            (old, new) => self.changes.push(Change::Changed { pointer: pointer.clone(), old, new }),
        }
    }

    fn at(&mut self, pointer: &mut String, step: &str, old: Option<Value>, new: Option<Value>) {
        let length = pointer.len();
        pointer.push('/');
        pointer.push_str(step);
        match (old, new) {
            (Some(old), Some(new)) => self.compare(pointer, old, new),
            (Some(old), None) => self.changes.push(Change::Removed { pointer: pointer.clone(), old }),
            (None, Some(new)) => self.changes.push(Change::Added { pointer: pointer.clone(), new }),
            (None, None) => {}
        }
        pointer.truncate(length);
    }
}

/// `+ /a: 1` for what was added, `- /a: 1` for what was removed, `~ /a: 1 -> 2` for what was changed, one a line. The whole
/// payload is `(all)`.
impl fmt::Display for PayloadDiff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.changes.is_empty() {
            return f.write_str("no difference");
        }
        for (nth, change) in self.changes.iter().enumerate() {
            let end = if nth == 0 { "" } else { "\n" };
            write!(f, "{end}{change}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = |pointer: &str| if pointer.is_empty() { "(all)".to_owned() } else { pointer.to_owned() };
        let shown = |value: &Value| cut_middle(&value.to_string(), SHOWN).into_owned();
        match self {
            Self::Added { pointer, new } => write!(f, "+ {}: {}", place(pointer), shown(new)),
            Self::Removed { pointer, old } => write!(f, "- {}: {}", place(pointer), shown(old)),
            Self::Changed { pointer, old, new } => write!(f, "~ {}: {} -> {}", place(pointer), shown(old), shown(new)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a-c~/]{0,3}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::hash_map("[a-c~/]{0,3}", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    fn between(old: &Value, new: &Value) -> PayloadDiff {
        PayloadDiff::between(&old.to_string(), &new.to_string())
    }

    proptest! {
        // E92: what a diff names is there, and what it does not name is the same.
        #[test]
        fn pointers_lead_where_they_say(old in any_value(), new in any_value()) {
            let diff = between(&old, &new);
            prop_assert_eq!(diff.is_empty(), old == new);
            for change in &diff.changes {
                let (pointer, was, is) = match change {
                    Change::Added { pointer, new } => (pointer, None, Some(new)),
                    Change::Removed { pointer, old } => (pointer, Some(old), None),
                    Change::Changed { pointer, old, new } => (pointer, Some(old), Some(new)),
                };
                prop_assert_eq!(old.pointer(pointer), was);
                prop_assert_eq!(new.pointer(pointer), is);
                prop_assert_ne!(was, is);
            }
            prop_assert_eq!(between(&new, &old).changes.len(), diff.changes.len());
        }
    }

    #[test]
    fn texts_that_are_no_json_and_long_values_are_shown_too() {
        assert_eq!(PayloadDiff::between("{", "1").to_string(), "~ (all): \"{\" -> 1");
        assert_eq!(PayloadDiff::between("[1, 2]", "[1,2]").to_string(), "no difference");
        let long = PayloadDiff::between("[]", &format!("[\"{}\"]", "x".repeat(5_000))).to_string();
        assert!(long.len() < 300 && long.contains("bytes cut"), "{long}");
    }
}
