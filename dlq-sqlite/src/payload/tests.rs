#![allow(clippy::unwrap_used)] // tests fail by panicking

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use retry_runtime::StopReason;
use retry_runtime::dead_letter::DeadLetter;
use rusqlite::Connection;

use super::collect::{Collected, collect};
use super::*;
use crate::config::Settings;
use crate::open;
use crate::open::files::{OpenerLock, beside};
use crate::park::{Origin, park};

/// A store's file with one connection, and every large payload in a file of its own.
struct Place {
    _directory: tempfile::TempDir,
    path: PathBuf,
    writer: open::Writer,
    payloads: Payloads,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("jobs.db");
        let writer = open::writer(&Settings::new(path.clone()), &OpenerLock::default(), "t").unwrap();
        let payloads = Payloads { blobs: Blobs::beside(&path), file_above: 0 };
        Self { _directory: directory, path, writer, payloads }
    }

    fn connection(&self) -> &Connection {
        &self.writer.connection
    }

    fn park(&self, payload: &str, prepared: Option<&Encoded>) -> String {
        let mut letter = DeadLetter::new("fetch", StopReason::Exhausted, SystemTime::UNIX_EPOCH);
        letter.payload = Payload::Json(payload.to_owned());
        let tx = Tx {
            operation: None,
            connection: self.connection(),
            now: SystemTime::UNIX_EPOCH,
            scope: "default",
            writer: "t",
            payloads: &self.payloads,
            crashed: &Cell::new(0),
        };
        park(tx, &letter, prepared, Origin::Live).unwrap()
    }

    fn read(&self, letter_id: &str) -> Payload {
        let sql = "SELECT seq FROM letter WHERE id = ?1";
        let seq: i64 = self.connection().query_row(sql, [letter_id], |row| row.get(0)).unwrap();
        crate::letters::payload(self.connection(), number(seq)).unwrap().decode(&self.payloads, letter_id)
    }

    fn collect(&self) -> Collected {
        collect(self.connection(), &self.payloads.blobs, &self.path, Duration::from_secs(1)).unwrap()
    }

    fn files(&self) -> usize {
        (0..=u8::MAX).map(|shard| self.payloads.blobs.names_in(shard).unwrap().len()).sum()
    }
}

fn large(mark: char) -> String {
    format!("\"{}\"", String::from(mark).repeat(COMPRESSED_FROM))
}

#[test]
fn what_is_read_back_is_what_was_written() {
    let place = Place::new();
    for payload in ["{}".to_owned(), large('x'), format!("[{}]", "0.1,".repeat(100_000) + "1"), large('ä')] {
        let letter_id = place.park(&payload, None);
        assert!(place.read(&letter_id) == Payload::Json(payload));
    }
}

#[test]
fn what_a_row_does_not_hold_of_its_payload_is_an_error() {
    let good = codec::compress(large('x').as_bytes()).unwrap();
    let size = large('x').len() as u64;
    let sha256 = hash(large('x').as_bytes());
    assert!(codec::decode(ZSTD, good.clone(), size, &sha256).is_ok());
    for (bytes, size, sha256) in [
        (good.clone(), size - 1, sha256),
        (good.clone(), size + 1, sha256),
        (good.clone(), size, [0; 32]),
        (b"never compressed".to_vec(), size, sha256),
        (good.iter().copied().take(good.len() / 2).collect(), size, sha256),
        (Vec::new(), size, sha256),
    ] {
        assert!(codec::decode(ZSTD, bytes, size, &sha256).is_err());
    }
}

// A gibibyte in 33 KB: unpacked no further than the row says it goes.
#[test]
fn a_bomb_is_unpacked_no_further_than_its_row_says() {
    let zeros = vec![0; 1 << 20];
    let mut bomb = codec::compress(&zeros).unwrap();
    for _ in 0..10 {
        bomb.extend_from_within(..);
    }
    let error = codec::decode(ZSTD, bomb, 1_000, &[0; 32]).unwrap_err();
    assert_eq!(error, "it is not the 1000 bytes that were stored");
}

// S6: crash between file and row
#[test]
fn files_without_a_row_are_collected_and_the_others_are_not() {
    let place = Place::new();
    let kept = place.park(&large('a'), None);
    let orphan = place.payloads.prepare(&Payload::Json(large('b'))).unwrap();
    let of_journal = place.payloads.prepare(&Payload::Json(large('c'))).unwrap();
    let sql = "INSERT INTO journal(park_id, scope, kind, owner, accepted_at, blob) VALUES('p', 's', 'k', 'o', 0, ?1)";
    place.connection().execute(sql, [of_journal.blob.as_ref().unwrap()]).unwrap();
    std::fs::write(place.payloads.blobs.root().join("unfinished-x"), b"half").unwrap();
    assert_eq!(place.files(), 3);
    assert_eq!(place.collect(), Collected { files: 1, unfinished: 1 });
    assert!(!place.payloads.blobs.path(orphan.blob.as_ref().unwrap()).exists());
    assert!(place.payloads.blobs.path(of_journal.blob.as_ref().unwrap()).exists());
    assert!(place.read(&kept) == Payload::Json(large('a')));
    assert_eq!(place.collect(), Collected::default());
}

// A parking under way loses its file before its transaction, and never after.
#[test]
fn a_file_collected_before_its_row_is_written_again() {
    let place = Place::new();
    let payload = Payload::Json(large('a'));
    let prepared = place.payloads.prepare(&payload).unwrap();
    assert_eq!(place.collect().files, 1);
    let letter_id = place.park(&large('a'), Some(&prepared));
    assert!(place.read(&letter_id) == payload);
    assert_eq!(place.collect().files, 0);
}

// The same from two connections: the collector waits for the transaction that names the file.
#[test]
fn nothing_is_collected_while_a_parking_holds_the_lock() {
    let place = Place::new();
    let prepared = place.payloads.prepare(&Payload::Json(large('a'))).unwrap();
    place.connection().execute_batch("BEGIN IMMEDIATE").unwrap();
    let letter_id = place.park(&large('a'), Some(&prepared));
    let other = open::writer(&Settings::new(place.path.clone()), &OpenerLock::default(), "t").unwrap();
    let blobs = Blobs::beside(&place.path);
    // It sees a file without a row, and may not touch it.
    let refused = collect(&other.connection, &blobs, &place.path, Duration::from_millis(20)).unwrap_err();
    assert_eq!(refused.kind(), retry_runtime::error::StoreErrorKind::Busy);
    place.connection().execute_batch("COMMIT").unwrap();
    assert_eq!(collect(&other.connection, &blobs, &place.path, Duration::from_secs(1)).unwrap(), Collected::default());
    assert!(place.read(&letter_id) == Payload::Json(large('a')));
}

// And the row may have come while it waited for the lock: it looks again.
#[test]
fn a_file_that_gets_its_row_while_the_collector_waits_stays() {
    static WAITS: AtomicBool = AtomicBool::new(false);
    let place = Place::new();
    let prepared = place.payloads.prepare(&Payload::Json(large('a'))).unwrap();
    place.connection().execute_batch("BEGIN IMMEDIATE").unwrap();
    let letter_id = place.park(&large('a'), Some(&prepared));
    let path = place.path.clone();
    let collector = std::thread::spawn(move || {
        let other = open::writer(&Settings::new(path.clone()), &OpenerLock::default(), "t").unwrap();
        let waits = |_| {
            WAITS.store(true, Ordering::SeqCst);
            std::thread::yield_now();
            true
        };
        other.connection.busy_handler(Some(waits)).unwrap();
        collect(&other.connection, &Blobs::beside(&path), &path, Duration::from_secs(60)).unwrap()
    });
    while !WAITS.load(Ordering::SeqCst) {
        assert!(!collector.is_finished(), "it waits for nobody");
        std::thread::yield_now();
    }
    place.connection().execute_batch("COMMIT").unwrap();
    assert_eq!(collector.join().unwrap(), Collected::default());
    assert!(place.read(&letter_id) == Payload::Json(large('a')));
}

// D7: the rows of a file that was set aside may name any of them.
#[test]
fn nothing_is_collected_while_a_file_is_set_aside_or_a_later_schema_may_name_more() {
    let place = Place::new();
    place.payloads.prepare(&Payload::Json(large('a'))).unwrap();
    let aside = beside(&place.path, ".corrupt-1");
    std::fs::write(&aside, b"x").unwrap();
    assert_eq!(place.collect().files, 0);
    std::fs::remove_file(aside).unwrap();
    place.connection().pragma_update(None, "user_version", open::schema::VERSION + 1).unwrap();
    assert_eq!(place.collect().files, 0);
    place.connection().pragma_update(None, "user_version", open::schema::VERSION).unwrap();
    assert_eq!(place.collect().files, 1);
}

#[test]
fn equal_payloads_share_a_file_and_a_damaged_one_is_healed_by_the_next() {
    let place = Place::new();
    let first = place.park(&large('a'), None);
    let second = place.park(&large('a'), None);
    assert_eq!(place.files(), 1);
    let name: String = place.connection().query_row("SELECT blob FROM payload LIMIT 1", [], |row| row.get(0)).unwrap();
    let path = place.payloads.blobs.path(&name);
    let whole = std::fs::read(&path).unwrap();
    for damage in [whole.iter().map(|byte| byte ^ 1).collect::<Vec<_>>(), Vec::new()] {
        std::fs::write(&path, &damage).unwrap();
        let Payload::Unserializable(why) = place.read(&first) else { unreachable!("read from a damaged file") };
        assert!(why.contains(&name) && why.contains("damaged"), "{why}");
    }
    place.park(&large('a'), None);
    assert_eq!(std::fs::read(&path).unwrap(), whole);
    assert!(place.read(&second) == Payload::Json(large('a')));
    std::fs::remove_file(&path).unwrap();
    let Payload::Unserializable(why) = place.read(&first) else { unreachable!("read from a missing file") };
    assert!(why.contains(&name), "{why}");
}

// A pipe in the place of a file: whoever opens it waits for its writer.
#[cfg(unix)]
#[test]
fn what_is_no_file_is_not_waited_for() {
    let place = Place::new();
    let id = place.park(&large('a'), None);
    let name: String = place.connection().query_row("SELECT blob FROM payload", [], |row| row.get(0)).unwrap();
    let path = place.payloads.blobs.path(&name);
    std::fs::remove_file(&path).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let Payload::Unserializable(why) = place.read(&id) else { unreachable!("read from a pipe") };
    assert!(why.contains(&name) && why.contains("no regular file"), "{why}");
    // The next letter with these bytes puts a file there.
    place.park(&large('a'), None);
    assert!(place.read(&id) == Payload::Json(large('a')));
}

#[test]
fn a_name_that_is_none_leads_nowhere() {
    let blobs = Blobs::beside(Path::new("/nowhere/jobs.db"));
    for name in ["", "../../etc/passwd", "a", &"ä".repeat(32), &"../".repeat(21)] {
        assert_eq!(blobs.path(name), Path::new("/nowhere/jobs.db.blobs/no/not-a-name"));
    }
}
