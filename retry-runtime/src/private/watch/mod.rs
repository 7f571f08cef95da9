//! Who watches a call: the hooks between its loop and the observers.
//!
//! A call holds a [`Watch`]. With `observer = EXPR` that is [`Observed`], which borrows the observer; without, it is [`Ambient`],
//! for the installed one: four bytes, which are zero when there is none.

mod call;
mod slab;

use std::cell::Cell;
use std::fmt;
use std::time::Duration;

use self::call::Watching;
use self::slab::Handle;
use crate::__private::record::{Hidden, Recorder};
use crate::context::RetryContext;
use crate::dead_letter::{DeadLetter, Parking};
use crate::observe::{Observer, installed};
use crate::refused::LastFailure;
use crate::verdict::Verdict;

/// What an observer is told of a call before its first event.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    pub(crate) operation: &'static str,
    pub(crate) max_attempts: Option<u64>,
    pub(crate) depth: u32,
}

/// Whoever watches a call.
pub trait Watch {
    /// Whether anybody does.
    fn is_watched(&self) -> bool;
    /// Something happened. Asked only where somebody watches.
    fn note(&self, news: News<'_>);
}

impl<W: Watch> Watch for &W {
    #[inline]
    fn is_watched(&self) -> bool {
        (**self).is_watched()
    }
    #[inline]
    fn note(&self, news: News<'_>) {
        (**self).note(news);
    }
}

/// What happens in a call.
#[derive(Clone, Copy, Debug)]
pub enum News<'n> {
    Attempt,
    Failed(&'n Verdict),
    Waiting(Duration),
    #[doc(hidden)]
    Stopped(Hidden),
    FallbackBegins,
    FallbackEnded,
    MilliTokens(Option<u64>),
    Letter(&'n DeadLetter),
    Parked(&'n Parking),
}

/// A call that only the installed observer watches, if there is one.
#[derive(Debug)]
pub struct Ambient(Option<Handle>);

impl Ambient {
    /// The call begins. `has_fallback`: it gives up only after its second route.
    #[inline]
    pub fn begin(has_fallback: bool, facts: impl FnOnce() -> Facts) -> Self {
        match installed() {
            None => Self(None),
            Some(observer) => Self::watched(observer, has_fallback, facts()),
        }
    }

    #[cold]
    #[inline(never)]
    fn watched(observer: &'static dyn Observer, has_fallback: bool, facts: Facts) -> Self {
        Self(slab::put(Box::new(Watching::new([Some(observer), None], has_fallback, facts))))
    }
}

impl Watch for Ambient {
    #[inline]
    fn is_watched(&self) -> bool {
        self.0.is_some()
    }

    #[cold]
    #[inline(never)]
    fn note(&self, news: News<'_>) {
        let Some(handle) = self.0 else { return };
        if let Some(mut call) = slab::take(handle) {
            call.note(news);
            slab::give_back(handle, call);
        }
    }
}

impl Drop for Ambient {
    #[inline]
    fn drop(&mut self) {
        if let Some(handle) = self.0 {
            over(handle);
        }
    }
}

#[cold]
#[inline(never)]
fn over(handle: Handle) {
    drop(slab::take(handle));
    slab::free(handle);
}

/// A call with an observer of its own. The installed one watches it as well.
pub struct Observed<'o>(Cell<Option<Box<Watching<'o>>>>);

impl<'o> Observed<'o> {
    /// The call begins.
    pub fn begin(observer: &'o dyn Observer, has_fallback: bool, facts: impl FnOnce() -> Facts) -> Self {
        Self::new(Some(observer), has_fallback, facts)
    }

    /// The same, with or without an observer of its own.
    pub(crate) fn new(observer: Option<&'o dyn Observer>, has_fallback: bool, facts: impl FnOnce() -> Facts) -> Self {
        let both = [observer, installed()];
        Self(Cell::new(match both {
            [None, None] => None,
            _ => Some(Box::new(Watching::new(both, has_fallback, facts()))),
        }))
    }
}

impl Watch for Observed<'_> {
    fn is_watched(&self) -> bool {
        let call = self.0.take();
        let is_watched = call.is_some();
        self.0.set(call);
        is_watched
    }

    fn note(&self, news: News<'_>) {
        if let Some(mut call) = self.0.take() {
            call.note(news);
            self.0.set(Some(call));
        }
    }
}

impl fmt::Debug for Observed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observed").finish_non_exhaustive()
    }
}

/// The observer of `observer = EXPR`.
#[inline]
pub const fn as_observer<O: Observer>(given: &O) -> &dyn Observer {
    given
}

/// A letter is about to be handed over.
#[inline]
pub fn parking<W: Watch>(watch: &W, letter: &DeadLetter) {
    if watch.is_watched() {
        watch.note(News::Letter(letter));
    }
}

/// A call's recorder, and whoever watches the call beside it.
#[derive(Debug)]
pub struct Watched<'r, R, W> {
    record: &'r mut R,
    watch: W,
}

impl<'r, R, W: Watch> Watched<'r, R, W> {
    #[inline]
    pub const fn new(record: &'r mut R, watch: W) -> Self {
        Self { record, watch }
    }

    #[inline]
    fn note(&self, news: News<'_>) {
        if self.watch.is_watched() {
            self.watch.note(news);
        }
    }
}

impl<R: Recorder, W: Watch> Recorder for Watched<'_, R, W> {
    #[inline]
    fn wants_text(&self) -> bool {
        self.record.wants_text()
    }
    #[inline]
    fn start(&mut self) {
        self.record.start();
    }
    #[inline]
    fn attempt(&mut self) {
        self.record.attempt();
        self.note(News::Attempt);
    }
    #[inline]
    fn elapsed(&self) -> Duration {
        self.record.elapsed()
    }
    fn failed(&mut self, verdict: &Verdict, text: &str) {
        self.record.failed(verdict, text);
        self.note(News::Failed(verdict));
    }
    fn waiting(&mut self, wait: Duration) {
        self.record.waiting(wait);
        self.note(News::Waiting(wait));
    }
    #[inline]
    fn stopped(&mut self, stop: Hidden) {
        self.record.stopped(stop);
        self.note(News::Stopped(stop));
    }
    fn fallback_begins(&mut self) {
        self.record.fallback_begins();
        self.note(News::FallbackBegins);
    }
    fn fallback_ended(&mut self) {
        self.record.fallback_ended();
        self.note(News::FallbackEnded);
    }
    #[inline]
    fn budget(&mut self, milli_tokens: impl FnOnce() -> Option<u64>) {
        if self.watch.is_watched() {
            self.watch.note(News::MilliTokens(milli_tokens()));
        }
    }
    fn last_failure(&self) -> Option<LastFailure> {
        self.record.last_failure()
    }
    fn report(&self) -> RetryContext {
        self.record.report()
    }
}
