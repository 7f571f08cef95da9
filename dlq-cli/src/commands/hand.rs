//! `dlq resolve` and `dlq release`: one letter by hand.

use retry_runtime::dead_letter::{LetterRow, LetterState, Release};
use serde_json::json;

use super::context::{ChangeArgs, Context, print, print_json};
use crate::exit::{Exit, Failure};
use crate::filters::one;
use crate::stores::{Access, Store};
use crate::{documents, text, times};

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
    #[arg(long)]
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
    let now = store.facts().await?.now;
    let before = store.get(id.clone()).await?.ok_or_else(|| Failure::failed(format!("letter {id} is gone")))?.row;
    if before.is_expired(now) {
        // Whoever had it is gone: taken back as any program would, and counted as a death.
        store.reap(args.change.actor()).await?;
        let row = store.get(id.clone()).await?.ok_or_else(|| Failure::failed(format!("letter {id} is gone")))?.row;
        return say(context, &store, &row, "taken back, as the lease of whoever replayed it is over");
    }
    if before.state == LetterState::Replaying && !args.force {
        let until = before.lease_until.map(|until| times::ago(until, now)).unwrap_or_default();
        return Err(Failure::failed(format!(
            "{} replays it, and the lease ends {until}: wait, or say --force where they are known to be gone",
            text::line(before.owner.as_deref().unwrap_or("somebody"))
        )));
    }
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
