//! `Retry::budget`, `Retry::breaker` and `Retry::observer`: what a call shares, and what it returns when the breaker refuses
//! it.

use std::ops::Deref;
use std::sync::Arc;

use super::cancel::FromRefusal;
use crate::__private::Guards;
use crate::breaker::CircuitBreaker;
use crate::budget::Budget;
use crate::observe::Observer;
use crate::refused::Refused;

/// A budget, a breaker or an observer: borrowed, or owned together with others.
#[derive(Debug)]
pub enum Shared<'s, T: ?Sized> {
    /// Somebody else's.
    Borrowed(&'s T),
    /// Owned with others.
    Owned(Arc<T>),
}

impl<T: ?Sized> Clone for Shared<'_, T> {
    fn clone(&self) -> Self {
        match self {
            Self::Borrowed(shared) => Self::Borrowed(shared),
            Self::Owned(shared) => Self::Owned(Arc::clone(shared)),
        }
    }
}

impl<T: ?Sized> Deref for Shared<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        match self {
            Self::Borrowed(shared) => shared,
            Self::Owned(shared) => shared,
        }
    }
}

impl<'s, T> From<&'s T> for Shared<'s, T> {
    fn from(shared: &'s T) -> Self {
        Self::Borrowed(shared)
    }
}

impl<T> From<Arc<T>> for Shared<'_, T> {
    fn from(shared: Arc<T>) -> Self {
        Self::Owned(shared)
    }
}

impl<T> From<&Arc<T>> for Shared<'_, T> {
    fn from(shared: &Arc<T>) -> Self {
        Self::Owned(Arc::clone(shared))
    }
}

impl<'s, O: Observer> From<&'s O> for Shared<'s, dyn Observer + 's> {
    fn from(shared: &'s O) -> Self {
        Self::Borrowed(shared)
    }
}

impl<'s, O: Observer + 's> From<Arc<O>> for Shared<'s, dyn Observer + 's> {
    fn from(shared: Arc<O>) -> Self {
        Self::Owned(shared)
    }
}

impl<'s> From<&'s (dyn Observer + 's)> for Shared<'s, dyn Observer + 's> {
    fn from(shared: &'s (dyn Observer + 's)) -> Self {
        Self::Borrowed(shared)
    }
}

impl<'s> From<Arc<dyn Observer + 's>> for Shared<'s, dyn Observer + 's> {
    fn from(shared: Arc<dyn Observer + 's>) -> Self {
        Self::Owned(shared)
    }
}

/// A [`Retry`](crate::Retry) without a breaker.
#[derive(Clone, Copy, Debug)]
pub struct NoBreaker;

/// A [`Retry`](crate::Retry) with one: see [`Retry::breaker`](crate::Retry::breaker).
#[derive(Clone, Debug)]
pub struct Breaker<'s>(pub(super) Shared<'s, CircuitBreaker>);

#[cfg(any(feature = "tower", feature = "reqwest-middleware"))]
impl<'s> Breaker<'s> {
    pub(crate) fn new(breaker: impl Into<Shared<'s, CircuitBreaker>>) -> Self {
        Self(breaker.into())
    }
}

/// A breaker, or none.
pub trait Breaks {
    #[doc(hidden)]
    fn breaker(&self) -> Option<&CircuitBreaker>;
}

/// Whether a call can be refused, and what it then returns.
pub trait BreakWith<E>: Breaks {
    #[doc(hidden)]
    fn error(refused: Refused) -> Option<E>;
}

impl Breaks for NoBreaker {
    fn breaker(&self) -> Option<&CircuitBreaker> {
        None
    }
}

impl<E> BreakWith<E> for NoBreaker {
    fn error(_: Refused) -> Option<E> {
        None
    }
}

impl Breaks for Breaker<'_> {
    fn breaker(&self) -> Option<&CircuitBreaker> {
        Some(&self.0)
    }
}

impl<E: FromRefusal> BreakWith<E> for Breaker<'_> {
    fn error(refused: Refused) -> Option<E> {
        Some(E::from_refusal(refused))
    }
}

/// What a call shares.
pub(super) struct Shares<'s, B> {
    pub(super) budget: Option<Shared<'s, Budget>>,
    pub(super) breaker: B,
    pub(super) observer: Option<Shared<'s, dyn Observer + 's>>,
}

impl<B: Breaks> Shares<'_, B> {
    pub(super) fn guards(&self) -> Guards<'_> {
        Guards::new(self.budget.as_deref(), self.breaker.breaker())
    }

    pub(super) fn observer(&self) -> Option<&dyn Observer> {
        // one match more than `as_deref`, whose lifetime does not shrink
        match &self.observer {
            Some(observer) => Some(&**observer),
            None => None,
        }
    }
}
