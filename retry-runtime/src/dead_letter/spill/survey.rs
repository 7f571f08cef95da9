//! What lies in the spill's directories, and whether they would take more.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::lock::{self, Locked};
use super::{Spill, count_lines, files};
use crate::error::StoreError;
use crate::id::Id;

/// A spill file that waits to be imported.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpillFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its lines.
    pub lines: u64,
    /// A living process has it locked: it is imported when that process has ended, or begins another one.
    pub held: bool,
}

impl Spill {
    /// The files that wait to be imported, those being written included, with what is in them.
    ///
    /// # Errors
    /// When a directory or a file cannot be read.
    pub fn survey(&self) -> Result<Vec<SpillFile>, StoreError> {
        let mut found = Vec::new();
        for path in self.files()? {
            let opened = File::open(&path).and_then(|file| Ok((file.try_clone()?, file)));
            let (file, again) = match opened {
                Ok(both) => both,
                // Imported in between.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(files::store_error("cannot read", &path, error)),
            };
            let lines = count_lines(BufReader::new(file));
            let lines = lines.map_err(|error| files::store_error("cannot read", &path, error))?;
            found.push(SpillFile { held: lock::exclusive(&again) == Locked::Busy, path, lines });
        }
        Ok(found)
    }

    /// Files with lines that could not be read, set aside by imports.
    ///
    /// # Errors
    /// When a directory cannot be read.
    pub fn bad_files(&self) -> Result<Vec<PathBuf>, StoreError> {
        let mut found = Vec::new();
        for dir in &self.dirs {
            let in_dir = files::files_ending(dir, &self.base, b".ndjson.bad");
            found.extend(in_dir.map_err(|error| files::store_error("cannot read", dir, error))?);
        }
        Ok(found)
    }

    /// Tries whether the directories take a file, by making one and removing it: each with what it said. A directory that is
    /// not there yet, and would be made for the first letter, is left out.
    pub fn probe(&self) -> Vec<(PathBuf, Result<(), StoreError>)> {
        let there = self.dirs.iter().enumerate().filter(|(at, dir)| *at == 0 || dir.exists());
        there.map(|(_, dir)| (dir.clone(), self.probe_dir(dir))).collect()
    }

    fn probe_dir(&self, dir: &Path) -> Result<(), StoreError> {
        let mut name = self.base.clone();
        name.push(format!(".probe-{}", Id::new(SystemTime::now())));
        let path = dir.join(name);
        let fail = |error| files::store_error("cannot spill into", dir, error);
        let mut file = files::create_private(&path).map_err(fail)?;
        let written = file.write_all(b"{}\n").and_then(|()| file.sync_data());
        let removed = std::fs::remove_file(&path);
        written.and(removed).map_err(fail)
    }
}
