//! What came with a request: the query of its address, or a form; both bounded.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

/// How many fields are looked at.
const MOST: usize = 400;

/// Fields by name, in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct Params(Vec<(String, String)>);

impl Params {
    /// Bytes that are no UTF-8 become replacement characters; what is behind the 400th field is not looked at.
    pub(super) fn parse(text: &[u8]) -> Self {
        Self(form_urlencoded::parse(text).take(MOST).map(|(key, value)| (key.into(), value.into())).collect())
    }

    /// The first field of a name; empty where there is none.
    pub(super) fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value.as_str())
    }

    /// Whether a box was ticked.
    pub(super) fn has(&self, name: &str) -> bool {
        !self.get(name).is_empty()
    }

    /// All fields of a name.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// The query of a request's address.
pub(super) struct Asked(pub(super) Params);

impl<S: Sync> FromRequestParts<S> for Asked {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(Params::parse(parts.uri.query().unwrap_or_default().as_bytes())))
    }
}

/// An address with fields.
pub(super) fn address(path: &str, fields: &[(&str, &str)]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    for (name, value) in fields.iter().filter(|(_, value)| !value.is_empty()) {
        query.append_pair(name, value);
    }
    let query = query.finish();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}
