//! The one place that reads the time.

use std::time::{Instant, SystemTime};

/// The monotonic clock: tokio's where it is there, so that a paused clock is followed, else the system's.
pub(crate) fn monotonic() -> Instant {
    #[cfg(feature = "test-util")]
    crate::testing::clock_is_read();
    #[cfg(feature = "tokio")]
    let now = tokio::time::Instant::now().into_std();
    #[cfg(not(feature = "tokio"))]
    let now = Instant::now();
    #[cfg(feature = "test-util")]
    let now = now.checked_add(crate::testing::virtual_elapsed()).unwrap_or(now);
    now
}

/// The wall clock, for what is written down.
pub(crate) fn wall() -> SystemTime {
    #[cfg(feature = "test-util")]
    crate::testing::clock_is_read();
    let now = SystemTime::now();
    #[cfg(feature = "test-util")]
    let now = now.checked_add(crate::testing::virtual_elapsed()).unwrap_or(now);
    now
}
