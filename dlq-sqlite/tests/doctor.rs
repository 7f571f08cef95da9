//! Each finding, provoked on a real file: what is wrong is found, under its stable word, with something to do about it; and
//! is not found before.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // tests fail by panicking

mod support;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use dlq_sqlite::{AlarmAt, Durability, SqliteOptions, SqliteStore};
use retry_runtime::dead_letter::{
    Actor, Checkup, ClaimRequest, DeadLetterSink, DeadLetterStore, Depth, Doctor, Filter, Finding, Finish, ManualClock,
    Parking, Payload, Redactor, ReplayOutcome, Retention, Severity, Spill,
};
use retry_runtime::error::StoreErrorKind;
use rusqlite::Connection;
use support::{child, child_work, letter, tell, told, wait};

fn block<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

struct Bench {
    directory: tempfile::TempDir,
    path: PathBuf,
    time: ManualClock,
}

impl Bench {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("jobs.db");
        Self { directory, path, time: ManualClock::new(SystemTime::now()) }
    }

    fn options(&self) -> SqliteOptions {
        let options = SqliteStore::options(&self.path).clock(self.time.clock()).reserve(false);
        options.busy_limit(Duration::from_millis(100)).spill_dirs([self.directory.path()])
    }

    fn open(&self) -> SqliteStore {
        self.options().open().unwrap()
    }

    /// A store with a few letters.
    fn filled(&self) -> SqliteStore {
        let store = self.open();
        for n in 0..5 {
            park(&store, &n.to_string());
        }
        store
    }

    fn raw(&self, sql: &str) {
        Connection::open(&self.path).unwrap().execute_batch(sql).unwrap();
    }
}

fn park(store: &SqliteStore, job: &str) {
    assert!(matches!(wait(store.submit(letter(job))), Parking::Parked { .. }));
}

fn examine(store: &SqliteStore, depth: Depth) -> Vec<Finding> {
    block(store.doctor(depth.into())).unwrap()
}

fn find(store: &SqliteStore, depth: Depth, code: &str) -> Option<Finding> {
    examine(store, depth).into_iter().find(|finding| finding.code == code)
}

/// Nothing worse than a word.
#[track_caller]
fn assert_sound(store: &SqliteStore) {
    for depth in [Depth::Quick, Depth::Full] {
        let found = examine(store, depth);
        assert!(Finding::worst(&found) <= Some(Severity::Info), "{found:#?}");
    }
}

/// The finding is there at this depth, with something to do unless it is only a word.
#[track_caller]
fn assert_found(store: &SqliteStore, depth: Depth, severity: Severity, code: &str) -> Finding {
    let found = examine(store, depth);
    assert!(found.is_sorted_by(|a, b| a.severity >= b.severity), "{found:#?}");
    let Some(finding) = found.iter().find(|finding| finding.code == code) else { panic!("no {code} in {found:#?}") };
    assert_eq!(finding.severity, severity, "{finding}");
    assert!(severity == Severity::Info || !finding.advice.is_empty(), "{finding}");
    finding.clone()
}

const QUICK: Depth = Depth::Quick;
const FULL: Depth = Depth::Full;

// A12: the probe parks, and leaves nothing of it
#[test]
fn an_examination_leaves_no_row() {
    let bench = Bench::new();
    let store = bench.filled();
    let rows = || {
        let connection = Connection::open(&bench.path).unwrap();
        let count = |table: &str| {
            let sql = format!("SELECT count(*) FROM {table}");
            connection.query_row(&sql, [], |row| row.get::<_, i64>(0)).unwrap()
        };
        let tables = ["letter", "payload", "parking", "attempt", "event", "tally", "arrival", "trend"].map(count);
        let seq: i64 = connection.query_row("SELECT max(seq) FROM sqlite_sequence", [], |row| row.get(0)).unwrap();
        (tables, seq)
    };
    let before = rows();
    assert_sound(&store);
    assert_eq!(rows(), before);
    // It was a real one: what keeps letters from being parked keeps the probe from it too.
    bench.raw("CREATE TRIGGER no BEFORE INSERT ON letter BEGIN SELECT RAISE(ABORT, 'no more'); END");
    let found = assert_found(&store, QUICK, Severity::Error, "store_down");
    assert!(found.message.contains("no more"), "{found}");
}

#[test]
fn a_file_that_was_set_aside_is_found() {
    let bench = Bench::new();
    drop(bench.open());
    std::fs::write(&bench.path, "no database at all".repeat(1_000)).unwrap();
    let store = bench.open();
    let found = assert_found(&store, QUICK, Severity::Error, "set_aside");
    assert!(found.subject.contains(".corrupt-"), "{found}");
    std::fs::remove_file(&found.subject).unwrap();
    assert_sound(&store);
}

#[test]
fn letters_that_wait_in_a_spill_are_found() {
    let bench = Bench::new();
    let store = bench.filled();
    assert_sound(&store);
    // Another process's, which lives, and then does not.
    let other = Spill::in_dirs("jobs.db", [bench.directory.path().to_owned()]);
    let path = other.append(&letter("late")).unwrap();
    let found = assert_found(&store, QUICK, Severity::Warning, "spilling");
    assert!(found.message.starts_with("1 letters") && found.message.contains(path.to_str().unwrap()), "{found}");
    assert!(find(&store, QUICK, "spilled").is_none());
    // A store that only reads takes nothing in, and does not say so.
    let reader = bench.options().open_read_only().unwrap();
    let opens = "the next program that opens the store for writing takes them in";
    assert!(assert_found(&reader, QUICK, Severity::Warning, "spilling").advice.contains(opens));
    drop(other);
    assert_eq!(assert_found(&reader, QUICK, Severity::Warning, "spilled").advice, opens);
    drop(reader);
    assert_found(&store, QUICK, Severity::Warning, "spilled");
    assert!(find(&store, QUICK, "spilling").is_none());

    let bad = bench.directory.path().join("jobs.db.spill.1-x.ndjson.bad");
    std::fs::write(&bad, "half a li").unwrap();
    let found = assert_found(&store, QUICK, Severity::Error, "spill_bad");
    assert!(found.message.contains(bad.to_str().unwrap()), "{found}");
}

#[test]
fn a_spill_that_takes_nothing_is_found() {
    let bench = Bench::new();
    let gone = bench.directory.path().join("gone");
    let open = |dirs: &[&Path]| bench.options().spill_dirs(dirs.iter().copied()).open().unwrap();
    let store = open(&[&gone]);
    let found = assert_found(&store, QUICK, Severity::Error, "spill_unwritable");
    assert_eq!(found.subject, gone.to_str().unwrap());
    drop(store);
    // There is another one: not as bad.
    let store = open(&[&gone, bench.directory.path()]);
    assert_found(&store, QUICK, Severity::Warning, "spill_unwritable");
    std::fs::create_dir(&gone).unwrap();
    assert_sound(&store);
    assert_eq!(std::fs::read_dir(&gone).unwrap().count(), 0, "the probe is gone");
}

// D19
#[test]
fn a_store_that_fails_is_found() {
    let bench = Bench::new();
    let store = bench.filled();
    let other = Connection::open(&bench.path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let found = assert_found(&store, QUICK, Severity::Error, "store_down");
    assert!(found.message.contains("locked") && found.advice.contains("transaction"), "{found}");
    other.execute_batch("ROLLBACK").unwrap();
    bench.time.advance(Duration::from_secs(5));
    assert!(store.settle().wait(Duration::from_secs(60)).is_ok());
    assert_sound(&store);
    store.close(Duration::from_secs(60));
    assert_eq!(block(store.doctor(Checkup::full())).unwrap_err().kind(), StoreErrorKind::Closed);
}

#[test]
fn sizes_beyond_their_marks_are_found() {
    let bench = Bench::new();
    let open = |alarm: fn(&mut AlarmAt)| {
        let mut at = AlarmAt::default();
        alarm(&mut at);
        bench.options().payload_file_above(1).alarm_at(at).open().unwrap()
    };
    let store = open(|_| ());
    let mut large = letter("large");
    let random: Vec<_> = (0..9_000u32).map(|n| format!("{:08x}", n.wrapping_mul(2_654_435_761))).collect();
    large.payload = Payload::Json(format!("\"{}\"", random.concat()));
    assert!(matches!(wait(store.submit(large)), Parking::Parked { .. }));
    assert_sound(&store);
    drop(store);
    for (alarm, depth, code) in [
        ((|at| at.free_bytes = u64::MAX) as fn(&mut AlarmAt), QUICK, "disk_low"),
        (|at| at.database_bytes = 10_000, QUICK, "database_large"),
        (|at| at.payload_file_bytes = 1_000, FULL, "payload_files_large"),
    ] {
        let store = open(alarm);
        assert_found(&store, depth, Severity::Warning, code);
    }
}

// S6: what is in the log alone takes its room too
#[test]
fn a_small_file_with_a_long_log_is_found() {
    let bench = Bench::new();
    let mut at = AlarmAt::default();
    at.database_bytes = 800_000;
    let store = bench.options().alarm_at(at).open().unwrap();
    assert_sound(&store);
    // Keeps what is parked now from being moved into the file.
    let reader = Connection::open(&bench.path).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM letter").unwrap();
    for n in 0..200 {
        park(&store, &n.to_string());
    }
    let health = store.health();
    assert!(health.database_bytes < 800_000 && health.log_bytes > 800_000, "{health:?}");
    assert_found(&store, QUICK, Severity::Warning, "database_large");
}

#[test]
fn many_owed_letters_are_found() {
    let bench = Bench::new();
    let mut at = AlarmAt::default();
    at.owed_letters = 4;
    let store = bench.options().alarm_at(at).open().unwrap();
    let settle = || assert!(store.settle().wait(Duration::from_secs(60)).is_ok());
    for n in 0..4 {
        park(&store, &n.to_string());
    }
    settle();
    assert_sound(&store);
    assert_eq!(store.health().owed_letters, Some(4));
    park(&store, "one more");
    // One that is being replayed is owed too.
    block(store.claim(ClaimRequest::new(["fetch"], "w"), Actor::new("w", ""))).unwrap();
    settle();
    let found = assert_found(&store, QUICK, Severity::Warning, "owed_many");
    assert_eq!(found.message, "5 letters are owed, above 4");
    assert_eq!(store.health().owed_letters, Some(5));
    drop(store);
    let reader = bench.options().alarm_at(at).open_read_only().unwrap();
    assert_found(&reader, QUICK, Severity::Warning, "owed_many");
    assert_eq!(reader.health().owed_letters, None, "it has no writer that counts");
}

// D9: a payload that a rule altered waits until somebody knows of it
#[test]
fn letters_that_replays_pass_over_are_found() {
    let bench = Bench::new();
    let store = bench.options().redact_payloads(Redactor::standard()).open().unwrap();
    park(&store, "whole");
    assert_sound(&store);
    let mut secret = letter("secret");
    secret.payload = Payload::Json("{\"password\":\"hunter2\"}".to_owned());
    assert!(matches!(wait(store.submit(secret)), Parking::Parked { .. }));
    for depth in [QUICK, FULL] {
        let found = assert_found(&store, depth, Severity::Warning, "altered");
        assert!(found.message.starts_with("1 parked letters"), "{found}");
        assert!(found.advice.contains("edit") && found.advice.contains("force"), "{found}");
    }
}

/// What an examination says when a file is damaged.
const DAMAGE: [&str; 5] = ["counts_differ", "corrupt", "foreign_keys", "payload_files_missing", "unreadable"];

// A3: numbers that are compared are of one moment
#[test]
fn an_examination_while_others_work_finds_no_damage() {
    let bench = Bench::new();
    let options = || bench.options().busy_limit(Duration::from_secs(60)).durability(Durability::Normal);
    let other = options().open().unwrap();
    let tickets: Vec<_> = (0..1_500).map(|n| other.submit(letter(&n.to_string()))).collect();
    assert!(tickets.into_iter().all(|ticket| matches!(wait(ticket), Parking::Parked { .. })));
    let (store, reader) = (options().open().unwrap(), options().open_read_only().unwrap());
    let stop = AtomicBool::new(false);
    let moved = std::thread::scope(|scope| {
        let working = scope.spawn(|| {
            let actor = || Actor::new("w", "");
            let mut moved = 0;
            while !stop.load(Ordering::Relaxed) {
                park(&other, &format!("new {}", moved % 500));
                let claimed = block(other.claim(ClaimRequest::new(["fetch"], "w"), actor())).unwrap();
                for claimed in claimed {
                    let finish = Finish::new(claimed.row.letter_id, claimed.row.fence, ReplayOutcome::Recovered);
                    block(other.finish(finish, actor())).unwrap();
                    moved += 1;
                }
            }
            moved
        });
        let mut damage = Vec::new();
        for n in 0..50 {
            let (asked, depth) = (if n % 3 == 0 { &reader } else { &store }, if n % 5 == 0 { FULL } else { QUICK });
            damage.extend(examine(asked, depth).into_iter().filter(|finding| DAMAGE.contains(&finding.code)));
        }
        stop.store(true, Ordering::Relaxed);
        let moved = working.join().unwrap();
        assert!(damage.is_empty(), "{damage:#?}");
        moved
    });
    assert!(moved > 50, "somebody worked meanwhile: {moved}");
}

// S6
#[test]
fn a_log_that_cannot_be_emptied_is_found() {
    if let Some(path) = child_work() {
        let connection = Connection::open(path).unwrap();
        connection.execute_batch("BEGIN; SELECT count(*) FROM letter").unwrap();
        tell("reading");
        std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).unwrap();
        return;
    }
    let bench = Bench::new();
    let mut at = AlarmAt::default();
    at.log_bytes = 100_000;
    let store = bench.options().alarm_at(at).open().unwrap();
    park(&store, "first");
    let work = bench.path.to_str().unwrap();
    let mut reader = child(&[], "a_log_that_cannot_be_emptied_is_found", work);
    let mut reader = reader.stdin(Stdio::piped()).spawn().unwrap();
    assert_eq!(told(&mut reader).next().as_deref(), Some("reading"));
    for n in 0..40 {
        park(&store, &n.to_string());
    }
    let settle = || assert!(store.settle().wait(Duration::from_secs(60)).is_ok());
    settle();
    bench.time.advance(Duration::from_secs(600));
    let found = assert_found(&store, QUICK, Severity::Warning, "log_not_emptied");
    assert!(found.message.contains("for 10 min now"), "{found}");
    if cfg!(target_os = "linux") {
        assert!(found.message.contains(&format!("process {}", reader.id())), "{found}");
    }
    drop(reader.stdin.take());
    reader.wait().unwrap();
    settle();
    assert!(find(&store, QUICK, "log_not_emptied").is_none());
}

#[test]
fn settings_are_said() {
    let bench = Bench::new();
    drop(bench.filled());
    let store = bench.options().durability(Durability::Normal).open().unwrap();
    assert_found(&store, QUICK, Severity::Info, "durability");
    drop(store);
    let store = bench.options().open_read_only().unwrap();
    assert_found(&store, QUICK, Severity::Info, "read_only");
    assert!(Finding::worst(&examine(&store, FULL)) <= Some(Severity::Info));
}

// D24
#[test]
fn files_that_others_may_read_are_found() {
    let bench = Bench::new();
    let store = bench.filled();
    assert_sound(&store);
    let open = |path: &Path, mode: u32| std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    for mode in [0o640, 0o604, 0o660] {
        open(&bench.path, mode);
        let found = assert_found(&store, QUICK, Severity::Warning, "file_modes");
        assert!(found.message.contains(bench.path.to_str().unwrap()), "{found}");
    }
    open(&bench.path, 0o600);
    std::fs::write(bench.directory.path().join("jobs.db.copy"), "").unwrap();
    open(&bench.directory.path().join("jobs.db.copy"), 0o644);
    assert_found(&store, QUICK, Severity::Warning, "file_modes");
    std::fs::remove_file(bench.directory.path().join("jobs.db.copy")).unwrap();
    // Somebody else's.
    std::fs::write(bench.directory.path().join("jobs.db2"), "").unwrap();
    open(&bench.directory.path().join("jobs.db2"), 0o644);
    open(bench.directory.path(), 0o777);
    assert_found(&store, QUICK, Severity::Warning, "directory_mode");
    open(bench.directory.path(), 0o1777);
    assert_sound(&store);
}

// S7
#[test]
fn files_of_other_versions_are_said() {
    let bench = Bench::new();
    let store = bench.filled();
    bench.raw("PRAGMA user_version = 99");
    assert_found(&store, QUICK, Severity::Info, "schema_newer");
    bench.raw("PRAGMA user_version = 1");
    assert_found(&store, QUICK, Severity::Info, "schema_older");
    bench.raw("PRAGMA user_version = 2; UPDATE letter SET writer = 'worker:7@0.0.9' WHERE seq = 1");
    let found = assert_found(&store, FULL, Severity::Info, "versions");
    assert!(found.message.contains("0.0.9") && found.message.contains(env!("CARGO_PKG_VERSION")), "{found}");
}

#[test]
fn damage_is_found() {
    let bench = Bench::new();
    let store = bench.filled();
    for n in 0..200 {
        park(&store, &format!("more {n}"));
    }
    store.close(Duration::from_secs(60));
    drop(store);
    // Behind the first pages: the file opens. A file above 8 MiB is not checked then.
    let connection = Connection::open(&bench.path).unwrap();
    connection.execute_batch("CREATE TABLE ballast AS SELECT zeroblob(9000000)").unwrap();
    let root: u32 = connection
        .query_row("SELECT rootpage FROM sqlite_schema WHERE name = 'letter_group'", [], |row| row.get(0))
        .unwrap();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(connection);
    let mut bytes = std::fs::read(&bench.path).unwrap();
    let root = root as usize;
    bytes[(root - 1) * 4096..root * 4096].fill(0xA5);
    std::fs::write(&bench.path, bytes).unwrap();
    let store = bench.open();
    let found = assert_found(&store, QUICK, Severity::Error, "corrupt");
    assert!(found.subject.ends_with("jobs.db"), "{found}");
    let found = examine(&store, FULL);
    assert!(found.iter().any(|finding| finding.code == "corrupt"), "{found:#?}");
}

#[test]
fn a_large_file_is_checked_in_full_only() {
    let bench = Bench::new();
    let store = bench.filled();
    bench.raw("CREATE TABLE ballast AS SELECT zeroblob(70000000); PRAGMA wal_checkpoint(TRUNCATE)");
    assert_found(&store, QUICK, Severity::Info, "not_checked");
    assert!(find(&store, FULL, "not_checked").is_none());
}

// A3
#[test]
fn counts_that_differ_are_found() {
    let bench = Bench::new();
    let store = bench.filled();
    bench.raw("UPDATE tally SET n = n + 1");
    let found = assert_found(&store, QUICK, Severity::Error, "counts_differ");
    assert_eq!(found.message, "5 letters are `parked`, lists show 5, the summary says 6");
    bench.raw("UPDATE tally SET n = n - 1");
    assert_sound(&store);
}

#[test]
fn rows_without_a_letter_are_found() {
    let bench = Bench::new();
    let store = bench.filled();
    bench.raw("PRAGMA foreign_keys = OFF; DELETE FROM letter WHERE seq = 1");
    let found = assert_found(&store, FULL, Severity::Error, "foreign_keys");
    assert!(found.message.contains("payload") && found.message.contains("attempt"), "{found}");
}

// D18
#[test]
fn losses_are_found_for_thirty_days() {
    let bench = Bench::new();
    let store = bench.filled();
    bench.raw("INSERT INTO daily VALUES(date('now'), 'dead_letter', 'lost', 3)");
    let found = assert_found(&store, QUICK, Severity::Error, "lost");
    assert!(found.message.starts_with("3 letters"), "{found}");
    bench.time.advance(Duration::from_secs(31 * 86_400));
    assert!(find(&store, QUICK, "lost").is_none());
}

// D2: the letters of a function that was renamed
#[test]
fn kinds_that_nobody_claims_are_found() {
    let bench = Bench::new();
    let store = bench.filled();
    assert_sound(&store);
    let claimed = block(store.claim(ClaimRequest::new(["fetch_page"], "w"), Actor::new("w", ""))).unwrap();
    assert_eq!(claimed.len(), 0);
    let found = assert_found(&store, QUICK, Severity::Warning, "blocked");
    assert_eq!(found.subject, "fetch");
    assert!(found.message.contains('5'), "{found}");
    let handled = block(store.doctor(Checkup::quick().handling(["fetch", "fetch_page"]))).unwrap();
    assert!(Finding::worst(&handled) <= Some(Severity::Info), "{handled:#?}");
}

// D10: what retention will delete is said ahead, and is not alarming
#[test]
fn letters_that_retention_will_delete_are_said() {
    let bench = Bench::new();
    let days = |n: u64| Duration::from_secs(n * 86_400);
    let store = bench.options().retention(Retention::all(days(30))).open().unwrap();
    park(&store, "a");
    let claimed = block(store.claim(ClaimRequest::new(["fetch"], "w"), Actor::new("w", ""))).unwrap().pop().unwrap();
    let finish = Finish::new(claimed.row.letter_id, claimed.row.fence, ReplayOutcome::Recovered);
    block(store.finish(finish, Actor::new("w", ""))).unwrap();
    bench.time.advance(days(26));
    assert!(find(&store, QUICK, "expiring").is_none());
    bench.time.advance(days(2));
    let found = assert_found(&store, QUICK, Severity::Info, "expiring");
    assert!(found.message.starts_with("1 closed letters"), "{found}");
}

#[test]
fn payload_files_that_are_gone_are_found() {
    let bench = Bench::new();
    let store = bench.options().payload_file_above(1).open().unwrap();
    let mut large = letter("large");
    large.payload = Payload::Json(format!("\"{}\"", "x".repeat(100_000)));
    assert!(matches!(wait(store.submit(large)), Parking::Parked { .. }));
    assert_sound(&store);
    std::fs::remove_dir_all(bench.directory.path().join("jobs.db.blobs")).unwrap();
    assert_found(&store, FULL, Severity::Error, "payload_files_missing");
}

#[test]
fn a_file_that_is_gone_is_found() {
    let bench = Bench::new();
    let store = bench.filled();
    std::fs::remove_file(&bench.path).unwrap();
    // The writer makes a fresh one, as it does for a letter; the log of the old one was deleted with it or set aside.
    let found = examine(&store, QUICK);
    assert!(found.iter().all(|finding| finding.code != "store_down"), "{found:#?}");
    std::fs::remove_dir_all(bench.directory.path()).unwrap();
    let found = examine(&store, QUICK);
    for code in ["store_down", "unreadable", "spill_unwritable"] {
        assert!(found.iter().any(|finding| finding.code == code), "no {code} in {found:#?}");
    }
}

// An examination that takes long neither holds up letters nor the end
#[test]
fn the_end_breaks_an_examination_off() {
    let bench = Bench::new();
    let store = bench.filled();
    bench.raw(
        "CREATE TABLE ballast(x PRIMARY KEY, y);
         WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 300000)
         INSERT INTO ballast SELECT x, hex(randomblob(20)) FROM n; CREATE INDEX b ON ballast(y)",
    );
    let other = store.clone();
    let examining = std::thread::spawn(move || block(other.doctor(Checkup::full())));
    for n in 0..20 {
        park(&store, &format!("meanwhile {n}"));
    }
    store.close(Duration::from_secs(60));
    // It was done, or broken off; in neither case does it say that something is wrong.
    match examining.join().unwrap() {
        Ok(found) => assert!(Finding::worst(&found) <= Some(Severity::Info), "{found:#?}"),
        Err(error) => assert_eq!(error.kind(), StoreErrorKind::Closed),
    }
    assert!(!bench.directory.path().join("jobs.db-wal").exists(), "nobody has it open any more");
    drop(store);
    assert_eq!(block(bench.open().count(Filter::parked())).unwrap(), 25);
}
