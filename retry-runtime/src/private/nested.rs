//! Retried calls inside each other's attempts.

use std::task::Poll;

use crate::__private::call::At;
use crate::__private::site::Site;
use crate::nest::{Mark, around, is_inside};

/// Whether this call is made in an attempt of another one.
#[inline]
pub fn is_nested() -> bool {
    is_inside()
}

/// It is: said once per site, unless it makes a single attempt there.
#[cold]
#[inline(never)]
pub fn nested(at: &At<'_>) {
    if !at.retries() {
        return;
    }
    at.warn_once("nested_retry", || {
        let around = around();
        format!(
            "this call retries inside an attempt of `{}` (depth {}), so that their attempts multiply; give one of them \
             `max_retries = 0`, or this one `nested = outer_only`",
            around.operation, around.depth
        )
    });
}

/// Marks this thread while an attempt runs that may be repeated: until what is returned is dropped.
#[inline]
pub fn mark(site: &Site) -> Mark {
    Mark::new(site.marked())
}

/// The same of a blocking attempt, which tells when it is in another one.
#[inline]
pub fn mark_blocking(at: &At<'_>) -> Mark {
    Mark::unless_marked(at.marked()).unwrap_or_else(|| mark_inner(at))
}

#[cold]
#[inline(never)]
fn mark_inner(at: &At<'_>) -> Mark {
    if is_inside() {
        nested(at);
    }
    Mark::new(at.marked())
}

/// Marks this thread while an attempt is polled.
#[inline]
pub fn poll_marked<T>(site: &Site, poll: impl FnOnce() -> Poll<T>) -> Poll<T> {
    let _until_polled = mark(site);
    poll()
}

/// An attempt as it is: there is `test-util` for one crate of a build, and not for this one.
#[cfg(not(feature = "test-util"))]
#[inline]
pub fn attempt<N, F>(_operation: N, attempt: F) -> F {
    attempt
}
