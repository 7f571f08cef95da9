//! Row by row from one file into another.

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use crate::payload::Payloads;
use crate::payload::codec;

/// From a damaged file into a new one.
pub(super) struct Copier<'a> {
    pub(super) source: &'a Connection,
    pub(super) into: &'a Connection,
    /// Where the damaged store keeps large payloads.
    pub(super) payloads: &'a Payloads,
}

/// How far a table could be read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Walked {
    pub(super) rows: u64,
    pub(super) gaps: u64,
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
    pub(super) fn table(&self, table: &str) -> rusqlite::Result<Walked> {
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

    /// Copies a table without numbers: from both ends, as far as that goes.
    pub(super) fn keyed(&self, table: &str, key: &[&str]) -> rusqlite::Result<Walked> {
        let columns = self.columns(table)?;
        let mut walked = Walked::default();
        for direction in ["ASC", "DESC"] {
            let order: Vec<_> = key.iter().map(|column| format!("{column} {direction}")).collect();
            let sql = format!(
                "SELECT {} FROM {table} NOT INDEXED WHERE ?1 < 0 ORDER BY {}",
                columns.list(),
                order.join(", ")
            );
            let is_whole = self.rows(&sql, -1, |row| {
                walked.rows += u64::from(self.put(table, &columns, row, 0)?);
                Ok(())
            })?;
            if is_whole {
                return Ok(walked);
            }
            walked.gaps = 1;
        }
        Ok(walked)
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
        if table == "payload" && !self.is_what_was_written(columns, &values) {
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

    /// Whether a payload is what was written: in its row, compressed, or in a file.
    fn is_what_was_written(&self, columns: &Columns, values: &[Value]) -> bool {
        let at = |name: &str| columns.place(name).and_then(|place| values.get(place));
        let (Some(Value::Text(encoding)), Some(Value::Integer(size)), Some(Value::Blob(hash))) =
            (at("encoding"), at("size"), at("sha256"))
        else {
            return false;
        };
        let size = u64::try_from(*size).unwrap_or(0);
        let bytes = match (at("bytes"), at("blob")) {
            (Some(Value::Blob(bytes)), _) => bytes.clone(),
            (Some(Value::Text(text)), _) => text.clone().into_bytes(),
            (_, Some(Value::Text(name))) => match self.payloads.blobs.get(name, codec::largest(size)) {
                Ok(bytes) => bytes,
                Err(_) => return false,
            },
            _ => return false,
        };
        codec::decode(encoding, bytes, size, hash).is_ok()
    }
}
