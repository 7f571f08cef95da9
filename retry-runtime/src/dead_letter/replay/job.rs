//! What a handler gets, and what it may say.

use std::any::type_name;
use std::fmt;
use std::time::SystemTime;

use serde_core::de::DeserializeOwned;

use crate::attempt::AttemptRecord;
use crate::classify::Classify;
use crate::clock;
use crate::dead_letter::{Claimed, Failure, Payload};
use crate::gave_up::GaveUp;
use crate::stop::StopReason;
use crate::verdict::Disposition;

/// A job to be done again.
///
/// It is done at least once: a handler whose process dies after the work and before the result is written runs again. Give
/// [`idempotency_key`](Self::idempotency_key) to the systems you call.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ReplayJob {
    /// The letter.
    pub letter_id: String,
    /// The operation.
    pub kind: String,
    /// The job's key; the letter's id where it was parked without one.
    pub job_id: String,
    /// The job's label.
    pub model: Option<String>,
    /// The job's input, as it was parked last.
    pub payload: Payload,
    /// The same at every replay of this payload.
    pub idempotency_key: String,
    /// Higher at every replay, for receivers that refuse older writers.
    pub fence: u64,
}

impl ReplayJob {
    pub(super) fn of(claimed: Claimed) -> Self {
        let row = claimed.row;
        Self {
            idempotency_key: row.idempotency_key(),
            letter_id: row.letter_id,
            kind: row.kind,
            job_id: row.job_id,
            model: row.model,
            payload: claimed.payload,
            fence: row.fence,
        }
    }

    /// The input as JSON text; `None` when it was parked without one.
    pub fn json(&self) -> Option<&str> {
        match &self.payload {
            Payload::Json(text) => Some(text),
            Payload::None | Payload::Unserializable(_) => None,
        }
    }

    /// The input as a value.
    ///
    /// # Errors
    /// When there is none, or it is of another shape: a [`ReplayError`] that keeps the letter parked, of class
    /// `invalid_payload`.
    pub fn payload<T: DeserializeOwned>(&self) -> Result<T, ReplayError> {
        let parsed = self.json().map(serde_json::from_str);
        let why = match parsed {
            Some(Ok(value)) => return Ok(value),
            Some(Err(error)) => format!("the payload is no {}: {error}", type_name::<T>()),
            None => "the letter has no payload".to_owned(),
        };
        let mut failure = Failure::new(StopReason::Permanent, Disposition::Permanent, &why);
        failure.class = Some("invalid_payload".to_owned());
        Err(ReplayError::failed(failure))
    }
}

/// Why a handler did not do its job. Any error with a [`Classify`] becomes one, and any [`GaveUp`], so that `?` does; any
/// other by one of the four constructors.
///
/// A letter whose replays failed [`MAX_REPLAYS`](crate::dead_letter::MAX_REPLAYS) times (5) is abandoned, whether the
/// failures were permanent or not: what could not even be started is [`not_started`](Self::not_started), and counts
/// nothing. [`Replayer::abandoned`](crate::dead_letter::Replayer::abandoned) is the way back.
///
/// ```
/// use retry_runtime::dead_letter::ReplayError;
///
/// let error = ReplayError::failed("the mailbox is full");
/// assert_eq!(error.to_string(), "unknown: the mailbox is full");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayError {
    said: Box<Said>,
}

/// Behind a pointer, so that a handler's `Result` stays small.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Said {
    pub(super) end: HandlerEnd,
    /// How many times the body ran; 0 where nobody counted.
    pub(super) attempts: u32,
    pub(super) history: Vec<AttemptRecord>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum HandlerEnd {
    Failed(Failure),
    Gone(Failure),
    /// The replay is given back; whether the whole run stops.
    NotStarted {
        why: String,
        stops: bool,
    },
}

impl ReplayError {
    /// It failed, by a text or by a [`Failure`]; the letter stays parked, or is abandoned when it failed too often.
    pub fn failed(failure: impl Into<Failure>) -> Self {
        Self::of(HandlerEnd::Failed(failure.into()))
    }

    /// The answer is final: nothing is there. The letter is closed.
    pub fn gone(failure: impl Into<Failure>) -> Self {
        let mut failure = failure.into();
        failure.reason = StopReason::Gone;
        failure.disposition = Disposition::Gone;
        Self::of(HandlerEnd::Gone(failure))
    }

    /// The work could not even be started. The letter is given back as it was, and the run goes on.
    pub fn not_started(why: impl Into<String>) -> Self {
        Self::of(HandlerEnd::NotStarted { why: why.into(), stops: false })
    }

    /// The work could not be started, nor could any other. The letter is given back as it was, and the run stops.
    pub fn stop(why: impl Into<String>) -> Self {
        Self::of(HandlerEnd::NotStarted { why: why.into(), stops: true })
    }

    fn of(end: HandlerEnd) -> Self {
        Self { said: Box::new(Said { end, attempts: 0, history: Vec::new() }) }
    }

    pub(super) fn into_said(self) -> Said {
        *self.said
    }

    pub(super) fn panicked(text: &str) -> Self {
        let message = format!("the handler panicked: {text}");
        Self::failed(Failure::new(StopReason::Panicked, Disposition::Unknown, &message))
    }
}

/// What a handler may fail with: whatever becomes a [`ReplayError`]. Implemented by that alone.
#[diagnostic::on_unimplemented(
    message = "a replay's handler cannot fail with `{Self}`",
    label = "`{Self}` does not become a `ReplayError`",
    note = "derive `retry_runtime::Classify` for `{Self}`, or make one of it: `.map_err(|error| ReplayError::failed(error.to_string()))`",
    note = "`ReplayError::failed` leaves the letter parked, `gone` closes it, `not_started` gives it back as it was, `stop` gives it back and ends the run"
)]
pub trait IntoReplayError {
    /// The error as the replay takes it.
    fn into_replay_error(self) -> ReplayError;
}

#[diagnostic::do_not_recommend]
impl<E: Into<ReplayError>> IntoReplayError for E {
    fn into_replay_error(self) -> ReplayError {
        self.into()
    }
}

impl<E: Classify> From<E> for ReplayError {
    fn from(error: E) -> Self {
        let verdict = error.classify();
        let reason = match verdict.disposition {
            Disposition::Retryable => StopReason::Exhausted,
            Disposition::Permanent => StopReason::Permanent,
            Disposition::Gone => StopReason::Gone,
            Disposition::Unknown => StopReason::Unknown,
        };
        let mut failure = Failure::new(reason, verdict.disposition, &error.describe().unwrap_or_default());
        failure.class = Some(verdict.class.to_owned());
        failure.code = verdict.code;
        failure.error_type = type_name::<E>().into();
        failure.not_before = verdict.retry_after.map(|wait| clock::after(SystemTime::now(), wait));
        if verdict.disposition == Disposition::Gone { Self::gone(failure) } else { Self::failed(failure) }
    }
}

/// Without any attempt (a breaker or a ledger refused) nothing was started, and the replay is given back.
impl<E> From<GaveUp<E>> for ReplayError {
    fn from(gave_up: GaveUp<E>) -> Self {
        let (reason, record) = (gave_up.reason(), gave_up.context());
        let Some(last) = record.last() else {
            return Self::not_started(format!("no attempt was made: {reason}"));
        };
        let mut failure = Failure::new(reason, last.disposition, &last.record.message);
        failure.class = Some(last.record.class.clone().into_owned());
        failure.code = last.record.code;
        failure.error_type = type_name::<E>().into();
        failure.not_before = record.not_before(SystemTime::now());
        let end = if reason == StopReason::Gone { HandlerEnd::Gone(failure) } else { HandlerEnd::Failed(failure) };
        let (attempts, history) = (gave_up.attempts(), gave_up.history().to_vec());
        Self { said: Box::new(Said { end, attempts, history }) }
    }
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.said.end {
            HandlerEnd::Failed(failure) | HandlerEnd::Gone(failure) => {
                write!(f, "{}: {}", failure.error_class(), failure.error_message)
            }
            HandlerEnd::NotStarted { why, .. } => write!(f, "not started: {why}"),
        }
    }
}

/// There was a payload, and it cannot be had: no handler is to be tried with less. (A payload that could not be serialised
/// hides no older one that could.)
pub(super) const fn is_without_payload(payload: &Payload) -> bool {
    matches!(payload, Payload::Unserializable(_))
}
