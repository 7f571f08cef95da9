//! Rules that need more than one option, or the function. One function per rule, in the order of the list.

use std::time::Duration;

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{FnArg, Pat, ReturnType, Signature, Type};

use super::args::{self, Arguments, SelfKind};
use super::exits;
use super::model::{Count, Function, Jitter, Numbers, Options};
use super::patterns::alternatives;
use super::table;
use crate::diag::Diag;
use crate::names;
use crate::slot::Slot;
use crate::value::Known;

/// What the options are used on.
pub(crate) struct Place<'a> {
    pub(crate) asynchronous: bool,
    /// `None` for `retrying!`.
    pub(crate) function: Option<(&'a Signature, &'a Arguments)>,
}

/// All rules about options.
pub(crate) fn options(diag: &Diag, options: &Options, place: &Place<'_>) {
    policy_stands_alone(diag, options);
    forever_needs_an_end(diag, options);
    classes_say_something(diag, options);
    delays_fit(diag, options);
    limits_fit(diag, options);
    asynchronous_only(diag, options, place);
    arguments(diag, options, place);
    context(diag, options, place);
    patterns(diag, options);
    expressions_stay_inside(diag, options);
    groups_are_whole(diag, options, place);
}

/// All rules about the function itself.
pub(crate) fn function(diag: &Diag, function: &Function, arguments: &Arguments, output: Option<&Type>) {
    let signature = &function.signature;
    if let Some(token) = &signature.constness {
        diag.error(token, "`#[retry]` may not be used on a `const fn`: it cannot wait").help("remove `const`");
    }
    if let Some(twice) =
        function.attrs.iter().find(|attr| attr.path().segments.last().is_some_and(|last| last.ident == "retry"))
    {
        diag.error(twice, "this function already has `#[retry]`: a second one would multiply the attempts")
            .help("remove one of the two");
    }
    if let Some(variadic) = &signature.variadic {
        diag.error(variadic, "`#[retry]` does not work on a function with a variable number of arguments");
    }
    match output {
        None => {
            diag.error(
                &signature.ident,
                "`#[retry]` needs a function that returns `Result<T, E>`, but this one returns nothing",
            )
            .help("an `Err` is what counts as a failed attempt");
        }
        Some(never @ Type::Never(_)) => {
            diag.error(never, "`#[retry]` needs a function that returns `Result<T, E>`, but this one never returns");
        }
        Some(output) => output_can_be_repeated(diag, signature, arguments, output),
    }
    for span in &arguments.ref_mut {
        diag.error_at(*span, "a `ref mut` argument carries one attempt's changes into the next")
            .help("bind it by value with `mut`, and say `clone(..)` or `share(..)`");
    }
}

fn output_can_be_repeated(diag: &Diag, signature: &Signature, arguments: &Arguments, output: &Type) {
    if signature.asyncness.is_none() {
        if let Some(place) = returns_future(output) {
            diag.error(place, "`#[retry]` cannot repeat a future that is already made").help(
                "write an `async fn` that returns `Result<T, E>`, or retry inside with `retrying!` or `Retry::run`",
            );
            return;
        }
    }
    let takes_unique = matches!(arguments.receiver, SelfKind::Unique)
        || signature.inputs.iter().any(|input| unique_borrow(&input.to_token_stream()));
    let tokens = output.to_token_stream();
    if takes_unique && unique_borrow(&tokens) {
        diag.error(
            output,
            "a retried function cannot return a mutable borrow of an argument: a failed attempt would still hold it",
        )
        .help("return an owned value, an index or a key, and borrow after the call");
    }
}

/// `impl Future` or `Pin<Box<dyn Future>>`, by its written form.
fn returns_future(output: &Type) -> Option<&Type> {
    let says_future = |tokens: TokenStream| args::mentions(&tokens, "Future");
    match output {
        Type::ImplTrait(_) if says_future(output.to_token_stream()) => Some(output),
        Type::Path(path) => {
            let last = path.path.segments.last()?;
            let boxed = last.ident == "Pin" && says_future(last.arguments.to_token_stream());
            (boxed || last.ident == "BoxFuture" || last.ident == "LocalBoxFuture").then_some(output)
        }
        Type::Group(group) => returns_future(&group.elem),
        Type::Paren(paren) => returns_future(&paren.elem),
        _ => None,
    }
}

/// `&mut`, `&'a mut`, but not `&'static mut`.
fn unique_borrow(tokens: &TokenStream) -> bool {
    let trees: Vec<TokenTree> = tokens.clone().into_iter().collect();
    trees.iter().enumerate().any(|(at, tree)| match tree {
        TokenTree::Group(group) => unique_borrow(&group.stream()),
        TokenTree::Punct(punct) if punct.as_char() == '&' => {
            let word = |at: usize| trees.get(at).map(ToString::to_string).unwrap_or_default();
            word(at + 1) == "mut" || (word(at + 1) == "'" && word(at + 2) != "static" && word(at + 3) == "mut")
        }
        _ => false,
    })
}

fn policy_stands_alone(diag: &Diag, options: &Options) {
    if !options.policy.is_set() {
        return;
    }
    for key in options.numbers.keys() {
        diag.error(key, format!("`{key}` cannot stand beside `policy`: a policy says it already"))
            .help("remove one of the two, or build the policy with the other value");
    }
}

fn forever_needs_an_end(diag: &Diag, options: &Options) {
    let call = &options.numbers;
    for own in std::iter::once(call).chain(options.classes.iter().map(|class| &class.numbers)) {
        if !matches!(own.max_retries.get(), Some(Count::Forever)) {
            continue;
        }
        if !options.deadline.is_set() && !options.budget.is_set() {
            diag.error_at(
                own.max_retries.key_span(),
                "`max_retries = forever` needs a `deadline` or a `budget`: nothing else would end the call",
            )
            .help("add for example `deadline = \"1h\"`");
        }
        let base = own.base_delay.or(&call.base_delay);
        if base.get().and_then(Known::literal) == Some(Duration::ZERO) {
            diag.error_at(base.key_span(), "`max_retries = forever` with a zero `base_delay` would spin")
                .help("write for example `base_delay = \"1s\"`");
        }
    }
}

/// `max_delay` is not below `base_delay`, nor below an added jitter. 2.3
fn delays_fit(diag: &Diag, options: &Options) {
    if !options.policy.is_set() {
        delays_of(diag, &options.numbers, &options.numbers, Some(&DEFAULTS));
    }
    for class in &options.classes {
        let all = class.numbers.over(&options.numbers);
        let defaults = if options.policy.is_set() { None } else { Some(&DEFAULTS) };
        delays_of(diag, &class.numbers, &all, defaults);
    }
}

/// The defaults of `base_delay` and `max_delay`.
const DEFAULTS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// `own` is what stands at this place, `all` what holds there. A mistake that does not involve `own` was reported already.
fn delays_of(diag: &Diag, own: &Numbers, all: &Numbers, defaults: Option<&(Duration, Duration)>) {
    let literal = |slot: &Slot<Known<Duration>>, default: Option<Duration>| match slot.get() {
        None => default,
        Some(known) => known.literal(),
    };
    let base = literal(&all.base_delay, defaults.map(|(base, _)| *base));
    let Some(max) = literal(&all.max_delay, defaults.map(|(_, max)| *max)) else { return };
    if let Some(base) = base.filter(|base| max < *base) {
        let (base_given, max_given) = (all.base_delay.is_set(), all.max_delay.is_set());
        let text = match (max_given, base_given) {
            (true, false) => format!("`max_delay` {max:?} is shorter than the default `base_delay` of {base:?}"),
            (false, _) => format!("`base_delay` {base:?} is longer than the default `max_delay` of {max:?}"),
            (true, true) => format!("`max_delay` {max:?} is shorter than `base_delay` {base:?}"),
        };
        if let Some(given) = own.max_delay.get().or(own.base_delay.get()) {
            diag.error_at(given.span(), text).help("`max_delay` is at least `base_delay`: change one of the two");
        }
    }
    if let Some(Jitter::Additive(added)) = all.jitter.get() {
        if let Some(jitter) = added.literal().filter(|jitter| *jitter > max) {
            let own_jitter = if own.jitter.is_set() { Some(added) } else { own.max_delay.get() };
            if let Some(given) = own_jitter {
                diag.error_at(given.span(), format!("`jitter` {jitter:?} is longer than `max_delay` {max:?}"))
                    .help("the random part always stays inside `max_delay`");
            }
        }
    }
}

/// A class has numbers of its own, or there is nothing to say about it.
fn classes_say_something(diag: &Diag, options: &Options) {
    for class in &options.classes {
        if class.numbers.keys().next().is_none() && !class.broken {
            let name = class.name.value();
            diag.error(&class.name, format!("`class({name})` gives the class no numbers of its own"))
                .help(format!("add one of {}", names::one_of(table::NUMBERS)));
        }
    }
}

/// Limits are not zero, and an attempt's is not longer than the call's. 2.3
fn limits_fit(diag: &Diag, options: &Options) {
    let (deadline, attempt) = (options.deadline.get(), options.attempt_timeout.get());
    for (name, limit) in [("deadline", deadline), ("attempt_timeout", attempt)] {
        if let Some(limit) = limit {
            if limit.literal() == Some(Duration::ZERO) {
                diag.error_at(limit.span(), format!("`{name}` may not be zero: no attempt could run"));
            }
        }
    }
    if let (Some(deadline), Some(attempt)) = (deadline, attempt) {
        if let (Some(whole), Some(one)) = (deadline.literal(), attempt.literal()) {
            if one > whole && !whole.is_zero() {
                diag.error_at(attempt.span(), format!("`attempt_timeout` {one:?} is longer than `deadline` {whole:?}"))
                    .help("the deadline holds over all attempts and waits");
            }
        }
    }
}

fn asynchronous_only(diag: &Diag, options: &Options, place: &Place<'_>) {
    if place.asynchronous {
        return;
    }
    for key in [options.attempt_timeout.key(), options.cancel.key(), options.sleep.key()].into_iter().flatten() {
        let known = table::key(&key.to_string());
        if known.is_some_and(|known| known.async_only) {
            let why = match key.to_string().as_str() {
                "sleep" => "a blocking function sleeps on its thread",
                _ => "a blocking attempt cannot be interrupted",
            };
            diag.error(key, format!("`{key}` works in async functions only: {why}"))
                .help("remove it, or make the function `async`");
        }
    }
}

fn arguments(diag: &Diag, options: &Options, place: &Place<'_>) {
    let (clone, share) = (options.clone.get(), options.share.get());
    let Some((_, arguments)) = place.function else {
        for key in [options.clone.key(), options.share.key()].into_iter().flatten() {
            if table::key(&key.to_string()).is_some_and(|known| known.arguments) {
                diag.error(key, format!("`{key}(..)` speaks of a function's arguments: `retrying!` has none"))
                    .help("clone inside the body");
            }
        }
        return;
    };
    let empty = Vec::new();
    let (clone, share) = (clone.unwrap_or(&empty), share.unwrap_or(&empty));
    args::check_names(diag, "clone", clone, arguments);
    args::check_names(diag, "share", share, arguments);
    for name in clone {
        if share.contains(name) {
            diag.error(name, format!("`{name}` stands in `clone(..)` and in `share(..)`"))
                .help("`clone`: each attempt starts from the caller's value; `share`: attempts share one value and its changes");
        }
        if name == "self" {
            diag.error(name, "`self` cannot be cloned by the attribute").help("take `&self`, or clone it in the body");
        }
    }
    for name in share {
        if arguments.find(name).is_some_and(|argument| argument.mutability.is_none()) {
            diag.error(
                name,
                format!("`share({name})`: `{name}` is not a `mut` argument, so there is nothing to share"),
            )
            .help(format!("remove it, or write `mut {name}`"));
        }
    }
    if let SelfKind::MutValue(span) = arguments.receiver {
        if !share.iter().any(|name| name == "self") {
            diag.error_at(span, "`mut self`: one attempt's changes would leak into the next")
                .help("say that this is wanted with `share(self)`, or take `self` and clone it in the body");
        }
    }
}

/// A context that the caller passes in is the one that is written.
fn context(diag: &Diag, options: &Options, place: &Place<'_>) {
    let (Some(name), Some((signature, _))) = (options.context.get(), place.function) else { return };
    let passed = signature.inputs.iter().find_map(|input| match input {
        FnArg::Typed(typed) if args::mentions(&typed.ty.to_token_stream(), "RetryContext") => match &*typed.pat {
            Pat::Ident(argument) => Some((&argument.ident, &typed.ty)),
            _ => None,
        },
        _ => None,
    });
    let Some((argument, ty)) = passed else { return };
    if argument != name {
        diag.error(name, format!("`context = {name}` would make a new context beside the argument `{argument}`"))
            .help(format!("write `context = {argument}`, so that the caller can read it"));
    } else if !matches!(&**ty, Type::Reference(reference) if reference.mutability.is_some()) {
        diag.error(
            ty,
            format!("the context `{argument}` is written to: it is an argument `{argument}: &mut RetryContext`"),
        );
    }
}

/// A bare lower-case name would match everything.
fn patterns(diag: &Diag, options: &Options) {
    let lists = [("retry_on", &options.retry_on), ("stop_on", &options.stop_on), ("retry_ok", &options.retry_ok)];
    for (option, slot) in lists {
        for case in slot.get().into_iter().flatten() {
            for alternative in alternatives(case) {
                if let Pat::Ident(name) = alternative {
                    let lower = name.ident.to_string().starts_with(|c: char| c.is_lowercase());
                    if lower && name.subpat.is_none() && case.guard.is_none() {
                        let ident = &name.ident;
                        diag.error(alternative, format!("`{option}({ident})`: a lower-case name matches everything"))
                            .help("write a variant's path, such as `ApiError::Busy`, or `_` for every error");
                    }
                }
            }
        }
    }
}

/// An option's expression is evaluated before the first attempt, where nothing may leave the function.
fn expressions_stay_inside(diag: &Diag, options: &Options) {
    for binding in &options.bindings {
        if let Some((place, what)) = exits::first(binding.expr.to_token_stream()) {
            diag.error(place, format!("`{what}` cannot be used in the option `{}`", binding.name))
                .help("compute the value before the call and pass it in, or move it into the body");
        }
    }
}

fn groups_are_whole(diag: &Diag, options: &Options, place: &Place<'_>) {
    if let Some(letter) = options.dead_letter.get() {
        if !letter.sink.is_set() && !letter.broken {
            diag.error_at(options.dead_letter.key_span(), "`dead_letter(..)` needs a `sink`")
                .help("for example `dead_letter(sink = dlq, job_id = &job.id, payload = job)`");
        }
    }
    if let Some(ledger) = options.ledger.get() {
        if let Some(cap) = ledger.max_attempts.get().filter(|cap| cap.literal() == Some(0)) {
            diag.error_at(cap.span(), "`max_attempts` may not be zero: no call could run");
        }
        for (name, given) in [("store", ledger.store.is_set()), ("key", ledger.key.is_set())] {
            if !given && !ledger.broken {
                diag.error_at(options.ledger.key_span(), format!("`ledger(..)` needs a `{name}`"))
                    .help("for example `ledger(store = ledger, key = &url, skipped = Ok(None))`");
            }
        }
    }
    let method = place.function.is_some_and(|(signature, _)| signature.receiver().is_some());
    if !options.name.is_set() {
        for (option, key) in [("dead_letter", options.dead_letter.key()), ("ledger", options.ledger.key())] {
            match key {
                Some(key) if method => {
                    diag.error(key, format!("`{option}` on a method needs a `name`: two types' methods of one name would share their letters"))
                        .help("add for example `name = \"client.fetch\"`");
                }
                Some(key) if place.function.is_none() => {
                    diag.error(key, format!("`{option}` in `retrying!` needs a `name`"))
                        .help("add for example `name = \"fetch_page\"`");
                }
                _ => {}
            }
        }
    }
}

/// The type behind `->`, unless it is `()`.
pub(crate) fn output(signature: &Signature) -> Option<&Type> {
    match &signature.output {
        ReturnType::Default => None,
        ReturnType::Type(_, ty) => Some(ty),
    }
}
