//! Groups of failures in memory.

use std::collections::BTreeMap;
use std::time::SystemTime;

use super::{MemoryStore, State, later};
use crate::dead_letter::{
    Actor, ArrivalKey, ArrivalSeries, Arrivals, BoxFuture, EraseRequest, FailureGroup, FailureGroups, FirstGroups,
    GroupCounts, GroupNote, GroupsPage, GroupsRequest, LetterRow, Trend,
};
use crate::error::StoreError;

/// Parkings by hour, and notes.
#[derive(Default)]
pub(super) struct Arrived {
    by_class: BTreeMap<(i64, String, String), u64>,
    by_group: BTreeMap<(String, i64), u64>,
    notes: BTreeMap<String, Vec<GroupNote>>,
}

impl Arrived {
    /// Counts a parking, by the row it would make by itself.
    pub(super) fn count(&mut self, row: &LetterRow, now: SystemTime) {
        let hour = Trend::hour_of(now);
        *self.by_class.entry((hour, row.kind.clone(), row.error_class.clone())).or_default() += 1;
        *self.by_group.entry((row.fingerprint.clone(), hour)).or_default() += 1;
    }
}

impl Arrived {
    /// Takes a job's key out of what people wrote.
    pub(super) fn forget_job(&mut self, request: &EraseRequest) {
        for note in self.notes.values_mut().flatten() {
            request.remove_from(&mut note.text);
            request.remove_from(&mut note.actor);
        }
    }
}

impl State {
    fn groups(&self, request: &GroupsRequest, now: SystemTime) -> GroupsPage {
        let mut groups: BTreeMap<&str, (GroupCounts, &LetterRow)> = BTreeMap::new();
        for row in self.rows(&request.filter) {
            let one = GroupCounts::new(&*row.fingerprint, row.state, 1, row.attempts, (row.first_seen, row.last_seen));
            match groups.get_mut(&*row.fingerprint) {
                Some((counts, newest)) => {
                    counts.add(&one);
                    if (row.last_seen, row.seq) > (newest.last_seen, newest.seq) {
                        *newest = row;
                    }
                }
                None => drop(groups.insert(&row.fingerprint, (one, row))),
            }
        }
        let mut first = FirstGroups::new(request);
        for (counts, _) in groups.values() {
            first.offer(counts.clone());
        }
        let (page, next) = first.page();
        let group = |counts: GroupCounts| {
            let fingerprint = counts.fingerprint.clone();
            let (_, newest) = groups.get(&*fingerprint)?;
            let hours = (fingerprint.clone(), i64::MIN)..=(fingerprint.clone(), i64::MAX);
            let trend = Trend::of(now, self.arrived.by_group.range(hours).map(|((_, hour), n)| (*hour, *n)));
            let note = self.arrived.notes.get(&fingerprint).and_then(|notes| notes.last()).cloned();
            Some(FailureGroup::new(counts, (*newest).clone(), trend, note))
        };
        GroupsPage::new(page.into_iter().filter_map(group).collect(), next)
    }
}

impl FailureGroups for MemoryStore {
    fn groups(&self, request: GroupsRequest) -> BoxFuture<'_, Result<GroupsPage, StoreError>> {
        later(move || Ok(self.lock().groups(&request, self.clock.now())))
    }

    fn note(&self, fingerprint: String, text: String, actor: Actor) -> BoxFuture<'_, Result<GroupNote, StoreError>> {
        later(move || {
            let note = GroupNote::new(text, actor.name, self.clock.now());
            self.lock().arrived.notes.entry(fingerprint).or_default().push(note.clone());
            Ok(note)
        })
    }

    fn notes(&self, fingerprint: String) -> BoxFuture<'_, Result<Vec<GroupNote>, StoreError>> {
        later(move || Ok(self.lock().arrived.notes.get(&fingerprint).cloned().unwrap_or_default()))
    }

    fn arrivals(&self, question: Arrivals) -> BoxFuture<'_, Result<Vec<ArrivalSeries>, StoreError>> {
        later(move || {
            question.check()?;
            let (first, last) = question.hours();
            let state = self.lock();
            let asked = state.arrived.by_class.iter().filter(|((hour, ..), _)| (first..=last).contains(hour));
            question.answer(asked.map(|((hour, kind, class), n)| {
                let key = match question.by {
                    ArrivalKey::All => String::new(),
                    ArrivalKey::Kind => kind.clone(),
                    ArrivalKey::ErrorClass => class.clone(),
                };
                (*hour, key, *n)
            }))
        })
    }
}
