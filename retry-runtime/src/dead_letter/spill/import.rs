//! Bringing spilled letters home.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use super::line::{BadLine, Line};
use super::lock::{self, Locked};
use super::{Spill, files, line};
use crate::dead_letter::DeadLetter;
use crate::error::StoreError;
use crate::observe::Notice;

/// Letters a store is to take in one go.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Batch {
    /// The letters, in the order they were spilled.
    pub letters: Vec<DeadLetter>,
    /// So many were lost before: to be added to the store's counter.
    pub lost: u64,
    /// The scope in which they were to be parked; `None`: that of the store which imports them.
    pub scope: Option<String>,
}

/// The most letters in one [`Batch`].
const BATCH: usize = 500;

/// And about the most bytes: letters may be large, and all of a batch are in memory at once.
const BATCH_BYTES: usize = 8 << 20;

/// What an import did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Import {
    /// Files taken in whole.
    pub files: u64,
    /// Letters taken in, those the store had already included.
    pub letters: u64,
    /// Lines that could not be read, set aside in a file `.bad`.
    pub bad_lines: u64,
    /// Files left alone, because their process lives (it has them locked).
    pub busy: u64,
    /// Files left alone, because a later version wrote them, or they could not be read.
    pub refused: u64,
}

/// `12 letters taken in from 2 files, 1 bad line set aside`, and what was left alone.
impl fmt::Display for Import {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = |n: u64, what: &str| if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") };
        write!(f, "{} taken in from {}", counted(self.letters, "letter"), counted(self.files, "file"))?;
        if self.bad_lines > 0 {
            write!(f, ", {} set aside", counted(self.bad_lines, "bad line"))?;
        }
        if self.busy > 0 {
            write!(f, ", {} of living processes left alone", counted(self.busy, "file"))?;
        }
        if self.refused > 0 {
            write!(f, ", {} could not be read", counted(self.refused, "file"))?;
        }
        Ok(())
    }
}

impl Spill {
    /// Gives all waiting lines to `take`, file by file, at most 500 letters, or 8 MiB of them, at a time, all of
    /// one scope.
    ///
    /// `take` must answer only once the letters are durable: then the file is renamed to `.done`. A line that cannot be
    /// read goes to a file `.bad`, an error notice is said, and the rest is imported. Files of living processes are left
    /// alone. This process begins a new file at its next letter.
    ///
    /// # Errors
    /// What `take` said; its file waits for the next import. Or that a directory cannot be read.
    pub fn import(&self, mut take: impl FnMut(Batch) -> Result<(), StoreError>) -> Result<Import, StoreError> {
        let mut done = Import::default();
        for path in self.files_to_import()? {
            let Some(mut file) = Waiting::open(&path, &mut done) else { continue };
            while let Some(batch) = file.next(&mut done) {
                take(batch)?;
            }
            file.finish(&mut done);
        }
        Ok(done)
    }

    /// The files an import has to look at. This process's own are closed, which opens their locks.
    pub(crate) fn files_to_import(&self) -> Result<Vec<PathBuf>, StoreError> {
        self.release();
        self.files()
    }
}

/// A spill file being imported, under its lock.
#[derive(Debug)]
pub(crate) struct Waiting {
    path: PathBuf,
    reader: BufReader<File>,
    letters: u64,
    lost: u64,
    /// Read already, but of another scope than the batch before it.
    ahead: Option<(DeadLetter, Option<String>)>,
    bad: Vec<Vec<u8>>,
    /// Why it stays where it is.
    refused: Option<io::Error>,
}

impl Waiting {
    /// Opens and locks a file; `None` when there is nothing to do for it, which is counted.
    pub(crate) fn open(path: &Path, done: &mut Import) -> Option<Self> {
        let opened = OpenOptions::new().read(true).append(true).open(path).and_then(|file| {
            let locked = lock::exclusive(&file);
            if locked == Locked::Unsupported {
                let why = "neither this compiler's library nor this file system has file locks";
                return Err(io::Error::new(io::ErrorKind::Unsupported, why));
            }
            Ok((file, locked))
        });
        match opened {
            Ok((_, Locked::Busy)) => {
                done.busy += 1;
                None
            }
            // Another importer finished it before we had the lock.
            Ok((file, _)) if !files::is_at(&file, path) => None,
            Ok((file, _)) => Some(Self {
                path: path.to_owned(),
                reader: BufReader::new(file),
                letters: 0,
                lost: 0,
                ahead: None,
                bad: Vec::new(),
                refused: None,
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                refuse(path, &error, done);
                None
            }
        }
    }

    /// The next letters; `None` at the end, or where the file cannot be read on.
    pub(crate) fn next(&mut self, done: &mut Import) -> Option<Batch> {
        if self.refused.is_some() {
            return None;
        }
        let mut batch = Batch::default();
        if let Err(error) = self.read(&mut batch) {
            refuse(&self.path, &error, done);
            self.refused = Some(error);
        }
        self.letters += batch.letters.len() as u64;
        self.lost += batch.lost;
        (!batch.letters.is_empty() || batch.lost > 0).then_some(batch)
    }

    fn read(&mut self, batch: &mut Batch) -> io::Result<()> {
        let mut raw = Vec::new();
        let mut bytes = 0;
        if let Some((letter, scope)) = self.ahead.take() {
            batch.letters.push(letter);
            batch.scope = scope;
        }
        while batch.letters.len() < BATCH && bytes < BATCH_BYTES && self.reader.read_until(b'\n', &mut raw)? > 0 {
            let whole = raw.strip_suffix(b"\n");
            match whole.map_or_else(|| Err(BadLine::Broken("torn".to_owned())), line::parse) {
                Ok(Line::Letter(letter, scope)) => {
                    if batch.letters.is_empty() {
                        batch.scope = scope;
                    } else if batch.scope != scope {
                        self.ahead = Some((*letter, scope));
                        return Ok(());
                    }
                    batch.letters.push(*letter);
                    bytes += raw.len();
                }
                Ok(Line::Lost(n)) => batch.lost += n,
                Err(BadLine::Broken(_)) => self.bad.push(std::mem::take(&mut raw)),
                Err(BadLine::Newer(version)) => {
                    let known = line::VERSION;
                    let why = format!("a later version wrote it (lines of version {version}, this one knows {known})");
                    return Err(io::Error::new(io::ErrorKind::InvalidData, why));
                }
            }
            raw.clear();
        }
        Ok(())
    }

    /// The losses it told of.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Everything it gave is durable: sets aside what could not be read, and renames the file.
    pub(crate) fn finish(self, done: &mut Import) {
        if self.refused.is_some() {
            return;
        }
        if let Err(error) = self.rename() {
            refuse(&self.path, &error, done);
            return;
        }
        done.files += 1;
        done.letters += self.letters;
        done.bad_lines += self.bad.len() as u64;
    }

    fn rename(&self) -> io::Result<()> {
        if !self.bad.is_empty() {
            set_aside(&self.path, &self.bad)?;
        }
        std::fs::rename(&self.path, files::with_suffix(&self.path, ".done"))?;
        self.path.parent().map_or(Ok(()), files::sync_dir)
    }
}

/// One file that cannot be imported stops no other.
fn refuse(path: &Path, error: &io::Error, done: &mut Import) {
    done.refused += 1;
    let message = format!("cannot import `{}`, it stays where it is: {error}", path.display());
    Notice::error("spill_import_failed", "", message).say();
}

/// Keeps lines that cannot be read, beside the file they were in, and says so.
fn set_aside(path: &Path, bad: &[Vec<u8>]) -> io::Result<()> {
    let aside = files::with_suffix(path, ".bad");
    let mut file = files::overwrite_private(&aside)?;
    for line in bad {
        file.write_all(line)?;
        if !line.ends_with(b"\n") {
            file.write_all(b"\n")?;
        }
    }
    file.sync_all()?;
    let message =
        format!("{} lines of `{}` cannot be read; they are kept in `{}`", bad.len(), path.display(), aside.display());
    Notice::error("spill_torn", "", message).say();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_import_is_told_in_one_line() {
        let mut done = Import { files: 2, letters: 12, ..Import::default() };
        assert_eq!(done.to_string(), "12 letters taken in from 2 files");
        (done.bad_lines, done.busy, done.refused) = (1, 1, 3);
        assert_eq!(
            done.to_string(),
            "12 letters taken in from 2 files, 1 bad line set aside, 1 file of living processes left alone, 3 files could \
             not be read"
        );
    }
}
