//! The rules every store keeps, checked over files.
#![allow(clippy::unwrap_used)] // tests fail by panicking

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use dlq_sqlite::SqliteStore;
use retry_runtime::dead_letter::StoreClock;
use retry_runtime::testing::conformance;

/// Fresh stores in one directory, gone at the end.
struct Fresh {
    directory: tempfile::TempDir,
    made: AtomicU32,
}

impl Fresh {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), made: AtomicU32::new(0) }
    }

    fn store(&self, clock: StoreClock) -> SqliteStore {
        let n = self.made.fetch_add(1, Ordering::Relaxed);
        let path: PathBuf = self.directory.path().join(format!("{n}/jobs.db"));
        SqliteStore::options(path).clock(clock).reserve(false).open().unwrap()
    }
}

#[test]
fn the_store_keeps_the_rules_of_stores() {
    let fresh = Fresh::new();
    conformance::store(|clock| fresh.store(clock)).assert_passed();
}

// B23
#[test]
fn list_count_and_groups_agree_about_any_filter() {
    let fresh = Fresh::new();
    let seeds = if std::env::var_os("SOAK").is_some() { 2_000 } else { 8 };
    for seed in 1_000..1_000 + seeds {
        conformance::filters(|clock| fresh.store(clock), seed).unwrap();
    }
}

// B23
#[test]
fn plans_and_members_agree_about_any_filter() {
    let fresh = Fresh::new();
    let seeds = if std::env::var_os("SOAK").is_some() { 1_000 } else { 6 };
    for seed in 2_000..2_000 + seeds {
        conformance::filters_of_operations(|clock| fresh.store(clock), seed).unwrap();
    }
}

#[test]
fn the_store_keeps_the_rules_of_operations() {
    let fresh = Fresh::new();
    conformance::operations(|clock| fresh.store(clock)).assert_passed();
}

#[test]
fn the_store_keeps_the_rules_of_groups() {
    let fresh = Fresh::new();
    conformance::groups(|clock| fresh.store(clock)).assert_passed();
}

#[test]
fn the_store_keeps_the_rules_of_ledgers() {
    let fresh = Fresh::new();
    conformance::ledger(|clock| fresh.store(clock)).assert_passed();
}

#[test]
fn the_store_keeps_the_rules_of_counters() {
    let fresh = Fresh::new();
    conformance::counters(|clock| fresh.store(clock)).assert_passed();
}

#[test]
fn the_store_keeps_the_rules_of_books() {
    let fresh = Fresh::new();
    conformance::books(|clock| fresh.store(clock)).assert_passed();
    conformance::thresholds(|clock| fresh.store(clock)).assert_passed();
}

#[test]
fn the_store_writes_down_what_is_done_to_the_ledger() {
    let fresh = Fresh::new();
    conformance::audit(|clock| fresh.store(clock)).assert_passed();
}

#[test]
fn the_store_keeps_the_rules_of_administration() {
    let fresh = Fresh::new();
    conformance::admin(|clock| fresh.store(clock)).assert_passed();
}

#[test]
fn the_store_keeps_the_rules_of_overviews() {
    let fresh = Fresh::new();
    conformance::overview(|clock| fresh.store(clock)).assert_passed();
    conformance::oversight(|clock| fresh.store(clock)).assert_passed();
}

#[test]
fn the_store_keeps_the_rules_of_doctors() {
    let fresh = Fresh::new();
    conformance::doctor(|clock| fresh.store(clock)).assert_passed();
}
