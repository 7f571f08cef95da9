//! A store in memory: for tests, and for programs whose dead letters need not outlive them.

mod admin;
mod audit;
mod counters;
mod doctor;
mod groups;
mod hand;
mod journal;
mod kept;
mod ledger;
mod operations;
mod overview;
mod portable;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use crate::counters::{Day, Threshold};
use crate::dead_letter::{
    Actor, Aggregate, BoxFuture, Capabilities, ClaimRequest, Claimed, Cursor, DeadLetter, DeadLetterSink,
    DeadLetterStore, Edit, Edited, EventPage, EventQuery, EventRecord, Filter, Finish, Group, HistoryEntry,
    HistorySize, Intake, KnownPayload, LetterDetail, LetterRow, LetterState, Order, Page, PageRequest, Parking,
    ParkingRecord, Payload, PayloadStep, Redactor, Release, Revision, RevisionSource, StoreClock, Summary, Ticket,
};
use crate::error::{StoreError, StoreErrorKind};
use crate::id::Id;
use crate::ledger::{LedgerEntry, LedgerKey};
use crate::reply::Reply;
use crate::stop::StopReason;

/// Dead letters, ledger and daily counters in memory, by the same rules as a durable store. Gone with the process.
///
/// ```
/// use std::time::SystemTime;
/// use retry_runtime::StopReason;
/// use retry_runtime::dead_letter::{DeadLetter, DeadLetterSink, DeadLetterStore, Filter, MemoryStore};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), retry_runtime::error::StoreError> {
/// let store = MemoryStore::new();
/// let letter = DeadLetter::new("fetch", StopReason::Exhausted, SystemTime::now());
/// assert!(store.submit(letter).await.is_kept());
/// assert_eq!(store.count(Filter::parked()).await?, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
pub struct MemoryStore {
    clock: StoreClock,
    intake: Intake,
    state: Owned,
}

/// The letters, and in whose name this handle writes into their journal.
struct Owned {
    shared: Arc<Mutex<State>>,
    owner: u64,
}

#[derive(Default)]
struct State {
    last_seq: u64,
    letters: BTreeMap<u64, Stored>,
    by_job: HashMap<(String, String), u64>,
    by_id: HashMap<String, u64>,
    parkings: HashMap<Id, String>,
    ledger: BTreeMap<LedgerKey, LedgerEntry>,
    daily: BTreeMap<(String, Day, String), u64>,
    thresholds: BTreeMap<(String, String), Threshold>,
    events: Vec<EventRecord>,
    operations: operations::Operations,
    arrived: groups::Arrived,
    journal: journal::Journal,
    kept: BTreeMap<String, String>,
}

struct Stored {
    row: LetterRow,
    /// Revisions 1, 2, ...
    payloads: Vec<Revision>,
    history: Vec<HistoryEntry>,
    size: HistorySize,
    parkings: Vec<ParkingRecord>,
    /// This process answers for the lease; it ends with the process, and so does the store.
    kept_alive: bool,
}

impl MemoryStore {
    /// An empty store on the system's clock.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty store on a clock of your own.
    pub fn with_clock(clock: StoreClock) -> Self {
        Self { clock, ..Self::default() }
    }

    /// What is taken out of error texts before they are stored; the [standard](Redactor::standard) secrets by default.
    #[must_use]
    pub fn redact_errors(mut self, redactor: Redactor) -> Self {
        self.intake.errors = redactor;
        self
    }

    /// What is taken out of payloads before they are stored; nothing by default. A letter whose payload was altered is
    /// passed over by replays until it is edited, or forced.
    #[must_use]
    pub fn redact_payloads(mut self, redactor: Redactor) -> Self {
        self.intake.payloads = redactor;
        self
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing below panics between two changes that belong together.
        self.state.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stored {
    fn payload(&self) -> Payload {
        match (self.row.payload_revision.checked_sub(1), &self.row.payload_error) {
            (Some(index), _) => self.payloads.get(index as usize).map_or(Payload::None, |kept| kept.payload.clone()),
            (None, Some(why)) => Payload::Unserializable(why.clone()),
            (None, None) => Payload::None,
        }
    }

    fn known(&self, payload: &Payload) -> KnownPayload {
        if !matches!(payload, Payload::Json(_)) {
            return KnownPayload::default();
        }
        KnownPayload {
            highest: self.highest_revision(),
            is_current: self.payload() == *payload,
            is_known: self.payloads.iter().any(|kept| kept.payload == *payload),
        }
    }

    fn record(&mut self, entries: Vec<HistoryEntry>) {
        self.size.add(&entries);
        self.history.extend(entries);
        self.size.cut(&mut self.history);
    }

    fn highest_revision(&self) -> u32 {
        u32::try_from(self.payloads.len()).unwrap_or(u32::MAX)
    }

    fn take_payload(&mut self, step: PayloadStep, payload: Payload, now: SystemTime) {
        if let (PayloadStep::Add { revision }, Payload::Json(json)) = (step, payload) {
            self.payloads.push(Revision::new(revision, RevisionSource::Park, now, json));
        }
    }
}

impl State {
    fn park(&mut self, letter: DeadLetter, now: SystemTime) -> String {
        self.unjournal(letter.park_id);
        if let Some(letter_id) = self.parkings.get(&letter.park_id).cloned() {
            self.failed_late(letter, &letter_id, now);
            return letter_id;
        }
        let park_id = letter.park_id;
        let parking = ParkingRecord::new(park_id, letter.reason, letter.attempts, letter.failed_at);
        let history = letter.history.iter().map(|record| HistoryEntry::parked(park_id, record));
        let (first, step) = LetterRow::first(&letter);
        self.arrived.count(&first, now);
        let job = (first.kind.clone(), first.job_id.clone());
        let known = self.by_job.get(&job).and_then(|seq| self.letters.get_mut(seq));
        let letter_id = if let Some(stored) = known {
            let known = stored.known(&letter.payload);
            let before = stored.row.state;
            let step = stored.row.merge(&letter, known, now);
            stored.record(history.collect());
            stored.parkings.push(parking);
            stored.take_payload(step, letter.payload, now);
            let row = stored.row.clone();
            let reopened = before.is_closed() && row.state == LetterState::Parked;
            let what = if reopened { "reopened" } else { "parked" };
            self.happened(what, &row, Some(before), &parker(letter.reason), "", now);
            row.letter_id
        } else {
            self.last_seq += 1;
            let seq = self.last_seq;
            let letter_id = first.letter_id.clone();
            let row = LetterRow { seq, ..first };
            self.happened("parked", &row, None, &parker(letter.reason), "", now);
            let mut stored = Stored {
                row,
                payloads: Vec::new(),
                history: Vec::new(),
                size: HistorySize::default(),
                parkings: vec![parking],
                kept_alive: false,
            };
            stored.record(history.collect());
            stored.take_payload(step, letter.payload, now);
            self.letters.insert(seq, stored);
            self.by_job.insert(job, seq);
            self.by_id.insert(letter_id.clone(), seq);
            letter_id
        };
        self.parkings.insert(park_id, letter_id.clone());
        letter_id
    }

    fn letter(&mut self, letter_id: &str) -> Result<&mut Stored, StoreError> {
        self.by_id
            .get(letter_id)
            .and_then(|seq| self.letters.get_mut(seq))
            .ok_or_else(|| StoreError::new(StoreErrorKind::Invalid, format!("no letter `{letter_id}` in this store")))
    }

    fn reap(&mut self, actor: &Actor, now: SystemTime) -> Vec<LetterRow> {
        let expired = self.letters.values_mut().filter(|stored| !stored.kept_alive && stored.row.is_expired(now));
        let reaped: Vec<_> = expired
            .map(|stored| {
                let entry = stored.row.reap(actor, now);
                stored.record(vec![entry]);
                stored.row.clone()
            })
            .collect();
        for row in &reaped {
            self.happened("lease_expired", row, Some(LetterState::Replaying), actor, "", now);
            self.operations.reaped(row, now);
        }
        reaped.into_iter().chain(self.reap_journal(now)).collect()
    }

    fn claim(&mut self, request: &ClaimRequest, actor: &Actor, now: SystemTime) -> Vec<Claimed> {
        self.reap(actor, now);
        let mut due: Vec<_> = self.letters.values().filter(|stored| request.takes(&stored.row, now)).collect();
        due.sort_by_key(|stored| (stored.row.not_before, stored.row.seq));
        let due: Vec<u64> = due.into_iter().take(request.limit as usize).map(|stored| stored.row.seq).collect();
        let mut claimed = Vec::with_capacity(due.len());
        for seq in due {
            if let Some(stored) = self.letters.get_mut(&seq) {
                stored.row.claim(request, now);
                stored.kept_alive = request.keep_alive;
                claimed.push(Claimed::new(stored.row.clone(), stored.payload()));
            }
        }
        for Claimed { row, .. } in &claimed {
            self.happened("claimed", row, Some(LetterState::Parked), actor, &request.owner, now);
        }
        claimed
    }

    fn finish(&mut self, result: &Finish, actor: &Actor, now: SystemTime) -> Result<LetterRow, StoreError> {
        let stored = self.letter(&result.letter_id)?;
        let before = stored.row.state;
        let entries = result.entries(now);
        let finished = stored.row.finish(result, actor, now);
        let row = stored.row.clone();
        match finished {
            Ok(()) => {
                stored.kept_alive = false;
                stored.record(entries);
                self.happened("replayed", &row, Some(before), actor, result.outcome.as_str(), now);
                self.operations.finished(&row, now);
                Ok(row)
            }
            Err(stale) => {
                stored.record(entries.into_iter().map(HistoryEntry::late).collect());
                self.happened("late_result", &row, Some(before), actor, result.outcome.as_str(), now);
                Err(stale)
            }
        }
    }

    fn release(
        &mut self,
        letter_id: &str,
        release: Release,
        actor: &Actor,
        now: SystemTime,
    ) -> Result<LetterRow, StoreError> {
        let row = self.by_hand(letter_id, "released", release.as_str(), actor, now, |stored| {
            stored.row.release(release, now)?;
            stored.kept_alive = false;
            Ok(())
        })?;
        self.operations.released(row.seq, release, now);
        Ok(row)
    }

    fn list(&self, filter: &Filter, page: &PageRequest) -> Page {
        let behind =
            |row: &LetterRow| page.after.as_ref().is_none_or(|cursor: &Cursor| cursor.precedes(row, page.order));
        // Looks where a store with indexes would, so that a program tested here meets the same pages there.
        let (walked, rest) = filter.split();
        let mut list: Vec<_> = self.rows(&walked).filter(|row| behind(row)).collect();
        list.sort_by_key(|row| (row.last_seen, row.seq));
        if page.order == Order::NewestFirst {
            list.reverse();
        }
        let wanted = (page.limit as usize).saturating_add(1);
        let (mut rows, mut looked_at, mut reached) = (Vec::new(), 0, None);
        for row in list {
            if rows.len() == wanted {
                break;
            }
            if looked_at >= page.look_at.max(1) {
                return Page::looked(rows, page.limit, looked_at, reached);
            }
            looked_at += 1;
            reached = Some(Cursor::behind(row));
            if rest.matches(row) {
                rows.push(row.clone());
            }
        }
        Page::looked(rows, page.limit, looked_at, None)
    }

    fn aggregate(&self, question: &Aggregate) -> Vec<Group> {
        let mut groups: BTreeMap<(Option<SystemTime>, Vec<String>), Group> = BTreeMap::new();
        for row in self.rows(&question.filter) {
            let keys: Vec<_> = question.by.iter().map(|key| key.of(row)).collect();
            let bucket = question.bucket.map(|bucket| bucket.start(row.last_seen));
            let group = groups
                .entry((bucket, keys.clone()))
                .or_insert_with(|| Group::new(keys, bucket, 0, 0, (row.first_seen, row.last_seen)));
            group.letters += 1;
            group.attempts = group.attempts.saturating_add(row.attempts);
            group.first_seen = group.first_seen.min(row.first_seen);
            group.last_seen = group.last_seen.max(row.last_seen);
        }
        let mut groups: Vec<_> = groups.into_values().collect();
        Group::sort(&mut groups);
        groups
    }

    fn rows<'a>(&'a self, filter: &'a Filter) -> impl Iterator<Item = &'a LetterRow> {
        self.letters.values().map(|stored| &stored.row).filter(|row| filter.matches(row))
    }
}

impl DeadLetterSink for MemoryStore {
    fn submit(&self, letter: DeadLetter) -> Ticket {
        Reply::ready(Parking::Parked { letter_id: self.lock().park(self.intake.letter(letter), self.clock.now()) })
    }
}

/// Who parks: the program itself, because a call ended so.
fn parker(reason: StopReason) -> Actor {
    Actor::new("this program", reason.as_str())
}

/// The work of one verb, done when the future is first polled.
fn later<'a, T: Send + 'a>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'a,
) -> BoxFuture<'a, Result<T, StoreError>> {
    Box::pin(async move { work() })
}

impl DeadLetterStore for MemoryStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities { heartbeats: true, durable: false, shared: false }
    }

    fn get(&self, letter_id: String) -> BoxFuture<'_, Result<Option<LetterDetail>, StoreError>> {
        later(move || {
            let mut state = self.lock();
            Ok(state.letter(&letter_id).ok().map(|stored| {
                let revisions = u32::try_from(stored.payloads.len()).unwrap_or(u32::MAX);
                LetterDetail::new(stored.row.clone(), stored.payload(), revisions, stored.history.clone())
                    .with_cut(stored.size.cut, stored.size.cut_at)
            }))
        })
    }

    fn list(&self, filter: Filter, page: PageRequest) -> BoxFuture<'_, Result<Page, StoreError>> {
        later(move || Ok(self.lock().list(&filter, &page)))
    }

    fn count(&self, filter: Filter) -> BoxFuture<'_, Result<u64, StoreError>> {
        later(move || Ok(self.lock().rows(&filter).count() as u64))
    }

    fn summary(&self) -> BoxFuture<'_, Result<Summary, StoreError>> {
        later(move || {
            let (mut summary, state) = (Summary::default(), self.lock());
            summary.orphaned = state.journalled(self.clock.now()).orphaned;
            for stored in state.letters.values() {
                summary.add(stored.row.state, &stored.row.error_class, 1);
            }
            Ok(summary)
        })
    }

    fn aggregate(&self, question: Aggregate) -> BoxFuture<'_, Result<Vec<Group>, StoreError>> {
        later(move || Ok(self.lock().aggregate(&question)))
    }

    fn claim(&self, request: ClaimRequest, actor: Actor) -> BoxFuture<'_, Result<Vec<Claimed>, StoreError>> {
        later(move || {
            request.check()?;
            Ok(self.lock().claim(&request, &actor, self.clock.now()))
        })
    }

    fn finish(&self, result: Finish, actor: Actor) -> BoxFuture<'_, Result<LetterRow, StoreError>> {
        later(move || self.lock().finish(&self.intake.finish(result), &actor, self.clock.now()))
    }

    fn extend(&self, letter_id: String, fence: u64, lease: Duration) -> BoxFuture<'_, Result<SystemTime, StoreError>> {
        later(move || self.lock().letter(&letter_id)?.row.extend(fence, lease, self.clock.now()))
    }

    fn release(
        &self,
        letter_id: String,
        release: Release,
        actor: Actor,
    ) -> BoxFuture<'_, Result<LetterRow, StoreError>> {
        later(move || self.lock().release(&letter_id, release, &actor, self.clock.now()))
    }

    fn restore(
        &self,
        letter_id: String,
        more_replays: u32,
        actor: Actor,
    ) -> BoxFuture<'_, Result<LetterRow, StoreError>> {
        later(move || self.lock().restore(&letter_id, more_replays, &actor, self.clock.now()))
    }

    fn discard(&self, letter_id: String, actor: Actor) -> BoxFuture<'_, Result<LetterRow, StoreError>> {
        later(move || self.lock().discard(&letter_id, &actor, self.clock.now()))
    }

    fn resolve(&self, letter_id: String, actor: Actor) -> BoxFuture<'_, Result<LetterRow, StoreError>> {
        later(move || self.lock().resolve(&letter_id, &actor, self.clock.now()))
    }

    fn edit(&self, edit: Edit, actor: Actor) -> BoxFuture<'_, Result<Edited, StoreError>> {
        later(move || {
            edit.check()?;
            self.lock().edit(edit, &actor, self.clock.now())
        })
    }

    fn revisions(&self, letter_id: String) -> BoxFuture<'_, Result<Vec<Revision>, StoreError>> {
        later(move || Ok(self.lock().letter(&letter_id).map_or_else(|_| Vec::new(), |stored| stored.payloads.clone())))
    }

    fn events(&self, query: EventQuery) -> BoxFuture<'_, Result<EventPage, StoreError>> {
        later(move || Ok(self.lock().audit(&query)))
    }

    fn reap(&self, actor: Actor) -> BoxFuture<'_, Result<Vec<LetterRow>, StoreError>> {
        later(move || Ok(self.lock().reap(&actor, self.clock.now())))
    }

    fn give_back(&self, letter_id: &str, fence: u64) {
        // A stale fence has nothing to give back.
        let actor = Actor::new("store", "given back");
        let _released = self.lock().release(letter_id, Release::Held { fence }, &actor, self.clock.now());
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("letters", &self.lock().letters.len()).finish_non_exhaustive()
    }
}

const _: fn() = || {
    fn sends<T: Send + Sync>() {}
    sends::<MemoryStore>();
};

#[cfg(test)]
mod tests {
    use super::*;

    // D1: the parkings of a letter that is gone stay known, so that an old spill line brings nothing back.
    #[test]
    fn parkings_of_a_pruned_letter_are_tombstones() {
        let store = MemoryStore::new();
        let mut letter = DeadLetter::new("fetch", StopReason::Exhausted, SystemTime::UNIX_EPOCH);
        letter.job_id = Some("a".into());
        let mut state = store.lock();
        let letter_id = state.park(letter.clone(), SystemTime::UNIX_EPOCH);
        // What retention will do.
        state.letters.clear();
        state.by_id.clear();
        state.by_job.clear();
        assert_eq!(state.park(letter, SystemTime::UNIX_EPOCH), letter_id);
        assert!(state.letters.is_empty());
    }
}
