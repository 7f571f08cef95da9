//! The store in the field: readers that keep its log from being emptied, files that grow, disks that fill up (STORE S6).
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // tests fail by panicking

mod support;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, Once};
use std::time::{Duration, SystemTime};

use dlq_sqlite::{AlarmAt, SqliteStore};
use retry_runtime::counters::DailyCounters;
use retry_runtime::dead_letter::{
    Checkup, DeadLetterSink, DeadLetterStore, Doctor, Filter, ManualClock, Order, PageRequest, Parking, Payload,
    Severity,
};
use retry_runtime::observe::set_listener;
use rusqlite::Connection;
use support::{child, child_work, letter, tell, told, wait};

static NOTICES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// What was said so far with this word in it, about this file.
fn said(word: &str, about: &Path) -> Vec<String> {
    let about = about.display().to_string();
    let notices = NOTICES.lock().unwrap();
    notices.iter().filter(|notice| notice.contains(word) && notice.contains(&about)).cloned().collect()
}

struct Bench {
    _directory: tempfile::TempDir,
    path: PathBuf,
    time: ManualClock,
}

impl Bench {
    fn new() -> Self {
        static LISTENING: Once = Once::new();
        LISTENING.call_once(|| {
            set_listener(|notice| NOTICES.lock().unwrap().push(notice.to_string()));
        });
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("jobs.db");
        Self { _directory: directory, path, time: ManualClock::new(SystemTime::now()) }
    }

    fn open(&self, alarm: impl FnOnce(&mut AlarmAt)) -> SqliteStore {
        let mut at = AlarmAt::default();
        alarm(&mut at);
        SqliteStore::options(&self.path).clock(self.time.clock()).alarm_at(at).reserve(false).open().unwrap()
    }
}

fn block<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn settle(store: &SqliteStore) {
    assert!(store.settle().wait(Duration::from_secs(60)).is_ok());
}

fn park(store: &SqliteStore, jobs: std::ops::Range<usize>, payload: usize) {
    let tickets: Vec<_> = jobs
        .map(|n| {
            let mut letter = letter(&n.to_string());
            letter.payload = Payload::Json(format!("\"{}\"", "x".repeat(payload)));
            store.submit(letter)
        })
        .collect();
    for ticket in tickets {
        assert!(matches!(wait(ticket), Parking::Parked { .. }));
    }
}

// S6: checkpoint starvation. Said once a growth step, with the culprit's name where the system tells it.
#[test]
fn a_reader_that_never_ends_is_named() {
    const MARK: u64 = 1 << 20;
    if let Some(path) = child_work() {
        let connection = Connection::open(path).unwrap();
        connection.execute_batch("BEGIN; SELECT count(*) FROM letter").unwrap();
        tell("reading");
        std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).unwrap();
        return;
    }
    let bench = Bench::new();
    let store = bench.open(|at| at.log_bytes = MARK);
    park(&store, 0..10, 100);
    settle(&store);
    let work = bench.path.to_str().unwrap();
    let mut reader = child(&[], "a_reader_that_never_ends_is_named", work).stdin(Stdio::piped()).spawn().unwrap();
    assert_eq!(told(&mut reader).next().as_deref(), Some("reading"));

    park(&store, 10..60, 30_000);
    settle(&store);
    settle(&store);
    let first = said("log_not_emptied", &bench.path);
    assert_eq!(first.len(), 1, "{first:?}");
    if cfg!(target_os = "linux") {
        assert!(first[0].contains(&format!("process {}", reader.id())), "{first:?}");
    }
    let health = store.health();
    assert_eq!(health.log_stuck_since, Some(bench.time.now()));
    let checkpoint = health.last_checkpoint.unwrap();
    assert!(!checkpoint.emptied && checkpoint.log_pages > checkpoint.moved_pages, "{checkpoint:?}");
    assert!(health.log_bytes > MARK);

    bench.time.advance(Duration::from_secs(60));
    park(&store, 60..240, 30_000);
    settle(&store);
    settle(&store);
    assert_eq!(
        said("log_not_emptied", &bench.path).len(),
        2,
        "it has grown to four times as much, which is one step more"
    );

    drop(reader.stdin.take());
    reader.wait().unwrap();
    settle(&store);
    let health = store.health();
    assert_eq!((health.log_stuck_since, health.log_bytes), (None, 0));
    assert!(health.last_checkpoint.unwrap().emptied);
}

// S6: our own readers read page by page, and hold nothing between two pages
#[test]
fn a_long_list_does_not_keep_the_log() {
    const MARK: u64 = 256 << 10;
    let bench = Bench::new();
    let store = bench.open(|at| at.log_bytes = MARK);
    park(&store, 0..400, 100);
    let mut page = PageRequest::first(Order::LongestUnseenFirst, 10);
    let (mut listed, mut longest) = (0, 0);
    for n in 0.. {
        let found = block(store.list(Filter::all(), page)).unwrap();
        listed += found.rows.len();
        if n < 20 {
            park(&store, 400 + n * 20..420 + n * 20, 3_000);
        }
        settle(&store);
        let health = store.health();
        longest = longest.max(health.log_bytes);
        assert_eq!(health.log_stuck_since, None, "page {n}");
        let Some(next) = found.next else { break };
        page = PageRequest::first(Order::LongestUnseenFirst, 10).after(Some(next));
    }
    assert_eq!(listed, 800, "what was parked meanwhile comes last");
    assert!(longest <= MARK, "the log was emptied between two pages: {longest}");
    assert_eq!(said("log_not_emptied", &bench.path), [""; 0]);
}

// F93, F96: said when the mark is passed, at each doubling and after a day, and never in a flood
#[test]
fn a_file_that_grows_is_said_at_each_doubling() {
    let bench = Bench::new();
    let store = bench.open(|at| at.database_bytes = 1 << 20);
    let mut sizes = Vec::new();
    for n in 0..30 {
        park(&store, n * 5..n * 5 + 5, 40_000);
        settle(&store);
        // What is in the log alone is not in the file.
        Connection::open(&bench.path).unwrap().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        settle(&store);
        sizes.push(store.health().database_bytes);
    }
    let said = || said("database_large", &bench.path).len();
    let steps = (*sizes.last().unwrap() >> 20).ilog2() as usize + 1;
    assert!(steps >= 3, "{sizes:?}");
    assert_eq!(said(), steps, "{sizes:?}");
    bench.time.advance(Duration::from_secs(86_400));
    settle(&store);
    settle(&store);
    assert_eq!(said(), steps + 1);
}

#[test]
fn a_disk_without_room_is_said() {
    let bench = Bench::new();
    let store = bench.open(|at| at.free_bytes = u64::MAX);
    for _ in 0..10 {
        settle(&store);
    }
    let found = said("disk_low", &bench.path);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(store.health().free_bytes.is_some_and(|free| free > 0));
}

// F95: numbers are there also when they are 0
#[test]
fn a_sound_store_says_so_in_numbers() {
    let bench = Bench::new();
    let store = bench.open(|_| ());
    park(&store, 0..1, 10);
    settle(&store);
    let health = store.health();
    assert_eq!((health.spilled, health.set_aside, health.waiting, health.overflowed), (Some(0), 0, 0, 0));
    assert!(health.down_since.is_none() && health.down_because.is_none() && health.log_stuck_since.is_none());
    assert!(health.database_bytes > 0);
}

#[test]
fn many_owed_letters_are_said() {
    let bench = Bench::new();
    let store = bench.open(|at| at.owed_letters = 4);
    park(&store, 0..4, 10);
    settle(&store);
    let owed = |n: u32| {
        let text = format!("owed_many: {n} letters are owed, above 4");
        NOTICES.lock().unwrap().iter().filter(|notice| notice.ends_with(&text)).count()
    };
    assert_eq!(owed(4), 0);
    park(&store, 4..5, 10);
    settle(&store);
    settle(&store);
    assert_eq!(owed(5), 1);
}

// S6: what pruning frees is given back, since auto_vacuum was set before the first table
#[test]
fn deleted_letters_give_their_room_back() {
    let bench = Bench::new();
    let store = bench.open(|_| ());
    park(&store, 0..200, 40_000);
    settle(&store);
    let emptied = || {
        // What is in the log alone is not in the file.
        Connection::open(&bench.path).unwrap().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        store.health().database_bytes
    };
    let full = emptied();
    // What retention does.
    let other = Connection::open(&bench.path).unwrap();
    other.execute_batch("PRAGMA foreign_keys = ON; DELETE FROM letter WHERE seq > 10").unwrap();
    drop(other);
    settle(&store);
    let left = emptied();
    assert!(full > 8_000_000 && left < 3_000_000, "{full} {left}");
    assert_eq!(block(store.count(Filter::parked())).unwrap(), 10);
    let verdict = |c: &Connection| c.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0)).unwrap();
    assert_eq!(verdict(&Connection::open(&bench.path).unwrap()), "ok");
}

// S6: the slow mode for network file systems: one process, one connection's lock, and everything works all the same
#[test]
fn the_network_mode_parks_and_reads() {
    let bench = Bench::new();
    let options = || {
        let options = SqliteStore::options(&bench.path).clock(bench.time.clock()).network_file_system(true);
        options.busy_limit(Duration::from_millis(200)).reserve(false)
    };
    let store = options().open().unwrap();
    park(&store, 0..3, 10);
    assert_eq!(block(store.count(Filter::parked())).unwrap(), 3);
    assert_eq!(block(store.list(Filter::all(), PageRequest::default())).unwrap().rows.len(), 3);
    let found = block(store.doctor(Checkup::full())).unwrap();
    let codes: Vec<_> = found.iter().map(|finding| (finding.severity, finding.code)).collect();
    assert_eq!(codes, [(Severity::Warning, "network_override")], "{found:#?}");
    assert!(store.add("archive", "n", 2).wait(Duration::from_secs(60)).unwrap().is_ok());
    assert_eq!(block(store.day("archive".into(), store.today())).unwrap()["n"], 2);
    drop(store);
    let store = options().open().unwrap();
    assert_eq!(block(store.summary()).unwrap().total_parked(), 3);
}
