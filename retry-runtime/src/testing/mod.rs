//! Aids for tests (feature `test-util`).

pub mod conformance;
mod waits;

pub use waits::VirtualWaits;
pub(crate) use waits::{virtual_elapsed, virtual_wait};
