//! Loops inside loops: which attempt this thread is in the middle of.
//!
//! A retried call inside another one's attempt multiplies attempts. Nobody can see that from one of the two alone, so an
//! attempt leaves a mark on its thread while it runs: a blocking one from begin to end, an async one in each of its polls.
//! An attempt that may not be repeated leaves none: it multiplies nothing.
//!
//! A blocking attempt may drive a whole runtime, whose tasks then run on its thread and are not its own. A mark therefore
//! holds in the task that it was left in, and in what has no task: what `block_on` runs itself.

use std::cell::{Cell, RefCell};

/// The innermost attempt, and how many there are around it with it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Around {
    pub(crate) depth: u32,
    pub(crate) operation: &'static str,
}

const OUTSIDE: Around = Around { depth: 0, operation: "" };

/// What a thread is in the middle of. A mark in no other one writes two of these and takes one back: it is left in each
/// blocking attempt.
struct Innermost {
    operation: Cell<Option<&'static str>>,
    /// Of that operation; of none it is anything.
    task: Cell<Task>,
    /// Of that operation; of none it is what the next one has.
    depth: Cell<u32>,
}

thread_local! {
    static INNERMOST: Innermost =
        const { Innermost { operation: Cell::new(None), task: Cell::new(Task::NONE), depth: Cell::new(1) } };
    /// What the innermost one is in the middle of.
    static OUTER: RefCell<Vec<(Option<&'static str>, Task, u32)>> = const { RefCell::new(Vec::new()) };
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
pub(crate) fn around() -> Around {
    INNERMOST.with(|innermost| match innermost.operation.get() {
        Some(operation) if Task::now().is_in(innermost.task.get()) => {
            Around { depth: innermost.depth.get(), operation }
        }
        _ => OUTSIDE,
    })
}

/// Whether this thread runs in a marked attempt.
#[inline]
pub(crate) fn is_inside() -> bool {
    INNERMOST.with(|innermost| innermost.operation.get().is_some() && around().depth > 0)
}

/// This thread is in the middle of an attempt, until this is dropped.
#[derive(Debug)]
pub struct Mark(Left);

/// What a mark has left. The first one is the common one, and known by a comparison with zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    /// In no other attempt.
    First,
    /// In another one, which is among the outer ones until then.
    Inner,
    Nothing,
}

impl Mark {
    /// `operation`: of an attempt that may be repeated.
    #[inline]
    pub(crate) fn new(operation: Option<&'static str>) -> Self {
        Self::unless_marked(operation).unwrap_or_else(|| INNERMOST.with(|innermost| inner(innermost, operation)))
    }

    /// `None`, and nothing is done, where this thread has a mark already; see [`new`](Self::new).
    #[inline]
    pub(crate) fn unless_marked(operation: Option<&'static str>) -> Option<Self> {
        let Some(operation) = operation else { return Some(Self(Left::Nothing)) };
        INNERMOST.with(|innermost| {
            innermost.operation.get().is_none().then(|| {
                innermost.task.set(Task::now());
                innermost.operation.set(Some(operation));
                Self(Left::First)
            })
        })
    }
}

#[cold]
#[inline(never)]
fn inner(innermost: &Innermost, operation: Option<&'static str>) -> Mark {
    let outer = (innermost.operation.get(), innermost.task.get(), innermost.depth.get());
    // A thread that ends has no list any more, and what runs in its destructors is not marked.
    if OUTER.try_with(|list| list.borrow_mut().push(outer)).is_err() {
        return Mark(Left::Nothing);
    }
    innermost.depth.set(around().depth.saturating_add(1));
    innermost.task.set(Task::now());
    innermost.operation.set(operation);
    Mark(Left::Inner)
}

/// The innermost attempt is over.
#[cold]
#[inline(never)]
fn back_to_outer(left: Left) {
    if left == Left::Nothing {
        return;
    }
    let outer = OUTER.try_with(|list| list.borrow_mut().pop()).ok().flatten();
    let (operation, task, depth) = outer.unwrap_or((None, Task::NONE, 1));
    INNERMOST.with(|innermost| {
        innermost.operation.set(operation);
        innermost.task.set(task);
        innermost.depth.set(depth);
    });
}

impl Drop for Mark {
    #[inline]
    fn drop(&mut self) {
        if self.0 == Left::First {
            INNERMOST.with(|innermost| innermost.operation.set(None));
        } else {
            back_to_outer(self.0);
        }
    }
}
