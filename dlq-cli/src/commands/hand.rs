//! `dlq resolve` and `dlq release`: one letter by hand.

use retry_runtime::dead_letter::{LetterRow, Release};
use serde_json::json;

use super::context::{ChangeArgs, Context, print, print_json};
use crate::exit::{Exit, Failure};
use crate::filters::one;
use crate::stores::{Access, Store};
use crate::{documents, text};

/// Which letter, and how it was done.
#[derive(Debug, clap::Args)]
pub(crate) struct ResolveArgs {
    /// A letter's id, a job's id, or the beginning of either where it is unique
    #[arg(value_name = "ID")]
    id: String,
    /// How it was done, for the audit
    #[arg(long, value_name = "TEXT", required = true)]
    reason: String,
}

/// Which letter.
#[derive(Debug, clap::Args)]
pub(crate) struct ReleaseArgs {
    /// A letter's id, a job's id, or the beginning of either where it is unique
    #[arg(value_name = "ID")]
    id: String,
    /// Also while its lease holds: whoever replays it may still finish, and will find that it came too late
    #[arg(long, required = true)]
    force: bool,
    #[command(flatten)]
    change: ChangeArgs,
}

pub(super) async fn resolve(context: &Context, args: ResolveArgs) -> Result<Exit, Failure> {
    let store = context.open(Access::Write)?;
    let id = one(&store, &args.id).await?;
    let change = ChangeArgs { reason: Some(args.reason), yes: true };
    let row = store.resolve(id, change.actor()).await?;
    say(context, &store, &row, "resolved by hand: it is owed no more")
}

pub(super) async fn release(context: &Context, args: ReleaseArgs) -> Result<Exit, Failure> {
    let store = context.open(Access::Write)?;
    let id = one(&store, &args.id).await?;
    let row = store.release(id, Release::Forced, args.change.actor()).await?;
    say(context, &store, &row, "released: a result that still comes changes nothing")
}

fn say(context: &Context, store: &Store, row: &LetterRow, done: &str) -> Result<Exit, Failure> {
    if context.json {
        print_json(&json!({ "store": store.shown(), "letter": documents::letter(row) }))?;
    } else {
        print(&format!(
            "store: {}\n{} (job {}) is {}: {done}",
            store.shown(),
            row.letter_id,
            text::line(&row.job_id),
            row.state
        ))?;
    }
    Ok(Exit::DONE)
}
