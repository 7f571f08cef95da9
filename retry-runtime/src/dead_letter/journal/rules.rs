//! What the journal's rules make of letters.

use std::time::{Duration, SystemTime};

use super::JobEnd;
use crate::attempt::AttemptRecord;
use crate::dead_letter::{Actor, CLOSED_GONE, CLOSED_RECOVERED, DeadLetter, LetterRow, LetterState};
use crate::stop::StopReason;
use crate::verdict::Disposition;

/// The letter of a job whose process died. How far it came is not known: a crash counts one attempt.
#[must_use]
pub fn crashed(mut job: DeadLetter, process: &str, now: SystemTime) -> DeadLetter {
    let accepted = job.failed_at.min(now);
    job.reason = StopReason::Crashed;
    job.disposition = Disposition::Unknown;
    (job.class, job.code, job.not_before) = (None, None, None);
    job.attempts = 1;
    job.error_message = format!("{process} ended while it ran this job");
    job.history = vec![AttemptRecord::new(1, accepted, Duration::ZERO, "crashed", None, &job.error_message)];
    (job.first_failed_at, job.failed_at) = (accepted, now);
    job
}

impl LetterRow {
    /// The job of a process that was taken for dead ended after all. Its letter is closed when nothing but that crash is in
    /// it: a failure beside it, a replay or an edit are somebody's affair. Says whether it was.
    pub fn ended_late(&mut self, end: JobEnd, actor: &Actor, now: SystemTime) -> bool {
        let untouched = self.state == LetterState::Parked
            && self.reason == StopReason::Crashed
            && self.parkings == 1
            && self.fence == 0
            && self.replays == 0
            && self.payload_revision <= 1;
        if untouched {
            match end {
                JobEnd::Succeeded => self.close(LetterState::Recovered, CLOSED_RECOVERED, actor, now),
                JobEnd::Gone => self.close(LetterState::Discarded, CLOSED_GONE, actor, now),
            }
        }
        untouched
    }
}
