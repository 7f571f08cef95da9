//! The facts of the first page, for a terminal and for a browser: what is asked at three in the morning.

mod acts;

use std::time::{Duration, SystemTime};

use retry_runtime::dead_letter::{
    ArrivalKey, Arrivals, Bucket, Checkup, EventRecord, FailureGroup, FailureGroups, FileRole, Filter, Finding,
    GroupOrder, GroupsRequest, LetterRow, LetterState, Operation, OperationStatus, Order, PageRequest, StoreFacts,
    Summary, Trend,
};
use retry_runtime::error::StoreError;

pub use acts::{Acts, is_by_hand};

use crate::means::BY_EXEC;
use crate::stores::Store;

/// How many letters under way, operations and new groups are told.
pub const TOLD: u32 = 10;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);

/// Everything the first page shows. Plain data of one moment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Status {
    /// The store, by its absolute path or address.
    pub store: String,
    /// What the store knows of itself; its `now` is the moment.
    pub facts: StoreFacts,
    /// What is owed.
    pub summary: Summary,
    /// The owed letter that was not seen for the longest time.
    pub longest_unseen: Option<LetterRow>,
    /// What came in.
    pub arrivals: ArrivalFacts,
    /// Failure groups that first appeared within the last 24 hours, at most [`TOLD`], the newest failure first.
    pub new_groups: Vec<NewGroup>,
    /// Letters that are being replayed, at most [`TOLD`].
    pub under_way: Vec<LetterRow>,
    /// Bulk operations that are not over, at most [`TOLD`], the newest first.
    pub operations: Vec<Operation>,
    /// What a discard of everything that can be discarded would give up.
    pub discard: DiscardFacts,
    /// What people did within the last hour.
    pub acts: Acts,
    /// Letters that were lost in the last 30 days: neither the store nor the spill took them.
    pub lost: u64,
    /// What a quick examination found, the worst first; an error of it is a finding too.
    pub health: Vec<Finding>,
}

/// Parkings of the last time, and whether they still come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArrivalFacts {
    /// Parkings per hour for the last 24 hours, the running hour last.
    pub per_hour: Vec<u64>,
    /// Parkings within the last 24 full hours and the running one before that.
    pub day: u64,
    /// Parkings within the 24 hours before those.
    pub day_before: u64,
    /// Parkings in the running hour and the full one before it.
    pub last_hours: u64,
    /// Parkings in the same two hours of each of the last 7 days, yesterday first.
    pub same_hours: Vec<u64>,
    /// The newest failure that parked a letter; failed replays are none.
    pub newest: Option<SystemTime>,
    /// What usually lies between two of the newest 20 such failures: the middle of their distances.
    pub every: Option<Duration>,
}

/// Whether failures still come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Arriving {
    /// The newest one is no older than three times what usually lies between two, and than 2 minutes.
    Yes,
    /// The newest one is older than that, and no older than 6 hours.
    Slowing,
    /// The newest one is older.
    No,
}

impl ArrivalFacts {
    /// What came in, as of a moment.
    ///
    /// # Errors
    /// [`StoreError`] where it cannot be read.
    pub async fn of(store: &Store, facts: &StoreFacts) -> Result<Self, StoreError> {
        let now = facts.now;
        let from = now.checked_sub(8 * DAY).unwrap_or(SystemTime::UNIX_EPOCH);
        let series = store.arrivals(Arrivals::new(ArrivalKey::All, from, now, Bucket::Hour)).await?;
        let parkings = series.iter().flat_map(|series| series.counts.iter());
        let mut of_hour = std::collections::BTreeMap::new();
        for (at, n) in parkings {
            *of_hour.entry(Trend::hour_of(*at)).or_insert(0_u64) += *n;
        }
        let this = Trend::hour_of(now);
        let at = |hour: i64| of_hour.get(&hour).copied().unwrap_or(0);
        let sum = |first: i64, last: i64| (first..=last).map(at).sum::<u64>();
        Ok(Self {
            per_hour: (this - 23..=this).map(at).collect(),
            day: sum(this - 24, this),
            day_before: sum(this - 48, this - 25),
            last_hours: sum(this - 1, this),
            same_hours: (1..=7).map(|days| sum(this - 1 - 24 * days, this - 24 * days)).collect(),
            newest: facts.newest_parkings.first().copied(),
            every: every(&facts.newest_parkings),
        })
    }

    /// So long without a new failure, and they have stopped for now.
    pub fn patience(&self) -> Duration {
        // Of a single one nobody knows whether more will come.
        let every = self.every.unwrap_or(5 * MINUTE);
        every.saturating_mul(3).clamp(2 * MINUTE, 2 * HOUR)
    }

    /// Whether failures still come in, as of a moment.
    pub fn arriving(&self, now: SystemTime) -> Arriving {
        let age = self.newest.map(|at| now.duration_since(at).unwrap_or_default());
        match age {
            Some(age) if age <= self.patience() => Arriving::Yes,
            Some(age) if age <= 6 * HOUR => Arriving::Slowing,
            _ => Arriving::No,
        }
    }

    /// The usual number of parkings in these two hours: the middle of the last 7 days.
    pub fn usual(&self) -> u64 {
        let mut sorted = self.same_hours.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied().unwrap_or(0)
    }
}

/// The middle of the distances between moments, the newest first.
fn every(moments: &[SystemTime]) -> Option<Duration> {
    let pairs = moments.iter().zip(moments.iter().skip(1));
    let mut between: Vec<Duration> =
        pairs.map(|(newer, older)| newer.duration_since(*older).unwrap_or_default()).collect();
    between.sort_unstable();
    between.get(between.len() / 2).copied()
}

/// A failure that is new.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NewGroup {
    /// Its fingerprint.
    pub group: String,
    /// Letters that are owed.
    pub letters: u64,
    /// Its first failure.
    pub first_seen: SystemTime,
    /// Its newest letter.
    pub newest: LetterRow,
}

/// What a discard would give up, and how long it can be undone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiscardFacts {
    /// Letters: parked and abandoned ones.
    pub letters: u64,
    /// Letters that are discarded already.
    pub discarded: u64,
    /// So long they can be restored; `None` where nothing deletes them by itself.
    pub kept: Option<Duration>,
}

impl Status {
    /// Looks at a store.
    ///
    /// # Errors
    /// [`StoreError`] where it cannot be read.
    pub async fn of(store: &Store) -> Result<Self, StoreError> {
        let facts = store.facts().await?;
        let now = facts.now;
        let summary = store.summary().await?;
        let owed = |order| store.list(Filter::owed(), PageRequest::first(order, 1));
        let longest_unseen = owed(Order::LongestUnseenFirst).await?.rows.pop();
        let replaying = state(LetterState::Replaying);
        let under_way = store.list(replaying, PageRequest::first(Order::LongestUnseenFirst, TOLD)).await?.rows;
        let discard = DiscardFacts {
            letters: summary.total_parked() + summary.abandoned,
            discarded: store.count(state(LetterState::Discarded)).await?,
            kept: facts.discarded_kept,
        };
        Ok(Self {
            store: store.shown().to_owned(),
            longest_unseen,
            arrivals: ArrivalFacts::of(store, &facts).await?,
            new_groups: new_groups(&**store, now).await?,
            under_way,
            operations: open_operations(store).await?,
            discard,
            acts: Acts::since(&**store, now.checked_sub(HOUR).unwrap_or(SystemTime::UNIX_EPOCH)).await?,
            lost: lost(store).await?,
            health: health(store).await,
            facts,
            summary,
        })
    }

    /// The moment of these facts, by the store's clock.
    pub fn now(&self) -> SystemTime {
        self.facts.now
    }

    /// Bytes of all files of one role.
    pub fn bytes(&self, role: FileRole) -> u64 {
        self.facts.files.iter().filter(|file| file.role == role).map(|file| file.bytes).sum()
    }
}

fn state(state: LetterState) -> Filter {
    let mut filter = Filter::all();
    filter.states.push(state);
    filter
}

/// Letters that were lost in the last 30 days.
///
/// # Errors
/// [`StoreError`] where the counters cannot be read.
pub async fn lost(store: &Store) -> Result<u64, StoreError> {
    let days = store.recent("dead_letter".to_owned(), "lost".to_owned(), 30).await?;
    Ok(days.iter().map(|(_, n)| n).sum())
}

async fn health(store: &Store) -> Vec<Finding> {
    match store.doctor(Checkup::quick()).await {
        Ok(found) => found,
        Err(error) => {
            vec![Finding::new(retry_runtime::dead_letter::Severity::Error, "not_examined", error.to_string())]
        }
    }
}

async fn open_operations(store: &Store) -> Result<Vec<Operation>, StoreError> {
    // Those that are not over are among the newest: they are few, and looked at one page after the other.
    let mut open = Vec::new();
    let mut after = None;
    for _ in 0..10 {
        let page = store.operations(after.take(), 50).await?;
        after = page.last().map(|operation| operation.id.clone());
        let is_full = page.len() == 50;
        open.extend(page.into_iter().filter(|operation| !operation.status.is_over()));
        if !is_full || open.len() >= TOLD as usize {
            break;
        }
    }
    open.sort_by_key(|operation| operation.status != OperationStatus::Running);
    open.truncate(TOLD as usize);
    Ok(open)
}

/// Failure groups that first appeared within the last 24 hours, at most [`TOLD`], the newest failure first.
pub(crate) async fn new_groups<S: FailureGroups + ?Sized>(
    store: &S,
    now: SystemTime,
) -> Result<Vec<NewGroup>, StoreError> {
    let since = now.checked_sub(DAY).unwrap_or(SystemTime::UNIX_EPOCH);
    let mut filter = Filter::owed();
    // What is new was also seen since then.
    filter.since = Some(since);
    let seen = store.groups(GroupsRequest::new(filter).order(GroupOrder::NewestFirst).limit(100)).await?;
    if seen.groups.is_empty() {
        return Ok(Vec::new());
    }
    // Seen since then is not new: their older letters are asked about too, those that were closed included.
    let mut whole = Filter::all();
    whole.fingerprints = seen.groups.into_iter().map(|group| group.counts.fingerprint).collect();
    let page = store.groups(GroupsRequest::new(whole).order(GroupOrder::NewestFirst).limit(100)).await?;
    // What a replay by hand failed of is nothing that came in.
    let is_new = |group: &FailureGroup| group.counts.first_seen >= since && group.newest.error_type != BY_EXEC;
    let new = page.groups.into_iter().filter(is_new);
    let new = new.map(|group| NewGroup {
        letters: group.counts.states.iter().filter(|(state, _)| state.is_owed()).map(|(_, n)| n).sum(),
        first_seen: group.counts.first_seen,
        group: group.counts.fingerprint,
        newest: group.newest,
    });
    Ok(new.take(TOLD as usize).collect())
}

/// One event, in a line for people: who did what, to which letter, and why.
pub fn act(event: &EventRecord) -> String {
    acts::said(event)
}
