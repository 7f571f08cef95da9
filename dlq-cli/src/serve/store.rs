//! What a store must be able to do to be looked after in a dashboard.

use retry_runtime::counters::Thresholds;
use retry_runtime::dead_letter::{BulkOperations, Doctor, FailureGroups, Oversight, Overview};
use retry_runtime::ledger::LedgerBooks;

/// Letters, groups, operations, ledger, counters, audit, examination and the store as a whole. Every store that has these traits is one.
pub trait DashboardStore:
    FailureGroups + BulkOperations + LedgerBooks + Thresholds + Doctor + Oversight + Overview
{
}

impl<S: FailureGroups + BulkOperations + LedgerBooks + Thresholds + Doctor + Oversight + Overview + ?Sized>
    DashboardStore for S
{
}

// The trait stays object-safe.
const _: fn(&dyn DashboardStore) = |_| {};
