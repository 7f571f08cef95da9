//! The loop without a macro, around any closure.

mod call;
mod cancel;
mod limits;

use std::cell::Cell;
use std::fmt;
use std::future::{Future, IntoFuture, pending};
use std::panic::Location;
use std::pin::pin;
use std::time::Duration;

use self::call::{Call, Ended};
use crate::__private::{AsPolicy, AtRunTime, Class, Recorder, Remember, Session, Site, Timer, Watched, cancelled};
use crate::breaker::CircuitBreaker;
use crate::budget::Budget;
use crate::classify::Classify;
use crate::context::RetryContext;
use crate::engine::{Nested, Unknown};
use crate::gave_up::GaveUp;
use crate::observe::{BuiltAt, Observer};
use crate::policy::{ClassLimits, Policy};
use crate::refused::Refused;
use crate::verdict::Verdict;

pub use cancel::{CancelWith, Cancelled, FromRefusal, Never, Uncancelled};
use limits::Shares;
pub use limits::{BreakWith, Breaker, Breaks, NoBreaker, Shared};

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
#[must_use = "nothing runs until `run` or `run_blocking`"]
pub struct Retry<'c, K = DerivedClassifier, C = Uncancelled, B = NoBreaker> {
    settings: Settings<'c>,
    classifier: K,
    cancel: C,
    breaker: B,
}

/// What is of the same type for every [`Retry`].
struct Settings<'c> {
    name: &'static str,
    built_at: BuiltAt,
    policy: Policy,
    deadline: Option<Duration>,
    unknown: Unknown,
    idempotent: bool,
    nested: Option<Nested>,
    classes: Vec<Class>,
    context: Option<&'c mut RetryContext>,
    budget: Option<Shared<'c, Budget>>,
    observer: Option<Shared<'c, dyn Observer + 'c>>,
}

impl<K, C, B: fmt::Debug> fmt::Debug for Retry<'_, K, C, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Settings {
            name,
            built_at: _,
            policy,
            deadline,
            unknown,
            idempotent,
            nested,
            classes,
            context,
            budget,
            observer: _,
        } = &self.settings;
        f.debug_struct("Retry")
            .field("name", name)
            .field("policy", policy)
            .field("deadline", deadline)
            .field("unknown", unknown)
            .field("idempotent", idempotent)
            .field("nested", nested)
            .field("classes", classes)
            .field("context", context)
            .field("budget", budget)
            .field("breaker", &self.breaker)
            .finish_non_exhaustive()
    }
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
    #[track_caller]
    pub fn new(policy: impl AsPolicy) -> Self {
        Self::built_at(Location::caller(), policy)
    }

    pub(crate) fn built_at(place: &'static Location<'static>, policy: impl AsPolicy) -> Self {
        let settings = Settings {
            name: "retry",
            built_at: Some(place),
            policy: policy.policy(),
            deadline: None,
            unknown: Unknown::Stop,
            idempotent: true,
            nested: None,
            classes: Vec::new(),
            context: None,
            budget: None,
            observer: None,
        };
        Self { settings, classifier: DerivedClassifier, cancel: pending(), breaker: NoBreaker }
    }
}

impl<'c, K, C, B> Retry<'c, K, C, B> {
    /// The operation's name, for warnings. Default: `retry`.
    pub const fn name(mut self, name: &'static str) -> Self {
        self.settings.name = name;
        self
    }

    /// A limit over all attempts and waits, run time included; asked before each wait. Default: none. Zero counts as
    /// already passed: one attempt is made.
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.settings.deadline = Some(deadline);
        self
    }

    /// What an unknown failure does. Default: [`Unknown::Stop`].
    pub const fn unknown(mut self, unknown: Unknown) -> Self {
        self.settings.unknown = unknown;
        self
    }

    /// Whether the operation may be done twice. Default: `true`. With `false` a failure whose outcome is unknown - sent,
    /// then timed out or reset - is not repeated: the call ends as
    /// [`OutcomeUnknown`](crate::StopReason::OutcomeUnknown).
    pub const fn idempotent(mut self, idempotent: bool) -> Self {
        self.settings.idempotent = idempotent;
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
        self.settings.classes.push(Class::new(name, limits));
        self
    }

    /// Records the call in a context that can be read afterwards.
    pub fn context<'n>(self, context: &'n mut RetryContext) -> Retry<'n, K, C, B>
    where
        'c: 'n,
    {
        let mut this: Retry<'n, K, C, B> = self;
        this.settings.context = Some(context);
        this
    }

    /// Classifies errors by a function instead of their own `Classify`.
    pub fn classify<E>(self, classifier: fn(&E) -> Verdict) -> Retry<'c, fn(&E) -> Verdict, C, B> {
        let Self { settings, cancel, breaker, .. } = self;
        Retry { settings, classifier, cancel, breaker }
    }

    /// What is done about retries inside an attempt of another retried call. Default: nothing in async calls; blocking ones
    /// are told of always, see [`Nested`]. An outer call that is asked marks its attempts, so that inner ones see it.
    ///
    /// ```
    /// use retry_runtime::{Nested, Policy, Retry, Verdict};
    ///
    /// let busy = |_: &()| Verdict::retryable("busy");
    /// let quick = Policy::new().base_delay(std::time::Duration::from_millis(1));
    /// let mut calls = 0;
    /// let _failed = Retry::new(quick).classify(busy).run_blocking(|| {
    ///     Retry::new(quick).nested(Nested::OuterOnly).classify(busy).run_blocking(|| {
    ///         calls += 1;
    ///         Err::<(), ()>(())
    ///     })
    /// });
    /// assert_eq!(calls, 3, "not 9");
    /// ```
    pub const fn nested(mut self, nested: Nested) -> Self {
        self.settings.nested = Some(nested);
        self
    }

    /// A budget that retries live on, shared with other calls: a `&Budget` or an `Arc<Budget>`. A retry takes from it before
    /// its wait; where there is not enough the call ends as [`BudgetDenied`](crate::StopReason::BudgetDenied), with its own
    /// last error. See [`Budget`].
    ///
    /// ```
    /// use retry_runtime::{Budget, Policy, Retry, Verdict};
    ///
    /// static BUDGET: Budget = Budget::new().capacity(0);
    ///
    /// let mut calls = 0;
    /// let _denied = Retry::new(Policy::new()).budget(&BUDGET).classify(|_: &()| Verdict::retryable("busy")).run_blocking(|| {
    ///     calls += 1;
    ///     Err::<(), ()>(())
    /// });
    /// assert_eq!((calls, BUDGET.denied()), (1, 1));
    /// ```
    pub fn budget(mut self, budget: impl Into<Shared<'c, Budget>>) -> Self {
        self.settings.budget = Some(budget.into());
        self
    }

    /// A circuit breaker that admits the attempts, shared with other calls: a `&CircuitBreaker` or an
    /// `Arc<CircuitBreaker>`. While it is open the call ends as [`BreakerOpen`](crate::StopReason::BreakerOpen): with its
    /// own last error where an attempt has failed; where none has run, with an error that is made of a
    /// [`Refused`](crate::Refused). See [`CircuitBreaker`].
    ///
    /// ```
    /// use retry_runtime::{CircuitBreaker, Classify, Policy, Refused, Retry, StopReason};
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
    /// static BREAKER: CircuitBreaker = CircuitBreaker::new().min_calls(1);
    ///
    /// let call = || Retry::new(Policy::new()).breaker(&BREAKER).run_blocking(|| Err::<(), E>(E::Busy));
    /// assert!(matches!(call(), Err(E::Busy)), "the first failure has opened it");
    /// assert!(matches!(call(), Err(E::Stopped(refused)) if refused.reason() == StopReason::BreakerOpen));
    /// ```
    pub fn breaker(self, breaker: impl Into<Shared<'c, CircuitBreaker>>) -> Retry<'c, K, C, Breaker<'c>> {
        self.guarded(Breaker(breaker.into()))
    }

    /// Tells an observer what the call does: a `&impl Observer`, or an `Arc` of one. The
    /// [installed](crate::observe::install) one is told as well. See [`observe`](crate::observe).
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU32, Ordering};
    /// use retry_runtime::observe::{Event, What, from_fn};
    /// use retry_runtime::{Policy, Retry, Verdict};
    ///
    /// let failed = AtomicU32::new(0);
    /// let count = from_fn(|event: &Event<'_>| {
    ///     if matches!(event.what, What::AttemptFailed { .. }) {
    ///         failed.fetch_add(1, Ordering::Relaxed);
    ///     }
    /// });
    /// let once = Policy::new().max_retries(0);
    /// let _failed = Retry::new(once).observer(&count).classify(|_: &()| Verdict::retryable("busy")).run_blocking(|| Err::<(), ()>(()));
    /// assert_eq!(failed.load(Ordering::Relaxed), 1);
    /// ```
    pub fn observer(mut self, observer: impl Into<Shared<'c, dyn Observer + 'c>>) -> Self {
        self.settings.observer = Some(observer.into());
        self
    }

    /// A breaker, or none.
    pub(crate) fn guarded<G>(self, breaker: G) -> Retry<'c, K, C, G> {
        let Self { settings, classifier, cancel, .. } = self;
        Retry { settings, classifier, cancel, breaker }
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
    pub fn cancel<F: IntoFuture>(self, cancel: F) -> Retry<'c, K, impl Future<Output = Cancelled>, B> {
        let Self { settings, classifier, breaker, .. } = self;
        let cancel = cancel.into_future();
        let cancel = async move {
            cancel.await;
            Cancelled
        };
        Retry { settings, classifier, cancel, breaker }
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
        B: BreakWith<E>,
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
        B: BreakWith<E>,
    {
        let (mut call, record, cancel, shares) = self.start();
        let watch = call.watch(&shares);
        let mut record = Remember::when(<C::Output as CancelWith<E>>::CANCELS, record);
        let mut record = Watched::new(&mut record, watch);
        let end = call.drive(&mut record, shares.guards(), B::error, sleep, operation, pin!(cancel)).await;
        match end {
            Ended::Outcome(outcome) => outcome,
            Ended::Cancelled(with) => Err(with.error(cancelled(&mut record))),
            Ended::Refused(error) => Err(error),
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
        B: Breaks,
    {
        let mut own = RetryContext::new();
        let (mut call, mut record, cancel, shares) = self.start();
        if !matches!(record, AtRunTime::Context(_)) {
            record = AtRunTime::Context(&mut own);
        }
        let watch = call.watch(&shares);
        let mut record = Watched::new(&mut record, watch);
        let told = |_: Refused| Some(());
        let end = call.drive(&mut record, shares.guards(), told, tokio::time::sleep, operation, pin!(cancel)).await;
        match end {
            Ended::Outcome(outcome) => outcome.map_err(|error| GaveUp::new(record.report(), Some(error), None)),
            Ended::Cancelled(_) => {
                let _told_by_the_report = cancelled(&mut record);
                Err(GaveUp::new(record.report(), None, None))
            }
            Ended::Refused(()) => Err(GaveUp::new(record.report(), None, None)),
        }
    }

    fn start(self) -> (Call<K>, AtRunTime<'c>, C, Shares<'c, B>) {
        let Self { settings, classifier, cancel, breaker } = self;
        let Settings {
            name,
            built_at,
            policy,
            deadline,
            unknown,
            idempotent,
            nested,
            classes,
            context,
            budget,
            observer,
        } = settings;
        let mut site = Site::new(name, policy).built_at(built_at);
        if let Some(deadline) = deadline {
            site = site.deadline(deadline);
        }
        if unknown == Unknown::Retry {
            site = site.retry_unknown();
        }
        if !idempotent {
            site = site.not_idempotent();
        }
        if nested == Some(Nested::OuterOnly) {
            site = site.outer_only();
        }
        if !classes.is_empty() {
            site = site.may_retry();
        }
        let marks = nested.is_some() || cfg!(feature = "test-util");
        let record = match (context, deadline) {
            (Some(context), _) => AtRunTime::Context(context),
            (None, Some(_)) => AtRunTime::Timer(Timer::start_now()),
            (None, None) => AtRunTime::Nothing,
        };
        let counts = classes.iter().map(|_| Cell::new(Session::new())).collect();
        let call = Call { site: site.checked(), session: Session::new(), classes, counts, classifier, marks };
        (call, record, cancel, Shares { budget, breaker, observer })
    }
}

/// What blocks its thread cannot be cancelled: these are there without [`Retry::cancel`] only.
impl<K, B> Retry<'_, K, Uncancelled, B> {
    /// Runs a blocking operation, sleeping on this thread between attempts.
    ///
    /// # Errors
    /// The last error, as it is.
    pub fn run_blocking<T, E>(self, operation: impl FnMut() -> Result<T, E>) -> Result<T, E>
    where
        K: Classifier<E>,
        B: BreakWith<E>,
    {
        let (mut call, mut record, _, shares) = self.start();
        let watch = call.watch(&shares);
        let mut record = Watched::new(&mut record, watch);
        call.drive_blocking(&mut record, &shares.guards(), B::error, operation).unwrap_or_else(Err)
    }

    /// Runs a blocking operation and reports a failure in full.
    ///
    /// # Errors
    /// [`GaveUp`], with the reason, the history and the last error.
    pub fn run_blocking_reporting<T, E>(self, operation: impl FnMut() -> Result<T, E>) -> Result<T, GaveUp<E>>
    where
        K: Classifier<E>,
        B: Breaks,
    {
        let mut own = RetryContext::new();
        let (mut call, mut record, _, shares) = self.start();
        if !matches!(record, AtRunTime::Context(_)) {
            record = AtRunTime::Context(&mut own);
        }
        let watch = call.watch(&shares);
        let mut record = Watched::new(&mut record, watch);
        let told = |_: Refused| Some(());
        match call.drive_blocking(&mut record, &shares.guards(), told, operation) {
            Ok(outcome) => outcome.map_err(|error| GaveUp::new(record.report(), Some(error), None)),
            Err(()) => Err(GaveUp::new(record.report(), None, None)),
        }
    }
}
