//! `dlq discard`.

use retry_runtime::dead_letter::{ItemOutcome, OperationRequest, Verb};

use super::context::{ChangeArgs, Context};
use super::operate::{by_hand, members, must_be_said, take_back};
use crate::exit::{Exit, Failure};
use crate::filters::FilterArgs;
use crate::stores::Access;

/// Which letters, and why.
#[derive(Debug, clap::Args)]
pub(crate) struct DiscardArgs {
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    change: ChangeArgs,
}

pub(super) async fn run(context: &Context, args: DiscardArgs) -> Result<Exit, Failure> {
    let store = context.open(Access::Write)?;
    let meant = args.filter.meant(&store, store.facts().await?.now).await?;
    must_be_said(&meant)?;
    take_back(&store, &args.change).await?;
    let filter = members(&store, &meant, Verb::Discard.states()).await?;
    by_hand(context, &store, OperationRequest::new(Verb::Discard, filter), &args.change, ItemOutcome::Discarded).await
}
