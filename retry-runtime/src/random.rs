//! The one place that draws random numbers.
//!
//! Every thread has its own generator, seeded from the operating system by way of the standard library's hash keys, so no
//! two sessions can draw the same sequence. A test replaces it, on its thread, by a seeded one (`testing::FixedRandom`).

use std::cell::RefCell;
use std::hash::{BuildHasher, Hasher, RandomState};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

thread_local! {
    static GENERATOR: RefCell<SmallRng> = RefCell::new(SmallRng::seed_from_u64(seed()));
}

fn seed() -> u64 {
    let mut hasher = RandomState::new().build_hasher();
    std::hash::Hash::hash(&std::thread::current().id(), &mut hasher);
    hasher.finish()
}

/// Puts a generator in this thread's place; gives the one that was there.
#[cfg(feature = "test-util")]
pub(crate) fn replace(generator: SmallRng) -> SmallRng {
    GENERATOR.replace(generator)
}

/// 64 uniform random bits.
pub(crate) fn next_u64() -> u64 {
    // Falls back to a fresh seed where the thread's generator is gone already (a destructor at thread exit).
    GENERATOR.try_with(|generator| generator.borrow_mut().next_u64()).unwrap_or_else(|_| seed())
}

#[cfg(test)]
mod tests {
    use super::*;

    // 1.4: neither two draws, nor two threads, nor two lives of one thread's generator repeat each other
    #[test]
    fn nobody_draws_what_another_drew() {
        let draw = || std::thread::spawn(|| [next_u64(), next_u64()]).join();
        let mut drawn: Vec<u64> = (0..8).flat_map(|_| draw().unwrap_or_default()).collect();
        drawn.sort_unstable();
        drawn.dedup();
        assert_eq!(drawn.len(), 16);
    }
}
