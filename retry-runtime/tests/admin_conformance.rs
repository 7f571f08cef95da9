//! The checks of what operators do to a whole store: the store in memory passes them, and ones with one fault each do not.
#![cfg(feature = "test-util")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::sync::Arc;
use std::time::Duration;

use retry_runtime::dead_letter::{
    Actor, BoxFuture, ClaimRequest, DeadLetter, DeadLetterSink, DeadLetterStore, DueReport, EraseReport, EraseRequest,
    ExportPage, ExportRequest, Failure, Filter, Finish, Imported, LetterRecord, LetterState, MemoryStore, PruneReport,
    PruneRequest, ReplayOutcome, Retention, StoreAdmin,
};
use retry_runtime::error::StoreError;
use retry_runtime::id::Id;
use retry_runtime::testing::conformance;

#[test]
fn the_store_in_memory_passes() {
    conformance::admin(MemoryStore::with_clock).assert_passed();
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    TakesParkedLetters,
    ForgetsTheKinds,
    KeepsALittleLonger,
    IgnoresTheLimit,
    DeletesInADryRun,
    CountsNothing,
    KnowsNothingAhead,
    ImportsTwice,
    ForgetsTheHistory,
    ForgetsEdits,
    TakesTheirWord,
    ErasesNothing,
    ErasesEveryKind,
    NamesWhatItErased,
}

struct Faulty(Fault, Arc<MemoryStore>);

impl Faulty {
    /// Closes whatever is parked, so that it can be deleted.
    async fn close_everything(&self) {
        let mut request = ClaimRequest::new(["fetch", "store", "long", "kept", "other"], "faulty");
        request.limit = 100;
        request.ignore_backoff = true;
        request.ignore_not_before = true;
        for claimed in self.1.claim(request, actor()).await.unwrap() {
            let failure = Failure::from("gone");
            let result = Finish::new(claimed.row.letter_id, claimed.row.fence, ReplayOutcome::Gone(failure));
            self.1.finish(result, actor()).await.unwrap();
        }
    }
}

fn actor() -> Actor {
    Actor::new("faulty", "")
}

impl StoreAdmin for Faulty {
    fn prune(&self, mut request: PruneRequest, actor: Actor) -> BoxFuture<'_, Result<PruneReport, StoreError>> {
        Box::pin(async move {
            match self.0 {
                Fault::TakesParkedLetters => self.close_everything().await,
                Fault::ForgetsTheKinds => request.retention.kinds.clear(),
                Fault::KeepsALittleLonger => {
                    for kept in request.retention.kinds.values_mut().chain([&mut request.retention.usual]) {
                        kept.recovered = kept.recovered.map(|kept| kept + Duration::from_millis(1));
                    }
                }
                Fault::IgnoresTheLimit => request.limit = None,
                Fault::DeletesInADryRun => request.dry_run = false,
                _ => {}
            }
            let mut report = self.1.prune(request, actor).await?;
            if self.0 == Fault::CountsNothing {
                report.letters.clear();
            }
            Ok(report)
        })
    }

    fn due_within(&self, retention: Retention, within: Duration) -> BoxFuture<'_, Result<DueReport, StoreError>> {
        let known = self.0 != Fault::KnowsNothingAhead;
        Box::pin(async move {
            let report = self.1.due_within(retention, within).await?;
            Ok(if known { report } else { DueReport::default() })
        })
    }

    fn erase(&self, mut request: EraseRequest, actor: Actor) -> BoxFuture<'_, Result<EraseReport, StoreError>> {
        Box::pin(async move {
            match self.0 {
                Fault::ErasesNothing => return Ok(EraseReport::default()),
                Fault::ErasesEveryKind => request.kind = None,
                _ => {}
            }
            let job = request.job_id.clone();
            let report = self.1.erase(request, actor).await?;
            if self.0 == Fault::NamesWhatItErased {
                self.1.erase(EraseRequest::job(""), Actor::new("faulty", job)).await?;
            }
            Ok(report)
        })
    }

    fn export(&self, request: ExportRequest) -> BoxFuture<'_, Result<ExportPage, StoreError>> {
        Box::pin(async move {
            let mut page = self.1.export(request).await?;
            for record in &mut page.records {
                match self.0 {
                    Fault::ForgetsTheHistory => record.history.truncate(1),
                    Fault::ForgetsEdits => record.revisions.truncate(1),
                    _ => {}
                }
                record.row.payload_revision =
                    record.row.payload_revision.min(record.revisions.len().try_into().unwrap());
            }
            Ok(page)
        })
    }

    fn import(&self, mut records: Vec<LetterRecord>, actor: Actor) -> BoxFuture<'_, Result<Vec<Imported>, StoreError>> {
        Box::pin(async move {
            for record in &mut records {
                match self.0 {
                    Fault::ImportsTwice => {
                        for parking in &mut record.parkings {
                            parking.park_id = Id::new(std::time::SystemTime::now());
                        }
                    }
                    Fault::TakesTheirWord if record.row.state == LetterState::Recovered => {
                        self.close_everything().await;
                    }
                    _ => {}
                }
            }
            self.1.import(records, actor).await
        })
    }
}

#[test]
fn each_planted_fault_is_caught() {
    for (fault, by) in [
        (Fault::TakesParkedLetters, "what_is_owed_is_never_pruned"),
        (Fault::ForgetsTheKinds, "each_kind_and_state_has_its_own_time"),
        (Fault::KeepsALittleLonger, "each_kind_and_state_has_its_own_time"),
        (Fault::IgnoresTheLimit, "a_limit_takes_the_oldest_and_says_that_there_is_more"),
        (Fault::DeletesInADryRun, "a_dry_run_deletes_nothing_and_says_the_same"),
        (Fault::CountsNothing, "every_deletion_is_counted_and_dated"),
        (Fault::KnowsNothingAhead, "what_is_due_is_known_ahead"),
        (Fault::ImportsTwice, "importing_again_changes_nothing"),
        (Fault::ImportsTwice, "a_store_takes_nothing_of_itself"),
        (Fault::ForgetsTheHistory, "importing_again_changes_nothing"),
        (Fault::ForgetsEdits, "importing_again_changes_nothing"),
        (Fault::ErasesNothing, "everything_of_a_job_is_erased_and_nothing_else"),
        (Fault::ErasesNothing, "an_erased_job_does_not_come_back"),
        (Fault::ErasesEveryKind, "everything_of_a_job_is_erased_and_nothing_else"),
        (Fault::NamesWhatItErased, "the_audit_of_an_erasure_does_not_name_the_job"),
        (Fault::TakesTheirWord, "what_is_owed_here_stays_owed"),
    ] {
        let report = conformance::admin_by(|clock| {
            let store = Arc::new(MemoryStore::with_clock(clock));
            (Arc::clone(&store), Faulty(fault, store))
        });
        assert!(report.failures().any(|failed| failed.name == by), "{fault:?} was not caught by {by}\n{report}");
    }
}

// E84: an operation's own texts are cleaned, and what it needs is told
#[tokio::test]
async fn what_names_an_erased_job_in_memory_is_removed_or_told() {
    use retry_runtime::dead_letter::{BulkOperations, FailureGroups, JobJournal, OperationRequest, Verb};
    let store = MemoryStore::new();
    let key = "say \"bob\"";
    let mut letter = DeadLetter::new("fetch", retry_runtime::StopReason::Exhausted, std::time::SystemTime::now());
    letter.job_id = Some(key.to_owned());
    assert!(store.submit(letter.clone()).await.is_kept());
    letter.park_id = Id::new(letter.failed_at);
    store.enter(letter).await.unwrap();
    let ann = || Actor::new("ann", format!("ticket 9: {key} complains"));
    let mut filter = Filter::parked();
    filter.job_ids = vec![key.to_owned()];
    let op = store.start(OperationRequest::new(Verb::Replay, filter), ann()).await.unwrap();
    store.note("f".to_owned(), format!("seen with {key}"), ann()).await.unwrap();
    let report = store.erase(EraseRequest::job(key), Actor::new("a", "b")).await.unwrap();
    assert!(report.left.len() == 1 && report.left.iter().all(|left| left.contains(&op.id)), "{report}");
    assert_eq!(report.journal_entries, 1);
    assert_eq!(store.operation(op.id).await.unwrap().unwrap().actor.reason, "ticket 9: [erased] complains");
    let notes = store.notes("f".to_owned()).await.unwrap();
    assert!(notes.iter().all(|note| note.text == "seen with [erased]") && notes.len() == 1, "{notes:?}");
}
