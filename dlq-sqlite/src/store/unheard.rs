//! What is taken for somebody who may be gone before the answer.

use std::sync::{Arc, Weak};

use retry_runtime::dead_letter::{Actor, Leave, OperationTicket, Release};

use super::{operations, verbs};
use crate::claim::Taken;
use crate::worker::Shared;

/// Goes with the answer of a claim. Dropped unheard, wherever the answer is by then, it gives everything back: the future
/// that waited was dropped, and nobody else knows of the leases, which this process would keep alive until its end.
#[derive(Default)]
pub(crate) struct Unheard {
    /// Not the handle, whose last drop waits for the very thread that answers.
    shared: Weak<Shared>,
    letters: Vec<(String, u64)>,
    operation: Option<OperationTicket>,
}

impl Unheard {
    /// The claim is durable.
    pub(super) fn letters(&mut self, shared: &Arc<Shared>, taken: &[Taken]) {
        self.shared = Arc::downgrade(shared);
        self.letters = taken.iter().map(|taken| (taken.row.letter_id.clone(), taken.row.fence)).collect();
    }

    /// The operation is taken.
    pub(super) fn operation(&mut self, shared: &Arc<Shared>, ticket: OperationTicket) {
        self.shared = Arc::downgrade(shared);
        self.operation = Some(ticket);
    }

    /// The caller has the answer, and with it the leases.
    pub(super) fn heard(mut self) {
        self.letters.clear();
        self.operation = None;
    }
}

impl Drop for Unheard {
    fn drop(&mut self) {
        // A store that is gone has given its leases back.
        let Some(shared) = self.shared.upgrade() else { return };
        // Nobody waits: a lease that cannot be given back runs out.
        for (letter_id, fence) in self.letters.drain(..) {
            let _unheard = verbs::release(&shared, letter_id, Release::Held { fence }, by_the_store());
        }
        if let Some(ticket) = self.operation.take() {
            let _unheard = operations::leave(&shared, ticket, Leave::Released, by_the_store());
        }
    }
}

/// Who gives back what nobody else can.
pub(super) fn by_the_store() -> Actor {
    Actor::new("store", "given back")
}
