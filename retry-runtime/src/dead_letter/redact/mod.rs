//! Taking secrets out of what is stored and shown.
//!
//! Two places, and no others: [`Intake`](crate::dead_letter::Intake) is the door of a store, where error texts lose their
//! secrets before anything is written, and payloads only by rules the user installs. [`Redactor::payload`] is for whatever
//! shows or exports a payload.

mod json;
mod text;
mod value;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::dead_letter::Payload;
use crate::panics::caught;

/// What stands where a secret stood.
pub const REDACTED: &str = "[redacted]";

/// The keys whose values are secrets by default, in their shortest spelling: case, `-` and `_` do not matter.
const KEYS: &[&str] = &[
    "authorization",
    "proxyauthorization",
    "apikey",
    "xapikey",
    "xgoogapikey",
    "xauthtoken",
    "apisecret",
    "password",
    "passwd",
    "pwd",
    "passphrase",
    "secret",
    "clientsecret",
    "secretkey",
    "secretaccesskey",
    "awssecretaccesskey",
    "accesskey",
    "privatekey",
    "token",
    "authtoken",
    "accesstoken",
    "refreshtoken",
    "idtoken",
    "sessiontoken",
    "csrftoken",
    "bearer",
    "jwt",
    "cookie",
    "setcookie",
    "session",
    "sessionid",
    "credentials",
];

type Rule = Arc<dyn Fn(&mut Value) + Send + Sync>;

/// Finds secrets, and puts [`REDACTED`] in their place.
///
/// By default a value is a secret when its key is one of a list (`authorization`, `api_key`, `password`, `token`, `cookie`
/// and their kin), in whatever form: JSON, `key=value`, `key: value`, the query of a URL. So is what follows `Bearer` and
/// `Basic`, and the user information of a URL. A key matches whole and in any case, and `-` and `_` do not matter:
/// `API-Key` is `api_key`, and `tokenizer` is not `token`. A value without quotes ends at white space.
///
/// ```
/// use retry_runtime::dead_letter::Redactor;
///
/// let redactor = Redactor::standard().key("iban");
/// let text = redactor.text("PUT https://u:p@host/a?token=abc&page=2: iban: DE02120300000000202051, tokenizer: 5");
/// assert_eq!(text, "PUT https://[redacted]@host/a?token=[redacted]&page=2: iban: [redacted], tokenizer: 5");
/// assert_eq!(redactor.json(r#"{"n": 1.50, "Password": "x"}"#), r#"{"n": 1.50, "Password": "[redacted]"}"#);
/// ```
#[derive(Clone)]
pub struct Redactor {
    keys: BTreeSet<String>,
    /// Bearer strings, user information of URLs, and keys of queries.
    finds_forms: bool,
    rules: Vec<Rule>,
}

impl Redactor {
    /// The default rules.
    pub fn standard() -> Self {
        Self { keys: KEYS.iter().map(|key| (*key).to_owned()).collect(), finds_forms: true, rules: Vec::new() }
    }

    /// No rule: redacts nothing until it is told what.
    pub fn none() -> Self {
        Self { keys: BTreeSet::new(), finds_forms: false, rules: Vec::new() }
    }

    /// One more key whose value is a secret. Case, `-` and `_` do not matter.
    #[must_use]
    pub fn key(mut self, key: impl AsRef<str>) -> Self {
        self.keys.insert(normal(key.as_ref()));
        self
    }

    /// One key less: for a `session` that is no secret.
    #[must_use]
    pub fn without_key(mut self, key: impl AsRef<str>) -> Self {
        self.keys.remove(&normal(key.as_ref()));
        self
    }

    /// A rule of your own for payloads, after all others. It changes what it wants to hide. One that panics hides the whole
    /// payload.
    #[must_use]
    pub fn rule(mut self, rule: impl Fn(&mut Value) + Send + Sync + 'static) -> Self {
        self.rules.push(Arc::new(rule));
        self
    }

    /// Whether it redacts nothing.
    pub fn is_none(&self) -> bool {
        self.keys.is_empty() && !self.finds_forms && self.rules.is_empty()
    }

    /// A text, an error's say, without its secrets. Linear in its length, never a panic; twice is the same as once.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        text::redacted(self, text)
    }

    /// A JSON text without its secrets; all else stays byte for byte. What is not JSON is treated as text. (Not for rules of
    /// your own: see [`payload`](Self::payload).)
    pub fn json<'t>(&self, json: &'t str) -> Cow<'t, str> {
        if serde_json::from_str::<serde_core::de::IgnoredAny>(json).is_ok() {
            json::redacted(self, json)
        } else {
            self.text(json)
        }
    }

    /// A payload as it may be shown or exported, by all rules.
    pub fn payload(&self, payload: &Payload) -> Payload {
        match payload {
            Payload::Json(json) => self.by_rules(self.json(json)),
            Payload::Unserializable(why) => Payload::Unserializable(self.text(why).into_owned()),
            Payload::None => Payload::None,
        }
    }

    fn by_rules(&self, json: Cow<'_, str>) -> Payload {
        if self.rules.is_empty() {
            return Payload::Json(json.into_owned());
        }
        // Nothing is stored that a rule may have wanted to hide.
        let hidden = |why: String| Payload::Unserializable(format!("the payload is hidden: {why}"));
        let Ok(before) = serde_json::from_str::<Value>(&json) else {
            return hidden("it is no JSON that rules for redaction can read".to_owned());
        };
        let mut value = before.clone();
        for rule in &self.rules {
            if caught(|| rule(&mut value)).is_err() {
                return hidden("a rule for redaction panicked".to_owned());
            }
        }
        Payload::Json(if value == before { json.into_owned() } else { value.to_string() })
    }

    /// Whether it has a key of the user's: what was cut before it came here may have had that key in the cut.
    #[cfg(feature = "stores")]
    pub(crate) fn has_own_keys(&self) -> bool {
        self.keys.iter().any(|key| !KEYS.contains(&key.as_str()))
    }

    fn is_key(&self, key: &str) -> bool {
        // No key worth a look is longer, however many dashes it has.
        key.len() <= 256 && self.keys.contains(&normal(key))
    }
}

impl Default for Redactor {
    fn default() -> Self {
        Self::standard()
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor")
            .field("keys", &self.keys)
            .field("finds_forms", &self.finds_forms)
            .field("rules", &self.rules.len())
            .finish()
    }
}

fn normal(key: &str) -> String {
    key.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests;
