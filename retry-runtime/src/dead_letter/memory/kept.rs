//! The kept states of the store in memory: they outlive a budget, not the process.

use super::MemoryStore;
use crate::error::StoreError;
use crate::kept::{StateStore, check_name};
use crate::reply::Reply;

impl StateStore for MemoryStore {
    fn keep_state(&self, name: String, state: String) -> Reply<Result<(), StoreError>> {
        Reply::ready(check_name(&name).map(|()| {
            self.lock().kept.insert(name, state);
        }))
    }

    fn kept_state(&self, name: String) -> Reply<Result<Option<String>, StoreError>> {
        Reply::ready(check_name(&name).map(|()| self.lock().kept.get(&name).cloned()))
    }
}
