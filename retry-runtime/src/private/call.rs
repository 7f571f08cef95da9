//! The steps of one call, as the macro, `retrying!` and the builder write them down.

use std::time::Duration;

use crate::__private::classes::Classes;
use crate::__private::guards::Guarding;
use crate::__private::record::{Hidden, Recorder};
use crate::__private::returns::Judge;
use crate::__private::site::Site;
use crate::__private::text::MakeText;
use crate::__private::watch::Facts;
use crate::disabled::{retries_are_disabled, retries_are_enabled};
use crate::engine::{Knob, Limits, Session, Step, Stop};
use crate::nest;
use crate::observe::Notice;
use crate::panics::caught;
use crate::policy::{Doubling, Policy, Retries};
use crate::random;
use crate::refused::Elapsed;
use crate::stop::StopReason;
use crate::verdict::{Disposition, Verdict};

/// The site of a call, and the policy that stands in for the site's own.
#[derive(Clone, Copy, Debug)]
pub struct At<'a> {
    site: &'a Site,
    policy: &'a Policy,
    classes: Option<Classes<'a>>,
    guards: Option<&'a dyn Guarding>,
    /// The short way for a failure that may pass and asks for nothing.
    plain: Option<Doubling>,
}

impl<'a> At<'a> {
    /// A site with its own policy, in a constant.
    #[inline]
    pub const fn site(site: &'a Site) -> Self {
        Self { site, policy: site.policy(), classes: None, guards: None, plain: site.plain() }
    }

    /// The same where the site is not a constant, and to look for a short way would take longer than to go the long one.
    #[inline]
    pub const fn made(site: &'a Site) -> Self {
        Self::with(site, site.policy())
    }

    /// A site with another policy: `policy = EXPR`.
    #[inline]
    pub const fn with(site: &'a Site, policy: &'a Policy) -> Self {
        Self { site, policy, classes: None, guards: None, plain: None }
    }

    /// Other numbers for some classes.
    #[inline]
    #[must_use]
    pub const fn classes(mut self, classes: Classes<'a>) -> Self {
        self.classes = Some(classes);
        self.plain = None;
        self
    }

    /// A budget and a breaker shared with other calls.
    #[inline]
    #[must_use]
    pub const fn guards(mut self, guards: &'a dyn Guarding) -> Self {
        self.guards = Some(guards);
        self.plain = None;
        self
    }

    /// What an observer is told of the call before its first event.
    pub fn facts(&self) -> Facts {
        let max_attempts = if self.retries() { self.most().attempts() } else { Some(1) };
        Facts { operation: self.site.name(), max_attempts, depth: nest::around().depth }
    }

    /// Says a warning once for this call's site.
    pub(crate) fn warn_once(&self, notice: &'static str, message: impl FnOnce() -> String) {
        self.site.warn_once(notice, message);
    }

    /// Its name, where its attempts are marked.
    #[inline]
    pub(crate) const fn marked(&self) -> Option<&'static str> {
        self.site.marked()
    }

    /// Whether there may be a second attempt, by the settings alone.
    pub(crate) fn retries(&self) -> bool {
        !self.is_single() && !retries_are_disabled() && self.most() != Retries::Limited(0)
    }

    /// The largest number of retries that the call or one of its classes gives.
    fn most(&self) -> Retries {
        let own = self.policy.retries();
        match &self.classes {
            Some(classes) if !self.policy.is_off() => classes.most(own),
            _ => own,
        }
    }

    /// Whether this call leaves retries to the one around it.
    pub(crate) fn is_single(&self) -> bool {
        self.site.is_single()
    }

    /// What the breaker hears of a failed attempt.
    fn tell(&self, verdict: Option<&Verdict>) {
        if let Some(guards) = self.guards {
            guards.failed(verdict);
        }
    }
}

/// The class of an attempt that ran out of time: nobody knows how far it came.
const TIMEOUT: Verdict = Verdict::retryable("timeout").outcome_unknown();
/// The class of an `Ok` that `retry_ok` does not accept.
const REJECTED: Verdict = Verdict::retryable("rejected_value");

/// What is recorded of a failure whose classifier panicked.
pub(crate) const UNCLASSIFIED: Verdict = Verdict::unknown("unclassified");

/// What the patterns of `stop_on` and `retry_on` say of an error.
#[derive(Clone, Copy, Debug)]
pub enum Said {
    Nothing,
    Stop,
    Retry,
}

/// A bare name of a pattern is a value of the matched type; never called.
#[inline]
pub fn names_a_value<T>(_matched: &T, _name: impl FnOnce() -> T) {}

/// An attempt succeeded: there is nothing to wait for.
#[inline]
pub fn succeeded<R: Recorder>(record: &mut R) -> Option<Duration> {
    record.stopped(Hidden(Stop::plain(StopReason::Succeeded)));
    None
}

/// An attempt failed: `Some(wait)` before the next one, `None` to stop.
#[cold]
#[inline(never)]
pub fn failed<E: ?Sized, R: Recorder>(
    at: &At<'_>,
    session: &mut Session,
    record: &mut R,
    error: &E,
    classify: impl Judge<E>,
    text: MakeText<E>,
    said: Said,
) -> Option<Duration> {
    // nobody asks for more, and nothing else decides
    let short = at.plain.is_some() && matches!(said, Said::Nothing) && record.is_quiet();
    let asked = move || {
        let verdict = classify.verdict(error);
        (!short || !verdict.only_may_pass()).then_some(verdict)
    };
    match caught(asked) {
        Ok(None) => retried(at, session),
        Ok(Some(verdict)) => judged(at, session, record, verdict, said, error, text),
        Err(why) => unclassified(at, session, record, &why, error, text),
    }
}

/// A failure that may pass, of a call that has a [short way](Site::plain): what [`decide`] comes to there.
#[inline(never)]
fn retried(at: &At<'_>, session: &mut Session) -> Option<Duration> {
    match &at.plain {
        Some(plain) if retries_are_enabled() => session.retry(plain).map(real),
        _ => retried_first(at, session),
    }
}

/// The same where it is not known that retries are made.
#[cold]
#[inline(never)]
fn retried_first(at: &At<'_>, session: &mut Session) -> Option<Duration> {
    let made = at.plain.filter(|_| !retries_are_disabled());
    let Some(plain) = made else {
        session.fail();
        return None;
    };
    session.retry(&plain).map(real)
}

/// A failure with its verdict.
#[inline(never)]
fn judged<E: ?Sized, R: Recorder>(
    at: &At<'_>,
    session: &mut Session,
    record: &mut R,
    mut verdict: Verdict,
    said: Said,
    error: &E,
    text: MakeText<E>,
) -> Option<Duration> {
    let text = if record.wants_text() { make_text(error, text) } else { String::new() };
    match said {
        Said::Nothing => {}
        Said::Stop => verdict.disposition = Disposition::Permanent,
        Said::Retry => verdict.disposition = Disposition::Retryable,
    }
    record.failed(&verdict, text.into());
    at.tell(Some(&verdict));
    // where there is a short way, nothing is shared with other calls
    let short = at.plain.filter(|plain| verdict.only_may_pass() && session.may_retry(plain) && retries_are_enabled());
    match short.and_then(|plain| session.retry(&plain)) {
        Some(wait) => {
            record.waiting(wait);
            Some(real(wait))
        }
        None => decide(at, session, record, &verdict),
    }
}

/// A failure whose classifier panicked: nothing is known of it.
#[cold]
#[inline(never)]
fn unclassified<E: ?Sized, R: Recorder>(
    at: &At<'_>,
    session: &mut Session,
    record: &mut R,
    why: &str,
    error: &E,
    text: MakeText<E>,
) -> Option<Duration> {
    classifier_panicked(at.site, why);
    let text = if record.wants_text() { make_text(error, text) } else { String::new() };
    session.fail();
    record.failed(&UNCLASSIFIED, text.into());
    at.tell(None);
    stop(record, Stop::plain(StopReason::ClassifierFailed))
}

/// Asks the classifier, and makes the error's text.
pub(crate) fn verdict_and_text<E: ?Sized>(
    at: &At<'_>,
    error: &E,
    classify: &impl Judge<E>,
    text: MakeText<E>,
) -> (Option<Verdict>, String) {
    let verdict = caught(|| classify.verdict(error)).map_err(|why| classifier_panicked(at.site, &why)).ok();
    (verdict, make_text(error, text))
}

/// An attempt returned an `Ok` that counts as a failure.
#[cold]
#[inline(never)]
pub fn rejected<R: Recorder>(at: &At<'_>, session: &mut Session, record: &mut R) -> Option<Duration> {
    record.failed(&REJECTED, "the value was rejected by `retry_ok`".into());
    at.tell(Some(&REJECTED));
    decide(at, session, record, &REJECTED)
}

/// An attempt ran out of time.
#[cold]
#[inline(never)]
pub fn timed_out<R: Recorder>(
    at: &At<'_>,
    session: &mut Session,
    record: &mut R,
    elapsed: Elapsed,
) -> Option<Duration> {
    record.failed(&TIMEOUT, elapsed.to_string().into());
    at.tell(Some(&TIMEOUT));
    if let (attempt_timeout, Some(limit)) = at.site.timeouts() {
        let cut_by_deadline = attempt_timeout.is_none_or(|own| elapsed.limit() < own);
        // what is not idempotent has no second route either: let `decide` say so
        if cut_by_deadline && at.site.limits().idempotent {
            session.fail();
            return stop(record, Stop { reason: StopReason::Deadline, knob: Knob::DeadlineInAttempt { limit } });
        }
    }
    decide(at, session, record, &TIMEOUT)
}

/// How long the next attempt may run: the smaller of `attempt_timeout` and what is left of the deadline.
pub fn attempt_limit<R: Recorder>(site: &Site, record: &R) -> Duration {
    let (own, deadline) = site.timeouts();
    let left = deadline.map(|limit| limit.saturating_sub(record.elapsed()));
    match (own, left) {
        (Some(own), Some(left)) => own.min(left),
        (Some(limit), None) | (None, Some(limit)) => limit,
        (None, None) => Duration::MAX,
    }
}

fn decide<R: Recorder>(at: &At<'_>, session: &mut Session, record: &mut R, verdict: &Verdict) -> Option<Duration> {
    let mut own = at.classes.as_ref().and_then(|classes| {
        classes.check_once(at.site, at.policy);
        classes.find(verdict.class, at.policy.retries())
    });
    let class = own.as_mut().map(|(class, _)| class);
    let elapsed = &mut || record.elapsed();
    let limits = Limits { disabled: retries_are_disabled(), single: at.is_single(), ..at.site.limits() };
    let step = session.judge(at.policy, limits, verdict, class, elapsed, &mut random::next_u64);
    if let Some((class, count)) = own {
        count.set(class.counted);
    }
    let step = shared(at, step, verdict.class);
    if let Some(guards) = at.guards {
        record.budget(|| guards.milli_tokens());
    }
    match step {
        Step::Wait(wait) => {
            record.waiting(wait);
            Some(real(wait))
        }
        Step::Stop(why) => stop(record, why),
    }
}

/// What is waited for a wait: nothing, where a test has made waits virtual.
fn real(wait: Duration) -> Duration {
    #[cfg(feature = "test-util")]
    if crate::testing::virtual_wait(wait) {
        return Duration::ZERO;
    }
    wait
}

/// The limits that a call shares with others: the breaker is asked after the count and before hint and deadline, the budget
/// last of all, so that nothing is taken for a retry that does not come.
fn shared(at: &At<'_>, step: Step, class: &'static str) -> Step {
    let Some(guards) = at.guards else { return step };
    let admitted = match step {
        Step::Stop(Stop { reason: StopReason::HintTooLong | StopReason::Deadline, .. }) => guards.admit(Duration::ZERO),
        Step::Stop(_) => return step,
        Step::Wait(wait) => guards.admit(wait),
    };
    if let Err(Hidden(open)) = admitted {
        return Step::Stop(open);
    }
    let taken = match step {
        Step::Stop(why) => Err(Hidden(why)),
        Step::Wait(_) => guards.take(class),
    };
    match taken {
        Ok(()) => step,
        Err(Hidden(why)) => {
            guards.give_up();
            Step::Stop(why)
        }
    }
}

fn stop<R: Recorder>(record: &mut R, why: Stop) -> Option<Duration> {
    record.stopped(Hidden(why));
    None
}

#[cold]
#[inline(never)]
fn classifier_panicked(site: &Site, why: &str) {
    let message =
        format!("the classifier panicked ({why}); the failure is not retried, and the error is returned as it is");
    Notice::warning("classifier_failed", site.name(), message).say();
}

fn make_text<E: ?Sized>(error: &E, text: MakeText<E>) -> String {
    match caught(|| text(error)) {
        Ok(text) => text.unwrap_or_default(),
        Err(why) => format!("<the error's text panicked: {why}>"),
    }
}
