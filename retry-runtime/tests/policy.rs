//! Counting and delays: exact tables, validation and plans.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // a test may fail

use std::time::Duration;

use retry_runtime::{Backoff, Jitter, Policy, PolicyError, Retries};

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A policy whose waits nothing cuts.
const OPEN: Policy = Policy::new().max_delay(Duration::MAX);

fn no_random() -> u64 {
    panic!("no random number is drawn without jitter")
}

fn plain(policy: &Policy, retry: u32) -> Duration {
    policy.delay(retry, None, &mut no_random)
}

fn table(policy: &Policy, retries: u32) -> Vec<Duration> {
    (0..retries).map(|retry| plain(policy, retry)).collect()
}

/// A small generator with a seed, for statistics that repeat exactly.
fn seeded(mut state: u64) -> impl FnMut() -> u64 {
    move || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

fn half(n: u32) -> Duration {
    if n % 2 == 0 { millis(u64::from(n)) } else { Duration::MAX }
}

// ---- 1. Counting

// 1.1
#[test]
fn retries_come_on_top_of_the_first_attempt() {
    assert_eq!(Retries::Limited(2).attempts(), Some(3));
    assert_eq!(Retries::Limited(0).attempts(), Some(1));
    assert!(Retries::Limited(2).allow(1));
    assert!(!Retries::Limited(2).allow(2));
    assert!(!Retries::Limited(0).allow(0));
}

// 1.3 [Polly: int max retries for ever]
#[test]
fn forever_is_a_value_of_its_own() {
    assert_eq!(Retries::Limited(u32::MAX).attempts(), Some(4_294_967_296));
    assert!(!Retries::Limited(u32::MAX).allow(u32::MAX), "the largest number is still a number");
    assert_eq!(Policy::new().forever().retries(), Retries::Forever);
    assert_ne!(Policy::new().max_retries(u32::MAX).retries(), Retries::Forever);
    assert!(Retries::Forever.allow(u32::MAX));
}

// 1.4, B2.1
#[test]
fn a_policy_is_const_and_its_defaults_are_the_contract() {
    static POLICY: Policy = Policy::new();
    assert_eq!(POLICY.retries(), Retries::Limited(2));
    assert_eq!(POLICY.get_base_delay(), secs(1));
    assert_eq!(POLICY.get_max_delay(), secs(60));
    assert_eq!(POLICY.get_backoff(), Backoff::Exponential(2.0));
    assert_eq!(POLICY.get_jitter(), Jitter::None);
    assert_eq!(POLICY.get_max_retry_after(), secs(120));
    assert_eq!(Policy::default(), POLICY);
    assert_eq!(POLICY.validate(), Ok(()));
}

// 1.4 [tower 0.5.3: all sessions draw the same jitter]
#[test]
fn a_policy_holds_no_random_state() {
    static POLICY: Policy = Policy::new().jitter(Jitter::Full);
    let session = |seed| {
        let mut random = seeded(seed);
        (0..8).map(|retry| POLICY.delay(retry, None, &mut random)).collect::<Vec<_>>()
    };
    assert_ne!(session(1), session(2), "two sessions draw from their own sources");
    assert_eq!(session(1), session(1), "and the source alone decides");
}

// ---- 2.1 Tables

// 2.1, B2.1
#[test]
fn exponential_table() {
    assert_eq!(table(&Policy::new(), 8), [1, 2, 4, 8, 16, 32, 60, 60].map(secs));
    let fractional = OPEN.backoff(Backoff::Exponential(1.5));
    assert_eq!(
        table(&fractional, 6),
        [1000, 1500, 2250, 3375, 5062, 7593].map(millis).map(|d| match d.as_millis() {
            5062 => d + Duration::from_micros(500),
            7593 => d + Duration::from_micros(750),
            _ => d,
        })
    );
    // A decimal factor that no binary number is: still whole nanoseconds as a person would reckon them.
    let decimal = OPEN.backoff(Backoff::Exponential(1.7));
    assert_eq!(table(&decimal, 4), [1000, 1700, 2890, 4913].map(millis));
    assert_eq!(table(&OPEN.backoff(Backoff::Exponential(10.0)), 4), [1, 10, 100, 1000].map(secs));
    assert_eq!(table(&OPEN.backoff(Backoff::Exponential(1.0)), 3), [1, 1, 1].map(secs));
    assert_eq!(table(&OPEN.backoff(Backoff::Exponential(3.0)), 5), [1, 3, 9, 27, 81].map(secs));
}

// 2.1
#[test]
fn linear_table() {
    let linear = Policy::new().max_delay(secs(5)).backoff(Backoff::Linear);
    assert_eq!(table(&linear, 7), [1, 2, 3, 4, 5, 5, 5].map(secs));
    let nanos = OPEN.base_delay(Duration::from_nanos(1)).backoff(Backoff::Linear);
    assert_eq!(plain(&nanos, u32::MAX), Duration::from_nanos(1 << 32));
}

// 2.1
#[test]
fn fibonacci_table() {
    let fibonacci = Policy::new().backoff(Backoff::Fibonacci);
    assert_eq!(table(&fibonacci, 12), [1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 60, 60].map(secs));
    let nanos = OPEN.base_delay(Duration::from_nanos(1)).backoff(Backoff::Fibonacci);
    assert_eq!(plain(&nanos, 89).as_nanos(), 2_880_067_194_370_816_120, "F(90) of the usual numbering");
}

// 2.1
#[test]
fn fixed_table() {
    assert_eq!(table(&Policy::new().backoff(Backoff::Fixed), 3), [1, 1, 1].map(secs));
    let cut = Policy::new().base_delay(secs(90)).backoff(Backoff::Fixed);
    assert_eq!(table(&cut, 2), [60, 60].map(secs));
}

// 2.1
#[test]
fn custom_backoff_is_cut_too() {
    let custom = Policy::new().backoff(Backoff::Custom(half));
    assert_eq!(table(&custom, 3), [Duration::ZERO, secs(60), millis(2)]);
}

// 2.1: the last nanosecond counts where 64 bits hold the power exactly.
#[test]
fn small_bases_grow_without_rounding() {
    let tiny = OPEN.base_delay(Duration::from_nanos(1));
    for n in 0..93 {
        assert_eq!(plain(&tiny, n).as_nanos(), 1 << n);
    }
    let three = tiny.backoff(Backoff::Exponential(3.0));
    for n in 0..40 {
        assert_eq!(plain(&three, n).as_nanos(), 3_u128.pow(n));
    }
}

// B1.5: after failed attempt n the wait is min(2^n, 30) s plus a uniform 0 to 1 s.
#[test]
fn b1_5_is_two_seconds_thirty_one_and_one() {
    const B1: Policy =
        Policy::new().max_retries(3).base_delay(secs(2)).max_delay(secs(31)).jitter(Jitter::Additive(secs(1)));
    for n in 1..=200_u32 {
        let whole = secs(2_u64.saturating_pow(n).min(30));
        assert_eq!(B1.delay(n - 1, None, &mut || 0), whole);
        assert_eq!(B1.delay(n - 1, None, &mut || 1 << 63), whole + millis(500));
        assert_eq!(B1.delay(n - 1, None, &mut || u64::MAX), whole + secs(1));
    }
    assert_eq!(B1.validate(), Ok(()));
    assert_eq!(B1.to_string(), "4 attempts; waits 2s..3s, 4s..5s, 8s..9s; at most 17s in total");
}

// ---- 2.3 Validation: one message per rule

// 2.3
#[test]
fn each_rule_has_its_message() {
    let refused: &[(Policy, &str)] = &[
        (
            Policy::new().base_delay(secs(2)).max_delay(secs(1)),
            "max_delay 1s is below base_delay 2s: it must be at least as long",
        ),
        (
            Policy::new().backoff(Backoff::Exponential(0.5)),
            "exponential factor 0.5 is below 1, so waits would shrink: give a number of 1 or more",
        ),
        (
            Policy::new().backoff(Backoff::Exponential(f64::NAN)),
            "exponential factor NaN is not finite: give a number of 1 or more",
        ),
        (
            Policy::new().backoff(Backoff::Exponential(f64::INFINITY)),
            "exponential factor inf is not finite: give a number of 1 or more",
        ),
        (
            Policy::new().forever().base_delay(Duration::ZERO),
            "max_retries forever with base_delay 0s would retry without a pause: give a base_delay",
        ),
        (
            Policy::new().jitter(Jitter::Additive(secs(61))),
            "jitter 61s is longer than max_delay 60s: it must fit inside",
        ),
    ];
    for (policy, message) in refused {
        let error = policy.validate().unwrap_err();
        assert_eq!(error.to_string(), *message);
        assert_eq!(policy.checked().unwrap_err().rule(), error.rule());
    }
    let limits = [
        (Some(Duration::ZERO), None, "deadline 0s has passed before the first attempt: give a longer one"),
        (None, Some(Duration::ZERO), "attempt_timeout 0s lets no attempt succeed: give a longer one, or leave it out"),
        (Some(secs(1)), Some(secs(2)), "attempt_timeout 2s is longer than deadline 1s: it must fit inside"),
    ];
    for (deadline, attempt_timeout, message) in limits {
        assert_eq!(PolicyError::check_limits(deadline, attempt_timeout).unwrap_err().to_string(), message);
    }
    assert_eq!(PolicyError::check_limits(Some(secs(2)), Some(secs(2))), Ok(()));
    assert_eq!(PolicyError::check_limits(None, None), Ok(()));
}

// 2.3: at compile time.
const _: () = assert!(Policy::new().jitter(Jitter::Full).validate().is_ok());
const _: () = assert!(Policy::new().backoff(Backoff::Exponential(f64::NAN)).checked().is_err());

// 2.3
#[test]
fn what_only_looks_odd_is_accepted() {
    for policy in [
        Policy::new().base_delay(Duration::ZERO),
        Policy::new().base_delay(Duration::ZERO).max_delay(Duration::ZERO),
        Policy::new().max_retries(0),
        Policy::new().max_retries(u32::MAX),
        Policy::new().jitter(Jitter::Additive(secs(60))),
        Policy::new().backoff(Backoff::Exponential(1.0)),
        Policy::new().max_retry_after(Duration::ZERO),
    ] {
        assert_eq!(policy.checked(), Ok(policy));
    }
}

// ---- 4.1 Hints

// 4.1
#[test]
fn hints_win_over_the_own_delay_and_over_max_delay() {
    let plain = Policy::new();
    assert_eq!(plain.hinted(secs(1), secs(53), &mut no_random), secs(53));
    assert_eq!(plain.hinted(secs(4), secs(2), &mut no_random), secs(4));
    assert_eq!(plain.hinted(secs(4), secs(90), &mut no_random), secs(90));
    let jittered = plain.jitter(Jitter::Full);
    assert_eq!(jittered.hinted(secs(1), secs(100), &mut || 0), secs(100));
    assert_eq!(jittered.hinted(secs(1), secs(100), &mut || u64::MAX), secs(110));
    assert_eq!(jittered.hinted(secs(60), secs(2), &mut || u64::MAX), secs(60), "never over max_delay without need");
}

// ---- 2.6 Plans

// 2.6
#[test]
fn plans_in_one_line() {
    for (policy, line) in [
        (Policy::new(), "3 attempts; waits 1s, 2s; at most 3s in total"),
        (Policy::new().max_retries(0), "1 attempt, no retry"),
        (Policy::new().forever(), "attempts without limit; waits 1s, 2s, 4s, 8s, 16s, 32s, 60s, 60s, ..."),
        (
            Policy::new().max_retries(9).base_delay(millis(250)).backoff(Backoff::Fixed).jitter(Jitter::Full),
            "10 attempts; waits 0s..250ms, 0s..250ms, 0s..250ms, 0s..250ms, 0s..250ms, 0s..250ms, 0s..250ms, \
             0s..250ms, ...; at most 2.25s in total",
        ),
        (
            Policy::new().jitter(Jitter::Decorrelated).max_retries(5),
            "6 attempts; waits 1s..3s, 1s..9s, 1s..27s, 1s..60s, 1s..60s; at most 159s in total",
        ),
    ] {
        assert_eq!(policy.to_string(), line);
    }
}

// 2.6: bounded whatever the count.
#[test]
fn the_plan_of_billions_of_retries_is_short_and_exact_once_the_cap_is_reached() {
    let plan = Policy::new().max_retries(u32::MAX).plan();
    assert_eq!(plan.waits().len(), 64);
    assert!(!plan.is_complete());
    // 1 + 2 + 4 + 8 + 16 + 32, then 60 each.
    assert_eq!(plan.worst_case_total(), Some(secs(63 + 60 * (u64::from(u32::MAX) - 6))));
    assert!(Policy::new().max_retries(64).plan().is_complete());
    assert_eq!(Policy::new().forever().plan().worst_case_total(), None);
    let huge = OPEN.base_delay(Duration::MAX).max_retries(u32::MAX).plan();
    assert_eq!(huge.worst_case_total(), Some(Duration::MAX));
}
