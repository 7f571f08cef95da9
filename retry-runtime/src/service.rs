//! What the layer for `tower` and the middleware for `reqwest` share: the settings of a call, and how its failures are told
//! to the engine, since an answer can be one.

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use crate::__private::AsPolicy;
use crate::budget::Budget;
use crate::builder::{BreakWith, NoBreaker, Retry, Shared};
use crate::classify::Classify;
use crate::engine::Unknown;
use crate::observe::Observer;
use crate::policy::Policy;
use crate::refused::Refused;
use crate::verdict::Verdict;

/// An attempt of a service that failed: with an error, or with an answer that counts as a failure. The caller gets the last
/// one as it is.
#[derive(Debug)]
pub struct FailedAttempt<R, E>(pub(crate) Failure<R, E>);

#[derive(Debug)]
pub(crate) enum Failure<R, E> {
    Answer(R, Judged),
    Error(E, Judged),
}

/// The verdict about an attempt, or the message of the panic with which the judge ended.
pub(crate) type Judged = Result<Verdict, String>;

impl<R, E> FailedAttempt<R, E> {
    /// What the caller gets.
    fn outcome(self) -> Result<R, E> {
        match self.0 {
            Failure::Answer(answer, _) => Ok(answer),
            Failure::Error(error, _) => Err(error),
        }
    }
}

impl<R, E> Classify for FailedAttempt<R, E> {
    fn classify(&self) -> Verdict {
        match self.0 {
            Failure::Answer(_, Ok(verdict)) | Failure::Error(_, Ok(verdict)) => verdict,
            // The judge's panic goes on here, where the engine asks: it knows what that means for a call.
            Failure::Answer(_, Err(ref why)) | Failure::Error(_, Err(ref why)) => resume_unwind(Box::new(why.clone())),
        }
    }
}

/// A call that the breaker refuses has no answer.
impl<R, E: From<Refused>> From<Refused> for FailedAttempt<R, E> {
    fn from(refused: Refused) -> Self {
        let verdict = refused.classify();
        Self(Failure::Error(refused.into(), Ok(verdict)))
    }
}

/// The settings of each call.
#[derive(Clone)]
pub(crate) struct Settings<B> {
    pub(crate) name: &'static str,
    /// Asked at the start of each call: one from a file may have been read again since.
    pub(crate) built_at: &'static Location<'static>,
    pub(crate) policy: Arc<dyn AsPolicy + Send + Sync>,
    pub(crate) deadline: Option<Duration>,
    pub(crate) unknown: Unknown,
    pub(crate) idempotent: bool,
    pub(crate) budget: Option<Shared<'static, Budget>>,
    pub(crate) breaker: B,
    pub(crate) observer: Option<Shared<'static, dyn Observer>>,
}

impl<B: fmt::Debug> fmt::Debug for Settings<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, built_at: _, policy, deadline, unknown, idempotent, budget, breaker, observer: _ } = self;
        f.debug_struct("Settings")
            .field("name", name)
            .field("policy", &policy.policy())
            .field("deadline", deadline)
            .field("unknown", unknown)
            .field("idempotent", idempotent)
            .field("budget", budget)
            .field("breaker", breaker)
            .finish_non_exhaustive()
    }
}

impl Settings<NoBreaker> {
    #[track_caller]
    pub(crate) fn new(name: &'static str, policy: impl AsPolicy + Send + Sync + 'static) -> Self {
        Self {
            name,
            built_at: Location::caller(),
            policy: Arc::new(policy),
            deadline: None,
            unknown: Unknown::Stop,
            idempotent: true,
            budget: None,
            breaker: NoBreaker,
            observer: None,
        }
    }

    pub(crate) fn with_breaker<B>(self, breaker: B) -> Settings<B> {
        let Self { name, built_at, policy, deadline, unknown, idempotent, budget, breaker: NoBreaker, observer } = self;
        Settings { name, built_at, policy, deadline, unknown, idempotent, budget, breaker, observer }
    }
}

impl<B> Settings<B> {
    /// One call, by the one engine, and by this policy: its own as it is now, or one like it.
    pub(crate) async fn call<R, E, F, Fut>(self, policy: Policy, attempt: F) -> Result<R, E>
    where
        B: BreakWith<FailedAttempt<R, E>>,
        F: FnMut() -> Fut,
        Fut: Future<Output = Result<R, FailedAttempt<R, E>>>,
    {
        let retry = Retry::built_at(self.built_at, policy);
        let mut retry = retry.name(self.name).unknown(self.unknown).idempotent(self.idempotent);
        if let Some(deadline) = self.deadline {
            retry = retry.deadline(deadline);
        }
        if let Some(budget) = self.budget {
            retry = retry.budget(budget);
        }
        if let Some(observer) = self.observer {
            retry = retry.observer(observer);
        }
        retry.guarded(self.breaker).run(attempt).await.or_else(FailedAttempt::outcome)
    }
}

/// The setters of [`Settings`], for a type that has a field of that name.
macro_rules! setters {
    () => {
        /// The operation's name, for events and warnings.
        pub fn name(mut self, name: &'static str) -> Self {
            self.settings.name = name;
            self
        }

        /// A limit over all attempts and waits of a call, asked before each wait. Default: none.
        pub fn deadline(mut self, deadline: Duration) -> Self {
            self.settings.deadline = Some(deadline);
            self
        }

        /// What an unknown failure does. Default: [`Unknown::Stop`].
        pub fn unknown(mut self, unknown: Unknown) -> Self {
            self.settings.unknown = unknown;
            self
        }

        /// Whether a request may be done twice. With `false` a failure whose outcome is unknown - sent, then timed out or
        /// reset - is not repeated. Default: `true`.
        pub fn idempotent(mut self, idempotent: bool) -> Self {
            self.settings.idempotent = idempotent;
            self
        }

        /// A budget that retries live on, shared by all calls: a `&'static Budget` or an `Arc<Budget>`. Where it denies, the
        /// caller gets what the last attempt gave.
        pub fn budget(mut self, budget: impl Into<Shared<'static, Budget>>) -> Self {
            self.settings.budget = Some(budget.into());
            self
        }

        /// Who is told what each call does: a `&'static impl Observer`, or an `Arc` of one. The
        /// [installed](crate::observe::install) one is told as well.
        pub fn observer(mut self, observer: impl Into<Shared<'static, dyn Observer>>) -> Self {
            self.settings.observer = Some(observer.into());
            self
        }
    };
}

pub(crate) use setters;

/// The verdict about an HTTP answer, unless it is a success.
#[cfg(feature = "http")]
pub(crate) fn of_answer(
    rules: &crate::classify::StatusRules,
    status: ::http::StatusCode,
    headers: &::http::HeaderMap,
) -> Option<Verdict> {
    let verdict = rules.verdict(Some(i64::from(status.as_u16())), "");
    if status.as_u16() < 400 && verdict.disposition == crate::verdict::Disposition::Unknown {
        return None;
    }
    Some(crate::hints::from_header_map(headers, crate::clock::wall()).apply(verdict))
}
