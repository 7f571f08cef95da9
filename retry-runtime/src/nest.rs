//! Loops inside loops: which attempt this thread is in the middle of.
//!
//! A retried call inside another one's attempt multiplies attempts. Nobody can see that from one of the two alone, so an
//! attempt leaves a mark on its thread while it runs: a blocking one from begin to end, an async one in each of its polls.

use std::cell::Cell;

/// The innermost attempt, and how many there are around it with it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Around {
    pub(crate) depth: u32,
    pub(crate) operation: &'static str,
}

thread_local! {
    static AROUND: Cell<Around> = const { Cell::new(Around { depth: 0, operation: "" }) };
}

/// What this thread runs in; depth 0 outside of every marked attempt.
#[inline]
pub(crate) fn around() -> Around {
    AROUND.get()
}

/// This thread is in the middle of an attempt, until this is dropped.
#[derive(Debug)]
pub struct Mark(Around);

impl Mark {
    #[inline]
    pub(crate) fn new(operation: &'static str) -> Self {
        let outer = around();
        AROUND.set(Around { depth: outer.depth.saturating_add(1), operation });
        Self(outer)
    }
}

impl Drop for Mark {
    #[inline]
    fn drop(&mut self) {
        AROUND.set(self.0);
    }
}
