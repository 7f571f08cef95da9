//! `dlq replay`.

use retry_runtime::dead_letter::{
    Aggregate, Filter, GroupKey, Handlers, ItemOutcome, LetterState, Operation, OperationOptions, OperationRequest,
    OperationStatus, Plan, Prospect, Steer, Verb,
};
use serde_json::json;

use super::by::ByArgs;
use super::context::{ChangeArgs, Context, aside, print, print_json};
use super::operate::{self, Running, left_out, members, must_be_said, nothing, take_back};
use super::ops;
use super::table::{counted, matching};
use crate::exit::{Exit, Failure};
use crate::filters::{self, FilterArgs};
use crate::means::Means;
use crate::stores::{Access, Store};
use crate::{documents, text};

/// For `--help`.
pub(crate) const EXAMPLES: &str = "Examples:\n  dlq replay --kind fetch                                    what would happen; changes nothing\n  \
     dlq replay --kind fetch --execute --exec python3 job.py    the payload on stdin, exit 0 is recovered\n  \
     dlq replay --all --execute --rate 5 --canary --http http://localhost:8080/jobs\n  \
     dlq replay --all --execute --enqueue                       by the application's own workers\n  \
     dlq replay --resume 0197c2d4 --exec python3 job.py         go on after Ctrl-C";

/// Which letters, by which means, how carefully.
#[derive(Debug, clap::Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct ReplayArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// For real; without it nothing is changed
    #[arg(long)]
    execute: bool,
    /// Go on with this operation, which was paused or left
    #[arg(long, value_name = "OP", conflicts_with_all = ["execute", "enqueue"])]
    resume: Option<String>,
    /// With `--resume`: also from a runner that has not been silent for a minute, and is known to be gone
    #[arg(long, requires = "resume")]
    take_over: bool,
    #[command(flatten)]
    by: ByArgs,
    /// Leave it to the application's own workers
    #[arg(long, conflicts_with_all = ["exec", "http"], help_heading = "By which means")]
    enqueue: bool,
    #[command(flatten)]
    care: CareArgs,
    #[command(flatten)]
    change: ChangeArgs,
}

/// How carefully.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "How carefully")]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of its own")]
struct CareArgs {
    /// Begin at most so many a second; fractions are fine
    #[arg(long, value_name = "N")]
    rate: Option<f64>,
    /// So many at once
    #[arg(long, value_name = "N", default_value_t = 1)]
    concurrency: u32,
    /// First 1, then 10, 100, and so on; each stage when the one before went well
    #[arg(long)]
    canary: bool,
    /// Pause when this share of the ended replays failed; 0 never pauses
    #[arg(long, value_name = "SHARE", default_value_t = 0.5)]
    stop_at_failure_ratio: f64,
    /// That share counts once so many have ended
    #[arg(long, value_name = "N", default_value_t = 20)]
    stop_after: u64,
    /// Do not wait for the first letter, a probe, to be recovered before the others begin
    #[arg(long)]
    no_probe: bool,
    /// Leave letters out whose failure was permanent
    #[arg(long)]
    exclude_permanent: bool,
    /// Also letters that a server asked to leave alone for longer, and those whose payload was redacted when it was stored;
    /// permanent failures are taken without it
    #[arg(long)]
    force: bool,
}

impl CareArgs {
    fn options(&self) -> OperationOptions {
        let mut options = OperationOptions::default();
        options.force = self.force;
        options.exclude_permanent = self.exclude_permanent;
        options.rate = self.rate;
        options.concurrency = self.concurrency;
        options.canary = self.canary;
        options.stop_ratio = (self.stop_at_failure_ratio != 0.0).then_some(self.stop_at_failure_ratio);
        options.stop_after = self.stop_after;
        options
    }
}

pub(super) async fn run(context: &Context, args: ReplayArgs) -> Result<Exit, Failure> {
    let means = args.by.means()?;
    if let Some(op) = &args.resume {
        return resume(context, &args, op, means).await;
    }
    if !args.execute {
        return dry(context, &args).await;
    }
    if means.is_none() && !args.enqueue {
        return Err(Failure::usage(
            "by which means? say --exec CMD..., --http URL, or --enqueue for the application's own workers",
        ));
    }
    let store = context.open(Access::Write)?;
    let meant = args.filter.meant(&store, store.facts().await?.now).await?;
    must_be_said(&meant)?;
    take_back(&store, &args.change).await?;
    let filter = members(&store, &meant, Verb::Replay.states()).await?;
    let request = OperationRequest::new(Verb::Replay, filter).with(args.care.options());
    request.members().map_err(|wrong| Failure::usage(wrong.to_string()))?;
    let plan = store.plan(request.clone()).await?;
    if plan.matched == 0 {
        return nothing(context, &store, &request).await;
    }
    if !context.json {
        aside(&format!("store: {}\n{}", store.shown(), text::line(&plan.to_string())));
        for other in left_out(&store, &request).await? {
            aside(&other);
        }
    }
    let by = means.as_ref().map_or_else(|| "the application's own workers".to_owned(), Means::said);
    let what = format!("replay {} by {by}", counted(plan.matched, "letter"));
    Context::confirm(plan.matched, &what, args.change.yes)?;
    let operation = store.start(request, args.change.actor()).await?;
    match means {
        Some(means) => go_on(context, &store, operation, means, &args).await,
        None => enqueued(context, &store, &operation),
    }
}

async fn go_on(
    context: &Context,
    store: &Store,
    operation: Operation,
    means: Means,
    args: &ReplayArgs,
) -> Result<Exit, Failure> {
    if !context.json {
        aside(&format!("replay {} by {}", operation.id, means.said()));
    }
    let running = Running {
        handlers: means.handlers(store, !args.care.no_probe).await?,
        takes_over: args.take_over,
        resume: args.by.resume(&operation.id),
    };
    operate::run(context, store, operation, running, &args.change.actor(), ItemOutcome::Recovered).await
}

fn enqueued(context: &Context, store: &Store, operation: &Operation) -> Result<Exit, Failure> {
    if context.json {
        print_json(&json!({
            "store": store.shown(), "operation": documents::operation(operation), "matching": operation.counts.total(),
        }))?;
    } else {
        print(&format!(
            "store: {}\nreplay {}: {} waiting for a worker\n{}\nhow it goes: dlq ops show {}",
            store.shown(),
            operation.id,
            counted(operation.counts.total(), "letter"),
            ops::way_on(operation, operation.updated_at).unwrap_or_default(),
            operation.id
        ))?;
    }
    Ok(Exit::DONE)
}

async fn resume(context: &Context, args: &ReplayArgs, op: &str, means: Option<Means>) -> Result<Exit, Failure> {
    let store = context.open(Access::Write)?;
    let mut operation = ops::find(&store, op).await?;
    if operation.verb == Verb::Replay && means.is_none() {
        return Err(Failure::usage(
            "by which means? say --exec CMD... or --http URL; `dlq ops resume` leaves it to the workers",
        ));
    }
    if operation.status.is_over() {
        return Err(Failure::failed(format!("operation {} is {}", operation.id, operation.status)));
    }
    if matches!(operation.status, OperationStatus::Paused | OperationStatus::Failed) {
        operation = store.steer(operation.id, Steer::Resume, args.change.actor()).await?;
    }
    if let Some(means) = means.filter(|_| operation.verb == Verb::Replay) {
        return go_on(context, &store, operation, means, args).await;
    }
    let wanted = if operation.verb == Verb::Discard { ItemOutcome::Discarded } else { ItemOutcome::Restored };
    let running =
        Running { handlers: Handlers::new(), takes_over: args.take_over, resume: args.by.resume(&operation.id) };
    operate::run(context, &store, operation, running, &args.change.actor(), wanted).await
}

/// What would happen, class by class. Opened for reading only.
async fn dry(context: &Context, args: &ReplayArgs) -> Result<Exit, Failure> {
    let store = context.open(Access::Read)?;
    let now = store.facts().await?.now;
    let meant = args.filter.meant(&store, now).await?;
    let filter = members(&store, &meant, Verb::Replay.states()).await?;
    let request = OperationRequest::new(Verb::Replay, filter.clone()).with(args.care.options());
    request.members().map_err(|wrong| Failure::usage(wrong.to_string()))?;
    let plan = store.plan(request).await?;
    let parked = store.count(parked(&meant.filter)).await?;
    let kinds = store.aggregate(Aggregate::new(parked_only(&filter), [GroupKey::Kind, GroupKey::ErrorClass])).await?;
    if context.json {
        let classes: Vec<_> = kinds
            .iter()
            .map(|group| json!({ "kind": group.keys.first(), "error_class": group.keys.get(1), "letters": group.letters }))
            .collect();
        print_json(&json!({
            "store": store.shown(), "dry_run": true, "matching": parked, "plan": documents::plan(&plan), "classes": classes,
        }))?;
        return Ok(Exit::DONE);
    }
    let mut page = dry_page(&store, &plan, parked, &kinds, &meant.filter);
    if plan.under_way > 0 {
        let expired = operate::leases_over(&store, &meant.filter, now).await?;
        if expired > 0 {
            page = format!(
                "{page}\n{} under way of whoever is gone (lease over): for real, taken back first",
                counted(expired, "letter")
            );
        }
    }
    if plan.matched == 0 {
        let others = left_out(&store, &OperationRequest::new(Verb::Replay, filter)).await?;
        if !meant.filter.ids.is_empty() && !others.is_empty() {
            return Err(Failure::failed(others.join("\n")));
        }
        page.extend(others.iter().map(|other| format!("\n{other}")));
    }
    print(&page)?;
    Ok(Exit::DONE)
}

fn parked(filter: &Filter) -> Filter {
    let mut filter = filter.clone();
    filter.states = vec![LetterState::Parked];
    filter
}

fn parked_only(filter: &Filter) -> Filter {
    parked(filter)
}

fn dry_page(
    store: &Store,
    plan: &Plan,
    parked: u64,
    kinds: &[retry_runtime::dead_letter::Group],
    filter: &Filter,
) -> String {
    let mut out = vec![
        format!("store: {}", store.shown()),
        format!("dry run: {}, nothing was changed", matching(plan.matched, parked)),
        text::lines(&plan.to_string().replace("; ", "\n  ").replacen("", "  ", 1)),
    ];
    if plan.groups.iter().any(|group| group.prospect == Prospect::Permanent) {
        out.push("  (permanent ones are replayed too; --exclude-permanent leaves them out)".to_owned());
    }
    for group in kinds.iter().take(10) {
        let name = |at: usize| group.keys.get(at).map(|key| text::cut(key, 60)).unwrap_or_default();
        out.push(format!("{:>6}  {}  of {}", group.letters, name(1), name(0)));
    }
    if kinds.len() > 10 {
        out.push(format!("        and {} more", kinds.len() - 10));
    }
    if plan.matched > 0 {
        let said = filters::options(filter);
        let said = if said.is_empty() { "--all".to_owned() } else { said };
        out.push(format!("\nfor real, one of:\n  dlq replay {said} --execute --exec CMD...\n  dlq replay {said} --execute --http URL\n  dlq replay {said} --execute --enqueue"));
    }
    out.join("\n")
}
