//! `dlq prune`.

use std::time::Duration;

use retry_runtime::dead_letter::{PruneReport, PruneRequest};
use serde_json::json;

use super::context::{ChangeArgs, Context, aside, print, print_json};
use super::interrupt::interrupted;
use super::progress::Progress;
use super::table::counted;
use crate::exit::{Exit, Failure};
use crate::stores::{Access, Store};
use crate::{text, times};

/// Which closed letters.
#[derive(Debug, clap::Args)]
pub(crate) struct PruneArgs {
    /// Those closed longer ago than this: 12h, 30d, 8w
    #[arg(long, value_name = "TIME", value_parser = times::duration, required = true)]
    older_than: Duration,
    /// Only of these operations
    #[arg(long, value_name = "KIND")]
    kind: Vec<String>,
    /// Only say what would be deleted
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    change: ChangeArgs,
}

/// So many are deleted between two looks at the bar.
const STEP: u64 = 2_000;

pub(super) async fn run(context: &Context, args: PruneArgs) -> Result<Exit, Failure> {
    let store = context.open(if args.dry_run { Access::Read } else { Access::Write })?;
    let mut request = PruneRequest::older_than(args.older_than);
    request.kinds.clone_from(&args.kind);
    let planned = store.prune(request.clone().dry_run(), args.change.actor()).await?;
    let total = planned.total();
    if args.dry_run || total == 0 {
        say(context, &store, &planned, true)?;
        return Ok(Exit::DONE);
    }
    if !context.json {
        aside(&format!("store: {}\n{}", store.shown(), lines(&planned)));
    }
    // It cannot be undone: asked about whatever the number.
    Context::ask(&total.to_string(), &format!("delete {} for good", counted(total, "closed letter")), args.change.yes)?;
    let bar = Progress::of(Some(total), "letters");
    let mut stop = Box::pin(interrupted());
    request.limit = Some(STEP);
    let mut done = PruneReport::default();
    loop {
        let step = tokio::select! {
            biased;
            () = &mut stop => {
                bar.end();
                say(context, &store, &done, false)?;
                aside("interrupted: what was deleted is counted; run it again for the rest");
                return Ok(Exit::INTERRUPTED);
            }
            step = store.prune(request.clone(), args.change.actor()) => step?,
        };
        for (what, n) in step.letters {
            *done.letters.entry(what).or_default() += n;
        }
        done.payload_files += step.payload_files;
        bar.at(done.total(), "");
        if !step.is_cut {
            break;
        }
    }
    bar.end();
    say(context, &store, &done, false)?;
    Ok(Exit::DONE)
}

fn lines(report: &PruneReport) -> String {
    let rows = report.letters.iter().map(|(what, n)| {
        format!("{n:>6}  {}  {}  {}", what.state, text::cut(&what.kind, 40), text::cut(&what.error_class, 40))
    });
    rows.collect::<Vec<_>>().join("\n")
}

fn say(context: &Context, store: &Store, report: &PruneReport, is_dry: bool) -> Result<(), Failure> {
    if context.json {
        let letters: Vec<_> = report
            .letters
            .iter()
            .map(|(what, n)| json!({ "status": what.state.as_str(), "kind": what.kind, "error_class": what.error_class, "letters": n }))
            .collect();
        return print_json(&json!({
            "store": store.shown(), "dry_run": is_dry, "total": report.total(), "letters": letters,
            "payload_files": report.payload_files,
        }));
    }
    let done = if is_dry { "would be deleted" } else { "deleted" };
    let total = counted(report.total(), "closed letter");
    if !is_dry {
        // Which ones was said before.
        return print(&format!("{total} {done}"));
    }
    let shown = lines(report);
    let shown = if shown.is_empty() { shown } else { format!("\n{shown}") };
    print(&format!("store: {}{shown}\n{total} {done}", store.shown()))
}
