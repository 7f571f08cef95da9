//! The loop without a macro, around any closure.

mod call;
mod cancel;

use std::cell::Cell;
use std::future::{Future, IntoFuture, pending};
use std::pin::pin;
use std::time::Duration;

use self::call::{Call, Ended};
use crate::__private::{AsPolicy, AtRunTime, Class, Recorder, Remember, Session, Site, Timer, cancelled};
use crate::classify::Classify;
use crate::context::RetryContext;
use crate::engine::Unknown;
use crate::gave_up::GaveUp;
use crate::policy::{ClassLimits, Policy};
use crate::verdict::Verdict;

pub use cancel::{CancelWith, Cancelled, FromRefusal, Never, Uncancelled};

/// Retries a closure by a policy: the same engine as `#[retry]`, for code that is not a function of its own.
///
/// The attribute does more: patterns, time limits of attempts, a fallback, dead letters, a ledger. What a closure can do,
/// the builder does: count, waits, hints, a deadline, a context, a classifier.
///
/// ```
/// use std::time::Duration;
/// use retry_runtime::{Classify, Policy, Retry};
///
/// #[derive(Debug, PartialEq, Classify)]
/// #[classify(retryable)]
/// struct Busy;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
/// let policy = Policy::new().max_retries(3).base_delay(Duration::from_millis(100));
/// let mut calls = 0;
/// let reply = Retry::new(policy)
///     .run(|| {
///         calls += 1;
///         let n = calls;
///         async move { if n < 3 { Err(Busy) } else { Ok(n) } }
///     })
///     .await;
/// assert_eq!(reply, Ok(3));
/// # }
/// ```
#[derive(Debug)]
#[must_use = "nothing runs until `run` or `run_blocking`"]
pub struct Retry<'c, K = DerivedClassifier, C = Uncancelled> {
    name: &'static str,
    policy: Policy,
    deadline: Option<Duration>,
    unknown: Unknown,
    idempotent: bool,
    classes: Vec<Class>,
    context: Option<&'c mut RetryContext>,
    classifier: K,
    cancel: C,
}

/// The classifier of a [`Retry`] that was given none: the error's own [`Classify`].
#[derive(Clone, Copy, Debug)]
pub struct DerivedClassifier;

/// How a [`Retry`] gets its verdicts: by the error's `Classify`, or by a `fn(&E) -> Verdict`.
#[diagnostic::on_unimplemented(
    message = "`{E}` does not say whether a failure may be retried",
    label = "no classifier for `{E}`",
    note = "derive `Classify` for it, or give a classifier: `Retry::new(policy).classify(path)` with `fn(&{E}) -> Verdict`"
)]
pub trait Classifier<E> {
    /// The verdict about a failure.
    fn verdict(&self) -> fn(&E) -> Verdict;
    /// The failure's text, for the context.
    fn text(&self) -> fn(&E) -> Option<String>;
}

#[diagnostic::do_not_recommend]
impl<E: Classify> Classifier<E> for DerivedClassifier {
    fn verdict(&self) -> fn(&E) -> Verdict {
        E::classify
    }
    fn text(&self) -> fn(&E) -> Option<String> {
        E::describe
    }
}

impl<E> Classifier<E> for fn(&E) -> Verdict {
    fn verdict(&self) -> fn(&E) -> Verdict {
        *self
    }
    fn text(&self) -> fn(&E) -> Option<String> {
        |_| None
    }
}

impl Retry<'static> {
    /// Retries by a policy. Errors are classified by their own [`Classify`]; unknown failures stop.
    pub fn new(policy: impl AsPolicy) -> Self {
        Self {
            name: "retry",
            policy: *policy.as_policy(),
            deadline: None,
            unknown: Unknown::Stop,
            idempotent: true,
            classes: Vec::new(),
            context: None,
            classifier: DerivedClassifier,
            cancel: pending(),
        }
    }
}

impl<'c, K, C> Retry<'c, K, C> {
    /// The operation's name, for warnings. Default: `retry`.
    pub const fn name(mut self, name: &'static str) -> Self {
        self.name = name;
        self
    }

    /// A limit over all attempts and waits, run time included; asked before each wait. Default: none. Zero counts as
    /// already passed: one attempt is made.
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// What an unknown failure does. Default: [`Unknown::Stop`].
    pub const fn unknown(mut self, unknown: Unknown) -> Self {
        self.unknown = unknown;
        self
    }

    /// Whether the operation may be done twice. Default: `true`. With `false` a failure whose outcome is unknown - sent,
    /// then timed out or reset - is not repeated: the call ends as
    /// [`OutcomeUnknown`](crate::StopReason::OutcomeUnknown).
    pub const fn idempotent(mut self, idempotent: bool) -> Self {
        self.idempotent = idempotent;
        self
    }

    /// Other numbers for the failures of one class; may be repeated, the first of a name holds. See [`ClassLimits`] for how
    /// they are counted.
    ///
    /// ```
    /// use retry_runtime::{ClassLimits, Policy, Retry, Verdict};
    ///
    /// let once = ClassLimits::new().max_retries(0);
    /// let mut calls = 0;
    /// let _limited = Retry::new(Policy::new())
    ///     .class("rate_limit", once)
    ///     .classify(|_: &()| Verdict::retryable("rate_limit"))
    ///     .run_blocking(|| {
    ///         calls += 1;
    ///         Err::<(), ()>(())
    ///     });
    /// assert_eq!(calls, 1);
    /// ```
    pub fn class(mut self, name: &'static str, limits: ClassLimits) -> Self {
        self.classes.push(Class::new(name, limits));
        self
    }

    /// Records the call in a context that can be read afterwards.
    pub fn context(self, context: &mut RetryContext) -> Retry<'_, K, C> {
        let Self { name, policy, deadline, unknown, idempotent, classes, context: _, classifier, cancel } = self;
        Retry { name, policy, deadline, unknown, idempotent, classes, context: Some(context), classifier, cancel }
    }

    /// Classifies errors by a function instead of their own `Classify`.
    pub fn classify<E>(self, classifier: fn(&E) -> Verdict) -> Retry<'c, fn(&E) -> Verdict, C> {
        let Self { name, policy, deadline, unknown, idempotent, classes, context, classifier: _, cancel } = self;
        Retry { name, policy, deadline, unknown, idempotent, classes, context, classifier, cancel }
    }

    /// Ends the call when `cancel` completes, at once: in the middle of an attempt, or of a wait. It is polled first, before
    /// every attempt and beside it. The call then ends as [`Cancelled`](crate::StopReason::Cancelled), and the error is
    /// made of a [`Refused`](crate::Refused), which tells of the last failure.
    ///
    /// ```
    /// use std::time::Duration;
    /// use retry_runtime::{Classify, Policy, Refused, Retry, StopReason};
    ///
    /// #[derive(Debug, Classify)]
    /// enum E {
    ///     #[classify(retryable)]
    ///     Busy,
    ///     #[classify(transparent)]
    ///     Stopped(Refused),
    /// }
    ///
    /// impl From<Refused> for E {
    ///     fn from(refused: Refused) -> Self {
    ///         Self::Stopped(refused)
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
    /// let shutdown = tokio::time::sleep(Duration::from_secs(2));
    /// let end = Retry::new(Policy::new()).cancel(shutdown).run(|| async { Err::<(), E>(E::Busy) }).await;
    /// assert!(matches!(end, Err(E::Stopped(refused)) if refused.reason() == StopReason::Cancelled));
    /// # }
    /// ```
    pub fn cancel<F: IntoFuture>(self, cancel: F) -> Retry<'c, K, impl Future<Output = Cancelled>> {
        let Self { name, policy, deadline, unknown, idempotent, classes, context, classifier, cancel: _ } = self;
        let cancel = cancel.into_future();
        let cancel = async move {
            cancel.await;
            Cancelled
        };
        Retry { name, policy, deadline, unknown, idempotent, classes, context, classifier, cancel }
    }

    /// Runs the operation until it succeeds or gives up, waiting by tokio's timer.
    ///
    /// # Panics
    /// At the first wait, in tokio, when it is not polled inside a tokio runtime with its time enabled;
    /// [`run_with`](Self::run_with) takes another timer.
    ///
    /// # Errors
    /// The last error, as it is.
    #[cfg(feature = "tokio")]
    pub async fn run<T, E, F, Fut>(self, operation: F) -> Result<T, E>
    where
        K: Classifier<E>,
        F: FnMut() -> Fut,
        Fut: Future<Output = Result<T, E>>,
        C: Future<Output: CancelWith<E>>,
    {
        self.run_with(tokio::time::sleep, operation).await
    }

    /// The same, waiting by a timer of your own.
    ///
    /// # Errors
    /// The last error, as it is.
    pub async fn run_with<T, E, F, Fut, S, Wait>(self, sleep: S, operation: F) -> Result<T, E>
    where
        K: Classifier<E>,
        F: FnMut() -> Fut,
        Fut: Future<Output = Result<T, E>>,
        S: Fn(Duration) -> Wait,
        Wait: Future<Output = ()>,
        C: Future<Output: CancelWith<E>>,
    {
        let (mut call, record, cancel) = self.start();
        let mut record = Remember::when(<C::Output as CancelWith<E>>::CANCELS, record);
        match call.drive(&mut record, sleep, operation, pin!(cancel)).await {
            Ended::Outcome(outcome) => outcome,
            Ended::Cancelled(with) => Err(with.error(cancelled(&mut record))),
        }
    }

    /// Runs the operation and reports a failure in full.
    ///
    /// # Panics
    /// As [`run`](Self::run).
    ///
    /// # Errors
    /// [`GaveUp`], with the reason, the history and the last error.
    #[cfg(feature = "tokio")]
    pub async fn run_reporting<T, E, F, Fut>(self, operation: F) -> Result<T, GaveUp<E>>
    where
        K: Classifier<E>,
        F: FnMut() -> Fut,
        Fut: Future<Output = Result<T, E>>,
        C: Future,
    {
        let mut own = RetryContext::new();
        let (mut call, mut record, cancel) = self.start();
        if !matches!(record, AtRunTime::Context(_)) {
            record = AtRunTime::Context(&mut own);
        }
        match call.drive(&mut record, tokio::time::sleep, operation, pin!(cancel)).await {
            Ended::Outcome(outcome) => outcome.map_err(|error| GaveUp::new(record.report(), Some(error), None)),
            Ended::Cancelled(_) => {
                let _told_by_the_report = cancelled(&mut record);
                Err(GaveUp::new(record.report(), None, None))
            }
        }
    }

    fn start(self) -> (Call<K>, AtRunTime<'c>, C) {
        let mut site = Site::new(self.name, self.policy);
        if let Some(deadline) = self.deadline {
            site = site.deadline(deadline);
        }
        if self.unknown == Unknown::Retry {
            site = site.retry_unknown();
        }
        if !self.idempotent {
            site = site.not_idempotent();
        }
        let record = match (self.context, self.deadline) {
            (Some(context), _) => AtRunTime::Context(context),
            (None, Some(_)) => AtRunTime::Timer(Timer::start_now()),
            (None, None) => AtRunTime::Nothing,
        };
        let counts = self.classes.iter().map(|_| Cell::new(Session::new())).collect();
        let Self { classes, classifier, cancel, .. } = self;
        (Call { site: site.checked(), session: Session::new(), classes, counts, classifier }, record, cancel)
    }
}

/// What blocks its thread cannot be cancelled: these are there without [`Retry::cancel`] only.
impl<K> Retry<'_, K> {
    /// Runs a blocking operation, sleeping on this thread between attempts.
    ///
    /// # Errors
    /// The last error, as it is.
    pub fn run_blocking<T, E>(self, operation: impl FnMut() -> Result<T, E>) -> Result<T, E>
    where
        K: Classifier<E>,
    {
        let (mut call, mut record, _) = self.start();
        call.drive_blocking(&mut record, operation)
    }

    /// Runs a blocking operation and reports a failure in full.
    ///
    /// # Errors
    /// [`GaveUp`], with the reason, the history and the last error.
    pub fn run_blocking_reporting<T, E>(self, operation: impl FnMut() -> Result<T, E>) -> Result<T, GaveUp<E>>
    where
        K: Classifier<E>,
    {
        let mut own = RetryContext::new();
        let (mut call, mut record, _) = self.start();
        if !matches!(record, AtRunTime::Context(_)) {
            record = AtRunTime::Context(&mut own);
        }
        let outcome = call.drive_blocking(&mut record, operation);
        outcome.map_err(|error| GaveUp::new(record.report(), Some(error), None))
    }
}
