//! What the checks are written with.

use std::fmt::{Debug, Display};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::report::{Outcome, Report};
use crate::attempt::AttemptRecord;
use crate::dead_letter::executor::block_on;
use crate::dead_letter::{
    Actor, ClaimRequest, Claimed, DeadLetter, DeadLetterStore, Failure, Filter, Finish, LetterDetail, LetterRow,
    ManualClock, Parking, Payload, Release, ReplayOutcome, StoreClock, Ticket,
};
use crate::error::{StoreError, StoreErrorKind};
use crate::panics::caught;
use crate::reply::Reply;
use crate::stop::StopReason;
use crate::verdict::Disposition;

/// Longer than any store may take; a check that reaches it fails.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// One check: what it proves, and how.
pub(super) struct Check<B> {
    pub(super) rule: &'static str,
    pub(super) name: &'static str,
    pub(super) run: fn(&B) -> Result<(), String>,
}

macro_rules! checks {
    ($($rule:literal $name:ident),* $(,)?) => {
        vec![$(crate::testing::conformance::support::Check { rule: $rule, name: stringify!($name), run: $name::<S> }),*]
    };
}

/// Fails the check unless a condition holds.
macro_rules! demand {
    ($condition:expr, $($what:tt)+) => {
        if !$condition {
            return Err(format!($($what)+));
        }
    };
}

pub(super) use {checks, demand};

/// Fails the check unless two values are equal.
#[allow(clippy::needless_pass_by_value, reason = "checks compare what they have just made")]
pub(super) fn same<T: PartialEq + Debug>(what: &str, found: T, wanted: T) -> Result<(), String> {
    if found == wanted { Ok(()) } else { Err(format!("{what}: found {found:?}, wanted {wanted:?}")) }
}

pub(super) fn run<B>(checks: Vec<Check<B>>, mut fresh: impl FnMut() -> B) -> Report {
    let one = |check: Check<B>| {
        let result = caught(|| (check.run)(&fresh()));
        let failure = match result {
            Ok(result) => result.err(),
            Err(_) => Some("panicked".to_owned()),
        };
        Outcome { rule: check.rule, name: check.name, failure }
    };
    Report::of(checks.into_iter().map(one).collect())
}

/// The value of a store's future.
pub(super) fn done<T, E: Display>(future: impl Future<Output = Result<T, E>>) -> Result<T, String> {
    attempt(future)?.map_err(|error| error.to_string())
}

/// The outcome of a store's future, its error included.
pub(super) fn attempt<T>(future: impl Future<Output = T>) -> Result<T, String> {
    block_on(future, PATIENCE).ok_or_else(|| format!("no answer within {PATIENCE:?}"))
}

/// The value of a reply.
pub(super) fn answered<T>(reply: Reply<T>) -> Result<T, String> {
    reply.wait(PATIENCE).map_err(|_| format!("no answer within {PATIENCE:?}"))
}

/// The letter id a ticket ends with.
pub(super) fn parked(ticket: Ticket) -> Result<String, String> {
    match answered(ticket)? {
        Parking::Parked { letter_id } => Ok(letter_id),
        other => Err(format!("not parked: {other}")),
    }
}

/// Demands an error of a kind.
pub(super) fn refused<T: Debug>(
    what: &str,
    result: Result<T, StoreError>,
    wanted: StoreErrorKind,
) -> Result<(), String> {
    match result {
        Ok(value) => Err(format!("{what}: accepted with {value:?}, wanted the error {wanted:?}")),
        Err(error) if error.kind() == wanted => Ok(()),
        Err(error) => Err(format!("{what}: error {:?} ({error}), wanted {wanted:?}", error.kind())),
    }
}

/// A sink under check.
pub(super) struct SinkBench<'a, S> {
    pub(super) sink: S,
    pub(super) count: Option<&'a dyn Fn(&S) -> u64>,
}

/// A store, ledger or counters under check, and the clock it was built with.
pub(super) struct Bench<S> {
    pub(super) store: S,
    pub(super) time: ManualClock,
}

/// Where every check starts: 2026-01-02 03:04:05.006 UTC.
pub(super) fn start() -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(1_767_323_045_006)
}

/// How long leases last in checks.
pub(super) const LEASE: Duration = Duration::from_secs(60);

pub(super) fn actor() -> Actor {
    Actor::new("conformance", "check")
}

pub(super) fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// A letter of kind `fetch` with everything set.
pub(super) fn letter(job_id: &str, at: SystemTime) -> DeadLetter {
    let mut letter = DeadLetter::new("fetch", StopReason::Exhausted, at);
    letter.job_id = Some(job_id.to_owned());
    letter.model = Some("m1".to_owned());
    letter.payload = Payload::Json(format!("{{\"id\":\"{job_id}\"}}"));
    letter.disposition = Disposition::Retryable;
    letter.class = Some("rate_limit".to_owned());
    letter.code = Some(429);
    letter.error_type = "app::Error".into();
    letter.error_message = "too many requests".into();
    letter.attempts = 2;
    let took = Duration::from_millis(5);
    letter.history = vec![
        AttemptRecord::new(1, at, took, "timeout", None, "no answer"),
        AttemptRecord::new(2, at, took, "rate_limit", Some(429), "too many requests"),
    ];
    letter
}

/// A failure that differs from [`letter`]'s.
pub(super) fn failure() -> Failure {
    let mut failure = Failure::new(StopReason::Permanent, Disposition::Permanent, "forbidden");
    failure.class = Some("forbidden".to_owned());
    failure.code = Some(403);
    failure
}

impl<S> Bench<S> {
    pub(super) fn new(make: impl FnOnce(StoreClock) -> S) -> Self {
        let time = ManualClock::new(start());
        Self { store: make(time.clock()), time }
    }
}

impl<S: DeadLetterStore> Bench<S> {
    /// Parks a letter; its id.
    pub(super) fn park(&self, letter: DeadLetter) -> Result<String, String> {
        parked(self.store.submit(letter))
    }

    /// Parks a usual letter of a job, failed now.
    pub(super) fn park_job(&self, job_id: &str) -> Result<String, String> {
        self.park(letter(job_id, self.time.now()))
    }

    pub(super) fn detail(&self, letter_id: &str) -> Result<LetterDetail, String> {
        done(self.store.get(letter_id.to_owned()))?.ok_or_else(|| format!("letter {letter_id} is not there"))
    }

    pub(super) fn row(&self, letter_id: &str) -> Result<LetterRow, String> {
        Ok(self.detail(letter_id)?.row)
    }

    pub(super) fn claim(&self, request: ClaimRequest) -> Result<Vec<Claimed>, String> {
        done(self.store.claim(request, actor()))
    }

    /// Claims one letter, whatever its back-off and hint.
    pub(super) fn claim_id(&self, letter_id: &str) -> Result<Claimed, String> {
        let mut request = usual_claim();
        request.filter = Filter::id(letter_id);
        request.ignore_backoff = true;
        request.ignore_not_before = true;
        self.claim(request)?.pop().ok_or_else(|| format!("letter {letter_id} was not handed out"))
    }

    pub(super) fn finish(&self, letter_id: &str, fence: u64, outcome: ReplayOutcome) -> Result<LetterRow, String> {
        done(self.store.finish(Finish::new(letter_id, fence, outcome), actor()))
    }

    /// Claims and finishes one letter.
    pub(super) fn replay(&self, letter_id: &str, outcome: ReplayOutcome) -> Result<LetterRow, String> {
        let claimed = self.claim_id(letter_id)?;
        self.finish(letter_id, claimed.row.fence, outcome)
    }

    pub(super) fn release(&self, letter_id: &str, release: Release) -> Result<Result<LetterRow, StoreError>, String> {
        attempt(self.store.release(letter_id.to_owned(), release, actor()))
    }

    /// Fails replays until the letter is abandoned.
    pub(super) fn wear_out(&self, letter_id: &str) -> Result<LetterRow, String> {
        for _ in 0..crate::dead_letter::MAX_REPLAYS {
            self.time.advance(seconds(1));
            self.replay(letter_id, ReplayOutcome::Failed(failure()))?;
        }
        self.row(letter_id)
    }
}

/// Up to 100 letters of kind `fetch`.
pub(super) fn usual_claim() -> ClaimRequest {
    let mut request = ClaimRequest::new(["fetch"], "checker");
    request.limit = 100;
    request.lease = LEASE;
    request
}
