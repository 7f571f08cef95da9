//! Where a letter goes that the store did not take.

use std::path::PathBuf;

use retry_runtime::dead_letter::{DeadLetter, Parking};
use retry_runtime::error::StoreError;
use retry_runtime::observe::Notice;

/// The spill file, then stderr.
pub(crate) struct Chain {
    pub(crate) directories: Vec<PathBuf>,
    pub(crate) lost: u64,
}

impl Chain {
    pub(crate) fn keep(&mut self, letter: &DeadLetter, because: StoreError) -> Parking {
        self.lost += 1;
        let job = letter.job_id.as_deref().unwrap_or("-");
        let message = format!(
            "letter {} of {} (job {job}, {}) is lost: {because}",
            letter.park_id,
            letter.kind,
            letter.error_class()
        );
        Notice::error("lost", letter.kind.clone(), message).say();
        Parking::Lost { because }
    }
}
