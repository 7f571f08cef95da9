//! `dlq ops`.

use std::time::SystemTime;

use retry_runtime::dead_letter::{ItemOutcome, Operation, OperationStatus, Steer, Verb};
use serde_json::json;

use super::context::{ChangeArgs, Context, print, print_json};
use super::table::{Column, table};
use crate::exit::{Exit, Failure};
use crate::stores::{Access, Store};
use crate::{documents, text, times};

/// What the outcome `changed` means.
pub(super) const CHANGED: &str =
    "\nchanged: somebody else had the letter meanwhile (another operation, a release by force): this one left it alone";

/// What to do with which operation.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct OpsArgs {
    #[command(subcommand)]
    command: Option<OpsCommand>,
    /// At most so many, the newest first
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: u32,
}

/// What to do with an operation.
#[derive(Debug, clap::Subcommand)]
enum OpsCommand {
    /// One operation with its members, those that failed first
    #[command(after_help = "Example:\n  dlq ops show 0197c2d4")]
    Show {
        /// Its id, or the beginning where it is unique
        op: String,
        /// At most so many members
        #[arg(long, value_name = "N", default_value_t = 20)]
        limit: u32,
    },
    /// Begin no further letter; those under way end as usual
    #[command(after_help = "Example:\n  dlq ops pause 0197c2d4 --reason 'the provider is down again'")]
    Pause(SteerArgs),
    /// Let the application's workers go on with it; `dlq replay --resume` goes on here
    #[command(after_help = "Example:\n  dlq ops resume 0197c2d4")]
    Resume(SteerArgs),
    /// End it; what was not reached stays as it is
    #[command(after_help = "Example:\n  dlq ops cancel 0197c2d4 --reason 'the wrong ones'")]
    Cancel(SteerArgs),
}

/// Which operation, and why.
#[derive(Debug, clap::Args)]
struct SteerArgs {
    /// Its id, or the beginning where it is unique
    op: String,
    #[command(flatten)]
    change: ChangeArgs,
}

pub(super) async fn run(context: &Context, args: OpsArgs) -> Result<Exit, Failure> {
    match args.command {
        None => list(context, args.limit).await,
        Some(OpsCommand::Show { op, limit }) => show(context, &op, limit).await,
        Some(OpsCommand::Pause(args)) => steer(context, args, Steer::Pause).await,
        Some(OpsCommand::Resume(args)) => steer(context, args, Steer::Resume).await,
        Some(OpsCommand::Cancel(args)) => steer(context, args, Steer::Cancel).await,
    }
}

async fn list(context: &Context, limit: u32) -> Result<Exit, Failure> {
    let store = context.open(Access::Read)?;
    let now = store.facts().await?.now;
    let found = store.operations(None, limit).await?;
    if context.json {
        let documents: Vec<_> = found.iter().map(documents::operation).collect();
        print_json(&json!({ "store": store.shown(), "operations": documents }))?;
        return Ok(Exit::DONE);
    }
    let columns = [
        Column::Left("OPERATION"),
        Column::Left("VERB"),
        Column::Left("STATUS"),
        Column::Left("STARTED"),
        Column::Left("BY"),
        Column::Rest("MEMBERS"),
    ];
    let rows = found.iter().map(|operation| {
        let note = operation.note.as_deref().map(|note| format!(" ({note})")).unwrap_or_default();
        vec![
            operation.id.clone(),
            operation.verb.to_string(),
            status_word(operation, now),
            times::ago(operation.created_at, now),
            text::cut(&operation.actor.name, 60),
            format!("{}{note}", operation.counts),
        ]
    });
    let shown = if found.is_empty() { "no bulk operation yet".to_owned() } else { table(&columns, rows) };
    print(&format!("store: {}\n{shown}", store.shown()))?;
    Ok(Exit::DONE)
}

/// Where an operation stands, also when whoever runs it is gone.
pub(super) fn status_word(operation: &Operation, now: SystemTime) -> String {
    match operation.status {
        OperationStatus::Running if operation.is_waiting(now) => {
            format!(
                "running, silent since {}",
                times::rough(now.duration_since(operation.updated_at).unwrap_or_default())
            )
        }
        OperationStatus::Pending => "pending: waits for a worker".to_owned(),
        status => status.to_string(),
    }
}

/// What to type about an operation that stands still.
pub(super) fn way_on(operation: &Operation, now: SystemTime) -> Option<String> {
    let by = if operation.verb == Verb::Replay { " --exec CMD..." } else { "" };
    let resume = format!("dlq replay --resume {}{by}", operation.id);
    match operation.status {
        OperationStatus::Running if operation.is_waiting(now) => {
            Some(format!("nobody runs it any more (lease over): {resume}"))
        }
        OperationStatus::Pending => Some(format!(
            "it waits for a worker: of the application, or of `dlq serve --allow-actions --exec CMD`; to do it here: {resume}"
        )),
        OperationStatus::Paused | OperationStatus::Failed => {
            Some(format!("to go on: {resume}; to end it: dlq ops cancel {}", operation.id))
        }
        _ => None,
    }
}

async fn show(context: &Context, op: &str, limit: u32) -> Result<Exit, Failure> {
    let store = context.open(Access::Read)?;
    let operation = find(&store, op).await?;
    let mut items = Vec::new();
    let mut outcomes: Vec<_> = operation.counts.iter().map(|(outcome, _)| outcome).collect();
    outcomes.sort_by_key(|outcome| (!outcome.is_failure(), !outcome.is_waiting(), !outcome.is_skipped()));
    for outcome in outcomes {
        let left = limit.saturating_sub(u32::try_from(items.len()).unwrap_or(u32::MAX));
        if left == 0 {
            break;
        }
        items.extend(store.items(operation.id.clone(), Some(outcome), None, left).await?.items);
    }
    if context.json {
        let documents: Vec<_> = items.iter().map(documents::item).collect();
        print_json(
            &json!({ "store": store.shown(), "operation": documents::operation(&operation), "items": documents }),
        )?;
        return Ok(Exit::DONE);
    }
    let reason = if operation.actor.reason.is_empty() {
        String::new()
    } else {
        format!(": {}", text::line(&operation.actor.reason))
    };
    let now = store.facts().await?.now;
    let mut stands = text::line(&operation.to_string());
    if operation.counts.get(ItemOutcome::Changed) > 0 {
        stands.push_str(CHANGED);
    }
    if let Some(way) = way_on(&operation, now) {
        stands.push('\n');
        stands.push_str(&way);
    }
    let columns = [Column::Left("LETTER"), Column::Left("OUTCOME"), Column::Rest("DETAIL")];
    let rows = items.iter().map(|item| {
        vec![
            item.letter_id.clone().unwrap_or_else(|| "-".to_owned()),
            item.outcome.as_str().replace('_', " "),
            item.detail.clone().unwrap_or_default(),
        ]
    });
    print(&format!(
        "store: {}\n{} {}\n{}\nstarted {} by {}{reason}\n{}\n{} of {} members",
        store.shown(),
        operation.verb,
        operation.id,
        stands,
        times::full(operation.created_at),
        text::line(&operation.actor.name),
        table(&columns, rows),
        items.len(),
        operation.counts.total()
    ))?;
    Ok(Exit::DONE)
}

async fn steer(context: &Context, args: SteerArgs, steer: Steer) -> Result<Exit, Failure> {
    let store = context.open(Access::Write)?;
    let op = find(&store, &args.op).await?;
    let operation = store.steer(op.id, steer, args.change.actor()).await?;
    if context.json {
        print_json(&json!({ "store": store.shown(), "operation": documents::operation(&operation) }))?;
    } else {
        print(&format!(
            "store: {}\n{} {} is {}",
            store.shown(),
            operation.verb,
            operation.id,
            text::line(&operation.to_string())
        ))?;
        if steer == Steer::Resume {
            print(&way_on(&operation, operation.updated_at).unwrap_or_default())?;
        }
    }
    Ok(Exit::DONE)
}

/// The operation that an id, or its beginning, means.
pub(super) async fn find(store: &Store, op: &str) -> Result<Operation, Failure> {
    if let Some(operation) = store.operation(op.to_owned()).await? {
        return Ok(operation);
    }
    let mut found: Vec<Operation> = Vec::new();
    let mut after = None;
    while !op.is_empty() {
        let page = store.operations(after, 200).await?;
        after = page.last().map(|operation| operation.id.clone());
        let is_last = page.len() < 200;
        found.extend(page.into_iter().filter(|operation| operation.id.starts_with(op)));
        if is_last || found.len() > 1 {
            break;
        }
    }
    match (found.pop(), found.is_empty()) {
        (Some(operation), true) => Ok(operation),
        (Some(_), false) => {
            Err(Failure::failed(format!("`{}` means several operations: dlq ops lists them", text::line(op))))
        }
        (None, _) => Err(Failure::failed(format!("no operation `{}` in {}", text::line(op), store.shown()))),
    }
}
