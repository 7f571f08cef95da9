//! Files beside the database for what is too large for a row: `<db>.blobs/ab/ab12...`, named by the SHA-256 of what is in
//! them.
//!
//! A file is written under another name, synced, renamed, and its directory synced, before the transaction of the row that
//! names it commits. A crash in between leaves a file without a row, which [`collect`](super::collect) takes. Files are never
//! changed, and two rows with the same bytes share one.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use retry_runtime::id::Id;
use rusqlite::ffi;
use sha2::{Digest, Sha256};

use crate::error::io_kind;
use crate::failpoints;
use crate::open::files::{beside, directory_of, private, sync_directory};
use retry_runtime::error::StoreErrorKind;

/// What a file is called until it is whole.
const UNFINISHED: &str = "unfinished-";

/// How often a file is begun while collectors take it away.
const TRIES: u32 = 5;

/// The directory of payload files of one store. Nothing is created before the first file.
#[derive(Debug)]
pub(crate) struct Blobs {
    root: PathBuf,
    /// Directories whose own names are known to be on the disk.
    durable: Mutex<BTreeSet<PathBuf>>,
}

/// A payload file that could not be written or read.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} the payload file `{}`: {source}", path.display())]
pub(crate) struct BlobError {
    action: &'static str,
    path: PathBuf,
    source: io::Error,
}

impl BlobError {
    fn at(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self { action, path, source }
    }

    /// The error that SQLite gives for the same fault of its own files: whoever handles that one handles this one.
    pub(crate) fn into_sqlite(self) -> rusqlite::Error {
        let code = match io_kind(&self.source) {
            StoreErrorKind::Full => ffi::SQLITE_FULL,
            StoreErrorKind::ReadOnly => ffi::SQLITE_READONLY,
            _ => ffi::SQLITE_IOERR,
        };
        rusqlite::Error::SqliteFailure(ffi::Error::new(code), Some(self.to_string()))
    }
}

impl Blobs {
    /// Those of the store at `path`.
    pub(crate) fn beside(path: &Path) -> Self {
        Self { root: beside(path, ".blobs"), durable: Mutex::default() }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Where the file of this name is. Names are hexadecimal; whatever else a damaged row has stays below the directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        let is_name = name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        let name = if is_name { name } else { "not-a-name" };
        self.root.join(name.get(..2).unwrap_or_default()).join(name)
    }

    /// Whether the file is there, as long as it was written.
    pub(crate) fn is_there(&self, name: &str, len: u64) -> bool {
        std::fs::metadata(self.path(name)).is_ok_and(|found| found.is_file() && found.len() == len)
    }

    /// Writes a file, durably, and gives its name. One that is there, and whole, stays as it is.
    pub(crate) fn put(&self, bytes: &[u8]) -> Result<String, BlobError> {
        let name = name_of(bytes);
        let path = self.path(&name);
        let directory = directory_of(&path);
        let failed = |error| BlobError::at("write", &path)(error);
        if !self.is_there(&name, bytes.len() as u64) || self.get(&name, bytes.len() as u64).is_err() {
            self.create_directory(directory).map_err(failed)?;
            for tries_left in (0..TRIES).rev() {
                match self.write(&path, bytes) {
                    // A collector took it for one that nobody writes any more.
                    Err(error) if error.kind() == io::ErrorKind::NotFound && tries_left > 0 => {}
                    other => {
                        other.map_err(failed)?;
                        break;
                    }
                }
            }
        }
        failpoints::hit_io("blob.written").map_err(failed)?;
        // Also where another process wrote it: it may not have come so far.
        sync_directory(directory).and_then(|()| self.make_durable(directory)).map_err(failed)?;
        Ok(name)
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let unfinished = self.root.join(format!("{UNFINISHED}{}", Id::new(SystemTime::now())));
        let mut file = private(OpenOptions::new().write(true).create_new(true)).open(&unfinished)?;
        let written = match file.try_lock() {
            Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::NotFound.into()),
            // Without locks nobody else removes it either.
            Ok(()) | Err(TryLockError::Error(_)) => {
                let whole = file.write_all(bytes).and_then(|()| failpoints::hit_io("blob.unfinished"));
                whole.and_then(|()| file.sync_all()).and_then(|()| std::fs::rename(&unfinished, path))
            }
        };
        if written.is_err() {
            // What stays is collected later.
            let _removed = std::fs::remove_file(&unfinished);
        }
        written
    }

    /// What is in the file, if that is what its name says and at most `most` bytes long.
    pub(crate) fn get(&self, name: &str, most: u64) -> Result<Vec<u8>, BlobError> {
        let path = self.path(name);
        let mut bytes = Vec::new();
        open_regular(&path)
            .and_then(|file| file.take(most.saturating_add(1)).read_to_end(&mut bytes))
            .map_err(BlobError::at("read", &path))?;
        if name_of(&bytes) == name {
            return Ok(bytes);
        }
        let damaged =
            io::Error::new(io::ErrorKind::InvalidData, "it is damaged: its name is the hash of something else");
        Err(BlobError::at("use", &path)(damaged))
    }

    /// The names of all files of one of the 256 directories, and of none where there is none.
    pub(crate) fn names_in(&self, shard: u8) -> io::Result<Vec<String>> {
        let entries = match std::fs::read_dir(self.root.join(format!("{shard:02x}"))) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let names = entries.map(|entry| Ok(entry?.file_name().into_string().unwrap_or_default()));
        let names: io::Result<Vec<String>> = names.collect();
        Ok(names?.into_iter().filter(|name| self.path(name).ends_with(name)).collect())
    }

    /// Gives a file of another store a place here: a second name where that can be, since files are never changed, or a copy.
    pub(crate) fn copy_from(&self, other: &Self, name: &str) -> io::Result<()> {
        let (from, to) = (other.path(name), self.path(name));
        if to.exists() {
            return Ok(());
        }
        if !from.exists() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let directory = directory_of(&to);
        self.create_directory(directory)?;
        if std::fs::hard_link(&from, &to).is_err() {
            let mut source = open_regular(&from)?;
            let mut target = private(OpenOptions::new().write(true).create_new(true)).open(&to)?;
            io::copy(&mut source, &mut target)?;
            target.sync_all()?;
        }
        sync_directory(directory)?;
        self.make_durable(directory)
    }

    /// Removes a file for good.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        let path = self.path(name);
        std::fs::remove_file(&path)?;
        sync_directory(directory_of(&path))
    }

    /// Removes what a crash left half-written. A file that somebody writes is locked, and stays.
    pub(crate) fn remove_unfinished(&self) -> io::Result<u64> {
        let entries = match std::fs::read_dir(&self.root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            Err(error) => return Err(error),
        };
        let mut removed = 0;
        for entry in entries {
            let entry = entry?;
            if !entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
                continue;
            }
            // Finished or removed meanwhile: nothing to do for it.
            let Ok(file) = open_regular(&entry.path()) else { continue };
            if file.try_lock().is_ok() && std::fs::remove_file(entry.path()).is_ok() {
                removed += 1;
            }
        }
        Ok(removed)
    }

    fn create_directory(&self, directory: &Path) -> io::Result<()> {
        let mut builder = DirBuilder::new();
        // The database's own directory is not made again: its file system may only be away.
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        for path in [&self.root, directory] {
            match builder.create(path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// The directory's own name, and that of the one it is in. Once for each is enough: they are never removed.
    fn make_durable(&self, directory: &Path) -> io::Result<()> {
        let mut durable = self.durable.lock().unwrap_or_else(PoisonError::into_inner);
        if !durable.contains(directory) {
            sync_directory(&self.root)?;
            sync_directory(directory_of(&self.root))?;
            durable.insert(directory.to_owned());
        }
        Ok(())
    }
}

/// The SHA-256 of the bytes, in lower-case hexadecimal.
fn name_of(bytes: &[u8]) -> String {
    let mut name = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        // Writing to a text does not fail.
        let _written = write!(name, "{byte:02x}");
    }
    name
}

/// Opens a file for reading that is one: a pipe of that name would wait for its writer for ever.
fn open_regular(path: &Path) -> io::Result<File> {
    if std::fs::metadata(path)?.is_file() {
        return File::open(path);
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "it is no regular file"))
}
