//! The second route.

use crate::__private::call::{At, UNCLASSIFIED, verdict_and_text};
use crate::__private::text::MakeText;
use crate::context::RetryContext;
use crate::engine::Stop;
use crate::stop::StopReason;
use crate::verdict::{Disposition, Verdict};

/// Whether a call that ended so takes the second route.
pub fn falls_back(record: &RetryContext) -> bool {
    matches!(
        record.stop_reason(),
        Some(
            StopReason::Permanent
                | StopReason::Unknown
                | StopReason::Exhausted
                | StopReason::Deadline
                | StopReason::HintTooLong
                | StopReason::BudgetDenied
                | StopReason::BreakerOpen
                | StopReason::ClassifierFailed
        )
    )
}

/// The second route begins: it counts as an attempt.
pub fn fallback_begins(record: &mut RetryContext) {
    record.begin_attempt();
}

/// The second route succeeded, so the call did.
pub fn fallback_succeeded(record: &mut RetryContext) {
    record.stopped(Stop::plain(StopReason::Succeeded));
}

/// The second route failed: a final answer ends the job as gone; any other failure is what is returned and what the
/// letter shows, under the first route's reason.
#[cold]
#[inline(never)]
pub fn fallback_failed<E: ?Sized>(
    at: &At<'_>,
    record: &mut RetryContext,
    error: &E,
    classify: fn(&E) -> Verdict,
    text: MakeText<E>,
) {
    let (verdict, text) = verdict_and_text(at, error, classify, text);
    let verdict = verdict.unwrap_or(UNCLASSIFIED);
    record.failed(&verdict, &text);
    if verdict.disposition == Disposition::Gone {
        record.stopped(Stop::plain(StopReason::Gone));
    }
}
