//! The store in memory, which fails when told to, and counts what it is asked.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use retry_runtime::dead_letter::{
    Actor, Aggregate, BoxFuture, BulkOperations, Capabilities, ClaimRequest, Claimed, DeadLetter, DeadLetterSink,
    DeadLetterStore, Edit, Edited, EventPage, EventQuery, Filter, Finish, Group, ItemOutcome, ItemPage, Leave,
    LetterDetail, LetterRow, MemberClaim, Members, MemoryStore, Operation, OperationRequest, OperationTicket, Page,
    PageRequest, Plan, Release, Revision, Steer, Summary, Ticket,
};
use retry_runtime::error::{StoreError, StoreErrorKind};

type Answer<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

pub(crate) struct Faulty {
    inner: MemoryStore,
    fails: Mutex<Option<StoreErrorKind>>,
    claims: AtomicU32,
    looks: AtomicU32,
}

impl Faulty {
    pub(crate) fn new(inner: MemoryStore) -> Self {
        Self { inner, fails: Mutex::default(), claims: AtomicU32::new(0), looks: AtomicU32::new(0) }
    }

    /// From now on claims and looks at what waits fail so.
    pub(crate) fn fail_with(&self, kind: Option<StoreErrorKind>) {
        *self.fails.lock().unwrap() = kind;
    }

    /// How often letters were claimed, and how often waiting operations were looked for.
    pub(crate) fn asked(&self) -> (u32, u32) {
        (self.claims.load(Ordering::SeqCst), self.looks.load(Ordering::SeqCst))
    }

    fn fault(&self) -> Result<(), StoreError> {
        self.fails.lock().unwrap().map_or(Ok(()), |kind| Err(StoreError::new(kind, "on purpose")))
    }
}

impl DeadLetterSink for Faulty {
    fn submit(&self, letter: DeadLetter) -> Ticket {
        self.inner.submit(letter)
    }
}

macro_rules! through {
    ($(fn $name:ident($($arg:ident: $type:ty),*) -> $out:ty;)*) => {
        $(fn $name(&self, $($arg: $type),*) -> Answer<'_, $out> {
            self.inner.$name($($arg),*)
        })*
    };
}

impl DeadLetterStore for Faulty {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn claim(&self, request: ClaimRequest, actor: Actor) -> Answer<'_, Vec<Claimed>> {
        Box::pin(async move {
            self.claims.fetch_add(1, Ordering::SeqCst);
            self.fault()?;
            self.inner.claim(request, actor).await
        })
    }

    fn aggregate(&self, question: Aggregate) -> Answer<'_, Vec<Group>> {
        Box::pin(async move {
            self.fault()?;
            self.inner.aggregate(question).await
        })
    }

    fn give_back(&self, letter_id: &str, fence: u64) {
        self.inner.give_back(letter_id, fence);
    }

    through! {
        fn get(letter_id: String) -> Option<LetterDetail>;
        fn list(filter: Filter, page: PageRequest) -> Page;
        fn count(filter: Filter) -> u64;
        fn summary() -> Summary;
        fn finish(result: Finish, actor: Actor) -> LetterRow;
        fn extend(letter_id: String, fence: u64, lease: Duration) -> SystemTime;
        fn release(letter_id: String, release: Release, actor: Actor) -> LetterRow;
        fn restore(letter_id: String, more_replays: u32, actor: Actor) -> LetterRow;
        fn discard(letter_id: String, actor: Actor) -> LetterRow;
        fn resolve(letter_id: String, actor: Actor) -> LetterRow;
        fn edit(edit: Edit, actor: Actor) -> Edited;
        fn revisions(letter_id: String) -> Vec<Revision>;
        fn events(query: EventQuery) -> EventPage;
        fn reap(actor: Actor) -> Vec<LetterRow>;
    }
}

impl BulkOperations for Faulty {
    fn waiting(&self, limit: u32) -> Answer<'_, Vec<Operation>> {
        Box::pin(async move {
            self.looks.fetch_add(1, Ordering::SeqCst);
            self.fault()?;
            self.inner.waiting(limit).await
        })
    }

    fn let_go(&self, ticket: &OperationTicket) {
        self.inner.let_go(ticket);
    }

    through! {
        fn plan(request: OperationRequest) -> Plan;
        fn start(request: OperationRequest, actor: Actor) -> Operation;
        fn operation(op_id: String) -> Option<Operation>;
        fn operations(after: Option<String>, limit: u32) -> Vec<Operation>;
        fn items(op_id: String, outcome: Option<ItemOutcome>, after: Option<u64>, limit: u32) -> ItemPage;
        fn steer(op_id: String, steer: Steer, actor: Actor) -> Operation;
        fn take(op_id: String, runner: String, lease: Duration, force: bool, actor: Actor) -> Operation;
        fn keep(ticket: OperationTicket, lease: Duration) -> Operation;
        fn claim_members(ticket: OperationTicket, claim: MemberClaim, actor: Actor) -> Members;
        fn not_started(ticket: OperationTicket, letter_id: String, fence: u64, why: String, actor: Actor) -> LetterRow;
        fn advance(ticket: OperationTicket, limit: u32, actor: Actor) -> Operation;
        fn leave(ticket: OperationTicket, leave: Leave, actor: Actor) -> Operation;
    }
}
