//! Names, places and permissions of spill files.

use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::counters::Day;
use crate::error::{StoreError, StoreErrorKind};
use crate::id::Id;

/// A new spill file's name: `<base>.spill.<time>-<uuid>.ndjson`.
pub(super) fn file_name(base: &OsStr, now: SystemTime) -> OsString {
    let of_day = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() % 86_400);
    let day = Day::of(now).to_string().replace('-', "");
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    let mut name = base.to_owned();
    name.push(format!(".spill.{day}T{hour:02}{minute:02}{second:02}Z-{}.ndjson", Id::new(now)));
    name
}

/// The spill files of `base` in `dir`, oldest first. A directory that is not there has none.
pub(super) fn spill_files(dir: &Path, base: &OsStr) -> io::Result<Vec<PathBuf>> {
    files_ending(dir, base, b".ndjson")
}

/// The files of the spill of `base` in `dir` whose names end so, oldest first.
pub(super) fn files_ending(dir: &Path, base: &OsStr, ending: &[u8]) -> io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut prefix = base.to_owned();
    prefix.push(".spill.");
    let mut found = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        let bytes = name.as_encoded_bytes();
        if bytes.starts_with(prefix.as_encoded_bytes()) && bytes.ends_with(ending) {
            found.push(dir.join(name));
        }
    }
    found.sort();
    Ok(found)
}

/// Every file of `base` in `dir` that holds spilled lines, those taken in or set aside included.
#[cfg(feature = "stores")]
pub(super) fn all_files(dir: &Path, base: &OsStr) -> io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut prefix = base.to_owned();
    prefix.push(".spill.");
    let names = entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>()?;
    let own = names.into_iter().filter(|name| name.as_encoded_bytes().starts_with(prefix.as_encoded_bytes()));
    Ok(own.map(|name| dir.join(name)).collect())
}

/// The path with `.done` or `.bad` behind its name.
pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Creates a file that only its owner may read.
pub(super) fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).read(true).create_new(true);
    private_file(&mut options);
    options.open(path)
}

/// Creates or empties a file that only its owner may read.
pub(super) fn overwrite_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    private_file(&mut options);
    options.open(path)
}

/// Creates a directory that only its owner may enter, and those above it.
pub(super) fn create_private_dir(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

#[cfg(unix)]
fn private_file(options: &mut OpenOptions) {
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
}

#[cfg(not(unix))]
fn private_file(_options: &mut OpenOptions) {}

/// Makes names in a directory durable. Only Unix opens directories for that.
pub(super) fn sync_dir(dir: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(dir)?.sync_all() } else { Ok(()) }
}

/// Whether the path still names this open file.
#[cfg(unix)]
pub(super) fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(open), Ok(named)) => (open.dev(), open.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

/// Whether the path still names a file.
#[cfg(not(unix))]
pub(super) fn is_at(_file: &File, path: &Path) -> bool {
    path.exists()
}

/// Where spill files of the store at `base` go: its own directory, then one of the user's state directory.
pub(super) fn spill_dirs(base: &Path) -> Vec<PathBuf> {
    let base = std::path::absolute(base).unwrap_or_else(|_| base.to_owned());
    let own = base.parent().map(Path::to_owned);
    let state = state_dir(|name| std::env::var_os(name)).map(|state| {
        // Two stores may have one file name; the directory's name keeps them apart.
        let mut hash = crate::dead_letter::fnv::Fnv::new();
        hash.part(base.as_os_str().as_encoded_bytes());
        state.join("retry-runtime").join(hash.to_string())
    });
    own.into_iter().chain(state).collect()
}

fn state_dir(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let path = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if cfg!(windows) {
        return path("LOCALAPPDATA");
    }
    path("XDG_STATE_HOME").or_else(|| path("HOME").map(|home| home.join(".local/state")))
}

/// What an I/O error means to a store.
pub(super) fn store_error(what: &str, path: &Path, error: io::Error) -> StoreError {
    let kind = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::FileTooLarge | ErrorKind::QuotaExceeded => StoreErrorKind::Full,
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => StoreErrorKind::ReadOnly,
        _ => StoreErrorKind::Unavailable,
    };
    StoreError::new(kind, format!("{what} `{}`", path.display())).with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    // D8
    #[test]
    fn names_tell_the_store_and_the_time() {
        let name = file_name(OsStr::new("jobs.db"), UNIX_EPOCH + Duration::from_secs(1_767_323_045));
        let name = name.to_string_lossy();
        assert!(name.starts_with("jobs.db.spill.20260102T030405Z-"), "{name}");
        assert!(name.ends_with(".ndjson"), "{name}");
    }

    // D8
    #[test]
    fn the_state_directory_follows_the_user() {
        let of = |set: &[(&str, &str)]| {
            state_dir(|name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value)))
        };
        if cfg!(unix) {
            assert_eq!(of(&[("HOME", "/home/u")]), Some("/home/u/.local/state".into()));
            assert_eq!(of(&[("HOME", "/home/u"), ("XDG_STATE_HOME", "/s")]), Some("/s".into()));
            assert_eq!(of(&[("HOME", "/home/u"), ("XDG_STATE_HOME", "relative")]), Some("/home/u/.local/state".into()));
            assert_eq!(of(&[]), None);
        }
    }
}
