//! Dead letters: what is kept of a job that was given up, and who keeps it.

mod aggregate;
mod claim;
mod clock;
pub(crate) mod executor;
mod filter;
mod fingerprint;
mod letter;
mod losses;
mod memory;
mod page;
mod record;
mod rules;
mod scope;
mod sink;
mod spill;
mod state;
mod store;
mod summary;

pub use aggregate::{Aggregate, Bucket, Group, GroupKey};
pub use claim::{Actor, ClaimRequest, Claimed, Failure, Finish, Release, ReplayOutcome, replay_backoff};
pub use clock::{ManualClock, StoreClock, from_millis, to_millis, whole_millis};
pub use filter::Filter;
pub use fingerprint::{FINGERPRINT_VERSION, fingerprint};
pub use letter::{DeadLetter, Payload};
pub use losses::{give_back_losses, lose, lost, take_losses};
pub use memory::MemoryStore;
pub use page::{Cursor, Order, Page, PageRequest};
pub use record::{AttemptOutcome, DEFAULT_SCOPE, HistoryEntry, LetterDetail, LetterRow, MAX_CRASHES, MAX_REPLAYS};
pub use rules::{KnownPayload, PayloadStep, lease_end};
pub use scope::{ReplayScope, Scoped, hand_over};
pub use sink::{DeadLetterSink, Parking, Ticket};
pub use spill::{Batch, Import, Reserve, Spill};
pub use state::LetterState;
pub use store::{BoxFuture, Capabilities, DeadLetterStore};
pub use summary::Summary;
