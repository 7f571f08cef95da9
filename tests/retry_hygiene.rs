//! What the macros write means the same wherever it stands, whatever the user's names mean there. More of it, in both editions:
//! tests/cases.
#![deny(warnings)]
#![allow(clippy::wrong_self_convention)] // methods that are here to be in the way

use std::cell::Cell;

use retry_runtime::testing::VirtualWaits;

/// Everything that a prelude offers, gone; traits whose methods are in the way; constants named like bindings.
mod hostile {
    #![allow(dead_code, non_camel_case_types, non_upper_case_globals, unused_macros, unused_imports)]

    pub(super) mod core {}
    pub(super) mod std {}
    pub(super) mod tokio {}
    pub(super) mod retry_runtime {}
    pub(super) mod __private {}

    pub(super) struct Option;
    pub(super) struct Result;
    pub(super) struct String;
    pub(super) struct Some;
    pub(super) struct None;
    pub(super) struct Ok;
    pub(super) struct Err;
    pub(super) struct Duration;
    pub(super) struct Policy;
    pub(super) struct Site;
    pub(super) struct Session;
    pub(super) struct Infallible;
    pub(super) fn drop() {}
    pub(super) fn sleep() {}
    pub(super) const attempt: u32 = 1;
    pub(super) const out: u32 = 1;
    pub(super) const wait: u32 = 1;
    pub(super) const session: u32 = 1;
    pub(super) struct u32_;
    macro_rules! concat {
        () => {};
    }
    macro_rules! module_path {
        () => {};
    }
    pub(super) use {concat, module_path};

    pub(super) trait InTheWay {
        fn as_ref(self) -> u8
        where
            Self: Sized,
        {
            0
        }
        fn as_mut(self) -> u8
        where
            Self: Sized,
        {
            0
        }
        fn clone(self) -> u8
        where
            Self: Sized,
        {
            0
        }
        fn checked(self) -> u8
        where
            Self: Sized,
        {
            0
        }
    }
    impl<T> InTheWay for T {}
}

mod user {
    #[allow(unused_imports, reason = "what is never used is never in the way")]
    use super::hostile::*;
    use super::{Cell, E};

    type Out = ::core::result::Result<u32, E>;

    #[::retry_runtime::retry(
        max_retries = 2,
        base_delay = "1ms",
        jitter = full,
        retry_on(E::Busy),
        retry_ok(0),
        clone(text),
        context = ctx,
        fallback = ::core::result::Result::Err(error)
    )]
    pub(super) fn blocking(calls: &Cell<u32>, text: ::std::string::String, mut k: u32) -> Out {
        k += 1;
        calls.set(calls.get() + k);
        ::core::mem::drop(text);
        if ctx.attempts() < 3 { ::core::result::Result::Err(E::Busy) } else { ::core::result::Result::Ok(k) }
    }

    #[::retry_runtime::retry(
        max_retries = 2,
        base_delay = "0s",
        attempt_timeout = "5s",
        deadline = "1m",
        observer = ::retry_runtime::observe::from_fn(|_: &::retry_runtime::observe::Event<'_>| {})
    )]
    pub(super) async fn asynchronous(calls: &Cell<u32>) -> ::core::result::Result<u32, ::retry_runtime::GaveUp<E>> {
        calls.set(calls.get() + 1);
        if calls.get() < 3 { ::core::result::Result::Err(E::Busy) } else { ::core::result::Result::Ok(3) }
    }
}

mod bare {
    #![no_implicit_prelude]

    use ::core::result::Result::{Err, Ok};
    use ::std::string::String;

    use super::E;

    #[::retry_runtime::retry(
        max_retries = 2,
        base_delay = "1ms",
        backoff = exponential(1.5),
        clone(text),
        context = ctx,
        fallback = Ok(text.len()),
        name = "bare",
        dead_letter(sink = &sink, job_id = text, payload = text),
        ledger(store = &sink, key = text, skipped = Err(E::Busy))
    )]
    pub(super) fn f(
        sink: &::retry_runtime::dead_letter::MemoryStore,
        text: String,
    ) -> ::core::result::Result<usize, E> {
        ::core::mem::drop(text);
        if ctx.attempts() == 9 { Ok(1) } else { Err(E::Busy) }
    }

    pub(super) fn inline() -> ::core::result::Result<u32, E> {
        let mut calls = 0;
        let watch = ::retry_runtime::observe::from_fn(|_: &::retry_runtime::observe::Event<'_>| {});
        ::retry_runtime::retrying!(base_delay = "1ms", observer = watch; -> ::core::result::Result<u32, E> {
            calls += 1;
            if calls < 3 { Err(E::Busy) } else { Ok(calls) }
        })
    }
}

/// The runtime under another path.
mod renamed {
    mod rt {
        pub(super) use ::retry_runtime as inner;
    }
    use rt::inner::{retry, retrying};

    use super::E;

    macro_rules! make {
        ($name:ident) => {
            #[retry(crate = $crate::renamed::rt::inner, max_retries = 2, base_delay = "1ms")]
            pub(super) fn $name(calls: &mut u32) -> Result<u32, E> {
                *calls += 1;
                if *calls < 3 { Err(E::Busy) } else { Ok(*calls) }
            }
        };
    }
    make!(f);

    pub(super) fn inline(calls: &mut u32) -> Result<u32, E> {
        retrying!(crate = crate::renamed::rt::inner, base_delay = "1ms"; -> Result<u32, E> {
            *calls += 1;
            if *calls < 3 { Err(E::Busy) } else { Ok(*calls) }
        })
    }
}

#[derive(Debug, PartialEq, retry_runtime::Classify)]
enum E {
    #[classify(retryable)]
    Busy,
}

// kind 12: hostile names
#[tokio::test(start_paused = true)]
async fn names_of_the_user_change_nothing() {
    let (calls, _waits) = (Cell::new(0), VirtualWaits::start());
    assert_eq!(user::blocking(&calls, "x".into(), 0), Ok(1));
    assert_eq!(calls.replace(0), 3);
    assert_eq!(user::asynchronous(&calls).await.unwrap(), 3);
}

#[test]
fn no_prelude_is_needed() {
    let (store, _waits) = (retry_runtime::dead_letter::MemoryStore::new(), VirtualWaits::start());
    assert_eq!(bare::f(&store, "abc".into()), Ok(3));
    assert_eq!(bare::inline(), Ok(3));
}

#[test]
fn the_runtime_is_found_under_another_path() {
    let _waits = VirtualWaits::start();
    assert_eq!((renamed::f(&mut 0), renamed::inline(&mut 0)), (Ok(3), Ok(3)));
}
