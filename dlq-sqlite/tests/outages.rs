//! A store that fails for a while: its letters go to the spill file at once, it is asked every 5 s, and what was spilled
//! comes home (STORE D7, D8, D19).
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // tests fail by panicking

mod support;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use dlq_sqlite::SqliteStore;
use retry_runtime::dead_letter::{DeadLetterSink, DeadLetterStore, Filter, ManualClock, Parking, Spill};
use retry_runtime::error::StoreErrorKind;
use support::{assert_intact, child, child_work, letter, no_larger_than, parkings, spilled, tell, told, wait};

struct Bench {
    directory: tempfile::TempDir,
    time: ManualClock,
}

impl Bench {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), time: ManualClock::new(SystemTime::now()) }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("db/jobs.db")
    }

    /// Where letters go when the store's own directory takes none.
    fn refuge(&self) -> PathBuf {
        self.directory.path().join("refuge")
    }

    fn open(&self) -> SqliteStore {
        SqliteStore::options(self.path())
            .clock(self.time.clock())
            .busy_limit(Duration::from_millis(250))
            .reserve(false)
            .spill_dirs([self.path().parent().unwrap().to_owned(), self.refuge()])
            .open()
            .unwrap()
    }

    fn spilled(&self) -> usize {
        spilled(&[self.path().parent().unwrap(), &self.refuge()]).len()
    }

    fn pass(&self, seconds: u64, store: &SqliteStore) {
        self.time.advance(Duration::from_secs(seconds));
        settle(store);
    }
}

/// Until the store has done everything that is due.
fn settle(store: &SqliteStore) {
    assert!(store.settle().wait(Duration::from_secs(60)).is_ok());
}

fn park(store: &SqliteStore, job: &str) -> Parking {
    wait(store.submit(letter(job)))
}

#[track_caller]
fn assert_parked(parking: &Parking) {
    assert!(matches!(parking, Parking::Parked { .. }), "{parking}");
}

#[track_caller]
fn assert_spilled(parking: &Parking, kind: StoreErrorKind) {
    match parking {
        Parking::Spilled { because, .. } => assert_eq!(because.kind(), kind, "{because}"),
        other => panic!("{other}"),
    }
}

/// A second process that does something with the file until it is let go.
struct Other(Child);

impl Other {
    fn start(test: &str, work: &str, path: &Path) -> Self {
        let mut command = child(&[], test, &format!("{work} {}", path.display()));
        let mut process = command.stdin(Stdio::piped()).spawn().unwrap();
        assert_eq!(told(&mut process).next().as_deref(), Some("ready"));
        Self(process)
    }

    fn let_go(mut self) {
        drop(self.0.stdin.take());
        self.0.wait().unwrap();
    }

    /// What such a process does.
    fn run(words: &str) {
        let (work, path) = words.split_once(' ').unwrap();
        let connection = rusqlite::Connection::open(path).unwrap();
        let _lock;
        match work {
            "write" => connection.execute_batch("BEGIN IMMEDIATE").unwrap(),
            "open" => {
                let file = std::fs::File::open(format!("{path}.lock")).unwrap();
                file.lock_shared().unwrap();
                _lock = file;
            }
            other => panic!("{other}"),
        }
        tell("ready");
        // Until the parent lets go, or dies.
        std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).unwrap();
    }
}

// D19: Busy for the whole limit, then straight to the spill, one probe every 5 s, import after 10 s
#[test]
fn another_process_holds_the_lock() {
    if let Some(words) = child_work() {
        return Other::run(&words);
    }
    let bench = Bench::new();
    let store = bench.open();
    assert_parked(&park(&store, "before"));
    let other = Other::start("another_process_holds_the_lock", "write", &bench.path());

    assert_spilled(&park(&store, "a"), StoreErrorKind::Busy);
    assert!(store.is_down());

    bench.pass(5, &store);
    assert!(store.is_down(), "the probe met the lock");
    other.let_go();
    // The lock is free, and is not even tried: the next probe is not due.
    assert_spilled(&park(&store, "b"), StoreErrorKind::Busy);
    assert!(store.is_down());
    bench.pass(4, &store);
    assert!(store.is_down());
    bench.pass(1, &store);
    assert!(!store.is_down());

    assert_parked(&park(&store, "after"));
    bench.pass(9, &store);
    assert_eq!(bench.spilled(), 2, "it has not worked for 10 s");
    bench.pass(1, &store);
    assert_eq!(bench.spilled(), 0);
    assert_eq!(parkings(&bench.path()).len(), 4);
    drop(store);
    assert_intact(&bench.path());
}

// D10: clean only when no spill line waits
#[test]
fn the_summary_counts_what_waits_in_the_spill() {
    if let Some(words) = child_work() {
        return Other::run(&words);
    }
    let bench = Bench::new();
    let store = bench.open();
    let other = Other::start("the_summary_counts_what_waits_in_the_spill", "write", &bench.path());
    assert_spilled(&park(&store, "a"), StoreErrorKind::Busy);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let summary = runtime.block_on(store.summary()).unwrap();
    assert_eq!(summary.to_string(), "dead-letter: 0 parked\n     1  spilled");
    assert!(!summary.is_clean());
    other.let_go();
}

// D19: the directory is gone for a while (its file system may be away): it is not made again behind its back
#[test]
fn the_directory_is_missing() {
    let bench = Bench::new();
    let store = bench.open();
    assert_parked(&park(&store, "before"));
    let (here, away) = (bench.path().parent().unwrap().to_owned(), bench.directory.path().join("away"));
    std::fs::rename(&here, &away).unwrap();
    assert_spilled(&park(&store, "a"), StoreErrorKind::Unavailable);
    assert!(!here.exists(), "the directory was made again");
    std::fs::rename(&away, &here).unwrap();
    bench.pass(5, &store);
    bench.pass(10, &store);
    assert_parked(&park(&store, "after"));
    assert_eq!((bench.spilled(), parkings(&bench.path()).len()), (0, 3));
}

// D7: each writer compares the file's inode with the path's
#[test]
fn the_file_is_replaced() {
    let bench = Bench::new();
    let store = bench.open();
    assert_parked(&park(&store, "old"));
    let old = bench.directory.path().join("old");
    std::fs::create_dir(&old).unwrap();
    for suffix in ["", "-wal", "-shm"] {
        std::fs::rename(format!("{}{suffix}", bench.path().display()), old.join(format!("jobs.db{suffix}"))).unwrap();
    }
    assert_parked(&park(&store, "new"));
    assert_parked(&park(&store, "newer"));
    drop(store);
    assert_eq!((parkings(&bench.path()).len(), parkings(&old.join("jobs.db")).len()), (2, 1));
    assert_intact(&bench.path());
    assert_intact(&old.join("jobs.db"));
}

fn spoil(path: &Path) {
    std::fs::write(path, "not a database, whatever its name says".repeat(1_000)).unwrap();
}

// D7: set aside, and parking goes on
#[test]
fn the_file_is_corrupt() {
    let bench = Bench::new();
    drop(bench.open());
    spoil(&bench.path());
    let store = bench.open();
    assert_parked(&park(&store, "a"));
    let aside = store.set_aside_files();
    assert_eq!(aside.len(), 1);
    assert!(std::fs::read(&aside[0]).unwrap().starts_with(b"not a database"));
}

// D7: while others have it open it is left alone, and letters are spilled
#[test]
fn the_file_is_corrupt_and_others_have_it_open() {
    if let Some(words) = child_work() {
        return Other::run(&words);
    }
    let bench = Bench::new();
    drop(bench.open());
    let other = Other::start("the_file_is_corrupt_and_others_have_it_open", "open", &bench.path());
    spoil(&bench.path());
    let store = bench.open();
    assert_spilled(&park(&store, "a"), StoreErrorKind::Corrupt);
    assert!(store.set_aside_files().is_empty());
    bench.pass(5, &store);
    assert!(store.is_down() && store.set_aside_files().is_empty());
    other.let_go();
    bench.pass(5, &store);
    bench.pass(10, &store);
    assert_eq!((store.is_down(), store.set_aside_files().len()), (false, 1));
    assert_eq!((bench.spilled(), parkings(&bench.path()).len()), (0, 1));
}

// D8: the import fails; nothing is forgotten, and nothing is taken in twice
#[test]
fn the_import_fails_half_way() {
    if let Some(words) = child_work() {
        let store = SqliteStore::options(&words).reserve(false).open().unwrap();
        settle(&store);
        return tell(if store.is_down() { "down" } else { "up" });
    }
    let bench = Bench::new();
    drop(bench.open());
    let directory = bench.path().parent().unwrap().to_owned();
    let spill = Spill::beside(bench.path());
    let letters: Vec<_> = (0..1_200).map(|n| letter(&n.to_string())).collect();
    for letter in &letters {
        spill.append(letter).unwrap();
    }
    drop(spill);
    // Room for the first batch of 500 in the log, not for all; and for the marks of what was read.
    let around = no_larger_than(2_900_000);
    let around: Vec<&str> = around.iter().map(String::as_str).collect();
    let command = child(&around, "the_import_fails_half_way", bench.path().to_str().unwrap());
    assert_eq!(support::run(command), ["down"], "the fault has to bite");
    let there = parkings(&bench.path()).len();
    assert!(there > 0 && there < 1_200, "and in the middle: {there}");
    assert_eq!(spilled(&[&directory]).len(), 1_200, "the file waits as a whole");

    let store = bench.open();
    settle(&store);
    drop(store);
    assert_eq!((parkings(&bench.path()).len(), spilled(&[&directory]).len()), (1_200, 0));
    let connection = rusqlite::Connection::open(bench.path()).unwrap();
    let sum: (i64, i64) = connection
        .query_row("SELECT count(*), sum(parkings) FROM letter", [], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap();
    assert_eq!(sum, (1_200, 1_200), "no letter is counted twice");
    assert_intact(&bench.path());
}

// D8: a torn line goes to `.bad`, loudly, and the rest is imported
#[test]
fn a_torn_line_does_not_stop_the_others() {
    let bench = Bench::new();
    drop(bench.open());
    let spill = Spill::beside(bench.path());
    let file = spill.append(&letter("whole")).unwrap();
    drop(spill);
    let whole = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{whole}{}", &whole[..whole.len() / 2])).unwrap();
    let store = bench.open();
    settle(&store);
    assert_eq!(parkings(&bench.path()).len(), 1);
    assert_eq!(std::fs::read_to_string(format!("{}.bad", file.display())).unwrap().trim(), &whole[..whole.len() / 2]);
    assert!(Path::new(&format!("{}.done", file.display())).exists() && !file.exists());
}

// D1: a letter that is in the store and in the spill is one letter
#[test]
fn what_is_known_is_not_parked_again() {
    let bench = Bench::new();
    let store = bench.open();
    let twice = letter("a");
    let first = wait(store.submit(twice.clone()));
    drop(store);
    Spill::beside(bench.path()).append(&twice).unwrap();
    let store = bench.open();
    settle(&store);
    assert_eq!(bench.spilled(), 0);
    assert_eq!(wait(store.submit(twice)).to_string(), first.to_string(), "the first answer again");
    let connection = rusqlite::Connection::open(bench.path()).unwrap();
    let counts: (i64, i64) = connection
        .query_row("SELECT parkings, attempts FROM letter", [], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap();
    assert_eq!(counts, (1, 3));
}

// D7: only the database file is moved away, in the middle of the run: what was committed to the log alone is kept
#[test]
fn the_file_alone_is_moved_away() {
    let bench = Bench::new();
    let store = bench.open();
    for job in 0..20 {
        assert_parked(&park(&store, &job.to_string()));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert_eq!(runtime.block_on(store.count(Filter::all())).unwrap(), 20, "and somebody reads it");
    std::fs::rename(bench.path(), bench.directory.path().join("moved")).unwrap();
    assert_parked(&park(&store, "new"));
    let aside = store.set_aside_files();
    assert_eq!(aside.len(), 1);
    drop(store);
    assert_eq!(parkings(&bench.path()).len(), 1);
    // File and log together again.
    let log = aside[0].to_str().unwrap();
    std::fs::rename(bench.directory.path().join("moved"), log.strip_suffix("-wal").unwrap()).unwrap();
    assert_eq!(parkings(Path::new(log.strip_suffix("-wal").unwrap())).len(), 20);
}

// D7: damage that shows while the store runs, with a reader open
#[test]
fn the_file_becomes_corrupt() {
    let bench = Bench::new();
    let store = bench.open();
    assert_parked(&park(&store, "before"));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert_eq!(runtime.block_on(store.count(Filter::all())).unwrap(), 1);
    // By another process: this one must not open and close the file. The log is emptied first, so that the file counts.
    let script = "sqlite3 \"$0\" 'PRAGMA wal_checkpoint(TRUNCATE)' > /dev/null && \
                  dd if=/dev/zero of=\"$0\" bs=4096 seek=1 count=40 conv=notrunc status=none && \
                  sqlite3 \"$0\" 'PRAGMA user_version = 1'";
    let status = Command::new("sh").args(["-c", script]).arg(bench.path()).status().unwrap();
    assert!(status.success());
    // It shows when the log is written, so whether it was done is not known.
    assert_spilled(&park(&store, "a"), StoreErrorKind::Unknown);
    bench.pass(5, &store);
    bench.pass(10, &store);
    assert!(!store.is_down());
    assert_eq!((store.set_aside_files().len(), bench.spilled()), (1, 0));
    assert_eq!(parkings(&bench.path()).len(), 1);
}
