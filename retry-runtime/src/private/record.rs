//! What a call writes down while it runs: nothing, its start, or everything.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use crate::attempt::message_within;
use crate::clock;
use crate::context::RetryContext;
use crate::engine::Stop;
use crate::refused::LastFailure;
use crate::stop::StopReason;
use crate::verdict::Verdict;

/// Takes what happens in a call. `()` takes nothing and costs nothing.
pub trait Recorder {
    /// Whether the error's text is wanted: it is made for nobody else.
    fn wants_text(&self) -> bool;
    /// Whether nothing is taken now, and nobody watches: what is decided is all that there is to do.
    #[inline]
    fn is_quiet(&self) -> bool {
        false
    }
    /// The call starts: what was there is cleared.
    fn start(&mut self);
    /// An attempt starts. (The compiler advises this trait for a method of the same name that somebody misses.)
    fn attempt_begins(&mut self);
    /// The time since the start.
    fn elapsed(&self) -> Duration;
    #[doc(hidden)]
    fn failed(&mut self, verdict: &Verdict, text: Cow<'_, str>);
    #[doc(hidden)]
    fn waiting(&mut self, wait: Duration);
    /// The call ends.
    #[doc(hidden)]
    fn stopped(&mut self, stop: Hidden);
    /// The call is over: by a success, or by what was told before. Nothing is told after this.
    #[inline]
    fn over(&mut self, succeeded: bool) {
        if succeeded {
            self.stopped(Hidden(Stop::plain(StopReason::Succeeded)));
        }
    }
    /// What refused the call has more to say.
    fn refused_for(&mut self, _detail: &str) {}
    /// The second route begins: it counts as an attempt.
    fn fallback_begins(&mut self) {
        self.attempt_begins();
    }
    /// The second route failed, and the call does.
    fn fallback_ended(&mut self) {}
    /// The call's budget was asked, or paid into.
    #[inline]
    fn budget(&mut self, _milli_tokens: impl FnOnce() -> Option<u64>)
    where
        Self: Sized,
    {
    }
    /// What is known of the last failed attempt.
    fn last_failure(&self) -> Option<LastFailure> {
        None
    }
    /// A copy of the whole record, for the report.
    fn report(&self) -> RetryContext;
}

/// A recorder that begins with a call.
pub trait NewRecorder: Recorder {
    /// A new one.
    fn fresh() -> Self;
}

impl NewRecorder for () {
    #[inline]
    fn fresh() {}
}

impl NewRecorder for Timer {
    #[inline]
    fn fresh() -> Self {
        Self::start_now()
    }
}

impl NewRecorder for RetryContext {
    fn fresh() -> Self {
        Self::new()
    }
}

/// What `context = NAME` takes of an argument.
#[diagnostic::on_unimplemented(
    message = "`context` takes an argument of type `&mut RetryContext`, not `&mut {Self}`",
    label = "not a `RetryContext`",
    note = "pass `&mut retry_runtime::RetryContext`, or give a name that is no argument: the body can then read it"
)]
pub trait Context {
    fn context_mut(&mut self) -> &mut RetryContext;
    fn context_ref(&self) -> &RetryContext;
}

impl Context for RetryContext {
    #[inline]
    fn context_mut(&mut self) -> &mut RetryContext {
        self
    }
    #[inline]
    fn context_ref(&self) -> &RetryContext {
        self
    }
}

/// The context that an argument is.
#[inline]
pub fn context_mut<C: Context + ?Sized>(argument: &mut C) -> &mut RetryContext {
    argument.context_mut()
}

/// The same, to read.
#[inline]
pub fn context_ref<C: Context + ?Sized>(argument: &C) -> &RetryContext {
    argument.context_ref()
}

/// Keeps the engine's own type out of a public signature.
#[derive(Clone, Copy, Debug)]
pub struct Hidden(pub(crate) Stop);

/// As the recorder itself.
impl<R: Recorder> Recorder for &mut R {
    #[inline]
    fn wants_text(&self) -> bool {
        (**self).wants_text()
    }
    #[inline]
    fn is_quiet(&self) -> bool {
        (**self).is_quiet()
    }
    #[inline]
    fn start(&mut self) {
        (**self).start();
    }
    #[inline]
    fn attempt_begins(&mut self) {
        (**self).attempt_begins();
    }
    #[inline]
    fn elapsed(&self) -> Duration {
        (**self).elapsed()
    }
    #[inline]
    fn failed(&mut self, verdict: &Verdict, text: Cow<'_, str>) {
        (**self).failed(verdict, text);
    }
    #[inline]
    fn waiting(&mut self, wait: Duration) {
        (**self).waiting(wait);
    }
    #[inline]
    fn stopped(&mut self, stop: Hidden) {
        (**self).stopped(stop);
    }
    #[inline]
    fn over(&mut self, succeeded: bool) {
        (**self).over(succeeded);
    }
    #[inline]
    fn refused_for(&mut self, detail: &str) {
        (**self).refused_for(detail);
    }
    #[inline]
    fn fallback_begins(&mut self) {
        (**self).fallback_begins();
    }
    #[inline]
    fn fallback_ended(&mut self) {
        (**self).fallback_ended();
    }
    #[inline]
    fn budget(&mut self, milli_tokens: impl FnOnce() -> Option<u64>) {
        (**self).budget(milli_tokens);
    }
    #[inline]
    fn last_failure(&self) -> Option<LastFailure> {
        (**self).last_failure()
    }
    #[inline]
    fn report(&self) -> RetryContext {
        (**self).report()
    }
}

impl Recorder for () {
    #[inline]
    fn wants_text(&self) -> bool {
        false
    }
    #[inline]
    fn is_quiet(&self) -> bool {
        true
    }
    #[inline]
    fn start(&mut self) {}
    #[inline]
    fn attempt_begins(&mut self) {}
    #[inline]
    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }
    #[inline]
    fn failed(&mut self, _: &Verdict, _: Cow<'_, str>) {}
    #[inline]
    fn waiting(&mut self, _: Duration) {}
    #[inline]
    fn stopped(&mut self, _: Hidden) {}
    fn report(&self) -> RetryContext {
        RetryContext::new()
    }
}

/// The start alone, for a deadline.
#[derive(Debug)]
pub struct Timer(Instant);

impl Timer {
    /// A timer that starts now.
    #[inline]
    pub fn start_now() -> Self {
        Self(clock::monotonic())
    }
}

impl Recorder for Timer {
    #[inline]
    fn wants_text(&self) -> bool {
        false
    }
    #[inline]
    fn start(&mut self) {}
    #[inline]
    fn attempt_begins(&mut self) {}
    fn elapsed(&self) -> Duration {
        clock::monotonic().saturating_duration_since(self.0)
    }
    #[inline]
    fn failed(&mut self, _: &Verdict, _: Cow<'_, str>) {}
    #[inline]
    fn waiting(&mut self, _: Duration) {}
    #[inline]
    fn stopped(&mut self, _: Hidden) {}
    fn report(&self) -> RetryContext {
        RetryContext::new()
    }
}

impl Recorder for RetryContext {
    fn wants_text(&self) -> bool {
        true
    }
    fn start(&mut self) {
        self.begin();
    }
    fn attempt_begins(&mut self) {
        self.begin_attempt();
    }
    fn elapsed(&self) -> Duration {
        Self::elapsed(self)
    }
    fn failed(&mut self, verdict: &Verdict, text: Cow<'_, str>) {
        Self::failed(self, verdict, text);
    }
    fn waiting(&mut self, wait: Duration) {
        Self::waiting(self, wait);
    }
    fn stopped(&mut self, stop: Hidden) {
        Self::stopped(self, stop.0);
    }
    fn refused_for(&mut self, detail: &str) {
        Self::refused_for(self, detail);
    }
    fn last_failure(&self) -> Option<LastFailure> {
        self.history().last().map(|last| LastFailure {
            class: last.class.clone().into_owned(),
            code: last.code,
            message: last.message.clone(),
        })
    }
    fn report(&self) -> RetryContext {
        self.clone()
    }
}

/// Whether a [`Remember`] takes notes.
pub trait Wanted {
    fn wanted(&self) -> bool;
}

/// It does.
#[derive(Debug)]
pub struct Always;

impl Wanted for Always {
    #[inline]
    fn wanted(&self) -> bool {
        true
    }
}

impl Wanted for bool {
    fn wanted(&self) -> bool {
        *self
    }
}

/// Another recorder, and the last failure beside it: a cancelled call tells of it when its error value is gone.
#[derive(Debug)]
pub struct Remember<R, W = Always> {
    recorder: R,
    last: Option<Box<LastFailure>>,
    wanted: W,
}

impl<R> Remember<R> {
    #[inline]
    pub const fn always(recorder: R) -> Self {
        Self { recorder, last: None, wanted: Always }
    }
}

impl<R> Remember<R, bool> {
    pub(crate) const fn when(wanted: bool, recorder: R) -> Self {
        Self { recorder, last: None, wanted }
    }
}

impl<R: Recorder, W: Wanted> Recorder for Remember<R, W> {
    #[inline]
    fn wants_text(&self) -> bool {
        self.wanted.wanted() || self.recorder.wants_text()
    }
    #[inline]
    fn start(&mut self) {
        self.recorder.start();
    }
    #[inline]
    fn attempt_begins(&mut self) {
        self.recorder.attempt_begins();
    }
    fn elapsed(&self) -> Duration {
        self.recorder.elapsed()
    }
    fn failed(&mut self, verdict: &Verdict, text: Cow<'_, str>) {
        if self.wanted.wanted() {
            let message = message_within(Cow::Borrowed(&text));
            self.last = Some(Box::new(LastFailure { class: verdict.class.to_owned(), code: verdict.code, message }));
        }
        self.recorder.failed(verdict, text);
    }
    fn waiting(&mut self, wait: Duration) {
        self.recorder.waiting(wait);
    }
    #[inline]
    fn stopped(&mut self, stop: Hidden) {
        self.recorder.stopped(stop);
    }
    fn refused_for(&mut self, detail: &str) {
        self.recorder.refused_for(detail);
    }
    fn last_failure(&self) -> Option<LastFailure> {
        self.last.as_deref().cloned().or_else(|| self.recorder.last_failure())
    }
    fn report(&self) -> RetryContext {
        self.recorder.report()
    }
}

/// What a call by the builder records: decided when it runs.
#[derive(Debug)]
pub(crate) enum AtRunTime<'c> {
    Nothing,
    Timer(Timer),
    Context(&'c mut RetryContext),
}

impl AtRunTime<'_> {
    fn context(&mut self, write: impl FnOnce(&mut RetryContext)) {
        if let Self::Context(record) = self {
            write(record);
        }
    }
}

impl Recorder for AtRunTime<'_> {
    fn wants_text(&self) -> bool {
        matches!(self, Self::Context(_))
    }
    fn start(&mut self) {
        self.context(RetryContext::begin);
    }
    fn attempt_begins(&mut self) {
        self.context(RetryContext::begin_attempt);
    }
    fn elapsed(&self) -> Duration {
        match self {
            Self::Nothing => Duration::ZERO,
            Self::Timer(timer) => timer.elapsed(),
            Self::Context(record) => record.elapsed(),
        }
    }
    fn failed(&mut self, verdict: &Verdict, text: Cow<'_, str>) {
        self.context(|record| record.failed(verdict, text));
    }
    fn waiting(&mut self, wait: Duration) {
        self.context(|record| record.waiting(wait));
    }
    fn stopped(&mut self, stop: Hidden) {
        self.context(|record| record.stopped(stop.0));
    }
    fn report(&self) -> RetryContext {
        match self {
            Self::Nothing | Self::Timer(_) => RetryContext::new(),
            Self::Context(record) => (*record).clone(),
        }
    }
}
