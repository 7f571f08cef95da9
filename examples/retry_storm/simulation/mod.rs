//! Seeded simulations of many clients that retry. Each run with the same seed gives the same numbers.
//!
//! Waits, budgets and breakers are the library's own; only time and chance are made up here.

// Counts and nanoseconds are shown as decimal numbers, and are small enough for that.
#![allow(clippy::cast_precision_loss)]
// The example and its test each use a part of it.
#![allow(dead_code, unreachable_pub)]

mod agenda;
pub mod contention;
mod dice;
pub mod layers;
pub mod outage;

use agenda::Agenda;
pub use dice::Dice;

/// The mean.
pub fn mean(numbers: impl IntoIterator<Item = f64>) -> f64 {
    let (sum, count) = numbers.into_iter().fold((0.0, 0.0), |(sum, count), number| (sum + number, count + 1.0));
    sum / f64::max(count, 1.0)
}
