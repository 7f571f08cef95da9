//! From the written return type to what the body returns, and back.
//!
//! `Result<T, E>` is returned as it is; `Result<T, GaveUp<E>>` asks for the report. Which of the two a type is, aliases
//! included, only the compiler knows: hence traits. With `classify = path` the error needs no trait, so there the macro
//! says by a marker type which one was written.
//!
//! Generated code names the return type where a type must stand, and nowhere else: all the rest follows from a [`Shape`],
//! so that a type which is no `Result`, or an error without `Classify`, is one error on the type and not one per use.

use std::any::type_name;
use std::fmt;
use std::marker::PhantomData;

use crate::__private::class_names::Known;
use crate::__private::record::{NewRecorder, Recorder, Timer};
use crate::__private::stand_in::{FromBroken, FromCancelled, FromElapsed, FromRefused, FromUnjournalled};
use crate::classify::Classify;
use crate::context::RetryContext;
use crate::dead_letter::Parking;
use crate::gave_up::GaveUp;
use crate::refused::{Elapsed, Refused};
use crate::verdict::Verdict;

/// The error type tells by itself whether it is a `GaveUp`.
#[derive(Debug)]
pub struct ByType;
/// `classify = path`, and the error is the body's own.
#[derive(Debug)]
pub struct Own;
/// `classify = path`, and the error is written as `GaveUp<E>`.
#[derive(Debug)]
pub struct Report;

/// A return type, as a value without size.
pub struct Shape<R, M>(PhantomData<fn() -> (R, M)>);

impl<R, M> Shape<R, M> {
    #[inline]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<R, M> Clone for Shape<R, M> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<R, M> Copy for Shape<R, M> {}

impl<R, M> Default for Shape<R, M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R, M> fmt::Debug for Shape<R, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shape")
    }
}

/// A return type the attribute can work with.
#[diagnostic::on_unimplemented(
    message = "`#[retry]` needs a function that returns `Result<T, E>`, but this one returns `{Self}`",
    label = "not a `Result<T, E>`",
    note = "an `Err` is what counts as a failed attempt: wrap the value as `Result<{Self}, SomeError>`"
)]
pub trait Returns<M>: Sized {
    /// `Shape<Self, M>`.
    type Shape;
    /// `Self`. What gives the function's value back says this instead, so that the return type is inferred from the shape
    /// alone and a wrong one is not reported again.
    type Out;
    type Value;
    /// The error of the body.
    type Error;
    /// What is left of it at the end: the error, or for a `GaveUp` perhaps none.
    type Left;
    /// The error of the function.
    type Failure;
    /// What is recorded when no option asks for more.
    type Light: NewRecorder;
    /// The same with the time of the start.
    type Timed: NewRecorder;
    /// `Result<Value, Error>`, what the body returns.
    type Body;

    fn left(error: Self::Error) -> Self::Left;
    fn failure<R: Recorder>(left: Self::Left, record: &R, parking: Option<Parking>) -> Self::Failure;
    fn body(body: Self::Body) -> Result<Self::Value, Self::Error>;
    fn error(body: &Self::Body) -> Option<&Self::Error>;
    fn value(body: &Self::Body) -> Option<&Self::Value>;
    fn pack(end: Result<Self::Value, Self::Failure>) -> Self::Out;
    /// The way back where body and function return the same: nothing is touched.
    fn finish<R: Recorder>(body: Self::Body, record: &R) -> Self::Out;
}

/// The parts of `Returns` that are alike for every `Result`.
macro_rules! of_result {
    ($value:ty, $error:ty, $left:ty, $failure:ty, $light:ty, $timed:ty, $marker:ty) => {
        type Shape = Shape<Self, $marker>;
        type Out = Self;
        type Value = $value;
        type Error = $error;
        type Left = $left;
        type Failure = $failure;
        type Light = $light;
        type Timed = $timed;
        type Body = Result<$value, $error>;

        #[inline]
        fn body(body: Self::Body) -> Self::Body {
            body
        }

        #[inline]
        fn error(body: &Self::Body) -> Option<&Self::Error> {
            body.as_ref().err()
        }

        #[inline]
        fn value(body: &Self::Body) -> Option<&Self::Value> {
            body.as_ref().ok()
        }

        #[inline]
        fn pack(end: Result<Self::Value, Self::Failure>) -> Self::Out {
            end
        }
    };
}

#[diagnostic::do_not_recommend]
impl<T, E> Returns<Own> for Result<T, E> {
    of_result!(T, E, E, E, (), Timer, Own);

    #[inline]
    fn left(error: E) -> E {
        error
    }

    #[inline]
    fn failure<R: Recorder>(left: E, _record: &R, _parking: Option<Parking>) -> E {
        left
    }

    #[inline]
    fn finish<R: Recorder>(body: Self, _record: &R) -> Self {
        body
    }
}

#[diagnostic::do_not_recommend]
impl<T, E> Returns<Report> for Result<T, GaveUp<E>> {
    of_result!(T, E, Option<E>, GaveUp<E>, RetryContext, RetryContext, Report);

    #[inline]
    fn left(error: E) -> Option<E> {
        Some(error)
    }

    fn failure<R: Recorder>(left: Option<E>, record: &R, parking: Option<Parking>) -> GaveUp<E> {
        GaveUp::new(record.report(), left, parking)
    }

    #[inline]
    fn finish<R: Recorder>(body: Result<T, E>, record: &R) -> Self {
        body.map_err(|error| GaveUp::new(record.report(), Some(error), None))
    }
}

impl<T, F: Fails> Returns<ByType> for Result<T, F> {
    of_result!(T, F::Error, F::Left, F, F::Light, F::Timed, ByType);

    #[inline]
    fn left(error: F::Error) -> F::Left {
        F::left(error)
    }

    #[inline]
    fn failure<R: Recorder>(left: F::Left, record: &R, parking: Option<Parking>) -> F {
        F::end(left, record, parking)
    }

    #[inline]
    fn finish<R: Recorder>(body: Result<T, F::Error>, record: &R) -> Self {
        F::finish(body, record)
    }
}

/// An error type seen from outside: itself, or the report about it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say whether a failure may be retried: it has no `Classify`",
    label = "`Classify` is missing for `{Self}`",
    note = "derive it: `#[derive(retry_runtime::Classify)]` with `#[classify(retryable)]` or `#[classify(permanent)]` on each variant",
    note = "or give the function a classifier of its own: `#[retry(classify = path::to::function)]` with `fn(&E) -> Verdict`"
)]
pub trait Fails: Sized {
    /// What must have a classifier; asked for by `classifier`, so that of a report it is its error that lacks one.
    type Error;
    type Left;
    type Light: NewRecorder;
    type Timed: NewRecorder;

    fn left(error: Self::Error) -> Self::Left;
    fn end<R: Recorder>(left: Self::Left, record: &R, parking: Option<Parking>) -> Self;
    /// `left` and `end` of what the body returned.
    fn finish<T, R: Recorder>(body: Result<T, Self::Error>, record: &R) -> Result<T, Self>;
}

impl<E: Classify> Fails for E {
    type Error = E;
    type Left = E;
    type Light = ();
    type Timed = Timer;

    #[inline]
    fn left(error: E) -> E {
        error
    }

    #[inline]
    fn end<R: Recorder>(left: E, _record: &R, _parking: Option<Parking>) -> E {
        left
    }

    #[inline]
    fn finish<T, R: Recorder>(body: Result<T, E>, _record: &R) -> Result<T, E> {
        body
    }
}

impl<E> Fails for GaveUp<E> {
    type Error = E;
    type Left = Option<E>;
    type Light = RetryContext;
    type Timed = RetryContext;

    #[inline]
    fn left(error: E) -> Option<E> {
        Some(error)
    }

    fn end<R: Recorder>(left: Option<E>, record: &R, parking: Option<Parking>) -> Self {
        Self::new(record.report(), left, parking)
    }

    #[inline]
    fn finish<T, R: Recorder>(body: Result<T, E>, record: &R) -> Result<T, Self> {
        body.map_err(|error| Self::new(record.report(), Some(error), None))
    }
}

/// A record of the lightest kind.
#[inline]
pub fn light<R: Returns<M>, M>(_: Shape<R, M>) -> R::Light {
    R::Light::fresh()
}

/// A record that knows when the call started.
#[inline]
pub fn timed<R: Returns<M>, M>(_: Shape<R, M>) -> R::Timed {
    R::Timed::fresh()
}

/// What gives verdicts about an error.
pub trait Judge<E: ?Sized> {
    fn verdict(&self, error: &E) -> Verdict;
}

/// The error's own [`Classify`]: unlike a pointer to it, it is known where it is used.
pub struct Classifies<E: ?Sized>(PhantomData<fn(&E)>);

impl<E: ?Sized> fmt::Debug for Classifies<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Classifies")
    }
}

#[diagnostic::do_not_recommend]
impl<E: Classify + ?Sized> Judge<E> for Classifies<E> {
    #[inline]
    fn verdict(&self, error: &E) -> Verdict {
        error.classify()
    }
}

#[diagnostic::do_not_recommend]
impl<E: ?Sized> Judge<E> for fn(&E) -> Verdict {
    #[inline]
    fn verdict(&self, error: &E) -> Verdict {
        self(error)
    }
}

/// The classifier of the body's error.
#[inline]
pub fn classifier<R>(_: Shape<R, ByType>) -> Classifies<R::Error>
where
    R: Returns<ByType, Error: Classify>,
{
    Classifies(PhantomData)
}

/// The classifier that `classify = path` names.
#[inline]
pub fn classifier_of<R: Returns<M>, M>(_: Shape<R, M>, path: fn(&R::Error) -> Verdict) -> fn(&R::Error) -> Verdict {
    path
}

/// What the derive knows of the body's error.
#[inline]
pub const fn known_of<R: Returns<M>, M>(_: Shape<R, M>) -> Known<R::Error> {
    Known::NEW
}

/// The error of an attempt's outcome.
#[inline]
pub fn error_of<R: Returns<M>, M>(_: Shape<R, M>, body: &R::Body) -> Option<&R::Error> {
    R::error(body)
}

/// The value of an attempt's outcome.
#[inline]
pub fn value_of<R: Returns<M>, M>(_: Shape<R, M>, body: &R::Body) -> Option<&R::Value> {
    R::value(body)
}

/// The function's value from the last attempt's.
#[inline]
pub fn finish<R: Returns<M>, M, C: Recorder>(_: Shape<R, M>, body: R::Body, record: &C) -> R::Out {
    R::finish(body, record)
}

/// The same, of a call that nothing else ends: its success is told here, and whoever watches is let go.
#[inline]
pub fn finish_all<R: Returns<M>, M, C: Recorder>(_: Shape<R, M>, body: R::Body, record: &mut C) -> R::Out {
    record.over(R::error(&body).is_none());
    R::finish(body, record)
}

/// What is left of the last attempt.
#[inline]
pub fn leave<R: Returns<M>, M>(_: Shape<R, M>, body: R::Body) -> Result<R::Value, R::Left> {
    R::body(body).map_err(R::left)
}

/// The same, of an attempt with a time limit.
pub fn leave_limited<R, M>(_: Shape<R, M>, outcome: Result<R::Body, Elapsed>) -> Result<R::Value, R::Left>
where
    R: Returns<M>,
    R::Error: FromElapsed<R::Left>,
{
    match outcome {
        Ok(body) => R::body(body).map_err(R::left),
        Err(elapsed) => Err(R::Error::from_elapsed(elapsed)),
    }
}

/// The function's value from what is left.
#[inline]
pub fn end<R: Returns<M>, M, C: Recorder>(
    _: Shape<R, M>,
    end: Result<R::Value, R::Left>,
    record: &C,
    parking: Option<Parking>,
) -> R::Out {
    R::pack(end.map_err(|left| R::failure(left, record, parking)))
}

/// What the function would return: the fallback's `error`.
#[inline]
pub fn failure<R: Returns<M>, M, C: Recorder>(_: Shape<R, M>, left: R::Left, record: &C) -> R::Failure {
    R::failure(left, record, None)
}

/// What a refused call returns, without `skipped`.
pub fn refuse<R, M, C: Recorder>(_: Shape<R, M>, refused: Refused, record: &C) -> R::Out
where
    R: Returns<M>,
    R::Error: FromRefused<R::Left>,
{
    R::pack(Err(R::failure(R::Error::from_refused(refused), record, None)))
}

/// What a call returns whose job could not be written down.
pub fn refuse_unjournalled<R, M, C: Recorder>(_: Shape<R, M>, refused: Refused, record: &C) -> R::Out
where
    R: Returns<M>,
    R::Error: FromUnjournalled<R::Left>,
{
    R::pack(Err(R::failure(R::Error::from_unjournalled(refused), record, None)))
}

/// What a cancelled call leaves.
pub fn leave_cancelled<R, M>(_: Shape<R, M>, refused: Refused) -> Result<R::Value, R::Left>
where
    R: Returns<M>,
    R::Error: FromCancelled<R::Left>,
{
    Err(R::Error::from_cancelled(refused))
}

/// What a call leaves that the breaker refused.
pub fn leave_broken<R, M>(_: Shape<R, M>, refused: Refused) -> Result<R::Value, R::Left>
where
    R: Returns<M>,
    R::Error: FromBroken<R::Left>,
{
    Err(R::Error::from_broken(refused))
}

/// The name of the body's error type.
pub fn error_type<R: Returns<M>, M>(_: Shape<R, M>) -> &'static str {
    type_name::<R::Error>()
}

/// An argument that each attempt gets afresh.
#[diagnostic::on_unimplemented(
    message = "a `mut` argument of type `{Self}` would carry one attempt's changes into the next",
    label = "not `Copy`: say what each attempt starts from",
    note = "`#[retry(clone(name))]`: each attempt starts from a clone of the caller's value",
    note = "`#[retry(share(name))]`: all attempts share one value, and changes carry over on purpose"
)]
pub trait Fresh: Sized {
    #[must_use]
    fn fresh(&self) -> Self;
}

#[diagnostic::do_not_recommend]
impl<T: Copy> Fresh for T {
    #[inline]
    fn fresh(&self) -> Self {
        *self
    }
}
