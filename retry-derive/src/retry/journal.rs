//! `dead_letter(.., journal)`: the job is written down before its first attempt, and struck out when it leaves no letter.
//!
//! ```text
//! let unwritten = match job.entry(fill) {                        // none inside a replay
//!     Some(entry) => job.entered(journal_enter(sink, entry).await, REQUIRED),
//!     None => None,
//! };
//! match unwritten { Some(error) => REFUSED, None => { .. } }     // only `journal = required` refuses
//! ```

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote_spanned};

use super::args::mixed_at;
use super::epilogue::settle;
use super::expand::{Names, Target};
use super::model::{DeadLetter, Journal};
use crate::value::first_span;

/// The letter's options and whether its entry is required, where there is a journal.
fn journal<'t>(target: &'t Target<'_>) -> Option<(&'t DeadLetter, Journal)> {
    let letter = target.options.dead_letter.get().filter(|letter| letter.sink.is_set())?;
    Some((letter, *letter.journal.get()?))
}

/// Whether there is one.
pub(super) fn is_kept(target: &Target<'_>) -> bool {
    journal(target).is_some()
}

/// The sink, named at the key: one that keeps no journal is an error there.
fn sink(letter: &DeadLetter) -> Ident {
    format_ident!("__retry_sink", span = mixed_at(letter.journal.key_span()))
}

/// The value of `reply`.
fn told(target: &Target<'_>, names: &Names) -> TokenStream {
    let Names { span, private, .. } = names;
    if target.asynchronous {
        quote_spanned!(*span=> __retry_reply.await)
    } else {
        quote_spanned!(*span=> #private::journal_wait(__retry_reply))
    }
}

/// What comes before the first attempt.
pub(super) fn around(target: &Target<'_>, names: &Names, inside: TokenStream) -> TokenStream {
    let Some((letter, journal)) = journal(target) else { return inside };
    let Names { span, private, shape, record_mut, note, .. } = names;
    let (at_key, sink, told) = (mixed_at(letter.journal.key_span()), sink(letter), told(target, names));
    let at_private = target.private_at(at_key);
    let enter = quote_spanned!(at_key=> #at_private::journal_enter(#sink, __retry_entry));
    let required = journal == Journal::Required;
    let unwritten = quote_spanned! {*span=>
        match #private::Accepted::entry(&__retry_job, __retry_fill) {
            #private::Option::Some(__retry_entry) => {
                let __retry_reply = #enter;
                let __retry_answer = #told;
                #private::Accepted::entered(&mut __retry_job, __retry_answer, #required)
            }
            #private::Option::None => #private::Option::None,
        }
    };
    if !required {
        return quote_spanned! {*span=>
            #private::discard(#unwritten);
            #inside
        };
    }
    let (settled, record) = settle(target, names);
    let strike = strike(target, names);
    // where the error has no value for it, the place to say so is the return type
    let at_type = mixed_at(first_span(target.output));
    let refuse = quote_spanned!(at_type=> #private::refuse_unjournalled(#shape, __retry_refused, #record));
    quote_spanned! {*span=>
        match #unwritten {
            #private::Option::Some(__retry_unwritten) => {
                let __retry_refused = #private::journal_refused(#record_mut, &__retry_unwritten);
                #note
                #strike
                #settled
                #refuse
            }
            #private::Option::None => { #inside }
        }
    }
}

/// The end of a job that leaves no letter.
pub(super) fn strike(target: &Target<'_>, names: &Names) -> TokenStream {
    let Some((letter, _)) = journal(target) else { return TokenStream::new() };
    let Names { span, private, site, .. } = names;
    let (sink, told) = (sink(letter), told(target, names));
    quote_spanned! {*span=>
        if let #private::Option::Some(__retry_to_strike) = #private::Accepted::to_strike(&__retry_job) {
            let __retry_reply = #private::journal_strike(#sink, __retry_to_strike);
            let __retry_struck = #told;
            #private::journal_struck(#site, __retry_struck);
        }
    }
}
