//! The second route.

use crate::__private::call::{At, UNCLASSIFIED, verdict_and_text};
use crate::__private::record::{Hidden, Recorder};
use crate::__private::returns::Judge;
use crate::__private::text::MakeText;
use crate::context::RetryContext;
use crate::engine::Stop;
use crate::stop::StopReason;
use crate::verdict::Disposition;

/// Whether a call that ended so takes the second route.
pub fn falls_back(record: &RetryContext) -> bool {
    record.stop_reason().is_some_and(reason_falls_back)
}

pub(crate) const fn reason_falls_back(reason: StopReason) -> bool {
    matches!(
        reason,
        StopReason::Permanent
            | StopReason::Unknown
            | StopReason::Exhausted
            | StopReason::Deadline
            | StopReason::HintTooLong
            | StopReason::BudgetDenied
            | StopReason::BreakerOpen
            | StopReason::ClassifierFailed
    )
}

/// The second route begins: it counts as an attempt.
pub fn fallback_begins<R: Recorder>(record: &mut R) {
    record.fallback_begins();
}

/// The second route succeeded, so the call did.
pub fn fallback_succeeded<R: Recorder>(record: &mut R) {
    record.stopped(Hidden(Stop::plain(StopReason::Succeeded)));
}

/// The second route failed: a final answer ends the job as gone; any other failure is what is returned and what the
/// letter shows, under the first route's reason.
#[cold]
#[inline(never)]
#[allow(clippy::needless_pass_by_value)] // as every step takes it
pub fn fallback_failed<E: ?Sized, R: Recorder>(
    at: &At<'_>,
    record: &mut R,
    error: &E,
    classify: impl Judge<E>,
    text: MakeText<E>,
) {
    let (verdict, text) = verdict_and_text(at, error, &classify, text);
    let verdict = verdict.unwrap_or(UNCLASSIFIED);
    record.failed(&verdict, text.into());
    if verdict.disposition == Disposition::Gone {
        record.stopped(Hidden(Stop::plain(StopReason::Gone)));
    } else {
        record.fallback_ended();
    }
}
