//! The macros of `retry-runtime`; use them through it.

mod classify;
mod diag;
mod names;
mod retry;
mod slot;
mod value;

use proc_macro::TokenStream;

/// Runs a function again after a failure that may pass, within limits.
///
/// `max_retries = 2` (the default) means at most 3 attempts. An `Err` is a failed attempt; the error's
/// [`Classify`](macro@Classify) says whether it may pass; the last error comes back as it is.
///
/// ```
/// use retry_runtime::{Classify, retry};
///
/// #[derive(Debug, PartialEq, Classify)]
/// enum FetchError {
///     #[classify(retryable)]
///     Busy,
///     #[classify(permanent)]
///     Denied,
/// }
///
/// #[retry(max_retries = 3, base_delay = "100ms")]
/// async fn fetch(calls: &std::cell::Cell<u32>) -> Result<u32, FetchError> {
///     calls.set(calls.get() + 1);
///     if calls.get() < 3 { Err(FetchError::Busy)? }
///     Ok(calls.get())
/// }
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
/// assert_eq!(fetch(&std::cell::Cell::new(0)).await, Ok(3));
/// # }
/// ```
///
/// # What it works on
///
/// `async fn` and `fn`, methods with any receiver, trait methods with a body, methods under `#[async_trait]`, generic
/// functions, functions written by macros. The return type is any that is a `Result<T, E>` to the compiler. Signature,
/// generics and attributes stay as written; the loop is generated inside the body, without boxing and without helper items.
///
/// - Each attempt runs the body again. `?` and `return` end the attempt, never the function, also inside macros.
/// - By-value arguments are borrowed by each attempt. One that the body consumes stands in `clone(..)`; a `mut` one starts
///   each attempt from the caller's value (copied when `Copy`, else `clone(..)` or `share(..)`).
/// - The error is dropped before the wait, so it need not be `Send`.
/// - A panic in the body reaches the caller and is never retried.
///
/// # Options
///
/// | key | meaning | default | example |
/// |---|---|---|---|
/// | `max_retries` | attempts after the first, or `forever`, which needs a `deadline` or a `budget` | 2 | `max_retries = 2` |
/// | `base_delay` | wait before the first retry | `"1s"` | `base_delay = "1s"` |
/// | `max_delay` | no own wait is longer | `"60s"` | `max_delay = "60s"` |
/// | `backoff` | how waits grow: `exponential` (twofold), `exponential(FACTOR)`, `fixed`, `linear`, `fibonacci`, or a path `fn(u32) -> Duration` | `exponential` | `backoff = exponential(1.5)` |
/// | `jitter` | random part of a wait, inside `max_delay`: `none`, `full`, `equal`, `decorrelated`, or a duration to add uniformly | `none` | `jitter = full` |
/// | `max_retry_after` | longest server hint that is waited for; a longer one stops the call | `"2m"` | `max_retry_after = "2m"` |
/// | `class` | other numbers for the failures of one class: any of the keys above; may repeat | the call's | `class(rate_limit, max_retries = 5, base_delay = "10s")` |
/// | `deadline` | limit over all attempts and waits, asked before each wait | none | `deadline = "30s"` |
/// | `attempt_timeout` | limit of one attempt (async); needs `E: From<Elapsed>` or `GaveUp<E>` | none | `attempt_timeout = "5s"` |
/// | `retry_on` | patterns of errors that are retried whatever the classifier says | none | `retry_on(ApiError::Busy)` |
/// | `stop_on` | patterns of errors that are never retried; asked before `retry_on` | none | `stop_on(ApiError::Denied)` |
/// | `retry_ok` | patterns of values that count as failed attempts | none | `retry_ok(None)` |
/// | `classify` | a path `fn(&E) -> Verdict`; `E` then needs no trait | `Classify` | `classify = path::to::function` |
/// | `unknown` | `stop` or `retry`: what an unknown failure does | `stop` | `unknown = retry` |
/// | `idempotent` | `false`: a failure that may have done the work all the same is not repeated | `true` | `idempotent = false` |
/// | `nested` | `detect` or `outer_only`: what is done inside an attempt of another retried call | nothing, if async | `nested = detect` |
/// | `policy` | a `Policy` or `&Policy` instead of the first six keys; a `NamedPolicy` (feature `config`) follows its configuration | none | `policy = &POLICY` |
/// | `budget` | a `&Budget` or `Arc<Budget>`: a retry takes from it before its wait, and the call ends where it is empty | none | `budget = &BUDGET` |
/// | `breaker` | a `&CircuitBreaker` or `Arc<CircuitBreaker>` that admits each attempt; needs `E: From<Refused>` or `GaveUp<E>` | none | `breaker = &BREAKER` |
/// | `observer` | an `Observer`, which is told of every event of the call; it may be shared, or several in a tuple | the installed one alone | `observer = &OBSERVER` |
/// | `fallback` | a second route, run once on giving up: a `Result<T, E>`; may name `error` and `.await` | none | `fallback = second_route().await` |
/// | `dead_letter` | parks the job on giving up, and when it is dropped or panics: a `sink`, and its `job_id`, `payload` and `model`; with `journal` it is written down before the first attempt, for processes that are killed: one durable write before the job, and one when it ended well (`journal = required`: or it does not run; needs `E: From<Refused>` or `GaveUp<E>`) | none | `dead_letter(sink = dlq, job_id = &job.id, payload = job)` |
/// | `ledger` | persisted attempts: a `store` and a `key`, a `scope` (the operation's name), `max_attempts` (3), and what a refused call returns, `skipped` | none | `ledger(store = ledger, key = &url)` |
/// | `context` | a name: an argument `&mut RetryContext`, or a new one the body can read | none | `context = ctx` |
/// | `cancel` | a future (async): the call ends at once when it completes; needs `E: From<Refused>` or `GaveUp<E>` | none | `cancel = token.cancelled()` |
/// | `sleep` | a path `fn(Duration) -> impl Future<Output = ()>` (async) | tokio's timer | `sleep = path::to::sleep` |
/// | `clone` | arguments of which each attempt gets a clone | none | `clone(body)` |
/// | `share` | `mut` arguments that all attempts share, with their changes | none | `share(connection)` |
/// | `name` | the operation's name in letters, warnings and events | module path and function | `name = "fetch_page"` |
/// | `crate` | where generated code finds the runtime | `::retry_runtime` | `crate = ::path::to::retry_runtime` |
///
/// Durations are strings such as `"250ms"`, `"1.5s"`, `"2m"`, `"1h30m"` (ns, us, ms, s, m, h, d), or expressions of type
/// `Duration`. The expressions of options are evaluated once per call, in the order written, before the first attempt.
///
/// Patterns are matched against a reference, several separated by `,` or `|`, each with an `if` guard if wanted:
/// `retry_on(ApiError::Status(code) if *code == 425, ApiError::Busy | ApiError::Reset)`. `_` is every error. A misspelt name
/// is a compile error, never a pattern that matches all.
///
/// What the body changes through `&mut` cannot be borrowed in an option: give a copy or an owned handle, as in
/// `payload = job.clone()` or `sink = self.dlq.clone()`. `?`, `return`, `break` and `.await` have no place in options, but in
/// `fallback` and `skipped`, which are evaluated when used and are blocks of their own.
///
/// Renaming an operation leaves its letters without a handler: give it a `name` where letters are kept for long. A `name` is
/// required with `dead_letter` or `ledger` on a method, since two types' methods of one name would share their letters.
///
/// The fallback runs once, after the attempts and before the letter, for every failure but a gone one; not when the call
/// was cancelled or the ledger refused it, nor when the outcome is unknown and `idempotent = false`. The ledger refuses
/// what is ok, gone, at its cap, or not due yet; a refused call neither falls back nor parks.
///
/// Where the function has docs, a section `# Retries` with its schedule is added to them.
///
/// An async function waits by tokio's timer, which panics outside of a tokio runtime; with `sleep = path` it runs on any.
///
/// # Classes
///
/// `class(rate_limit, max_retries = 5, base_delay = "10s")` gives the failures of one class numbers of their own; what it
/// does not say is the call's. A class with a `max_retries` is counted by itself: so many of its failures are retried,
/// whatever failed between them. The call's number counts all failures and holds for every class without one of its own. No
/// call makes more attempts than the largest `max_retries` given allows. A class with a wait of its own grows it by its own
/// failures, so that its first one waits its `base_delay`. The name is a word or a string.
///
/// A misspelt name is a compile error where the derive knows all classes of the error (it shows when the function is built),
/// and a warning `unknown_class` at the first failure where some come from rules, or from inner types that derive `Classify`
/// or are this library's. Nothing is said where any class may come: with `classify = path`, with a hand-written `Classify`, and
/// where the error is or holds a type of another crate, a `std::io::Error` (which may carry any error) or a boxed one.
///
/// # What may have been done
///
/// With `idempotent = false` a failure whose outcome is unknown ends the call: sent, then timed out or reset, it may have been
/// done, and doing it twice would be wrong (a payment, a message). The classifier says so (`outcome_unknown`), and an attempt
/// that ran into its `attempt_timeout` or the deadline always is such a failure. Neither `retry_on` nor the fallback repeats
/// it; a dead letter is parked with the reason `outcome_unknown`. What failed before anything was done - a refused
/// connection, a 429 - is retried as ever.
///
/// # Cancelling
///
/// `cancel = token.cancelled()` takes any future. It is evaluated once and polled first: before each attempt, and beside
/// every attempt and every wait. When it completes, the running attempt is dropped, or the wait ends, and the call is over:
/// no fallback, but a dead letter with the attempts made so far, which is awaited. A call cancelled before its first attempt
/// makes none, and is parked with 0. There is no error of the body to return then, so the error is made of a `Refused`,
/// which tells of the last failure.
///
/// # Loops in loops
///
/// A retried call inside another one's attempt multiplies attempts: three layers of 4 make 64. Detection is by a mark that
/// an attempt leaves on its thread. A blocking one always does; an async one is marked in each of its polls, which is not
/// free, so `nested` on the outer function asks for it. In tests, with the runtime's feature `test-util`, all are marked.
///
/// A call that finds itself inside is told of, once for each place (the notice `nested_retry`), and events carry the depth:
/// always when it blocks, and when it is async by `nested = detect`. With `nested = outer_only` it makes a single attempt
/// there, and leaves retries to the outer one; anywhere else it retries as ever. What an attempt spawns is not inside it.
///
/// ```
/// use retry_runtime::{Classify, retry};
///
/// #[derive(Debug, Classify)]
/// #[classify(retryable)]
/// struct Busy;
///
/// #[retry(nested = outer_only, base_delay = "1ms")]
/// async fn connect(calls: &std::cell::Cell<u32>) -> Result<u32, Busy> {
///     calls.set(calls.get() + 1);
///     Err(Busy)
/// }
///
/// #[retry(nested = detect, base_delay = "1ms")]
/// async fn fetch(calls: &std::cell::Cell<u32>) -> Result<u32, Busy> {
///     connect(calls).await
/// }
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
/// let calls = std::cell::Cell::new(0);
/// assert!(fetch(&calls).await.is_err());
/// assert_eq!(calls.get(), 3); // not 9
/// # }
/// ```
///
/// A blocking function that waits on a thread of a tokio runtime keeps the tasks there from going on; that is told of as
/// well (`worker_stalled`), but not in `spawn_blocking`, where it belongs.
///
/// # Budgets and breakers
///
/// Retries of many calls together are what turns a slow dependency into an outage. A `Budget`, shared by the calls to one
/// dependency, lets retries be only a part of what succeeds. A `CircuitBreaker` refuses attempts while most of them fail.
/// Both are asked before a wait, while the error is in hand: a call that ends there as `budget_denied` or `breaker_open`
/// returns its own last error. Only a call that the breaker refuses before its first attempt has none; it returns what
/// `From<Refused>` makes, its fallback runs, and its letter has 0 attempts.
///
/// ```
/// use retry_runtime::{Budget, CircuitBreaker, Classify, Refused, retry};
///
/// static BUDGET: Budget = Budget::new().ratio(0.1);
/// static BREAKER: CircuitBreaker = CircuitBreaker::new();
///
/// #[derive(Debug, Classify)]
/// enum E {
///     #[classify(retryable)]
///     Busy,
///     #[classify(transparent)]
///     Refused(Refused),
/// }
///
/// impl From<Refused> for E {
///     fn from(refused: Refused) -> Self {
///         Self::Refused(refused)
///     }
/// }
///
/// #[retry(budget = &BUDGET, breaker = &BREAKER, base_delay = "1ms")]
/// fn fetch() -> Result<u32, E> {
///     Err(E::Busy)
/// }
///
/// assert!(matches!(fetch(), Err(E::Busy)));
/// assert_eq!(BUDGET.milli_tokens() / 1000, 98); // two retries
/// ```
///
/// # Watching
///
/// `observer = EXPR` names who is told of every attempt, wait, refusal and ending of the call; `observe::install` names who is
/// told of all calls of the process. The events, and what each carries, are in `retry_runtime::observe`. An observer that
/// panics changes nothing.
///
/// # The full report
///
/// Return `Result<T, GaveUp<E>>` instead of `Result<T, E>` to get the reason, the history and the last error.
///
/// ```
/// use retry_runtime::{Classify, GaveUp, StopReason, retry};
///
/// #[derive(Debug, Classify)]
/// #[classify(retryable)]
/// struct Busy;
///
/// #[retry(max_retries = 1, base_delay = "1ms")]
/// fn poll() -> Result<(), GaveUp<Busy>> {
///     Err(Busy)
/// }
///
/// let gave_up = poll().unwrap_err();
/// assert_eq!((gave_up.reason(), gave_up.attempts()), (StopReason::Exhausted, 2));
/// ```
///
/// # Dead letters
///
/// ```
/// use retry_runtime::dead_letter::MemoryStore;
/// use retry_runtime::{Classify, retry};
///
/// #[derive(Debug, Classify)]
/// #[classify(permanent)]
/// struct Denied;
///
/// #[derive(serde::Serialize)]
/// struct Job {
///     id: String,
/// }
///
/// #[retry(dead_letter(sink = dlq, job_id = &job.id, payload = job))]
/// async fn generate(dlq: &MemoryStore, job: &Job) -> Result<String, Denied> {
///     Err(Denied)
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let dlq = MemoryStore::new();
/// // the caller gets its own error; the job is parked
/// assert!(generate(&dlq, &Job { id: "a1".into() }).await.is_err());
/// # }
/// ```
#[proc_macro_attribute]
pub fn retry(options: TokenStream, item: TokenStream) -> TokenStream {
    retry::attribute(options.into(), &item.into()).into()
}

/// The loop of [`macro@retry`] as an expression: `retrying!(OPTIONS; async -> Result<T, E> { body })`, or without `async` to
/// block. Its value is the `Result`; `?` and `return` in the body end the attempt.
///
/// The options are the attribute's, but for `clone(..)` and `share(..)`, which speak of arguments. `context` names a
/// `RetryContext` in scope.
///
/// ```
/// use retry_runtime::{Classify, retrying};
///
/// #[derive(Debug, PartialEq, Classify)]
/// #[classify(retryable)]
/// struct Busy;
///
/// let mut calls = 0;
/// let reply = retrying!(max_retries = 3, base_delay = "1ms"; -> Result<u32, Busy> {
///     calls += 1;
///     if calls < 3 { return Err(Busy) }
///     Ok(calls)
/// });
/// assert_eq!(reply, Ok(3));
/// ```
#[proc_macro]
pub fn retrying(input: TokenStream) -> TokenStream {
    retry::inline(input.into()).into()
}

/// Writes `retry_runtime::Classify` for an enum or a struct: every variant says what a failure of its kind means.
///
/// ```
/// use std::time::Duration;
///
/// use retry_runtime::{Classify, Disposition, Verdict};
///
/// #[derive(Classify)]
/// enum FetchError {
///     #[classify(retryable, class = "connection")]
///     Reset(std::io::Error),
///     #[classify(permanent)]
///     BadUrl,
///     #[classify(retryable)]
///     RateLimit {
///         #[classify(retry_after)]
///         wait: Option<Duration>,
///     },
///     #[classify(status = status, message = body)]
///     Server { status: u16, body: String },
///     #[classify(transparent)]
///     Store(Box<StoreError>),
/// }
///
/// #[derive(Classify)]
/// #[classify(permanent)]
/// struct StoreError;
///
/// let limited = FetchError::RateLimit { wait: Some(Duration::from_secs(7)) };
/// assert_eq!(limited.classify(), Verdict::retryable("rate_limit").retry_after(Duration::from_secs(7)));
///
/// let server = FetchError::Server { status: 503, body: "try later".into() }.classify();
/// assert_eq!((server.disposition, server.code), (Disposition::Retryable, Some(503)));
///
/// assert_eq!(FetchError::Store(Box::new(StoreError)).classify(), Verdict::permanent("store_error"));
/// ```
///
/// # Decisions
///
/// A variant, or a struct, has exactly one of these. One without any is a compile error that lists all such variants,
/// unless the enum has a default. Nothing is ever retried because nobody said no.
///
/// | `#[classify(..)]` | meaning |
/// |---|---|
/// | `retryable` | may pass when tried again |
/// | `permanent` | will fail again |
/// | `gone` | a final answer: no retry, no fallback, no dead letter |
/// | `unknown` | nobody knows: the `unknown` option of `#[retry]` decides |
/// | `transparent`, `transparent = field` | the verdict of the value inside, through `Box`, `Arc`, `Rc` and `&`; the field must be named where there are several |
/// | `status = field`, `message = field` | one or both: decided by rules about a status and a text |
/// | `with = path` | decided by a function `fn(&Self) -> Verdict` |
///
/// # Details
///
/// | `#[classify(..)]` | beside | meaning |
/// |---|---|---|
/// | `class = "name"` | a disposition, `status`, `message` | the failure class: letters, digits, `_`, `-`, `.`; default: the variant's name in `snake_case`, or the class that the rules give |
/// | `retry_after = field` | a disposition, `status`, `message` | how long the server asked to wait: a `Duration`, whole seconds, or an `Option` of one |
/// | `outcome_unknown` | a disposition, `status`, `message` | the work may have been done all the same |
/// | `rules = PATH` | `status`, `message` | the `StatusRules` to decide by, a constant or a static; default: `StatusRules::HTTP` |
///
/// A field is given by its name or number, or by the word on the field itself: `#[classify(status)]`, `message`,
/// `retry_after` or `transparent`. What a field may be: see the traits `StatusField`, `MessageField` and
/// `RetryAfterField` in `retry_runtime::classify`, which can be implemented for types of your own.
///
/// A status becomes the verdict's code. With rules that know neither the status nor a word of the message, the failure is
/// unknown. For a fixed disposition that carries a code, write a function:
///
/// ```
/// use retry_runtime::{Classify, Verdict};
///
/// #[derive(Classify)]
/// #[classify(with = Self::verdict)]
/// struct Refused {
///     status: u16,
/// }
///
/// impl Refused {
///     fn verdict(&self) -> Verdict {
///         Verdict::permanent("refused").code(i64::from(self.status))
///     }
/// }
///
/// assert_eq!(Refused { status: 451 }.classify().code, Some(451));
/// ```
///
/// # On the type
///
/// | `#[classify(..)]` | on | meaning |
/// |---|---|---|
/// | `default = permanent` | an enum | the disposition, any of the four, of variants that have no decision |
/// | `crate = ::path` | an enum or struct | where generated code finds the runtime; default `::retry_runtime` |
///
/// # Generics
///
/// A bound is added only where a field is asked and its type depends on a parameter: `#[classify(transparent)] Inner(T)`
/// needs `T: Classify`, and a payload that is not asked needs nothing. Recursion through `Self`, or the type's own name,
/// needs no bound. Two *generic* types that ask each other are beyond what bounds can say; implement one of the two by
/// hand.
///
/// # Text
///
/// `Classify::describe` gives the text of `Display` where the type has it, else that of `Debug`, else none. For a generic
/// type only an implementation counts that holds for every parameter the type admits.
#[proc_macro_derive(Classify, attributes(classify))]
pub fn classify(item: TokenStream) -> TokenStream {
    classify::derive(item.into()).into()
}
