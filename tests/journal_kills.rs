//! A batch that is killed at random moments (SEMANTICS 11.4): no job that began is neither done nor parked once leases have
//! ended, and one that is done and parked was killed between its witness line and the end of its entry.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)] // tests fail by panicking

#[path = "../dlq-sqlite/tests/support/mod.rs"]
mod support;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use dlq_sqlite::SqliteStore;
use retry_runtime::dead_letter::{Actor, DeadLetterStore, JobJournal, ManualClock};
use retry_runtime::{Classify, retry};
use support::{assert_intact, child, child_work, tell, told};

#[derive(Debug, Classify)]
#[classify(retryable, class = "busy")]
struct Busy;

/// Says that it began, and that it is done: what is said was said, whatever comes after.
fn work(id: &str, run: u32) -> Result<(), Busy> {
    tell(&format!("began {id}"));
    match id.len() * 7 + usize::from(*id.as_bytes().last().unwrap()) {
        kind if kind % 5 == 0 => Err(Busy),
        kind if kind % 5 == 1 && run == 0 => Err(Busy),
        _ => {
            tell(&format!("done {id}"));
            Ok(())
        }
    }
}

#[retry(max_retries = 1, base_delay = "1ms", name = "job", context = runs, dead_letter(sink = store, job_id = id, payload = id, journal))]
async fn job(store: &SqliteStore, id: &str) -> Result<(), Busy> {
    work(id, runs.retry_count())
}

#[retry(max_retries = 1, base_delay = "1ms", name = "job", context = runs, dead_letter(sink = store, job_id = id, payload = id, journal = required))]
fn blocking_job(store: &SqliteStore, id: &str) -> Result<(), BusyOrRefused> {
    work(id, runs.retry_count()).map_err(BusyOrRefused::Busy)
}

#[derive(Debug, Classify)]
enum BusyOrRefused {
    #[classify(transparent)]
    Busy(Busy),
    #[classify(transparent)]
    Refused(retry_runtime::Refused),
}

impl From<retry_runtime::Refused> for BusyOrRefused {
    fn from(refused: retry_runtime::Refused) -> Self {
        Self::Refused(refused)
    }
}

/// So many threads run jobs without a pause: at any moment some of them are in the middle of one.
const THREADS: usize = 6;

fn run_until_killed(path: &str) {
    let options = SqliteStore::options(path).reserve(false);
    let store = options.owner_lease(Duration::from_millis(500)).reap_after(Duration::ZERO).open().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let store = &store;
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
                for n in 0.. {
                    let id = format!("{}-{thread}-{n}", std::process::id());
                    let ended = if thread % 2 == 0 {
                        runtime.block_on(job(store, &id)).is_ok()
                    } else {
                        blocking_job(store, &id).is_ok()
                    };
                    tell(&format!("{} {id}", if ended { "returned" } else { "failed" }));
                }
            });
        }
    });
}

#[derive(Debug, Default)]
struct Said {
    began: BTreeSet<String>,
    done: BTreeSet<String>,
    returned: BTreeSet<String>,
    failed: BTreeSet<String>,
}

/// One kill, after so many jobs began and a pause.
fn kill_after(path: &Path, jobs: usize, pause: Duration, said: &mut Said) {
    let mut process = child(&[], TEST, path.to_str().unwrap()).spawn().unwrap();
    let (mut began, mut killed) = (0, false);
    // What the pipe still holds after the kill was said before it.
    for line in told(&mut process) {
        let Some((word, id)) = line.split_once(' ') else { continue };
        let of = match word {
            "began" => &mut said.began,
            "done" => &mut said.done,
            "returned" => &mut said.returned,
            _ => &mut said.failed,
        };
        of.insert(id.to_owned());
        began += usize::from(word == "began");
        if !killed && began >= jobs {
            let seen = Instant::now();
            while seen.elapsed() < pause {
                std::hint::spin_loop();
            }
            process.kill().unwrap();
            killed = true;
        }
    }
    assert!(killed && !process.wait().unwrap().success());
}

const TEST: &str = "no_job_that_began_is_neither_done_nor_parked";

fn kill(rounds: u32, seed: u64) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.db");
    let (mut state, mut said) = (seed, Said::default());
    let mut below = |end: u64| {
        // splitmix64
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (mixed ^ (mixed >> 27)) % end
    };
    for _ in 0..rounds {
        let jobs = usize::try_from(1 + below(60)).unwrap();
        kill_after(&path, jobs, Duration::from_micros(below(3_000)), &mut said);
    }
    // The leases have ended: whoever looks next takes the jobs of the dead.
    let later = ManualClock::new(SystemTime::now() + Duration::from_secs(3_600));
    let store = SqliteStore::options(&path).clock(later.clock()).reserve(false).open().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let reaped = runtime.block_on(store.reap(Actor::new("test", ""))).unwrap().len();
    let counts = runtime.block_on(store.journalled()).unwrap();
    assert_eq!((counts.running, counts.orphaned), (0, 0));
    drop(store);
    assert_intact(&path);
    let parked = |condition: &str| -> BTreeSet<String> {
        let connection = rusqlite::Connection::open(&path).unwrap();
        let sql = format!("SELECT job_id FROM letter WHERE state = 'parked' AND parkings = 1 AND {condition}");
        let mut statement = connection.prepare(&sql).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let (all, crashed) = (parked("1"), parked("reason = 'crashed'"));
    let Said { began, done, returned, failed } = &said;
    // 11.4
    let lost: Vec<_> = began.iter().filter(|id| !done.contains(*id) && !all.contains(*id)).collect();
    assert!(lost.is_empty(), "neither done nor parked (seed {seed}): {lost:?}");
    assert!(failed.is_subset(&all), "what has failed is parked");
    let both: BTreeSet<_> = done.intersection(&all).collect();
    for id in &both {
        assert!(crashed.contains(*id), "{id} succeeded, and was parked by its own call (seed {seed})");
        assert!(!returned.contains(*id), "{id} had returned: its entry was gone (seed {seed})");
    }
    assert!(returned.iter().all(|id| done.contains(id)));
    // the kills have to bite
    assert!(crashed.len() >= rounds as usize / 2, "{} crashed", crashed.len());
    let mut out = std::io::stderr().lock();
    writeln!(
        out,
        "{rounds} kills (seed {seed}): {} jobs began, {} done, {} failed, {} crashed ({reaped} by the last look); done and \
         parked, killed between the witness line and the end of the entry: {both:?}",
        began.len(),
        done.len(),
        failed.len(),
        crashed.len(),
    )
    .unwrap();
}

// 11.4, D14
#[test]
fn no_job_that_began_is_neither_done_nor_parked() {
    match child_work() {
        Some(path) => run_until_killed(&path),
        None => {
            let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
            let seed = seed.unwrap_or_else(|| u64::from(std::process::id()));
            kill(if std::env::var_os("SOAK").is_some() { 1_000 } else { 200 }, seed);
        }
    }
}
