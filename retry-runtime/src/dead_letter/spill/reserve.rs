//! Room kept for the moment when the disk is full.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::files;

/// A file of 4 MiB that a store deletes when its disk is full, so that the last letters can still be parked.
#[derive(Debug)]
pub struct Reserve {
    path: PathBuf,
}

impl Reserve {
    /// Its size.
    pub const BYTES: u64 = 4 << 20;

    /// The reserve of the store at `base`: `<base>.reserve`. Nothing is created.
    pub fn beside(base: impl AsRef<Path>) -> Self {
        Self { path: files::with_suffix(base.as_ref(), ".reserve") }
    }

    /// Creates it, unless it is there: really written, since a hole takes no room.
    ///
    /// # Errors
    /// When it cannot be written; what was written of it is removed.
    pub fn fill(&self) -> io::Result<()> {
        if std::fs::metadata(&self.path).is_ok_and(|found| found.len() == Self::BYTES) {
            return Ok(());
        }
        let filled = files::overwrite_private(&self.path).and_then(|mut file| {
            let block = [0; 8 << 10];
            let mut left = Self::BYTES;
            while left > 0 {
                file.write_all(&block)?;
                left = left.saturating_sub(block.len() as u64);
            }
            file.sync_all()
        });
        if filled.is_err() {
            let _gone = std::fs::remove_file(&self.path);
        }
        filled
    }

    /// Gives the room free. `false`: there was none.
    pub fn free(&self) -> bool {
        std::fs::remove_file(&self.path).is_ok()
    }
}
