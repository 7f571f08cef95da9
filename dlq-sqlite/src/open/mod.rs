//! Opening a store's file: for writing, for reading, and what to do with a corrupt one.

pub(crate) mod files;
mod mounts;
mod pragmas;
pub(crate) mod schema;
pub(crate) mod version;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use retry_runtime::error::{StoreError, StoreErrorKind};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::config::{Access, Settings};
use crate::error::OpenError;
use files::{FileIdentity, OpenerLock};
use schema::Found;

/// Files up to this size are checked when they are opened; larger ones when somebody asks.
const QUICK_CHECK_UP_TO: u64 = 8 << 20;

/// One opening at a time in a process: creating a file closes a descriptor of it, and that would drop the locks that
/// another connection of this process has just taken on it.
static OPENING: Mutex<()> = Mutex::new(());

/// The connection that writes, with what it needs to know whether it still writes to the right file.
pub(crate) struct Writer {
    pub(crate) connection: Connection,
    pub(crate) identity: FileIdentity,
    /// A corrupt file that was set aside on the way.
    pub(crate) set_aside: Option<PathBuf>,
}

impl Writer {
    /// Closes the connection with everything in the file alone: a copy of it is a copy of the store. What somebody else
    /// still reads from the log stays in it until they close.
    pub(crate) fn close(self, path: &Path) {
        if FileIdentity::of(path) != Some(self.identity) {
            // The log's name means another file's log.
            return self.abandon();
        }
        // Readers are not waited for, and SQLite itself does the same again when this was the last connection.
        let _emptied = self
            .connection
            .busy_timeout(Duration::ZERO)
            .and_then(|()| self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())));
    }

    /// Closes the connection without touching the file: what is in the log stays there.
    pub(crate) fn abandon(self) {
        // A connection that refuses the setting closes as it likes.
        let _kept = keep_log_on_close(&self.connection, true);
    }
}

/// A connection that cannot write.
pub(crate) struct Reader {
    pub(crate) connection: Connection,
    pub(crate) identity: FileIdentity,
}

/// Opens for writing, creating the file where that is allowed. `stamp` names a file that has to be set aside.
pub(crate) fn writer(settings: &Settings, lock: &OpenerLock, stamp: &str) -> Result<Writer, OpenError> {
    writer_again(settings, lock, stamp, None)
}

/// The same for a store that had the file `ours` open: when that one is no database any more, it was damaged.
pub(crate) fn writer_again(
    settings: &Settings,
    lock: &OpenerLock,
    stamp: &str,
    ours: Option<FileIdentity>,
) -> Result<Writer, OpenError> {
    let _one_at_a_time = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
    let path = &settings.path;
    if !settings.network_file_system {
        refuse_network(settings)?;
    }
    if settings.access == Access::Create {
        files::create_directory(path)?;
        if ours.is_none() && files::is_of_somebody_else(path) {
            return Err(OpenError::OtherFile(path.clone()));
        }
        lock.hold(path, settings.busy_limit)?;
        let aside = set_orphan_log_aside(settings, lock, stamp)?;
        files::create(path)?;
        open_or_set_aside(settings, lock, stamp, ours, aside)
    } else {
        // Where there are openers, one of them may be setting it aside: what is missing then is missing only under the lock.
        if !files::beside(path, ".lock").exists() {
            must_be_there(settings)?;
        }
        lock.hold(path, settings.busy_limit)?;
        must_be_there(settings)?;
        open_or_set_aside(settings, lock, stamp, ours, None)
    }
}

fn open_or_set_aside(
    settings: &Settings,
    lock: &OpenerLock,
    stamp: &str,
    ours: Option<FileIdentity>,
    set_aside: Option<PathBuf>,
) -> Result<Writer, OpenError> {
    let path = &settings.path;
    let is_damaged = |error: &OpenError| match error {
        // Where none is to be made, a file of something else is somebody else's.
        OpenError::NotADatabase(_) if settings.access != Access::Create => {
            ours.is_some() && ours == FileIdentity::of(path)
        }
        error => error.kind() == StoreErrorKind::Corrupt,
    };
    let corrupt = match connect_patiently(settings) {
        Err(error) if is_damaged(&error) => error,
        other => return other.map(|(connection, identity)| Writer { connection, identity, set_aside }),
    };
    let opened = lock.exclusively(|| match connect_patiently(settings) {
        Err(again) if is_damaged(&again) => {
            let moved = files::set_aside(path, stamp).map_err(OpenError::io("set aside the corrupt", path))?;
            replace(settings, &moved).map(|opened| (opened, Some(moved)))
        }
        other => other.map(|opened| (opened, None)),
    });
    // Where somebody else has it open, it is left alone.
    let ((connection, identity), moved) = opened.ok_or(corrupt)??;
    Ok(Writer { connection, identity, set_aside: moved.or(set_aside) })
}

/// Makes a fresh store where one was set aside, also for those who make none where there was none.
fn replace(settings: &Settings, moved: &Path) -> Result<(Connection, FileIdentity), OpenError> {
    let path = &settings.path;
    let fresh = Settings { access: Access::Create, ..settings.clone() };
    files::create(path).and_then(|()| connect_patiently(&fresh)).inspect_err(|_| {
        if settings.access != Access::Create {
            // They would never get past a missing or empty file. One that cannot be put back is said by its next opening.
            let _put_back = files::put_back(path, moved);
        }
    })
}

fn set_orphan_log_aside(settings: &Settings, lock: &OpenerLock, stamp: &str) -> Result<Option<PathBuf>, OpenError> {
    let path = &settings.path;
    if !files::has_orphan_log(path) {
        return Ok(None);
    }
    let moved = lock.exclusively(|| {
        if !files::has_orphan_log(path) {
            return Ok(None);
        }
        files::set_aside(path, stamp).map(Some).map_err(OpenError::io("set aside the log of", path))
    });
    moved.unwrap_or_else(|| {
        let message = format!("`{}` is gone or empty, its log is there, and others have it open", path.display());
        Err(OpenError::Store(StoreError::new(StoreErrorKind::Corrupt, message)))
    })
}

/// Opens for reading. Nothing is created, changed or set aside.
pub(crate) fn reader(settings: &Settings, lock: &OpenerLock) -> Result<Reader, OpenError> {
    let _one_at_a_time = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
    let path = &settings.path;
    must_be_there(settings)?;
    if !settings.network_file_system {
        refuse_network(settings)?;
    }
    lock.hold_if_there(path, settings.busy_limit)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(OpenError::sqlite("open for reading", path))?;
    let identity = FileIdentity::of(path).ok_or_else(|| OpenError::Missing(path.clone()))?;
    let found = pragmas::for_reading(&connection, settings)
        .and_then(|()| schema::look(&connection, settings))
        .map_err(|error| name_the_directory(error, path))?;
    match found {
        Found::New => return Err(OpenError::Empty(path.clone())),
        Found::Ours(_) | Found::NewerReadable(_) => {}
    }
    connection.set_prepared_statement_cache_capacity(64);
    Ok(Reader { connection, identity })
}

/// A file that opens and cannot be read: SQLite's own words would point at the file, which is not what is wrong.
fn name_the_directory(error: OpenError, path: &Path) -> OpenError {
    let code = |error: &StoreError| {
        let source = std::error::Error::source(error)?.downcast_ref::<rusqlite::Error>()?;
        source.sqlite_error_code()
    };
    match error {
        OpenError::Store(source) if matches!(code(&source), Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly)) => {
            OpenError::UnwritableDirectory { path: path.to_owned(), source }
        }
        other => other,
    }
}

fn refuse_network(settings: &Settings) -> Result<(), OpenError> {
    match mounts::network_file_system(&settings.path) {
        Some(file_system) => Err(OpenError::NetworkFileSystem { path: settings.path.clone(), file_system }),
        None => Ok(()),
    }
}

fn must_be_there(settings: &Settings) -> Result<(), OpenError> {
    match std::fs::metadata(&settings.path) {
        Ok(metadata) if metadata.len() == 0 => Err(OpenError::Empty(settings.path.clone())),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(OpenError::Missing(settings.path.clone())),
        Err(error) => Err(OpenError::io("look at", &settings.path)(error)),
    }
}

/// Others may be creating or migrating the same file: their locks are waited for, also where SQLite does not.
fn connect_patiently(settings: &Settings) -> Result<(Connection, FileIdentity), OpenError> {
    let end = Instant::now() + settings.busy_limit;
    loop {
        match connect(settings) {
            Err(error) if error.kind() == StoreErrorKind::Busy && Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(10));
            }
            other => return other,
        }
    }
}

fn connect(settings: &Settings) -> Result<(Connection, FileIdentity), OpenError> {
    let path = &settings.path;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(OpenError::sqlite("open", path))?;
    let identity = FileIdentity::of(path).ok_or_else(|| OpenError::Missing(path.clone()))?;
    connection.busy_timeout(settings.busy_timeout).map_err(OpenError::sqlite("set the busy timeout of", path))?;
    // Closing the last connection empties the log into the file and deletes it. A file that turns out to be corrupt must
    // keep its log: committed letters may be in it alone.
    keep_log_on_close(&connection, true).map_err(OpenError::sqlite("prepare", path))?;
    let found = schema::look(&connection, settings)?;
    if found == Found::New {
        if settings.access != Access::Create {
            return Err(OpenError::Empty(path.clone()));
        }
        pragmas::before_first_table(&connection, settings)?;
    }
    pragmas::for_writing(&connection, settings)?;
    match found {
        Found::New => schema::migrate(&mut connection, settings)?,
        Found::Ours(version) => {
            quick_check(&connection, settings)?;
            if version < schema::VERSION {
                schema::migrate(&mut connection, settings)?;
            }
        }
        Found::NewerReadable(_) => quick_check(&connection, settings)?,
    }
    keep_log_on_close(&connection, false).map_err(OpenError::sqlite("prepare", path))?;
    connection.set_prepared_statement_cache_capacity(128);
    Ok((connection, identity))
}

fn keep_log_on_close(connection: &Connection, keep: bool) -> rusqlite::Result<bool> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keep)
}

fn quick_check(connection: &Connection, settings: &Settings) -> Result<(), OpenError> {
    let path = &settings.path;
    if std::fs::metadata(path).map_or(0, |metadata| metadata.len()) > QUICK_CHECK_UP_TO {
        return Ok(());
    }
    let verdict: String = connection
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .map_err(OpenError::sqlite("check", path))?;
    if verdict == "ok" {
        return Ok(());
    }
    let message = format!("`{}` is damaged: {verdict}", path.display());
    Err(OpenError::Store(StoreError::new(StoreErrorKind::Corrupt, message)))
}

#[cfg(all(test, unix))]
mod tests;
