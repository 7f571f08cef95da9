//! A file whose first page is damaged: nothing of it can be read, although everything may be there.
//!
//! Stores of one schema are made in one way, so a fresh store has the same first page but for what tells of its size. It is
//! tried with the old page's own list of tables, then with the fresh one's; either must lead to this store's tables.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use rusqlite::Connection;

/// What stands in front of the list of tables.
const HEADER: usize = 100;

/// The names of tables and indexes.
pub(super) fn names(connection: &Connection) -> rusqlite::Result<BTreeSet<String>> {
    let mut statement = connection.prepare("SELECT name FROM sqlite_schema")?;
    let names = statement.query_map([], |row| row.get(0))?;
    names.collect()
}

/// The size of pages that the header says; the usual one where it says none.
pub(super) fn page_size(file: &Path) -> usize {
    let mut header = [0; 18];
    let read = OpenOptions::new().read(true).open(file).and_then(|mut file| file.read_exact(&mut header));
    let said = match header {
        [.., 0, 1] => 65_536,
        [.., high, low] => usize::from(u16::from_be_bytes([high, low])),
    };
    let is_header = read.is_ok() && header.starts_with(b"SQLite format 3\0");
    if is_header && said.is_power_of_two() && said >= 512 { said } else { 4_096 }
}

/// Whether a file begins as databases do.
pub(super) fn is_there(file: &Path) -> bool {
    let mut magic = [0; 16];
    let read = OpenOptions::new().read(true).open(file).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && magic == *b"SQLite format 3\0"
}

/// Which list of tables the file gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    /// Its own.
    Own,
    /// The fresh store's.
    Fresh,
}

/// Gives a file the first page of a fresh store: all of it, or what stands in front of the list of tables.
pub(super) fn put(file: &Path, fresh: &Path, list: List) -> io::Result<()> {
    let page = page_size(fresh);
    let mut first = vec![0; page];
    OpenOptions::new().read(true).open(fresh)?.read_exact(&mut first)?;
    let mut file = OpenOptions::new().read(true).write(true).open(file)?;
    let pages = u32::try_from(file.metadata()?.len() / page as u64).unwrap_or(u32::MAX);
    // How many pages there are, and none of them free: what is only read needs no free ones.
    for (at, number) in [(28, pages), (32, 0), (36, 0)] {
        if let Some(place) = first.get_mut(at..at + 4) {
            place.copy_from_slice(&number.to_be_bytes());
        }
    }
    // The number of pages counts where these agree.
    let changes: [u8; 4] = first.get(24..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default();
    if let Some(place) = first.get_mut(92..96) {
        place.copy_from_slice(&changes);
    }
    file.seek(SeekFrom::Start(0))?;
    file.write_all(if list == List::Own { first.get(..HEADER).unwrap_or(&first) } else { &first })?;
    file.sync_all()
}
