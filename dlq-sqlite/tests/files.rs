//! Which files are there: after a clean end, after a refused opening, while others open the same path, and what is said of
//! files that cannot be used.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // tests fail by panicking

mod support;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use dlq_sqlite::{OpenError, SqliteStore};
use retry_runtime::dead_letter::{DeadLetterSink, DeadLetterStore, Filter, Parking};
use retry_runtime::error::StoreErrorKind;
use retry_runtime::observe::set_listener;
use rusqlite::Connection;
use support::{letter, parkings, spilled, tell, told, wait};

fn block<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// The letters in a copy of the file alone, as `cp` makes it.
fn letters_of_a_copy(path: &Path) -> i64 {
    let copy = beside(path, ".copy");
    std::fs::copy(path, &copy).unwrap();
    let connection = Connection::open(&copy).unwrap();
    connection.query_row("SELECT count(*) FROM dead_letter", [], |row| row.get(0)).unwrap()
}

// What a clean end leaves is one file: also where the store was asked something
#[test]
fn a_closed_store_is_its_file_alone() {
    let directory = tempfile::tempdir().unwrap();
    for by_dropping in [false, true] {
        let path = directory.path().join(format!("{by_dropping}.db"));
        let store = SqliteStore::options(&path).reserve(false).open().unwrap();
        for n in 0..20 {
            assert!(matches!(wait(store.submit(letter(&n.to_string()))), Parking::Parked { .. }));
        }
        assert_eq!(block(store.summary()).unwrap().total_parked(), 20);
        let kept = if by_dropping {
            drop(store);
            None
        } else {
            store.close(Duration::from_secs(60));
            Some(store)
        };
        assert!(!beside(&path, "-wal").exists() && !beside(&path, "-shm").exists(), "{:?}", names(directory.path()));
        assert_eq!(letters_of_a_copy(&path), 20);
        drop(kept);
    }
}

// The same while another program still has the file open: the log stays, and nothing is in it alone
#[test]
fn a_closed_store_is_whole_in_its_file_also_while_others_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let store = SqliteStore::options(&path).reserve(false).open().unwrap();
    assert!(matches!(wait(store.submit(letter("a"))), Parking::Parked { .. }));
    let reading = SqliteStore::options(&path).open_read_only().unwrap();
    assert_eq!(block(reading.count(Filter::parked())).unwrap(), 1);
    store.close(Duration::from_secs(60));
    assert_eq!(letters_of_a_copy(&path), 1);
    assert_eq!(block(reading.count(Filter::parked())).unwrap(), 1);
}

// S7: processes that make one store together all get it
#[test]
fn many_processes_open_one_fresh_path() {
    const CHILDREN: usize = 4;
    const ROUNDS: usize = 15;
    if let Some(directory) = support::child_work() {
        let directory = PathBuf::from(directory);
        for round in 0..ROUNDS {
            tell("ready");
            let path = directory.join(format!("{round}.db"));
            while !directory.join(format!("{round}.go")).exists() {
                std::thread::yield_now();
            }
            let store = SqliteStore::options(&path).reserve(false).open().unwrap_or_else(|error| panic!("{error}"));
            assert!(matches!(wait(store.submit(letter("a"))), Parking::Parked { .. }));
        }
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let work = directory.path().to_str().unwrap();
    let mut children: Vec<_> = (0..CHILDREN)
        .map(|_| support::child(&[], "many_processes_open_one_fresh_path", work).spawn().unwrap())
        .collect();
    let mut told: Vec<_> = children.iter_mut().map(told).collect();
    for round in 0..ROUNDS {
        for child in &mut told {
            // One that failed says nothing more; its status tells.
            let _ready = child.next();
        }
        std::fs::write(directory.path().join(format!("{round}.go")), "").unwrap();
    }
    // To their ends: a harness that cannot print fails.
    for mut told in told {
        assert_eq!(told.next(), None);
    }
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    for round in 0..ROUNDS {
        assert_eq!(parkings(&directory.path().join(format!("{round}.db"))).len(), CHILDREN);
    }
}

// D24: what was refused is left as it was found
#[test]
fn a_refused_path_is_left_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let foreign = directory.path().join("foreign.db");
    Connection::open(&foreign).unwrap().execute_batch("CREATE TABLE t(x)").unwrap();
    std::fs::create_dir(directory.path().join("directory")).unwrap();
    let before = names(directory.path());
    let long = "x".repeat(300);
    for path in ["foreign.db", "directory", "new/and/deep/\0.db", &format!("new/and/deep/{long}")] {
        let error = SqliteStore::open(directory.path().join(path)).err().unwrap();
        assert_eq!(names(directory.path()), before, "{error}");
    }
    // What somebody else has locked stays.
    std::fs::write(beside(&foreign, ".lock"), "").unwrap();
    let before = names(directory.path());
    assert!(SqliteStore::open(&foreign).is_err());
    assert_eq!(names(directory.path()), before);
}

#[test]
fn a_store_in_memory_is_refused() {
    for path in [":memory:", ""] {
        let options = || SqliteStore::options(path);
        for refused in [options().open(), options().create(false).open(), options().open_read_only()] {
            let error = refused.err().unwrap();
            assert!(matches!(error, OpenError::NoFile(_)), "{error}");
            assert_eq!(error.kind(), StoreErrorKind::Invalid);
            assert!(error.to_string().contains("MemoryStore"), "{error}");
        }
    }
    assert!(!Path::new(":memory:").exists() && !Path::new(":memory:.lock").exists());
}

// The operating system's reason is in the message: most programs print no more than that
#[test]
fn messages_give_the_systems_reason() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("file"), "").unwrap();
    let long = "x".repeat(252);
    for (path, reason) in [("file/jobs.db", "File exists"), (&*long, "File name too long")] {
        let error = SqliteStore::open(directory.path().join(path)).err().unwrap();
        assert!(matches!(error, OpenError::Io { .. }));
        assert!(error.to_string().contains(reason), "{error}");
        assert!(std::error::Error::source(&error).is_some());
    }
}

// D7: reading says what is wrong with the file, and with which
#[test]
fn a_file_that_is_no_database_is_said_to_be_none() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    for text in ["hello", &"no database at all".repeat(1_000)] {
        std::fs::write(&path, text).unwrap();
        let error = SqliteStore::options(&path).open_read_only().err().unwrap();
        assert_eq!(error.to_string(), format!("`{}` is not a SQLite database", path.display()));
        assert_eq!(error.kind(), StoreErrorKind::Corrupt);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
}

// D7: what never was a store is no corrupt one: a mistyped path costs nobody a file
#[test]
fn a_file_of_somebody_else_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notes.txt");
    for text in ["hello", &"no database at all\n".repeat(1_000), &"x".repeat(8_192)] {
        std::fs::write(&path, text).unwrap();
        for _ in 0..2 {
            let error = SqliteStore::options(&path).reserve(false).open().err().unwrap();
            assert!(matches!(error, OpenError::OtherFile(_)), "{error}");
            assert!(error.to_string().contains("notes.txt"), "{error}");
            assert_eq!(error.kind(), StoreErrorKind::Invalid);
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is left beside it");
    }
    // what damage makes of a store is another matter, with or without its lock file
    for zeros in [0, 4_096, 40_960] {
        std::fs::write(&path, vec![0; zeros]).unwrap();
        drop(SqliteStore::options(&path).reserve(false).open().unwrap());
        for entry in std::fs::read_dir(directory.path()).unwrap() {
            std::fs::remove_file(entry.unwrap().path()).unwrap();
        }
    }
}

// D7: what was set aside is said until it is salvaged
#[test]
fn the_summary_counts_files_that_were_set_aside() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    drop(SqliteStore::options(&path).reserve(false).open().unwrap());
    std::fs::write(&path, "no database at all".repeat(1_000)).unwrap();
    let store = SqliteStore::options(&path).reserve(false).open().unwrap();
    let summary = block(store.summary()).unwrap();
    assert_eq!(summary.set_aside, 1);
    assert_eq!(summary.to_string(), "dead-letter: clean (0 parked)\n     1  file(s) set aside as corrupt");
    drop(store);
    let store = SqliteStore::options(&path).open_read_only().unwrap();
    assert_eq!(block(store.summary()).unwrap().set_aside, 1);
    std::fs::remove_file(&store.set_aside_files()[0]).unwrap();
    assert_eq!(block(store.summary()).unwrap().set_aside, 0);
}

// D8: a store that is closed while it takes spilled letters in has taken all of a batch, and its file with it, or none; and
// in neither case is anything wrong
#[test]
fn a_short_life_takes_spilled_letters_in_without_an_alarm() {
    static ALARMS: Mutex<Vec<String>> = Mutex::new(Vec::new());
    set_listener(|notice| {
        if notice.name == "spill_import_failed" {
            ALARMS.lock().unwrap().push(notice.to_string());
        }
    });
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let open = || SqliteStore::options(&path).reserve(false).open().unwrap();
    for round in 1..=10 {
        let store = open();
        store.close(Duration::from_secs(60));
        assert!(matches!(wait(store.submit(letter(&round.to_string()))), Parking::Spilled { .. }));
        let store = open();
        // Wakes the writer, which finds the spill; the end comes while it is at it.
        drop(store.settle());
        while store.backlog().0 > 0 {
            std::thread::yield_now();
        }
        drop(store);
        let waiting = spilled(&[directory.path()]);
        assert!(waiting.is_disjoint(&parkings(&path)), "taken in, and its file still waits");
    }
    assert_eq!(*ALARMS.lock().unwrap(), [""; 0]);
    let store = open();
    assert!(store.settle().wait(Duration::from_secs(60)).is_ok());
    assert_eq!((parkings(&path).len(), spilled(&[directory.path()]).len()), (10, 0));
}

// A log needs a `-shm` file, and this user may not make one
#[test]
fn reading_where_nothing_can_be_written_says_what_is_missing() {
    if let Some(path) = support::child_work() {
        match SqliteStore::options(path).open_read_only() {
            Ok(store) => tell(&format!("letters {}", block(store.count(Filter::parked())).unwrap())),
            Err(error) => tell(&format!("{:?} {error}", error.kind())),
        }
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let store = SqliteStore::options(&path).reserve(false).open().unwrap();
    assert!(matches!(wait(store.submit(letter("a"))), Parking::Parked { .. }));
    let look = || {
        let around = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
        let test = "reading_where_nothing_can_be_written_says_what_is_missing";
        // Without the right to become somebody else, this user is the one who may not write.
        let around = if is_root(directory.path()) { &around[..] } else { &[] };
        support::run(support::child(around, test, path.to_str().unwrap()))
    };
    let readable = |mode: u32| std::fs::set_permissions(directory.path(), Permissions::from_mode(mode)).unwrap();
    readable(0o555);
    for suffix in ["", "-wal", "-shm", ".lock"] {
        std::fs::set_permissions(beside(&path, suffix), Permissions::from_mode(0o644)).unwrap();
    }
    assert_eq!(look(), ["letters 1"], "the files of the program that has it open are enough");
    readable(0o755);
    drop(store);
    readable(0o555);
    let said = look();
    readable(0o755);
    assert!(said[0].contains("needs a directory that may be written") && said[0].contains("-shm"), "{said:?}");
    assert!(said[0].contains(path.to_str().unwrap()), "{said:?}");
}

/// Whoever owns what it makes as user 0.
fn is_root(made: &Path) -> bool {
    std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(made).unwrap()) == 0
}
