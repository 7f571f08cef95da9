//! Durable bulk operations: many letters, one decision, frozen when it is made.
//!
//! An operation remembers which letters it is about (their numbers and the revisions of their payloads, found by the same
//! filter as lists and counts), what became of each, who wanted it and why. It is run by one runner at a time, survives the
//! runner, and adds up to its members at every moment.

mod filter_text;
mod item;
mod member;
mod operation;
mod plan;
mod plan_text;
mod ramp;
mod request;
mod status;
mod store;

pub use item::{ItemOutcome, ItemPage, OperationItem, OutcomeCounts};
pub use member::{MemberClaim, MemberStep, Members, Next, act, ended_as, only_for, released_as};
pub use operation::{Operation, OperationTicket, Room};
pub use plan::{Plan, PlanGroup, PlanRow, Prospect};
pub use ramp::{Pace, failing_too_often, next_stage, stage_total};
pub use request::{OperationOptions, OperationRequest, Verb};
pub use status::{Leave, OperationStatus, Steer};
pub use store::BulkOperations;
