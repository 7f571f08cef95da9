//! The attempt ledger of the store in memory.

use super::{MemoryStore, later};
use crate::dead_letter::{Actor, BoxFuture};
use crate::error::StoreError;
use crate::ledger::{AttemptLedger, Begin, End, LedgerEntry, LedgerKey, LedgerToken};
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

    fn reset(&self, key: LedgerKey, _actor: Actor) -> BoxFuture<'_, Result<Option<LedgerEntry>, StoreError>> {
        later(move || {
            let now = self.clock.now();
            Ok(self.lock().ledger.get_mut(&key).map(|entry| {
                entry.reset(now);
                entry.clone()
            }))
        })
    }
}
