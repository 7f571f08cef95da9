//! Ledger, counters, thresholds and notes of a salvaged file, on their way into a store.

use std::fmt;
use std::path::Path;

use retry_runtime::counters::Day;
use retry_runtime::dead_letter::Actor;
use retry_runtime::error::StoreError;
use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, params_from_iter};

use crate::counters;
use crate::error::from_sqlite;
use crate::rows::{self, Tx, number};

/// Keys of the ledger that one transaction takes.
pub(crate) const KEYS: usize = 1_000;

/// What was taken in of a salvaged file's books.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BooksTaken {
    /// Keys of the ledger that are new here, or were joined with what is here.
    pub ledger: u64,
    /// Daily counters that were added to those here.
    pub counters: u64,
    /// The counters of this very file had been added before, and were not added again.
    pub counters_known: bool,
}

impl fmt::Display for BooksTaken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} keys of the ledger, ", self.ledger)?;
        if self.counters_known {
            f.write_str("its counters had been added before")
        } else {
            write!(f, "{} daily counters", self.counters)
        }
    }
}

/// One row, as it is in the file.
pub(crate) type Row = Vec<Value>;

/// The books of a salvaged file.
#[derive(Debug)]
pub(crate) struct Books {
    connection: Connection,
}

impl Books {
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = Connection::open_with_flags(path, flags);
        let connection = opened.map_err(|error| from_sqlite(format!("cannot open `{}`", path.display()), error))?;
        Ok(Self { connection })
    }

    fn read(&self, sql: &str, after: &[Value]) -> Result<Vec<Row>, StoreError> {
        let read = || {
            let mut statement = self.connection.prepare_cached(sql)?;
            let width = statement.column_count();
            let rows = statement.query_map(params_from_iter(after), |row| {
                (0..width).map(|at| row.get(at)).collect::<Result<Row, _>>()
            })?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(|error| from_sqlite("cannot read the salvaged books", error))
    }

    /// Some keys of the ledger, behind one.
    pub(crate) fn ledger(&self, after: Option<&Row>) -> Result<Vec<Row>, StoreError> {
        let text = |at: usize| after.and_then(|row| row.get(at)).cloned().unwrap_or(Value::Null);
        self.read(
            &format!("SELECT {LEDGER} FROM ledger WHERE ?1 IS NULL OR (scope, key) > (?1, ?2) ORDER BY scope, key LIMIT {KEYS}"),
            &[text(0), text(1)],
        )
    }

    pub(crate) fn small(&self) -> Result<Small, StoreError> {
        Ok(Small {
            daily: self.read("SELECT day, operation, counter, value FROM daily", &[])?,
            thresholds: self.read("SELECT operation, counter, above, actor, at FROM threshold", &[])?,
            notes: self.read(
                "SELECT fingerprint, fingerprint_version, note, actor, at, scope FROM group_note ORDER BY id",
                &[],
            )?,
        })
    }
}

/// What is few.
#[derive(Debug)]
pub(crate) struct Small {
    daily: Vec<Row>,
    thresholds: Vec<Row>,
    notes: Vec<Row>,
}

const LEDGER: &str = "scope, key, status, attempts, next_at, generation, first_seen, last_seen";

/// Two lives of one key. The one that begins later began without knowing of the other: their attempts add up, once, as the
/// key has the earlier beginning from then on. A key that was reset here stays as it is.
const JOIN: &str = "INSERT INTO ledger(scope, key, status, attempts, next_at, generation, first_seen, last_seen)
  VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
  ON CONFLICT(scope, key) DO UPDATE SET
    attempts = CASE WHEN first_seen > excluded.first_seen THEN attempts + excluded.attempts
                    ELSE max(attempts, excluded.attempts) END,
    status = CASE WHEN 'ok' IN(status, excluded.status) THEN 'ok' WHEN 'gone' IN(status, excluded.status) THEN 'gone'
                  ELSE 'open' END,
    next_at = max(next_at, excluded.next_at),
    first_seen = min(first_seen, excluded.first_seen),
    last_seen = max(last_seen, excluded.last_seen)
  WHERE generation <= excluded.generation
    AND (first_seen > excluded.first_seen OR attempts < excluded.attempts OR last_seen < excluded.last_seen)";

/// Takes some keys in; how many changed anything.
pub(crate) fn take_keys(tx: Tx<'_>, keys: &[Row]) -> rusqlite::Result<u64> {
    let mut statement = tx.connection.prepare_cached(JOIN)?;
    let mut changed = 0;
    for key in keys {
        changed += statement.execute(params_from_iter(key))? as u64;
    }
    Ok(changed)
}

/// Takes in what is few, all of it in one transaction, and once: `digest` says of which file it is.
pub(crate) fn take_small(tx: Tx<'_>, digest: &str, small: &Small, actor: &Actor) -> rusqlite::Result<BooksTaken> {
    let marked = tx
        .connection
        .prepare_cached("INSERT OR IGNORE INTO meta(key, value) VALUES('salvaged ' || ?1, ?2)")?
        .execute(rusqlite::params![digest, tx.millis()])?;
    if marked == 0 {
        return Ok(BooksTaken { counters_known: true, ..BooksTaken::default() });
    }
    let mut taken = BooksTaken::default();
    for row in &small.daily {
        let [Value::Text(day), Value::Text(operation), Value::Text(counter), Value::Integer(value)] = row.as_slice()
        else {
            continue;
        };
        if let Some(day) = Day::parse(day) {
            counters::add(tx, day, operation, counter, number(*value))?;
            taken.counters += 1;
        }
    }
    let put = |sql: &str, rows: &[Row]| -> rusqlite::Result<()> {
        let mut statement = tx.connection.prepare_cached(sql)?;
        rows.iter().try_for_each(|row| statement.execute(params_from_iter(row)).map(drop))
    };
    put(
        "INSERT OR IGNORE INTO threshold(operation, counter, above, actor, at) VALUES(?1, ?2, ?3, ?4, ?5)",
        &small.thresholds,
    )?;
    put(
        "INSERT INTO group_note(fingerprint, fingerprint_version, note, actor, at, scope) VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
        &small.notes,
    )?;
    let detail = format!("{} daily counters of a damaged file were added", taken.counters);
    rows::event(tx, None, "salvaged", Some(actor), (None, None), &detail)?;
    Ok(taken)
}
