//! A letter with everything that belongs to it, as it travels from one store to another.

use std::borrow::Cow;
use std::collections::HashSet;
use std::time::SystemTime;

use crate::dead_letter::{
    DeadLetter, EventRecord, Filter, HistoryEntry, HistorySize, LetterRow, LetterState, Payload, Redactor, Revision,
    RevisionSource, fingerprint, sha256::sha256, whole_millis,
};
use crate::id::Id;
use crate::stop::StopReason;

/// One parking of a letter. A store that knows its id takes nothing from it again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParkingRecord {
    /// The parking.
    pub park_id: Id,
    /// Why the call ended.
    pub reason: StopReason,
    /// How many times its body ran.
    pub attempts: u32,
    /// When it was given up.
    pub failed_at: SystemTime,
}

impl ParkingRecord {
    /// A parking; for stores.
    pub fn new(park_id: Id, reason: StopReason, attempts: u32, failed_at: SystemTime) -> Self {
        Self { park_id, reason, attempts, failed_at: whole_millis(failed_at) }
    }

    /// Whether it is what somebody made of a process that was taken for dead, and this letter is what its call says itself:
    /// see [`LetterRow::failed_late`].
    pub fn is_guess_of(&self, letter: &DeadLetter) -> bool {
        self.park_id == letter.park_id && self.reason == StopReason::Crashed && letter.reason != StopReason::Crashed
    }
}

/// A stored letter with everything: what an export has on one line.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LetterRecord {
    /// The letter. Its `seq` and `scope` are its store's own and do not travel.
    pub row: LetterRow,
    /// Every payload it ever had, in order.
    pub revisions: Vec<Revision>,
    /// Every recorded attempt, in order.
    pub history: Vec<HistoryEntry>,
    /// How many attempts were cut out of the middle of the history.
    pub history_cut: u64,
    /// How many of those that are left come before the cut.
    pub history_cut_at: u64,
    /// Every parking, in the order of their ids.
    pub parkings: Vec<ParkingRecord>,
    /// Everything that happened to it, in order. Their numbers are their store's own and do not travel.
    pub events: Vec<EventRecord>,
}

impl LetterRecord {
    /// A letter alone; for stores, which fill in the rest.
    pub fn new(row: LetterRow) -> Self {
        Self {
            row,
            revisions: Vec::new(),
            history: Vec::new(),
            history_cut: 0,
            history_cut_at: 0,
            parkings: Vec::new(),
            events: Vec::new(),
        }
    }

    /// The letter as it leaves its store. A lease holds in its store alone: a letter that is being replayed travels parked,
    /// with its fence raised, as if the lease had been taken back.
    #[must_use]
    pub fn leave(mut self) -> Self {
        if self.row.state == LetterState::Replaying {
            self.row.state = LetterState::Parked;
            self.row.fence = self.row.fence.saturating_add(1);
        }
        self.row.owner = None;
        self.row.lease_until = None;
        self.row.failed_again = false;
        self.row.seq = 0;
        self
    }

    /// Takes secrets out of every payload and every text that came from an error or an operator. With a payload it counts as
    /// altered from then on, whether or not a rule found something: nobody has to guess which letters are whole.
    pub fn redact(&mut self, redactor: &Redactor) {
        let hide = |text: &mut String| {
            if let Cow::Owned(redacted) = redactor.text(text) {
                *text = redacted;
            }
        };
        for revision in &mut self.revisions {
            let payload = redactor.payload(&revision.payload);
            if let Payload::Json(json) = &payload {
                (revision.size, revision.sha256) = (json.len() as u64, sha256(json.as_bytes()));
            }
            revision.payload = payload;
            revision.reason.iter_mut().for_each(hide);
            if revision.revision == self.row.payload_revision {
                self.row.payload_size = Some(revision.size);
            }
        }
        hide(&mut self.row.error_message);
        self.row.payload_error.iter_mut().for_each(hide);
        self.history.iter_mut().for_each(|entry| hide(&mut entry.message));
        for event in &mut self.events {
            event.reason.iter_mut().for_each(hide);
            hide(&mut event.detail);
        }
        self.row.payload_altered |= self.row.payload_revision > 0;
    }

    /// Its history with its size; for stores.
    pub fn set_history(&mut self, history: Vec<HistoryEntry>, size: HistorySize) {
        self.history = history;
        (self.history_cut, self.history_cut_at) = (size.cut, if size.cut == 0 { 0 } else { size.cut_at });
    }

    /// The size of its history; for stores.
    pub fn history_size(&self) -> HistorySize {
        let mut size = HistorySize::new(0, 0, self.history_cut, self.history_cut_at);
        size.add(&self.history);
        size
    }

    /// About how many bytes it takes in memory.
    pub fn size(&self) -> usize {
        let payloads: u64 = self.revisions.iter().map(|revision| revision.size).sum();
        let history: usize = self.history.iter().map(|entry| entry.message.len() + 200).sum();
        let events: usize = self.events.iter().map(|event| event.detail.len() + 200).sum();
        usize::try_from(payloads).unwrap_or(usize::MAX).saturating_add(history + events + self.row.error_message.len())
    }
}

/// Which page of an export is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExportRequest {
    /// Which letters.
    pub filter: Filter,
    /// Behind the letter with this number, where the page before ended; `None` for the first page.
    pub after: Option<u64>,
    /// At most so many; 100 by default. A store gives fewer where they are large.
    pub limit: u32,
}

impl ExportRequest {
    /// The first page.
    pub fn new(filter: Filter) -> Self {
        Self { filter, after: None, limit: 100 }
    }
}

/// One page of an export, in the order of the letters' numbers: a letter that is there all the time is on exactly one page,
/// whatever happens to it and to others.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ExportPage {
    /// The letters, [as they leave](LetterRecord::leave).
    pub records: Vec<LetterRecord>,
    /// Where the next page starts; `None` when this is the last one.
    pub next: Option<u64>,
    /// The version of the store's schema, where it has one.
    pub schema: Option<u32>,
}

/// About so many bytes of letters are on a page, and never less than one letter.
pub const EXPORT_PAGE_BYTES: usize = 8 << 20;

/// The largest count, and fence, that an import takes: no letter gets so far, and what is added to it here and summed over
/// letters has room. (A fence that cannot rise is one that never holds.)
const MAX_IMPORTED: u64 = 1 << 48;

/// What became of a letter that was imported.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Imported {
    /// Its job had no letter here.
    New,
    /// It joined the letter of its job.
    Merged,
    /// Every one of its parkings was known: nothing was changed. Also of a letter that was deleted here.
    Known,
    /// It contradicts what is here, or itself; the text says how. Nothing was changed.
    Refused(String),
}

/// What a store knows of the job of a letter that is being imported.
#[derive(Clone, Debug)]
pub struct KnownLetter {
    /// The letter.
    pub row: LetterRow,
    /// Its revisions: number and hash.
    pub revisions: Vec<(u32, [u8; 32])>,
    /// Its history.
    pub history: Vec<HistoryEntry>,
}

/// What an import adds to a letter that is there.
#[derive(Clone, Debug)]
pub struct Joined {
    /// The letter after it.
    pub row: LetterRow,
    /// New revisions, with their numbers here.
    pub revisions: Vec<Revision>,
    /// New history.
    pub history: Vec<HistoryEntry>,
    /// New parkings.
    pub parkings: Vec<ParkingRecord>,
}

impl LetterRecord {
    /// Whether it can be: what a store demands of a letter.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self) -> Result<(), String> {
        let row = &self.row;
        if row.state.is_closed() != row.closed_at.is_some() {
            return Err(format!("a letter that is {} and closed at {:?}", row.state, row.closed_at));
        }
        if row.state == LetterState::Replaying {
            return Err("a letter that is being replayed does not travel".to_owned());
        }
        let counts = [
            ("attempts", row.attempts),
            ("parkings", row.parkings),
            ("fence", row.fence),
            ("history_cut", self.history_cut),
            ("history_cut_at", self.history_cut_at),
        ];
        for (name, n) in counts {
            if n > MAX_IMPORTED {
                return Err(format!("`{name}` is {n}: accepted are 0 to {MAX_IMPORTED}"));
            }
        }
        let mut parkings = HashSet::new();
        if let Some(twice) = self.parkings.iter().find(|parking| !parkings.insert(parking.park_id)) {
            return Err(format!("parking {} stands in it twice, and would be counted twice", twice.park_id));
        }
        for (n, revision) in self.revisions.iter().enumerate() {
            if u32::try_from(n + 1).ok() != Some(revision.revision) {
                return Err(format!("revision {} where {} is expected", revision.revision, n + 1));
            }
        }
        if row.payload_revision as usize > self.revisions.len() {
            return Err(format!("it uses revision {}, and has {}", row.payload_revision, self.revisions.len()));
        }
        Ok(())
    }

    /// Joins the letter of the same job that is here. `is_known` says which parkings are. `None`: all of them, and nothing
    /// changes.
    ///
    /// By the rules of a parking that comes late: the newest failure shows, counts add up, a closed letter opens again for a
    /// newer failure that is still owed. What was owed here stays owed, whatever the other store made of it. Replays, crashes
    /// and allowances stay as they are here; those of the other store are history.
    pub fn join(&self, known: &KnownLetter, is_known: impl Fn(&Id) -> bool, now: SystemTime) -> Option<Joined> {
        let fresh: Vec<_> = self.parkings.iter().filter(|parking| !is_known(&parking.park_id)).cloned().collect();
        if fresh.is_empty() {
            return None;
        }
        let theirs = &self.row;
        let mut row = known.row.clone();
        let all_fresh = fresh.len() == self.parkings.len();
        let attempts =
            if all_fresh { theirs.attempts } else { fresh.iter().map(|parking| u64::from(parking.attempts)).sum() };
        row.attempts = row.attempts.saturating_add(attempts);
        row.parkings = row.parkings.saturating_add(fresh.len() as u64);
        row.first_seen = row.first_seen.min(theirs.first_seen);
        let newest = theirs.last_seen >= row.last_seen || row.last_seen > now;
        if newest {
            take_failure(&mut row, theirs);
            if theirs.state.is_owed() {
                match row.state {
                    LetterState::Replaying => row.failed_again = true,
                    LetterState::Recovered | LetterState::Discarded => row.reopen(),
                    LetterState::Parked | LetterState::Abandoned => {}
                }
            }
        }
        if row.state.is_owed() {
            row.not_before = row.not_before.max(theirs.not_before);
        }
        let revisions = self.join_payloads(&mut row, known, newest);
        let ids: HashSet<_> = fresh.iter().map(|parking| parking.park_id).collect();
        let is_new = |entry: &&HistoryEntry| {
            entry.park_id.is_none_or(|park_id| ids.contains(&park_id)) && !known.history.contains(entry)
        };
        let history = self.history.iter().filter(is_new).cloned().collect();
        Some(Joined { row, revisions, history, parkings: fresh })
    }

    fn join_payloads(&self, row: &mut LetterRow, known: &KnownLetter, newest: bool) -> Vec<Revision> {
        let mut highest = known.revisions.iter().map(|(number, _)| *number).max().unwrap_or(0);
        let mut added: Vec<Revision> = Vec::new();
        let mut current = None;
        for revision in &self.revisions {
            let here = known.revisions.iter().find(|(_, hash)| *hash == revision.sha256).map(|(number, _)| *number);
            let here = here.or_else(|| added.iter().find(|new| new.sha256 == revision.sha256).map(|new| new.revision));
            let number = here.unwrap_or_else(|| {
                highest = highest.saturating_add(1);
                added.push(Revision { revision: highest, source: RevisionSource::Import, ..revision.clone() });
                highest
            });
            if revision.revision == self.row.payload_revision {
                current = Some((number, revision.size));
            }
        }
        // What is whole here does not give way to what was altered elsewhere.
        let gives_way = row.payload_revision == 0 || (newest && (row.payload_altered || !self.row.payload_altered));
        if let (Some((number, size)), true) = (current, gives_way) {
            row.payload_revision = number;
            row.payload_size = Some(size);
            row.payload_altered = self.row.payload_altered;
            row.payload_error = None;
        }
        added
    }
}

fn take_failure(row: &mut LetterRow, theirs: &LetterRow) {
    row.last_seen = theirs.last_seen;
    row.reason = theirs.reason;
    row.disposition = theirs.disposition;
    row.class.clone_from(&theirs.class);
    row.code = theirs.code;
    row.error_class.clone_from(&theirs.error_class);
    row.error_type.clone_from(&theirs.error_type);
    row.error_message.clone_from(&theirs.error_message);
    row.fingerprint = fingerprint(&row.kind, row.class.as_deref(), &row.error_type, &row.error_message);
    if theirs.model.is_some() {
        row.model.clone_from(&theirs.model);
    }
}
