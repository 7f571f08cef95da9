//! A budget for each key.

use std::borrow::Borrow;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::Budget;

/// How many keys are kept unless told otherwise.
const KEYS: usize = 1024;

/// A [`Budget`] for each key - host, tenant, model - with a bounded number of keys.
///
/// A key that is not there gets a new budget. When the bound is reached, all budgets go that no call holds and that are as
/// a new one would be: nothing is lost with them. Where there is none such, the fullest goes, the least recently asked for
/// among equals, one that a call holds only when all are held. The emptier a budget, the longer it stays, so that a flood
/// of new keys does not give tokens back to a key that has none left.
///
/// ```
/// use retry_runtime::{Budget, Budgets};
///
/// static HOSTS: Budgets<String> = Budgets::new(|| Budget::new().ratio(0.1)).max_keys(500);
///
/// let budget = HOSTS.get("example.com"); // an `Arc<Budget>`, as in `#[retry(budget = HOSTS.get(host))]`
/// assert!(budget.take("timeout").is_some());
/// assert_eq!(HOSTS.len(), 1);
/// ```
pub struct Budgets<K> {
    make: fn() -> Budget,
    max_keys: usize,
    keys: RwLock<Option<HashMap<K, Slot>>>,
    asked: AtomicU64,
}

struct Slot {
    budget: Arc<Budget>,
    asked: AtomicU64,
}

impl<K> Budgets<K> {
    /// Budgets that are made so, 1024 keys at most.
    pub const fn new(make: fn() -> Budget) -> Self {
        Self { make, max_keys: KEYS, keys: RwLock::new(None), asked: AtomicU64::new(0) }
    }

    /// The largest number of keys; 0 counts as 1. Default: 1024.
    #[must_use]
    pub const fn max_keys(mut self, keys: usize) -> Self {
        self.max_keys = if keys == 0 { 1 } else { keys };
        self
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).as_ref().map_or(0, HashMap::len)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<K: Hash + Eq> Budgets<K> {
    /// The budget of a key, a new one where it is not there.
    ///
    /// Takes a lock for reading; a new key takes it for writing, and looks at all keys when there are as many as there may
    /// be. The budget itself is lock-free: keep the `Arc` where the key does not change.
    pub fn get<Q>(&self, key: &Q) -> Arc<Budget>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        let known = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = known.as_ref().and_then(|keys| keys.get(key)) {
            slot.asked.store(asked, Ordering::Relaxed);
            return Arc::clone(&slot.budget);
        }
        drop(known);
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        let keys = keys.get_or_insert_default();
        // another thread may have been here between the two locks
        if keys.len() >= self.max_keys && !keys.contains_key(key) {
            make_room(keys);
        }
        let slot = keys
            .entry(key.to_owned())
            .or_insert_with(|| Slot { budget: Arc::new((self.make)()), asked: AtomicU64::new(asked) });
        Arc::clone(&slot.budget)
    }

    /// Each key with its budget, for metrics and for what is kept between runs.
    pub fn all(&self) -> Vec<(K, Arc<Budget>)>
    where
        K: Clone,
    {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        keys.iter().flatten().map(|(key, slot)| (key.clone(), Arc::clone(&slot.budget))).collect()
    }
}

/// Removes what nobody would miss, and if that is nothing the one that is missed least.
fn make_room<K: Hash + Eq>(keys: &mut HashMap<K, Slot>) {
    let before = keys.len();
    keys.retain(|_, slot| slot.in_use() || !slot.budget.is_fresh());
    if keys.len() < before {
        return;
    }
    // each slot was last asked for at a number of its own
    let least = keys.values().min_by_key(|slot| slot.loss()).map(Slot::asked);
    keys.retain(|_, slot| Some(slot.asked()) != least);
}

impl Slot {
    /// Calls hold it.
    fn in_use(&self) -> bool {
        Arc::strong_count(&self.budget) > 1
    }

    fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }

    /// What orders the slots by how much they are missed: those that calls hold last, the fullest first, then the oldest.
    fn loss(&self) -> (bool, Reverse<u64>, u64) {
        (self.in_use(), Reverse(self.budget.milli_tokens()), self.asked())
    }
}

impl<K: fmt::Debug> fmt::Debug for Budgets<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budgets").field("keys", &self.len()).field("max_keys", &self.max_keys).finish_non_exhaustive()
    }
}
