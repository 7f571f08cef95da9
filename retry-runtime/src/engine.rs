//! The decision after a failure: wait this long, or stop for this reason.
//!
//! Pure and synchronous: time and randomness come in as values, nothing is awaited, and nothing of the error type is
//! known here. The macro, the builder, `retrying!` and their blocking twins are thin faces over [`Session::judge`].

use std::time::Duration;

use crate::breaker::BreakerOpen;
use crate::policy::{ClassLimits, Doubling, Policy, Retries};
use crate::stop::StopReason;
use crate::verdict::{Disposition, Verdict};

/// What an unknown failure does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unknown {
    /// It stops the call; the default.
    #[default]
    Stop,
    /// It is retried like a retryable one.
    Retry,
}

/// What is done about retries inside an attempt of another retried call.
///
/// Attempts multiply there: three layers of 4 attempts make 64. What an attempt runs in is told by marks on its thread. A
/// blocking attempt always leaves one; an async one where it is asked for by either word, or with the feature `test-util`.
/// A call with `max_retries = 0` leaves none: it multiplies nothing.
///
/// What an attempt spawns is not inside of it, on whatever thread it runs: not even tasks of tokio that run because a blocking
/// attempt drives their runtime with `block_on`, whereas the future that it gives to `block_on` is inside. Tasks of another
/// executor cannot be told apart, and count as inside where a blocking attempt drives them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Nested {
    /// It is said: one warning `nested_retry` for each place, and the depth in events.
    Detect,
    /// A call inside another one's attempt makes a single attempt: the outer one retries.
    OuterOnly,
}

/// The limits of one call, beside its policy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) deadline: Option<Duration>,
    pub(crate) unknown: Unknown,
    /// Whether the work may be done twice.
    pub(crate) idempotent: bool,
    /// The whole process makes no retry.
    pub(crate) disabled: bool,
    /// There is one attempt, whatever the policy says: another call around this one makes the others.
    pub(crate) single: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self { deadline: None, unknown: Unknown::Stop, idempotent: true, disabled: false, single: false }
    }
}

/// What to do after a failure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Step {
    Wait(Duration),
    Stop(Stop),
}

/// Why a call stopped, with the values of the knob that stopped it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stop {
    pub(crate) reason: StopReason,
    pub(crate) knob: Knob,
}

/// The setting that ended a call, and its value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Knob {
    /// None: the failure itself decided.
    None,
    MaxRetries(u32),
    /// `RETRY_DISABLED`: the process makes no retry.
    Disabled,
    /// `nested = outer_only`, in an attempt of another call.
    OuterOnly,
    /// That of one class.
    ClassRetries {
        class: &'static str,
        max: u32,
    },
    /// The deadline, and the wait it would have passed in.
    Deadline {
        limit: Duration,
        wait: Duration,
    },
    /// The deadline cut a running attempt short.
    DeadlineInAttempt {
        limit: Duration,
    },
    /// What the budget had left, and what the retry would have taken, in thousandths of a token.
    Budget {
        left: u64,
        cost: u64,
    },
    Breaker(BreakerOpen),
    /// The server's hint, and the longest one obeyed.
    Hint {
        hint: Duration,
        max: Duration,
    },
}

impl Stop {
    pub(crate) const fn plain(reason: StopReason) -> Self {
        Self { reason, knob: Knob::None }
    }
}

/// The numbers of one class, where it has its own, and what the call counted of it.
#[derive(Debug)]
pub(crate) struct OfClass<'a> {
    pub(crate) name: &'static str,
    pub(crate) limits: &'a ClassLimits,
    pub(crate) counted: Session,
    /// The largest number of retries that the call or any class gives: no call makes more.
    pub(crate) most: Retries,
}

/// The state of one call: how many attempts failed, and the last delay.
///
/// It belongs to the call alone and fits in eight bytes, so that a retrying future stays as small as a hand-written loop.
#[derive(Clone, Copy, Debug, Default)]
pub struct Session {
    failures: u32,
    previous: Packed,
}

impl Session {
    /// The state before the first attempt.
    #[inline]
    pub const fn new() -> Self {
        Self { failures: 0, previous: Packed(0) }
    }

    /// Counts a failed attempt and decides what follows. The order of the questions is fixed: gone, outcome, disposition,
    /// count, hint, deadline; the first that says no names the reason.
    ///
    /// `elapsed` is the time since the first attempt's start, asked only where there is a deadline.
    pub(crate) fn judge(
        &mut self,
        policy: &Policy,
        limits: Limits,
        verdict: &Verdict,
        mut class: Option<&mut OfClass<'_>>,
        elapsed: &mut dyn FnMut() -> Duration,
        random: &mut dyn FnMut() -> u64,
    ) -> Step {
        self.fail();
        if let Some(class) = &mut class {
            class.counted.fail();
        }
        // Before the disposition: a fallback after a permanent failure would do the work a second time as well.
        if verdict.outcome_unknown && !limits.idempotent && verdict.disposition != Disposition::Gone {
            return Step::Stop(Stop::plain(StopReason::OutcomeUnknown));
        }
        match (verdict.disposition, limits.unknown) {
            (Disposition::Permanent, _) => return Step::Stop(Stop::plain(StopReason::Permanent)),
            (Disposition::Gone, _) => return Step::Stop(Stop::plain(StopReason::Gone)),
            (Disposition::Unknown, Unknown::Stop) => return Step::Stop(Stop::plain(StopReason::Unknown)),
            (Disposition::Retryable, _) | (Disposition::Unknown, Unknown::Retry) => {}
        }
        if limits.disabled {
            return Step::Stop(Stop { reason: StopReason::Exhausted, knob: Knob::Disabled });
        }
        let used_up = if limits.single { Some(Knob::OuterOnly) } else { self.used_up(policy, class.as_deref()) };
        if let Some(knob) = used_up {
            return Step::Stop(Stop { reason: StopReason::Exhausted, knob });
        }
        let of_class = class.as_ref().map(|class| class.limits.over(policy));
        let policy = of_class.as_ref().unwrap_or(policy);
        if let Some(hint) = verdict.retry_after {
            let max = policy.get_max_retry_after();
            if hint > max {
                return Step::Stop(Stop { reason: StopReason::HintTooLong, knob: Knob::Hint { hint, max } });
            }
        }
        // a class with a wait of its own grows it by its own failures
        let grown = match class {
            Some(class) if class.limits.has_own_wait() => &mut class.counted,
            _ => self,
        };
        let own = policy.delay(grown.failures - 1, grown.previous.get(), random);
        grown.previous = Packed::of(own);
        let wait = match verdict.retry_after {
            Some(hint) => policy.hinted(own, hint, random),
            None => own,
        };
        if let Some(limit) = limits.deadline {
            if elapsed().saturating_add(wait) >= limit {
                return Step::Stop(Stop { reason: StopReason::Deadline, knob: Knob::Deadline { limit, wait } });
            }
        }
        Step::Wait(wait)
    }

    /// [`judge`](Self::judge) of a failure that may pass, where nothing but a count decides and the waits only double.
    #[inline]
    pub(crate) fn retry(&mut self, policy: &Doubling) -> Option<Duration> {
        self.fail();
        if self.failures > policy.max { None } else { Some(policy.delay(self.failures - 1)) }
    }

    /// Whether [`retry`](Self::retry) gives another attempt.
    #[inline]
    pub(crate) const fn may_retry(self, policy: &Doubling) -> bool {
        self.failures < policy.max
    }

    /// Whether the retries are used up, by which setting. A class with a number of its own is counted by itself, whatever
    /// failed beside it; all failures together stay within the largest number that was given, to whichever class.
    fn used_up(self, policy: &Policy, class: Option<&OfClass<'_>>) -> Option<Knob> {
        let own = class.and_then(|class| class.limits.retries().map(|retries| (class, retries)));
        let call = match own {
            Some((class, Retries::Limited(max))) if class.counted.failures > max && !policy.is_off() => {
                return Some(Knob::ClassRetries { class: class.name, max });
            }
            Some((class, _)) if !policy.is_off() => class.most,
            _ => policy.retries(),
        };
        match call {
            Retries::Limited(max) if self.failures > max => Some(Knob::MaxRetries(max)),
            _ => None,
        }
    }

    /// Counts a failed attempt that ends the call whatever the verdict.
    pub(crate) fn fail(&mut self) {
        self.failures = self.failures.saturating_add(1);
    }
}

/// A delay in four bytes: 26 bits of nanoseconds and a shift, rounded down, so at most 2^-25 of it is lost. Zero means none.
#[derive(Clone, Copy, Debug, Default)]
struct Packed(u32);

impl Packed {
    const BITS: u32 = 26;

    fn of(delay: Duration) -> Self {
        let nanos = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        let shift = (u64::BITS - nanos.leading_zeros()).saturating_sub(Self::BITS);
        // Both parts fit by construction: 26 bits of mantissa, a shift of at most 38.
        let mantissa = u32::try_from(nanos >> shift).unwrap_or(u32::MAX >> (u32::BITS - Self::BITS));
        Self(shift << Self::BITS | mantissa)
    }

    fn get(self) -> Option<Duration> {
        let mantissa = u64::from(self.0 & ((1 << Self::BITS) - 1));
        (self.0 != 0).then(|| Duration::from_nanos(mantissa << (self.0 >> Self::BITS)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Jitter;

    fn judge(session: &mut Session, policy: &Policy, limits: Limits, verdict: Verdict, elapsed: Duration) -> Step {
        session.judge(policy, limits, &verdict, None, &mut || elapsed, &mut || 0)
    }

    const SLOW: Verdict = Verdict::retryable("timeout");

    // 1.1, B2.1
    #[test]
    fn max_retries_2_means_3_attempts() {
        let (mut session, policy) = (Session::new(), Policy::new().max_retries(2));
        let step = |session: &mut Session| judge(session, &policy, Limits::default(), SLOW, Duration::ZERO);
        assert_eq!(step(&mut session), Step::Wait(Duration::from_secs(1)));
        assert_eq!(step(&mut session), Step::Wait(Duration::from_secs(2)));
        let Step::Stop(stop) = step(&mut session) else { panic!("a fourth attempt") };
        assert_eq!(stop.reason, StopReason::Exhausted);
        assert_eq!(session.failures, 3);
    }

    // 1.3
    #[test]
    fn counters_saturate_and_forever_has_no_last_attempt() {
        let mut session = Session { failures: u32::MAX - 1, previous: Packed(0) };
        let policy = Policy::new().forever();
        for _ in 0..3 {
            let step = judge(&mut session, &policy, Limits::default(), SLOW, Duration::ZERO);
            assert_eq!(step, Step::Wait(Duration::from_secs(60)));
        }
        let limited = Policy::new().max_retries(u32::MAX);
        assert!(matches!(judge(&mut session, &limited, Limits::default(), SLOW, Duration::ZERO), Step::Wait(_)));
    }

    // 2.1, 1.1: the short way decides what the long one does
    #[test]
    fn both_ways_wait_alike() {
        let (zero, day) = (Duration::ZERO, Duration::from_secs(86_400));
        let nanos = [zero, Duration::from_nanos(1), Duration::from_nanos(999_999_999), Duration::new(7, 5), day];
        let mut pairs: Vec<_> = nanos.iter().flat_map(|base| nanos.map(|cap| (*base, cap))).collect();
        pairs.push((Duration::from_nanos(i64::MAX as u64), Duration::from_nanos(i64::MAX as u64)));
        for (base, cap) in pairs {
            for max in [0, 1, 2, 31, 32, 63, 64, 200, u32::MAX] {
                let policy = Policy::new().max_retries(max).base_delay(base).max_delay(cap);
                let Some(doubling) = policy.doubling() else { panic!("{policy:?}") };
                let (mut short, mut long) = (Session::new(), Session::new());
                for _ in 0..=max.min(150).saturating_add(1) {
                    let step = match judge(&mut long, &policy, Limits::default(), SLOW, zero) {
                        Step::Wait(wait) => Some(wait),
                        Step::Stop(_) => None,
                    };
                    assert_eq!(short.may_retry(&doubling), step.is_some());
                    assert_eq!(short.retry(&doubling), step, "{policy:?} after {} failures", long.failures);
                    assert_eq!(short.failures, long.failures);
                }
            }
        }
        let more = [
            Policy::new().forever(),
            Policy::new().jitter(Jitter::Full),
            Policy::new().backoff(crate::Backoff::Exponential(2.5)),
            Policy::new().backoff(crate::Backoff::Fixed),
            Policy::new().max_delay(Duration::MAX),
            Policy::new().base_delay(Duration::from_nanos(1 << 63)),
        ];
        assert!(more.iter().all(|policy| policy.doubling().is_none()));
    }

    // 3.2
    #[test]
    fn never_waits_into_the_deadline() {
        let policy = Policy::new().max_retries(9);
        let limits = Limits { deadline: Some(Duration::from_secs(5)), ..Limits::default() };
        let mut session = Session::new();
        let step = judge(&mut session, &policy, limits, SLOW, Duration::from_millis(3999));
        assert_eq!(step, Step::Wait(Duration::from_secs(1)));
        let Step::Stop(stop) = judge(&mut session, &policy, limits, SLOW, Duration::from_secs(3)) else {
            panic!("3 s gone and 2 s to wait is the deadline of 5 s")
        };
        let knob = Knob::Deadline { limit: Duration::from_secs(5), wait: Duration::from_secs(2) };
        assert_eq!(stop, Stop { reason: StopReason::Deadline, knob });
    }

    // 4.1
    #[test]
    fn a_hint_is_obeyed_above_max_delay_and_refused_above_its_own_limit() {
        let policy = Policy::new().max_retries(9);
        let hint = |secs| SLOW.retry_after(Duration::from_secs(secs));
        let mut session = Session::new();
        let step = judge(&mut session, &policy, Limits::default(), hint(90), Duration::ZERO);
        assert_eq!(step, Step::Wait(Duration::from_secs(90)));
        let Step::Stop(stop) = judge(&mut session, &policy, Limits::default(), hint(121), Duration::ZERO) else {
            panic!("2 min is the longest hint obeyed")
        };
        assert_eq!(stop.reason, StopReason::HintTooLong);
        let step = judge(&mut Session::new(), &policy, Limits::default(), hint(120), Duration::ZERO);
        assert_eq!(step, Step::Wait(Duration::from_secs(120)), "the limit itself is obeyed");
    }

    // 2.2: d_n = min(c, U(b, 3 * d_(n-1))), here with the largest number drawn each time
    #[test]
    fn decorrelated_waits_grow_from_the_wait_before() {
        let policy = Policy::new().max_retries(9).jitter(Jitter::Decorrelated);
        let mut session = Session::new();
        for wait in [3, 9, 27, 60, 60] {
            let step = session.judge(&policy, Limits::default(), &SLOW, None, &mut || Duration::ZERO, &mut || u64::MAX);
            let Step::Wait(found) = step else { panic!("{step:?}") };
            // The wait before is kept in four bytes: rounded down by next to nothing.
            let off = Duration::from_secs(wait).saturating_sub(found);
            assert!(found <= Duration::from_secs(wait) && off < Duration::from_millis(1), "{found:?} for {wait} s");
        }
    }

    // 5.1, 5.2
    #[test]
    fn the_first_limit_that_says_no_names_the_reason() {
        let limits = Limits { deadline: Some(Duration::from_secs(1)), ..Limits::default() };
        let late = Duration::from_secs(9);
        let reason = |policy: &Policy, verdict| match judge(&mut Session::new(), policy, limits, verdict, late) {
            Step::Stop(stop) => stop.reason,
            Step::Wait(wait) => panic!("waits {wait:?}"),
        };
        let long_hint = SLOW.retry_after(Duration::from_secs(999));
        assert_eq!(reason(&Policy::new().max_retries(0), Verdict::permanent("x")), StopReason::Permanent);
        assert_eq!(reason(&Policy::new().max_retries(0), Verdict::unknown("x")), StopReason::Unknown);
        assert_eq!(reason(&Policy::new().max_retries(0), long_hint), StopReason::Exhausted);
        assert_eq!(reason(&Policy::new(), long_hint), StopReason::HintTooLong);
        assert_eq!(reason(&Policy::new(), SLOW), StopReason::Deadline);
    }

    // A failure that may have done the work is not repeated, whatever else is said of it.
    #[test]
    fn an_unknown_outcome_stops_what_is_not_idempotent() {
        let policy = Policy::new().max_retries(0);
        let once = Limits { idempotent: false, deadline: Some(Duration::from_secs(1)), ..Limits::default() };
        let reason = |limits, verdict: Verdict| match judge(
            &mut Session::new(),
            &policy,
            limits,
            verdict,
            Duration::from_secs(9),
        ) {
            Step::Stop(stop) => stop.reason,
            Step::Wait(wait) => panic!("waits {wait:?}"),
        };
        for verdict in [SLOW, Verdict::permanent("x"), Verdict::unknown("x")] {
            assert_eq!(reason(once, verdict.outcome_unknown()), StopReason::OutcomeUnknown);
            assert_ne!(reason(once, verdict), StopReason::OutcomeUnknown, "nothing was done");
            assert_ne!(reason(Limits::default(), verdict.outcome_unknown()), StopReason::OutcomeUnknown);
        }
        // a final answer is one
        assert_eq!(reason(once, Verdict::gone("x").outcome_unknown()), StopReason::Gone);
    }

    #[test]
    fn a_packed_delay_loses_next_to_nothing_and_never_grows() {
        for nanos in [1, 999, 1 << 25, 1 << 26, (1 << 26) + 1, 123_456_789_012, u64::MAX] {
            let back = Packed::of(Duration::from_nanos(nanos)).get().map(|d| d.as_nanos());
            let back = u64::try_from(back.unwrap_or(0)).unwrap_or(u64::MAX);
            assert!(back <= nanos && nanos - back <= nanos >> 25, "{nanos} came back as {back}");
        }
        assert_eq!(Packed::of(Duration::ZERO).get(), None);
    }
}
