//! `dlq backup`.

use std::path::PathBuf;

use serde_json::json;

use super::context::{Context, print, print_json};
use crate::exit::{Exit, Failure};
use crate::stores::Access;
use crate::text;

/// Where to.
#[derive(Debug, clap::Args)]
pub(crate) struct BackupArgs {
    /// A path where nothing is yet
    #[arg(value_name = "PATH")]
    target: PathBuf,
}

pub(super) async fn run(context: &Context, args: BackupArgs) -> Result<Exit, Failure> {
    let store = context.open(Access::Read)?;
    let target = std::path::absolute(&args.target).unwrap_or(args.target);
    let said = store.backup(target.clone()).await?;
    if context.json {
        print_json(&json!({ "store": store.shown(), "target": target.to_string_lossy(), "text": said }))?;
    } else {
        print(&format!("store: {}\n{}", store.shown(), text::lines(&said)))?;
    }
    Ok(Exit::DONE)
}
