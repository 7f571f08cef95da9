//! Dead letters: what is kept of a job that was given up, and who keeps it.

mod admin;
mod aggregate;
mod bounds;
mod claim;
mod clock;
mod diff;
mod doctor;
mod event;
pub(crate) mod executor;
mod filter;
mod fingerprint;
mod groups;
mod hand;
mod handover;
mod history;
mod intake;
mod journal;
mod letter;
mod losses;
mod memory;
mod operations;
mod page;
mod record;
mod redact;
mod replay;
mod restore;
mod revision;
mod rules;
mod scope;
mod sha256;
mod sink;
mod spill;
mod state;
mod store;
mod summary;

pub use admin::{
    DueReport, ERASED, EXPORT_PAGE_BYTES, EraseReport, EraseRequest, ExportPage, ExportRequest, Exporter, ImportReport,
    Imported, Importer, Joined, KindRetention, KnownLetter, LetterRecord, ParkingRecord, PruneReport, PruneRequest,
    Pruned, Retention, StoreAdmin,
};
pub use aggregate::{Aggregate, Bucket, Group, GroupKey};
pub use bounds::{MAX_LABEL, MAX_NAME, name_within};
pub use claim::{Actor, ClaimRequest, Claimed, Failure, Finish, Release, ReplayOutcome, replay_backoff};
pub use clock::{ManualClock, StoreClock, from_millis, to_millis, whole_millis};
pub use diff::{Change, PayloadDiff};
pub use doctor::{Checkup, Counted, Depth, Doctor, Finding, LetterFacts, Severity};
pub use event::{EventPage, EventQuery, EventRecord, EventsOf};
pub use filter::Filter;
pub use fingerprint::{FINGERPRINT_VERSION, fingerprint};
pub use groups::{
    ArrivalKey, ArrivalSeries, Arrivals, FailureGroup, FailureGroups, FirstGroups, GroupCounts, GroupCursor, GroupNote,
    GroupOrder, GroupsPage, GroupsRequest, Trend,
};
pub use hand::{
    CLOSED_ABANDONED, CLOSED_BY_HAND, CLOSED_DISCARDED, CLOSED_GONE, CLOSED_RECOVERED, Edit, Edited, MAX_ACTOR_NAME,
    MAX_ACTOR_REASON,
};
pub use handover::{AsyncSink, BlockingSink, Closed};
pub use history::{HistorySize, MAX_HISTORY_BYTES, MAX_HISTORY_ENTRIES, message_size};
pub use intake::Intake;
pub use journal::{JobEnd, JobJournal, JournalCounts, OWNER_LEASE, Struck, crashed};
pub use letter::{DeadLetter, Payload};
pub(crate) use losses::loss_is_said;
pub use losses::{give_back_losses, lose, lost, take_losses};
pub use memory::MemoryStore;
pub use operations::{
    BulkOperations, ItemOutcome, ItemPage, Leave, MemberClaim, MemberStep, Members, Next, Operation, OperationItem,
    OperationOptions, OperationRequest, OperationStatus, OperationTicket, OutcomeCounts, Pace, Plan, PlanGroup,
    PlanRow, Prospect, Room, Steer, Verb, act, ended_as, failing_too_often, next_stage, only_for, released_as,
    stage_total,
};
pub use page::{Cursor, LOOK_AT, Order, Page, PageRequest};
pub use record::{AttemptOutcome, DEFAULT_SCOPE, HistoryEntry, LetterDetail, LetterRow, MAX_CRASHES, MAX_REPLAYS};
pub use redact::{REDACTED, Redactor};
pub use replay::{
    Handlers, IntoReplayError, OperationRunner, ReplayError, ReplayJob, ReplayReport, ReplayWorker, Replayer, Skipped,
    Stopper, WorkerReport,
};
pub use revision::{Revision, RevisionSource};
pub use rules::{KnownPayload, PayloadStep, lease_end};
pub use scope::{ReplayScope, Scoped, hand_over};
pub use sink::{DeadLetterSink, Parking, Ticket};
pub use spill::{Batch, Erased, Import, Reserve, Spill, SpillFile};
pub use state::LetterState;
pub use store::{BoxFuture, Capabilities, DeadLetterStore};
pub use summary::Summary;
