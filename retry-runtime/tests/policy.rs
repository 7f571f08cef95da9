//! SEMANTICS of counting and delays: exact tables, and properties over the whole range of every number.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // a test may fail

use std::time::Duration;

use proptest::prelude::*;
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

fn any_duration() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::ZERO),
        Just(Duration::from_nanos(1)),
        Just(Duration::MAX),
        (0..200_u64).prop_map(secs),
        any::<u64>().prop_map(Duration::from_nanos),
        (any::<u64>(), 0..1_000_000_000_u32).prop_map(|(secs, nanos)| Duration::new(secs, nanos)),
    ]
}

fn any_retry() -> impl Strategy<Value = u32> {
    prop_oneof![0..70_u32, any::<u32>(), Just(u32::MAX)]
}

fn half(n: u32) -> Duration {
    if n % 2 == 0 { millis(u64::from(n)) } else { Duration::MAX }
}

fn any_backoff() -> impl Strategy<Value = Backoff> {
    prop_oneof![
        Just(Backoff::Exponential(2.0)),
        (1.0..10.0_f64).prop_map(Backoff::Exponential),
        any::<f64>().prop_map(Backoff::Exponential),
        any::<u64>().prop_map(|bits| Backoff::Exponential(f64::from_bits(bits))),
        Just(Backoff::Fixed),
        Just(Backoff::Linear),
        Just(Backoff::Fibonacci),
        Just(Backoff::Custom(half)),
    ]
}

fn any_jitter() -> impl Strategy<Value = Jitter> {
    prop_oneof![
        Just(Jitter::None),
        Just(Jitter::Full),
        Just(Jitter::Equal),
        Just(Jitter::Decorrelated),
        any_duration().prop_map(Jitter::Additive),
    ]
}

prop_compose! {
    fn any_policy()(
        retries in prop_oneof![any_retry().prop_map(Some), Just(None)],
        base in any_duration(),
        cap in any_duration(),
        backoff in any_backoff(),
        jitter in any_jitter(),
        longest_hint in any_duration(),
    ) -> Policy {
        let policy = Policy::new()
            .base_delay(base)
            .max_delay(cap)
            .backoff(backoff)
            .jitter(jitter)
            .max_retry_after(longest_hint);
        match retries {
            Some(retries) => policy.max_retries(retries),
            None => policy.forever(),
        }
    }
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

proptest! {
    // 2.1, 2.2 [backon 1.6: delays up to twice the cap; overflow panics]
    #[test]
    fn no_delay_ever_passes_the_cap_or_panics(
        policy in any_policy(),
        retry in any_retry(),
        previous in proptest::option::of(any_duration()),
        random: u64,
    ) {
        let delay = policy.delay(retry, previous, &mut || random);
        prop_assert!(delay <= policy.get_max_delay(), "{delay:?} over the cap of {policy:?}");
    }

    // 2.6
    #[test]
    fn every_delay_lies_in_the_planned_range(policy in any_policy(), retry in 0..200_u32, random in any::<[u64; 4]>()) {
        let mut previous = None;
        for n in 0..retry.min(50) {
            previous = Some(policy.delay(n, previous, &mut || random[n as usize % 4]));
            let (low, high) = policy.wait_range(n);
            prop_assert!(Some(low) <= previous && previous <= Some(high), "{low:?} <= {previous:?} <= {high:?}");
        }
    }

    // 2.1
    #[test]
    fn exponential_agrees_with_the_formula(factor in 1.0..5.0_f64, n in 0..300_u32, base in 1..u64::MAX) {
        let policy = OPEN.base_delay(Duration::from_nanos(base)).backoff(Backoff::Exponential(factor));
        #[allow(clippy::cast_precision_loss, clippy::cast_possible_wrap)]
        let exact = base as f64 * factor.powi(n as i32);
        let delay = plain(&policy, n);
        #[allow(clippy::cast_precision_loss)]
        let (got, most) = (delay.as_nanos() as f64, Duration::MAX.as_nanos() as f64);
        let wanted = exact.min(most);
        prop_assert!((got - wanted).abs() <= 1.0 + wanted * 1e-11, "{got} instead of {wanted}");
    }

    // 2.1
    #[test]
    fn delays_never_shrink_before_jitter(factor in 1.0..50.0_f64, n in 0..u32::MAX, base in any_duration(), cap in any_duration()) {
        for backoff in [Backoff::Exponential(2.0), Backoff::Fixed, Backoff::Linear, Backoff::Fibonacci] {
            let policy = Policy::new().base_delay(base).max_delay(cap).backoff(backoff);
            prop_assert!(plain(&policy, n) <= plain(&policy, n + 1), "{backoff:?}");
        }
        let policy = Policy::new().base_delay(base).max_delay(cap).backoff(Backoff::Exponential(factor));
        let (this, next) = (plain(&policy, n % 1000), plain(&policy, n % 1000 + 1));
        prop_assert!(this <= next.saturating_add(next / 1_000_000_000), "{this:?} then {next:?} with {factor}");
    }

    // 2.3
    #[test]
    fn odd_factors_are_only_cut(bits: u64, n in any_retry(), base in any_duration(), cap in any_duration()) {
        let factor = f64::from_bits(bits);
        let policy = Policy::new().base_delay(base).max_delay(cap).backoff(Backoff::Exponential(factor));
        let delay = plain(&policy, n);
        prop_assert!(delay >= base.min(cap) && delay <= cap);
        prop_assert_eq!(policy.backoff(Backoff::Exponential(1.0)).max_delay(base.max(cap)).validate(), Ok(()));
    }

    // 2.2
    #[test]
    fn jitter_ranges(base in 1..100_000_000_000_u64, cap in 1..100_000_000_000_u64, extra: u32, n in any_retry(), random: u64) {
        let (base, cap) = (Duration::from_nanos(base), Duration::from_nanos(cap));
        let extra = Duration::from_nanos(u64::from(extra)).min(cap);
        let policy = Policy::new().base_delay(base).max_delay(cap);
        let v = plain(&policy, n);
        let drawn = |jitter, previous| policy.jitter(jitter).delay(n, previous, &mut || random);
        prop_assert!(drawn(Jitter::Full, None) <= v);
        let equal = drawn(Jitter::Equal, None);
        prop_assert!(v / 2 <= equal && equal <= v);
        let additive = drawn(Jitter::Additive(extra), None);
        let low = v.min(cap.saturating_sub(extra));
        prop_assert!(low <= additive && additive <= low + extra);
        let before = Duration::from_nanos(random % 1_000_000_000);
        let decorrelated = drawn(Jitter::Decorrelated, Some(before));
        prop_assert!(base.min(cap) <= decorrelated && decorrelated <= cap.min(base.max(before * 3)));
        prop_assert!(drawn(Jitter::Decorrelated, None) <= base * 3, "before the first, the wait before is base_delay");
    }

    // 2.2 [stamina, tenacity, Gemini SDK: jitter vanishes at the cap; backon: cut after the jitter]
    #[test]
    fn additive_jitter_at_the_cap_is_spread_below_it(cap in 2..1_000_000_000_000_u64, share in 1..1000_u64, n in 64..u32::MAX) {
        let extra = (cap / share).max(1);
        let policy = Policy::new()
            .base_delay(Duration::from_nanos(1))
            .max_delay(Duration::from_nanos(cap))
            .jitter(Jitter::Additive(Duration::from_nanos(extra)));
        prop_assert_eq!(policy.delay(n, None, &mut || 0), Duration::from_nanos(cap - extra));
        prop_assert_eq!(policy.delay(n, None, &mut || u64::MAX), Duration::from_nanos(cap));
    }

    // 4.1
    #[test]
    fn a_hint_is_never_undercut_and_never_passed_by_more_than_a_tenth(
        policy in any_policy(),
        own in any_duration(),
        hint in any_duration(),
        random: u64,
    ) {
        let own = own.min(policy.get_max_delay());
        let wait = policy.hinted(own, hint, &mut || random);
        prop_assert!(wait >= hint && wait >= own);
        prop_assert!(wait <= own.max(hint.saturating_add(hint / 10)));
        prop_assert!(wait <= policy.get_max_delay() || hint.saturating_add(hint / 10) > policy.get_max_delay());
        if policy.get_jitter() == Jitter::None {
            prop_assert_eq!(wait, own.max(hint));
        }
    }

    // 2.3, 2.6
    #[test]
    fn nothing_about_any_policy_panics(policy in any_policy()) {
        let plan = policy.plan();
        prop_assert!(plan.waits().len() <= 64);
        prop_assert!(plan.to_string().lines().count() == 1);
        prop_assert_eq!(plan.attempts(), policy.retries().attempts());
        prop_assert_eq!(plan.worst_case_total().is_none(), policy.retries() == Retries::Forever);
        match policy.validate() {
            Ok(()) => prop_assert_eq!(policy.checked().is_ok(), true),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}

// ---- 2.2 Distributions, over 20,000 draws of a seeded source

fn draws(policy: &Policy, retry: u32) -> Vec<Duration> {
    let mut random = seeded(7);
    (0..20_000).map(|_| policy.delay(retry, None, &mut random)).collect()
}

fn mean(delays: &[Duration]) -> Duration {
    delays.iter().sum::<Duration>() / u32::try_from(delays.len()).unwrap()
}

fn close(got: Duration, wanted: Duration) -> bool {
    got.abs_diff(wanted) < wanted / 50
}

// 2.2 [resilience4j: half of all sleeps exactly at the cap]
#[test]
fn at_the_cap_no_jitter_piles_up_there() {
    for jitter in [Jitter::Full, Jitter::Equal, Jitter::Additive(secs(10))] {
        let policy = Policy::new().jitter(jitter);
        for retry in [6, 7, 30, u32::MAX] {
            let delays = draws(&policy, retry);
            let at_cap = delays.iter().filter(|&&delay| delay == secs(60)).count();
            assert!(at_cap < 20, "{at_cap} of 20,000 waits of {jitter:?} lie exactly at the cap");
            let mut distinct = delays.clone();
            distinct.sort_unstable();
            distinct.dedup();
            assert!(distinct.len() > 19_900, "{jitter:?} at the cap is all but constant");
        }
    }
}

// 2.2
#[test]
fn jitter_is_uniform() {
    // v = 32 s before the sixth retry.
    assert!(close(mean(&draws(&Policy::new().jitter(Jitter::Full), 5)), secs(16)));
    assert!(close(mean(&draws(&Policy::new().jitter(Jitter::Equal), 5)), secs(24)));
    assert!(close(mean(&draws(&Policy::new().jitter(Jitter::Additive(secs(4))), 5)), secs(34)));
    // Below the cap the first decorrelated wait is U(b, 3b).
    assert!(close(mean(&draws(&Policy::new().jitter(Jitter::Decorrelated), 5)), secs(2)));
}

// 2.2: between the last uncut wait and the cap the window moves down, whole.
#[test]
fn the_window_of_additive_jitter_keeps_its_width() {
    let policy = Policy::new().base_delay(secs(9)).max_delay(secs(10)).jitter(Jitter::Additive(secs(4)));
    assert_eq!(policy.wait_range(0), (secs(6), secs(10)));
}

// 2.2
#[test]
fn decorrelated_follows_its_formula() {
    let policy = Policy::new().jitter(Jitter::Decorrelated);
    let top = &mut || u64::MAX;
    let mut previous = None;
    for wanted in [3, 9, 27, 60, 60] {
        previous = Some(policy.delay(0, previous, top));
        assert_eq!(previous, Some(secs(wanted)));
    }
    assert_eq!(policy.delay(9, Some(secs(60)), &mut || 0), secs(1));
    // The middle of U(1, 180) is over the cap, so it is cut.
    assert_eq!(policy.delay(9, Some(secs(60)), &mut || 1 << 63), secs(60));
    assert_eq!(policy.delay(9, Some(secs(11)), &mut || 1 << 63), secs(17));
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
