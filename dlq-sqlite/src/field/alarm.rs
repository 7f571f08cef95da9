//! When to say that something is too much: when it passes its mark, again when it has doubled, again after a day, and not in
//! floods.

use std::time::{Duration, SystemTime};

/// Where a store raises an alarm: a notice, and a finding of its doctor.
///
/// A notice is said when a mark is passed, again at each doubling beyond it (or halving of free room), and once a day for
/// as long as it stays there; never more than once an hour for going up and down around it.
///
/// ```
/// use dlq_sqlite::{AlarmAt, SqliteStore};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("jobs.db");
/// let mut alarm = AlarmAt::default();
/// alarm.free_bytes = 10 << 30;
/// let store = SqliteStore::options(path).alarm_at(alarm).open()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AlarmAt {
    /// A database file that is larger than this together with its write-ahead log; 1 GiB by default.
    pub database_bytes: u64,
    /// A write-ahead log that holds more than this and cannot be emptied, because somebody reads all the time; 64 MiB by
    /// default. SQLite itself moves a log of 16 MiB into the file.
    pub log_bytes: u64,
    /// Payload files beside the database that are larger together; 4 GiB by default. Only a full examination looks.
    pub payload_file_bytes: u64,
    /// Less free room than this on the database's disk; 256 MiB by default.
    pub free_bytes: u64,
    /// More letters owed than this in the store's scope; 100,000 by default.
    pub owed_letters: u64,
}

impl Default for AlarmAt {
    fn default() -> Self {
        Self {
            database_bytes: 1 << 30,
            log_bytes: 64 << 20,
            payload_file_bytes: 4 << 30,
            free_bytes: 256 << 20,
            owed_letters: 100_000,
        }
    }
}

/// How far beyond its mark something is: 0 just above it, 1 at twice as much, 2 at four times. `None`: below.
pub(crate) fn above(value: u64, mark: u64) -> Option<u32> {
    (value > mark).then(|| (value / mark.max(1)).max(1).ilog2())
}

/// The same for what is too little: 1 at half of the mark.
pub(crate) fn below(value: u64, mark: u64) -> Option<u32> {
    (value < mark).then(|| (mark / value.max(1)).max(1).ilog2())
}

/// As long as it lasts, it is said again.
const AGAIN: Duration = Duration::from_secs(86_400);

/// Going up and down around a mark is one alarm.
const QUIET: Duration = Duration::from_secs(3_600);

/// One alarm's memory.
#[derive(Debug, Default)]
pub(crate) struct Alarm {
    said: Option<(u32, SystemTime)>,
}

impl Alarm {
    pub(crate) const fn new() -> Self {
        Self { said: None }
    }

    /// Whether it is to be said now that it stands at this step.
    pub(crate) fn is_news(&mut self, step: Option<u32>, now: SystemTime) -> bool {
        let Some((said, at)) = self.said else {
            self.said = step.map(|step| (step, now));
            return step.is_some();
        };
        // A clock that was set back makes it old rather than silent.
        let age = now.duration_since(at).unwrap_or(AGAIN);
        match step {
            Some(step) if step > said || age >= AGAIN => {
                self.said = Some((step, now));
                true
            }
            Some(_) => false,
            None => {
                if age >= QUIET {
                    self.said = None;
                }
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000 + seconds)
    }

    #[test]
    fn steps_are_doublings() {
        let steps = [9, 10, 11, 19, 20, 39, 40, 80].map(|value| above(value, 10));
        assert_eq!(steps, [None, None, Some(0), Some(0), Some(1), Some(1), Some(2), Some(3)]);
        let steps = [100, 99, 51, 50, 26, 25, 0].map(|value| below(value, 100));
        assert_eq!(steps, [None, Some(0), Some(0), Some(1), Some(1), Some(2), Some(6)]);
        assert_eq!((above(1, 0), above(u64::MAX, 1), below(0, 0)), (Some(0), Some(63), None));
    }

    // F93: not only from 0 to 1, but on growth and on age
    #[test]
    fn growth_and_age_are_news() {
        let mut alarm = Alarm::default();
        assert!(!alarm.is_news(None, at(0)));
        assert!(alarm.is_news(Some(0), at(1)), "the mark is passed");
        assert!(!alarm.is_news(Some(0), at(2)));
        assert!(alarm.is_news(Some(1), at(3)), "it doubled");
        assert!(!alarm.is_news(Some(1), at(4)) && !alarm.is_news(Some(0), at(5)));
        assert!(!alarm.is_news(Some(1), at(3 + 24 * HOUR - 1)));
        assert!(alarm.is_news(Some(1), at(3 + 24 * HOUR)), "it is still there a day later");
    }

    // F96: one full disk is not 95,000 alarms
    #[test]
    fn going_up_and_down_is_no_flood() {
        let mut alarm = Alarm::default();
        let said = (0..2 * HOUR).filter(|second| alarm.is_news((second % 2 == 0).then_some(0), at(*second))).count();
        assert_eq!(said, 2, "once an hour");
        assert!(!alarm.is_news(None, at(9 * HOUR)));
        assert!(alarm.is_news(Some(0), at(9 * HOUR + 1)), "after a quiet time it is news again");
    }

    #[test]
    fn a_clock_set_back_silences_nothing() {
        let mut alarm = Alarm::default();
        assert!(alarm.is_news(Some(0), at(99 * HOUR)));
        assert!(alarm.is_news(Some(0), at(0)));
        assert!(!alarm.is_news(Some(0), at(1)));
    }
}
