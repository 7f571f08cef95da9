//! Large payloads: compressed, in files of their own, and never half there.
#![allow(clippy::unwrap_used, clippy::panic)] // tests fail by panicking

mod support;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use dlq_sqlite::SqliteStore;
use retry_runtime::StopReason;
use retry_runtime::dead_letter::{
    Actor, ClaimRequest, DeadLetter, DeadLetterSink, DeadLetterStore, Filter, LetterState, PageRequest, Parking,
    Payload, ReplayError, Replayer,
};
use support::{assert_intact, child, child_work, spill_files, tell, told, wait};

const COMPRESSED_FROM: usize = 64 << 10;

fn letter(job: &str, payload: String) -> DeadLetter {
    let mut letter = DeadLetter::new("fetch", StopReason::Exhausted, SystemTime::now());
    letter.job_id = Some(job.to_owned());
    letter.payload = Payload::Json(payload);
    letter
}

/// A JSON text of so many bytes.
fn text(len: usize) -> String {
    format!("\"{}\"", "x".repeat(len - 2))
}

/// The same, of which compression leaves about half.
fn noise(seed: u64, len: usize) -> String {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut out = String::from("\"");
    while out.len() < len - 1 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        write!(out, "{state:016x}").unwrap();
    }
    out.truncate(len - 1);
    out + "\""
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn parked(store: &SqliteStore, letter: DeadLetter) -> String {
    match wait(store.submit(letter)) {
        Parking::Parked { letter_id } => letter_id,
        other => panic!("{other}"),
    }
}

fn payload_of(store: &SqliteStore, letter_id: &str) -> Payload {
    block_on(store.get(letter_id.to_owned())).unwrap().unwrap().payload
}

/// The finished files below a store's directory of payloads, by name.
fn files(path: &Path) -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    let root = PathBuf::from(format!("{}.blobs", path.display()));
    for shard in std::fs::read_dir(root).into_iter().flatten().map(|entry| entry.unwrap().path()) {
        for file in std::fs::read_dir(&shard).into_iter().flatten().map(|entry| entry.unwrap().path()) {
            found.insert(file.file_name().unwrap().to_str().unwrap().to_owned(), file);
        }
    }
    found
}

// 3.7, E89: plain below 64 KiB, compressed from there, in a file beyond the limit
#[test]
fn each_size_is_kept_in_its_own_way_and_read_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let store = SqliteStore::options(&path).payload_file_above(100_000).reserve(false).open().unwrap();
    let sizes = [
        ("small", text(COMPRESSED_FROM - 1), "json", true, 0),
        ("large", text(COMPRESSED_FROM), "json+zstd", false, 0),
        ("larger", text(10 << 20), "json+zstd", false, 0),
        ("largest", noise(1, 1 << 20), "json+zstd", false, 1),
    ];
    let mut in_files = 0;
    for (job, payload, encoding, shown, files_more) in sizes {
        let letter_id = parked(&store, letter(job, payload.clone()));
        in_files += files_more;
        assert_eq!(files(&path).len(), in_files, "{job}");
        assert!(payload_of(&store, &letter_id) == Payload::Json(payload.clone()), "{job}");
        let mut request = ClaimRequest::new(["fetch"], "w");
        request.filter = Filter::id(&letter_id);
        let claimed = block_on(store.claim(request, Actor::new("t", ""))).unwrap().pop().unwrap();
        assert!(claimed.payload == Payload::Json(payload.clone()), "{job}");
        // The public view: what is plain is shown, and the size is that of the payload itself.
        let reader = rusqlite::Connection::open(&path).unwrap();
        let sql = "SELECT payload_json, payload_size, payload_encoding FROM dead_letter WHERE job_id = ?1";
        let (json, size, found): (Option<String>, i64, String) =
            reader.query_row(sql, [job], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
        assert_eq!(
            (json.is_some(), usize::try_from(size).unwrap(), found.as_str()),
            (shown, payload.len(), encoding),
            "{job}"
        );
    }
    // The same again is neither a revision nor a file.
    let again = parked(&store, letter("largest", noise(1, 1 << 20)));
    assert_eq!(block_on(store.get(again)).unwrap().unwrap().revisions, 1);
    assert_eq!(files(&path).len(), 1);
    store.close(Duration::from_secs(10));
    assert_intact(&path);
}

// D24
#[cfg(unix)]
#[test]
fn payload_files_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let store = SqliteStore::options(&path).payload_file_above(0).reserve(false).open().unwrap();
    parked(&store, letter("a", text(COMPRESSED_FROM)));
    let (name, file) = files(&path).pop_first().unwrap();
    assert!(file.ends_with(format!("{}/{name}", name.get(..2).unwrap())), "{}", file.display());
    assert_eq!(mode(&file), 0o600);
    assert_eq!(mode(file.parent().unwrap()), 0o700);
    assert_eq!(mode(file.parent().unwrap().parent().unwrap()), 0o700);
}

// A payload that cannot be read is said, and costs its letter nothing: not a replay, not its place.
#[test]
fn a_letter_whose_file_is_missing_or_damaged_is_not_burned() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let store = SqliteStore::options(&path).payload_file_above(0).reserve(false).open().unwrap();
    let lost = parked(&store, letter("lost", text(COMPRESSED_FROM)));
    let (_, file) = files(&path).pop_first().unwrap();
    let fine = parked(&store, letter("fine", text(COMPRESSED_FROM + 1)));
    let whole = std::fs::read(&file).unwrap();
    for damage in [Some(&whole.get(1..).unwrap()), None] {
        match damage {
            Some(bytes) => std::fs::write(&file, bytes).unwrap(),
            None => std::fs::remove_file(&file).unwrap(),
        }
        assert!(matches!(payload_of(&store, &lost), Payload::Unserializable(_)));
        let runs = Arc::new(AtomicU32::new(0));
        let of_handler = Arc::clone(&runs);
        let replayer = Replayer::new(store.clone()).no_limit().execute().on_blocking("fetch", move |_| {
            of_handler.fetch_add(1, Ordering::SeqCst);
            Err::<(), _>(ReplayError::failed("not today"))
        });
        let report = replayer.run_blocking().unwrap();
        assert_eq!((report.skipped.without_payload, runs.load(Ordering::SeqCst)), (1, 1));
        let row = block_on(store.get(lost.clone())).unwrap().unwrap().row;
        assert_eq!((row.state, row.replays, row.crashes), (LetterState::Parked, 0, 0));
    }
    assert_eq!(block_on(store.get(fine)).unwrap().unwrap().row.replays, 2);
    // What was lost comes back with the file.
    std::fs::write(&file, whole).unwrap();
    assert!(payload_of(&store, &lost) == Payload::Json(text(COMPRESSED_FROM)));
}

// Two programs of different versions on one file: what the older one does not know, it says.
#[test]
fn an_encoding_that_is_not_known_is_said_and_fails_no_claim() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let store = SqliteStore::options(&path).reserve(false).open().unwrap();
    parked(&store, letter("odd", text(COMPRESSED_FROM)));
    parked(&store, letter("fine", text(COMPRESSED_FROM)));
    let writer = rusqlite::Connection::open(&path).unwrap();
    let sql = "UPDATE payload SET encoding = 'json+later'
               WHERE seq = (SELECT seq FROM letter WHERE job_id = 'odd')";
    assert_eq!(writer.execute(sql, []).unwrap(), 1);
    let mut request = ClaimRequest::new(["fetch"], "w");
    request.limit = 10;
    let claimed = block_on(store.claim(request, Actor::new("t", ""))).unwrap();
    let payloads: Vec<_> = claimed.into_iter().map(|claimed| claimed.payload).collect();
    assert!(
        payloads
            == [
                Payload::Unserializable("stored in an encoding unknown here: `json+later`".to_owned()),
                Payload::Json(text(COMPRESSED_FROM))
            ]
    );
}

// The chain goes on with the whole payload, and it comes home when there is room again.
#[test]
fn a_payload_file_that_cannot_be_written_is_spilled_whole() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let store = SqliteStore::options(&path).payload_file_above(0).reserve(false).open().unwrap();
    // Something else has the directory's name.
    let root = directory.path().join("jobs.db.blobs");
    std::fs::write(&root, b"").unwrap();
    let refused = wait(store.submit(letter("a", text(COMPRESSED_FROM))));
    let Parking::Spilled { path: spill, because } = refused else { panic!("{refused}") };
    assert!(because.to_string().contains("payload file"), "{because}");
    assert!(std::fs::read_to_string(spill).unwrap().contains(&"x".repeat(COMPRESSED_FROM - 2)));
    // Others are taken.
    parked(&store, letter("b", text(100)));
    drop(store);
    std::fs::remove_file(&root).unwrap();
    let store = SqliteStore::options(&path).payload_file_above(0).reserve(false).open().unwrap();
    block_on(async { store.settle().await });
    let mut filter = Filter::all();
    filter.job_ids.push("a".to_owned());
    let row = block_on(store.list(filter, PageRequest::default())).unwrap().rows.pop();
    assert!(payload_of(&store, &row.unwrap().letter_id) == Payload::Json(text(COMPRESSED_FROM)));
    assert_eq!(files(&path).len(), 1);
    assert!(spill_files(&[directory.path()]).is_empty());
}

// S6: full disk, shown on a file system of its own
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_takes_what_fits_and_spills_the_rest() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().join("disk");
    let Some(disk) = support::SmallDisk::mount(&at, "3m") else { return };
    let path = at.join("jobs.db");
    let elsewhere = directory.path().join("elsewhere");
    let options =
        || SqliteStore::options(&path).payload_file_above(0).reserve(false).spill_dirs([at.clone(), elsewhere.clone()]);
    let store = options().open().unwrap();
    let (mut kept, mut spilled) = (Vec::new(), Vec::new());
    for n in 0..8 {
        match wait(store.submit(letter(&n.to_string(), noise(n, 1 << 20)))) {
            Parking::Parked { .. } => kept.push(n),
            Parking::Spilled { .. } => spilled.push(n),
            other => panic!("{other}"),
        }
    }
    assert!(!kept.is_empty() && !spilled.is_empty(), "{kept:?} {spilled:?}");
    let root = at.join("jobs.db.blobs");
    let unfinished = std::fs::read_dir(root).unwrap().filter(|entry| entry.as_ref().unwrap().path().is_file()).count();
    assert_eq!(unfinished, 0, "nothing half-written stays");
    drop(store);
    disk.grow("100m");
    let store = options().open().unwrap();
    block_on(async { store.settle().await });
    assert_eq!(block_on(store.count(Filter::all())).unwrap(), 8);
    for row in block_on(store.list(Filter::all(), PageRequest::default())).unwrap().rows {
        let seed = row.job_id.parse().unwrap();
        assert!(payload_of(&store, &row.letter_id) == Payload::Json(noise(seed, 1 << 20)), "{}", row.job_id);
    }
    store.close(Duration::from_secs(10));
    assert_intact(&path);
}

/// Parks large letters for ever, saying `parked JOB` after each.
fn park_until_killed(path: &str) {
    let store = SqliteStore::options(path).payload_file_above(0).reserve(false).open().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let store = &store;
            scope.spawn(move || {
                for n in 0.. {
                    let seed = u64::from(std::process::id()) << 32 | thread << 24 | n;
                    parked(store, letter(&seed.to_string(), noise(seed, COMPRESSED_FROM + 10_000)));
                    tell(&format!("parked {seed}"));
                }
            });
        }
    });
}

// 3.7, kill -9: a file may be without a row, and never a row without its file.
#[test]
fn a_kill_in_the_middle_of_a_large_parking_loses_nothing() {
    const NAME: &str = "a_kill_in_the_middle_of_a_large_parking_loses_nothing";
    if let Some(path) = child_work() {
        return park_until_killed(&path);
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let rounds = if std::env::var_os("SOAK").is_some() { 200 } else { 15 };
    let mut all = Vec::new();
    for round in 0..rounds {
        let mut process = child(&[], NAME, path.to_str().unwrap()).spawn().unwrap();
        let mut done = 0;
        for line in told(&mut process) {
            all.push(line.strip_prefix("parked ").unwrap().parse::<u64>().unwrap());
            done += 1;
            if done == round * 3 % 17 + 1 {
                process.kill().unwrap();
            }
        }
        assert!(!process.wait().unwrap().success());
    }
    // The orphans of the kills are collected, and every letter still has its payload.
    let before = files(&path).len();
    let store =
        SqliteStore::options(&path).payload_file_above(0).reserve(false).reap_after(Duration::ZERO).open().unwrap();
    let rows = block_on(store.count(Filter::all())).unwrap();
    let mut after = None;
    let end = std::time::Instant::now() + Duration::from_secs(60);
    while after != Some(rows) && std::time::Instant::now() < end {
        block_on(async { store.settle().await });
        after = u64::try_from(files(&path).len()).ok();
    }
    assert_eq!(after, Some(rows), "one file for each letter, and none besides");
    let mut out = std::io::stderr().lock();
    writeln!(out, "{rounds} kills, {} answered, {rows} letters, {before} files", all.len()).unwrap();
    for seed in all {
        let mut filter = Filter::all();
        filter.job_ids.push(seed.to_string());
        let row = block_on(store.list(filter, PageRequest::default())).unwrap().rows.pop().unwrap();
        assert!(payload_of(&store, &row.letter_id) == Payload::Json(noise(seed, COMPRESSED_FROM + 10_000)), "{seed}");
    }
    store.close(Duration::from_secs(10));
    assert_intact(&path);
}
