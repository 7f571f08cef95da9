//! What operators do to a whole store: retention.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::support::{Bench, Check, actor, checks, demand, done, failure, letter, same, start};
use crate::dead_letter::{
    Actor, DeadLetterStore, EraseRequest, EventQuery, Filter, KindRetention, LetterState, ManualClock, MemoryStore,
    PruneReport, PruneRequest, Pruned, ReplayOutcome, Retention, StoreAdmin, StoreClock,
};

/// A store, and whoever keeps it in order.
pub(super) struct AdminBench<S> {
    pub(super) bench: Bench<S>,
    pub(super) admin: Box<dyn StoreAdmin>,
}

const DAY: Duration = Duration::from_secs(86_400);

pub(super) fn checks<S: DeadLetterStore>() -> Vec<Check<AdminBench<S>>> {
    checks![
        "D10" what_is_owed_is_never_pruned,
        "A2" each_kind_and_state_has_its_own_time,
        "A1" every_deletion_is_counted_and_dated,
        "E84" what_is_pruned_is_gone,
        "D1" parkings_of_a_pruned_letter_bring_nothing_back,
        "40" a_dry_run_deletes_nothing_and_says_the_same,
        "A1" a_limit_takes_the_oldest_and_says_that_there_is_more,
        "A4" what_is_due_is_known_ahead,
        "E84" everything_of_a_job_is_erased_and_nothing_else,
        "E84" the_audit_of_an_erasure_does_not_name_the_job,
        "E84" what_people_wrote_names_an_erased_job_no_more,
        "D1" an_erased_job_does_not_come_back,
    ]
}

impl AdminBench<Arc<MemoryStore>> {
    /// The store in memory, on a clock of somebody else.
    pub(super) fn of(store: MemoryStore, time: ManualClock) -> Self {
        let store = Arc::new(store);
        Self { bench: Bench { store: Arc::clone(&store), time }, admin: Box::new(store) }
    }
}

impl<S: DeadLetterStore> AdminBench<S> {
    pub(super) fn new<A: StoreAdmin + 'static>(make: impl FnOnce(StoreClock) -> (S, A)) -> Self {
        let time = ManualClock::new(start());
        let (store, admin) = make(time.clock());
        Self { bench: Bench { store, time }, admin: Box::new(admin) }
    }

    fn park(&self, kind: &str, job: &str) -> Result<String, String> {
        let mut letter = letter(job, self.bench.time.now());
        kind.clone_into(&mut letter.kind);
        self.bench.park(letter)
    }

    /// Parks a letter and closes it, or brings it where it is owed.
    pub(super) fn in_state(&self, kind: &str, job: &str, state: LetterState) -> Result<String, String> {
        let id = self.park(kind, job)?;
        match state {
            LetterState::Parked => {}
            LetterState::Replaying => drop(self.claim(kind, &id)?),
            LetterState::Recovered | LetterState::Discarded => {
                let fence = self.claim(kind, &id)?;
                let outcome = if state == LetterState::Recovered {
                    ReplayOutcome::Recovered
                } else {
                    ReplayOutcome::Gone(failure())
                };
                self.bench.finish(&id, fence, outcome)?;
            }
            LetterState::Abandoned => {
                for _ in 0..crate::dead_letter::MAX_REPLAYS {
                    let fence = self.claim(kind, &id)?;
                    self.bench.finish(&id, fence, ReplayOutcome::Failed(failure()))?;
                }
            }
        }
        same("state", self.bench.row(&id)?.state, state)?;
        Ok(id)
    }

    fn claim(&self, kind: &str, id: &str) -> Result<u64, String> {
        let mut request = super::support::usual_claim();
        request.kinds = vec![kind.to_owned()];
        request.filter = Filter::id(id);
        request.ignore_backoff = true;
        request.ignore_not_before = true;
        request.lease = 1_000 * DAY;
        let claimed = self.bench.claim(request)?;
        claimed.first().map(|claimed| claimed.row.fence).ok_or_else(|| format!("letter {id} was not handed out"))
    }

    fn prune(&self, request: PruneRequest) -> Result<PruneReport, String> {
        done(self.admin.prune(request, actor()))
    }

    fn is_there(&self, id: &str) -> Result<bool, String> {
        Ok(done(self.bench.store.get(id.to_owned()))?.is_some())
    }

    fn count(&self) -> Result<u64, String> {
        done(self.bench.store.count(Filter::all()))
    }

    fn now(&self) -> SystemTime {
        self.bench.time.now()
    }
}

fn what_is_owed_is_never_pruned<S: DeadLetterStore>(bench: &AdminBench<S>) -> Result<(), String> {
    let mut owed = 0;
    for state in LetterState::ALL {
        bench.in_state("fetch", state.as_str(), *state)?;
        owed += u64::from(state.is_owed());
    }
    bench.bench.time.advance(500 * DAY);
    let report = bench.prune(PruneRequest::older_than(Duration::ZERO))?;
    demand!(report.letters.keys().all(|what| !what.state.is_owed()), "owed letters were pruned: {report:?}");
    same("what is left", bench.count()?, owed)?;
    same("what is owed", done(bench.bench.store.count(Filter::owed()))?, owed)
}

fn each_kind_and_state_has_its_own_time<S: DeadLetterStore>(bench: &AdminBench<S>) -> Result<(), String> {
    let mut retention = Retention::all(10 * DAY).kind("long", KindRetention::all(20 * DAY));
    retention.usual.discarded = None;
    retention = retention.kind("kept", KindRetention::forever());
    let letters = [
        ("fetch", LetterState::Recovered, Some(10)),
        ("fetch", LetterState::Discarded, None),
        ("long", LetterState::Recovered, Some(20)),
        ("long", LetterState::Discarded, Some(20)),
        ("kept", LetterState::Recovered, None),
        ("other", LetterState::Recovered, Some(10)),
    ];
    let mut ids = Vec::new();
    for (kind, state, kept) in letters {
        let id = bench.in_state(kind, state.as_str(), state)?;
        let row = bench.bench.row(&id)?;
        let expires = row.expires_at(&retention);
        same("expires_at", expires, row.closed_at.zip(kept).map(|(at, days)| at + days * DAY))?;
        ids.push((id, kept));
    }
    let closed_at = bench.now();
    for day in [9, 10, 19, 20, 1_000] {
        // To the millisecond: on the last moment of the day before, and on the moment itself.
        for (at, days) in [(closed_at + day * DAY - Duration::from_millis(1), day - 1), (closed_at + day * DAY, day)] {
            bench.bench.time.set(at);
            bench.prune(PruneRequest::new(retention.clone()))?;
            for (id, kept) in &ids {
                let there = kept.is_none_or(|kept| kept > days);
                same(&format!("on day {days}, kept {kept:?}: is there"), bench.is_there(id)?, there)?;
            }
        }
    }
    Ok(())
}

fn every_deletion_is_counted_and_dated<S: DeadLetterStore>(bench: &AdminBench<S>) -> Result<(), String> {
    let first = bench.now();
    for job in ["a", "b"] {
        bench.in_state("fetch", job, LetterState::Recovered)?;
        bench.bench.time.advance(DAY);
    }
    let last = bench.now();
    bench.in_state("store", "a", LetterState::Discarded)?;
    bench.bench.time.advance(DAY);
    let report = bench.prune(PruneRequest::older_than(Duration::ZERO))?;
    same("counts", report.letters.values().copied().collect::<Vec<_>>(), vec![2, 1])?;
    let sorts: Vec<_> = report.letters.keys().map(|what| (what.state, what.kind.as_str())).collect();
    same("sorts", sorts, vec![(LetterState::Recovered, "fetch"), (LetterState::Discarded, "store")])?;
    same(
        "error class",
        report.letters.keys().next(),
        Some(&Pruned::new(LetterState::Recovered, "fetch", "exhausted:429")),
    )?;
    same("closed", report.closed, Some((first, last)))?;
    same("cut, dry", (report.is_cut, report.dry_run), (false, false))?;
    let events = done(bench.bench.store.events(EventQuery::all()))?.events;
    let told: Vec<_> = events.iter().map(|event| (event.what.as_str(), event.actor.as_deref())).collect();
    same("the audit", told, vec![("pruned", Some(actor().name.as_str()))])?;
    same("how many", events.first().map(|event| event.detail.as_str()), Some("3 closed letters"))
}

fn what_is_pruned_is_gone<S: DeadLetterStore>(bench: &AdminBench<S>) -> Result<(), String> {
    let id = bench.in_state("fetch", "a", LetterState::Recovered)?;
    bench.park("fetch", "b")?;
    bench.bench.time.advance(DAY);
    same("pruned", bench.prune(PruneRequest::older_than(DAY))?.total(), 1)?;
    same("get", bench.is_there(&id)?, false)?;
    same("count", bench.count()?, 1)?;
    let listed = done(bench.bench.store.list(Filter::all(), crate::dead_letter::PageRequest::default()))?;
    same("list", listed.rows.len(), 1)?;
    // The next failure of the job is a letter of its own.
    let again = bench.park("fetch", "a")?;
    demand!(again != id, "the pruned letter is back");
    let detail = bench.bench.detail(&again)?;
    same("parkings, history", (detail.row.parkings, detail.history.len(), detail.revisions), (1, 2, 1))
}

fn parkings_of_a_pruned_letter_bring_nothing_back<S: DeadLetterStore>(bench: &AdminBench<S>) -> Result<(), String> {
    let parking = letter("a", bench.now());
    let id = bench.bench.park(parking.clone())?;
    bench.bench.replay(&id, ReplayOutcome::Recovered)?;
    bench.prune(PruneRequest::older_than(Duration::ZERO))?;
    same("count", bench.count()?, 0)?;
    same("the answer to the same parking", bench.bench.park(parking)?, id)?;
    same("count", bench.count()?, 0)
}

fn a_dry_run_deletes_nothing_and_says_the_same<S: DeadLetterStore>(bench: &AdminBench<S>) -> Result<(), String> {
    for job in ["a", "b", "c"] {
        bench.in_state("fetch", job, LetterState::Recovered)?;
        bench.bench.time.advance(DAY);
    }
    for limit in [None, Some(0), Some(1), Some(3)] {
        let mut request = PruneRequest::older_than(2 * DAY).dry_run();
        request.limit = limit;
        let before = bench.count()?;
        let mut dry = bench.prune(request.clone())?;
        same("dry", dry.dry_run, true)?;
        same("count after a dry run", bench.count()?, before)?;
        if limit == Some(3) {
            request.dry_run = false;
            let done = bench.prune(request)?;
            dry.dry_run = false;
            same("what was done", (&done.letters, done.closed, done.is_cut), (&dry.letters, dry.closed, dry.is_cut))?;
            same("count", bench.count()?, before - done.total())?;
        }
    }
    Ok(())
}

fn a_limit_takes_the_oldest_and_says_that_there_is_more<S: DeadLetterStore>(
    bench: &AdminBench<S>,
) -> Result<(), String> {
    let mut ids = Vec::new();
    for (n, kind) in ["fetch", "store", "fetch", "store"].into_iter().enumerate() {
        let state = if n % 2 == 0 { LetterState::Recovered } else { LetterState::Discarded };
        ids.push(bench.in_state(kind, &n.to_string(), state)?);
        bench.bench.time.advance(DAY);
    }
    for (left, cut) in [(3, true), (2, true), (1, true), (0, false), (0, false)] {
        let mut request = PruneRequest::older_than(Duration::ZERO);
        request.limit = Some(1);
        same("cut", bench.prune(request)?.is_cut, cut)?;
        same("left", bench.count()?, left)?;
        for id in ids.iter().rev().take(usize::try_from(left).unwrap_or(0)) {
            demand!(bench.is_there(id)?, "a younger letter went first");
        }
    }
    Ok(())
}

fn what_is_due_is_known_ahead<S: DeadLetterStore>(bench: &AdminBench<S>) -> Result<(), String> {
    let retention = Retention::all(30 * DAY).kind("kept", KindRetention::forever());
    for state in LetterState::ALL {
        bench.in_state("fetch", state.as_str(), *state)?;
    }
    bench.in_state("kept", "k", LetterState::Recovered)?;
    let expires = bench.now() + 30 * DAY;
    let due = |within| done(bench.admin.due_within(retention.clone(), within));
    same("tomorrow", due(DAY)?.total(), 0)?;
    same("first of nothing", due(DAY)?.first_at, None)?;
    let ahead = due(30 * DAY)?;
    same("in 30 days", (ahead.total(), ahead.first_at), (2, Some(expires)))?;
    demand!(ahead.letters.keys().all(|what| !what.state.is_owed()), "an owed letter is due: {ahead:?}");
    bench.bench.time.advance(31 * DAY);
    same("now", (due(Duration::ZERO)?.total(), due(Duration::ZERO)?.first_at), (2, Some(expires)))?;
    same("pruned", bench.prune(PruneRequest::new(retention.clone()))?.total(), 2)?;
    same("left", due(1_000 * DAY)?.total(), 0)
}

fn everything_of_a_job_is_erased_and_nothing_else<S: DeadLetterStore>(bench: &AdminBench<S>) -> Result<(), String> {
    for (n, state) in LetterState::ALL.iter().enumerate() {
        // In whatever state, owed ones too.
        bench.in_state(&format!("kind-{n}"), "secret", *state)?;
    }
    let other = bench.park("fetch", "other")?;
    let of_kind = bench.park("fetch", "secret")?;
    let kept = bench.bench.detail(&other)?;
    let report = done(bench.admin.erase(EraseRequest::job("secret").kind("fetch"), actor()))?;
    same("of one kind", (report.letters, report.revisions, report.attempts), (1, 1, 2))?;
    demand!(report.events >= 1, "what the audit said of it stays: {report:?}");
    same("it", bench.is_there(&of_kind)?, false)?;
    same("left", bench.count()?, LetterState::ALL.len() as u64 + 1)?;
    let report = done(bench.admin.erase(EraseRequest::job("secret"), actor()))?;
    same("of every kind", report.letters, LetterState::ALL.len() as u64)?;
    same("the other", bench.bench.detail(&other)?, kept)?;
    same("left", bench.count()?, 1)?;
    same("again", done(bench.admin.erase(EraseRequest::job("secret"), actor()))?.letters, 0)
}

fn the_audit_of_an_erasure_does_not_name_the_job<S: DeadLetterStore>(bench: &AdminBench<S>) -> Result<(), String> {
    bench.park("fetch", "very-secret")?;
    let request = EraseRequest::job("very-secret");
    let hash = request.hash();
    done(bench.admin.erase(request, actor()))?;
    let events = done(bench.bench.store.events(EventQuery::all()))?.events;
    demand!(!format!("{events:?}").contains("very-secret"), "the audit names the job: {events:?}");
    let told = events.iter().find(|event| event.what == "erased").ok_or("the audit does not say it")?;
    same("by whom", told.actor.clone(), Some(actor().name))?;
    demand!(told.detail.contains(&hash), "the audit does not say which: {told:?}");
    Ok(())
}

fn what_people_wrote_names_an_erased_job_no_more<S: DeadLetterStore>(bench: &AdminBench<S>) -> Result<(), String> {
    bench.park("fetch", "cust-4711")?;
    let other = bench.park("fetch", "other")?;
    let ann = || Actor::new("ann", "ticket 9: cust-4711 complains, cust-47112 does not");
    // of the store, and of another letter
    done(bench.admin.prune(PruneRequest::older_than(DAY), ann()))?;
    done(bench.bench.store.discard(other, ann()))?;
    let report = done(bench.admin.erase(EraseRequest::job("cust-4711"), actor()))?;
    same("left", report.left, vec![])?;
    let events = done(bench.bench.store.events(EventQuery::all()))?.events;
    let told = events.iter().find(|event| event.what == "discarded").ok_or("the other letter's event is gone")?;
    let reason = "ticket 9: [erased] complains, cust-47112 does not";
    same("reason", told.reason.as_deref(), Some(reason))
}

fn an_erased_job_does_not_come_back<S: DeadLetterStore>(bench: &AdminBench<S>) -> Result<(), String> {
    let parking = letter("secret", bench.now());
    bench.bench.park(parking.clone())?;
    done(bench.admin.erase(EraseRequest::job("secret"), actor()))?;
    bench.bench.park(parking)?;
    same("an old line", bench.count()?, 0)?;
    // A new failure is a new letter.
    bench.park("fetch", "secret")?;
    same("a new failure", bench.count()?, 1)
}
