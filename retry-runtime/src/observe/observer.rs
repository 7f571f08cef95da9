//! Who is told, and how it is told: never so that it could change the outcome.

use std::any::type_name;
use std::collections::HashSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::panics::caught;

use super::event::Event;
use super::notice::Notice;

/// Is told what calls do.
///
/// Several observers are one: tuples of up to six, arrays and `Vec`s of observers are observers, and so are `Option`,
/// references, `Box` and `Arc`. A panic in one of them keeps nothing from the others. A closure becomes one by [`from_fn`].
///
/// It is called on the call's own thread, between its attempts, and must not block for long. Of a letter that was parked by
/// a call nobody waited for, the installed observer is told on the thread that parked it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an observer",
    label = "`observer` needs a `retry_runtime::observe::Observer`",
    note = "implement `Observer` for it, or make one of a closure: `observe::from_fn(|event: &Event<'_>| ..)`"
)]
pub trait Observer: Send + Sync {
    /// Something happened.
    fn on(&self, event: &Event<'_>);

    /// What it is called when it panics. Default: its type.
    fn name(&self) -> &'static str {
        type_name::<Self>()
    }
}

/// An observer made of a closure.
///
/// ```
/// use retry_runtime::observe::{Event, from_fn};
///
/// let _lines = from_fn(|event: &Event<'_>| println!("{event}"));
/// ```
pub const fn from_fn<F: Fn(&Event<'_>) + Send + Sync>(on: F) -> FromFn<F> {
    FromFn(on)
}

/// What [`from_fn`] makes.
#[derive(Clone, Copy)]
pub struct FromFn<F>(F);

impl<F: Fn(&Event<'_>) + Send + Sync> Observer for FromFn<F> {
    fn on(&self, event: &Event<'_>) {
        (self.0)(event);
    }
}

impl<F> fmt::Debug for FromFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FromFn").finish_non_exhaustive()
    }
}

/// Tells one observer. A panic in it is caught, counted, and said aloud once.
pub(crate) fn tell<O: Observer + ?Sized>(observer: &O, event: &Event<'_>) {
    if caught(|| observer.on(event)).is_err() {
        panicked(observer, event);
    }
}

static PANICS: AtomicU64 = AtomicU64::new(0);

/// How often an observer panicked in this process.
pub fn observer_panics() -> u64 {
    PANICS.load(Ordering::Relaxed)
}

#[cold]
fn panicked<O: Observer + ?Sized>(observer: &O, event: &Event<'_>) {
    static SAID: Mutex<Option<HashSet<&'static str>>> = Mutex::new(None);
    PANICS.fetch_add(1, Ordering::Relaxed);
    #[cfg(feature = "metrics")]
    let _counted = caught(super::to_metrics::observer_panicked);
    // its name is code of the user's as well
    let name = caught(|| observer.name()).unwrap_or("of unknown name");
    let first = SAID.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().insert(name);
    if first {
        let message = format!(
            "the observer {name} panicked at `{}`; the call goes on as without it, and further panics of it are only counted",
            event.name()
        );
        Notice::warning("observer_panicked", event.operation, message).say();
    }
}

static IS_INSTALLED: AtomicBool = AtomicBool::new(false);
static INSTALLED: OnceLock<Box<dyn Observer>> = OnceLock::new();

/// Keeps the installed observer. `false`: there is one already.
pub(crate) fn keep(observer: Box<dyn Observer>) -> bool {
    let first = INSTALLED.set(observer).is_ok();
    IS_INSTALLED.store(true, Ordering::Relaxed);
    first
}

/// The installed observer. Where there is none that is one relaxed load.
#[inline]
pub(crate) fn installed() -> Option<&'static dyn Observer> {
    if IS_INSTALLED.load(Ordering::Relaxed) { INSTALLED.get().map(|observer| &**observer) } else { None }
}

/// What points to an observer is one.
macro_rules! pointers {
    ($($pointer:ty),*) => {$(
        #[diagnostic::do_not_recommend]
        impl<O: Observer + ?Sized> Observer for $pointer {
            fn on(&self, event: &Event<'_>) {
                (**self).on(event);
            }
            fn name(&self) -> &'static str {
                (**self).name()
            }
        }
    )*};
}

pointers!(&O, Box<O>, Arc<O>);

/// What holds several is one. Each is told by itself, so that a panic of one keeps nothing from the others.
macro_rules! several {
    ($([$($generics:tt)*] $ty:ty),*) => {$(
        #[diagnostic::do_not_recommend]
        impl<O: Observer, $($generics)*> Observer for $ty {
            fn on(&self, event: &Event<'_>) {
                #[allow(clippy::explicit_iter_loop)] // of an `Option` as well
                for observer in self.iter() {
                    tell(observer, event);
                }
            }
        }
    )*};
}

several!([] Option<O>, [] Vec<O>, [const N: usize] [O; N]);

macro_rules! tuples {
    ($($($name:ident)*;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<$($name: Observer),*> Observer for ($($name,)*) {
            #[allow(non_snake_case)] // the types' names serve as the fields'
            fn on(&self, event: &Event<'_>) {
                let ($($name,)*) = self;
                $(tell($name, event);)*
            }
        }
    )*};
}

tuples! {
    A;
    A B;
    A B C;
    A B C D;
    A B C D E;
    A B C D E F;
}

// The trait stays object-safe.
const _: fn(&dyn Observer) = |_| {};

#[cfg(test)]
mod tests {
    // 12.4: every call of the process asks this, so its text is held: one relaxed load and a branch
    #[test]
    fn asking_for_the_installed_one_is_a_relaxed_load() {
        let source = include_str!("observer.rs");
        let body =
            source.split_once("pub(crate) fn installed() -> Option<&'static dyn Observer> {").map(|(_, rest)| rest);
        let body = body.and_then(|rest| rest.split_once("\n}")).map(|(body, _)| body.trim());
        let load =
            "if IS_INSTALLED.load(Ordering::Relaxed) { INSTALLED.get().map(|observer| &**observer) } else { None }";
        assert_eq!(body, Some(load));
    }
}
