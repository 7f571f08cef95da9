//! Who asks for the time.

use std::cell::Cell;

thread_local! {
    static READS: Cell<u64> = const { Cell::new(0) };
}

/// How often this thread has asked the runtime for the time so far. A first-try success asks for none, unless an option
/// needs it.
///
/// ```
/// use retry_runtime::testing::clock_reads;
/// use retry_runtime::{Policy, Retry};
///
/// # #[derive(retry_runtime::Classify)] #[classify(permanent)] struct Never;
/// let before = clock_reads();
/// let done = Retry::new(Policy::new()).run_blocking(|| Ok::<_, Never>(1));
/// assert!(done.is_ok());
/// assert_eq!(clock_reads(), before);
/// ```
pub fn clock_reads() -> u64 {
    READS.get()
}

pub(crate) fn clock_is_read() {
    READS.set(READS.get().wrapping_add(1));
}
