//! Taking letters for a replay, and saying how it ended.

use std::time::{Duration, SystemTime};

use crate::attempt::AttemptRecord;
use crate::dead_letter::letter::error_class;
use crate::dead_letter::{DeadLetter, Filter, LOOK_AT, LetterRow, Payload};
use crate::error::{StoreError, StoreErrorKind};
use crate::stop::StopReason;
use crate::verdict::Disposition;

/// Which letters to take for a replay.
///
/// A store takes parked letters of the named kinds that match the filter, the ones due longest first (ties by number), at
/// most `limit`. Leases that have run out are taken back first.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[allow(clippy::struct_excessive_bools, reason = "each is a choice of its own, and plain data")]
pub struct ClaimRequest {
    /// The kinds the caller has handlers for. A store refuses an empty list as [`Invalid`](crate::error::StoreErrorKind).
    pub kinds: Vec<String>,
    /// Among these; its `states` are ignored, since only parked letters are taken.
    pub filter: Filter,
    /// At most so many; 1 by default.
    pub limit: u32,
    /// A store need not look at more letters than this to find them; [`LOOK_AT`](crate::dead_letter::LOOK_AT) by default. One
    /// that stops there takes what it has found, and goes on behind that place when the same is asked for again: a claim that
    /// takes nothing does not say that there is nothing, but asking again gets there.
    pub look_at: u64,
    /// How long the lease lasts unless it is extended; 60 s by default.
    pub lease: Duration,
    /// Who replays, for people to read.
    pub owner: String,
    /// Takes letters in their replay back-off too.
    pub ignore_backoff: bool,
    /// Takes letters a server asked to leave alone for longer.
    pub ignore_not_before: bool,
    /// Leaves out [what cannot be replayed as it is](crate::dead_letter::LetterRow::is_replayable): letters whose stored
    /// payload was altered, and letters whose payload could not be serialised. They would come again and again to whoever
    /// asks again and again.
    pub replayable_only: bool,
    /// The store itself extends the lease until the result, the release, [`give_back`](crate::dead_letter::DeadLetterStore::give_back)
    /// or the end of the process. Only where [`Capabilities::heartbeats`](crate::dead_letter::Capabilities::heartbeats).
    pub keep_alive: bool,
}

impl ClaimRequest {
    /// One letter of these kinds, under a lease of 60 s, obeying back-offs and hints.
    pub fn new(kinds: impl IntoIterator<Item = impl Into<String>>, owner: impl Into<String>) -> Self {
        Self {
            kinds: kinds.into_iter().map(Into::into).collect(),
            filter: Filter::default(),
            limit: 1,
            look_at: LOOK_AT,
            lease: Duration::from_secs(60),
            owner: owner.into(),
            ignore_backoff: false,
            ignore_not_before: false,
            replayable_only: false,
            keep_alive: false,
        }
    }

    /// Refuses what makes no sense.
    ///
    /// # Errors
    /// `Invalid` when no kind is named.
    pub fn check(&self) -> Result<(), StoreError> {
        if self.kinds.is_empty() {
            let message = "a claim names no kind: name the kinds the caller has handlers for";
            return Err(StoreError::new(StoreErrorKind::Invalid, message));
        }
        Ok(())
    }

    /// Whether a parked letter is to be taken at `now`; the meaning a store's own query must have.
    pub fn takes(&self, row: &LetterRow, now: SystemTime) -> bool {
        let due = |at: Option<SystemTime>| at.is_none_or(|at| at <= now);
        let mut filter = self.filter.clone();
        filter.states = vec![crate::dead_letter::LetterState::Parked];
        self.kinds.contains(&row.kind)
            && filter.matches(row)
            && (self.ignore_backoff || due(row.replay_after))
            && (self.ignore_not_before || due(row.not_before))
            && (!self.replayable_only || row.is_replayable())
    }
}

/// A letter taken for a replay.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Claimed {
    /// The letter, in state `replaying`, with its fence and the end of its lease.
    pub row: LetterRow,
    /// The newest payload. Never decoded by the store.
    pub payload: Payload,
}

impl Claimed {
    /// A claimed letter; for stores.
    pub fn new(row: LetterRow, payload: Payload) -> Self {
        Self { row, payload }
    }
}

/// What a failed replay says of its last failure.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Failure {
    /// Why it ended.
    pub reason: StopReason,
    /// What the classifier said.
    pub disposition: Disposition,
    /// The failure's class.
    pub class: Option<String>,
    /// The failure's code.
    pub code: Option<i64>,
    /// The Rust type of the error.
    pub error_type: String,
    /// The error's text, at most [`MAX_MESSAGE`](crate::attempt::MAX_MESSAGE) bytes.
    pub error_message: String,
    /// Not to be replayed earlier: the server asked for it.
    pub not_before: Option<SystemTime>,
}

impl Failure {
    /// A failure with a reason, a disposition and a text; the text is cut as that of an
    /// [`AttemptRecord`](crate::attempt::AttemptRecord::new).
    pub fn new(reason: StopReason, disposition: Disposition, message: &str) -> Self {
        Self {
            reason,
            disposition,
            class: None,
            code: None,
            error_type: String::new(),
            error_message: crate::attempt::message_within(message.into()),
            not_before: None,
        }
    }

    /// The failure a letter tells of.
    pub fn of(letter: &DeadLetter) -> Self {
        Self {
            reason: letter.reason,
            disposition: letter.disposition,
            class: letter.class.clone(),
            code: letter.code,
            error_type: letter.error_type.clone(),
            error_message: letter.error_message.clone(),
            not_before: letter.not_before,
        }
    }

    /// As [`DeadLetter::error_class`].
    pub fn error_class(&self) -> String {
        error_class(self.reason, self.code, self.class.as_deref())
    }
}

/// A failure of which only the text is known: reason and disposition `unknown`.
impl From<&str> for Failure {
    fn from(message: &str) -> Self {
        Self::new(StopReason::Unknown, Disposition::Unknown, message)
    }
}

/// A failure of which only the text is known: reason and disposition `unknown`.
impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self::from(message.as_str())
    }
}

/// How a replay ended.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ReplayOutcome {
    /// It succeeded.
    Recovered,
    /// The answer is final: nothing is there. The letter is discarded, with reason `gone`.
    Gone(Failure),
    /// It failed.
    Failed(Failure),
}

impl ReplayOutcome {
    /// In one word: `recovered`, `gone`, or the failure's reason.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Recovered => "recovered",
            Self::Gone(_) => "gone",
            Self::Failed(failure) => failure.reason.as_str(),
        }
    }
}

/// The result of a replay.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Finish {
    /// Which letter.
    pub letter_id: String,
    /// The fence of the claim.
    pub fence: u64,
    /// How it ended.
    pub outcome: ReplayOutcome,
    /// How many times the body ran; 1 where nobody counted.
    pub attempts: u32,
    /// The replay's failed attempts.
    pub history: Vec<AttemptRecord>,
    /// How long its handler ran; zero where nobody measured.
    pub took: Duration,
}

impl Finish {
    /// A result of one body run.
    pub fn new(letter_id: impl Into<String>, fence: u64, outcome: ReplayOutcome) -> Self {
        Self { letter_id: letter_id.into(), fence, outcome, attempts: 1, history: Vec::new(), took: Duration::ZERO }
    }
}

/// How a lease is given up without a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Release {
    /// By its holder, an orderly shutdown: counts neither as a replay nor as a crash.
    Held {
        /// The fence of the claim.
        fence: u64,
    },
    /// By its holder, whose handler could not be started: counts neither, and standing workers leave the letter alone for a
    /// while ([`replay_after`](LetterRow::replay_after)), whichever process they live in.
    Later {
        /// The fence of the claim.
        fence: u64,
        /// For so long at least.
        wait: Duration,
    },
    /// By an operator, over the holder's head: the fence is raised, so that the holder's result comes too late.
    Forced,
}

impl Release {
    /// In one word: `held`, `later` or `forced`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Held { .. } => "held",
            Self::Later { .. } => "later",
            Self::Forced => "forced",
        }
    }

    /// The fence of the holder that releases; `None` for an operator.
    pub const fn fence(self) -> Option<u64> {
        match self {
            Self::Held { fence } | Self::Later { fence, .. } => Some(fence),
            Self::Forced => None,
        }
    }
}

/// The wait that standing workers keep after the `replays`-th failed replay: 1 minute, doubled each time, at most 1 hour.
pub fn replay_backoff(replays: u32) -> Duration {
    let doublings = replays.saturating_sub(1).min(6);
    Duration::from_secs(60 << doublings).min(Duration::from_secs(3_600))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_replay_backoff_doubles_up_to_an_hour() {
        let minutes: Vec<_> = [0, 1, 2, 3, 6, 7, u32::MAX].map(|n| replay_backoff(n).as_secs() / 60).to_vec();
        assert_eq!(minutes, [1, 1, 2, 4, 32, 60, 60]);
    }
}
