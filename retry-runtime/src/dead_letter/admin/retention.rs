//! How long closed letters are kept.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use crate::clock;
use crate::dead_letter::{LetterRow, LetterState, whole_millis};

/// How long closed letters are kept after their closing. Letters that are owed are kept for ever, whatever is said here.
///
/// ```
/// use std::time::Duration;
/// use retry_runtime::dead_letter::{KindRetention, Retention};
///
/// const DAY: Duration = Duration::from_secs(86_400);
/// // 30 days by default, invoices for ten years, and nothing of what was discarded is ever deleted.
/// let mut retention = Retention::default().kind("invoice", KindRetention::all(3_650 * DAY));
/// retention.usual.discarded = None;
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retention {
    /// For every kind that is not named below.
    pub usual: KindRetention,
    /// By kind.
    pub kinds: BTreeMap<String, KindRetention>,
}

/// How long the closed letters of one kind are kept; `None` keeps for ever. 30 days each by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KindRetention {
    /// Recovered letters.
    pub recovered: Option<Duration>,
    /// Discarded letters.
    pub discarded: Option<Duration>,
}

impl KindRetention {
    /// The same for all closed letters.
    pub const fn all(kept: Duration) -> Self {
        Self { recovered: Some(kept), discarded: Some(kept) }
    }

    /// Nothing is ever deleted.
    pub const fn forever() -> Self {
        Self { recovered: None, discarded: None }
    }

    /// How long letters in a state are kept; `None`: for ever.
    pub const fn of(&self, state: LetterState) -> Option<Duration> {
        match state {
            LetterState::Recovered => self.recovered,
            LetterState::Discarded => self.discarded,
            LetterState::Parked | LetterState::Replaying | LetterState::Abandoned => None,
        }
    }
}

impl Default for KindRetention {
    fn default() -> Self {
        Self::all(Duration::from_secs(30 * 86_400))
    }
}

impl Retention {
    /// The same for all closed letters of all kinds: what was closed longer ago is deleted.
    pub fn all(kept: Duration) -> Self {
        Self { usual: KindRetention::all(kept), kinds: BTreeMap::new() }
    }

    /// Nothing is ever deleted, but for kinds that are named then.
    pub fn forever() -> Self {
        Self { usual: KindRetention::forever(), kinds: BTreeMap::new() }
    }

    /// One kind's own.
    #[must_use]
    pub fn kind(mut self, kind: impl Into<String>, kept: KindRetention) -> Self {
        self.kinds.insert(kind.into(), kept);
        self
    }

    /// What holds for a kind.
    pub fn of(&self, kind: &str) -> KindRetention {
        self.kinds.get(kind).copied().unwrap_or(self.usual)
    }

    /// Letters of a kind and state that were closed at this time or earlier are deleted at `now`; `None`: none is. The
    /// meaning a store's own query must have.
    pub fn cutoff(&self, kind: &str, state: LetterState, now: SystemTime) -> Option<SystemTime> {
        self.of(kind).of(state).and_then(|kept| now.checked_sub(kept)).map(whole_millis)
    }
}

impl LetterRow {
    /// From when on retention may delete the letter; `None` for one that is kept for ever, as everything is that is owed.
    pub fn expires_at(&self, retention: &Retention) -> Option<SystemTime> {
        let kept = retention.of(&self.kind).of(self.state)?;
        Some(whole_millis(clock::after(self.closed_at?, kept)))
    }
}

/// What is to be deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PruneRequest {
    /// How long closed letters are kept.
    pub retention: Retention,
    /// Only of these kinds; of all by default.
    pub kinds: Vec<String>,
    /// At most so many letters, the ones closed longest ago first; `None`: all.
    pub limit: Option<u64>,
    /// Only counts.
    pub dry_run: bool,
}

impl PruneRequest {
    /// Everything that this retention keeps no longer.
    pub fn new(retention: Retention) -> Self {
        Self { retention, ..Self::default() }
    }

    /// Everything closed longer ago than this.
    pub fn older_than(kept: Duration) -> Self {
        Self::new(Retention::all(kept))
    }

    /// Only counts.
    #[must_use]
    pub fn dry_run(mut self) -> Self {
        self.dry_run = true;
        self
    }

    /// Whether letters of a kind are meant.
    pub fn means(&self, kind: &str) -> bool {
        self.kinds.is_empty() || self.kinds.iter().any(|meant| meant == kind)
    }
}

/// Letters of one state, kind and error class.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Pruned {
    /// Their state.
    pub state: LetterState,
    /// Their kind.
    pub kind: String,
    /// Their error class.
    pub error_class: String,
}

impl Pruned {
    /// What a letter is counted under.
    pub fn of(row: &LetterRow) -> Self {
        Self { state: row.state, kind: row.kind.clone(), error_class: row.error_class.clone() }
    }

    /// The same from its parts; for stores.
    pub fn new(state: LetterState, kind: impl Into<String>, error_class: impl Into<String>) -> Self {
        Self { state, kind: kind.into(), error_class: error_class.into() }
    }
}

/// What was deleted, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PruneReport {
    /// Nothing was deleted: it was only asked what would be.
    pub dry_run: bool,
    /// How many letters of each sort.
    pub letters: BTreeMap<Pruned, u64>,
    /// When the first of them was closed, and the last.
    pub closed: Option<(SystemTime, SystemTime)>,
    /// The limit was reached: there may be more.
    pub is_cut: bool,
    /// Files of large payloads that no letter needs any more and that were removed.
    pub payload_files: u64,
}

impl PruneReport {
    /// All letters together.
    pub fn total(&self) -> u64 {
        self.letters.values().sum()
    }

    /// Counts one letter; for stores.
    pub fn count(&mut self, what: Pruned, closed_at: SystemTime) {
        *self.letters.entry(what).or_default() += 1;
        let (first, last) = self.closed.unwrap_or((closed_at, closed_at));
        self.closed = Some((first.min(closed_at), last.max(closed_at)));
    }
}

/// What retention will delete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DueReport {
    /// How many letters of each sort.
    pub letters: BTreeMap<Pruned, u64>,
    /// When the first of them may be deleted; in the past where it may be now.
    pub first_at: Option<SystemTime>,
}

impl DueReport {
    /// All letters together.
    pub fn total(&self) -> u64 {
        self.letters.values().sum()
    }

    /// Counts letters that may be deleted from a time on; for stores.
    pub fn count(&mut self, what: Pruned, n: u64, expires_at: SystemTime) {
        *self.letters.entry(what).or_default() += n;
        self.first_at = Some(self.first_at.map_or(expires_at, |first| first.min(expires_at)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::UNIX_EPOCH;

    const DAY: Duration = Duration::from_secs(86_400);

    fn closed(kind: &str, state: LetterState) -> LetterRow {
        let mut row = LetterRow::new("1", kind, "j");
        (row.state, row.closed_at) = (state, state.is_closed().then_some(UNIX_EPOCH));
        row
    }

    // D10, generated from the list of states: a new one is kept for ever until somebody decides.
    #[test]
    fn what_is_owed_never_expires() {
        for retention in [Retention::default(), Retention::all(Duration::ZERO)] {
            for state in LetterState::ALL {
                let expires = closed("fetch", *state).expires_at(&retention);
                assert_eq!(expires.is_some(), !state.is_owed(), "{state}");
                // Closed at the epoch; asked a day later.
                let cutoff = retention.cutoff("fetch", *state, UNIX_EPOCH + DAY);
                let is_due = expires.is_some_and(|at| at <= UNIX_EPOCH + DAY);
                assert_eq!(cutoff.is_some_and(|cutoff| UNIX_EPOCH <= cutoff), is_due, "{state}");
            }
        }
    }

    // A2
    #[test]
    fn each_kind_may_have_its_own() {
        let mut retention =
            Retention::all(DAY).kind("invoice", KindRetention::all(9 * DAY)).kind("x", KindRetention::forever());
        retention.usual.discarded = None;
        let expires = |kind, state| closed(kind, state).expires_at(&retention);
        assert_eq!(expires("fetch", LetterState::Recovered), Some(UNIX_EPOCH + DAY));
        assert_eq!(expires("fetch", LetterState::Discarded), None);
        assert_eq!(expires("invoice", LetterState::Discarded), Some(UNIX_EPOCH + 9 * DAY));
        assert_eq!(expires("x", LetterState::Recovered), None);
    }
}
