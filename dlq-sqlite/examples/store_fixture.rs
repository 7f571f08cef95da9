//! Makes the file that a test opens for ever (`tests/fixtures/store-v2.db`): a store of this schema with letters in every
//! state, everything operators do, a payload in a file of its own, a ledger and counters. Run once for each schema version,
//! never again for an old one.
//!
//! `cargo run -p dlq-sqlite --example store_fixture -- FILE`

use std::error::Error;
use std::ffi::OsStr;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use dlq_sqlite::SqliteStore;
use retry_runtime::attempt::AttemptRecord;
use retry_runtime::counters::{DailyCounters, Thresholds};
use retry_runtime::dead_letter::{
    Actor, BulkOperations, ClaimRequest, DeadLetter, DeadLetterSink, DeadLetterStore, Edit, Failure, Filter, Finish,
    ManualClock, OperationRequest, PageRequest, Payload, ReplayOutcome, Steer, Verb, from_millis,
};
use retry_runtime::id::Id;
use retry_runtime::ledger::{AttemptLedger, Begin, End, LedgerKey};
use retry_runtime::{Disposition, StopReason};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// 2026-01-02 03:04:05.006 UTC.
const START: i64 = 1_767_323_045_006;

fn main() -> Outcome<()> {
    let path = std::env::args_os().nth(1).ok_or("usage: store_fixture FILE")?;
    let time = ManualClock::new(from_millis(START));
    let options = SqliteStore::options(&path).create(true).clock(time.clock()).reserve(false);
    let store = options.payload_file_above(1).open()?;
    letters(&store, &time)?;
    ledger(&store, &time)?;
    operators(&store, &time)?;
    store.close(Duration::from_secs(60));
    drop(store);
    rest(&path)
}

fn letters(store: &SqliteStore, time: &ManualClock) -> Outcome<()> {
    for (n, job) in ["parked", "merged", "recovered", "gone", "abandoned", "replaying", "hinted"].iter().enumerate() {
        park(store, &letter(n, job, START), 0)?;
    }
    time.advance(Duration::from_secs(60));
    // The same job again, with another payload and another error.
    let mut again = letter(1, "merged", START + 60_000);
    again.park_id = id(100)?;
    again.reason = StopReason::Permanent;
    again.disposition = Disposition::Permanent;
    again.code = Some(403);
    again.class = Some("forbidden".into());
    again.error_message = "403 Forbidden".into();
    again.payload = Payload::Json("{\"id\":\"merged\",\"edited\":true}".into());
    park(store, &again, 100)?;
    let mut bare = letter(7, "-", START);
    bare.job_id = None;
    bare.payload = Payload::Unserializable("key must be a string".into());
    park(store, &bare, 7)?;

    let failure = || Failure::new(StopReason::Exhausted, Disposition::Retryable, "still failing");
    replay(store, "recovered", ReplayOutcome::Recovered)?;
    replay(store, "gone", ReplayOutcome::Gone(Failure::new(StopReason::Gone, Disposition::Gone, "404 Not Found")))?;
    for _ in 0..5 {
        replay(store, "abandoned", ReplayOutcome::Failed(failure()))?;
        time.advance(Duration::from_secs(7_200));
    }
    let mut hint = failure();
    hint.not_before = Some(from_millis(START + 90 * 86_400_000));
    replay(store, "hinted", ReplayOutcome::Failed(hint))?;
    claim(store, "replaying")?;
    Ok(())
}

fn ledger(store: &SqliteStore, time: &ManualClock) -> Outcome<()> {
    let hint = End::Failed { next_at: Some(from_millis(START + 90 * 86_400_000)) };
    for (key, end) in [("ok", End::Ok), ("gone", End::Gone), ("waits", hint)] {
        let key = LedgerKey::new("image_archive", key);
        let Begin::Go { token, .. } = answer(store.begin(key.clone(), 3))?? else { return Err("refused".into()) };
        answer(store.end(key, token, end))??;
    }
    for _ in 0..2 {
        answer(store.begin(LedgerKey::new("image_archive", "open"), 3))??;
        time.advance(Duration::from_secs(86_400));
    }
    answer(store.add("image_archive", "worker_ok", 41))??;
    answer(store.add("image_archive", "fallback_bytes", 500_001))??;
    Ok(())
}

/// What operators do.
fn operators(store: &SqliteStore, time: &ManualClock) -> Outcome<()> {
    let mira = || Actor::new("mira", "the quota was raised");
    let mut large = letter(8, "large", START);
    large.payload = Payload::Json(format!("\"{}\"", "large ".repeat(20_000)));
    park(store, &large, 8)?;
    for (n, job) in [(9, "edited"), (10, "by hand"), (11, "resolved"), (12, "restored"), (13, "frozen")] {
        park(store, &letter(n, job, START), 200 + n as u64)?;
    }
    time.advance(Duration::from_secs(60));
    let letter_id = |job: &str| -> Outcome<String> {
        let mut filter = Filter::all();
        filter.job_ids = vec![job.to_owned()];
        let found = now(store.list(filter, PageRequest::default()))?.rows.pop().ok_or("no such job")?;
        Ok(found.letter_id)
    };
    now(store.edit(Edit::new(letter_id("edited")?, 1, "{\"id\":\"edited by hand\"}"), mira()))?;
    now(store.discard(letter_id("by hand")?, mira()))?;
    now(store.resolve(letter_id("resolved")?, mira()))?;
    now(store.discard(letter_id("restored")?, mira()))?;
    now(store.restore(letter_id("restored")?, 2, mira()))?;
    let mut frozen = Filter::parked();
    frozen.job_ids = vec!["frozen".to_owned(), "large".to_owned()];
    let operation = now(store.start(OperationRequest::new(Verb::Replay, frozen), mira()))?;
    now(store.steer(operation.id, Steer::Pause, mira()))?;
    now(store.set_threshold("image_archive".into(), "fallback_bytes".into(), 500_000, mira()))?;
    now(store.reset(LedgerKey::new("image_archive", "gone"), mira()))?;
    Ok(())
}

/// What no verb of this version writes: room that is kept for later ones.
fn rest(path: &OsStr) -> Outcome<()> {
    let connection = rusqlite::Connection::open(path)?;
    connection.execute_batch(&format!(
        "INSERT INTO owner(id, description, started_at, seen_at, lease_until)
           VALUES('owner-1', 'fixture', {START}, {START}, {START});
         INSERT INTO journal(park_id, scope, kind, job_id, owner, accepted_at)
           VALUES('019b7ca9-8c8e-7000-8000-00000000ffff', 'default', 'fetch', 'journalled', 'owner-1', {START});
         INSERT INTO pruned(day, scope, state, kind, class, n)
           VALUES('2026-01-01', 'default', 'recovered', 'fetch', 'exhausted:429', 3);
         INSERT OR IGNORE INTO trend(scope, fingerprint, hour, n)
           SELECT scope, fingerprint, parked_at / 3600000, 1 FROM letter WHERE job_id = 'parked';
         INSERT INTO group_note(scope, fingerprint, fingerprint_version, note, actor, at)
           SELECT scope, fingerprint, fingerprint_version, 'asked for more quota', 'mira', {START}
             FROM letter WHERE job_id = 'parked';
         PRAGMA wal_checkpoint(TRUNCATE)"
    ))?;
    Ok(())
}

fn id(n: u64) -> Outcome<Id> {
    Id::parse(&format!("019b7ca9-8c8e-7000-8000-{n:012x}")).ok_or_else(|| "no id".into())
}

fn letter(n: usize, job: &str, at: i64) -> DeadLetter {
    let mut letter = DeadLetter::new("fetch", StopReason::Exhausted, from_millis(at));
    letter.job_id = Some(job.to_owned());
    letter.model = Some("gemini-2.5-pro".to_owned());
    letter.payload = Payload::Json(format!("{{\"id\":\"{job}\"}}"));
    letter.disposition = Disposition::Retryable;
    letter.class = Some("rate_limit".to_owned());
    letter.code = Some(429);
    "app::Error".clone_into(&mut letter.error_type);
    letter.error_message = format!("429 Too Many Requests: quota of project {n}");
    letter.attempts = 2;
    for attempt in 1..=2 {
        let took = Duration::from_micros(1_500 * u64::from(attempt));
        let mut record = AttemptRecord::new(attempt, from_millis(at), took, "rate_limit", Some(429), "429");
        record.wait = (attempt == 1).then_some(Duration::from_secs(2));
        letter.history.push(record);
    }
    letter
}

fn park(store: &SqliteStore, letter: &DeadLetter, n: u64) -> Outcome<()> {
    let mut letter = letter.clone();
    if n == 0 {
        let job = letter.job_id.as_deref().unwrap_or_default();
        letter.park_id = id(job.bytes().map(u64::from).sum())?;
    } else {
        letter.park_id = id(n)?;
    }
    let parking = answer(store.submit(letter))?;
    if parking.is_kept() { Ok(()) } else { Err(parking.to_string().into()) }
}

fn claim(store: &SqliteStore, job: &str) -> Outcome<(String, u64)> {
    let mut request = ClaimRequest::new(["fetch"], "fixture");
    request.filter = Filter::parked();
    request.filter.job_ids = vec![job.to_owned()];
    request.ignore_backoff = true;
    request.ignore_not_before = true;
    let claimed = now(store.claim(request, Actor::new("fixture", "made once")))?.pop().ok_or("nothing to claim")?;
    Ok((claimed.row.letter_id, claimed.row.fence))
}

fn replay(store: &SqliteStore, job: &str, outcome: ReplayOutcome) -> Outcome<()> {
    let (letter_id, fence) = claim(store, job)?;
    now(store.finish(Finish::new(letter_id, fence, outcome), Actor::new("fixture", "made once")))?;
    Ok(())
}

fn answer<T>(reply: retry_runtime::reply::Reply<T>) -> Outcome<T> {
    reply.wait(Duration::from_secs(60)).map_err(|_| "no answer in a minute".into())
}

/// Polls until it is done: a program of a few lines needs no runtime.
fn now<T, E: Error + 'static>(future: impl Future<Output = Result<T, E>>) -> Outcome<T> {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(result) => return Ok(result?),
            Poll::Pending => std::thread::yield_now(),
        }
    }
}
