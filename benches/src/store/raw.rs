//! What the store writes, by prepared statements on a bare connection: the same tables, indexes, rows and durability.

use std::path::Path;

use retry_runtime::dead_letter::{DeadLetter, Payload};
use rusqlite::types::Value;
use rusqlite::{Connection, ToSql, params};

use super::letters::make;

/// The columns of a letter that a row of a list has.
const COLUMNS: &str = "seq, id, scope, kind, job_id, model, state, reason, disposition, class, code, error_class,
     error_type, error_message, fingerprint, attempts, parkings, replays, crashes, max_replays, max_crashes,
     failed_again, fence, owner, lease_until, not_before, replay_after, first_seen, last_seen, closed_at,
     payload_revision, payload_size, payload_altered, sequence_key, payload_error, closed_by, closed_reason,
     fingerprint_version";
const COLUMN_COUNT: usize = 38;

/// Bare SQLite, with the settings of the store's writer.
pub(crate) struct Raw {
    connection: Connection,
}

impl Raw {
    pub(crate) fn open(path: &Path) -> Self {
        make(path);
        let connection = Connection::open(path).unwrap();
        connection
            .execute_batch(
                "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY;
                 PRAGMA cache_size = -16384; PRAGMA cell_size_check = ON; PRAGMA trusted_schema = OFF",
            )
            .unwrap();
        connection.query_row("PRAGMA wal_autocheckpoint = 4000", [], |_| Ok(())).unwrap();
        connection.set_prepared_statement_cache_capacity(64);
        Self { connection }
    }

    fn run(&self, sql: &str, params: &[&dyn ToSql]) {
        self.connection.prepare_cached(sql).unwrap().execute(params).unwrap();
    }

    /// One transaction, with one savepoint a letter: a bad one must not spoil the others.
    pub(crate) fn park(&self, letters: &[DeadLetter]) {
        self.run("BEGIN IMMEDIATE", &[]);
        for letter in letters {
            self.run("SAVEPOINT op", &[]);
            self.park_one(letter);
            self.run("RELEASE op", &[]);
        }
        self.run("COMMIT", &[]);
    }

    fn park_one(&self, letter: &DeadLetter) {
        let c = &self.connection;
        let id = letter.park_id.to_string();
        let Payload::Json(json) = &letter.payload else { return };
        let size = i64::try_from(json.len()).unwrap();
        let known: bool = c
            .prepare_cached("SELECT EXISTS(SELECT 1 FROM parking WHERE park_id = ?1)")
            .unwrap()
            .query_row([&id], |row| row.get(0))
            .unwrap();
        assert!(!known);
        self.run(
            "INSERT INTO arrival(hour, scope, kind, class, n) VALUES(1, 'default', ?1, 'exhausted:429', 1)
             ON CONFLICT(hour, scope, kind, class) DO UPDATE SET n = n + 1",
            &[&letter.kind],
        );
        self.run(
            "INSERT INTO trend(scope, fingerprint, hour, n) VALUES('default', '0123456789abcdef', 1, 1)
             ON CONFLICT(scope, fingerprint, hour) DO UPDATE SET n = n + 1",
            &[],
        );
        let seq: i64 = c
            .prepare_cached(
                "INSERT INTO letter(id, scope, kind, job_id, model, state, reason, disposition, class, code, error_class,
                   error_type, error_message, fingerprint, fingerprint_version, attempts, parkings, max_replays,
                   max_crashes, not_before, first_seen, last_seen, parked_at, payload_revision, payload_size,
                   history_entries, history_bytes, writer)
                 VALUES(?1, 'default', ?2, ?3, ?4, 'parked', 'exhausted', 'unknown', ?5, ?6, 'exhausted:429', ?7, ?8,
                   '0123456789abcdef', 1, 3, 1, 5, 3, 0, ?10, ?10, ?10, 1, ?9, 3, 66, 'raw')
                 ON CONFLICT(scope, kind, job_id) DO NOTHING RETURNING seq",
            )
            .unwrap()
            .query_row(
                params![
                    id,
                    letter.kind,
                    letter.job_id,
                    letter.model,
                    letter.class,
                    letter.code,
                    letter.error_type,
                    letter.error_message,
                    size,
                    retry_runtime::dead_letter::to_millis(letter.failed_at)
                ],
                |row| row.get(0),
            )
            .unwrap();
        self.run(
            "INSERT INTO payload(seq, revision, encoding, size, bytes, sha256, source, created_at)
             VALUES(?1, 1, 'json', ?2, ?3, zeroblob(32), 'park', 1)",
            &[&seq, &size, &json.as_bytes()],
        );
        self.event(seq, "parked", None, "parked");
        for record in &letter.history {
            self.run(
                "INSERT INTO attempt(seq, park_id, outcome, late, number, at, took_us, class, code, message)
                 VALUES(?1, ?2, 'failed', 0, ?3, 1, 20000, ?4, ?5, ?6)",
                &[&seq, &id, &record.attempt, &record.class, &record.code, &record.message],
            );
        }
        self.run(
            "INSERT INTO parking(park_id, seq, letter_id, reason, attempts, failed_at, taken_at, origin, writer)
             VALUES(?1, ?2, ?1, 'exhausted', 3, 1, 1, 'live', 'raw')",
            &[&id, &seq],
        );
    }

    fn event(&self, seq: i64, what: &str, before: Option<&str>, after: &str) {
        self.run(
            "INSERT INTO event(seq, at, what, actor, reason, before, after, detail, scope)
             VALUES(?1, 1, ?2, 'bench:1234', 'exhausted', ?3, ?4, '', 'default')",
            &[&seq, &what, &before, &after],
        );
    }

    /// Claims so many letters at once, then finishes them in the batches the store makes: it waits for nothing, so the
    /// first result to arrive is committed by itself while the others are on their way.
    pub(crate) fn replay(&self, count: usize) {
        self.run("BEGIN IMMEDIATE", &[]);
        let claimed = self.claim(count);
        self.run("COMMIT", &[]);
        let (first, others) = claimed.split_at(1);
        self.finish(first);
        self.finish(others);
    }

    fn claim(&self, count: usize) -> Vec<(i64, String)> {
        let c = &self.connection;
        let claimed: Vec<(i64, String)> = c
            .prepare_cached(&format!(
                "SELECT {COLUMNS} FROM letter WHERE state = 'parked' AND scope = 'default' AND kind = 'fetch'
                   AND not_before <= 2 AND replay_after <= 2 ORDER BY not_before, seq LIMIT ?"
            ))
            .unwrap()
            .query_map([i64::try_from(count).unwrap()], read)
            .unwrap()
            .map(Result::unwrap)
            .collect();
        assert_eq!(claimed.len(), count);
        for (seq, _) in &claimed {
            self.run(
                "UPDATE letter SET state = 'replaying', fence = 1, owner = 'raw', lease_until = 9, failed_again = 0
                 WHERE seq = ?1",
                &[seq],
            );
            self.event(*seq, "claimed", Some("parked"), "replaying");
            let bytes: Vec<u8> = c
                .prepare_cached(
                    "SELECT p.bytes FROM letter l LEFT JOIN payload p ON p.seq = l.seq AND p.revision = l.payload_revision
                     WHERE l.seq = ?1",
                )
                .unwrap()
                .query_row([seq], |row| row.get(0))
                .unwrap();
            std::hint::black_box(bytes);
        }
        claimed
    }

    fn finish(&self, claimed: &[(i64, String)]) {
        self.run("BEGIN IMMEDIATE", &[]);
        for (seq, id) in claimed {
            self.run("SAVEPOINT op", &[]);
            self.connection
                .prepare_cached(&format!("SELECT {COLUMNS} FROM letter WHERE id = ?1"))
                .unwrap()
                .query_row([id], read)
                .unwrap();
            self.run(
                "UPDATE letter SET model = model, state = 'recovered', reason = reason, disposition = disposition,
                   class = class, code = code, error_class = error_class, error_type = error_type,
                   error_message = error_message, fingerprint = fingerprint, fingerprint_version = 1, attempts = 4,
                   parkings = 1, replays = 1, crashes = 0, max_replays = 5, max_crashes = 3, failed_again = 0, fence = 1,
                   owner = NULL, lease_until = NULL, not_before = 0, replay_after = 0, first_seen = first_seen,
                   last_seen = last_seen, closed_at = 9, payload_revision = 1, payload_size = payload_size,
                   payload_altered = 0, writer = 'raw', closed_by = 'raw', closed_reason = 'recovered',
                   history_entries = 4 WHERE seq = ?1",
                &[seq],
            );
            self.run(
                "INSERT INTO attempt(seq, park_id, fence, outcome, late, number, at, took_us, message)
                 VALUES(?1, NULL, 1, 'succeeded', 0, 1, 1, 0, '')",
                &[seq],
            );
            self.event(*seq, "replayed", Some("replaying"), "recovered");
            self.run("RELEASE op", &[]);
        }
        self.run("COMMIT", &[]);
    }
}

/// Every column is read, as a row of a list is.
fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<(i64, String)> {
    for column in 0..COLUMN_COUNT {
        std::hint::black_box(row.get::<_, Value>(column)?);
    }
    Ok((row.get(0)?, row.get(1)?))
}
