//! What happens to a stored letter, as pure functions over its row.
//!
//! Every store applies these to a row it has read in the same transaction, or says the same in its own language; the
//! conformance suite compares.

use std::time::{Duration, SystemTime};

use crate::clock;
use crate::dead_letter::{
    Actor, AttemptOutcome, CLOSED_ABANDONED, CLOSED_GONE, CLOSED_RECOVERED, ClaimRequest, DeadLetter,
    FINGERPRINT_VERSION, Failure, Finish, HistoryEntry, LetterRow, LetterState, MAX_CRASHES, MAX_REPLAYS, Payload,
    Release, ReplayOutcome, fingerprint, replay_backoff, whole_millis,
};
use crate::error::{StoreError, StoreErrorKind};
use crate::stop::StopReason;

/// What a store knows of the payload of a letter that is being parked again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KnownPayload {
    /// The highest revision kept; 0 when there is none.
    pub highest: u32,
    /// The new payload is that of the current revision.
    pub is_current: bool,
    /// The new payload is that of any revision.
    pub is_known: bool,
}

/// What is to be written of a letter's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PayloadStep {
    /// Nothing.
    Keep,
    /// The payload, as this revision. (Whether it is the current one stands in the row.)
    Add {
        /// The revision.
        revision: u32,
    },
}

impl LetterRow {
    /// The row of a job's first parking. The letter takes the parking's id as its own, so that the same letter has the
    /// same id wherever it is imported. `seq` and `scope` are the store's to fill in.
    pub fn first(letter: &DeadLetter) -> (Self, PayloadStep) {
        let letter_id = letter.park_id.to_string();
        let job_id = letter.job_id.clone().unwrap_or_else(|| letter_id.clone());
        let mut row = Self::new(letter_id, letter.kind.clone(), job_id);
        row.attempts = u64::from(letter.attempts);
        row.parkings = 1;
        row.first_seen = whole_millis(letter.first_failed_at.min(letter.failed_at));
        row.last_seen = whole_millis(letter.failed_at);
        row.not_before = letter.not_before.map(whole_millis);
        row.model.clone_from(&letter.model);
        row.fail(&Failure::of(letter));
        let step = match &letter.payload {
            Payload::Json(json) => {
                row.point_to(1, json);
                row.payload_altered = letter.payload_altered;
                PayloadStep::Add { revision: 1 }
            }
            Payload::Unserializable(why) => {
                row.payload_error = Some(why.clone());
                PayloadStep::Keep
            }
            Payload::None => PayloadStep::Keep,
        };
        (row, step)
    }

    /// Merges a further parking of the same job: the newest failure shows, counts add up, a closed letter opens again.
    ///
    /// A parking older than the newest failure (imported late) only counts. `now` is the store's: a newest failure that lies
    /// ahead of it was dated by a clock that has been set back since, and does not hide what fails today.
    pub fn merge(&mut self, letter: &DeadLetter, known: KnownPayload, now: SystemTime) -> PayloadStep {
        let failed_at = whole_millis(letter.failed_at);
        let newest = failed_at >= self.last_seen || self.last_seen > now;
        self.attempts = self.attempts.saturating_add(u64::from(letter.attempts));
        self.parkings = self.parkings.saturating_add(1);
        self.first_seen = self.first_seen.min(whole_millis(letter.first_failed_at)).min(failed_at);
        self.not_before = self.not_before.max(letter.not_before.map(whole_millis));
        if newest {
            self.last_seen = failed_at;
            self.fail(&Failure::of(letter));
            if letter.model.is_some() {
                self.model.clone_from(&letter.model);
            }
            match self.state {
                LetterState::Replaying => self.failed_again = true,
                LetterState::Recovered | LetterState::Discarded => self.reopen(),
                LetterState::Parked | LetterState::Abandoned => {}
            }
        }
        match &letter.payload {
            Payload::Json(_) if newest => self.payload_error = None,
            Payload::Unserializable(why) if newest || (self.payload_revision == 0 && self.payload_error.is_none()) => {
                self.payload_error = Some(why.clone());
            }
            Payload::Json(_) | Payload::Unserializable(_) | Payload::None => {}
        }
        match &letter.payload {
            Payload::Json(json) => {
                let revision = known.highest.saturating_add(1);
                if newest && !known.is_current {
                    self.point_to(revision, json);
                    self.payload_altered = letter.payload_altered;
                    PayloadStep::Add { revision }
                } else if !newest && !known.is_known {
                    if self.payload_revision == 0 {
                        self.point_to(revision, json);
                        self.payload_altered = letter.payload_altered;
                    }
                    PayloadStep::Add { revision }
                } else {
                    if newest {
                        self.payload_altered = letter.payload_altered;
                    }
                    PayloadStep::Keep
                }
            }
            // A failure to serialise does not take the place of a payload that can be replayed.
            Payload::Unserializable(_) | Payload::None => PayloadStep::Keep,
        }
    }

    /// Takes the letter for a replay: raises the fence and sets the lease.
    pub fn claim(&mut self, request: &ClaimRequest, now: SystemTime) {
        self.state = LetterState::Replaying;
        self.fence += 1;
        self.owner = Some(request.owner.clone());
        self.lease_until = Some(lease_end(now, request.lease));
        self.failed_again = false;
    }

    /// Whether a replay with this fence still runs.
    pub fn is_held(&self, fence: u64) -> bool {
        self.state == LetterState::Replaying && self.fence == fence
    }

    /// Writes a replay's result. `actor` is who closed the letter, where it closes it.
    ///
    /// # Errors
    /// `StaleLease` when the fence is not the running replay's: nothing is changed, and the store records
    /// [`Finish::entries`] as late.
    pub fn finish(&mut self, result: &Finish, actor: &Actor, now: SystemTime) -> Result<(), StoreError> {
        self.check_held(result.fence)?;
        self.attempts = self.attempts.saturating_add(u64::from(result.attempts));
        self.replays = self.replays.saturating_add(1);
        let failed_again = self.failed_again;
        self.leave_replay();
        match &result.outcome {
            // A live call failed meanwhile: its failure is still owed.
            ReplayOutcome::Recovered | ReplayOutcome::Gone(_) if failed_again => {}
            ReplayOutcome::Recovered => self.close(LetterState::Recovered, CLOSED_RECOVERED, actor, now),
            ReplayOutcome::Gone(failure) => {
                self.fail(&Failure { reason: StopReason::Gone, ..failure.clone() });
                self.close(LetterState::Discarded, CLOSED_GONE, actor, now);
            }
            ReplayOutcome::Failed(failure) => {
                self.not_before = self.not_before.max(failure.not_before.map(whole_millis));
                // Also where the clock was set back since the failure before.
                self.last_seen = now;
                self.fail(failure);
                if self.replays >= self.max_replays {
                    self.close(LetterState::Abandoned, CLOSED_ABANDONED, actor, now);
                } else {
                    self.replay_after = Some(lease_end(now, replay_backoff(self.replays)));
                }
            }
        }
        Ok(())
    }

    /// Extends a lease from `now`; returns its new end.
    ///
    /// # Errors
    /// `StaleLease` when the fence is not the running replay's.
    pub fn extend(&mut self, fence: u64, lease: Duration, now: SystemTime) -> Result<SystemTime, StoreError> {
        self.check_held(fence)?;
        let end = lease_end(now, lease);
        self.lease_until = Some(end);
        Ok(end)
    }

    /// Puts a replaying letter back to `parked` without a result.
    ///
    /// # Errors
    /// `StaleLease` when the fence is not the running replay's; `Conflict` when an operator forces a letter that is not
    /// being replayed.
    pub fn release(&mut self, release: Release, now: SystemTime) -> Result<(), StoreError> {
        match release {
            Release::Held { fence } => self.check_held(fence)?,
            Release::Later { fence, wait } => {
                self.check_held(fence)?;
                self.replay_after = self.replay_after.max(Some(lease_end(now, wait)));
            }
            Release::Forced if self.state == LetterState::Replaying => self.fence += 1,
            Release::Forced => {
                let message =
                    format!("letter {} is {}: only a replaying letter can be released", self.letter_id, self.state);
                return Err(StoreError::new(StoreErrorKind::Conflict, message));
            }
        }
        self.leave_replay();
        Ok(())
    }

    /// Whether a handler can be given what it was given at first: the stored payload is no altered one, and it is not one that
    /// could not be serialised. (A letter that never had a payload can be replayed.)
    pub const fn is_replayable(&self) -> bool {
        !self.payload_altered && (self.payload_revision > 0 || self.payload_error.is_none())
    }

    /// Whether its lease has run out.
    pub fn is_expired(&self, now: SystemTime) -> bool {
        self.state == LetterState::Replaying && self.lease_until.is_none_or(|end| end < now)
    }

    /// Takes back a lease that has run out: a crash, which is an attempt too. Returns what goes into the history. `actor` is
    /// who closed the letter, where this crash was one too many.
    pub fn reap(&mut self, actor: &Actor, now: SystemTime) -> HistoryEntry {
        self.crashes = self.crashes.saturating_add(1);
        self.attempts = self.attempts.saturating_add(1);
        let owner = self.owner.take().unwrap_or_default();
        let message = format!("the lease of {owner} ran out");
        self.leave_replay();
        if self.crashes >= self.max_crashes {
            self.close(LetterState::Abandoned, CLOSED_ABANDONED, actor, now);
        }
        HistoryEntry::bare(self.fence, AttemptOutcome::Crashed, now, message)
    }

    fn check_held(&self, fence: u64) -> Result<(), StoreError> {
        if self.is_held(fence) {
            return Ok(());
        }
        let message = format!(
            "letter {}: fence {fence} holds no lease; the letter is {} with fence {}",
            self.letter_id, self.state, self.fence
        );
        Err(StoreError::new(StoreErrorKind::StaleLease, message))
    }

    pub(super) fn fail(&mut self, failure: &Failure) {
        self.reason = failure.reason;
        self.disposition = failure.disposition;
        self.class.clone_from(&failure.class);
        self.code = failure.code;
        self.error_class = failure.error_class();
        self.error_type.clone_from(&failure.error_type);
        self.error_message.clone_from(&failure.error_message);
        self.fingerprint =
            fingerprint(&self.kind, failure.class.as_deref(), &failure.error_type, &failure.error_message);
        self.fingerprint_version = FINGERPRINT_VERSION;
    }

    pub(super) fn point_to(&mut self, revision: u32, json: &str) {
        self.payload_revision = revision;
        self.payload_size = Some(json.len() as u64);
        self.payload_altered = false;
    }

    /// A new failure of a closed job: open, with a renewed allowance, and no result of an earlier replay is taken.
    pub(super) fn reopen(&mut self) {
        self.open();
        // An operator's larger grant stays.
        self.max_replays = self.max_replays.max(self.replays.saturating_add(MAX_REPLAYS));
        self.max_crashes = self.max_crashes.max(self.crashes.saturating_add(MAX_CRASHES));
    }

    /// Parks a closed letter.
    pub(super) fn open(&mut self) {
        self.state = LetterState::Parked;
        self.closed_at = None;
        self.closed_by = None;
        self.closed_reason = None;
        self.replay_after = None;
        self.fence += 1;
    }

    fn leave_replay(&mut self) {
        self.state = LetterState::Parked;
        self.owner = None;
        self.lease_until = None;
        self.failed_again = false;
    }

    pub(super) fn close(&mut self, state: LetterState, why: &str, actor: &Actor, now: SystemTime) {
        self.state = state;
        self.closed_at = Some(now);
        self.closed_by = Some(actor.bounded().name);
        self.closed_reason = Some(why.to_owned());
        self.replay_after = None;
        if !state.is_owed() {
            self.not_before = None;
        }
    }
}

impl Finish {
    /// What goes into the letter's history.
    pub fn entries(&self, now: SystemTime) -> Vec<HistoryEntry> {
        let mut entries: Vec<_> =
            self.history.iter().map(|record| HistoryEntry::replayed(self.fence, record)).collect();
        let last = match &self.outcome {
            ReplayOutcome::Recovered => Some((AttemptOutcome::Succeeded, None)),
            ReplayOutcome::Gone(failure) => Some((AttemptOutcome::Gone, Some(failure))),
            ReplayOutcome::Failed(failure) if entries.is_empty() => Some((AttemptOutcome::Failed, Some(failure))),
            ReplayOutcome::Failed(_) => None,
        };
        if let Some((outcome, failure)) = last {
            let mut entry = HistoryEntry::bare(self.fence, outcome, now, "");
            entry.attempt = self.attempts.max(1);
            entry.took = self.took;
            if let Some(failure) = failure {
                entry.class.clone_from(&failure.class);
                entry.code = failure.code;
                entry.message.clone_from(&failure.error_message);
            }
            entries.push(entry);
        }
        entries
    }
}

/// `now` and `span` after it, in whole milliseconds; far future where the sum has no representation.
pub fn lease_end(now: SystemTime, span: Duration) -> SystemTime {
    whole_millis(clock::after(now, span))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dead_letter::Edit;
    use proptest::prelude::*;
    use std::time::UNIX_EPOCH;

    /// A parking of one job: so many seconds after the epoch, with these attempts and this payload.
    fn parking(at: u64, attempts: u32, payload: u8) -> DeadLetter {
        let mut letter = DeadLetter::new("fetch", StopReason::Exhausted, UNIX_EPOCH + Duration::from_secs(at));
        letter.job_id = Some("job".into());
        letter.attempts = attempts;
        letter.error_message = format!("failure at {at}");
        letter.not_before = (at % 3 == 0).then(|| UNIX_EPOCH + Duration::from_secs(10_000 - at));
        letter.payload = if payload == 0 { Payload::None } else { Payload::Json(payload.to_string()) };
        letter
    }

    /// The row after these parkings, and the payload it points to.
    fn row_of(parkings: &[DeadLetter]) -> Option<(LetterRow, Option<Payload>)> {
        let (first, rest) = parkings.split_first()?;
        let (mut row, step) = LetterRow::first(first);
        let mut kept = if step == PayloadStep::Keep { vec![] } else { vec![first.payload.clone()] };
        for letter in rest {
            let current = row.payload_revision.checked_sub(1).and_then(|at| kept.get(at as usize)).cloned();
            let known = KnownPayload {
                highest: u32::try_from(kept.len()).unwrap_or(u32::MAX),
                is_current: current.as_ref() == Some(&letter.payload),
                is_known: kept.contains(&letter.payload),
            };
            if let PayloadStep::Add { revision } = row.merge(letter, known, UNIX_EPOCH + Duration::from_secs(10_000)) {
                kept.push(letter.payload.clone());
                assert_eq!(revision as usize, kept.len(), "revisions are numbered in the order they are kept");
            }
        }
        let current = row.payload_revision.checked_sub(1).and_then(|at| kept.get(at as usize)).cloned();
        Some((row, current))
    }

    proptest! {
        // D3, D20: in whatever order parkings arrive, the letter tells the same story.
        #[test]
        fn the_order_of_arrival_does_not_matter(
            sent in proptest::collection::hash_map(0..9_000_u64, (0..9_u32, 0..3_u8), 1..8),
            seed in any::<u64>(),
        ) {
            let mut parkings: Vec<_> =
                sent.iter().map(|(at, (attempts, payload))| parking(*at, *attempts, *payload)).collect();
            parkings.sort_by_key(|letter| letter.failed_at);
            let Some((in_order, _)) = row_of(&parkings) else { return Ok(()) };
            let rotate = usize::try_from(seed % parkings.len() as u64).unwrap_or(0);
            parkings.rotate_left(rotate);
            if seed % 2 == 0 {
                parkings.reverse();
            }
            let Some((shuffled, _)) = row_of(&parkings) else { return Ok(()) };
            let story = |row: &LetterRow| {
                (row.error_message.clone(), row.attempts, row.parkings, row.first_seen, row.last_seen, row.not_before)
            };
            prop_assert_eq!(story(&in_order), story(&shuffled));
        }

        // D3: a replay uses the newest payload there is, however late older ones arrive.
        #[test]
        fn the_newest_payload_is_the_one_replayed(times in proptest::collection::hash_set(0..9_000_u64, 2..8)) {
            let mut times: Vec<_> = times.into_iter().collect();
            let newest = times.iter().copied().max().unwrap_or(0);
            times.retain(|at| *at != newest);
            let payload = |at| u8::try_from(at % 200 + 1).unwrap_or(1);
            let mut parkings = vec![parking(newest, 1, payload(newest))];
            parkings.extend(times.iter().map(|at| parking(*at, 1, payload(*at))));
            let current = row_of(&parkings).and_then(|(_, current)| current);
            prop_assert_eq!(current, Some(Payload::Json(payload(newest).to_string())));
        }

        // D2, D13: whatever happens, allowances only grow, counts only rise, and a late fence never holds.
        #[test]
        fn counts_and_fences_only_rise(verbs in proptest::collection::vec(0..10_u8, 1..60)) {
            let (mut row, _) = LetterRow::first(&parking(0, 1, 1));
            let request = ClaimRequest::new(["fetch"], "tester");
            let actor = Actor::new("tester", "by hand");
            let mut now = UNIX_EPOCH;
            for verb in verbs {
                now += Duration::from_secs(61);
                let before = row.clone();
                match verb {
                    0 => drop(row.merge(&parking(now.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs()), 1, 1), KnownPayload { highest: row.payload_revision, ..KnownPayload::default() }, now)),
                    1 if row.state == LetterState::Parked => row.claim(&request, now),
                    2 => drop(row.finish(&Finish::new("", row.fence, ReplayOutcome::Recovered), &actor, now)),
                    3 => {
                        let failure = Failure::new(StopReason::Permanent, crate::Disposition::Permanent, "no");
                        drop(row.finish(&Finish::new("", row.fence, ReplayOutcome::Failed(failure)), &actor, now));
                    }
                    4 if row.is_expired(now) => drop(row.reap(&actor, now)),
                    5 => drop(row.release(Release::Forced, now)),
                    6 => drop(row.restore(1)),
                    7 => drop(row.discard(&actor, now)),
                    8 => drop(row.resolve(&actor, now)),
                    9 => drop(row.edit(&Edit::new("", row.payload_revision, "2"), row.payload_revision)),
                    _ => {}
                }
                let counts = |row: &LetterRow| [row.attempts, row.parkings, row.fence, row.replays.into(), row.crashes.into()];
                let rises = counts(&before).iter().zip(counts(&row)).all(|(before, after)| *before <= after);
                prop_assert!(rises, "{:?} then {:?}", before, row);
                prop_assert!(row.max_replays >= before.max_replays && row.max_crashes >= before.max_crashes);
                prop_assert!(row.crashes <= row.max_crashes);
                prop_assert_eq!(row.state == LetterState::Replaying, row.lease_until.is_some());
                prop_assert_eq!(row.state.is_closed(), row.closed_at.is_some());
                prop_assert_eq!(row.state.is_closed(), row.closed_by.is_some() && row.closed_reason.is_some());
                prop_assert!(row.payload_revision >= before.payload_revision);
                prop_assert!(!row.is_held(row.fence.wrapping_sub(1)));
            }
        }
    }
}
