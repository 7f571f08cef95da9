//! `nested = ..`: what is done about a loop inside another loop's attempt.
//!
//! ```text
//! loop {
//!     if is_nested() { nested(AT) }                     // async: said once per site
//!     let out = {
//!         let mark = mark_blocking(AT);                 // blocking: says it too
//!         (|| -> BODY { <user body> })()
//!     };
//!     // async: poll_fn(|cx| poll_marked(SITE, || attempt.poll(cx))).await
//! }
//! ```
//!
//! Blocking attempts are always marked, unless they can be seen not to be repeated. An async one is marked in each of its polls, which costs something: only where
//! `nested` asks for it, or the runtime has its feature `test-util`.

use proc_macro2::TokenStream;
use quote::quote_spanned;

use super::expand::{Names, Target};

/// Set by the runtime's feature of that name.
const TEST_UTIL: bool = cfg!(feature = "test-util");

impl Target<'_> {
    /// Whether attempts are marked.
    fn marks(&self) -> bool {
        !self.asynchronous || self.options.nested.is_set() || TEST_UTIL
    }
}

/// A call in another one's attempt is told.
pub(super) fn before(target: &Target<'_>, names: &Names) -> TokenStream {
    let Names { span, private, at, at_is_constant, .. } = names;
    // a blocking one asks when it marks its attempt, where the answer costs nothing to make
    if !target.marks() || (!target.asynchronous && *at_is_constant) {
        return TokenStream::new();
    }
    quote_spanned!(*span=> if #private::is_nested() { #private::nested(#at); })
}

/// A blocking attempt.
pub(super) fn blocking(names: &Names, run: &TokenStream) -> TokenStream {
    let Names { span, private, at, site, .. } = names;
    let mark = if names.at_is_constant {
        quote_spanned!(*span=> #private::mark_blocking(#at))
    } else {
        quote_spanned!(*span=> #private::mark(#site))
    };
    quote_spanned! {*span=>
        {
            let __retry_mark = #mark;
            #run
        }
    }
}

/// An attempt that is awaited as it is: in tests the runtime marks its polls, without adding to its size.
pub(super) fn awaited(names: &Names, future: TokenStream) -> TokenStream {
    if !TEST_UTIL {
        return future;
    }
    let Names { span, private, site, .. } = names;
    quote_spanned!(*span=> #private::attempt(|| #private::Site::marked(#site), #future))
}

/// An attempt that is polled by hand.
pub(super) fn polled(target: &Target<'_>, names: &Names, poll: TokenStream) -> TokenStream {
    if !target.marks() {
        return poll;
    }
    let Names { span, private, site, .. } = names;
    quote_spanned!(*span=> #private::poll_marked(#site, || #poll))
}
