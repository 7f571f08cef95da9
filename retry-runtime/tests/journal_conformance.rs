//! The checks of journals: the store in memory passes, and each fault is found by name.
#![cfg(feature = "test-util")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::sync::Arc;
use std::time::Duration;

use retry_runtime::dead_letter::{
    Actor, Aggregate, BoxFuture, Capabilities, ClaimRequest, Claimed, DeadLetter, DeadLetterSink, DeadLetterStore,
    Edit, Edited, EventPage, EventQuery, Filter, Finish, Group, JobEnd, JobJournal, JournalCounts, LetterDetail,
    LetterRow, MemoryStore, Page, PageRequest, Parking, Payload, Release, Revision, StoreClock, Struck, Summary,
    Ticket,
};
use retry_runtime::error::StoreError;
use retry_runtime::id::Id;
use retry_runtime::reply::Reply;
use retry_runtime::testing::conformance;

type Result<T, E = StoreError> = std::result::Result<T, E>;

fn two(clock: StoreClock) -> (MemoryStore, MemoryStore) {
    let store = MemoryStore::with_clock(clock);
    (store.another(), store)
}

#[test]
fn the_store_in_memory_passes() {
    conformance::journal(two).assert_passed();
    // through references too
    conformance::journal(|clock| {
        let (one, other) = two(clock);
        let boxed: Box<MemoryStore> = Box::new(one);
        (Arc::new(boxed), Arc::new(Box::new(other)))
    })
    .assert_passed();
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    EntryIsALetter,
    SuccessKeepsTheEntry,
    LetterKeepsTheEntry,
    TheDeadStay,
    ClaimForgetsTheDead,
    TheLivingAreReaped,
    LateSuccessIsForgotten,
    LateSuccessClosesAnything,
    PayloadIsNotKept,
    AnotherIdentity,
    TheGuessStays,
}

/// The store in memory with one fault.
struct Faulty {
    inner: MemoryStore,
    fault: Fault,
}

impl Faulty {
    fn is(&self, fault: Fault) -> bool {
        self.fault == fault
    }
}

impl DeadLetterSink for Faulty {
    fn submit(&self, letter: DeadLetter) -> Ticket {
        let is_parked = now(self.inner.count(Filter::all())) > 0;
        if self.is(Fault::TheGuessStays) && is_parked {
            // as a store does to which a known parking says nothing
            let letter_id = letter.park_id.to_string();
            return Reply::ready(Parking::Parked { letter_id });
        }
        let again = letter.clone();
        let ticket = self.inner.submit(letter);
        if self.is(Fault::LetterKeepsTheEntry) {
            // as a store does that removes it in another transaction, and dies in between
            let mut again = again;
            again.park_id = Id::new(again.failed_at);
            drop(self.inner.enter(again));
        }
        ticket
    }
}

impl JobJournal for Faulty {
    fn enter(&self, mut job: DeadLetter) -> Reply<Result<()>> {
        match self.fault {
            Fault::EntryIsALetter => drop(self.inner.submit(job.clone())),
            Fault::PayloadIsNotKept => job.payload = Payload::None,
            Fault::AnotherIdentity => job.park_id = Id::new(job.failed_at),
            Fault::TheLivingAreReaped => return self.inner.another().enter(job),
            _ => {}
        }
        self.inner.enter(job)
    }

    fn strike(&self, park_id: Id, end: JobEnd) -> Reply<Result<Struck>> {
        match self.fault {
            Fault::SuccessKeepsTheEntry => return Reply::ready(Ok(Struck::Removed)),
            Fault::LateSuccessIsForgotten => {
                let letters = self.inner.count(Filter::all());
                if now(letters) > 0 {
                    return Reply::ready(Ok(Struck::Nothing));
                }
            }
            Fault::LateSuccessClosesAnything => {
                let struck = self.inner.strike(park_id, end).wait(Duration::ZERO);
                let rows = now(self.inner.list(Filter::all(), PageRequest::default())).rows;
                for row in rows {
                    let _closed =
                        now(async { Ok(self.inner.resolve(row.letter_id, Actor::new("a", "late")).await.is_ok()) });
                }
                return Reply::ready(struck.ok().unwrap());
            }
            _ => {}
        }
        self.inner.strike(park_id, end)
    }

    fn journalled(&self) -> BoxFuture<'_, Result<JournalCounts>> {
        self.inner.journalled()
    }
}

fn now<T>(future: impl Future<Output = Result<T>>) -> T {
    let mut future = std::pin::pin!(future);
    match future.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop())) {
        std::task::Poll::Ready(value) => value.unwrap(),
        std::task::Poll::Pending => panic!("the store in memory answers at once"),
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
        if self.is(Fault::ClaimForgetsTheDead) {
            return Box::pin(async { Ok(Vec::new()) });
        }
        self.inner.claim(request, actor)
    }
    fn finish(&self, result: Finish, actor: Actor) -> BoxFuture<'_, Result<LetterRow>> {
        self.inner.finish(result, actor)
    }
    fn extend(&self, letter_id: String, fence: u64, lease: Duration) -> BoxFuture<'_, Result<std::time::SystemTime>> {
        self.inner.extend(letter_id, fence, lease)
    }
    fn release(&self, letter_id: String, release: Release, actor: Actor) -> BoxFuture<'_, Result<LetterRow>> {
        self.inner.release(letter_id, release, actor)
    }
    fn restore(&self, letter_id: String, more: u32, actor: Actor) -> BoxFuture<'_, Result<LetterRow>> {
        self.inner.restore(letter_id, more, actor)
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
        if self.is(Fault::TheDeadStay) {
            return Box::pin(async { Ok(Vec::new()) });
        }
        self.inner.reap(actor)
    }
}

// each fault is seen, by the check that is about it
#[test]
fn every_fault_is_found() {
    for (fault, check) in [
        (Fault::EntryIsALetter, "an_entered_job_is_no_letter"),
        (Fault::SuccessKeepsTheEntry, "a_success_removes_the_entry"),
        (Fault::LetterKeepsTheEntry, "a_letter_takes_the_entry_with_it"),
        (Fault::TheDeadStay, "the_job_of_a_dead_process_comes_back"),
        (Fault::ClaimForgetsTheDead, "a_claim_takes_the_jobs_of_the_dead"),
        (Fault::TheLivingAreReaped, "the_jobs_of_a_living_process_stay"),
        (Fault::LateSuccessIsForgotten, "a_late_success_recovers_the_letter"),
        (Fault::LateSuccessClosesAnything, "a_late_success_leaves_other_failures_alone"),
        (Fault::PayloadIsNotKept, "the_job_of_a_dead_process_comes_back"),
        (Fault::AnotherIdentity, "a_late_failure_takes_the_place_of_the_crash"),
        (Fault::TheGuessStays, "a_late_failure_takes_the_place_of_the_crash"),
    ] {
        let report = conformance::journal(|clock| {
            let (one, other) = two(clock);
            (Faulty { inner: one, fault }, Faulty { inner: other, fault })
        });
        let found: Vec<_> = report.failures().map(|outcome| outcome.name).collect();
        assert!(found.contains(&check), "{fault:?} was found by {found:?} alone");
    }
}
