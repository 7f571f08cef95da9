//! How a store is opened.

use std::path::PathBuf;
use std::time::Duration;

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

/// Everything that is known before the file is opened.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) path: PathBuf,
    pub(crate) create: bool,
    pub(crate) durability: Durability,
    pub(crate) network_file_system: bool,
    /// One try at a lock.
    pub(crate) busy_timeout: Duration,
    /// All tries at a lock together.
    pub(crate) busy_limit: Duration,
}

impl Settings {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            create: true,
            durability: Durability::Full,
            network_file_system: false,
            busy_timeout: Duration::from_secs(1),
            busy_limit: Duration::from_secs(5),
        }
    }
}
