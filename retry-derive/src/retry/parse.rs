//! Reading the options and the function. Mistakes are reported and skipped over, so that all of them come out at once.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, ExprPath, Ident, Pat, Signature, Token, Visibility, parenthesized};

use super::model::{Backoff, Binding, Case, Count, DeadLetter, Function, Jitter, Ledger, Options, Unknown};
use super::table::{self, Form};
use crate::diag::Diag;
use crate::names::nearest;
use crate::value::{self, Known};

/// Reads everything between the attribute's parentheses.
pub(crate) fn options(diag: &Diag, tokens: TokenStream) -> Options {
    let parser = |input: ParseStream<'_>| {
        let mut options = Options::default();
        while !input.is_empty() {
            if option(diag, &mut options, input).is_none() {
                skip_to_comma(input)?;
            } else if !input.is_empty() && !input.peek(Token![,]) {
                let rest: TokenTree = input.fork().parse()?;
                diag.error(&rest, "a comma is expected between two options");
                skip_to_comma(input)?;
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(options)
    };
    parser.parse2(tokens).unwrap_or_else(|error| {
        diag.syn_error(error);
        Options::default()
    })
}

/// Reads one option; `None` when the rest of it is to be skipped.
fn option(diag: &Diag, options: &mut Options, input: ParseStream<'_>) -> Option<()> {
    if !input.peek(Ident::peek_any) {
        return positional(diag, input);
    }
    let key = report(diag, input.call(Ident::parse_any))?;
    let name = key.to_string();
    let Some(known) = table::key(&name) else {
        unknown_option(diag, &key);
        return None;
    };
    match known.form {
        Form::Value => {
            if !input.peek(Token![=]) || input.peek(Token![==]) {
                diag.error(&key, format!("`{name}` needs a value: `{}`", known.example));
                return None;
            }
            report(diag, input.parse::<Token![=]>())?;
            if input.is_empty() || input.peek(Token![,]) {
                diag.error(&key, format!("`{name} =` has no value: `{}`", known.example));
                return None;
            }
            set_value(diag, options, &key, input)
        }
        Form::List => {
            if !input.peek(syn::token::Paren) {
                diag.error(&key, format!("`{name}` is written with parentheses: `{}`", known.example));
                return None;
            }
            set_list(diag, options, &key, known.example, input)
        }
    }
}

/// Something that is no `key = value`.
fn positional(diag: &Diag, input: ParseStream<'_>) -> Option<()> {
    const FORM: &str = "options are written `key = value` or `key(..)`";
    let tokens = until_comma(&input.fork());
    if tokens.is_empty() {
        let comma: TokenTree = report(diag, input.fork().parse())?;
        diag.error(comma, "an option is expected before this comma");
        return None;
    }
    let expr = syn::parse2::<Expr>(tokens.clone()).ok();
    let hint = match expr.as_ref().and_then(value::literal) {
        Some(syn::Lit::Int(number)) => format!("for a number of retries write `max_retries = {number}`"),
        Some(syn::Lit::Str(text)) => format!("for a delay write `base_delay = {}`", text.token()),
        _ => "for example `max_retries = 2, base_delay = \"1s\"`".to_owned(),
    };
    diag.error(tokens, FORM).help(hint);
    None
}

fn unknown_option(diag: &Diag, key: &Ident) {
    let name = key.to_string();
    let names = table::names();
    if let Some((_, ours)) = table::SYNONYMS.iter().find(|(word, _)| *word == name) {
        diag.error(key, format!("unknown option `{name}`; {ours}"));
        return;
    }
    match nearest(&name, &names) {
        Some(near) => {
            diag.error(key, format!("unknown option `{name}`; did you mean `{near}`?"));
        }
        None => {
            diag.error(key, format!("unknown option `{name}`")).help(format!("the options are {}", names.join(", ")));
        }
    }
}

fn set_value(diag: &Diag, options: &mut Options, key: &Ident, input: ParseStream<'_>) -> Option<()> {
    let name = key.to_string();
    match name.as_str() {
        "crate" => {
            let path = value::krate(diag, until_comma(input))?;
            options.krate.set(diag, key, path);
        }
        "classify" => options.classify.set(diag, key, path(diag, input, "classify")?),
        "sleep" => options.sleep.set(diag, key, path(diag, input, "sleep")?),
        "context" => {
            let expr = report(diag, input.parse::<Expr>())?;
            let ident = single_ident(&expr);
            let Some(ident) = ident else {
                diag.error(
                    &expr,
                    "`context` takes a name: of an argument `&mut RetryContext`, or a new one the body can read",
                );
                return Some(());
            };
            options.context.set(diag, key, ident);
        }
        "unknown" => {
            let expr = report(diag, input.parse::<Expr>())?;
            match single_ident(&expr).map(|word| word.to_string()).as_deref() {
                Some("stop") => options.unknown.set(diag, key, Unknown::Stop),
                Some("retry") => options.unknown.set(diag, key, Unknown::Retry),
                _ => {
                    diag.error(&expr, "`unknown` is `stop` or `retry`");
                }
            }
        }
        "max_retries" => {
            let expr = report(diag, input.parse::<Expr>())?;
            if single_ident(&expr).is_some_and(|word| word == "forever") {
                options.max_retries.set(diag, key, Count::Forever);
            } else if let Some(count) = value::count(diag, "max_retries", expr) {
                bind_known(options, "max_retries", &count);
                options.max_retries.set(diag, key, Count::Limited(count));
            }
        }
        "backoff" => {
            let expr = report(diag, input.parse::<Expr>())?;
            if let Some(backoff) = backoff(diag, options, expr) {
                options.backoff.set(diag, key, backoff);
            }
        }
        "jitter" => {
            let expr = report(diag, input.parse::<Expr>())?;
            if let Some(jitter) = jitter(diag, options, expr) {
                options.jitter.set(diag, key, jitter);
            }
        }
        "name" => {
            let expr = report(diag, input.parse::<Expr>())?;
            if let Some(text) = value::string(diag, "name", &expr) {
                options.name.set(diag, key, text);
            }
        }
        "policy" => {
            let expr = report(diag, input.parse::<Expr>())?;
            options.bindings.push(Binding { name: "policy", expr: expr.clone() });
            options.policy.set(diag, key, expr);
        }
        "fallback" => {
            let expr = report(diag, input.parse::<Expr>())?;
            options.fallback.set(diag, key, expr);
        }
        _ => {
            let expr = report(diag, input.parse::<Expr>())?;
            let (binding, slot) = match name.as_str() {
                "base_delay" => ("base_delay", &mut options.base_delay),
                "max_delay" => ("max_delay", &mut options.max_delay),
                "max_retry_after" => ("max_retry_after", &mut options.max_retry_after),
                "deadline" => ("deadline", &mut options.deadline),
                _ => ("attempt_timeout", &mut options.attempt_timeout),
            };
            if let Some(duration) = value::duration(diag, binding, expr) {
                let computed = duration.clone();
                slot.set(diag, key, duration);
                bind_known(options, binding, &computed);
            }
        }
    }
    Some(())
}

fn bind_known<T>(options: &mut Options, name: &'static str, value: &Known<T>) {
    if let Known::Computed(expr) = value {
        options.bindings.push(Binding { name, expr: expr.clone() });
    }
}

fn path(diag: &Diag, input: ParseStream<'_>, key: &str) -> Option<ExprPath> {
    let expr = report(diag, input.parse::<Expr>())?;
    match value::bare(&expr) {
        Expr::Path(path) => Some(path.clone()),
        _ => {
            diag.error(&expr, format!("`{key}` takes the path of a function")).help(match key {
                "classify" => "a closure has no place here: write a `fn(&E) -> Verdict` and name it",
                _ => "write a `fn(Duration) -> impl Future<Output = ()>` and name it",
            });
            None
        }
    }
}

fn backoff(diag: &Diag, options: &mut Options, expr: Expr) -> Option<Backoff> {
    const WORDS: &[&str] = &["exponential", "fixed", "linear", "fibonacci"];
    match value::bare(&expr) {
        Expr::Call(call) if single_ident(&call.func).is_some_and(|word| word == "exponential") => {
            let mut arguments = call.args.iter();
            let (Some(first), None) = (arguments.next(), arguments.next()) else {
                diag.error(&expr, "`exponential(..)` takes one factor, such as `exponential(1.5)`");
                return None;
            };
            let factor = value::factor(diag, first.clone())?;
            bind_known(options, "factor", &factor);
            Some(Backoff::Exponential(Some(factor)))
        }
        Expr::Path(_) => match single_ident(&expr).map(|word| word.to_string()).as_deref() {
            Some("exponential") => Some(Backoff::Exponential(None)),
            Some("constant") => {
                diag.error(&expr, "unknown backoff `constant`; did you mean `fixed`?");
                None
            }
            Some("fixed") => Some(Backoff::Fixed),
            Some("linear") => Some(Backoff::Linear),
            Some("fibonacci") => Some(Backoff::Fibonacci),
            Some(word) if nearest(word, WORDS).is_some() => {
                let near = nearest(word, WORDS).unwrap_or_default();
                diag.error(&expr, format!("unknown backoff `{word}`; did you mean `{near}`?"))
                    .help(format!("a function of that name is written `self::{word}`"));
                None
            }
            _ => {
                options.bindings.push(Binding { name: "backoff", expr });
                Some(Backoff::Custom)
            }
        },
        _ => {
            diag.error(
                &expr,
                "`backoff` is `exponential`, `exponential(1.5)`, `fixed`, `linear`, `fibonacci`, or the path of a `fn(u32) -> Duration`",
            );
            None
        }
    }
}

fn jitter(diag: &Diag, options: &mut Options, expr: Expr) -> Option<Jitter> {
    const WORDS: &[&str] = &["none", "full", "equal", "decorrelated"];
    let word = single_ident(&expr).map(|word| word.to_string());
    Some(match word.as_deref() {
        Some("none") => Jitter::None,
        Some("full") => Jitter::Full,
        Some("equal") => Jitter::Equal,
        Some("decorrelated") => Jitter::Decorrelated,
        Some(word) if word.starts_with(|c: char| c.is_ascii_lowercase()) && nearest(word, WORDS).is_some() => {
            let near = nearest(word, WORDS).unwrap_or_default();
            diag.error(&expr, format!("unknown jitter `{word}`; did you mean `{near}`?"))
                .help("`jitter` is `none`, `full`, `equal`, `decorrelated`, or a duration to add uniformly")
                .help(format!("a variable of that name is written `{{ {word} }}`"));
            return None;
        }
        _ => {
            let added = value::duration(diag, "jitter", expr)?;
            bind_known(options, "jitter", &added);
            Jitter::Additive(added)
        }
    })
}

fn set_list(diag: &Diag, options: &mut Options, key: &Ident, example: &str, input: ParseStream<'_>) -> Option<()> {
    let parse = || {
        let content;
        parenthesized!(content in input);
        content.parse::<TokenStream>()
    };
    let content = report(diag, parse())?;
    if content.is_empty() {
        diag.error(key, format!("`{key}(..)` is empty: `{example}`"));
        return Some(());
    }
    match key.to_string().as_str() {
        "retry_on" => options.retry_on.set(diag, key, report_at(diag, key, cases.parse2(content))?),
        "stop_on" => options.stop_on.set(diag, key, report_at(diag, key, cases.parse2(content))?),
        "retry_ok" => options.retry_ok.set(diag, key, report_at(diag, key, cases.parse2(content))?),
        "clone" => options.clone.set(diag, key, arguments(diag, key, content)?),
        "share" => options.share.set(diag, key, arguments(diag, key, content)?),
        "ledger" => {
            let ledger = ledger(diag, options, key, content);
            options.ledger.set(diag, key, ledger);
        }
        _ => {
            let letter = dead_letter(diag, options, key, content);
            options.dead_letter.set(diag, key, letter);
        }
    }
    Some(())
}

fn arguments(diag: &Diag, key: &Ident, content: TokenStream) -> Option<Vec<Ident>> {
    let parser = Punctuated::<Ident, Token![,]>::parse_terminated_with;
    let parse = |input: ParseStream<'_>| parser(input, Ident::parse_any);
    let names = parse.parse2(content.clone()).ok();
    if names.is_none() {
        diag.error(content, format!("`{key}(..)` takes names of arguments, such as `{key}(body)`"));
    }
    names.map(|names| names.into_iter().collect())
}

/// Patterns, separated by commas or bars, each with a guard if wanted.
fn cases(input: ParseStream<'_>) -> syn::Result<Vec<Case>> {
    let mut cases = Vec::new();
    while !input.is_empty() {
        let pattern = Pat::parse_multi_with_leading_vert(input)?;
        let guard = if input.peek(Token![if]) {
            input.parse::<Token![if]>()?;
            Some(input.parse()?)
        } else {
            None
        };
        cases.push(Case { pattern, guard });
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
    }
    Ok(cases)
}

/// Reads `key = VALUE, ..` of a group; each value goes to `take`, in the order written. False after a mistake: what is
/// missing then need not be said.
fn parts(
    diag: &Diag,
    group: &Ident,
    names: &[&'static str],
    content: TokenStream,
    mut take: impl FnMut(&'static str, &Ident, Expr),
) -> bool {
    let parser = |input: ParseStream<'_>| {
        let mut whole = true;
        while !input.is_empty() {
            if part(diag, group, names, input, &mut take).is_none() {
                whole = false;
                skip_to_comma(input)?;
            } else if !input.is_empty() && !input.peek(Token![,]) {
                whole = false;
                let rest: TokenTree = input.fork().parse()?;
                diag.error(&rest, format!("a comma is expected between two parts of `{group}(..)`"));
                skip_to_comma(input)?;
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(whole)
    };
    parser.parse2(content).unwrap_or_else(|error| {
        diag.syn_error(error);
        false
    })
}

fn part(
    diag: &Diag,
    group: &Ident,
    names: &[&'static str],
    input: ParseStream<'_>,
    take: &mut impl FnMut(&'static str, &Ident, Expr),
) -> Option<()> {
    if !input.peek(Ident::peek_any) {
        diag.error(
            until_comma(&input.fork()),
            format!("`{group}(..)` takes `key = value` with the keys {}", names.join(", ")),
        );
        return None;
    }
    let key = report(diag, input.call(Ident::parse_any))?;
    let word = key.to_string();
    let Some(name) = names.iter().copied().find(|name| *name == word) else {
        let near = nearest(&word, names).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        diag.error(&key, format!("unknown key `{word}` in `{group}(..)`{near}"))
            .help(format!("the keys of `{group}(..)` are {}", names.join(", ")));
        return None;
    };
    if !input.peek(Token![=]) || input.peek(Token![==]) {
        diag.error(&key, format!("`{name}` needs a value: `{name} = ..`"));
        return None;
    }
    report(diag, input.parse::<Token![=]>())?;
    if input.is_empty() || input.peek(Token![,]) {
        diag.error(&key, format!("`{name} =` has no value"));
        return None;
    }
    let value = report(diag, input.parse::<Expr>())?;
    take(name, &key, value);
    Some(())
}

fn dead_letter(diag: &Diag, options: &mut Options, group: &Ident, content: TokenStream) -> DeadLetter {
    let mut letter = DeadLetter::default();
    let whole = parts(diag, group, table::DEAD_LETTER, content, |name, key, expr| {
        options.bindings.push(Binding { name, expr: expr.clone() });
        match name {
            "sink" => letter.sink.set(diag, key, expr),
            "job_id" => letter.job_id.set(diag, key, expr),
            "payload" => letter.payload.set(diag, key, expr),
            _ => letter.model.set(diag, key, expr),
        }
    });
    letter.broken = !whole;
    letter
}

fn ledger(diag: &Diag, options: &mut Options, group: &Ident, content: TokenStream) -> Ledger {
    let mut ledger = Ledger::default();
    let whole = parts(diag, group, table::LEDGER, content, |name, key, expr| match name {
        "skipped" => ledger.skipped.set(diag, key, expr),
        "max_attempts" => {
            if let Some(count) = value::count(diag, "max_attempts", expr) {
                bind_known(options, "max_attempts", &count);
                ledger.max_attempts.set(diag, key, count);
            }
        }
        _ => {
            let (binding, slot) = match name {
                "store" => ("store", &mut ledger.store),
                "key" => ("key", &mut ledger.key),
                _ => ("scope", &mut ledger.scope),
            };
            options.bindings.push(Binding { name: binding, expr: expr.clone() });
            slot.set(diag, key, expr);
        }
    });
    ledger.broken = !whole;
    ledger
}

/// What an item turned out to be.
pub(crate) enum Item {
    Function(Box<Function>),
    /// A method without a body.
    NoBody(Box<Signature>),
    /// Not a function: what it is, and the token that says so.
    Other(String, TokenTree),
}

/// Reads a function; only the signature is parsed strictly, the body stays as it was typed.
pub(crate) fn item(tokens: TokenStream) -> syn::Result<Item> {
    let parser = |input: ParseStream<'_>| {
        let attrs = input.call(Attribute::parse_outer)?;
        let vis: Visibility = input.parse()?;
        if let Some(other) = other_item(input)? {
            input.parse::<TokenStream>()?;
            return Ok(other);
        }
        // `default fn` of specialisation, and anything else in front of `fn`, stays a parse error of syn's
        let signature: Signature = input.parse()?;
        if input.peek(Token![;]) || input.is_empty() {
            input.parse::<TokenStream>()?;
            return Ok(Item::NoBody(Box::new(signature)));
        }
        let body = body(input)?;
        input.parse::<TokenStream>()?;
        let (inner_attrs, body) = split_inner_attrs(&body)?;
        Ok(Item::Function(Box::new(Function { attrs, inner_attrs, vis, signature, body })))
    };
    parser.parse2(tokens)
}

fn other_item(input: ParseStream<'_>) -> syn::Result<Option<Item>> {
    const WORDS: &[&str] = &[
        "enum",
        "struct",
        "union",
        "trait",
        "impl",
        "mod",
        "type",
        "static",
        "use",
        "macro_rules",
        "let",
        "loop",
        "while",
        "for",
        "match",
    ];
    let ahead = input.fork();
    let Ok(first) = ahead.parse::<TokenTree>() else { return Ok(None) };
    let word = first.to_string();
    let is_const_item = word == "const"
        && !(ahead.peek(Token![fn])
            || ahead.peek(Token![async])
            || ahead.peek(Token![unsafe])
            || ahead.peek(Token![extern]));
    let is_unsafe_item = word == "unsafe" && (ahead.peek(Token![trait]) || ahead.peek(Token![impl]));
    if WORDS.contains(&word.as_str()) || is_const_item || is_unsafe_item {
        let shown = match word.as_str() {
            "const" => "a const".to_owned(),
            "unsafe" => format!("an unsafe {}", ahead.parse::<TokenTree>()?),
            "enum" | "impl" => format!("an {word}"),
            "mod" => "a module".to_owned(),
            "type" => "a type alias".to_owned(),
            "use" => "an import".to_owned(),
            "macro_rules" => "a macro".to_owned(),
            _ => format!("a {word}"),
        };
        return Ok(Some(Item::Other(shown, first)));
    }
    Ok(None)
}

/// The braces of the body; a `$body:block` fragment arrives inside an invisible group.
fn body(input: ParseStream<'_>) -> syn::Result<Group> {
    let tree: TokenTree = input.parse()?;
    let mut tree = tree;
    loop {
        match tree {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => return Ok(group),
            TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
                let mut inner = group.stream().into_iter();
                match (inner.next(), inner.next()) {
                    (Some(only), None) => tree = only,
                    _ => return Err(syn::Error::new(group.span(), "a function body in braces is expected")),
                }
            }
            other => return Err(syn::Error::new(other.span(), "a function body in braces is expected")),
        }
    }
}

fn split_inner_attrs(body: &Group) -> syn::Result<(Vec<Attribute>, Group)> {
    let starts_inner = {
        let mut trees = body.stream().into_iter();
        matches!((trees.next(), trees.next()), (Some(TokenTree::Punct(a)), Some(TokenTree::Punct(b))) if a.as_char() == '#' && b.as_char() == '!')
    };
    if !starts_inner {
        return Ok((Vec::new(), body.clone()));
    }
    let parser = |input: ParseStream<'_>| Ok((input.call(Attribute::parse_inner)?, input.parse::<TokenStream>()?));
    let (attrs, rest) = parser.parse2(body.stream())?;
    let mut group = Group::new(Delimiter::Brace, rest);
    group.set_span(body.span());
    Ok((attrs, group))
}

/// `retrying!(OPTIONS; [async] -> TYPE { body })`
pub(crate) struct Inline {
    pub(crate) options: TokenStream,
    pub(crate) asynchronous: Option<Token![async]>,
    pub(crate) output: syn::Type,
    pub(crate) body: Group,
}

impl Parse for Inline {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut options = TokenStream::new();
        while !input.is_empty() && !input.peek(Token![;]) {
            input.parse::<TokenTree>()?.to_tokens(&mut options);
        }
        if input.is_empty() {
            return Err(syn::Error::new(
                Span::call_site(),
                "`retrying!` is written `retrying!(OPTIONS; async -> Result<T, E> { body })`, or without `async` to block",
            ));
        }
        input.parse::<Token![;]>()?;
        let asynchronous = input.parse()?;
        if !input.peek(Token![->]) {
            return Err(input.error("the type is expected here: `-> Result<T, E> { body }`"));
        }
        input.parse::<Token![->]>()?;
        let output: syn::Type = input.parse()?;
        if input.is_empty() {
            return Err(syn::Error::new_spanned(
                output,
                "the body is expected behind the type: `-> Result<T, E> { body }`",
            ));
        }
        let body = body(input)?;
        if !input.is_empty() {
            return Err(input.error("nothing is expected after the body"));
        }
        Ok(Self { options, asynchronous, output, body })
    }
}

/// The identifier of an expression that is nothing but one.
pub(crate) fn single_ident(expr: &Expr) -> Option<Ident> {
    match value::bare(expr) {
        Expr::Path(path) if path.qself.is_none() && path.attrs.is_empty() => path.path.get_ident().cloned(),
        _ => None,
    }
}

/// The same; what is missing at the end of the input has no place but the key's.
fn report_at<T>(diag: &Diag, key: &Ident, result: syn::Result<T>) -> Option<T> {
    const END: &str = "unexpected end of input, ";
    match result {
        Err(error) if error.to_string().starts_with(END) => {
            diag.error(key, format!("`{key}`: {} at the end", error.to_string().trim_start_matches(END)));
            None
        }
        result => report(diag, result),
    }
}

/// Reports an error and goes on without the value.
fn report<T>(diag: &Diag, result: syn::Result<T>) -> Option<T> {
    result.map_err(|error| diag.syn_error(error)).ok()
}

fn until_comma(input: ParseStream<'_>) -> TokenStream {
    let mut tokens = TokenStream::new();
    while !input.is_empty() && !input.peek(Token![,]) {
        match input.parse::<TokenTree>() {
            Ok(tree) => tree.to_tokens(&mut tokens),
            Err(_) => break,
        }
    }
    tokens
}

fn skip_to_comma(input: ParseStream<'_>) -> syn::Result<()> {
    while !input.is_empty() && !input.peek(Token![,]) {
        input.parse::<TokenTree>()?;
    }
    Ok(())
}
