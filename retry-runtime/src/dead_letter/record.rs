//! A stored letter, as plain data.

use std::time::{Duration, SystemTime};

use crate::attempt::AttemptRecord;
use crate::dead_letter::{FINGERPRINT_VERSION, LetterState, Payload};
use crate::id::Id;
use crate::stop::StopReason;
use crate::verdict::Disposition;

/// How many replays may fail before a letter is abandoned. [`restore`](crate::dead_letter::DeadLetterStore::restore) takes
/// it back, and grants more.
pub const MAX_REPLAYS: u32 = 5;

/// How many replays may die (process gone, lease run out) before a letter is abandoned.
pub const MAX_CRASHES: u32 = 3;

/// A stored letter without its payload and history: what lists show.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LetterRow {
    /// The store's own number, in order of arrival; pages are keyed by it. Never used again.
    pub seq: u64,
    /// The letter's id: the same in every export and at every replay.
    pub letter_id: String,
    /// The part of a shared store this letter belongs to.
    pub scope: String,
    /// The operation's name.
    pub kind: String,
    /// The job's key; the letter's own id where the call named none.
    pub job_id: String,
    /// The job's label.
    pub model: Option<String>,
    /// Where it stands.
    pub state: LetterState,
    /// Why the newest failing call ended.
    pub reason: StopReason,
    /// What the classifier said of the newest failure.
    pub disposition: Disposition,
    /// The newest failure's class.
    pub class: Option<String>,
    /// The newest failure's code.
    pub code: Option<i64>,
    /// `permanent:403`, `exhausted:timeout`, or the reason alone.
    pub error_class: String,
    /// The Rust type of the newest error.
    pub error_type: String,
    /// The newest error's text.
    pub error_message: String,
    /// Groups failures that are one failure: see [`fingerprint`](crate::dead_letter::fingerprint).
    pub fingerprint: String,
    /// By which version of the rule: [`FINGERPRINT_VERSION`](crate::dead_letter::FINGERPRINT_VERSION) when the newest failure
    /// was written.
    pub fingerprint_version: u32,
    /// Every body run ever made for this job, fallbacks and replays included. Refused attempts count 0.
    pub attempts: u64,
    /// How many calls parked this job.
    pub parkings: u64,
    /// Replays that gave a result.
    pub replays: u32,
    /// Replays that died.
    pub crashes: u32,
    /// `replays` at which a failing replay abandons the letter. Renewed by raising it, never by resetting `replays`.
    pub max_replays: u32,
    /// `crashes` at which a dying replay abandons the letter.
    pub max_crashes: u32,
    /// A live call of the same job failed while a replay ran: that replay's success will not close the letter.
    pub failed_again: bool,
    /// Raised at each claim and each reopening; a result with an older fence changes nothing.
    pub fence: u64,
    /// Who replays it, for people to read.
    pub owner: Option<String>,
    /// When the running replay's lease ends.
    pub lease_until: Option<SystemTime>,
    /// Not before: a server asked for it. Also a manual replay obeys it, unless forced.
    pub not_before: Option<SystemTime>,
    /// The replay back-off after a failed replay. Standing workers obey it, a manual replay does not.
    pub replay_after: Option<SystemTime>,
    /// The earliest failure.
    pub first_seen: SystemTime,
    /// The newest failure, of a live call or of a replay.
    pub last_seen: SystemTime,
    /// When it was closed; present exactly in closed states.
    pub closed_at: Option<SystemTime>,
    /// Who closed it; present in closed states.
    pub closed_by: Option<String>,
    /// How it was closed, in one word: `recovered` by a replay or `resolved_by_hand`, `discarded` by an operator or `gone`
    /// by a replay's answer, `abandoned`. What the operator said stands in the
    /// [event](crate::dead_letter::DeadLetterStore::events).
    pub closed_reason: Option<String>,
    /// The revision a replay uses, from 1; 0 without a payload.
    pub payload_revision: u32,
    /// The payload's size in bytes, as JSON; `None` without one.
    pub payload_size: Option<u64>,
    /// Why the newest payload could not be serialised; `None` where it could. A replay then uses an older one, where there
    /// is one.
    pub payload_error: Option<String>,
    /// The stored payload is not what the job was called with (redacted): replay skips it until
    /// it is edited, or forced.
    pub payload_altered: bool,
    /// Reserved: letters of one key are to be replayed in order.
    pub sequence_key: Option<String>,
}

impl LetterRow {
    /// A parked letter with nothing but its names; for stores, which fill in the rest.
    pub fn new(letter_id: impl Into<String>, kind: impl Into<String>, job_id: impl Into<String>) -> Self {
        Self {
            seq: 0,
            letter_id: letter_id.into(),
            scope: DEFAULT_SCOPE.to_owned(),
            kind: kind.into(),
            job_id: job_id.into(),
            model: None,
            state: LetterState::Parked,
            reason: StopReason::Unknown,
            disposition: Disposition::Unknown,
            class: None,
            code: None,
            error_class: String::new(),
            error_type: String::new(),
            error_message: String::new(),
            fingerprint: String::new(),
            fingerprint_version: FINGERPRINT_VERSION,
            attempts: 0,
            parkings: 0,
            replays: 0,
            crashes: 0,
            max_replays: MAX_REPLAYS,
            max_crashes: MAX_CRASHES,
            failed_again: false,
            fence: 0,
            owner: None,
            lease_until: None,
            not_before: None,
            replay_after: None,
            first_seen: SystemTime::UNIX_EPOCH,
            last_seen: SystemTime::UNIX_EPOCH,
            closed_at: None,
            closed_by: None,
            closed_reason: None,
            payload_revision: 0,
            payload_size: None,
            payload_error: None,
            payload_altered: false,
            sequence_key: None,
        }
    }

    /// The key a replayed handler gives to the systems it calls: the letter and the payload's revision, the same at every
    /// replay. (The fence travels apart, for receivers that refuse older writers.)
    pub fn idempotency_key(&self) -> String {
        format!("{}.{}", self.letter_id, self.payload_revision)
    }
}

/// The scope of a store that was given no other.
pub const DEFAULT_SCOPE: &str = "default";

/// A stored letter with everything.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LetterDetail {
    /// The letter.
    pub row: LetterRow,
    /// The payload a replay uses.
    pub payload: Payload,
    /// How many revisions of the payload are kept.
    pub revisions: u32,
    /// The recorded attempts, in the order of recording. Never reset by a replay; beyond
    /// [`MAX_HISTORY_ENTRIES`](crate::dead_letter::MAX_HISTORY_ENTRIES) attempts or
    /// [`MAX_HISTORY_BYTES`](crate::dead_letter::MAX_HISTORY_BYTES) of messages, cut in the middle.
    pub history: Vec<HistoryEntry>,
    /// How many attempts were cut out of the history.
    pub history_cut: u64,
    /// Where they stood: behind so many attempts of `history`.
    pub history_cut_at: u64,
}

impl LetterDetail {
    /// A letter's details; for stores.
    pub fn new(row: LetterRow, payload: Payload, revisions: u32, history: Vec<HistoryEntry>) -> Self {
        Self { row, payload, revisions, history, history_cut: 0, history_cut_at: 0 }
    }

    /// Says what was cut out of the history.
    #[must_use]
    pub fn with_cut(mut self, cut: u64, cut_at: u64) -> Self {
        (self.history_cut, self.history_cut_at) = (cut, if cut == 0 { 0 } else { cut_at });
        self
    }
}

/// One recorded attempt of a stored letter.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct HistoryEntry {
    /// The parking that brought it; `None` for a replay's.
    pub park_id: Option<Id>,
    /// The fence of the replay that made it; `None` for a live call's.
    pub fence: Option<u64>,
    /// What became of it.
    pub outcome: AttemptOutcome,
    /// A result that came after its lease had gone: recorded, and without effect.
    pub late: bool,
    /// The attempt's number within its call, from 1.
    pub attempt: u32,
    /// When it started.
    pub at: SystemTime,
    /// How long it ran.
    pub took: Duration,
    /// The failure's class.
    pub class: Option<String>,
    /// The failure's code.
    pub code: Option<i64>,
    /// The error's text; empty for a success.
    pub message: String,
    /// The wait that followed.
    pub wait: Option<Duration>,
}

impl HistoryEntry {
    /// A failed attempt of a live call.
    pub fn parked(park_id: Id, record: &AttemptRecord) -> Self {
        Self { park_id: Some(park_id), fence: None, ..Self::failed(record) }
    }

    /// A failed attempt of a replay.
    pub fn replayed(fence: u64, record: &AttemptRecord) -> Self {
        Self { park_id: None, fence: Some(fence), ..Self::failed(record) }
    }

    /// An attempt of a replay without an error record: a success, or a crash.
    pub fn bare(fence: u64, outcome: AttemptOutcome, at: SystemTime, message: impl Into<String>) -> Self {
        Self {
            park_id: None,
            fence: Some(fence),
            outcome,
            late: false,
            attempt: 1,
            at,
            took: Duration::ZERO,
            class: None,
            code: None,
            message: message.into(),
            wait: None,
        }
    }

    /// Marks it as come too late.
    #[must_use]
    pub fn late(mut self) -> Self {
        self.late = true;
        self
    }

    fn failed(record: &AttemptRecord) -> Self {
        Self {
            park_id: None,
            fence: None,
            outcome: AttemptOutcome::Failed,
            late: false,
            attempt: record.attempt,
            at: record.at,
            took: record.took,
            class: Some(record.class.clone().into_owned()),
            code: record.code,
            message: record.message.clone(),
            wait: record.wait,
        }
    }
}

/// What became of a recorded attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AttemptOutcome {
    /// It failed.
    Failed,
    /// It succeeded.
    Succeeded,
    /// Its answer was final: nothing is there.
    Gone,
    /// Its process died, or lost its lease.
    Crashed,
}

impl AttemptOutcome {
    /// The stable text form: `failed`, `succeeded`, `gone` or `crashed`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Succeeded => "succeeded",
            Self::Gone => "gone",
            Self::Crashed => "crashed",
        }
    }

    /// The outcome of a stable text form; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Failed, Self::Succeeded, Self::Gone, Self::Crashed].into_iter().find(|outcome| outcome.as_str() == text)
    }
}
