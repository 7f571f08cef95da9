//! `class(NAME, max_retries = ..)`: how many attempts a call makes, beside a model that counts with its fingers.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // a helper of a test fails as a test does

use std::cell::Cell;

use proptest::prelude::*;
use retry_runtime::testing::VirtualWaits;
use retry_runtime::{ClassLimits, Classify, GaveUp, Policy, Retry, RetryContext, StopReason, Verdict, retry, retrying};

/// A failure of one of four classes; the last never has numbers of its own.
#[derive(Debug, Clone, Copy, PartialEq, Classify)]
enum E {
    #[classify(retryable)]
    A,
    #[classify(retryable)]
    B,
    #[classify(retryable)]
    C,
    #[classify(retryable)]
    Other,
}

impl std::fmt::Display for E {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self:?}")
    }
}

const NAMES: [&str; 3] = ["a", "b", "c"];

/// Failures in order; the last one again and again.
struct Script<'a>(&'a [E], Cell<usize>);

impl Script<'_> {
    fn next(&self) -> Result<(), E> {
        let at = self.1.replace(self.1.get() + 1);
        Err(self.0[at.min(self.0.len() - 1)])
    }
}

/// A class with a number is counted by itself; the call's number counts all failures, and holds for every class without
/// one; no call makes more attempts than the largest number allows.
fn attempts_of_the_model(call: u32, own: [Option<u32>; 3], failures: &[E]) -> usize {
    let most = own.into_iter().flatten().fold(call, u32::max);
    let mut counts = [0; 3];
    let mut all = 0;
    loop {
        let failure = failures[(all as usize).min(failures.len() - 1)];
        all += 1;
        let may_go_on = match own.get(failure as usize) {
            Some(Some(own)) => {
                counts[failure as usize] += 1;
                counts[failure as usize] <= *own && all <= most
            }
            _ => all <= call,
        };
        if !may_go_on {
            return all as usize;
        }
    }
}

fn by_builder(call: u32, own: [Option<u32>; 3], failures: &[E]) -> (usize, String) {
    let (_waits, script) = (VirtualWaits::start(), Script(failures, Cell::new(0)));
    let mut retry = Retry::new(Policy::new().max_retries(call));
    for (name, own) in NAMES.into_iter().zip(own) {
        if let Some(own) = own {
            retry = retry.class(name, ClassLimits::new().max_retries(own));
        }
    }
    let gave_up = retry.run_blocking_reporting(|| script.next()).unwrap_err();
    assert_eq!(gave_up.reason(), StopReason::Exhausted);
    assert_eq!(gave_up.attempts() as usize, script.1.get());
    (script.1.get(), gave_up.to_string())
}

#[retry(max_retries = call, context = context, class(a, max_retries = own[0]), class(b, max_retries = own[1]), class(c, max_retries = own[2]))]
async fn by_attribute(context: &mut RetryContext, call: u32, own: [u32; 3], script: &Script<'_>) -> Result<(), E> {
    script.next()
}

#[retry(max_retries = call, context = context, class(a, max_retries = own[0]), class(b, max_retries = own[1]), class(c, max_retries = own[2]))]
fn by_attribute_blocking(context: &mut RetryContext, call: u32, own: [u32; 3], script: &Script<'_>) -> Result<(), E> {
    script.next()
}

/// The attempts through every face, where each class has a number.
fn by_every_face(call: u32, own: [u32; 3], failures: &[E]) -> [usize; 6] {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let count = |run: &mut dyn FnMut(&mut RetryContext, &Script<'_>) -> Result<(), E>| {
        let (_waits, script) = (VirtualWaits::start(), Script(failures, Cell::new(0)));
        let mut context = RetryContext::new();
        let last = run(&mut context, &script);
        assert_eq!(last, Err(failures[(script.1.get() - 1).min(failures.len() - 1)]));
        assert_eq!(context.stop_reason(), Some(StopReason::Exhausted));
        script.1.get()
    };
    let retry = || {
        let limits = own.map(|own| ClassLimits::new().max_retries(own));
        Retry::new(Policy::new().max_retries(call)).class("a", limits[0]).class("b", limits[1]).class("c", limits[2])
    };
    [
        count(&mut |context, script| runtime.block_on(by_attribute(context, call, own, script))),
        count(&mut |context, script| by_attribute_blocking(context, call, own, script)),
        count(&mut |context, script| {
            runtime.block_on(async {
                retrying!(max_retries = call, context = context, class(a, max_retries = own[0]), class(b, max_retries = own[1]), class(c, max_retries = own[2]); async -> Result<(), E> { script.next() })
            })
        }),
        count(
            &mut |context, script| retrying!(max_retries = call, context = context, class(a, max_retries = own[0]), class(b, max_retries = own[1]), class(c, max_retries = own[2]); -> Result<(), E> { script.next() }),
        ),
        count(&mut |context, script| runtime.block_on(retry().context(context).run(|| async { script.next() }))),
        count(&mut |context, script| retry().context(context).run_blocking(|| script.next())),
    ]
}

fn failures() -> impl Strategy<Value = Vec<E>> {
    let failure = prop_oneof![3 => Just(E::A), 3 => Just(E::B), 2 => Just(E::C), 1 => Just(E::Other)];
    prop::collection::vec(failure, 1..24)
}

fn number() -> impl Strategy<Value = u32> {
    prop_oneof![0..4_u32, 0..12_u32]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    // 1.1
    #[test]
    fn a_call_makes_the_attempts_of_the_model(call in number(), own in prop::array::uniform3(prop::option::weighted(0.7, number())), failures in failures()) {
        let (attempts, text) = by_builder(call, own, &failures);
        prop_assert_eq!(attempts, attempts_of_the_model(call, own, &failures), "{}", text);
        prop_assert!(attempts as u64 <= u64::from(own.into_iter().flatten().fold(call, u32::max)) + 1);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn and_so_does_every_face(call in number(), own in prop::array::uniform3(number()), failures in failures()) {
        let model = attempts_of_the_model(call, own.map(Some), &failures);
        prop_assert_eq!(by_every_face(call, own, &failures), [model; 6]);
    }
}

// a failure of one class takes nothing from another one
#[test]
fn two_classes_with_numbers_do_not_spoil_each_other() {
    use E::{A, B};
    let own = [Some(8), Some(3), None];
    assert_eq!(by_builder(2, own, &[A, A, A, B, A]).0, 9, "the first `b` is retried");
    let (attempts, text) = by_builder(2, own, &[A, A, A, B]);
    assert_eq!(attempts, 7);
    assert!(text.contains("exhausted: max_retries 3 of class `b` used up"), "{text}");
    let (attempts, text) = by_builder(2, own, &[A, A, A, A, A, A, B, B, B]);
    assert_eq!(attempts, 9);
    assert!(text.contains("exhausted: max_retries 8 used up"), "all together: {text}");
}

// the first of a name holds, also for what the call may make in all
#[test]
fn a_number_that_does_not_hold_counts_for_nothing() {
    let (_waits, made) = (VirtualWaits::start(), Cell::new(0));
    let limits = |retries| ClassLimits::new().max_retries(retries);
    let retry =
        Retry::new(Policy::new().max_retries(0)).class("a", limits(2)).class("a", limits(9)).class("b", limits(4));
    let end: Result<(), GaveUp<E>> = retry.run_blocking_reporting(|| {
        made.set(made.get() + 1);
        Err(if made.get() % 2 == 0 { E::A } else { E::B })
    });
    assert_eq!(end.unwrap_err().attempts(), 5);
}

// and `forever` of one class lets the others count by themselves
#[test]
fn a_class_without_a_last_attempt_leaves_the_others_theirs() {
    let (_waits, made) = (VirtualWaits::start(), Cell::new(0));
    let retry = Retry::new(Policy::new().max_retries(1))
        .class("a", ClassLimits::new().forever())
        .class("b", ClassLimits::new().max_retries(2))
        .classify(|class: &&'static str| Verdict::retryable(class));
    let end = retry.run_blocking(|| {
        made.set(made.get() + 1);
        Err::<(), _>(if made.get() < 100 { "a" } else { "b" })
    });
    assert_eq!((end, made.get()), (Err("b"), 102));
}
