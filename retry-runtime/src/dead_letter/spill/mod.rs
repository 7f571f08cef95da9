//! The spill: where letters go while the store cannot take them.
//!
//! One file per process, `<store>.spill.<time>-<uuid>.ndjson`, readable by its owner only and locked as long as the
//! process lives. A letter is one whole line, on disk before it is answered. The store [imports](Spill::import) the lines
//! when it works again; a line that is imported twice changes nothing, because stores know the letter's `park_id`.

mod crc;
#[cfg(feature = "stores")]
mod erase;
mod files;
mod import;
mod line;
mod lock;
mod reserve;
mod survey;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use crate::dead_letter::{DeadLetter, give_back_losses, take_losses};
use crate::error::{StoreError, StoreErrorKind};
use lock::Locked;

#[cfg(feature = "stores")]
pub(crate) use crc::crc32;
#[cfg(feature = "stores")]
pub use erase::Erased;
pub(crate) use import::Waiting;
pub use import::{Batch, Import};
pub use reserve::Reserve;
pub use survey::SpillFile;

/// The spill of one store. Nothing is created before the first letter.
#[derive(Debug)]
pub struct Spill {
    base: OsString,
    dirs: Vec<PathBuf>,
    /// The part of a shared store whose letters these are.
    scope: Option<String>,
    /// The file being written in each directory.
    open: Mutex<Vec<Option<Writer>>>,
}

#[derive(Debug)]
struct Writer {
    file: File,
    path: PathBuf,
    len: u64,
}

impl Spill {
    /// The spill of the store at `base`: in its directory, else in the user's state directory.
    pub fn beside(base: impl AsRef<Path>) -> Self {
        let base = base.as_ref();
        Self::in_dirs(base.file_name().unwrap_or("store".as_ref()), files::spill_dirs(base))
    }

    /// A spill with file names that begin with `base`, in the first of these directories that takes it. Directories that
    /// are not there are created, for their owner only - but for the first, whose absence is a fault of its own.
    pub fn in_dirs(base: impl Into<OsString>, dirs: impl IntoIterator<Item = PathBuf>) -> Self {
        // The working directory may change.
        let dirs = dirs.into_iter().map(|dir| std::path::absolute(&dir).unwrap_or(dir)).collect();
        Self { base: base.into(), dirs, scope: None, open: Mutex::default() }
    }

    /// Writes a scope into each line: whoever imports it, perhaps a store of another scope on the same file, puts the letter
    /// where it belongs.
    #[must_use]
    pub fn in_scope(mut self, scope: impl Into<String>) -> Self {
        self.scope = Some(scope.into());
        self
    }

    /// Writes a letter down. It is on disk when this returns its file.
    ///
    /// # Errors
    /// What the last of the directories said.
    pub fn append(&self, letter: &DeadLetter) -> Result<PathBuf, StoreError> {
        let path = self.write(&line::letter(letter, self.scope.as_deref()))?;
        self.record_losses();
        Ok(path)
    }

    /// Writes letters down together: all of them are on disk when this returns their file, after one sync, or none is.
    ///
    /// # Errors
    /// What the last of the directories said.
    pub fn append_all(&self, letters: &[&DeadLetter]) -> Result<PathBuf, StoreError> {
        let lines: String = letters.iter().map(|letter| line::letter(letter, self.scope.as_deref())).collect();
        let path = self.write(&lines)?;
        self.record_losses();
        Ok(path)
    }

    /// Letters lost before are written down as soon as anything can be.
    fn record_losses(&self) {
        let lost = take_losses();
        if lost > 0 && self.write(&line::lost(lost)).is_err() {
            give_back_losses(lost);
        }
    }

    fn write(&self, line: &str) -> Result<PathBuf, StoreError> {
        let mut open = self.lock();
        open.resize_with(self.dirs.len(), || None);
        let mut failure = StoreError::new(
            StoreErrorKind::Unavailable,
            "there is no directory to spill into, or others took each file away",
        );
        for (at, (dir, slot)) in self.dirs.iter().zip(open.iter_mut()).enumerate() {
            // A file that was taken away after the line was written may not have been read with it: once more then.
            for _ in 0..TRIES {
                match self.write_in(dir, at == 0, slot, line) {
                    Ok(Some(path)) => return Ok(path),
                    Ok(None) => {}
                    Err(error) => {
                        failure = error;
                        break;
                    }
                }
            }
        }
        Err(failure)
    }

    /// Writes the line into the directory's file. `None`: the file had been taken away, perhaps before its first line.
    fn write_in(
        &self,
        dir: &Path,
        is_first: bool,
        slot: &mut Option<Writer>,
        line: &str,
    ) -> Result<Option<PathBuf>, StoreError> {
        let mut writer = match slot.take() {
            Some(writer) => writer,
            None => match self.create(dir, is_first)? {
                Some(writer) => writer,
                None => return Ok(None),
            },
        };
        match append_whole(&mut writer.file, &mut writer.len, line.as_bytes()) {
            Ok(()) if files::is_at(&writer.file, &writer.path) => {
                let path = writer.path.clone();
                *slot = Some(writer);
                Ok(Some(path))
            }
            Ok(()) => Ok(None),
            Err(failed) => {
                let error = files::store_error("cannot spill into", &writer.path, failed.error);
                if failed.is_clean && writer.len > 0 {
                    *slot = Some(writer);
                } else if failed.is_clean {
                    // An empty file only raises questions.
                    let _kept = std::fs::remove_file(&writer.path);
                }
                Err(error)
            }
        }
    }

    fn create(&self, dir: &Path, is_first: bool) -> Result<Option<Writer>, StoreError> {
        if !is_first {
            files::create_private_dir(dir).map_err(|error| files::store_error("cannot create", dir, error))?;
        }
        let path = dir.join(files::file_name(&self.base, SystemTime::now()));
        let fail = |error| files::store_error("cannot create", &path, error);
        let file = files::create_private(&path).map_err(fail)?;
        if lock::exclusive(&file) == Locked::Busy {
            // An importer was quicker than we were; it will find the file empty.
            return Ok(None);
        }
        files::sync_dir(dir).map_err(fail)?;
        Ok(Some(Writer { file, path, len: 0 }))
    }

    /// Closes the files of this process, which opens their locks. The next letter begins a new one.
    pub fn release(&self) {
        self.lock().clear();
    }

    /// How many lines wait to be imported, those of other processes included.
    ///
    /// # Errors
    /// When a directory or a file cannot be read.
    pub fn waiting(&self) -> Result<u64, StoreError> {
        let mut lines = 0;
        for path in self.files()? {
            match File::open(&path).and_then(|file| count_lines(BufReader::new(file))) {
                Ok(n) => lines += n,
                // Imported in between.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(files::store_error("cannot read", &path, error)),
            }
        }
        Ok(lines)
    }

    /// The files that wait to be imported, those being written included.
    ///
    /// # Errors
    /// When a directory cannot be read.
    pub fn files(&self) -> Result<Vec<PathBuf>, StoreError> {
        let mut found = Vec::new();
        for dir in &self.dirs {
            let in_dir = files::spill_files(dir, &self.base);
            found.extend(in_dir.map_err(|error| files::store_error("cannot read", dir, error))?);
        }
        Ok(found)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Option<Writer>>> {
        // Each slot is taken out while it is written, so a panic leaves none half-written.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many files are begun for one line while importers take them away.
const TRIES: usize = 10;

/// Where bytes are appended, and taken back.
trait Medium: Write {
    fn cut(&self, len: u64) -> io::Result<()>;
    fn sync(&self) -> io::Result<()>;
}

impl Medium for File {
    fn cut(&self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}

struct Failed {
    error: io::Error,
    /// Nothing of the line is left, and the file may be written further.
    is_clean: bool,
}

/// Appends the bytes and makes them durable, or leaves nothing of them.
fn append_whole(file: &mut impl Medium, len: &mut u64, bytes: &[u8]) -> Result<(), Failed> {
    match file.write_all(bytes).and_then(|()| file.sync()) {
        Ok(()) => {
            *len += bytes.len() as u64;
            Ok(())
        }
        // After a failed sync nobody knows what is on disk; what was cut back must be durable too.
        Err(error) => Err(Failed { error, is_clean: file.cut(*len).and_then(|()| file.sync()).is_ok() }),
    }
}

fn count_lines(mut file: impl BufRead) -> io::Result<u64> {
    let mut lines = 0;
    let mut last = b'\n';
    loop {
        let buffer = file.fill_buf()?;
        let Some(&end) = buffer.last() else { break };
        last = end;
        #[allow(clippy::naive_bytecount, reason = "not worth a crate: a spill file is small, and rarely there")]
        let ends = buffer.iter().filter(|&&byte| byte == b'\n').count() as u64;
        lines += ends;
        let read = buffer.len();
        file.consume(read);
    }
    // A torn last line waits too.
    Ok(lines + u64::from(last != b'\n'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    /// A disk with room for so many bytes.
    struct Disk {
        bytes: RefCell<Vec<u8>>,
        room: usize,
        syncs_fail: bool,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut held = self.bytes.borrow_mut();
            let fits = bytes.len().min(self.room - held.len());
            held.extend(bytes.iter().take(fits));
            if fits == 0 && !bytes.is_empty() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(fits) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Medium for Disk {
        fn cut(&self, len: u64) -> io::Result<()> {
            self.bytes.borrow_mut().truncate(usize::try_from(len).unwrap_or(usize::MAX));
            Ok(())
        }

        fn sync(&self) -> io::Result<()> {
            if self.syncs_fail { Err(io::ErrorKind::Other.into()) } else { Ok(()) }
        }
    }

    // D8: a short write is cut back, wherever the disk is full.
    #[test]
    fn a_short_write_is_cut_back() {
        for room in 0..20 {
            let mut disk = Disk { bytes: RefCell::default(), room, syncs_fail: false };
            let mut len = 0;
            let mut kept = 0;
            for _ in 0..TRIES {
                match append_whole(&mut disk, &mut len, b"line 1\n") {
                    Ok(()) => kept += 1,
                    Err(failed) => assert!(failed.is_clean && failed.error.kind() == io::ErrorKind::StorageFull),
                }
            }
            assert_eq!(kept, (room / 7).min(3));
            assert_eq!(*disk.bytes.borrow(), b"line 1\n".repeat(kept));
        }
    }

    // D8: after a failed sync the file is not trusted.
    #[test]
    fn a_failed_sync_is_a_failure() {
        let mut disk = Disk { bytes: RefCell::default(), room: 100, syncs_fail: true };
        let failed = append_whole(&mut disk, &mut 0, b"line 1\n");
        assert!(failed.is_err_and(|failed| !failed.is_clean));
    }

    #[test]
    fn a_torn_last_line_counts() -> io::Result<()> {
        for (text, lines) in [("", 0), ("a\n", 1), ("a\nb\n", 2), ("a\nb", 2), ("b", 1)] {
            assert_eq!(count_lines(text.as_bytes())?, lines, "{text:?}");
        }
        Ok(())
    }
}
