//! What is written down about a job that was given up.

use std::time::SystemTime;

use crate::attempt::AttemptRecord;
use crate::id::Id;
use crate::stop::StopReason;
use crate::verdict::Disposition;

/// The job's input, as it will be replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Payload {
    /// The call named no payload.
    None,
    /// JSON text. Floating-point numbers that JSON does not have (NaN, the infinities) are `null` in it.
    Json(String),
    /// Serialising failed; the text says how. The letter is parked all the same.
    Unserializable(String),
}

/// A job that was given up, on its way to a [`DeadLetterSink`](crate::dead_letter::DeadLetterSink).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DeadLetter {
    /// The identity of this parking, made before the first try at the sink. A sink that knows it changes nothing and
    /// gives its first answer again.
    pub park_id: Id,
    /// The operation's name.
    pub kind: String,
    /// The job's own key. Two letters of one kind and job id are one letter. `None`: the letter's own id.
    pub job_id: Option<String>,
    /// A label of the job: the language model asked, the site crawled.
    pub model: Option<String>,
    /// The job's input.
    pub payload: Payload,
    /// The payload is not what the job was called with: a rule for redaction altered it.
    pub payload_altered: bool,
    /// Why the call ended.
    pub reason: StopReason,
    /// What the classifier said of the last failure.
    pub disposition: Disposition,
    /// The last failure's class; `None` when no attempt ran.
    pub class: Option<String>,
    /// The last failure's code.
    pub code: Option<i64>,
    /// The Rust type of the error.
    pub error_type: String,
    /// The last error's text, cut to [`MAX_MESSAGE`](crate::attempt::MAX_MESSAGE) bytes.
    pub error_message: String,
    /// How many times the body (and the fallback) ran. Refused attempts count 0.
    pub attempts: u32,
    /// The failed attempts, oldest first; long histories keep their first and last 8.
    pub history: Vec<AttemptRecord>,
    /// When the call's first attempt failed.
    pub first_failed_at: SystemTime,
    /// When it was given up.
    pub failed_at: SystemTime,
    /// Not to be replayed earlier: the server asked for it.
    pub not_before: Option<SystemTime>,
}

impl DeadLetter {
    /// A letter with nothing but a kind and a reason, for sinks' tests and for programs that park by hand.
    pub fn new(kind: impl Into<String>, reason: StopReason, at: SystemTime) -> Self {
        Self::known_as(Id::new(at), kind, reason, at)
    }

    /// The same, of a parking whose identity is made already.
    pub(crate) fn known_as(park_id: Id, kind: impl Into<String>, reason: StopReason, at: SystemTime) -> Self {
        Self {
            park_id,
            kind: kind.into(),
            job_id: None,
            model: None,
            payload: Payload::None,
            payload_altered: false,
            reason,
            disposition: Disposition::Unknown,
            class: None,
            code: None,
            error_type: String::new(),
            error_message: String::new(),
            attempts: 0,
            history: Vec::new(),
            first_failed_at: at,
            failed_at: at,
            not_before: None,
        }
    }

    /// `permanent:403`, `exhausted:timeout` or the reason alone: `<reason>:<code>` where there is a code, else
    /// `<reason>:<class>` of the last failed attempt.
    pub fn error_class(&self) -> String {
        error_class(self.reason, self.code, self.class.as_deref())
    }
}

pub(crate) fn error_class(reason: StopReason, code: Option<i64>, class: Option<&str>) -> String {
    match (code, class) {
        (Some(code), _) => format!("{reason}:{code}"),
        (None, Some(class)) => format!("{reason}:{class}"),
        (None, None) => reason.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // B1.6
    #[test]
    fn error_class_prefers_the_code_then_the_class() {
        let mut letter = DeadLetter::new("k", StopReason::Exhausted, SystemTime::UNIX_EPOCH);
        assert_eq!(letter.error_class(), "exhausted");
        letter.class = Some("rate_limit".into());
        assert_eq!(letter.error_class(), "exhausted:rate_limit");
        letter.code = Some(429);
        assert_eq!(letter.error_class(), "exhausted:429");
    }
}
