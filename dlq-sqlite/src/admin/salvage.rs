//! What can still be read of a damaged file, row by row, around the pages that cannot.

use std::fmt;
use std::path::{Path, PathBuf};

use retry_runtime::error::{StoreError, StoreErrorKind};
use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, params_from_iter};
use sha2::{Digest as _, Sha256};

use crate::config::Settings;
use crate::error::{OpenError, from_sqlite};
use crate::open::files::{OpenerLock, beside};
use crate::open::schema::APPLICATION_ID;
use crate::open::{self};

/// What was saved of a damaged file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Salvaged {
    /// The store with what was read: a file of its own.
    pub path: PathBuf,
    /// Letters.
    pub letters: u64,
    /// Letters the file said it had, where it can still say so.
    pub of: Option<u64>,
    /// Places where letters could not be read: each is a page or a row.
    pub gaps: u64,
    /// Letters that have lost their payload.
    pub without_payload: u64,
    /// Places where payloads, attempts, events or parkings could not be read.
    pub gaps_in_history: u64,
}

impl fmt::Display for Salvaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} letters", self.letters)?;
        if let Some(of) = self.of {
            write!(f, " of {of}")?;
        }
        write!(f, " in {}", self.path.display())?;
        for (n, what) in [
            (self.gaps, "places could not be read"),
            (self.without_payload, "letters have lost their payload"),
            (self.gaps_in_history, "places of their histories could not be read"),
        ] {
            if n > 0 {
                write!(f, ", {n} {what}")?;
            }
        }
        Ok(())
    }
}

/// Reads a damaged file, with its log, and writes what can be read into a new store in `directory`, which is empty. The
/// damaged files are copied first, and never touched. Ledger and counters are left behind.
pub(crate) fn salvage(damaged: &Path, directory: &Path) -> Result<Salvaged, StoreError> {
    let copy = directory.join("damaged.db");
    for suffix in ["", "-wal"] {
        let from = beside(damaged, suffix);
        if suffix.is_empty() || from.exists() {
            std::fs::copy(&from, beside(&copy, suffix)).map_err(OpenError::io("copy", &from))?;
        }
    }
    let failed = |error| from_sqlite(format!("cannot read anything of `{}`", damaged.display()), error);
    let source =
        Connection::open_with_flags(&copy, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)
            .map_err(failed)?;
    let id: i64 = source.query_row("PRAGMA application_id", [], |row| row.get(0)).map_err(failed)?;
    if id != APPLICATION_ID {
        let message = format!("`{}` is no store: its application id is {id:#010x}", damaged.display());
        return Err(StoreError::new(StoreErrorKind::Invalid, message));
    }
    let mut saved = Salvaged { path: directory.join("salvaged.db"), ..Salvaged::default() };
    let target = open::writer(&Settings::new(saved.path.clone()), &OpenerLock::default(), "salvage")?;
    // Large payloads stay where they are: their names are the same.
    link_payloads(damaged, &saved.path);
    saved.of =
        source.query_row("SELECT sum(n) FROM tally", [], |row| row.get(0)).ok().and_then(|n: i64| n.try_into().ok());
    let into = &target.connection;
    let wrong = |error| from_sqlite(format!("cannot write what was saved into `{}`", saved.path.display()), error);
    into.execute_batch("PRAGMA foreign_keys = OFF; BEGIN").map_err(wrong)?;
    let copier = Copier { source: &source, into };
    let letters = copier.table("letter").map_err(failed)?;
    (saved.letters, saved.gaps) = (letters.rows, letters.gaps);
    for part in ["payload", "attempt", "event"] {
        saved.gaps_in_history += copier.table(part).map_or(1, |walked| walked.gaps);
    }
    saved.gaps_in_history += u64::from(copier.parkings().is_err());
    let path = saved.path.clone();
    let wrong = |error| from_sqlite(format!("cannot write what was saved into `{}`", path.display()), error);
    into.execute_batch(ORPHANS).map_err(wrong)?;
    saved.without_payload = into.execute(LOST_PAYLOAD, []).map_err(wrong)? as u64;
    into.execute_batch(MENDED).and_then(|()| into.execute_batch("COMMIT")).map_err(wrong)?;
    target.close(&path);
    Ok(saved)
}

/// What belongs to letters that are lost.
const ORPHANS: &str = "
  DELETE FROM payload WHERE seq NOT IN (SELECT seq FROM letter);
  DELETE FROM attempt WHERE seq NOT IN (SELECT seq FROM letter);
  DELETE FROM parking WHERE seq NOT IN (SELECT seq FROM letter);
  DELETE FROM event WHERE seq NOT IN (SELECT seq FROM letter);";

/// A letter without the payload it points to says so, and can be edited.
const LOST_PAYLOAD: &str = "UPDATE letter SET payload_revision = 0, payload_size = NULL,
    payload_error = 'it was on a damaged page'
  WHERE payload_revision > 0
    AND NOT EXISTS(SELECT 1 FROM payload p WHERE p.seq = letter.seq AND p.revision = letter.payload_revision)";

/// Nobody replays it any more. Without a parking no store would take a letter: its first one has its id.
const MENDED: &str = "
  UPDATE letter SET state = 'parked', owner = NULL, lease_until = NULL WHERE state = 'replaying';
  INSERT OR IGNORE INTO parking(park_id, seq, letter_id, reason, attempts, failed_at, taken_at, origin, writer)
    SELECT id, seq, id, reason, attempts, last_seen, last_seen, 'import', writer FROM letter l
    WHERE NOT EXISTS(SELECT 1 FROM parking p WHERE p.seq = l.seq);
  UPDATE letter SET history_entries = (SELECT count(*) FROM attempt a WHERE a.seq = letter.seq);";

fn link_payloads(damaged: &Path, saved: &Path) {
    let store = damaged.to_str().and_then(|path| path.rsplit_once(".corrupt-")).map(|(store, _)| store);
    let Some(store) = store else { return };
    let blobs = beside(Path::new(store), ".blobs");
    #[cfg(unix)]
    if blobs.is_dir() {
        // Without it, letters with large payloads say that theirs is missing.
        let _linked = std::os::unix::fs::symlink(blobs, beside(saved, ".blobs"));
    }
    #[cfg(not(unix))]
    let _ = (blobs, saved);
}

struct Copier<'a> {
    source: &'a Connection,
    into: &'a Connection,
}

/// How far a table could be read.
#[derive(Default)]
struct Walked {
    rows: u64,
    gaps: u64,
}

/// The columns that both files have.
struct Columns(Vec<String>);

impl Columns {
    fn list(&self) -> String {
        self.0.join(", ")
    }

    fn insert(&self, table: &str) -> String {
        let marks = vec!["?"; self.0.len()].join(", ");
        format!("INSERT OR IGNORE INTO {table}({}) VALUES({marks})", self.list())
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|own| own == name)
    }
}

impl Copier<'_> {
    fn columns(&self, table: &str) -> rusqlite::Result<Columns> {
        let of = |connection: &Connection| -> rusqlite::Result<Vec<String>> {
            let mut statement = connection.prepare(&format!("SELECT name FROM pragma_table_info('{table}')"))?;
            let names = statement.query_map([], |row| row.get(0))?;
            names.collect()
        };
        let known = of(self.into)?;
        Ok(Columns(of(self.source)?.into_iter().filter(|name| known.contains(name)).collect()))
    }

    /// Copies a table in the order of its rows. Behind a place that cannot be read it goes on at the first number that can.
    /// No index is asked: one damaged page of it would cost every row.
    fn table(&self, table: &str) -> rusqlite::Result<Walked> {
        let columns = self.columns(table)?;
        let sql = format!("SELECT rowid, {} FROM {table} NOT INDEXED WHERE rowid >= ?1 ORDER BY rowid", columns.list());
        let (mut from, mut walked) = (i64::MIN, Walked::default());
        loop {
            let mut last = None;
            let is_whole = self.rows(&sql, from, |row| {
                last = Some(row.get(0)?);
                if self.put(table, &columns, row, 1)? {
                    walked.rows += 1;
                } else {
                    walked.gaps += 1;
                }
                Ok(())
            });
            if is_whole? {
                return Ok(walked);
            }
            walked.gaps += 1;
            match self.behind(table, last.map_or(from, |last: i64| last.saturating_add(1))) {
                Some(next) => from = next,
                None => return Ok(walked),
            }
        }
    }

    /// Parkings have no numbers: from both ends, as far as that goes. The others are made up for.
    fn parkings(&self) -> rusqlite::Result<()> {
        let columns = self.columns("parking")?;
        let mut is_whole = false;
        for direction in ["ASC", "DESC"] {
            let sql = format!("SELECT {} FROM parking WHERE ?1 < 0 ORDER BY park_id {direction}", columns.list());
            is_whole = self.rows(&sql, -1, |row| self.put("parking", &columns, row, 0).map(drop))?;
            if is_whole {
                break;
            }
        }
        if is_whole { Ok(()) } else { Err(rusqlite::Error::QueryReturnedNoRows) }
    }

    /// Reads rows until the end, or until one cannot be read; says which. What goes wrong with a row that was read is an error.
    fn rows(
        &self,
        sql: &str,
        from: i64,
        mut each: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<()>,
    ) -> rusqlite::Result<bool> {
        let mut statement = self.source.prepare_cached(sql)?;
        let mut rows = statement.query([from])?;
        loop {
            match rows.next() {
                Ok(Some(row)) => each(row)?,
                Ok(None) => return Ok(true),
                Err(_) => return Ok(false),
            }
        }
    }

    /// Writes a row; `false` for one that is damaged: it breaks the rules of the file, or is no longer what was written.
    fn put(&self, table: &str, columns: &Columns, row: &rusqlite::Row<'_>, first: usize) -> rusqlite::Result<bool> {
        let values = (0..columns.0.len()).map(|at| row.get::<_, Value>(first + at));
        let values = values.collect::<rusqlite::Result<Vec<_>>>()?;
        if table == "payload" && !is_what_was_written(columns, &values) {
            return Ok(false);
        }
        let put = self.into.prepare_cached(&columns.insert(table))?.execute(params_from_iter(values));
        Ok(put.is_ok_and(|rows| rows == 1))
    }

    /// Where a table can be read again, from a number on at which it cannot; `None` at its end.
    fn behind(&self, table: &str, at: i64) -> Option<i64> {
        let at = at.max(0);
        let sql = format!("SELECT min(rowid) FROM {table} NOT INDEXED WHERE rowid >= ?1");
        let probe = |from: i64| -> rusqlite::Result<Option<i64>> {
            self.source.prepare_cached(&sql)?.query_row([from], |row| row.get(0))
        };
        if let Ok(found) = probe(at) {
            // The page is well, and the row is not.
            return found.map(|row| row.saturating_add(1));
        }
        let mut width = 1_i64;
        while probe(at.saturating_add(width)).is_err() {
            width = width.checked_mul(2).filter(|width| *width < 1 << 40)?;
        }
        // Pages hold runs of numbers: the first that can be read is found by halves.
        let (mut bad, mut good) = (at.saturating_add(width / 2), at.saturating_add(width));
        while good - bad > 1 {
            let middle = bad + (good - bad) / 2;
            if probe(middle).is_ok() { good = middle } else { bad = middle }
        }
        probe(good).ok().flatten()
    }
}

/// Whether a payload that stands in its row as it is has its checksum. (What is compressed has one of its own; what is in a file
/// is checked when it is read.)
fn is_what_was_written(columns: &Columns, values: &[Value]) -> bool {
    let at = |name: &str| columns.place(name).and_then(|place| values.get(place));
    if at("encoding") != Some(&Value::Text("json".to_owned())) || at("blob") != Some(&Value::Null) {
        return true;
    }
    match (at("bytes"), at("sha256")) {
        (Some(Value::Blob(bytes)), Some(Value::Blob(hash))) => Sha256::digest(bytes).as_slice() == hash,
        (Some(Value::Text(text)), Some(Value::Blob(hash))) => Sha256::digest(text.as_bytes()).as_slice() == hash,
        _ => false,
    }
}
