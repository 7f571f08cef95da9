//! Attempts per key that survive restarts.
//!
//! The ledger answers "may this key be tried, and how often was it?". One call of a function is one attempt, however many
//! retries it makes inside, and it is counted before the call: a call that kills its process counts.

mod books;

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use crate::dead_letter::{Actor, BoxFuture, whole_millis};
use crate::error::StoreError;
use crate::reply::Reply;

pub use books::{LedgerBooks, LedgerCounts, LedgerPage, LedgerQuery};

/// A key within a scope. The scope is the operation's name unless the call says otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LedgerKey {
    /// The scope.
    pub scope: String,
    /// The key.
    pub key: String,
}

impl LedgerKey {
    /// A key within a scope.
    pub fn new(scope: impl Into<String>, key: impl Into<String>) -> Self {
        Self { scope: scope.into(), key: key.into() }
    }
}

impl fmt::Display for LedgerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.scope, self.key)
    }
}

/// What the ledger says to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Begin {
    /// Try.
    Go {
        /// This call's number, from 1: already counted.
        attempt: u32,
        /// Goes back with the end.
        token: LedgerToken,
    },
    /// Do not try. Nothing was counted.
    Refused(Refusal),
}

/// Ties an end to its beginning: an end from before an operator's reset changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LedgerToken(pub u64);

/// Why the ledger refuses a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// It succeeded already.
    AlreadyOk,
    /// It is gone for good.
    Gone,
    /// It was tried as often as allowed.
    CapReached {
        /// So often.
        attempts: u32,
    },
    /// A server asked to wait until then.
    NotBefore(SystemTime),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AlreadyOk => f.write_str("already ok"),
            Self::Gone => f.write_str("gone"),
            Self::CapReached { attempts } => write!(f, "cap reached after {attempts} attempts"),
            Self::NotBefore(at) => {
                let ahead = at.duration_since(SystemTime::now()).unwrap_or_default();
                write!(f, "not before {} s from now", ahead.as_secs())
            }
        }
    }
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// It succeeded: never again.
    Ok,
    /// A final answer: never again.
    Gone,
    /// It failed; the attempt is counted already.
    Failed {
        /// Not to be tried earlier, when a server asked for more than the call would wait.
        next_at: Option<SystemTime>,
    },
}

/// Where a key stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LedgerStatus {
    /// Still to be tried.
    Open,
    /// Done.
    Ok,
    /// Gone.
    Gone,
}

impl LedgerStatus {
    /// The stable text form: `open`, `ok` or `gone`, as in the view `attempt_ledger`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Ok => "ok",
            Self::Gone => "gone",
        }
    }

    /// The status of a stable text form; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Open, Self::Ok, Self::Gone].into_iter().find(|status| status.as_str() == text)
    }
}

/// What the ledger knows of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LedgerEntry {
    /// The key.
    pub key: LedgerKey,
    /// Where it stands.
    pub status: LedgerStatus,
    /// Calls so far.
    pub attempts: u32,
    /// Not before.
    pub next_at: Option<SystemTime>,
    /// The first call.
    pub first_seen: SystemTime,
    /// The newest begin or end.
    pub last_seen: SystemTime,
    /// Raised by each reset; what tokens are made of.
    pub generation: u64,
}

impl LedgerEntry {
    /// An open entry without attempts; for ledgers.
    pub fn new(key: LedgerKey, at: SystemTime) -> Self {
        Self {
            key,
            status: LedgerStatus::Open,
            attempts: 0,
            next_at: None,
            first_seen: at,
            last_seen: at,
            generation: 0,
        }
    }

    /// The rule of [`begin`](AttemptLedger::begin): counts a call, or refuses it and changes nothing.
    pub fn begin(&mut self, max_attempts: u32, now: SystemTime) -> Begin {
        let refusal = match (self.status, self.next_at) {
            (LedgerStatus::Ok, _) => Some(Refusal::AlreadyOk),
            (LedgerStatus::Gone, _) => Some(Refusal::Gone),
            (LedgerStatus::Open, _) if self.attempts >= max_attempts => {
                Some(Refusal::CapReached { attempts: self.attempts })
            }
            (LedgerStatus::Open, Some(at)) if at > now => Some(Refusal::NotBefore(at)),
            (LedgerStatus::Open, _) => None,
        };
        if let Some(refusal) = refusal {
            return Begin::Refused(refusal);
        }
        self.attempts = self.attempts.saturating_add(1);
        self.last_seen = now;
        Begin::Go { attempt: self.attempts, token: LedgerToken(self.generation) }
    }

    /// The rule of [`reset`](AttemptLedger::reset): open again without attempts, and deaf to ends of earlier calls.
    pub fn reset(&mut self, now: SystemTime) {
        self.status = LedgerStatus::Open;
        self.attempts = 0;
        self.next_at = None;
        self.last_seen = now;
        self.generation += 1;
    }

    /// The rule of [`end`](AttemptLedger::end): ok beats gone beats open, and an end of an earlier generation changes
    /// nothing. Says whether anything changed.
    pub fn end(&mut self, token: LedgerToken, end: End, now: SystemTime) -> bool {
        if token.0 != self.generation {
            return false;
        }
        match (self.status, end) {
            (LedgerStatus::Open | LedgerStatus::Gone, End::Ok) => self.status = LedgerStatus::Ok,
            (LedgerStatus::Open, End::Gone) => self.status = LedgerStatus::Gone,
            (LedgerStatus::Open, End::Failed { next_at }) => self.next_at = self.next_at.max(next_at.map(whole_millis)),
            (LedgerStatus::Ok | LedgerStatus::Gone, _) => return false,
        }
        self.last_seen = now;
        true
    }
}

/// Persisted attempts per key. It counts; it does not lock.
///
/// `begin` and `end` serve async callers, blocking callers and drop guards alike: they never block, and their work never
/// depends on the reply being kept. The other verbs are the operator's.
///
/// A [replay](crate::dead_letter::Replayer) leaves the ledger alone, in both directions: an annotated function that runs in
/// one neither asks its ledger nor counts there. So a job that is recovered by its replay stays `open` under its key, and a
/// later live call of that key runs it again. A handler that wants it skipped writes the end itself, by `begin` and `end`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an attempt ledger",
    label = "`ledger(store = ..)` needs an `AttemptLedger`",
    note = "pass a store such as `dlq_sqlite::SqliteStore`, a reference to it, an `Arc` of it, or implement `retry_runtime::ledger::AttemptLedger`"
)]
pub trait AttemptLedger: Send + Sync {
    /// Counts a call of this key, unless it is ok, gone, at `max_attempts`, or not due.
    fn begin(&self, key: LedgerKey, max_attempts: u32) -> Reply<Result<Begin, StoreError>>;

    /// Writes down how a call ended. Says whether anything changed.
    fn end(&self, key: LedgerKey, token: LedgerToken, end: End) -> Reply<Result<bool, StoreError>>;

    /// What is known of a key.
    fn entry(&self, key: LedgerKey) -> BoxFuture<'_, Result<Option<LedgerEntry>, StoreError>>;

    /// The keys of a scope in order, behind `after`, at most `limit`.
    fn entries(
        &self,
        scope: String,
        after: Option<String>,
        limit: u32,
    ) -> BoxFuture<'_, Result<Vec<LedgerEntry>, StoreError>>;

    /// Opens a key again with no attempts. Ends of calls begun before change nothing any more. `None`: no such key.
    fn reset(&self, key: LedgerKey, actor: Actor) -> BoxFuture<'_, Result<Option<LedgerEntry>, StoreError>>;
}

macro_rules! through {
    ($($type:ty),*) => {$(
        impl<L: AttemptLedger + ?Sized> AttemptLedger for $type {
            fn begin(&self, key: LedgerKey, max_attempts: u32) -> Reply<Result<Begin, StoreError>> {
                (**self).begin(key, max_attempts)
            }
            fn end(&self, key: LedgerKey, token: LedgerToken, end: End) -> Reply<Result<bool, StoreError>> {
                (**self).end(key, token, end)
            }
            fn entry(&self, key: LedgerKey) -> BoxFuture<'_, Result<Option<LedgerEntry>, StoreError>> {
                (**self).entry(key)
            }
            fn entries(&self, scope: String, after: Option<String>, limit: u32) -> BoxFuture<'_, Result<Vec<LedgerEntry>, StoreError>> {
                (**self).entries(scope, after, limit)
            }
            fn reset(&self, key: LedgerKey, actor: Actor) -> BoxFuture<'_, Result<Option<LedgerEntry>, StoreError>> {
                (**self).reset(key, actor)
            }
        }
    )*};
}

through!(&L, Arc<L>, Box<L>);

// The trait stays object-safe.
const _: fn(&dyn AttemptLedger) = |_| {};
