//! Every way a call can end, from the outside: ARCHITECTURE's table of them, row by row, through the attribute.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // a helper of a test fails as a test does

use std::cell::Cell;
use std::future::pending;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::time::Duration;

use futures_util::FutureExt;
use retry_runtime::dead_letter::{Actor, Filter, MemoryStore, PageRequest};
use retry_runtime::ledger::{AttemptLedger, Begin, End, LedgerKey};
use retry_runtime::testing::VirtualWaits;
use retry_runtime::{Budget, CircuitBreaker, DeadLetterStore, Refused, RetryContext, StopReason, Verdict, retry};

/// The reasons of calls that come to no end of their own, with their letters' error class and what the caller gets.
const CUT_OFF: &[(StopReason, &str, &str)] = &[
    (StopReason::Dropped, "dropped:busy", "nothing"),
    (StopReason::Panicked, "panicked", "the panic"),
    (StopReason::Crashed, "crashed", "nothing"),
];

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
enum E {
    #[error("busy")]
    Busy,
    #[error("come back in {0:?}")]
    Later(Duration),
    #[error("denied")]
    Denied,
    #[error("gone")]
    Gone,
    #[error("odd")]
    Odd,
    #[error("lost")]
    Lost,
    #[error("beyond the classifier")]
    Beyond,
    #[error(transparent)]
    Refused(#[from] Refused),
}

/// A hint that is obeyed, but for the deadline.
const LATE: Duration = Duration::from_secs(9);
/// And one that is not.
const TOO_LATE: Duration = Duration::from_secs(3600);

fn judge(error: &E) -> Verdict {
    match error {
        E::Busy => Verdict::retryable("busy"),
        E::Later(wait) => Verdict::retryable("rate_limit").code(429).retry_after(*wait),
        E::Denied => Verdict::permanent("denied").code(403),
        E::Gone => Verdict::gone("gone"),
        E::Odd => Verdict::unknown("odd"),
        E::Lost => Verdict::retryable("connection").outcome_unknown(),
        E::Beyond => resume_unwind(Box::new("no verdict")),
        E::Refused(_) => Verdict::permanent("refused"),
    }
}

/// What a call finds around it.
struct World {
    /// What the attempts return; the last again and again.
    outcomes: &'static [Result<u32, E>],
    at: Cell<usize>,
    fell_back: Cell<bool>,
    budget: Budget,
    breaker: CircuitBreaker,
    /// When the call is cancelled.
    cancelled: Option<Duration>,
    store: MemoryStore,
}

impl World {
    fn of(outcomes: &'static [Result<u32, E>]) -> Self {
        Self {
            outcomes,
            at: Cell::new(0),
            fell_back: Cell::new(false),
            budget: Budget::new(),
            breaker: CircuitBreaker::new(),
            cancelled: None,
            store: MemoryStore::new(),
        }
    }

    fn attempt(&self) -> Result<u32, E> {
        let at = self.at.replace(self.at.get() + 1);
        self.outcomes[at.min(self.outcomes.len() - 1)].clone()
    }

    async fn cancel(&self) {
        match self.cancelled {
            Some(after) => tokio::time::sleep(after).await,
            None => pending().await,
        }
    }
}

// One function with every limit: which of them ends it is a matter of the world alone.

#[retry(
    name = "call",
    max_retries = 2,
    max_retry_after = "20s",
    deadline = "8s",
    idempotent = false,
    classify = judge,
    budget = &world.budget,
    breaker = &world.breaker,
    cancel = world.cancel(),
    fallback = { world.fell_back.set(true); Err(error) },
    ledger(store = &world.store, key = "job"),
    dead_letter(sink = &world.store, job_id = "job"),
    context = context
)]
async fn call(world: &World, context: &mut RetryContext) -> Result<u32, E> {
    world.attempt()
}

#[retry(
    name = "call",
    max_retries = 2,
    max_retry_after = "20s",
    deadline = "8s",
    idempotent = false,
    classify = judge,
    budget = &world.budget,
    breaker = &world.breaker,
    fallback = { world.fell_back.set(true); Err(error) },
    ledger(store = &world.store, key = "job"),
    dead_letter(sink = &world.store, job_id = "job"),
    context = context
)]
fn call_blocking(world: &World, context: &mut RetryContext) -> Result<u32, E> {
    world.attempt()
}

/// A way to end, and the world in which a call does.
struct Case {
    reason: StopReason,
    world: fn() -> World,
    /// A letter's error class.
    class: &'static str,
}

const CASES: &[Case] = &[
    Case { reason: StopReason::Succeeded, world: || World::of(&[Err(E::Busy), Ok(7)]), class: "" },
    Case { reason: StopReason::Permanent, world: || World::of(&[Err(E::Denied)]), class: "permanent:403" },
    Case { reason: StopReason::Gone, world: || World::of(&[Err(E::Gone)]), class: "" },
    Case { reason: StopReason::Unknown, world: || World::of(&[Err(E::Odd)]), class: "unknown:odd" },
    Case { reason: StopReason::Exhausted, world: || World::of(&[Err(E::Busy)]), class: "exhausted:busy" },
    Case {
        reason: StopReason::Deadline,
        world: || World::of(&[Err(E::Busy), Err(E::Later(LATE))]),
        class: "deadline:429",
    },
    Case {
        reason: StopReason::HintTooLong,
        world: || World::of(&[Err(E::Later(TOO_LATE))]),
        class: "hint_too_long:429",
    },
    Case {
        reason: StopReason::BudgetDenied,
        world: || {
            let budget = Budget::new().min_per_second(0).ratio(1.0);
            budget.succeeded();
            World { budget, ..World::of(&[Err(E::Busy)]) }
        },
        class: "budget_denied:busy",
    },
    Case {
        reason: StopReason::BreakerOpen,
        world: || World { breaker: CircuitBreaker::new().min_calls(2), ..World::of(&[Err(E::Busy)]) },
        class: "breaker_open:busy",
    },
    Case { reason: StopReason::ClassifierFailed, world: || World::of(&[Err(E::Beyond)]), class: "classifier_failed" },
    Case {
        reason: StopReason::Cancelled,
        world: || World { cancelled: Some(Duration::from_secs(2)), ..World::of(&[Err(E::Busy)]) },
        class: "cancelled:busy",
    },
    Case {
        reason: StopReason::LedgerRefused,
        world: || {
            let world = World::of(&[Ok(7)]);
            let key = || LedgerKey::new("call", "job");
            let patience = Duration::from_secs(30);
            let begun = world.store.begin(key(), 3).wait(patience).unwrap().unwrap();
            let Begin::Go { token, .. } = begun else { unreachable!("a new key") };
            assert!(world.store.end(key(), token, End::Ok).wait(patience).unwrap().unwrap());
            world
        },
        class: "",
    },
    Case {
        reason: StopReason::OutcomeUnknown,
        world: || World::of(&[Err(E::Lost)]),
        class: "outcome_unknown:connection",
    },
];

/// What can be seen of a call that ended, in the words of the table.
#[derive(Debug, PartialEq)]
struct Seen {
    reason: Option<StopReason>,
    retried: &'static str,
    fallback: &'static str,
    letter: &'static str,
    ledger: String,
    returned: &'static str,
}

fn yes(what: bool) -> &'static str {
    if what { "yes" } else { "no" }
}

/// Calls in a world, and looks around afterwards.
async fn look(case: &Case, call: impl AsyncFnOnce(&World, &mut RetryContext) -> Result<u32, E>) -> Seen {
    let (world, mut context) = ((case.world)(), RetryContext::new());
    let entry = || async { world.store.entry(LedgerKey::new("call", "job")).await.unwrap() };
    let before = entry().await;
    let end = call(&world, &mut context).await;
    let (after, letters) = (entry().await, world.store.list(Filter::default(), PageRequest::default()).await.unwrap());
    if let Some(letter) = letters.rows.first() {
        assert_eq!((letter.reason, &*letter.error_class), (case.reason, case.class));
        assert_eq!(letter.attempts, u64::from(context.attempts()));
    }
    assert_eq!(letters.rows.len(), usize::from(!case.class.is_empty()), "{:?}", case.reason);
    let after = after.expect("the ledger has seen the call");
    let runs = world.at.get();
    Seen {
        reason: context.stop_reason(),
        retried: if runs == 0 { "never tried" } else { yes(runs > 1) },
        fallback: yes(world.fell_back.get()),
        letter: yes(!letters.rows.is_empty()),
        ledger: if before.as_ref() == Some(&after) {
            "unchanged".to_owned()
        } else {
            format!("`{}`", after.status.as_str())
        },
        returned: match &end {
            Ok(_) => "the value",
            Err(E::Refused(refused)) if refused.reason() == case.reason => "`From<Refused>`",
            Err(error)
                if runs > 0 && world.outcomes[(runs - 1).min(world.outcomes.len() - 1)] == Err(error.clone()) =>
            {
                "the last error"
            }
            Err(_) => "something else",
        },
    }
}

/// The rows of ARCHITECTURE's table: of each reason what the columns say.
fn table() -> Vec<(StopReason, Vec<&'static str>)> {
    let text = include_str!("../ARCHITECTURE.md");
    let (_, table) = text.split_once("## What happens when a call ends").expect("the section is there");
    let rows =
        table.lines().skip_while(|line| !line.starts_with("|---")).skip(1).take_while(|line| line.starts_with('|'));
    let cells = |row: &'static str| row.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>();
    let reason = |cell: &str| StopReason::parse(cell.trim_matches('`')).unwrap_or_else(|| panic!("no reason: {cell}"));
    rows.map(cells).map(|cells| (reason(cells[0]), cells[2..].to_vec())).collect()
}

/// The row of a reason: what a call that ended so looks like.
fn row(reason: StopReason) -> Seen {
    let (_, cells) = table().into_iter().find(|(of, _)| *of == reason).unwrap_or_else(|| panic!("no row of {reason}"));
    // what follows a word explains it
    let word = |cell: &'static str| cell.split([':', ',', ';']).next().unwrap_or_default();
    let [retried, fallback, letter, ledger, returned] = cells[..] else { panic!("{reason}: {cells:?}") };
    Seen {
        reason: Some(reason),
        retried: word(retried),
        fallback: word(fallback),
        letter: word(letter),
        ledger: word(ledger).to_owned(),
        returned: word(returned),
    }
}

#[test]
fn every_reason_has_its_row_and_its_test() {
    let rows: Vec<StopReason> = table().into_iter().map(|(reason, _)| reason).collect();
    let cut_off = CUT_OFF.iter().map(|(reason, ..)| *reason);
    let tested: Vec<StopReason> = CASES.iter().map(|case| case.reason).chain(cut_off).collect();
    for reason in StopReason::ALL {
        let tests = tested.iter().filter(|tested| *tested == reason).count();
        assert_eq!(tests, 1, "{reason} is tested {tests} times");
        let found = rows.iter().filter(|row| *row == reason).count();
        assert_eq!(found, 1, "{reason} has {found} rows in ARCHITECTURE.md");
    }
}

#[tokio::test(start_paused = true)]
async fn async_calls_end_as_the_table_says() {
    for case in CASES {
        assert_eq!(look(case, call).await, row(case.reason), "{}", case.reason);
    }
}

#[tokio::test]
async fn blocking_calls_end_as_the_table_says() {
    for case in CASES.iter().filter(|case| case.reason != StopReason::Cancelled) {
        let _waits = VirtualWaits::start();
        let seen = look(case, async |world, context| call_blocking(world, context)).await;
        assert_eq!(seen, row(case.reason), "{}", case.reason);
    }
}

#[retry(
    name = "call",
    classify = judge,
    fallback = { fell_back.set(true); Err(error) },
    ledger(store = process, key = "job"),
    dead_letter(sink = process, job_id = "job", journal)
)]
async fn cut_off(process: &MemoryStore, panics: bool, runs: &Cell<u32>, fell_back: &Cell<bool>) -> Result<u32, E> {
    runs.set(runs.get() + 1);
    if panics { resume_unwind(Box::new("on purpose")) } else { Err(E::Busy) }
}

// 11.3, 11.4
#[tokio::test(start_paused = true)]
async fn calls_that_are_cut_off_end_as_the_table_says() {
    for (reason, class, returned) in CUT_OFF {
        let (store, runs, fell_back) = (MemoryStore::new(), Cell::new(0), Cell::new(false));
        let process = store.another();
        let call = cut_off(&process, *reason == StopReason::Panicked, &runs, &fell_back);
        // in the second wait
        let mut call = Box::pin(tokio::time::timeout(Duration::from_secs(2), AssertUnwindSafe(call).catch_unwind()));
        let end = call.as_mut().await;
        match reason {
            StopReason::Panicked => assert!(matches!(end, Ok(Err(_))), "{end:?}"),
            _ => assert!(end.is_err(), "{end:?}"),
        }
        match reason {
            // nothing runs any more in a process that is killed
            StopReason::Crashed => std::mem::forget(call),
            _ => drop(call),
        }
        drop(process);
        let before = store.count(Filter::parked()).await.unwrap();
        let reaped = store.reap(Actor::new("another process", "")).await.unwrap();
        assert_eq!((before, reaped.len()), if *reason == StopReason::Crashed { (0, 1) } else { (1, 0) });
        let letters = store.list(Filter::default(), PageRequest::default()).await.unwrap().rows;
        let entry = store.entry(LedgerKey::new("call", "job")).await.unwrap().unwrap();
        assert_eq!(letters[0].error_class, *class);
        let seen = Seen {
            reason: Some(letters[0].reason),
            retried: yes(runs.get() > 1),
            fallback: yes(fell_back.get()),
            letter: yes(letters.len() == 1),
            ledger: format!("`{}`", entry.status.as_str()),
            returned,
        };
        assert_eq!(seen, row(*reason));
    }
}
