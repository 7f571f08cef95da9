//! Bounds stand only where a field is asked, and recursion needs none.
#![deny(warnings)]
#![allow(dead_code)] // fields that only stand in the way

use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;

use retry_runtime::{Classify, Disposition, Verdict};

/// Nothing can be asked of it.
struct Opaque;

fn disposition<E: Classify + ?Sized>(error: &E) -> Disposition {
    error.classify().disposition
}

#[derive(Classify)]
enum Unasked<T, U: ?Sized, const N: usize> {
    #[classify(retryable)]
    Value(T, [u8; N]),
    #[classify(permanent)]
    Phantom(PhantomData<U>),
}

#[test]
fn parameters_that_are_not_asked_may_be_anything() {
    assert_eq!(disposition(&Unasked::<Opaque, dyn fmt::Debug, 2>::Value(Opaque, [1, 2])), Disposition::Retryable);
    assert_eq!(disposition(&Unasked::<Opaque, str, 0>::Phantom(PhantomData)), Disposition::Permanent);
}

#[derive(Classify)]
enum Asked<T, S, M, H, P> {
    #[classify(transparent)]
    Inner(T),
    #[classify(status = 0, message = 1)]
    Status(S, M),
    #[classify(permanent, retry_after = 0)]
    Hint(Option<H>),
    #[classify(permanent)]
    Payload(P),
}

#[derive(Classify)]
#[classify(gone)]
struct Gone;

#[test]
fn each_asked_field_bounds_its_own_parameter_alone() {
    type Full = Asked<Gone, u16, &'static str, u64, Opaque>;
    assert_eq!(disposition(&Full::Inner(Gone)), Disposition::Gone);
    assert_eq!(disposition(&Full::Status(503, "x")), Disposition::Retryable);
    assert_eq!(Full::Hint(Some(1)).classify().retry_after.map(|wait| wait.as_secs()), Some(1));
    assert_eq!(disposition(&Full::Payload(Opaque)), Disposition::Permanent);
}

trait Service {
    type Error;
}

struct Backend;

impl Service for Backend {
    type Error = Gone;
}

#[derive(Classify)]
enum Projected<S: Service> {
    #[classify(transparent)]
    Service(S::Error),
    #[classify(transparent)]
    Boxed(Box<<S as Service>::Error>),
}

#[test]
fn associated_types_are_bounded_not_their_owner() {
    // Backend itself is no Classify
    assert_eq!(disposition(&Projected::<Backend>::Service(Gone)), Disposition::Gone);
    assert_eq!(disposition(&Projected::<Backend>::Boxed(Box::new(Gone))), Disposition::Gone);
}

/// A generic type whose parameter is a mere payload.
#[derive(Classify)]
#[classify(retryable)]
struct Carries<P>(P);

#[derive(Classify)]
#[classify(transparent)]
struct AroundPayload<P>(Carries<P>);

#[test]
fn a_generic_inner_type_is_asked_as_a_whole() {
    assert_eq!(disposition(&AroundPayload(Carries(Opaque))), Disposition::Retryable);
}

#[derive(Classify)]
enum Chain<T> {
    #[classify(transparent)]
    Next(Box<Self>),
    #[classify(transparent)]
    Named(Box<Chain<T>>),
    #[classify(transparent)]
    End(T),
    #[classify(permanent)]
    Many(Vec<Self>, HashMap<u8, Chain<T>>),
}

#[derive(Classify)]
#[classify(transparent = rest)]
struct Plain {
    rest: Box<dyn Classify>,
    me: Option<Box<Self>>,
}

#[test]
fn recursion_ends() {
    let chain = Chain::Next(Box::new(Chain::Named(Box::new(Chain::End(Gone)))));
    assert_eq!(disposition(&chain), Disposition::Gone);
    let inner = Plain { rest: Box::new(Gone), me: None };
    assert_eq!(disposition(&Plain { rest: Box::new(inner), me: None }), Disposition::Gone);
}

#[derive(Classify)]
enum First<T> {
    #[classify(transparent)]
    Second(Box<Second>),
    #[classify(permanent)]
    Own(T),
}

#[derive(Classify)]
enum Second {
    #[classify(transparent)]
    First(Box<First<u8>>),
    #[classify(retryable)]
    Own,
}

#[test]
fn types_may_contain_each_other() {
    let error = First::<u8>::Second(Box::new(Second::First(Box::new(First::Own(1)))));
    assert_eq!(disposition(&error), Disposition::Permanent);
    assert_eq!(disposition(&Second::Own), Disposition::Retryable);
}

#[derive(Classify)]
enum Defaults<T = Gone, const N: usize = 1>
where
    T: Sized,
{
    #[classify(transparent)]
    Inner(T),
    #[classify(permanent)]
    Numbers([u8; N]),
}

#[derive(Classify)]
#[classify(transparent)]
struct Unsized<T: ?Sized>(T);

#[derive(Classify)]
enum HigherRanked<F>
where
    for<'a> F: Fn(&'a u8) -> bool,
{
    #[classify(permanent)]
    Filter(F),
    #[classify(permanent)]
    Pointer(for<'a> fn(&'a Self) -> &'a Self),
}

#[test]
fn defaults_where_clauses_and_unsized_types() {
    assert_eq!(disposition(&Defaults::<Gone>::Inner(Gone)), Disposition::Gone);
    assert_eq!(disposition(&Defaults::<Gone, 2>::Numbers([1, 2])), Disposition::Permanent);
    let filter = HigherRanked::Filter(|byte: &u8| *byte == 1);
    assert_eq!(disposition(&filter), Disposition::Permanent);
    let erased: &Unsized<dyn Classify> = &Unsized(Gone);
    assert_eq!(disposition(erased), Disposition::Gone);
}

/// Where it stands in a path but is no parameter.
mod lookalike {
    #[allow(non_camel_case_types)]
    pub(crate) type T = u16;
}

#[derive(Classify)]
enum Lookalike<T> {
    #[classify(status = 0)]
    Path(lookalike::T),
    #[classify(permanent)]
    Own(T),
}

#[test]
fn a_path_that_ends_in_a_parameters_name_is_not_the_parameter() {
    assert_eq!(Lookalike::<Opaque>::Path(503).classify().code, Some(503));
}

#[derive(Classify)]
enum Empty {}

#[derive(Classify)]
#[classify(default = permanent)]
enum EmptyDefault {}

#[test]
fn empty_enums_are_classified_by_nobody() {
    fn is<E: Classify>() {}
    is::<Empty>();
    is::<EmptyDefault>();
}

#[derive(Classify)]
#[classify(with = judge)]
struct ByFunction<'a, T>(&'a T);

fn judge<T>(_error: &ByFunction<'_, T>) -> Verdict {
    Verdict::gone("function")
}

#[test]
fn a_function_may_be_generic_too() {
    assert_eq!(disposition(&ByFunction(&Opaque)), Disposition::Gone);
}
