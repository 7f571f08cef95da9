//! What is known of a call that is watched, and the events it makes of what happens.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::{Facts, News};
use crate::__private::accepted::PANICKED_CLASS as PANICKED;
use crate::__private::fallback::reason_falls_back;
use crate::__private::letter::say_if_failed;
use crate::__private::record::Hidden;
use crate::clock;
use crate::dead_letter::{Parking, Ticket};
use crate::engine::{Knob, Stop};
use crate::observe::{CallSpan, Event, Observer, What, tell};
use crate::stop::StopReason;

static CALLS: AtomicU64 = AtomicU64::new(0);

/// Where a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Before an attempt, or in a wait.
    Between,
    InAttempt,
    /// The loop has ended so, and a second route comes.
    BeforeFallback(StopReason),
    InFallback(StopReason),
    Over,
}

/// Who watches a call.
pub(super) struct WatchedBy<'o> {
    pub(super) own: Option<&'o dyn Observer>,
    pub(super) installed: Option<&'static dyn Observer>,
    /// The call says itself when its body panics.
    pub(super) catches: bool,
}

/// One call that is watched.
pub(super) struct Watching<'o> {
    by: WatchedBy<'o>,
    number: u64,
    facts: Facts,
    has_fallback: bool,
    fell_back: bool,
    started: Instant,
    attempt_started: Instant,
    attempt: u32,
    stage: Stage,
    failure: Option<(&'static str, Option<i64>)>,
    milli_tokens: Option<u64>,
    letter: Option<Letter>,
    span: CallSpan,
}

/// What the events about a letter say of it.
pub(crate) struct Letter {
    reason: StopReason,
    job_id: Option<String>,
}

impl<'o> Watching<'o> {
    pub(super) fn new(by: WatchedBy<'o>, has_fallback: bool, facts: Facts) -> Self {
        let now = clock::monotonic();
        Self {
            by,
            number: CALLS.fetch_add(1, Ordering::Relaxed),
            facts,
            has_fallback,
            fell_back: false,
            started: now,
            attempt_started: now,
            attempt: 0,
            stage: Stage::Between,
            failure: None,
            milli_tokens: None,
            letter: None,
            span: CallSpan::new(),
        }
    }

    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn note(&mut self, news: News<'_>) {
        match news {
            News::Attempt => {
                self.begin_attempt();
                self.stage = Stage::InAttempt;
                self.tell(What::AttemptStarted);
            }
            News::Failed(verdict) => {
                self.failure = Some((verdict.class, verdict.code));
                if let Stage::InFallback(reason) = self.stage {
                    self.tell(What::Fallback { reason, succeeded: false });
                    self.stage = Stage::BeforeFallback(reason);
                } else {
                    self.failed();
                }
            }
            News::Panicked => self.panicked(),
            News::Waiting(delay) => self.tell(What::RetryScheduled { delay }),
            News::Stopped(Hidden(stop)) => self.stopped(stop),
            News::FallbackBegins => {
                self.begin_attempt();
                self.fell_back = true;
                if let Stage::BeforeFallback(reason) = self.stage {
                    self.stage = Stage::InFallback(reason);
                }
            }
            News::FallbackEnded => {
                if let Stage::BeforeFallback(reason) = self.stage {
                    self.gave_up(reason);
                }
            }
            News::MilliTokens(tokens) => self.milli_tokens = tokens,
            News::Letter(letter) => {
                self.letter = Some(Letter { reason: letter.reason, job_id: letter.job_id.clone() });
            }
            News::Parked(parking) => {
                if let Some(letter) = self.letter.take() {
                    self.parked(&letter, parking);
                }
            }
        }
    }

    fn begin_attempt(&mut self) {
        self.attempt = self.attempt.saturating_add(1);
        self.attempt_started = clock::monotonic();
    }

    fn stopped(&mut self, stop: Stop) {
        let reason = stop.reason;
        match (reason, self.stage) {
            (StopReason::Succeeded, Stage::InFallback(reason)) => {
                self.end(What::Fallback { reason, succeeded: true });
            }
            (StopReason::Succeeded, _) if self.attempt > 1 => self.end(What::Recovered),
            (StopReason::Succeeded, _) => self.end(What::Succeeded),
            (StopReason::LedgerRefused, _) => self.end(What::Refused { reason }),
            // after a failed second route
            (_, Stage::BeforeFallback(_)) => self.gave_up(reason),
            _ => {
                if self.stage == Stage::Between && refuses(stop) {
                    self.tell(What::Refused { reason });
                }
                if self.has_fallback && reason_falls_back(reason) {
                    self.stage = Stage::BeforeFallback(reason);
                } else {
                    self.gave_up(reason);
                }
            }
        }
    }

    fn end(&mut self, what: What<'_>) {
        self.stage = Stage::Over;
        self.tell(what);
    }

    const fn is_in_body(&self) -> bool {
        matches!(self.stage, Stage::InAttempt | Stage::InFallback(_))
    }

    fn gave_up(&mut self, reason: StopReason) {
        let unfinished = self.is_in_body();
        self.end(What::GivenUp { reason, unfinished });
    }

    fn parked(&self, letter: &Letter, parking: &Parking) {
        if let Some(what) = about(letter.reason, parking) {
            self.tell_all(&Event { job_id: letter.job_id.as_deref(), ..self.event(what) });
        }
    }

    /// Nobody waits for the ticket: the installed observer, which outlives the call, is told on the thread that answers it.
    pub(super) fn later(&mut self, ticket: Ticket) {
        let operation = self.facts.operation;
        if let (Some(observer), Some(letter)) = (self.by.installed, self.letter.take()) {
            let by = WatchedBy { own: None, installed: Some(observer), catches: false };
            let mut call = Watching::new(by, false, self.facts);
            (call.number, call.started, call.attempt) = (self.number, self.started, self.attempt);
            (call.failure, call.milli_tokens) = (self.failure, self.milli_tokens);
            (call.stage, call.span) = (Stage::Over, self.span.clone());
            ticket.then(move |parking| {
                say_if_failed(operation, &parking);
                call.parked(&letter, &parking);
            });
        } else {
            ticket.then(move |parking| say_if_failed(operation, &parking));
        }
    }

    fn panicked(&mut self) {
        self.failure = Some((PANICKED, None));
        self.failed();
        self.gave_up(StopReason::Panicked);
    }

    fn failed(&mut self) {
        let took = clock::monotonic().saturating_duration_since(self.attempt_started);
        self.stage = Stage::Between;
        self.tell(What::AttemptFailed { took });
    }

    fn tell(&self, what: What<'_>) {
        self.tell_all(&self.event(what));
    }

    fn tell_all(&self, event: &Event<'_>) {
        for observer in self.by.own.into_iter().chain(self.by.installed) {
            tell(observer, event);
        }
    }

    fn event<'e>(&'e self, what: What<'e>) -> Event<'e> {
        Event {
            what,
            operation: self.facts.operation,
            call: self.number,
            attempt: self.attempt,
            max_attempts: self.facts.max_attempts,
            depth: self.facts.depth,
            class: self.failure.map(|(class, _)| class),
            code: self.failure.and_then(|(_, code)| code),
            elapsed: clock::monotonic().saturating_duration_since(self.started),
            job_id: None,
            milli_tokens: self.milli_tokens,
            fell_back: self.fell_back,
            span: &self.span,
        }
    }
}

/// Whether a call ends so because an attempt may not be made. 1.2: it is no attempt, but an event.
const fn refuses(stop: Stop) -> bool {
    match stop.reason {
        StopReason::BudgetDenied | StopReason::BreakerOpen | StopReason::Cancelled => true,
        StopReason::Deadline => !matches!(stop.knob, Knob::DeadlineInAttempt { .. }),
        _ => false,
    }
}

/// What is told of a letter; nothing inside a replay, which writes its own result.
fn about(reason: StopReason, parking: &Parking) -> Option<What<'_>> {
    match parking {
        Parking::Parked { letter_id } => Some(What::Parked { reason, letter_id }),
        Parking::Spilled { path, because } => Some(What::Spilled { reason, path, because }),
        Parking::Lost { because } => Some(What::ParkFailed { reason, because }),
        Parking::Replaying => None,
    }
}

/// A call that ends in another way than by its own loop: its future is dropped, or its body panics. Where no panic is caught,
/// one that goes on while an attempt runs is taken for the body's.
impl Drop for Watching<'_> {
    fn drop(&mut self) {
        match self.stage {
            Stage::Over => {}
            Stage::InAttempt if !self.by.catches && std::thread::panicking() => self.panicked(),
            _ => self.gave_up(StopReason::Dropped),
        }
    }
}
