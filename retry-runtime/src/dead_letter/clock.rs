//! The clock a store is built with.
//!
//! No verb of a store takes a `now`: a store owns its clock, so that every lease and every due time is judged by one
//! clock. Tests build the store with a [`ManualClock`] and move it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Where a store reads the time. Cheap to clone.
///
/// Leases and due times are moments of this clock. When the system's clock is set ahead, leases end early, and replays may
/// run twice; when it is set back, the letters of a process that died are taken back that much later.
#[derive(Clone, Default)]
pub struct StoreClock {
    source: Source,
}

#[derive(Clone, Default)]
enum Source {
    #[default]
    System,
    Manual(Arc<AtomicI64>),
    /// So many milliseconds ahead of the system's.
    #[cfg(feature = "test-util")]
    Ahead(Arc<AtomicI64>),
}

impl StoreClock {
    /// The system's clock; the default.
    pub const fn system() -> Self {
        Self { source: Source::System }
    }

    /// The time now, in whole milliseconds: the resolution in which stores keep times.
    pub fn now(&self) -> SystemTime {
        match &self.source {
            Source::System => whole_millis(SystemTime::now()),
            Source::Manual(millis) => from_millis(millis.load(Ordering::SeqCst)),
            #[cfg(feature = "test-util")]
            Source::Ahead(millis) => {
                from_millis(to_millis(SystemTime::now()).saturating_add(millis.load(Ordering::SeqCst)))
            }
        }
    }

    /// A clock so many milliseconds ahead of the system's; it jumps when the number is changed.
    #[cfg(feature = "test-util")]
    pub(crate) fn ahead(millis: Arc<AtomicI64>) -> Self {
        Self { source: Source::Ahead(millis) }
    }
}

impl fmt::Debug for StoreClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.source {
            Source::System => "system",
            Source::Manual(_) => "manual",
            #[cfg(feature = "test-util")]
            Source::Ahead(_) => "ahead",
        };
        f.debug_tuple("StoreClock").field(&kind).finish()
    }
}

/// A clock that stands still until it is moved, for tests of stores.
///
/// ```
/// use std::time::{Duration, UNIX_EPOCH};
/// use retry_runtime::dead_letter::ManualClock;
///
/// let time = ManualClock::new(UNIX_EPOCH);
/// let clock = time.clock(); // goes into the store
/// time.advance(Duration::from_secs(60));
/// assert_eq!(clock.now(), UNIX_EPOCH + Duration::from_secs(60));
/// ```
#[derive(Clone, Debug)]
pub struct ManualClock {
    millis: Arc<AtomicI64>,
}

impl ManualClock {
    /// A clock that stands at `at`.
    pub fn new(at: SystemTime) -> Self {
        Self { millis: Arc::new(AtomicI64::new(to_millis(at))) }
    }

    /// The handle a store is built with.
    pub fn clock(&self) -> StoreClock {
        StoreClock { source: Source::Manual(Arc::clone(&self.millis)) }
    }

    /// The time now.
    pub fn now(&self) -> SystemTime {
        self.clock().now()
    }

    /// Moves it forward, by whole milliseconds.
    pub fn advance(&self, by: Duration) {
        let by = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        // `fetch_update` never fails: the closure always gives a value.
        let _moved =
            self.millis.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |millis| Some(millis.saturating_add(by)));
    }

    /// Sets it, backwards too.
    pub fn set(&self, at: SystemTime) {
        self.millis.store(to_millis(at), Ordering::SeqCst);
    }
}

/// Milliseconds since the epoch, rounded down; negative before it, saturating at the ends of `i64`.
pub fn to_millis(at: SystemTime) -> i64 {
    match at.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_millis()).unwrap_or(i64::MAX),
        Err(before) => {
            let before = before.duration();
            let up = u128::from(before.subsec_nanos() % 1_000_000 != 0);
            i64::try_from(before.as_millis() + up).map_or(i64::MIN, |millis| -millis)
        }
    }
}

/// The time of milliseconds since the epoch. What the platform's clock cannot express becomes the epoch.
pub fn from_millis(millis: i64) -> SystemTime {
    let distance = Duration::from_millis(millis.unsigned_abs());
    let at = if millis < 0 { UNIX_EPOCH.checked_sub(distance) } else { UNIX_EPOCH.checked_add(distance) };
    at.unwrap_or(UNIX_EPOCH)
}

/// The time, rounded down to whole milliseconds, as stores keep it.
pub fn whole_millis(at: SystemTime) -> SystemTime {
    from_millis(to_millis(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn millis_round_down_on_both_sides_of_the_epoch() {
        let nanos = Duration::from_micros(1_500);
        assert_eq!(to_millis(UNIX_EPOCH + nanos), 1);
        assert_eq!(to_millis(UNIX_EPOCH - nanos), -2);
        assert_eq!(to_millis(from_millis(-7)), -7);
        assert_eq!(whole_millis(UNIX_EPOCH + nanos), UNIX_EPOCH + Duration::from_millis(1));
    }

    #[test]
    fn a_manual_clock_moves_every_handle() {
        let time = ManualClock::new(UNIX_EPOCH);
        let clock = time.clock();
        time.advance(Duration::from_secs(1));
        time.clone().advance(Duration::from_secs(1));
        assert_eq!(clock.now(), UNIX_EPOCH + Duration::from_secs(2));
        time.set(UNIX_EPOCH);
        assert_eq!(clock.now(), UNIX_EPOCH);
    }
}
