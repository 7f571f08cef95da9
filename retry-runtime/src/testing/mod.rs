//! Aids for tests (feature `test-util`).

pub mod conformance;
