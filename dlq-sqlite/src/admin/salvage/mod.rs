//! What can still be read of a damaged file, row by row, around the pages that cannot.

pub(crate) mod books;
mod copier;
mod header;
mod log;
mod report;

use std::io::Read as _;
use std::path::{Path, PathBuf};

use retry_runtime::error::{StoreError, StoreErrorKind};
use rusqlite::{Connection, OpenFlags};
use sha2::{Digest as _, Sha256};

use crate::config::Settings;
use crate::error::{OpenError, from_sqlite};
use crate::open::files::{OpenerLock, beside};
use crate::open::schema::APPLICATION_ID;
use crate::open::{self};
use crate::payload::Payloads;
use crate::payload::blobs::Blobs;
pub use books::BooksTaken;
use copier::{Copier, Walked};
use header::List;
pub use report::Salvaged;

/// Reads a damaged file, with its log, and writes what can be read into a new store in `directory`, which is empty. The
/// damaged files are copied first, and never touched.
pub(crate) fn salvage(damaged: &Path, directory: &Path) -> Result<Salvaged, StoreError> {
    let found = directory.join("damaged.db");
    copy(damaged, &found)?;
    let mut saved = Salvaged { path: directory.join("salvaged.db"), ..Salvaged::default() };
    saved.digest = digest(&found).map_err(OpenError::io("read", damaged))?;
    let target = open::writer(&Settings::new(saved.path.clone()), &OpenerLock::default(), "salvage")?;

    let (whole, log) = (directory.join("mended.db"), beside(&found, "-wal"));
    let mut read = log::Log::default();
    if log.exists() {
        copy(&found, &whole)?;
        let to = beside(&whole, "-wal");
        read = log::mend(&log, &to, header::page_size(&found)).map_err(OpenError::io("read the log of", damaged))?;
    }
    (saved.log_pages, saved.log_pages_lost) = (read.pages, read.lost);
    // Every page of the log that is well; then what is missing, as SQLite itself reads it: up to the first that is not.
    let files = if read.is_damaged { vec![&whole, &found] } else { vec![&found] };
    let root = blobs_of(damaged);
    let payloads = Payloads { blobs: Blobs::beside(&root), file_above: u64::MAX };
    let into = &target.connection;
    let wrong = |error| from_sqlite(format!("cannot write what was saved into `{}`", directory.display()), error);
    into.execute_batch("PRAGMA foreign_keys = OFF; BEGIN").map_err(wrong)?;
    for (at, file) in files.into_iter().enumerate() {
        let is_first = at == 0;
        let source = match source(damaged, file, directory, &mut saved) {
            Ok(source) => source,
            Err(error) if is_first => return Err(error),
            Err(_) => continue,
        };
        let copied = all(&Copier { source: &source, into, payloads: &payloads }, &mut saved, is_first);
        copied.map_err(|error| from_sqlite(format!("cannot read anything of `{}`", damaged.display()), error))?;
    }
    into.execute_batch(ORPHANS).map_err(wrong)?;
    saved.without_payload = into.execute(LOST_PAYLOAD, []).map_err(wrong)? as u64;
    into.execute_batch(MENDED).and_then(|()| into.execute_batch("COMMIT")).map_err(wrong)?;
    let count = |sql: &str| into.query_row(sql, [], |row| row.get::<_, u32>(0)).map(u64::from).map_err(wrong);
    saved.letters = count("SELECT count(*) FROM letter")?;
    saved.ledger = count("SELECT count(*) FROM ledger")?;
    saved.counters = count("SELECT count(*) FROM daily")?;
    // Large payloads stay where they are: their names are the same.
    link_payloads(&root, &saved.path);
    let path = saved.path.clone();
    target.close(&path);
    Ok(saved)
}

/// A file with its log.
fn copy(from: &Path, to: &Path) -> Result<(), StoreError> {
    for suffix in ["", "-wal"] {
        let from = beside(from, suffix);
        if suffix.is_empty() || from.exists() {
            std::fs::copy(&from, beside(to, suffix)).map_err(OpenError::io("copy", &from))?;
        }
    }
    Ok(())
}

/// What a damaged file is known by, wherever it lies: its bytes, and those of its log.
fn digest(file: &Path) -> std::io::Result<String> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    for suffix in ["", "-wal"] {
        let path = beside(file, suffix);
        if suffix.is_empty() || path.exists() {
            let mut file = std::fs::File::open(path)?;
            loop {
                let read = file.read(&mut buffer)?;
                if read == 0 {
                    break;
                }
                hash.update(buffer.get(..read).unwrap_or_default());
            }
        }
        hash.update([0]);
    }
    Ok(hash.finalize().iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}")))
}

/// Opens a copy. Where its first page is damaged, that of a fresh store takes its place.
fn source(damaged: &Path, file: &Path, directory: &Path, saved: &mut Salvaged) -> Result<Connection, StoreError> {
    let failed = |error| from_sqlite(format!("cannot read anything of `{}`", damaged.display()), error);
    let connect = || {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        Connection::open_with_flags(file, flags)
    };
    let first = connect().and_then(|source| {
        let id: i64 = source.query_row("PRAGMA application_id", [], |row| row.get(0))?;
        Ok((header::names(&source)?, id, source))
    });
    let why = match first {
        Ok((_, APPLICATION_ID, source)) => return Ok(source),
        Ok((_, id, _)) if header::is_there(file) => {
            let message = format!("`{}` is no store: its application id is {id:#010x}", damaged.display());
            return Err(StoreError::new(StoreErrorKind::Invalid, message));
        }
        Ok(_) => rusqlite::Error::QueryReturnedNoRows,
        Err(error) => error,
    };
    let fresh = directory.join("fresh.db");
    open::writer(&Settings::new(fresh.clone()), &OpenerLock::default(), "salvage")?.close(&fresh);
    for list in [List::Own, List::Fresh] {
        header::put(file, &fresh, list).map_err(OpenError::io("mend a copy of", damaged))?;
        let tried = connect().and_then(|source| Ok((header::names(&source)?, source)));
        if let Ok((names, source)) = tried
            && ["letter", "payload", "attempt", "event", "parking"].iter().all(|table| names.contains(*table))
        {
            saved.header_mended = true;
            return Ok(source);
        }
    }
    Err(failed(why))
}

/// Every table, of one copy. What is there already stays.
fn all(copier: &Copier<'_>, saved: &mut Salvaged, is_first: bool) -> rusqlite::Result<()> {
    let mut gaps = Gaps::default();
    gaps.letters = copier.table("letter")?.gaps;
    for part in ["payload", "attempt", "event"] {
        gaps.history += copier.table(part).map_or(1, |walked| walked.gaps);
    }
    gaps.history += copier.keyed("parking", &["park_id"]).map_or(1, |walked| walked.gaps);
    let books = [
        copier.keyed("ledger", &["scope", "key"]),
        copier.keyed("daily", &["day", "operation", "counter"]),
        copier.keyed("threshold", &["operation", "counter"]),
        copier.table("group_note"),
    ];
    // A file of schema 1 has no thresholds.
    gaps.books = books.into_iter().flatten().map(|walked: Walked| walked.gaps).sum();
    let count = |sql: &str| copier.source.query_row(sql, [], |row| row.get::<_, i64>(0)).ok();
    let some = |n: Option<i64>| n.and_then(|n| u64::try_from(n).ok());
    if is_first {
        saved.of = some(count("SELECT sum(n) FROM tally"));
        saved.under_way = some(count("SELECT count(*) FROM journal")).unwrap_or(0);
        saved.operations =
            some(count("SELECT count(*) FROM op WHERE status IN('pending','running','paused')")).unwrap_or(0);
        (saved.gaps, saved.gaps_in_history, saved.gaps_in_books) = (gaps.letters, gaps.history, gaps.books);
    }
    Ok(())
}

/// Places that could not be read.
#[derive(Default)]
struct Gaps {
    letters: u64,
    history: u64,
    books: u64,
}

/// What belongs to letters that are lost.
const ORPHANS: &str = "
  DELETE FROM payload WHERE seq NOT IN (SELECT seq FROM letter);
  DELETE FROM attempt WHERE seq NOT IN (SELECT seq FROM letter);
  DELETE FROM parking WHERE seq NOT IN (SELECT seq FROM letter);
  DELETE FROM event WHERE seq NOT IN (SELECT seq FROM letter);";

/// A letter without the payload it points to says so, and can be edited.
const LOST_PAYLOAD: &str = "UPDATE letter SET payload_revision = 0, payload_size = NULL,
    payload_error = 'it was on a damaged page, or its file is damaged'
  WHERE payload_revision > 0
    AND NOT EXISTS(SELECT 1 FROM payload p WHERE p.seq = letter.seq AND p.revision = letter.payload_revision)";

/// Nobody replays it any more. Without a parking no store would take a letter: its first one has its id.
const MENDED: &str = "
  UPDATE letter SET state = 'parked', owner = NULL, lease_until = NULL WHERE state = 'replaying';
  INSERT OR IGNORE INTO parking(park_id, seq, letter_id, reason, attempts, failed_at, taken_at, origin, writer)
    SELECT id, seq, id, reason, attempts, last_seen, last_seen, 'import', writer FROM letter l
    WHERE NOT EXISTS(SELECT 1 FROM parking p WHERE p.seq = l.seq);
  UPDATE letter SET history_entries = (SELECT count(*) FROM attempt a WHERE a.seq = letter.seq);";

/// The store whose large payloads these are: the file itself, or the one that it was before it was set aside.
fn blobs_of(damaged: &Path) -> PathBuf {
    let was = damaged.to_str().and_then(|path| path.rsplit_once(".corrupt-")).map(|(store, _)| PathBuf::from(store));
    was.filter(|_| !beside(damaged, ".blobs").is_dir()).unwrap_or_else(|| damaged.to_owned())
}

fn link_payloads(of: &Path, saved: &Path) {
    let blobs = beside(of, ".blobs");
    let blobs = std::path::absolute(&blobs).unwrap_or(blobs);
    #[cfg(unix)]
    if blobs.is_dir() {
        // Without it, letters with large payloads say that theirs is missing.
        let _linked = std::os::unix::fs::symlink(blobs, beside(saved, ".blobs"));
    }
    #[cfg(not(unix))]
    let _ = (blobs, saved);
}
