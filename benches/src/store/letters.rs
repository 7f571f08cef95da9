//! What is stored.

use std::path::Path;
use std::time::{Duration, SystemTime};

use dlq_sqlite::SqliteStore;
use retry_runtime::StopReason;
use retry_runtime::attempt::AttemptRecord;
use retry_runtime::dead_letter::{DeadLetter, Payload};
use rusqlite::{Connection, params};

/// A letter as a real call leaves it: about 1 KiB of payload, three attempts.
pub(crate) fn letter(job: &str) -> DeadLetter {
    let now = SystemTime::now();
    let mut letter = DeadLetter::new("fetch", StopReason::Exhausted, now);
    letter.job_id = Some(job.to_owned());
    letter.model = Some("gemini-pro".to_owned());
    letter.class = Some("rate_limit".to_owned());
    letter.code = Some(429);
    letter.error_type = "app::Error".into();
    letter.error_message = "429 Too Many Requests: quota exceeded".into();
    letter.payload = Payload::Json(format!("{{\"id\":\"{job}\",\"prompt\":\"{}\"}}", "x".repeat(1_000)));
    letter.attempts = 3;
    for attempt in 1..=3 {
        let took = Duration::from_millis(20);
        letter.history.push(AttemptRecord::new(attempt, now, took, "rate_limit", Some(429), "429 Too Many Requests"));
    }
    letter
}

/// The store makes the tables.
pub(crate) fn make(path: &Path) {
    SqliteStore::options(path).reserve(false).open().unwrap().close(Duration::from_secs(9));
}

/// A large file of open letters, nine in ten parked, the others abandoned; letter `n` was last seen at millisecond `n`.
/// Classes and labels go by the same number, so that most pairs of them have no letter.
pub(crate) fn fill(path: &Path, letters: u32) {
    make(path);
    let began = std::time::Instant::now();
    let connection = Connection::open(path).unwrap();
    connection.execute_batch("PRAGMA synchronous = OFF; PRAGMA cache_size = -262144; BEGIN").unwrap();
    connection
        .execute(
            "INSERT INTO letter(id, scope, kind, job_id, model, state, reason, disposition, class, error_class, error_type,
               error_message, fingerprint, fingerprint_version, attempts, parkings, max_replays, max_crashes, first_seen,
               last_seen, parked_at, closed_at, payload_revision, payload_size, writer)
             SELECT printf('%032d', n), 'default', 'kind' || (n % 5), 'job' || n, 'model' || (n % 8),
               CASE n % 10 WHEN 7 THEN 'abandoned' ELSE 'parked' END, 'exhausted', 'unknown', 'class' || (n % 8),
               'exhausted:class' || (n % 8), 'app::Error', 'failed', printf('%016d', n % 200), 2, 3, 1, 5, 3, n, n, n,
               CASE n % 10 WHEN 7 THEN n END, 1, 20, 'bench'
             FROM (WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < ?1) SELECT n FROM c)",
            params![letters],
        )
        .unwrap();
    connection
        .execute_batch(
            "INSERT INTO payload(seq, revision, encoding, size, bytes, sha256, source, created_at)
             SELECT seq, 1, 'json', 20, CAST('{\"n\":\"0123456789ab\"}' AS BLOB), zeroblob(32), 'park', 1 FROM letter;
             INSERT INTO parking(park_id, seq, letter_id, reason, attempts, failed_at, taken_at, origin, writer)
             SELECT id, seq, id, 'exhausted', 3, 1, 1, 'live', 'bench' FROM letter;
             COMMIT",
        )
        .unwrap();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    println!("        ({letters} letters written in {:.0} s)", began.elapsed().as_secs_f64());
}
