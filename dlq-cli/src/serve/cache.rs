//! Numbers kept for a moment, so that the store is asked once however many look; and never shown as if they were new.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::sync::watch;
use tokio::time::Instant;

use super::app::App;
use super::live;

/// A page waits so long for newer numbers where those it has are young.
const PATIENCE: Duration = Duration::from_millis(100);

/// The first page has nothing to show: it waits longer.
const FIRST: Duration = Duration::from_secs(10);

/// Numbers are not asked for again within this time, or within ten times what they cost.
const FRESH: Duration = Duration::from_secs(1);

/// What is asked for at once.
pub(super) trait Numbers: Sized + Send + Sync + 'static {
    /// Older ones are waited for.
    const MOST_AGE: Duration;
    /// So long.
    const BOUND: Duration;
    /// Whether they may be older than that where they cost much to count.
    const COSTLY: bool;

    fn gather(app: &App) -> impl Future<Output = Self> + Send;
    fn cache(changes: &Kept) -> &Cache<Self>;
}

/// Numbers of a moment.
#[derive(Debug)]
pub(super) struct Of<T> {
    pub(super) numbers: T,
    pub(super) at: SystemTime,
    taken: Instant,
    cost: Duration,
    /// What had been changed when they were asked for, by anybody and by this dashboard.
    changes: (u64, u64),
    /// What would be different if anything was.
    state: Option<live::State>,
}

impl<T> Of<T> {
    pub(super) fn age(&self) -> Duration {
        self.taken.elapsed()
    }
}

/// All that is kept, and what has changed since.
#[derive(Default)]
pub(super) struct Kept {
    pub(super) now: Cache<super::facts::Now>,
    pub(super) counted: Cache<super::facts::Counted>,
    seen: AtomicU64,
    acted: AtomicU64,
}

impl Kept {
    /// Something was changed by this dashboard: nobody who did it is to see the numbers of before.
    pub(super) fn stale(&self) {
        self.acted.fetch_add(1, Ordering::Relaxed);
    }

    /// Something was changed by somebody: numbers of before are not fresh, however young.
    pub(super) fn noticed(&self) {
        self.seen.fetch_add(1, Ordering::Relaxed);
    }

    /// As of when the newest numbers are.
    pub(super) fn state(&self) -> Option<live::State> {
        self.now.newest.borrow().as_ref().and_then(|known| known.state.clone())
    }

    /// What was changed, by anybody and by this dashboard.
    pub(super) fn changes(&self) -> (u64, u64) {
        (self.seen.load(Ordering::Relaxed), self.acted.load(Ordering::Relaxed))
    }
}

pub(super) struct Cache<T> {
    newest: watch::Sender<Option<Arc<Of<T>>>>,
    /// Whether somebody is gathering newer ones.
    gathering: Mutex<bool>,
}

impl<T> Default for Cache<T> {
    fn default() -> Self {
        Self { newest: watch::Sender::new(None), gathering: Mutex::new(false) }
    }
}

impl<T: Numbers> Cache<T> {
    /// The numbers: fresh ones where they come in time, else those of before. `None`: the store has not answered yet.
    pub(super) async fn get(app: &Arc<App>) -> Option<Arc<Of<T>>> {
        let mut newest = T::cache(&app.facts).newest.subscribe();
        let known = newest.borrow_and_update().clone();
        let patience = match &known {
            // What takes long to count may come later.
            None if T::COSTLY => PATIENCE,
            None => FIRST,
            Some(known) if Self::may_be_shown(app, known) => PATIENCE,
            Some(_) => T::BOUND,
        };
        let fresh = async {
            loop {
                let known = newest.borrow_and_update().clone();
                if known.as_ref().is_some_and(|known| Self::is_fresh(app, known)) {
                    return known;
                }
                Self::gather(app);
                if newest.changed().await.is_err() {
                    return None;
                }
            }
        };
        match tokio::time::timeout(patience, fresh).await {
            Ok(numbers) => numbers,
            // Perhaps not fresh, but newer than those of before.
            Err(_) => T::cache(&app.facts).newest.borrow().clone(),
        }
    }

    /// Whether a page may show them without a word: nothing was done here since, and they are young.
    pub(super) fn may_be_shown(app: &App, known: &Of<T>) -> bool {
        let most = if T::COSTLY { T::MOST_AGE.max(known.cost * 11) } else { T::MOST_AGE };
        known.changes.1 == app.facts.changes().1 && known.age() <= most
    }

    fn is_fresh(app: &App, known: &Of<T>) -> bool {
        let age = FRESH.max(if T::COSTLY { known.cost * 10 } else { (known.cost * 10).min(T::MOST_AGE) });
        known.changes == app.facts.changes() && known.age() < age
    }

    /// Begins to gather before anybody asks, where there is a runtime to do it.
    pub(super) fn warm(app: &Arc<App>) {
        if tokio::runtime::Handle::try_current().is_ok() {
            Self::gather(app);
        }
    }

    /// Begins to gather, unless somebody is at it. It goes on when whoever asked has gone.
    fn gather(app: &Arc<App>) {
        let mut gathering = T::cache(&app.facts).gathering.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut *gathering, true) {
            return;
        }
        let app = Arc::clone(app);
        tokio::spawn(async move {
            // Also after a panic the next one may try.
            let done = Done::<T>(&app, std::marker::PhantomData);
            let (at, taken, changes) = (app.now(), Instant::now(), app.facts.changes());
            // First: what changes meanwhile is a change.
            let state = live::state(&app).await;
            let numbers = T::gather(&app).await;
            let gathered = Of { numbers, at, taken, cost: taken.elapsed(), changes, state: state.clone() };
            // Before anybody is told: whoever finds these too old begins anew.
            drop(done);
            let known = T::cache(&app.facts).newest.send_replace(Some(Arc::new(gathered)));
            // A page that did not wait for them shows those of before.
            if known.map_or(T::COSTLY, |known| known.state != state) {
                app.live.changed();
            }
        });
    }
}

struct Done<'a, T: Numbers>(&'a Arc<App>, std::marker::PhantomData<T>);

impl<T: Numbers> Drop for Done<'_, T> {
    fn drop(&mut self) {
        *T::cache(&self.0.facts).gathering.lock().unwrap_or_else(PoisonError::into_inner) = false;
    }
}
