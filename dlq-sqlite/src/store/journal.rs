//! The journal over the store's two threads.

use std::sync::Arc;

use retry_runtime::dead_letter::{BoxFuture, DeadLetter, JobEnd, JobJournal, JournalCounts, Struck};
use retry_runtime::error::{StoreError, StoreErrorKind};
use retry_runtime::id::Id;
use retry_runtime::reply::Reply;

use super::SqliteStore;
use super::verbs::later;
use crate::journal;

impl JobJournal for SqliteStore {
    fn enter(&self, job: DeadLetter) -> Reply<Result<(), StoreError>> {
        let job = self.handle.shared.intake.letter(job);
        let (owner, lease) = (Arc::clone(&self.handle.shared.owner), self.handle.settings.owner_lease);
        let clock = self.handle.clock.clone();
        self.handle.change(
            "write a job down",
            move |tx| journal::enter(tx, &owner, lease, &job).map(Ok),
            move |entered, leases| {
                if entered.is_ok() {
                    leases.own(clock.now(), lease);
                }
            },
        )
    }

    fn strike(&self, park_id: Id, end: JobEnd) -> Reply<Result<Struck, StoreError>> {
        self.handle.change(
            "strike a job out",
            move |tx| journal::strike(tx, park_id, end).map(Ok),
            move |struck, leases| {
                // It is done: nobody may do it again because the store was down.
                if struck.as_ref().is_err_and(|error| error.kind() != StoreErrorKind::Closed) {
                    leases.unstruck.push((park_id, end));
                }
            },
        )
    }

    fn journalled(&self) -> BoxFuture<'_, Result<JournalCounts, StoreError>> {
        let (scope, clock) = (Arc::clone(&self.handle.scope), self.handle.clock.clone());
        later(move || self.handle.reader.ask("count the journal", move |c| journal::counts(c, &scope, clock.now())))
    }
}
