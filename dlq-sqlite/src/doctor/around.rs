//! What lies around the database: spilled letters, files that were set aside, sizes, room, and who may read it all.

use std::fs::Metadata;
use std::path::{Path, PathBuf};

use retry_runtime::dead_letter::{Finding, Severity};

use super::Exam;
use super::writer::lasting;
use crate::field::disk::{bytes, free, size, size_below};
use crate::field::{alarm, readers};
use crate::open::files::{beside, directory_of, set_aside_files};

/// So many names in one finding.
const NAMED: usize = 5;

impl Exam {
    pub(super) fn around(&self) -> Vec<Finding> {
        let mut found = Vec::new();
        self.set_aside(&mut found);
        self.spill(&mut found);
        self.sizes(&mut found);
        self.log(&mut found);
        #[cfg(unix)]
        self.modes(&mut found);
        found
    }

    // D7
    fn set_aside(&self, found: &mut Vec<Finding>) {
        for path in set_aside_files(&self.settings.path) {
            let message =
                format!("a corrupt file was set aside ({}); its letters are counted nowhere", bytes(size(&path)));
            found.push(Finding::new(Severity::Error, "set_aside", message).about(path.display().to_string()).advise(
                "bring home what can be read of it (`dlq salvage`, or as docs/dead-letters.md says), then move it away",
            ));
        }
    }

    // D8
    fn spill(&self, found: &mut Vec<Finding>) {
        let spill = &self.shared.spill;
        match spill.survey() {
            Ok(files) => {
                let (held, left): (Vec<_>, Vec<_>) =
                    files.into_iter().filter(|file| file.lines > 0).partition(|file| file.held);
                let lines =
                    |files: &[retry_runtime::dead_letter::SpillFile]| files.iter().map(|file| file.lines).sum::<u64>();
                let names = |files: &[retry_runtime::dead_letter::SpillFile]| {
                    some(files.iter().map(|file| file.path.as_path()))
                };
                if !left.is_empty() {
                    let message = format!(
                        "{} letters wait in spill files of processes that ended: {}",
                        lines(&left),
                        names(&left)
                    );
                    let advice = if self.may_write() {
                        "open the store for writing: it takes them in; if they stay, look for `spill_import_failed`"
                    } else {
                        "the next program that opens the store for writing takes them in"
                    };
                    found.push(self.warning("spilled", message).advise(advice));
                }
                if !held.is_empty() {
                    let message =
                        format!("{} letters wait in spill files of running processes: {}", lines(&held), names(&held));
                    let advice = if self.may_write() {
                        "their store takes them in when it has worked again for 10 s, or the next one when they end"
                    } else {
                        "a process that writes takes its own in when the store has worked again for 10 s; when they end, \
                         the next program that opens the store for writing takes them in"
                    };
                    found.push(self.warning("spilling", message).advise(advice));
                }
            }
            Err(error) => found.push(
                self.warning("spill_unreadable", error.to_string()).advise("let this user read the spill directory"),
            ),
        }
        if let Ok(bad) = spill.bad_files()
            && !bad.is_empty()
        {
            let message =
                format!("lines of spilled letters could not be read: {}", some(bad.iter().map(PathBuf::as_path)));
            let advice = "each line is a letter, cut short or damaged: save what can be read of it by hand, then delete the file";
            found.push(self.error("spill_bad", message).advise(advice));
        }
        if self.may_write() {
            let tried = spill.probe();
            let works = tried.iter().any(|(_, result)| result.is_ok());
            let severity = if works { Severity::Warning } else { Severity::Error };
            for (dir, result) in tried {
                let Err(error) = result else { continue };
                let message = format!("letters cannot be spilled there: {error}");
                found.push(
                    Finding::new(severity, "spill_unwritable", message)
                        .about(dir.display().to_string())
                        .advise("let this user write the directory, or name another one with `spill_dirs`"),
                );
            }
        }
    }

    fn sizes(&self, found: &mut Vec<Finding>) {
        let at = self.settings.alarm_at;
        let path = &self.settings.path;
        if let Some(left) = free(directory_of(path))
            && alarm::below(left, at.free_bytes).is_some()
        {
            let severity = if left < 16 << 20 { Severity::Error } else { Severity::Warning };
            let message = format!("{} are free on the disk, below {}", bytes(left), bytes(at.free_bytes));
            let advice = "make room; letters go to the spill file when none is left, which may be on the same disk";
            let about = path.display().to_string();
            found.push(Finding::new(severity, "disk_low", message).about(about).advise(advice));
        }
        let (database, log) = (size(path), size(&beside(path, "-wal")));
        if alarm::above(database.saturating_add(log), at.database_bytes).is_some() {
            let message = format!(
                "the file has {} and its log {}, together above {}",
                bytes(database),
                bytes(log),
                bytes(at.database_bytes)
            );
            let advice = "discard what nobody will replay, and let retention delete what is closed";
            found.push(self.warning("database_large", message).advise(advice));
        }
        if !self.is_full() {
            return;
        }
        let blobs = size_below(self.shared.payloads.blobs.root());
        if alarm::above(blobs, at.payload_file_bytes).is_some() {
            let message = format!("payload files have {}, above {}", bytes(blobs), bytes(at.payload_file_bytes));
            let advice = "keep a reference to large inputs in the payload rather than the inputs themselves";
            found.push(self.warning("payload_files_large", message).advise(advice));
        }
    }

    /// Checkpoint starvation.
    fn log(&self, found: &mut Vec<Finding>) {
        let (stuck, checkpoint) = self.shared.tell(|told| (told.log_stuck_since, told.checkpoint));
        let Some(since) = stuck else { return };
        let held = checkpoint.map_or(0, |checkpoint| checkpoint.log_pages.saturating_sub(checkpoint.moved_pages));
        let message = format!(
            "the write-ahead log ({}) cannot be emptied, for {} now: {held} pages of it wait for a reader ({})",
            bytes(size(&beside(&self.settings.path, "-wal"))),
            lasting(since, self.now),
            readers::said(&readers::of(&self.settings.path))
        );
        let advice = "end the long read: a shell with an open transaction, a report, a backup that was left standing";
        found.push(self.warning("log_not_emptied", message).advise(advice));
    }

    // D24
    #[cfg(unix)]
    fn modes(&self, found: &mut Vec<Finding>) {
        use std::os::unix::fs::MetadataExt;
        let open: Vec<PathBuf> = self
            .own_files()
            .into_iter()
            .filter(|(_, metadata)| metadata.mode() & 0o077 != 0)
            .map(|(path, _)| path)
            .collect();
        if !open.is_empty() {
            let message =
                format!("others may read or write what holds payloads: {}", some(open.iter().map(PathBuf::as_path)));
            found.push(self.warning("file_modes", message).advise("chmod 600 the files, 700 their directories"));
        }
        let directory = directory_of(&self.settings.path);
        // A sticky directory, such as /tmp, keeps others from renaming what is not theirs.
        let open = std::fs::metadata(directory).is_ok_and(|at| at.mode() & 0o022 != 0 && at.mode() & 0o1000 == 0);
        if open {
            let message = "others may write the directory: they could put another file in the place of this one";
            found.push(
                Finding::new(Severity::Warning, "directory_mode", message)
                    .about(directory.display().to_string())
                    .advise("chmod go-w the directory"),
            );
        }
    }

    /// The files of this store, and the directory of its payload files.
    #[cfg(unix)]
    fn own_files(&self) -> Vec<(PathBuf, Metadata)> {
        let path = &self.settings.path;
        let Some(name) = path.file_name().map(|name| name.as_encoded_bytes().to_vec()) else { return Vec::new() };
        let is_own = |other: &[u8]| {
            other.strip_prefix(name.as_slice()).is_some_and(|rest| matches!(rest.first(), None | Some(b'-' | b'.')))
        };
        let entries = std::fs::read_dir(directory_of(path)).into_iter().flatten().filter_map(Result::ok);
        let own = entries.filter(|entry| is_own(entry.file_name().as_encoded_bytes())).map(|entry| entry.path());
        let mut own: Vec<PathBuf> = own.collect();
        if self.is_full() {
            own.extend(below(self.shared.payloads.blobs.root()));
        }
        own.sort();
        // Not opened: closing any descriptor of the database would drop SQLite's locks.
        own.into_iter().filter_map(|path| Some((path.clone(), std::fs::symlink_metadata(path).ok()?))).collect()
    }
}

/// Everything below a directory.
#[cfg(unix)]
fn below(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    entries
        .flat_map(|entry| {
            let mut found = vec![entry.path()];
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                found.extend(below(&entry.path()));
            }
            found
        })
        .collect()
}

/// The first few of many names.
fn some<'a>(paths: impl ExactSizeIterator<Item = &'a Path>) -> String {
    let more = paths.len().saturating_sub(NAMED);
    let text = paths.take(NAMED).map(|path| format!("`{}`", path.display())).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{text} and {more} more") } else { text }
}
