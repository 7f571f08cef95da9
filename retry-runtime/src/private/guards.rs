//! What a call shares with others: the budget its retries live on, the breaker that admits its attempts.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::__private::record::{Hidden, Recorder};
use crate::breaker::{BreakerOpen, CircuitBreaker, Permit};
use crate::budget::{Budget, Spent, Taken};
use crate::engine::{Knob, Stop};
use crate::refused::Refused;
use crate::stop::StopReason;
use crate::verdict::Verdict;

/// The budget and the breaker of one call, with what it holds of them. Dropped in the middle of an attempt it gives the
/// permit back without a verdict.
pub struct Guards<'a> {
    budget: Option<&'a Budget>,
    breaker: Option<&'a CircuitBreaker>,
    /// Of the attempt that runs, or comes next.
    permit: Cell<Option<Permit<'a>>>,
    /// For the retry that comes next.
    taken: Cell<Option<Taken<'a>>>,
    /// By the last retry.
    spent: Cell<Option<Spent<'a>>>,
}

impl<'a> Guards<'a> {
    #[inline]
    pub const fn new(budget: Option<&'a Budget>, breaker: Option<&'a CircuitBreaker>) -> Self {
        Self { budget, breaker, permit: Cell::new(None), taken: Cell::new(None), spent: Cell::new(None) }
    }

    /// Before an attempt: a breaker that is open refuses the first one. A retry was admitted before its wait.
    pub fn refused<R: Recorder>(&self, record: &mut R) -> Option<Refused> {
        let breaker = self.breaker?;
        match self.permit.take() {
            held @ Some(_) => self.permit.set(held),
            None => match breaker.permit() {
                Ok(permit) => self.permit.set(Some(permit)),
                Err(open) => return Some(refusal(record, open)),
            },
        }
        None
    }

    /// What was taken for the retry that comes next, to be held while it waits: dropped, it goes back.
    #[inline]
    pub fn taken(&self) -> Option<Taken<'a>> {
        self.taken.take()
    }

    /// The wait is over.
    #[inline]
    pub fn waited(&self, taken: Option<Taken<'a>>) {
        if let Some(taken) = taken {
            self.spent.set(Some(taken.spend()));
        }
    }

    /// An attempt succeeded.
    #[inline]
    pub fn succeeded(&self) {
        if let Some(budget) = self.budget {
            match self.spent.take() {
                None => budget.succeeded(),
                Some(spent) => spent.refund(),
            }
        }
        if self.breaker.is_some() {
            if let Some(permit) = self.permit.take() {
                permit.succeeded();
            }
        }
    }
}

/// What a failed attempt asks of [`Guards`], whose lifetime does not shrink.
pub trait Guarding: fmt::Debug {
    /// An attempt failed; without a verdict it says nothing about the dependency.
    fn failed(&self, verdict: Option<&Verdict>);
    /// Whether the breaker admits a retry after a wait. Asked before the wait, while the error is there to be returned.
    #[doc(hidden)]
    fn admit(&self, wait: Duration) -> Result<(), Hidden>;
    /// An attempt that was admitted does not come, or is cut off: another limit said no, or the call was cancelled.
    fn give_up(&self);
    /// What the budget holds, for whoever watches.
    fn milli_tokens(&self) -> Option<u64>;
    /// Takes from the budget what a retry costs after this failure.
    #[doc(hidden)]
    fn take(&self, class: &'static str) -> Result<(), Hidden>;
}

impl Guarding for Guards<'_> {
    fn failed(&self, verdict: Option<&Verdict>) {
        match (self.permit.take(), verdict) {
            (Some(permit), Some(verdict)) => permit.judged(verdict),
            (permit, _) => drop(permit),
        }
    }

    fn admit(&self, wait: Duration) -> Result<(), Hidden> {
        if let Some(breaker) = self.breaker {
            let permit = breaker.permit_after(wait).map_err(|open| Hidden(stop(open)))?;
            self.permit.set(Some(permit));
        }
        Ok(())
    }

    fn give_up(&self) {
        drop(self.permit.take());
    }

    fn milli_tokens(&self) -> Option<u64> {
        self.budget.map(Budget::milli_tokens)
    }

    fn take(&self, class: &'static str) -> Result<(), Hidden> {
        if let Some(budget) = self.budget {
            match budget.take(class) {
                Some(taken) => self.taken.set(Some(taken)),
                None => {
                    let knob = Knob::Budget { left: budget.milli_tokens(), cost: budget.cost_of(class) };
                    return Err(Hidden(Stop { reason: StopReason::BudgetDenied, knob }));
                }
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Guards<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guards").field("budget", &self.budget).field("breaker", &self.breaker).finish_non_exhaustive()
    }
}

fn stop(open: BreakerOpen) -> Stop {
    Stop { reason: StopReason::BreakerOpen, knob: Knob::Breaker(open) }
}

/// The call ends before its first attempt.
#[cold]
fn refusal<R: Recorder>(record: &mut R, open: BreakerOpen) -> Refused {
    record.stopped(Hidden(stop(open)));
    Refused::new(StopReason::BreakerOpen, open.to_string())
}

/// An attempt succeeded in a call that shares something.
#[inline]
pub fn succeeded_sharing<R: Recorder>(guards: &Guards<'_>, record: &mut R) -> Option<Duration> {
    guards.succeeded();
    record.budget(|| guards.milli_tokens());
    super::succeeded(record)
}

/// What `budget = EXPR` takes: a [`Budget`], or a reference or `Arc` to one.
#[diagnostic::on_unimplemented(
    message = "`budget = ..` takes a `&Budget` or an `Arc<Budget>`, not `{Self}`",
    label = "not a budget",
    note = "calls share a budget: `static BUDGET: Budget = Budget::new();` and `budget = &BUDGET`",
    note = "of `Budgets` it is the one of a key: `budget = BUDGETS.get(key)`"
)]
pub trait AsBudget {
    fn as_budget(&self) -> &Budget;
}

/// What `breaker = EXPR` takes: a [`CircuitBreaker`], or a reference or `Arc` to one.
#[diagnostic::on_unimplemented(
    message = "`breaker = ..` takes a `&CircuitBreaker` or an `Arc<CircuitBreaker>`, not `{Self}`",
    label = "not a circuit breaker",
    note = "calls share a breaker: `static BREAKER: CircuitBreaker = CircuitBreaker::new();` and `breaker = &BREAKER`"
)]
pub trait AsBreaker {
    fn as_breaker(&self) -> &CircuitBreaker;
}

/// What `budget = EXPR` takes where the expression makes a value: one that calls share all the same.
#[diagnostic::on_unimplemented(
    message = "`budget = ..` takes a `&Budget` or an `Arc<Budget>` that calls share, not a `{Self}` made here",
    label = "each call would have one of its own",
    note = "what each call makes for itself limits nothing: `static BUDGET: Budget = Budget::new();` and `budget = &BUDGET`"
)]
pub trait LastingBudget: AsBudget {}

impl<B: AsBudget + ?Sized> LastingBudget for &B {}
impl<B: AsBudget + ?Sized> LastingBudget for Arc<B> {}

/// What `breaker = EXPR` takes where the expression makes a value: one that calls share all the same.
#[diagnostic::on_unimplemented(
    message = "`breaker = ..` takes a `&CircuitBreaker` or an `Arc<CircuitBreaker>` that calls share, not a `{Self}` made here",
    label = "each call would have one of its own",
    note = "what each call makes for itself never opens: `static BREAKER: CircuitBreaker = CircuitBreaker::new();` and `breaker = &BREAKER`"
)]
pub trait LastingBreaker: AsBreaker {}

impl<B: AsBreaker + ?Sized> LastingBreaker for &B {}
impl<B: AsBreaker + ?Sized> LastingBreaker for Arc<B> {}

/// The budget of `budget = EXPR`, where that makes a value.
#[inline]
pub fn as_lasting_budget<B: LastingBudget>(given: &B) -> &Budget {
    given.as_budget()
}

/// The breaker of `breaker = EXPR`, where that makes a value.
#[inline]
pub fn as_lasting_breaker<B: LastingBreaker>(given: &B) -> &CircuitBreaker {
    given.as_breaker()
}

/// The budget of `budget = EXPR`.
#[inline]
pub fn as_budget<B: AsBudget + ?Sized>(given: &B) -> &Budget {
    given.as_budget()
}

/// The breaker of `breaker = EXPR`.
#[inline]
pub fn as_breaker<B: AsBreaker + ?Sized>(given: &B) -> &CircuitBreaker {
    given.as_breaker()
}

impl AsBudget for Budget {
    #[inline]
    fn as_budget(&self) -> &Budget {
        self
    }
}

impl<B: AsBudget + ?Sized> AsBudget for &B {
    #[inline]
    fn as_budget(&self) -> &Budget {
        (**self).as_budget()
    }
}

impl<B: AsBudget + ?Sized> AsBudget for Arc<B> {
    #[inline]
    fn as_budget(&self) -> &Budget {
        (**self).as_budget()
    }
}

impl AsBreaker for CircuitBreaker {
    #[inline]
    fn as_breaker(&self) -> &CircuitBreaker {
        self
    }
}

impl<B: AsBreaker + ?Sized> AsBreaker for &B {
    #[inline]
    fn as_breaker(&self) -> &CircuitBreaker {
        (**self).as_breaker()
    }
}

impl<B: AsBreaker + ?Sized> AsBreaker for Arc<B> {
    #[inline]
    fn as_breaker(&self) -> &CircuitBreaker {
        (**self).as_breaker()
    }
}
