//! Examining the store in memory: its letters alone, for there is nothing else that could break.

use super::{MemoryStore, later};
use crate::counters::Day;
use crate::dead_letter::{
    BoxFuture, Checkup, Counted, Doctor, Filter, Finding, LetterFacts, LetterState, Order, PageRequest, Severity,
};
use crate::error::StoreError;

impl Doctor for MemoryStore {
    fn doctor(&self, checkup: Checkup) -> BoxFuture<'_, Result<Vec<Finding>, StoreError>> {
        later(move || {
            let mut found = self.letter_facts().findings(&checkup);
            let message = "letters are kept in memory and end with the process";
            found.push(Finding::new(Severity::Info, "in_memory", message));
            Finding::sort(&mut found);
            Ok(found)
        })
    }
}

impl MemoryStore {
    fn letter_facts(&self) -> LetterFacts {
        let now = self.clock.now();
        let today = Day::of(now);
        let state = self.lock();
        let mut facts = LetterFacts::default();
        for stored in state.letters.values() {
            let row = &stored.row;
            facts.abandoned += u64::from(row.state == LetterState::Abandoned);
            facts.overdue += u64::from(
                !stored.kept_alive && now.checked_sub(LetterFacts::OVERDUE).is_some_and(|at| row.is_expired(at)),
            );
            facts.ahead += u64::from(row.last_seen > now + LetterFacts::AHEAD);
            if row.state == LetterState::Parked {
                facts.altered += u64::from(row.payload_altered);
                *facts.waiting.entry(row.kind.clone()).or_default() += 1;
            }
        }
        let lost = |((operation, day, counter), n): (&(String, Day, String), &u64)| {
            (operation == "dead_letter" && counter == "lost" && *day > today.plus(-30)).then_some(*n)
        };
        facts.lost = state.daily.iter().filter_map(lost).sum();
        for known in LetterState::ALL {
            let mut filter = Filter::all();
            filter.states = vec![*known];
            let rows = state.letters.values().filter(|stored| stored.row.state == *known).count() as u64;
            let page = state.list(&filter, &PageRequest::first(Order::NewestFirst, u32::MAX));
            facts.counted.push(Counted { state: *known, rows, listed: page.rows.len() as u64, summed: rows });
        }
        facts
    }
}
