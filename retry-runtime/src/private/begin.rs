//! The beginning of a plain call in one step: what generated code does in several is checked by the compiler in every function.

use crate::__private::record::Recorder;
use crate::__private::returns::{Returns, Shape, light, timed};
use crate::__private::watch::{Ambient, Watched};
use crate::policy::{Policy, Retries};

/// The number of retries of a function that says none.
pub const MAX_RETRIES: u32 = match Policy::new().retries() {
    Retries::Limited(count) => count,
    Retries::Forever => u32::MAX,
};

/// A call begins, and its first attempt: the lightest record, and the installed observer beside it.
#[inline]
pub fn begin<R: Returns<M>, M>(shape: Shape<R, M>, operation: &'static str, max: u32) -> Watched<R::Light, Ambient> {
    begun(light(shape), operation, max)
}

/// The same with the time of the start.
#[inline]
pub fn begin_timed<R: Returns<M>, M>(
    shape: Shape<R, M>,
    operation: &'static str,
    max: u32,
) -> Watched<R::Timed, Ambient> {
    begun(timed(shape), operation, max)
}

#[inline]
fn begun<C: Recorder>(record: C, operation: &'static str, max_retries: u32) -> Watched<C, Ambient> {
    let mut record = Watched::new(record, Ambient::begin_as(false, operation, max_retries));
    record.start();
    record.attempt_begins();
    record
}
