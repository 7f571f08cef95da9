//! What can go wrong, and how SQLite's codes become the runtime's kinds.

use std::path::{Path, PathBuf};

use retry_runtime::error::{StoreError, StoreErrorKind};
use rusqlite::ErrorCode;

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no file, and none was to be created.
    #[error("no store at `{}`: the file does not exist", .0.display())]
    Missing(PathBuf),
    /// The file is empty or has no tables, and none were to be created.
    #[error("no store at `{}`: the file is empty", .0.display())]
    Empty(PathBuf),
    /// The path names no file: `:memory:`, or nothing at all.
    #[error(
        "`{}` names no file, and a store is a file; `retry_runtime::dead_letter::MemoryStore` keeps letters in memory",
        .0.display()
    )]
    NoFile(PathBuf),
    /// The file is no SQLite database. Where a store may be [made](crate::SqliteOptions::create), and one was here before, it
    /// is set aside instead.
    #[error("`{}` is not a SQLite database", .0.display())]
    NotADatabase(PathBuf),
    /// There is a file that never was a SQLite database, and no store was ever opened there: somebody else's, which is left as
    /// it is.
    #[error("`{}` is not a SQLite database, and was none before: it is left as it is; a store needs a file of its own", .0.display())]
    OtherFile(PathBuf),
    /// The file can be read and its log cannot: SQLite wants to make the `-shm` file that goes with it.
    #[error(
        "cannot read `{}` as this user: a SQLite file with a write-ahead log needs a directory that may be written, or \
         readable `-wal` and `-shm` files of a program that has it open: {source}",
        path.display()
    )]
    UnwritableDirectory {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        source: StoreError,
    },
    /// The file is a SQLite database of another program.
    #[error(
        "`{}` belongs to another program: its application id is {found:#010x}, a store's is {expected:#010x}",
        path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The application id found in it.
        found: i64,
        /// The application id of a store.
        expected: i64,
    },
    /// The file was written by a newer version, which said that older ones cannot read it.
    ///
    /// Only [`open_read_only`](crate::SqliteOptions::open_read_only) fails with it. A store that is opened for writing opens
    /// all the same, so that no job fails for it: it is [down](crate::SqliteStore::is_down), says so (notice `store_down`),
    /// and its letters go to the spill file, from where the newer version takes them in. With this text changes are refused
    /// as `ReadOnly`, and questions as `Unavailable`: nothing in the file can be read.
    #[error(
        "`{}` has schema {schema}, readable from schema version {min_reader} on; this program knows version {known}: \
         it takes a program of a later version",
        path.display()
    )]
    TooNew {
        /// The file.
        path: PathBuf,
        /// Its schema version.
        schema: i64,
        /// The oldest version that can read it.
        min_reader: i64,
        /// The version this program knows.
        known: i64,
    },
    /// The file lies on a network file system, where SQLite's locks do not hold.
    #[error(
        "`{}` lies on a network file system ({file_system}), where SQLite corrupts; put it on a local disk, or set \
         `network_file_system(true)` to take the slow, exclusive mode",
        path.display()
    )]
    NetworkFileSystem {
        /// The file.
        path: PathBuf,
        /// The file system's type.
        file_system: String,
    },
    /// SQLite took a setting and did not keep it.
    #[error("`{}`: PRAGMA {name} is {found} after it was set to {wanted}", path.display())]
    Pragma {
        /// The file.
        path: PathBuf,
        /// The setting.
        name: &'static str,
        /// What was asked for.
        wanted: String,
        /// What was read back.
        found: String,
    },
    /// The operating system refused.
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file or directory.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// SQLite refused.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl OpenError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }

    pub(crate) fn sqlite(action: &str, path: &Path) -> impl FnOnce(rusqlite::Error) -> Self {
        let place = format!("cannot {action} `{}`", path.display());
        let path = path.to_owned();
        move |source| match source.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Self::NotADatabase(path),
            _ => Self::Store(from_sqlite(place, source)),
        }
    }

    /// What it is to somebody who asks: what cannot be read may not "only be read".
    pub(crate) fn of_question(self) -> StoreError {
        match self {
            Self::TooNew { .. } => StoreError::new(StoreErrorKind::Unavailable, self.to_string()),
            other => other.into(),
        }
    }

    /// Which of the runtime's kinds this is.
    pub fn kind(&self) -> StoreErrorKind {
        match self {
            Self::Store(error) => error.kind(),
            Self::NoFile(_) | Self::OtherFile(_) | Self::Foreign { .. } | Self::NetworkFileSystem { .. } => {
                StoreErrorKind::Invalid
            }
            Self::NotADatabase(_) => StoreErrorKind::Corrupt,
            Self::UnwritableDirectory { source, .. } => source.kind(),
            Self::TooNew { .. } => StoreErrorKind::ReadOnly,
            Self::Missing(_) | Self::Empty(_) | Self::Pragma { .. } => StoreErrorKind::Unavailable,
            Self::Io { source, .. } => io_kind(source),
        }
    }
}

impl From<OpenError> for StoreError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Store(error) => error,
            OpenError::Io { action, path, source } => {
                Self::new(io_kind(&source), format!("cannot {action} `{}`", path.display())).with_source(source)
            }
            other => Self::new(other.kind(), other.to_string()),
        }
    }
}

pub(crate) fn io_kind(error: &std::io::Error) -> StoreErrorKind {
    use std::io::ErrorKind;
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => StoreErrorKind::Full,
        ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => StoreErrorKind::ReadOnly,
        _ => StoreErrorKind::Unavailable,
    }
}

/// The runtime's error for SQLite's, with what was tried.
pub(crate) fn from_sqlite(action: impl Into<String>, error: rusqlite::Error) -> StoreError {
    StoreError::new(kind_of(&error), action).with_source(error)
}

/// The kind of a SQLite error.
pub(crate) fn kind_of(error: &rusqlite::Error) -> StoreErrorKind {
    /// The file was moved or replaced under the connection.
    const READONLY_DBMOVED: i32 = 8 | (4 << 8);
    let Some(failure) = error.sqlite_error() else { return StoreErrorKind::Invalid };
    match failure.code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed => {
            StoreErrorKind::Busy
        }
        ErrorCode::DiskFull => StoreErrorKind::Full,
        ErrorCode::ReadOnly if failure.extended_code == READONLY_DBMOVED => StoreErrorKind::Unavailable,
        ErrorCode::ReadOnly => StoreErrorKind::ReadOnly,
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => StoreErrorKind::Corrupt,
        ErrorCode::ConstraintViolation => StoreErrorKind::Conflict,
        ErrorCode::TooBig | ErrorCode::TypeMismatch | ErrorCode::ParameterOutOfRange => StoreErrorKind::Invalid,
        _ => StoreErrorKind::Unavailable,
    }
}
