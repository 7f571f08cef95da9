//! What comes around the loop: the ledger before it, the fallback, the dead letter and the ledger after it.
//!
//! ```text
//! let job = Accepted::new(.., |letter| park(sink, LETTER));          // dropped from here on, it parks
//! match ledger_entry(begin(..).await) {
//!     Err(refused) => SKIPPED,
//!     Ok(entry) => {
//!         JOURNAL
//!         let end = loop { .. };
//!         let end = match end { Err(left) if falls_back(..) => { let out: BODY = async { FALLBACK }.await; .. } end => end };
//!         let ticket = job.end();
//!         let ended = ledger_end(entry);                             // before the first wait: dropped in one, it is written
//!         let parking = match ticket { Some(ticket) => parked(ticket.await), None => { STRIKE None } };
//!         ended.await;
//!         RET::end(end, record, parking)
//!     }
//! }
//! ```

use proc_macro2::{Delimiter, Group, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Expr, Ident};

use super::args::{self, mixed_at};
use super::expand::{Names, Target, bound, user_block};
use super::journal;
use super::model::Ledger;
use super::site::known;
use crate::value::{bare, first_span};

/// The loop with everything around it.
pub(crate) fn after(target: &Target<'_>, names: &Names, looped: &TokenStream) -> TokenStream {
    let Names { span, private, shape, record, .. } = names;
    let options = target.options;
    let fallback = options.fallback.get().map(|expr| fallback(target, names, expr));
    let (hand_over, parking) = if target.is_guarded() {
        parking(target, names)
    } else {
        (TokenStream::new(), quote_spanned!(*span=> let __retry_parking = #private::Option::None;))
    };
    let (ledger_end, ledger_ended) =
        options.ledger.get().and_then(|ledger| end_of_ledger(target, names, ledger)).unzip();
    let inside = quote_spanned! {*span=>
        let __retry_end = #looped;
        #fallback
        #hand_over
        #ledger_end
        #parking
        #ledger_ended
        #private::end(#shape, __retry_end, #record, __retry_parking)
    };
    let inside = journal::around(target, names, inside);
    match options.ledger.get() {
        Some(ledger) => around_ledger(target, names, ledger, &inside),
        None => inside,
    }
}

fn fallback(target: &Target<'_>, names: &Names, expr: &Expr) -> TokenStream {
    let Names { span, private, returns, shape, at, classify, record, record_mut, note, .. } = names;
    let place = mixed_at(first_span(expr));
    let written = target.written(expr);
    // `error` is bound with the user's own token, so that the name is theirs; unnamed, the error is dropped first
    let error = match find_error(&written) {
        Some(name) => quote_spanned! {place=>
            let #name = #private::failure(#shape, __retry_left, #record);
            // a mention may be something else of that name: a field, a module
            let _ = &#name;
        },
        None => quote_spanned!(place=> #private::discard(__retry_left);),
    };
    let block = match bare(expr) {
        Expr::Block(block) if block.label.is_none() && block.attrs.is_empty() => {
            let mut group = Group::new(Delimiter::Brace, inside_of(&target.written(&block.block)));
            group.set_span(block.block.brace_token.span.join());
            group
        }
        _ => {
            let mut group = Group::new(Delimiter::Brace, written);
            group.set_span(place);
            group
        }
    };
    let block = user_block(target, names, &block, &TokenStream::new());
    let body = quote_spanned!(place=> #returns::Body);
    let run = if target.asynchronous {
        quote_spanned!(place=> async #block.await)
    } else {
        quote_spanned!(place=> (|| -> #body #block)())
    };
    quote_spanned! {*span=>
        let __retry_end = match __retry_end {
            ::core::result::Result::Err(__retry_left) if #private::falls_back(#record) => {
                #error
                #private::fallback_begins(#record_mut);
                #note
                let __retry_out: #body = #run;
                match #private::error_of(#shape, &__retry_out) {
                    #private::Option::None => #private::fallback_succeeded(#record_mut),
                    #private::Option::Some(__retry_error) => #private::fallback_failed(
                        #at,
                        #record_mut,
                        __retry_error,
                        #classify,
                        #private::text_of(__retry_error).__retry_text(),
                    ),
                }
                #private::leave(#shape, __retry_out)
            }
            __retry_end => __retry_end,
        };
    }
}

/// The first mention of `error`, with its hygiene.
fn find_error(tokens: &TokenStream) -> Option<Ident> {
    if !args::mentions(tokens, "error") {
        return None;
    }
    first_ident(tokens.clone(), "error").or_else(|| Some(Ident::new("error", first_span(tokens))))
}

fn first_ident(tokens: TokenStream, name: &str) -> Option<Ident> {
    tokens.into_iter().find_map(|tree| match tree {
        proc_macro2::TokenTree::Ident(ident) if ident == name => Some(ident),
        proc_macro2::TokenTree::Group(group) => first_ident(group.stream(), name),
        _ => None,
    })
}

/// The tokens between the braces.
fn inside_of(block: &impl ToTokens) -> TokenStream {
    block
        .to_token_stream()
        .into_iter()
        .find_map(|tree| match tree {
            proc_macro2::TokenTree::Group(group) => Some(group.stream()),
            _ => None,
        })
        .unwrap_or_else(|| quote!())
}

/// `let mut __retry_job = ..;`: from here on the call owes an end.
pub(super) fn accept(target: &Target<'_>, names: &Names) -> TokenStream {
    let Names { span, krate, private, shape, site, .. } = names;
    let Some(letter) = target.options.dead_letter.get() else { return TokenStream::new() };
    let Some(sink) = letter.sink.get() else { return TokenStream::new() };
    let part = |name: &str, expr: Option<&Expr>| {
        expr.map(|expr| {
            let value = bound(name, expr);
            let at = mixed_at(first_span(expr));
            let (private, add) = (target.private_at(at), Ident::new(name, at));
            quote_spanned!(at=> let __retry_letter = #private::#add(__retry_letter, #value);)
        })
    };
    let job_id = part("job_id", letter.job_id.get());
    let model = part("model", letter.model.get());
    let payload = part("payload", letter.payload.get());
    let at_sink = mixed_at(first_span(sink));
    let sink = bound("sink", sink);
    let at_private = target.private_at(at_sink);
    let submit = quote_spanned!(at_sink=> #at_private::park(#sink, __retry_letter));
    // what borrows for the letter is the option: not the return type, where the rest stands
    let at_key = mixed_at(target.options.dead_letter.key_span());
    let parts = quote_spanned!(at_key=> #job_id #model #payload);
    let (fill, parts) = if journal::is_kept(target) {
        let fill = quote_spanned! {at_key=>
            let __retry_fill = move |__retry_letter: #krate::dead_letter::DeadLetter| {
                #parts
                __retry_letter
            };
        };
        (fill, quote_spanned!(at_key=> let __retry_letter = __retry_fill(__retry_letter);))
    } else {
        (TokenStream::new(), parts)
    };
    let write = quote_spanned! {at_key=>
        move |__retry_letter, __retry_watching| {
            #parts
            #private::parking(__retry_watching, &__retry_letter);
            #submit
        }
    };
    quote_spanned! {*span=>
        #fill
        let mut __retry_job =
            #private::Accepted::new(#site, __retry_watch, #private::error_type(#shape), #write);
    }
}

/// The letter is handed over; and what is awaited then.
fn parking(target: &Target<'_>, names: &Names) -> (TokenStream, TokenStream) {
    let Names { span, private, site, watch, note, .. } = names;
    let told = if target.asynchronous {
        // awaited first: a borrow of the watch would have to be `Send`
        quote_spanned! {*span=>
            {
                let __retry_told = __retry_ticket.await;
                #private::parked(#site, #watch, __retry_told)
            }
        }
    } else {
        quote_spanned!(*span=> #private::wait_for(#site, #watch, __retry_ticket))
    };
    let strike = journal::strike(target, names);
    let hand_over = quote_spanned! {*span=>
        #note
        let __retry_handed_over = #private::Accepted::end(&mut __retry_job);
    };
    let parking = quote_spanned! {*span=>
        let __retry_parking = match __retry_handed_over {
            #private::Option::Some(__retry_ticket) => #told,
            #private::Option::None => {
                #strike
                #private::Option::None
            }
        };
    };
    (hand_over, parking)
}

/// A job that was refused owes nothing, and its options are free again; and the record from then on.
pub(super) fn settle(target: &Target<'_>, names: &Names) -> (TokenStream, TokenStream) {
    let Names { span, private, record, .. } = names;
    match (target.is_guarded(), target.options.context.is_set()) {
        (false, _) => (TokenStream::new(), record.clone()),
        (true, true) => {
            (quote_spanned!(*span=> #private::discard(#private::Accepted::refused(__retry_job));), record.clone())
        }
        (true, false) => (
            quote_spanned!(*span=> let __retry_record = #private::Accepted::refused(__retry_job);),
            quote_spanned!(*span=> &__retry_record),
        ),
    }
}

fn around_ledger(target: &Target<'_>, names: &Names, ledger: &Ledger, inside: &TokenStream) -> TokenStream {
    let Names { span, private, returns, shape, site, record_mut, .. } = names;
    let (Some(store), Some(key)) = (ledger.store.get(), ledger.key.get()) else { return TokenStream::new() };
    let (at_store, store) = (mixed_at(first_span(store)), bound("store", store));
    let key = bound("key", key);
    let scope = match ledger.scope.get() {
        Some(scope) => {
            let scope = bound("scope", scope);
            quote_spanned!(*span=> #private::Option::Some::<&dyn ::core::fmt::Display>(#scope))
        }
        None => quote_spanned!(*span=> #private::Option::None),
    };
    let cap = match ledger.max_attempts.get() {
        Some(cap) => known(cap, "__retry_max_attempts", *span, &mut false, ToTokens::to_token_stream),
        None => quote_spanned!(*span=> 3_u32),
    };
    let job_id = match target.options.dead_letter.get().and_then(|letter| letter.job_id.get()) {
        Some(job_id) => {
            let job_id = bound("job_id", job_id);
            quote_spanned!(*span=> #private::Option::Some::<&dyn ::core::fmt::Display>(#job_id))
        }
        None => quote_spanned!(*span=> #private::Option::None),
    };
    let at_private = target.private_at(at_store);
    let begin = quote_spanned!(at_store=> #at_private::ledger_begin(#site, #store, &__retry_entry_key, #cap, #job_id));
    let told = if target.asynchronous {
        quote_spanned!(*span=> __retry_reply.await)
    } else {
        quote_spanned!(*span=> #private::ledger_wait(__retry_reply))
    };
    let answer = quote_spanned! {*span=>
        match #begin {
            #private::Option::Some(__retry_reply) => #private::Option::Some(#told),
            #private::Option::None => #private::Option::None,
        }
    };
    let (settled, record) = settle(target, names);
    let refused = match ledger.skipped.get() {
        Some(expr) => {
            let place = mixed_at(first_span(expr));
            let mut block = Group::new(Delimiter::Brace, target.written(expr));
            block.set_span(place);
            let block = user_block(target, names, &block, &TokenStream::new());
            let body = quote_spanned!(place=> #returns::Body);
            let run = if target.asynchronous {
                quote_spanned!(place=> async #block.await)
            } else {
                quote_spanned!(place=> (|| -> #body #block)())
            };
            quote_spanned! {*span=>
                #private::discard(__retry_refused);
                let __retry_out: #body = #run;
                #private::finish(#shape, __retry_out, #record)
            }
        }
        None => {
            let at_type = mixed_at(first_span(target.output));
            quote_spanned!(at_type=> #private::refuse(#shape, __retry_refused, #record))
        }
    };
    quote_spanned! {*span=>
        let __retry_entry_key = #private::ledger_key(#site, #scope, #key);
        let __retry_begun = #answer;
        let __retry_entry = #private::ledger_entry(#site, #record_mut, &__retry_entry_key, #cap, __retry_begun);
        match __retry_entry {
            ::core::result::Result::Err(__retry_refused) => {
                #settled
                #refused
            }
            ::core::result::Result::Ok(__retry_entry) => { #inside }
        }
    }
}

/// The end is on its way to the ledger; and what is awaited then.
fn end_of_ledger(target: &Target<'_>, names: &Names, ledger: &Ledger) -> Option<(TokenStream, TokenStream)> {
    let Names { span, private, site, record, .. } = names;
    let store = bound("store", ledger.store.get()?);
    let end = quote_spanned! {*span=>
        let __retry_ending = #private::ledger_end(#store, &__retry_entry_key, &__retry_entry, #record);
    };
    let ended = if target.asynchronous {
        quote_spanned!(*span=> __retry_ending.await)
    } else {
        quote_spanned!(*span=> #private::ledger_wait(__retry_ending))
    };
    let ended = quote_spanned! {*span=>
        let __retry_ended = #ended;
        #private::ledger_ended(#site, &__retry_entry_key, __retry_ended);
    };
    Some((end, ended))
}
