//! Copies of a store that is in use.
#![allow(clippy::unwrap_used, clippy::panic)] // tests fail by panicking

mod support;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dlq_sqlite::{Backup, SqliteStore};
use retry_runtime::dead_letter::{
    Actor, ClaimRequest, DeadLetter, DeadLetterSink, DeadLetterStore, Filter, Finish, PageRequest, Payload,
    PruneRequest, ReplayOutcome, StoreAdmin,
};
use retry_runtime::error::{StoreError, StoreErrorKind};
use support::{letter, wait};

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn open(path: &Path) -> SqliteStore {
    SqliteStore::options(path).payload_file_above(0).reserve(false).open().unwrap()
}

fn large(job: &str) -> DeadLetter {
    let mut letter = letter(job);
    letter.payload = Payload::Json(format!("\"{}\"", job.repeat(100_000 / job.len())));
    letter
}

fn backup(store: &SqliteStore, target: &Path) -> Result<Backup, StoreError> {
    store.backup(target).wait(Duration::from_secs(120)).unwrap_or_else(|_| panic!("no answer in two minutes"))
}

/// Every letter of the copy has the payload it was parked with.
fn assert_whole(path: &Path) -> u64 {
    let store = open(path);
    let mut request = PageRequest::default();
    let mut letters = 0;
    loop {
        let page = block_on(store.list(Filter::all(), request.clone())).unwrap();
        for row in &page.rows {
            let payload = block_on(store.get(row.letter_id.clone())).unwrap().unwrap().payload;
            assert!(payload == large(&row.job_id).payload, "{}: {payload:?}", row.job_id);
            letters += 1;
        }
        let Some(next) = page.next else { break };
        request = request.after(Some(next));
    }
    store.close(Duration::from_secs(10));
    let reader = rusqlite::Connection::open(path).unwrap();
    let verdict: String = reader.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(verdict, "ok");
    letters
}

// 3.13: while others park, close and prune, with files of payloads coming and going
#[test]
fn a_backup_is_the_store_of_one_moment() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let store = open(&path);
    for n in 0..20 {
        assert!(wait(store.submit(large(&format!("first-{n}")))).is_kept());
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let actor = || Actor::new("t", "");
            for n in 0.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                assert!(wait(store.submit(large(&format!("more-{n}")))).is_kept());
                if n % 3 == 0 {
                    let claimed = block_on(store.claim(ClaimRequest::new(["fetch"], "w"), actor())).unwrap();
                    for one in claimed {
                        let result = Finish::new(one.row.letter_id, one.row.fence, ReplayOutcome::Recovered);
                        block_on(store.finish(result, actor())).unwrap();
                    }
                    block_on(store.prune(PruneRequest::older_than(Duration::ZERO), actor())).unwrap();
                }
            }
        });
        for n in 0..5 {
            let target = directory.path().join(format!("copies/{n}/jobs.db"));
            let report = backup(&store, &target).unwrap();
            assert_eq!(report.path, target);
            assert!(report.payload_files_missing.is_empty(), "{report:?}");
            assert_eq!(report.bytes, std::fs::metadata(&target).unwrap().len());
        }
        stop.store(true, Ordering::Relaxed);
    });
    drop(store);
    for n in 0..5 {
        let target = directory.path().join(format!("copies/{n}/jobs.db"));
        // What happens to the store afterwards does not reach its copy.
        if n == 4 {
            std::fs::remove_dir_all(directory.path().join("jobs.db.blobs")).unwrap();
        }
        assert!(assert_whole(&target) >= 1, "copy {n}");
    }
}

// D24
#[cfg(unix)]
#[test]
fn a_backup_is_for_its_owner_alone_and_replaces_nothing() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let store = open(&path);
    assert!(wait(store.submit(large("a"))).is_kept());
    let target = directory.path().join("copy/jobs.db");
    let report = backup(&store, &target).unwrap();
    assert_eq!(report.payload_files, 1);
    assert_eq!(mode(&target), 0o600);
    assert_eq!(mode(&directory.path().join("copy")), 0o700);
    assert_eq!(mode(&directory.path().join("copy/jobs.db.blobs")), 0o700);
    let again = backup(&store, &target).unwrap_err();
    assert_eq!(again.kind(), StoreErrorKind::Conflict);
    assert!(again.to_string().contains("jobs.db"), "{again}");
    assert_eq!(assert_whole(&target), 1, "the first copy is untouched");
    let unwritable = backup(&store, Path::new("/proc/nowhere/jobs.db"));
    assert!(unwritable.is_err());
    // Also of a store that is only read.
    drop(store);
    let reading = SqliteStore::options(&path).open_read_only().unwrap();
    let target = directory.path().join("read.db");
    backup(&reading, &target).unwrap();
    assert_eq!(assert_whole(&target), 1);
}

#[test]
fn a_backup_says_what_it_does_not_hold() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let store = open(&path);
    assert!(wait(store.submit(large("a"))).is_kept());
    let mut files = std::fs::read_dir(directory.path().join("jobs.db.blobs")).unwrap();
    std::fs::remove_dir_all(files.next().unwrap().unwrap().path()).unwrap();
    let spilled = directory.path().join(format!("jobs.db.spill.{}-x.ndjson", 1));
    std::fs::write(&spilled, b"").unwrap();
    let aside = directory.path().join("jobs.db.corrupt-1");
    std::fs::write(&aside, b"x").unwrap();
    let report = backup(&store, &directory.path().join("copy.db")).unwrap();
    assert_eq!((report.payload_files, report.payload_files_missing.len()), (0, 1));
    assert_eq!(report.spill_files, [spilled]);
    assert_eq!(report.set_aside_files, [aside]);
    let letters = SqliteStore::options(report.path).reserve(false).open().unwrap();
    assert_eq!(block_on(letters.count(Filter::parked())).unwrap(), 1);
}
