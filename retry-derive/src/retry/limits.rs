//! `budget = EXPR` and `breaker = EXPR`: what the call shares with others.
//!
//! ```text
//! let guards = Guards::new(Some(as_budget(..)), Some(as_breaker(..)));
//! loop {
//!     if let Some(refused) = guards.refused(record) { break REFUSED }    // no attempt then
//!     ..                                                                 // `failed` asks both before a wait
//!     let taken = guards.taken();                                        // goes back when the wait is dropped
//!     sleep(wait).await;
//!     guards.waited(taken);
//! }
//! ```

use proc_macro2::{Ident, TokenStream};
use quote::quote_spanned;
use syn::{Expr, UnOp};

use super::args::mixed_at;
use super::expand::{Names, Target, bound};
use crate::value::{bare, first_span};

impl Target<'_> {
    /// Whether the call shares something.
    pub(super) fn shares(&self) -> bool {
        self.options.budget.is_set() || self.options.breaker.is_set()
    }
}

/// Whether an expression makes what it is, and does not name what is there. Borrowed, it is still made here; a macro may
/// expand to either.
fn makes_a_value(expr: &Expr) -> bool {
    match unborrowed(expr) {
        Expr::Path(_) | Expr::Field(_) | Expr::Index(_) | Expr::Macro(_) | Expr::Lit(_) => false,
        Expr::Unary(unary) => !matches!(unary.op, UnOp::Deref(_)),
        _ => true,
    }
}

/// What is borrowed, of a borrow.
pub(super) fn unborrowed(expr: &Expr) -> &Expr {
    match bare(expr) {
        Expr::Reference(reference) => unborrowed(&reference.expr),
        other => other,
    }
}

/// `let __retry_guards = ..;`
pub(super) fn set_up(target: &Target<'_>, names: &Names) -> TokenStream {
    if !target.shares() {
        return TokenStream::new();
    }
    let Names { span, private, .. } = names;
    let shared = |name: &str, given: Option<&Expr>| match given {
        None => quote_spanned!(*span=> #private::Option::None),
        Some(expr) => {
            // what is no budget is an error at its place
            let at = mixed_at(first_span(expr));
            let lasting = if makes_a_value(expr) { "as_lasting" } else { "as" };
            let (value, of) = (bound(name, expr), Ident::new(&format!("{lasting}_{name}"), at));
            let at_private = target.private_at(at);
            let value = quote_spanned!(at=> #at_private::#of(#value));
            quote_spanned!(*span=> #private::Option::Some(#value))
        }
    };
    let budget = shared("budget", target.options.budget.get());
    let breaker = shared("breaker", target.options.breaker.get());
    quote_spanned!(*span=> let __retry_guards = #private::Guards::new(#budget, #breaker);)
}

/// A breaker that is open lets no attempt run.
pub(super) fn before(target: &Target<'_>, names: &Names) -> TokenStream {
    if !target.options.breaker.is_set() {
        return TokenStream::new();
    }
    let Names { span, private, shape, record, record_mut, .. } = names;
    // where the error has no value for it, the place to say so is the return type
    let at_type = mixed_at(first_span(target.output));
    let left = quote_spanned!(at_type=> #private::leave_broken(#shape, __retry_refused));
    let value = if target.has_epilogue() {
        left
    } else {
        quote_spanned!(*span=> #private::end(#shape, #left, #record, #private::Option::None))
    };
    quote_spanned! {*span=>
        let __retry_refusal = #private::Guards::refused(&__retry_guards, #record_mut);
        if let #private::Option::Some(__retry_refused) = __retry_refusal {
            break #value;
        }
    }
}

/// A call that ends in its attempt keeps no permit while its letter is parked.
pub(super) fn let_go(target: &Target<'_>, names: &Names) -> TokenStream {
    if !target.options.breaker.is_set() {
        return TokenStream::new();
    }
    let Names { span, private, .. } = names;
    quote_spanned!(*span=> #private::Guarding::give_up(&__retry_guards);)
}

/// A wait, with what was taken for the retry after it.
pub(super) fn around_wait(target: &Target<'_>, names: &Names, wait: TokenStream) -> TokenStream {
    if !target.options.budget.is_set() {
        return wait;
    }
    let Names { span, private, .. } = names;
    quote_spanned! {*span=>
        let __retry_taken = #private::Guards::taken(&__retry_guards);
        #wait
        #private::Guards::waited(&__retry_guards, __retry_taken);
    }
}

/// A success.
pub(super) fn succeeded(target: &Target<'_>, names: &Names) -> TokenStream {
    let Names { span, private, record_mut, .. } = names;
    if target.shares() {
        quote_spanned!(*span=> #private::succeeded_sharing(&__retry_guards, #record_mut))
    } else {
        quote_spanned!(*span=> #private::succeeded(#record_mut))
    }
}
