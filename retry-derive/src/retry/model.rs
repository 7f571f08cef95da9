//! What was asked for, as data. Nothing here decides or generates.

use std::time::Duration;

use proc_macro2::Group;
use syn::{Attribute, Expr, ExprPath, Ident, LitStr, Pat, Path, Signature, Visibility};

use crate::slot::Slot;
use crate::value::Known;

/// A function or method with a body.
pub(crate) struct Function {
    pub(crate) attrs: Vec<Attribute>,
    /// `#![..]` at the top of the body: they become outer ones, since the body ends up inside a loop.
    pub(crate) inner_attrs: Vec<Attribute>,
    pub(crate) vis: Visibility,
    pub(crate) signature: Signature,
    pub(crate) body: Group,
}

/// All options, each once, with the expressions in the order they were written.
#[derive(Default)]
pub(crate) struct Options {
    /// The count and wait keys of the call.
    pub(crate) numbers: Numbers,
    /// The same of one failure class each.
    pub(crate) classes: Vec<Class>,
    pub(crate) deadline: Slot<Known<Duration>>,
    pub(crate) attempt_timeout: Slot<Known<Duration>>,
    pub(crate) retry_on: Slot<Vec<Case>>,
    pub(crate) stop_on: Slot<Vec<Case>>,
    pub(crate) retry_ok: Slot<Vec<Case>>,
    pub(crate) classify: Slot<ExprPath>,
    pub(crate) unknown: Slot<Unknown>,
    pub(crate) idempotent: Slot<bool>,
    pub(crate) nested: Slot<Nested>,
    pub(crate) policy: Slot<Expr>,
    pub(crate) budget: Slot<Expr>,
    pub(crate) breaker: Slot<Expr>,
    pub(crate) observer: Slot<Expr>,
    pub(crate) fallback: Slot<Expr>,
    pub(crate) dead_letter: Slot<DeadLetter>,
    pub(crate) ledger: Slot<Ledger>,
    pub(crate) context: Slot<Ident>,
    pub(crate) cancel: Slot<Expr>,
    pub(crate) sleep: Slot<ExprPath>,
    pub(crate) clone: Slot<Vec<Ident>>,
    pub(crate) share: Slot<Vec<Ident>>,
    pub(crate) name: Slot<LitStr>,
    pub(crate) krate: Slot<Path>,
    /// The expressions evaluated once per call, before the first attempt, with the names they are bound to.
    pub(crate) bindings: Vec<Binding>,
}

/// The count and wait keys.
#[derive(Default)]
pub(crate) struct Numbers {
    pub(crate) max_retries: Slot<Count>,
    pub(crate) base_delay: Slot<Known<Duration>>,
    pub(crate) max_delay: Slot<Known<Duration>>,
    pub(crate) backoff: Slot<Backoff>,
    pub(crate) jitter: Slot<Jitter>,
    pub(crate) max_retry_after: Slot<Known<Duration>>,
}

impl Numbers {
    /// The keys that are given.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Ident> {
        [
            self.max_retries.key(),
            self.base_delay.key(),
            self.max_delay.key(),
            self.backoff.key(),
            self.jitter.key(),
            self.max_retry_after.key(),
        ]
        .into_iter()
        .flatten()
    }

    /// These, and where one is not given the other's.
    pub(crate) fn over(&self, other: &Self) -> Self {
        Self {
            max_retries: self.max_retries.or(&other.max_retries),
            base_delay: self.base_delay.or(&other.base_delay),
            max_delay: self.max_delay.or(&other.max_delay),
            backoff: self.backoff.or(&other.backoff),
            jitter: self.jitter.or(&other.jitter),
            max_retry_after: self.max_retry_after.or(&other.max_retry_after),
        }
    }
}

/// Other numbers for one failure class.
pub(crate) struct Class {
    pub(crate) name: LitStr,
    pub(crate) numbers: Numbers,
    /// A mistake in it was reported.
    pub(crate) broken: bool,
}

/// `let __retry_<name> = &(expr);`
pub(crate) struct Binding {
    pub(crate) name: &'static str,
    /// Which class of `Options::classes` it belongs to.
    pub(crate) class: Option<usize>,
    pub(crate) expr: Expr,
}

/// The name that an option's value is bound to.
pub(crate) fn bound_name(class: Option<usize>, name: &str) -> String {
    match class {
        None => format!("__retry_{name}"),
        Some(index) => format!("__retry_class{index}_{name}"),
    }
}

#[derive(Clone)]
pub(crate) enum Count {
    Limited(Known<u32>),
    Forever,
}

#[derive(Clone)]
pub(crate) enum Backoff {
    Exponential(Option<Known<f64>>),
    Fixed,
    Linear,
    Fibonacci,
    /// A path, bound with the other expressions.
    Custom,
}

#[derive(Clone)]
pub(crate) enum Jitter {
    None,
    Full,
    Equal,
    Decorrelated,
    Additive(Known<Duration>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unknown {
    Stop,
    Retry,
}

/// What is done about loops in loops.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nested {
    Detect,
    OuterOnly,
}

/// One pattern with its guard.
pub(crate) struct Case {
    pub(crate) pattern: Pat,
    pub(crate) guard: Option<Expr>,
}

/// What happens to a job that the journal cannot take.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Journal {
    /// It runs: `journal`.
    Wanted,
    /// It does not: `journal = required`.
    Required,
}

#[derive(Default)]
pub(crate) struct DeadLetter {
    pub(crate) sink: Slot<Expr>,
    pub(crate) job_id: Slot<Expr>,
    pub(crate) payload: Slot<Expr>,
    pub(crate) model: Slot<Expr>,
    pub(crate) journal: Slot<Journal>,
    /// A mistake in it was reported.
    pub(crate) broken: bool,
}

#[derive(Default)]
pub(crate) struct Ledger {
    pub(crate) store: Slot<Expr>,
    pub(crate) key: Slot<Expr>,
    pub(crate) scope: Slot<Expr>,
    pub(crate) max_attempts: Slot<Known<u32>>,
    pub(crate) skipped: Slot<Expr>,
    /// A mistake in it was reported.
    pub(crate) broken: bool,
}
