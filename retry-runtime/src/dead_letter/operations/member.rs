//! What is done with one member, and why it is passed over.

use std::time::{Duration, SystemTime};

use super::{ItemOutcome, Operation, OperationOptions, Verb};
use crate::counters::Utc;
use crate::dead_letter::{Actor, Claimed, LetterRow, LetterState, Release};
use crate::error::{StoreError, StoreErrorKind};

/// Which members a runner takes.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct MemberClaim {
    /// The kinds the runner has handlers for. Members of other kinds are blocked, and nothing is counted against them. May be
    /// empty: everything is blocked then.
    pub kinds: Vec<String>,
    /// At most so many; 1 by default.
    pub limit: u32,
    /// How long a letter's lease lasts unless it is extended; 60 s by default.
    pub lease: Duration,
    /// Who replays, for people to read.
    pub owner: String,
    /// As [`ClaimRequest::keep_alive`](crate::dead_letter::ClaimRequest::keep_alive).
    pub keep_alive: bool,
    /// At most so many members are looked at in one go, so that no transaction grows long; 500 by default.
    pub look_at: u32,
}

impl MemberClaim {
    /// One member of these kinds, under a lease of 60 s.
    pub fn new(kinds: impl IntoIterator<Item = impl Into<String>>, owner: impl Into<String>) -> Self {
        Self {
            kinds: kinds.into_iter().map(Into::into).collect(),
            limit: 1,
            lease: Duration::from_secs(60),
            owner: owner.into(),
            keep_alive: false,
            look_at: 500,
        }
    }

    /// Refuses what makes no sense.
    ///
    /// # Errors
    /// `Invalid` for a limit, or a number to look at, of 0.
    pub fn check(&self) -> Result<(), StoreError> {
        if self.limit == 0 || self.look_at == 0 {
            return Err(StoreError::new(StoreErrorKind::Invalid, "a claim of members takes and looks at 1 at least"));
        }
        Ok(())
    }
}

/// What a runner got.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Members {
    /// The operation as it stands now.
    pub operation: Operation,
    /// The letters to replay, in the order of their numbers: that of their first parking.
    pub claimed: Vec<Claimed>,
    /// How to go on.
    pub next: Next,
}

impl Members {
    /// What was got; for stores.
    pub fn new(operation: Operation, claimed: Vec<Claimed>, next: Next) -> Self {
        Self { operation, claimed, next }
    }
}

/// How a runner goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Next {
    /// There may be more: ask again when a handler is free.
    More,
    /// Nothing before members that are under way have ended.
    Wait,
    /// Nothing more in this run: the operation's status and note say why.
    Over,
}

/// What is to be done with a member whose turn has come.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemberStep {
    /// Its letter is replayed.
    Take,
    /// It gets this outcome, with this detail.
    Pass(ItemOutcome, String),
}

impl MemberStep {
    /// What becomes of a member of a replay: `row` is its letter now, `revision` the frozen one.
    pub fn of(
        row: Option<&LetterRow>,
        revision: u32,
        kinds: &[String],
        options: &OperationOptions,
        now: SystemTime,
    ) -> Self {
        let pass = |outcome, why: String| Self::Pass(outcome, why);
        let row = match present(row, revision, &[LetterState::Parked]) {
            Ok(row) => row,
            Err((outcome, why)) => return pass(outcome, why),
        };
        if !kinds.contains(&row.kind) {
            return pass(ItemOutcome::Blocked, format!("no handler for `{}`", row.kind));
        }
        if row.payload_revision == 0 {
            if let Some(why) = &row.payload_error {
                return pass(ItemOutcome::WithoutPayload, why.clone());
            }
        }
        if row.payload_altered && !options.force {
            return pass(ItemOutcome::Altered, "the stored payload was altered".to_owned());
        }
        match row.not_before {
            Some(at) if at > now && !options.force => pass(ItemOutcome::NotDue, format!("not before {}", Utc(at))),
            _ => Self::Take,
        }
    }
}

/// The letter, where it is there, unedited, and in one of the states.
///
/// # Errors
/// The outcome of the member otherwise, and its detail.
pub(crate) fn present<'a>(
    row: Option<&'a LetterRow>,
    revision: u32,
    states: &[LetterState],
) -> Result<&'a LetterRow, (ItemOutcome, String)> {
    let Some(row) = row else { return Err((ItemOutcome::Removed, "the letter is no longer there".to_owned())) };
    if !states.contains(&row.state) {
        return Err((ItemOutcome::Changed, format!("the letter is {}", row.state)));
    }
    if row.payload_revision != revision {
        let why = format!("the payload has revision {}, frozen was {revision}", row.payload_revision);
        return Err((ItemOutcome::Edited, why));
    }
    Ok(row)
}

/// What a member became whose letter was replayed, and has left that state: by a result, or by the end of its lease.
pub fn ended_as(row: &LetterRow, reaped: bool) -> (ItemOutcome, String) {
    match row.state {
        LetterState::Recovered => (ItemOutcome::Recovered, String::new()),
        LetterState::Discarded => (ItemOutcome::Gone, row.error_class.clone()),
        LetterState::Abandoned if reaped => (ItemOutcome::Abandoned, "its replays died too often".to_owned()),
        LetterState::Abandoned => (ItemOutcome::Abandoned, row.error_class.clone()),
        // A crash says nothing about the job: its turn comes again.
        LetterState::Parked | LetterState::Replaying if reaped => (ItemOutcome::Pending, "its replay died".to_owned()),
        LetterState::Parked | LetterState::Replaying => (ItemOutcome::StillFailing, row.error_class.clone()),
    }
}

/// What a member became whose letter was released without a result.
pub fn released_as(release: Release) -> (ItemOutcome, String) {
    match release {
        Release::Held { .. } | Release::Later { .. } => (ItemOutcome::Pending, "given back".to_owned()),
        // Somebody stepped in: the operation does not step in again.
        Release::Forced => (ItemOutcome::Changed, "released by force".to_owned()),
    }
}

/// Does the work of a discard or a restore with one member, and says what it became. `row` is its letter, `revision` the
/// frozen one. The letter is changed exactly where the outcome is `discarded` or `restored`.
pub fn act(
    verb: Verb,
    row: Option<&mut LetterRow>,
    revision: u32,
    actor: &Actor,
    now: SystemTime,
) -> (ItemOutcome, String) {
    if let Err(passed) = present(row.as_deref(), revision, verb.states()) {
        return passed;
    }
    let Some(row) = row else { return (ItemOutcome::Removed, String::new()) };
    let (done, result) = match verb {
        Verb::Restore { more_replays } => (ItemOutcome::Restored, row.restore(more_replays)),
        Verb::Discard => (ItemOutcome::Discarded, row.discard(actor, now)),
        Verb::Replay => (ItemOutcome::Refused, Err(only_for(verb))),
    };
    match result {
        Ok(()) => (done, String::new()),
        Err(refused) => (ItemOutcome::Refused, refused.to_string()),
    }
}

/// The refusal of a verb that is not for an operation of this sort.
pub fn only_for(verb: Verb) -> StoreError {
    let message = match verb {
        Verb::Replay => "a replay is not advanced: its members are claimed".to_owned(),
        Verb::Discard | Verb::Restore { .. } => format!("the members of a {verb} are not claimed: it is advanced"),
    };
    StoreError::new(StoreErrorKind::Invalid, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::UNIX_EPOCH;

    fn step(change: impl FnOnce(&mut LetterRow), options: &OperationOptions) -> Option<ItemOutcome> {
        let mut row = LetterRow::new("1", "fetch", "job");
        row.payload_revision = 1;
        change(&mut row);
        match MemberStep::of(Some(&row), 1, &["fetch".to_owned()], options, UNIX_EPOCH + Duration::from_secs(9)) {
            MemberStep::Take => None,
            MemberStep::Pass(outcome, why) => {
                assert!(!why.is_empty());
                Some(outcome)
            }
        }
    }

    // D21, B28, C62: each reason to pass over is told from the others.
    #[test]
    fn each_reason_to_pass_over_is_an_outcome() {
        let usual = OperationOptions::default();
        let forced = OperationOptions { force: true, ..OperationOptions::default() };
        let later = Some(UNIX_EPOCH + Duration::from_secs(10));
        assert_eq!(step(|_| (), &usual), None);
        assert_eq!(step(|row| row.state = LetterState::Discarded, &forced), Some(ItemOutcome::Changed));
        assert_eq!(step(|row| row.payload_revision = 2, &forced), Some(ItemOutcome::Edited));
        assert_eq!(step(|row| row.kind = "store".into(), &forced), Some(ItemOutcome::Blocked));
        assert_eq!(step(|row| row.payload_altered = true, &usual), Some(ItemOutcome::Altered));
        assert_eq!(step(|row| row.payload_altered = true, &forced), None);
        assert_eq!(step(|row| row.not_before = later, &usual), Some(ItemOutcome::NotDue));
        assert_eq!(step(|row| row.not_before = later, &forced), None);
        assert_eq!(step(|row| row.replay_after = later, &usual), None);
        let gone = MemberStep::of(None, 1, &[], &usual, UNIX_EPOCH);
        assert!(matches!(gone, MemberStep::Pass(ItemOutcome::Removed, _)));
        let mut broken = LetterRow::new("1", "fetch", "job");
        broken.payload_error = Some("key must be a string".into());
        let broken = MemberStep::of(Some(&broken), 0, &["fetch".to_owned()], &forced, UNIX_EPOCH);
        assert_eq!(broken, MemberStep::Pass(ItemOutcome::WithoutPayload, "key must be a string".into()));
    }

    // D13, D21
    #[test]
    fn a_member_ends_as_its_letter_does() {
        let ended = |state, reaped| {
            let mut row = LetterRow::new("1", "fetch", "job");
            row.state = state;
            ended_as(&row, reaped).0
        };
        assert_eq!(ended(LetterState::Recovered, false), ItemOutcome::Recovered);
        assert_eq!(ended(LetterState::Discarded, false), ItemOutcome::Gone);
        assert_eq!(ended(LetterState::Parked, false), ItemOutcome::StillFailing);
        assert_eq!(ended(LetterState::Abandoned, false), ItemOutcome::Abandoned);
        assert_eq!(ended(LetterState::Parked, true), ItemOutcome::Pending);
        assert_eq!(ended(LetterState::Abandoned, true), ItemOutcome::Abandoned);
    }
}
