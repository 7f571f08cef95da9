//! A store that four processes share, and what can be done to it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use dlq_sqlite::SqliteStore;
use dlq_sqlite::failpoints::POINTS;
use retry_runtime::dead_letter::StoreClock;
use retry_runtime::error::StoreError;
use retry_runtime::testing::store_chaos::{Dice, Fault, Harness, Workers};
use rusqlite::Connection;

use super::support::{self, SmallDisk};

/// A store on a small disk of its own, where this process may mount one; letters are spilled beside it.
#[derive(Default)]
pub(crate) struct OneFile {
    /// Lives die at places in the library, too, or have errors there.
    pub(crate) armed: bool,
    /// What is done to the file behind the store's back before it is judged.
    pub(crate) tampering: &'static str,
    pub(crate) disk: Mutex<Option<SmallDisk>>,
    pub(crate) lock: Mutex<Option<Connection>>,
    pub(crate) damaged: Mutex<u64>,
    /// The ids in files that were set aside, once they are asked for.
    pub(crate) aside: Mutex<Option<BTreeSet<String>>>,
}

pub(crate) fn database(place: &Path) -> PathBuf {
    place.join("disk/jobs.db")
}

fn filler(place: &Path) -> PathBuf {
    place.join("disk/filler")
}

/// The places every run of letters comes to.
pub(crate) fn places() -> impl Iterator<Item = &'static str> {
    let rare = ["migrate.", "set_aside.", "blob.before_removal", "operation."];
    POINTS.iter().copied().filter(move |place| !rare.iter().any(|rare| place.starts_with(rare)))
}

/// The places without which a run is not enough.
pub(crate) fn central() -> impl Iterator<Item = &'static str> {
    places()
        .filter(|place| ["park.", "import.", "claim.", "finish.", "reap."].iter().any(|name| place.starts_with(name)))
}

impl Harness for OneFile {
    type Store = SqliteStore;

    fn workers(&self) -> Workers {
        Workers::Processes
    }

    fn prepare(&self, place: &Path) -> Result<(), String> {
        std::fs::create_dir(place.join("spill")).map_err(|error| error.to_string())?;
        // Small, so that filling it is quick, but never full of letters alone: a long run on a fast machine parks tens of
        // thousands, one in 16 with a file of its own.
        let size = if super::soak() { "1g" } else { "128m" };
        *self.disk.lock().unwrap() = SmallDisk::mount(&place.join("disk"), size);
        Ok(())
    }

    fn open(&self, place: &Path, clock: StoreClock) -> Result<SqliteStore, StoreError> {
        let options = SqliteStore::options(database(place)).clock(clock).reserve(false).payload_file_above(16 << 10);
        Ok(options.spill_dirs([place.join("spill")]).busy_limit(Duration::from_millis(400)).open()?)
    }

    /// Every second life dies at the place where the fewest have, of those it may come to; one in eight has errors.
    fn arm(&self, command: &mut Command, place: &Path, killed: &BTreeMap<String, u64>, dice: &mut Dice) -> bool {
        if !self.armed {
            return false;
        }
        let list = match dice.below(8) {
            0..=3 => {
                // What was spilled is taken in once, when the store is opened: the chance is taken.
                let waits = !support::spill_files(&[&place.join("spill")]).is_empty();
                let (imports, nth) = if waits && dice.below(4) > 0 { (true, 1) } else { (false, 1 + dice.below(2)) };
                let reachable = places().filter(|place| place.starts_with("import") == imports);
                let fewest = reachable.min_by_key(|place| (killed.get(*place).copied().unwrap_or(0), dice.below(100)));
                format!("{}=kill:{nth}", fewest.unwrap())
            }
            4 => {
                let places: Vec<_> = places().collect();
                let error = dice.pick(&["error", "busy", "full"]).unwrap();
                format!("{}={error}:{}", dice.pick(&places).unwrap(), 1 + dice.below(4))
            }
            _ => return false,
        };
        command.env("DLQ_FAILPOINTS", &list);
        list.contains("kill")
    }

    fn is_enough(&self, killed: &BTreeMap<String, u64>) -> bool {
        !self.armed || central().all(|place| killed.get(place).is_some_and(|n| *n >= 2))
    }

    fn can(&self, fault: Fault, _place: &Path) -> bool {
        fault != Fault::FullDisk || self.disk.lock().unwrap().is_some()
    }

    fn begin(&self, fault: Fault, place: &Path) -> Result<(), String> {
        match fault {
            Fault::LockedFile => {
                let other = Connection::open(database(place)).unwrap();
                other.busy_timeout(Duration::from_secs(30)).unwrap();
                other.execute_batch("BEGIN IMMEDIATE").map_err(|error| error.to_string())?;
                *self.lock.lock().unwrap() = Some(other);
            }
            Fault::FullDisk => fill(&filler(place)),
            Fault::Corruption => self.damage(&database(place)),
            _ => return Err("unknown here".to_owned()),
        }
        Ok(())
    }

    fn end(&self, fault: Fault, place: &Path) -> Result<(), String> {
        match fault {
            Fault::LockedFile => drop(self.lock.lock().unwrap().take()),
            Fault::FullDisk => std::fs::remove_file(filler(place)).map_err(|error| error.to_string())?,
            // A damaged file is set aside by whoever opens it alone.
            Fault::Corruption => drop(self.open(place, StoreClock::system()).map_err(|error| error.to_string())?),
            _ => {}
        }
        Ok(())
    }

    fn settle(&self, place: &Path, store: &SqliteStore) -> Result<(), String> {
        store.settle().wait(Duration::from_secs(60)).map_err(|_| "the store does not settle".to_owned())?;
        if store.is_down() {
            return Err("the store is down".to_owned());
        }
        Connection::open(database(place)).unwrap().execute_batch(self.tampering).map_err(|error| error.to_string())
    }

    fn is_elsewhere(&self, place: &Path, id: &str) -> bool {
        let mut aside = self.aside.lock().unwrap();
        let aside = aside.get_or_insert_with(|| ids_in(&place.join("disk"), ".corrupt-"));
        aside.contains(id) || support::spilled(&[&place.join("spill")]).contains(id)
    }

    fn check(&self, place: &Path) -> Result<(), String> {
        if self.tampering.is_empty() {
            support::assert_intact(&database(place));
        }
        Ok(())
    }

    fn clean(&self, _place: &Path) {
        drop(self.disk.lock().unwrap().take());
    }
}

impl OneFile {
    /// Overwrites a page, another one each time; never the first, which says what the file is. Before that the log is moved
    /// into the file as far as may be: what is in the log would mend it.
    fn damage(&self, path: &Path) {
        let mut nth = self.damaged.lock().unwrap();
        *nth += 1;
        let moved = Connection::open(path).unwrap().query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        moved.unwrap();
        let mut file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
        let pages = file.metadata().unwrap().len() / 4_096;
        let page = 1 + (*nth * 11) % pages.saturating_sub(1).max(1);
        file.seek(SeekFrom::Start(page * 4_096)).unwrap();
        file.write_all(&[0xA5; 4_096]).unwrap();
    }
}

/// Until nothing more fits.
fn fill(path: &Path) {
    let mut file = std::fs::File::create(path).unwrap();
    for size in [1 << 20, 1 << 12] {
        while file.write_all(&vec![0; size]).is_ok() {}
    }
}

/// Every id in the bytes of the files whose names hold a word: what a salvage of them can find.
pub(crate) fn ids_in(directory: &Path, word: &str) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_string_lossy().contains(word) {
            let bytes = std::fs::read(path).unwrap();
            let texts = bytes.windows(36).filter(|bytes| is_id(bytes)).map(|bytes| std::str::from_utf8(bytes).unwrap());
            ids.extend(texts.map(str::to_owned));
        }
    }
    ids
}

fn is_id(bytes: &[u8]) -> bool {
    let dashes = [8, 13, 18, 23];
    let fits = |(at, byte): (usize, &u8)| if dashes.contains(&at) { *byte == b'-' } else { byte.is_ascii_hexdigit() };
    bytes[8] == b'-' && bytes.iter().enumerate().all(fits)
}
