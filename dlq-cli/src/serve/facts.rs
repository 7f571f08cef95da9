//! What the first screen says, gathered at once and kept for a moment: however many look, the store is asked once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use retry_runtime::counters::{Degraded, Thresholds as _};
use retry_runtime::dead_letter::{
    Aggregate, ArrivalKey, Arrivals, Bucket, BulkOperations as _, Checkup, DeadLetterStore as _, Doctor as _,
    EventQuery, EventRecord, FailureGroups as _, Filter, Finding, Group, GroupKey, GroupsPage, GroupsRequest,
    LetterRow, LetterState, Operation, Order, Overview as _, PageRequest, StoreFacts, Summary,
};
use retry_runtime::error::StoreError;
use tokio::sync::watch;

use super::app::App;
use super::live;

/// A page waits so long for fresh numbers; then it shows those of before, and says of when.
const PATIENCE: Duration = Duration::from_millis(100);

/// The first page has nothing to show, not even what is answered at once: it waits longer.
const FIRST: Duration = Duration::from_secs(10);

/// Numbers are not asked for again within this time, or within ten times what they cost.
const FRESH: Duration = Duration::from_secs(1);

const DAY: Duration = Duration::from_secs(86_400);

/// The age of letters in the matrix: name, and from and to how many days ago they were seen last.
pub(super) const AGES: &[(&str, u64, u64)] =
    &[("today", 0, 1), ("yesterday", 1, 2), ("2–6 days", 2, 7), ("7–29 days", 7, 30), ("30 days and more", 30, 0)];

/// The numbers of a moment. What could not be read is empty, and told in `failed`.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    pub(super) at: SystemTime,
    taken: Instant,
    cost: Duration,
    /// What takes long to count is not here yet: groups, the matrix, the examination.
    pub(super) is_counting: bool,
    generation: u64,
    /// What would be different if anything was.
    state: Option<live::State>,
    pub(super) summary: Summary,
    /// The store as a whole; `None` where it could not be asked.
    pub(super) store: Option<StoreFacts>,
    /// Letters under a lease, those longest unseen first.
    pub(super) replaying: Vec<LetterRow>,
    pub(super) oldest: Option<SystemTime>,
    /// Parkings of this hour, and of the same hour of the seven days before.
    pub(super) arrivals: (u64, Vec<u64>),
    /// Parkings of each of the last 24 hours.
    pub(super) hours: Vec<u64>,
    pub(super) lost: u64,
    /// The groups with most letters, as many as a few pages have.
    pub(super) groups: GroupsPage,
    /// Error classes, and their letters by age, the most first.
    pub(super) matrix: Vec<(String, [u64; 5])>,
    pub(super) operations: Vec<Operation>,
    pub(super) findings: Vec<Finding>,
    pub(super) degraded: Vec<Degraded>,
    pub(super) events: Vec<EventRecord>,
    pub(super) failed: Vec<String>,
}

/// So many groups are known at once.
const GROUPS: u32 = 200;

/// A part of the facts that could not be read is as if there was nothing, and told.
macro_rules! ask {
    ($failed:ident, $what:literal, $question:expr) => {
        match $question.await {
            Ok(answer) => answer,
            Err(error) => {
                $failed.push(format!("{}: {error}", $what));
                Default::default()
            }
        }
    };
}

impl Facts {
    /// What a store answers at once, however many letters it has.
    async fn begin(app: &App, generation: u64) -> Self {
        let (store, now, taken) = (&app.store, app.now(), Instant::now());
        // First: what changes meanwhile is a change.
        let state = live::state(app).await;
        let mut failed = Vec::new();
        let summary = ask!(failed, "what is owed", store.summary());
        let whole = match store.facts().await {
            Ok(facts) => Some(facts),
            Err(error) => {
                failed.push(format!("the store as a whole: {error}"));
                None
            }
        };
        let mut leased = Filter::all();
        leased.states.push(LetterState::Replaying);
        let leased = store.list(leased, PageRequest::first(Order::LongestUnseenFirst, 5)).await;
        let lost = ask!(failed, "what was lost", store.recent("dead_letter".into(), "lost".into(), 30));
        let events = ask!(failed, "the audit", newest_events(app));
        Self {
            at: now,
            taken,
            cost: Duration::ZERO,
            is_counting: true,
            generation,
            state,
            summary,
            store: whole,
            replaying: leased.map(|page| page.rows).unwrap_or_default(),
            oldest: None,
            arrivals: (0, Vec::new()),
            hours: Vec::new(),
            lost: lost.iter().map(|(_, n)| *n).sum(),
            groups: GroupsPage::default(),
            matrix: Vec::new(),
            operations: ask!(failed, "operations", open_operations(app)),
            findings: Vec::new(),
            degraded: ask!(failed, "daily counters", store.degraded(store.today())),
            events,
            failed,
        }
    }

    /// What is counted letter by letter.
    async fn count(mut self, app: &App) -> Self {
        let (now, mut failed) = (self.at, std::mem::take(&mut self.failed));
        let classes = Aggregate::new(Filter::owed(), [GroupKey::ErrorClass]).per(Bucket::Day);
        let classes: Vec<Group> = ask!(failed, "letters by class and age", app.patient.aggregate(classes));
        let week = now.checked_sub(7 * DAY).unwrap_or(now);
        let arrivals = Arrivals::new(ArrivalKey::All, week, now, Bucket::Hour);
        let series = ask!(failed, "arrivals", app.patient.arrivals(arrivals));
        let series = series.first();
        let hours: Vec<u64> = series.map(|all| all.counts.iter().map(|(_, n)| *n).collect()).unwrap_or_default();
        self.oldest = classes.iter().map(|group| group.first_seen).min();
        self.matrix = matrix(&classes, Bucket::Day.start(now));
        self.arrivals = series.map(|all| all.against_past_days(7)).unwrap_or_default();
        self.hours = hours.get(hours.len().saturating_sub(24)..).unwrap_or_default().to_vec();
        let groups = GroupsRequest::new(Filter::owed()).limit(GROUPS);
        self.groups = ask!(failed, "groups of failures", app.patient.groups(groups));
        self.findings = ask!(failed, "the examination", app.store.doctor(Checkup::quick()));
        (self.failed, self.cost, self.is_counting) = (failed, self.taken.elapsed(), false);
        self
    }
}

async fn newest_events(app: &App) -> Result<Vec<EventRecord>, StoreError> {
    Ok(app.store.events(EventQuery::all().limit(8)).await?.events)
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

/// The newest facts, and whether somebody is gathering newer ones.
pub(super) struct Cache {
    newest: watch::Sender<Option<Arc<Facts>>>,
    gathering: Mutex<bool>,
    /// Raised whenever something was changed here: facts of before are stale, however young.
    generation: AtomicU64,
}

impl Default for Cache {
    fn default() -> Self {
        Self { newest: watch::Sender::new(None), gathering: Mutex::new(false), generation: AtomicU64::new(0) }
    }
}

impl Cache {
    /// Something was changed.
    pub(super) fn stale(&self) {
        self.generation.fetch_add(1, Ordering::Relaxed);
    }

    /// How often something was changed here.
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    /// As of when the newest facts are.
    pub(super) fn state(&self) -> Option<live::State> {
        self.newest.borrow().as_ref().and_then(|facts| facts.state.clone())
    }

    /// The facts: fresh ones where they come soon, else those of before. `None`: the store has not answered yet.
    pub(super) async fn get(app: &Arc<App>) -> Option<Arc<Facts>> {
        let mut newest = app.facts.newest.subscribe();
        let known = newest.borrow_and_update().clone();
        let fresh = async {
            loop {
                let known = newest.borrow_and_update().clone();
                if known.as_ref().is_some_and(|facts| app.facts.is_fresh(facts)) {
                    return known;
                }
                Self::gather(app);
                if newest.changed().await.is_err() {
                    return None;
                }
            }
        };
        match tokio::time::timeout(PATIENCE, fresh).await {
            Ok(facts) => facts,
            Err(_) if known.is_some() => known,
            // Whatever is there first, if it is only what is answered at once.
            Err(_) => {
                let mut newest = app.facts.newest.subscribe();
                let some = tokio::time::timeout(FIRST, newest.wait_for(Option::is_some)).await;
                some.ok()?.ok()?.clone()
            }
        }
    }

    fn is_fresh(&self, facts: &Facts) -> bool {
        let age = facts.taken.elapsed();
        !facts.is_counting && facts.generation == self.generation() && age < FRESH.max(facts.cost * 10)
    }

    /// Begins to gather before anybody asks, where there is a runtime to do it.
    pub(super) fn warm(app: &Arc<App>) {
        if tokio::runtime::Handle::try_current().is_ok() {
            Self::gather(app);
        }
    }

    /// Begins to gather, unless somebody is at it. It goes on when whoever asked has gone.
    fn gather(app: &Arc<App>) {
        let mut gathering = app.facts.gathering.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut *gathering, true) {
            return;
        }
        let app = Arc::clone(app);
        tokio::spawn(async move {
            // Also after a panic the next one may try.
            let _done = Done(&app);
            let generation = app.facts.generation();
            let begun = Facts::begin(&app, generation).await;
            let known = app.facts.newest.borrow().clone();
            if known.as_ref().is_none_or(|known| known.is_counting) {
                app.facts.newest.send_replace(Some(Arc::new(begun.clone())));
            }
            let facts = begun.count(&app).await;
            app.facts.newest.send_replace(Some(Arc::new(facts)));
            // A page that did not wait for them shows those of before.
            if known.is_some_and(|known| known.is_counting || known.state != app.facts.state()) {
                app.live.changed();
            }
        });
    }
}

struct Done<'a>(&'a Arc<App>);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        *self.0.facts.gathering.lock().unwrap_or_else(PoisonError::into_inner) = false;
    }
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
