//! What generated code names. No part of the public interface: anything here may change in any release, which is why the
//! macros are pinned to the runtime's exact version.

mod accepted;
mod begin;
mod call;
mod cancel;
mod class_names;
mod classes;
pub mod classify;
mod fallback;
mod guards;
mod journal;
mod ledger;
mod letter;
#[cfg(feature = "test-util")]
mod marked;
mod nested;
mod record;
mod returns;
mod site;
mod stand_in;
mod text;
mod wait;
mod watch;

pub use accepted::{Accepted, Guarded};
pub use begin::{MAX_RETRIES, begin, begin_timed};
pub use call::{At, Said, attempt_limit, failed, names_a_value, rejected, succeeded, timed_out};
pub use cancel::{Cancels, cancel_future, cancelled, is_cancelled, unless_cancelled};
pub use classes::{Class, Classes, Counts};
pub use fallback::{fallback_begins, fallback_failed, fallback_succeeded, falls_back};
pub use guards::{
    AsBreaker, AsBudget, Guarding, Guards, as_breaker, as_budget, as_lasting_breaker, as_lasting_budget,
    succeeded_sharing,
};
pub use journal::{journal_enter, journal_refused, journal_strike, journal_struck, journal_wait};
pub use ledger::{Entry, ledger_begin, ledger_end, ledger_ended, ledger_entry, ledger_key, ledger_wait};
pub use letter::{job_id, model, park, parked, payload, wait_for};
#[cfg(feature = "test-util")]
pub use marked::{Marked, attempt};
#[cfg(not(feature = "test-util"))]
pub use nested::attempt;
pub use nested::{is_nested, mark, mark_blocking, nested, poll_marked};
pub(crate) use record::AtRunTime;
pub use record::{Always, Context, NewRecorder, Recorder, Remember, Timer, Wanted, context_mut, context_ref};
pub use returns::{
    ByType, Classifies, Fails, Fresh, Judge, Own, Report, Returns, Shape, classifier, classifier_of, end, error_of,
    error_type, failure, finish, finish_all, known_of, leave, leave_broken, leave_cancelled, leave_limited, light,
    refuse, refuse_unjournalled, timed, value_of,
};
pub use site::{AsPolicy, Site};
pub use stand_in::{FromBroken, FromCancelled, FromElapsed, FromRefused, FromUnjournalled};
pub use text::text_of;
pub use wait::{Timed, is_zero, pause, poll_limited, sleep, sleep_blocking, yield_once};
pub use watch::{Ambient, Facts, News, Observed, Seen, Watch, Watched, as_observer, install, parking};

pub use crate::engine::Session;
pub use crate::nest::Mark;

// generated code must not depend on what these names mean where it stands
pub use core::option::Option;
pub use std::string::String;

/// Ends a value's life. (`drop` itself would be a lint in the user's file, where the value has nothing to drop.)
pub fn discard<T>(_: T) {}
