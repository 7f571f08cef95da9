//! Aids for tests (feature `test-util`).

mod clock;
pub mod conformance;
mod waits;

pub(crate) use clock::clock_is_read;
pub use clock::clock_reads;
pub use waits::VirtualWaits;
pub(crate) use waits::{virtual_elapsed, virtual_wait};
