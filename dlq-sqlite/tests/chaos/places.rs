//! The places that a run of chaos seldom comes to: each is the last one of some process.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dlq_sqlite::SqliteStore;
use retry_runtime::dead_letter::{DeadLetterSink, Parking, Payload};
use rusqlite::Connection;

use super::one_file::ids_in;
use super::support::{assert_intact, child, child_work, letter, parkings, tell, wait};

fn open(path: &Path) -> SqliteStore {
    SqliteStore::options(path).reserve(false).open().unwrap()
}

/// Starts this test again with a failpoint, and gives what it told before it died there.
fn dies_at(place: &str, nth: u32, test: &str, path: &Path) -> BTreeSet<String> {
    let mut command = child(&[], &format!("places::{test}"), path.to_str().unwrap());
    let output = command.env("DLQ_FAILPOINTS", format!("{place}=kill:{nth}")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code().is_none(), "{place}:{nth} is not passed: {said}");
    assert!(said.lines().any(|line| line == format!("died at {place}")), "{place}: {said}");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    told.lines().filter_map(|line| line.strip_prefix("@ ").map(str::to_owned)).collect()
}

/// Opens, parks and tells.
fn park_some(path: &str) {
    let store = open(Path::new(path));
    for n in 0..20 {
        let letter = letter(&format!("{}-{n}", std::process::id()));
        let id = letter.park_id;
        assert!(wait(store.submit(letter)).is_kept());
        tell(&id.to_string());
    }
}

fn version(path: &Path) -> i64 {
    Connection::open(path).unwrap().query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap()
}

// D23: a store whose making is cut short is made by the next one
#[test]
fn making_a_store_is_cut_short() {
    if let Some(path) = child_work() {
        return park_some(&path);
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let whole = directory.path().join("whole.db");
    drop(open(&whole));
    for place in ["migrate.between", "migrate.before_commit", "migrate.after_commit"] {
        for nth in 1..=u32::try_from(version(&whole)).unwrap() {
            assert!(dies_at(place, nth, "making_a_store_is_cut_short", &path).is_empty());
            let store = open(&path);
            assert!(matches!(wait(store.submit(letter("a"))), Parking::Parked { .. }));
            assert_eq!(store.set_aside_files().len(), 0);
            drop(store);
            assert_eq!((version(&path), parkings(&path).len()), (version(&whole), 1), "{place}:{nth}");
            assert_intact(&path);
            std::fs::remove_file(&path).unwrap();
        }
    }
}

// D23: the same for a store of the first version: it stays one, or becomes one of this version, with all its letters
#[test]
fn bringing_a_store_up_to_date_is_cut_short() {
    if let Some(path) = child_work() {
        return park_some(&path);
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let first = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/store-v1.db");
    let letters = parkings_of_a_copy(&first, directory.path());
    for place in ["migrate.between", "migrate.before_commit", "migrate.after_commit"] {
        std::fs::copy(&first, &path).unwrap();
        // Migrations that are done already are passed without a change.
        let nth = if place == "migrate.after_commit" { 2 } else { 1 };
        dies_at(place, nth, "bringing_a_store_up_to_date_is_cut_short", &path);
        drop(open(&path));
        assert_eq!(parkings(&path), letters, "{place}");
        assert!(version(&path) > 1);
        assert_intact(&path);
        std::fs::remove_file(&path).unwrap();
    }
}

fn parkings_of_a_copy(path: &Path, directory: &Path) -> BTreeSet<String> {
    let copy = directory.join("copy.db");
    std::fs::copy(path, &copy).unwrap();
    parkings(&copy)
}

// D7: a corrupt file is set aside in several steps; whoever dies between them leaves everything somewhere
#[test]
fn setting_a_file_aside_is_cut_short() {
    const TEST: &str = "setting_a_file_aside_is_cut_short";
    if let Some(path) = child_work() {
        return park_some(&path);
    }
    for nth in 1..=3 {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("jobs.db");
        // A file, a log with what came last, and damage that the log does not mend.
        drop(open(&path));
        let told = dies_at("park.after_commit", 15, TEST, &path);
        assert!(told.len() >= 10);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.iter_mut().skip(4_096).for_each(|byte| *byte = 0xA5);
        std::fs::write(&path, bytes).unwrap();
        dies_at("set_aside.between", nth, TEST, &path);
        let store = open(&path);
        assert!(matches!(wait(store.submit(letter("after"))), Parking::Parked { .. }));
        assert!(!store.set_aside_files().is_empty());
        drop(store);
        assert_eq!(parkings(&path).len(), 1);
        let aside = ids_in(directory.path(), ".corrupt-");
        let lost: Vec<_> = told.difference(&aside).collect();
        assert!(lost.is_empty(), "{nth}: {lost:?} are gone");
    }
}

/// A letter whose payload gets a file of its own.
fn large(job: &str) -> retry_runtime::dead_letter::DeadLetter {
    let mut seed = 1_u64;
    let mut random = || {
        seed = seed.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        format!("{seed:016x}")
    };
    let mut letter = letter(job);
    letter.payload = Payload::Json(format!("\"{}\"", (0..8_000).map(|_| random()).collect::<String>()));
    letter
}

// Files that no row names are collected, also after one died over it; those of letters stay
#[test]
fn collecting_payload_files_is_cut_short() {
    let open = |path: &Path| {
        let options = SqliteStore::options(path).reserve(false).payload_file_above(16 << 10);
        options.reap_after(Duration::ZERO).open().unwrap()
    };
    let directory = tempfile::tempdir().unwrap();
    let (path, is_child) = match child_work() {
        Some(path) => (PathBuf::from(path), true),
        None => (directory.path().join("jobs.db"), false),
    };
    let orphan = path.with_file_name(format!("jobs.db.blobs/ab/ab{}", "0".repeat(62)));
    if is_child {
        std::fs::create_dir_all(orphan.parent().unwrap()).unwrap();
        std::fs::write(&orphan, "orphan").unwrap();
    } else {
        dies_at("blob.before_removal", 1, "collecting_payload_files_is_cut_short", &path);
        assert!(orphan.exists());
    }
    let store = open(&path);
    assert!(matches!(wait(store.submit(large("a"))), Parking::Parked { .. }));
    // In an idle moment.
    while orphan.exists() {
        std::thread::yield_now();
    }
    drop(store);
    let shards = std::fs::read_dir(directory.path().join("jobs.db.blobs")).unwrap();
    let files = |shard: std::fs::DirEntry| std::fs::read_dir(shard.path()).unwrap().count();
    assert_eq!(shards.map(|shard| files(shard.unwrap())).sum::<usize>(), 1, "the letter's file stays");
    assert_intact(&path);
}
