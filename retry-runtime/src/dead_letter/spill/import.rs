//! Bringing spilled letters home.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

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
}

/// The most letters in one [`Batch`].
const BATCH: usize = 500;

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

impl Spill {
    /// Gives all waiting lines to `take`, file by file, at most 500 letters at a time.
    ///
    /// `take` must answer only once the letters are durable: then the file is renamed to `.done`. A line that cannot be
    /// read goes to a file `.bad`, an error notice is said, and the rest is imported. Files of living processes are left
    /// alone. This process begins a new file at its next letter.
    ///
    /// # Errors
    /// What `take` said; its file waits for the next import. Or that a directory cannot be read.
    pub fn import(&self, mut take: impl FnMut(Batch) -> Result<(), StoreError>) -> Result<Import, StoreError> {
        // Our own files have lines too; closing them opens their locks.
        self.lock().clear();
        let mut done = Import::default();
        for path in self.files()? {
            match import_file(&path, &mut done, &mut take) {
                Ok(()) => {}
                Err(Stop::Store(error)) => return Err(error),
                Err(Stop::File(error)) if error.kind() == io::ErrorKind::NotFound => {}
                Err(Stop::File(error)) => {
                    done.refused += 1;
                    let message = format!("cannot import `{}`, it stays where it is: {error}", path.display());
                    Notice::error("spill_import_failed", "", message).say();
                }
            }
        }
        Ok(done)
    }
}

enum Stop {
    /// The store failed: no other file will fare better.
    Store(StoreError),
    /// This file cannot be imported.
    File(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}

fn import_file(
    path: &Path,
    done: &mut Import,
    take: &mut impl FnMut(Batch) -> Result<(), StoreError>,
) -> Result<(), Stop> {
    let file = OpenOptions::new().read(true).append(true).open(path)?;
    match lock::exclusive(&file) {
        Locked::Yes => {}
        Locked::Busy => {
            done.busy += 1;
            return Ok(());
        }
        Locked::Unsupported => {
            let why = "neither this compiler's library nor this file system has file locks";
            return Err(io::Error::new(io::ErrorKind::Unsupported, why).into());
        }
    }
    if !files::is_at(&file, path) {
        // Another importer finished it while we waited for the lock.
        return Ok(());
    }
    let mut bad = Vec::new();
    let letters = read_all(&file, &mut bad, take)?;
    if !bad.is_empty() {
        set_aside(path, &bad)?;
    }
    std::fs::rename(path, files::with_suffix(path, ".done"))?;
    if let Some(dir) = path.parent() {
        files::sync_dir(dir)?;
    }
    done.files += 1;
    done.letters += letters;
    done.bad_lines += bad.len() as u64;
    Ok(())
}

fn read_all(
    file: &File,
    bad: &mut Vec<Vec<u8>>,
    take: &mut impl FnMut(Batch) -> Result<(), StoreError>,
) -> Result<u64, Stop> {
    let mut reader = BufReader::new(file);
    let mut batch = Batch::default();
    let mut letters = 0;
    let mut raw = Vec::new();
    while reader.read_until(b'\n', &mut raw)? > 0 {
        let whole = raw.strip_suffix(b"\n");
        let parsed = whole.map_or_else(|| Err(BadLine::Broken("torn".to_owned())), line::parse);
        match parsed {
            Ok(Line::Letter(letter)) => batch.letters.push(*letter),
            Ok(Line::Lost(n)) => batch.lost += n,
            Err(BadLine::Broken(_)) => bad.push(std::mem::take(&mut raw)),
            Err(BadLine::Newer(version)) => {
                let why = format!(
                    "it was written by a later version (lines of version {version}, this one knows {})",
                    line::VERSION
                );
                return Err(io::Error::new(io::ErrorKind::InvalidData, why).into());
            }
        }
        raw.clear();
        if batch.letters.len() >= BATCH {
            letters += give(&mut batch, take)?;
        }
    }
    letters += give(&mut batch, take)?;
    Ok(letters)
}

fn give(batch: &mut Batch, take: &mut impl FnMut(Batch) -> Result<(), StoreError>) -> Result<u64, Stop> {
    let batch = std::mem::take(batch);
    let letters = batch.letters.len() as u64;
    if letters > 0 || batch.lost > 0 {
        take(batch).map_err(Stop::Store)?;
    }
    Ok(letters)
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
