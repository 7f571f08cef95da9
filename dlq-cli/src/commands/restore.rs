//! `dlq restore`.

use retry_runtime::dead_letter::{ItemOutcome, LetterState, MAX_REPLAYS, OperationRequest, Verb};

use super::context::{ChangeArgs, Context};
use super::operate::{by_hand, members, must_be_said};
use crate::exit::{Exit, Failure};
use crate::filters::FilterArgs;
use crate::stores::Access;

/// Which letters, how many replays they get, and why.
#[derive(Debug, clap::Args)]
pub(crate) struct RestoreArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// So many failed replays more until they are abandoned
    #[arg(long, value_name = "N", default_value_t = MAX_REPLAYS)]
    more_replays: u32,
    #[command(flatten)]
    change: ChangeArgs,
}

pub(super) async fn run(context: &Context, args: RestoreArgs) -> Result<Exit, Failure> {
    let store = context.open(Access::Write)?;
    let mut meant = args.filter.meant(&store, store.facts().await?.now).await?;
    must_be_said(&meant)?;
    if !meant.filter.ids.is_empty() && meant.filter.states.is_empty() {
        // Whoever names a letter means it, recovered or not.
        meant.filter.states = vec![LetterState::Recovered, LetterState::Discarded, LetterState::Abandoned];
    }
    let verb = Verb::Restore { more_replays: args.more_replays };
    let filter = members(&store, &meant, &[LetterState::Discarded, LetterState::Abandoned]).await?;
    by_hand(context, &store, OperationRequest::new(verb, filter), &args.change, ItemOutcome::Restored).await
}
