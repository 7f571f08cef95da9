//! What the first screen says: what a store knows at once, and what has to be counted, each gathered once for all who look.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use retry_runtime::counters::{Degraded, Thresholds as _};
use retry_runtime::dead_letter::{
    Aggregate, ArrivalKey, Arrivals, Bucket, BulkOperations as _, Checkup, DeadLetterStore as _, Doctor as _, Filter,
    Finding, Group, GroupKey, GroupsPage, GroupsRequest, LetterRow, LetterState, Operation, Order, Overview as _,
    PageRequest, StoreFacts, Summary,
};
use retry_runtime::error::StoreError;

use super::app::App;
use super::cache::{Cache, Kept, Numbers, Of};
use crate::status::{self, Acts, NewGroup};

const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);

/// The age of letters in the matrix: name, and from and to how many days ago they were seen last.
pub(super) const AGES: &[(&str, u64, u64)] =
    &[("today", 0, 1), ("yesterday", 1, 2), ("2–6 days", 2, 7), ("7–29 days", 7, 30), ("30 days and more", 30, 0)];

/// What a store says at once, however many letters it has. What could not be read is empty, and told in `failed`.
#[derive(Debug)]
pub(super) struct Now {
    pub(super) summary: Summary,
    /// The store as a whole; `None` where it could not be asked.
    pub(super) store: Option<StoreFacts>,
    /// Letters under a lease, those longest unseen first.
    pub(super) replaying: Vec<LetterRow>,
    pub(super) operations: Vec<Operation>,
    pub(super) lost: u64,
    pub(super) degraded: Vec<Degraded>,
    pub(super) failed: Vec<String>,
}

/// So many groups are known at once.
const GROUPS: u32 = 200;

/// What has to be counted, or looked through. What could not be read is empty, and told in `failed`.
#[derive(Debug, Default)]
pub(super) struct Counted {
    pub(super) oldest: Option<SystemTime>,
    /// Parkings of this hour, and of the same hour of the seven days before.
    pub(super) arrivals: (u64, Vec<u64>),
    /// Parkings of each hour of the last days, this one last.
    pub(super) hours: Vec<u64>,
    /// The groups with most letters, as many as a few pages have.
    pub(super) groups: GroupsPage,
    /// Failures that were not there a day ago; `None` where that could not be read.
    pub(super) new: Option<Vec<NewGroup>>,
    /// Discarded letters that are still there.
    pub(super) discarded: u64,
    /// What people did in the last hour; `None` where that could not be read.
    pub(super) acts: Option<Acts>,
    /// Error classes, and their letters by age, the most first.
    pub(super) matrix: Vec<(String, [u64; 5])>,
    pub(super) findings: Vec<Finding>,
    pub(super) failed: Vec<String>,
}

/// The answers of one asking, and what went wrong.
struct Asking(Vec<String>);

impl Asking {
    fn or<T>(&mut self, what: &str, answer: Result<T, StoreError>) -> Option<T> {
        answer.map_err(|error| self.0.push(format!("{what}: {error}"))).ok()
    }
}

impl Numbers for Now {
    const MOST_AGE: Duration = Duration::from_secs(3);
    const BOUND: Duration = Duration::from_secs(2);
    const COSTLY: bool = false;

    async fn gather(app: &App) -> Self {
        let (store, mut ask) = (&app.store, Asking(Vec::new()));
        let leased = PageRequest::first(Order::LongestUnseenFirst, 5);
        let lost = store.recent("dead_letter".into(), "lost".into(), 30).await;
        Self {
            summary: ask.or("what is owed", store.summary().await).unwrap_or_default(),
            store: ask.or("the store as a whole", store.facts().await),
            replaying: ask
                .or("who is replaying", store.list(in_state(LetterState::Replaying), leased).await)
                .map(|page| page.rows)
                .unwrap_or_default(),
            operations: ask.or("operations", open_operations(app).await).unwrap_or_default(),
            lost: ask.or("what was lost", lost).unwrap_or_default().iter().map(|(_, n)| *n).sum(),
            degraded: ask.or("daily counters", store.degraded(store.today()).await).unwrap_or_default(),
            failed: ask.0,
        }
    }

    fn cache(kept: &Kept) -> &Cache<Self> {
        &kept.now
    }
}

impl Numbers for Counted {
    const MOST_AGE: Duration = Duration::from_secs(3);
    const BOUND: Duration = Duration::from_secs(1);
    const COSTLY: bool = true;

    async fn gather(app: &App) -> Self {
        let (store, now, mut ask) = (&*app.patient, app.now(), Asking(Vec::new()));
        let classes = Aggregate::new(Filter::owed(), [GroupKey::ErrorClass]).per(Bucket::Day);
        let classes = ask.or("letters by class and age", store.aggregate(classes).await).unwrap_or_default();
        let arrivals = Arrivals::new(ArrivalKey::All, ago(now, 7 * DAY), now, Bucket::Hour);
        let series = ask.or("arrivals", store.arrivals(arrivals).await).unwrap_or_default();
        let series = series.first();
        Self {
            oldest: classes.iter().map(|group| group.first_seen).min(),
            matrix: matrix(&classes, Bucket::Day.start(now)),
            arrivals: series.map(|all| all.against_past_days(7)).unwrap_or_default(),
            hours: series.map(|all| all.counts.iter().map(|(_, n)| *n).collect()).unwrap_or_default(),
            groups: ask
                .or("groups of failures", store.groups(GroupsRequest::new(Filter::owed()).limit(GROUPS)).await)
                .unwrap_or_default(),
            new: ask.or("what is new", status::new_groups(store, now).await),
            discarded: ask.or("what was discarded", store.count(in_state(LetterState::Discarded)).await).unwrap_or(0),
            acts: ask.or("the audit", Acts::since(store, ago(now, HOUR)).await),
            findings: ask.or("the examination", app.store.doctor(Checkup::quick()).await).unwrap_or_default(),
            failed: ask.0,
        }
    }

    fn cache(kept: &Kept) -> &Cache<Self> {
        &kept.counted
    }
}

/// What the first screen says.
pub(super) struct Facts {
    pub(super) now: Arc<Of<Now>>,
    /// `None`: it takes longer than a page waits.
    pub(super) counted: Option<Arc<Of<Counted>>>,
    nothing: Counted,
}

impl Facts {
    /// `None`: the store has not answered yet.
    pub(super) async fn get(app: &Arc<App>) -> Option<Self> {
        let (now, counted) = tokio::join!(Cache::<Now>::get(app), Cache::<Counted>::get(app));
        Some(Self { now: now?, counted, nothing: Counted::default() })
    }

    /// What was counted; nothing, as long as it is being counted.
    pub(super) fn counted(&self) -> &Counted {
        self.counted.as_ref().map_or(&self.nothing, |counted| &counted.numbers)
    }

    pub(super) fn is_counting(&self) -> bool {
        self.counted.is_none()
    }

    pub(super) fn warm(app: &Arc<App>) {
        Cache::<Now>::warm(app);
        Cache::<Counted>::warm(app);
    }
}

fn in_state(state: LetterState) -> Filter {
    let mut filter = Filter::all();
    filter.states.push(state);
    filter
}

fn ago(now: SystemTime, span: Duration) -> SystemTime {
    now.checked_sub(span).unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Operations that are not over, the newest first, of the newest hundred.
async fn open_operations(app: &App) -> Result<Vec<Operation>, StoreError> {
    let mut operations = app.store.operations(None, 100).await?;
    operations.retain(|operation| !operation.status.is_over());
    operations.truncate(10);
    Ok(operations)
}

fn matrix(groups: &[Group], today: SystemTime) -> Vec<(String, [u64; 5])> {
    let mut classes: BTreeMap<String, [u64; 5]> = BTreeMap::new();
    for group in groups {
        let seen = group.bucket.unwrap_or(today);
        let days = today.duration_since(seen).map_or(0, |age| age.as_secs() / 86_400);
        let age = AGES.iter().position(|(_, from, to)| days >= *from && (*to == 0 || days < *to));
        let class = group.keys.first().cloned().unwrap_or_default();
        if let Some(cell) = age.and_then(|age| classes.entry(class).or_default().get_mut(age)) {
            *cell += group.letters;
        }
    }
    let mut classes: Vec<_> = classes.into_iter().collect();
    classes.sort_by_key(|(_, ages)| std::cmp::Reverse(ages.iter().sum::<u64>()));
    classes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_letter_is_in_one_cell() {
        let today = SystemTime::UNIX_EPOCH + 100 * DAY;
        let group = |class: &str, days: u32, n| {
            let at = today - days * DAY;
            Group::new(vec![class.to_owned()], Some(at), n, n, (at, at))
        };
        let groups: Vec<_> = [0, 1, 2, 6, 7, 29, 30, 99].into_iter().map(|days| group("a", days, 1)).collect();
        let matrix = matrix(&[groups, vec![group("b", 3, 100)]].concat(), today);
        assert_eq!(matrix, [("b".to_owned(), [0, 0, 100, 0, 0]), ("a".to_owned(), [1, 1, 2, 2, 2])]);
    }
}
