//! `#[retry]` with more than the least: what each option costs.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use retry_runtime::dead_letter::MemoryStore;
use retry_runtime::observe::{Event, Observer};
use retry_runtime::{Budget, CircuitBreaker, retry};

use super::{Contender, Outcome, Work, at_once, now, on_tokio};

pub(super) const CONTENDERS: [Contender; 6] = [
    jitter::CONTENDER,
    context::CONTENDER,
    observer::CONTENDER,
    budget::CONTENDER,
    breaker::CONTENDER,
    letter::CONTENDER,
];

/// The name of the one with a dead letter, which is never used: parking is the store's to measure.
pub(crate) const LETTER: &str = "ours + dead letter";

/// One set of options, on every face.
macro_rules! with {
    ($module:ident, $name:expr, $($options:tt)*) => {
        mod $module {
            use super::*;

            pub(super) const CONTENDER: Contender = Contender {
                name: $name,
                on_tokio: Some(on_tokio!(on_tokio)),
                ready: Some(|work| now(ready(work))),
                blocking: Some(blocking),
            };

            #[retry(max_retries = 2, base_delay = "1s", $($options)*)]
            async fn on_tokio(work: &Work) -> Outcome {
                work.call().await
            }

            #[retry(max_retries = 2, base_delay = "1s", sleep = at_once, $($options)*)]
            async fn ready(work: &Work) -> Outcome {
                work.call().await
            }

            #[retry(max_retries = 2, base_delay = "0s", $($options)*)]
            fn blocking(work: &Work) -> Outcome {
                work.attempt()
            }
        }
    };
}

with!(jitter, "ours + jitter", jitter = full);
// the whole history
with!(context, "ours + context", jitter = none, context = _context);
with!(observer, "ours + observer", jitter = none, observer = &SEEN);
with!(budget, "ours + budget", jitter = none, budget = &BUDGET);
with!(breaker, "ours + breaker", jitter = none, breaker = &BREAKER);
with!(letter, LETTER, jitter = none, dead_letter(sink = &*STORE, job_id = 7));

/// The least an observer does.
struct Seen(AtomicU32);

impl Observer for Seen {
    fn on(&self, _event: &Event<'_>) {
        self.0.store(self.0.load(Relaxed).wrapping_add(1), Relaxed);
    }
}

static SEEN: Seen = Seen(AtomicU32::new(0));
/// Never empty, however fast it is asked.
static BUDGET: Budget = Budget::new().min_per_second(10_000_000).capacity(10_000_000);
/// Never opens.
static BREAKER: CircuitBreaker = CircuitBreaker::new().min_calls(u32::MAX);
static STORE: LazyLock<MemoryStore> = LazyLock::new(MemoryStore::new);
