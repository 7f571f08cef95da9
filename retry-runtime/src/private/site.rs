//! What is known of one annotated function before it is called.

use std::sync::LazyLock;
use std::time::Duration;

use crate::engine::{Limits, Unknown};
use crate::nest;
use crate::observe::{BuiltAt, warn_once};
use crate::policy::{Doubling, Policy, Retries};

/// The settings of one annotated function. Literal settings make it a constant; others build it per call.
#[derive(Clone, Copy, Debug)]
pub struct Site {
    name: &'static str,
    policy: Policy,
    deadline: Option<Duration>,
    attempt_timeout: Option<Duration>,
    unknown: Unknown,
    idempotent: bool,
    outer_only: bool,
    /// Whether an attempt may be followed by another one, as far as is known before the first.
    may_retry: bool,
    built_at: BuiltAt,
}

impl Site {
    #[inline]
    pub const fn new(name: &'static str, policy: Policy) -> Self {
        Self {
            name,
            policy,
            deadline: None,
            attempt_timeout: None,
            unknown: Unknown::Stop,
            idempotent: true,
            outer_only: false,
            may_retry: !matches!(policy.retries(), Retries::Limited(0)),
            built_at: None,
        }
    }

    #[inline]
    #[must_use]
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    #[inline]
    #[must_use]
    pub const fn attempt_timeout(mut self, limit: Duration) -> Self {
        self.attempt_timeout = Some(limit);
        self
    }

    #[inline]
    #[must_use]
    pub const fn retry_unknown(mut self) -> Self {
        self.unknown = Unknown::Retry;
        self
    }

    #[inline]
    #[must_use]
    pub const fn not_idempotent(mut self) -> Self {
        self.idempotent = false;
        self
    }

    #[inline]
    #[must_use]
    pub const fn outer_only(mut self) -> Self {
        self.outer_only = true;
        self
    }

    /// Another policy, or a class, has numbers of its own.
    #[inline]
    #[must_use]
    pub const fn may_retry(mut self) -> Self {
        self.may_retry = true;
        self
    }

    /// Its name, where its attempts are marked.
    #[inline]
    pub const fn marked(&self) -> Option<&'static str> {
        if self.may_retry { Some(self.name) } else { None }
    }

    /// Of a call that is set up at run time: its name may be that of others.
    pub(crate) const fn built_at(mut self, place: BuiltAt) -> Self {
        self.built_at = place;
        self
    }

    /// For settings that are not literals: says once per site which of them contradict each other.
    #[must_use]
    pub fn checked(self) -> Self {
        let complaint = self.policy.validate().err().map(|error| error.to_string()).or_else(|| self.limits_complaint());
        if let Some(complaint) = complaint {
            self.warn_once("misconfigured", || complaint);
        }
        self
    }

    fn limits_complaint(&self) -> Option<String> {
        let zero = |name| format!("`{name}` is zero: it counts as already passed");
        match (self.deadline, self.attempt_timeout) {
            (Some(Duration::ZERO), _) => Some(zero("deadline")),
            (_, Some(Duration::ZERO)) => Some(zero("attempt_timeout")),
            (Some(deadline), Some(attempt)) if attempt > deadline => {
                Some(format!("`attempt_timeout` {attempt:?} is longer than `deadline` {deadline:?}"))
            }
            _ => None,
        }
    }

    /// Says a warning once for this site.
    pub(crate) fn warn_once(&self, notice: &'static str, message: impl FnOnce() -> String) {
        warn_once(notice, self.name, self.built_at, message);
    }

    /// What tells this site from others.
    pub(crate) const fn place(&self) -> (&'static str, BuiltAt) {
        (self.name, self.built_at)
    }

    pub const fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) const fn policy(&self) -> &Policy {
        &self.policy
    }

    pub(crate) const fn limits(&self) -> Limits {
        let Self { deadline, unknown, idempotent, .. } = *self;
        Limits { deadline, unknown, idempotent, disabled: false, single: false }
    }

    /// Whether a call makes a single attempt, since it is made in an attempt of another one.
    pub(crate) fn is_single(&self) -> bool {
        self.outer_only && nest::around().depth > 0
    }

    /// What decides about a failure that may pass, where that is the policy's count alone and the waits only double.
    pub(crate) const fn plain(&self) -> Option<Doubling> {
        if self.deadline.is_none() && self.idempotent && !self.outer_only { self.policy.doubling() } else { None }
    }

    pub(crate) const fn timeouts(&self) -> (Option<Duration>, Option<Duration>) {
        (self.attempt_timeout, self.deadline)
    }
}

/// What `policy = EXPR` takes: a [`Policy`], or a reference or `Arc` to one; with feature `config` also a
/// [`NamedPolicy`](crate::config::NamedPolicy).
#[diagnostic::on_unimplemented(
    message = "`policy = ..` takes a `Policy` or a `&Policy`, not `{Self}`",
    label = "not a policy"
)]
pub trait AsPolicy {
    /// The policy as it is now: asked at each failure, and not before.
    fn policy(&self) -> Policy;
}

impl AsPolicy for Policy {
    #[inline]
    fn policy(&self) -> Policy {
        *self
    }
}

impl<P: AsPolicy + ?Sized> AsPolicy for &P {
    #[inline]
    fn policy(&self) -> Policy {
        (**self).policy()
    }
}

impl<P: AsPolicy + ?Sized> AsPolicy for std::sync::Arc<P> {
    #[inline]
    fn policy(&self) -> Policy {
        (**self).policy()
    }
}

impl<P: AsPolicy, F: FnOnce() -> P> AsPolicy for LazyLock<P, F> {
    fn policy(&self) -> Policy {
        (**self).policy()
    }
}

#[cfg(feature = "config")]
impl AsPolicy for crate::config::NamedPolicy<'_> {
    fn policy(&self) -> Policy {
        self.get()
    }
}
