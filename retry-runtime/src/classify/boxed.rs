//! Errors whose type is not known: the chain of their sources is asked.

use std::error::Error;
use std::io;
use std::sync::Arc;

use crate::classify::{Classify, foreign, own_impls, std_impls};
use crate::verdict::{Disposition, Verdict};

/// How many errors of a `source()` chain are looked at. No honest chain is longer; some run in a circle.
pub(crate) const MAX_CHAIN: usize = 64;

const NO_OPINION: Verdict = Verdict::unknown("unknown");

/// The verdict about an error of unknown type: that of the outermost error in its chain of sources (itself included) whose
/// type this crate knows and which has an opinion. At most 64 errors are looked at.
///
/// Known are the standard library's errors, `serde_json`'s, this crate's own, and those of other crates with the features of
/// their names: see [`classify`](crate::classify). Types of your own are found by [`of_chain_with`].
pub fn of_chain(error: &(dyn Error + 'static)) -> Verdict {
    of_chain_with(error, |_| None)
}

/// [`of_chain`] that asks `own` first about each error of the chain.
///
/// ```
/// use std::error::Error;
/// use retry_runtime::classify::{Classify, of_chain_with};
/// use retry_runtime::{Disposition, Verdict};
///
/// #[derive(Debug)]
/// struct Overloaded;
/// # impl std::fmt::Display for Overloaded {
/// #     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str("overloaded") }
/// # }
/// # impl Error for Overloaded {}
///
/// impl Classify for Overloaded {
///     fn classify(&self) -> Verdict {
///         Verdict::retryable("overloaded")
///     }
/// }
///
/// // for `#[retry(classify = classify)]`
/// fn classify(error: &Box<dyn Error + Send + Sync>) -> Verdict {
///     of_chain_with(&**error, |cause| cause.downcast_ref::<Overloaded>().map(Classify::classify))
/// }
///
/// let error: Box<dyn Error + Send + Sync> = std::io::Error::other(Overloaded).into();
/// assert_eq!(classify(&error).disposition, Disposition::Retryable);
/// ```
pub fn of_chain_with(
    error: &(dyn Error + 'static),
    mut own: impl FnMut(&(dyn Error + 'static)) -> Option<Verdict>,
) -> Verdict {
    let mut verdict = NO_OPINION;
    for link in chain(error) {
        if let Some(found) = own(link).or_else(|| known(link)) {
            verdict = join(verdict, found);
        }
        if verdict.disposition != Disposition::Unknown {
            break;
        }
    }
    verdict
}

/// An error and its sources, outermost first, at most [`MAX_CHAIN`] of them.
pub(crate) fn chain<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |link| inner(*link)).take(MAX_CHAIN)
}

fn inner<'e>(link: &'e (dyn Error + 'static)) -> Option<&'e (dyn Error + 'static)> {
    // The source of an `io::Error` is its payload's source: the payload itself would be passed over.
    match held::<io::Error>(link).and_then(io::Error::get_ref) {
        Some(payload) => Some(payload),
        None => link.source(),
    }
}

/// The error of type `T` that this is, or that this is a pointer to: the source of a boxed error is its content's source.
pub(crate) fn held<'e, T: Error + 'static>(link: &'e (dyn Error + 'static)) -> Option<&'e T> {
    if let Some(error) = link.downcast_ref::<T>() {
        return Some(error);
    }
    if let Some(error) = link.downcast_ref::<Box<T>>() {
        return Some(error);
    }
    link.downcast_ref::<Arc<T>>().map(|error| &**error)
}

/// What the type of one error of a chain says of it, its sources not asked again.
fn known(link: &(dyn Error + 'static)) -> Option<Verdict> {
    std_impls::known(link).or_else(|| own_impls::known(link)).or_else(|| foreign::known(link))
}

/// The first opinion stands; what says nothing, or repeats, only fills what is still open.
fn join(earlier: Verdict, later: Verdict) -> Verdict {
    let (mut joined, other) = match (earlier.disposition, later.disposition) {
        (Disposition::Unknown, Disposition::Unknown) if earlier.class == NO_OPINION.class => (later, earlier),
        (Disposition::Unknown, disposition) if disposition != Disposition::Unknown => (later, earlier),
        _ => (earlier, later),
    };
    joined.code = joined.code.or(other.code);
    joined.retry_after = joined.retry_after.or(other.retry_after);
    joined.outcome_unknown |= other.outcome_unknown;
    joined
}

macro_rules! objects {
    ($($object:ty),*) => {$(
        /// Asks the chain of sources: [`of_chain`]. `Box`, `Arc` and `&` of it do the same.
        #[diagnostic::do_not_recommend]
        impl Classify for $object {
            fn classify(&self) -> Verdict {
                of_chain(self)
            }

            fn describe(&self) -> Option<String> {
                Some(self.to_string())
            }
        }
    )*};
}

objects!(dyn Error, dyn Error + Send, dyn Error + Sync, dyn Error + Send + Sync);

#[cfg(test)]
mod tests {
    use super::*;

    // 5.4 [smithy-rs#2977]
    #[test]
    fn no_opinion_never_wipes_out_an_earlier_verdict() {
        let busy = Verdict::retryable("busy").code(5);
        assert_eq!(join(busy, NO_OPINION), busy);
        assert_eq!(join(busy, Verdict::permanent("other")), busy, "the first opinion stands");
        assert_eq!(join(NO_OPINION, busy), busy);
        let unsure = Verdict::unknown("conflict").code(409);
        assert_eq!(join(unsure, NO_OPINION), unsure);
        assert_eq!(join(NO_OPINION, unsure), unsure);
    }

    // 5.4
    #[test]
    fn what_an_error_without_opinion_knew_is_kept() {
        let wait = std::time::Duration::from_secs(3);
        let hint = Verdict::unknown("answer").code(409).retry_after(wait).outcome_unknown();
        let joined = join(hint, Verdict::retryable("busy"));
        assert_eq!(joined, Verdict::retryable("busy").code(409).retry_after(wait).outcome_unknown());
    }
}
