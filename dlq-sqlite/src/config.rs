//! How a store is opened.

use std::path::{Path, PathBuf};
use std::time::Duration;

use retry_runtime::dead_letter::{DEFAULT_SCOPE, Intake, OWNER_LEASE, Redactor, Retention, StoreClock};

use crate::error::OpenError;
use crate::field::alarm::AlarmAt;
use crate::store::SqliteStore;

/// What survives a loss of power.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Durability {
    /// Everything that was answered (`synchronous=FULL`): a dead letter is the last copy of a job.
    #[default]
    Full,
    /// Everything but the last commits since the log was synced (`synchronous=NORMAL`). A crash of the process loses
    /// nothing either way.
    Normal,
}

impl Durability {
    pub(crate) const fn pragma(self) -> (&'static str, i64) {
        match self {
            Self::Full => ("FULL", 2),
            Self::Normal => ("NORMAL", 1),
        }
    }
}

/// What a store may do with its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
    /// Write, and make it where there is none.
    Create,
}

/// Everything that is known before the file is opened.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) path: PathBuf,
    pub(crate) access: Access,
    pub(crate) durability: Durability,
    pub(crate) network_file_system: bool,
    /// One try at a lock.
    pub(crate) busy_timeout: Duration,
    /// All tries at a lock together.
    pub(crate) busy_limit: Duration,
    /// How long after opening expired leases are first taken back.
    pub(crate) reap_after: Duration,
    /// How long this process counts as alive after it last said so.
    pub(crate) owner_lease: Duration,
    /// Whether there is a file that is deleted when the disk is full.
    pub(crate) reserve: bool,
    /// Payloads that are larger, compressed, get a file of their own.
    pub(crate) payload_file_above: u64,
    /// Counts are written once in so long.
    pub(crate) flush_counters_every: Duration,
    /// What is too large, and too little.
    pub(crate) alarm_at: AlarmAt,
}

impl Settings {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            access: Access::Create,
            durability: Durability::Full,
            network_file_system: false,
            busy_timeout: Duration::from_secs(1),
            busy_limit: Duration::from_secs(5),
            // After a long stop every lease has run out at once. Live processes get this long to extend theirs.
            reap_after: Duration::from_secs(10),
            owner_lease: OWNER_LEASE,
            reserve: true,
            payload_file_above: 1 << 20,
            flush_counters_every: Duration::from_secs(1),
            alarm_at: AlarmAt::default(),
        }
    }
}

/// Everything that can be set before a store is opened.
///
/// ```no_run
/// use dlq_sqlite::{Durability, SqliteStore};
///
/// # fn main() -> Result<(), dlq_sqlite::OpenError> {
/// let store = SqliteStore::options("var/jobs.db").durability(Durability::Normal).open()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "options do nothing before `open`"]
pub struct SqliteOptions {
    pub(crate) settings: Settings,
    pub(crate) clock: StoreClock,
    pub(crate) scope: String,
    pub(crate) spill_dirs: Option<Vec<PathBuf>>,
    pub(crate) intake: Intake,
    pub(crate) retention: Option<Retention>,
}

impl SqliteOptions {
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            settings: Settings::new(path.to_owned()),
            clock: StoreClock::system(),
            scope: DEFAULT_SCOPE.to_owned(),
            spill_dirs: None,
            intake: Intake::default(),
            retention: None,
        }
    }

    /// Whether a store is made where there is none; yes by default. With `false` a missing or empty file, one that is no
    /// SQLite database and one of another program are errors, and left as they are. A damaged store is set aside and
    /// replaced either way: there was one.
    pub fn create(mut self, create: bool) -> Self {
        self.settings.access = if create { Access::Create } else { Access::Write };
        self
    }

    /// What survives a loss of power; everything by default.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.settings.durability = durability;
        self
    }

    /// The part of the file this store is about; `default` by default. Letters of other scopes are neither seen nor
    /// merged.
    pub fn scope(mut self, scope: impl Into<String>) -> Self {
        self.scope = scope.into();
        self
    }

    /// How long another process's lock is waited for, all tries together; 5 s by default, at most 1 s a try. After that
    /// letters go to the spill file, and the store is tried again every 5 s. Longer than a day counts as a day.
    pub fn busy_limit(mut self, limit: Duration) -> Self {
        // Neither a deadline nor SQLite's own timeout can express every duration.
        let limit = limit.min(Duration::from_secs(86_400));
        self.settings.busy_limit = limit;
        self.settings.busy_timeout = limit.min(Duration::from_secs(1));
        self
    }

    /// Where letters are spilled when the store fails, the first directory that can be written; by default the database's
    /// own, then one in the user's state directory.
    pub fn spill_dirs(mut self, directories: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        self.spill_dirs = Some(directories.into_iter().map(Into::into).collect());
        self
    }

    /// Deletes closed letters of this scope that are older, once a day; by default nothing is ever deleted but by
    /// [`prune`](retry_runtime::dead_letter::StoreAdmin::prune). What is owed is never deleted.
    ///
    /// Each letter is announced a day ahead, by the notice `retention_ahead`: the first deletion comes a day after this was first
    /// set, or changed.
    pub fn retention(mut self, retention: Retention) -> Self {
        self.retention = Some(retention);
        self
    }

    /// Whether 4 MiB are kept in a file beside the database that is deleted when the disk is full, so that the last letters
    /// still find room; yes by default.
    pub fn reserve(mut self, kept: bool) -> Self {
        self.settings.reserve = kept;
        self
    }

    /// Payloads that are larger than so many bytes after compression get a file of their own, in the directory `.blobs`
    /// beside the database; 1 MiB by default. Payloads below 64 KiB always stay in the database, as they are; larger ones
    /// are compressed. More than 512 MiB counts as 512 MiB.
    pub fn payload_file_above(mut self, bytes: u64) -> Self {
        self.settings.payload_file_above = bytes;
        self
    }

    /// What is too large, and what too little: see [`AlarmAt`].
    pub fn alarm_at(mut self, alarm_at: AlarmAt) -> Self {
        self.settings.alarm_at = alarm_at;
        self
    }

    /// How long daily counts are summed up in memory before they are written; 1 s by default, at most an hour, and at once
    /// with zero. A crash loses at most what was counted within the last interval; closing the store, or dropping the last
    /// handle, writes everything.
    pub fn flush_counters_every(mut self, interval: Duration) -> Self {
        self.settings.flush_counters_every = interval.min(Duration::from_secs(3_600));
        self
    }

    /// Takes a file on a network file system, in the slow mode that only one process can use. Refused by default: SQLite's
    /// locks do not hold there.
    pub fn network_file_system(mut self, allowed: bool) -> Self {
        self.settings.network_file_system = allowed;
        self
    }

    /// What is taken out of error texts before they are stored or spilled; the [standard](Redactor::standard) secrets by
    /// default.
    pub fn redact_errors(mut self, redactor: Redactor) -> Self {
        self.intake.errors = redactor;
        self
    }

    /// What is taken out of payloads before they are stored or spilled; nothing by default, because a payload that was
    /// altered cannot be replayed. Such a letter says so, and is passed over by replays until it is edited, or forced.
    pub fn redact_payloads(mut self, redactor: Redactor) -> Self {
        self.intake.payloads = redactor;
        self
    }

    /// The store's clock; the system's by default.
    pub fn clock(mut self, clock: StoreClock) -> Self {
        self.clock = clock;
        self
    }

    /// How long after opening expired leases are first taken back, when nobody claims: for tests.
    #[doc(hidden)]
    pub fn reap_after(mut self, grace: Duration) -> Self {
        self.settings.reap_after = grace.min(Duration::from_secs(86_400));
        self
    }

    /// How long this process counts as alive after its store last said so, for its jobs in the journal: for tests.
    #[doc(hidden)]
    pub fn owner_lease(mut self, lease: Duration) -> Self {
        self.settings.owner_lease = lease.min(Duration::from_secs(86_400));
        self
    }

    /// Opens for reading and writing.
    ///
    /// # Errors
    /// [`OpenError`]. A store that is there but cannot be written at the moment opens all the same: its letters go to the
    /// spill file, and it is tried again. So does one that a later version wrote and this one cannot read
    /// ([`TooNew`](OpenError::TooNew)): the notice `store_down` says so, and the later version takes the letters in.
    pub fn open(self) -> Result<SqliteStore, OpenError> {
        SqliteStore::start(self)
    }

    /// Opens for reading: nothing is made and nothing is changed. Verbs that change something are refused as `ReadOnly`;
    /// letters go to the spill file.
    ///
    /// # Errors
    /// [`OpenError`]; a missing or empty file is one.
    pub fn open_read_only(mut self) -> Result<SqliteStore, OpenError> {
        self.settings.access = Access::Read;
        SqliteStore::start(self)
    }
}
