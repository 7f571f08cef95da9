//! Who reads the file at this moment, as far as the system tells.
//!
//! A reader holds a shared lock on one of five bytes of the `-shm` file: one for those that need no log, and keep the log
//! from being moved into the file they read, and four for those that read from the log. Linux lists all locks, with
//! their owners, in `/proc/locks`; elsewhere nothing is known.

use std::path::Path;

use crate::open::files::beside;

/// The bytes whose locks mean "reads" (SQLite's file format, "WAL-index locks").
const READ_MARKS: std::ops::RangeInclusive<u64> = 123..=127;

/// The processes that are reading the database at `path`, by number and name.
pub(crate) fn of(path: &Path) -> Vec<String> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let Ok(shared_memory) = std::fs::metadata(beside(path, "-shm")) else { return Vec::new() };
        let Ok(locks) = std::fs::read_to_string("/proc/locks") else { return Vec::new() };
        pids(&locks, shared_memory.ino()).into_iter().map(describe).collect()
    }
    #[cfg(not(unix))]
    {
        let _ = (path, beside as fn(&Path, &str) -> std::path::PathBuf);
        Vec::new()
    }
}

/// For people: nobody is named where nothing is known.
pub(crate) fn said(readers: &[String]) -> String {
    if readers.is_empty() { "which process that is, is not known".to_owned() } else { readers.join(", ") }
}

fn describe(pid: u32) -> String {
    if pid == std::process::id() {
        return "this process".to_owned();
    }
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    format!("process {pid} ({})", name.trim())
}

/// The owners of shared locks on the read marks of the file with that inode.
fn pids(locks: &str, inode: u64) -> Vec<u32> {
    let mut found: Vec<u32> = locks
        .lines()
        .filter_map(|line| {
            // 12: POSIX  ADVISORY  READ 4711 fe:01:263180 124 124
            let mut words = line.split_whitespace().skip_while(|word| *word != "READ").skip(1);
            let pid: u32 = words.next()?.parse().ok()?;
            let file = words.next()?;
            let (first, last): (u64, u64) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            let is_file = file.rsplit(':').next()?.parse::<u64>().ok()? == inode;
            (is_file && first <= *READ_MARKS.end() && last >= *READ_MARKS.start()).then_some(pid)
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCKS: &str = "\
1: FLOCK  ADVISORY  WRITE 4711 fe:01:263180 0 EOF
2: POSIX  ADVISORY  READ 4711 fe:01:263180 124 124
3: POSIX  ADVISORY  READ 4712 fe:01:263180 123 123
4: POSIX  ADVISORY  READ 4713 fe:01:263181 124 124
5: POSIX  ADVISORY  READ 4714 fe:01:263180 127 127
6: POSIX  ADVISORY  READ 4714 fe:01:263180 125 125
6: -> POSIX  ADVISORY  WRITE 4715 fe:01:263180 125 125
7: POSIX  ADVISORY  READ 4716 fe:01:263180 128 128";

    #[test]
    fn readers_are_found() {
        assert_eq!(pids(LOCKS, 263_180), [4711, 4712, 4714]);
        assert_eq!(pids("", 263_180), [0; 0]);
    }
}
