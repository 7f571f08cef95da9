//! The one table of options of `#[retry]` and `retrying!`: it drives parsing, messages and docs.

/// How the value of an option is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// `key = VALUE`
    Value,
    /// `key(...)`
    List,
}

/// An option.
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) form: Form,
    /// Whether it makes sense only where something can be awaited.
    pub(crate) async_only: bool,
    /// Whether it speaks of a function's arguments.
    pub(crate) arguments: bool,
    /// How it is written, for messages.
    pub(crate) example: &'static str,
}

const fn value(name: &'static str, example: &'static str) -> Key {
    Key { name, form: Form::Value, async_only: false, arguments: false, example }
}

const fn list(name: &'static str, example: &'static str) -> Key {
    Key { name, form: Form::List, async_only: false, arguments: false, example }
}

impl Key {
    const fn async_only(mut self) -> Self {
        self.async_only = true;
        self
    }

    const fn of_arguments(mut self) -> Self {
        self.arguments = true;
        self
    }
}

/// Every option.
pub(crate) const KEYS: &[Key] = &[
    value("max_retries", "max_retries = 2"),
    value("base_delay", "base_delay = \"1s\""),
    value("max_delay", "max_delay = \"60s\""),
    value("backoff", "backoff = exponential(1.5)"),
    value("jitter", "jitter = full"),
    value("max_retry_after", "max_retry_after = \"2m\""),
    list("class", "class(rate_limit, max_retries = 5, base_delay = \"10s\")"),
    value("deadline", "deadline = \"30s\""),
    value("attempt_timeout", "attempt_timeout = \"5s\"").async_only(),
    list("retry_on", "retry_on(ApiError::Busy)"),
    list("stop_on", "stop_on(ApiError::Denied)"),
    list("retry_ok", "retry_ok(None)"),
    value("classify", "classify = path::to::function"),
    value("unknown", "unknown = retry"),
    value("idempotent", "idempotent = false"),
    value("nested", "nested = detect"),
    value("policy", "policy = &POLICY"),
    value("budget", "budget = &BUDGET"),
    value("breaker", "breaker = &BREAKER"),
    value("observer", "observer = &OBSERVER"),
    value("fallback", "fallback = second_route().await"),
    list("dead_letter", "dead_letter(sink = dlq, job_id = &job.id, payload = job)"),
    list("ledger", "ledger(store = ledger, key = &url)"),
    value("context", "context = ctx"),
    value("cancel", "cancel = token.cancelled()").async_only(),
    value("sleep", "sleep = path::to::sleep").async_only(),
    list("clone", "clone(body)").of_arguments(),
    list("share", "share(connection)").of_arguments(),
    value("name", "name = \"fetch_page\""),
    value("crate", "crate = ::path::to::retry_runtime"),
];

/// What other libraries call an option, and what it is here.
pub(crate) const SYNONYMS: &[(&str, &str)] = &[
    ("attempts", ATTEMPTS),
    ("max_attempts", ATTEMPTS),
    ("tries", ATTEMPTS),
    ("times", ATTEMPTS),
    ("retries", "did you mean `max_retries`?"),
    ("delay", "did you mean `base_delay`, the wait before the first retry?"),
    ("interval", "did you mean `base_delay`, the wait before the first retry?"),
    ("timeout", "did you mean `attempt_timeout`, for one attempt, or `deadline`, for all of them?"),
    ("max_elapsed", "did you mean `deadline`?"),
    ("max_elapsed_time", "did you mean `deadline`?"),
    ("total_timeout", "did you mean `deadline`?"),
    ("when", "did you mean `retry_on(..)`, with patterns of the error?"),
    ("retry_if", "did you mean `retry_on(..)`, with patterns of the error?"),
    ("on", "did you mean `retry_on(..)`, with patterns of the error?"),
    ("strategy", "did you mean `backoff`?"),
    ("factor", "did you mean `backoff = exponential(..)`?"),
    ("multiplier", "did you mean `backoff = exponential(..)`?"),
    ("cancel_on", "did you mean `cancel`, with a future?"),
    ("cancellation", "did you mean `cancel`, with a future?"),
    ("shutdown", "did you mean `cancel`, with a future?"),
    ("circuit_breaker", "did you mean `breaker`?"),
    ("retry_budget", "did you mean `budget`?"),
    ("notify", OBSERVER),
    ("on_retry", OBSERVER),
    ("listener", OBSERVER),
    ("hooks", OBSERVER),
    ("journal", "did you mean `dead_letter(.., journal)`?"),
    ("dlq", "did you mean `dead_letter(..)`?"),
    ("operation", "did you mean `name`?"),
];

const OBSERVER: &str = "did you mean `observer`, which is told of every event of the call?";
const ATTEMPTS: &str = "did you mean `max_retries`, which counts the attempts after the first?";

/// The count and wait keys: what `policy` stands for, and what `class(NAME, ..)` gives one class.
pub(crate) const NUMBERS: &[&str] = &["max_retries", "base_delay", "max_delay", "backoff", "jitter", "max_retry_after"];

/// The parts of `dead_letter(..)`, each `key = VALUE`.
pub(crate) const DEAD_LETTER: &[&str] = &["sink", "job_id", "payload", "model", "journal"];

/// The part of it that may stand alone.
pub(crate) const JOURNAL: &str = "journal";

/// The parts of `ledger(..)`, each `key = VALUE`.
pub(crate) const LEDGER: &[&str] = &["store", "key", "scope", "max_attempts", "skipped"];

/// The option of a name.
pub(crate) fn key(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

/// The names, for messages.
pub(crate) fn names() -> Vec<&'static str> {
    KEYS.iter().map(|key| key.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of each option the docs say the meaning, the default and the example of the messages; and of no other one.
    #[test]
    fn the_docs_are_about_these_options() {
        let (_, docs) = include_str!("../lib.rs").split_once("/// | key | meaning | default | example |\n").unwrap();
        let rows = docs.lines().skip(1).map_while(|line| line.strip_prefix("/// | ")?.strip_suffix(" |"));
        let rows: Vec<Vec<&str>> = rows.map(|row| row.split(" | ").collect()).collect();
        let documented: Vec<&str> = rows.iter().map(|row| row[0]).collect();
        assert_eq!(documented, KEYS.iter().map(|key| format!("`{}`", key.name)).collect::<Vec<_>>());
        for (row, key) in rows.iter().zip(KEYS) {
            let [name, meaning, default, example] = row[..] else { panic!("{row:?}") };
            assert!(!meaning.is_empty() && !default.is_empty(), "{name}");
            assert_eq!(example, format!("`{}`", key.example));
            // what cannot stand everywhere says so
            assert_eq!(meaning.contains("(async)"), key.async_only, "{name}: {meaning}");
            assert_eq!(meaning.contains("arguments"), key.arguments, "{name}: {meaning}");
            // the parts of a group are named
            let parts = match key.name {
                "dead_letter" => DEAD_LETTER,
                "ledger" => LEDGER,
                _ => &[],
            };
            assert!(parts.iter().all(|part| meaning.contains(&format!("`{part}`"))), "{name}: {meaning}");
        }
        // the keys that `policy` stands for, and that `class(..)` takes
        let first: Vec<&str> = KEYS.iter().take(NUMBERS.len()).map(|key| key.name).collect();
        assert_eq!(first, NUMBERS);
    }
}
