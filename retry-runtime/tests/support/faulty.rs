//! The store in memory, which fails when told to, and counts what it is asked.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use retry_runtime::dead_letter::{
    Actor, Aggregate, BoxFuture, BulkOperations, ClaimRequest, Claimed, DeadLetterStore, Group, MemoryStore, Operation,
};
use retry_runtime::error::{StoreError, StoreErrorKind};
use retry_runtime::testing::{Faults, Planted};

type Answer<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

pub(crate) struct Faulty {
    inner: MemoryStore,
    fails: Mutex<Option<StoreErrorKind>>,
    claims: AtomicU32,
    looks: AtomicU32,
}

/// A store that works until told otherwise.
pub(crate) fn faulty(inner: MemoryStore) -> Planted<Faulty> {
    Planted(Faulty { inner, fails: Mutex::default(), claims: AtomicU32::new(0), looks: AtomicU32::new(0) })
}

impl Faulty {
    /// From now on claims and looks at what waits fail so.
    pub(crate) fn fail_with(&self, kind: Option<StoreErrorKind>) {
        *self.fails.lock().unwrap() = kind;
    }

    /// How often letters were claimed, and how often waiting operations were looked for.
    pub(crate) fn asked(&self) -> (u32, u32) {
        (self.claims.load(Ordering::SeqCst), self.looks.load(Ordering::SeqCst))
    }

    fn fault(&self) -> Result<(), StoreError> {
        self.fails.lock().unwrap().map_or(Ok(()), |kind| Err(StoreError::new(kind, "on purpose")))
    }
}

impl Faults for Faulty {
    type Inner = MemoryStore;
    fn inner(&self) -> &MemoryStore {
        &self.inner
    }

    fn claim(&self, request: ClaimRequest, actor: Actor) -> Answer<'_, Vec<Claimed>> {
        Box::pin(async move {
            self.claims.fetch_add(1, Ordering::SeqCst);
            self.fault()?;
            self.inner.claim(request, actor).await
        })
    }

    fn aggregate(&self, question: Aggregate) -> Answer<'_, Vec<Group>> {
        Box::pin(async move {
            self.fault()?;
            self.inner.aggregate(question).await
        })
    }

    fn waiting(&self, limit: u32) -> Answer<'_, Vec<Operation>> {
        Box::pin(async move {
            self.looks.fetch_add(1, Ordering::SeqCst);
            self.fault()?;
            self.inner.waiting(limit).await
        })
    }
}
