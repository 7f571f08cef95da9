//! Failures that are one failure: groups, what people noted about them, and how they come in.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::dead_letter::{
    Actor, BoxFuture, Bucket, DeadLetterStore, Filter, LetterRow, LetterState, from_millis, to_millis,
};
use crate::error::{StoreError, StoreErrorKind};

/// The order of groups. Groups equal in it follow their fingerprint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GroupOrder {
    /// The one with the most letters first.
    #[default]
    MostLetters,
    /// The one that was seen last first.
    NewestFirst,
}

/// Which groups are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupsRequest {
    /// Of these letters.
    pub filter: Filter,
    /// The order.
    pub order: GroupOrder,
    /// At most so many groups; 20 by default.
    pub limit: u32,
    /// Where the page before ended; `None` for the first page.
    pub after: Option<GroupCursor>,
}

impl GroupsRequest {
    /// The first 20 groups of these letters, the largest first.
    pub fn new(filter: Filter) -> Self {
        Self { filter, order: GroupOrder::default(), limit: 20, after: None }
    }

    /// In this order.
    #[must_use]
    pub fn order(mut self, order: GroupOrder) -> Self {
        self.order = order;
        self
    }

    /// At most so many.
    #[must_use]
    pub fn limit(mut self, groups: u32) -> Self {
        self.limit = groups;
        self
    }

    /// The page behind `cursor`.
    #[must_use]
    pub fn after(mut self, cursor: Option<GroupCursor>) -> Self {
        self.after = cursor;
        self
    }
}

/// A place among the groups: behind the one with these keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupCursor {
    /// Its letters.
    pub letters: u64,
    /// When it was seen last.
    pub last_seen: SystemTime,
    /// Its fingerprint.
    pub fingerprint: String,
}

/// What the letters of one group add up to; for stores, which read it from an index.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupCounts {
    /// The group.
    pub fingerprint: String,
    /// Letters by state.
    pub states: BTreeMap<LetterState, u64>,
    /// Their attempts.
    pub attempts: u64,
    /// The earliest failure of any of them.
    pub first_seen: SystemTime,
    /// The newest failure of any of them.
    pub last_seen: SystemTime,
}

impl GroupCounts {
    /// Letters of one state.
    pub fn new(
        fingerprint: impl Into<String>,
        state: LetterState,
        letters: u64,
        attempts: u64,
        seen: (SystemTime, SystemTime),
    ) -> Self {
        let states = BTreeMap::from([(state, letters)]);
        Self { fingerprint: fingerprint.into(), states, attempts, first_seen: seen.0, last_seen: seen.1 }
    }

    /// Adds letters of the same group.
    pub fn add(&mut self, other: &Self) {
        for (state, letters) in &other.states {
            *self.states.entry(*state).or_default() += letters;
        }
        self.attempts = self.attempts.saturating_add(other.attempts);
        self.first_seen = self.first_seen.min(other.first_seen);
        self.last_seen = self.last_seen.max(other.last_seen);
    }

    /// All of its letters.
    pub fn letters(&self) -> u64 {
        self.states.values().sum()
    }

    /// The place behind it.
    pub fn cursor(&self) -> GroupCursor {
        let letters = self.letters();
        GroupCursor { letters, last_seen: self.last_seen, fingerprint: self.fingerprint.clone() }
    }
}

impl GroupCursor {
    /// Which of two places comes first.
    pub fn compare(&self, other: &Self, order: GroupOrder) -> Ordering {
        let by = match order {
            GroupOrder::MostLetters => other.letters.cmp(&self.letters),
            GroupOrder::NewestFirst => other.last_seen.cmp(&self.last_seen),
        };
        by.then_with(|| self.fingerprint.cmp(&other.fingerprint))
    }
}

/// The first groups of a request, however many there are: memory for one page, whatever is offered.
#[derive(Debug)]
pub struct FirstGroups<'a> {
    request: &'a GroupsRequest,
    kept: Vec<(GroupCursor, GroupCounts)>,
}

impl<'a> FirstGroups<'a> {
    /// None yet.
    pub fn new(request: &'a GroupsRequest) -> Self {
        Self { request, kept: Vec::new() }
    }

    /// A whole group: every fingerprint is offered once.
    pub fn offer(&mut self, group: GroupCounts) {
        let (place, order) = (group.cursor(), self.request.order);
        let is_before =
            self.request.after.as_ref().is_some_and(|after| place.compare(after, order) != Ordering::Greater);
        // One more says that there is a next page.
        let most = (self.request.limit as usize).saturating_add(1);
        let at = self.kept.partition_point(|(kept, _)| kept.compare(&place, order) == Ordering::Less);
        if is_before || at >= most {
            return;
        }
        self.kept.insert(at, (place, group));
        self.kept.truncate(most);
    }

    /// The page, and where the next one starts.
    pub fn page(self) -> (Vec<GroupCounts>, Option<GroupCursor>) {
        let limit = self.request.limit as usize;
        let more = self.kept.len() > limit;
        let page: Vec<_> = self.kept.into_iter().take(limit).map(|(_, group)| group).collect();
        let next = if more { page.last().map(GroupCounts::cursor) } else { None };
        (page, next)
    }
}

/// A group of failures.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FailureGroup {
    /// What its letters add up to.
    pub counts: GroupCounts,
    /// The newest of its letters: kind, classes, error type and a sample message.
    pub newest: LetterRow,
    /// Parkings of the last 24 hours and 30 days.
    pub trend: Trend,
    /// What was noted last; `None` where that was nothing.
    pub note: Option<GroupNote>,
}

impl FailureGroup {
    /// A group; for stores.
    pub fn new(counts: GroupCounts, newest: LetterRow, trend: Trend, note: Option<GroupNote>) -> Self {
        Self { counts, newest, trend, note: note.filter(|note| !note.text.is_empty()) }
    }
}

/// One page of groups.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct GroupsPage {
    /// The groups.
    pub groups: Vec<FailureGroup>,
    /// Where the next page starts; `None` when this is the last one.
    pub next: Option<GroupCursor>,
}

impl GroupsPage {
    /// A page; for stores.
    pub fn new(groups: Vec<FailureGroup>, next: Option<GroupCursor>) -> Self {
        Self { groups, next }
    }
}

/// Parkings of a group over time, zeros included. Every parking counts, also one that joins a letter; a store keeps the
/// numbers for [`Trend::KEPT`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trend {
    /// Of each of the last 24 hours (full hours, UTC), the present one last.
    pub per_hour: Vec<u64>,
    /// Of each of the last 30 days (UTC), today last.
    pub per_day: Vec<u64>,
}

impl Trend {
    /// How long parkings per hour are kept.
    pub const KEPT: Duration = Duration::from_secs(35 * 86_400);

    /// The hour that a time falls into, since the epoch.
    pub fn hour_of(at: SystemTime) -> i64 {
        to_millis(at).div_euclid(3_600_000)
    }

    /// The first hour of the 30 days that end with the one of `now`.
    pub fn from_hour(now: SystemTime) -> i64 {
        (Self::hour_of(now).div_euclid(24) - 29) * 24
    }

    /// The trend at `now`, of parkings by hour since the epoch.
    pub fn of(now: SystemTime, parkings: impl IntoIterator<Item = (i64, u64)>) -> Self {
        let (hour, first) = (Self::hour_of(now), Self::from_hour(now));
        let mut trend = Self { per_hour: vec![0; 24], per_day: vec![0; 30] };
        for (at, n) in parkings {
            let place = |from: i64, width: i64| usize::try_from((at - from).div_euclid(width)).ok();
            if let Some(count) = place(hour - 23, 1).and_then(|at| trend.per_hour.get_mut(at)) {
                *count += n;
            }
            if let Some(count) = place(first, 24).and_then(|at| trend.per_day.get_mut(at)) {
                *count += n;
            }
        }
        trend
    }
}

/// What somebody noted about a group. Notes are never changed: a newer one takes the place of an older one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupNote {
    /// The text; empty: the older ones are not to be shown any more.
    pub text: String,
    /// Who noted it.
    pub actor: String,
    /// When.
    pub at: SystemTime,
}

impl GroupNote {
    /// A note; for stores.
    pub fn new(text: impl Into<String>, actor: impl Into<String>, at: SystemTime) -> Self {
        Self { text: text.into(), actor: actor.into(), at }
    }
}

/// By what arrivals are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ArrivalKey {
    /// By nothing: one series.
    All,
    /// The operation.
    Kind,
    /// The error class (`permanent:403`).
    ErrorClass,
}

/// A question about parkings over time.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Arrivals {
    /// Told apart by this.
    pub by: ArrivalKey,
    /// The first slice is the one that this falls into.
    pub from: SystemTime,
    /// The last slice is the one that this falls into.
    pub to: SystemTime,
    /// The width of a slice.
    pub bucket: Bucket,
}

impl Arrivals {
    /// At most so many slices are answered.
    pub const MOST: usize = 10_000;

    /// Parkings by `by` between two times, both included, in slices.
    pub const fn new(by: ArrivalKey, from: SystemTime, to: SystemTime, bucket: Bucket) -> Self {
        Self { by, from, to, bucket }
    }

    /// The first and the last hour, since the epoch.
    pub fn hours(&self) -> (i64, i64) {
        let last = Trend::hour_of(self.bucket.start(self.to));
        (Trend::hour_of(self.bucket.start(self.from)), last + self.width() - 1)
    }

    fn width(&self) -> i64 {
        i64::try_from(self.bucket.width().as_secs() / 3_600).unwrap_or(1).max(1)
    }

    /// The answer, of parkings by hour and key: the largest series first, ties by key. By [`ArrivalKey::All`] there is one
    /// series, also of nothing.
    ///
    /// # Errors
    /// `Invalid` when the times are the wrong way round, or more than [`MOST`](Self::MOST) slices apart.
    pub fn answer(
        &self,
        parkings: impl IntoIterator<Item = (i64, String, u64)>,
    ) -> Result<Vec<ArrivalSeries>, StoreError> {
        self.check()?;
        let (first, last) = self.hours();
        let slices = usize::try_from((last - first + 1) / self.width()).unwrap_or(0);
        let mut series: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        if self.by == ArrivalKey::All {
            series.insert(String::new(), vec![0; slices]);
        }
        for (hour, key, n) in parkings {
            let counts = series.entry(key).or_insert_with(|| vec![0; slices]);
            let at = usize::try_from((hour - first).div_euclid(self.width())).ok();
            if let Some(count) = at.and_then(|at| counts.get_mut(at)) {
                *count += n;
            }
        }
        let start =
            |n: usize| from_millis((first + i64::try_from(n).unwrap_or(0) * self.width()).saturating_mul(3_600_000));
        let mut series: Vec<_> = series
            .into_iter()
            .map(|(key, counts)| ArrivalSeries {
                key,
                counts: counts.into_iter().enumerate().map(|(n, count)| (start(n), count)).collect(),
            })
            .collect();
        series.sort_by(|a, b| b.total().cmp(&a.total()).then_with(|| a.key.cmp(&b.key)));
        Ok(series)
    }

    /// Refuses what makes no sense.
    ///
    /// # Errors
    /// `Invalid`, as [`answer`](Self::answer) says.
    pub fn check(&self) -> Result<(), StoreError> {
        let (first, last) = self.hours();
        let slices = (last.saturating_sub(first) + 1) / self.width();
        if first <= last && usize::try_from(slices).is_ok_and(|slices| slices <= Self::MOST) {
            return Ok(());
        }
        let most = Self::MOST;
        let message = format!("arrivals of {slices} slices: between 1 and {most} can be asked for");
        Err(StoreError::new(StoreErrorKind::Invalid, message))
    }
}

/// Parkings of one key over time, zeros included.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArrivalSeries {
    /// The kind or the error class; empty for [`ArrivalKey::All`].
    pub key: String,
    /// The beginning of each slice, and its parkings.
    pub counts: Vec<(SystemTime, u64)>,
}

impl ArrivalSeries {
    /// All of its parkings.
    pub fn total(&self) -> u64 {
        self.counts.iter().map(|(_, n)| n).sum()
    }

    /// The last slice, and the same hour of so many days before, the nearest first: is this hour like the others?
    pub fn against_past_days(&self, days: usize) -> (u64, Vec<u64>) {
        let Some((last, now)) = self.counts.last() else { return (0, Vec::new()) };
        let on = |day: u64| last.checked_sub(Duration::from_secs(day * 86_400));
        let found = (1..=days as u64).filter_map(|day| {
            let wanted = on(day)?;
            self.counts.iter().find(|(at, _)| *at == wanted).map(|(_, n)| *n)
        });
        (*now, found.collect())
    }
}

/// Groups of failures, for stores that keep letters.
///
/// ```
/// use retry_runtime::dead_letter::{Actor, FailureGroups, Filter, GroupsRequest, MemoryStore};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), retry_runtime::error::StoreError> {
/// let store = MemoryStore::new();
/// let page = store.groups(GroupsRequest::new(Filter::owed())).await?;
/// for group in &page.groups {
///     println!("{:>6}  {}  {}", group.counts.letters(), group.newest.error_class, group.newest.error_message);
///     store.note(group.counts.fingerprint.clone(), "the vendor knows".into(), Actor::new("ann", "")).await?;
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`StoreError`]: `Invalid` for a request without sense, the others where the store itself fails.
pub trait FailureGroups: DeadLetterStore {
    /// One page of the groups of the letters that match. Counted at each call, from an index where the filter has nothing
    /// but states, kinds, error classes, fingerprints and times: about 0.2 s for a million letters.
    fn groups(&self, request: GroupsRequest) -> BoxFuture<'_, Result<GroupsPage, StoreError>>;

    /// Notes something about a group, whether or not it has letters. An empty text takes the note away that is shown; it
    /// stays among [`notes`](Self::notes).
    fn note(&self, fingerprint: String, text: String, actor: Actor) -> BoxFuture<'_, Result<GroupNote, StoreError>>;

    /// Everything ever noted about a group, the oldest first.
    fn notes(&self, fingerprint: String) -> BoxFuture<'_, Result<Vec<GroupNote>, StoreError>>;

    /// Parkings over time, zeros included. Kept for [`Trend::KEPT`].
    fn arrivals(&self, question: Arrivals) -> BoxFuture<'_, Result<Vec<ArrivalSeries>, StoreError>>;
}

macro_rules! through {
    ($($type:ty),*) => {$(
        impl<S: FailureGroups + ?Sized> FailureGroups for $type {
            fn groups(&self, request: GroupsRequest) -> BoxFuture<'_, Result<GroupsPage, StoreError>> {
                (**self).groups(request)
            }
            fn note(&self, fingerprint: String, text: String, actor: Actor) -> BoxFuture<'_, Result<GroupNote, StoreError>> {
                (**self).note(fingerprint, text, actor)
            }
            fn notes(&self, fingerprint: String) -> BoxFuture<'_, Result<Vec<GroupNote>, StoreError>> {
                (**self).notes(fingerprint)
            }
            fn arrivals(&self, question: Arrivals) -> BoxFuture<'_, Result<Vec<ArrivalSeries>, StoreError>> {
                (**self).arrivals(question)
            }
        }
    )*};
}

through!(&S, Arc<S>, Box<S>);

// The trait stays object-safe.
const _: fn(&dyn FailureGroups) = |_| {};
