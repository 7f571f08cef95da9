//! The chaos suite over the store in memory.
#![cfg(feature = "test-util")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use std::path::Path;

use retry_runtime::dead_letter::{MemoryStore, StoreClock};
use retry_runtime::error::StoreError;
use retry_runtime::testing::store_chaos::{self, Harness, Plan};

struct InMemory;

impl Harness for InMemory {
    type Store = MemoryStore;

    fn open(&self, _place: &Path, clock: StoreClock) -> Result<MemoryStore, StoreError> {
        Ok(MemoryStore::with_clock(clock))
    }
}

#[test]
fn the_store_in_memory_keeps_the_rules_under_chaos() {
    let report =
        store_chaos::run(
            &InMemory,
            &Plan::new("the_store_in_memory_keeps_the_rules_under_chaos")
                .kills(if std::env::var_os("SOAK").is_some() { 1_000 } else { 200 }),
        );
    println!("{report}");
    report.assert_passed();
}
