//! `google.rpc.RetryInfo` in the JSON of a Google error.

use std::time::Duration;

use serde_json::Value;

use crate::hints::proto_duration;

/// How deep the details of an error are looked for.
const DEPTH: u32 = 8;

/// [`retry_info`] of a response's body; `None` also where it is no JSON.
///
/// ```
/// use std::time::Duration;
/// use retry_runtime::hints::retry_info_in;
///
/// let body = r#"{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "details": [
///     {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "53s"}]}}"#;
/// assert_eq!(retry_info_in(body), Some(Duration::from_secs(53)));
/// ```
pub fn retry_info_in(body: &str) -> Option<Duration> {
    retry_info(&serde_json::from_str(body).ok()?)
}

/// The wait that a Google error asks for: the `retryDelay` of its `google.rpc.RetryInfo`. Takes the whole body, its `error`,
/// the list of `details`, or one of them.
pub fn retry_info(error: &Value) -> Option<Duration> {
    search(error, DEPTH)
}

fn search(value: &Value, depth: u32) -> Option<Duration> {
    let depth = depth.checked_sub(1)?;
    match value {
        // Streams wrap the error in a list.
        Value::Array(items) => items.iter().find_map(|item| search(item, depth)),
        Value::Object(fields) => {
            let kind = fields.get("@type").and_then(Value::as_str).unwrap_or_default();
            if kind.rsplit('/').next() == Some("google.rpc.RetryInfo") {
                fields.get("retryDelay").or_else(|| fields.get("retry_delay")).and_then(delay)
            } else {
                ["error", "details"].iter().find_map(|name| search(fields.get(*name)?, depth))
            }
        }
        _ => None,
    }
}

/// `"53s"`, or the message spelt out: `{"seconds": 53, "nanos": 0}`.
fn delay(value: &Value) -> Option<Duration> {
    if let Value::String(text) = value {
        return proto_duration(text);
    }
    let fields = value.as_object()?;
    let number = |name| match fields.get(name) {
        None => Some(0),
        // 64-bit numbers are strings in the JSON of protocol buffers.
        Some(Value::String(text)) => text.parse().ok(),
        Some(number) => number.as_u64(),
    };
    let nanos = number("nanos").and_then(|nanos| u32::try_from(nanos).ok()).filter(|nanos| *nanos < 1_000_000_000)?;
    if fields.contains_key("seconds") || fields.contains_key("nanos") {
        Some(Duration::new(number("seconds")?, nanos))
    } else {
        None
    }
}
