//! Counters per operation and day.

mod thresholds;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::dead_letter::{BoxFuture, to_millis};
use crate::error::StoreError;
use crate::reply::Reply;

pub use thresholds::{Degraded, Threshold, Thresholds};

/// A calendar day in UTC. Prints as `YYYY-MM-DD`.
///
/// ```
/// use std::time::{Duration, UNIX_EPOCH};
/// use retry_runtime::counters::Day;
///
/// let day = Day::of(UNIX_EPOCH + Duration::from_secs(1_709_164_800));
/// assert_eq!(day.to_string(), "2024-02-29");
/// assert_eq!(Day::parse("2024-02-29"), Some(day));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Day(i64);

/// A moment in UTC, to the second.
#[cfg(feature = "stores")]
pub(crate) struct Utc(pub(crate) SystemTime);

#[cfg(feature = "stores")]
impl Utc {
    /// Of a day beyond the calendar only the time of day is left.
    pub(crate) fn second_of_day(&self) -> u64 {
        self.0.duration_since(Day::of(self.0).start()).map_or(0, |since| since.as_secs() % 86_400)
    }
}

#[cfg(feature = "stores")]
impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let second = self.second_of_day();
        write!(f, "{}T{:02}:{:02}:{:02}Z", Day::of(self.0), second / 3_600, second / 60 % 60, second % 60)
    }
}

/// Where a counter stops: the largest whole number every store and every SQL client can hold.
pub const MAX_COUNT: u64 = i64::MAX as u64;

const MILLIS_PER_DAY: i64 = 86_400_000;

impl Day {
    /// 0000-01-01.
    const FIRST: i64 = -719_528;
    /// 9999-12-31.
    const LAST: i64 = 2_932_896;

    const fn clamped(days: i64) -> Self {
        // `Ord::clamp` is not const.
        Self(if days < Self::FIRST {
            Self::FIRST
        } else if days > Self::LAST {
            Self::LAST
        } else {
            days
        })
    }

    /// The day of a moment. A moment outside of the years 0 to 9999 counts as the nearest day inside: the text form orders
    /// days only there.
    pub fn of(at: SystemTime) -> Self {
        Self::clamped(to_millis(at).div_euclid(MILLIS_PER_DAY))
    }

    /// Its first moment. Days before the epoch give the epoch.
    pub fn start(self) -> SystemTime {
        let seconds = u64::try_from(self.0).unwrap_or(0).saturating_mul(86_400);
        UNIX_EPOCH.checked_add(Duration::from_secs(seconds)).unwrap_or(UNIX_EPOCH)
    }

    /// The day `days` later, or earlier, inside the years 0 to 9999.
    #[must_use]
    pub const fn plus(self, days: i64) -> Self {
        Self::clamped(self.0.saturating_add(days))
    }

    /// The days from this one to `last`, both included; none where `last` is earlier.
    pub fn through(self, last: Self) -> impl Iterator<Item = Self> {
        (self.0..=last.0).map(Self)
    }

    /// The day of a text `YYYY-MM-DD`; `None` for any other text and for days that are not in the calendar.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '-');
        let mut number = |digits: usize| {
            let part = parts.next()?;
            (part.len() == digits && part.bytes().all(|b| b.is_ascii_digit())).then(|| part.parse::<i64>().ok())?
        };
        let (year, month, day) = (number(4)?, number(2)?, number(2)?);
        let day = days_from_civil(year, month, day);
        // A day out of the calendar (February 30) comes back as another one.
        (Self(day).to_string() == text).then_some(Self(day))
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil_from_days(self.0);
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

// Howard Hinnant's algorithms (chrono-compatible low-level date algorithms): eras of 400 years, years that begin in March.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// Counters per operation and day (UTC), kept apart by name.
///
/// `add` serves async callers, blocking callers and drop guards alike: it never blocks, and its work never depends on the
/// reply being kept. Values stop at [`MAX_COUNT`].
///
/// A store may sum counts up in memory and write them once an interval: a crash then loses at most what was counted within
/// the last one. What this store was told is in its own answers at once, written or not.
pub trait DailyCounters: Send + Sync {
    /// Adds `n` to the counter of the day it is now.
    ///
    /// The reply comes when the count is as durable as it gets, which may be an interval later; most callers drop it. An
    /// error says that the count is not written yet, and why: a store that holds it in memory goes on trying, so it must
    /// not be added again.
    fn add(&self, operation: &str, counter: &str, n: u64) -> Reply<Result<(), StoreError>>;

    /// Writes what was counted now rather than at its time. By default there is nothing to write.
    fn flush(&self) -> Reply<Result<(), StoreError>> {
        Reply::ready(Ok(()))
    }

    /// Today, by the store's clock.
    fn today(&self) -> Day;

    /// An operation's counters of one day, by name.
    fn day(&self, operation: String, day: Day) -> BoxFuture<'_, Result<BTreeMap<String, u64>, StoreError>>;

    /// One counter, day by day from `from` to `to`, both included. Days without a count are 0.
    fn series(
        &self,
        operation: String,
        counter: String,
        from: Day,
        to: Day,
    ) -> BoxFuture<'_, Result<Vec<(Day, u64)>, StoreError>>;

    /// One counter over the last `days` days, today included and last: what a plot shows. Days without a count are 0.
    fn recent(
        &self,
        operation: String,
        counter: String,
        days: u32,
    ) -> BoxFuture<'_, Result<Vec<(Day, u64)>, StoreError>> {
        let today = self.today();
        self.series(operation, counter, today.plus(1 - i64::from(days)), today)
    }
}

macro_rules! through {
    ($($type:ty),*) => {$(
        impl<C: DailyCounters + ?Sized> DailyCounters for $type {
            fn add(&self, operation: &str, counter: &str, n: u64) -> Reply<Result<(), StoreError>> {
                (**self).add(operation, counter, n)
            }
            fn flush(&self) -> Reply<Result<(), StoreError>> {
                (**self).flush()
            }
            fn today(&self) -> Day {
                (**self).today()
            }
            fn day(&self, operation: String, day: Day) -> BoxFuture<'_, Result<BTreeMap<String, u64>, StoreError>> {
                (**self).day(operation, day)
            }
            fn series(&self, operation: String, counter: String, from: Day, to: Day) -> BoxFuture<'_, Result<Vec<(Day, u64)>, StoreError>> {
                (**self).series(operation, counter, from, to)
            }
        }
    )*};
}

through!(&C, Arc<C>, Box<C>);

// The trait stays object-safe.
const _: fn(&dyn DailyCounters) = |_| {};

#[cfg(test)]
mod tests {
    use super::*;

    // B3.5
    #[test]
    fn days_round_trip_over_eight_centuries() {
        for days in -150_000..150_000 {
            let day = Day(days);
            let text = day.to_string();
            assert_eq!(Day::parse(&text), Some(day), "{text}");
        }
        assert_eq!(Day(0).to_string(), "1970-01-01");
    }

    // B3.5: days stay in the years that their text form orders, whatever the clock says.
    #[test]
    fn no_day_leaves_the_calendar() {
        let (first, last) = (Day::parse("0000-01-01"), Day::parse("9999-12-31"));
        for days in [i64::MAX, i64::MAX / 2, 10_000_000] {
            assert_eq!(Some(Day(0).plus(days)), last);
            assert_eq!(Some(Day(0).plus(-days)), first);
        }
        assert_eq!(Some(Day::of(crate::dead_letter::from_millis(i64::MAX))), last);
        assert_eq!(Some(Day::of(crate::dead_letter::from_millis(i64::MIN))), first);
    }

    #[test]
    fn what_is_no_day_is_refused() {
        for text in ["2023-02-29", "2024-13-01", "2024-00-10", "24-01-01", "2024-1-1", "2024-01-01x", "", "+024-01-01"]
        {
            assert_eq!(Day::parse(text), None, "{text}");
        }
    }

    // B3.5: a day begins at midnight UTC.
    #[test]
    fn a_day_ends_at_midnight_utc() {
        let midnight = Day::parse("2026-11-30").map(Day::start);
        let Some(midnight) = midnight else { panic!("a day of the calendar") };
        assert_eq!(Day::of(midnight).to_string(), "2026-11-30");
        assert_eq!(Day::of(midnight - Duration::from_millis(1)).to_string(), "2026-11-29");
    }
}
