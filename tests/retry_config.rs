//! Configured policies and `RETRY_DISABLED` from the outside, through every face.
#![allow(clippy::unwrap_used, clippy::expect_used)] // tests fail by panicking

use std::cell::Cell;
use std::process::Command;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use retry_runtime::config::{NamedPolicy, Policies, Sources};
use retry_runtime::observe::{Notice, set_listener};
use retry_runtime::testing::VirtualWaits;
use retry_runtime::{ClassLimits, Classify, GaveUp, Policy, Retry, StopReason, retry, retrying};

#[derive(Debug, PartialEq, thiserror::Error, Classify)]
enum E {
    #[error("busy")]
    #[classify(retryable)]
    Busy,
    #[error("denied")]
    #[classify(permanent)]
    Denied,
}

/// One step of a count; always fails.
fn busy(calls: &Cell<u32>) -> Result<u32, E> {
    calls.set(calls.get() + 1);
    Err(E::Busy)
}

const CODE: Policy = Policy::new().max_retries(1).base_delay(Duration::from_millis(5));

// 14.1: `get_or` and a handle, in every face; a reload holds for the next call
#[tokio::test(start_paused = true)]
async fn every_face_takes_a_configured_policy() {
    static POLICIES: Policies = Policies::of(&[&GEMINI]);
    static GEMINI: NamedPolicy = NamedPolicy::new(&POLICIES, "gemini", CODE);

    #[retry(policy = GEMINI)]
    async fn handle(calls: &Cell<u32>) -> Result<u32, E> {
        busy(calls)
    }
    #[retry(policy = &GEMINI)]
    fn reference(calls: &Cell<u32>) -> Result<u32, E> {
        busy(calls)
    }
    #[retry(policy = POLICIES.get_or("gemini", &CODE))]
    async fn looked_up(calls: &Cell<u32>) -> Result<u32, E> {
        busy(calls)
    }
    struct Client {
        policy: NamedPolicy<'static>,
    }
    impl Client {
        #[retry(policy = &self.policy)]
        fn method(&self, calls: &Cell<u32>) -> Result<u32, E> {
            busy(calls)
        }
    }

    let client = Client { policy: NamedPolicy::new(&POLICIES, "gemini", CODE) };
    for (retries, attempts) in [(None, 2), (Some("4"), 5), (Some("0"), 1), (Some("6"), 7)] {
        let variables = retries.map(|retries| ("RETRY_POLICY_GEMINI_MAX_RETRIES", retries));
        POLICIES.load(Sources::new().variables(variables)).unwrap();
        let _waits = VirtualWaits::start();
        let calls = Cell::new(0);
        let made = |end: Result<u32, E>| {
            assert_eq!(end, Err(E::Busy));
            calls.replace(0)
        };
        assert_eq!(made(handle(&calls).await), attempts);
        assert_eq!(made(reference(&calls)), attempts);
        assert_eq!(made(looked_up(&calls).await), attempts);
        assert_eq!(made(client.method(&calls)), attempts);
        assert_eq!(made(retrying!(policy = GEMINI; async -> Result<u32, E> { busy(&calls) })), attempts);
        assert_eq!(made(retrying!(policy = &GEMINI; -> Result<u32, E> { busy(&calls) })), attempts);
        assert_eq!(made(Retry::new(&GEMINI).run(|| async { busy(&calls) }).await), attempts);
        assert_eq!(made(Retry::new(GEMINI.get()).run_blocking(|| busy(&calls))), attempts);
    }
}

// A reload holds from the next failure on, also of a call under way: retries can be turned off in a storm.
#[test]
fn a_handle_follows_a_reload_in_the_middle_of_a_call() {
    static POLICIES: Policies = Policies::new();
    static STORM: NamedPolicy = NamedPolicy::new(&POLICIES, "storm", Policy::new().forever());

    #[retry(policy = STORM, deadline = "1d")]
    fn f(calls: &Cell<u32>) -> Result<u32, GaveUp<E>> {
        if calls.get() == 5 {
            POLICIES.load(Sources::new().text("retry.toml", "policy.storm.max_retries = 3")).expect("it is right");
        }
        busy(calls)
    }
    let _waits = VirtualWaits::start();
    let calls = Cell::new(0);
    let gave_up = f(&calls).unwrap_err();
    assert_eq!((calls.get(), gave_up.reason()), (6, StopReason::Exhausted));
    assert!(gave_up.to_string().contains("max_retries 3 used up"), "{gave_up}");
}

// 12.4: a handle costs a first-try success nothing
#[test]
fn a_first_try_success_does_not_ask_for_the_policy() {
    static POLICIES: Policies = Policies::of(&[]);
    // not among the policies: asking for it would be said
    static NEVER: NamedPolicy = NamedPolicy::new(&POLICIES, "never_asked", CODE);

    #[retry(policy = NEVER)]
    fn f(fails: bool) -> Result<u32, E> {
        if fails { Err(E::Denied) } else { Ok(1) }
    }
    assert_eq!(f(false), Ok(1));
    assert!(heard("unknown_policy").is_empty());
    assert_eq!(f(true), Err(E::Denied));
    assert_eq!(heard("unknown_policy").len(), 1);
}

// 14.1: "same duration forms as the attribute": the two readers agree on every form.
#[test]
fn durations_mean_what_they_mean_in_the_attribute() {
    macro_rules! agree {
        ($($text:literal)*) => {$({
            #[retry(max_retries = 1, base_delay = $text, max_delay = "365d")]
            fn f() -> Result<u32, E> {
                Err(E::Busy)
            }
            let waits = VirtualWaits::start();
            assert_eq!(f(), Err(E::Busy));
            let policies = Policies::new();
            policies.load(Sources::new().text("retry.toml", concat!("policy.p.base_delay = '", $text, "'"))).expect($text);
            let policy = policies.get_or("p", &CODE.max_delay(Duration::MAX));
            assert_eq!(waits.recorded(), [policy.get_base_delay()], $text);
        })*};
    }
    agree!("1ns" "7us" "7µs" "250ms" "1.5s" ".5s" "2m" "1h30m" "1h 30m" " 1h  30 m " "1d" "0s" "0.000000001s" "1_000ms" "1.9999999999s");
}

// RETRY_DISABLED, in a process of its own each.

/// Every notice of this process.
fn heard(name: &str) -> Vec<Notice> {
    static HEARD: Mutex<Vec<Notice>> = Mutex::new(Vec::new());
    static LISTENS: OnceLock<bool> = OnceLock::new();
    assert!(LISTENS.get_or_init(|| set_listener(|notice| HEARD.lock().unwrap().push(notice.clone()))));
    HEARD.lock().unwrap().iter().filter(|notice| notice.name == name).cloned().collect()
}

/// Runs one test of this file again, with the variable.
fn again(test: &str, value: &str) {
    let this = std::env::current_exe().unwrap();
    let arguments = ["--exact", test, "--test-threads", "1", "--nocapture"];
    let done = Command::new(this).args(arguments).env("RETRY_DISABLED", value).output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(
        done.status.success() && said.contains("1 passed"),
        "{value}: {said}{}",
        String::from_utf8_lossy(&done.stderr)
    );
}

/// How many attempts a loop of two makes here.
fn attempts_here() -> u32 {
    match std::env::var("RETRY_DISABLED").unwrap_or_default().trim() {
        "1" | "yes" => 1,
        _ => 2,
    }
}

#[test]
fn retries_are_disabled_by_the_environment() {
    for value in ["1", "yes", "0", "", "perhaps"] {
        again("every_face_obeys", value);
        again("a_disabled_loop_says_so", value);
    }
}

// 14.1: `RETRY_DISABLED=1` turns every loop into one attempt
#[tokio::test(start_paused = true)]
async fn every_face_obeys() {
    #[retry(max_retries = 1)]
    async fn asynchronous(calls: &Cell<u32>) -> Result<u32, E> {
        busy(calls)
    }
    #[retry(max_retries = 1)]
    fn blocking(calls: &Cell<u32>) -> Result<u32, E> {
        busy(calls)
    }
    #[retry(max_retries = 0, class(busy, max_retries = 1))]
    fn of_a_class(calls: &Cell<u32>) -> Result<u32, E> {
        busy(calls)
    }
    #[retry(max_retries = 1, retry_ok(1))]
    fn rejected(calls: &Cell<u32>) -> Result<u32, E> {
        busy(calls).or(Ok(1))
    }
    #[retry(max_retries = 1, fallback = Ok(7))]
    fn with_a_fallback(calls: &Cell<u32>) -> Result<u32, E> {
        busy(calls)
    }
    let _waits = VirtualWaits::start();
    let (calls, expected) = (Cell::new(0), attempts_here());
    let made = |_: Result<u32, E>| calls.replace(0);
    assert_eq!(made(asynchronous(&calls).await), expected);
    assert_eq!(made(blocking(&calls)), expected);
    assert_eq!(made(of_a_class(&calls)), expected);
    assert_eq!(made(rejected(&calls)), expected);
    assert_eq!(with_a_fallback(&calls), Ok(7), "the second route is no retry");
    assert_eq!(calls.replace(0), expected);
    assert_eq!(made(retrying!(max_retries = 1; async -> Result<u32, E> { busy(&calls) })), expected);
    assert_eq!(made(retrying!(max_retries = 1; -> Result<u32, E> { busy(&calls) })), expected);
    assert_eq!(made(Retry::new(CODE).run(|| async { busy(&calls) }).await), expected);
    assert_eq!(made(Retry::new(CODE).run_blocking(|| busy(&calls))), expected);
    let once_more = ClassLimits::new().max_retries(1);
    assert_eq!(
        made(Retry::new(Policy::new().max_retries(0)).class("busy", once_more).run_blocking(|| busy(&calls))),
        expected
    );
}

#[test]
fn a_disabled_loop_says_so() {
    assert!(heard("retries_disabled").is_empty());
    let _waits = VirtualWaits::start();
    let calls = Cell::new(0);
    let gave_up = Retry::new(CODE).run_blocking_reporting(|| busy(&calls)).unwrap_err();
    assert_eq!(gave_up.reason(), StopReason::Exhausted);
    let denied = Retry::new(CODE).run_blocking_reporting(|| Err::<(), _>(E::Denied)).unwrap_err();
    assert_eq!(denied.reason(), StopReason::Permanent, "one attempt, and it says what it found");
    let (disabled, nonsense) = (heard("retries_disabled"), heard("misconfigured"));
    match std::env::var("RETRY_DISABLED").as_deref() {
        Ok("1" | "yes") => {
            assert!(gave_up.to_string().contains("exhausted: RETRY_DISABLED lets no loop retry"), "{gave_up}");
            assert_eq!((disabled.len(), nonsense.len()), (1, 0), "said once for the process");
        }
        Ok("perhaps") => {
            assert!(gave_up.to_string().contains("max_retries 1 used up"), "{gave_up}");
            assert!(disabled.is_empty() && nonsense.len() == 1, "{nonsense:?}");
            let said = nonsense.first().map(ToString::to_string).unwrap_or_default();
            assert!(said.contains("RETRY_DISABLED=perhaps") && said.contains("1, true, yes or on"), "{said}");
        }
        _ => assert!(disabled.is_empty() && nonsense.is_empty(), "{disabled:?}{nonsense:?}"),
    }
}

// An operator's `max_retries = 0` holds for a class with a number of its own as well, in every face; the code's own does not.
#[tokio::test(start_paused = true)]
async fn a_configured_zero_ends_all_retries() {
    static POLICIES: Policies = Policies::of(&[&OFF]);
    static OFF: NamedPolicy = NamedPolicy::new(&POLICIES, "off", CODE.max_retries(0));

    #[retry(policy = OFF, class(busy, max_retries = 3))]
    async fn attribute(calls: &Cell<u32>) -> Result<u32, GaveUp<E>> {
        busy(calls)
    }
    #[retry(policy = OFF, class(busy, max_retries = forever), deadline = "1h")]
    fn blocking(calls: &Cell<u32>) -> Result<u32, GaveUp<E>> {
        busy(calls)
    }
    async fn all() -> Vec<(u32, String)> {
        let mut found = Vec::new();
        let mut see = |calls: &Cell<u32>, end: Result<u32, GaveUp<E>>| {
            found.push((calls.take(), end.unwrap_err().to_string()));
        };
        let calls = Cell::new(0);
        see(&calls, attribute(&calls).await);
        see(
            &calls,
            Retry::new(&OFF)
                .class("busy", ClassLimits::new().max_retries(3))
                .run_reporting(|| async { busy(&calls) })
                .await,
        );
        let own = ClassLimits::new().max_retries(3);
        see(&calls, Retry::new(&OFF).class("busy", own).run_blocking_reporting(|| busy(&calls)));
        see(
            &calls,
            retrying!(policy = OFF, class(busy, max_retries = 3); async -> Result<u32, GaveUp<E>> { busy(&calls) }),
        );
        see(&calls, retrying!(policy = OFF, class(busy, max_retries = 3); -> Result<u32, GaveUp<E>> { busy(&calls) }));
        found
    }
    let _waits = VirtualWaits::start();
    assert!(all().await.iter().all(|(calls, _)| *calls == 4), "the number of the class, beside the code's zero");
    let _changes = POLICIES.load(Sources::new().variables([("RETRY_POLICY_OFF_MAX_RETRIES", "0")])).unwrap();
    for (calls, text) in all().await {
        assert!(calls == 1 && text.contains("exhausted: max_retries 0 used up"), "{calls}: {text}");
    }
    let calls = Cell::new(0);
    assert_eq!((blocking(&calls).unwrap_err().reason(), calls.get()), (StopReason::Exhausted, 1));
}
