//! Aids for tests (feature `test-util`).
//!
//! For code that retries: [`no_waits`], [`scripted`], [`Chaos`], [`FixedRandom`], [`ManualTime`], [`assert_plan!`]. For what a
//! failing store does to a program: [`Faults`]. For a store of your own: [`conformance`] and [`store_chaos`].

mod chaos;
mod clock;
pub mod conformance;
mod faults;
mod plan;
mod random;
mod scripted;
pub mod store_chaos;
mod time;
mod waits;

pub use crate::assert_plan;
pub use chaos::{Chaos, ChaosTally};
pub(crate) use clock::clock_is_read;
pub use clock::clock_reads;
pub use faults::{Faults, Planted};
#[doc(hidden)]
pub use plan::{assert_plan_text, assert_plan_waits};
pub use random::FixedRandom;
pub use scripted::{Scripted, scripted};
pub use time::ManualTime;
pub(crate) use time::stopped_time;
pub use waits::{VirtualWaits, no_waits};
pub(crate) use waits::{meant_wait, virtual_elapsed, virtual_wait};
