//! The ways to retry that are compared.

use std::time::Duration;

use retry_runtime::{Backoff, Jitter, Policy};

/// A way to retry.
#[derive(Clone, Copy, Debug)]
pub struct Strategy {
    pub name: &'static str,
    pub policy: Policy,
    /// With a budget as it is by default.
    pub budget: bool,
    /// With a circuit breaker as it is by default.
    pub breaker: bool,
}

const fn waiting(name: &'static str, jitter: Jitter) -> Strategy {
    let policy = Policy::new()
        .max_retries(3)
        .base_delay(Duration::from_millis(200))
        .max_delay(Duration::from_secs(5))
        .jitter(jitter);
    Strategy { name, policy, budget: false, breaker: false }
}

pub const STRATEGIES: [Strategy; 9] = [
    Strategy { policy: Policy::new().max_retries(0), ..waiting("no retry", Jitter::None) },
    Strategy { policy: AT_ONCE, ..waiting("at once", Jitter::None) },
    waiting("exponential", Jitter::None),
    waiting("equal jitter", Jitter::Equal),
    waiting("full jitter", Jitter::Full),
    waiting("decorrelated jitter", Jitter::Decorrelated),
    Strategy { budget: true, ..waiting("full jitter, budget", Jitter::Full) },
    Strategy { breaker: true, ..waiting("full jitter, breaker", Jitter::Full) },
    Strategy { budget: true, breaker: true, ..waiting("full jitter, budget, breaker", Jitter::Full) },
];

/// Three retries without a wait.
const AT_ONCE: Policy = Policy::new().max_retries(3).base_delay(Duration::ZERO).backoff(Backoff::Fixed);
