//! Starting a bulk operation and running it to its end, or to Ctrl-C.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use retry_runtime::dead_letter::{
    Actor, Aggregate, Filter, GroupKey, Handlers, ItemOutcome, LetterRow, LetterState, Operation, OperationRequest,
    OperationRunner, OperationStatus, Order, Steer, Verb,
};
use serde_json::json;

use super::context::{ChangeArgs, Context, aside, host, print, print_json};
use super::interrupt::{Ended, interruptible};
use super::list::{class_before, first};
use super::ops;
use super::progress::Progress;
use super::table::counted;
use crate::exit::{Exit, Failure};
use crate::filters::Meant;
use crate::stores::Store;
use crate::{documents, filters, text};

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

/// Takes back what is under way of whoever is gone: their leases have ended.
pub(super) async fn take_back(store: &Store, change: &ChangeArgs) -> Result<(), Failure> {
    let back = store.reap(change.actor()).await?;
    if !back.is_empty() {
        let n = counted(back.len() as u64, "letter");
        aside(&format!("{n} taken back from a replay whose lease is over"));
    }
    Ok(())
}

/// How many of the letters that match are under way of whoever is gone; of the first 500.
pub(super) async fn leases_over(store: &Store, filter: &Filter, now: SystemTime) -> Result<u64, Failure> {
    let mut filter = filter.clone();
    filter.states = vec![LetterState::Replaying];
    let rows = first(store, &filter, Order::LongestUnseenFirst, 500).await?;
    Ok(rows.iter().filter(|row| row.is_expired(now)).count() as u64)
}

/// What matches but for its state, and what to type about it: a line for each letter that was named, else for each state.
pub(super) async fn left_out(store: &Store, request: &OperationRequest) -> Result<Vec<String>, Failure> {
    let verb = request.verb;
    let mut filter = request.filter.clone();
    let taken = match verb {
        _ if !filter.states.is_empty() => filter.states.clone(),
        // Nobody means what was recovered, unless it is said.
        Verb::Restore { .. } => vec![LetterState::Discarded, LetterState::Abandoned],
        verb => verb.states().to_vec(),
    };
    filter.states = LetterState::ALL.iter().copied().filter(|state| !taken.contains(state)).collect();
    if filter.ids.is_empty() {
        let states = store.aggregate(Aggregate::new(filter.clone(), [GroupKey::State])).await?;
        let mut lines = Vec::new();
        for group in states {
            let Some(state) = group.keys.first().and_then(|state| LetterState::parse(state)) else { continue };
            filter.states = vec![state];
            let way = way_to(verb, state, &filters::options(&filter));
            lines.push(format!("{} left out: {state}{way}", counted(group.letters, "letter")));
        }
        return Ok(lines);
    }
    let rows = first(store, &filter, Order::LongestUnseenFirst, TOLD).await?;
    let line = |row: &LetterRow| {
        let job = text::line(&row.job_id);
        let way = way_to(verb, row.state, &filters::options(&Filter::id(row.letter_id.clone())));
        format!("{job} is {}{way}", row.state)
    };
    Ok(rows.iter().map(line).collect())
}

/// So many letters are named.
const TOLD: u64 = 10;

fn way_to(verb: Verb, state: LetterState, options: &str) -> String {
    match (verb, state) {
        (Verb::Replay, LetterState::Abandoned | LetterState::Discarded) => {
            format!(": dlq restore {options} parks it again")
        }
        (Verb::Replay | Verb::Discard, LetterState::Recovered) => ": nothing is owed".to_owned(),
        (_, LetterState::Replaying) => ": somebody is at it; dlq release ID --force takes it away from them".to_owned(),
        (Verb::Discard, LetterState::Discarded) => ": nothing is left to do".to_owned(),
        (Verb::Restore { .. }, LetterState::Parked) => format!(": it is parked, dlq replay {options} does it again"),
        (Verb::Restore { .. }, LetterState::Recovered) => {
            format!(": its work is done; dlq restore {options} --status recovered parks it all the same")
        }
        _ => String::new(),
    }
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
        return nothing(context, store, &request).await;
    }
    if !context.json {
        aside(&format!("store: {}\n{} matching", store.shown(), plan.matched));
        if !request.filter.ids.is_empty() {
            left_out(store, &request).await?.iter().for_each(|other| aside(other));
        }
    }
    Context::confirm(plan.matched, &format!("{} {}", request.verb, counted(plan.matched, "letter")), change.yes)?;
    let operation = store.start(request, change.actor()).await?;
    let resume = format!("dlq replay --resume {}", operation.id);
    let running = Running { handlers: Handlers::new(), takes_over: false, resume };
    run(context, store, operation, running, &change.actor(), wanted).await
}

/// Nothing matches: everything that was asked for is done. Of letters that were named, nothing is.
pub(super) async fn nothing(context: &Context, store: &Store, request: &OperationRequest) -> Result<Exit, Failure> {
    let others = left_out(store, request).await?;
    if !request.filter.ids.is_empty() && !others.is_empty() {
        return Err(Failure::failed(others.join("\n")));
    }
    if context.json {
        print_json(&json!({ "store": store.shown(), "operation": null, "matching": 0 }))?;
    } else {
        let mut out =
            vec![format!("store: {}", store.shown()), format!("0 of 0 matching: no letter to {}", request.verb)];
        out.extend(others);
        print(&out.join("\n"))?;
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
            aside(&format!("dropped: what was under way is given back, and counts as nothing; go on by: {resume}"));
            return Ok(Exit::INTERRUPTED);
        }
    };
    let operation = if is_idle(&operation) && !is_asked {
        store.steer(operation.id, Steer::Cancel, actor.clone()).await?
    } else {
        operation
    };
    say(context, store, &operation, &with.resume, wanted).await?;
    if is_asked && !operation.status.is_over() {
        return Ok(Exit::INTERRUPTED);
    }
    let is_whole =
        operation.status == OperationStatus::Done && operation.counts.get(wanted) == operation.counts.total();
    Ok(if is_whole { Exit::DONE } else { Exit::FAILED })
}

/// Nothing could be begun, and a server's hint is all that it waits for: it is of no use to anybody.
fn is_idle(operation: &Operation) -> bool {
    let counts = &operation.counts;
    operation.status == OperationStatus::Paused
        && counts.results() == 0
        && counts.total() > 0
        && counts.get(ItemOutcome::NotDue) == counts.total()
}

async fn say(
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
    // The store was named before anything was done, on stderr.
    let mut out = vec![
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
    let counts = &operation.counts;
    if counts.get(ItemOutcome::Changed) > 0 {
        out.push(ops::CHANGED.trim().to_owned());
    }
    out.extend(gone(store, operation).await?);
    out.extend(failing(store, operation).await?);
    if operation.status == OperationStatus::Cancelled && counts.get(ItemOutcome::NotDue) == counts.total() {
        out.push(
            "nothing could be begun, so the operation is closed; start it again when they are due, or with --force"
                .to_owned(),
        );
    }
    if !operation.status.is_over() {
        out.push(format!("to go on: {resume}\nto end it: dlq ops cancel {}", operation.id));
    }
    print(&out.join("\n"))
}

/// What is gone was discarded: said, with the way back. An address that is wrong says the same of every job.
async fn gone(store: &Store, operation: &Operation) -> Result<Option<String>, Failure> {
    let n = operation.counts.get(ItemOutcome::Gone);
    if n == 0 {
        return Ok(None);
    }
    let items = store.items(operation.id.clone(), Some(ItemOutcome::Gone), None, 3).await?.items;
    let mut ids: Vec<String> =
        items.into_iter().filter_map(|item| item.letter_id).map(|id| format!("--id {id}")).collect();
    if n > ids.len() as u64 {
        ids.push("..".to_owned());
    }
    Ok(Some(format!(
        "gone: {} discarded, as there was nothing to do it to; if the address was wrong: dlq restore {}",
        counted(n, "letter"),
        ids.join(" ")
    )))
}

/// Letters show their newest failure: what they fail of now, where that is another class than before.
async fn failing(store: &Store, operation: &Operation) -> Result<Option<String>, Failure> {
    if operation.counts.get(ItemOutcome::StillFailing) == 0 {
        return Ok(None);
    }
    let items = store.items(operation.id.clone(), Some(ItemOutcome::StillFailing), None, 1).await?.items;
    let Some(id) = items.into_iter().find_map(|item| item.letter_id) else { return Ok(None) };
    let Some(detail) = store.get(id).await? else { return Ok(None) };
    let Some(before) = class_before(&detail.row, &detail.history) else { return Ok(None) };
    Ok(Some(format!(
        "they show their newest failure, {} (was {}): dlq list --error-class {}",
        text::line(&detail.row.error_class),
        text::line(&before),
        text::line(&detail.row.error_class)
    )))
}
