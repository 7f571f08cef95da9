//! Real files, really damaged: what comes home of them, and what is said of the rest.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // tests fail by panicking

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use dlq_sqlite::{Salvaged, SqliteStore};
use retry_runtime::counters::{DailyCounters, Thresholds};
use retry_runtime::dead_letter::{
    Actor, DeadLetterSink, DeadLetterStore, Exporter, Filter, ImportReport, Importer, LetterDetail, ManualClock,
    PageRequest, Parking, Payload,
};
use retry_runtime::ledger::{AttemptLedger, Begin, End, LedgerKey, LedgerStatus};
use rusqlite::Connection;
use support::{letter, wait};

fn block<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn actor() -> Actor {
    Actor::new("ada", "the disk")
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", path.display()))
}

fn park(store: &SqliteStore, job: &str) {
    assert!(matches!(wait(store.submit(letter(job))), Parking::Parked { .. }));
}

/// A store with letters, a ledger and counters, closed: everything is in its file.
fn filled(path: &Path, letters: u32) {
    let store = SqliteStore::options(path).reserve(false).open().unwrap();
    for n in 0..letters {
        park(&store, &format!("job-{n}"));
    }
    for n in 0..40 {
        let key = LedgerKey::new("archive", format!("https://example.org/{n}"));
        let Begin::Go { token, .. } = block(store.begin(key.clone(), 5)).unwrap() else { unreachable!() };
        block(store.end(key, token, if n % 2 == 0 { End::Ok } else { End::Failed { next_at: None } })).unwrap();
    }
    block(store.add("archive", "fallback_bytes", 700)).unwrap();
    block(store.set_threshold("archive".into(), "fallback_bytes".into(), 500, actor())).unwrap();
    store.close(Duration::from_secs(30));
}

fn overwrite(path: &Path, at: usize, bytes: usize) {
    let mut file = fs::read(path).unwrap();
    file[at..at + bytes].fill(0xA5);
    fs::write(path, file).unwrap();
}

struct Home {
    _directory: tempfile::TempDir,
    saved: Salvaged,
    from: SqliteStore,
}

fn salvaged(path: &Path) -> Home {
    let before = fs::read(path).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let saved = SqliteStore::salvage(path, directory.path()).unwrap();
    assert_eq!(fs::read(path).unwrap(), before, "the damaged file was touched");
    let from = SqliteStore::options(&saved.path).open_read_only().unwrap();
    Home { _directory: directory, saved, from }
}

impl Home {
    /// As the command does it.
    fn bring(&self, store: &SqliteStore) -> ImportReport {
        block(async {
            let mut exporter = Exporter::new(self.from.clone(), Filter::all());
            let mut importer = Importer::new(store.clone(), actor());
            while let Some(lines) = exporter.next().await.unwrap() {
                for line in lines.lines() {
                    importer.line(line.as_bytes()).await.unwrap();
                }
            }
            importer.finish().await.unwrap()
        })
    }

    fn jobs(&self) -> BTreeSet<String> {
        let (mut jobs, mut page) = (BTreeSet::new(), PageRequest::default());
        loop {
            let found = block(self.from.list(Filter::all(), page.clone())).unwrap();
            jobs.extend(found.rows.into_iter().map(|row| row.job_id));
            page.after = found.next;
            if page.after.is_none() {
                return jobs;
            }
        }
    }
}

fn entry(store: &SqliteStore, n: u32) -> (LedgerStatus, u32) {
    let key = LedgerKey::new("archive", format!("https://example.org/{n}"));
    let entry = block(store.entry(key)).unwrap().unwrap();
    (entry.status, entry.attempts)
}

fn counted(store: &SqliteStore) -> u64 {
    let day = block(store.day("archive".into(), store.today())).unwrap();
    day.get("fallback_bytes").copied().unwrap_or(0)
}

// The first page says what the file is: without it SQLite reads nothing.
#[test]
fn a_damaged_first_page_costs_nothing() {
    for bytes in [16, 100, 4_096] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("jobs.db");
        filled(&path, 300);
        overwrite(&path, 0, bytes);
        let read =
            Connection::open(&path).unwrap().query_row("SELECT count(*) FROM letter", [], |row| row.get::<_, u32>(0));
        assert!(read.is_err(), "{bytes}: SQLite itself can read it");
        let home = salvaged(&path);
        assert_eq!((home.saved.letters, home.saved.of, home.saved.header_mended), (300, Some(300), true), "{bytes}");
        assert_eq!((home.saved.ledger, home.saved.counters), (40, 1), "{bytes}");
        assert_eq!(home.saved.losses(), [""; 0], "{bytes}");
        assert_eq!(home.jobs().len(), 300);
    }
}

#[test]
fn what_is_no_store_is_not_made_one() {
    let directory = tempfile::tempdir().unwrap();
    let into = || tempfile::tempdir().unwrap();
    let text = directory.path().join("text");
    fs::write(&text, "nothing of ours\n".repeat(2_000)).unwrap();
    let error = SqliteStore::salvage(&text, into().path()).unwrap_err().to_string();
    assert!(error.contains("cannot read anything of"), "{error}");
    let other = directory.path().join("other.db");
    Connection::open(&other).unwrap().execute_batch("CREATE TABLE cats(name); INSERT INTO cats VALUES('Tom')").unwrap();
    let error = SqliteStore::salvage(&other, into().path()).unwrap_err().to_string();
    assert!(error.contains("is no store"), "{error}");
    overwrite(&other, 0, 100);
    let error = SqliteStore::salvage(&other, into().path()).unwrap_err().to_string();
    assert!(error.contains("cannot read anything of"), "{error}");
}

/// A store that died with most of its letters in the log: a copy of both, taken while it lives.
fn died(path: &Path, letters: u32) -> PathBuf {
    let store = SqliteStore::options(path).reserve(false).open().unwrap();
    for n in 0..letters {
        park(&store, &format!("job-{n}"));
    }
    let copy = beside(path, ".copy");
    for suffix in ["", "-wal"] {
        fs::copy(beside(path, suffix), beside(&copy, suffix)).unwrap();
    }
    assert!(fs::metadata(beside(&copy, "-wal")).unwrap().len() > 100_000, "the log is too short for this test");
    copy
}

fn by_sqlite(path: &Path) -> u64 {
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("jobs.db");
    for suffix in ["", "-wal"] {
        fs::copy(beside(path, suffix), beside(&copy, suffix)).unwrap();
    }
    let count =
        Connection::open(&copy).unwrap().query_row("SELECT count(*) FROM letter", [], |row| row.get::<_, u32>(0));
    count.map_or(0, u64::from)
}

// SQLite reads a log up to the first damaged page, and says nothing of what is behind it.
#[test]
fn of_a_damaged_log_every_page_that_is_well_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = died(&directory.path().join("jobs.db"), 120);
    assert_eq!(by_sqlite(&path), 120);
    let whole = salvaged(&path);
    assert_eq!((whole.saved.letters, whole.saved.log_pages_lost), (120, 0));
    assert!(whole.saved.log_pages > 100);
    assert_eq!(whole.saved.losses(), [""; 0]);

    let log = beside(&path, "-wal");
    let frames = usize::try_from(whole.saved.log_pages).unwrap();
    let intact = fs::read(&log).unwrap();
    for at in [frames / 4, frames / 2] {
        fs::write(&log, &intact).unwrap();
        overwrite(&log, 32 + at * 4_120 + 24 + 2_000, 64);
        let read = by_sqlite(&path);
        let home = salvaged(&path);
        assert!(read < 100, "{read} of 120 are before the damage");
        assert!(home.saved.letters >= 115, "{}, and SQLite itself reads {read}", home.saved);
        assert!(home.jobs().contains("job-119"), "what was written last is lost: {}", home.saved);
        assert_eq!(home.saved.log_pages_lost, 1, "{}", home.saved);
        assert!(
            home.saved.losses().iter().any(|loss| loss.contains("1 pages of the log")),
            "{:?}",
            home.saved.losses()
        );
    }
    // Its header: SQLite takes the whole log for nothing.
    fs::write(&log, &intact).unwrap();
    overwrite(&log, 0, 32);
    assert!(by_sqlite(&path) < 10);
    let home = salvaged(&path);
    assert!(home.saved.letters >= 119, "{}", home.saved);
}

// A log that was written over: what is left of its life before is none of it.
#[test]
fn the_rest_of_an_older_log_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let store = SqliteStore::options(&path).reserve(false).open().unwrap();
    for n in 0..100 {
        park(&store, &format!("job-{n}"));
    }
    let checkpoint = Connection::open(&path).unwrap();
    checkpoint.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(())).unwrap();
    park(&store, "newest");
    let copy = beside(&path, ".copy");
    for suffix in ["", "-wal"] {
        fs::copy(beside(&path, suffix), beside(&copy, suffix)).unwrap();
    }
    let home = salvaged(&copy);
    assert_eq!((home.saved.letters, home.saved.log_pages_lost), (101, 0), "{}", home.saved);
    assert!(home.saved.log_pages < 60, "{}", home.saved.log_pages);
}

#[test]
fn large_payloads_come_along_and_damaged_ones_are_said_to_be_lost() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let store = SqliteStore::options(&path).reserve(false).payload_file_above(1 << 10).open().unwrap();
    for n in 0..5_u64 {
        let mut large = letter(&format!("job-{n}"));
        // Nothing a compressor can do much with.
        let mut x = n + 1;
        let noise = std::iter::repeat_with(|| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            format!("{x:016x}")
        });
        large.payload = Payload::Json(format!("[\"{}\"]", noise.take(10_000).collect::<String>()));
        assert!(matches!(wait(store.submit(large)), Parking::Parked { .. }));
    }
    store.close(Duration::from_secs(30));
    let mut files: Vec<PathBuf> = Vec::new();
    for shard in fs::read_dir(beside(&path, ".blobs")).unwrap() {
        let shard = shard.unwrap().path();
        if shard.is_dir() {
            files.extend(fs::read_dir(shard).unwrap().map(|file| file.unwrap().path()));
        }
    }
    assert_eq!(files.len(), 5);
    overwrite(&files[0], 1_000, 10);
    fs::remove_file(&files[1]).unwrap();
    // As a store sets it aside: the payloads keep their place.
    let aside = beside(&path, ".corrupt-17");
    fs::rename(&path, &aside).unwrap();

    let home = salvaged(&aside);
    assert_eq!((home.saved.letters, home.saved.without_payload), (5, 2), "{}", home.saved);
    assert!(home.saved.losses().iter().any(|loss| loss.contains("2 letters have lost their payload")));
    let store = SqliteStore::options(&path).reserve(false).open().unwrap();
    let report = home.bring(&store);
    assert_eq!((report.new, report.refused_lines), (5, 0), "{report:?}");
    let details: Vec<LetterDetail> = home
        .jobs()
        .into_iter()
        .map(|job| {
            let mut filter = Filter::all();
            filter.job_ids.push(job);
            let row = block(store.list(filter, PageRequest::default())).unwrap().rows.remove(0);
            block(store.get(row.letter_id)).unwrap().unwrap()
        })
        .collect();
    let whole = details.iter().filter(|detail| matches!(&detail.payload, Payload::Json(json) if json.len() == 160_004));
    assert_eq!(whole.count(), 3);
    let lost =
        details.iter().filter(|detail| detail.row.payload_error.as_deref().is_some_and(|why| why.contains("damaged")));
    assert_eq!(lost.count(), 2);
}

// Twice is once; and what was done here since stays.
#[test]
fn ledger_and_counters_come_home_once() {
    let directory = tempfile::tempdir().unwrap();
    let (damaged, path) = (directory.path().join("damaged.db"), directory.path().join("jobs.db"));
    filled(&damaged, 3);
    // Its keys begin later.
    let clock = ManualClock::new(SystemTime::now() + Duration::from_secs(60));
    let store = SqliteStore::options(&path).reserve(false).clock(clock.clock()).open().unwrap();
    let key = |n: u32| LedgerKey::new("archive", format!("https://example.org/{n}"));
    // Tried again since, in ignorance of the first time: one failed, one was done.
    for (n, end) in [(1, End::Failed { next_at: None }), (3, End::Ok)] {
        let Begin::Go { token, .. } = block(store.begin(key(n), 5)).unwrap() else { unreachable!() };
        block(store.end(key(n), token, end)).unwrap();
    }
    block(store.begin(key(5), 5)).unwrap();
    block(store.reset(key(5), actor())).unwrap().unwrap();
    block(store.add("archive", "fallback_bytes", 11)).unwrap();
    for again in [false, true] {
        let home = salvaged(&damaged);
        let taken = block(store.take_books(&home.saved, actor())).unwrap();
        assert_eq!((taken.counters, taken.counters_known), (u64::from(!again), again), "{taken}");
        assert_eq!(taken.ledger, if again { 0 } else { 39 }, "{taken}");
        assert_eq!(counted(&store), 711);
        let found = [0, 1, 3, 5, 7].map(|n| entry(&store, n));
        let (open, ok) = (LedgerStatus::Open, LedgerStatus::Ok);
        assert_eq!(
            found,
            [(ok, 1), (open, 2), (ok, 2), (open, 0), (open, 1)],
            "0 new, 1 and 3 joined, 5 reset here, 7 new"
        );
        assert_eq!(block(store.thresholds()).unwrap()[0].above, 500);
    }
}

#[test]
fn a_damaged_page_of_the_ledger_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let store = SqliteStore::options(&path).reserve(false).open().unwrap();
    for n in 0..600 {
        block(store.begin(LedgerKey::new("archive", format!("https://example.org/{n:04}")), 5)).unwrap();
    }
    store.close(Duration::from_secs(30));
    let bytes = fs::read(&path).unwrap();
    let text = b"https://example.org/0300";
    let at = bytes.windows(text.len()).position(|found| found == text).unwrap();
    overwrite(&path, at / 4_096 * 4_096, 4_096);
    let home = salvaged(&path);
    assert!((400..600).contains(&home.saved.ledger), "{}", home.saved);
    assert!(home.saved.gaps_in_books > 0);
    assert!(home.saved.losses().iter().any(|loss| loss.contains("of ledger, counters and notes")), "{}", home.saved);
}

// Its page can be read, and what stands there is not what was written.
#[test]
fn a_payload_that_was_changed_on_the_disk_is_lost_and_not_believed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    filled(&path, 20);
    let bytes = fs::read(&path).unwrap();
    let text = b"{\"id\":\"job-7\",\"prompt\":\"";
    let at = bytes.windows(text.len()).position(|found| found == text).unwrap();
    overwrite(&path, at + text.len() + 10, 8);
    let home = salvaged(&path);
    assert_eq!((home.saved.letters, home.saved.without_payload), (20, 1), "{}", home.saved);
}
