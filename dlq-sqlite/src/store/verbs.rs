//! The runtime's traits over the store's two threads.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use retry_runtime::dead_letter::{
    Actor, Aggregate, BoxFuture, Capabilities, ClaimRequest, Claimed, DeadLetter, DeadLetterSink, DeadLetterStore,
    Edit, Edited, EventPage, EventQuery, Filter, Finish, Group, LetterDetail, LetterRow, Page, PageRequest, Parking,
    Release, Revision, Summary, Ticket,
};
use retry_runtime::error::{StoreError, StoreErrorKind};
use retry_runtime::reply::Reply;
use rusqlite::Connection;

use super::unheard::{Unheard, by_the_store};
use super::{Handle, SqliteStore, change, closed};
use crate::claim::Taken;
use crate::payload::Payloads;
use crate::worker::queue::{Command, Pending};
use crate::{claim, events, hand, journal, letters, worker};

impl DeadLetterSink for SqliteStore {
    fn submit(&self, letter: DeadLetter) -> Ticket {
        let (answer, ticket) = Reply::pair(|| Parking::Lost { because: closed() });
        let letter = self.handle.shared.intake.letter(letter);
        let pending = Box::new(Pending { letter, answer, letter_id: None, prepared: None });
        if let Err(Command::Park(pending)) = self.handle.shared.queue.push(Command::Park(pending)) {
            self.handle.late.spill(&self.handle.shared, pending);
        }
        ticket
    }
}

/// A verb of the traits: nothing happens before it is awaited.
pub(super) fn later<'a, T: Send + 'a>(
    start: impl FnOnce() -> Reply<Result<T, StoreError>> + Send + 'a,
) -> BoxFuture<'a, Result<T, StoreError>> {
    Box::pin(async move { start().await })
}

impl DeadLetterStore for SqliteStore {
    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::default();
        capabilities.heartbeats = true;
        capabilities.durable = true;
        capabilities.shared = true;
        capabilities
    }

    fn get(&self, letter_id: String) -> BoxFuture<'_, Result<Option<LetterDetail>, StoreError>> {
        let (scope, shared) = (Arc::clone(&self.handle.scope), Arc::clone(&self.handle.shared));
        later(move || {
            let ask = move |c: &Connection| letters::get(c, &shared.payloads, &scope, &letter_id);
            self.handle.reader.ask("read a letter", ask)
        })
    }

    fn list(&self, filter: Filter, page: PageRequest) -> BoxFuture<'_, Result<Page, StoreError>> {
        let scope = Arc::clone(&self.handle.scope);
        later(move || self.handle.reader.ask("list letters", move |c| letters::list(c, &scope, &filter, &page)))
    }

    fn count(&self, filter: Filter) -> BoxFuture<'_, Result<u64, StoreError>> {
        let scope = Arc::clone(&self.handle.scope);
        later(move || self.handle.reader.ask("count letters", move |c| letters::count(c, &scope, &filter)))
    }

    fn summary(&self) -> BoxFuture<'_, Result<Summary, StoreError>> {
        let (scope, clock) = (Arc::clone(&self.handle.scope), self.handle.clock.clone());
        Box::pin(async move {
            let ask = self.handle.reader.ask("sum letters up", move |c| {
                let mut summary = letters::summary(c, &scope)?;
                summary.orphaned = journal::counts(c, &scope, clock.now())?.orphaned;
                Ok(summary)
            });
            let mut summary = ask.await?;
            summary.spilled = self.handle.shared.spill.waiting()?;
            summary.set_aside = self.set_aside_files().len() as u64;
            Ok(summary)
        })
    }

    fn aggregate(&self, question: Aggregate) -> BoxFuture<'_, Result<Vec<Group>, StoreError>> {
        let scope = Arc::clone(&self.handle.scope);
        later(move || self.handle.reader.ask("group letters", move |c| letters::aggregate(c, &scope, &question)))
    }

    fn claim(&self, request: ClaimRequest, actor: Actor) -> BoxFuture<'_, Result<Vec<Claimed>, StoreError>> {
        Box::pin(async move {
            request.check()?;
            self.handle.note_claimed(&request.kinds);
            let places = Arc::clone(&self.handle.places);
            let (lease, keep_alive, clock) = (request.lease, request.keep_alive, self.handle.clock.clone());
            let shared = Arc::clone(&self.handle.shared);
            let answer = self.handle.change(
                "claim letters",
                move |tx| claim::claim(tx, &request, &places, &actor).map(|taken| Ok((taken, Unheard::default()))),
                move |answer, leases| {
                    let Ok((taken, unheard)) = answer else { return };
                    unheard.letters(&shared, taken);
                    if keep_alive {
                        for Taken { row, .. } in taken {
                            leases.hold(row.letter_id.clone(), row.fence, lease, clock.now());
                        }
                    }
                },
            );
            let (taken, unheard) = answer.await?;
            let claimed = self.handle.decode(taken).await?;
            unheard.heard();
            Ok(claimed)
        })
    }

    fn finish(&self, result: Finish, actor: Actor) -> BoxFuture<'_, Result<LetterRow, StoreError>> {
        let result = self.handle.shared.intake.finish(result);
        let (letter_id, fence) = (result.letter_id.clone(), result.fence);
        later(move || {
            self.handle.change(
                "write a replay's result",
                move |tx| claim::finish(tx, &result, &actor),
                move |done, leases| {
                    if settled(done) {
                        leases.drop_held(&letter_id, fence);
                    }
                },
            )
        })
    }

    fn extend(&self, letter_id: String, fence: u64, lease: Duration) -> BoxFuture<'_, Result<SystemTime, StoreError>> {
        later(move || {
            self.handle.change("extend a lease", move |tx| claim::extend(tx, &letter_id, fence, lease), |_, _| ())
        })
    }

    fn release(
        &self,
        letter_id: String,
        release: Release,
        actor: Actor,
    ) -> BoxFuture<'_, Result<LetterRow, StoreError>> {
        later(move || self::release(&self.handle.shared, letter_id, release, actor))
    }

    fn restore(
        &self,
        letter_id: String,
        more_replays: u32,
        actor: Actor,
    ) -> BoxFuture<'_, Result<LetterRow, StoreError>> {
        later(move || {
            self.handle.change(
                "restore a letter",
                move |tx| hand::restore(tx, &letter_id, more_replays, &actor),
                |_, _| (),
            )
        })
    }

    fn discard(&self, letter_id: String, actor: Actor) -> BoxFuture<'_, Result<LetterRow, StoreError>> {
        later(move || {
            self.handle.change("discard a letter", move |tx| hand::discard(tx, &letter_id, &actor), |_, _| ())
        })
    }

    fn resolve(&self, letter_id: String, actor: Actor) -> BoxFuture<'_, Result<LetterRow, StoreError>> {
        later(move || {
            self.handle.change("resolve a letter", move |tx| hand::resolve(tx, &letter_id, &actor), |_, _| ())
        })
    }

    fn edit(&self, edit: Edit, actor: Actor) -> BoxFuture<'_, Result<Edited, StoreError>> {
        later(move || match edit.check() {
            Ok(()) => self.handle.change("edit a letter", move |tx| hand::edit(tx, &edit, &actor), |_, _| ()),
            Err(invalid) => Reply::ready(Err(invalid)),
        })
    }

    fn revisions(&self, letter_id: String) -> BoxFuture<'_, Result<Vec<Revision>, StoreError>> {
        let scope = Arc::clone(&self.handle.scope);
        let shared = Arc::clone(&self.handle.shared);
        let ask = move |c: &Connection| events::revisions(c, &shared.payloads, &scope, &letter_id);
        later(move || self.handle.reader.ask("read payloads", ask))
    }

    fn events(&self, query: EventQuery) -> BoxFuture<'_, Result<EventPage, StoreError>> {
        let scope = Arc::clone(&self.handle.scope);
        later(move || self.handle.reader.ask("read events", move |c| events::events(c, &scope, &query)))
    }

    fn reap(&self, actor: Actor) -> BoxFuture<'_, Result<Vec<LetterRow>, StoreError>> {
        later(move || self.handle.change("take leases back", move |tx| claim::reap(tx, &actor).map(Ok), |_, _| ()))
    }

    fn give_back(&self, letter_id: &str, fence: u64) {
        // Nobody waits: a lease that cannot be given back runs out.
        let release = Release::Held { fence };
        let _unheard = self::release(&self.handle.shared, letter_id.to_owned(), release, by_the_store());
    }
}

impl Handle {
    /// Decodes what was claimed: large payloads on the thread that reads, so that the caller's executor is not held up.
    pub(super) async fn decode(&self, taken: Vec<Taken>) -> Result<Vec<Claimed>, StoreError> {
        let (large, small): (Vec<_>, Vec<_>) = taken.into_iter().enumerate().partition(|(_, t)| t.payload.is_large());
        let decode = |payloads: &Payloads, some: Vec<(usize, Taken)>| -> Vec<(usize, Claimed)> {
            some.into_iter().map(|(index, taken)| (index, taken.decode(payloads))).collect()
        };
        let mut claimed = decode(&self.shared.payloads, small);
        if !large.is_empty() {
            let shared = Arc::clone(&self.shared);
            claimed.extend(self.reader.run(large, move |large| decode(&shared.payloads, large)).await?);
            claimed.sort_by_key(|(index, _)| *index);
        }
        Ok(claimed.into_iter().map(|(_, claimed)| claimed).collect())
    }
}

pub(super) fn release(
    shared: &worker::Shared,
    letter_id: String,
    release: Release,
    actor: Actor,
) -> Reply<Result<LetterRow, StoreError>> {
    let held = letter_id.clone();
    change(
        shared,
        "release a letter",
        move |tx| claim::release(tx, &letter_id, release, &actor),
        move |done, leases| {
            if let (Some(fence), true) = (release.fence(), settled(done)) {
                leases.drop_held(&held, fence);
            }
        },
    )
}

/// Whether the lease this was about is over: it was written, or it had gone already.
pub(super) fn settled<T>(done: &Result<T, StoreError>) -> bool {
    done.as_ref().map_or_else(|error| error.kind() == StoreErrorKind::StaleLease, |_| true)
}
