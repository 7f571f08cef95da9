//! The checks of operators' verbs, audit, history and redaction can fail: each fault is found by name.
#![cfg(feature = "test-util")]

use retry_runtime::dead_letter::{
    Actor, BoxFuture, ClaimRequest, DeadLetterStore, Edit, Edited, EventPage, EventQuery, Filter, Finish, LetterDetail,
    LetterRow, MemoryStore, Redactor, Release, ReplayOutcome, Revision, StoreClock,
};
use retry_runtime::error::StoreError;
use retry_runtime::testing::{Faults, Planted, conformance};

type Result<T, E = StoreError> = std::result::Result<T, E>;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    EventMissing,
    EventWithoutActor,
    EditOverwrites,
    EditOfAnythingTaken,
    EditAlwaysWritten,
    HistoryResetByReplay,
    CutUncounted,
    DiscardsWhatIsReplayed,
    ResolveIsAReplay,
    ResolveWithoutReason,
    PayloadsRedactedByDefault,
    ErrorsStoredAsTheyAre,
}

/// The store in memory with one fault.
struct Faulty {
    inner: MemoryStore,
    fault: Fault,
}

impl Faulty {
    fn new(fault: Fault, clock: StoreClock) -> Self {
        let inner = MemoryStore::with_clock(clock);
        let inner = match fault {
            Fault::PayloadsRedactedByDefault => inner.redact_payloads(Redactor::standard()),
            Fault::ErrorsStoredAsTheyAre => inner.redact_errors(Redactor::none()),
            _ => inner,
        };
        Self { inner, fault }
    }
}

impl Faults for Faulty {
    type Inner = MemoryStore;
    fn inner(&self) -> &MemoryStore {
        &self.inner
    }

    fn get(&self, letter_id: String) -> BoxFuture<'_, Result<Option<LetterDetail>>> {
        Box::pin(async move {
            let mut detail = self.inner.get(letter_id).await?;
            if let Some(detail) = &mut detail {
                let newest = detail.history.iter().filter_map(|entry| entry.fence).max();
                if self.fault == Fault::HistoryResetByReplay && newest.is_some() {
                    detail.history.retain(|entry| entry.fence == newest);
                }
                if self.fault == Fault::CutUncounted {
                    detail.history_cut = 0;
                }
            }
            Ok(detail)
        })
    }

    fn discard(&self, letter_id: String, actor: Actor) -> BoxFuture<'_, Result<LetterRow>> {
        Box::pin(async move {
            if self.fault == Fault::DiscardsWhatIsReplayed {
                // Refused for all others.
                let _released = self.inner.release(letter_id.clone(), Release::Forced, actor.clone()).await;
            }
            self.inner.discard(letter_id, actor).await
        })
    }

    fn resolve(&self, letter_id: String, mut actor: Actor) -> BoxFuture<'_, Result<LetterRow>> {
        Box::pin(async move {
            if self.fault == Fault::ResolveWithoutReason {
                actor.reason.push_str("no reason given");
            }
            if self.fault == Fault::ResolveIsAReplay && !actor.reason.trim().is_empty() {
                let mut request = ClaimRequest::new(["fetch"], "fault");
                request.filter = Filter::id(&letter_id);
                if let Some(claimed) = self.inner.claim(request, actor.clone()).await?.pop() {
                    let result = Finish::new(letter_id, claimed.row.fence, ReplayOutcome::Recovered);
                    return self.inner.finish(result, actor).await;
                }
            }
            self.inner.resolve(letter_id, actor).await
        })
    }

    fn edit(&self, mut edit: Edit, actor: Actor) -> BoxFuture<'_, Result<Edited>> {
        Box::pin(async move {
            let known = self.inner.get(edit.letter_id.clone()).await?;
            if let (Fault::EditOfAnythingTaken, Some(detail)) = (self.fault, &known) {
                edit.base_revision = detail.row.payload_revision;
            }
            let mut edited = self.inner.edit(edit, actor).await?;
            edited.is_changed |= self.fault == Fault::EditAlwaysWritten;
            Ok(edited)
        })
    }

    fn revisions(&self, letter_id: String) -> BoxFuture<'_, Result<Vec<Revision>>> {
        Box::pin(async move {
            let mut revisions = self.inner.revisions(letter_id).await?;
            if self.fault == Fault::EditOverwrites {
                let last = revisions.pop();
                revisions = last.into_iter().collect();
                if let Some(only) = revisions.first_mut() {
                    only.revision = 1;
                }
            }
            Ok(revisions)
        })
    }

    fn events(&self, query: EventQuery) -> BoxFuture<'_, Result<EventPage>> {
        Box::pin(async move {
            let mut page = self.inner.events(query).await?;
            if self.fault == Fault::EventMissing {
                page.events.retain(|event| event.what != "released");
            }
            if self.fault == Fault::EventWithoutActor {
                for event in &mut page.events {
                    event.actor = None;
                }
            }
            Ok(page)
        })
    }
}

#[test]
fn each_fault_is_found() {
    let found_by = [
        (Fault::EventMissing, "every_transition_is_written_down_once_and_every_other_refused"),
        (Fault::EventWithoutActor, "every_transition_is_written_down_once_and_every_other_refused"),
        (Fault::EditOverwrites, "an_edit_is_a_revision_of_its_own"),
        (Fault::EditOfAnythingTaken, "an_edit_of_something_else_is_refused"),
        (Fault::EditAlwaysWritten, "the_same_payload_is_no_edit"),
        (Fault::HistoryResetByReplay, "replays_and_edits_leave_the_history_as_it_was"),
        (Fault::CutUncounted, "a_long_history_is_cut_in_its_middle"),
        (Fault::DiscardsWhatIsReplayed, "every_transition_is_written_down_once_and_every_other_refused"),
        (Fault::ResolveIsAReplay, "resolving_by_hand_is_no_replay"),
        (Fault::ResolveWithoutReason, "resolving_by_hand_is_no_replay"),
        (Fault::PayloadsRedactedByDefault, "payloads_are_stored_as_they_are"),
        (Fault::ErrorsStoredAsTheyAre, "no_secret_of_an_error_is_stored"),
        (Fault::ErrorsStoredAsTheyAre, "no_secret_of_a_replay_s_error_is_stored"),
        (Fault::ErrorsStoredAsTheyAre, "the_same_failure_with_another_secret_is_one_group"),
    ];
    for (fault, check) in found_by {
        let report = conformance::letters(|clock| Planted(Faulty::new(fault, clock)));
        let failed: Vec<_> = report.failures().map(|outcome| outcome.name).collect();
        assert!(failed.contains(&check), "{fault:?} is not found by {check}, only by {failed:?}");
    }
}
