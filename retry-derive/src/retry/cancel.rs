//! `cancel = FUTURE`: it is polled first, before each attempt and beside every attempt and every wait.
//!
//! ```text
//! let mut cancel = pin!(FUTURE);
//! loop {
//!     if poll_fn(|cx| Ready(is_cancelled(cancel, cx))).await { break CANCELLED }      // no attempt then
//!     let out = match {
//!         let mut attempt = pin!(async { <user body> });
//!         poll_fn(|cx| unless_cancelled(cancel, cx, |cx| attempt.poll(cx))).await
//!     } {
//!         Some(out) => out,
//!         None => break CANCELLED,
//!     };
//!     ..
//!     match { let mut pause = pin!(sleep(wait)); poll_fn(..).await } { Some(()) => {} None => break CANCELLED }
//! }
//! ```

use proc_macro2::{Ident, TokenStream};
use quote::quote_spanned;

use super::args::mixed_at;
use super::expand::{Names, Target, bound};
use super::limits;
use crate::value::first_span;

/// `Pin::as_mut(&mut __retry_cancel)`
fn pinned(target: &Target<'_>, names: &Names) -> Option<TokenStream> {
    let cancel: Ident = bound("cancel", target.options.cancel.get()?);
    Some(quote_spanned!(names.span=> ::core::pin::Pin::as_mut(&mut #cancel)))
}

/// The value of a cancelled loop.
pub(super) fn ends(target: &Target<'_>, names: &Names) -> TokenStream {
    if !target.options.cancel.is_set() {
        return TokenStream::new();
    }
    let Names { span, private, shape, record, record_mut, .. } = names;
    // where the error has no value for it, the place to say so is the return type
    let at_type = mixed_at(first_span(target.output));
    let left = quote_spanned!(at_type=> #private::leave_cancelled(#shape, #private::cancelled(#record_mut)));
    if target.has_epilogue() {
        let let_go = limits::let_go(target, names);
        quote_spanned!(*span=> { #let_go #left })
    } else {
        quote_spanned!(*span=> #private::end(#shape, #left, #record, #private::Option::None))
    }
}

/// A call that is cancelled before an attempt makes none.
pub(super) fn before(target: &Target<'_>, names: &Names, cancelled: &TokenStream) -> TokenStream {
    let Names { span, private, .. } = names;
    let Some(cancel) = pinned(target, names) else { return TokenStream::new() };
    quote_spanned! {*span=>
        if ::core::future::poll_fn(|__retry_cx| {
            ::core::task::Poll::Ready(#private::is_cancelled(#cancel, __retry_cx))
        })
        .await
        {
            break #cancelled;
        }
    }
}

/// Awaits what `poll` polls, beside the cancelling future if there is one. What was set up for it is gone when the call ends
/// here: an attempt may hold the context.
pub(super) fn beside(
    target: &Target<'_>,
    names: &Names,
    set_up: &TokenStream,
    poll: &TokenStream,
    cancelled: &TokenStream,
) -> TokenStream {
    let Names { span, private, .. } = names;
    let Some(cancel) = pinned(target, names) else {
        return quote_spanned! {*span=>
            {
                #set_up
                ::core::future::poll_fn(|__retry_cx| #poll).await
            }
        };
    };
    quote_spanned! {*span=>
        match {
            #set_up
            ::core::future::poll_fn(|__retry_cx| {
                #private::unless_cancelled(#cancel, __retry_cx, |__retry_cx| #poll)
            })
            .await
        } {
            #private::Option::Some(__retry_done) => __retry_done,
            #private::Option::None => break #cancelled,
        }
    }
}

/// A wait, beside the cancelling future.
pub(super) fn wait(target: &Target<'_>, names: &Names, pause: &TokenStream, cancelled: &TokenStream) -> TokenStream {
    let span = names.span;
    let poll = quote_spanned! {span=>
        ::core::future::Future::poll(::core::pin::Pin::as_mut(&mut __retry_pause), __retry_cx)
    };
    let set_up = quote_spanned!(span=> let mut __retry_pause = ::core::pin::pin!(#pause););
    beside(target, names, &set_up, &poll, cancelled)
}
