//! The ledger for whoever looks at it: pages by status, and counts.

use std::sync::Arc;

use super::{AttemptLedger, LedgerEntry, LedgerStatus};
use crate::dead_letter::BoxFuture;
use crate::error::StoreError;

/// Which keys of a scope to show.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LedgerQuery {
    /// The scope: an operation's name, unless the calls said otherwise.
    pub scope: String,
    /// Only keys of this status.
    pub status: Option<LedgerStatus>,
    /// Only keys that were called so often: with a call's cap, the keys it refuses. The others are looked at and left out.
    pub attempts_at_least: u32,
    /// Behind this key.
    pub after: Option<String>,
    /// At most so many; 100 by default.
    pub limit: u32,
}

impl LedgerQuery {
    /// The first 100 keys of a scope.
    pub fn of(scope: impl Into<String>) -> Self {
        Self { scope: scope.into(), status: None, attempts_at_least: 0, after: None, limit: 100 }
    }

    /// Only keys of this status.
    #[must_use]
    pub fn status(mut self, status: LedgerStatus) -> Self {
        self.status = Some(status);
        self
    }

    /// Only keys that were called so often.
    #[must_use]
    pub fn attempts_at_least(mut self, attempts: u32) -> Self {
        self.attempts_at_least = attempts;
        self
    }

    /// The page behind this key; `None`: the first one.
    #[must_use]
    pub fn after(mut self, key: Option<String>) -> Self {
        self.after = key;
        self
    }

    /// At most so many keys.
    #[must_use]
    pub fn limit(mut self, limit: u32) -> Self {
        self.limit = limit;
        self
    }

    /// Whether an entry is meant, wherever the page begins.
    pub fn matches(&self, entry: &LedgerEntry) -> bool {
        entry.key.scope == self.scope
            && self.status.is_none_or(|status| status == entry.status)
            && entry.attempts >= self.attempts_at_least
    }
}

/// One page of the ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LedgerPage {
    /// The entries, in order of their keys.
    pub entries: Vec<LedgerEntry>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<String>,
}

impl LedgerPage {
    /// A page of `limit` entries out of what was found, which is one more where there is more; for ledgers.
    pub fn of(mut found: Vec<LedgerEntry>, limit: u32) -> Self {
        let more = found.len() > limit as usize;
        found.truncate(limit as usize);
        let next = if more { found.last().map(|last| last.key.key.clone()) } else { None };
        Self { entries: found, next }
    }
}

/// How many keys of a scope stand where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LedgerCounts {
    /// Still to be tried, those at their cap included.
    pub open: u64,
    /// Done.
    pub ok: u64,
    /// Gone.
    pub gone: u64,
}

impl LedgerCounts {
    /// Counts `n` keys of a status.
    pub fn add(&mut self, status: LedgerStatus, n: u64) {
        match status {
            LedgerStatus::Open => self.open += n,
            LedgerStatus::Ok => self.ok += n,
            LedgerStatus::Gone => self.gone += n,
        }
    }

    /// All keys.
    pub fn total(&self) -> u64 {
        self.open + self.ok + self.gone
    }

    /// The share of keys that are not `ok`, from 0 to 1, for an alarm on a ratio; `None` without keys.
    #[allow(clippy::cast_precision_loss, reason = "a ratio for an alarm")]
    pub fn not_ok(&self) -> Option<f64> {
        (self.total() > 0).then(|| (self.open + self.gone) as f64 / self.total() as f64)
    }
}

/// A ledger that can be looked through.
pub trait LedgerBooks: AttemptLedger {
    /// One page. As fast at any depth.
    fn page(&self, query: LedgerQuery) -> BoxFuture<'_, Result<LedgerPage, StoreError>>;

    /// How many keys of a scope stand where.
    fn counts(&self, scope: String) -> BoxFuture<'_, Result<LedgerCounts, StoreError>>;

    /// The scopes that have keys, in order.
    fn scopes(&self) -> BoxFuture<'_, Result<Vec<String>, StoreError>>;
}

macro_rules! through {
    ($($type:ty),*) => {$(
        impl<L: LedgerBooks + ?Sized> LedgerBooks for $type {
            fn page(&self, query: LedgerQuery) -> BoxFuture<'_, Result<LedgerPage, StoreError>> {
                (**self).page(query)
            }
            fn counts(&self, scope: String) -> BoxFuture<'_, Result<LedgerCounts, StoreError>> {
                (**self).counts(scope)
            }
            fn scopes(&self) -> BoxFuture<'_, Result<Vec<String>, StoreError>> {
                (**self).scopes()
            }
        }
    )*};
}

through!(&L, Arc<L>, Box<L>);

// The trait stays object-safe.
const _: fn(&dyn LedgerBooks) = |_| {};

#[cfg(test)]
mod tests {
    use super::*;

    // F97
    #[test]
    fn the_ratio_is_of_all_keys() {
        let mut counts = LedgerCounts::default();
        assert_eq!(counts.not_ok(), None);
        for (status, n) in [(LedgerStatus::Ok, 6), (LedgerStatus::Open, 1), (LedgerStatus::Gone, 1)] {
            counts.add(status, n);
        }
        assert_eq!((counts.total(), counts.not_ok()), (8, Some(0.25)));
    }
}
