//! Who watches a call: the hooks between its loop and the observers.
//!
//! A call holds a [`Watch`]. With `observer = EXPR` that is [`Observed`], which borrows the observer; without, it is [`Ambient`],
//! for the installed one: four bytes, which are zero when there is none.

mod call;
mod hooks;
mod slab;

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use self::call::{WatchedBy, Watching};
use self::hooks::hooks;
use self::slab::Handle;
use crate::__private::call::At;
use crate::__private::record::{Hidden, Recorder};
use crate::context::RetryContext;
use crate::dead_letter::{DeadLetter, Parking, Ticket};
use crate::disabled::retries_are_disabled;
use crate::engine::Stop;
use crate::nest;
use crate::observe::{Observer, installed};
use crate::policy::Retries;
use crate::refused::LastFailure;
use crate::stop::StopReason;
use crate::verdict::Verdict;

pub use self::hooks::install;

/// What an observer is told of a call before its first event.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    pub(crate) operation: &'static str,
    pub(crate) max_attempts: Option<u64>,
    pub(crate) depth: u32,
}

impl Facts {
    /// Of a call that may make so many retries, unless the whole process makes none.
    fn of(operation: &'static str, max_retries: u32) -> Self {
        let max_retries = if retries_are_disabled() { 0 } else { max_retries };
        Self { operation, max_attempts: Retries::Limited(max_retries).attempts(), depth: nest::around().depth }
    }
}

/// Whoever watches a call.
pub trait Watch {
    /// Whether anybody does.
    fn is_watched(&self) -> bool;
    /// Something happened. Asked only where somebody watches.
    fn note(&self, news: News<'_>);
    /// A letter was handed over, and the call does not wait to hear what becomes of it: the installed observer does.
    fn later(&self, ticket: Ticket);
    /// The call is over: by a success, or by what was told before.
    #[inline]
    fn over(&mut self, succeeded: bool) {
        if succeeded && self.is_watched() {
            self.note(News::Stopped(Hidden(Stop::plain(StopReason::Succeeded))));
        }
    }
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
    fn later(&self, ticket: Ticket) {
        (**self).later(ticket);
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
    /// The body panicked, and nobody else says what that means for the call.
    Panicked,
    Letter(&'n DeadLetter),
    Parked(&'n Parking),
}

/// A call that only the installed observer watches, if there is one.
#[derive(Debug)]
pub struct Ambient(Option<Handle>);

impl Ambient {
    /// The call begins, and all of it is a constant.
    #[inline]
    pub fn begin_at(has_fallback: bool, at: &'static At<'static>) -> Self {
        match installed() {
            None => Self(None),
            Some(observer) => Self::watched_at(observer, has_fallback, at),
        }
    }

    #[cold]
    #[inline(never)]
    fn watched_at(observer: &'static dyn Observer, has_fallback: bool, at: &At<'_>) -> Self {
        Self::watched(observer, has_fallback, at.facts())
    }

    /// The same of a call that always makes retries of its own: two arguments, and no constant, which costs the compiler more.
    #[inline]
    pub fn begin_as(has_fallback: bool, operation: &'static str, max_retries: u32) -> Self {
        match installed() {
            None => Self(None),
            Some(observer) => Self::watched_as(observer, has_fallback, operation, max_retries),
        }
    }

    #[cold]
    #[inline(never)]
    fn watched_as(
        observer: &'static dyn Observer,
        has_fallback: bool,
        operation: &'static str,
        max_retries: u32,
    ) -> Self {
        Self::watched(observer, has_fallback, Facts::of(operation, max_retries))
    }

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
        Self(hooks().and_then(|hooks| (hooks.begin)(observer, has_fallback, facts)))
    }
}

/// By value: a call that nobody watches keeps nothing in memory for it.
#[cold]
#[inline(never)]
fn told(handle: Handle, news: News<'_>) {
    if let Some(hooks) = hooks() {
        (hooks.note)(handle, news);
    }
}

impl Watch for Ambient {
    #[inline]
    fn is_watched(&self) -> bool {
        self.0.is_some()
    }

    #[inline]
    fn note(&self, news: News<'_>) {
        if let Some(handle) = self.0 {
            told(handle, news);
        }
    }

    fn later(&self, ticket: Ticket) {
        if let (Some(handle), Some(hooks)) = (self.0, hooks()) {
            (hooks.later)(handle, ticket);
        }
    }

    #[inline]
    fn over(&mut self, succeeded: bool) {
        if let Some(handle) = self.0 {
            over_so(handle, succeeded);
            // last of all, so that what is dropped then is known to be nothing
            self.0 = None;
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

/// A call that is watched ends by itself.
#[cold]
#[inline(never)]
fn over_so(handle: Handle, succeeded: bool) {
    if succeeded {
        told(handle, News::Stopped(Hidden(Stop::plain(StopReason::Succeeded))));
    }
    over(handle);
}

#[cold]
#[inline(never)]
fn over(handle: Handle) {
    if let Some(hooks) = hooks() {
        (hooks.over)(handle);
    }
}

/// A call with an observer of its own. The installed one watches it as well.
pub struct Observed<'o>(Cell<Option<Box<Watching<'o>>>>);

impl<'o> Observed<'o> {
    /// The call begins. It says itself when its body panics.
    pub fn begin(observer: &'o dyn Observer, has_fallback: bool, facts: impl FnOnce() -> Facts) -> Self {
        let by = WatchedBy { own: Some(observer), installed: installed(), catches: true };
        Self(Cell::new(Some(Box::new(Watching::new(by, has_fallback, facts())))))
    }

    /// The same for the builder, with or without an observer of its own.
    pub(crate) fn new(own: Option<&'o dyn Observer>, facts: impl FnOnce() -> Facts) -> Self {
        let by = WatchedBy { own, installed: installed(), catches: false };
        Self(Cell::new(match by {
            WatchedBy { own: None, installed: None, .. } => None,
            by => Some(Box::new(Watching::new(by, false, facts()))),
        }))
    }

    fn with(&self, tell: impl FnOnce(&mut Watching<'o>)) {
        if let Some(mut call) = self.0.take() {
            tell(&mut call);
            self.0.set(Some(call));
        }
    }

    /// Runs one attempt of a blocking call. Its panic is told of, and goes on.
    pub fn attempt<T>(&self, body: impl FnOnce() -> T) -> T {
        catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
            self.note(News::Panicked);
            resume_unwind(panic)
        })
    }
}

/// One attempt of an async call with an observer, as it is polled: its panic is told of, and goes on.
#[derive(Debug)]
pub struct Seen<'w, 'p, 'o, A> {
    // unique, since what is shared would have to be `Sync`
    watch: &'w mut Observed<'o>,
    attempt: Pin<&'p mut A>,
}

impl<'w, 'p, 'o, A> Seen<'w, 'p, 'o, A> {
    #[inline]
    pub const fn new(watch: &'w mut Observed<'o>, attempt: Pin<&'p mut A>) -> Self {
        Self { watch, attempt }
    }
}

impl<A: Future> Future for Seen<'_, '_, '_, A> {
    type Output = A::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<A::Output> {
        let Self { watch, attempt } = self.get_mut();
        watch.attempt(|| attempt.as_mut().poll(cx))
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
        self.with(|call| call.note(news));
    }

    fn later(&self, ticket: Ticket) {
        self.with(|call| call.later(ticket));
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
pub struct Watched<R, W> {
    record: R,
    watch: W,
}

impl<R, W> Watched<R, W> {
    #[inline]
    pub const fn new(record: R, watch: W) -> Self {
        Self { record, watch }
    }
}

// What is told is made where somebody watches, and not before it is known.
impl<R: Recorder, W: Watch> Recorder for Watched<R, W> {
    #[inline]
    fn wants_text(&self) -> bool {
        self.record.wants_text()
    }
    #[inline]
    fn is_quiet(&self) -> bool {
        self.record.is_quiet() && !self.watch.is_watched()
    }
    #[inline]
    fn start(&mut self) {
        self.record.start();
    }
    #[inline]
    fn attempt_begins(&mut self) {
        self.record.attempt_begins();
        if self.watch.is_watched() {
            self.watch.note(News::Attempt);
        }
    }
    #[inline]
    fn elapsed(&self) -> Duration {
        self.record.elapsed()
    }
    fn failed(&mut self, verdict: &Verdict, text: Cow<'_, str>) {
        self.record.failed(verdict, text);
        if self.watch.is_watched() {
            self.watch.note(News::Failed(verdict));
        }
    }
    fn waiting(&mut self, wait: Duration) {
        self.record.waiting(wait);
        if self.watch.is_watched() {
            self.watch.note(News::Waiting(wait));
        }
    }
    #[inline]
    fn stopped(&mut self, stop: Hidden) {
        self.record.stopped(stop);
        if self.watch.is_watched() {
            self.watch.note(News::Stopped(stop));
        }
    }
    #[inline]
    fn over(&mut self, succeeded: bool) {
        self.record.over(succeeded);
        self.watch.over(succeeded);
    }
    fn refused_for(&mut self, detail: &str) {
        self.record.refused_for(detail);
    }
    fn fallback_begins(&mut self) {
        self.record.fallback_begins();
        if self.watch.is_watched() {
            self.watch.note(News::FallbackBegins);
        }
    }
    fn fallback_ended(&mut self) {
        self.record.fallback_ended();
        if self.watch.is_watched() {
            self.watch.note(News::FallbackEnded);
        }
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
