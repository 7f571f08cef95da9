//! What all requests share.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use retry_runtime::dead_letter::{Actor, Incident, Redactor, StoreClock};

use super::cache::Kept;
use super::identity::{Identify, Identity, Role};
use super::live::Live;
use super::means::Means;
use super::session::Sessions;
use super::shown;
use super::sorted::Sorted;
use super::store::DashboardStore;
use super::tokens::{self, Tokens};

/// Refused things are written into the audit so often a minute at most: whoever knocks at the door all day must not fill
/// the disk.
const REFUSALS_A_MINUTE: u32 = 30;

/// Who is let in.
pub(super) enum Access {
    /// Nobody: until it is said who.
    Nobody,
    /// Everybody who gets here, under one name.
    Everybody(Identity),
    /// Those of whom the program around says who they are.
    Identified(Identify),
    /// Those who have a token.
    Tokens(Tokens),
}

pub(super) struct App {
    pub(super) store: Arc<dyn DashboardStore>,
    /// Another handle of it, for questions that take long: others are not to wait behind them.
    pub(super) patient: Arc<dyn DashboardStore>,
    /// What the store is called, for people: its path.
    pub(super) name: String,
    /// In front of every path; empty, or `/dlq`.
    pub(super) base: String,
    pub(super) may_act: bool,
    pub(super) access: Access,
    /// Names the dashboard is reached by, besides `localhost` and addresses; `None`: not looked at.
    pub(super) hosts: Option<Vec<String>>,
    pub(super) means: Means,
    pub(super) redactor: Redactor,
    pub(super) clock: StoreClock,
    pub(super) secure: bool,
    pub(super) key: String,
    pub(super) sessions: Sessions,
    pub(super) facts: Kept,
    pub(super) sorted: Sorted,
    pub(super) live: Live,
    pub(super) refusals: Refusals,
    pub(super) streams: AtomicUsize,
}

/// How many refusals were written down in this minute, and how many were not since the last that was.
#[derive(Default)]
pub(super) struct Refusals(Mutex<(Option<Instant>, u32, u64)>);

impl App {
    pub(super) fn now(&self) -> SystemTime {
        self.clock.now()
    }

    /// A path of the dashboard, wherever it is mounted.
    pub(super) fn path(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// What a form must bring along: only a page of this dashboard, for this visitor, can know it.
    pub(super) fn csrf(&self, cookie: &str, name: &str) -> String {
        tokens::hex(&tokens::digest(&format!("{}\n{cookie}\n{name}", self.key)))
    }

    /// Writes down what changed no letter. Where the store cannot, the line goes to stderr: it is said in any case.
    pub(super) async fn record(&self, incident: Incident, letter_id: Option<&str>, detail: String, actor: Actor) {
        let detail = shown::line(&detail, 1_000);
        let written = self.store.record(incident, letter_id.map(str::to_owned), detail.clone(), actor.clone()).await;
        if let Err(error) = written {
            let letter = letter_id.map(|id| format!(" of letter {}", shown::line(id, 100))).unwrap_or_default();
            let (what, name) = (incident.as_str(), shown::line(&actor.name, 300));
            eprintln!("dlq serve: audit: {what}{letter} by {name}: {detail} (not in the store: {error})");
        }
    }

    /// The same for what is refused, which anybody can make happen: so many a minute.
    pub(super) async fn refuse(&self, incident: Incident, letter_id: Option<&str>, detail: String, name: &str) {
        if let Some(left_out) = self.refusals.admit() {
            let more = if left_out > 0 { format!(" (and {left_out} more, not written down)") } else { String::new() };
            self.record(incident, letter_id, format!("{detail}{more}"), Actor::new(name, "")).await;
        }
    }

    /// One more stream of changes; `None` where there are enough.
    pub(super) fn open_stream(app: &Arc<Self>, most: usize) -> Option<Streaming> {
        let before = app.streams.fetch_add(1, Ordering::Relaxed);
        let streaming = Streaming(Arc::clone(app));
        (before < most).then_some(streaming)
    }
}

/// Counts a stream while it is there.
pub(super) struct Streaming(pub(super) Arc<App>);

impl Drop for Streaming {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Refusals {
    /// Whether this one is written down, and how many were not before it.
    fn admit(&self) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, written, left_out) = &mut *state;
        if since.is_none_or(|since| since.elapsed() >= Duration::from_secs(60)) {
            (*since, *written) = (Some(Instant::now()), 0);
        }
        if *written >= REFUSALS_A_MINUTE {
            *left_out += 1;
            return None;
        }
        *written += 1;
        Some(std::mem::take(left_out))
    }
}

/// Whoever sent a request, and how.
#[derive(Clone, Debug)]
pub(super) struct Visitor {
    pub(super) identity: Identity,
    /// What their forms bring along.
    pub(super) csrf: String,
    /// Came by a cookie of ours, which they may give back.
    pub(super) has_session: bool,
}

impl Visitor {
    pub(super) fn actor(&self, reason: &str) -> Actor {
        Actor::new(self.identity.name.clone(), reason.trim())
    }

    pub(super) fn may(&self, role: Role) -> bool {
        self.identity.role >= role
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_refusals_are_written_down_and_the_rest_is_counted() {
        let refusals = Refusals::default();
        let admitted = (0..REFUSALS_A_MINUTE + 5).filter(|_| refusals.admit().is_some()).count();
        assert_eq!(admitted, 30);
        let state = refusals.0.lock().unwrap();
        assert_eq!(state.2, 5);
    }
}
