//! Where the calls are that the installed observer watches.
//!
//! A retried future has four bytes to spare beside a hand-written loop's, and a pointer takes eight: hence a number. Only a
//! call that is watched comes here, and takes a short lock, one of several.

use std::num::NonZeroU32;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::call::Watching;

type Call = Box<Watching<'static>>;

/// The place of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handle(NonZeroU32);

/// How many locks there are.
const SHARDS: u32 = 16;

struct Shard {
    places: Vec<Option<Call>>,
    free: Vec<u32>,
}

static SLAB: [Mutex<Shard>; SHARDS as usize] =
    [const { Mutex::new(Shard { places: Vec::new(), free: Vec::new() }) }; SHARDS as usize];

impl Handle {
    /// `None` when more calls are under way than a handle has numbers for: such a call is not watched.
    fn new(shard: u32, place: u32) -> Option<Self> {
        place.checked_mul(SHARDS)?.checked_add(shard + 1).and_then(NonZeroU32::new).map(Self)
    }

    fn lock(self) -> Option<(MutexGuard<'static, Shard>, u32)> {
        let number = self.0.get() - 1;
        let shard = SLAB.get((number % SHARDS) as usize)?;
        Some((lock(shard), number / SHARDS))
    }
}

fn lock(shard: &'static Mutex<Shard>) -> MutexGuard<'static, Shard> {
    // No code of users runs under these locks.
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A place for a call.
pub(super) fn put(call: Call) -> Option<Handle> {
    let number = u32::try_from(call.number() % u64::from(SHARDS)).ok()?;
    let mut shard = lock(SLAB.get(number as usize)?);
    let Shard { places, free } = &mut *shard;
    let place = match free.pop() {
        Some(place) => place,
        None => {
            let place = u32::try_from(places.len()).ok()?;
            places.push(None);
            place
        }
    };
    let handle = Handle::new(number, place);
    match (handle, places.get_mut(place as usize)) {
        (Some(_), Some(slot)) => *slot = Some(call),
        _ => free.push(place),
    }
    handle
}

/// Takes a call out while it is told of: no lock is held then.
pub(super) fn take(handle: Handle) -> Option<Call> {
    let (mut shard, place) = handle.lock()?;
    shard.places.get_mut(place as usize)?.take()
}

/// Puts a call back.
pub(super) fn give_back(handle: Handle, call: Call) {
    if let Some((mut shard, place)) = handle.lock() {
        if let Some(slot) = shard.places.get_mut(place as usize) {
            *slot = Some(call);
        }
    }
}

/// The call is over: its place is another's.
pub(super) fn free(handle: Handle) {
    if let Some((mut shard, place)) = handle.lock() {
        shard.free.push(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::__private::watch::Facts;
    use crate::__private::watch::call::WatchedBy;

    #[test]
    fn places_are_used_again() {
        let facts = Facts { operation: "test", max_attempts: None, depth: 0 };
        let call = || {
            let by = WatchedBy { own: None, installed: None, catches: false };
            Box::new(Watching::new(by, false, facts))
        };
        let handles: Vec<u32> = (0..1_000)
            .filter_map(|_| {
                let handle = put(call())?;
                let number = take(handle).map(|call| call.number());
                assert!(number.is_some() && take(handle).is_none(), "it is out");
                free(handle);
                Some(handle.0.get())
            })
            .collect();
        assert_eq!(handles.len(), 1_000);
        // a few for tests that run beside this one
        assert!(handles.iter().all(|handle| *handle <= 4 * SHARDS), "{:?}", handles.iter().max());
    }
}
