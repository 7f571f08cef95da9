//! The files of a store and who may touch them: modes, the shared lock, the identity of a file, setting a corrupt one
//! aside.
//!
//! The database file itself is never opened here while SQLite may have it open: closing any descriptor of it would drop
//! SQLite's locks in this process.

use std::fs::{DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::OpenError;
use crate::failpoints;

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

/// Makes missing directories, for their owner alone.
pub(crate) fn create_directory(path: &Path) -> Result<(), OpenError> {
    let directory = directory_of(path);
    if !directory.is_dir() {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(directory).map_err(OpenError::io("create the directory", directory))?;
    }
    Ok(())
}

/// What was not there before a file was opened, so that a refused opening leaves nothing.
#[derive(Debug)]
pub(crate) struct Absent {
    file: bool,
    lock: bool,
    /// The innermost first.
    directories: Vec<PathBuf>,
}

impl Absent {
    pub(crate) fn around(path: &Path) -> Self {
        let directories = directory_of(path).ancestors().take_while(|directory| !directory.exists());
        Self {
            file: !path.exists(),
            lock: !beside(path, ".lock").exists(),
            directories: directories.map(Path::to_owned).collect(),
        }
    }

    /// Removes it again, as far as nobody else has found a use for it.
    pub(crate) fn restore(&self, path: &Path, lock: &OpenerLock) {
        if self.lock {
            lock.withdraw(path, self.file);
        }
        for directory in &self.directories {
            // One that is not empty stays.
            if std::fs::remove_dir(directory).is_err() {
                break;
            }
        }
    }
}

/// Makes an empty file, for its owner alone; one that is there stays as it is.
pub(crate) fn create(path: &Path) -> Result<(), OpenError> {
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

/// Makes names in a directory durable. Only Unix opens directories for that.
pub(crate) fn sync_directory(directory: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(directory)?.sync_all() } else { Ok(()) }
}

/// Which file a path means at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileIdentity(u64, u64);

impl FileIdentity {
    /// `None`: there is no such file.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        std::fs::metadata(path).ok().map(|metadata| Self::from(&metadata))
    }

    /// The open file, whatever its path means by now.
    fn of_open(file: &File) -> Option<Self> {
        file.metadata().ok().map(|metadata| Self::from(&metadata))
    }
}

impl From<&Metadata> for FileIdentity {
    fn from(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            Self(metadata.dev(), metadata.ino())
        }
        #[cfg(not(unix))]
        {
            // No stable identity without further calls; an open file cannot be renamed away there anyway.
            let _ = metadata;
            Self(0, 0)
        }
    }
}

/// `X.lock`, held shared by every opener and exclusively by whoever sets the file aside. A store's writer and reader hold
/// it together: they must not keep each other from it.
#[derive(Debug, Default)]
pub(crate) struct OpenerLock {
    held: Mutex<Option<(FileIdentity, File)>>,
}

impl OpenerLock {
    /// Takes the shared lock, unless it is held, waiting at most `limit` for somebody who is setting the file aside.
    pub(crate) fn hold(&self, path: &Path, limit: Duration) -> Result<(), OpenError> {
        let lock = beside(path, ".lock");
        self.hold_by(&lock, limit, || {
            private(OpenOptions::new().read(true).write(true).create(true).truncate(false))
                .open(&lock)
                .map_err(OpenError::io("open the lock file", &lock))
                .map(Some)
        })
    }

    /// The same for somebody who only reads: nothing is created, and without a lock file there is no lock.
    pub(crate) fn hold_if_there(&self, path: &Path, limit: Duration) -> Result<(), OpenError> {
        let lock = beside(path, ".lock");
        self.hold_by(&lock, limit, || Ok(File::open(&lock).ok()))
    }

    pub(super) fn hold_by(
        &self,
        lock: &Path,
        limit: Duration,
        open: impl Fn() -> Result<Option<File>, OpenError>,
    ) -> Result<(), OpenError> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        // A lock file that was replaced with its directory is nobody's any more.
        if held.as_ref().is_some_and(|(identity, _)| FileIdentity::of(lock) == Some(*identity)) {
            return Ok(());
        }
        *held = None;
        let end = Instant::now() + limit;
        while let Some(file) = open()? {
            wait_shared(&file, lock, limit)?;
            let Some(identity) = FileIdentity::of_open(&file) else { break };
            // Whoever made it may have withdrawn it meanwhile: a lock on what has no name keeps nobody out. (A file system
            // that gives no steady identities must not hold this up for ever.)
            if FileIdentity::of(lock) == Some(identity) || Instant::now() > end {
                *held = Some((identity, file));
                break;
            }
        }
        Ok(())
    }

    /// Lets go of the lock, and removes its file unless somebody else holds it; with it the file itself, if that is to go
    /// too and nobody has written to it.
    fn withdraw(&self, path: &Path, with_file: bool) {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((identity, file)) = held {
            let lock = beside(path, ".lock");
            if file.try_lock().is_ok() && FileIdentity::of(&lock) == Some(identity) {
                // What cannot be removed does no harm.
                if with_file && std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() == 0) {
                    let _removed = std::fs::remove_file(path);
                }
                let _removed = std::fs::remove_file(&lock);
            }
        }
    }

    /// Runs `f` under the exclusive lock and goes back to the shared one. `None`: others have the file open.
    pub(crate) fn exclusively<T>(&self, f: impl FnOnce() -> T) -> Option<T> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, file) = held.as_ref()?;
        // The conversion is not atomic: the caller looks again, inside `f`, whether there is still something to do.
        let value = file.try_lock().is_ok().then(f);
        // Nobody waits for the exclusive lock (it is only ever tried), so this cannot hang. A kernel that refuses a lock it
        // has just given leaves this opener unlocked; the check of the file's identity still guards it.
        let _shared = file.lock_shared();
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

/// A log whose file is gone, or was emptied: SQLite deletes it then, with the letters that are in it alone. (A store that is
/// just being made has its first page before its log.)
pub(crate) fn has_orphan_log(path: &Path) -> bool {
    let is_gone = std::fs::metadata(path).map_or(true, |file| file.is_file() && file.len() == 0);
    is_gone && std::fs::metadata(beside(path, "-wal")).is_ok_and(|log| log.len() > 0)
}

/// A file that never was a store, nor a database: a mistyped path, say. Where a store was opened before, its lock file or its log
/// is there, and a file without SQLite's header is a store that was damaged. (It may be read here: without a lock file nobody
/// has a store open on it.)
pub(crate) fn is_of_somebody_else(path: &Path) -> bool {
    let was_opened = [".lock", "-wal", "-journal"].iter().any(|suffix| beside(path, suffix).exists());
    !was_opened && std::fs::metadata(path).is_ok_and(|file| file.is_file()) && !may_be_pages(path).unwrap_or(true)
}

/// Whether a file can be a database, or what damage has made of one: SQLite's header, or whole pages, which are never without
/// zeros; or nothing at all.
fn may_be_pages(path: &Path) -> io::Result<bool> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut first = Vec::new();
    io::Read::read_to_end(&mut io::Read::take(&mut file, 4096), &mut first)?;
    Ok(length == 0 || first.starts_with(b"SQLite format 3\0") || (length % 512 == 0 && first.contains(&0)))
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
        match failpoints::hit_io("set_aside.between").and_then(|()| std::fs::rename(&from, &to)) {
            Ok(()) => done.push((from, to)),
            Err(error) if error.kind() == io::ErrorKind::NotFound && (!suffix.is_empty() || !done.is_empty()) => {}
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

/// Undoes [`set_aside`], and removes what was made meanwhile: for whoever holds the exclusive lock.
pub(crate) fn put_back(path: &Path, target: &Path) -> io::Result<()> {
    for suffix in ["-wal", "-journal", "-shm", ""] {
        match std::fs::remove_file(beside(path, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    for suffix in ["", "-shm", "-journal", "-wal"] {
        match std::fs::rename(beside(target, suffix), beside(path, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// The path as this store will use it for as long as it lives: absolute, since the working directory may change, and the
/// file itself rather than a link to it, since SQLite names the log after the file, and all openers must agree on the names
/// beside it.
pub(crate) fn resolve(path: &Path) -> PathBuf {
    let is_link = std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_symlink());
    let resolved = if is_link { std::fs::canonicalize(path) } else { std::path::absolute(path) };
    // What cannot be resolved is refused, by its own name, when it is opened.
    resolved.unwrap_or_else(|_| path.to_owned())
}

/// The set-aside files of a store, oldest first. A log stands for itself only where its file is gone.
pub(crate) fn set_aside_files(path: &Path) -> Vec<PathBuf> {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return Vec::new() };
    let prefix = format!("{name}.corrupt-");
    let directory = directory_of(path);
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let stands_for_itself = |found: &str| match found.strip_suffix("-wal") {
        Some(main) => !directory.join(main).exists(),
        None => !found.ends_with("-shm") && !found.ends_with("-journal"),
    };
    let mut found: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .filter(|entry| {
            let name = entry.file_name();
            name.to_str().is_some_and(|name| name.starts_with(&prefix) && stands_for_itself(name))
        })
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}
