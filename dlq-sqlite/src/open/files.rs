//! The files of a store and who may touch them: modes, the shared lock, the identity of a file, setting a corrupt one
//! aside.
//!
//! The database file itself is never opened here while SQLite may have it open: closing any descriptor of it would drop
//! SQLite's locks in this process.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::error::OpenError;

/// `X` with a suffix: `X-wal`, `X.lock`, ...
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// The directory a file lies in.
pub(crate) fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Makes missing directories (0700) and an empty file (0600); one that is there stays as it is.
pub(crate) fn create(path: &Path) -> Result<(), OpenError> {
    let directory = directory_of(path);
    if !directory.is_dir() {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(directory).map_err(OpenError::io("create the directory", directory))?;
    }
    match private(OpenOptions::new().write(true).create_new(true)).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(OpenError::io("create", path)(error)),
    }
}

/// New files are for their owner alone.
pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// Which file a path means at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileIdentity(u64, u64);

impl FileIdentity {
    /// `None`: there is no such file.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(path).ok()?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            Some(Self(metadata.dev(), metadata.ino()))
        }
        #[cfg(not(unix))]
        {
            // No stable identity without further calls; an open file cannot be renamed away there anyway.
            let _ = metadata;
            Some(Self(0, 0))
        }
    }
}

/// `X.lock`, held shared by every opener and exclusively by whoever sets the file aside.
#[derive(Debug)]
pub(crate) struct OpenerLock {
    file: File,
}

impl OpenerLock {
    /// Takes the shared lock, waiting at most `limit` for somebody who is setting the file aside.
    pub(crate) fn shared(path: &Path, limit: Duration) -> Result<Self, OpenError> {
        let lock = beside(path, ".lock");
        let file = private(OpenOptions::new().read(true).write(true).create(true).truncate(false))
            .open(&lock)
            .map_err(OpenError::io("open the lock file", &lock))?;
        wait_shared(&file, &lock, limit)?;
        Ok(Self { file })
    }

    /// The same for somebody who only reads: nothing is created, and without a lock file there is no lock.
    pub(crate) fn shared_if_there(path: &Path, limit: Duration) -> Result<Option<Self>, OpenError> {
        let lock = beside(path, ".lock");
        match File::open(&lock) {
            Ok(file) => {
                wait_shared(&file, &lock, limit)?;
                Ok(Some(Self { file }))
            }
            Err(_) => Ok(None),
        }
    }

    /// Runs `f` under the exclusive lock and goes back to the shared one. `None`: others have the file open.
    pub(crate) fn exclusively<T>(&self, f: impl FnOnce() -> T) -> Option<T> {
        // The conversion is not atomic: the caller looks again, inside `f`, whether there is still something to do.
        let taken = self.file.try_lock().is_ok();
        let value = taken.then(f);
        // Nobody else waits for the exclusive lock (it is only ever tried), so this cannot hang.
        if self.file.lock_shared().is_err() {
            // A kernel that refuses a lock it has just given leaves this opener unlocked; its inode check still guards it.
        }
        value
    }
}

fn wait_shared(file: &File, lock: &Path, limit: Duration) -> Result<(), OpenError> {
    let end = Instant::now() + limit;
    loop {
        match file.try_lock_shared() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if Instant::now() < end => std::thread::sleep(Duration::from_millis(5)),
            Err(error) => return Err(OpenError::io("lock", lock)(error.into())),
        }
    }
}

/// Renames the file and what belongs to it, all or none, so that SQLite opens the set-aside copy with its own log.
/// Returns the new name of the main file.
pub(crate) fn set_aside(path: &Path, stamp: &str) -> io::Result<PathBuf> {
    let target = (0_u32..1_000)
        .map(|n| beside(path, &if n == 0 { format!(".corrupt-{stamp}") } else { format!(".corrupt-{stamp}-{n}") }))
        .find(|target| !target.exists())
        .unwrap_or_else(|| beside(path, ".corrupt"));
    // The log first: were the main file gone and its log still there, a fresh file would take up a foreign log.
    let mut done: Vec<(PathBuf, PathBuf)> = Vec::new();
    for suffix in ["-wal", "-journal", "-shm", ""] {
        let (from, to) = (beside(path, suffix), beside(&target, suffix));
        match std::fs::rename(&from, &to) {
            Ok(()) => done.push((from, to)),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !suffix.is_empty() => {}
            Err(error) => {
                for (from, to) in done.into_iter().rev() {
                    std::fs::rename(to, from)?;
                }
                return Err(error);
            }
        }
    }
    Ok(target)
}

/// The set-aside files of a store, oldest first.
pub(crate) fn set_aside_files(path: &Path) -> Vec<PathBuf> {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return Vec::new() };
    let prefix = format!("{name}.corrupt-");
    let Ok(entries) = std::fs::read_dir(directory_of(path)) else { return Vec::new() };
    let mut found: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .filter(|entry| {
            entry.file_name().to_str().is_some_and(|found| {
                found.starts_with(&prefix) && !["-wal", "-shm", "-journal"].iter().any(|suffix| found.ends_with(suffix))
            })
        })
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}
