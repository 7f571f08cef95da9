//! The checks of failure groups: the store in memory passes them, and stores with one fault each do not.
#![cfg(feature = "test-util")]
#![allow(clippy::unwrap_used)] // tests fail by panicking

use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use retry_runtime::dead_letter::{
    Actor, Aggregate, ArrivalKey, ArrivalSeries, Arrivals, BoxFuture, Capabilities, ClaimRequest, Claimed, DeadLetter,
    DeadLetterSink, DeadLetterStore, Edit, Edited, EventPage, EventQuery, FailureGroups, Filter, Finish, Group,
    GroupNote, GroupOrder, GroupsPage, GroupsRequest, LetterDetail, LetterRow, MemoryStore, Order, Page, PageRequest,
    Release, Revision, Summary, Ticket,
};
use retry_runtime::error::StoreError;
use retry_runtime::testing::conformance;

type Result<T, E = StoreError> = std::result::Result<T, E>;

#[test]
fn the_store_in_memory_passes() {
    conformance::groups(MemoryStore::with_clock).assert_passed();
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

impl DeadLetterSink for Faulty {
    fn submit(&self, letter: DeadLetter) -> Ticket {
        self.inner.submit(letter)
    }
}

impl DeadLetterStore for Faulty {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }
    fn get(&self, letter_id: String) -> BoxFuture<'_, Result<Option<LetterDetail>>> {
        self.inner.get(letter_id)
    }
    fn list(&self, filter: Filter, page: PageRequest) -> BoxFuture<'_, Result<Page>> {
        self.inner.list(filter, page)
    }
    fn count(&self, filter: Filter) -> BoxFuture<'_, Result<u64>> {
        self.inner.count(filter)
    }
    fn summary(&self) -> BoxFuture<'_, Result<Summary>> {
        self.inner.summary()
    }
    fn aggregate(&self, question: Aggregate) -> BoxFuture<'_, Result<Vec<Group>>> {
        self.inner.aggregate(question)
    }
    fn claim(&self, request: ClaimRequest, actor: Actor) -> BoxFuture<'_, Result<Vec<Claimed>>> {
        self.inner.claim(request, actor)
    }
    fn finish(&self, result: Finish, actor: Actor) -> BoxFuture<'_, Result<LetterRow>> {
        self.inner.finish(result, actor)
    }
    fn extend(&self, letter_id: String, fence: u64, lease: Duration) -> BoxFuture<'_, Result<SystemTime>> {
        self.inner.extend(letter_id, fence, lease)
    }
    fn release(&self, letter_id: String, release: Release, actor: Actor) -> BoxFuture<'_, Result<LetterRow>> {
        self.inner.release(letter_id, release, actor)
    }
    fn restore(&self, letter_id: String, more_replays: u32, actor: Actor) -> BoxFuture<'_, Result<LetterRow>> {
        self.inner.restore(letter_id, more_replays, actor)
    }
    fn discard(&self, letter_id: String, actor: Actor) -> BoxFuture<'_, Result<LetterRow>> {
        self.inner.discard(letter_id, actor)
    }
    fn resolve(&self, letter_id: String, actor: Actor) -> BoxFuture<'_, Result<LetterRow>> {
        self.inner.resolve(letter_id, actor)
    }
    fn edit(&self, edit: Edit, actor: Actor) -> BoxFuture<'_, Result<Edited>> {
        self.inner.edit(edit, actor)
    }
    fn revisions(&self, letter_id: String) -> BoxFuture<'_, Result<Vec<Revision>>> {
        self.inner.revisions(letter_id)
    }
    fn events(&self, query: EventQuery) -> BoxFuture<'_, Result<EventPage>> {
        self.inner.events(query)
    }
    fn reap(&self, actor: Actor) -> BoxFuture<'_, Result<Vec<LetterRow>>> {
        self.inner.reap(actor)
    }
    fn give_back(&self, letter_id: &str, fence: u64) {
        self.inner.give_back(letter_id, fence);
    }
}

impl FailureGroups for Faulty {
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
        let report = conformance::groups(|clock| Faulty {
            inner: MemoryStore::with_clock(clock),
            fault: *fault,
            notes: Mutex::default(),
        });
        let failed: Vec<_> = report.failures().map(|outcome| outcome.name).collect();
        for name in *wanted {
            assert!(failed.contains(name), "{fault:?} is not found by {name}, only by {failed:?}");
        }
    }
}
