//! The attempt ledger of the store in memory.

use std::collections::BTreeSet;

use super::{MemoryStore, later};
use crate::dead_letter::{Actor, BoxFuture};
use crate::error::StoreError;
use crate::ledger::{
    AttemptLedger, Begin, End, LedgerBooks, LedgerCounts, LedgerEntry, LedgerKey, LedgerPage, LedgerQuery, LedgerToken,
};
use crate::reply::Reply;

impl AttemptLedger for MemoryStore {
    fn begin(&self, key: LedgerKey, max_attempts: u32) -> Reply<Result<Begin, StoreError>> {
        let now = self.clock.now();
        let mut state = self.lock();
        let entry = state.ledger.entry(key).or_insert_with_key(|key| LedgerEntry::new(key.clone(), now));
        Reply::ready(Ok(entry.begin(max_attempts, now)))
    }

    fn end(&self, key: LedgerKey, token: LedgerToken, end: End) -> Reply<Result<bool, StoreError>> {
        let now = self.clock.now();
        Reply::ready(Ok(self.lock().ledger.get_mut(&key).is_some_and(|entry| entry.end(token, end, now))))
    }

    fn entry(&self, key: LedgerKey) -> BoxFuture<'_, Result<Option<LedgerEntry>, StoreError>> {
        later(move || Ok(self.lock().ledger.get(&key).cloned()))
    }

    fn entries(
        &self,
        scope: String,
        after: Option<String>,
        limit: u32,
    ) -> BoxFuture<'_, Result<Vec<LedgerEntry>, StoreError>> {
        later(move || {
            let state = self.lock();
            let of_scope = state.ledger.values().filter(|entry| entry.key.scope == scope);
            let behind = of_scope.filter(|entry| after.as_ref().is_none_or(|after| entry.key.key > *after));
            Ok(behind.take(limit as usize).cloned().collect())
        })
    }

    fn reset(&self, key: LedgerKey, actor: Actor) -> BoxFuture<'_, Result<Option<LedgerEntry>, StoreError>> {
        later(move || {
            let now = self.clock.now();
            let mut state = self.lock();
            let Some(entry) = state.ledger.get_mut(&key) else { return Ok(None) };
            let detail = format!("{key}: was {} after {} attempts", entry.status.as_str(), entry.attempts);
            entry.reset(now);
            let entry = entry.clone();
            state.note("ledger_reset", &actor, &detail, now);
            Ok(Some(entry))
        })
    }
}

impl LedgerBooks for MemoryStore {
    fn page(&self, query: LedgerQuery) -> BoxFuture<'_, Result<LedgerPage, StoreError>> {
        later(move || {
            let state = self.lock();
            let behind = |entry: &&LedgerEntry| query.after.as_ref().is_none_or(|after| entry.key.key > *after);
            let found = state.ledger.values().filter(|entry| query.matches(entry)).filter(behind);
            let wanted = (query.limit as usize).saturating_add(1);
            Ok(LedgerPage::of(found.take(wanted).cloned().collect(), query.limit))
        })
    }

    fn counts(&self, scope: String) -> BoxFuture<'_, Result<LedgerCounts, StoreError>> {
        later(move || {
            let mut counts = LedgerCounts::default();
            for entry in self.lock().ledger.values().filter(|entry| entry.key.scope == scope) {
                counts.add(entry.status, 1);
            }
            Ok(counts)
        })
    }

    fn scopes(&self) -> BoxFuture<'_, Result<Vec<String>, StoreError>> {
        later(move || {
            let scopes: BTreeSet<_> = self.lock().ledger.keys().map(|key| key.scope.clone()).collect();
            Ok(scopes.into_iter().collect())
        })
    }
}
