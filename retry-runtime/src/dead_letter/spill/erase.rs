//! Taking the lines of one job out of spill files.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use super::line::{self, Line};
use super::lock::{self, Locked};
use super::{Spill, files};
use crate::dead_letter::EraseRequest;
use crate::error::StoreError;

/// What was taken out of spill files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Erased {
    /// Lines.
    pub lines: u64,
    /// Files that other processes hold, or that cannot be written: they stay as they are.
    pub left: Vec<PathBuf>,
}

impl Spill {
    /// Takes every line of a job out of this store's spill files: those that wait, those that were taken in (`.done`) and those
    /// that could not be read (`.bad`). A file is written anew beside the old one and takes its name.
    ///
    /// # Errors
    /// When a directory cannot be read. Files that cannot be changed are told.
    pub fn erase(&self, request: &EraseRequest) -> Result<Erased, StoreError> {
        self.release();
        let mut erased = Erased::default();
        for dir in &self.dirs {
            let found =
                files::all_files(dir, &self.base).map_err(|error| files::store_error("cannot read", dir, error))?;
            for path in found {
                match erase_in(&path, request) {
                    Ok(Some(lines)) => erased.lines += lines,
                    Ok(None) | Err(_) => erased.left.push(path),
                }
            }
        }
        Ok(erased)
    }
}

/// `None`: somebody else has the file locked.
fn erase_in(path: &Path, request: &EraseRequest) -> io::Result<Option<u64>> {
    let file = OpenOptions::new().read(true).append(true).open(path)?;
    if lock::exclusive(&file) != Locked::Yes {
        return Ok(None);
    }
    let mut kept = Vec::new();
    let mut lines = 0;
    let mut reader = BufReader::new(&file);
    loop {
        let mut raw = Vec::new();
        if reader.read_until(b'\n', &mut raw)? == 0 {
            break;
        }
        if is_meant(raw.strip_suffix(b"\n").unwrap_or(&raw), request) {
            lines += 1;
        } else {
            kept.push(raw);
        }
    }
    if lines > 0 {
        replace(path, &kept)?;
    }
    Ok(Some(lines))
}

/// A line that cannot be read is meant when it has the job's key in it.
fn is_meant(line: &[u8], request: &EraseRequest) -> bool {
    match line::parse(line) {
        Ok(Line::Letter(letter, _)) => {
            let own = letter.park_id.to_string();
            request.means(&letter.kind, letter.job_id.as_deref().unwrap_or(&own))
        }
        Ok(Line::Lost(_)) => false,
        Err(_) => {
            let key = serde_json::Value::from(request.job_id.as_str()).to_string();
            line.windows(key.len()).any(|window| window == key.as_bytes())
        }
    }
}

fn replace(path: &Path, kept: &[Vec<u8>]) -> io::Result<()> {
    let fresh = files::with_suffix(path, ".new");
    let mut file: File = files::overwrite_private(&fresh)?;
    for line in kept {
        file.write_all(line)?;
    }
    file.sync_all()?;
    std::fs::rename(&fresh, path)?;
    path.parent().map_or(Ok(()), files::sync_dir)
}
