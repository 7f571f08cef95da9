//! Starting a bulk operation and running it to its end, or to Ctrl-C.

use std::sync::{Arc, Mutex, PoisonError};

use retry_runtime::dead_letter::{
    Actor, Filter, Handlers, ItemOutcome, LetterState, Operation, OperationRequest, OperationRunner, OperationStatus,
    Order, Steer,
};
use serde_json::json;

use super::context::{ChangeArgs, Context, aside, host, print, print_json};
use super::interrupt::{Ended, interruptible};
use super::list::first;
use super::progress::Progress;
use super::table::counted;
use crate::exit::{Exit, Failure};
use crate::filters::Meant;
use crate::stores::Store;
use crate::{documents, text};

/// The most letters an operation names one by one.
const NAMED: u64 = 10_000;

/// The filter of an operation: what was meant, and where there is a limit, the letters it leaves, named one by one, the
/// longest unseen first.
pub(super) async fn members(store: &Store, meant: &Meant, states: &[LetterState]) -> Result<Filter, Failure> {
    let mut filter = meant.filter.clone();
    let Some(limit) = meant.limit else { return Ok(filter) };
    if limit > NAMED {
        return Err(Failure::usage(format!(
            "--limit {limit}: accepted are 1 to {NAMED} for an operation; leave it out for all"
        )));
    }
    if filter.states.is_empty() {
        filter.states = states.to_vec();
    }
    let rows = first(store, &filter, Order::LongestUnseenFirst, limit).await?;
    if rows.is_empty() {
        return Ok(filter);
    }
    let mut named = Filter::all();
    named.states = filter.states;
    named.ids = rows.into_iter().map(|row| row.letter_id).collect();
    Ok(named)
}

/// Nothing is changed without a word about what.
pub(super) fn must_be_said(meant: &Meant) -> Result<(), Failure> {
    if meant.is_said() {
        return Ok(());
    }
    Err(Failure::usage(
        "which letters? say it by --kind, --class, --group, --id or another filter, or --all for all of them",
    ))
}

/// How an operation is run here.
pub(super) struct Running {
    pub(super) handlers: Handlers,
    /// Also from a runner whose lease has not ended.
    pub(super) takes_over: bool,
    /// What the command was, for the word about going on.
    pub(super) resume: String,
}

/// Asks, starts and runs an operation that needs no handlers; says how it ended.
pub(super) async fn by_hand(
    context: &Context,
    store: &Store,
    request: OperationRequest,
    change: &ChangeArgs,
    wanted: ItemOutcome,
) -> Result<Exit, Failure> {
    let plan = store.plan(request.clone()).await?;
    if plan.matched == 0 {
        return nothing(context, store, &request);
    }
    if !context.json {
        aside(&format!("store: {}\n{} matching", store.shown(), plan.matched));
    }
    Context::confirm(plan.matched, &format!("{} {}", request.verb, counted(plan.matched, "letter")), change.yes)?;
    let operation = store.start(request, change.actor()).await?;
    let resume = format!("dlq replay --resume {}", operation.id);
    let running = Running { handlers: Handlers::new(), takes_over: false, resume };
    run(context, store, operation, running, &change.actor(), wanted).await
}

/// Nothing matches: everything that was asked for is done.
pub(super) fn nothing(context: &Context, store: &Store, request: &OperationRequest) -> Result<Exit, Failure> {
    if context.json {
        print_json(&json!({ "store": store.shown(), "operation": null, "matching": 0 }))?;
    } else {
        print(&format!("store: {}\n0 of 0 matching: no letter to {}", store.shown(), request.verb))?;
    }
    Ok(Exit::DONE)
}

/// Runs an operation; 0 only when every member ended as wanted.
pub(super) async fn run(
    context: &Context,
    store: &Store,
    operation: Operation,
    with: Running,
    actor: &Actor,
    wanted: ItemOutcome,
) -> Result<Exit, Failure> {
    let id = operation.id.clone();
    let total = operation.counts.total();
    let bar = Progress::of(Some(total), "letters");
    let last = Arc::new(Mutex::new(operation));
    let mut runner = OperationRunner::new(store.all())
        .handlers(with.handlers)
        .name(format!("dlq@{}:{}", host(), std::process::id()))
        .progress({
            let (bar, last) = (bar.clone(), Arc::clone(&last));
            move |operation| {
                let open = operation.counts.pending() + operation.counts.running();
                let failures = operation.counts.failures();
                let message = if failures > 0 { format!("{failures} still failing") } else { String::new() };
                bar.at(total.saturating_sub(open), message);
                operation.clone_into(&mut last.lock().unwrap_or_else(PoisonError::into_inner));
            }
        });
    if with.takes_over {
        runner = runner.take_over();
    }
    let stopper = runner.stopper();
    let pause = || async {
        // Paused in the store first: a worker of the application would go on otherwise.
        if let Err(error) = store.steer(id.clone(), Steer::Pause, actor.clone()).await {
            aside(&format!("it could not be paused: {}", text::line(&error.to_string())));
        }
        stopper.stop();
    };
    let ended = interruptible(runner.run(id.clone()), pause).await;
    bar.end();
    let (operation, is_asked) = match ended {
        Ended::Done(done) => (done?, false),
        Ended::Asked(done) => (done?, true),
        Ended::Dropped => {
            let resume = with.resume;
            aside(&format!("dropped: letters under way come back when their leases end; go on by: {resume}"));
            return Ok(Exit::INTERRUPTED);
        }
    };
    say(context, store, &operation, &with.resume, wanted)?;
    if is_asked && !operation.status.is_over() {
        return Ok(Exit::INTERRUPTED);
    }
    let is_whole =
        operation.status == OperationStatus::Done && operation.counts.get(wanted) == operation.counts.total();
    Ok(if is_whole { Exit::DONE } else { Exit::FAILED })
}

fn say(
    context: &Context,
    store: &Store,
    operation: &Operation,
    resume: &str,
    wanted: ItemOutcome,
) -> Result<(), Failure> {
    if context.json {
        return print_json(&json!({
            "store": store.shown(), "operation": documents::operation(operation), "matching": operation.counts.total(),
        }));
    }
    let mut out = vec![
        format!("store: {}", store.shown()),
        format!("{} {}", operation.verb, operation.id),
        format!(
            "{} of {} matching {}",
            operation.counts.get(wanted),
            operation.counts.total(),
            wanted.as_str().replace('_', " ")
        ),
        text::line(&operation.to_string()),
    ];
    if operation.counts.failures() + operation.counts.skipped() + operation.counts.waiting() > 0 {
        out.push(format!("which, and why: dlq ops show {}", operation.id));
    }
    if !operation.status.is_over() {
        out.push(format!("to go on: {resume}"));
    }
    print(&out.join("\n"))
}
