//! What whoever is called at night asks first, and no other trait answers.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::dead_letter::{BoxFuture, LetterRow};
use crate::error::StoreError;

/// A store as a whole: what is due, who is there, which files it consists of.
///
/// # Errors
/// [`StoreError`], by kind.
pub trait Overview: Send + Sync {
    /// Facts of this moment. Cheap, also with a million letters.
    fn facts(&self) -> BoxFuture<'_, Result<StoreFacts, StoreError>>;

    /// The letters that a text may mean, at most so many: the one with this id; else those with this job id, whatever their
    /// kinds; else those whose id or job id begins with it, in order of their numbers. An empty text means none.
    fn find(&self, text: String, limit: u32) -> BoxFuture<'_, Result<Vec<LetterRow>, StoreError>>;
}

/// What a store knows of itself at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreFacts {
    /// The moment, by the store's clock.
    pub now: SystemTime,
    /// When the first parked letter becomes due that a server asked to leave alone for longer; `None`: all are due.
    pub next_due: Option<SystemTime>,
    /// Letters that were recovered within the last 24 hours, by replays or by hand.
    pub recovered_in_a_day: u64,
    /// Processes that answer for jobs in the journal. Others that use the store are not known.
    pub processes: Vec<ProcessFacts>,
    /// Which programs, in which versions, took in the newest 1,000 parkings, and how many of these; the most first.
    pub writers: Vec<(String, u64)>,
    /// When the newest parkings failed, at most 20, the newest first: live failures and what was imported of them, never
    /// replays.
    pub newest_parkings: Vec<SystemTime>,
    /// How long discarded letters are kept, where a program that has the store open deletes old ones by itself.
    pub discarded_kept: Option<Duration>,
    /// The files, each with what it is; none for a store that has none.
    pub files: Vec<StoreFile>,
    /// What is free on their disk for this user; `None` where nobody tells.
    pub free_bytes: Option<u64>,
}

impl StoreFacts {
    /// How many of the newest parkings [`writers`](Self::writers) are asked of.
    pub const NEWEST: u32 = 1_000;

    /// How many [newest parkings](Self::newest_parkings) are told.
    pub const NEWEST_TIMES: u32 = 20;

    /// Facts of a store with nothing in it; for stores.
    pub const fn new(now: SystemTime) -> Self {
        Self {
            now,
            next_due: None,
            recovered_in_a_day: 0,
            processes: Vec::new(),
            writers: Vec::new(),
            newest_parkings: Vec::new(),
            discarded_kept: None,
            files: Vec::new(),
            free_bytes: None,
        }
    }

    /// Since when [`recovered_in_a_day`](Self::recovered_in_a_day) counts.
    pub fn day_ago(&self) -> SystemTime {
        self.now.checked_sub(Duration::from_secs(86_400)).unwrap_or(SystemTime::UNIX_EPOCH)
    }
}

/// A process that answers for jobs in the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessFacts {
    /// Its program, number and version, for people to read.
    pub name: String,
    /// When it first wrote a job down.
    pub since: SystemTime,
    /// When it last said that it lives.
    pub seen_at: SystemTime,
    /// It counts as dead from then on.
    pub lease_until: SystemTime,
}

impl ProcessFacts {
    /// A process; for stores.
    pub fn new(name: impl Into<String>, since: SystemTime, seen_at: SystemTime, lease_until: SystemTime) -> Self {
        Self { name: name.into(), since, seen_at, lease_until }
    }
}

/// What a file of a store is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FileRole {
    /// The letters themselves.
    Database,
    /// A log of what is not in the database yet.
    Log,
    /// Large payloads; a directory, with the sum of its sizes.
    Payloads,
    /// Letters that wait to be taken in.
    Spill,
    /// Lines of spilled letters that could not be read.
    SpillBad,
    /// A file that was found corrupt and set aside.
    SetAside,
}

impl FileRole {
    /// The stable text form: `database`, `log`, `payloads`, `spill`, `spill_bad` or `set_aside`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Database => "database",
            Self::Log => "log",
            Self::Payloads => "payloads",
            Self::Spill => "spill",
            Self::SpillBad => "spill_bad",
            Self::SetAside => "set_aside",
        }
    }
}

/// A file of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreFile {
    /// What it is.
    pub role: FileRole,
    /// Where it is.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// The lines of a spill file.
    pub lines: Option<u64>,
    /// A living process has a spill file locked.
    pub held: bool,
}

impl StoreFile {
    /// A file without lines; for stores.
    pub fn new(role: FileRole, path: impl Into<PathBuf>, bytes: u64) -> Self {
        Self { role, path: path.into(), bytes, lines: None, held: false }
    }

    /// The same with lines, and whether somebody has it locked.
    #[must_use]
    pub const fn with_lines(mut self, lines: u64, held: bool) -> Self {
        self.lines = Some(lines);
        self.held = held;
        self
    }
}

macro_rules! through {
    ($($type:ty),*) => {$(
        impl<S: Overview + ?Sized> Overview for $type {
            fn facts(&self) -> BoxFuture<'_, Result<StoreFacts, StoreError>> {
                (**self).facts()
            }
            fn find(&self, text: String, limit: u32) -> BoxFuture<'_, Result<Vec<LetterRow>, StoreError>> {
                (**self).find(text, limit)
            }
        }
    )*};
}

through!(&S, Arc<S>, Box<S>);

// The trait stays object-safe.
const _: fn(&dyn Overview) = |_| {};
