//! `dlq restore`.

use retry_runtime::dead_letter::{Filter, ItemOutcome, LetterState, MAX_REPLAYS, OperationRequest, Order, Verb};

use super::context::{ChangeArgs, Context};
use super::list::first;
use super::operate::{by_hand, members, must_be_said};
use crate::exit::{Exit, Failure};
use crate::filters::FilterArgs;
use crate::stores::{Access, Store};

/// Which letters, how many replays they get, and why.
#[derive(Debug, clap::Args)]
pub(crate) struct RestoreArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// So many failed replays more until they are abandoned; unless told otherwise 5, and none where each has some left
    #[arg(long, value_name = "N")]
    more_replays: Option<u32>,
    #[command(flatten)]
    change: ChangeArgs,
}

pub(super) async fn run(context: &Context, args: RestoreArgs) -> Result<Exit, Failure> {
    let store = context.open(Access::Write)?;
    let meant = args.filter.meant(&store, store.facts().await?.now).await?;
    must_be_said(&meant)?;
    let filter = members(&store, &meant, &CLOSED).await?;
    let more_replays = match args.more_replays {
        Some(more) => more,
        None => needed(&store, &filter).await?,
    };
    let verb = Verb::Restore { more_replays };
    by_hand(context, &store, OperationRequest::new(verb, filter), &args.change, ItemOutcome::Restored).await
}

/// What is restored where no state is said: what was recovered is done.
const CLOSED: [LetterState; 2] = [LetterState::Discarded, LetterState::Abandoned];

/// So many letters are looked at one by one.
const LOOKED_AT: u64 = 500;

/// No replays more where every letter has one left.
async fn needed(store: &Store, filter: &Filter) -> Result<u32, Failure> {
    let mut filter = filter.clone();
    if filter.states.is_empty() {
        filter.states = CLOSED.to_vec();
    }
    let rows = first(store, &filter, Order::LongestUnseenFirst, LOOKED_AT).await?;
    let all_have_some = rows.iter().all(|row| row.replays < row.max_replays);
    Ok(if all_have_some && (rows.len() as u64) < LOOKED_AT { 0 } else { MAX_REPLAYS })
}
