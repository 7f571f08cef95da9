//! The store in memory as a whole: its letters alone.

use super::{MemoryStore, later};
use crate::dead_letter::{BoxFuture, LetterRow, LetterState, Overview, StoreFacts};
use crate::error::StoreError;

impl Overview for MemoryStore {
    fn facts(&self) -> BoxFuture<'_, Result<StoreFacts, StoreError>> {
        later(move || {
            let mut facts = StoreFacts::new(self.clock.now());
            let (now, day_ago) = (facts.now, facts.day_ago());
            let state = self.lock();
            for row in state.letters.values().map(|stored| &stored.row) {
                if row.state == LetterState::Parked {
                    let due = row.not_before.filter(|at| *at > now);
                    facts.next_due = facts.next_due.into_iter().chain(due).min();
                }
                let is_recovered = row.state == LetterState::Recovered && row.closed_at >= Some(day_ago);
                facts.recovered_in_a_day += u64::from(is_recovered);
            }
            let parkings = state.letters.values().flat_map(|stored| stored.parkings.iter());
            let mut times: Vec<_> = parkings.map(|parking| (parking.park_id, parking.failed_at)).collect();
            times.sort_unstable_by(|a, b| b.cmp(a));
            times.truncate(StoreFacts::NEWEST_TIMES as usize);
            facts.newest_parkings = times.into_iter().map(|(_, at)| at).collect();
            let newest = state.letters.len().min(StoreFacts::NEWEST as usize) as u64;
            if newest > 0 {
                facts.writers.push((format!("memory@{}", env!("CARGO_PKG_VERSION")), newest));
            }
            Ok(facts)
        })
    }

    fn find(&self, text: String, limit: u32) -> BoxFuture<'_, Result<Vec<LetterRow>, StoreError>> {
        later(move || {
            let state = self.lock();
            let some = |means: &dyn Fn(&LetterRow) -> bool| -> Vec<LetterRow> {
                let meant = state.letters.values().map(|stored| &stored.row).filter(|row| means(row));
                meant.take(limit as usize).cloned().collect()
            };
            if text.is_empty() {
                return Ok(Vec::new());
            }
            let meant = some(&|row| row.letter_id == text);
            let meant = if meant.is_empty() { some(&|row| row.job_id == text) } else { meant };
            if !meant.is_empty() {
                return Ok(meant);
            }
            Ok(some(&|row| row.letter_id.starts_with(&text) || row.job_id.starts_with(&text)))
        })
    }
}
