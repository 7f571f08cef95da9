//! Waits and jitter: properties over the whole range of every number, and distributions.
#![allow(clippy::unwrap_used, clippy::panic)] // a test may fail

use std::time::Duration;

use proptest::prelude::*;
use retry_runtime::{Backoff, Jitter, Policy, Retries};

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
