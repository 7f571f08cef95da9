//! Letters leaving the store in memory, and coming into it.

use std::time::SystemTime;

use super::{State, Stored};
use crate::dead_letter::{
    Actor, EXPORT_PAGE_BYTES, ExportPage, ExportRequest, Imported, KnownLetter, LetterRecord, LetterState,
};

impl State {
    pub(super) fn export(&self, request: &ExportRequest) -> ExportPage {
        let mut page = ExportPage::default();
        let mut bytes = 0;
        let behind = request.after.map_or(0, |after| after.saturating_add(1));
        for (seq, stored) in self.letters.range(behind..) {
            if !request.filter.matches(&stored.row) {
                continue;
            }
            if page.records.len() >= request.limit.max(1) as usize || bytes >= EXPORT_PAGE_BYTES {
                return page;
            }
            let record = self.record(stored);
            bytes += record.size();
            page.records.push(record.leave());
            page.next = Some(*seq);
        }
        page.next = None;
        page
    }

    fn record(&self, stored: &Stored) -> LetterRecord {
        let mut record = LetterRecord::new(stored.row.clone());
        record.revisions.clone_from(&stored.payloads);
        record.set_history(stored.history.clone(), stored.size);
        record.parkings.clone_from(&stored.parkings);
        record.parkings.sort_by_key(|parking| parking.park_id);
        let own = |event: &&crate::dead_letter::EventRecord| event.letter_id.as_ref() == Some(&stored.row.letter_id);
        record.events = self.events.iter().filter(own).cloned().collect();
        record
    }

    pub(super) fn import(&mut self, record: LetterRecord, actor: &Actor, now: SystemTime) -> Imported {
        if let Err(why) = record.check() {
            return Imported::Refused(why);
        }
        let job = (record.row.kind.clone(), record.row.job_id.clone());
        let Some(seq) = self.by_job.get(&job).copied() else { return self.import_new(record, job) };
        let Some(stored) = self.letters.get_mut(&seq) else { return Imported::Known };
        let known = KnownLetter {
            row: stored.row.clone(),
            revisions: stored.payloads.iter().map(|kept| (kept.revision, kept.sha256)).collect(),
            history: stored.history.clone(),
        };
        let Some(joined) = record.join(&known, |id| self.parkings.contains_key(id), now) else {
            return Imported::Known;
        };
        for parking in &joined.parkings {
            self.parkings.insert(parking.park_id, known.row.letter_id.clone());
        }
        stored.row = joined.row.clone();
        stored.payloads.extend(joined.revisions);
        stored.record(joined.history);
        stored.parkings.extend(joined.parkings);
        let reopened = known.row.state.is_closed() && joined.row.state == LetterState::Parked;
        let detail = if reopened { "joined, and open again" } else { "joined" };
        self.happened("imported", &joined.row, Some(known.row.state), actor, detail, now);
        Imported::Merged
    }

    fn import_new(&mut self, record: LetterRecord, job: (String, String)) -> Imported {
        if record.parkings.iter().all(|parking| self.parkings.contains_key(&parking.park_id)) {
            return Imported::Known;
        }
        if self.by_id.contains_key(&record.row.letter_id) {
            return Imported::Refused(format!("letter {} is another job's here", record.row.letter_id));
        }
        self.last_seq += 1;
        let seq = self.last_seq;
        let mut size = record.history_size();
        let mut history = record.history;
        size.cut(&mut history);
        let mut row = record.row;
        row.seq = seq;
        for parking in &record.parkings {
            self.parkings.entry(parking.park_id).or_insert_with(|| row.letter_id.clone());
        }
        for event in record.events {
            let id = self.events.last().map_or(1, |last| last.id + 1);
            self.events.push(crate::dead_letter::EventRecord { id, letter_id: Some(row.letter_id.clone()), ..event });
        }
        self.by_id.insert(row.letter_id.clone(), seq);
        self.by_job.insert(job, seq);
        let stored =
            Stored { row, payloads: record.revisions, history, size, parkings: record.parkings, kept_alive: false };
        self.letters.insert(seq, stored);
        Imported::New
    }
}
