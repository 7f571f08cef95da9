//! A copy of a store that is in use.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};

use retry_runtime::error::{StoreError, StoreErrorKind};
use rusqlite::{Connection, OpenFlags};

use crate::config::Settings;
use crate::error::{OpenError, from_sqlite};
use crate::open::files::{beside, create_directory, directory_of, private, resolve, sync_directory};
use crate::payload::blobs::Blobs;

/// How often the whole is done again, because files of payloads were removed under it.
const TRIES: u32 = 3;

/// What a backup holds, and what it does not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Backup {
    /// The new file: a store by itself, which can be opened where it is.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// Files of large payloads beside it.
    pub payload_files: u64,
    /// Payload files that letters name and that are not there, in the store itself neither.
    pub payload_files_missing: Vec<String>,
    /// Spill files that wait to be taken in: the letters in them are not in the backup.
    pub spill_files: Vec<PathBuf>,
    /// Corrupt files that were set aside: they are not in the backup.
    pub set_aside_files: Vec<PathBuf>,
}

/// `4096 bytes in q.db, 2 payload files`, and what is missing or not in it.
impl fmt::Display for Backup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = |n: usize, what: &str| if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") };
        let files = usize::try_from(self.payload_files).unwrap_or(usize::MAX);
        write!(f, "{} bytes in {}, {}", self.bytes, self.path.display(), counted(files, "payload file"))?;
        if !self.payload_files_missing.is_empty() {
            write!(
                f,
                "; {} missing: {}",
                counted(self.payload_files_missing.len(), "payload file"),
                self.payload_files_missing.join(", ")
            )?;
        }
        for (files, what) in [(&self.spill_files, "spill file"), (&self.set_aside_files, "corrupt file")] {
            if !files.is_empty() {
                let names: Vec<_> = files.iter().map(|path| path.display().to_string()).collect();
                write!(f, "; not in it: {} ({})", counted(files.len(), what), names.join(", "))?;
            }
        }
        Ok(())
    }
}

/// Copies the store at `settings.path` to `target`. Others go on writing; the copy is the store of one moment.
pub(crate) fn backup(settings: &Settings, target: &Path) -> Result<Backup, StoreError> {
    let target = resolve(target);
    let blobs = Blobs::beside(&settings.path);
    let copies = Blobs::beside(&target);
    for taken in [&target, &beside(&target, "-wal"), &beside(&target, "-journal"), copies.root()] {
        if taken.symlink_metadata().is_ok() {
            return Err(is_there(taken));
        }
    }
    create_directory(&target)?;
    // SQLite writes into an empty file, and would make one that everybody may read. Made by one backup alone: another one to
    // the same name must neither write into it, nor remove it.
    match private(OpenOptions::new().write(true).create_new(true)).open(&target) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(is_there(&target)),
        other => other.map_err(OpenError::io("create", &target))?,
    };
    let copied = copy(settings, &target, &blobs, &copies);
    if copied.is_err() {
        // Half a copy is none. The name is given free last.
        let _removed = std::fs::remove_dir_all(copies.root());
        let _removed = std::fs::remove_file(&target);
    }
    copied
}

fn is_there(taken: &Path) -> StoreError {
    let message = format!("`{}` is there already: a backup takes the place of nothing", taken.display());
    StoreError::new(StoreErrorKind::Conflict, message)
}

fn copy(settings: &Settings, target: &Path, blobs: &Blobs, copies: &Blobs) -> Result<Backup, StoreError> {
    let Some(into) = target.to_str() else {
        let message = format!("`{}` is not UTF-8: SQLite copies only into a path that is", target.display());
        return Err(StoreError::new(StoreErrorKind::Invalid, message));
    };
    let source = connect(&settings.path)?;
    let mut report = Backup { path: target.to_owned(), ..Backup::default() };
    for tries_left in (0..TRIES).rev() {
        // Those named now are kept in any case, also if their letters are deleted meanwhile.
        let before = named(&source, &settings.path)?;
        let mut missing = copy_files(&before, blobs, copies)?;
        // What a try before has written.
        OpenOptions::new().write(true).truncate(true).open(target).map_err(OpenError::io("empty", target))?;
        source
            .execute("VACUUM INTO ?1", [into])
            .map_err(|error| from_sqlite(format!("cannot copy into `{}`", target.display()), error))?;
        let copy = connect(target)?;
        let after = named(&copy, target)?;
        missing.retain(|name| after.contains(name));
        let since: BTreeSet<_> = after.difference(&before).cloned().collect();
        let lost = copy_files(&since, blobs, copies)?;
        if !lost.is_empty() && tries_left > 0 {
            // Parked after the first look, and deleted before the second.
            continue;
        }
        missing.extend(lost);
        for name in before.difference(&after) {
            // Not needed; what cannot be removed does no harm.
            let _removed = copies.remove(name);
        }
        check(&copy, target)?;
        report.payload_files = after.len().saturating_sub(missing.len()) as u64;
        report.payload_files_missing = missing;
        break;
    }
    let durable = OpenOptions::new()
        .read(true)
        .write(true)
        .open(target)
        .and_then(|file| file.sync_all())
        .and_then(|()| sync_directory(directory_of(target)));
    durable.map_err(OpenError::io("write", target))?;
    report.bytes = std::fs::metadata(target).map_err(OpenError::io("look at", target))?.len();
    Ok(report)
}

/// A connection that changes nothing. (One that must not write cannot copy into another file either.)
fn connect(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(path, flags)
        .and_then(|connection| {
            connection.busy_timeout(std::time::Duration::from_secs(5))?;
            Ok(connection)
        })
        .map_err(|error| from_sqlite(format!("cannot open `{}`", path.display()), error))
}

/// The names of all payload files that rows name.
fn named(connection: &Connection, path: &Path) -> Result<BTreeSet<String>, StoreError> {
    let read = || {
        let sql =
            "SELECT blob FROM payload WHERE blob IS NOT NULL UNION SELECT blob FROM journal WHERE blob IS NOT NULL";
        let mut statement = connection.prepare(sql)?;
        let names = statement.query_map([], |row| row.get(0))?;
        names.collect::<rusqlite::Result<BTreeSet<String>>>()
    };
    read()
        .map_err(|error| from_sqlite(format!("cannot read the names of payload files in `{}`", path.display()), error))
}

/// Copies files, by a second name where both lie on one file system. Returns those that are not there.
fn copy_files(names: &BTreeSet<String>, from: &Blobs, to: &Blobs) -> Result<Vec<String>, StoreError> {
    let mut missing = Vec::new();
    for name in names {
        match to.copy_from(from, name) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => missing.push(name.clone()),
            Err(error) => return Err(OpenError::io("copy the payload file", &to.path(name))(error).into()),
        }
    }
    Ok(missing)
}

fn check(copy: &Connection, path: &Path) -> Result<(), StoreError> {
    let verdict: String = copy
        .query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))
        .map_err(|error| from_sqlite(format!("cannot check `{}`", path.display()), error))?;
    if verdict == "ok" {
        return Ok(());
    }
    let message = format!("the copy `{}` is damaged: {verdict}", path.display());
    Err(StoreError::new(StoreErrorKind::Corrupt, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_is_told_in_one_line() {
        let mut backup = Backup { path: "copy.db".into(), bytes: 4_096, payload_files: 2, ..Backup::default() };
        assert_eq!(backup.to_string(), "4096 bytes in copy.db, 2 payload files");
        backup.payload_files = 1;
        backup.payload_files_missing = vec!["ab".into(), "cd".into()];
        backup.spill_files = vec!["q.spill".into()];
        backup.set_aside_files = vec!["q.1".into(), "q.2".into()];
        assert_eq!(
            backup.to_string(),
            "4096 bytes in copy.db, 1 payload file; 2 payload files missing: ab, cd; not in it: 1 spill file (q.spill); \
             not in it: 2 corrupt files (q.1, q.2)"
        );
    }
}
