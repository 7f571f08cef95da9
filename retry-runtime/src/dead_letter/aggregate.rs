//! Counts over groups: summaries, groups, matrices and sparklines are all one question.

use std::time::{Duration, SystemTime};

use crate::dead_letter::clock::{from_millis, to_millis};
use crate::dead_letter::{Filter, LetterRow};

/// What letters are grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GroupKey {
    /// The operation.
    Kind,
    /// The failure class; empty for a letter without one.
    Class,
    /// The error class (`permanent:403`).
    ErrorClass,
    /// The failure group.
    Fingerprint,
    /// The state.
    State,
    /// The label; empty for a letter without one.
    Model,
}

impl GroupKey {
    /// The letter's value of this key.
    pub fn of(self, row: &LetterRow) -> String {
        match self {
            Self::Kind => row.kind.clone(),
            Self::Class => row.class.clone().unwrap_or_default(),
            Self::ErrorClass => row.error_class.clone(),
            Self::Fingerprint => row.fingerprint.clone(),
            Self::State => row.state.to_string(),
            Self::Model => row.model.clone().unwrap_or_default(),
        }
    }
}

/// The width of a slice of time, in UTC. Letters fall into the slice of their `last_seen`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Bucket {
    /// An hour.
    Hour,
    /// A day.
    Day,
}

impl Bucket {
    /// Its width.
    pub const fn width(self) -> Duration {
        match self {
            Self::Hour => Duration::from_secs(3_600),
            Self::Day => Duration::from_secs(86_400),
        }
    }

    /// The beginning of the slice `at` falls into.
    pub fn start(self, at: SystemTime) -> SystemTime {
        let width = match self {
            Self::Hour => 3_600_000,
            Self::Day => 86_400_000,
        };
        let at = to_millis(at);
        from_millis(at - at.rem_euclid(width))
    }
}

/// A question about counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Aggregate {
    /// Over which letters.
    pub filter: Filter,
    /// Grouped by these, in this order; empty: all in one group.
    pub by: Vec<GroupKey>,
    /// And by slices of time.
    pub bucket: Option<Bucket>,
}

impl Aggregate {
    /// Counts of the letters that match, by these keys.
    pub fn new(filter: Filter, by: impl Into<Vec<GroupKey>>) -> Self {
        Self { filter, by: by.into(), bucket: None }
    }

    /// And by slices of time.
    #[must_use]
    pub const fn per(mut self, bucket: Bucket) -> Self {
        self.bucket = Some(bucket);
        self
    }
}

/// One group of letters. Answers come with the largest group first, ties by slice, then keys.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Group {
    /// The values of the keys asked by, in their order.
    pub keys: Vec<String>,
    /// The beginning of the slice of time, when asked by slices.
    pub bucket: Option<SystemTime>,
    /// Letters.
    pub letters: u64,
    /// Their attempts.
    pub attempts: u64,
    /// The earliest failure of any of them.
    pub first_seen: SystemTime,
    /// The newest failure of any of them.
    pub last_seen: SystemTime,
}

impl Group {
    /// A group; for stores.
    pub fn new(
        keys: Vec<String>,
        bucket: Option<SystemTime>,
        letters: u64,
        attempts: u64,
        seen: (SystemTime, SystemTime),
    ) -> Self {
        Self { keys, bucket, letters, attempts, first_seen: seen.0, last_seen: seen.1 }
    }

    /// Sorts an answer: the largest group first, ties by slice, then keys.
    pub fn sort(groups: &mut [Self]) {
        groups.sort_by(|a, b| {
            b.letters.cmp(&a.letters).then_with(|| a.bucket.cmp(&b.bucket)).then_with(|| a.keys.cmp(&b.keys))
        });
    }
}
