//! The drop and panic lists for every other form of a call: methods under `#[async_trait]`, observers, `nested`, reports,
//! `retrying!` and journals beside other options. At each await point: parked once, out of the journal, and the ledger as
//! ARCHITECTURE's table has it (SEMANTICS 11.1, 11.3, 11.4, 12).
#![allow(clippy::unwrap_used, clippy::panic)] // a helper of a test fails as a test does

#[path = "helpers/guarded.rs"]
mod guarded;

use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use async_trait::async_trait;
use guarded::{
    E, Ending, Face, Left, World, check, endings, second_route, second_route_here, unreported, with_every_ending, work,
    work_here,
};
use retry_runtime::observe::{Event, from_fn};
use retry_runtime::testing::VirtualWaits;
use retry_runtime::{GaveUp, RetryContext, retry, retrying};

/// A function for each set of options, and the list of them.
macro_rules! faces {
    ($w:ident, $context:ident; $($name:ident($($letter:ident $(= $value:ident)?)?; $($options:tt)*);)*) => {
        $(
            #[retry(
                name = "job",
                max_retries = 3,
                dead_letter(sink = $w, job_id = 7, payload = vec![1, 2], model = "m" $(, $letter $(= $value)?)?),
                $($options)*
            )]
            async fn $name($w: &World, $context: &mut RetryContext) -> Result<u32, E> {
                let _read = $context.attempts();
                work($w).await
            }
        )*
        const ATTRIBUTES: &[(&str, Face)] = &[$((stringify!($name), |w, context| Box::pin($name(w, context))),)*];
    };
}

faces! {
    w, context;
    watched(; observer = from_fn(|_: &Event<'_>| ()));
    watched_second(; observer = from_fn(|_: &Event<'_>| ()), fallback = second_route(w).await, ledger(store = w, key = 7));
    detects(; nested = detect);
    outer_only(; nested = outer_only, attempt_timeout = "5s");
    journal_cancellable(journal; cancel = pending::<()>());
    journal_cancelled(journal; cancel = tokio::time::sleep(Duration::from_millis(2500)), ledger(store = w, key = 7));
    journal_limited(journal; attempt_timeout = "5s");
    journal_limited_and_counted(journal = required; attempt_timeout = "5s", ledger(store = w, key = 7));
    journal_watched(journal; observer = from_fn(|_: &Event<'_>| ()), ledger(store = w, key = 7), nested = detect);
    journal_second(journal; fallback = second_route(w).await);
    journal_everything(
        journal = required; context = context, fallback = second_route(w).await, ledger(store = w, key = 7),
        attempt_timeout = "5s", deadline = "1h", cancel = pending::<()>(), budget = &w.budget, breaker = &w.breaker,
        observer = from_fn(|_: &Event<'_>| ()), nested = detect
    );
}

// Functions that report.

#[retry(name = "job", max_retries = 3, dead_letter(sink = w, job_id = 7, payload = vec![1, 2], model = "m"))]
async fn reported(w: &World) -> Result<u32, GaveUp<E>> {
    work(w).await
}

#[retry(name = "job", max_retries = 3, dead_letter(sink = w, job_id = 7, payload = vec![1, 2], model = "m", journal), attempt_timeout = "5s", cancel = tokio::time::sleep(Duration::from_millis(2500)), ledger(store = w, key = 7))]
async fn reported_cancelled(w: &World) -> Result<u32, GaveUp<E>> {
    work(w).await
}

#[retry(name = "job", max_retries = 3, dead_letter(sink = w, job_id = 7, payload = vec![1, 2], model = "m", journal = required), fallback = second_route(w).await, ledger(store = w, key = 7), attempt_timeout = "5s", breaker = &w.breaker, observer = from_fn(|_: &Event<'_>| ()))]
async fn reported_everything(w: &World) -> Result<u32, GaveUp<E>> {
    work(w).await
}

// Methods.

#[async_trait(?Send)]
trait Works {
    async fn plain(&self) -> Result<u32, E>;
    async fn journalled(&self) -> Result<u32, E>;
    async fn reports(&self) -> Result<u32, GaveUp<E>>;
    async fn everything(&self, context: &mut RetryContext) -> Result<u32, E>;
}

#[async_trait(?Send)]
impl Works for World {
    #[retry(name = "job", max_retries = 3, dead_letter(sink = self, job_id = 7, payload = vec![1, 2], model = "m"))]
    async fn plain(&self) -> Result<u32, E> {
        work(self).await
    }

    #[retry(name = "job", max_retries = 3, dead_letter(sink = self, job_id = 7, payload = vec![1, 2], model = "m", journal), ledger(store = self, key = 7), nested = outer_only)]
    async fn journalled(&self) -> Result<u32, E> {
        work(self).await
    }

    #[retry(name = "job", max_retries = 3, dead_letter(sink = self, job_id = 7, payload = vec![1, 2], model = "m", journal), fallback = second_route(self).await, attempt_timeout = "5s")]
    async fn reports(&self) -> Result<u32, GaveUp<E>> {
        work(self).await
    }

    #[retry(name = "job", max_retries = 3, context = context, dead_letter(sink = self, job_id = 7, payload = vec![1, 2], model = "m", journal = required), fallback = second_route(self).await, ledger(store = self, key = 7), attempt_timeout = "5s", deadline = "1h", cancel = pending::<()>(), budget = &self.budget, breaker = &self.breaker, observer = from_fn(|_: &Event<'_>| ()), nested = detect)]
    async fn everything(&self, context: &mut RetryContext) -> Result<u32, E> {
        let _read = context.attempts();
        work(self).await
    }
}

/// Each with whether it ends though no attempt does.
const OTHERS: &[(&str, bool, Face)] = &[
    ("reported", false, |w, _| Box::pin(async { unreported(reported(w).await) })),
    ("reported, cancelled", true, |w, _| Box::pin(async { unreported(reported_cancelled(w).await) })),
    ("reported, everything", true, |w, _| Box::pin(async { unreported(reported_everything(w).await) })),
    ("async_trait", false, |w, _| w.plain()),
    ("async_trait, journal", false, |w, _| w.journalled()),
    ("async_trait, reports", true, |w, _| Box::pin(async { unreported(w.reports().await) })),
    ("async_trait, everything", true, |w, context| w.everything(context)),
    ("retrying, journal", false, |w, _| {
        Box::pin(async move {
            retrying!(name = "job", max_retries = 3, dead_letter(sink = w, job_id = 7, payload = vec![1, 2], model = "m", journal);
            async -> Result<u32, E> { work(w).await })
        })
    }),
    ("retrying, ledger", false, |w, _| {
        Box::pin(async move {
            retrying!(name = "job", max_retries = 3, dead_letter(sink = w, job_id = 7, payload = vec![1, 2], model = "m"), ledger(store = w, key = 7);
            async -> Result<u32, E> { work(w).await })
        })
    }),
    ("retrying, fallback", false, |w, _| {
        Box::pin(async move {
            retrying!(name = "job", max_retries = 3, dead_letter(sink = w, job_id = 7, payload = vec![1, 2], model = "m"), fallback = second_route(w).await;
            async -> Result<u32, E> { work(w).await })
        })
    }),
    ("retrying, everything", true, |w, context| {
        Box::pin(async move {
            unreported(
                retrying!(name = "job", max_retries = 3, context = context, dead_letter(sink = w, job_id = 7, payload = vec![1, 2], model = "m", journal = required), fallback = second_route(w).await, ledger(store = w, key = 7), attempt_timeout = "5s", deadline = "1h", cancel = pending::<()>(), budget = &w.budget, breaker = &w.breaker, observer = from_fn(|_: &Event<'_>| ()), nested = detect;
            async -> Result<u32, GaveUp<E>> { work(w).await }),
            )
        })
    }),
];

// 11.1, 11.3, 11.4, D5, D14, D20
#[test]
fn every_attribute_is_parked_once_wherever_it_is_dropped_or_panics() {
    for (name, face) in ATTRIBUTES {
        let limited = ["limited", "cancelled", "everything", "outer_only"].iter().any(|word| name.contains(word));
        with_every_ending(name, limited, *face);
    }
}

// the same
#[test]
fn every_report_method_and_inline_call_is_parked_once_wherever_it_is_dropped_or_panics() {
    for (name, limited, face) in OTHERS {
        with_every_ending(name, *limited, *face);
    }
}

/// A blocking call is dropped nowhere; it may panic.
type Blocking = fn(&World) -> Result<u32, E>;

const BLOCKING: &[(&str, Blocking)] = &[
    ("watched", |w| {
        #[retry(name = "job", max_retries = 3, observer = from_fn(|_: &Event<'_>| ()), dead_letter(sink = w, job_id = 7, payload = vec![1, 2], model = "m"))]
        fn call(w: &World) -> Result<u32, E> {
            work_here(w)
        }
        call(w)
    }),
    ("outer only", |w| {
        #[retry(name = "job", max_retries = 3, nested = outer_only, dead_letter(sink = w, job_id = 7, payload = vec![1, 2], model = "m"), ledger(store = w, key = 7))]
        fn call(w: &World) -> Result<u32, E> {
            work_here(w)
        }
        call(w)
    }),
    ("reported", |w| {
        #[retry(name = "job", max_retries = 3, dead_letter(sink = w, job_id = 7, payload = vec![1, 2], model = "m"))]
        fn call(w: &World) -> Result<u32, GaveUp<E>> {
            work_here(w)
        }
        unreported(call(w))
    }),
    ("reported, everything", |w| {
        #[retry(name = "job", max_retries = 3, context = seen, deadline = "1h", budget = &w.budget, breaker = &w.breaker, observer = from_fn(|_: &Event<'_>| ()), fallback = second_route_here(w), dead_letter(sink = w, job_id = 7, payload = vec![1, 2], model = "m", journal = required), ledger(store = w, key = 7))]
        fn call(w: &World) -> Result<u32, GaveUp<E>> {
            work_here(w)
        }
        unreported(call(w))
    }),
    ("journal", |w| {
        #[retry(name = "job", max_retries = 3, dead_letter(sink = w, job_id = 7, payload = vec![1, 2], model = "m", journal))]
        fn call(w: &World) -> Result<u32, E> {
            work_here(w)
        }
        call(w)
    }),
    (
        "retrying, journal",
        |w| retrying!(name = "job", max_retries = 3, dead_letter(sink = w, job_id = 7, payload = vec![1, 2], model = "m", journal); -> Result<u32, E> { work_here(w) }),
    ),
    (
        "retrying, ledger",
        |w| retrying!(name = "job", max_retries = 3, dead_letter(sink = w, job_id = 7, payload = vec![1, 2], model = "m"), ledger(store = w, key = 7); -> Result<u32, E> { work_here(w) }),
    ),
    (
        "retrying, fallback",
        |w| retrying!(name = "job", max_retries = 3, dead_letter(sink = w, job_id = 7, payload = vec![1, 2], model = "m"), fallback = second_route_here(w); -> Result<u32, E> { work_here(w) }),
    ),
    ("retrying, everything", |w| {
        unreported(
            retrying!(name = "job", max_retries = 3, dead_letter(sink = w, job_id = 7, payload = vec![1, 2], model = "m", journal), fallback = second_route_here(w), ledger(store = w, key = 7), deadline = "1h", budget = &w.budget, breaker = &w.breaker, observer = from_fn(|_: &Event<'_>| ()); -> Result<u32, GaveUp<E>> { work_here(w) }),
        )
    }),
];

// 11.3, 11.4
#[test]
fn a_blocking_call_is_parked_once_however_it_ends() {
    for (name, face) in BLOCKING {
        for ending in endings() {
            for second in [Ok(8), Err(E::Denied), Err(E::Gone)] {
                let (w, _waits) = (World::new(ending.clone(), second), VirtualWaits::start());
                let end = match catch_unwind(AssertUnwindSafe(|| face(&w))) {
                    Ok(end) => Left::Ended(end),
                    Err(panic) => Left::Panicked(panic),
                };
                check(&format!("blocking, {name}"), &w, &end, 0);
                assert_eq!(matches!(ending, Ending::Panics), matches!(end, Left::Panicked(_)), "{name}: {end:?}");
            }
        }
    }
}
