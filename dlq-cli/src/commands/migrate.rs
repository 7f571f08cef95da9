//! `dlq migrate`.

use serde_json::json;

use super::context::{Context, print, print_json};
use crate::exit::{Exit, Failure};
use crate::stores::{Access, Place, Store};
use crate::text;

/// Where to.
#[derive(Debug, clap::Args)]
pub(crate) struct MigrateArgs {
    /// Copy the whole store to this address, where nothing is yet: letters, ledger, counters, audit
    #[arg(long, value_name = "ADDRESS")]
    to: Option<String>,
}

pub(super) async fn run(context: &Context, args: MigrateArgs) -> Result<Exit, Failure> {
    let Some(to) = args.to else {
        // Opening for writing brings the file up to this version.
        let store = context.open(Access::Write)?;
        store.summary().await?;
        return say(context, &store, None);
    };
    let target = Place::parse(&to)?;
    let from = context.open(Access::Read)?;
    let Some(path) = target.path() else {
        return Err(Failure::usage("accepted is sqlite:PATH"));
    };
    if path.exists() {
        return Err(Failure::failed(format!(
            "`{}` is there already: the store is copied to where nothing is yet; name another file, or move that one away",
            path.display()
        )));
    }
    let said = from.backup(path.to_owned()).await?;
    // The copy has the schema of its source: opening brings it up.
    let copy = Store::open(&target, Access::Write)?;
    let (before, after) = (from.summary().await?, copy.summary().await?);
    if before.owed() != after.owed() {
        let what = "letters came or went meanwhile: stop the programs that write, remove the copy and do it again";
        return Err(Failure::failed(format!("{} are owed here and {} there; {what}", before.owed(), after.owed())));
    }
    copy.close(std::time::Duration::from_secs(10)).await;
    say(context, &from, Some((&copy, &said)))
}

fn say(context: &Context, store: &Store, copied: Option<(&Store, &str)>) -> Result<Exit, Failure> {
    if context.json {
        print_json(&json!({ "store": store.shown(), "to": copied.map(|(copy, _)| copy.shown()) }))?;
    } else if let Some((copy, said)) = copied {
        print(&format!(
            "store: {}\ncopied to {}: {}\npoint the programs there; what they write here from now on stays here",
            store.shown(),
            copy.shown(),
            text::lines(said)
        ))?;
    } else {
        print(&format!("store: {}\nis up to this version", store.shown()))?;
    }
    Ok(Exit::DONE)
}
