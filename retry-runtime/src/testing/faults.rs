//! A store with faults of a test's own.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::time::{Duration, SystemTime};

use crate::counters::{DailyCounters, Day, Degraded, Threshold, Thresholds};
use crate::dead_letter::{
    Actor, Aggregate, ArrivalSeries, Arrivals, BoxFuture, BulkOperations, Capabilities, Checkup, ClaimRequest, Claimed,
    DeadLetter, DeadLetterSink, DeadLetterStore, Doctor, DueReport, Edit, Edited, EraseReport, EraseRequest, EventPage,
    EventQuery, ExportPage, ExportRequest, FailureGroups, Filter, Finding, Finish, Group, GroupNote, GroupsPage,
    GroupsRequest, Imported, Incident, ItemOutcome, ItemPage, JobEnd, JobJournal, JournalCounts, Leave, LetterDetail,
    LetterRecord, LetterRow, MemberClaim, Members, Operation, OperationRequest, OperationTicket, Oversight, Overview,
    Page, PageRequest, Plan, PruneReport, PruneRequest, Release, Retention, Revision, Steer, StoreAdmin, StoreFacts,
    Struck, Summary, Ticket,
};
use crate::error::StoreError;
use crate::id::Id;
use crate::kept::StateStore;
use crate::ledger::{
    AttemptLedger, Begin, End, LedgerBooks, LedgerCounts, LedgerEntry, LedgerKey, LedgerPage, LedgerQuery, LedgerToken,
};
use crate::reply::Reply;

/// What a verb of a store gives.
type Answer<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// Writes each signature once: the verb with the inner store's answer, and the store that asks for it.
macro_rules! verbs {
    ($($of:ident { $(fn $name:ident($($arg:ident: $type:ty),*) $(-> $out:ty)?;)* })*) => {
        /// A store that is another one, but for the verbs given here: for tests of what happens when a store fails, lies or
        /// is slow. Every verb of every store trait is there, and asks the inner store unless it is written otherwise; what
        /// the inner store does not implement is not there.
        ///
        /// [`Planted`] makes a store of it:
        ///
        /// ```
        /// use retry_runtime::DeadLetterStore;
        /// use retry_runtime::dead_letter::{Actor, BoxFuture, ClaimRequest, Claimed, Filter, MemoryStore};
        /// use retry_runtime::error::{StoreError, StoreErrorKind};
        /// use retry_runtime::testing::{Faults, Planted};
        ///
        /// struct NobodyClaims(MemoryStore);
        ///
        /// impl Faults for NobodyClaims {
        ///     type Inner = MemoryStore;
        ///     fn inner(&self) -> &MemoryStore {
        ///         &self.0
        ///     }
        ///     fn claim(&self, _: ClaimRequest, _: Actor) -> BoxFuture<'_, Result<Vec<Claimed>, StoreError>> {
        ///         Box::pin(async { Err(StoreError::new(StoreErrorKind::Busy, "on purpose")) })
        ///     }
        /// }
        ///
        /// # #[tokio::main(flavor = "current_thread")] async fn main() {
        /// let store = Planted(NobodyClaims(MemoryStore::new()));
        /// let claimed = store.claim(ClaimRequest::new(["fetch"], "test"), Actor::new("test", "")).await;
        /// assert_eq!(claimed.unwrap_err().kind(), StoreErrorKind::Busy);
        /// assert_eq!(store.count(Filter::all()).await.unwrap(), 0);
        /// # }
        /// ```
        #[allow(missing_docs)] // each verb is that of the store's trait
        pub trait Faults: Send + Sync + 'static {
            /// The store behind it.
            type Inner: Send + Sync + 'static;
            /// The store behind it.
            fn inner(&self) -> &Self::Inner;
            $($(
                fn $name(&self, $($arg: $type),*) $(-> $out)? where Self::Inner: $of {
                    <Self::Inner as $of>::$name(self.inner(), $($arg),*)
                }
            )*)*
        }

        $(
            impl<F: Faults> $of for Planted<F> where F::Inner: $of {
                $(
                    fn $name(&self, $($arg: $type),*) $(-> $out)? {
                        F::$name(&self.0, $($arg),*)
                    }
                )*
            }
        )*
    };
}

/// A store with [`Faults`]: every store trait that the inner store has.
#[derive(Debug)]
pub struct Planted<F>(pub F);

impl<F> Deref for Planted<F> {
    type Target = F;
    fn deref(&self) -> &F {
        &self.0
    }
}

verbs! {
    DeadLetterSink {
        fn submit(letter: DeadLetter) -> Ticket;
    }
    DeadLetterStore {
        fn capabilities() -> Capabilities;
        fn get(letter_id: String) -> Answer<'_, Option<LetterDetail>>;
        fn list(filter: Filter, page: PageRequest) -> Answer<'_, Page>;
        fn count(filter: Filter) -> Answer<'_, u64>;
        fn summary() -> Answer<'_, Summary>;
        fn aggregate(question: Aggregate) -> Answer<'_, Vec<Group>>;
        fn claim(request: ClaimRequest, actor: Actor) -> Answer<'_, Vec<Claimed>>;
        fn finish(result: Finish, actor: Actor) -> Answer<'_, LetterRow>;
        fn extend(letter_id: String, fence: u64, lease: Duration) -> Answer<'_, SystemTime>;
        fn release(letter_id: String, release: Release, actor: Actor) -> Answer<'_, LetterRow>;
        fn restore(letter_id: String, more_replays: u32, actor: Actor) -> Answer<'_, LetterRow>;
        fn discard(letter_id: String, actor: Actor) -> Answer<'_, LetterRow>;
        fn resolve(letter_id: String, actor: Actor) -> Answer<'_, LetterRow>;
        fn edit(edit: Edit, actor: Actor) -> Answer<'_, Edited>;
        fn revisions(letter_id: String) -> Answer<'_, Vec<Revision>>;
        fn events(query: EventQuery) -> Answer<'_, EventPage>;
        fn reap(actor: Actor) -> Answer<'_, Vec<LetterRow>>;
        fn give_back(letter_id: &str, fence: u64);
    }
    BulkOperations {
        fn plan(request: OperationRequest) -> Answer<'_, Plan>;
        fn start(request: OperationRequest, actor: Actor) -> Answer<'_, Operation>;
        fn operation(op_id: String) -> Answer<'_, Option<Operation>>;
        fn operations(after: Option<String>, limit: u32) -> Answer<'_, Vec<Operation>>;
        fn waiting(limit: u32) -> Answer<'_, Vec<Operation>>;
        fn items(op_id: String, outcome: Option<ItemOutcome>, after: Option<u64>, limit: u32) -> Answer<'_, ItemPage>;
        fn steer(op_id: String, steer: Steer, actor: Actor) -> Answer<'_, Operation>;
        fn take(op_id: String, runner: String, lease: Duration, force: bool, actor: Actor) -> Answer<'_, Operation>;
        fn keep(ticket: OperationTicket, lease: Duration) -> Answer<'_, Operation>;
        fn claim_members(ticket: OperationTicket, claim: MemberClaim, actor: Actor) -> Answer<'_, Members>;
        fn not_started(ticket: OperationTicket, letter_id: String, fence: u64, why: String, actor: Actor) -> Answer<'_, LetterRow>;
        fn advance(ticket: OperationTicket, limit: u32, actor: Actor) -> Answer<'_, Operation>;
        fn leave(ticket: OperationTicket, leave: Leave, actor: Actor) -> Answer<'_, Operation>;
        fn let_go(ticket: &OperationTicket);
    }
    StoreAdmin {
        fn prune(request: PruneRequest, actor: Actor) -> Answer<'_, PruneReport>;
        fn due_within(retention: Retention, within: Duration) -> Answer<'_, DueReport>;
        fn erase(request: EraseRequest, actor: Actor) -> Answer<'_, EraseReport>;
        fn export(request: ExportRequest) -> Answer<'_, ExportPage>;
        fn import(records: Vec<LetterRecord>, actor: Actor) -> Answer<'_, Vec<Imported>>;
    }
    FailureGroups {
        fn groups(request: GroupsRequest) -> Answer<'_, GroupsPage>;
        fn note(fingerprint: String, text: String, actor: Actor) -> Answer<'_, GroupNote>;
        fn notes(fingerprint: String) -> Answer<'_, Vec<GroupNote>>;
        fn arrivals(question: Arrivals) -> Answer<'_, Vec<ArrivalSeries>>;
    }
    JobJournal {
        fn enter(job: DeadLetter) -> Reply<Result<(), StoreError>>;
        fn strike(park_id: Id, end: JobEnd) -> Reply<Result<Struck, StoreError>>;
        fn journalled() -> Answer<'_, JournalCounts>;
    }
    Doctor {
        fn doctor(checkup: Checkup) -> Answer<'_, Vec<Finding>>;
    }
    AttemptLedger {
        fn begin(key: LedgerKey, max_attempts: u32) -> Reply<Result<Begin, StoreError>>;
        fn end(key: LedgerKey, token: LedgerToken, end: End) -> Reply<Result<bool, StoreError>>;
        fn entry(key: LedgerKey) -> Answer<'_, Option<LedgerEntry>>;
        fn entries(scope: String, after: Option<String>, limit: u32) -> Answer<'_, Vec<LedgerEntry>>;
        fn reset(key: LedgerKey, actor: Actor) -> Answer<'_, Option<LedgerEntry>>;
    }
    LedgerBooks {
        fn page(query: LedgerQuery) -> Answer<'_, LedgerPage>;
        fn counts(scope: String) -> Answer<'_, LedgerCounts>;
        fn scopes() -> Answer<'_, Vec<String>>;
    }
    StateStore {
        fn keep_state(name: String, state: String) -> Reply<Result<(), StoreError>>;
        fn kept_state(name: String) -> Reply<Result<Option<String>, StoreError>>;
    }
    DailyCounters {
        fn add(operation: &str, counter: &str, n: u64) -> Reply<Result<(), StoreError>>;
        fn flush() -> Reply<Result<(), StoreError>>;
        fn today() -> Day;
        fn day(operation: String, day: Day) -> Answer<'_, BTreeMap<String, u64>>;
        fn series(operation: String, counter: String, from: Day, to: Day) -> Answer<'_, Vec<(Day, u64)>>;
        fn recent(operation: String, counter: String, days: u32) -> Answer<'_, Vec<(Day, u64)>>;
    }
    Thresholds {
        fn set_threshold(operation: String, counter: String, above: u64, actor: Actor) -> Answer<'_, Threshold>;
        fn remove_threshold(operation: String, counter: String, actor: Actor) -> Answer<'_, Option<Threshold>>;
        fn thresholds() -> Answer<'_, Vec<Threshold>>;
        fn counters(from: Day, to: Day) -> Answer<'_, Vec<(String, String)>>;
        fn degraded(day: Day) -> Answer<'_, Vec<Degraded>>;
    }
    Oversight {
        fn record(incident: Incident, letter_id: Option<String>, detail: String, actor: Actor) -> Answer<'_, ()>;
    }
    Overview {
        fn facts() -> Answer<'_, StoreFacts>;
        fn find(text: String, limit: u32) -> Answer<'_, Vec<LetterRow>>;
    }
}
