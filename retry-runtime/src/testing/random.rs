//! Random numbers that repeat.

use std::marker::PhantomData;

use rand::SeedableRng;
use rand::rngs::SmallRng;

use crate::random;

/// While it lives, everything random on this thread - jitter, ids - comes from a seed, so that a test sees the same waits
/// in every run.
///
/// ```
/// use std::time::Duration;
/// use retry_runtime::testing::{FixedRandom, VirtualWaits};
/// use retry_runtime::{Jitter, Policy, Retry, Verdict};
///
/// let waits = |seed| {
///     let (_random, waits) = (FixedRandom::seed(seed), VirtualWaits::start());
///     let policy = Policy::new().max_retries(3).jitter(Jitter::Full);
///     let _failed = Retry::new(policy).classify(|_: &()| Verdict::retryable("busy")).run_blocking(|| Err::<(), ()>(()));
///     waits.recorded()
/// };
/// assert_eq!(waits(7), waits(7));
/// assert_ne!(waits(7), waits(8));
/// ```
#[derive(Debug)]
#[must_use = "randomness is fixed only while this lives"]
pub struct FixedRandom {
    before: Option<SmallRng>,
    /// Bound to the thread that started it.
    _thread: PhantomData<*const ()>,
}

impl FixedRandom {
    /// Draws from this seed on.
    pub fn seed(seed: u64) -> Self {
        Self { before: Some(random::replace(SmallRng::seed_from_u64(seed))), _thread: PhantomData }
    }
}

impl Drop for FixedRandom {
    fn drop(&mut self) {
        if let Some(before) = self.before.take() {
            let _seeded = random::replace(before);
        }
    }
}
