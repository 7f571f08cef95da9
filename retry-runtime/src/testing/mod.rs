//! Aids for tests (feature `test-util`).

pub mod chaos;
mod clock;
pub mod conformance;
mod random;
mod time;
mod waits;

pub(crate) use clock::clock_is_read;
pub use clock::clock_reads;
pub use random::FixedRandom;
pub use time::ManualTime;
pub(crate) use time::stopped_time;
pub use waits::VirtualWaits;
pub(crate) use waits::{virtual_elapsed, virtual_wait};
