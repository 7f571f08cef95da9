//! Letters from one file to another, and back.
#![allow(clippy::unwrap_used, clippy::panic)] // tests fail by panicking

mod support;

use std::path::Path;
use std::time::Duration;

use dlq_sqlite::SqliteStore;
use retry_runtime::dead_letter::{
    Actor, ClaimRequest, DeadLetterSink, DeadLetterStore, Edit, ExportRequest, Exporter, Failure, Filter, Finish,
    ImportReport, Importer, ManualClock, MemoryStore, Payload, ReplayOutcome, StoreAdmin,
};
use support::{assert_intact, letter, wait};

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn actor() -> Actor {
    Actor::new("ann", "moving house")
}

fn open(path: &Path, time: &ManualClock) -> SqliteStore {
    SqliteStore::options(path).clock(time.clock()).payload_file_above(0).reserve(false).open().unwrap()
}

fn export(store: &SqliteStore) -> String {
    let mut exporter = Exporter::new(store, Filter::all());
    let mut lines = String::new();
    while let Some(some) = block_on(exporter.next()).unwrap() {
        lines.push_str(&some);
    }
    lines
}

fn import(store: &SqliteStore, lines: &str) -> ImportReport {
    block_on(Importer::new(store, actor()).read(lines.as_bytes())).unwrap()
}

fn fill(store: &SqliteStore, time: &ManualClock) {
    for n in 0..40_u32 {
        let mut one = letter(&format!("job-{n}"));
        one.failed_at = time.now();
        if n % 4 == 0 {
            one.payload = Payload::Json(format!("\"{}\"", n.to_string().repeat(50_000)));
        }
        assert!(wait(store.submit(one)).is_kept());
        time.advance(Duration::from_millis(1));
    }
    let mut request = ClaimRequest::new(["fetch"], "w");
    request.limit = 10;
    for (n, claimed) in block_on(store.claim(request, actor())).unwrap().into_iter().enumerate() {
        let outcome = match n % 4 {
            0 => ReplayOutcome::Recovered,
            1 => ReplayOutcome::Gone(Failure::from("gone")),
            2 => ReplayOutcome::Failed(Failure::from("again")),
            _ => continue,
        };
        block_on(store.finish(Finish::new(claimed.row.letter_id, claimed.row.fence, outcome), actor())).unwrap();
    }
    let last = block_on(store.list(Filter::all(), retry_runtime::dead_letter::PageRequest::default())).unwrap();
    let row = last.rows.first().unwrap();
    block_on(store.edit(Edit::new(row.letter_id.clone(), row.payload_revision, "{\"edited\":true}"), actor())).unwrap();
}

// G102: the whole export, first and last line included; large payloads travel whole
#[test]
fn a_file_comes_back_byte_for_byte() {
    let directory = tempfile::tempdir().unwrap();
    let time = ManualClock::new(std::time::SystemTime::now());
    let first = open(&directory.path().join("first.db"), &time);
    fill(&first, &time);
    let lines = export(&first);
    assert_eq!(lines.lines().count(), 42);
    assert!(lines.starts_with("{\"v\":1,\"crc\":") && lines.contains("\"schema\":2"));
    // Not so far that leases end.
    time.advance(Duration::from_secs(1));
    let path = directory.path().join("second.db");
    let second = open(&path, &time);
    let report = import(&second, &lines);
    assert_eq!((report.new, report.refused_lines, report.is_whole), (40, 0, true), "{:?}", report.refused);
    assert!(export(&second) == lines);
    // Again, and into the source: nothing.
    for store in [&first, &second] {
        let report = import(store, &lines);
        assert_eq!((report.new, report.merged, report.known), (0, 0, 40));
        assert!(export(store) == lines);
    }
    // Through another kind of store.
    let memory = MemoryStore::new();
    block_on(Importer::new(&memory, actor()).read(lines.as_bytes())).unwrap();
    let mut exporter = Exporter::new(&memory, Filter::all());
    let mut through = String::new();
    while let Some(some) = block_on(exporter.next()).unwrap() {
        through.push_str(&some);
    }
    let third = open(&directory.path().join("third.db"), &time);
    assert_eq!(import(&third, &through).new, 40);
    assert!(export(&third) == lines);
    second.close(Duration::from_secs(10));
    assert_intact(&path);
    // Who brought them stands on the way they came.
    let reader = rusqlite::Connection::open(&path).unwrap();
    let imported: i64 =
        reader.query_row("SELECT count(*) FROM parking WHERE origin = 'import'", [], |row| row.get(0)).unwrap();
    assert_eq!(imported, 40);
}

// E89: a page is bounded by its bytes, too
#[test]
fn large_letters_make_small_pages() {
    let directory = tempfile::tempdir().unwrap();
    let time = ManualClock::new(std::time::SystemTime::now());
    let store = open(&directory.path().join("jobs.db"), &time);
    for n in 0..5_u8 {
        let mut one = letter(&n.to_string());
        one.payload = Payload::Json(format!("\"{}\"", n.to_string().repeat(3 << 20)));
        assert!(wait(store.submit(one)).is_kept());
    }
    let mut request = ExportRequest::new(Filter::all());
    let mut pages = Vec::new();
    loop {
        let page = block_on(store.export(request.clone())).unwrap();
        pages.push(page.records.len());
        let Some(next) = page.next else { break };
        request.after = Some(next);
    }
    assert_eq!(pages, [3, 2]);
}

// A letter that cannot be taken is refused alone.
#[test]
fn a_letter_whose_id_is_anothers_is_refused_with_its_line() {
    let directory = tempfile::tempdir().unwrap();
    let time = ManualClock::new(std::time::SystemTime::now());
    let first = open(&directory.path().join("first.db"), &time);
    assert!(wait(first.submit(letter("a"))).is_kept());
    assert!(wait(first.submit(letter("b"))).is_kept());
    let lines = export(&first);
    let path = directory.path().join("second.db");
    let second = open(&path, &time);
    let mut same_id = letter("c");
    let id = lines.lines().nth(1).unwrap().split("\"letter_id\":\"").nth(1).unwrap().split('"').next().unwrap();
    same_id.park_id = retry_runtime::id::Id::parse(id).unwrap();
    let writer = rusqlite::Connection::open(&path).unwrap();
    assert!(wait(second.submit(same_id)).is_kept());
    // Its parking is another.
    writer.execute("UPDATE parking SET park_id = '01900000-0000-7000-8000-000000000000'", []).unwrap();
    let report = import(&second, &lines);
    assert_eq!((report.new, report.refused_lines), (1, 1));
    let (line, why) = report.refused.first().unwrap();
    assert!(*line == 2 && why.contains("another job's"), "{line}: {why}");
}

// What the store could not write is an error of the import, and no letter that was known.
#[test]
fn an_import_that_the_store_cannot_write_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let time = ManualClock::new(std::time::SystemTime::now());
    let first = open(&directory.path().join("first.db"), &time);
    assert!(wait(first.submit(letter("a"))).is_kept());
    let lines = export(&first);
    let path = directory.path().join("second.db");
    open(&path, &time).close(Duration::from_secs(10));
    let reader = SqliteStore::options(&path).reserve(false).open_read_only().unwrap();
    assert!(block_on(Importer::new(&reader, actor()).read(lines.as_bytes())).is_err());
    assert_eq!(import(&open(&path, &time), &lines).new, 1);
}
