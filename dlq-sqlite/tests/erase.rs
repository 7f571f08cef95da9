//! What is erased is gone: no byte of it is in any file.
#![allow(clippy::unwrap_used, clippy::panic)] // tests fail by panicking

mod support;

use std::path::{Path, PathBuf};
use std::time::Duration;

use dlq_sqlite::SqliteStore;
use retry_runtime::dead_letter::{
    Actor, BulkOperations, ClaimRequest, DeadLetter, DeadLetterSink, DeadLetterStore, Edit, EraseRequest, Failure,
    FailureGroups, Filter, Finish, OperationRequest, PageRequest, Parking, Payload, ReplayOutcome, Spill, StoreAdmin,
    Verb,
};
use retry_runtime::ledger::{AttemptLedger, LedgerKey};
use support::{letter, wait};

const KEY: &str = "customer-4711-key";
const MARK: &str = "sphinxofblackquartz";

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn actor() -> Actor {
    Actor::new("ann", "asked by the customer")
}

fn secret(payload: String) -> DeadLetter {
    let mut secret = letter(KEY);
    secret.payload = Payload::Json(payload);
    secret.error_message = format!("{MARK} failed");
    for record in &mut secret.history {
        record.message = format!("{MARK} failed");
    }
    secret
}

/// Every file below a directory in which the text is.
fn found(directory: &Path, text: &str) -> Vec<PathBuf> {
    let mut out = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            out.extend(found(&entry, text));
        } else {
            let bytes = std::fs::read(&entry).unwrap();
            if bytes.windows(text.len()).any(|window| window == text.as_bytes()) {
                out.push(entry);
            }
        }
    }
    out
}

/// A store with one job in every place there is, among others.
fn fill(path: &Path) -> SqliteStore {
    let store = SqliteStore::options(path).payload_file_above(80_000).reserve(false).open().unwrap();
    for n in 0..30 {
        assert!(wait(store.submit(letter(&format!("before-{n}")))).is_kept());
    }
    let Parking::Parked { letter_id } = wait(store.submit(secret(format!("\"{MARK}\"")))) else { panic!() };
    // Compressed, in a row and in a file; edited; replayed and failed again.
    assert!(wait(store.submit(secret(format!("\"{MARK} {}\"", "a".repeat(100_000))))).is_kept());
    let mut noise = String::new();
    for n in 0..40_000_u32 {
        noise.push_str(&n.wrapping_mul(2_654_435_761).to_string());
    }
    assert!(wait(store.submit(secret(format!("\"{MARK} {noise}\"")))).is_kept());
    block_on(store.edit(Edit::new(letter_id.clone(), 3, format!("\"{MARK} edited\"")), actor())).unwrap();
    let mut request = ClaimRequest::new(["fetch"], "w");
    request.filter = Filter::id(&letter_id);
    let claimed = block_on(store.claim(request, actor())).unwrap().pop().unwrap();
    let failed = ReplayOutcome::Failed(Failure::from(format!("{MARK} again")));
    block_on(store.finish(Finish::new(letter_id, claimed.row.fence, failed), actor())).unwrap();
    let key = LedgerKey { scope: "fetch".into(), key: KEY.into() };
    block_on(async { store.begin(key.clone(), 3).await }).unwrap();
    block_on(store.reset(key, actor())).unwrap();
    for n in 0..30 {
        assert!(wait(store.submit(letter(&format!("after-{n}")))).is_kept());
    }
    store
}

// 3.8, E84: searched for byte by byte, in whatever files there are
#[test]
fn no_byte_of_an_erased_job_is_left() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let store = fill(&path);
    // Lines of it wait in spill files, were taken in, and cannot be read.
    let spill = Spill::beside(&path);
    let line = spill.append(&secret(format!("\"{MARK} spilled\""))).unwrap();
    spill.append(&letter("spilled")).unwrap();
    drop(spill);
    std::fs::copy(&line, line.with_extension("ndjson.done")).unwrap();
    std::fs::write(line.with_extension("ndjson.bad"), format!("{{\"v\":1,\"job_id\":\"{KEY}\",\"text\":\"{MARK}"))
        .unwrap();
    assert!(found(directory.path(), MARK).len() >= 4 && found(directory.path(), KEY).len() >= 4);

    let report = block_on(store.erase(EraseRequest::job(KEY), actor())).unwrap();
    assert_eq!((report.letters, report.revisions, report.ledger_entries), (1, 4, 1), "{report:?}");
    assert_eq!((report.attempts, report.payload_files, report.spill_lines), (10, 1, 3), "{report:?}");
    assert_eq!(report.left, Vec::<String>::new());
    // Also while the store is open.
    for text in [MARK, KEY] {
        assert_eq!(found(directory.path(), text), Vec::<PathBuf>::new(), "{text}");
    }
    assert_eq!(block_on(store.count(Filter::all())).unwrap(), 60);
    store.close(Duration::from_secs(10));
    drop(store);
    for text in [MARK, KEY] {
        assert_eq!(found(directory.path(), text), Vec::<PathBuf>::new(), "{text}");
    }
    let reader = rusqlite::Connection::open(&path).unwrap();
    let verdict: String = reader.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(verdict, "ok");
    // The others' lines are still there, and the next store takes them in.
    let store = SqliteStore::options(&path).reserve(false).open().unwrap();
    block_on(async { store.settle().await });
    assert_eq!(block_on(store.count(Filter::all())).unwrap(), 61);
}

// Said, rather than done in part without a word.
#[test]
fn what_cannot_be_erased_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let store = fill(&path);
    // Another process spills.
    let spill = Spill::beside(&path);
    let spilled = spill.append(&secret("1".to_owned())).unwrap();
    let aside = directory.path().join("jobs.db.corrupt-1");
    std::fs::write(&aside, MARK).unwrap();
    // Somebody reads: the log keeps what they see.
    let reader = rusqlite::Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM letter").unwrap();
    let report = block_on(store.erase(EraseRequest::job(KEY), actor())).unwrap();
    assert_eq!(report.letters, 1);
    for told in [spilled.to_str().unwrap(), aside.to_str().unwrap(), "the log could not be emptied"] {
        assert!(report.left.iter().any(|left| left.contains(told)), "{told}: {:?}", report.left);
    }
    reader.execute_batch("COMMIT").unwrap();
    drop((reader, spill));
    std::fs::remove_file(aside).unwrap();
    let report = block_on(store.erase(EraseRequest::job(KEY), actor())).unwrap();
    assert_eq!((report.letters, report.spill_lines, report.left.len()), (0, 1, 0), "{:?}", report.left);
    store.close(Duration::from_secs(10));
    assert_eq!(found(directory.path(), MARK), Vec::<PathBuf>::new());
}

// E84: what people and operations have written; the key in any spelling JSON gives it
#[test]
fn what_names_a_job_is_removed_or_told() {
    for key in ["cust-4711", "say \"bob\"", "C:\\docs\\bob.pdf"] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("jobs.db");
        let store = SqliteStore::options(&path).reserve(false).open().unwrap();
        assert!(wait(store.submit(letter(key))).is_kept());
        let ann = || Actor::new("ann", format!("ticket 9: {key} complains"));
        let start = |filter: Filter| block_on(store.start(OperationRequest::new(Verb::Replay, filter), ann())).unwrap();
        start(Filter::parked());
        let mut filter = Filter::parked();
        filter.job_ids = vec![key.to_owned()];
        let named = start(filter);
        let row = block_on(store.list(Filter::all(), PageRequest::default())).unwrap().rows.remove(0);
        block_on(store.note(row.fingerprint, format!("seen with {key}"), ann())).unwrap();
        let report = block_on(store.erase(EraseRequest::job(key), actor())).unwrap();
        let [left] = report.left.as_slice() else { panic!("{report}") };
        assert!(left.contains(&named.id), "{left}");
        let told = block_on(store.operation(named.id)).unwrap().unwrap();
        assert_eq!(told.actor.reason, "ticket 9: [erased] complains");
        store.close(Duration::from_secs(30));
        drop(store);
        let file = rusqlite::Connection::open(&path).unwrap();
        for (table, column) in [
            ("event", "actor"),
            ("event", "reason"),
            ("event", "detail"),
            ("op", "reason"),
            ("op", "actor"),
            ("op", "note"),
            ("group_note", "note"),
            ("group_note", "actor"),
        ] {
            let sql = format!("SELECT count(*) FROM {table} WHERE instr({column}, ?1) > 0");
            assert_eq!(
                file.query_row(&sql, [key], |row| row.get::<_, i64>(0)).unwrap(),
                0,
                "{key} in {table}.{column}"
            );
        }
    }
}
