//! A job with a dead letter, from its first poll to its end: dropped on the way, or panicking, it is parked all the same.
//!
//! The letter is made of what the options borrow, so whoever drops the future makes it: nothing is copied for a call that
//! comes to an end of its own.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::__private::journal::not_entered;
use crate::__private::letter::{left, letter, lost_while, parks, wait_for};
use crate::__private::record::{Hidden, Recorder};
use crate::__private::site::Site;
use crate::__private::watch::{News, Watch, Watched, parking};
use crate::clock;
use crate::context::RetryContext;
use crate::dead_letter::{DeadLetter, JobEnd, Ticket, is_replayed};
use crate::engine::Stop;
use crate::error::{StoreError, StoreErrorKind};
use crate::id::Id;
use crate::panics::panic_text;
use crate::stop::StopReason;
use crate::verdict::Verdict;

/// The class of an attempt that panicked, in events.
pub(crate) const PANICKED_CLASS: &str = "panicked";

/// What is recorded of an attempt that panicked. Nobody judged it: its letter shows no class.
const PANICKED: Verdict = Verdict::unknown(PANICKED_CLASS);

/// A job whose end is owed: `write` gives its letter the rest and hands it over.
pub struct Accepted<'a, V: Watch, W: Fn(DeadLetter, &V) -> Ticket> {
    job: Job<'a, V>,
    write: W,
}

/// What is alike for all of them.
struct Job<'a, V> {
    site: &'a Site,
    watch: V,
    error_type: &'static str,
    /// Made when the call starts: however often a letter of it is handed over, it counts once.
    park_id: Id,
    /// It ended, or its letter is on its way.
    settled: bool,
    /// It may stand in a journal.
    entered: bool,
    record: RetryContext,
}

impl<'a, V: Watch, W: Fn(DeadLetter, &V) -> Ticket> Accepted<'a, V, W> {
    pub fn new(site: &'a Site, watch: V, error_type: &'static str, write: W) -> Self {
        let park_id = Id::new(clock::wall());
        Self {
            job: Job { site, watch, error_type, park_id, settled: false, entered: false, record: RetryContext::new() },
            write,
        }
    }

    /// The record of the call.
    pub fn record(&self) -> &RetryContext {
        &self.job.record
    }

    /// The same, to be written, together with whoever watches.
    #[inline]
    pub const fn recorder(&mut self) -> Watched<&mut RetryContext, &V> {
        Watched::new(&mut self.job.record, &self.job.watch)
    }

    /// Whoever watches.
    #[inline]
    pub const fn watch(&self) -> &V {
        &self.job.watch
    }

    /// Takes over what a context of the user's says: that one the body may be reading when the call is dropped.
    pub fn note(&mut self, context: &RetryContext) {
        self.job.record.mirror(context);
    }

    /// The job as a journal keeps it; `None` inside a replay of it, which the journal leaves alone.
    pub fn entry(&self, fill: impl FnOnce(DeadLetter) -> DeadLetter) -> Option<DeadLetter> {
        let job =
            fill(DeadLetter::known_as(self.job.park_id, self.job.site.name(), StopReason::Crashed, clock::wall()));
        let replayed = is_replayed(&job.kind, || job.job_id.as_deref().map(Cow::Borrowed));
        (!replayed).then_some(job)
    }

    /// What the journal answered. The error, where the job may not run without its entry.
    pub fn entered(&mut self, answer: Result<(), StoreError>, required: bool) -> Option<StoreError> {
        let Err(error) = answer else {
            self.job.entered = true;
            return None;
        };
        // Perhaps it is written all the same.
        self.job.entered = error.kind() == StoreErrorKind::Unknown;
        if required {
            return Some(error);
        }
        not_entered(self.job.site, &error);
        None
    }

    /// What is to be struck out of the journal: a job that ended, and leaves no letter.
    pub fn to_strike(&self) -> Option<(Id, JobEnd)> {
        let end = match self.job.record.stop_reason() {
            Some(StopReason::Succeeded) => JobEnd::Succeeded,
            // what was refused never began
            Some(StopReason::Gone | StopReason::LedgerRefused) => JobEnd::Gone,
            _ => return None,
        };
        self.job.entered.then_some((self.job.park_id, end))
    }

    /// The call came to an end of its own: the ticket of its letter, if it leaves one.
    pub fn end(&mut self) -> Option<Ticket> {
        let ticket = parks(&self.job.record).then(|| self.park());
        self.job.settled = true;
        ticket
    }

    /// The ledger refused the call: nothing is owed, and what the options borrow is free again.
    pub fn refused(mut self) -> RetryContext {
        self.job.settled = true;
        mem::take(&mut self.job.record)
    }

    /// Runs one attempt of a blocking call. Its panic goes on once the letter is parked.
    pub fn attempt<T>(&mut self, body: impl FnOnce() -> T) -> T {
        match catch_unwind(AssertUnwindSafe(body)) {
            Ok(out) => out,
            Err(panic) => {
                let ticket = self.panicked(&*panic);
                let _told = wait_for(self.job.site, &self.job.watch, ticket);
                resume_unwind(panic)
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn panicked(&mut self, panic: &(dyn Any + Send)) -> Ticket {
        let mut recorder = self.recorder();
        recorder.failed(&PANICKED, panic_text(panic).into());
        recorder.stopped(Hidden(Stop::plain(StopReason::Panicked)));
        self.park()
    }

    fn park(&mut self) -> Ticket {
        let ticket = (self.write)(self.job.letter(), &self.job.watch);
        self.job.settled = true;
        ticket
    }
}

impl<V: Watch, W: Fn(DeadLetter, &V) -> Ticket> Drop for Accepted<'_, V, W> {
    fn drop(&mut self) {
        if !self.job.settled {
            self.recorder().stopped(Hidden(Stop::plain(StopReason::Dropped)));
            self.job.settled = true;
            let (letter, write, watch) = (self.job.letter(), &self.write, &self.job.watch);
            parking(watch, &letter);
            let site = self.job.site;
            let lost =
                lost_while("being parked by a drop guard", letter, |letter| left(site, watch, write(letter, watch)));
            if let (Some(lost), true) = (lost, watch.is_watched()) {
                watch.note(News::Parked(&lost));
            }
        }
    }
}

impl<V> Job<'_, V> {
    #[cold]
    fn letter(&self) -> DeadLetter {
        letter(self.park_id, self.site, &self.record, self.error_type)
    }
}

impl<V: Watch, W: Fn(DeadLetter, &V) -> Ticket> fmt::Debug for Accepted<'_, V, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Accepted").field("park_id", &self.job.park_id).finish_non_exhaustive()
    }
}

/// One attempt of an async call, as it is polled: its panic goes on once the letter is handed over. Durable is it when the
/// sink has written it; nobody can wait for that here.
pub struct Guarded<'j, 'p, 'a, V: Watch, W: Fn(DeadLetter, &V) -> Ticket, A> {
    job: &'j mut Accepted<'a, V, W>,
    attempt: Pin<&'p mut A>,
}

impl<'j, 'p, 'a, V: Watch, W: Fn(DeadLetter, &V) -> Ticket, A> Guarded<'j, 'p, 'a, V, W, A> {
    #[inline]
    pub const fn new(job: &'j mut Accepted<'a, V, W>, attempt: Pin<&'p mut A>) -> Self {
        Self { job, attempt }
    }
}

impl<V: Watch, W: Fn(DeadLetter, &V) -> Ticket, A: Future> Future for Guarded<'_, '_, '_, V, W, A> {
    type Output = A::Output;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<A::Output> {
        match catch_unwind(AssertUnwindSafe(|| self.attempt.as_mut().poll(cx))) {
            Ok(poll) => poll,
            Err(panic) => {
                let ticket = self.job.panicked(&*panic);
                left(self.job.job.site, self.job.watch(), ticket);
                resume_unwind(panic)
            }
        }
    }
}

impl<V: Watch, W: Fn(DeadLetter, &V) -> Ticket, A> fmt::Debug for Guarded<'_, '_, '_, V, W, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Guarded").field(&self.job).finish()
    }
}
