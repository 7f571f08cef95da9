//! Groups of failures over the store's two threads.

use std::sync::Arc;

use retry_runtime::dead_letter::{
    Actor, ArrivalSeries, Arrivals, BoxFuture, FailureGroups, GroupNote, GroupsPage, GroupsRequest,
};
use retry_runtime::error::StoreError;

use super::SqliteStore;
use super::verbs::later;
use crate::groups;

impl FailureGroups for SqliteStore {
    fn groups(&self, request: GroupsRequest) -> BoxFuture<'_, Result<GroupsPage, StoreError>> {
        let (scope, now) = (Arc::clone(&self.handle.scope), self.handle.clock.now());
        later(move || self.handle.reader.ask("group failures", move |c| groups::groups(c, &scope, &request, now)))
    }

    fn note(&self, fingerprint: String, text: String, actor: Actor) -> BoxFuture<'_, Result<GroupNote, StoreError>> {
        later(move || {
            self.handle.change(
                "note something about a group",
                move |tx| groups::note(tx, &fingerprint, &text, &actor).map(Ok),
                |_, _| (),
            )
        })
    }

    fn notes(&self, fingerprint: String) -> BoxFuture<'_, Result<Vec<GroupNote>, StoreError>> {
        let scope = Arc::clone(&self.handle.scope);
        later(move || self.handle.reader.ask("read notes", move |c| groups::notes(c, &scope, &fingerprint)))
    }

    fn arrivals(&self, question: Arrivals) -> BoxFuture<'_, Result<Vec<ArrivalSeries>, StoreError>> {
        let scope = Arc::clone(&self.handle.scope);
        Box::pin(async move {
            question.check()?;
            self.handle.reader.ask("read arrivals", move |c| groups::arrivals(c, &scope, &question)).await?
        })
    }
}
