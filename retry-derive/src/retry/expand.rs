//! The generated loop. Nothing is decided here: what is given is written down.
//!
//! ```text
//! async fn f(ARGS) -> RET {
//!     let mut session = Session::new();
//!     let mut record = RECORD;
//!     loop {
//!         let wait = {
//!             let out: BODY = async { <user body> }.await;      // blocking: (|| -> BODY { <user body> })()
//!             let next = match error_of(&out) { None => succeeded(..), Some(error) => failed(.., error, ..) };
//!             let Some(wait) = next else { break RET::finish(out, ..) };
//!             wait                                              // nothing of the error lives across the wait
//!         };
//!         sleep(wait).await;
//!     }
//! }
//! ```
//!
//! With a fallback, a dead letter or a ledger the loop's value goes on to an epilogue (see `epilogue.rs`).

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote_spanned};
use syn::{Expr, Type};

use super::args::{self, mixed_at};
use super::bindings::bindings;
use super::cancel;
use super::epilogue;
use super::limits;
use super::model::Options;
use super::nested;
use super::observer;
use super::patterns;
use super::site::site;
use crate::value::first_span;

/// Everything the loop is made of.
pub(crate) struct Target<'a> {
    pub(crate) options: &'a Options,
    pub(crate) asynchronous: bool,
    pub(crate) output: &'a Type,
    pub(crate) body: &'a Group,
    /// What each attempt does before the body.
    pub(crate) before: TokenStream,
    /// The operation's name, unless one is given.
    pub(crate) default_name: TokenStream,
    /// The context is an argument, not a new binding.
    pub(crate) context_is_argument: bool,
    /// That argument is written `name: &mut T`.
    pub(crate) context_is_reference: bool,
    /// What `self` is called where the loop stands.
    pub(crate) self_name: Option<&'static str>,
}

/// The names that generated code uses, made once.
pub(crate) struct Names {
    pub(crate) span: Span,
    /// The runtime.
    pub(crate) krate: TokenStream,
    /// Its private module.
    pub(crate) private: TokenStream,
    /// `<RET as Returns<..>>`, `impl Trait` in it written `_`.
    pub(crate) returns: TokenStream,
    /// The value that stands for the return type.
    pub(crate) shape: TokenStream,
    /// What builds the site where it is no constant.
    set_up: TokenStream,
    /// What keeps the counts of each class, where there are classes.
    counts: TokenStream,
    /// `&Site`. A constant is written where it is used: a local for it would live in the future.
    pub(crate) site: TokenStream,
    /// `&At`
    pub(crate) at: TokenStream,
    /// That is a constant.
    pub(super) at_is_constant: bool,
    /// What an observer is told of it, where that is written as two arguments.
    pub(super) facts: Option<TokenStream>,
    pub(crate) classify: TokenStream,
    /// `&mut record`, together with whoever watches, and `&record`
    pub(crate) record_mut: TokenStream,
    pub(crate) record: TokenStream,
    /// Whoever watches.
    pub(crate) watch: TokenStream,
    /// Tells a guarded job what stands in a context of the user's.
    pub(crate) note: TokenStream,
}

/// The runtime's path and its private module's.
pub(crate) fn paths(options: &Options, span: Span) -> (TokenStream, TokenStream) {
    let krate = match options.krate.get() {
        Some(path) => path.to_token_stream(),
        None => quote_spanned!(span=> ::retry_runtime),
    };
    let private = quote_spanned!(span=> #krate::__private);
    (krate, private)
}

impl Target<'_> {
    /// The private module, named at another place.
    pub(crate) fn private_at(&self, span: Span) -> TokenStream {
        paths(self.options, span).1
    }

    pub(super) fn has_epilogue(&self) -> bool {
        let options = self.options;
        options.fallback.is_set() || options.dead_letter.is_set() || options.ledger.is_set()
    }

    /// Whether the call owes an end: it is parked when it is dropped, or panics.
    pub(super) fn is_guarded(&self) -> bool {
        self.options.dead_letter.get().is_some_and(|letter| letter.sink.is_set())
    }

    /// Whether a part of the return type has no name: a written `impl Trait`, or `_` in `retrying!`.
    pub(super) fn leaves_to_inference(&self) -> bool {
        let output = self.output.to_token_stream();
        args::mentions(&output, "impl") || args::mentions(&output, "_")
    }

    /// Whether the record and whoever watches are one variable: nobody else names either.
    fn keeps_both(&self) -> bool {
        !self.options.context.is_set() && !self.options.observer.is_set() && !self.has_epilogue()
    }

    /// Whether the loop's end is the call's, in one place: there the variable of both ends as well.
    fn ends_at_once(&self) -> bool {
        let options = self.options;
        let elsewhere = self.is_limited() || self.shares() || options.retry_ok.is_set() || options.cancel.is_set();
        self.keeps_both() && !elsewhere
    }

    fn is_limited(&self) -> bool {
        self.options.attempt_timeout.is_set()
    }

    fn names(&self) -> Names {
        // All at the return type: an error without `Classify` is then one error there, which rustc reports once per place.
        let span = mixed_at(first_span(self.output));
        let (krate, private) = paths(self.options, span);
        let ret = inferred(self.output).to_token_stream();
        let marker = self.marker();
        let marker = quote_spanned!(span=> #private::#marker);
        let returns = quote_spanned!(span=> <#ret as #private::Returns<#marker>>);
        let (set_up, site, constant) = site(self, span, &krate, &private);
        let shape = quote_spanned!(span=> __retry_shape);
        let (counts, class_list) = self.classes(span, &krate, &private, &returns);
        let at = match self.options.policy.get() {
            Some(expr) => {
                // what is no policy is an error at its place
                let at = mixed_at(first_span(expr));
                let (at_private, policy) = (self.private_at(at), bound("policy", expr));
                let policy = quote_spanned!(at=> &#at_private::AsPolicy::policy(#policy));
                quote_spanned!(span=> #private::At::with(#site, #policy))
            }
            None => quote_spanned!(span=> #private::At::made(#site)),
        };
        let at = match class_list {
            Some(classes) => quote_spanned!(span=> #at.classes(#classes)),
            None => at,
        };
        let at = if self.shares() { quote_spanned!(span=> #at.guards(&__retry_guards)) } else { at };
        let is_plain = !self.options.policy.is_set() && self.options.classes.is_empty() && !self.shares();
        let constant = constant.filter(|_| is_plain);
        let at_is_constant = constant.is_some();
        let (at, facts) =
            constant.map_or_else(|| (quote_spanned!(span=> &#at), None), |constant| (constant.at, constant.facts));
        let classify = match self.options.classify.get() {
            // nothing would tell what a `_` in a type of its own is: the shape knows it
            Some(path) if self.leaves_to_inference() => {
                let at_path = mixed_at(first_span(path));
                quote_spanned!(at_path=> #private::classifier_of(#shape, #path))
            }
            // bound to its type first, so that a wrong one is an error about its signature
            Some(path) => {
                let at_path = mixed_at(first_span(path));
                quote_spanned! {at_path=>
                    {
                        let __retry_classify: fn(&#returns::Error) -> #krate::Verdict = #path;
                        __retry_classify
                    }
                }
            }
            None => quote_spanned!(span=> #private::classifier(#shape)),
        };
        let (record_mut, record) = match self.options.context.get() {
            Some(name) if self.context_is_reference => {
                let span = mixed_at(name.span());
                let (_, private) = paths(self.options, span);
                (
                    quote_spanned!(span=> #private::context_mut(&mut *#name)),
                    quote_spanned!(span=> #private::context_ref(&*#name)),
                )
            }
            Some(name) if self.context_is_argument => {
                (quote_spanned!(span=> #name.__retry_mut()), quote_spanned!(span=> #name.__retry_ref()))
            }
            Some(name) => (quote_spanned!(span=> &mut #name), quote_spanned!(span=> &#name)),
            None if self.is_guarded() => {
                (TokenStream::new(), quote_spanned!(span=> #private::Accepted::record(&__retry_job)))
            }
            None => (quote_spanned!(span=> &mut __retry_record), quote_spanned!(span=> &__retry_record)),
        };
        // whoever watches is told of every step
        let watch = if self.is_guarded() {
            quote_spanned!(span=> #private::Accepted::watch(&__retry_job))
        } else {
            quote_spanned!(span=> &__retry_watch)
        };
        let record_mut = if self.is_guarded() && !self.options.context.is_set() {
            quote_spanned!(span=> &mut #private::Accepted::recorder(&mut __retry_job))
        } else if self.keeps_both() {
            record_mut
        } else {
            quote_spanned!(span=> &mut #private::Watched::new(#record_mut, #watch))
        };
        let note = if self.is_guarded() && self.options.context.is_set() {
            quote_spanned!(span=> #private::Accepted::note(&mut __retry_job, #record);)
        } else {
            TokenStream::new()
        };
        Names {
            span,
            krate,
            private,
            returns,
            shape,
            set_up,
            counts,
            site,
            at,
            at_is_constant,
            facts,
            classify,
            record_mut,
            record,
            watch,
            note,
        }
    }

    /// How the return type is recognised: by its own traits, or by what is written when E has none.
    fn marker(&self) -> Ident {
        let span = mixed_at(first_span(self.output));
        match self.options.classify.is_set() {
            false => Ident::new("ByType", span),
            true if args::mentions(&self.output.to_token_stream(), "GaveUp") => Ident::new("Report", span),
            true => Ident::new("Own", span),
        }
    }
}

/// The whole expression: its value is the function's.
pub(crate) fn expand(target: &Target<'_>) -> TokenStream {
    let names = target.names();
    let Names { span, private, returns, shape, set_up, counts, record_mut, note, .. } = &names;
    let bindings = bindings(target, &names);
    let (record, start) = match begun(target, &names) {
        Some(record) => (record, TokenStream::new()),
        None => (new_record(target, &names), quote_spanned!(*span=> #private::Recorder::start(#record_mut);)),
    };
    let job = epilogue::accept(target, &names);
    let looped = attempts(target, &names);
    let guards = limits::set_up(target, &names);
    let watch = if target.keeps_both() { TokenStream::new() } else { observer::set_up(target, &names) };
    let value = if target.has_epilogue() { epilogue::after(target, &names, &looped) } else { looped };
    quote_spanned! {*span=>
        #bindings
        #set_up
        let #shape: #returns::Shape = #private::Shape::new();
        #counts
        #guards
        #watch
        let mut __retry_session = #private::Session::new();
        #record
        #job
        #start
        #note
        #value
    }
}

impl Target<'_> {
    /// An expression of the user's, with `self` as it is called here.
    pub(crate) fn written(&self, expr: &impl ToTokens) -> TokenStream {
        match self.self_name {
            Some(name) => args::rename_self(expr, name),
            None => expr.to_token_stream(),
        }
    }
}

/// A record that began with the first attempt, in one step: each is checked in every function. Where nothing comes between
/// the call's beginning and the attempt's, and no option asks for a record of its own.
fn begun(target: &Target<'_>, names: &Names) -> Option<TokenStream> {
    let Names { span, private, shape, facts, .. } = names;
    let facts = facts.as_ref().filter(|_| target.ends_at_once() && nested::before(target, names).is_empty())?;
    let begin = if target.options.deadline.is_set() { "begin_timed" } else { "begin" };
    let begin = Ident::new(begin, *span);
    Some(quote_spanned!(*span=> let mut __retry_record = #private::#begin(#shape, #facts);))
}

/// What the call records: everything where an option needs it, else what the return type asks for.
fn new_record(target: &Target<'_>, names: &Names) -> TokenStream {
    let Names { span, krate, private, shape, .. } = names;
    let options = target.options;
    match options.context.get() {
        Some(_) if target.context_is_argument => TokenStream::new(),
        Some(name) => quote_spanned!(*span=> let mut #name = #krate::RetryContext::new();),
        None if target.is_guarded() => TokenStream::new(),
        None if target.has_epilogue() => quote_spanned!(*span=> let mut __retry_record = #krate::RetryContext::new();),
        None => {
            let timed = options.deadline.is_set() || target.is_limited();
            let record = if timed {
                quote_spanned!(*span=> #private::timed(#shape))
            } else {
                quote_spanned!(*span=> #private::light(#shape))
            };
            let record = if options.cancel.is_set() {
                quote_spanned!(*span=> #private::Remember::always(#record))
            } else {
                record
            };
            if target.keeps_both() {
                let watch = observer::ambient(target, names);
                quote_spanned!(*span=> let mut __retry_record = #private::Watched::new(#record, #watch);)
            } else {
                quote_spanned!(*span=> let mut __retry_record = #record;)
            }
        }
    }
}

/// The loop. Its value is the function's, or with an epilogue `Result<Value, Left>`.
fn attempts(target: &Target<'_>, names: &Names) -> TokenStream {
    let Names { span, private, shape, record_mut, record, note, .. } = names;
    let decision = decision(target, names);
    let left = if target.is_limited() {
        // where the error has no value for a time-out, the place to say so is the return type
        let at_type = mixed_at(first_span(target.output));
        quote_spanned!(at_type=> #private::leave_limited(#shape, __retry_out))
    } else {
        quote_spanned!(*span=> #private::leave(#shape, __retry_out))
    };
    let value = match (target.has_epilogue(), target.is_limited()) {
        (true, _) => left,
        (false, true) => quote_spanned!(*span=> #private::end(#shape, #left, #record, #private::Option::None)),
        (false, false) if target.ends_at_once() => {
            quote_spanned!(*span=> #private::finish_all(#shape, __retry_out, #record_mut))
        }
        (false, false) => quote_spanned!(*span=> #private::finish(#shape, __retry_out, #record)),
    };
    let cancelled = cancel::ends(target, names);
    let wait = limits::around_wait(target, names, wait(target, names, &cancelled));
    let admit = limits::before(target, names);
    let before = cancel::before(target, names, &cancelled);
    let told = nested::before(target, names);
    let attempt = attempt(target, names, &cancelled);
    let begins = quote_spanned!(*span=> #private::Recorder::attempt_begins(#record_mut); #note);
    // where nothing comes before an attempt, what is known of the call's beginning still holds at that of the first one
    let hoisted = !target.has_epilogue() && before.is_empty() && admit.is_empty() && told.is_empty();
    let (first, each, next) = if hoisted {
        let first = if begun(target, names).is_some() { TokenStream::new() } else { begins.clone() };
        (first, TokenStream::new(), begins)
    } else {
        (TokenStream::new(), quote_spanned!(*span=> #before #admit #told #begins), TokenStream::new())
    };
    quote_spanned! {*span=>
        #first
        loop {
            #each
            let __retry_wait = {
                #attempt
                let __retry_next = #decision;
                let #private::Option::Some(__retry_wait) = __retry_next else { break #value };
                __retry_wait
            };
            #note
            #wait
            #next
        }
    }
}

/// `let __retry_out: OUT = ..;`
fn attempt(target: &Target<'_>, names: &Names, cancelled: &TokenStream) -> TokenStream {
    let Names { span, krate, private, returns, record, site, .. } = names;
    let body_type = quote_spanned!(*span=> #returns::Body);
    let body = user_block(target, names, target.body, &target.before);
    // what captures the arguments stands where the body does, so that a moved one is reported there
    let place = mixed_at(target.body.span_open());
    let at_private = target.private_at(place);
    if !target.asynchronous {
        let body = quote_spanned!(place=> || -> #body_type #body);
        let run = if target.is_guarded() {
            quote_spanned!(place=> #at_private::Accepted::attempt(&mut __retry_job, #body))
        } else if target.options.observer.is_set() {
            quote_spanned!(place=> #at_private::Observed::attempt(&__retry_watch, #body))
        } else {
            quote_spanned!(place=> (#body)())
        };
        let run = nested::blocking(names, &run);
        return quote_spanned!(*span=> let __retry_out: #body_type = #run;);
    }
    let future = quote_spanned!(place=> async #body);
    let limited = target.is_limited();
    let (watched, nested) = (target.options.observer.is_set(), target.options.nested.is_set());
    if !limited && !target.options.cancel.is_set() && !target.is_guarded() && !nested && !watched {
        let future = nested::awaited(names, future);
        return quote_spanned!(*span=> let __retry_out: #body_type = #future.await;);
    }
    let mut out = quote_spanned!(*span=> #body_type);
    let mut set_up = quote_spanned!(*span=> let mut __retry_attempt = ::core::pin::pin!(#future););
    let mut pinned = quote_spanned!(*span=> ::core::pin::Pin::as_mut(&mut __retry_attempt));
    if target.is_guarded() {
        pinned = quote_spanned! {*span=>
            ::core::pin::Pin::new(&mut #private::Guarded::new(&mut __retry_job, #pinned))
        };
    } else if watched {
        pinned = quote_spanned! {*span=>
            ::core::pin::Pin::new(&mut #private::Seen::new(&mut __retry_watch, #pinned))
        };
    }
    let mut poll = quote_spanned!(*span=> ::core::future::Future::poll(#pinned, __retry_cx));
    let mut limit = TokenStream::new();
    if limited {
        let sleep = sleep(target, names, "__retry_limit");
        limit = quote_spanned!(*span=> let __retry_limit = #private::attempt_limit(#site, #record););
        out = quote_spanned!(*span=> ::core::result::Result<#body_type, #krate::Elapsed>);
        set_up.extend(quote_spanned!(*span=> let mut __retry_timer = ::core::pin::pin!(#sleep);));
        poll = quote_spanned! {*span=>
            #private::poll_limited(
                #pinned,
                ::core::pin::Pin::as_mut(&mut __retry_timer),
                __retry_limit,
                __retry_cx,
            )
        };
    }
    let poll = nested::polled(target, names, poll);
    let run = cancel::beside(target, names, &set_up, &poll, cancelled);
    quote_spanned! {*span=>
        #limit
        let __retry_out: #out = #run;
    }
}

/// The user's own braces, with what comes before the body at their beginning: extra braces would change when the tail's
/// temporaries are dropped.
///
/// An async block has no place for its type: a branch that is never taken says what it returns, so that `?`, `into()` and
/// literals are inferred as in the plain function.
pub(crate) fn user_block(target: &Target<'_>, names: &Names, body: &Group, before: &TokenStream) -> Group {
    let Names { span, private, returns, .. } = names;
    let mut inside = TokenStream::new();
    if target.asynchronous {
        inside.extend(quote_spanned! {*span=>
            if let #private::Option::Some(__retry_never) = #private::Option::None::<#returns::Body> {
                return __retry_never;
            }
        });
    }
    inside.extend(before.clone());
    if inside.is_empty() {
        return body.clone();
    }
    inside.extend(body.stream());
    let mut block = Group::new(Delimiter::Brace, inside);
    block.set_span(body.span());
    block
}

/// `Option<Duration>`: the wait before the next attempt, or none to stop.
fn decision(target: &Target<'_>, names: &Names) -> TokenStream {
    let Names { span, private, shape, at, classify, record_mut, .. } = names;
    let text = quote_spanned!(*span=> #private::text_of(__retry_error).__retry_text());
    let said = patterns::said(target.options, names);
    let body =
        if target.is_limited() { quote_spanned!(*span=> __retry_body) } else { quote_spanned!(*span=> &__retry_out) };
    let success = match target.options.retry_ok.get() {
        // told at the end
        None if target.ends_at_once() => quote_spanned!(*span=> #private::Option::None),
        None => limits::succeeded(target, names),
        Some(cases) => {
            let succeeded = limits::succeeded(target, names);
            let matches = patterns::matches(cases, &quote_spanned!(*span=> __retry_value), names);
            quote_spanned! {*span=>
                match #private::value_of(#shape, #body) {
                    #private::Option::Some(__retry_value) if #matches => {
                        #private::rejected(#at, &mut __retry_session, #record_mut)
                    }
                    _ => #succeeded,
                }
            }
        }
    };
    let asked = quote_spanned! {*span=>
        match #private::error_of(#shape, #body) {
            #private::Option::None => #success,
            #private::Option::Some(__retry_error) => #private::failed(
                #at,
                &mut __retry_session,
                #record_mut,
                __retry_error,
                #classify,
                #text,
                #said,
            ),
        }
    };
    if !target.is_limited() {
        return asked;
    }
    quote_spanned! {*span=>
        match &__retry_out {
            ::core::result::Result::Ok(__retry_body) => #asked,
            ::core::result::Result::Err(__retry_elapsed) => {
                #private::timed_out(#at, &mut __retry_session, #record_mut, *__retry_elapsed)
            }
        }
    }
}

fn wait(target: &Target<'_>, names: &Names, cancelled: &TokenStream) -> TokenStream {
    let Names { span, private, site, .. } = names;
    if !target.asynchronous {
        return quote_spanned!(*span=> #private::sleep_blocking(#site, __retry_wait););
    }
    if !target.options.sleep.is_set() {
        let pause = quote_spanned!(*span=> #private::pause::<()>(__retry_wait));
        let awaited = if target.options.cancel.is_set() {
            cancel::wait(target, names, &pause, cancelled)
        } else {
            quote_spanned!(*span=> #pause.await)
        };
        return quote_spanned!(*span=> #awaited;);
    }
    let sleep = sleep(target, names, "__retry_wait");
    let at_sleep = target.options.sleep.get().map_or(*span, |path| mixed_at(first_span(path)));
    let (yielded, slept) = if target.options.cancel.is_set() {
        (
            cancel::wait(target, names, &quote_spanned!(*span=> #private::yield_once()), cancelled),
            cancel::wait(target, names, &sleep, cancelled),
        )
    } else {
        (quote_spanned!(*span=> #private::yield_once().await), quote_spanned!(at_sleep=> #sleep.await))
    };
    quote_spanned! {*span=>
        if #private::is_zero(__retry_wait) {
            #yielded;
        } else {
            #slept;
        }
    }
}

fn sleep(target: &Target<'_>, names: &Names, wait: &str) -> TokenStream {
    let Names { span, private, .. } = names;
    match target.options.sleep.get() {
        Some(path) => {
            let at_path = mixed_at(first_span(path));
            let wait = Ident::new(wait, at_path);
            quote_spanned!(at_path=> #path(#wait))
        }
        None => {
            let wait = Ident::new(wait, *span);
            quote_spanned!(*span=> #private::sleep::<()>(#wait))
        }
    }
}

/// `impl Trait` cannot be written in a body: `_` stands for it.
pub(crate) fn inferred(ty: &Type) -> Type {
    let mut ty = ty.clone();
    infer_impls(&mut ty);
    ty
}

fn infer_impls(ty: &mut Type) {
    match ty {
        Type::ImplTrait(implied) => {
            let underscore = syn::token::Underscore { spans: [implied.impl_token.span] };
            *ty = Type::Infer(syn::TypeInfer { attrs: Vec::new(), underscore_token: underscore });
        }
        Type::Array(array) => infer_impls(&mut array.elem),
        Type::Group(group) => infer_impls(&mut group.elem),
        Type::Paren(paren) => infer_impls(&mut paren.elem),
        Type::Reference(reference) => infer_impls(&mut reference.elem),
        Type::Slice(slice) => infer_impls(&mut slice.elem),
        Type::Tuple(tuple) => tuple.elems.iter_mut().for_each(infer_impls),
        Type::Path(path) => {
            for segment in &mut path.path.segments {
                if let syn::PathArguments::AngleBracketed(arguments) = &mut segment.arguments {
                    for argument in &mut arguments.args {
                        if let syn::GenericArgument::Type(inner) = argument {
                            infer_impls(inner);
                        }
                    }
                }
            }
        }
        _ => {}
    }
}

/// `__retry_<name>` of an option's value.
pub(crate) fn bound(name: &str, expr: &Expr) -> Ident {
    format_ident!("__retry_{name}", span = mixed_at(first_span(expr)))
}
