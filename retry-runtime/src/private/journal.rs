//! `journal`: the job is written down before its first attempt, and struck out when it ends without a letter.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use crate::__private::record::{Hidden, Recorder};
use crate::__private::site::Site;
use crate::dead_letter::{DeadLetter, JobEnd, JobJournal, Struck};
use crate::engine::Stop;
use crate::error::{StoreError, StoreErrorKind};
use crate::id::Id;
use crate::observe::Notice;
use crate::panics::end_of_panic;
use crate::refused::Refused;
use crate::reply::Reply;
use crate::stop::StopReason;

/// How long a blocking call waits for its journal before it goes on without.
const PATIENCE: Duration = Duration::from_secs(30);

/// Writes a job down.
pub fn journal_enter<J: JobJournal + ?Sized>(journal: &J, job: DeadLetter) -> Reply<Result<(), StoreError>> {
    asked(|| journal.enter(job))
}

/// A journal that panics has failed: that breaks the call no more than any other failure of it.
fn asked<T>(ask: impl FnOnce() -> Reply<Result<T, StoreError>>) -> Reply<Result<T, StoreError>> {
    catch_unwind(AssertUnwindSafe(ask)).unwrap_or_else(|panic| {
        let message = format!("the journal panicked: {}", end_of_panic(panic));
        Reply::ready(Err(StoreError::new(StoreErrorKind::Unknown, message)))
    })
}

/// The blocking twin's answer.
pub fn journal_wait<T>(reply: Reply<Result<T, StoreError>>) -> Result<T, StoreError> {
    reply.wait(PATIENCE).unwrap_or_else(|_still_open| {
        Err(StoreError::new(StoreErrorKind::Unknown, format!("no answer within {PATIENCE:?}")))
    })
}

/// What is said of a job that runs without its entry.
#[cold]
pub(crate) fn not_entered(site: &Site, error: &StoreError) {
    let message = format!("a job cannot be written down: {error}; it runs, and is lost if this process dies under it");
    Notice::warning("journal_failed", site.name(), message).say();
}

/// The end of a job that may not run without its entry: `journal = required`.
#[cold]
pub fn journal_refused<R: Recorder>(record: &mut R, error: &StoreError) -> Refused {
    let detail = format!("journal: the job cannot be written down: {error}");
    record.refused_for(&detail);
    record.stopped(Hidden(Stop::plain(StopReason::LedgerRefused)));
    Refused::new(StopReason::LedgerRefused, detail)
}

/// Strikes a job out that leaves no letter.
pub fn journal_strike<J: JobJournal + ?Sized>(
    journal: &J,
    (park_id, end): (Id, JobEnd),
) -> Reply<Result<Struck, StoreError>> {
    asked(|| journal.strike(park_id, end))
}

/// A journal that could not strike a job out never breaks the call, and never goes unseen.
pub fn journal_struck(site: &Site, answer: Result<Struck, StoreError>) {
    if let Err(error) = answer {
        let message = format!(
            "a job that is done cannot be struck out: {error}; if this process ends before it is, the job is parked as crashed"
        );
        Notice::warning("journal_failed", site.name(), message).say();
    }
}
