//! The checks of failure groups: the store in memory passes them, and stores with one fault each do not.
#![cfg(feature = "test-util")]
#![allow(clippy::unwrap_used)] // tests fail by panicking

use std::sync::Mutex;

use retry_runtime::dead_letter::{
    Actor, ArrivalKey, ArrivalSeries, Arrivals, BoxFuture, DeadLetterStore, FailureGroups, Filter, GroupNote,
    GroupOrder, GroupsPage, GroupsRequest, MemoryStore, Order, PageRequest,
};
use retry_runtime::error::StoreError;
use retry_runtime::testing::{Faults, Planted, conformance};

type Result<T, E = StoreError> = std::result::Result<T, E>;

#[test]
fn the_store_in_memory_passes() {
    conformance::groups(MemoryStore::with_clock).assert_passed();
}

#[test]
fn the_store_in_memory_keeps_the_rules_of_overviews() {
    conformance::overview(MemoryStore::with_clock).assert_passed();
    conformance::oversight(MemoryStore::with_clock).assert_passed();
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    FilterIgnored,
    OrderIgnored,
    CursorIgnored,
    OldestShown,
    NotesOverwritten,
    EmptyNoteIgnored,
    NotesAnonymous,
    TrendOfLetters,
    ZerosLeftOut,
    KeysMixedUp,
}

/// The store in memory with one fault.
struct Faulty {
    inner: MemoryStore,
    fault: Fault,
    notes: Mutex<Vec<(String, GroupNote)>>,
}

impl Faults for Faulty {
    type Inner = MemoryStore;
    fn inner(&self) -> &MemoryStore {
        &self.inner
    }

    fn groups(&self, mut request: GroupsRequest) -> BoxFuture<'_, Result<GroupsPage>> {
        Box::pin(async move {
            match self.fault {
                Fault::FilterIgnored => request.filter = Filter::all(),
                Fault::OrderIgnored => request.order = GroupOrder::MostLetters,
                Fault::CursorIgnored => request.after = None,
                _ => {}
            }
            let mut page = self.inner.groups(request.clone()).await?;
            for group in &mut page.groups {
                match self.fault {
                    Fault::OldestShown => {
                        let mut of_group = request.filter.clone();
                        of_group.fingerprints = vec![group.counts.fingerprint.clone()];
                        let first = PageRequest::first(Order::LongestUnseenFirst, 1);
                        group.newest = self.inner.list(of_group, first).await?.rows.remove(0);
                    }
                    Fault::NotesOverwritten => {
                        let notes = self.notes.lock().unwrap();
                        let note = notes.iter().find(|(fingerprint, _)| *fingerprint == group.counts.fingerprint);
                        group.note = note.map(|(_, note)| note.clone()).filter(|note| !note.text.is_empty());
                    }
                    Fault::TrendOfLetters => {
                        let letters = group.counts.letters();
                        for n in &mut group.trend.per_hour {
                            *n = letters.min(*n);
                        }
                    }
                    _ => {}
                }
            }
            Ok(page)
        })
    }

    fn note(&self, fingerprint: String, text: String, mut actor: Actor) -> BoxFuture<'_, Result<GroupNote>> {
        Box::pin(async move {
            if self.fault == Fault::NotesAnonymous {
                actor.name.clear();
            }
            let last = self.inner.notes(fingerprint.clone()).await?.pop();
            if let (Fault::EmptyNoteIgnored, true, Some(last)) = (self.fault, text.is_empty(), last) {
                return Ok(last);
            }
            let note = self.inner.note(fingerprint.clone(), text, actor).await?;
            let mut notes = self.notes.lock().unwrap();
            notes.retain(|(of, _)| *of != fingerprint);
            notes.push((fingerprint, note.clone()));
            Ok(note)
        })
    }

    fn notes(&self, fingerprint: String) -> BoxFuture<'_, Result<Vec<GroupNote>>> {
        Box::pin(async move {
            if self.fault == Fault::NotesOverwritten {
                let notes = self.notes.lock().unwrap();
                return Ok(notes.iter().filter(|(of, _)| *of == fingerprint).map(|(_, note)| note.clone()).collect());
            }
            self.inner.notes(fingerprint).await
        })
    }

    fn arrivals(&self, mut question: Arrivals) -> BoxFuture<'_, Result<Vec<ArrivalSeries>>> {
        Box::pin(async move {
            if self.fault == Fault::KeysMixedUp && question.by == ArrivalKey::ErrorClass {
                question.by = ArrivalKey::Kind;
            }
            let mut series = self.inner.arrivals(question).await?;
            if self.fault == Fault::ZerosLeftOut {
                for one in &mut series {
                    one.counts.retain(|(_, n)| *n > 0);
                }
            }
            Ok(series)
        })
    }
}

/// Every check can fail: each fault is found by the checks it offends, by name.
#[test]
fn each_fault_is_found() {
    let found_by: &[(Fault, &[&str])] = &[
        (Fault::FilterIgnored, &["groups_are_exact_for_any_filter"]),
        (Fault::OrderIgnored, &["groups_come_page_by_page_in_either_order"]),
        (Fault::CursorIgnored, &["groups_come_page_by_page_in_either_order"]),
        (Fault::OldestShown, &["a_group_shows_its_newest_letter", "groups_are_exact_for_any_filter"]),
        (Fault::NotesOverwritten, &["notes_are_kept_and_the_newest_is_shown"]),
        (Fault::EmptyNoteIgnored, &["notes_are_kept_and_the_newest_is_shown"]),
        (Fault::NotesAnonymous, &["notes_are_kept_and_the_newest_is_shown"]),
        (Fault::TrendOfLetters, &["a_trend_counts_every_parking_in_its_hour"]),
        (
            Fault::ZerosLeftOut,
            &["arrivals_are_counted_by_kind_and_class_zeros_included", "an_hour_is_compared_with_those_of_past_days"],
        ),
        (Fault::KeysMixedUp, &["arrivals_are_counted_by_kind_and_class_zeros_included"]),
    ];
    for (fault, wanted) in found_by {
        let report = conformance::groups(|clock| {
            let inner = MemoryStore::with_clock(clock);
            Planted(Faulty { inner, fault: *fault, notes: Mutex::default() })
        });
        let failed: Vec<_> = report.failures().map(|outcome| outcome.name).collect();
        for name in *wanted {
            assert!(failed.contains(name), "{fault:?} is not found by {name}, only by {failed:?}");
        }
    }
}
