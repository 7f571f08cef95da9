//! Choices that repeat with their seed.

use std::hash::{BuildHasher, Hasher, RandomState};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// A source of choices. The same seed makes the same choices.
#[derive(Debug)]
pub struct Dice(SmallRng);

impl Dice {
    /// Choices of this seed.
    pub fn new(seed: u64) -> Self {
        Self(SmallRng::seed_from_u64(seed))
    }

    /// Choices of their own for one part of a run: neither many nor few draws elsewhere change them.
    pub(in crate::testing) fn part(seed: u64, part: u64) -> Self {
        Self::new(seed ^ part.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    /// A number below `n`; 0 for 0.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0.next_u64().checked_rem(n).unwrap_or(0)
    }

    /// True in one of `n` cases.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of these; `None` where there is none.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(usize::try_from(self.below(from.len() as u64)).unwrap_or(0))
    }
}

/// A seed nobody chose.
pub(super) fn fresh_seed() -> u64 {
    RandomState::new().build_hasher().finish()
}
