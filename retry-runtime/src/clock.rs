//! The one place that reads the time.

use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime};

/// The monotonic clock: tokio's where it is there, so that a paused clock is followed, else the system's.
pub(crate) fn monotonic() -> Instant {
    #[cfg(feature = "test-util")]
    crate::testing::clock_is_read();
    #[cfg(feature = "tokio")]
    let now = || tokio::time::Instant::now().into_std();
    #[cfg(not(feature = "tokio"))]
    let now = Instant::now;
    #[cfg(feature = "test-util")]
    let now = || crate::testing::stopped_time().map_or_else(now, |stopped| stopped.monotonic);
    let now = now();
    #[cfg(feature = "test-util")]
    let now = now.checked_add(crate::testing::virtual_elapsed()).unwrap_or(now);
    now
}

/// The monotonic clock as a number: nanoseconds since its first use in this process. Below zero on a clock that is behind the
/// one it was first used on, as a paused one may be.
pub(crate) fn since_anchor() -> i64 {
    static ANCHOR: OnceLock<Instant> = OnceLock::new();
    let now = monotonic();
    let anchor = *ANCHOR.get_or_init(|| now);
    let nanos = |span: Duration| i64::try_from(span.as_nanos()).unwrap_or(i64::MAX);
    match now.checked_duration_since(anchor) {
        Some(after) => nanos(after),
        None => -nanos(anchor.saturating_duration_since(now)),
    }
}

/// `span` after `at`; where no calendar has that moment, a hundred years after it. Never a moment that has come: what waits
/// for one so far away must not be taken for due.
pub(crate) fn after(at: SystemTime, span: Duration) -> SystemTime {
    at.checked_add(span).or_else(|| at.checked_add(Duration::from_secs(100 * 365 * 86_400))).unwrap_or(at)
}

/// The wall clock as a number: milliseconds since 1970 in UTC.
pub(crate) fn unix_millis() -> u64 {
    let since = wall().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The wall clock, for what is written down.
pub(crate) fn wall() -> SystemTime {
    #[cfg(feature = "test-util")]
    crate::testing::clock_is_read();
    let now = SystemTime::now;
    #[cfg(feature = "test-util")]
    let now = || crate::testing::stopped_time().map_or_else(now, |stopped| stopped.wall);
    let now = now();
    #[cfg(feature = "test-util")]
    let now = now.checked_add(crate::testing::virtual_elapsed()).unwrap_or(now);
    now
}
