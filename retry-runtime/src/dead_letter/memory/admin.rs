//! Keeping the store in memory in order.

use std::time::{Duration, SystemTime};

use super::{MemoryStore, State, later};
use crate::clock;
use crate::dead_letter::{
    Actor, BoxFuture, DueReport, EraseReport, EraseRequest, ExportPage, ExportRequest, Imported, LetterRecord,
    PruneReport, PruneRequest, Pruned, Retention, StoreAdmin,
};
use crate::error::StoreError;

impl State {
    fn prune(&mut self, request: &PruneRequest, actor: &Actor, now: SystemTime) -> PruneReport {
        let mut due: Vec<_> = self
            .letters
            .values()
            .map(|stored| &stored.row)
            .filter(|row| request.means(&row.kind))
            .filter(|row| {
                request.retention.cutoff(&row.kind, row.state, now).is_some_and(|cutoff| row.closed_at <= Some(cutoff))
            })
            .filter_map(|row| Some((row.closed_at?, row.seq)))
            .collect();
        due.sort_unstable();
        let most = request.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let mut report = PruneReport { dry_run: request.dry_run, is_cut: due.len() > most, ..PruneReport::default() };
        if !request.dry_run && most > 0 && !due.is_empty() {
            self.note("pruned", actor, &format!("{} closed letters", due.len().min(most)), now);
        }
        for (closed_at, seq) in due.into_iter().take(most) {
            let Some(stored) = self.letters.get(&seq) else { continue };
            report.count(Pruned::of(&stored.row), closed_at);
            if !request.dry_run {
                self.forget(seq);
            }
        }
        report
    }

    fn erase(&mut self, request: &EraseRequest, actor: &Actor, now: SystemTime) -> EraseReport {
        let mut report = EraseReport::default();
        let meant: Vec<u64> = self
            .letters
            .iter()
            .filter(|(_, stored)| request.means(&stored.row.kind, &stored.row.job_id))
            .map(|(seq, _)| *seq)
            .collect();
        let events = self.events.len();
        for seq in meant {
            if let Some(stored) = self.letters.get(&seq) {
                report.letters += 1;
                report.revisions += stored.payloads.len() as u64;
                report.attempts += stored.history.len() as u64;
                self.forget(seq);
            }
        }
        let says_the_key = |event: &crate::dead_letter::EventRecord| {
            let texts = [event.actor.as_deref(), event.reason.as_deref(), Some(event.detail.as_str())];
            texts.into_iter().flatten().any(|text| request.is_named_in(text))
        };
        self.events.retain(|event| event.letter_id.is_some() || !says_the_key(event));
        report.events = events.saturating_sub(self.events.len()) as u64;
        for event in self.events.iter_mut().filter(|event| says_the_key(event)) {
            event.actor.iter_mut().chain(&mut event.reason).for_each(|text| request.remove_from(text));
            request.remove_from(&mut event.detail);
        }
        self.arrived.forget_job(request);
        report.left.extend(self.operations.forget_job(request));
        report.journal_entries = self.forget_journalled(request);
        let entries = self.ledger.len();
        self.ledger
            .retain(|key, _| key.key != request.job_id || request.kind.as_ref().is_some_and(|kind| *kind != key.scope));
        report.ledger_entries = entries.saturating_sub(self.ledger.len()) as u64;
        let detail = format!("a job with SHA-256 {}: {} letters", request.hash(), report.letters);
        self.note("erased", actor, &detail, now);
        report
    }

    /// Removes a letter; its parkings stay known.
    fn forget(&mut self, seq: u64) {
        if let Some(stored) = self.letters.remove(&seq) {
            self.by_id.remove(&stored.row.letter_id);
            self.events.retain(|event| event.letter_id.as_ref() != Some(&stored.row.letter_id));
            self.by_job.remove(&(stored.row.kind, stored.row.job_id));
        }
    }
}

impl StoreAdmin for MemoryStore {
    fn prune(&self, request: PruneRequest, actor: Actor) -> BoxFuture<'_, Result<PruneReport, StoreError>> {
        later(move || Ok(self.lock().prune(&request, &actor, self.clock.now())))
    }

    fn due_within(&self, retention: Retention, within: Duration) -> BoxFuture<'_, Result<DueReport, StoreError>> {
        later(move || {
            let until = clock::after(self.clock.now(), within);
            let mut report = DueReport::default();
            for stored in self.lock().letters.values() {
                if let Some(expires_at) = stored.row.expires_at(&retention).filter(|at| *at <= until) {
                    report.count(Pruned::of(&stored.row), 1, expires_at);
                }
            }
            Ok(report)
        })
    }

    fn export(&self, request: ExportRequest) -> BoxFuture<'_, Result<ExportPage, StoreError>> {
        later(move || Ok(self.lock().export(&request)))
    }

    fn import(&self, records: Vec<LetterRecord>, actor: Actor) -> BoxFuture<'_, Result<Vec<Imported>, StoreError>> {
        later(move || {
            let now = self.clock.now();
            let mut state = self.lock();
            Ok(records.into_iter().map(|record| state.import(self.intake.record(record), &actor, now)).collect())
        })
    }

    fn erase(&self, request: EraseRequest, actor: Actor) -> BoxFuture<'_, Result<EraseReport, StoreError>> {
        later(move || Ok(self.lock().erase(&request, &actor, self.clock.now())))
    }
}
