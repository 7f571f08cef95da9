//! What the journal's rules make of letters.

use std::time::{Duration, SystemTime};

use super::JobEnd;
use crate::attempt::AttemptRecord;
use crate::dead_letter::{
    Actor, CLOSED_GONE, CLOSED_RECOVERED, DeadLetter, Failure, KnownPayload, LetterRow, LetterState, ParkingRecord,
    Payload, PayloadStep, whole_millis,
};
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

    /// The job of a process that was taken for dead failed after all: its own letter takes the place of `guess`, the parking
    /// that was made of it. It stays one parking.
    ///
    /// Its history is added by the store, and its attempts count in the guess's place, whatever the letter's state. Its
    /// failure shows where the guess still does, or where it is the newest of a letter that is owed. No state changes: what
    /// was closed since, by a replay, by hand or for good, stays closed, and a replay that runs settles this job as it would
    /// have settled the guess. A letter that is owed keeps the later of the two hints. A payload that an edit has changed
    /// since stays.
    pub fn failed_late(
        &mut self,
        letter: &DeadLetter,
        guess: &ParkingRecord,
        known: KnownPayload,
        now: SystemTime,
    ) -> PayloadStep {
        let failed_at = whole_millis(letter.failed_at);
        let guess_shows = self.reason == StopReason::Crashed && self.last_seen == guess.failed_at;
        let owed = self.state.is_owed();
        let shows = guess_shows || (owed && (failed_at >= self.last_seen || self.last_seen > now));
        self.attempts =
            self.attempts.saturating_sub(u64::from(guess.attempts)).saturating_add(u64::from(letter.attempts));
        self.first_seen = self.first_seen.min(whole_millis(letter.first_failed_at)).min(failed_at);
        if owed {
            self.not_before = self.not_before.max(letter.not_before.map(whole_millis));
        }
        if shows {
            // A failure beside it may lie between the two.
            self.last_seen = if guess_shows && self.parkings > 1 { self.last_seen.max(failed_at) } else { failed_at };
            self.fail(&Failure::of(letter));
            if letter.model.is_some() {
                self.model.clone_from(&letter.model);
            }
        }
        match &letter.payload {
            Payload::Json(json) if !known.is_known => {
                let revision = known.highest.saturating_add(1);
                if self.payload_revision == 0 || (guess_shows && self.parkings == 1 && known.highest == 1) {
                    self.point_to(revision, json);
                    self.payload_altered = letter.payload_altered;
                    self.payload_error = None;
                }
                PayloadStep::Add { revision }
            }
            Payload::Unserializable(why) if self.payload_revision == 0 => {
                self.payload_error = Some(why.clone());
                PayloadStep::Keep
            }
            _ => PayloadStep::Keep,
        }
    }
}
