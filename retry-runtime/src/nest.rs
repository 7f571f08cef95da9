//! Loops inside loops: which attempt this thread is in the middle of.
//!
//! A retried call inside another one's attempt multiplies attempts. Nobody can see that from one of the two alone, so an
//! attempt leaves a mark on its thread while it runs: a blocking one from begin to end, an async one in each of its polls.
//! An attempt that may not be repeated leaves none: it multiplies nothing.
//!
//! A blocking attempt may drive a whole runtime, whose tasks then run on its thread and are not its own. A mark therefore
//! holds in the task that it was left in, and in what has no task: what `block_on` runs itself.

use std::cell::Cell;

/// The innermost attempt, and how many there are around it with it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Around {
    pub(crate) depth: u32,
    pub(crate) operation: &'static str,
    task: Task,
}

const OUTSIDE: Around = Around { depth: 0, operation: "", task: Task::NONE };

thread_local! {
    static AROUND: Cell<Around> = const { Cell::new(OUTSIDE) };
}

/// The task of tokio that runs on this thread.
#[derive(Clone, Copy, Debug)]
struct Task(#[cfg(feature = "tokio")] Option<tokio::task::Id>);

#[cfg(feature = "tokio")]
impl Task {
    const NONE: Self = Self(None);

    #[inline]
    fn now() -> Self {
        Self(tokio::task::try_id())
    }

    /// Whether what runs now, in this task or in none, runs in what was marked in that one.
    #[inline]
    fn is_in(self, marked: Self) -> bool {
        self.0.is_none() || self.0 == marked.0
    }
}

/// Without tokio nobody knows of tasks.
#[cfg(not(feature = "tokio"))]
#[allow(clippy::unused_self)] // as with tokio
impl Task {
    const NONE: Self = Self();

    #[inline]
    const fn now() -> Self {
        Self::NONE
    }

    #[inline]
    const fn is_in(self, _marked: Self) -> bool {
        true
    }
}

/// What this thread runs in; depth 0 outside of every marked attempt.
#[inline]
pub(crate) fn around() -> Around {
    let around = AROUND.get();
    if around.depth == 0 || Task::now().is_in(around.task) { around } else { OUTSIDE }
}

/// This thread is in the middle of an attempt, until this is dropped.
#[derive(Debug)]
pub struct Mark(Option<Around>);

impl Mark {
    /// `operation`: of an attempt that may be repeated.
    #[inline]
    pub(crate) fn new(operation: Option<&'static str>) -> Self {
        Self(operation.map(|operation| {
            let depth = around().depth.saturating_add(1);
            AROUND.replace(Around { depth, operation, task: Task::now() })
        }))
    }
}

impl Drop for Mark {
    #[inline]
    fn drop(&mut self) {
        if let Some(outer) = self.0 {
            AROUND.set(outer);
        }
    }
}
