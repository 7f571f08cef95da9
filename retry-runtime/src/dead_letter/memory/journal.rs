//! The journal of the store in memory. Its processes are handles: [`MemoryStore::another`] gives a second one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use super::{MemoryStore, Owned, State, later, parker};
use crate::dead_letter::{
    Actor, BoxFuture, DeadLetter, EraseRequest, HistoryEntry, JobEnd, JobJournal, JournalCounts, LetterRow,
    OWNER_LEASE, ParkingRecord, Struck, crashed,
};
use crate::error::StoreError;
use crate::id::Id;
use crate::reply::Reply;

/// The jobs that are under way, and whose they are.
#[derive(Default)]
pub(super) struct Journal {
    jobs: BTreeMap<Id, (u64, DeadLetter)>,
    /// Until when each owner is taken for alive.
    owners: BTreeMap<u64, SystemTime>,
    last_owner: u64,
}

impl Journal {
    /// A new owner.
    pub(super) fn owner(&mut self) -> u64 {
        self.last_owner += 1;
        self.last_owner
    }

    fn lives(&self, owner: u64, now: SystemTime) -> bool {
        self.owners.get(&owner).is_some_and(|until| *until >= now)
    }
}

impl State {
    /// An owner that does something is alive.
    pub(super) fn is_alive(&mut self, owner: u64, now: SystemTime) {
        self.journal.owners.insert(owner, crate::clock::after(now, OWNER_LEASE));
    }

    /// An orderly end: what it leaves is nobody's at once.
    pub(super) fn owner_ends(&mut self, owner: u64) {
        self.journal.owners.remove(&owner);
    }

    /// A parked job is under way no more.
    pub(super) fn unjournal(&mut self, park_id: Id) {
        self.journal.jobs.remove(&park_id);
    }

    /// Parks the jobs of the dead.
    pub(super) fn reap_journal(&mut self, now: SystemTime) -> Vec<LetterRow> {
        let journal = &self.journal;
        let dead = journal.jobs.iter().filter(|(_, (owner, _))| !journal.lives(*owner, now));
        let dead: Vec<_> = dead.map(|(_, (owner, job))| (*owner, job.clone())).collect();
        let mut rows = Vec::with_capacity(dead.len());
        for (owner, job) in dead {
            let letter_id = self.park(crashed(job, &format!("process {owner}"), now), now);
            rows.extend(self.letter(&letter_id).ok().map(|stored| stored.row.clone()));
        }
        rows
    }

    /// Removes the entries of a job; how many there were.
    pub(super) fn forget_journalled(&mut self, request: &EraseRequest) -> u64 {
        let jobs = self.journal.jobs.len();
        let is_meant = |job: &DeadLetter| job.job_id.as_ref().is_some_and(|job_id| request.means(&job.kind, job_id));
        self.journal.jobs.retain(|_, (_, job)| !is_meant(job));
        jobs.saturating_sub(self.journal.jobs.len()) as u64
    }

    /// A parking that is known says nothing new, unless it was made of a process that was taken for dead.
    pub(super) fn failed_late(&mut self, letter: DeadLetter, letter_id: &str, now: SystemTime) {
        let Ok(stored) = self.letter(letter_id) else { return };
        let known = stored.known(&letter.payload);
        let Some(guess) = stored.parkings.iter_mut().find(|parking| parking.is_guess_of(&letter)) else { return };
        let before = stored.row.state;
        let step = stored.row.failed_late(&letter, guess, known, now);
        *guess = ParkingRecord::new(letter.park_id, letter.reason, letter.attempts, letter.failed_at);
        stored.record(letter.history.iter().map(|record| HistoryEntry::parked(letter.park_id, record)).collect());
        stored.take_payload(step, letter.payload, now);
        let row = stored.row.clone();
        self.happened("late_failure", &row, Some(before), &parker(letter.reason), "", now);
    }

    pub(super) fn journalled(&self, now: SystemTime) -> JournalCounts {
        let mut counts = JournalCounts::default();
        for (owner, _) in self.journal.jobs.values() {
            if self.journal.lives(*owner, now) {
                counts.running += 1;
            } else {
                counts.orphaned += 1;
            }
        }
        counts
    }

    fn strike(&mut self, park_id: Id, end: JobEnd, actor: &Actor, now: SystemTime) -> Struck {
        if self.journal.jobs.remove(&park_id).is_some() {
            return Struck::Removed;
        }
        let Some(letter_id) = self.parkings.get(&park_id).cloned() else { return Struck::Nothing };
        let Ok(stored) = self.letter(&letter_id) else { return Struck::Nothing };
        let before = stored.row.state;
        if !stored.row.ended_late(end, actor, now) {
            return Struck::Nothing;
        }
        let row = stored.row.clone();
        self.happened("late_end", &row, Some(before), actor, "", now);
        Struck::Late
    }
}

impl MemoryStore {
    /// A second store over the same letters, as another process would have one.
    #[must_use]
    pub fn another(&self) -> Self {
        let state = Owned::of(Arc::clone(&self.state.shared));
        Self { clock: self.clock.clone(), intake: self.intake.clone(), state }
    }
}

impl JobJournal for MemoryStore {
    fn enter(&self, job: DeadLetter) -> Reply<Result<(), StoreError>> {
        let (job, now) = (self.intake.letter(job), self.clock.now());
        let mut state = self.lock();
        state.is_alive(self.state.owner, now);
        if !state.parkings.contains_key(&job.park_id) {
            state.journal.jobs.insert(job.park_id, (self.state.owner, job));
        }
        Reply::ready(Ok(()))
    }

    fn strike(&self, park_id: Id, end: JobEnd) -> Reply<Result<Struck, StoreError>> {
        let now = self.clock.now();
        let mut state = self.lock();
        state.is_alive(self.state.owner, now);
        Reply::ready(Ok(state.strike(park_id, end, &Actor::new("store", "late end"), now)))
    }

    fn journalled(&self) -> BoxFuture<'_, Result<JournalCounts, StoreError>> {
        later(move || {
            let counts = self.lock().journalled(self.clock.now());
            Ok(counts)
        })
    }
}

impl Owned {
    fn of(shared: Arc<Mutex<State>>) -> Self {
        let owner = shared.lock().unwrap_or_else(PoisonError::into_inner).journal.owner();
        Self { shared, owner }
    }
}

impl Default for Owned {
    fn default() -> Self {
        Self::of(Arc::default())
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner).owner_ends(self.owner);
    }
}
