//! The attempt ledger around one call.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Display;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::__private::record::{Hidden, Recorder};
use crate::__private::site::Site;
use crate::clock;
use crate::context::RetryContext;
use crate::dead_letter::is_replayed;
use crate::engine::Stop;
use crate::error::StoreError;
use crate::ledger::{AttemptLedger, Begin, End, LedgerKey, LedgerToken};
use crate::observe::Notice;
use crate::refused::Refused;
use crate::reply::Reply;
use crate::stop::StopReason;

/// How long a blocking call waits for its ledger before it runs without.
const PATIENCE: Duration = Duration::from_secs(30);

/// The key of this call.
pub fn ledger_key(site: &Site, scope: Option<&dyn Display>, key: &dyn Display) -> LedgerKey {
    LedgerKey::new(scope.map_or_else(|| site.name().to_owned(), ToString::to_string), key.to_string())
}

/// The entry of a call that may run: its token, or none when the ledger failed.
#[derive(Debug)]
pub struct Entry(Option<LedgerToken>);

/// Counts the call, before its first attempt; `None` inside a replay of the same job, which the ledger leaves alone.
pub fn ledger_begin<L: AttemptLedger + ?Sized>(
    site: &Site,
    ledger: &L,
    key: &LedgerKey,
    max_attempts: u32,
    job_id: Option<&dyn Display>,
) -> Option<Reply<Result<Begin, StoreError>>> {
    let job = || job_id.map_or(Cow::Borrowed(&*key.key), |job_id| Cow::Owned(job_id.to_string()));
    let replayed = is_replayed(site.name(), || Some(job()));
    (!replayed).then(|| ledger.begin(key.clone(), max_attempts))
}

/// What the ledger's answer means for the call.
///
/// # Errors
/// The refusal, when the call may not run.
pub fn ledger_entry<R: Recorder>(
    site: &Site,
    record: &mut R,
    key: &LedgerKey,
    max_attempts: u32,
    answer: Option<Result<Begin, StoreError>>,
) -> Result<Entry, Refused> {
    let refused = match answer {
        None => return Ok(Entry(None)),
        Some(Ok(Begin::Go { token, .. })) => return Ok(Entry(Some(token))),
        Some(Ok(Begin::Refused(refusal))) => refusal.to_string(),
        Some(Err(error)) => {
            let counted = count_here(key, max_attempts);
            let runs = if counted.is_ok() { "it runs" } else { "it is refused" };
            let message =
                format!("the ledger cannot count a call of {key}: {error}; {runs}, as counted in this process alone");
            Notice::warning("ledger_failed", site.name(), message).say();
            match counted {
                Ok(()) => return Ok(Entry(None)),
                Err(attempts) => format!("cap reached after {attempts} attempts, counted in this process"),
            }
        }
    };
    let detail = format!("ledger {key}: {refused}");
    record.refused_for(&detail);
    record.stopped(Hidden(Stop::plain(StopReason::LedgerRefused)));
    Err(Refused::new(StopReason::LedgerRefused, detail))
}

/// The blocking twin's answer.
pub fn ledger_wait<T>(reply: Reply<Result<T, StoreError>>) -> Result<T, StoreError> {
    reply.wait(PATIENCE).unwrap_or_else(|_still_open| {
        Err(StoreError::new(crate::error::StoreErrorKind::Unknown, format!("no answer within {PATIENCE:?}")))
    })
}

/// Writes down how the call ended.
pub fn ledger_end<L: AttemptLedger + ?Sized>(
    ledger: &L,
    key: &LedgerKey,
    entry: &Entry,
    record: &RetryContext,
) -> Reply<Result<bool, StoreError>> {
    let Some(token) = entry.0 else { return Reply::ready(Ok(false)) };
    let end = match record.stop_reason() {
        Some(StopReason::Succeeded) => End::Ok,
        Some(StopReason::Gone) => End::Gone,
        _ => End::Failed { next_at: record.not_before(clock::wall()) },
    };
    ledger.end(key.clone(), token, end)
}

/// A ledger that could not write the end never breaks the call, and never goes unseen.
pub fn ledger_ended(site: &Site, key: &LedgerKey, answer: Result<bool, StoreError>) {
    if let Err(error) = answer {
        let message = format!("the ledger could not write how a call of {key} ended: {error}");
        Notice::warning("ledger_failed", site.name(), message).say();
    }
}

/// Counts a call in this process while the ledger fails, so that the cap holds all the same.
fn count_here(key: &LedgerKey, max_attempts: u32) -> Result<(), u32> {
    static COUNTS: Mutex<Option<HashMap<LedgerKey, u32>>> = Mutex::new(None);
    let mut counts = COUNTS.lock().unwrap_or_else(PoisonError::into_inner);
    let count = counts.get_or_insert_default().entry(key.clone()).or_default();
    if *count >= max_attempts {
        return Err(*count);
    }
    *count += 1;
    Ok(())
}
