#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // tests fail by panicking

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::types::Value;

use super::*;

/// Each opener by itself, as processes are.
fn writer(settings: &Settings, stamp: &str) -> Result<(Writer, OpenerLock), OpenError> {
    let lock = OpenerLock::default();
    super::writer(settings, &lock, stamp).map(|writer| (writer, lock))
}

fn reader(settings: &Settings) -> Result<(Reader, OpenerLock), OpenError> {
    let lock = OpenerLock::default();
    super::reader(settings, &lock).map(|reader| (reader, lock))
}

fn settings(path: &Path) -> Settings {
    Settings { busy_limit: Duration::from_millis(200), ..Settings::new(path.to_owned()) }
}

fn one<T: rusqlite::types::FromSql>(connection: &Connection, sql: &str) -> T {
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

// S5, S6, D24
#[test]
fn a_new_store_has_its_settings_and_its_modes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a/b/jobs.db");
    let (writer, _lock) = writer(&settings(&path), "t").unwrap();
    let c = &writer.connection;
    assert_eq!(one::<String>(c, "PRAGMA journal_mode"), "wal");
    assert_eq!(one::<i64>(c, "PRAGMA synchronous"), 2);
    assert_eq!(one::<i64>(c, "PRAGMA auto_vacuum"), 2);
    assert_eq!(one::<i64>(c, "PRAGMA application_id"), schema::APPLICATION_ID);
    assert_eq!(one::<i64>(c, "PRAGMA user_version"), schema::VERSION);
    assert_eq!(one::<i64>(c, "PRAGMA foreign_keys"), 1);
    assert_eq!(one::<i64>(c, "SELECT value FROM meta WHERE key = 'min_reader_version'"), 1);
    assert_eq!(mode(&directory.path().join("a")), 0o700);
    assert_eq!(mode(&directory.path().join("a/b")), 0o700);
    for file in [path.clone(), files::beside(&path, "-wal"), files::beside(&path, ".lock")] {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

#[test]
fn normal_durability_is_set_and_read_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let (writer, _lock) = writer(&Settings { durability: crate::Durability::Normal, ..settings(&path) }, "t").unwrap();
    assert_eq!(one::<i64>(&writer.connection, "PRAGMA synchronous"), 1);
}

// S6: an override flag takes DELETE and EXCLUSIVE
#[test]
fn the_network_override_takes_the_exclusive_mode() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let (writer, _lock) = writer(&Settings { network_file_system: true, ..settings(&path) }, "t").unwrap();
    assert_eq!(one::<String>(&writer.connection, "PRAGMA journal_mode"), "delete");
    assert_eq!(one::<String>(&writer.connection, "PRAGMA locking_mode"), "exclusive");
}

// CONTRACT 5: names and order
#[test]
fn the_views_have_the_promised_columns() {
    let directory = tempfile::tempdir().unwrap();
    let (writer, _lock) = writer(&settings(&directory.path().join("jobs.db")), "t").unwrap();
    for (view, columns) in [
        (
            "dead_letter",
            "job_id kind payload_json model error_class error_message attempts status first_seen last_seen letter_id \
             scope reason closed_at payload_size payload_encoding",
        ),
        ("attempt_ledger", "key scope status attempts first_seen last_seen"),
        ("daily_stats", "day operation counter value"),
    ] {
        let statement = writer.connection.prepare(&format!("SELECT * FROM {view}")).unwrap();
        // A list or an iterator, by the version of the library.
        let names: Vec<&str> = statement.column_names().into_iter().collect();
        assert_eq!(names.join(" "), columns);
    }
}

// D23: every table is there from the first version on
#[test]
fn schema_1_has_every_table_and_they_are_strict() {
    let directory = tempfile::tempdir().unwrap();
    let (writer, _lock) = writer(&settings(&directory.path().join("jobs.db")), "t").unwrap();
    for table in [
        "letter",
        "payload",
        "parking",
        "attempt",
        "event",
        "owner",
        "journal",
        "op",
        "op_item",
        "group_note",
        "arrival",
        "ledger",
        "daily",
        "pruned",
        "meta",
        "tally",
    ] {
        let strict: i64 = one(&writer.connection, &format!("SELECT strict FROM pragma_table_list('{table}')"));
        assert_eq!(strict, 1, "{table}");
    }
}

// S2: half-set rows are rejected
#[test]
fn checks_reject_half_set_rows() {
    let directory = tempfile::tempdir().unwrap();
    let (writer, _lock) = writer(&settings(&directory.path().join("jobs.db")), "t").unwrap();
    let insert = |state: &str, owner: &str, lease: &str, closed: &str| {
        writer.connection.execute_batch(&format!(
            "INSERT INTO letter(id, scope, kind, job_id, state, reason, disposition, error_class, error_type, \
             error_message, fingerprint, fingerprint_version, max_replays, max_crashes, owner, lease_until, \
             first_seen, last_seen, parked_at, closed_at, writer) VALUES(hex(randomblob(8)), 's', 'k', \
             hex(randomblob(8)), '{state}', 'exhausted', 'retryable', 'e', 't', 'm', 'f', 1, 5, 3, {owner}, {lease}, 1, \
             1, 1, {closed}, 'w')"
        ))
    };
    insert("parked", "NULL", "NULL", "NULL").unwrap();
    insert("replaying", "'o'", "9", "NULL").unwrap();
    insert("recovered", "NULL", "NULL", "9").unwrap();
    for (state, owner, lease, closed) in [
        ("parked", "'o'", "NULL", "NULL"),
        ("parked", "NULL", "9", "NULL"),
        ("parked", "NULL", "NULL", "9"),
        ("replaying", "NULL", "9", "NULL"),
        ("replaying", "'o'", "NULL", "NULL"),
        ("recovered", "NULL", "NULL", "NULL"),
        ("abandoned", "NULL", "NULL", "NULL"),
        ("blocked", "NULL", "NULL", "NULL"),
    ] {
        assert!(insert(state, owner, lease, closed).is_err(), "{state} {owner} {lease} {closed}");
    }
}

// D24
#[test]
fn reading_creates_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    assert!(matches!(reader(&settings(&path)), Err(OpenError::Missing(_))));
    assert!(matches!(writer(&Settings { access: Access::Write, ..settings(&path) }, "t"), Err(OpenError::Missing(_))));
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    std::fs::write(&path, "").unwrap();
    assert!(matches!(reader(&settings(&path)), Err(OpenError::Empty(_))));
    assert!(matches!(writer(&Settings { access: Access::Write, ..settings(&path) }, "t"), Err(OpenError::Empty(_))));
}

#[test]
fn a_reader_cannot_write() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let (_writer, _lock) = writer(&settings(&path), "t").unwrap();
    let (reader, _reading) = reader(&settings(&path)).unwrap();
    assert!(reader.connection.execute_batch("INSERT INTO meta VALUES('x', 1)").is_err());
}

// S7
#[test]
fn another_programs_file_is_refused_and_untouched() {
    let directory = tempfile::tempdir().unwrap();
    for (name, sql) in [("a.db", "CREATE TABLE t(x)"), ("b.db", "PRAGMA application_id = 7; CREATE TABLE t(x)")] {
        let path = directory.path().join(name);
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        let before = std::fs::read(&path).unwrap();
        assert!(matches!(writer(&settings(&path), "t"), Err(OpenError::Foreign { .. })));
        assert!(matches!(reader(&settings(&path)), Err(OpenError::Foreign { .. })));
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }
}

// S7: min_reader_version decides, not the schema version
#[test]
fn a_newer_file_opens_when_it_says_that_it_can_be_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let newer = |min_reader: i64| {
        let (writer, _lock) = writer(&settings(&path), "t").unwrap();
        writer.connection.execute("UPDATE meta SET value = ?1 WHERE key = 'min_reader_version'", [min_reader]).unwrap();
        writer.connection.pragma_update(None, "user_version", 99).unwrap();
    };
    newer(schema::VERSION);
    assert!(writer(&settings(&path), "t").is_ok() && reader(&settings(&path)).is_ok());
    newer(98);
    assert!(matches!(writer(&settings(&path), "t"), Err(OpenError::TooNew { schema: 99, min_reader: 98, .. })));
}

// S7: processes that start together run each migration once
#[test]
fn many_can_create_one_store_together() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let settings = Settings { busy_limit: Duration::from_secs(30), ..Settings::new(path.clone()) };
    std::thread::scope(|scope| {
        for _ in 0..8 {
            // Past the lock of one process, as several processes would be.
            scope.spawn(|| {
                files::create(&path).unwrap();
                connect_patiently(&settings).unwrap();
            });
        }
    });
    let (writer, _lock) = writer(&settings, "t").unwrap();
    assert_eq!(one::<i64>(&writer.connection, "SELECT count(*) FROM meta"), 1);
}

// D7: a lock on a lock file that was withdrawn meanwhile would keep nobody out
#[test]
fn a_withdrawn_lock_file_is_not_held() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let lock_file = files::beside(&path, ".lock");
    let withdrawn = AtomicBool::new(false);
    let lock = OpenerLock::default();
    lock.hold_by(&lock_file, Duration::from_secs(30), || {
        let file = std::fs::File::create(&lock_file).unwrap();
        if !withdrawn.swap(true, Ordering::Relaxed) {
            std::fs::remove_file(&lock_file).unwrap();
        }
        Ok(Some(file))
    })
    .unwrap();
    let other = OpenerLock::default();
    other.hold(&path, Duration::ZERO).unwrap();
    assert_eq!(other.exclusively(|| ()), None, "two hold different lock files");
    drop(lock);
    assert_eq!(other.exclusively(|| ()), Some(()));
}

// S7: a store that another process is making at this moment is never taken for another program's
#[test]
fn half_a_store_is_never_seen() {
    let directory = tempfile::tempdir().unwrap();
    for round in 0..100 {
        let path = directory.path().join(format!("{round}.db"));
        let settings = settings(&path);
        files::create(&path).unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let looking = Connection::open(&path).unwrap();
                looking.busy_timeout(Duration::from_secs(30)).unwrap();
                let mut ours = false;
                while !(ours && done.load(Ordering::Relaxed)) {
                    match schema::look(&looking, &settings) {
                        Ok(found) => ours = matches!(found, Found::Ours(_)),
                        Err(error) => assert_eq!(error.kind(), StoreErrorKind::Busy, "round {round}: {error}"),
                    }
                }
            });
            connect_patiently(&Settings { busy_limit: Duration::from_secs(30), ..settings.clone() }).unwrap();
            done.store(true, Ordering::Relaxed);
        });
    }
}

/// A store whose newest commit is only in its log, closed as a crash would leave it.
fn crashed_store(path: &Path) {
    let staging = path.with_extension("staging");
    let (writer, _lock) = writer(&settings(&staging), "t").unwrap();
    writer.connection.execute_batch("INSERT INTO meta VALUES('committed', 1)").unwrap();
    std::fs::copy(&staging, path).unwrap();
    std::fs::copy(files::beside(&staging, "-wal"), files::beside(path, "-wal")).unwrap();
}

// D7: the file goes with its log, and what was committed can be read from the copy
#[test]
fn a_corrupt_file_is_set_aside_with_its_log() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    std::fs::write(&path, "this is not a database at all, whatever its name says".repeat(200)).unwrap();
    std::fs::write(files::beside(&path, "-wal"), "a log").unwrap();
    let (opened, _lock) = writer(&settings(&path), "1").unwrap();
    let aside = opened.set_aside.unwrap();
    assert_eq!(aside, files::beside(&path, ".corrupt-1"));
    assert!(std::fs::read(&aside).unwrap().starts_with(b"this is not"));
    assert_eq!(std::fs::read(files::beside(&aside, "-wal")).unwrap(), b"a log");
    assert_eq!(one::<i64>(&opened.connection, "PRAGMA user_version"), schema::VERSION);
    assert_eq!(files::set_aside_files(&path), [aside]);
}

#[test]
fn a_crashed_store_is_not_corrupt() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    crashed_store(&path);
    let (writer, _lock) = writer(&settings(&path), "t").unwrap();
    assert_eq!(writer.set_aside, None);
    assert_eq!(one::<Value>(&writer.connection, "SELECT value FROM meta WHERE key = 'committed'"), Value::Integer(1));
}

// D7: whoever has the file open holds the lock shared
#[test]
fn a_corrupt_file_that_others_hold_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let other = OpenerLock::default();
    other.hold(&path, Duration::ZERO).unwrap();
    std::fs::write(&path, "no database".repeat(1000)).unwrap();
    let error = writer(&settings(&path), "t").err().unwrap();
    assert_eq!(error.kind(), StoreErrorKind::Corrupt);
    assert!(files::set_aside_files(&path).is_empty());
    drop(other);
    assert!(writer(&settings(&path), "t").unwrap().0.set_aside.is_some());
}

#[test]
fn a_damaged_page_is_found_when_a_small_file_is_opened() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    drop(writer(&settings(&path), "t").unwrap());
    let mut bytes = std::fs::read(&path).unwrap();
    for byte in &mut bytes[4096 * 3..4096 * 6] {
        *byte = 0;
    }
    std::fs::write(&path, bytes).unwrap();
    assert!(writer(&settings(&path), "t").unwrap().0.set_aside.is_some());
}

// D7: a fresh file beside a log without its file would make SQLite delete the log
#[test]
fn a_log_without_its_file_is_set_aside() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    crashed_store(&path);
    std::fs::rename(&path, directory.path().join("moved.db")).unwrap();
    let log = std::fs::read(files::beside(&path, "-wal")).unwrap();
    let (opened, _lock) = writer(&settings(&path), "1").unwrap();
    assert_eq!(opened.set_aside, Some(files::beside(&path, ".corrupt-1")));
    assert_eq!(std::fs::read(files::beside(&path, ".corrupt-1-wal")).unwrap(), log);
    assert_eq!(files::set_aside_files(&path), [files::beside(&path, ".corrupt-1-wal")]);
    // File and log together again: nothing is lost.
    std::fs::rename(directory.path().join("moved.db"), files::beside(&path, ".corrupt-1")).unwrap();
    let (salvaged, _lock) = writer(&settings(&files::beside(&path, ".corrupt-1")), "2").unwrap();
    assert_eq!(one::<Value>(&salvaged.connection, "SELECT value FROM meta WHERE key = 'committed'"), Value::Integer(1));
}
