//! Dead letters: what is kept of a job that was given up, and who keeps it.

mod actor;
#[cfg(feature = "stores")]
mod admin;
#[cfg(feature = "stores")]
mod aggregate;
#[cfg(feature = "stores")]
mod bounds;
mod boxed;
#[cfg(feature = "stores")]
mod claim;
mod clock;
#[cfg(feature = "stores")]
mod diff;
#[cfg(feature = "stores")]
mod doctor;
#[cfg(feature = "stores")]
mod event;
#[cfg(feature = "stores")]
pub(crate) mod executor;
#[cfg(feature = "stores")]
mod filter;
#[cfg(feature = "stores")]
mod fingerprint;
mod fnv;
#[cfg(feature = "stores")]
mod groups;
#[cfg(feature = "stores")]
mod hand;
mod handover;
#[cfg(feature = "stores")]
mod history;
#[cfg(feature = "stores")]
mod intake;
mod journal;
mod letter;
mod losses;
#[cfg(feature = "stores")]
mod memory;
#[cfg(feature = "stores")]
mod operations;
#[cfg(feature = "stores")]
mod oversight;
#[cfg(feature = "stores")]
mod overview;
#[cfg(feature = "stores")]
mod page;
#[cfg(feature = "stores")]
mod record;
mod redact;
#[cfg(feature = "stores")]
mod replay;
mod replayed;
#[cfg(feature = "stores")]
mod restore;
#[cfg(feature = "stores")]
mod revision;
#[cfg(feature = "stores")]
mod rules;
#[cfg(feature = "stores")]
mod scope;
#[cfg(feature = "stores")]
mod sha256;
mod sink;
mod spill;
#[cfg(feature = "stores")]
mod state;
#[cfg(feature = "stores")]
mod store;
#[cfg(feature = "stores")]
mod summary;

pub use actor::Actor;
#[cfg(feature = "stores")]
pub use admin::{
    DueReport, ERASED, EXPORT_PAGE_BYTES, EraseReport, EraseRequest, ExportPage, ExportRequest, Exporter, ImportReport,
    Imported, Importer, Joined, KindRetention, KnownLetter, LetterRecord, ParkingRecord, PruneReport, PruneRequest,
    Pruned, Retention, StoreAdmin,
};
#[cfg(feature = "stores")]
pub use aggregate::{Aggregate, Bucket, Group, GroupKey};
#[cfg(feature = "stores")]
pub use bounds::{MAX_LABEL, MAX_NAME, name_within};
pub use boxed::BoxFuture;
#[cfg(feature = "stores")]
pub use claim::{ClaimRequest, Claimed, Failure, Finish, Release, ReplayOutcome, replay_backoff};
pub use clock::{ManualClock, StoreClock, from_millis, to_millis, whole_millis};
#[cfg(feature = "stores")]
pub use diff::{Change, PayloadDiff};
#[cfg(feature = "stores")]
pub use doctor::{Checkup, Counted, Depth, Doctor, Finding, LetterFacts, Severity};
#[cfg(feature = "stores")]
pub use event::{EventPage, EventQuery, EventRecord, EventsOf};
#[cfg(feature = "stores")]
pub use filter::Filter;
#[cfg(feature = "stores")]
pub use fingerprint::{FINGERPRINT_VERSION, fingerprint};
#[cfg(feature = "stores")]
pub use groups::{
    ArrivalKey, ArrivalSeries, Arrivals, FailureGroup, FailureGroups, FirstGroups, GroupCounts, GroupCursor, GroupNote,
    GroupOrder, GroupsPage, GroupsRequest, Trend,
};
#[cfg(feature = "stores")]
pub use hand::{
    CLOSED_ABANDONED, CLOSED_BY_HAND, CLOSED_DISCARDED, CLOSED_GONE, CLOSED_RECOVERED, Edit, Edited, MAX_ACTOR_NAME,
    MAX_ACTOR_REASON,
};
pub use handover::{AsyncSink, BlockingSink, Closed};
#[cfg(feature = "stores")]
pub use history::{HistorySize, MAX_HISTORY_BYTES, MAX_HISTORY_ENTRIES, message_size};
#[cfg(feature = "stores")]
pub use intake::Intake;
#[cfg(feature = "stores")]
pub use journal::crashed;
pub use journal::{JobEnd, JobJournal, JournalCounts, OWNER_LEASE, Struck};
pub use letter::{DeadLetter, Payload};
pub(crate) use losses::loss_is_said;
pub use losses::{give_back_losses, lose, lost, take_losses};
#[cfg(feature = "stores")]
pub use memory::MemoryStore;
#[cfg(feature = "stores")]
pub use operations::{
    BulkOperations, ItemOutcome, ItemPage, Leave, MemberClaim, MemberStep, Members, Next, Operation, OperationItem,
    OperationOptions, OperationRequest, OperationStatus, OperationTicket, OutcomeCounts, Pace, Plan, PlanGroup,
    PlanRow, Prospect, Room, Steer, Verb, act, ended_as, failing_too_often, next_stage, only_for, released_as,
    stage_total,
};
#[cfg(feature = "stores")]
pub use oversight::{Incident, Oversight};
#[cfg(feature = "stores")]
pub use overview::{FileRole, Overview, ProcessFacts, StoreFacts, StoreFile};
#[cfg(feature = "stores")]
pub use page::{Cursor, LOOK_AT, Order, Page, PageRequest};
#[cfg(feature = "stores")]
pub use record::{AttemptOutcome, DEFAULT_SCOPE, HistoryEntry, LetterDetail, LetterRow, MAX_CRASHES, MAX_REPLAYS};
pub use redact::{REDACTED, Redactor};
#[cfg(feature = "stores")]
pub use replay::{
    Handlers, IntoReplayError, OperationRunner, ReplayError, ReplayJob, ReplayReport, ReplayWorker, Replayer, Skipped,
    Stopper, WorkerReport,
};
pub(crate) use replayed::{hand_over_or_submit, is_replayed};
#[cfg(feature = "stores")]
pub use revision::{Revision, RevisionSource};
#[cfg(feature = "stores")]
pub use rules::{KnownPayload, PayloadStep, lease_end};
#[cfg(feature = "stores")]
pub use scope::{ReplayScope, Scoped, hand_over};
pub use sink::{DeadLetterSink, Parking, Ticket};
#[cfg(feature = "stores")]
pub use spill::Erased;
pub use spill::{Batch, Import, Reserve, Spill, SpillFile};
#[cfg(feature = "stores")]
pub use state::LetterState;
#[cfg(feature = "stores")]
pub use store::{Capabilities, DeadLetterStore};
#[cfg(feature = "stores")]
pub use summary::Summary;
