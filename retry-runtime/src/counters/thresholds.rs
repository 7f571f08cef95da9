//! Counters that are worth a look: more of something on one day than is well.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use super::{DailyCounters, Day, MAX_COUNT};
use crate::dead_letter::{Actor, BoxFuture};
use crate::error::{StoreError, StoreErrorKind};

/// A limit for one counter of one operation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Threshold {
    /// The operation.
    pub operation: String,
    /// The counter.
    pub counter: String,
    /// A day with more than this is degraded.
    pub above: u64,
    /// Who set it.
    pub set_by: String,
    /// When.
    pub set_at: SystemTime,
}

impl Threshold {
    /// A threshold that is being set; for stores.
    ///
    /// # Errors
    /// `Invalid` when no counter can ever be above it.
    pub fn new(
        operation: impl Into<String>,
        counter: impl Into<String>,
        above: u64,
        actor: &Actor,
        at: SystemTime,
    ) -> Result<Self, StoreError> {
        if above >= MAX_COUNT {
            let message = format!("a threshold of {above} is never passed: counters stop at {MAX_COUNT}");
            return Err(StoreError::new(StoreErrorKind::Invalid, message));
        }
        let (operation, counter) = (operation.into(), counter.into());
        Ok(Self { operation, counter, above, set_by: actor.name.clone(), set_at: at })
    }
}

/// A counter that passed its threshold. Prints as one line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Degraded {
    /// The operation.
    pub operation: String,
    /// The counter.
    pub counter: String,
    /// The day.
    pub day: Day,
    /// What was counted.
    pub value: u64,
    /// What would still have been well.
    pub above: u64,
}

impl fmt::Display for Degraded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operation, counter, day, value, above } = self;
        write!(f, "{operation}: {counter} is {value} on {day}, above {above}")
    }
}

/// Daily counters with thresholds, kept in the store: whoever looks at it sees the same ones.
///
/// ```
/// use retry_runtime::counters::{DailyCounters, Thresholds};
/// use retry_runtime::dead_letter::{Actor, MemoryStore};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), retry_runtime::error::StoreError> {
/// let store = MemoryStore::new();
/// let me = Actor::new("mira", "the fallback is paid by the byte");
/// store.set_threshold("archive".into(), "fallback_bytes".into(), 500_000, me).await?;
/// store.add("archive", "fallback_bytes", 500_001).await?;
/// let degraded = store.degraded(store.today()).await?;
/// assert_eq!((degraded[0].counter.as_str(), degraded[0].value), ("fallback_bytes", 500_001));
/// # Ok(())
/// # }
/// ```
pub trait Thresholds: DailyCounters {
    /// Sets a threshold, or moves it. It holds for every day, those before included.
    ///
    /// # Errors
    /// `Invalid` for one that is never passed.
    fn set_threshold(
        &self,
        operation: String,
        counter: String,
        above: u64,
        actor: Actor,
    ) -> BoxFuture<'_, Result<Threshold, StoreError>>;

    /// Takes a threshold away; returns it. `None`: there was none.
    fn remove_threshold(
        &self,
        operation: String,
        counter: String,
        actor: Actor,
    ) -> BoxFuture<'_, Result<Option<Threshold>, StoreError>>;

    /// All of them, by operation and counter.
    fn thresholds(&self) -> BoxFuture<'_, Result<Vec<Threshold>, StoreError>>;

    /// The operations and counters that were counted from `from` to `to`, both included, in order.
    fn counters(&self, from: Day, to: Day) -> BoxFuture<'_, Result<Vec<(String, String)>, StoreError>>;

    /// The counters above their thresholds on that day, in the order of [`thresholds`](Self::thresholds).
    fn degraded(&self, day: Day) -> BoxFuture<'_, Result<Vec<Degraded>, StoreError>> {
        Box::pin(async move {
            let mut found = Vec::new();
            for Threshold { operation, counter, above, .. } in self.thresholds().await? {
                let of_day = self.day(operation.clone(), day).await?;
                let value = of_day.get(&counter).copied().unwrap_or(0);
                if value > above {
                    found.push(Degraded { operation, counter, day, value, above });
                }
            }
            Ok(found)
        })
    }
}

macro_rules! through {
    ($($type:ty),*) => {$(
        impl<C: Thresholds + ?Sized> Thresholds for $type {
            fn set_threshold(&self, operation: String, counter: String, above: u64, actor: Actor) -> BoxFuture<'_, Result<Threshold, StoreError>> {
                (**self).set_threshold(operation, counter, above, actor)
            }
            fn remove_threshold(&self, operation: String, counter: String, actor: Actor) -> BoxFuture<'_, Result<Option<Threshold>, StoreError>> {
                (**self).remove_threshold(operation, counter, actor)
            }
            fn thresholds(&self) -> BoxFuture<'_, Result<Vec<Threshold>, StoreError>> {
                (**self).thresholds()
            }
            fn counters(&self, from: Day, to: Day) -> BoxFuture<'_, Result<Vec<(String, String)>, StoreError>> {
                (**self).counters(from, to)
            }
            fn degraded(&self, day: Day) -> BoxFuture<'_, Result<Vec<Degraded>, StoreError>> {
                (**self).degraded(day)
            }
        }
    )*};
}

through!(&C, Arc<C>, Box<C>);

// The trait stays object-safe.
const _: fn(&dyn Thresholds) = |_| {};
