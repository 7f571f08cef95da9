//! One engine behind every face: the same scripted outcomes through the attribute (async and blocking), `retrying!` (async
//! and blocking) and the builder (async and blocking) give the same result, the same waits and the same history.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // a helper of a test fails as a test does
#![allow(clippy::type_complexity)] // a history as plain data, to be compared

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use proptest::prelude::*;
use retry_runtime::observe::{Event, Observer, What};
use retry_runtime::testing::VirtualWaits;
use retry_runtime::{
    BreakerPhase, Budget, CircuitBreaker, ClassLimits, Classify, Policy, Refused, Retry, RetryContext, StopReason,
    Unknown, retry, retrying,
};
use tokio::time::Instant;

#[derive(Debug, Clone, PartialEq, thiserror::Error, Classify)]
enum E {
    #[error("busy {0}")]
    #[classify(retryable)]
    Busy(u8),
    #[error("limited")]
    #[classify(retryable, class = "rate_limit", retry_after = 0)]
    Limited(Duration),
    #[error("lost")]
    #[classify(retryable, class = "connection", outcome_unknown)]
    Lost,
    #[error("denied")]
    #[classify(permanent)]
    Denied,
    #[error("gone")]
    #[classify(gone)]
    Gone,
    #[error("odd")]
    #[classify(unknown)]
    Odd,
    #[error(transparent)]
    #[classify(transparent)]
    Refused(#[from] Refused),
}

type Outcome = Result<u8, E>;

/// Outcomes in order; the last one again and again.
struct Script {
    outcomes: Vec<Outcome>,
    at: AtomicUsize,
    budget: Budget,
    breaker: CircuitBreaker,
    events: Mutex<Vec<String>>,
}

impl Observer for Script {
    fn on(&self, event: &Event<'_>) {
        let Event { what, attempt, max_attempts, class, code, milli_tokens, .. } = *event;
        let what = match what {
            What::AttemptFailed { .. } => "failed".to_owned(), // its time is another one for each face
            what => format!("{what:?}"),
        };
        let line = format!("{what} {attempt} {max_attempts:?} {class:?} {code:?} {milli_tokens:?}");
        self.events.lock().unwrap().push(line);
    }
}

/// The tokens of the budget, and the calls that open the breaker.
type Shared = (u32, u32);

const UNLIMITED: Shared = (1_000, u32::MAX);

impl Script {
    fn new(outcomes: &[Outcome], (tokens, min_calls): Shared) -> Self {
        let budget = Budget::new().min_per_second(0).ratio(1.0).capacity(1_000);
        (0..tokens).for_each(|_| budget.succeeded());
        let hour = Duration::from_secs(3600);
        let breaker = CircuitBreaker::new().min_calls(min_calls).window(hour).open_for(hour);
        Self { outcomes: outcomes.to_vec(), at: AtomicUsize::new(0), budget, breaker, events: Mutex::default() }
    }

    fn next(&self) -> Outcome {
        let at = self.at.fetch_add(1, SeqCst);
        self.outcomes[at.min(self.outcomes.len() - 1)].clone()
    }
}

/// What can be seen of a call.
#[derive(Debug, PartialEq)]
struct Seen {
    outcome: Outcome,
    calls: usize,
    /// How long the call really waited, by its clock.
    slept: Duration,
    attempts: u32,
    reason: Option<StopReason>,
    milli_tokens: u64,
    /// Each of them is read without its clock, which is another one for each face.
    breaker: (BreakerPhase, u64),
    history: Vec<(u32, String, Option<i64>, String, Option<Duration>)>,
    events: Vec<String>,
}

fn seen(outcome: Outcome, slept: Duration, script: &Script, context: &RetryContext) -> Seen {
    let history =
        context.history().iter().map(|r| (r.attempt, r.class.to_string(), r.code, r.message.clone(), r.wait)).collect();
    Seen {
        outcome,
        calls: script.at.load(SeqCst),
        slept,
        attempts: context.attempts(),
        reason: context.stop_reason(),
        milli_tokens: script.budget.milli_tokens(),
        breaker: (script.breaker.phase(), script.breaker.refused()),
        history,
        events: std::mem::take(&mut script.events.lock().unwrap()),
    }
}

const DEADLINE: Duration = Duration::from_secs(40);
const LIMITED: ClassLimits = ClassLimits::new().max_retries(3).base_delay(Duration::from_millis(700));

#[retry(policy = policy, unknown = retry, deadline = "40s", idempotent = false, class(rate_limit, max_retries = 3, base_delay = "700ms"), budget = &script.budget, breaker = &script.breaker, observer = script, context = context)]
async fn by_attribute(context: &mut RetryContext, policy: &Policy, script: &Script) -> Outcome {
    script.next()
}

#[retry(policy = policy, unknown = retry, deadline = "40s", idempotent = false, class(rate_limit, max_retries = 3, base_delay = "700ms"), budget = &script.budget, breaker = &script.breaker, observer = script, context = context)]
fn by_attribute_blocking(context: &mut RetryContext, policy: &Policy, script: &Script) -> Outcome {
    script.next()
}

fn every_face(policy: &Policy, outcomes: &[Outcome], shared: Shared) -> Vec<(&'static str, Seen)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let mut all = Vec::new();
    let mut face = |name, run: &mut dyn FnMut(&mut RetryContext, &Script) -> Outcome| {
        let (script, mut context, waits) = (Script::new(outcomes, shared), RetryContext::new(), VirtualWaits::start());
        let now = || runtime.block_on(async { Instant::now() });
        let start = now();
        let outcome = run(&mut context, &script);
        let slept = now() - start + waits.recorded().iter().sum::<Duration>();
        all.push((name, seen(outcome, slept, &script, &context)));
    };
    face("attribute", &mut |context, script| runtime.block_on(by_attribute(context, policy, script)));
    face("attribute, blocking", &mut |context, script| by_attribute_blocking(context, policy, script));
    face("retrying!", &mut |context, script| {
        runtime.block_on(async {
            retrying!(policy = policy, unknown = retry, deadline = "40s", idempotent = false, class(rate_limit, max_retries = 3, base_delay = "700ms"), budget = &script.budget, breaker = &script.breaker, observer = script, context = context; async -> Outcome {
                script.next()
            })
        })
    });
    face(
        "retrying!, blocking",
        &mut |context, script| retrying!(policy = policy, unknown = retry, deadline = "40s", idempotent = false, class(rate_limit, max_retries = 3, base_delay = "700ms"), budget = &script.budget, breaker = &script.breaker, observer = script, context = context; -> Outcome { script.next() }),
    );
    face("builder", &mut |context, script| {
        let retry = Retry::new(policy)
            .unknown(Unknown::Retry)
            .deadline(DEADLINE)
            .idempotent(false)
            .class("rate_limit", LIMITED)
            .budget(&script.budget)
            .breaker(&script.breaker)
            .observer(script)
            .context(context);
        runtime.block_on(retry.run(|| async { script.next() }))
    });
    face("builder, blocking", &mut |context, script| {
        let retry = Retry::new(policy)
            .unknown(Unknown::Retry)
            .deadline(DEADLINE)
            .idempotent(false)
            .class("rate_limit", LIMITED)
            .budget(&script.budget)
            .breaker(&script.breaker)
            .observer(script)
            .context(context);
        retry.run_blocking(|| script.next())
    });
    all
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        1 => any::<u8>().prop_map(Ok),
        4 => any::<u8>().prop_map(|n| Err(E::Busy(n))),
        2 => (0_u64..200).prop_map(|s| Err(E::Limited(Duration::from_secs(s)))),
        1 => Just(Err(E::Denied)),
        1 => Just(Err(E::Gone)),
        2 => Just(Err(E::Odd)),
        1 => Just(Err(E::Lost)),
    ]
}

fn shared() -> impl Strategy<Value = Shared> {
    prop_oneof![Just(UNLIMITED), (0..30_u32, Just(u32::MAX)), (Just(1_000), 1..12_u32), (0..30_u32, 1..12_u32)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn all_faces_agree(retries in 0_u32..30, base in 0_u64..5_000, outcomes in prop::collection::vec(outcome(), 1..12), shared in shared()) {
        let policy = Policy::new().max_retries(retries).base_delay(Duration::from_millis(base));
        let mut all = every_face(&policy, &outcomes, shared);
        let (_, first) = all.remove(0);
        // 1.1
        prop_assert!(first.calls as u64 <= u64::from(retries.max(3)) + 1);
        let limited = first.history.iter().filter(|record| record.1 == "rate_limit").count();
        prop_assert!(limited <= 4);
        // what may have been done is not done again
        let lost = outcomes.iter().position(|outcome| *outcome == Err(E::Lost)).map_or(usize::MAX, |at| at + 1);
        prop_assert!(first.calls <= lost);
        // 5.6: the last outcome comes back as it was
        prop_assert_eq!(&first.outcome, &outcomes[(first.calls - 1).min(outcomes.len() - 1)]);
        // 3.2: never into the deadline
        let waited: Duration = first.history.iter().filter_map(|record| record.4).sum();
        prop_assert!(waited < DEADLINE);
        // 12.1: a start for each attempt, an end or a wait for each failure, and one ending
        let told = |name: &str| first.events.iter().filter(|event| event.starts_with(name)).count();
        prop_assert_eq!(told("AttemptStarted"), first.calls);
        prop_assert_eq!(told("RetryScheduled"), first.calls - 1);
        prop_assert_eq!(told("failed") + told("Succeeded") + told("Recovered"), first.calls);
        prop_assert_eq!(told("Succeeded") + told("Recovered") + told("GivenUp"), 1);
        // B2.2: what was planned was waited for, and nothing after the last attempt; tokio's timer counts in milliseconds
        let over = first.slept.checked_sub(waited);
        prop_assert!(over.is_some_and(|over| over < Duration::from_millis(2 * u64::from(first.attempts))), "{:?}", first);
        for (name, other) in &mut all {
            let off = other.slept.abs_diff(first.slept);
            prop_assert!(off < Duration::from_millis(2 * u64::from(first.attempts)), "{} slept {:?}", name, other.slept);
            other.slept = first.slept;
            prop_assert_eq!(&first, other, "{} differs", name);
        }
    }
}

#[test]
fn the_faces_really_run() {
    let all = every_face(&Policy::new().max_retries(2), &[Err(E::Busy(1)), Err(E::Odd), Ok(7)], UNLIMITED);
    assert_eq!(all.len(), 6);
    for (name, seen) in all {
        assert_eq!((seen.outcome, seen.calls, seen.reason), (Ok(7), 3, Some(StopReason::Succeeded)), "{name}");
        let waits: Vec<_> = seen.history.iter().map(|record| record.4).collect();
        assert_eq!(waits, [Some(Duration::from_secs(1)), Some(Duration::from_secs(2))], "{name}");
    }
}
