//! Opening a store by its address. The only place that knows which kinds of store there are.

use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use dlq_sqlite::{BooksTaken, Salvaged, SqliteStore};
use retry_runtime::counters::Thresholds;
use retry_runtime::dead_letter::{
    Actor, BoxFuture, BulkOperations, Doctor, FailureGroups, JobJournal, Oversight, Overview, StoreAdmin,
};
use retry_runtime::error::{StoreError, StoreErrorKind};
use retry_runtime::ledger::LedgerBooks;

use crate::exit::Failure;

/// Everything a store can do: implemented by whatever implements the traits.
pub trait AnyStore:
    BulkOperations + FailureGroups + StoreAdmin + Doctor + LedgerBooks + Thresholds + JobJournal + Oversight + Overview
{
}

impl<S> AnyStore for S where
    S: BulkOperations
        + FailureGroups
        + StoreAdmin
        + Doctor
        + LedgerBooks
        + Thresholds
        + JobJournal
        + Oversight
        + Overview
        + ?Sized
{
}

/// Where a store is.
#[derive(Clone, PartialEq, Eq)]
pub enum Place {
    /// A SQLite file, by its absolute path.
    Sqlite(PathBuf),
}

/// What is to be done with a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Only reading: nothing is made and nothing is changed.
    Read,
    /// Reading and writing what is there.
    Write,
    /// The same, and it is made where there is none.
    Create,
}

impl Place {
    /// The place of an address: `sqlite:PATH`.
    ///
    /// # Errors
    /// What is accepted. A password in the address is not repeated.
    pub fn parse(address: &str) -> Result<Self, Failure> {
        if let Some(path) = address.strip_prefix("sqlite:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            if path.is_empty() || path == ":memory:" {
                return Err(Failure::usage("`sqlite:` wants the path of a file behind it: sqlite:var/jobs.db"));
            }
            return Ok(Self::Sqlite(std::path::absolute(path).unwrap_or_else(|_| path.into())));
        }
        if address.starts_with("postgres:") || address.starts_with("postgresql:") {
            return Err(Failure::usage("stores in PostgreSQL are not in this build: accepted is sqlite:PATH"));
        }
        let shown = if address.contains('@') { "the address" } else { &format!("`{}`", crate::text::line(address)) };
        Err(Failure::usage(format!("{shown} names no store: accepted is sqlite:PATH, for example sqlite:var/jobs.db")))
    }

    /// The path of its file, where it has one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Sqlite(path) => Some(path),
        }
    }
}

/// The address, without a password.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", crate::text::cut(&path.to_string_lossy(), 4_096)),
        }
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An open store: all its traits at once, by dereferencing. Cheap to clone; one handle closes it.
#[derive(Clone)]
pub struct Store {
    all: Arc<dyn AnyStore>,
    own: Arc<dyn Own>,
    shown: Arc<str>,
}

impl Store {
    /// Opens the store at a place.
    ///
    /// # Errors
    /// With the path that was tried. A missing, empty or foreign file is one unless it may be made.
    pub fn open(place: &Place, access: Access) -> Result<Self, Failure> {
        let Place::Sqlite(path) = place;
        let options = SqliteStore::options(path);
        let opened = match access {
            Access::Read => options.open_read_only(),
            Access::Write => options.create(false).open(),
            Access::Create => options.create(true).open(),
        };
        let store = opened.map_err(|error| Failure::of_store(error.kind(), error.to_string()))?;
        if access != Access::Read && store.is_down() {
            return Err(Failure::failed(format!("`{}` cannot be written at the moment", path.display())));
        }
        Ok(Self {
            all: Arc::new(store.clone()),
            shown: format!("sqlite:{}", store.path().display()).into(),
            own: Arc::new(store),
        })
    }

    /// Reads what can be read of a damaged file of such a store into a new one in an empty directory; that one, opened for
    /// reading, and how it went.
    ///
    /// # Errors
    /// [`Failure`] where nothing can be read.
    pub async fn salvage(damaged: &Path, directory: &Path) -> Result<(Self, Salvaged), Failure> {
        let (damaged, directory) = (damaged.to_owned(), directory.to_owned());
        let work = tokio::task::spawn_blocking(move || SqliteStore::salvage(damaged, directory)).await;
        let saved = work.map_err(|error| Failure::failed(error.to_string()))??;
        Ok((Self::open(&Place::Sqlite(saved.path.clone()), Access::Read)?, saved))
    }

    /// Takes ledger, counters, thresholds and notes of what was salvaged in; the same file counts once.
    ///
    /// # Errors
    /// [`StoreError`]; `Invalid` for a store that cannot take them.
    pub async fn take_books(&self, saved: Salvaged, actor: Actor) -> Result<BooksTaken, StoreError> {
        self.own.take_books(saved, actor).await
    }

    /// A store that is open already, under a name for people to read.
    pub fn of(store: Arc<dyn AnyStore>, shown: &str) -> Self {
        Self { all: store, own: Arc::new(Plain), shown: shown.into() }
    }

    /// The same as an object of all traits, for what wants to own one.
    pub fn all(&self) -> Arc<dyn AnyStore> {
        Arc::clone(&self.all)
    }

    /// Its absolute path or its address, without a password.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Copies the whole store to a path where nothing is yet; what was copied, in a line.
    ///
    /// # Errors
    /// [`StoreError`]; `Invalid` for a store that cannot be copied.
    pub async fn backup(&self, target: PathBuf) -> Result<String, StoreError> {
        self.own.backup(target).await
    }

    /// Ends it in order: what waits is written, within so long.
    pub async fn close(&self, within: Duration) {
        let own = Arc::clone(&self.own);
        // It waits for threads, which are not to wait for this one.
        let _closed = tokio::task::spawn_blocking(move || own.close(within)).await;
    }
}

impl Deref for Store {
    type Target = dyn AnyStore;

    fn deref(&self) -> &Self::Target {
        &*self.all
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Store").field(&self.shown).finish()
    }
}

/// What each kind of store has of its own.
trait Own: Send + Sync {
    fn backup(&self, target: PathBuf) -> BoxFuture<'_, Result<String, StoreError>>;
    fn take_books(&self, saved: Salvaged, actor: Actor) -> BoxFuture<'_, Result<BooksTaken, StoreError>>;
    fn close(&self, within: Duration);
}

impl Own for SqliteStore {
    fn backup(&self, target: PathBuf) -> BoxFuture<'_, Result<String, StoreError>> {
        Box::pin(async move { SqliteStore::backup(self, target).await.map(|report| report.to_string()) })
    }

    fn take_books(&self, saved: Salvaged, actor: Actor) -> BoxFuture<'_, Result<BooksTaken, StoreError>> {
        Box::pin(async move { SqliteStore::take_books(self, &saved, actor).await })
    }

    fn close(&self, within: Duration) {
        Self::close(self, within);
    }
}

/// A store whose owner does all that.
struct Plain;

impl Own for Plain {
    fn backup(&self, _target: PathBuf) -> BoxFuture<'_, Result<String, StoreError>> {
        Box::pin(async { Err(StoreError::new(StoreErrorKind::Invalid, "this store cannot be copied from here")) })
    }

    fn take_books(&self, _: Salvaged, _: Actor) -> BoxFuture<'_, Result<BooksTaken, StoreError>> {
        Box::pin(async { Err(StoreError::new(StoreErrorKind::Invalid, "this store takes nothing of a file")) })
    }

    fn close(&self, _within: Duration) {}
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // tests fail by panicking
    use super::*;

    #[test]
    fn addresses_are_read_and_passwords_never_repeated() {
        assert_eq!(Place::parse("sqlite:/var/jobs.db").unwrap().to_string(), "sqlite:/var/jobs.db");
        assert_eq!(Place::parse("sqlite:///var/jobs.db").unwrap().to_string(), "sqlite:/var/jobs.db");
        assert!(Place::parse("sqlite:jobs.db").unwrap().path().unwrap().is_absolute());
        for address in ["postgres://ada:secret@host/db", "mysql://ada:secret@host/db", "ada:secret@host"] {
            let said = Place::parse(address).unwrap_err();
            assert_eq!(said.exit(), crate::Exit::USAGE);
            assert!(!said.to_string().contains("secret"), "{said}");
        }
        let said = Place::parse("postgres://host/db").unwrap_err().to_string();
        assert!(said.contains("not in this build"), "{said}");
        for address in ["", "sqlite:", "sqlite::memory:", "jobs.db"] {
            assert!(Place::parse(address).unwrap_err().to_string().contains("sqlite:"), "{address}");
        }
    }
}
