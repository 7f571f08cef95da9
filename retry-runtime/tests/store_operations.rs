//! The rules of bulk operations: the store in memory keeps them, and stores with one fault each do not.
#![cfg(feature = "test-util")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use retry_runtime::dead_letter::MemoryStore;
use retry_runtime::testing::conformance;

#[test]
fn the_store_in_memory_passes() {
    conformance::operations(MemoryStore::with_clock).assert_passed();
}
