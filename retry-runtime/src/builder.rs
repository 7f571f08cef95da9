//! The loop without a macro, around any closure.

use std::future::Future;
use std::time::Duration;

use crate::__private::{
    AsPolicy, At, AtRunTime, Recorder, Said, Session, Site, Timer, failed, sleep_blocking, succeeded, yield_once,
};
use crate::classify::Classify;
use crate::context::RetryContext;
use crate::engine::Unknown;
use crate::gave_up::GaveUp;
use crate::policy::Policy;
use crate::verdict::Verdict;

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
pub struct Retry<'c, K = DerivedClassifier> {
    name: &'static str,
    policy: Policy,
    deadline: Option<Duration>,
    unknown: Unknown,
    idempotent: bool,
    context: Option<&'c mut RetryContext>,
    classifier: K,
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
            context: None,
            classifier: DerivedClassifier,
        }
    }
}

impl<'c, K> Retry<'c, K> {
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

    /// Records the call in a context that can be read afterwards.
    pub fn context(self, context: &mut RetryContext) -> Retry<'_, K> {
        let Self { name, policy, deadline, unknown, idempotent, context: _, classifier } = self;
        Retry { name, policy, deadline, unknown, idempotent, context: Some(context), classifier }
    }

    /// Classifies errors by a function instead of their own `Classify`.
    pub fn classify<E>(self, classifier: fn(&E) -> Verdict) -> Retry<'c, fn(&E) -> Verdict> {
        let Self { name, policy, deadline, unknown, idempotent, context, classifier: _ } = self;
        Retry { name, policy, deadline, unknown, idempotent, context, classifier }
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
    {
        let (mut call, mut record) = self.start();
        call.drive(&mut record, sleep, operation).await
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
    {
        let mut own = RetryContext::new();
        let (mut call, mut record) = self.start();
        if !matches!(record, AtRunTime::Context(_)) {
            record = AtRunTime::Context(&mut own);
        }
        let outcome = call.drive(&mut record, tokio::time::sleep, operation).await;
        outcome.map_err(|error| GaveUp::new(record.report(), Some(error), None))
    }

    /// Runs a blocking operation, sleeping on this thread between attempts.
    ///
    /// # Errors
    /// The last error, as it is.
    pub fn run_blocking<T, E>(self, operation: impl FnMut() -> Result<T, E>) -> Result<T, E>
    where
        K: Classifier<E>,
    {
        let (mut call, mut record) = self.start();
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
        let (mut call, mut record) = self.start();
        if !matches!(record, AtRunTime::Context(_)) {
            record = AtRunTime::Context(&mut own);
        }
        let outcome = call.drive_blocking(&mut record, operation);
        outcome.map_err(|error| GaveUp::new(record.report(), Some(error), None))
    }

    fn start(self) -> (Call<K>, AtRunTime<'c>) {
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
        (Call { site: site.checked(), session: Session::new(), classifier: self.classifier }, record)
    }
}

/// One call of a [`Retry`].
struct Call<K> {
    site: Site,
    session: Session,
    classifier: K,
}

impl<K> Call<K> {
    async fn drive<T, E, F, Fut, S, Wait>(
        &mut self,
        record: &mut AtRunTime<'_>,
        sleep: S,
        mut operation: F,
    ) -> Result<T, E>
    where
        K: Classifier<E>,
        F: FnMut() -> Fut,
        Fut: Future<Output = Result<T, E>>,
        S: Fn(Duration) -> Wait,
        Wait: Future<Output = ()>,
    {
        record.start();
        loop {
            record.attempt();
            let wait = {
                let outcome = operation().await;
                match self.next(record, &outcome) {
                    Some(wait) => wait,
                    None => return outcome,
                }
            };
            if wait.is_zero() {
                yield_once().await;
            } else {
                sleep(wait).await;
            }
        }
    }

    fn drive_blocking<T, E>(
        &mut self,
        record: &mut AtRunTime<'_>,
        mut operation: impl FnMut() -> Result<T, E>,
    ) -> Result<T, E>
    where
        K: Classifier<E>,
    {
        record.start();
        loop {
            record.attempt();
            let wait = {
                let outcome = operation();
                match self.next(record, &outcome) {
                    Some(wait) => wait,
                    None => return outcome,
                }
            };
            sleep_blocking(wait);
        }
    }

    fn next<T, E>(&mut self, record: &mut AtRunTime<'_>, outcome: &Result<T, E>) -> Option<Duration>
    where
        K: Classifier<E>,
    {
        let Err(error) = outcome else { return succeeded(record) };
        let (verdict, text) = (self.classifier.verdict(), self.classifier.text());
        failed(&At::site(&self.site), &mut self.session, record, error, verdict, text, Said::Nothing)
    }
}
