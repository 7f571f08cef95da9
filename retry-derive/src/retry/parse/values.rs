//! Options written `key = VALUE`.

use syn::parse::ParseStream;
use syn::{Expr, ExprPath, Ident};

use super::words::{self, in_quotes};
use super::{bind_known, report, single_ident, until_comma};
use crate::diag::Diag;
use crate::names::nearest;
use crate::retry::model::{Backoff, Binding, Count, Jitter, Numbers, Options};
use crate::retry::table;
use crate::value::{self, Known};

pub(super) fn set(diag: &Diag, options: &mut Options, key: &Ident, input: ParseStream<'_>) -> Option<()> {
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
        "unknown" => options.unknown.set(diag, key, words::unknown(diag, input)?),
        "idempotent" => options.idempotent.set(diag, key, words::idempotent(diag, input)?),
        "nested" => options.nested.set(diag, key, words::nested(diag, input)?),
        name if table::NUMBERS.contains(&name) => {
            let expr = report(diag, input.parse::<Expr>())?;
            let Options { numbers, bindings, .. } = options;
            let _reported = number(diag, &mut Owner { numbers, bindings, class: None }, key, expr);
        }
        "name" => {
            let expr = report(diag, input.parse::<Expr>())?;
            if let Some(text) = value::string(diag, "name", &expr) {
                options.name.set(diag, key, text);
            }
        }
        "policy" => {
            let expr = report(diag, input.parse::<Expr>())?;
            options.bindings.push(Binding { name: "policy", class: None, expr: expr.clone() });
            options.policy.set(diag, key, expr);
        }
        "budget" | "breaker" | "observer" => {
            let expr = report(diag, input.parse::<Expr>())?;
            let (binding, slot) = match name.as_str() {
                "budget" => ("budget", &mut options.budget),
                "breaker" => ("breaker", &mut options.breaker),
                _ => ("observer", &mut options.observer),
            };
            options.bindings.push(Binding { name: binding, class: None, expr: expr.clone() });
            slot.set(diag, key, expr);
        }
        "cancel" => {
            let expr = report(diag, input.parse::<Expr>())?;
            options.bindings.push(Binding { name: "cancel", class: None, expr: expr.clone() });
            options.cancel.set(diag, key, expr);
        }
        "fallback" => {
            let expr = report(diag, input.parse::<Expr>())?;
            options.fallback.set(diag, key, expr);
        }
        _ => {
            let expr = report(diag, input.parse::<Expr>())?;
            let (binding, slot) = match name.as_str() {
                "deadline" => ("deadline", &mut options.deadline),
                _ => ("attempt_timeout", &mut options.attempt_timeout),
            };
            if let Some(duration) = value::duration(diag, binding, expr) {
                bind_known(&mut options.bindings, None, binding, &duration);
                slot.set(diag, key, duration);
            }
        }
    }
    Some(())
}

/// Whose count and wait keys are read.
pub(super) struct Owner<'a> {
    pub(super) numbers: &'a mut Numbers,
    pub(super) bindings: &'a mut Vec<Binding>,
    pub(super) class: Option<usize>,
}

impl Owner<'_> {
    fn bind<T>(&mut self, name: &'static str, value: &Known<T>) {
        bind_known(self.bindings, self.class, name, value);
    }
}

/// A count or wait key; `None` after a mistake.
pub(super) fn number(diag: &Diag, owner: &mut Owner<'_>, key: &Ident, expr: Expr) -> Option<()> {
    let name = key.to_string();
    match name.as_str() {
        "max_retries" => {
            if single_ident(&expr).is_some_and(|word| word == "forever") {
                owner.numbers.max_retries.set(diag, key, Count::Forever);
            } else {
                let count = value::count(diag, "max_retries", expr)?;
                owner.bind("max_retries", &count);
                owner.numbers.max_retries.set(diag, key, Count::Limited(count));
            }
        }
        "backoff" => {
            let backoff = backoff(diag, owner, expr)?;
            owner.numbers.backoff.set(diag, key, backoff);
        }
        "jitter" => {
            let jitter = jitter(diag, owner, expr)?;
            owner.numbers.jitter.set(diag, key, jitter);
        }
        _ => {
            let (binding, slot) = match name.as_str() {
                "base_delay" => ("base_delay", &mut owner.numbers.base_delay),
                "max_delay" => ("max_delay", &mut owner.numbers.max_delay),
                _ => ("max_retry_after", &mut owner.numbers.max_retry_after),
            };
            let duration = value::duration(diag, binding, expr)?;
            bind_known(owner.bindings, owner.class, binding, &duration);
            slot.set(diag, key, duration);
        }
    }
    Some(())
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

fn backoff(diag: &Diag, owner: &mut Owner<'_>, expr: Expr) -> Option<Backoff> {
    const WORDS: &[&str] = &["exponential", "fixed", "linear", "fibonacci"];
    if in_quotes(diag, "backoff", WORDS, &expr) {
        return None;
    }
    match value::bare(&expr) {
        Expr::Call(call) if single_ident(&call.func).is_some_and(|word| word == "exponential") => {
            let mut arguments = call.args.iter();
            let (Some(first), None) = (arguments.next(), arguments.next()) else {
                diag.error(&expr, "`exponential(..)` takes one factor, such as `exponential(1.5)`");
                return None;
            };
            let factor = value::factor(diag, first.clone())?;
            owner.bind("factor", &factor);
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
                owner.bindings.push(Binding { name: "backoff", class: owner.class, expr });
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

fn jitter(diag: &Diag, owner: &mut Owner<'_>, expr: Expr) -> Option<Jitter> {
    const WORDS: &[&str] = &["none", "full", "equal", "decorrelated"];
    if in_quotes(diag, "jitter", WORDS, &expr) {
        return None;
    }
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
            owner.bind("jitter", &added);
            Jitter::Additive(added)
        }
    })
}
